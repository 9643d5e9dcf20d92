//! The state machine: its clients, and whose turn it is.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use noctule_timebase::{Instant, Span};

use crate::config::AgentConfig;
use crate::creation::References;
use crate::event::{
    ClientAddress, Counters, Departure, EndpointId, Event, Gone, Local, Sample, Stamp, Transmit, count,
    time_octets,
};
use crate::session::{AgentContext, Introduction, Session, status_agent, write_info, write_status};
use crate::wire::{
    COOKIE, ClientKey, Header, ObjectId, Reader, RequestId, Status, Submessage, Submessages, Truncated,
    VENDOR_OURS, VERSION, has_key, id,
};

/// Answers to clients without a session that wait to be sent.
pub const REPLIES_MAX: usize = 64;
/// A client that takes no longer messages than this is refused.
pub const MESSAGE_BYTES_LEAST: u16 = 32;
/// Properties in CREATE_CLIENT that are looked at.
const PROPERTIES_MAX: u32 = 16;

/// State and counters of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientFigures {
    /// Its key.
    pub key: ClientKey,
    /// Where it is.
    pub address: ClientAddress,
    /// It was given up, and is kept for its return.
    pub is_silent: bool,
    /// Its last message.
    pub heard_at: Instant<Local>,
    /// Messages from it.
    pub messages_in: u64,
    /// Messages to it.
    pub messages_out: u64,
    /// Objects that it has created.
    pub objects: usize,
    /// It is a client of ours, which reports when samples were measured.
    pub is_ours: bool,
}

/// An agent of any number of clients.
#[derive(Clone, Debug)]
pub struct Agent {
    clients: BTreeMap<ClientKey, Client>,
    by_address: HashMap<ClientAddress, ClientKey>,
    /// Clients that may have something to send, in turn.
    ready: VecDeque<ClientKey>,
    alarms: BTreeSet<(Instant<Local>, ClientKey)>,
    replies: VecDeque<(ClientAddress, Vec<u8>)>,
    agent: AgentContext,
}

#[derive(Clone, Debug)]
struct Client {
    session: Session,
    is_ready: bool,
    alarm: Option<Instant<Local>>,
}

impl Agent {
    /// An agent without clients. `references`: what they may refer to by name.
    pub fn new(config: AgentConfig, references: References) -> Agent {
        let (events, counters) = (VecDeque::new(), Counters::default());
        Agent {
            clients: BTreeMap::new(),
            by_address: HashMap::new(),
            ready: VecDeque::new(),
            alarms: BTreeSet::new(),
            replies: VecDeque::new(),
            agent: AgentContext { config, references, events, counters, last_serial: 0 },
        }
    }

    /// Takes a message: a datagram, or what a frame carried.
    pub fn handle_datagram(&mut self, message: &[u8], from: ClientAddress, arrived: Stamp) {
        count(&mut self.agent.counters.received);
        let Some((header, rest)) = Header::split(message) else {
            return count(&mut self.agent.counters.malformed);
        };
        let Some(first) = Submessages::of(rest).next() else {
            return count(&mut self.agent.counters.malformed);
        };
        if first.id == id::CREATE_CLIENT {
            if self.handle_create_client(first, from, arrived.local) == Err(Truncated) {
                count(&mut self.agent.counters.malformed);
            }
            return;
        }
        let key = self.session_of(&header, from);
        let Some(key) = key.filter(|key| self.clients[key].session.id == header.session) else {
            return self.handle_unknown_client(&header, first, from, key);
        };
        let Some(client) = self.clients.get_mut(&key) else { return };
        let session = &mut client.session;
        if !session.is_within_budget(&self.agent.config, arrived.local) {
            return count(&mut self.agent.counters.over_budget);
        }
        // A session that carries its key may come from anywhere.
        if session.address != from {
            self.by_address.remove(&session.address);
            self.by_address.insert(from, key);
            session.address = from;
        }
        if session.is_silent {
            session.handle_return(&mut self.agent);
        }
        let deletion = session.handle_message(&header, rest, arrived, &mut self.agent);
        match deletion {
            Some(deletion) => {
                self.forget(key);
                self.reply(from, &header, |out| write_status(out, deletion.request, ObjectId::CLIENT));
            }
            None => self.wake(key),
        }
    }

