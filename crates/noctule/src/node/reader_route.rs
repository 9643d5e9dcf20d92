//! Where each of our readers gets the samples of other hosts from: the network, or a relay, which is a node of this host that
//! receives them anyway (`docs/spec/discovery.md`, relayed readers).
//!
//! # Problem
//!
//! A host should receive each sample once, although its nodes join, leave and die at any time. No reader may be left without
//! samples, and none may get one twice.
//!
//! # Approach
//!
//! Each reader is either direct, which its node announces, or it reads the rings of a relay, whose own reader is announced as direct
//! ([`stands_for`]). Writers send to the nodes of direct readers, and compute nothing.
//!
//! - A node that receives goes on; a reader that joins later is relayed by it. Only where two nodes receive, because neither knew
//!   of the other, the one with the higher number hands over, and only once the other's rings hold the next sequence number.
//! - When a relay ends, the lowest of its readers becomes direct, and the others are relayed by it. If it does not announce so in
//!   time, all of them become direct: whatever one of them assumes, none waits for ever.
//! - A reader that a node refuses (of another user, or not receiving after all) asks the next node, becomes direct if there is
//!   none, and tries again later: a refusal may mean only that one of the two did not know something yet.
//! - The node that filled a ring announces its end, whatever discovery knows by then.
//!
//! Here are the routes and the decisions about them; `state/relay.rs` carries them out.

pub(super) mod trace;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use noctule_discovery::{Endpoint, EndpointId, NodeId, stands_for};
use noctule_qlog::Log;
use noctule_timebase::{Instant, Span};

use self::trace::{Choice, Event, Refusal};
use super::guid::Guid;
use crate::clock::Raw;
use crate::shared_topic::Source;

/// A node that does not yet receive what is asked of it is asked again after this, doubled each time.
const ASK_AGAIN: Span = Span::from_ms(10);
/// Questions to a node that does not receive; after the last it is avoided.
const QUESTIONS_MAX: u32 = 4;
/// A node that refused, or did not answer [`QUESTIONS_MAX`] questions, is not asked for this long.
const REFUSAL_TIMEOUT: Span = Span::from_s(2);
/// A handover waits until each writer's samples come where it goes to; for those of a silent writer this long.
const HANDOVER_TIMEOUT: Span = Span::from_s(1);
/// The node that is to become the relay has this long to announce that it receives.
const ELECTION_TIMEOUT: Span = Span::from_ms(50);

/// Rings of writers of other hosts, each with the newest sequence number that had come here when it was granted.
pub(super) type GrantedRings = BTreeMap<Guid, (Box<Source>, Option<u64>)>;

/// From where a reader gets the samples of other hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Route {
    /// Its own node receives.
    #[default]
    Direct,
    /// The node of this reader receives.
    Relayed(Guid),
    /// It is another node's turn to announce that it receives, until then.
    Electing(Instant<Raw>),
}

/// The routes of all readers of a node.
#[derive(Debug, Default)]
pub(super) struct ReaderRoutes {
    routes: BTreeMap<EndpointId, ReaderRoute>,
    /// One of them may wait for something.
    is_pending: bool,
    log: Log<Event>,
}

/// The route of one reader.
#[derive(Debug, Default)]
struct ReaderRoute {
    route: Route,
    /// Of a direct reader: to which relay it changes.
    handover: Option<Handover>,
    /// Nodes that refused it, and when to try again.
    avoided: BTreeMap<NodeId, Instant<Raw>>,
    /// When to ask again for a writer, and how often it was requested in vain.
    again: BTreeMap<Guid, (Instant<Raw>, u32)>,
}

#[derive(Debug)]
struct Handover {
    to: Guid,
    /// Rings granted to it there.
    granted: GrantedRings,
    /// When it no longer waits for writers that are silent; `None`: it does not.
    until: Option<Instant<Raw>>,
}

impl ReaderRoutes {
    /// Decisions as events, kept once it is started; what is noted from then on happens at the time given to [`at`](Self::at).
    pub(super) fn trace(&mut self) -> &mut Log<Event> {
        &mut self.log
    }

    /// Sets the time of the events that follow.
    pub(super) fn at(&mut self, now: Instant<Raw>) {
        self.log.at(Instant::from_ns(now.ns()));
    }

