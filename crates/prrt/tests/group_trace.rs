//! Events in the traces of a group's sender and receivers: as many as the counters count.

#![allow(clippy::unwrap_used)] // tests and what they share

use std::collections::BTreeSet;

use noctule_netsim::link::LinkSpec;
use noctule_prrt::group::trace::{Answer, Event, Left, Path, Purpose, SCHEMA};
use noctule_prrt::group::{GroupSender, MemberId};
use noctule_qlog::Event as _;
use noctule_timebase::{Instant, Span};

#[allow(dead_code)]
mod swarm;

use swarm::{Noted, Policer, Swarm, Terms};

fn noting(terms: Terms, spec: &str) -> Swarm {
    let mut swarm = Swarm::new(terms, &spec.parse::<LinkSpec>().unwrap());
    swarm.note();
    swarm
}

/// How many events of a node are such.
fn count(swarm: &Swarm, node: usize, is_such: impl Fn(&Event) -> bool) -> u64 {
    swarm.noted().iter().filter(|(_, of, event)| *of == node && is_such(event)).count() as u64
}

fn assert_counters_agree(swarm: &mut Swarm, receivers: usize) {
    let counters = swarm.sender_counters();
    let of_writer = |is_such: &dyn Fn(&Event) -> bool| count(swarm, 0, is_such);
    let sent = |why| of_writer(&|event| matches!(event, Event::Sent { trigger, .. } if *trigger == why));
    let noted = [
        of_writer(&|event| matches!(event, Event::Taken { .. })),
        sent(Purpose::Data),
        sent(Purpose::ParityUnasked),
        sent(Purpose::ParityAsked),
        of_writer(&|event| matches!(event, Event::AskReceived { .. })),
        of_writer(&|event| matches!(event, Event::AskReceived { trigger: Answer::Late, .. })),
        of_writer(&|event| matches!(event, Event::ParityWithheld { .. })),
        of_writer(&|event| matches!(event, Event::HeldBack { .. })),
        of_writer(&|event| matches!(event, Event::LeftToLinks { .. })),
    ];
    let counted = [
        counters.samples,
        counters.datagrams,
        counters.parity_unasked,
        counters.parity_asked,
        counters.asks,
        counters.asks_late,
        counters.parity_refused,
        counters.held_back,
        counters.left_to_links,
    ];
    assert_eq!(noted, counted, "{counters:?}");
    for number in 1..=receivers {
        let counters = swarm.reader(number).group.counters();
        let of_reader = |is_such: &dyn Fn(&Event) -> bool| count(swarm, number, is_such);
        let noted = [
            of_reader(&|event| matches!(event, Event::Repaired { .. })),
            of_reader(&|event| matches!(event, Event::Asked { .. })),
            of_reader(&|event| matches!(event, Event::Lost { .. })),
            of_reader(&|event| matches!(event, Event::AskWithheld { .. })),
        ];
        let counted = [counters.repaired, counters.asks, counters.given_up, counters.silenced];
        assert_eq!(noted, counted, "reader {number}: {counters:?}");
        let arrived =
            of_reader(&|event| matches!(event, Event::DataReceived { .. } | Event::ParityReceived { .. }));
        // A hail has no symbol.
        assert!(
            (0..=8).contains(&(counters.datagrams - arrived)),
            "reader {number}: {arrived}, {counters:?}"
        );
    }
}

#[test]
fn a_lost_sample_is_followed_from_its_sending_over_the_request_to_its_repair() {
    let mut swarm = noting(Terms::of(4, 3), "delay=5ms loss=5%");
    swarm.run(Span::from_s(10));
    assert_counters_agree(&mut swarm, 4);
    let noted = swarm.noted();
    let repaired = noted.iter().find_map(|(_, reader, event)| match event {
        Event::Repaired { sequence, block } => Some((*reader, *sequence, *block)),
        _ => None,
    });
    let (reader, sequence, number) = repaired.unwrap();
    let when = |is_such: &dyn Fn(&Noted) -> bool| {
        noted.iter().filter(|noted| is_such(noted)).map(|(at, ..)| *at).min().unwrap()
    };
    // Any reader may have been the first to ask.
    let way = [
        when(&|(.., event)| matches!(event, Event::Taken { sequence: of, .. } if *of == sequence)),
        when(&|(.., event)| matches!(event, Event::Asked { block, .. } if *block == number)),
        when(
            &|(.., event)| matches!(event, Event::AskReceived { block, trigger: Answer::Granted, .. } if *block == number),
        ),
        when(&|(_, node, event)| {
            *node == reader && matches!(event, Event::Repaired { block, .. } if *block == number)
        }),
    ];
    let one_way = Span::from_ms(5);
    assert!(way[1] > way[0] && way[2] - way[1] >= one_way && way[3] - way[2] >= one_way, "{way:?}");
    let has_parity = |event: &Event| matches!(event, Event::ParityReceived { block, .. } if *block == number);
    assert_eq!(
        when(&|(_, node, event)| *node == reader && has_parity(event)),
        way[3],
        "it is the parity that repairs"
    );
    let arrives =
        |event: &Event| matches!(event, Event::DataReceived { sequence: of, .. } if *of == sequence);
    assert_eq!(count(&swarm, reader, arrives), 0, "it was lost");
}

