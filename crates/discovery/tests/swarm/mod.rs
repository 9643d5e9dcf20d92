//! A whole swarm in one deterministic simulation: every node is the real state machine.
#![allow(dead_code, missing_docs, unreachable_pub, clippy::expect_used, clippy::panic)] // each user needs a part of it

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use std::net::SocketAddr;

use noctule_discovery::trace;
use noctule_discovery::{
    Counters, DATAGRAM_BYTES_MAX, Destination, Discovery, DiscoveryConfig, Endpoint, EndpointId,
    EndpointKind, Event, Identity, Local, Locator, NodeId, Qos, Reason, Via,
};
use noctule_netsim::{Random, Story};
use noctule_timebase::{Instant, Span};

/// One-way delay of the simulated network.
const DELAY: Span = Span::from_us(200);

pub struct Swarm {
    pub loss: f64,
    pub multicast: bool,
    pub domain: u32,
    seed: u64,
    random: Random,
    now: Instant<Local>,
    nodes: Vec<Node>,
    /// Datagrams on the way, the next to arrive on top.
    flying: BinaryHeap<Reverse<Flight>>,
    letters: BTreeMap<u64, Letter>,
    posted: u64,
    wakes: BinaryHeap<Reverse<(i64, usize)>>,
    story: Option<Story>,
    /// Which node noted what, if it is wanted.
    pub noted: Option<Vec<(usize, trace::Event)>>,
}

/// A small endpoint of any topic; nodes number their endpoints themselves.
pub fn endpoint(kind: EndpointKind, topic: &str) -> Endpoint {
    Endpoint {
        id: EndpointId(0),
        kind,
        topic: topic.into(),
        type_name: "test/Type".into(),
        type_hash: 1,
        formats: 1,
        payload_bytes_max: 64,
        qos: Qos::default(),
        relayed: false,
    }
}

/// Arrival, order, and what.
type Flight = (i64, u64);

struct Letter {
    from: usize,
    bytes: Vec<u8>,
    /// Node, and whether the group's socket gets it.
    to: Vec<(usize, bool)>,
}

struct Node {
    alive: bool,
    id: NodeId,
    /// The earliest wake in the heap.
    wake_ns: i64,
    discovery: Discovery,
    matches: i64,
    mismatches: Vec<String>,
    gone: Vec<Reason>,
}

impl Swarm {
    pub fn new(seed: u64) -> Swarm {
        Swarm {
            loss: 0.0,
            multicast: true,
            domain: 0,
            seed,
            random: Random::new(seed),
            now: Instant::from_ns(0),
            nodes: Vec::new(),
            flying: BinaryHeap::new(),
            letters: BTreeMap::new(),
            posted: 0,
            wakes: BinaryHeap::new(),
            story: Story::wanted("discovery", seed),
            noted: None,
        }
    }

    pub fn locator(node: usize) -> Locator {
        SocketAddr::from(([10, 0, (node >> 8) as u8, node as u8], 7411))
    }

    pub fn start(&mut self, name: &str) -> usize {
        self.start_with_peers(name, Vec::new())
    }

    pub fn start_with_peers(&mut self, name: &str, peers: Vec<Locator>) -> usize {
        let (id, discovery) = self.fresh(name, peers);
        self.nodes.push(Node {
            alive: true,
            id,
            wake_ns: self.now.ns(),
            discovery,
            matches: 0,
            mismatches: Vec::new(),
            gone: Vec::new(),
        });
        self.wakes.push(Reverse((self.now.ns(), self.nodes.len() - 1)));
        self.nodes.len() - 1
    }

    fn fresh(&mut self, name: &str, peers: Vec<Locator>) -> (NodeId, Discovery) {
        let id = [self.random.bits().to_le_bytes(), self.random.bits().to_le_bytes()].concat();
        let id = NodeId(id.try_into().expect("sixteen bytes"));
        let me = Identity { id, name: name.into(), host: self.random.bits(), port: 7411 };
        let config = DiscoveryConfig { domain: self.domain, ..DiscoveryConfig::default() };
        let secret = [self.random.bits().to_le_bytes(), self.random.bits().to_le_bytes()].concat();
        let secret = secret.try_into().expect("sixteen bytes");
        let mut discovery = Discovery::new(config, me, peers, secret, self.now);
        if self.story.is_some() || self.noted.is_some() {
            discovery.trace().start();
        }
        (id, discovery)
    }

    /// The same address, another life.
    pub fn restart(&mut self, node: usize) {
        (self.nodes[node].id, self.nodes[node].discovery) = self.fresh("again", Vec::new());
        self.nodes[node].matches = 0;
        self.wake(node);
    }

    pub fn kill(&mut self, node: usize) {
        self.nodes[node].alive = false;
    }

    pub fn leave(&mut self, node: usize) {
        self.nodes[node].discovery.leave();
        let mut bytes = Vec::new();
        let destination = self.nodes[node].discovery.poll_transmit(self.now, &mut bytes).expect("a goodbye");
        self.send(node, destination, &bytes);
        self.kill(node);
    }

