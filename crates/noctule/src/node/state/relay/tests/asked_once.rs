//! How often a link is asked for a datagram: each question costs about a tenth of what a short sample does.

use super::world::{CALM, NEAR, World};

/// A node with readers on as many other hosts.
fn joined(nodes: u64) -> World {
    let mut world = World::new(nodes);
    for host in NEAR..NEAR + nodes {
        let reader = world.join(host);
        world.subscribe(reader, 8);
    }
    world.run(CALM);
    world
}

#[test]
fn a_node_that_has_nothing_to_send_is_asked_once() {
    for nodes in [1, 2, 5] {
        let mut world = joined(nodes);
        let now = world.now;
        let state = world.far();
        let mut out = Vec::new();
        // Whichever node had its turn last.
        for _ in 0..2 * nodes {
            while state.poll_transmit(now, false, &mut out).is_some() {}
            let before: Vec<u64> = state.remotes.values().map(|remote| remote.asked).collect();
            assert!(state.poll_transmit(now, false, &mut out).is_none());
            let asked = state.remotes.values().zip(&before).map(|(remote, before)| remote.asked - before);
            assert_eq!(asked.collect::<Vec<_>>(), vec![1; nodes as usize], "{nodes} nodes");
            let first = *state.remotes.keys().next().unwrap();
            let next = state.remotes.keys().find(|node| **node > state.turn.0).copied().unwrap_or(first);
            state.turn = (next, state.turn.1 ^ 1);
        }
    }
}
