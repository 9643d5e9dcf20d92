//! Arbitrary datagrams into both ends of a stream to a group: nothing panics, decoding and encoding agree, memory stays within
//! the named limits, reports are no longer than three times what came, and parity no more than data and what was saved.
#![no_main]

use libfuzzer_sys::fuzz_target;
use noctule_prrt::group::{Body, Datagram, GroupConfig, GroupReceiver, GroupSender, MemberId};
use noctule_prrt::{Arrival, Bound, Class, Order, Origin, Outgoing, StreamId};
use noctule_timebase::{Instant, Span};

const HELD_BYTES_MAX: usize = 16 << 20;
const PARITY_SAVED: u64 = 64;

fuzz_target!(|bytes: &[u8]| {
    let mut now = Instant::from_ns(0);
    let bound = Bound { deadline: Span::from_ms(100), loss_target: 1e-3, order: Order::Asap };
    let config = GroupConfig { session: 1, writer: StreamId(2), bound: Some(bound), datagram_bytes_max: 600 };
    let (mut sender, mut receiver) = (GroupSender::new(config, now), GroupReceiver::new(config, 3));
    let members = [MemberId(1), MemberId(2)];
    members.iter().for_each(|member| assert!(sender.join(*member)));
    let (mut came_bytes, mut reported_bytes) = (0, 0);
    let mut out = Vec::new();
    let mut sequence = 0;
    let mut rest = bytes;
    // Each piece of input is one datagram of this session and stream behind the usual beginning, with its length in front.
    while let Some((length, tail)) = rest.split_first() {
        let (body, tail) = tail.split_at(usize::from(*length).min(tail.len()));
        rest = tail;
        let Some((kind, body)) = body.split_first() else { continue };
        let mut datagram = b"NCTG\x02".to_vec();
        datagram.extend_from_slice(&[*kind, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0]);
        datagram.extend_from_slice(body);
        if let Ok(decoded) = Datagram::decode(&datagram) {
            out.clear();
            decoded.encode(&mut out);
            assert_eq!(out, datagram);
            match &decoded.body {
                Body::Report(report) => sender.handle_report(members[usize::from(length % 2)], report, now),
                Body::Symbol(_) => {
                    came_bytes += datagram.len();
                    let arrival = Arrival { now, came: now, own_ns: now.ns(), peer_ns: None, ecn: Default::default() };
                    receiver.handle_datagram(&decoded, datagram.len(), arrival, &mut |_, _| {});
                }
            }
        }
        sequence += 1;
        let payload = &datagram[..];
        let (writer, class, age) = (StreamId(2), Class::DeadlineBound(bound), Span::ZERO);
        let sample = Outgoing { writer, sequence, origin: Origin::exactly(0), age, class, depth: 4, payload };
        let _ = sender.send(&sample, now);
        for _ in 0..256 {
            out.clear();
            if !sender.poll_transmit(now, &mut out) {
                break;
            }
        }
        now = now + Span::from_ms(i64::from(*length % 32));
        for _ in 0..256 {
            out.clear();
            if !receiver.poll_transmit(now, &mut out) {
                break;
            }
            reported_bytes += out.len();
        }
        while sender.poll_membership().is_some() {}
        assert!(reported_bytes <= 3 * came_bytes, "{reported_bytes} reported of {came_bytes}");
        assert!(sender.held_bytes() <= HELD_BYTES_MAX && receiver.held_bytes() <= HELD_BYTES_MAX);
        let counters = sender.counters();
        assert!(counters.parity_asked + counters.parity_unasked <= counters.datagrams + PARITY_SAVED);
    }
});
