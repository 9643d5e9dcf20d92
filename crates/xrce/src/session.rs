//! One client: its streams, its objects, and what it is to be answered.

mod ack_holding;
mod answer;
mod handle;

pub use ack_holding::AHEAD_BYTES_MAX;
use ack_holding::{AckHolding, Turn};
pub(crate) use answer::{info as write_info, status_agent};

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU16;

use noctule_timebase::{Instant, Span};

use crate::config::AgentConfig;
use crate::creation::References;
use crate::event::{
    ClientAddress, ClientClock, Counters, Departure, EndpointId, Event, Gone, Local, Sample, Transmit, Wall,
    count,
};
use crate::inbound::{Inbound, Newest};
use crate::objects::{Difference, Objects};
use crate::outbound::{Holding, Outbound};
use crate::wire::{ClientKey, HEADER_BYTES, Header, ObjectId, RequestId, Status, has_key};

/// Streams of each kind and direction that a client may use.
pub const STREAMS_MAX: usize = 8;
/// Answers outside of streams that wait to be sent.
pub const CONTROL_MAX: usize = 16;
/// Answers on one best-effort stream that wait to be sent.
pub const BEST_EFFORT_MAX: usize = 64;
/// Departures remembered until the client reports when they arrived.
const DEPARTURES_MAX: usize = 8;
/// Events that wait for [`Agent::poll_event`](crate::Agent::poll_event).
pub const EVENTS_MAX: usize = 1 << 14;
/// Silence after which a client is asked whether it is there.
const ASK_AFTER: Span = Span::from_s(10);
/// The question is repeated after this.
const ASK_AGAIN: Span = Span::from_s(5);
/// Silence after which a client is given up.
const SILENCE_MAX: Span = Span::from_s(30);

/// The network does not keep a copy of a message for longer, and no client starts again so soon.
const COPY_AGE_MAX: Span = Span::from_ms(100);

/// State that all sessions of an agent share.
#[derive(Clone, Debug)]
pub(crate) struct AgentContext {
    pub(crate) config: AgentConfig,
    pub(crate) references: References,
    pub(crate) events: VecDeque<Event>,
    pub(crate) counters: Counters,
    /// Of the object that was made last.
    pub(crate) last_serial: u32,
}

impl AgentContext {
    /// A sample of this many bytes, with its submessage header, does not reach the client.
    pub(crate) fn tell_undeliverable(&mut self, client: ClientKey, object: ObjectId, bytes: usize) {
        count(&mut self.counters.undeliverable);
        self.tell(Event::Undeliverable { client, object, bytes });
    }

    pub(crate) fn tell(&mut self, event: Event) {
        if self.events.len() < EVENTS_MAX {
            self.events.push_back(event);
        } else {
            count(&mut self.counters.events_dropped);
        }
    }
}

/// One client.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    pub(crate) key: ClientKey,
    /// Session number.
    pub(crate) id: u8,
    pub(crate) address: ClientAddress,
    /// The address cannot take messages at the moment.
    pub(crate) is_blocked: bool,
    pub(crate) is_ours: bool,
    /// Longest message that the client takes.
    message_bytes_max: usize,
    /// Messages that clients of others hold, if that is known.
    client_history: Option<NonZeroU16>,
    /// Silence after which it wants to be taken for dead.
    hard_liveliness: Option<Span>,
    objects: Objects,
    inbound: BTreeMap<u8, Inbound>,
    newest: BTreeMap<u8, Newest>,
    outbound: BTreeMap<u8, Outbound>,
    best_effort: BTreeMap<u8, BestEffort>,
    control: VecDeque<Control>,
    ack_holding: AckHolding,
    /// The longest that an acknowledgement waits for an answer.
    hold: Span,
    /// The reader served last.
    served: ObjectId,
    /// When the sample that follows was measured, on best-effort and on reliable streams.
    measured: [Option<Instant<ClientClock>>; 2],
    departures: VecDeque<SentTimestamp>,
    pub(crate) heard_at: Instant<Local>,
    ask_at: Instant<Local>,
    /// It was given up, but may come back.
    pub(crate) is_silent: bool,
    /// Theoretical arrival time of the next message within the budget.
    budget: Instant<Local>,
    messages_in: u64,
    messages_out: u64,
    /// When the client introduced itself last, how, and how many messages it had sent before.
    began: (Instant<Local>, Introduction, u64),
}

/// When a message left, as reported to the client and by the agent's clock.
#[derive(Clone, Copy, Debug)]
struct SentTimestamp {
    octets: [u8; 8],
    departed: Instant<Local>,
}

/// One best-effort stream to a client.
#[derive(Clone, Debug, Default)]
struct BestEffort {
    sequence: u16,
    waiting: VecDeque<Vec<u8>>,
}

