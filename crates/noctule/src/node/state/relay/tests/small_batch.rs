//! How much of a camera's picture leaves while a thread waits to publish something short, or in its call.

use std::cell::Cell;
use std::net::UdpSocket;
use std::sync::Arc;

use noctule_prrt::{Class, Origin, Outgoing, StreamId};
use noctule_timebase::Span;

use super::world::{NEAR, World};
use crate::clock;
use crate::node::send_queue::{BATCH, SMALL_BATCH, SendQueue};

const CAMERA: u32 = 1_000;
const IMU: u32 = 1_001;
const PICTURE_BYTES: usize = 1_000_000;
/// Longer than what discovery sends, shorter than a fragment of a picture.
const SHORT_BYTES: usize = 500;

/// A node with a reader on another host.
fn joined() -> World {
    let mut world = World::new(1);
    let reader = world.join(NEAR);
    world.subscribe(reader, 8);
    world.settle();
    world
}

fn send(world: &mut World, writer: u32, payload_bytes: usize) {
    let payload: Arc<[u8]> = vec![7; payload_bytes].into();
    let sample = Outgoing {
        writer: StreamId(writer),
        sequence: 1,
        origin: Origin::exactly(0),
        age: Span::ZERO,
        class: Class::BestEffort,
        depth: 1,
        payload: &payload,
    };
    let node = world.served()[0];
    let now = clock::now();
    world.far().remote(node, now).send(&sample, &payload, now);
}

/// Takes one batch from the state: bytes of each datagram.
fn taken_bytes(world: &mut World, is_small: impl Fn() -> bool) -> Vec<usize> {
    let (mut send_queue, socket) =
        (SendQueue::before_a_quick_line(), UdpSocket::bind("127.0.0.1:0").unwrap());
    assert!(send_queue.fill(world.far(), &socket, is_small), "there is more");
    send_queue.lengths_bytes()
}

#[test]
fn a_thread_that_waits_for_the_state_waits_for_a_few_datagrams_of_a_picture() {
    let mut world = joined();
    send(&mut world, CAMERA, PICTURE_BYTES);
    assert_eq!(taken_bytes(&mut world, || false).len(), BATCH.datagrams(), "nobody waits");
    assert_eq!(taken_bytes(&mut world, || true).len(), SMALL_BATCH.datagrams());
    // Somebody comes while the twentieth is being encoded.
    let asked = Cell::new(0);
    let comes = || asked.replace(asked.get() + 1) >= 20 - SMALL_BATCH.datagrams();
    assert_eq!(taken_bytes(&mut world, comes).len(), 20);
}

#[test]
fn a_short_sample_is_among_the_few_datagrams_that_its_thread_sends() {
    let mut world = joined();
    send(&mut world, CAMERA, PICTURE_BYTES);
    let is_short = |bytes: &usize| (SHORT_BYTES..1_000).contains(bytes);
    assert!(!taken_bytes(&mut world, || false).iter().any(is_short));
    send(&mut world, IMU, SHORT_BYTES);
    let taken = taken_bytes(&mut world, || true);
    assert_eq!(taken.len(), SMALL_BATCH.datagrams());
    // A hello may be before it, and a fragment of the picture.
    assert!(taken.iter().position(is_short).is_some_and(|place| place <= 2), "{taken:?}");
}
