//! One shared Wi-Fi channel, live: many nodes that contend, collide and are at places.
//!
//! The thread runs `noctule_netsim::air` in real time between TUN devices. A packet to a multicast or broadcast address is one
//! frame to all, without acknowledgement; a packet to a node is a frame that is acknowledged and repeated. Positions come
//! from the caller while it runs.

use std::net::Ipv4Addr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use noctule_netsim::Truth;
use noctule_netsim::air::{Air, AirCounters, AirSpec, Frame, Receivers};
use noctule_sys::namespace::NetworkNamespace;
use noctule_sys::tun::{PACKET_BYTES_MAX, Tun};
use noctule_sys::{clock, scheduling};
use noctule_timebase::{Instant, Span};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};

use crate::forwarder::{ForwarderError, MTU_BYTES_DEFAULT, PRIORITY, SLEEP_MAX, attach};
use crate::star::node_address;

/// Most nodes of one air.
pub const AIR_NODES_MAX: usize = 128;
/// Header and check sequence of the MAC and LLC around an IP packet.
const AROUND_IP_BYTES: u32 = 36;
/// Packets taken from one device before the others are looked at.
const BATCH_PACKETS: usize = 16;
/// Shortest IPv4 header.
const HEADER_BYTES: usize = 20;

/// A running air.
#[derive(Debug)]
pub struct LiveAir {
    shared: Arc<SharedAir>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct SharedAir {
    stopping: AtomicBool,
    wake: OwnedFd,
    positions_m: Mutex<Vec<[f64; 3]>>,
    report: Mutex<AirReport>,
    /// How long each node has sensed the medium busy.
    busy: Mutex<Vec<Span>>,
}

/// Counters of a live air.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AirReport {
    /// The model's counters.
    pub air: AirCounters,
    /// Packets to addresses without a node, and of other protocols than IPv4.
    pub unroutable: u64,
    /// The latest a packet was handed over after the model's time, ns.
    pub late_max_ns: u64,
    /// The thread's processor time, ns.
    pub cpu_ns: u64,
}

impl LiveAir {
    /// Gives each namespace a device with the address of its node and begins; all nodes are at the origin.
    ///
    /// # Errors
    /// Another number of nodes than 2 to [`AIR_NODES_MAX`]; no device, no thread.
    pub fn start(
        namespaces: &[&NetworkNamespace],
        spec: AirSpec,
        seed: u64,
    ) -> Result<LiveAir, ForwarderError> {
        let nodes = namespaces.len();
        if !(2..=AIR_NODES_MAX).contains(&nodes) {
            return Err(ForwarderError::AirNodes(nodes));
        }
        let mut devices = Vec::with_capacity(nodes);
        for (node, namespace) in namespaces.iter().enumerate() {
            let device = namespace.run(|| attach(node, MTU_BYTES_DEFAULT));
            devices.push(device.map_err(ForwarderError::Device)?);
        }
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|error| ForwarderError::Thread(error.into()))?;
        let shared = Arc::new(SharedAir {
            stopping: AtomicBool::new(false),
            wake,
            positions_m: Mutex::new(vec![[0.0; 3]; nodes]),
            report: Mutex::new(AirReport::default()),
            busy: Mutex::new(vec![Span::ZERO; nodes]),
        });
        let start_ns = clock::now_ns();
        let carrier = Carrier {
            air: Air::new(spec, nodes, seed),
            devices,
            shared: shared.clone(),
            start_ns,
            report: AirReport::default(),
        };
        let thread = std::thread::Builder::new().name("air".into()).spawn(move || carrier.run());
        Ok(LiveAir { shared, thread: Some(thread.map_err(ForwarderError::Thread)?) })
    }

    /// A node is elsewhere, m; an unknown node is ignored.
    pub fn set_position(&self, node: usize, position_m: [f64; 3]) {
        let mut positions = self.shared.positions_m.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(position) = positions.get_mut(node) {
            *position = position_m;
        }
    }

    /// How long a node has sensed the medium busy since the start, as a radio's survey says; zero for an unknown node.
    pub fn sensed_busy(&self, node: usize) -> Span {
        let busy = self.shared.busy.lock().unwrap_or_else(PoisonError::into_inner);
        busy.get(node).copied().unwrap_or(Span::ZERO)
    }

    /// The address of a node.
    pub fn address(&self, node: usize) -> Ipv4Addr {
        node_address(node)
    }

    /// Counters as of a moment ago.
    pub fn report(&self) -> AirReport {
        *self.shared.report.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends; the devices vanish from the namespaces.
    pub fn stop(mut self) -> AirReport {
        self.end();
        self.report()
    }

    fn end(&mut self) {
        self.shared.stopping.store(true, Ordering::Release);
        // A full counter wakes, too.
        let _ = rustix::io::write(&self.shared.wake, &1_u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            // A panic has been printed.
            let _ = thread.join();
        }
    }
}

impl Drop for LiveAir {
    fn drop(&mut self) {
        self.end();
    }
}

