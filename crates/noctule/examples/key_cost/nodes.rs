//! Bytes on the wire, and what `publish` takes.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use noctule::clock::LocalClock;
use noctule::swarm_key::SwarmKey;
use noctule::{Node, Publisher, Reliability, Subscriber};
use noctule_sys::namespace::NetworkNamespace;

use super::{Round, print_table};

/// The last travels in two datagrams: loopback carries longer ones than Ethernet.
const PAYLOADS: [usize; 3] = [64, 1024, 65_536];
/// In a round, of each variant.
const SAMPLES: usize = 100;
const LONG: Duration = Duration::from_secs(30);

/// A topic from one host to another, in a network of their own.
struct Cable {
    name: &'static str,
    network: NetworkNamespace,
    publisher: Publisher,
    subscriber: Subscriber,
    _nodes: [Node; 2],
}

impl Cable {
    fn open(name: &'static str, key: Option<&Path>, payload_bytes: usize) -> io::Result<Cable> {
        let network = NetworkNamespace::create()?;
        let node = |name: &str, clock: &str| {
            let clock: LocalClock = clock.parse().expect("a clock");
            let open = || {
                let builder = Node::builder(name).clock(clock);
                let builder = if let Some(key) = key { builder.swarm_key(key) } else { builder };
                builder.open().map_err(io::Error::other)
            };
            network.run(open)
        };
        let (far, near) = (node("far", "offset=5s")?, node("near", "")?);
        let reliable = Reliability::Reliable;
        let builder = far.publisher("t").reliability(reliable).payload_bytes_max(payload_bytes as u32);
        let publisher = builder.open().map_err(io::Error::other)?;
        let mut subscriber = near.subscriber("t").reliability(reliable).open().map_err(io::Error::other)?;
        while publisher.readers() == 0 || subscriber.publishers() == 0 {
            subscriber.wait(Some(Duration::from_millis(5)));
        }
        Ok(Cable { name, network, publisher, subscriber, _nodes: [far, near] })
    }

    /// Mean bytes of IP for a sample, acknowledgements and the discovery of that time included, and the median of `publish` in µs.
    fn pass(&mut self, payload: &[u8]) -> (f64, f64) {
        let before = self.sent();
        let mut calls_us = Vec::new();
        for _ in 0..SAMPLES {
            let begin = Instant::now();
            self.publisher.publish(payload).expect("it fits");
            calls_us.push(begin.elapsed().as_secs_f64() * 1e6);
            assert!(self.subscriber.receive(Some(LONG)).expect("whole").is_some(), "it arrives");
        }
        let bytes = self.sent() - before;
        calls_us.sort_by(f64::total_cmp);
        (bytes as f64 / SAMPLES as f64, calls_us[SAMPLES / 2])
    }

    /// Bytes on the network so far; of `lo` the kernel counts IP and what is in it.
    fn sent(&self) -> u64 {
        let read = || std::fs::read_to_string("/proc/thread-self/net/dev");
        let text = self.network.run(read).expect("/proc");
        let line = text.lines().find(|line| line.trim_start().starts_with("lo:")).expect("lo");
        line.split_whitespace().nth(9).expect("sent bytes").parse().expect("a number")
    }
}

/// Tables of each length; a sentence where namespaces cannot be made.
pub(super) fn print(rounds: usize) {
    let directory = tempfile::tempdir().expect("a folder for the key");
    let key = directory.path().join("key");
    SwarmKey::create(&key).expect("a new file");
    for payload_bytes in PAYLOADS {
        let open = || -> io::Result<[Cable; 2]> {
            Ok([
                Cable::open("no key", None, payload_bytes)?,
                Cable::open("sealed", Some(&key), payload_bytes)?,
            ])
        };
        let mut paths = match open() {
            Ok(paths) => paths,
            Err(error) => return println!("wire and `publish` left out, no namespaces: {error}"),
        };
        let payload = vec![7; payload_bytes];
        let (mut bytes, mut calls): (Vec<Round>, Vec<Round>) = (Vec::new(), Vec::new());
        for round in 0..=rounds {
            let passes = paths.each_mut().map(|path| (path.name, path.pass(&payload)));
            if round > 0 {
                bytes.push(passes.map(|(name, (bytes, _))| (name.to_owned(), bytes)).to_vec());
                let [plain, sealed] = passes.map(|(_, (_, us))| us);
                let names = ["no key", "sealed", "what the key adds"];
                let figures = [plain, sealed, sealed - plain];
                calls.push(names.map(str::to_owned).into_iter().zip(figures).collect());
            }
        }
        print_table(&format!("reliable sample of {payload_bytes} B, bytes of IP"), &bytes);
        print_table(&format!("`publish` of {payload_bytes} B to another host, µs"), &calls);
    }
}
