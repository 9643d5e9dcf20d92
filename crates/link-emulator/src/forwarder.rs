//! The thread that carries packets between namespaces at the times the model says.
//!
//! # Problem
//!
//! A thread that sleeps until a packet is due is woken late, by tens of microseconds on a good day. A
//! thread that spins is never late, and takes a core from the programs under test.
//!
//! # Approach
//!
//! Block until shortly before the next packet is due, then spin through the rest, looking at the
//! devices all the while. `SCHED_FIFO` if permitted, exact timers, locked to nothing. How late packets
//! were in the end is measured on every one and is part of the report.
//!
//! A packet's life in the model begins when it is read, not when it was sent: what waking costs
//! is on top of the delay asked for. `noctule link check` measures that sum.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use hdrhistogram::Histogram;
use noctule_netsim::Truth;
use noctule_netsim::link::LinkSpec;
use noctule_sys::namespace::NetworkNamespace;
use noctule_sys::tun::{PACKET_BYTES_MAX, Tun};
use noctule_sys::{clock, interface, scheduling};
use noctule_timebase::{Instant, Span};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};

use crate::capture::Capture;
use crate::report::{Lateness, Report};
use crate::star::{NODES_MAX, PREFIX_BITS, Star, node_address};

/// Length of the MTU unless asked otherwise: Ethernet's.
pub const MTU_BYTES_DEFAULT: u16 = 1_500;
/// The thread spins this long before a packet is due, unless asked otherwise.
pub const SPIN_DEFAULT: Span = Span::from_us(80);
/// The device's name in each namespace.
pub const INTERFACE: &str = "noctule0";
/// Packets taken from one device before the others are looked at.
const BATCH_PACKETS: usize = 64;
/// Packets a device keeps while the thread is elsewhere; more are lost, and the report cannot know.
const DEVICE_QUEUE_PACKETS: u32 = 10_000;
/// Below the usual interrupt threads (50), above everything under test that is not more urgent.
pub(crate) const PRIORITY: u32 = 40;
/// The longest sleep, so that no arithmetic of times matters.
pub(crate) const SLEEP_MAX: Span = Span::from_s(10);

/// Parameters of a link.
#[derive(Clone, Debug)]
pub struct ForwarderSettings {
    /// The model.
    pub spec: LinkSpec,
    /// Of its random numbers.
    pub seed: u64,
    /// Longest packet of the devices.
    pub mtu_bytes: u16,
    /// How long to spin before each packet.
    pub spin: Span,
    /// Core the thread is pinned to; `None`: wherever the kernel likes.
    pub core: Option<u32>,
    /// How far scripts and recordings have come when the link starts.
    pub elapsed: Span,
    /// One pcap file per node beside this name.
    pub capture: Option<PathBuf>,
}

/// A running link.
#[derive(Debug)]
pub struct Forwarder {
    commands: Sender<Command>,
    wake: OwnedFd,
    thread: Option<JoinHandle<()>>,
    addresses: Vec<std::net::Ipv4Addr>,
}

/// Why a link could not be started, or its report not be had.
#[derive(Debug, thiserror::Error)]
pub enum ForwarderError {
    /// A number of nodes no link has.
    #[error("a link joins 2 to {NODES_MAX} nodes, not {0}; ask for another number")]
    Nodes(usize),
    /// A number of nodes no air has.
    #[error("an air joins 2 to 128 nodes, not {0}; ask for another number")]
    AirNodes(usize),
    /// No device.
    #[error("cannot create a TUN device ({0}); run as root, on a kernel with /dev/net/tun (`modprobe tun`)")]
    Device(io::Error),
    /// No capture.
    #[error("cannot write {path}: {error}; name a file in a folder that exists", path = .path.display())]
    Capture {
        /// The name asked for.
        path: PathBuf,
        /// The system's reason.
        error: io::Error,
    },
    /// No thread.
    #[error("cannot start the forwarder ({0}); end some other threads")]
    Thread(io::Error),
    /// It ended by itself.
    #[error("the forwarder of this link has ended; take the link down and up again")]
    Ended,
}

enum Command {
    Report(Sender<Report>),
    Stop(Sender<Report>),
}

