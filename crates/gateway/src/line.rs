//! One line: an agent, its clients' endpoints on the bus, and the port that leads to them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{fmt, io};

use noctule_sys::clock::{three_clocks, timespec};
use noctule_timebase::{Instant, Span};
use noctule_xrce::{
    Agent, AgentConfig, ClientAddress, ClientFigures, ClientKey, Counters, EndpointId, Event, Gone,
    References, Sample, Stamp,
};
use rustix::event::{EventfdFlags, Timespec, eventfd};

use crate::ages::{ClientTime, Stamping};
use crate::bus::{Bus, Nodes};
use crate::inlet::Inlet;

/// Notices that wait to be fetched; more are dropped.
pub const NOTICES_MAX: usize = 256;
/// Different notices that are reported once only.
const NOTICES_ONCE_MAX: usize = 1024;

/// A transport of messages to clients.
pub(crate) trait Port: Send + fmt::Debug {
    /// Sends a message, or keeps what cannot be sent at once.
    fn send(&mut self, to: ClientAddress, message: &[u8]) -> Sent;
}

/// The outcome of sending a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// It is on its way, and another may follow.
    Done,
    /// It is taken, but no other until the port says so.
    Blocked,
}

/// One line. Its own thread reads; threads of the bus deliver.
#[derive(Debug)]
pub(crate) struct Line {
    name: String,
    state: Mutex<State>,
    kick: OwnedFd,
    /// When the line's thread wakes by itself.
    planned_ns: AtomicI64,
    stop: AtomicBool,
    /// The least time of a message with stamps on the wire, in nanoseconds.
    wire_ns: AtomicI64,
    /// Samples of the bus that were gone before they were taken.
    missed: AtomicU64,
    /// Requests of and to clients without a reply.
    unanswered: AtomicU64,
}

#[derive(Debug)]
struct State {
    agent: Agent,
    bus: Bus,
    port: Box<dyn Port>,
    clients: BTreeMap<ClientKey, ClientState>,
    message: Vec<u8>,
    notices: VecDeque<String>,
    reported: BTreeSet<String>,
    samples_in: u64,
    samples_out: u64,
    too_large: u64,
}

#[derive(Clone, Debug)]
struct ClientState {
    name: String,
    time: ClientTime,
    samples_in: u64,
    samples_out: u64,
}

/// The status of a line.
#[derive(Clone, Debug)]
pub struct LineStatus {
    /// `udp 8888`, `/dev/ttyUSB0`.
    pub name: String,
    /// Its clients.
    pub clients: Vec<ClientStatus>,
    /// Counters of messages.
    pub counters: Counters,
    /// Samples that clients published, those included that have left.
    pub samples_in: u64,
    /// Samples of the bus for clients, those included that have left.
    pub samples_out: u64,
    /// Samples of clients that are larger than the bus takes.
    pub too_large: u64,
    /// Samples of the bus for clients that were gone before they were taken: more came than the machine keeps up with.
    pub missed: u64,
    /// Requests of and to clients that were not answered.
    pub unanswered: u64,
}

/// The status of a client.
#[derive(Clone, Debug)]
pub struct ClientStatus {
    /// Figures of the agent.
    pub figures: ClientFigures,
    /// Its participant's name.
    pub name: String,
    /// Samples that it published.
    pub samples_in: u64,
    /// Samples of the bus for it.
    pub samples_out: u64,
    /// How its samples are stamped.
    pub stamping: Stamping,
    /// Time since its last message.
    pub silent_for: Span,
}

/// Now, on both clocks.
pub(crate) fn now() -> Stamp {
    let clocks = three_clocks();
    Stamp { local: Instant::from_ns(clocks.raw_before_ns), wall: Instant::from_ns(clocks.realtime_ns) }
}

/// An instant of the raw clock on both clocks.
pub(crate) fn stamp_at(raw_ns: i64) -> Stamp {
    let now = now();
    let local = Instant::from_ns(raw_ns);
    // Of the two clocks the wall's is read later, so the arrival is stamped later, never earlier.
    Stamp { local, wall: now.wall + (local - now.local) }
}

impl Line {
    pub(crate) fn new(
        name: String,
        config: AgentConfig,
        references: References,
        nodes: Arc<Nodes>,
        port: Box<dyn Port>,
    ) -> io::Result<Arc<Line>> {
        let state = State {
            agent: Agent::new(config, references),
            bus: Bus::new(nodes),
            port,
            clients: BTreeMap::new(),
            message: Vec::new(),
            notices: VecDeque::new(),
            reported: BTreeSet::new(),
            samples_in: 0,
            samples_out: 0,
            too_large: 0,
        };
        Ok(Arc::new(Line {
            name,
            state: Mutex::new(state),
            kick: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            planned_ns: AtomicI64::new(i64::MAX),
            stop: AtomicBool::new(false),
            wire_ns: AtomicI64::new(0),
            missed: AtomicU64::new(0),
            unanswered: AtomicU64::new(0),
        }))
    }

