//! Traffic that shares the channel with a live swarm: a unicast flow, and the frames of another group.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use noctule_sys::clock::{now_ns, sleep_until};
use noctule_sys::namespace::NetworkNamespace;

/// Payload of a datagram.
const DATAGRAM_BYTES: usize = 1_200;
/// Administratively scoped (RFC 2365), and of no other program here.
const GROUP: Ipv4Addr = Ipv4Addr::new(239, 78, 99, 1);
const PORT: u16 = 7_979;
/// A receiver looks so often whether it is over.
const LOOK: Duration = Duration::from_millis(100);
/// A sender that was kept from running catches up at most so much, ns.
const CATCH_UP_NS: i64 = 20_000_000;

/// Rates of the traffic beside the swarm, Mb/s of payload.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rates {
    /// Rate from the first drone's radio to the second's.
    pub(super) unicast_mbps: f64,
    /// Rate from the last drone's radio to a group.
    pub(super) group_mbps: f64,
}

/// Running flows; they end when it is dropped.
#[derive(Debug)]
pub(super) struct Beside {
    stopping: Arc<AtomicBool>,
    received_bytes: Arc<AtomicU64>,
    threads: Vec<JoinHandle<()>>,
}

impl Beside {
    /// `addresses` are those of the first two drones on the air.
    pub(super) fn start(
        rates: Rates,
        namespaces: &[NetworkNamespace],
        addresses: [Ipv4Addr; 2],
    ) -> io::Result<Beside> {
        let (stopping, received_bytes) = Default::default();
        let mut beside = Beside { stopping, received_bytes, threads: Vec::new() };
        let [first, second, ..] = namespaces else { return Ok(beside) };
        if rates.unicast_mbps > 0.0 {
            let target = SocketAddrV4::new(addresses[1], PORT);
            let sink = second.run(|| UdpSocket::bind(target))?;
            sink.set_read_timeout(Some(LOOK))?;
            beside.receive(sink)?;
            beside.send(first, target, rates.unicast_mbps)?;
        }
        if let Some(last) = namespaces.last().filter(|_| rates.group_mbps > 0.0) {
            beside.send(last, SocketAddrV4::new(GROUP, PORT), rates.group_mbps)?;
        }
        Ok(beside)
    }

    /// Payload of the unicast flow that has arrived, bytes.
    pub(super) fn received_bytes(&self) -> u64 {
        self.received_bytes.load(Ordering::Relaxed)
    }

    fn receive(&mut self, sink: UdpSocket) -> io::Result<()> {
        let (stopping, received_bytes) = (self.stopping.clone(), self.received_bytes.clone());
        let work = move || {
            let mut buffer = [0; DATAGRAM_BYTES];
            while !stopping.load(Ordering::Relaxed) {
                // Nothing came within the look.
                let Ok(length) = sink.recv(&mut buffer) else { continue };
                received_bytes.fetch_add(length as u64, Ordering::Relaxed);
            }
        };
        self.threads.push(std::thread::Builder::new().name("beside".into()).spawn(work)?);
        Ok(())
    }

    fn send(&mut self, from: &NetworkNamespace, target: SocketAddrV4, mbps: f64) -> io::Result<()> {
        let socket = from.run(|| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)))?;
        let stopping = self.stopping.clone();
        let pause_ns = (8e3 * DATAGRAM_BYTES as f64 / mbps).max(1.0) as i64;
        let work = move || {
            let mut due_ns = now_ns();
            while !stopping.load(Ordering::Relaxed) {
                sleep_until(due_ns);
                // A device without room loses it, as a radio's queue does.
                let _ = socket.send_to(&[0; DATAGRAM_BYTES], target);
                due_ns = (due_ns + pause_ns).max(now_ns() - CATCH_UP_NS);
            }
        };
        self.threads.push(std::thread::Builder::new().name("beside".into()).spawn(work)?);
        Ok(())
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A panic has been printed.
            let _ = thread.join();
        }
    }
}
