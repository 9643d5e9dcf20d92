//! Arbitrary datagrams into a link that has samples on their way: nothing panics, nothing is delivered twice or
//! out of order, and memory stays within the named limits.
#![no_main]

use std::collections::BTreeMap;

use libfuzzer_sys::fuzz_target;
use noctule_prrt::datagram::Datagram;
use noctule_prrt::{Link, LinkConfig, Outgoing, StreamId};
use noctule_timebase::{Instant, Span};

const PAYLOAD_BYTES_MAX: u32 = 4096;

fuzz_target!(|bytes: &[u8]| {
    let mut now = Instant::from_ns(0);
    let config =
        LinkConfig { held_bytes_max: 8192, queue_bytes_max: 8192, held_samples_max: 8, ..LinkConfig::default() };
    let mut link = Link::new(config, now);
    link.expect(StreamId(0), PAYLOAD_BYTES_MAX, true);
    link.expect(StreamId(1), PAYLOAD_BYTES_MAX, false);
    let mut last = BTreeMap::new();
    let mut out = Vec::new();
    // Each piece of input is one datagram behind the usual beginning, with its length in front.
    let mut rest = bytes;
    let mut sequence = 0;
    while let Some((length, tail)) = rest.split_first() {
        let (body, tail) = tail.split_at(usize::from(*length).min(tail.len()));
        rest = tail;
        let mut datagram = b"NCTM\x01".to_vec();
        datagram.extend_from_slice(body);
        if let Ok(decoded) = Datagram::decode(&datagram) {
            out.clear();
            decoded.encode(&mut out);
            assert_eq!(out, datagram);
        }
        let _ = link.handle_datagram(&datagram, now, &mut |sample| {
            assert!(sample.payload.len() <= PAYLOAD_BYTES_MAX as usize);
            let before = last.insert(sample.writer, sample.sequence);
            // A reliable writer's order is that of its positions, which a forger may number at will.
            assert!(sample.writer == StreamId(0) || before.is_none_or(|before| before < sample.sequence));
        });
        now = now + Span::from_ms(i64::from(*length));
        sequence += 1;
        let (writer, payload) = (StreamId(2), &datagram[..]);
        let reliable = length % 2 == 0;
        link.send(&Outgoing { writer, sequence, source_time_ns: 0, reliable, depth: 4, payload }, now);
        for _ in 0..64 {
            out.clear();
            if !link.poll_transmit(now, &mut out) {
                break;
            }
        }
        let (queued, held) = link.held_bytes();
        // One reliable writer may have one sample beyond the limit.
        assert!(queued <= 8192 && held <= 8192 + 8192, "{queued} and {held} bytes");
    }
});