impl ForwarderSettings {
    /// A link of `spec` from its beginning with Ethernet's MTU, on any core and nothing captured. An MTU in the specification of both
    /// directions' start stays the model's affair: longer packets vanish in the air.
    pub fn new(spec: LinkSpec, seed: u64) -> ForwarderSettings {
        ForwarderSettings {
            spec,
            seed,
            mtu_bytes: MTU_BYTES_DEFAULT,
            spin: SPIN_DEFAULT,
            core: None,
            elapsed: Span::ZERO,
            capture: None,
        }
    }
}

impl Forwarder {
    /// Gives each namespace a device with the address of its node, routes multicast to it, and starts
    /// to carry packets. The first namespace is `a`.
    pub fn start(
        namespaces: &[&NetworkNamespace],
        settings: &ForwarderSettings,
    ) -> Result<Forwarder, ForwarderError> {
        let nodes = namespaces.len();
        if !(2..=NODES_MAX).contains(&nodes) {
            return Err(ForwarderError::Nodes(nodes));
        }
        let mut devices = Vec::with_capacity(nodes);
        for (node, namespace) in namespaces.iter().enumerate() {
            let device = namespace.run(|| attach(node, settings.mtu_bytes));
            devices.push(device.map_err(ForwarderError::Device)?);
        }
        let capture = settings.capture.as_ref().map(|path| {
            let capture = Capture::create(path, nodes);
            capture.map_err(|error| ForwarderError::Capture { path: path.clone(), error })
        });
        let capture = capture.transpose()?;
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let wake = eventfd(0, flags).map_err(|error| ForwarderError::Thread(error.into()))?;
        let woken = wake.try_clone().map_err(ForwarderError::Thread)?;
        let (commands, orders) = channel();
        let star = Star::new(&settings.spec, nodes, now() - settings.elapsed, settings.seed);
        let (spin, core) = (settings.spin, settings.core);
        let run = move || {
            let core = core.filter(|&core| scheduling::pin_to_core(core).is_ok());
            let real_time = scheduling::set_fifo_priority(PRIORITY).is_ok();
            // Without, timers are 50 µs late, which the report shows.
            let _ = scheduling::set_exact_timers();
            let (lateness, cpu_start_ns) =
                (Histogram::new_with_max(LATENESS_MAX_NS, 3).ok(), clock::thread_cpu_ns());
            Carrier {
                star,
                devices,
                woken,
                orders,
                capture,
                spin,
                lateness,
                refused: 0,
                real_time,
                core,
                cpu_start_ns,
            }
            .run();
        };
        let thread = std::thread::Builder::new().name("link".into()).spawn(run);
        let thread = Some(thread.map_err(ForwarderError::Thread)?);
        Ok(Forwarder { commands, wake, thread, addresses: (0..nodes).map(node_address).collect() })
    }

    /// The address of each node.
    pub fn addresses(&self) -> &[std::net::Ipv4Addr] {
        &self.addresses
    }

    /// Counters since the start.
    pub fn report(&self) -> Result<Report, ForwarderError> {
        self.ask(Command::Report)
    }

    /// Ends the link; its devices vanish from the namespaces.
    pub fn stop(mut self) -> Result<Report, ForwarderError> {
        let report = self.ask(Command::Stop);
        self.join();
        report
    }

    fn ask(&self, command: impl FnOnce(Sender<Report>) -> Command) -> Result<Report, ForwarderError> {
        let (reply, report) = channel();
        self.commands.send(command(reply)).map_err(|_| ForwarderError::Ended)?;
        rustix::io::write(&self.wake, &1_u64.to_ne_bytes()).map_err(|_| ForwarderError::Ended)?;
        report.recv().map_err(|_| ForwarderError::Ended)
    }

    fn join(&mut self) {
        if let Some(thread) = self.thread.take() {
            // A panic has been printed; the report is missing, and that is reported.
            let _ = thread.join();
        }
    }
}

impl Drop for Forwarder {
    fn drop(&mut self) {
        if self.thread.is_some() {
            let _ = self.ask(Command::Stop);
            self.join();
        }
    }
}

/// A lateness above is counted as this.
const LATENESS_MAX_NS: u64 = 10_000_000_000;

fn now() -> Instant<Truth> {
    Instant::from_ns(clock::now_ns())
}

