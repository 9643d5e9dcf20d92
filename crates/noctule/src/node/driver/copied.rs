//! Two nodes with one secret, as after a machine was cloned: the one that has sealed less ends.

use noctule_timebase::Instant;

use crate::clock;
use crate::envelope::Envelope;
use crate::node::Node;
use crate::notice::Notice;
use crate::swarm_key::SwarmKey;

#[test]
fn of_two_copies_the_one_that_is_behind_ends_and_its_calls_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("key");
    SwarmKey::create(&file).unwrap();
    let keys = SwarmKey::read_all(&file).unwrap();
    let domain = 4_800 + std::process::id() % 100;
    let node = || Node::builder("copy").domain(domain).swarm_key(&file).keep_notices().open().unwrap();
    let (ahead, behind) = (node(), node());
    let mut publisher = behind.publisher("t").open().unwrap();
    let mut subscriber = behind.subscriber("other").open().unwrap();
    for (node, sealed) in [(&ahead, 100_000), (&behind, 0)] {
        let mut copy = Envelope::new(&keys, [7; 32], 1);
        let mut out = Vec::new();
        for _ in 0..sealed {
            copy.begin(&mut out);
            copy.seal_for_all(&mut out);
        }
        copy.handle_timeout(Instant::from_ns(clock::now().ns()));
        node.shared.lock().envelope = copy;
    }
    // A wait ends, too.
    let refused = subscriber.receive(None).map(|_| ()).unwrap_err().to_string();
    assert!(refused.contains("copied"), "{refused}");
    let refused = publisher.publish(b"x").unwrap_err().to_string();
    assert!(refused.contains("copied"), "{refused}");
    let is_reported =
        std::iter::from_fn(|| behind.poll_notice()).any(|notice| matches!(notice, Notice::Copied));
    assert!(is_reported && !ahead.shared.is_in_child());
    drop((publisher, subscriber, behind));
    assert!(ahead.publisher("t").open().unwrap().publish(b"x").is_ok());
    assert!(!ahead.shared.lock().envelope.is_copied());
}
