//! Decisions about routes are in the trace, with the rule that decided.

use std::collections::BTreeSet;

use noctule_discovery::NodeId;
use noctule_qlog::Event as _;
use noctule_timebase::Span;

use super::world::{CALM, NEAR, World, seeds};
use crate::node::reader_route::trace::{Event, SCHEMA};

/// Events of a node since the last call, as sentences with `me` and `other` for numbers.
fn story(world: &mut World, (me, other): (NodeId, NodeId)) -> Vec<String> {
    let noted = std::mem::take(world.noted.as_mut().unwrap());
    let of_node = noted.into_iter().filter(|(node, _)| *node == me);
    let sentences = of_node.map(|(_, event)| SCHEMA.sentence_of(&event).unwrap());
    sentences.map(|text| text.replace(&me.to_string(), "me").replace(&other.to_string(), "other")).collect()
}

#[test]
fn the_story_of_a_relay_names_each_decision_and_the_rule() {
    let mut world = World::noting(1);
    let first = world.join(NEAR);
    world.subscribe(first, 8);
    world.settle();
    let second = world.join(NEAR);
    world.subscribe(second, 8);
    world.settle();
    let noted = world.noted.clone().unwrap();
    assert!(noted.iter().all(|(node, _)| *node != first), "it received before there was anything to decide");
    // It subscribed before it knew of the other.
    let of_second = story(&mut world, (second, first));
    let [begins, granted, ends] = of_second.as_slice() else { panic!("{of_second:#?}") };
    assert!(begins.starts_with("reader 1 is to be relayed by node other as soon as"), "{begins}");
    assert!(
        begins.ends_with("it is direct like that node's reader, and that has the lower number"),
        "{begins}"
    );
    assert!(granted.starts_with("reader 1 gets a ring of writer 1 of node "), "{granted}");
    assert!(ends.starts_with("reader 1 is relayed by node other from now on: 1 rings"), "{ends}");
    // And this one knows both.
    let third = world.join(NEAR);
    world.run(CALM);
    world.subscribe(third, 8);
    world.settle();
    let of_third = story(&mut world, (third, first));
    let [new, relayed, granted] = of_third.as_slice() else { panic!("{of_third:#?}") };
    assert!(new.ends_with("it is new, and need not receive where another receives for it"), "{new}");
    assert!(
        relayed.ends_with("by node other: it need not receive what that node receives already"),
        "{relayed}"
    );
    assert!(granted.starts_with("reader 1 gets a ring"), "{granted}");
    // The relay dies, then the next: the last receives by itself.
    world.end(first, false);
    world.settle();
    world.end(world.served()[0], false);
    let left = world.near()[0];
    story(&mut world, (left, first));
    world.settle();
    let of_left = story(&mut world, (left, first));
    let alone = "receives from the network: it has no reader beside it, on another node of this host, that could receive for it";
    assert!(of_left.iter().any(|one| one.ends_with(alone)), "{of_left:#?}");
}

/// The relay of a reader, as its events tell.
fn relay_by_events(world: &World, node: NodeId, reader: u32) -> Option<NodeId> {
    let of_node = world.noted.as_ref().unwrap().iter().filter(|(of, _)| *of == node);
    of_node.fold(None, |relay, (_, event)| match event {
        Event::Direct { reader: of, .. } | Event::Electing { reader: of, .. } if *of == reader => None,
        Event::Relayed { reader: of, relay, .. } | Event::HandoverEnds { reader: of, relay, .. }
            if *of == reader =>
        {
            Some(*relay)
        }
        _ => relay,
    })
}

#[test]
fn after_any_life_the_last_event_of_each_reader_is_its_route_and_every_event_has_its_place() {
    let mut seen = BTreeSet::new();
    let all = seeds(60);
    let are_enough = all.end - all.start >= 60;
    for seed in all {
        let mut world = World::noting(seed);
        for _ in 0..6 {
            // Readers that do not hear of each other are direct both, and hand over later.
            world.loss_percent = [0, 20, 60, 100][world.random.below(4) as usize];
            let near = world.near();
            let one = world.random.below(near.len().max(1) as u64) as usize;
            match (world.random.below(5), near.get(one)) {
                (0, Some(node)) => world.end(*node, true),
                (1, Some(node)) => world.end(*node, false),
                (2, Some(node)) if !world.members[node].readers.is_empty() => world.unsubscribe(*node, 0),
                _ => {
                    let node = world.join(NEAR);
                    let payload_bytes_max = 8 << world.random.below(2);
                    world.subscribe(node, payload_bytes_max);
                }
            }
            for _ in 0..world.random.below(8) {
                world.publish();
                world.run(Span::from_ms(20));
                world.take();
            }
        }
        world.loss_percent = 0;
        world.run(CALM);
        world.settle();
        for node in world.near() {
            for at in 0..world.members[&node].readers.len() {
                let reader = world.reader_number(node, at);
                assert_eq!(relay_by_events(&world, node, reader), world.relay(node, at), "seed {seed}");
            }
        }
        seen.extend(world.noted.unwrap().iter().map(|(_, event)| event.name()));
    }
    let names: BTreeSet<&str> = SCHEMA.sentences.iter().map(|(name, _)| *name).collect();
    let missing: Vec<&&str> = names.difference(&seen).collect();
    assert!(!are_enough || missing.is_empty(), "{missing:?}");
}
