//! A writer and its readers on a simulated network: the group, and a link to each for what the group does not reach.

use std::collections::BTreeSet;

use noctule_netsim::link::LinkSpec;
use noctule_netsim::network::{Address, Destination, Endpoint, Network, Transmit};
use noctule_netsim::{Random, Story};
use noctule_prrt::group::trace::Event;
use noctule_prrt::group::{
    Body, Datagram, GroupConfig, GroupReceiver, GroupSender, MemberId, Membership, ReceiverCounters,
    SenderCounters,
};
use noctule_prrt::{Arrival, Bound, Class, Link, LinkConfig, Local, Order, Origin, Outgoing, StreamId};
use noctule_timebase::{Instant, Span};

/// IPv4 and UDP.
pub(crate) const WIRE_OVERHEAD_BYTES: usize = 28;
const WRITER: StreamId = StreamId(7);
const PAYLOAD_BYTES_MAX: u32 = 1 << 20;

/// Parameters of the swarm.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    pub(crate) receivers: usize,
    pub(crate) payload_bytes: usize,
    pub(crate) interval: Span,
    pub(crate) deadline: Span,
    pub(crate) loss_target: f64,
    pub(crate) seed: u64,
}

impl Terms {
    /// The cell of the blueprint: 1,200 B at 200 Hz, 100 ms.
    pub(crate) fn of(receivers: usize, seed: u64) -> Terms {
        let (interval, deadline) = (Span::from_ms(5), Span::from_ms(100));
        Terms { receivers, payload_bytes: 1_200, interval, deadline, loss_target: 1e-3, seed }
    }

    fn bound(&self) -> Bound {
        Bound { deadline: self.deadline, loss_target: self.loss_target, order: Order::Asap }
    }

    /// The first sample, published at 0.
    pub(crate) fn sample<'a>(&self, payload: &'a [u8]) -> Outgoing<'a> {
        Outgoing {
            writer: WRITER,
            sequence: 1,
            origin: Origin::exactly(0),
            age: Span::ZERO,
            class: Class::DeadlineBound(self.bound()),
            depth: 8,
            payload,
        }
    }

    pub(crate) fn group(&self, session: u32) -> GroupConfig {
        GroupConfig { session, writer: WRITER, bound: Some(self.bound()), datagram_bytes_max: 1_400 }
    }
}

/// A node of the network; number 0 is the writer's.
pub(crate) enum Node {
    Writer(Box<Writer>),
    Reader(Box<Reader>),
}

pub(crate) struct Writer {
    terms: Terms,
    pub(crate) group: GroupSender,
    links: Vec<Link>,
    readers: BTreeSet<usize>,
    next_at: Instant<Local>,
    pub(crate) stops_at: Instant<Local>,
    sequence: u64,
    pub(crate) published: Vec<u64>,
    pub(crate) changes: Vec<Membership>,
    pub(crate) bytes: usize,
    /// Of its radio: what all readers lose together.
    pub(crate) fade: Option<Fade>,
}

pub(crate) struct Reader {
    terms: Terms,
    pub(crate) group: GroupReceiver,
    link: Link,
    random: Random,
    /// Share of the group's datagrams lost besides what the network loses.
    pub(crate) loss: f64,
    /// Rate limit of its path, if lower than the network's.
    pub(crate) policer: Option<Policer>,
    /// Hears nothing and says nothing.
    pub(crate) is_off: bool,
    pub(crate) on_time: BTreeSet<u64>,
    pub(crate) late: u64,
    pub(crate) twice: u64,
    pub(crate) damaged: u64,
    pub(crate) bytes: usize,
}

/// A radio that neither sends nor receives for some time, again and again: Gilbert's channel in time. When it fades does not depend on the traffic.
pub(crate) struct Fade {
    random: Random,
    is_faded: bool,
    /// When it ends or begins next; mean lengths of what is between fades, and of a fade.
    changes_at: Instant<Local>,
    means: [Span; 2],
}