pub(crate) fn attach(node: usize, mtu_bytes: u16) -> io::Result<Tun> {
    let device = Tun::create(INTERFACE)?;
    interface::set_mtu(INTERFACE, mtu_bytes)?;
    interface::set_queue_length(INTERFACE, DEVICE_QUEUE_PACKETS)?;
    interface::set_address(INTERFACE, node_address(node).octets(), PREFIX_BITS)?;
    // The kernel would look for a router behind the link, whose bytes are the programs' alone. Without IPv6 there is nothing to set.
    let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{INTERFACE}/router_solicitations"), "0");
    interface::set_up(INTERFACE, true)?;
    interface::replace_multicast_route("lo", INTERFACE)?;
    Ok(device)
}

/// The state of the thread.
struct Carrier {
    star: Star,
    devices: Vec<Tun>,
    woken: OwnedFd,
    orders: Receiver<Command>,
    capture: Option<Capture>,
    spin: Span,
    lateness: Option<Histogram<u64>>,
    refused: u64,
    real_time: bool,
    core: Option<u32>,
    cpu_start_ns: i64,
}

impl Carrier {
    fn run(mut self) {
        let mut buffer = vec![0; PACKET_BYTES_MAX];
        let mut ready = vec![true; self.devices.len()];
        loop {
            for (node, ready) in ready.iter().enumerate() {
                if *ready {
                    self.take(node, &mut buffer);
                }
            }
            self.deliver();
            match self.wait(&mut ready) {
                true if !self.obey() => return,
                _ => {}
            }
        }
    }

    /// Waits for packets, orders or the time; true if there is an order.
    fn wait(&self, ready: &mut [bool]) -> bool {
        let timeout = match self.star.poll_timeout() {
            None => SLEEP_MAX,
            // Below the spin the devices are only looked at.
            Some(due) => (due - now() - self.spin).clamp(Span::ZERO, SLEEP_MAX),
        };
        let devices =
            self.devices.iter().map(|device| PollFd::from_borrowed_fd(device.as_fd(), PollFlags::IN));
        let mut descriptors: Vec<PollFd<'_>> = devices.collect();
        descriptors.push(PollFd::new(&self.woken, PollFlags::IN));
        // An interrupted call has nothing ready.
        let any = poll(&mut descriptors, Some(&clock::timespec(timeout.ns()))).unwrap_or(0) > 0;
        for (ready, descriptor) in ready.iter_mut().zip(&descriptors) {
            *ready = any && !descriptor.revents().is_empty();
        }
        any && descriptors.last().is_some_and(|woken| !woken.revents().is_empty())
    }

    fn take(&mut self, node: usize, buffer: &mut [u8]) {
        for _ in 0..BATCH_PACKETS {
            // A device whose namespace brought it down has nothing either.
            let Ok(Some(length)) = self.devices[node].receive(buffer) else { return };
            let now = now();
            if let Some(capture) = &mut self.capture {
                capture.record(node, now.ns(), &buffer[..length]);
            }
            self.star.handle_packet(now, node, &buffer[..length]);
        }
    }

    fn deliver(&mut self) {
        // Late packets do not keep the devices from being read for long.
        for _ in 0..BATCH_PACKETS {
            let Some(delivery) = self.star.poll_deliver(now()) else { return };
            let accepted = self.devices[delivery.receiver].send(&delivery.bytes).is_ok();
            let delivered = now();
            self.refused += u64::from(!accepted);
            if let Some(lateness) = &mut self.lateness {
                lateness.saturating_record((delivered - delivery.due).ns().max(0).unsigned_abs());
            }
            if let Some(capture) = &mut self.capture {
                capture.record(delivery.receiver, delivered.ns(), &delivery.bytes);
            }
        }
    }

    /// Does what was asked; false if that was to stop.
    fn obey(&mut self) -> bool {
        // Empties the counter; how often it was raised does not matter.
        let _ = rustix::io::read(&self.woken, &mut [0; 8]);
        while let Ok(command) = self.orders.try_recv() {
            // The requester may be gone.
            let (_, goes_on) = match command {
                Command::Report(reply) => (reply.send(self.report()), true),
                Command::Stop(reply) => (reply.send(self.report()), false),
            };
            if !goes_on {
                return false;
            }
        }
        true
    }

    fn report(&self) -> Report {
        let mut report = Report::of(&self.star);
        report.refused = self.refused;
        report.capture_missed = self.capture.as_ref().map_or(0, Capture::missed);
        report.real_time = self.real_time;
        report.core = self.core;
        report.cpu_ns = (clock::thread_cpu_ns() - self.cpu_start_ns).max(0).unsigned_abs();
        report.lateness_ns = self.lateness.as_ref().map(Lateness::of).unwrap_or_default();
        report
    }
}
