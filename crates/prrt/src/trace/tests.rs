use noctule_qlog::Event as _;
use noctule_timebase::Span;
use proptest::prelude::*;

use super::*;
use crate::stream::{Arrival, Bound, Class, Delivered, Order, Origin, Outgoing};
use crate::{Link, LinkConfig};

const WRITER: StreamId = StreamId(7);

fn at(ms: i64) -> Instant<Local> {
    Instant::from_ns(0) + Span::from_ms(ms)
}

/// Two links that see each other through `passes`, which gets the number of each of `a`'s datagrams.
struct Pair {
    a: Link,
    b: Link,
    sent: u64,
}

impl Pair {
    fn new(class: Class) -> Pair {
        let [mut a, mut b] = [1, 2].map(|id| Link::new(LinkConfig { id, ..LinkConfig::default() }, at(0)));
        b.expect(WRITER, 1 << 20, class);
        a.start_trace();
        b.start_trace();
        Pair { a, b, sent: 0 }
    }

    fn send(&mut self, sequence: u64, class: Class, now: Instant<Local>) {
        let origin = Origin::exactly(now.ns());
        let (age, depth) = (Span::ZERO, 8);
        let sample = Outgoing { writer: WRITER, sequence, origin, age, class, depth, payload: b"value" };
        self.a.send(&sample, now).unwrap();
    }

    /// All that both have to send at `now`, with a way of no time.
    fn exchange(&mut self, now: Instant<Local>, passes: &dyn Fn(u64) -> bool) {
        let arrival =
            Arrival { now, came: now, own_ns: now.ns(), peer_ns: Some(now.ns()), ecn: Default::default() };
        let ignore = &mut |_: Delivered<'_>| {};
        self.a.handle_timeout(now, ignore);
        self.b.handle_timeout(now, ignore);
        for _ in 0..4 {
            let mut out = Vec::new();
            while self.a.poll_transmit(now, &mut out) {
                self.sent += 1;
                if passes(self.sent) {
                    self.b.handle_datagram(&out, arrival, ignore).unwrap();
                }
                out.clear();
            }
            while self.b.poll_transmit(now, &mut out) {
                self.a.handle_datagram(&out, arrival, ignore).unwrap();
                out.clear();
            }
        }
    }
}

fn events(link: &mut Link) -> Vec<Event> {
    std::iter::from_fn(|| link.poll_event()).map(|(_, event)| event).collect()
}

/// Names of the events about a sample, the reason behind those that have one.
fn story(events: &[Event], sequence: u64) -> Vec<String> {
    let of_sample = events.iter().filter(|event| event.sample() == Some((WRITER, sequence)));
    let words = of_sample.map(|event| {
        let mut words = event.name().to_owned();
        event.fields(&mut |key, field| {
            if let ("trigger", Field::Word(word)) = (key, field) {
                words += &format!(" {word}");
            }
        });
        words
    });
    words.collect()
}

#[test]
fn a_lost_datagram_is_followed_from_its_first_sending_to_the_delivery() {
    let mut pair = Pair::new(Class::Reliable);
    // The third datagram is lost; the ones behind it overtake it.
    for sequence in 1..=8 {
        let now = at(5 * sequence as i64);
        pair.send(sequence, Class::Reliable, now);
        pair.exchange(now, &|number| number != 3);
        pair.exchange(now + Span::from_ms(3), &|_| true);
    }
    pair.exchange(at(100), &|_| true);
    let (a, b) = (events(&mut pair.a), events(&mut pair.b));
    let lost = a.iter().find_map(|event| match event {
        Event::Lost { part, rule, .. } => Some((part.sequence, *rule)),
        _ => None,
    });
    let Some((Some(sequence), rule)) = lost else { panic!("nothing was declared lost: {a:#?}") };
    assert_ne!(rule, LossRule::Timeout, "what came behind it reported it");
    let sender = story(&a, sequence);
    let expected = ["datagram_sent first", &format!("packet_lost {}", rule.word())];
    assert_eq!(sender[..2], expected);
    assert_eq!(sender[2..], ["datagram_sent retransmission", "packet_acknowledged"]);
    assert_eq!(story(&b, sequence), ["datagram_received first", "sample_delivered"]);
    assert!(b.iter().any(|event| matches!(event, Event::AckSent { missing: 1.., .. })), "{b:#?}");
    assert!(a.iter().any(|event| matches!(event, Event::AckReceived { missing: 1.., .. })));
}

