//! Arbitrary datagrams into a node: nothing panics, and memory stays within the named limits.
#![no_main]

use libfuzzer_sys::fuzz_target;
use noctule_discovery::datagram::Datagram;
use noctule_discovery::{Discovery, DiscoveryConfig, Identity, NodeId, Via};
use noctule_timebase::{Instant, Span};

fuzz_target!(|bytes: &[u8]| {
    let mut now = Instant::from_ns(0);
    let me = Identity { id: NodeId([1; 16]), name: "fuzzed".into(), host: 1, port: 7411 };
    let mut discovery = Discovery::new(DiscoveryConfig::default(), me, Vec::new(), [1; 16], now);
    let mut out = Vec::new();
    // Each piece of input is one datagram, with its length in front.
    let mut rest = bytes;
    while let Some((length, tail)) = rest.split_first() {
        let (body, tail) = tail.split_at(usize::from(*length).min(tail.len()));
        rest = tail;
        if let Ok(datagram) = Datagram::decode(body) {
            out.clear();
            datagram.encode(&mut out);
            assert_eq!(out, body);
        }
        let _ = discovery.handle_datagram(body, ([10, 0, 0, 2], 7411).into(), Via::Unicast, now);
        now = now + Span::from_ms(i64::from(*length));
        discovery.handle_timeout(now);
        while discovery.poll_event().is_some() {}
        while discovery.poll_transmit(now, &mut out).is_some() {}
    }
});