    /// A reader is new: it need not receive where another does, whatever their numbers.
    pub(super) fn insert(&mut self, reader: EndpointId, now: Instant<Raw>) {
        self.is_pending = true;
        self.at(now);
        self.log.note(|| Event::Electing { reader: reader.0, trigger: Choice::New });
        let route = Route::Electing(now + ELECTION_TIMEOUT);
        self.routes.insert(reader, ReaderRoute { route, ..ReaderRoute::default() });
    }

    /// A reader is no more.
    pub(super) fn remove(&mut self, reader: EndpointId) {
        self.routes.remove(&reader);
    }

    /// A node has gone, and what it refused with it.
    pub(super) fn forget(&mut self, node: NodeId) {
        for route in self.routes.values_mut() {
            route.avoided.remove(&node);
        }
    }

    /// A writer is to be read: whether this node is to receive it, and which node is to be asked for its ring.
    pub(super) fn add_writer(&mut self, reader: EndpointId) -> (bool, Option<NodeId>) {
        let route = self.routes.entry(reader).or_default();
        (route.route == Route::Direct, route.goal().map(|(node, _)| node))
    }

    /// A writer is no longer to be read; returns the node that was asked for its ring.
    pub(super) fn remove_writer(&mut self, reader: EndpointId, writer: Guid) -> Option<NodeId> {
        let route = self.routes.get_mut(&reader)?;
        route.again.remove(&writer);
        if let Some(handover) = &mut route.handover {
            handover.granted.remove(&writer);
        }
        route.goal().map(|(node, _)| node)
    }

    /// The route of a reader that is being decided on.
    pub(super) fn decide(&mut self, reader: EndpointId) -> Route {
        self.is_pending = true;
        self.routes.entry(reader).or_default().route
    }

    /// The relay of a reader, or that to which it changes.
    pub(super) fn goal(&self, reader: EndpointId) -> Option<Guid> {
        self.routes.get(&reader).and_then(ReaderRoute::goal)
    }

    /// The node that relays to a reader.
    pub(super) fn relay(&self, reader: EndpointId) -> Option<NodeId> {
        match self.routes.get(&reader)?.route {
            Route::Relayed((node, _)) => Some(node),
            Route::Direct | Route::Electing(_) => None,
        }
    }

    /// Sets the route of a reader, which sends its question anew.
    pub(super) fn set(&mut self, reader: EndpointId, (to, trigger): (Route, Choice)) {
        let number = reader.0;
        self.log.note(|| match to {
            Route::Direct => Event::Direct { reader: number, trigger },
            Route::Relayed((relay, _)) => Event::Relayed { reader: number, relay, trigger },
            Route::Electing(_) => Event::Electing { reader: number, trigger },
        });
        if let Some(route) = self.routes.get_mut(&reader) {
            route.route = to;
            route.again.clear();
        }
    }

    /// The right route of our reader `ours` of node `me`, given the readers of this topic on other nodes of this host, and why it is the right one.
    pub(super) fn choose<'a>(
        &self,
        (me, ours): (NodeId, &Endpoint),
        siblings: impl Iterator<Item = (NodeId, &'a Endpoint)>,
        now: Instant<Raw>,
    ) -> (Route, Choice) {
        let route = self.routes.get(&ours.id);
        let is_direct = route.is_none_or(|route| route.route == Route::Direct);
        // Of two that can stand for each other, the lower receives.
        let outranks = |(node, sibling): &(NodeId, &Endpoint)| {
            !stands_for(ours, sibling) || (*node, sibling.id) < (me, ours.id)
        };
        let is_avoided = |node: NodeId| route.is_some_and(|route| route.avoided.contains_key(&node));
        let siblings: Vec<(NodeId, &Endpoint)> =
            siblings.filter(|(node, sibling)| !is_avoided(*node) && stands_for(sibling, ours)).collect();
        let relays: BTreeSet<Guid> = siblings
            .iter()
            .filter(|sibling| !sibling.1.relayed && (!is_direct || outranks(sibling)))
            .map(|(node, sibling)| (*node, sibling.id))
            .collect();
        let current = route.and_then(ReaderRoute::goal).filter(|goal| relays.contains(goal));
        if let Some(to) = current.or_else(|| relays.first().copied()) {
            return (
                Route::Relayed(to),
                if is_direct { Choice::LowerNumber } else { Choice::ReceivesAlready },
            );
        }
        let until = route.and_then(ReaderRoute::elects_until).unwrap_or(now + ELECTION_TIMEOUT);
        match (siblings.is_empty(), siblings.iter().any(outranks)) {
            (true, _) => (Route::Direct, Choice::Alone),
            (false, false) => (Route::Direct, Choice::Lowest),
            (false, true) if is_direct || now >= until => (Route::Direct, Choice::ElectionOver),
            (false, true) => (Route::Electing(until), Choice::NotAnnounced),
        }
    }