#[test]
fn a_sample_that_misses_its_deadline_is_given_up_and_missed() {
    let bound = Bound { deadline: Span::from_ms(20), loss_target: 1e-3, order: Order::Asap };
    let class = Class::DeadlineBound(bound);
    let mut pair = Pair::new(class);
    for sequence in 1..=40 {
        let now = at(5 * sequence as i64);
        pair.send(sequence, class, now);
        // Nothing of the samples 11 to 19 passes.
        let is_dark = (11..20).contains(&sequence);
        pair.exchange(now, &|_| !is_dark);
        pair.exchange(now + Span::from_ms(2), &|_| !is_dark);
    }
    let (a, b) = (events(&mut pair.a), events(&mut pair.b));
    let sender = story(&a, 12);
    assert_eq!(sender.first().map(String::as_str), Some("datagram_sent first"));
    assert!(sender.contains(&"sample_given_up unacknowledged".to_owned()), "{sender:?}");
    let missed: u64 =
        b.iter().map(|event| if let Event::Missed { samples, .. } = event { *samples } else { 0 }).sum();
    assert_eq!(missed, pair.b.counters().bound_missed);
    assert!(missed > 0);
}

#[test]
fn without_a_trace_nothing_is_kept_and_with_one_the_newest_events() {
    let mut quiet = Pair::new(Class::BestEffort);
    quiet.a = Link::new(LinkConfig::default(), at(0));
    quiet.send(1, Class::BestEffort, at(1));
    quiet.exchange(at(1), &|_| false);
    assert_eq!((quiet.a.poll_event(), quiet.a.poll_dropped_events()), (None, 0));
    let mut pair = Pair::new(Class::BestEffort);
    let samples = EVENTS_LIMIT as u64 + 10;
    for sequence in 1..=samples {
        pair.send(sequence, Class::BestEffort, at(1));
        pair.exchange(at(1), &|_| false);
    }
    assert_eq!(pair.a.poll_dropped_events(), 10);
    let kept = events(&mut pair.a);
    assert_eq!(kept.len(), EVENTS_LIMIT);
    assert_eq!(kept.last().and_then(Event::sample), Some((WRITER, samples)));
}

fn part() -> impl Strategy<Value = Part> {
    (any::<u32>(), any::<Option<u64>>(), any::<u16>()).prop_map(|(writer, sequence, part)| Part {
        writer: StreamId(writer),
        sequence,
        part,
    })
}

fn event() -> impl Strategy<Value = Event> {
    let numbers = (any::<Option<u64>>(), any::<u64>(), any::<u64>(), any::<bool>(), 0usize..13);
    (part(), numbers).prop_map(|(part, (number, a, b, flag, kind))| match kind {
        0 => Event::Sent { packet: number, part, bytes: a, why: Sending::Parity },
        1 => Event::AckSent { newest: a, missing: b, piggybacked: flag },
        2 => Event::AckReceived { newest: a, missing: b },
        3 => Event::Acknowledged { packet: a, part },
        4 => Event::Refused { packet: a, part },
        5 => Event::Lost { packet: a, part, rule: LossRule::TimeThreshold },
        6 => Event::GivenUp { part, why: GivenUp::Replaced },
        7 => Event::RepairWithheld { part, why: Withheld::Budget },
        8 => Event::Received { packet: number, part, why: Sending::First },
        9 => Event::Discarded { part, why: Discarded::AfterDeadline },
        10 => Event::Recovered { part },
        11 => Event::Delivered { part },
        _ => Event::Missed { part, samples: a },
    })
}

proptest! {
    #[test]
    fn an_event_comes_back_from_its_name_and_fields(event in event()) {
        let mut fields = Vec::new();
        event.fields(&mut |key, field| {
            // It ends with the closure, and is compared behind it.
            let field = match field {
                Field::Word(word) => Field::Word(word.to_owned().leak()),
                Field::Number(number) => Field::Number(number),
                Field::Flag(flag) => Field::Flag(flag),
            };
            fields.push((key, field));
        });
        let get = |key: &str| fields.iter().find(|(name, _)| *name == key).map(|(_, field)| *field);
        prop_assert_eq!(Event::of_fields(event.name(), &get), Some(event));
        prop_assert!(!event.to_string().is_empty());
    }

    #[test]
    fn fields_that_make_no_event_make_none(name in "[a-z_]{0,20}", word in ".{0,9}", number in any::<u64>()) {
        let get = |key: &str| match key.len() % 3 {
            0 => Some(Field::Number(number)),
            1 => Some(Field::Word(word.as_str())),
            _ => None,
        };
        let _ = Event::of_fields(&name, &get);
        let known = ["datagram_sent", "packet_lost", "ack_sent", "sample_missed", "repair_withheld"];
        for name in known {
            let _ = Event::of_fields(name, &get);
        }
    }
}
