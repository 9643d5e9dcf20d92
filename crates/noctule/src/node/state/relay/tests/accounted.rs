//! Every sample of a writer of another host comes to each reader once or is counted as missed, whatever became of the network, of the nodes and
//! of their threads, once the stream has gone on.

use std::collections::{BTreeMap, BTreeSet};

use noctule_discovery::{NodeId, Qos, Reliability};
use noctule_timebase::Span;

use super::world::{NEAR, World, seeds};
use crate::swarm_key::SwarmKey;

const INTERVAL: Span = Span::from_ms(20);
const DEADLINE: Span = Span::from_ms(200);
const READERS: usize = 3;
/// Reliability of the topic, and whether it is multicast.
const KINDS: [(Reliability, bool); 5] = [
    (Reliability::DeadlineBound, false),
    (Reliability::DeadlineBound, true),
    (Reliability::BestEffort, false),
    (Reliability::BestEffort, true),
    (Reliability::Reliable, false),
];

/// Samples that one reader has received from one life of the writer.
#[derive(Debug, Default)]
struct Tally {
    /// The library's number of the first; its count begins there.
    first: u64,
    /// Its number of the last, and the writer's highest.
    place: u64,
    last: u64,
    came: BTreeSet<u64>,
    missed: u64,
}

impl Tally {
    fn take(&mut self, (place, missed): (u64, u64), number: u64) {
        assert!(self.came.insert(number), "{number} came twice: {self:?}");
        if self.first == 0 {
            self.first = place - missed;
        }
        self.missed += missed;
        self.place = place;
        self.last = self.last.max(number);
    }
}

/// A session, and what has come by now: by reader and life of the writer.
struct Session {
    world: World,
    tallies: BTreeMap<(NodeId, NodeId), Tally>,
    multicast: bool,
}

impl Session {
    fn new(seed: u64) -> Session {
        let (reliability, multicast) = KINDS[seed as usize % KINDS.len()];
        let deadline = (reliability == Reliability::DeadlineBound).then_some(DEADLINE);
        let keys = if seed.is_multiple_of(2) { vec![SwarmKey::from_bytes([7; 32])] } else { vec![] };
        let world = World::with(seed, keys, Qos { reliability, deadline, multicast, ..Qos::default() });
        let mut session = Session { world, tallies: BTreeMap::new(), multicast };
        (0..READERS).for_each(|_| session.start_reader());
        session
    }

    /// On a host of its own if samples go to a group: of one host one node reads for all.
    fn start_reader(&mut self) {
        let host = if self.multicast { NEAR + self.world.random.below(1 << 32) } else { NEAR };
        let node = self.world.join(host);
        self.world.subscribe(node, 8);
    }

    fn take(&mut self) {
        for (node, member) in &mut self.world.members {
            for reader in &mut member.readers {
                reader.take_each(&mut |publisher, place, number| {
                    self.tallies.entry((*node, publisher)).or_default().take(place, number);
                });
            }
        }
    }

    fn publish_for(&mut self, span: Span) {
        let end = self.world.now + span;
        while self.world.now < end {
            self.world.publish();
            self.world.run(INTERVAL);
            self.take();
        }
    }

    /// The writer's process stalls, within the call that publishes or between two; afterwards it catches up.
    fn stall_writer(&mut self, span: Span, within_call: bool) {
        let writer = self.world.writer();
        self.world.stall(writer, span);
        let begin = self.world.now;
        while self.world.now < begin + span {
            self.world.run(INTERVAL);
            self.take();
        }
        if within_call {
            self.world.publish_late(span);
        }
        (0..span.ns() / INTERVAL.ns()).for_each(|_| self.world.publish());
    }

    fn disturb(&mut self) {
        let world = &mut self.world;
        let length = Span::from_ms(100 + world.random.below(7_900) as i64);
        let near = world.near();
        let one = near[world.random.below(near.len() as u64) as usize];
        match world.random.below(8) {
            0 => {
                world.loss_percent = 100;
                self.publish_for(length);
            }
            1 => {
                world.loss_percent = 100;
                let now = world.now;
                world.far().handle_network_change(now);
                self.publish_for(length);
                let now = self.world.now;
                self.world.far().handle_network_change(now);
            }
            2 => {
                world.loss_percent = 1 + world.random.below(40);
                self.publish_for(length);
            }
            3 => {
                let within_call = world.random.below(2) == 0;
                self.stall_writer(length, within_call);
            }
            4 => {
                world.stall(one, length);
                self.publish_for(length);
            }
            5 => {
                world.end(one, false);
                self.start_reader();
            }
            6 => {
                // Where it is multicast each has to be served alone, and then together again.
                world.group_loss_percent = 100;
                self.publish_for(length);
                self.world.group_loss_percent = 0;
            }
            _ => {
                // In the middle of losses: no later sample says what is still missing then.
                world.loss_percent = world.random.below(2) * 30;
                self.publish_for(Span::from_ms(300));
                let world = &mut self.world;
                let (writer, with_goodbye) = (world.writer(), world.random.below(2) == 0);
                world.end(writer, with_goodbye);
                world.start_writer();
            }
        }
        self.world.loss_percent = 0;
        let pause = Span::from_ms(self.world.random.below(4_000) as i64);
        self.publish_for(pause);
    }

    fn check(&mut self, seed: u64) {
        self.publish_for(Span::from_s(12));
        let (writer, published) = (self.world.writer(), self.world.published);
        let readers = self.world.near();
        for reader in &readers {
            assert!(self.tallies.contains_key(&(*reader, writer)), "seed {seed}: {reader} has nothing");
        }
        let mut lacking: BTreeMap<NodeId, u64> = BTreeMap::new();
        for ((reader, publisher), tally) in &self.tallies {
            let of = tally.last + 1 - tally.first;
            let counted = tally.came.len() as u64 + tally.missed;
            let holes: Vec<u64> = (tally.first..tally.last)
                .filter(|number| !tally.came.contains(number))
                .rev()
                .take(9)
                .collect();
            let what = format!("seed {seed}: {reader} of {publisher}: {counted} of {of}, {holes:?}");
            assert!(counted <= of, "{what}");
            if readers.contains(reader) && *publisher == writer {
                assert_eq!((counted, tally.last), (of, published), "{what}");
            }
            *lacking.entry(*reader).or_default() += of - counted;
        }
        // Of writers that have gone, what no later sample could say.
        for reader in readers {
            let unsaid = self.world.members[&reader].readers[0].missed_unsaid();
            assert_eq!(lacking[&reader], unsaid, "seed {seed}: {reader}");
        }
    }
}

#[test]
fn every_sample_comes_once_or_is_counted_as_missed() {
    for seed in seeds(24) {
        let mut session = Session::new(seed);
        for _ in 0..8 {
            session.disturb();
        }
        session.check(seed);
    }
}
