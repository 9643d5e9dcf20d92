//! Decisions of discovery are in its trace, with the rule that decided.

#![allow(clippy::unwrap_used)] // tests and what they share

use noctule_discovery::trace::{Departure, Event, SCHEMA};
use noctule_discovery::{EndpointKind, Reason, Reliability};
use noctule_netsim::seeds;
use noctule_timebase::Span;

mod swarm;

use swarm::{Swarm, endpoint};

/// A swarm whose nodes note what they do.
fn noting(seed: u64) -> Swarm {
    let mut swarm = Swarm::new(seed);
    swarm.noted = Some(Vec::new());
    swarm
}

/// Events of a node since the last call, as sentences; hellos left out, and numbers of nodes cut to `NODE`.
fn story(swarm: &mut Swarm, node: usize) -> Vec<String> {
    let noted = std::mem::take(swarm.noted.as_mut().unwrap());
    let of_node = noted.into_iter().filter(|(of, event)| {
        *of == node && !matches!(event, Event::HelloSent { .. } | Event::HelloReceived { .. })
    });
    let sentences = of_node.map(|(_, event)| SCHEMA.sentence_of(&event).unwrap());
    let is_number = |word: &str| word.len() == 32 && word.chars().all(|digit| digit.is_ascii_hexdigit());
    let cut = |sentence: String| {
        let words: Vec<String> = sentence
            .split(' ')
            .map(|word| {
                let bare = word.trim_end_matches([',', ':']);
                if is_number(bare) { word.replace(bare, "NODE") } else { word.to_owned() }
            })
            .collect();
        words.join(" ")
    };
    sentences.map(cut).collect()
}

#[test]
fn a_node_is_followed_from_its_first_hello_to_its_silence() {
    let mut swarm = noting(1);
    let (a, b) = (swarm.start("a"), swarm.start("b"));
    swarm.add(a, endpoint(EndpointKind::Writer, "imu"));
    swarm.add(b, endpoint(EndpointKind::Reader, "imu"));
    let mut demanding = endpoint(EndpointKind::Writer, "pose");
    swarm.add(a, demanding.clone());
    (demanding.kind, demanding.qos.reliability) = (EndpointKind::Reader, Reliability::Reliable);
    swarm.add(b, demanding);
    swarm.run(Span::from_ms(200));
    let known = story(&mut swarm, a);
    let at = Swarm::locator(b);
    let expected = [
        format!("node NODE is to prove that it receives at {at}"),
        format!("node NODE has proved that it receives at {at}"),
        format!("node NODE (b) is known from now on, at {at}"),
        "page 0 of this node's endpoints is sent".into(),
        "endpoint 1 here and endpoint 1 of node NODE match on imu".into(),
        "endpoint 2 here and endpoint 2 of node NODE do not match on pose: the writer offers best_effort, the reader requests reliable; offer more or request less".into(),
    ];
    for sentence in &expected {
        assert!(known.contains(sentence), "{sentence}\n{known:#?}");
    }
    let order: Vec<usize> =
        expected[..3].iter().map(|sentence| known.iter().position(|one| one == sentence).unwrap()).collect();
    assert!(order.is_sorted(), "{known:#?}");
    assert!(
        known.iter().any(|one| one.contains("page 0 of node NODE arrives: 2 endpoints are new")),
        "{known:#?}"
    );

    swarm.kill(b);
    swarm.run(Span::from_s(10));
    let end = story(&mut swarm, a);
    let asked = "node NODE is asked, question 1: it was silent for most of its lifetime";
    let unmatched = "endpoint 1 here and endpoint 1 of node NODE match no longer";
    assert_eq!(end.first().map(String::as_str), Some(asked), "{end:#?}");
    let [.., before, last] = end.as_slice() else { panic!("{end:#?}") };
    assert_eq!(before, unmatched);
    assert!(last.starts_with("node NODE is gone, "), "{last}");
    assert!(last.ends_with(" ms after its last hello: it was not heard for its lifetime"), "{last}");
}

/// Reason of a departure as a program gets it, from the trace's.
fn departure(reason: Reason) -> Departure {
    match reason {
        Reason::Left => Departure::Left,
        Reason::Silent => Departure::Silent,
        Reason::Restarted => Departure::Restarted,
        Reason::Died => Departure::Died,
        Reason::Displaced => Departure::Displaced,
    }
}

#[test]
fn whatever_happens_the_trace_and_the_program_hear_of_the_same_departures_and_matches() {
    for seed in seeds(1, 25) {
        let mut swarm = noting(seed);
        swarm.loss = 0.01 * (seed % 30) as f64;
        let nodes: Vec<usize> = (0..6).map(|_| swarm.start("n")).collect();
        for (number, node) in nodes.iter().enumerate() {
            let kind = if number % 2 == 0 { EndpointKind::Writer } else { EndpointKind::Reader };
            let id = swarm.add(*node, endpoint(kind, "state"));
            swarm.run(Span::from_ms(300));
            if number == 2 {
                swarm.remove(*node, id);
            }
        }
        swarm.leave(nodes[4]);
        swarm.kill(nodes[5]);
        swarm.run(Span::from_s(20));
        let noted = swarm.noted.take().unwrap();
        for node in nodes {
            let of_node = || noted.iter().filter(|(of, _)| *of == node).map(|(_, event)| event);
            let gone: Vec<Departure> = of_node()
                .filter_map(|event| match event {
                    Event::Gone { trigger, .. } => Some(*trigger),
                    _ => None,
                })
                .collect();
            let expected: Vec<Departure> = swarm.gone(node).iter().copied().map(departure).collect();
            assert_eq!(gone, expected, "seed {seed}, node {node}");
            let matches: i64 = of_node()
                .map(|event| match event {
                    Event::Matched { .. } => 1,
                    Event::Unmatched { .. } => -1,
                    _ => 0,
                })
                .sum();
            assert_eq!(matches, swarm.matches(node), "seed {seed}, node {node}");
        }
    }
}
