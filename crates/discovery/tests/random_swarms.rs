//! Random lives of a swarm: nodes start, leave, crash and restart, endpoints come and go, datagrams are lost. What
//! each node knows afterwards must be the true state.
//!
//! One seed again: `cargo xtask sim discovery --seed N`.

#![allow(clippy::print_stdout)]

use noctule_discovery::{EndpointId, EndpointKind};
use noctule_netsim::{Random, seeds};
use noctule_timebase::Span;

mod swarm;

use swarm::{Swarm, endpoint};

const TOPICS: u64 = 4;
const NODES_MAX: usize = 12;
/// Longer than the lifetime of a silent node, and than it takes to ask again for what was lost.
const SETTLE: Span = Span::from_s(30);

/// A node as it really is.
struct Life {
    node: usize,
    alive: bool,
    endpoints: Vec<(EndpointId, EndpointKind, u64)>,
}

impl Life {
    fn of(kind: EndpointKind, lives: &[Life], except: usize, topic: u64) -> usize {
        let others = lives.iter().filter(|life| life.alive && life.node != except);
        others
            .flat_map(|life| &life.endpoints)
            .filter(|(_, its, about)| *its == kind && *about == topic)
            .count()
    }

    /// Pairs of one endpoint here and one of another node that fit.
    fn partners(&self, lives: &[Life]) -> usize {
        let pairs = self.endpoints.iter().map(|(_, kind, topic)| {
            let wanted = match kind {
                EndpointKind::Writer => EndpointKind::Reader,
                EndpointKind::Reader => EndpointKind::Writer,
            };
            Life::of(wanted, lives, self.node, *topic)
        });
        pairs.sum()
    }
}

fn change_something(swarm: &mut Swarm, lives: &mut Vec<Life>, random: &mut Random) {
    let at = (random.bits() % lives.len() as u64) as usize;
    let full = lives.len() == NODES_MAX;
    let life = &mut lives[at];
    match random.bits() % 10 {
        0 if !full => {
            let node = swarm.start("another");
            lives.push(Life { node, alive: true, endpoints: Vec::new() });
        }
        1 if life.alive => {
            swarm.leave(life.node);
            life.alive = false;
        }
        2 if life.alive => {
            swarm.kill(life.node);
            life.alive = false;
        }
        3 if life.alive => {
            swarm.restart(life.node);
            life.endpoints.clear();
        }
        4 | 5 if life.alive && !life.endpoints.is_empty() => {
            let which = (random.bits() % life.endpoints.len() as u64) as usize;
            swarm.remove(life.node, life.endpoints.swap_remove(which).0);
        }
        _ if life.alive => {
            let kind = if random.chance(0.5) { EndpointKind::Writer } else { EndpointKind::Reader };
            let topic = random.bits() % TOPICS;
            let id = swarm.add(life.node, endpoint(kind, &format!("topic_{topic}")));
            life.endpoints.push((id, kind, topic));
        }
        _ => {}
    }
}

#[test]
fn after_any_life_every_node_knows_which_others_are_there() {
    for seed in seeds(1, 25) {
        let mut random = Random::for_part(seed, 1);
        let mut swarm = Swarm::new(seed);
        swarm.loss = random.uniform(0.0, 0.3);
        let changes = 20 + random.bits() % 60;
        println!("seed {seed}: {changes} changes, {:.2} lost", swarm.loss);
        let mut lives = Vec::new();
        for _ in 0..2 {
            lives.push(Life { node: swarm.start("first"), alive: true, endpoints: Vec::new() });
        }
        for _ in 0..changes {
            change_something(&mut swarm, &mut lives, &mut random);
            swarm.run(Span::from_us((random.bits() % 1_000_000) as i64));
        }
        swarm.run(SETTLE);
        for life in lives.iter().filter(|life| life.alive) {
            let (known, true_pairs) = (swarm.matches(life.node), life.partners(&lives));
            assert_eq!(known, true_pairs as i64, "seed {seed}: node {}", life.node);
        }
    }
}
