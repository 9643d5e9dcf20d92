//! Readers of this host that get their samples by UDP: which ask, which are served ([`Fallback`](crate::node::fallback::Fallback)).

use std::net::SocketAddr;
use std::sync::atomic::Ordering;

use noctule_discovery::{Durability, Endpoint, EndpointId, NodeId};
use noctule_timebase::Instant;

use super::{Guid, State};
use crate::clock::Raw;
use crate::node::fallback::Message;
use crate::node::served_nodes::Shift;
use crate::notice::Notice;

impl State {
    /// Shared memory refuses one of our readers a writer of this host, as `refusal` says: its samples are to come by UDP. If that cannot
    /// be either, a notice reports the refusal.
    pub(in crate::node) fn fall_back(
        &mut self,
        (reader, node): (EndpointId, NodeId),
        writer: &Endpoint,
        refusal: Notice,
        now: Instant<Raw>,
    ) {
        let partner = (node, writer.id);
        if !self.discovery.is_here(node) {
            return self.note(refusal);
        }
        let is_matched = self.partners.get(&reader).is_some_and(|partners| partners.contains(&partner));
        let Some(topic) = self.subscribers.get(&reader).cloned().filter(|_| is_matched) else { return };
        if self.fallback.has(reader, partner) {
            return;
        }
        let room = self.check_room_for_ring(node, writer.id);
        if room.and_then(|()| self.remote(node, now).subscribe(node, writer, &topic)).is_err() {
            return self.note(refusal);
        }
        self.pace_exchanges();
        self.fallback.begin(reader, partner, now);
        if self.fallback.is_news(node, &writer.topic) {
            self.note(Notice::ByUdp { refusal: Box::new(refusal) });
        }
        self.ask_for_udp(now);
    }

    /// A reader and a writer have parted.
    pub(in crate::node) fn end_fallback(&mut self, reader: EndpointId, writer: Guid) {
        if self.fallback.end(reader, writer) {
            self.unsubscribe(reader, writer);
        }
    }

    /// Sends the questions that are due.
    pub(in crate::node) fn ask_for_udp(&mut self, now: Instant<Raw>) {
        for (reader, (node, writer)) in self.fallback.poll(now) {
            if let Some(locator) = self.discovery.locator(node) {
                self.queue(&Message { is_answer: false, writer, reader }.encode(), (Some(node), locator));
            }
        }
    }

    /// A message from a node of this host, sealed by `sealed_by` if there is a key.
    pub(in crate::node) fn handle_fallback(
        &mut self,
        body: &[u8],
        (sealed_by, source): (Option<NodeId>, SocketAddr),
        now: Instant<Raw>,
    ) {
        let sender = sealed_by.or_else(|| self.node_at(source));
        let (Some(node), Some(message)) = (sender, Message::decode(body)) else {
            return self.count_stranger();
        };
        let Message { is_answer, writer, reader } = message;
        if is_answer {
            self.fallback.handle_answer(reader, (node, writer));
        } else if self.serve_by_udp(writer, (node, reader), now)
            && let Some(locator) = self.discovery.locator(node)
        {
            // Where it has shown that it receives.
            self.queue(&Message { is_answer: true, ..message }.encode(), (Some(node), locator));
        }
    }

    /// Sends samples of a writer to a reader of this host, too. False if they do not match: not yet, or not any more.
    fn serve_by_udp(&mut self, writer: EndpointId, (node, reader): Guid, now: Instant<Raw>) -> bool {
        let is_matched = self.partners.get(&writer).is_some_and(|all| all.contains(&(node, reader)));
        let Some(topic) = self.publishers.get(&writer).filter(|_| is_matched).cloned() else { return false };
        let Some(endpoint) = self.discovery.remote(writer, (node, reader)).cloned() else { return false };
        if !self.discovery.is_here(node)
            || self.audiences.get(&writer).is_some_and(|all| all.serves((node, reader)))
        {
            return self.discovery.is_here(node);
        }
        topic.remote_readers.fetch_add(1, Ordering::SeqCst);
        self.changes.count();
        let shift = self.audiences.entry(writer).or_default().insert((node, reader), false);
        if shift == Shift::Came {
            _ = self.remote(node, now);
        }
        if endpoint.qos.durability == Durability::TransientLocal {
            self.send_history(writer, node, now);
        }
        true
    }
}