/// An answer outside of streams.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Control {
    /// A whole submessage.
    Submessage(Vec<u8>),
    /// A reply that carries the time when it was sent.
    Time { received: Instant<Wall>, originated: [u8; 8] },
}

/// Content of CREATE_CLIENT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Introduction {
    pub(crate) key: ClientKey,
    pub(crate) session: u8,
    pub(crate) is_ours: bool,
    pub(crate) message_bytes_max: u16,
    pub(crate) hard_liveliness: Option<Span>,
}

impl Session {
    pub(crate) fn new(
        introduction: &Introduction,
        address: ClientAddress,
        config: &AgentConfig,
        now: Instant<Local>,
    ) -> Session {
        let mut session = Session {
            key: introduction.key,
            id: introduction.session,
            address,
            is_blocked: false,
            is_ours: false,
            message_bytes_max: 0,
            client_history: config.client_history,
            hard_liveliness: None,
            objects: Objects::new(introduction.key),
            inbound: BTreeMap::new(),
            newest: BTreeMap::new(),
            outbound: BTreeMap::new(),
            best_effort: BTreeMap::new(),
            control: VecDeque::new(),
            ack_holding: AckHolding::default(),
            hold: config.hold,
            served: ObjectId([0, 0]),
            measured: [None; 2],
            departures: VecDeque::new(),
            heard_at: now,
            ask_at: now,
            is_silent: false,
            budget: now,
            messages_in: 0,
            messages_out: 0,
            began: (now, *introduction, 0),
        };
        session.begin_anew(introduction, address, now);
        session
    }

    /// The client introduces itself, perhaps not for the first time: streams begin at zero, objects stay.
    pub(crate) fn begin_anew(
        &mut self,
        introduction: &Introduction,
        address: ClientAddress,
        now: Instant<Local>,
    ) {
        self.address = address;
        self.is_blocked = false;
        self.began = (now, *introduction, self.messages_in);
        self.is_ours = introduction.is_ours;
        self.message_bytes_max = introduction.message_bytes_max.into();
        self.hard_liveliness = introduction.hard_liveliness;
        self.reset_streams();
        self.control.clear();
        self.hear(now);
    }

    /// Whether this introduction is a late copy of the one that the client has gone on from.
    pub(crate) fn has_just_begun(
        &self,
        introduction: &Introduction,
        address: ClientAddress,
        now: Instant<Local>,
    ) -> bool {
        let (at, before, messages_in) = &self.began;
        // Only a network delivers late: on a serial line or a connection it is a client that started again.
        let can_be_late = matches!(address, ClientAddress::Socket(_));
        let is_same = can_be_late && before == introduction && self.address == address;
        is_same && self.messages_in > *messages_in && now - *at < COPY_AGE_MAX && !self.is_silent
    }

    fn reset_streams(&mut self) {
        self.inbound.clear();
        self.newest.clear();
        self.outbound.clear();
        self.best_effort.clear();
        self.measured = [None; 2];
        self.ack_holding = AckHolding::default();
    }

    /// It is alive.
    fn hear(&mut self, now: Instant<Local>) {
        self.heard_at = now;
        self.ask_at = now + self.hard_liveliness.map_or(ASK_AFTER, half);
    }

    /// Whether the client may send another message now; takes it from its budget.
    pub(crate) fn is_within_budget(&mut self, config: &AgentConfig, now: Instant<Local>) -> bool {
        let each = Span::from_ns(1_000_000_000 / i64::from(config.client_messages_per_s.max(1)));
        let allowed_ahead = Span::from_ms(100).max(each);
        self.budget = self.budget.max(now);
        if self.budget - now > allowed_ahead {
            return false;
        }
        self.budget += each;
        true
    }

    /// Takes a sample for one of the client's readers.
    pub(crate) fn handle_sample(
        &mut self,
        endpoint: EndpointId,
        sample: Sample,
        now: Instant<Local>,
        counters: &mut Counters,
    ) {
        let sample = match self.objects.is_requester(endpoint.object) {
            true => answer::reply_for(endpoint, sample, counters),
            false => Some(sample),
        };
        let hold = self.hold();
        let Some((reading, sample)) = self.objects.reading_of(endpoint).zip(sample) else { return };
        self.ack_holding.handle_answer(hold, now);
        if reading.handle_sample(sample) {
            count(&mut counters.replaced);
        }
    }

    /// Notes when a message left that carries its time.
    pub(crate) fn handle_departure(&mut self, stamp: [u8; 8], departed: Instant<Local>) {
        if self.departures.len() == DEPARTURES_MAX {
            self.departures.pop_front();
        }
        self.departures.push_back(SentTimestamp { octets: stamp, departed });
    }