    /// Takes a sample for the reader of a client.
    pub fn handle_sample(&mut self, endpoint: EndpointId, sample: Sample, now: Instant<Local>) {
        if let Some(client) = self.clients.get_mut(&endpoint.client) {
            client.session.handle_sample(endpoint, sample, now, &mut self.agent.counters);
            self.wake(endpoint.client);
        }
    }

    /// Writes into a message when it leaves, which must not be later than it does: the last thing to do
    /// before sending it.
    pub fn handle_departure(&mut self, departure: Departure, message: &mut [u8], departed: Stamp) {
        let stamp = time_octets(departed.wall);
        if let Some(place) = message.get_mut(departure.at..departure.at + stamp.len()) {
            place.copy_from_slice(&stamp);
        }
        if let Some(client) = self.clients.get_mut(&departure.client) {
            client.session.handle_departure(stamp, departed.local);
        }
    }

    /// An address cannot take messages for a while; they wait.
    pub fn handle_blocked(&mut self, address: ClientAddress) {
        if let Some(client) = self.by_address.get(&address).and_then(|key| self.clients.get_mut(key)) {
            client.session.is_blocked = true;
        }
    }

    /// An address can take messages again.
    pub fn handle_unblocked(&mut self, address: ClientAddress) {
        let Some(key) = self.by_address.get(&address).copied() else { return };
        if let Some(client) = self.clients.get_mut(&key) {
            client.session.is_blocked = false;
            self.wake(key);
        }
    }

    /// A connection has ended, or a line was unplugged.
    pub fn handle_lost(&mut self, address: ClientAddress, now: Instant<Local>) {
        let Some(key) = self.by_address.get(&address).copied() else { return };
        let Some(client) = self.clients.get_mut(&key) else { return };
        client.session.give_up(&mut self.agent);
        // A client that comes back comes by another connection.
        client.session.is_blocked = false;
        self.set_alarm(key, now);
    }

    /// Does what time has made due.
    pub fn handle_timeout(&mut self, now: Instant<Local>) {
        while let Some((_, key)) = self.alarms.first().copied().filter(|(at, _)| *at <= now) {
            self.alarms.pop_first();
            let Some(client) = self.clients.get_mut(&key) else { continue };
            client.alarm = None;
            client.session.handle_timeout(now, &mut self.agent);
            self.wake(key);
        }
    }