    /// A direct reader is to be relayed.
    pub(super) fn begin_handover(
        &mut self,
        reader: EndpointId,
        (to, trigger): (Guid, Choice),
        now: Instant<Raw>,
    ) {
        self.log.note(|| Event::HandoverBegins { reader: reader.0, relay: to.0, trigger });
        if let Some(route) = self.routes.get_mut(&reader) {
            let until = Some(now + HANDOVER_TIMEOUT);
            route.handover = Some(Handover { to, granted: GrantedRings::new(), until });
        }
    }

    /// It is to stay direct after all; returns the node whose rings it lets go of.
    pub(super) fn cancel_handover(&mut self, reader: EndpointId) -> Option<NodeId> {
        let route = self.routes.get_mut(&reader)?;
        let Handover { to, .. } = route.handover.take()?;
        route.again.clear();
        self.log.note(|| Event::HandoverCancelled { reader: reader.0, relay: to.0 });
        Some(to.0)
    }

    /// Makes a reader relayed, if it is in a handover and every ring there holds the next sequence number of its writer. Of a silent
    /// writer this is unknown. `last_sequence` is the newest that has come here; returns the rings.
    pub(super) fn finish_handover(
        &mut self,
        reader: EndpointId,
        writers: &[(NodeId, Arc<Endpoint>)],
        last_sequence: impl Fn(Guid) -> Option<u64>,
    ) -> Option<GrantedRings> {
        let route = self.routes.get_mut(&reader)?;
        let Handover { to, granted, until } = route.handover.as_mut()?;
        let is_covered = |(node, writer): &(NodeId, Arc<Endpoint>)| {
            let writer = (*node, writer.id);
            let Some((source, last_then)) = granted.get_mut(&writer) else { return false };
            let last = last_sequence(writer);
            let next = source.reader.next_number();
            let is_silent = last == *last_then;
            until.is_none() && is_silent || last.zip(next).is_some_and(|(last, next)| next <= last + 1)
        };
        if !writers.iter().all(is_covered) {
            return None;
        }
        let (to, granted) = (*to, std::mem::take(granted));
        (route.route, route.handover) = (Route::Relayed(to), None);
        let rings = granted.len() as u32;
        self.log.note(|| Event::HandoverEnds { reader: reader.0, relay: to.0, rings });
        Some(granted)
    }

    /// A ring has come that was requested, of a writer of which `last` is the newest that has come here. Returns it, unless it is kept for
    /// the end of a handover.
    pub(super) fn handle_granted(
        &mut self,
        reader: EndpointId,
        source: Box<Source>,
        last: Option<u64>,
    ) -> Option<Box<Source>> {
        let route = self.routes.get_mut(&reader)?;
        let writer = (source.node, source.writer);
        route.again.remove(&writer);
        let (node, number) = (writer.0, writer.1.0);
        self.log.note(|| Event::Granted { reader: reader.0, node, writer: number });
        let Some(handover) = &mut route.handover else { return Some(source) };
        handover.granted.insert(writer, (source, last));
        None
    }

    /// A ring is filled no more; whether the reader reads it, and does not only keep it for a handover.
    pub(super) fn handle_end(&mut self, reader: EndpointId, writer: Guid) -> bool {
        let (node, number) = (writer.0, writer.1.0);
        self.log.note(|| Event::Ended { reader: reader.0, node, writer: number });
        match self.routes.get_mut(&reader).and_then(|route| route.handover.as_mut()) {
            Some(handover) => {
                handover.granted.remove(&writer);
                false
            }
            None => true,
        }
    }

