//! The state machine.

mod hello;
mod matching;
mod noting;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;

use noctule_qlog::Log;
use noctule_timebase::{Instant, Span};

use crate::catalogue::Catalogue;
use crate::config::{DiscoveryConfig, Identity};
use crate::endpoint::{Endpoint, EndpointId, EndpointKind};
use crate::event::{Counters, Destination, Event, Reason, Via};
use crate::neighbour::{About, Difference, Neighbour, Query};
use crate::path::PathKey;
use crate::shares::Shares;
use crate::token_bucket::{Jitter, TokenBucket};
use crate::trace;
use crate::types::{Local, Locator};
use crate::wire::{Body, Datagram, Malformed, NODE_NAME_BYTES_MAX, NodeId, PAGES_LIMIT, Page, PageSet};

/// Other nodes that can be known at once.
pub const NODES_LIMIT: usize = 4096;
/// Pages of other nodes held at once, each of at most 1,164 bytes of endpoints.
const PAGES_HELD_LIMIT: usize = 32 * PAGES_LIMIT;
/// Partners of one of our endpoints.
pub const MATCHES_LIMIT: usize = 1024;
/// Partners of one of our endpoints that are of one node.
pub const MATCHES_PER_NODE_LIMIT: usize = 128;
/// Path challenges and responses that wait to be sent.
const SEND_QUEUE_LIMIT: usize = 256;
/// A hello comes once over each network that two nodes share: copies from another address within this time of that from the node's locator mean nothing.
const SAME_HELLO: Span = Span::from_ms(50);
/// From so many nodes at one address on, they are sent to by the one port that passes a datagram on to all.
const WELL_KNOWN_PORT_FROM_NODES: usize = 4;
/// Nodes that get a hello by unicast because theirs came so.
pub const STATIC_PEERS_LIMIT: usize = 64;
/// Events that wait for [`Discovery::poll_event`].
const EVENTS_LIMIT: usize = 1 << 16;

/// When a starting node sends hellos, after its start.
const START_MS: [i64; 4] = [0, 30, 120, 400];
/// Hellos after a change of the network begin again no sooner than this.
const CHANGE_SPACING: Span = Span::from_ms(100);
/// Between a change and its announcement, so that several changes travel together.
const GATHER: Span = Span::from_ms(2);
/// Answers to newcomers are spread over this for each node known, within [`SPREAD_LIMITS`].
const SPREAD_PER_NODE: Span = Span::from_us(500);
/// The least and the most time over which answers to newcomers are spread.
const SPREAD_LIMITS: (Span, Span) = (Span::from_ms(2), Span::from_s(1));
/// Answers to newcomers, and hellos before their time, are at least this far apart.
const HELLO_SPACING: Span = Span::from_ms(25);
/// Pages may be right behind the hello that announces them: wait so long before requesting them.
const PAGES_WAIT: Span = Span::from_ms(10);
/// Between queries without an answer, doubled each time up to 32-fold.
const ASK_AGAIN: Span = Span::from_ms(50);
/// A node is probed when its lifetime has so much left.
const PROBE_BEFORE: Span = Span::from_ms(1_600);
/// A probe is repeated after this.
const PROBE_AGAIN: Span = Span::from_ms(200);
/// A hello that promises a longer life than this counts as one of this.
const LIFETIME_MAX: Span = Span::from_s(60);
/// From twice as many nodes on, lifetimes are extended by [`LIFETIME_PART`].
const FEW_NODES: usize = 8;
/// For each whole doubling of the number of nodes beyond [`FEW_NODES`], a lifetime is longer by this part of itself.
const LIFETIME_PART: i64 = 12;
/// A timer is put off when it has less than this left.
const TIMER_SLACK: Span = Span::from_s(1);

/// Endpoints of other nodes on one topic.
type RemoteEndpoints = BTreeMap<(NodeId, EndpointId), Arc<Endpoint>>;

