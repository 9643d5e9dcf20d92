//! Where each of our readers gets the samples of other hosts from: the network, or a node of this host that
//! receives them anyway (`docs/spec/discovery.md`, relayed readers).
//!
//! # Problem
//!
//! What a host receives it should receive once, although its nodes come, go and die as they like. Nobody may be
//! left without samples, and none may come twice.
//!
//! # Approach
//!
//! Each reader is either on the network, and says so, or reads the rings of a node whose reader says so
//! ([`stands_for`]). Writers send where a reader says it is on the network, and compute nothing.
//!
//! - Who receives keeps receiving; who comes later reads its rings. Only where two receive, because neither knew of
//!   the other, the higher gives way, and only once the other's rings hold what comes next here.
//! - When a receiver goes, the lowest of those behind it goes to the network, and the others behind it. If it does not
//!   say so in time, they all go: whatever one of them assumes, none waits for ever.
//! - Who is refused by a node (another user's, or not receiving after all) asks the next one, at last the network,
//!   and tries again later: a refusal may be but what one of two did not know yet.
//! - The node that filled a ring announces its end, whatever discovery knows by then.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use noctule_discovery::{
    Endpoint, EndpointId, EndpointKind, NodeId, Reliability, can_be_handed_on, stands_for,
};
use noctule_timebase::{Instant, Span};

use super::state::{Partner, State, Wish, discovery_clock};
use crate::clock::Raw;
use crate::shared_topic::{Change, Source};

/// A node that does not yet receive what is asked of it is asked again after this, doubled each time.
const ASK_AGAIN: Span = Span::from_ms(10);
/// Questions to a node that does not receive; after the last it is avoided.
const QUESTIONS_MAX: u32 = 4;
/// A node that did not answer [`QUESTIONS_MAX`] questions is not asked for this long.
const AVOIDANCE: Span = Span::from_s(2);
/// Who gives way waits until each writer's samples come where it goes; of one that is silent, for so long.
const GIVING_WAY: Span = Span::from_s(1);
/// Whose turn it is has so long to say that it receives.
const TURN: Span = Span::from_ms(50);

/// Rings of writers of other hosts, each with the newest sequence that had come here when it was granted.
type Granted = BTreeMap<Partner, (Box<Source>, Option<u64>)>;

/// From where one of our readers gets the samples of other hosts.
#[derive(Debug, Default)]
pub(super) struct Seat {
    place: Place,
    /// Of one on the network: to whom it gives way.
    moving: Option<Move>,
    /// Nodes that refused it, and when to try again.
    avoided: BTreeMap<NodeId, Instant<Raw>>,
    /// When to ask again for a writer, and how often it was asked for in vain.
    again: BTreeMap<Partner, (Instant<Raw>, u32)>,
}

#[derive(Debug)]
struct Move {
    to: Partner,
    /// What it has been given there.
    granted: Granted,
    /// When it no longer waits for those that are silent; `None`: it does not.
    until: Option<Instant<Raw>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    /// Its own node receives.
    #[default]
    Network,
    /// This reader's node receives.
    Behind(Partner),
    /// It is another's turn to receive, until then.
    Waiting(Instant<Raw>),
}

impl State {
    /// A writer of another host is to be read.
    pub(super) fn take_seat(
        &mut self,
        reader: EndpointId,
        node: NodeId,
        writer: &Arc<Endpoint>,
        now: Instant<Raw>,
    ) {
        if !can_be_handed_on(writer) {
            return self.subscribe(reader, node, writer, now);
        }
        let seat = self.seats.entry(reader).or_default();
        let moving = seat.moving.as_ref().map(|moving| moving.to);
        if let Place::Behind(to) = seat.place {
            self.ask(reader, to.0, (node, writer));
        }
        if seat_is_on_network(self.seats.get(&reader)) {
            self.subscribe(reader, node, writer, now);
        }
        if let Some(to) = moving {
            self.ask(reader, to.0, (node, writer));
        }
    }

