//! A swarm whose key is changed while it runs, as after a robot was lost.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests and what they share

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use noctule::clock::LocalClock;
use noctule::envelope::Refused;
use noctule::{Node, Notice, Reliability, Subscriber};

const LONG: Duration = Duration::from_secs(30);

fn write(path: &Path, keys: &[&str]) {
    let lines: Vec<String> = keys.iter().map(|digits| digits.repeat(32)).collect();
    // Replaced as a whole, as an editor does.
    let new = path.with_extension("new");
    fs::write(&new, lines.join("\n")).unwrap();
    fs::set_permissions(&new, fs::Permissions::from_mode(0o600)).unwrap();
    fs::rename(new, path).unwrap();
}

/// Until a node has seen the change of its file.
fn changed(node: &Node, subscriber: &mut Subscriber) -> String {
    loop {
        match node.poll_notice() {
            Some(Notice::KeyChanged { fingerprint, .. }) => return fingerprint,
            Some(Notice::KeyUnusable { why }) => return why,
            Some(_) => {}
            None => _ = subscriber.wait(Some(Duration::from_millis(5))),
        }
    }
}

#[test]
fn a_swarm_changes_its_key_without_a_lost_sample_and_shuts_the_old_one_out() {
    let directory = tempfile::tempdir().unwrap();
    let files = ["a", "b", "lost"].map(|name| directory.path().join(name));
    files.iter().for_each(|file| write(file, &["11"]));
    let domain = 4_600 + std::process::id() % 100;
    let node = |file: &Path, clock: &str| {
        let clock: LocalClock = clock.parse().unwrap();
        Node::builder("keyed").domain(domain).clock(clock).swarm_key(file).keep_notices().open().unwrap()
    };
    let (far, near) = (node(&files[0], "offset=5s"), node(&files[1], ""));
    let mut publisher = far.publisher("imu").reliability(Reliability::Reliable).open().unwrap();
    let mut subscriber = near.subscriber("imu").reliability(Reliability::Reliable).open().unwrap();
    while publisher.readers() == 0 || subscriber.publishers() == 0 {
        subscriber.wait(Some(Duration::from_millis(5)));
    }
    let mut number = 0_u64;
    let mut passes = |subscriber: &mut Subscriber| {
        number += 1;
        publisher.publish(&number.to_le_bytes()).unwrap();
        let sample = subscriber.receive(Some(LONG)).unwrap().expect("a reliable sample");
        assert_eq!((sample.to_vec(), sample.info().missed), (number.to_le_bytes().to_vec(), 0));
    };
    passes(&mut subscriber);
    for step in [["11", "22"].as_slice(), &["22", "11"], &["22"]] {
        for (node, file) in [(&far, &files[0]), (&near, &files[1])] {
            write(file, step);
            changed(node, &mut subscriber);
            (0..20).for_each(|_| passes(&mut subscriber));
        }
    }
    // A file that cannot be used changes nothing.
    fs::write(&files[1], "no key").unwrap();
    assert!(changed(&near, &mut subscriber).contains("64 hexadecimal digits"));
    passes(&mut subscriber);
    let lost = node(&files[2], "offset=9s");
    while near.counters().refused.of(Refused::WrongKey) == 0 {
        passes(&mut subscriber);
    }
    assert!(lost.nodes().is_empty() && near.nodes().len() == 1);
}