/// One node's view of all others.
#[derive(Clone, Debug)]
pub struct Discovery {
    config: DiscoveryConfig,
    me: Identity,
    static_peers: Vec<Locator>,
    catalogue: Catalogue,
    local_topics: BTreeMap<String, Vec<EndpointId>>,
    neighbours: BTreeMap<NodeId, Neighbour>,
    remote_topics: BTreeMap<String, RemoteEndpoints>,
    matched: BTreeSet<(EndpointId, NodeId, EndpointId)>,
    mismatched: BTreeSet<(EndpointId, NodeId, EndpointId)>,
    /// One of each neighbour.
    timers: BTreeSet<(Instant<Local>, NodeId)>,
    shares: Shares,
    path: PathKey,
    send_queue: VecDeque<(Locator, Body)>,
    started: Instant<Local>,
    start_hellos: usize,
    next_hello: Instant<Local>,
    last_hello: Option<Instant<Local>>,
    /// The next hello is not the regular one: it is paid from the budget.
    early: bool,
    pages_due: Option<Instant<Local>>,
    pages_to_send: BTreeSet<u16>,
    last_page: u16,
    announced: u32,
    leaving: bool,
    generation: u64,
    budget: TokenBucket,
    jitter: Jitter,
    events: VecDeque<Event>,
    counters: Counters,
    log: Log<trace::Event>,
}

impl Discovery {
    /// A node that starts at `now`. Static peers (at most [`STATIC_PEERS_LIMIT`]; more are cut) get by
    /// unicast what the group gets. `secret` must be known to no other node: path challenges are made of it, and what spreads its
    /// answers among those of the others.
    pub fn new(
        config: DiscoveryConfig,
        mut me: Identity,
        mut static_peers: Vec<Locator>,
        secret: [u8; 16],
        now: Instant<Local>,
    ) -> Discovery {
        let path = PathKey::new(secret);
        static_peers.truncate(STATIC_PEERS_LIMIT);
        let end = (0..=me.name.len().min(NODE_NAME_BYTES_MAX)).rfind(|end| me.name.is_char_boundary(*end));
        me.name.truncate(end.unwrap_or(0));
        me.name.retain(|character| !character.is_control());
        Discovery {
            me,
            static_peers,
            catalogue: Catalogue::default(),
            local_topics: BTreeMap::new(),
            neighbours: BTreeMap::new(),
            remote_topics: BTreeMap::new(),
            matched: BTreeSet::new(),
            mismatched: BTreeSet::new(),
            timers: BTreeSet::new(),
            shares: Shares::default(),
            send_queue: VecDeque::new(),
            started: now,
            start_hellos: 0,
            next_hello: now,
            last_hello: None,
            early: false,
            pages_due: None,
            pages_to_send: BTreeSet::new(),
            last_page: u16::MAX,
            announced: 0,
            leaving: false,
            generation: 0,
            budget: TokenBucket::new(config.budget_bytes_per_s, config.budget_saved_bytes, now),
            jitter: Jitter::new(path.seed()),
            path,
            events: VecDeque::new(),
            counters: Counters::default(),
            log: Log::default(),
            config,
        }
    }

    /// Adds an endpoint of this node; its `id` is overwritten. `None` if the catalogue is full
    /// ([`PAGES_LIMIT`]). Names must have passed [`Endpoint::check_names`].
    pub fn add(&mut self, endpoint: Endpoint, now: Instant<Local>) -> Option<EndpointId> {
        self.log.at(now);
        let topic = endpoint.topic.clone();
        let id = self.catalogue.add(endpoint)?;
        self.local_topics.entry(topic.clone()).or_default().push(id);
        let others: Vec<_> = self.remote_topics.get(&topic).into_iter().flatten().collect();
        let others: Vec<_> =
            others.into_iter().map(|((node, _), endpoint)| (*node, endpoint.clone())).collect();
        others.into_iter().for_each(|(node, remote)| self.pair(id, node, &remote));
        self.announce(now);
        Some(id)
    }

    /// Takes an endpoint of this node away.
    pub fn remove(&mut self, id: EndpointId, now: Instant<Local>) {
        self.log.at(now);
        let Some(endpoint) = self.catalogue.remove(id) else { return };
        if let Some(ids) = self.local_topics.get_mut(&endpoint.topic) {
            ids.retain(|other| *other != id);
            if ids.is_empty() {
                self.local_topics.remove(&endpoint.topic);
            }
        }
        let range = (id, NodeId([0; 16]), EndpointId(0))..=(id, NodeId([255; 16]), EndpointId(u32::MAX));
        self.mismatched.retain(|(local, ..)| *local != id);
        let partners: Vec<_> = self.matched.range(range).copied().collect();
        for pair in partners {
            self.matched.remove(&pair);
            self.report(Event::Unmatched { local: pair.0, node: pair.1, remote: pair.2 });
        }
        self.announce(now);
    }