    /// A writer of another host is no longer to be read.
    pub(super) fn leave_seat(&mut self, reader: EndpointId, writer: Partner) {
        let Some(seat) = self.seats.get_mut(&reader) else {
            return self.unsubscribe(reader, writer);
        };
        seat.again.remove(&writer);
        let moving = seat.moving.as_mut().map(|moving| {
            moving.granted.remove(&writer);
            moving.to.0
        });
        let behind = match seat.place {
            Place::Behind(to) => Some(to.0),
            _ => None,
        };
        for via in moving.into_iter().chain(behind) {
            self.wishes.push_back(Wish::Release { via, writer, reader });
        }
        self.unsubscribe(reader, writer);
    }

    /// A reader is new: it need not receive where another does, whatever their numbers.
    pub(super) fn seat(&mut self, reader: EndpointId, now: Instant<Raw>) {
        if self.has_other_hosts && self.can_be_relayed(reader) {
            self.seats_are_restless = true;
            self.seats.insert(reader, Seat { place: Place::Waiting(now + TURN), ..Seat::default() });
            self.discovery.set_relayed(reader, true, discovery_clock(now));
            self.reseat(reader, now);
        }
    }

    /// Looks for the right place of every reader.
    pub(super) fn reseat_all(&mut self, now: Instant<Raw>) {
        let readers: Vec<EndpointId> = self.subscribers.keys().copied().collect();
        readers.into_iter().for_each(|reader| self.reseat(reader, now));
    }

    /// Looks for the right place of a reader: something about its fellows has changed.
    pub(super) fn reseat(&mut self, reader: EndpointId, now: Instant<Raw>) {
        // Where there are no other hosts, nobody cares.
        if !self.has_other_hosts || !self.can_be_relayed(reader) {
            return;
        }
        let Some(choice) = self.choose(reader, now) else { return };
        self.seats_are_restless = true;
        let seat = self.seats.entry(reader).or_default();
        match (seat.place, choice) {
            (before, choice) if before == choice => self.stop_moving(reader),
            (Place::Network, Place::Behind(to)) => {
                if seat.moving.as_ref().is_some_and(|moving| moving.to == to) {
                    return;
                }
                self.stop_moving(reader);
                self.move_to(reader, to, now);
            }
            (_, Place::Behind(to)) => {
                self.rise(reader);
                self.place(reader, choice);
                self.discovery.set_relayed(reader, true, discovery_clock(now));
                for (node, writer) in self.foreign_writers(reader) {
                    self.ask(reader, to.0, (node, &writer));
                }
            }
            (_, Place::Network) => {
                self.rise(reader);
                self.place(reader, choice);
                self.discovery.set_relayed(reader, false, discovery_clock(now));
                for (node, writer) in self.foreign_writers(reader) {
                    self.subscribe(reader, node, &writer, now);
                }
            }
            (_, Place::Waiting(_)) => {
                self.rise(reader);
                self.place(reader, choice);
                self.discovery.set_relayed(reader, true, discovery_clock(now));
            }
        }
    }

    /// A node of this host has given us the ring of a writer of another host.
    pub(super) fn handle_relay(
        &mut self,
        reader: EndpointId,
        via: NodeId,
        source: Box<Source>,
        now: Instant<Raw>,
    ) {
        let writer = (source.node, source.writer);
        if self.is_released(reader, via, writer) {
            return;
        }
        let Some(seat) = self.seats.get_mut(&reader) else { return };
        seat.again.remove(&writer);
        match &mut seat.moving {
            Some(moving) => {
                let last = self.remotes.get(&writer.0).and_then(|remote| remote.last_sequence(writer.1));
                moving.granted.insert(writer, (source, last));
                self.finish_move(reader, now);
            }
            None => {
                if let Some(topic) = self.subscribers.get(&reader) {
                    topic.change(Change::Came(source));
                }
            }
        }
    }

    /// The ring of a writer of another host that a node of this host gave us is filled no more.
    pub(super) fn handle_relay_end(
        &mut self,
        reader: EndpointId,
        (via, writer): (NodeId, Partner),
        now: Instant<Raw>,
    ) {
        if self.is_released(reader, via, writer) {
            return;
        }
        match self.seats.get_mut(&reader).and_then(|seat| seat.moving.as_mut()) {
            Some(moving) => _ = moving.granted.remove(&writer),
            None => {
                if let Some(topic) = self.subscribers.get(&reader) {
                    topic.change(Change::Went(writer.0, writer.1));
                }
            }
        }
        self.handle_relay_refusal(reader, (via, writer), false, now);
    }