    /// Asks the client whether it is there, or gives it up.
    pub(crate) fn handle_timeout(&mut self, now: Instant<Local>, agent: &mut AgentContext) {
        let longest = self.hard_liveliness.unwrap_or(SILENCE_MAX);
        if self.is_silent || now < self.ask_at {
            return;
        }
        if now - self.heard_at >= longest {
            return self.give_up(agent);
        }
        self.ask_at = (now + self.hard_liveliness.map_or(ASK_AGAIN, quarter)).min(self.heard_at + longest);
        self.answer(answer::question());
    }

    /// Takes the client for gone; its objects are kept for its return.
    pub(crate) fn give_up(&mut self, agent: &mut AgentContext) {
        if !std::mem::replace(&mut self.is_silent, true) {
            self.close_all(agent);
            agent.tell(Event::Disconnected { client: self.key, reason: Gone::Silent });
        }
    }

    /// The client is back from silence.
    pub(crate) fn handle_return(&mut self, agent: &mut AgentContext) {
        self.is_silent = false;
        agent.tell(Event::Connected { client: self.key, address: self.address });
        for endpoint in self.objects.endpoints() {
            agent.tell(Event::Opened(endpoint));
        }
    }

    /// Closes every endpoint, as far as it is not closed already.
    pub(crate) fn close_all(&mut self, agent: &mut AgentContext) {
        for endpoint in self.objects.endpoints() {
            agent.tell(Event::Closed { endpoint: endpoint.id, direction: endpoint.direction });
        }
    }

    /// When something is due although nothing arrives.
    pub(crate) fn poll_timeout(&mut self) -> Option<Instant<Local>> {
        let ask = Some(self.ask_at).filter(|_| !self.is_silent);
        if self.is_blocked || self.is_silent {
            return ask;
        }
        let held = self.ack_holding.poll_timeout().filter(|_| self.poll_acknowledgement().is_some());
        let streams = self.outbound.values().filter_map(Outbound::poll_timeout);
        let readings = self.objects.readings(ObjectId([0, 0]));
        // A sample that is due but has no room waits for an acknowledgement, not for a time.
        let is_open = |stream: u8| stream < 0x80 || self.outbound.get(&stream).is_none_or(Outbound::is_open);
        let samples = readings.filter_map(|(_, reading)| {
            let (at, stream) = reading.poll_timeout()?;
            is_open(stream).then_some(at)
        });
        ask.into_iter().chain(held).chain(streams).chain(samples).min()
    }

    /// Writes the next message to `out`, which is empty.
    pub(crate) fn poll_message(
        &mut self,
        now: Instant<Local>,
        out: &mut Vec<u8>,
        agent: &mut AgentContext,
    ) -> Option<Transmit> {
        if self.is_blocked || self.is_silent {
            return None;
        }
        let stamp = self.write_next(now, out, agent)?;
        self.messages_out += 1;
        count(&mut agent.counters.sent);
        let stamp = stamp.map(|at| Departure { client: self.key, at });
        Some(Transmit { to: self.address, stamp })
    }

    /// The next message, and where in it the time of its departure belongs.
    fn write_next(
        &mut self,
        now: Instant<Local>,
        out: &mut Vec<u8>,
        agent: &mut AgentContext,
    ) -> Option<Option<usize>> {
        if let Some(stream) = self.poll_acknowledgement() {
            match self.turn(now, agent) {
                Turn::Other => {}
                Turn::None => return None,
                Turn::Acknowledgement => {
                    self.header(0, 0).write(out);
                    let inbound = self.inbound.get_mut(&stream)?;
                    inbound.ack_due = false;
                    let (first, missing) = inbound.acknowledgement();
                    answer::acknack(out, first, missing, stream);
                    return Some(None);
                }
            }
        }
        if let Some(control) = self.control.pop_front() {
            self.header(0, 0).write(out);
            return Some(answer::control(out, &control));
        }
        self.fill_streams(now, agent);
        let header = self.header(0, 0);
        for (stream, outbound) in &mut self.outbound {
            if let Some((sequence, body)) = outbound.poll_message(now) {
                Header { stream: *stream, sequence, ..header }.write(out);
                out.extend_from_slice(body);
                return Some(None);
            }
            if let Some((first, last)) = outbound.poll_heartbeat(now) {
                header.write(out);
                answer::heartbeat(out, first, last, *stream);
                return Some(None);
            }
        }
        for (stream, best_effort) in &mut self.best_effort {
            if let Some(body) = best_effort.waiting.pop_front() {
                Header { stream: *stream, sequence: best_effort.sequence, ..header }.write(out);
                best_effort.sequence = best_effort.sequence.wrapping_add(1);
                out.extend_from_slice(&body);
                return Some(None);
            }
        }
        None
    }

    /// The longest that an acknowledgement waits for an answer. Clients of others are acknowledged at once: micro-ROS does
    /// nothing else until then while it publishes.
    fn hold(&self) -> Span {
        if self.is_ours { self.hold } else { Span::ZERO }
    }