impl Fade {
    /// A share `loss` of time is lost, `mean` in a row.
    pub(crate) fn new(loss: f64, mean: Span, seed: u64) -> Fade {
        let between = Span::from_ns((mean.ns() as f64 * (1.0 - loss) / loss) as i64);
        let random = Random::for_part(seed, 2_000);
        Fade { random, is_faded: true, changes_at: Instant::from_ns(0), means: [between, mean] }
    }

    fn is_faded(&mut self, now: Instant<Local>) -> bool {
        while self.changes_at <= now {
            self.is_faded = !self.is_faded;
            let mean = self.means[usize::from(self.is_faded)].ns() as f64;
            self.changes_at += Span::from_ns(self.random.exponential(mean) as i64);
        }
        self.is_faded
    }
}

/// A path that carries so much and drops the rest at once.
pub(crate) struct Policer {
    pub(crate) bytes_per_s: f64,
    allowance_bytes: f64,
    at: Instant<Local>,
}

impl Policer {
    pub(crate) fn new(bytes_per_s: f64) -> Policer {
        Policer { bytes_per_s, allowance_bytes: 0.0, at: Instant::from_ns(0) }
    }

    /// A fiftieth of a second is saved up.
    fn passes(&mut self, bytes: usize, now: Instant<Local>) -> bool {
        let more = (now - self.at).as_s_f64() * self.bytes_per_s;
        let most = (self.bytes_per_s * 0.02).max(3_000.0);
        self.at = now;
        self.allowance_bytes = (self.allowance_bytes + more).min(most);
        let passes = self.allowance_bytes >= bytes as f64;
        if passes {
            self.allowance_bytes -= bytes as f64;
        }
        passes
    }
}

/// Results of one reader.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    /// Share of samples that were not there in time.
    pub(crate) residual: f64,
    pub(crate) late: u64,
    pub(crate) twice: u64,
    pub(crate) damaged: u64,
    pub(crate) counters: ReceiverCounters,
}

/// When a member noted an event, and which member.
pub(crate) type Noted = (Instant<Local>, usize, Event);

pub(crate) struct Swarm {
    terms: Terms,
    pub(crate) network: Network<Node>,
    session: u32,
    story: Option<Story>,
    /// When which node noted what, if it is wanted; the writer's is 0.
    noted: Option<Vec<Noted>>,
}

impl Swarm {
    /// All readers are known from the start, as after discovery. `spec` as in `docs/spec/link-text.md`.
    pub(crate) fn new(terms: Terms, spec: &LinkSpec) -> Swarm {
        let network = Network::new(nodes(terms), spec, terms.seed);
        Swarm { terms, network, session: 1, story: None, noted: None }
    }

    /// Writes what happens to the file that the environment names.
    pub(crate) fn write_if_wanted(&mut self) {
        self.story = Story::wanted("group", self.terms.seed);
        self.trace();
    }

    /// Keeps what all nodes note from now on.
    pub(crate) fn note(&mut self) {
        self.noted = Some(Vec::new());
        self.trace();
    }

    /// When which node has noted what since it was asked for; each node's in the order of time.
    pub(crate) fn noted(&self) -> &[Noted] {
        self.noted.as_deref().unwrap_or_default()
    }

    /// Keeps the events of all nodes, of whose lives some may have begun just now.
    fn trace(&mut self) {
        if self.story.is_some() || self.noted.is_some() {
            self.writer().group.trace().start();
            let receivers = self.terms.receivers;
            (1..=receivers).for_each(|number| self.reader(number).group.trace().start());
        }
    }

    pub(crate) fn run(&mut self, span: Span) {
        if self.story.is_none() && self.noted.is_none() {
            return self.network.run_for(span).unwrap();
        }
        let end = self.network.local_now(0) + span;
        while let left = end - self.network.local_now(0)
            && left > Span::ZERO
        {
            // The logs are bounded.
            self.network.run_for(left.min(Span::from_ms(10))).unwrap();
            for number in 0..=self.terms.receivers {
                self.drain(number);
            }
        }
    }

