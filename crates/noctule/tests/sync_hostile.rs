//! A prober among hosts that answer what they were not asked.

#![allow(clippy::unwrap_used)]

use std::net::{SocketAddr, UdpSocket};

use noctule::clock::{LocalClock, now};
use noctule::sync::wire::{DATAGRAM_BYTES, Reply, Request};
use noctule::sync::{Prober, StampSource};
use noctule_time_sync::{Bounded, BoundedConfig, ExchangerConfig, Nonce};
use noctule_timebase::{Instant, Span};
use proptest::prelude::*;

/// A server in the test's hands, asked by a prober with a clock five seconds behind.
struct Scene {
    server: UdpSocket,
    prober: Prober,
    asker: Option<SocketAddr>,
}

impl Scene {
    fn new() -> Scene {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let clock: LocalClock = "offset=-5s".parse().unwrap();
        let estimator = Box::new(Bounded::new(BoundedConfig::default()));
        // A reply is never late here, however slow the machine is.
        let rhythm = ExchangerConfig { timeout: Span::from_s(3600), ..ExchangerConfig::default() };
        let address = server.local_addr().unwrap();
        let prober = Prober::connect(address, clock, StampSource::Kernel, rhythm, estimator).unwrap();
        Scene { server, prober, asker: None }
    }

    /// Lets the prober ask, and takes its request.
    fn asked(&mut self) -> Nonce {
        self.server.set_nonblocking(true).unwrap();
        loop {
            assert!(self.prober.next(now() + Span::from_ms(1)).unwrap().is_none(), "nothing was answered");
            let mut bytes = [0; DATAGRAM_BYTES];
            if let Ok((_, from)) = self.server.recv_from(&mut bytes) {
                self.asker = Some(from);
                return Request::decode(&bytes).unwrap().nonce;
            }
        }
    }

    fn send(&self, bytes: &[u8]) {
        self.server.send_to(bytes, self.asker.unwrap()).unwrap();
    }

    /// Everything that lies in the prober's socket, as exchanges.
    fn taken(&mut self) -> usize {
        let mut taken = 0;
        while self.prober.next(now()).unwrap().is_some() {
            taken += 1;
        }
        taken
    }
}

fn reply(nonce: Nonce, ns: i64) -> [u8; DATAGRAM_BYTES] {
    Reply { nonce, t2: Instant::from_ns(ns), t3: Instant::from_ns(ns) }.encode()
}

#[test]
fn every_unwanted_datagram_is_counted_by_its_reason() {
    let mut scene = Scene::new();
    let nonce = scene.asked();
    let at_ns = now().ns();
    let right = reply(nonce, at_ns);
    scene.send(&right[..31]);
    scene.send(&[0; 2000]);
    scene.send(&[0; DATAGRAM_BYTES]);
    scene.send(&Request { nonce }.encode());
    scene.send(&reply(Nonce(!nonce.0), 0));
    scene.send(&right);
    scene.send(&right);
    assert_eq!(scene.taken(), 1);
    let counters = scene.prober.counters();
    let malformed = counters.malformed;
    assert_eq!((malformed.length, malformed.magic, malformed.kind), (2, 1, 1));
    let replies = counters.replies;
    assert_eq!((replies.answered, replies.forged, replies.duplicated), (1, 1, 1));
    assert_eq!(counters.exchanges.accepted, 1);
}

#[test]
fn a_reply_overtaken_by_a_later_one_is_not_used() {
    let mut scene = Scene::new();
    let (first, second) = (scene.asked(), scene.asked());
    scene.send(&reply(second, now().ns()));
    scene.send(&reply(first, now().ns()));
    assert_eq!(scene.taken(), 1);
    assert_eq!(scene.prober.counters().replies.reordered, 1);
}

#[test]
fn strangers_are_not_heard_at_all() {
    let mut scene = Scene::new();
    let nonce = scene.asked();
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    stranger.send_to(&reply(nonce, 0), scene.asker.unwrap()).unwrap();
    assert_eq!(scene.taken(), 0);
    assert_eq!(scene.prober.counters().replies.forged, 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn an_attacker_that_sees_no_request_moves_no_estimate_even_with_the_servers_address(
        guesses in prop::collection::vec((any::<u64>(), any::<i64>(), any::<i64>()), 1..40),
        noise in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..64), 0..10),
    ) {
        let mut scene = Scene::new();
        let nonce = scene.asked();
        scene.send(&reply(nonce, now().ns()));
        prop_assert_eq!(scene.taken(), 1);
        let at = scene.prober.clock().now();
        let before = scene.prober.estimate(at);
        for (guess, t2_ns, t3_ns) in &guesses {
            let (t2, t3) = (Instant::from_ns(*t2_ns), Instant::from_ns(*t3_ns));
            scene.send(&Reply { nonce: Nonce(*guess), t2, t3 }.encode());
        }
        noise.iter().for_each(|bytes| scene.send(bytes));
        prop_assert_eq!(scene.taken(), 0);
        prop_assert_eq!(scene.prober.estimate(at), before);
    }
}