    /// A message arrived.
    pub(crate) fn handle_message(self: &Arc<Self>, message: &[u8], from: ClientAddress, arrived: Stamp) {
        let mut state = self.lock();
        state.agent.handle_datagram(message, from, arrived);
        state.pump(self);
    }

    /// A message arrived by multicast.
    pub(crate) fn handle_discovery(
        self: &Arc<Self>,
        message: &[u8],
        from: ClientAddress,
        locators: &[([u8; 4], u16)],
    ) {
        let mut state = self.lock();
        state.agent.handle_discovery(message, from, locators);
        state.pump(self);
    }

    /// Nothing can be sent to this address for a while; what is for it waits.
    pub(crate) fn handle_blocked(&self, address: ClientAddress) {
        self.lock().agent.handle_blocked(address);
    }

    /// Clients at this address can be sent to again.
    pub(crate) fn handle_unblocked(self: &Arc<Self>, address: ClientAddress) {
        let mut state = self.lock();
        state.agent.handle_unblocked(address);
        state.pump(self);
    }

    /// This address has gone.
    pub(crate) fn handle_lost(self: &Arc<Self>, address: ClientAddress) {
        let mut state = self.lock();
        state.agent.handle_lost(address, now().local);
        state.pump(self);
    }

    /// Least time on the wire of a message with stamps, for clients that come from now on.
    pub(crate) fn set_wire(&self, wire: Span) {
        self.wire_ns.store(wire.ns(), Ordering::Relaxed);
    }

    /// Does what is due and says how long the thread, the line's own, may sleep.
    pub(crate) fn tick(self: &Arc<Self>) -> Option<Timespec> {
        let mut state = self.lock();
        let now = now().local;
        state.agent.handle_timeout(now);
        state.pump(self);
        let next = state.agent.poll_timeout();
        self.planned_ns.store(next.map_or(i64::MAX, Instant::ns), Ordering::Relaxed);
        let closed = state.bus.take_closed();
        // Ended without the lock, for which they may wait.
        drop(state);
        closed.end();
        next.map(|at| timespec((at - now).ns().max(0)))
    }

    /// Tells the user something.
    pub(crate) fn notice(&self, text: String) {
        let mut state = self.lock();
        state.notice(&self.name, &text);
    }

    pub(crate) fn poll_notice(&self) -> Option<String> {
        self.lock().notices.pop_front()
    }

    pub(crate) fn status(&self) -> LineStatus {
        let now = now().local;
        let state = self.lock();
        let clients = state.agent.clients().map(|figures| {
            let known = state.clients.get(&figures.key);
            ClientStatus {
                figures,
                name: known.map_or_else(String::new, |client| client.name.clone()),
                samples_in: known.map_or(0, |client| client.samples_in),
                samples_out: known.map_or(0, |client| client.samples_out),
                stamping: known.map_or_else(Stamping::default, |client| client.time.stamping),
                silent_for: now - figures.heard_at,
            }
        });
        LineStatus {
            name: self.name.clone(),
            clients: clients.collect(),
            counters: state.agent.counters(),
            samples_in: state.samples_in,
            samples_out: state.samples_out,
            too_large: state.too_large,
            missed: self.missed.load(Ordering::Relaxed),
            unanswered: self.unanswered.load(Ordering::Relaxed),
        }
    }