    /// A node does not give a ring: not yet, or not at all. True if it is avoided from now on.
    pub(super) fn handle_refusal(
        &mut self,
        reader: EndpointId,
        (via, writer): (NodeId, Guid),
        is_final: bool,
        now: Instant<Raw>,
    ) -> bool {
        let Some(route) = self.routes.get_mut(&reader) else { return false };
        self.is_pending = true;
        let (at, asked) = route.again.entry(writer).or_insert((now, 0));
        (*at, *asked) = (now + Span::from_ns(ASK_AGAIN.ns() << *asked), *asked + 1);
        let is_avoided = is_final || *asked > QUESTIONS_MAX;
        let trigger = if is_avoided { Refusal::Avoided } else { Refusal::AskAgain };
        self.log.note(|| Event::Refused { reader: reader.0, relay: via, writer: writer.1.0, trigger });
        if is_avoided {
            route.again.clear();
            route.avoided.insert(via, now + REFUSAL_TIMEOUT);
        }
        is_avoided
    }

    /// When a question is to be asked again, or a time is over.
    pub(super) fn poll_timeout(&self) -> Option<Instant<Raw>> {
        if !self.is_pending {
            return None;
        }
        let questions = self.routes.values().flat_map(|route| route.again.values()).map(|(at, _)| *at);
        questions.chain(self.routes.values().filter_map(ReaderRoute::next_end)).min()
    }

    /// Whether a route may wait for something.
    pub(super) fn is_pending(&self) -> bool {
        self.is_pending
    }

    /// Readers that have waited long enough for something.
    pub(super) fn take_expired(&mut self, now: Instant<Raw>) -> Vec<EndpointId> {
        let is_over = |route: &ReaderRoute| route.next_end().is_some_and(|end| end <= now);
        let over = self.routes.iter_mut().filter(|(_, route)| is_over(route));
        over.map(|(reader, route)| {
            route.end(now);
            *reader
        })
        .collect()
    }

    /// Questions that are due: of which reader, to which node, for which writer. Each waits for its answer from now on.
    pub(super) fn take_questions(&mut self, now: Instant<Raw>) -> Vec<(EndpointId, NodeId, Guid)> {
        let mut due = Vec::new();
        for (reader, route) in &mut self.routes {
            let Some((via, _)) = route.goal() else {
                // There is nobody to send it to.
                route.again.clear();
                continue;
            };
            for (writer, (at, _)) in &mut route.again {
                if *at <= now {
                    *at = Instant::MAX;
                    due.push((*reader, via, *writer));
                }
            }
        }
        due
    }

    /// All that was due is done.
    pub(super) fn settle(&mut self) {
        self.is_pending = self.routes.values().any(ReaderRoute::is_pending);
    }

    /// Readers in a handover.
    pub(super) fn in_handover(&self) -> Vec<EndpointId> {
        let in_handover = self.routes.iter().filter(|(_, route)| route.handover.is_some());
        in_handover.map(|(reader, _)| *reader).collect()
    }

    /// Whether a reader is in a handover.
    pub(super) fn has_handover(&self) -> bool {
        self.is_pending && self.routes.values().any(|route| route.handover.is_some())
    }
}

impl ReaderRoute {
    fn elects_until(&self) -> Option<Instant<Raw>> {
        if let Route::Electing(until) = self.route { Some(until) } else { None }
    }

    /// When it has waited long enough for something: an election, a sample, a node that refused.
    fn next_end(&self) -> Option<Instant<Raw>> {
        let handover = self.handover.as_ref().and_then(|handover| handover.until);
        self.elects_until().into_iter().chain(handover).chain(self.avoided.values().copied()).min()
    }

    fn is_pending(&self) -> bool {
        self.handover.is_some() || !self.again.is_empty() || self.next_end().is_some()
    }

    fn end(&mut self, now: Instant<Raw>) {
        self.avoided.retain(|_, until| *until > now);
        if let Some(handover) = &mut self.handover {
            handover.until = handover.until.filter(|until| *until > now);
        }
    }

