//! Carries out the routes of our readers ([`ReaderRoutes`](crate::node::reader_route::ReaderRoutes)): what this node receives, what it announces, and
//! which rings of other nodes of this host it asks for.

use std::sync::Arc;

use noctule_discovery::{Endpoint, EndpointId, EndpointKind, NodeId, Reliability, can_be_handed_on};
use noctule_timebase::Instant;

use super::{Command, Guid, State, discovery_clock};
use crate::clock::Raw;
use crate::node::reader_route::Route;
use crate::node::reader_route::trace::Choice;
use crate::shared_topic::{Change, Source};

impl State {
    /// A writer of another host is to be read.
    pub(super) fn add_writer(
        &mut self,
        reader: EndpointId,
        node: NodeId,
        writer: &Arc<Endpoint>,
        now: Instant<Raw>,
    ) {
        if !can_be_handed_on(writer) {
            return self.subscribe(reader, node, writer, now);
        }
        let (is_direct, via) = self.routes.add_writer(reader);
        if is_direct {
            self.subscribe(reader, node, writer, now);
        }
        if let Some(via) = via {
            self.ask(reader, via, (node, writer));
        }
    }

    /// A writer of another host is no longer to be read.
    pub(super) fn remove_writer(&mut self, reader: EndpointId, writer: Guid) {
        if let Some(via) = self.routes.remove_writer(reader, writer) {
            self.commands.push_back(Command::Release { via, writer, reader });
        }
        self.unsubscribe(reader, writer);
    }

    /// A reader is new.
    pub(super) fn add_route(&mut self, reader: EndpointId, now: Instant<Raw>) {
        if self.has_other_hosts && self.can_be_relayed(reader) {
            self.routes.insert(reader, now);
            self.discovery.set_relayed(reader, true, discovery_clock(now));
            self.elect(reader, now);
        }
    }

    /// Chooses the route of every reader.
    pub(super) fn elect_all(&mut self, now: Instant<Raw>) {
        let readers: Vec<EndpointId> = self.subscribers.keys().copied().collect();
        readers.into_iter().for_each(|reader| self.elect(reader, now));
    }

    /// Chooses the route of a reader: something about the readers on other nodes of this host has changed.
    pub(super) fn elect(&mut self, reader: EndpointId, now: Instant<Raw>) {
        // Where there are no other hosts, there is nothing to receive.
        if !self.has_other_hosts || !self.can_be_relayed(reader) {
            return;
        }
        self.routes.at(now);
        let Some(ours) = self.discovery.local(reader) else { return };
        let siblings = self.discovery.readers_beside(reader).map(|(node, sibling)| (node, &**sibling));
        let (choice, why) = self.routes.choose((self.me, ours), siblings, now);
        match (self.routes.decide(reader), choice) {
            (before, choice) if before == choice => self.cancel_handover(reader),
            (Route::Direct, Route::Relayed(to)) => {
                if self.routes.goal(reader) == Some(to) {
                    return;
                }
                self.cancel_handover(reader);
                self.begin_handover(reader, (to, why), now);
            }
            (_, choice) => self.change_route(reader, (choice, why), now),
        }
    }

    /// A node of this host has given us the ring of a writer of another host.
    pub(in crate::node) fn handle_relay(
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
        let last = self.remotes.get(&writer.0).and_then(|remote| remote.last_sequence(writer.1));
        self.routes.at(now);
        match self.routes.handle_granted(reader, source, last) {
            None => self.finish_handover(reader, now),
            Some(source) => {
                if let Some(topic) = self.subscribers.get(&reader) {
                    topic.change(Change::Came(source));
                }
            }
        }
    }

    /// The ring of a writer of another host that a node of this host gave us is filled no more.
    pub(in crate::node) fn handle_relay_end(
        &mut self,
        reader: EndpointId,
        (via, writer): (NodeId, Guid),
        now: Instant<Raw>,
    ) {
        if self.is_released(reader, via, writer) {
            return;
        }
        self.routes.at(now);
        if self.routes.handle_end(reader, writer)
            && let Some(topic) = self.subscribers.get(&reader)
        {
            topic.change(Change::Went(writer.0, writer.1));
        }
        self.handle_relay_refusal(reader, (via, writer), false, now);
    }

    /// A node of this host does not give us the ring of a writer of another host: not yet, or not at all.
    pub(in crate::node) fn handle_relay_refusal(
        &mut self,
        reader: EndpointId,
        (via, writer): (NodeId, Guid),
        is_final: bool,
        now: Instant<Raw>,
    ) {
        self.routes.at(now);
        if !self.is_released(reader, via, writer)
            && self.routes.handle_refusal(reader, (via, writer), is_final, now)
        {
            self.elect(reader, now);
        }
    }