    /// Takes what a node has noted.
    fn drain(&mut self, number: usize) {
        let (log, name) = match self.network.endpoint(number) {
            Node::Writer(writer) => (writer.group.trace(), "writer→group".to_owned()),
            Node::Reader(reader) => (reader.group.trace(), format!("reader {number}")),
        };
        assert_eq!(log.poll_dropped(), 0);
        while let Some((at, event)) = log.poll() {
            if let Some(story) = &mut self.story {
                story.note(at, &name, &event);
            }
            if let Some(noted) = &mut self.noted {
                noted.push((at, number, event));
            }
        }
    }

    pub(crate) fn writer(&mut self) -> &mut Writer {
        match self.network.endpoint(0) {
            Node::Writer(writer) => writer,
            Node::Reader(_) => panic!("node 0 writes"),
        }
    }

    pub(crate) fn reader(&mut self, number: usize) -> &mut Reader {
        match self.network.endpoint(number) {
            Node::Reader(reader) => reader,
            Node::Writer(_) => panic!("node {number} reads"),
        }
    }

    pub(crate) fn terms(&self) -> Terms {
        self.terms
    }

    pub(crate) fn join(&mut self, number: usize) {
        let writer = self.writer();
        writer.readers.insert(number);
        assert!(writer.group.join(MemberId(number as u128)));
    }

    pub(crate) fn leave(&mut self, number: usize) {
        let writer = self.writer();
        writer.readers.remove(&number);
        writer.group.leave(MemberId(number as u128));
        writer.links[number].stop(WRITER);
    }

    /// The writer's process dies and starts again; discovery reports it to all nodes.
    pub(crate) fn restart_writer(&mut self) {
        self.session += 1;
        let (session, terms) = (self.session, self.terms);
        let now = self.network.local_now(0);
        let old = self.writer();
        let (sequence, stops_at, bytes) = (old.sequence, old.stops_at, old.bytes);
        let published = std::mem::take(&mut old.published);
        let mut fresh = Writer::new(terms, session, (sequence, now));
        (fresh.stops_at, fresh.published, fresh.bytes) = (stops_at, published, bytes);
        self.network.replace(0, Node::Writer(Box::new(fresh)));
        for number in 1..=terms.receivers {
            let fresh = Reader::new(terms, session, number);
            let reader = self.reader(number);
            (reader.group, reader.link) = (fresh.group, fresh.link);
        }
        self.trace();
    }

    /// Results of a reader for the samples numbered `from` and later.
    pub(crate) fn outcome(&mut self, number: usize, from: u64) -> Outcome {
        let published: Vec<u64> = self.writer().published.iter().copied().filter(|n| *n >= from).collect();
        let reader = self.reader(number);
        let missed = published.iter().filter(|sequence| !reader.on_time.contains(sequence)).count();
        Outcome {
            residual: missed as f64 / published.len().max(1) as f64,
            late: reader.late,
            twice: reader.twice,
            damaged: reader.damaged,
            counters: reader.group.counters(),
        }
    }

    /// Bytes that all nodes sent, per byte of payload published.
    pub(crate) fn wire_per_payload(&mut self) -> f64 {
        let receivers = self.terms.receivers;
        let readers: usize = (1..=receivers).map(|number| self.reader(number).bytes).sum();
        let payload = self.writer().published.len() * self.terms.payload_bytes;
        (readers + self.writer().bytes) as f64 / payload as f64
    }

    /// Bytes held for repair at the end that holds most.
    pub(crate) fn held_bytes_max(&mut self) -> usize {
        let receivers = self.terms.receivers;
        let readers = (1..=receivers).map(|number| self.reader(number).group.held_bytes()).max();
        self.writer().group.held_bytes().max(readers.unwrap_or(0))
    }

    pub(crate) fn sender_counters(&mut self) -> SenderCounters {
        self.writer().group.counters()
    }
}