    /// Clients of ours put pieces together as they come; what others do is their history's length.
    fn holding(&self) -> Holding {
        match self.client_history {
            _ if self.is_ours => Holding::InOrder,
            Some(messages) => Holding::Messages(messages.get()),
            None => Holding::Unknown,
        }
    }

    /// Whose turn it is beside an acknowledgement that is due.
    fn turn(&mut self, now: Instant<Local>, agent: &mut AgentContext) -> Turn {
        if self.hold() == Span::ZERO || !self.control.is_empty() {
            return Turn::Acknowledgement;
        }
        self.fill_streams(now, agent);
        let reliable = self.outbound.values_mut().find_map(|outbound| outbound.next_bytes(now));
        let best_effort = || self.best_effort.values().find_map(|stream| Some(stream.waiting.front()?.len()));
        self.ack_holding.turn(self.hold(), reliable.or_else(best_effort), now)
    }

    fn poll_acknowledgement(&self) -> Option<u8> {
        self.inbound.iter().find(|(_, inbound)| inbound.ack_due).map(|(stream, _)| *stream)
    }

    /// Moves samples that are due into streams that have room, each reader in its turn.
    fn fill_streams(&mut self, now: Instant<Local>, agent: &mut AgentContext) {
        let (body_bytes_max, holding) = (self.body_bytes_max(), self.holding());
        for (object, reading) in self.objects.readings(self.served) {
            let Some(request) = reading.due(now) else { continue };
            let stream = request.stream;
            if stream < 0x80 {
                let best_effort = self.best_effort.entry(stream).or_default();
                // One at a time: what waits should wait where it can still be replaced by newer.
                if !best_effort.waiting.is_empty() {
                    continue;
                }
                let Some(sample) = reading.take(now) else { continue };
                let body = answer::sample(request.id, object, &sample);
                if body.len() > body_bytes_max {
                    agent.tell_undeliverable(self.key, object, body.len());
                    continue;
                }
                best_effort.waiting.push_back(body);
            } else {
                let outbound = self.outbound.entry(stream).or_insert_with(|| Outbound::new(holding));
                if !outbound.is_open() {
                    continue;
                }
                let Some(sample) = reading.take(now) else { continue };
                let body = answer::sample(request.id, object, &sample);
                let bytes = body.len();
                if !answer::push_reliable(outbound, object, body, body_bytes_max) {
                    agent.tell_undeliverable(self.key, object, bytes);
                    continue;
                }
            }
            self.served = object;
            return;
        }
    }

    /// Answers a request that came on `stream` on the stream of its kind.
    fn answer_status(&mut self, stream: u8, request: RequestId, object: ObjectId, status: Status) {
        let body_bytes_max = self.body_bytes_max();
        let mut body = Vec::new();
        answer::status(&mut body, request, object, status);
        if stream >= 0x80 {
            let holding = self.holding();
            let outbound = self.outbound.entry(0x80).or_insert_with(|| Outbound::new(holding));
            outbound.push(body_bytes_max, body);
            return;
        }
        let best_effort = self.best_effort.entry(1).or_default();
        if best_effort.waiting.len() < BEST_EFFORT_MAX {
            best_effort.waiting.push_back(body);
        }
    }

    /// Answers outside of streams.
    fn answer(&mut self, control: Control) -> bool {
        let has_room = self.control.len() < CONTROL_MAX;
        if has_room {
            self.control.push_back(control);
        }
        has_room
    }

    fn header(&self, stream: u8, sequence: u16) -> Header {
        let key = has_key(self.id).then_some(self.key);
        Header { session: self.id, stream, sequence, key }
    }

    /// Longest body of a message to the client.
    fn body_bytes_max(&self) -> usize {
        let header = if has_key(self.id) { 2 * HEADER_BYTES } else { HEADER_BYTES };
        self.message_bytes_max.saturating_sub(header)
    }

    fn tell(&self, difference: Difference, agent: &mut AgentContext) {
        for (endpoint, direction) in difference.closed {
            agent.tell(Event::Closed { endpoint, direction });
        }
        for endpoint in difference.opened {
            agent.tell(Event::Opened(endpoint));
        }
        if let Some(name) = difference.name {
            agent.tell(Event::Named { client: self.key, name });
        }
    }

    /// Messages from and to the client, and its objects.
    pub(crate) fn figures(&self) -> (u64, u64, usize) {
        (self.messages_in, self.messages_out, self.objects.len())
    }
}

/// Writes the answer to a client's leave.
pub(crate) fn write_status(out: &mut Vec<u8>, request: RequestId, object: ObjectId) {
    answer::status(out, request, object, Status::Ok);
}

fn half(span: Span) -> Span {
    Span::from_ns(span.ns() / 2)
}

fn quarter(span: Span) -> Span {
    Span::from_ns(span.ns() / 4)
}