    /// A node of this host does not give us the ring of a writer of another host: not yet, or not at all.
    pub(super) fn handle_relay_refusal(
        &mut self,
        reader: EndpointId,
        (via, writer): (NodeId, Partner),
        is_final: bool,
        now: Instant<Raw>,
    ) {
        if self.is_released(reader, via, writer) {
            return;
        }
        let Some(seat) = self.seats.get_mut(&reader) else { return };
        self.seats_are_restless = true;
        let (at, asked) = seat.again.entry(writer).or_insert((now, 0));
        (*at, *asked) = (now + Span::from_ns(ASK_AGAIN.ns() << *asked), *asked + 1);
        if is_final || *asked > QUESTIONS_MAX {
            seat.again.clear();
            seat.avoided.insert(via, now + AVOIDANCE);
            self.reseat(reader, now);
        }
    }

    /// When a question is to be asked again, or a time is over.
    pub(super) fn poll_seats(&self) -> Option<Instant<Raw>> {
        if !self.seats_are_restless {
            return None;
        }
        let questions = self.seats.values().flat_map(|seat| seat.again.values()).map(|(at, _)| *at);
        questions.chain(self.seats.values().filter_map(Seat::next_end)).min()
    }

    /// Asks again what is due, and waits no longer for those whose turn is over.
    pub(super) fn handle_seats(&mut self, now: Instant<Raw>) {
        if !self.seats_are_restless {
            return;
        }
        let is_over = |seat: &Seat| seat.next_end().is_some_and(|end| end <= now);
        let over = self.seats.iter_mut().filter(|(_, seat)| is_over(seat));
        let over: Vec<EndpointId> = over
            .map(|(reader, seat)| {
                seat.end(now);
                *reader
            })
            .collect();
        for reader in over {
            self.reseat(reader, now);
            self.finish_move(reader, now);
        }
        let mut due = Vec::new();
        for (reader, seat) in &mut self.seats {
            let Some((via, _)) = seat.goal() else {
                // Asked of nobody.
                seat.again.clear();
                continue;
            };
            for (writer, (at, _)) in &mut seat.again {
                if *at <= now {
                    // Until it is answered.
                    *at = Instant::MAX;
                    due.push((*reader, via, *writer));
                }
            }
        }
        for (reader, via, writer) in due {
            if let Some(endpoint) = self.discovery.remote(reader, writer).cloned() {
                self.ask(reader, via, (writer.0, &endpoint));
            }
        }
        self.seats_are_restless = self.seats.values().any(Seat::is_restless);
    }

    /// Samples have come: whoever is about to give way looks whether it can.
    pub(super) fn handle_arrivals(&mut self, now: Instant<Raw>) {
        let moving: Vec<EndpointId> =
            self.seats.iter().filter(|(_, seat)| seat.moving.is_some()).map(|(reader, _)| *reader).collect();
        for reader in moving {
            self.finish_move(reader, now);
        }
    }

    /// Whether a reader is about to give way.
    pub(super) fn is_moving(&self) -> bool {
        self.seats_are_restless && self.seats.values().any(|seat| seat.moving.is_some())
    }

    /// A node has gone, and what it refused with it.
    pub(super) fn forget_relay(&mut self, node: NodeId) {
        for seat in self.seats.values_mut() {
            seat.avoided.remove(&node);
        }
    }

