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

/// The same into a ring of samples from another host, of which the highest that has come has this number.
fn let_in_behind(offer: &RingOwner, highest: u64) -> Change {
    let Change::Came(source) = let_in(offer, Route::Udp) else { unreachable!() };
    Change::Came(Box::new(source.counted_to(Arc::new(AtomicU64::new(highest)))))
}

#[test]
fn what_was_still_missing_when_a_publisher_went_is_missed_once_whether_it_comes_back_or_not() {
    let (offer, mut writer) = ring();
    let (next_offer, mut next) = ring();
    let mut sources = Sources::default();
    // Of seven samples two are not there, and might still have come.
    sources.apply(let_in_behind(&offer, 7));
    publish(&mut writer, 5);
    assert_eq!((take(&mut sources), sources.missed_unsaid()), ((5, 0), 0));
    sources.apply(Change::NodeWent(NODE));
    assert_eq!((take(&mut sources), sources.missed_unsaid()), ((0, 0), 2));
    // It comes back with its tenth.
    sources.apply(let_in_behind(&next_offer, 10));
    assert_eq!(sources.missed_unsaid(), 2, "nothing has come yet");
    next.skip_numbers(9);
    publish(&mut next, 1);
    assert_eq!((take(&mut sources), sources.missed_unsaid()), ((1, 4), 0), "the next sample says so");
    sources.apply(Change::NodeWent(NODE));
    assert_eq!((take(&mut sources), sources.missed_unsaid()), ((0, 0), 0));
}

#[test]
fn what_a_forgotten_publisher_still_lacked_stays_counted() {
    let (offer, mut writer) = ring();
    let mut sources = Sources::default();
    sources.apply(let_in_behind(&offer, 4));
    publish(&mut writer, 1);
    assert_eq!(take(&mut sources), (1, 0));
    sources.apply(Change::NodeWent(NODE));
    take(&mut sources);
    for other in 0..RETIRED_LIMIT {
        let (offer, mut writer) = ring();
        let Change::Came(mut source) = let_in(&offer, Route::Udp) else { unreachable!() };
        source.writer = EndpointId(100 + other as u32);
        sources.apply(Change::Came(source));
        publish(&mut writer, 1);
        assert_eq!(take(&mut sources), (1, 0));
        sources.apply(Change::NodeWent(NODE));
        take(&mut sources);
    }
    assert_eq!((sources.retired.len(), sources.missed_unsaid()), (RETIRED_LIMIT, 3));
}