    /// Announces of a reader of this node whether another process of its host hands it the samples of other hosts.
    pub fn set_relayed(&mut self, id: EndpointId, relayed: bool, now: Instant<Local>) {
        if self.catalogue.set_relayed(id, relayed) {
            self.announce(now);
        }
    }

    /// Sends a bye with the next [`poll_transmit`](Discovery::poll_transmit), and nothing after it.
    pub fn leave(&mut self) {
        self.leaving = true;
    }

    /// A datagram from another node (or an echo of our own, which is ignored).
    ///
    /// # Errors
    /// Why it is not one of ours; it is counted and nothing has changed.
    pub fn handle_datagram(
        &mut self,
        bytes: &[u8],
        source: Locator,
        via: Via,
        now: Instant<Local>,
    ) -> Result<(), Malformed> {
        let Datagram { from, domain, body } =
            Datagram::decode(bytes).inspect_err(|_| count(&mut self.counters.malformed))?;
        if from == self.me.id {
            return Ok(());
        }
        if domain != self.config.domain {
            count(&mut self.counters.other_domain);
            return Ok(());
        }
        count(&mut self.counters.received);
        self.log.at(now);
        match body {
            Body::Hello(hello) => {
                // With the scope of a link-local address.
                let mut locator = source;
                locator.set_port(hello.port);
                self.handle_hello((from, hello), locator, via, now);
            }
            Body::Page(page) if self.is_at(from, source) => self.handle_page(from, page, now),
            Body::Query { to, since, except } if to == self.me.id => self.handle_query(since, &except, now),
            Body::Bye if self.is_at(from, source) => self.forget(from, Reason::Left),
            Body::PathChallenge { to, number } if to == self.me.id => {
                let response = Body::PathResponse { number, hello: self.current_hello(false) };
                self.post(source, response);
            }
            Body::PathResponse { number, hello } => {
                self.handle_path_response((from, number, hello), source, now);
            }
            Body::Page(_) | Body::Query { .. } | Body::Bye | Body::PathChallenge { .. } => {}
        }
        Ok(())
    }

    /// Whether a datagram of a node comes from where that node is. Else any node could send a bye in its name.
    fn is_at(&mut self, node: NodeId, source: Locator) -> bool {
        // Of a node that is not known nothing is kept: its hello will bring it again.
        let Some(neighbour) = self.neighbours.get(&node) else { return false };
        let is_at = neighbour.locator == source;
        if !is_at {
            count(&mut self.counters.misplaced);
            self.log.note(|| trace::Event::Misplaced { node, locator: source });
        }
        is_at
    }

    fn post(&mut self, to: Locator, body: Body) {
        // What does not fit is requested again with the next hello.
        if self.send_queue.len() < SEND_QUEUE_LIMIT {
            self.send_queue.push_back((to, body));
        }
    }

    /// A node is known to be dead by other means than silence, such as the end of a connection.
    pub fn handle_death(&mut self, node: NodeId) {
        self.forget(node, Reason::Died);
    }

    /// Time has passed: a node that was silent too long is gone.
    pub fn handle_timeout(&mut self, now: Instant<Local>) {
        self.log.at(now);
        let fired: Vec<NodeId> = self.fired(now).collect();
        for node in fired {
            match self.neighbours.get(&node) {
                Some(neighbour) if neighbour.expires <= now => self.forget(node, Reason::Silent),
                _ => self.set_timer(node, now),
            }
        }
    }

    /// The next event, in order.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Writes the next datagram that is due into `out` (cleared first) and returns its destination.
    pub fn poll_transmit(&mut self, now: Instant<Local>, out: &mut Vec<u8>) -> Option<Destination> {
        out.clear();
        self.log.at(now);
        let (body, destination) = self.next_due(now)?;
        Datagram { from: self.me.id, domain: self.config.domain, body }.encode(out);
        count(&mut self.counters.sent);
        self.counters.sent_bytes = self.counters.sent_bytes.saturating_add(out.len() as u64);
        Some(destination)
    }