/// The writer and its readers.
pub(crate) fn nodes(terms: Terms) -> Vec<Node> {
    let start = Instant::from_ns(0);
    let mut nodes = vec![Node::Writer(Box::new(Writer::new(terms, 1, (0, start))))];
    nodes.extend((1..=terms.receivers).map(|number| Node::Reader(Box::new(Reader::new(terms, 1, number)))));
    nodes
}

impl Writer {
    fn new(terms: Terms, session: u32, (sequence, now): (u64, Instant<Local>)) -> Writer {
        let mut group = GroupSender::new(terms.group(session), now);
        for number in 1..=terms.receivers {
            assert!(group.join(MemberId(number as u128)));
        }
        Writer {
            terms,
            group,
            links: (0..=terms.receivers).map(|_| link(session, now, false, terms)).collect(),
            readers: (1..=terms.receivers).collect(),
            next_at: now,
            stops_at: Instant::from_ns(i64::MAX),
            sequence,
            published: Vec::new(),
            changes: Vec::new(),
            bytes: 0,
            fade: None,
        }
    }

    /// Whether its radio loses what it sends or receives now.
    fn is_faded(&mut self, now: Instant<Local>) -> bool {
        self.fade.as_mut().is_some_and(|fade| fade.is_faded(now))
    }

    pub(crate) fn is_member(&self, number: usize) -> bool {
        self.readers.contains(&number)
    }

    fn publish(&mut self, now: Instant<Local>) {
        self.sequence += 1;
        self.published.push(self.sequence);
        let payload = payload(self.sequence, self.terms.payload_bytes);
        let sample = Outgoing {
            writer: WRITER,
            sequence: self.sequence,
            origin: Origin::exactly(now.ns()),
            age: Span::ZERO,
            class: Class::DeadlineBound(self.terms.bound()),
            depth: 8,
            payload: &payload,
        };
        let to_group = self.readers.len() > 1 && self.group.send(&sample, now);
        for number in &self.readers {
            if !(to_group && self.group.serves(MemberId(*number as u128))) {
                let _ = self.links[*number].send(&sample, now);
            }
        }
    }
}

impl Reader {
    fn new(terms: Terms, session: u32, number: usize) -> Reader {
        Reader {
            terms,
            group: GroupReceiver::new(terms.group(session), terms.seed ^ (number as u64) << 32),
            link: link(session, Instant::from_ns(0), true, terms),
            random: Random::for_part(terms.seed, 1_000 + number as u64),
            loss: 0.0,
            policer: None,
            is_off: false,
            on_time: BTreeSet::new(),
            late: 0,
            twice: 0,
            damaged: 0,
            bytes: 0,
        }
    }

    fn take(&mut self, bytes: &[u8], now: Instant<Local>) {
        let length = bytes.len() + WIRE_OVERHEAD_BYTES;
        if self.policer.as_mut().is_some_and(|policer| !policer.passes(length, now)) {
            return;
        }
        let arrival =
            Arrival { now, came: now, own_ns: now.ns(), peer_ns: Some(now.ns()), ecn: Default::default() };
        let (terms, on_time) = (self.terms, &mut self.on_time);
        let (late, twice, damaged) = (&mut self.late, &mut self.twice, &mut self.damaged);
        let mut deliver = |sample: noctule_prrt::Delivered<'_>| {
            *late += u64::from(now.ns() - sample.origin.source_time_ns > terms.deadline.ns());
            *twice += u64::from(!on_time.insert(sample.sequence));
            *damaged += u64::from(sample.payload != payload(sample.sequence, terms.payload_bytes));
        };
        if !bytes.starts_with(b"NCTG") {
            let _ = self.link.handle_datagram(bytes, arrival, &mut deliver);
        } else if let Ok(datagram) = Datagram::decode(bytes)
            && !self.random.chance(self.loss)
        {
            let link = &mut self.link;
            self.group.handle_datagram(&datagram, bytes.len(), arrival, &mut |fragment, is_repaired| {
                link.handle_fragment(fragment, is_repaired, arrival, &mut deliver);
            });
        }
    }
}

