//! How long after a network is back the samples of a subscription come again, in virtual time.

use noctule_timebase::Span;

use super::world::{NEAR, World, seeds};
use crate::swarm_key::SwarmKey;

/// Between two samples.
const INTERVAL: Span = Span::from_ms(10);

/// Which hosts have lost the link itself, so that their kernels say when it is gone and back: a cable between two has two ends, a switch or an
/// access point further off has none.
#[derive(Clone, Copy, Debug)]
struct Ends {
    writer: bool,
    reader: bool,
}

fn change(world: &mut World, ends: Ends) {
    let now = world.now;
    if ends.writer {
        world.far().handle_network_change(now);
    }
    for node in world.near().into_iter().filter(|_| ends.reader) {
        world.member(node).handle_network_change(now);
    }
}

fn publish_for(world: &mut World, span: Span) {
    let end = world.now + span;
    while world.now < end {
        world.publish();
        world.run(INTERVAL);
        world.take();
    }
}

/// From when the network carries again until a sample has come that was published after that.
fn until_samples_come(seed: u64, ends: Ends, keys: Vec<SwarmKey>) -> Span {
    let mut world = World::with_keys(seed, keys);
    let near = world.join(NEAR);
    world.subscribe(near, 8);
    world.settle();
    // Shorter than a node's lifetime and longer, up to 20 s.
    let outage = Span::from_ms(200 + world.random.below(19_800) as i64);
    world.loss_percent = 100;
    change(&mut world, ends);
    publish_for(&mut world, outage);
    world.loss_percent = 0;
    change(&mut world, ends);
    let (begin, published) = (world.now, world.published);
    while world.members[&near].readers[0].last <= published {
        publish_for(&mut world, INTERVAL);
        assert!(world.now - begin < Span::from_s(60), "seed {seed}: nothing comes");
    }
    let reader = &world.members[&near].readers[0];
    assert!(reader.missed > 0, "seed {seed}: the outage was none");
    world.now - begin
}

fn ms(span: Span) -> i64 {
    span.ns() / 1_000_000
}

#[test]
fn a_subscription_goes_on_within_a_second_after_the_network_is_back() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("key");
    SwarmKey::create(&file).unwrap();
    for (writer, reader) in [(true, true), (true, false), (false, true), (false, false)] {
        for is_sealed in [false, true] {
            let keys = || if is_sealed { SwarmKey::read_all(&file).unwrap() } else { vec![] };
            let ends = Ends { writer, reader };
            let mut times: Vec<Span> = seeds(20).map(|seed| until_samples_come(seed, ends, keys())).collect();
            times.sort_unstable();
            let (median, longest) = (times[times.len() / 2], times[times.len() - 1]);
            println!("{ends:?}, sealed {is_sealed}: median {} ms, longest {} ms", ms(median), ms(longest));
            // Where no kernel says so, one of two nodes says hello within the interval between two, which is shifted by up to a tenth.
            let most = if writer || reader { Span::from_ms(100) } else { Span::from_ms(1_200) };
            assert!(longest <= most, "{ends:?}, sealed {is_sealed}: {times:?}");
        }
    }
}