    /// When [`poll_transmit`](Discovery::poll_transmit) or
    /// [`handle_timeout`](Discovery::handle_timeout) next have something to do.
    pub fn poll_timeout(&self) -> Instant<Local> {
        if !self.send_queue.is_empty() {
            return self.started;
        }
        // A question has to be paid; a node that is to be given up waits for as long, a few milliseconds.
        let timer = self.timers.first().map(|(at, _)| (*at).max(self.budget.ready_at(QUERY_BYTES)));
        let pages = self.pages_due.zip(self.next_page());
        let pages = pages.map(|(at, page)| at.max(self.budget.ready_at(self.catalogue.page_bytes(page))));
        [timer, pages].into_iter().flatten().fold(self.hello_at(), Instant::min)
    }

    /// Addresses that get by unicast what the group gets: the static peers, and nodes whose hello came by unicast, several at one
    /// address by their host's well-known port.
    pub fn unicast_peers(&self) -> impl Iterator<Item = Locator> + use<> {
        let mut by_host: BTreeMap<IpAddr, Vec<Locator>> = BTreeMap::new();
        for neighbour in self.neighbours.values().filter(|neighbour| neighbour.unicast) {
            by_host.entry(neighbour.locator.ip()).or_default().push(neighbour.locator);
        }
        let mut learned = Vec::new();
        for mut locators in by_host.into_values() {
            if let (Some(port), true) =
                (self.config.well_known_port, locators.len() >= WELL_KNOWN_PORT_FROM_NODES)
            {
                locators.truncate(1);
                locators.iter_mut().for_each(|locator| locator.set_port(port));
            }
            learned.extend(locators);
        }
        let is_reached = |peer: &Locator| {
            let is_whole_host = |fixed: &Locator| Some(fixed.port()) == self.config.well_known_port;
            let reaches = |fixed: &Locator| fixed == peer || is_whole_host(fixed) && fixed.ip() == peer.ip();
            self.static_peers.iter().any(reaches)
        };
        learned.retain(|peer| !is_reached(peer));
        learned.truncate(STATIC_PEERS_LIMIT);
        self.static_peers.clone().into_iter().chain(learned)
    }

    /// Every endpoint known of other nodes, with its node.
    pub fn endpoints(&self) -> impl Iterator<Item = (NodeId, &Endpoint)> {
        self.neighbours
            .iter()
            .flat_map(|(id, neighbour)| neighbour.endpoints().map(move |endpoint| (*id, endpoint.as_ref())))
    }

    /// Counts what has changed in [`nodes`](Discovery::nodes) and [`endpoints`](Discovery::endpoints): as long as it stays the same, so do they.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Every other node known: number, name, locator, whether it is on this host.
    pub fn nodes(&self) -> impl Iterator<Item = (NodeId, &str, Locator, bool)> {
        self.neighbours
            .iter()
            .map(|(id, neighbour)| (*id, neighbour.hello.name.as_str(), neighbour.locator, self.is_here(*id)))
    }

    /// Readers of other nodes of this host on the topic of one of our endpoints.
    pub fn readers_beside(&self, local: EndpointId) -> impl Iterator<Item = (NodeId, &Arc<Endpoint>)> {
        let topic = self.catalogue.endpoint(local).and_then(|ours| self.remote_topics.get(&ours.topic));
        let readers = topic.into_iter().flatten().filter(|(_, other)| other.kind == EndpointKind::Reader);
        readers.map(|((node, _), other)| (*node, other)).filter(|(node, _)| self.is_here(*node))
    }

    /// An endpoint of another node on the topic of one of ours.
    pub fn remote(&self, local: EndpointId, (node, id): (NodeId, EndpointId)) -> Option<&Arc<Endpoint>> {
        self.remote_topics.get(&self.catalogue.endpoint(local)?.topic)?.get(&(node, id))
    }

    /// The number of a node's host.
    pub fn host(&self, node: NodeId) -> Option<u64> {
        self.neighbours.get(&node).map(|neighbour| neighbour.hello.host)
    }

