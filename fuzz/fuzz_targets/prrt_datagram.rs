//! Arbitrary datagrams into a link that has samples of every class on their way: nothing panics, nothing is delivered
//! twice, late or out of its order, and memory stays within the named limits.
#![no_main]

use std::collections::BTreeSet;

use libfuzzer_sys::fuzz_target;
use noctule_prrt::datagram::{Datagram, Head, Reference};
use noctule_prrt::{Arrival, Bound, Class, Link, LinkConfig, Order, Origin, Outgoing, StreamId};
use noctule_timebase::{Instant, Span};

const PAYLOAD_BYTES_MAX: u32 = 4096;
const RELIABLE: StreamId = StreamId(0);
const BEST_EFFORT: StreamId = StreamId(1);
const BOUND: StreamId = StreamId(2);
const BOUND_IN_ORDER: StreamId = StreamId(3);

fuzz_target!(|bytes: &[u8]| {
    let mut now = Instant::from_ns(0);
    let config =
        LinkConfig { held_bytes_max: 8192, queue_bytes_max: 8192, held_samples_max: 8, ..LinkConfig::default() };
    let mut link = Link::new(config, now);
    let bound = |order| Bound { deadline: Span::from_ms(100), loss_target: 1e-3, order };
    let classes = [
        (RELIABLE, Class::Reliable),
        (BEST_EFFORT, Class::BestEffort),
        (BOUND, Class::DeadlineBound(bound(Order::Asap))),
        (BOUND_IN_ORDER, Class::DeadlineBound(bound(Order::InOrder))),
    ];
    for (writer, class) in classes {
        link.expect(writer, PAYLOAD_BYTES_MAX, class);
    }
    let (mut seen, mut newest) = (BTreeSet::new(), [None; 4]);
    let mut out = Vec::new();
    // Each piece of input is one datagram behind the usual beginning, with its length in front.
    let mut rest = bytes;
    let mut sequence = 0;
    while let Some((length, tail)) = rest.split_first() {
        let (body, tail) = tail.split_at(usize::from(*length).min(tail.len()));
        rest = tail;
        // Every other one has a short header, which is understood after a long one.
        let mut datagram = if length % 2 == 0 { b"NCTM\x04".to_vec() } else { vec![0x80] };
        datagram.extend_from_slice(body);
        let reference = Reference { packet: 40, clock_ns: now.ns(), own_packet: 40 };
        if let Ok(decoded) = Datagram::decode(&datagram, &reference) {
            out.clear();
            decoded.encode(now.ns(), &mut out);
            if let Head::Short(_) = decoded.head {
                assert_eq!(Datagram::decode(&out, &reference), Ok(decoded));
            }
        }
        let mut deliver = |sample: noctule_prrt::Delivered<'_>| {
            assert!(sample.payload.len() <= PAYLOAD_BYTES_MAX as usize);
            let stream = sample.writer.0 as usize;
            let before = newest[stream].replace(sample.sequence);
            let in_order = before.is_none_or(|before| before < sample.sequence);
            // A reliable writer's order is that of its positions, which a forger may number at will.
            assert!(matches!(sample.writer, RELIABLE | BOUND) || in_order);
            if sample.writer == BOUND {
                assert!(seen.insert(sample.sequence), "twice");
                assert!(now.ns() - sample.origin.source_time_ns <= 100_000_000, "late");
            }
        };
        let arrival = Arrival { now, came: now, own_ns: now.ns(), peer_ns: Some(now.ns()), ecn: Default::default() };
        let _ = link.handle_datagram(&datagram, arrival, &mut deliver);
        now = now + Span::from_ms(i64::from(*length));
        link.handle_timeout(now, &mut |_| {});
        sequence += 1;
        let class = classes[usize::from(length % 4)].1;
        let (writer, payload, age) = (StreamId(u32::from(length % 4)), &datagram[..], Span::ZERO);
        let _ = link.send(&Outgoing { writer, sequence, origin: Origin::exactly(0), age, class, depth: 4, payload }, now);
        for _ in 0..256 {
            out.clear();
            if !link.poll_transmit(now, &mut out) {
                break;
            }
        }
        while link.poll_feasibility_change(now).is_some() {}
        let (queued, held) = link.held_bytes();
        // One reliable writer may have one sample beyond the limit.
        assert!(queued <= 8192 && held <= 8192 + 8192, "{queued} and {held} bytes");
    }
});