    /// The relay, now or after the handover. Only a direct reader has a handover.
    fn goal(&self) -> Option<Guid> {
        match (&self.handover, self.route) {
            (Some(handover), _) => Some(handover.to),
            (None, Route::Relayed(to)) => Some(to),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use noctule_discovery::{EndpointKind, Qos};

    use super::*;

    const OURS: EndpointId = EndpointId(1);
    const ME: NodeId = NodeId([5; 16]);
    const LOWER: NodeId = NodeId([2; 16]);
    const HIGHER: NodeId = NodeId([8; 16]);
    const START: Instant<Raw> = Instant::from_ns(0);

    fn reader(relayed: bool) -> Endpoint {
        Endpoint {
            id: OURS,
            kind: EndpointKind::Reader,
            topic: "camera".into(),
            type_name: "bytes".into(),
            type_hash: 0,
            formats: 1,
            payload_bytes_max: 8,
            qos: Qos::default(),
            relayed,
        }
    }

    fn choose(routes: &ReaderRoutes, siblings: &[(NodeId, bool)], now: Instant<Raw>) -> (Route, Choice) {
        let siblings: Vec<(NodeId, Endpoint)> =
            siblings.iter().map(|(node, relayed)| (*node, reader(*relayed))).collect();
        let siblings = siblings.iter().map(|(node, sibling)| (*node, sibling));
        routes.choose((ME, &reader(false)), siblings, now)
    }

    #[test]
    fn a_new_reader_is_relayed_by_any_node_that_receives_and_waits_for_a_lower_one_only() {
        let mut routes = ReaderRoutes::default();
        routes.insert(OURS, START);
        assert_eq!(
            choose(&routes, &[(HIGHER, false)], START),
            (Route::Relayed((HIGHER, OURS)), Choice::ReceivesAlready)
        );
        let until = START + ELECTION_TIMEOUT;
        assert_eq!(choose(&routes, &[(LOWER, true)], START), (Route::Electing(until), Choice::NotAnnounced));
        assert_eq!(choose(&routes, &[(HIGHER, true)], START), (Route::Direct, Choice::Lowest));
        assert_eq!(choose(&routes, &[(LOWER, true)], until), (Route::Direct, Choice::ElectionOver));
        assert_eq!(choose(&routes, &[], START), (Route::Direct, Choice::Alone));
    }

    #[test]
    fn of_two_direct_readers_the_higher_hands_over() {
        let mut routes = ReaderRoutes::default();
        assert_eq!(routes.decide(OURS), Route::Direct);
        assert_eq!(choose(&routes, &[(HIGHER, false)], START), (Route::Direct, Choice::Lowest));
        let relay = (LOWER, OURS);
        assert_eq!(choose(&routes, &[(LOWER, false)], START), (Route::Relayed(relay), Choice::LowerNumber));
        routes.begin_handover(OURS, (relay, Choice::LowerNumber), START);
        assert!(routes.has_handover() && routes.relay(OURS).is_none() && routes.goal(OURS) == Some(relay));
        let silent = |_| None;
        assert!(routes.finish_handover(OURS, &[], silent).is_some(), "nothing is written");
        assert_eq!((routes.relay(OURS), routes.has_handover()), (Some(LOWER), false));
    }

    #[test]
    fn a_node_that_does_not_answer_is_asked_five_times_and_then_avoided_for_two_seconds() {
        let mut routes = ReaderRoutes::default();
        routes.insert(OURS, START);
        routes.set(OURS, (Route::Relayed((LOWER, OURS)), Choice::ReceivesAlready));
        let writer = (HIGHER, EndpointId(9));
        let mut now = START;
        for _ in 0..QUESTIONS_MAX {
            assert!(!routes.handle_refusal(OURS, (LOWER, writer), false, now));
            now = routes.poll_timeout().unwrap();
            assert_eq!(routes.take_questions(now), [(OURS, LOWER, writer)]);
        }
        assert_eq!(now - START, Span::from_ms(10 + 20 + 40 + 80));
        assert!(routes.handle_refusal(OURS, (LOWER, writer), false, now));
        assert_eq!(choose(&routes, &[(LOWER, false)], now).0, Route::Direct);
        assert_eq!(routes.take_expired(now + REFUSAL_TIMEOUT), [OURS]);
        assert_eq!(choose(&routes, &[(LOWER, false)], now).0, Route::Relayed((LOWER, OURS)));
    }
}
