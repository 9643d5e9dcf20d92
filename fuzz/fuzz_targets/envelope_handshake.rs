//! Challenges, answers and datagrams of every kind by a member of the swarm that may say what it likes.
#![no_main]

use std::net::SocketAddr;
use std::sync::Mutex;

use libfuzzer_sys::fuzz_target;
use noctule::envelope::Envelope;
use noctule::swarm_key::SwarmKey;
use noctule_timebase::Instant;

/// Two nodes that know each other, kept from one input to the next: handshakes are slow.
static NODES: Mutex<Option<[Envelope; 2]>> = Mutex::new(None);

fuzz_target!(|input: (u8, u16, Vec<u8>)| {
    let (kind, ms, mut body) = input;
    let keys = [SwarmKey::from_bytes([7; 32])];
    let now = Instant::from_ns(i64::from(ms) * 1_000_000);
    let address = SocketAddr::from(([127, 0, 0, 1], 9));
    let mut nodes = NODES.lock().unwrap();
    let [a, b] = nodes.get_or_insert_with(|| [1, 2].map(|seed| Envelope::new(&keys, [seed; 32], 1)));
    // Addressed to the other node, so that more than the address is looked at.
    if kind & 8 != 0
        && let Some(to) = b.number()
    {
        body.splice(..0, to.0);
    }
    let mut out = Vec::new();
    a.begin(&mut out);
    out.extend_from_slice(&body);
    a.seal_as(kind & 7, &mut out);
    let _ = b.open(&mut out, address, now);
    while let Some((_, mut reply)) = b.poll_transmit() {
        let _ = a.open(&mut reply, address, now);
    }
    while let Some((_, mut reply)) = a.poll_transmit() {
        let _ = b.open(&mut reply, address, now);
    }
    b.handle_timeout(now);
});