    /// Ends the line's thread and takes its clients off the bus.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        // Ended without the lock, for which they may wait.
        let threads = self.lock().bus.close_all();
        self.kick();
        threads.end();
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Becomes readable when the thread should look up.
    pub(crate) fn kicked(&self) -> BorrowedFd<'_> {
        self.kick.as_fd()
    }

    /// The thread has looked up.
    pub(crate) fn take_kick(&self) {
        // Nothing to read is as good.
        let _ = rustix::io::read(&self.kick, &mut [0; 8]);
    }

    fn kick(&self) {
        // It fails when 2^64 kicks wait, which wakes as well.
        let _ = rustix::io::write(&self.kick, &1u64.to_ne_bytes());
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere has been printed; what it left is bounded and will do.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inlet for Line {
    /// A sample of the bus for a client.
    fn deliver(self: Arc<Self>, endpoint: EndpointId, sample: Sample) {
        let mut state = self.lock();
        state.samples_out += 1;
        if let Some(client) = state.clients.get_mut(&endpoint.client) {
            client.samples_out += 1;
        }
        state.agent.handle_sample(endpoint, sample, now().local);
        let is_blocked = state.pump(&self);
        let next = state.agent.poll_timeout();
        let has_closed = state.bus.has_closed();
        drop(state);
        // The line's own thread watches for when the port is free again, and ends services: this may be one of theirs.
        if is_blocked
            || has_closed
            || next.is_some_and(|at| at.ns() < self.planned_ns.load(Ordering::Relaxed))
        {
            self.kick();
        }
    }

    /// Samples of the bus for a client were gone before they were taken.
    fn count_missed(&self, samples: u64) {
        self.missed.fetch_add(samples, Ordering::Relaxed);
    }

    fn count_unanswered(&self, messages: u64) {
        self.unanswered.fetch_add(messages, Ordering::Relaxed);
    }

    /// Reports a notice once that would otherwise be repeated again and again.
    fn notice_once(&self, text: String) {
        let mut state = self.lock();
        if state.reported.len() < NOTICES_ONCE_MAX && state.reported.insert(text.clone()) {
            state.notice(&self.name, &text);
        }
    }
}

impl State {
    /// Carries away what the agent has to say; whether the port has enough now.
    fn pump(&mut self, line: &Arc<Line>) -> bool {
        while let Some(event) = self.agent.poll_event() {
            self.handle_event(event, line);
        }
        let mut message = std::mem::take(&mut self.message);
        let begun = now().local;
        let mut is_blocked = false;
        while let Some(transmit) = self.agent.poll_transmit(begun, &mut message) {
            if let Some(departure) = transmit.stamp {
                self.agent.handle_departure(departure, &mut message, now());
            }
            if self.port.send(transmit.to, &message) == Sent::Blocked {
                self.agent.handle_blocked(transmit.to);
                is_blocked = true;
            }
        }
        self.message = message;
        // Faults found while sending: samples that do not reach their clients.
        while let Some(event) = self.agent.poll_event() {
            self.handle_event(event, line);
        }
        is_blocked
    }

    fn handle_event(&mut self, event: Event, line: &Arc<Line>) {
        match event {
            Event::Connected { client, address } => {
                let fresh = ClientState {
                    name: String::new(),
                    time: ClientTime::new(Span::from_ns(line.wire_ns.load(Ordering::Relaxed))),
                    samples_in: 0,
                    samples_out: 0,
                };
                self.clients.entry(client).or_insert(fresh);
                self.notice(&line.name, &format!("client {client} at {address} came"));
            }
            Event::Named { client, name } => {
                if let Some(client) = self.clients.get_mut(&client) {
                    client.name = name;
                }
            }
            Event::Disconnected { client, reason } => {
                let why = match reason {
                    Gone::Left => "took its leave",
                    Gone::Silent => "is silent",
                    Gone::Replaced => "was replaced by another session",
                    Gone::Evicted => "was silent, and made room for another",
                };
                self.notice(&line.name, &format!("client {client} {why}"));
                if reason != Gone::Silent {
                    self.clients.remove(&client);
                }
            }
            Event::Opened(endpoint) => {
                if let Err(fault) = self.bus.open(&endpoint, Arc::<Line>::clone(line)) {
                    self.notice(&line.name, &fault.to_string());
                }
            }
            Event::Closed { endpoint, direction } => self.bus.close(endpoint, direction),
            Event::Published { endpoint, sample, arrived, measured } => {
                let Some(client) = self.clients.get_mut(&endpoint.client) else { return };
                client.samples_in += 1;
                self.samples_in += 1;
                let Some(stamped) = self.bus.stamped(endpoint) else { return };
                let source = client.time.source(stamped, &sample, measured, arrived.local);
                if !self.bus.publish(endpoint, &sample, source) {
                    self.too_large += 1;
                }
            }
            Event::Undeliverable { client, object, bytes } => {
                if let Some(topic) = self.bus.first_undeliverable(client, object) {
                    let name = self.clients.get(&client).map_or("", |client| client.name.as_str());
                    self.notice(&line.name, &format!(
                        "client {client} {name}: a sample of topic {topic} with {bytes} bytes does not reach it: that is longer than \
                         its messages (best effort), or in more pieces than its history holds (reliable; 16 unless --client-history says \
                         more); raise its MTU or history, and say its history"
                    ));
                }
            }
            Event::Exchanged { client, exchange } => {
                if let Some(client) = self.clients.get_mut(&client) {
                    client.time.handle_exchange(&exchange);
                }
            }
        }
    }

    fn notice(&mut self, line: &str, text: &str) {
        if self.notices.len() < NOTICES_MAX {
            self.notices.push_back(format!("{line}: {text}"));
        }
    }
}