    /// The next thing to know.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.agent.events.pop_front()
    }

    /// Puts the next message into `out`, whatever it held before. Clients take turns.
    pub fn poll_transmit(&mut self, now: Instant<Local>, out: &mut Vec<u8>) -> Option<Transmit> {
        out.clear();
        if let Some((to, mut message)) = self.replies.pop_front() {
            out.append(&mut message);
            count(&mut self.agent.counters.sent);
            return Some(Transmit { to, stamp: None });
        }
        while let Some(key) = self.ready.pop_front() {
            let Some(client) = self.clients.get_mut(&key) else { continue };
            if let Some(transmit) = client.session.poll_message(now, out, &mut self.agent) {
                self.ready.push_back(key);
                return Some(transmit);
            }
            client.is_ready = false;
            self.set_alarm(key, now);
        }
        None
    }

    /// When to call [`handle_timeout`](Agent::handle_timeout) if nothing arrives before.
    pub fn poll_timeout(&self) -> Option<Instant<Local>> {
        self.alarms.first().map(|(at, _)| *at)
    }

    /// Counters of messages.
    pub fn counters(&self) -> Counters {
        self.agent.counters
    }

    /// Every client.
    pub fn clients(&self) -> impl Iterator<Item = ClientFigures> + '_ {
        self.clients.values().map(|client| {
            let session = &client.session;
            let (messages_in, messages_out, objects) = session.figures();
            ClientFigures {
                key: session.key,
                address: session.address,
                is_silent: session.is_silent,
                heard_at: session.heard_at,
                messages_in,
                messages_out,
                objects,
                is_ours: session.is_ours,
            }
        })
    }

    /// Answers a request for this agent's address that came by multicast.
    pub fn handle_discovery(&mut self, message: &[u8], from: ClientAddress, locators: &[([u8; 4], u16)]) {
        count(&mut self.agent.counters.received);
        let asked = Header::split(message).and_then(|(header, rest)| {
            let first = Submessages::of(rest).next().filter(|first| first.id == id::GET_INFO)?;
            Some((header, RequestId(first.body.first_chunk().copied()?)))
        });
        let Some((header, request)) = asked else { return count(&mut self.agent.counters.malformed) };
        self.reply(from, &header, |out| write_info(out, request, false, locators));
    }

    fn session_of(&self, header: &Header, from: ClientAddress) -> Option<ClientKey> {
        let key = match header.key {
            Some(key) => key,
            None => *self.by_address.get(&from)?,
        };
        self.clients.contains_key(&key).then_some(key)
    }

    /// A message outside of any session of its sender: only whether there is an agent may be asked, and
    /// leave be taken.
    fn handle_unknown_client(
        &mut self,
        header: &Header,
        first: Submessage<'_>,
        from: ClientAddress,
        known: Option<ClientKey>,
    ) {
        let Some(request) = first.body.first_chunk().copied().map(RequestId) else {
            return count(&mut self.agent.counters.malformed);
        };
        match first.id {
            id::GET_INFO => self.reply(from, header, |out| write_info(out, request, known.is_some(), &[])),
            id::DELETE if first.body.get(2..4) == Some(&ObjectId::CLIENT.0[..]) => {
                self.reply(from, header, |out| write_status(out, request, ObjectId::CLIENT));
            }
            _ => count(&mut self.agent.counters.unknown_session),
        }
    }

    fn handle_create_client(
        &mut self,
        submessage: Submessage<'_>,
        from: ClientAddress,
        now: Instant<Local>,
    ) -> Result<(), Truncated> {
        // Its length leaves out the properties, so it is not looked at.
        let mut reader = Reader::new(submessage.rest, submessage.is_little_endian());
        let (cookie, version): ([u8; 4], [u8; 2]) = (reader.octets()?, reader.octets()?);
        let introduction = read_introduction(&mut reader)?;
        let status = if cookie != COOKIE || introduction.key.0 == [0; 4] {
            Status::InvalidData
        } else if version[0] != VERSION[0] {
            Status::Incompatible
        } else if introduction.message_bytes_max < MESSAGE_BYTES_LEAST {
            Status::InvalidData
        } else if !self.has_room_for(introduction.key) {
            count(&mut self.agent.counters.refused_full);
            Status::Resources
        } else {
            self.admit(&introduction, from, now);
            Status::Ok
        };
        let key = has_key(introduction.session).then_some(introduction.key);
        let header = Header { session: introduction.session, stream: 0, sequence: 0, key };
        self.reply(from, &header, |out| status_agent(out, status, introduction.is_ours));
        Ok(())
    }

    /// Makes room by evicting the client that has been silent longest, if it must; false if none is silent.
    fn has_room_for(&mut self, key: ClientKey) -> bool {
        if self.clients.contains_key(&key) || self.clients.len() < self.agent.config.clients_max {
            return true;
        }
        let silent = self.clients.values().map(|client| &client.session).filter(|session| session.is_silent);
        let Some(oldest) = silent.min_by_key(|session| session.heard_at).map(|session| session.key) else {
            return false;
        };
        self.remove(oldest, Gone::Evicted);
        true
    }

    fn admit(&mut self, introduction: &Introduction, from: ClientAddress, now: Instant<Local>) {
        let key = introduction.key;
        // The client that was at this place is there no more.
        if let Some(other) = self.by_address.get(&from).copied().filter(|other| *other != key) {
            self.remove(other, Gone::Replaced);
        }
        if self.clients.get(&key).is_some_and(|client| client.session.id != introduction.session) {
            self.remove(key, Gone::Replaced);
        }
        match self.clients.get_mut(&key) {
            // A copy of the one before, delayed by the network: the client has begun already.
            Some(client) if client.session.has_just_begun(introduction, from, now) => {}
            Some(client) => {
                self.by_address.remove(&client.session.address);
                client.session.begin_anew(introduction, from, now);
                if client.session.is_silent {
                    client.session.handle_return(&mut self.agent);
                }
            }
            None => {
                let session = Session::new(introduction, from, &self.agent.config, now);
                self.clients.insert(key, Client { session, is_ready: false, alarm: None });
                self.agent.tell(Event::Connected { client: key, address: from });
            }
        }
        self.by_address.insert(from, key);
        self.wake(key);
    }

    /// Ends a session that its client did not end.
    fn remove(&mut self, key: ClientKey, reason: Gone) {
        let Some(mut client) = self.forget(key) else { return };
        if !client.session.is_silent {
            client.session.close_all(&mut self.agent);
        }
        self.agent.tell(Event::Disconnected { client: key, reason });
    }

    fn forget(&mut self, key: ClientKey) -> Option<Client> {
        let client = self.clients.remove(&key)?;
        if self.by_address.get(&client.session.address) == Some(&key) {
            self.by_address.remove(&client.session.address);
        }
        if let Some(at) = client.alarm {
            self.alarms.remove(&(at, key));
        }
        Some(client)
    }

    /// Answers a client that may have no session, on stream 0 and with the header's session.
    fn reply(&mut self, to: ClientAddress, header: &Header, write: impl FnOnce(&mut Vec<u8>)) {
        if self.replies.len() == REPLIES_MAX {
            return count(&mut self.agent.counters.answers_dropped);
        }
        let mut message = Vec::new();
        Header { stream: 0, sequence: 0, ..*header }.write(&mut message);
        write(&mut message);
        self.replies.push_back((to, message));
    }

    /// The client may have something to send.
    fn wake(&mut self, key: ClientKey) {
        if let Some(client) = self.clients.get_mut(&key)
            && !std::mem::replace(&mut client.is_ready, true)
        {
            self.ready.push_back(key);
        }
    }

    fn set_alarm(&mut self, key: ClientKey, now: Instant<Local>) {
        let Some(client) = self.clients.get_mut(&key) else { return };
        // Not before the next moment, so that time goes on even if something cannot be sent.
        let at = client.session.poll_timeout().map(|at| at.max(now + Span::from_us(100)));
        if at == client.alarm {
            return;
        }
        if let Some(old) = std::mem::replace(&mut client.alarm, at) {
            self.alarms.remove(&(old, key));
        }
        self.alarms.extend(at.map(|at| (at, key)));
    }
}

/// Reads CREATE_CLIENT from the vendor on.
fn read_introduction(reader: &mut Reader<'_>) -> Result<Introduction, Truncated> {
    let vendor: [u8; 2] = reader.octets()?;
    let (key, session) = (ClientKey(reader.octets()?), reader.u8()?);
    let mut hard_liveliness = None;
    if reader.flag()? {
        let properties = reader.u32()?;
        if properties > PROPERTIES_MAX {
            return Err(Truncated);
        }
        for _ in 0..properties {
            let (name, value) = (reader.string()?, reader.string()?);
            if name == "uxr_hl" {
                hard_liveliness = value.parse().ok().filter(|ms| *ms > 0).map(Span::from_ms);
            }
        }
    }
    let message_bytes_max = reader.u16()?;
    let is_ours = vendor == VENDOR_OURS;
    Ok(Introduction { key, session, is_ours, message_bytes_max, hard_liveliness })
}

#[cfg(test)]
mod tests;