struct Carrier {
    air: Air,
    devices: Vec<Tun>,
    shared: Arc<SharedAir>,
    start_ns: i64,
    report: AirReport,
}

impl Carrier {
    fn run(mut self) {
        // Without, packets are later, which the report shows.
        let _ = scheduling::set_fifo_priority(PRIORITY);
        let _ = scheduling::set_exact_timers();
        let mut buffer = vec![0; PACKET_BYTES_MAX];
        let mut ready = vec![true; self.devices.len()];
        while !self.shared.stopping.load(Ordering::Acquire) {
            let positions = self.shared.positions_m.lock().unwrap_or_else(PoisonError::into_inner).clone();
            for (node, position_m) in positions.into_iter().enumerate() {
                self.air.set_position(node, position_m);
            }
            for (node, ready) in ready.iter().enumerate() {
                if *ready {
                    self.take(node, &mut buffer);
                }
            }
            self.deliver();
            self.report.air = self.air.counters();
            self.survey();
            self.report.cpu_ns = clock::thread_cpu_ns().max(0).unsigned_abs();
            *self.shared.report.lock().unwrap_or_else(PoisonError::into_inner) = self.report;
            self.wait(&mut ready);
        }
    }

    fn survey(&self) {
        let now = self.now();
        let mut busy = self.shared.busy.lock().unwrap_or_else(PoisonError::into_inner);
        for (node, busy) in busy.iter_mut().enumerate() {
            *busy = self.air.sensed_busy(now, node);
        }
    }

    /// The model's time begins with the air.
    fn now(&self) -> Instant<Truth> {
        Instant::from_ns(clock::now_ns() - self.start_ns)
    }

    fn wait(&self, ready: &mut [bool]) {
        let due = self.air.poll_timeout().map_or(SLEEP_MAX, |due| due - self.now());
        let timeout = due.clamp(Span::ZERO, SLEEP_MAX);
        let devices = self.devices.iter();
        let devices = devices.map(|device| PollFd::from_borrowed_fd(device.as_fd(), PollFlags::IN));
        let mut descriptors: Vec<PollFd<'_>> = devices.collect();
        descriptors.push(PollFd::new(&self.shared.wake, PollFlags::IN));
        // An interrupted call has nothing ready.
        let any = poll(&mut descriptors, Some(&clock::timespec(timeout.ns()))).unwrap_or(0) > 0;
        for (ready, descriptor) in ready.iter_mut().zip(&descriptors) {
            *ready = any && !descriptor.revents().is_empty();
        }
    }

    fn take(&mut self, node: usize, buffer: &mut [u8]) {
        for _ in 0..BATCH_PACKETS {
            // A device whose namespace brought it down has nothing either.
            let Ok(Some(length)) = self.devices[node].receive(buffer) else { return };
            let packet = &buffer[..length];
            match receivers(packet, self.devices.len()) {
                Some(to) if to != Receivers::One(node) => {
                    let mac_bytes = length as u32 + AROUND_IP_BYTES;
                    let frame = Frame { to, mac_bytes, bytes: Arc::from(packet) };
                    let now = self.now();
                    self.air.handle_frame(now, node, frame);
                }
                _ => self.report.unroutable += 1,
            }
        }
    }

    fn deliver(&mut self) {
        loop {
            let now = self.now();
            let Some(reception) = self.air.poll_reception(now) else { return };
            // A device without room loses the packet, as a radio's queue does.
            let _ = self.devices[reception.to].send(&reception.bytes);
            let late_ns = (self.now() - reception.at).ns().max(0).unsigned_abs();
            self.report.late_max_ns = self.report.late_max_ns.max(late_ns);
        }
    }
}

/// The destination of an IP packet on an air of `nodes`; `None`: no node has the address.
fn receivers(packet: &[u8], nodes: usize) -> Option<Receivers> {
    if packet.len() < HEADER_BYTES || packet[0] >> 4 != 4 {
        return None;
    }
    let target = Ipv4Addr::new(packet[16], packet[17], packet[18], packet[19]);
    if target.is_multicast() || target.is_broadcast() || target == node_address(254) {
        return Some(Receivers::All);
    }
    (0..nodes).find(|node| node_address(*node) == target).map(Receivers::One)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_go_to_all_and_addresses_to_their_node() {
        let packet = |target: [u8; 4]| {
            let mut packet = vec![0x45; 28];
            packet[16..20].copy_from_slice(&target);
            packet
        };
        assert_eq!(receivers(&packet([239, 1, 2, 3]), 40), Some(Receivers::All));
        assert_eq!(receivers(&packet([10, 78, 0, 255]), 40), Some(Receivers::All));
        assert_eq!(receivers(&packet([10, 78, 0, 40]), 40), Some(Receivers::One(39)));
        assert_eq!(receivers(&packet([10, 78, 0, 41]), 40), None);
        assert_eq!(receivers(&packet([10, 78, 0, 41])[..19], 41), None);
        assert_eq!(receivers(&[0x60; 40], 41), None);
    }
}
