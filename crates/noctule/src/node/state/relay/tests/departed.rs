//! Memory that a writer holds for readers that are gone: on a robot that runs for days every process of others that was ever started.

use allocation_counter::measure;
use noctule_timebase::Span;

use super::world::{NEAR, World};
use crate::swarm_key::SwarmKey;

/// Longer than anything is kept of a node from which nothing arrives.
const LONG_SILENCE: Span = Span::from_s(120);

/// Bytes that the world, of which only the writer is left, holds more than before, when so many readers of another host have come,
/// got samples and gone, every other one without a word.
fn growth_bytes(world: &mut World, readers: u32) -> i64 {
    let course = || {
        for number in 0..readers {
            let node = world.join(NEAR);
            world.subscribe(node, 8);
            for _ in 0..4 {
                world.publish();
                world.run(Span::from_ms(100));
                world.take();
            }
            assert!(world.members[&node].readers[0].last > 0, "reader {number} got nothing");
            world.end(node, number % 2 == 0);
        }
        world.run(LONG_SILENCE);
    };
    measure(course).bytes_current
}

#[test]
fn of_a_thousand_readers_that_are_gone_only_notices_are_held() {
    let mut world = World::new(1);
    growth_bytes(&mut world, 100);
    let growth = growth_bytes(&mut world, 1_000);
    println!("{growth} bytes");
    // Notices that nobody has asked for, 256 at most.
    assert!(growth <= 32_768, "{growth} bytes");
}

#[test]
fn of_a_thousand_readers_with_a_key_no_keys_are_held() {
    let mut world = World::with_keys(1, vec![SwarmKey::from_bytes([7; 32])]);
    growth_bytes(&mut world, 100);
    let growth = growth_bytes(&mut world, 1_000);
    println!("{growth} bytes");
    // So that nothing that they sealed is taken again.
    assert!(growth <= 1_000 * 160, "{growth} bytes");
}