    /// Whether another node, which is known, is on this host.
    pub fn is_here(&self, node: NodeId) -> bool {
        self.host(node) == Some(self.me.host)
    }

    /// The name of a node.
    pub fn name(&self, node: NodeId) -> Option<&str> {
        self.neighbours.get(&node).map(|neighbour| neighbour.hello.name.as_str())
    }

    /// Where a node's data socket is.
    pub fn locator(&self, node: NodeId) -> Option<Locator> {
        self.neighbours.get(&node).map(|neighbour| neighbour.locator)
    }

    /// An endpoint of this node.
    pub fn local(&self, id: EndpointId) -> Option<&Endpoint> {
        self.catalogue.endpoint(id)
    }

    /// Counters of discovery so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    // — pages —

    fn announce(&mut self, now: Instant<Local>) {
        self.pages_to_send.extend(self.catalogue.changed_since(self.announced));
        self.announced = self.catalogue.revision();
        self.send_pages_at(now + GATHER);
        self.say_hello_early(now + GATHER);
    }

    fn send_pages_at(&mut self, at: Instant<Local>) {
        self.pages_due = Some(self.pages_due.map_or(at, |due| due.min(at)));
    }

    fn handle_query(&mut self, since: u32, except: &PageSet, now: Instant<Local>) {
        let changed: Vec<_> =
            self.catalogue.changed_since(since).filter(|page| !except.contains(*page)).collect();
        if changed.is_empty() {
            // All it may have missed is our hello.
            self.say_hello_early(now);
            return;
        }
        self.pages_to_send.extend(changed);
        let wait = self.jitter.up_to(PAGES_WAIT);
        self.send_pages_at(now + wait);
    }

    fn handle_page(&mut self, from: NodeId, page: Page, now: Instant<Local>) {
        let Some(neighbour) = self.neighbours.get_mut(&from) else { return };
        let ip = neighbour.locator.ip();
        let is_new = !neighbour.holds(page.number);
        if is_new && (self.shares.pages() >= PAGES_HELD_LIMIT || !self.shares.has_room_for_page(ip)) {
            count(&mut self.counters.refused_full);
            self.log.note(|| trace::Event::PageRefused { node: from, page: page.number });
            return;
        }
        let number = page.number;
        let Difference { gone, new, changed } = neighbour.apply(page);
        self.log.note(|| {
            let [new, gone] = [new.len() as u32, gone.len() as u32];
            trace::Event::PageReceived { node: from, page: number, new, gone }
        });
        if !(gone.is_empty() && new.is_empty() && changed.is_empty()) {
            self.generation += 1;
        }
        if is_new {
            self.shares.add_page(ip);
        }
        for endpoint in gone {
            self.drop_remote(from, &endpoint);
        }
        for endpoint in new {
            self.take_remote(from, endpoint);
        }
        for endpoint in changed {
            self.change_remote(from, endpoint);
        }
        self.plan_query(from, now);
    }

    /// Plans the next question to a node: soon, if the digest does not match what is held; else shortly
    /// before its lifetime ends, in case only its hellos were lost.
    fn plan_query(&mut self, node: NodeId, now: Instant<Local>) {
        let Some(neighbour) = self.neighbours.get_mut(&node) else { return };
        let whole = neighbour.check_complete();
        let query = match neighbour.query {
            _ if whole => Query { at: neighbour.expires - PROBE_BEFORE, asked: 0, about: About::Presence },
            Some(Query { about: About::Pages, .. }) => return self.set_timer(node, now),
            _ => {
                Query { at: now + PAGES_WAIT + self.jitter.up_to(PAGES_WAIT), asked: 0, about: About::Pages }
            }
        };
        neighbour.query = Some(query);
        self.set_timer(node, now);
    }

    /// Sets the timer of a node. Each hello of it moves its due time back, and the timer follows only when it has to, or
    /// timers would cost more than all else a hello does.
    fn set_timer(&mut self, node: NodeId, now: Instant<Local>) {
        let Some(neighbour) = self.neighbours.get_mut(&node) else { return };
        let due = neighbour.due();
        if due < neighbour.timer || neighbour.timer < now + TIMER_SLACK {
            self.timers.remove(&(neighbour.timer, node));
            neighbour.timer = due;
            self.timers.insert((due, node));
        }
    }