#[test]
fn a_full_path_is_tested_then_limited_and_a_lossy_member_set_apart_and_each_says_so() {
    let terms = Terms::of(4, 19);
    let mut swarm = noting(terms, "delay=5ms loss=1%");
    (1..=4).for_each(|number| swarm.reader(number).policer = Some(Policer::new(1_276.0 * 100.0)));
    swarm.run(Span::from_s(20));
    assert_counters_agree(&mut swarm, 4);
    let paths: Vec<(Path, u64)> = swarm
        .noted()
        .iter()
        .filter_map(|(.., event)| match event {
            Event::RateChanged { per_s, trigger } => Some((*trigger, *per_s)),
            _ => None,
        })
        .collect();
    assert_eq!(paths.iter().take(2).map(|(path, _)| *path).collect::<Vec<_>>(), [Path::Testing, Path::Full]);
    // Half of the 200 samples a second fit.
    assert!((60..160).contains(&paths[1].1), "{paths:?}");
    assert!(count(&swarm, 0, |event| matches!(event, Event::HeldBack { .. })) > 100);

    let terms = Terms::of(6, 15);
    let mut swarm = noting(terms, "delay=5ms loss=1%");
    swarm.reader(4).loss = 0.45;
    swarm.run(Span::from_s(20));
    swarm.reader(4).loss = 0.0;
    swarm.run(Span::from_s(40));
    assert_counters_agree(&mut swarm, 6);
    let changes: Vec<String> = swarm
        .noted()
        .iter()
        .filter(|(.., event)| matches!(event, Event::Apart { .. } | Event::Back { .. }))
        .map(|(.., event)| SCHEMA.sentence_of(event).unwrap())
        .collect();
    assert!(changes[0].contains(" of a million datagrams and is served by its link"), "{changes:?}");
    assert!(changes[1].ends_with("is served by the group again"), "{changes:?}");
}

#[test]
fn every_event_of_a_group_has_a_place_where_it_is_noted() {
    let mut seen = BTreeSet::new();
    let mut run = |terms: Terms, spec: &str, life: &dyn Fn(&mut Swarm)| {
        let mut swarm = noting(terms, spec);
        life(&mut swarm);
        assert_counters_agree(&mut swarm, terms.receivers);
        seen.extend(swarm.noted().iter().map(|(.., event)| event.name()));
        swarm
            .noted()
            .iter()
            .filter(|(.., event)| matches!(event, Event::LeftToLinks { trigger: Left::Unheard, .. }))
            .count()
    };
    // No reader hears anything at first.
    let unheard = run(Terms::of(2, 1), "delay=5ms loss=10% burst=3", &|swarm| {
        (1..=2).for_each(|number| swarm.reader(number).is_off = true);
        swarm.run(Span::from_s(2));
        (1..=2).for_each(|number| swarm.reader(number).is_off = false);
        swarm.run(Span::from_s(20));
    });
    assert!(unheard > 0);
    // Then a path that is full, and a member that hears little.
    run(Terms::of(4, 19), "delay=5ms loss=1%", &|swarm| {
        (1..=4).for_each(|number| swarm.reader(number).policer = Some(Policer::new(1_276.0 * 100.0)));
        swarm.run(Span::from_s(20));
    });
    run(Terms::of(6, 15), "delay=5ms loss=1%", &|swarm| {
        swarm.reader(4).loss = 0.45;
        swarm.run(Span::from_s(20));
        swarm.reader(4).loss = 0.0;
        swarm.run(Span::from_s(40));
    });
    // The sender hears nothing any more.
    run(Terms::of(2, 4), "delay=5ms loss=20%", &|swarm| swarm.run(Span::from_s(10)));
    // Nothing can leave until the deadline has passed.
    let terms = Terms::of(2, 1);
    let mut sender = GroupSender::new(terms.group(1), Instant::from_ns(0));
    sender.trace().start();
    assert!(sender.join(MemberId(1)) && sender.send(&terms.sample(b"late"), Instant::from_ns(0)));
    assert!(sender.poll_transmit(Instant::from_ns(0) + terms.deadline * 2, &mut Vec::new()), "a hail");
    seen.extend(std::iter::from_fn(|| sender.trace().poll()).map(|(_, event)| event.name()));
    assert_eq!(sender.counters().expired, 1);
    let all: BTreeSet<&str> = SCHEMA.sentences.iter().map(|(name, _)| *name).collect();
    let missing: Vec<&&str> = all.difference(&seen).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
