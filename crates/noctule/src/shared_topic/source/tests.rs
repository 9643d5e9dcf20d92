//! A publisher whose node was given up and is found again.

use noctule_discovery::{EndpointKind, Qos};
use noctule_shm_ring::{Origin, RingConfig, StartAt, Writer};

use super::*;
use crate::shared_topic::{RingOwner, open_ring};

const NODE: NodeId = NodeId([1; 16]);

fn endpoint() -> Endpoint {
    Endpoint {
        id: EndpointId(2),
        kind: EndpointKind::Writer,
        topic: "t".into(),
        type_name: "bytes".into(),
        type_hash: 0,
        formats: 1,
        payload_bytes_max: 8,
        qos: Qos { depth: 8, ..Qos::default() },
        relayed: false,
    }
}

fn ring() -> (RingOwner, Writer) {
    let offer = RingOwner::new(RingConfig {
        history: 8,
        pins: 0,
        payload_bytes_max: 8,
        type_hash: 0,
        shift_bytes: 0,
    })
    .unwrap();
    let writer = offer.make_for_here().unwrap().unwrap();
    (offer, writer)
}

fn publish(writer: &mut Writer, samples: u64) {
    (0..samples).for_each(|_| _ = writer.copy_in(b"x", Origin::default()).unwrap());
}

/// The publisher lets a reader in.
fn let_in(offer: &RingOwner, route: Route) -> Change {
    let granted = offer.attach_here(0, false).unwrap();
    let start = StartAt::From { position: granted.position, history: 0 };
    let reader = open_ring(granted.into_memory(), 0, 0, start).unwrap();
    Change::Came(Box::new(Source::new((NODE, &endpoint()), reader, route)))
}

/// Samples taken, and those missed before them.
fn take(sources: &mut Sources) -> (u64, u64) {
    let (mut taken, mut missed) = (0, 0);
    loop {
        match sources.next(&mut Source::take).unwrap() {
            Some((_, sample, _)) => (taken, missed) = (taken + 1, missed + sample.missed),
            None if sources.retire() => {}
            None => return (taken, missed),
        }
    }
}

#[test]
fn what_a_publisher_of_this_host_published_while_it_was_given_up_is_missed() {
    let (offer, mut writer) = ring();
    let mut sources = Sources::default();
    publish(&mut writer, 3);
    sources.apply(let_in(&offer, Route::SharedMemory));
    publish(&mut writer, 4);
    assert_eq!(take(&mut sources), (4, 0), "what was before this reader is not missed");
    sources.apply(Change::NodeWent(NODE));
    assert_eq!(take(&mut sources), (0, 0));
    publish(&mut writer, 5);
    sources.apply(let_in(&offer, Route::SharedMemory));
    publish(&mut writer, 2);
    assert_eq!(take(&mut sources), (2, 5));
    // Before what it left has been read to its end.
    publish(&mut writer, 1);
    sources.apply(Change::NodeWent(NODE));
    sources.apply(let_in(&offer, Route::SharedMemory));
    publish(&mut writer, 2);
    assert_eq!(take(&mut sources), (3, 0), "none is taken twice");
}

#[test]
fn a_ring_with_other_numbers_does_not_go_on_with_those_before_it() {
    let (offer, mut writer) = ring();
    let (other_offer, mut other) = ring();
    let mut sources = Sources::default();
    sources.apply(let_in(&offer, Route::SharedMemory));
    publish(&mut writer, 4);
    assert_eq!(take(&mut sources), (4, 0));
    // By UDP for a while, then in shared memory again.
    for (offer, writer, route) in
        [(&other_offer, &mut other, Route::Udp), (&offer, &mut writer, Route::SharedMemory)]
    {
        sources.apply(Change::NodeWent(NODE));
        assert_eq!(take(&mut sources), (0, 0));
        publish(writer, 1);
        sources.apply(let_in(offer, route));
        publish(writer, 2);
        assert_eq!(take(&mut sources), (2, 0));
    }
}