    /// Nodes whose timer has fired.
    fn fired(&self, now: Instant<Local>) -> impl Iterator<Item = NodeId> {
        self.timers.range(..=(now, NodeId([255; 16]))).map(|(_, node)| *node)
    }

    /// A node that is to be probed now.
    fn query_due(&self, now: Instant<Local>) -> Option<NodeId> {
        let is_due = |query: Query| query.at <= now;
        self.fired(now).find(|node| self.neighbours.get(node).and_then(|node| node.query).is_some_and(is_due))
    }

    // — what is due —

    fn next_due(&mut self, now: Instant<Local>) -> Option<(Body, Destination)> {
        if self.leaving {
            self.leaving = false;
            self.next_hello = Instant::MAX;
            self.early = false;
            self.pages_to_send.clear();
            self.timers.clear();
            return Some((Body::Bye, Destination::Everyone));
        }
        if let Some((to, body)) = self.send_queue.pop_front() {
            if matches!(body, Body::PathChallenge { .. }) {
                count(&mut self.counters.challenged);
            }
            return Some((body, Destination::One(to)));
        }
        if self.next_hello <= now && (!self.early || self.budget.take(HELLO_COST, now)) {
            return Some((self.hello(now), Destination::Everyone));
        }
        if let Some(node) = self.query_due(now)
            && self.budget.take(QUERY_BYTES, now)
        {
            return self.query(node, now);
        }
        if self.pages_due.is_some_and(|due| due <= now)
            && let Some(number) = self.next_page()
            && self.budget.take(self.catalogue.page_bytes(number), now)
        {
            self.pages_to_send.remove(&number);
            self.last_page = number;
            self.log.note(|| trace::Event::PageSent { page: number });
            if self.pages_to_send.is_empty() {
                self.pages_due = None;
            }
            return Some((Body::Page(self.catalogue.page(number)?), Destination::Everyone));
        }
        None
    }

    /// In turn, so that pages requested again and again do not keep the others back.
    fn next_page(&self) -> Option<u16> {
        let after = self.pages_to_send.range(self.last_page.saturating_add(1)..).next();
        after.or(self.pages_to_send.first()).copied()
    }

    fn query(&mut self, node: NodeId, now: Instant<Local>) -> Option<(Body, Destination)> {
        let neighbour = self.neighbours.get_mut(&node)?;
        let query = neighbour.query.as_mut()?;
        let wait = match query.about {
            About::Pages => Span::from_ns(ASK_AGAIN.ns() << query.asked.min(5)),
            About::Presence => PROBE_AGAIN,
        };
        query.asked += 1;
        let (question, trigger) = (query.asked, query.about.into());
        self.log.note(|| trace::Event::Asked { node, question, trigger });
        query.at = now + wait + self.jitter.up_to(wait);
        let body = Body::Query {
            to: node,
            since: neighbour.complete(),
            except: neighbour.received_since_complete(),
        };
        let locator = neighbour.locator;
        self.set_timer(node, now);
        Some((body, Destination::One(locator)))
    }

    fn forget(&mut self, node: NodeId, reason: Reason) {
        let Some(neighbour) = self.neighbours.remove(&node) else { return };
        self.generation += 1;
        self.timers.remove(&(neighbour.timer, node));
        self.shares.remove(neighbour.locator.ip(), neighbour.pages_held());
        for endpoint in neighbour.endpoints() {
            self.drop_remote(node, endpoint);
        }
        self.note_departure(node, &neighbour, reason);
        self.report(Event::Gone { node, reason });
    }

    fn report(&mut self, event: Event) {
        self.note_known(&event);
        if self.events.len() < EVENTS_LIMIT {
            self.events.push_back(event);
        } else {
            count(&mut self.counters.events_dropped);
        }
    }
}

/// About what a hello takes.
const HELLO_COST: usize = 128;
/// Bytes of a question.
const QUERY_BYTES: usize = 80;

fn count(counter: &mut u64) {
    *counter = counter.saturating_add(1);
}