    fn choose(&self, reader: EndpointId, now: Instant<Raw>) -> Option<Place> {
        let ours = self.discovery.local(reader)?;
        let seat = self.seats.get(&reader);
        let is_on_network = seat_is_on_network(seat);
        // Of two that can stand for each other, the lower receives.
        let outranks = |(node, fellow): &(NodeId, &Endpoint)| {
            !stands_for(ours, fellow) || (*node, fellow.id) < (self.me, reader)
        };
        let is_avoided = |node: NodeId| seat.is_some_and(|seat| seat.avoided.contains_key(&node));
        let fellows: Vec<(NodeId, &Endpoint)> = self
            .discovery
            .readers_beside(reader)
            .map(|(node, fellow)| (node, &**fellow))
            .filter(|(node, fellow)| !is_avoided(*node) && stands_for(fellow, ours))
            .collect();
        let receivers: BTreeSet<Partner> = fellows
            .iter()
            .filter(|fellow| !fellow.1.relayed && (!is_on_network || outranks(fellow)))
            .map(|(node, fellow)| (*node, fellow.id))
            .collect();
        let current = seat.and_then(Seat::goal).filter(|goal| receivers.contains(goal));
        if let Some(to) = current.or_else(|| receivers.first().copied()) {
            return Some(Place::Behind(to));
        }
        let until = seat.and_then(Seat::waits_until).unwrap_or(now + TURN);
        let is_anothers_turn = !is_on_network && now < until && fellows.iter().any(outranks);
        Some(if is_anothers_turn { Place::Waiting(until) } else { Place::Network })
    }

    /// Whether a reader can be served by another node: it is ours, and requests no reliability.
    fn can_be_relayed(&self, reader: EndpointId) -> bool {
        let is_such = |ours: &Endpoint| {
            ours.kind == EndpointKind::Reader && ours.qos.reliability == Reliability::BestEffort
        };
        self.subscribers.contains_key(&reader) && self.discovery.local(reader).is_some_and(is_such)
    }

    fn place(&mut self, reader: EndpointId, place: Place) {
        if let Some(seat) = self.seats.get_mut(&reader) {
            seat.place = place;
            seat.again.clear();
        }
    }

    /// Lets go of the rings of the node that a reader sat behind; what they hold is still read.
    fn rise(&mut self, reader: EndpointId) {
        let Some(Place::Behind((via, _))) = self.seats.get(&reader).map(|seat| seat.place) else { return };
        for (node, writer) in self.foreign_writers(reader) {
            let writer = (node, writer.id);
            self.wishes.push_back(Wish::Release { via, writer, reader });
            if let Some(topic) = self.subscribers.get(&reader) {
                topic.change(Change::Went(writer.0, writer.1));
            }
        }
    }

    fn move_to(&mut self, reader: EndpointId, to: Partner, now: Instant<Raw>) {
        if let Some(seat) = self.seats.get_mut(&reader) {
            seat.moving = Some(Move { to, granted: BTreeMap::new(), until: Some(now + GIVING_WAY) });
        }
        for (node, writer) in self.foreign_writers(reader) {
            self.ask(reader, to.0, (node, &writer));
        }
        self.finish_move(reader, now);
    }

    fn stop_moving(&mut self, reader: EndpointId) {
        let Some(seat) = self.seats.get_mut(&reader) else { return };
        let Some(Move { to, .. }) = seat.moving.take() else { return };
        seat.again.clear();
        for (node, writer) in self.foreign_writers(reader) {
            self.wishes.push_back(Wish::Release { via: to.0, writer: (node, writer.id), reader });
        }
    }

    /// Gives way once every ring there holds what comes next here. Of a silent writer this is unknown.
    fn finish_move(&mut self, reader: EndpointId, now: Instant<Raw>) {
        let writers = self.foreign_writers(reader);
        let Some(seat) = self.seats.get_mut(&reader) else { return };
        let Some(Move { to, granted, until }) = &mut seat.moving else { return };
        let is_covered = |(node, writer): &(NodeId, Arc<Endpoint>)| {
            let Some((source, last_then)) = granted.get_mut(&(*node, writer.id)) else { return false };
            let last = self.remotes.get(node).and_then(|remote| remote.last_sequence(writer.id));
            let next = source.reader.next_number();
            let is_silent = last == *last_then;
            until.is_none() && is_silent || last.zip(next).is_some_and(|(last, next)| next <= last + 1)
        };
        if !writers.iter().all(is_covered) {
            return;
        }
        let (to, granted) = (*to, std::mem::take(granted));
        (seat.place, seat.moving) = (Place::Behind(to), None);
        self.discovery.set_relayed(reader, true, discovery_clock(now));
        let Some(topic) = self.subscribers.get(&reader) else { return };
        let topic = Arc::clone(topic);
        for ((node, writer), (source, _)) in granted {
            self.unsubscribe(reader, (node, writer));
            topic.change(Change::Went(node, writer));
            topic.change(Change::Came(source));
        }
    }