    pub fn add(&mut self, node: usize, endpoint: Endpoint) -> EndpointId {
        let id = self.nodes[node].discovery.add(endpoint, self.now).expect("room in the catalogue");
        self.wake(node);
        id
    }

    pub fn remove(&mut self, node: usize, id: EndpointId) {
        self.nodes[node].discovery.remove(id, self.now);
        self.wake(node);
    }

    pub fn matches(&self, node: usize) -> i64 {
        self.nodes[node].matches
    }

    pub fn mismatches(&self, node: usize) -> &[String] {
        &self.nodes[node].mismatches
    }

    pub fn gone(&self, node: usize) -> &[Reason] {
        &self.nodes[node].gone
    }

    pub fn counters(&self, node: usize) -> Counters {
        self.nodes[node].discovery.counters()
    }

    pub fn run(&mut self, duration: Span) {
        let end = self.now + duration;
        loop {
            let letter = self.flying.peek().map_or(i64::MAX, |Reverse((at, _))| *at);
            let wake = self.wakes.peek().map_or(i64::MAX, |Reverse((at, _))| *at);
            let next = Instant::from_ns(letter.min(wake));
            if next > end {
                break;
            }
            self.now = self.now.max(next);
            if letter <= wake {
                self.deliver();
            } else if let Some(Reverse((_, node))) = self.wakes.pop() {
                self.serve(node);
            }
        }
        self.now = end;
    }

    fn deliver(&mut self) {
        let Some(Reverse((_, number))) = self.flying.pop() else { return };
        let Letter { from, bytes, to } = self.letters.remove(&number).expect("each is delivered once");
        for (node, group) in to {
            if !self.nodes[node].alive || self.random.chance(self.loss) {
                continue;
            }
            let via = if group { Via::Group } else { Via::Unicast };
            let result =
                self.nodes[node].discovery.handle_datagram(&bytes, Swarm::locator(from), via, self.now);
            assert_eq!(result, Ok(()), "seed {}", self.seed);
            self.wake(node);
        }
    }

    fn wake(&mut self, node: usize) {
        self.note_events(node);
        let at = self.nodes[node].discovery.poll_timeout().max(self.now);
        if at != Instant::MAX && at.ns() < self.nodes[node].wake_ns {
            self.nodes[node].wake_ns = at.ns();
            self.wakes.push(Reverse((at.ns(), node)));
        }
    }

    fn serve(&mut self, node: usize) {
        self.nodes[node].wake_ns = i64::MAX;
        if !self.nodes[node].alive {
            return;
        }
        self.nodes[node].discovery.handle_timeout(self.now);
        let mut bytes = Vec::new();
        while let Some(destination) = self.nodes[node].discovery.poll_transmit(self.now, &mut bytes) {
            assert!(bytes.len() <= DATAGRAM_BYTES_MAX);
            self.send(node, destination, &bytes);
        }
        self.wake(node);
    }

    fn send(&mut self, from: usize, destination: Destination, bytes: &[u8]) {
        let mut to: Vec<(usize, bool)> = Vec::new();
        let nodes = self.nodes.len();
        let index = |locator: &Locator| {
            match locator.ip() {
                std::net::IpAddr::V4(ip) => {
                    Some(usize::from(u16::from_be_bytes([ip.octets()[2], ip.octets()[3]])))
                }
                std::net::IpAddr::V6(_) => None,
            }
            .filter(|node| *node < nodes)
        };
        match destination {
            Destination::One(locator) => to.extend(index(&locator).map(|node| (node, false))),
            Destination::Everyone => {
                if self.multicast {
                    // The group brings a node its own words back.
                    to.extend((0..self.nodes.len()).map(|node| (node, true)));
                }
                let peers: Vec<_> = self.nodes[from].discovery.unicast_peers().collect();
                to.extend(peers.iter().filter_map(index).map(|node| (node, false)));
            }
        }
        self.posted += 1;
        self.letters.insert(self.posted, Letter { from, bytes: bytes.to_vec(), to });
        self.flying.push(Reverse(((self.now + DELAY).ns(), self.posted)));
    }

    fn note_events(&mut self, number: usize) {
        let node = &mut self.nodes[number];
        if let Some(story) = &mut self.story {
            story.drain(&node.id.to_string(), node.discovery.trace());
        }
        if let Some(noted) = &mut self.noted {
            noted.extend(
                std::iter::from_fn(|| node.discovery.trace().poll()).map(|(_, event)| (number, event)),
            );
            assert_eq!(node.discovery.trace().poll_dropped(), 0);
        }
        while let Some(event) = node.discovery.poll_event() {
            match event {
                Event::Matched { .. } => node.matches += 1,
                Event::Unmatched { .. } => node.matches -= 1,
                Event::Mismatched { why, .. } => node.mismatches.push(why.to_string()),
                Event::Gone { reason, .. } => node.gone.push(reason),
                Event::Joined { .. }
                | Event::Moved { .. }
                | Event::AlsoAt { .. }
                | Event::Changed { .. }
                | Event::Beside { .. } => {}
            }
        }
    }
}
