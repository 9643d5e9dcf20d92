//! Endpoints without sockets, joined by links, in virtual time.
//!
//! # Problem
//!
//! A protocol's state machine takes `now` and bytes and gives bytes and timers. To know what it does
//! over hours of a bad link, many of them must be joined by links and be called exactly when they would
//! be, without an hour passing, and the same way every time.
//!
//! # Approach
//!
//! A star, as the live emulator builds it: every node has one transmitter towards all others, and
//! to each of them a channel of its own. Node 0 is `a`: it sends by the direction a>b of the
//! specification, the others by b>a. Between events nothing happens, so time jumps from one to the
//! next. Each node may have a clock of its own, and is given the time of that one only.
//!
//! Equal seeds give equal runs. Events at one moment happen in this order: deliveries by sending node,
//! then timeouts by node, then transmissions by node.

use noctule_timebase::{Instant, Span};

use crate::Truth;
use crate::clock::Clock;
use crate::link::{Link, LinkSpec};

/// Rounds of calls at one moment before a network is taken to be stuck: endpoints that answer each
/// other without any delay, or that ask to be woken in the past.
pub const ROUNDS_MAX: usize = 10_000;
/// Datagrams one node may send in one go; beyond that it is assumed never to end.
pub const TRANSMISSIONS_MAX: usize = 100_000;

/// Datagrams that one node takes before what they provoke is sent, as a program does that reads a socket: a link that keeps order lets
/// hundreds arrive at one moment behind one that was delayed.
pub const DELIVERIES_MAX: usize = 32;

/// The name of a node on the network; at first its number. It can change, as an IP address can.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Address(pub u32);

/// The destination of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// The node that has this address when it is sent; without one it is dropped and counted.
    One(Address),
    /// Every other node.
    All,
}

/// A datagram an endpoint wants sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Its destination.
    pub to: Destination,
    /// What.
    pub bytes: Vec<u8>,
}

/// A state machine that can be a node. `now` is always that of the node's own clock.
///
/// After each `handle_*` the network calls `poll_transmit` until it returns `None`, then
/// `poll_timeout`.
pub trait Endpoint {
    /// The marker of this endpoint's clock.
    type Clock;

    /// A datagram has arrived.
    fn handle_datagram(&mut self, now: Instant<Self::Clock>, from: Address, bytes: &[u8]);
    /// The time that `poll_timeout` returned has come.
    fn handle_timeout(&mut self, now: Instant<Self::Clock>);
    /// The next datagram to be sent now.
    fn poll_transmit(&mut self, now: Instant<Self::Clock>) -> Option<Transmit>;
    /// When to call [`Self::handle_timeout`]; `None` for never.
    fn poll_timeout(&self) -> Option<Instant<Self::Clock>>;
}

/// Joined endpoints and the time.
#[derive(Debug)]
pub struct Network<E> {
    now: Instant<Truth>,
    nodes: Vec<Node<E>>,
    unroutable: u64,
}

/// Why an endpoint keeps time from passing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Stuck {
    /// More than [`ROUNDS_MAX`] rounds at one moment.
    #[error("after {ROUNDS_MAX} rounds at {at:?} node {node} still wants to be called at once")]
    Rounds {
        /// When.
        at: Instant<Truth>,
        /// One of those whose call is due; the number of nodes if it is a delivery.
        node: usize,
    },
    /// More than [`TRANSMISSIONS_MAX`] datagrams in one go.
    #[error("node {node} has sent {TRANSMISSIONS_MAX} datagrams at {at:?} and does not end")]
    Transmissions {
        /// When.
        at: Instant<Truth>,
        /// Which node.
        node: usize,
    },
}

#[derive(Debug)]
struct Node<E> {
    endpoint: E,
    address: Address,
    clock: Option<Clock>,
    link: Link,
}

impl<E: Endpoint> Network<E> {
    /// A star of all endpoints at time zero. With two, it is the plain link of `spec`.
    pub fn new(endpoints: Vec<E>, spec: &LinkSpec, seed: u64) -> Network<E> {
        let start = Instant::from_ns(0);
        let count = endpoints.len();
        let nodes = endpoints.into_iter().enumerate().map(|(number, endpoint)| {
            let direction = if number == 0 { &spec.a_to_b } else { &spec.b_to_a };
            Node {
                endpoint,
                address: Address(number as u32),
                clock: None,
                link: Link::to_receivers(direction, count, start, node_seed(seed, number)),
            }
        });
        Network { now: start, nodes: nodes.collect(), unroutable: 0 }
    }

    /// Gives a node a clock of its own, which counts from the network's time zero. Without, it is
    /// given the true time.
    pub fn set_clock(&mut self, node: usize, clock: Clock) {
        self.nodes[node].clock = Some(clock);
    }

    /// Gives a node another address; what is under way to the old one still arrives.
    pub fn set_address(&mut self, node: usize, address: Address) {
        self.nodes[node].address = address;
    }

    /// Puts another endpoint in a node's place, as a restart does, and returns the old one.
    pub fn replace(&mut self, node: usize, endpoint: E) -> E {
        std::mem::replace(&mut self.nodes[node].endpoint, endpoint)
    }

    /// An endpoint, to look at or to have it do something at [`Self::local_now`]. The next call that
    /// lets time pass first fetches what it wants sent.
    pub fn endpoint(&mut self, node: usize) -> &mut E {
        &mut self.nodes[node].endpoint
    }