    /// Asks again what is due, and ends elections, handovers and refusals whose time is over.
    pub(super) fn handle_routes(&mut self, now: Instant<Raw>) {
        if !self.routes.is_pending() {
            return;
        }
        for reader in self.routes.take_expired(now) {
            self.elect(reader, now);
            self.finish_handover(reader, now);
        }
        for (reader, via, writer) in self.routes.take_questions(now) {
            if let Some(endpoint) = self.discovery.remote(reader, writer).cloned() {
                self.ask(reader, via, (writer.0, &endpoint));
            }
        }
        self.routes.settle();
    }

    /// Samples have come: ends the handovers that waited for them.
    pub(super) fn handle_arrivals(&mut self, now: Instant<Raw>) {
        for reader in self.routes.in_handover() {
            self.finish_handover(reader, now);
        }
    }

    /// Whether a reader can be served by another node: it is ours, and requests no reliability.
    fn can_be_relayed(&self, reader: EndpointId) -> bool {
        let is_such = |ours: &Endpoint| {
            ours.kind == EndpointKind::Reader && ours.qos.reliability == Reliability::BestEffort
        };
        self.subscribers.contains_key(&reader) && self.discovery.local(reader).is_some_and(is_such)
    }

    /// Changes a route at once, announces it, and gets the samples from there.
    fn change_route(&mut self, reader: EndpointId, (to, why): (Route, Choice), now: Instant<Raw>) {
        self.detach(reader);
        self.routes.set(reader, (to, why));
        self.discovery.set_relayed(reader, to != Route::Direct, discovery_clock(now));
        match to {
            Route::Electing(_) => {}
            Route::Direct => {
                for (node, writer) in self.foreign_writers(reader) {
                    self.subscribe(reader, node, &writer, now);
                }
            }
            Route::Relayed(relay) => {
                for (node, writer) in self.foreign_writers(reader) {
                    self.ask(reader, relay.0, (node, &writer));
                }
            }
        }
    }

    /// Lets go of the rings of a reader's relay; what they hold is still read.
    fn detach(&mut self, reader: EndpointId) {
        let Some(via) = self.routes.relay(reader) else { return };
        for (node, writer) in self.foreign_writers(reader) {
            let writer = (node, writer.id);
            self.commands.push_back(Command::Release { via, writer, reader });
            if let Some(topic) = self.subscribers.get(&reader) {
                topic.change(Change::Went(writer.0, writer.1));
            }
        }
    }

    fn begin_handover(&mut self, reader: EndpointId, (to, why): (Guid, Choice), now: Instant<Raw>) {
        self.routes.begin_handover(reader, (to, why), now);
        for (node, writer) in self.foreign_writers(reader) {
            self.ask(reader, to.0, (node, &writer));
        }
        self.finish_handover(reader, now);
    }

    fn cancel_handover(&mut self, reader: EndpointId) {
        let Some(via) = self.routes.cancel_handover(reader) else { return };
        for (node, writer) in self.foreign_writers(reader) {
            self.commands.push_back(Command::Release { via, writer: (node, writer.id), reader });
        }
    }

    /// Ends the handover of a reader, if it is in one and the relay's rings hold what comes next here.
    fn finish_handover(&mut self, reader: EndpointId, now: Instant<Raw>) {
        self.routes.at(now);
        let writers = self.foreign_writers(reader);
        let remotes = &self.remotes;
        let last = |writer: Guid| remotes.get(&writer.0)?.last_sequence(writer.1);
        let Some(granted) = self.routes.finish_handover(reader, &writers, last) else { return };
        self.discovery.set_relayed(reader, true, discovery_clock(now));
        let Some(topic) = self.subscribers.get(&reader) else { return };
        let topic = Arc::clone(topic);
        for ((node, writer), (source, _)) in granted {
            self.unsubscribe(reader, (node, writer));
            topic.change(Change::Went(node, writer));
            topic.change(Change::Came(source));
        }
    }

    /// Whether what a node says about a writer comes too late: the reader has another route by now, or has asked anew.
    fn is_released(&self, reader: EndpointId, via: NodeId, writer: Guid) -> bool {
        let is_meant = |command: &Command| {
            matches!(command, Command::Release { via: its_via, writer: its_writer, reader: its_reader }
            if (*its_via, *its_writer, *its_reader) == (via, writer, reader))
        };
        let goal = self.routes.goal(reader);
        goal.is_none_or(|goal| goal.0 != via) || self.commands.iter().any(is_meant)
    }

    fn ask(&mut self, reader: EndpointId, via: NodeId, (node, writer): (NodeId, &Arc<Endpoint>)) {
        self.commands.push_back(Command::Attach { via, writer: (node, Arc::clone(writer)), reader });
    }

    /// Writers of other hosts whose samples a reader gets by its route.
    fn foreign_writers(&self, reader: EndpointId) -> Vec<(NodeId, Arc<Endpoint>)> {
        let partners = self.partners.get(&reader).into_iter().flatten();
        let foreign = partners.filter(|(node, _)| *node != self.me && !self.discovery.is_here(*node));
        foreign
            .filter_map(|partner| Some((partner.0, self.discovery.remote(reader, *partner)?.clone())))
            .filter(|(_, writer)| can_be_handed_on(writer))
            .collect()
    }
}

#[cfg(test)]
mod tests;
