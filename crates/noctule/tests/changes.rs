//! Programs that keep a picture of the system are called when it changes.
#![allow(clippy::unwrap_used)] // a test

use std::sync::mpsc::channel;
use std::time::Duration;

use noctule::Node;

const LONG: Duration = Duration::from_secs(30);

#[test]
fn nodes_endpoints_and_matches_that_come_and_go_are_reported() {
    let domain = 2_400 + std::process::id() % 100;
    let (send, called) = channel();
    let hook = move || _ = send.send(());
    let watcher = Node::builder("watcher").domain(domain).keep_notices().on_change(hook).open().unwrap();
    let until = |is_done: &mut dyn FnMut() -> bool| {
        while !is_done() {
            called.recv_timeout(LONG).unwrap();
        }
    };
    let other = Node::builder("other").domain(domain).keep_notices().open().unwrap();
    until(&mut || watcher.nodes().len() == 1);
    let publisher = other.publisher("seen").open().unwrap();
    until(&mut || watcher.endpoints().len() == 1);
    let mut subscriber = watcher.subscriber("seen").open().unwrap();
    until(&mut || subscriber.publishers() == 1);
    let own = watcher.publisher("read").open().unwrap();
    let reader = other.subscriber("read").open().unwrap();
    until(&mut || own.readers() == 1);
    drop(reader);
    until(&mut || own.readers() == 0);
    drop(publisher);
    until(&mut || subscriber.publishers() == 0 && watcher.endpoints().is_empty());
    drop(other);
    until(&mut || watcher.nodes().is_empty());
}

#[test]
fn a_sample_names_its_publisher() {
    let domain = 2_500 + std::process::id() % 100;
    let node = Node::builder("both").domain(domain).keep_notices().open().unwrap();
    let (mut one, mut two) = (node.publisher("t").open().unwrap(), node.publisher("t").open().unwrap());
    let mut subscriber = node.subscriber("t").open().unwrap();
    for publisher in [&mut one, &mut two] {
        while publisher.readers() == 0 {
            std::thread::yield_now();
        }
        publisher.publish(b"x").unwrap();
        let info = *subscriber.receive(Some(LONG)).unwrap().unwrap().info();
        assert_eq!((info.publisher, info.endpoint), publisher.endpoint());
    }
}