impl Endpoint for Node {
    type Clock = Local;

    fn handle_datagram(&mut self, now: Instant<Local>, from: Address, bytes: &[u8]) {
        match self {
            Node::Reader(reader) if reader.is_off => {}
            Node::Reader(reader) => reader.take(bytes, now),
            Node::Writer(writer) if bytes.starts_with(b"NCTG") => {
                if writer.is_faded(now) {
                    return;
                }
                let Ok(Datagram { body: Body::Report(report), .. }) = Datagram::decode(bytes) else { return };
                writer.group.handle_report(MemberId(from.0.into()), &report, now);
            }
            Node::Writer(writer) => {
                if writer.is_faded(now) {
                    return;
                }
                let arrival = Arrival {
                    now,
                    came: now,
                    own_ns: now.ns(),
                    peer_ns: Some(now.ns()),
                    ecn: Default::default(),
                };
                let _ = writer.links[from.0 as usize].handle_datagram(bytes, arrival, &mut |_| {});
            }
        }
    }

    fn handle_timeout(&mut self, now: Instant<Local>) {
        match self {
            Node::Writer(writer) => {
                if writer.next_at <= now && now < writer.stops_at {
                    // A pause is not made up for.
                    writer.next_at = writer.next_at.max(now) + writer.terms.interval;
                    writer.publish(now);
                }
                writer.changes.extend(std::iter::from_fn(|| writer.group.poll_membership()));
                writer.links.iter_mut().for_each(|link| link.handle_timeout(now, &mut |_| {}));
            }
            Node::Reader(reader) => {
                // As soon as possible: nothing waits for a time to be delivered.
                reader.link.handle_timeout(now, &mut |_| {});
            }
        }
    }

    fn poll_transmit(&mut self, now: Instant<Local>) -> Option<Transmit> {
        let mut bytes = Vec::new();
        let (to, sent) = match self {
            Node::Writer(writer) => {
                let to = if writer.group.poll_transmit(now, &mut bytes) {
                    Destination::All
                } else {
                    let mut links = writer.links.iter_mut();
                    let number = links.position(|link| link.poll_transmit(now, &mut bytes))?;
                    Destination::One(Address(number as u32))
                };
                (to, &mut writer.bytes)
            }
            Node::Reader(reader) if reader.is_off => return None,
            Node::Reader(reader) => {
                if !reader.group.poll_transmit(now, &mut bytes) {
                    reader.link.poll_transmit(now, &mut bytes).then_some(())?;
                }
                (Destination::One(Address(0)), &mut reader.bytes)
            }
        };
        *sent += bytes.len() + WIRE_OVERHEAD_BYTES;
        if let Node::Writer(writer) = self
            && writer.is_faded(now)
        {
            // Of what leaves nothing arrives; an empty datagram is none.
            bytes.clear();
        }
        Some(Transmit { to, bytes })
    }

    fn poll_timeout(&self) -> Option<Instant<Local>> {
        match self {
            Node::Writer(writer) => {
                let publish = (writer.next_at < writer.stops_at).then_some(writer.next_at);
                let links = writer.links.iter().filter_map(Link::poll_timeout);
                links.chain(publish).chain(writer.group.poll_timeout()).min()
            }
            Node::Reader(reader) if reader.is_off => None,
            Node::Reader(reader) => {
                [reader.group.poll_timeout(), reader.link.poll_timeout()].into_iter().flatten().min()
            }
        }
    }
}

fn link(session: u32, now: Instant<Local>, reads: bool, terms: Terms) -> Link {
    let mut link = Link::new(LinkConfig { session, ..LinkConfig::default() }, now);
    if reads {
        link.expect(WRITER, PAYLOAD_BYTES_MAX, Class::DeadlineBound(terms.bound()));
    }
    link
}

fn payload(sequence: u64, bytes: usize) -> Vec<u8> {
    let word = sequence.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
    word.into_iter().cycle().take(bytes).collect()
}