    /// A reader of ours no longer reads what this node receives of a writer.
    pub(super) fn unsubscribe(&mut self, reader: EndpointId, writer: Partner) {
        let remote = self.remotes.get_mut(&writer.0);
        if remote.is_some_and(|remote| remote.unsubscribe(writer.1, reader)) {
            self.pace_exchanges();
            self.groups.stop(writer);
            self.wishes.push_back(Wish::End { writer });
        }
    }

    /// Shares the requests of the clock exchange between the nodes that are read.
    pub(super) fn pace_exchanges(&mut self) {
        let heard_by_groups = self.remotes.values().filter(|remote| remote.is_heard_by_groups()).count();
        self.remotes.values_mut().for_each(|remote| remote.pace_exchange(heard_by_groups));
    }

    /// Whether what a node says about a writer comes too late: the reader sits elsewhere by now, or has asked anew.
    fn is_released(&self, reader: EndpointId, via: NodeId, writer: Partner) -> bool {
        let is_meant = |wish: &Wish| {
            matches!(wish, Wish::Release { via: its_via, writer: its_writer, reader: its_reader }
            if (*its_via, *its_writer, *its_reader) == (via, writer, reader))
        };
        let goal = self.seats.get(&reader).and_then(Seat::goal);
        goal.is_none_or(|goal| goal.0 != via) || self.wishes.iter().any(is_meant)
    }

    fn ask(&mut self, reader: EndpointId, via: NodeId, (node, writer): (NodeId, &Arc<Endpoint>)) {
        self.wishes.push_back(Wish::Attach { via, writer: (node, Arc::clone(writer)), reader });
    }

    fn subscribe(&mut self, reader: EndpointId, node: NodeId, writer: &Arc<Endpoint>, now: Instant<Raw>) {
        let Some(topic) = self.subscribers.get(&reader).cloned() else { return };
        let room = self.check_room_for_ring(node, writer.id);
        let subscribed = room.and_then(|()| self.remote(node, now).subscribe(node, writer, &topic));
        self.pace_exchanges();
        if let Err(why) = subscribed {
            let (topic, why) = (writer.topic.clone(), why.to_string());
            self.note(crate::notice::Notice::Unreadable { topic, why });
        } else if writer.qos.multicast {
            self.expect_group(node, writer);
        }
    }

    /// Writers of other hosts that a reader reads through its seat.
    fn foreign_writers(&self, reader: EndpointId) -> Vec<(NodeId, Arc<Endpoint>)> {
        let partners = self.partners.get(&reader).into_iter().flatten();
        let foreign = partners.filter(|(node, _)| *node != self.me && !self.discovery.is_here(*node));
        foreign
            .filter_map(|partner| Some((partner.0, self.discovery.remote(reader, *partner)?.clone())))
            .filter(|(_, writer)| can_be_handed_on(writer))
            .collect()
    }
}

impl Seat {
    fn waits_until(&self) -> Option<Instant<Raw>> {
        if let Place::Waiting(until) = self.place { Some(until) } else { None }
    }

    /// When it has waited long enough for something: a turn, a sample, a change of mind.
    fn next_end(&self) -> Option<Instant<Raw>> {
        let moving = self.moving.as_ref().and_then(|moving| moving.until);
        self.waits_until().into_iter().chain(moving).chain(self.avoided.values().copied()).min()
    }

    fn is_restless(&self) -> bool {
        self.moving.is_some() || !self.again.is_empty() || self.next_end().is_some()
    }

    fn end(&mut self, now: Instant<Raw>) {
        self.avoided.retain(|_, until| *until > now);
        if let Some(moving) = &mut self.moving {
            moving.until = moving.until.filter(|until| *until > now);
        }
    }

    /// Behind whom it is, or will be.
    fn goal(&self) -> Option<Partner> {
        match (&self.moving, self.place) {
            (Some(moving), _) => Some(moving.to),
            (None, Place::Behind(to)) => Some(to),
            _ => None,
        }
    }
}

fn seat_is_on_network(seat: Option<&Seat>) -> bool {
    seat.is_none_or(|seat| seat.place == Place::Network)
}

#[cfg(test)]
mod tests;