    /// All endpoints, in the order of their nodes; what is on its way is lost.
    pub fn into_endpoints(self) -> Vec<E> {
        self.nodes.into_iter().map(|node| node.endpoint).collect()
    }

    /// The time.
    pub fn now(&self) -> Instant<Truth> {
        self.now
    }

    /// The time by a node's own clock.
    pub fn local_now(&self, node: usize) -> Instant<E::Clock> {
        self.nodes[node].local(self.now)
    }

    /// The way out of a node, with its counts. The receiver of a channel is the node's number.
    pub fn link(&self, node: usize) -> &Link {
        &self.nodes[node].link
    }

    /// Datagrams sent to addresses without a node.
    pub fn unroutable(&self) -> u64 {
        self.unroutable
    }

    /// Lets `span` pass.
    pub fn run_for(&mut self, span: Span) -> Result<(), Stuck> {
        self.run_until(self.now + span, |_| false).map(|_| ())
    }

    /// Lets time pass until `end`, or until `done` returns true after the events of a moment. True if
    /// `done` did.
    pub fn run_until(
        &mut self,
        end: Instant<Truth>,
        mut done: impl FnMut(&mut Network<E>) -> bool,
    ) -> Result<bool, Stuck> {
        loop {
            self.settle()?;
            if done(self) {
                return Ok(true);
            }
            match self.next_event().filter(|next| *next <= end) {
                // Something that `done` made due at once.
                Some(next) => self.now = self.now.max(next),
                None => {
                    self.now = self.now.max(end);
                    return Ok(false);
                }
            }
        }
    }

    /// Everything that happens at this moment.
    fn settle(&mut self) -> Result<(), Stuck> {
        for _ in 0..ROUNDS_MAX {
            for node in 0..self.nodes.len() {
                self.transmit(node)?;
            }
            if self.next_event().is_none_or(|next| next > self.now) {
                return Ok(());
            }
            for node in 0..self.nodes.len() {
                self.deliver_from(node);
            }
            for node in &mut self.nodes {
                let now = node.local(self.now);
                if node.endpoint.poll_timeout().is_some_and(|timeout| timeout <= now) {
                    node.endpoint.handle_timeout(now);
                }
            }
        }
        let wants = |node: &Node<E>| node.wake(self.now) == Some(self.now);
        let node = self.nodes.iter().position(wants).unwrap_or(self.nodes.len());
        Err(Stuck::Rounds { at: self.now, node })
    }

    fn transmit(&mut self, number: usize) -> Result<(), Stuck> {
        for _ in 0..TRANSMISSIONS_MAX {
            let now = self.nodes[number].local(self.now);
            let Some(transmit) = self.nodes[number].endpoint.poll_transmit(now) else { return Ok(()) };
            match transmit.to {
                Destination::All => {
                    self.nodes[number].link.handle_packet_except(self.now, number, &transmit.bytes);
                }
                Destination::One(address) => {
                    match self.nodes.iter().position(|node| node.address == address) {
                        Some(to) => self.nodes[number].link.handle_packet_to(self.now, to, &transmit.bytes),
                        None => self.unroutable += 1,
                    }
                }
            }
        }
        Err(Stuck::Transmissions { at: self.now, node: number })
    }

    /// What has arrived, until one node has taken as much as it does in one go: what is left it takes after its answer.
    fn deliver_from(&mut self, sender: usize) {
        let from = self.nodes[sender].address;
        let mut taken = vec![0; self.nodes.len()];
        while let Some(delivery) = self.nodes[sender].link.poll_deliver(self.now) {
            let receiver = &mut self.nodes[delivery.receiver];
            let now = receiver.local(self.now);
            receiver.endpoint.handle_datagram(now, from, &delivery.bytes);
            taken[delivery.receiver] += 1;
            if taken[delivery.receiver] == DELIVERIES_MAX {
                return;
            }
        }
    }

    fn next_event(&self) -> Option<Instant<Truth>> {
        let events = self.nodes.iter().flat_map(|node| [node.link.poll_timeout(), node.wake(self.now)]);
        events.flatten().min()
    }
}

impl<E: Endpoint> Node<E> {
    fn local(&self, now: Instant<Truth>) -> Instant<E::Clock> {
        let offset = self.clock.as_ref().map(|clock| clock.offset_at(Span::from_ns(now.ns())));
        now.translate(offset.unwrap_or(Span::ZERO))
    }

    /// The true time of the endpoint's timeout, not before `now`. A guess by the offset there is now
    /// is corrected by what the clock will then show; what a step still makes wrong shows as waking
    /// early, which is harmless, or late by no more than the step.
    fn wake(&self, now: Instant<Truth>) -> Option<Instant<Truth>> {
        let timeout = self.endpoint.poll_timeout()?;
        let left = timeout - self.local(now);
        if left <= Span::ZERO {
            return Some(now);
        }
        let guess = now + left;
        let mut wake = guess;
        for _ in 0..3 {
            wake += timeout - self.local(wake);
        }
        Some(if wake > now { wake } else { guess })
    }
}

/// The seed of the link out of a node, for the simulation and the live emulator alike.
pub fn node_seed(seed: u64, node: usize) -> u64 {
    seed.wrapping_add((node as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

#[cfg(test)]
mod tests;
