//! Samples of this node's publishers on their way to other hosts: from a sample to the nodes that read it, and from all that is due to the
//! next datagram.

use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use noctule_discovery::{Destination, EndpointId, NodeId};
use noctule_prrt::{Class, Ecn, Outgoing};
use noctule_time_sync::Local;
use noctule_timebase::Instant;

use super::{State, discovery_clock};
use crate::clock::Raw;
use crate::node::dscp;
use crate::node::remote::{Remote, outgoing};
use crate::node::served_nodes::ServedNodes;
use crate::node::sockets::To;
use crate::notice::Notice;
use crate::shared_topic::{HELD_UP, Past, PublishedTopic};

/// Datagrams to one node before the next one's turn: enough for one run, few enough for a slow line.
const TURN_DATAGRAMS: u32 = 16;

impl State {
    /// A sample of one of our publishers for the nodes of other hosts that read it; `payload` holds its bytes.
    pub(in crate::node) fn send(
        &mut self,
        writer: EndpointId,
        sample: &Outgoing<'_>,
        payload: &Arc<[u8]>,
        now: Instant<Raw>,
    ) {
        let to_group = self.groups.send(writer, sample, now);
        let admitted = self.admit(payload.len());
        let mut refused = 0;
        for at in 0..self.audiences.get(&writer).map_or(0, |served_nodes| served_nodes.nodes().len()) {
            let Some(node) =
                self.audiences.get(&writer).and_then(|served_nodes| served_nodes.nodes().get(at)).copied()
            else {
                break;
            };
            let is_admitted = self.is_admitted(&admitted, node, payload.len());
            if let Some(remote) = self.remotes.get_mut(&node)
                && remote.is_newer(writer, sample.sequence)
                && !(to_group && self.groups.serves(writer, node))
            {
                if is_admitted {
                    remote.send(sample, payload, now);
                } else {
                    refused += 1;
                }
            }
        }
        self.keep_unacknowledged((writer, refused), payload, now);
        self.count_given_up(now);
    }

    /// Whether all nodes of other hosts that read a topic have room for a sample.
    pub(in crate::node) fn has_room(&mut self, topic: &PublishedTopic, payload_bytes: usize) -> bool {
        let admitted = self.admit(payload_bytes);
        let nodes = self.audiences.get(&topic.id).into_iter().flat_map(ServedNodes::nodes);
        let mut remotes = nodes.filter_map(|node| Some((*node, self.remotes.get(node)?)));
        remotes.all(|(node, remote)| {
            remote.has_room(topic.id, payload_bytes, topic.depth)
                && self.is_admitted(&admitted, node, payload_bytes)
        })
    }

    /// Appends the next datagram to send to `out`, which must be empty if there is a key, and seals it, with its marks in `octet`: what keeps nodes together goes
    /// first, then samples, nodes in turns; of long samples without a deadline nothing, if `only_urgent`.
    pub(in crate::node) fn poll_transmit(
        &mut self,
        now: Instant<Raw>,
        only_urgent: bool,
        out: &mut Vec<u8>,
    ) -> Option<To> {
        if let Some((to, bytes)) = self.envelope.poll_transmit().or_else(|| self.send_queue.pop_front()) {
            out.extend_from_slice(&bytes);
            self.octet = 0;
            return Some(To::One(to));
        }
        let start = out.len();
        loop {
            out.truncate(start);
            if self.envelope.is_sealed() {
                self.envelope.begin(out);
            }
            let begins = out.len();
            if let Some(to) = self.poll_discovery(now, out) {
                self.octet = dscp::octet(&out[begins..], Ecn::NotCapable);
                self.envelope.seal_for_all(out);
                return Some(to);
            }
            if let Some(to) = self.poll_groups(now, out) {
                self.octet = dscp::octet(&out[begins..], Ecn::NotCapable);
                self.envelope.seal_for_group(out);
                return Some(to);
            }
            let (to, ecn) = self.poll_remotes(now, only_urgent, out)?;
            self.octet = dscp::octet(&out[begins..], ecn);
            // The node that had its turn last. One that cannot open anything yet would only drop it: as good as lost.
            if self.envelope.seal_for(self.turn.0, out) {
                return Some(to);
            }
        }
    }

    fn poll_discovery(&mut self, now: Instant<Raw>, out: &mut Vec<u8>) -> Option<To> {
        if let Some(trace) = &mut self.trace {
            trace.drain(&mut self.discovery, &mut self.routes);
            self.groups.for_each_trace(|stream, log| trace.drain_stream(&stream, log));
        }
        let mut body = std::mem::take(&mut self.body);
        let destination = self.discovery.poll_transmit(discovery_clock(now), &mut body);
        out.extend_from_slice(&body);
        self.body = body;
        destination.map(|destination| match destination {
            Destination::One(to) => To::One(to),
            Destination::Everyone => To::Everyone,
        })
    }

    /// The next datagram for a node of another host; after [`TURN_DATAGRAMS`] it is the next node's turn.
    fn poll_remotes(&mut self, now: Instant<Raw>, only_urgent: bool, out: &mut Vec<u8>) -> Option<(To, Ecn)> {
        let (first, left) = self.turn;
        if self.remotes.len() == 1 {
            let node = *self.remotes.keys().next()?;
            self.turn = (node, TURN_DATAGRAMS);
            return self.poll_remote(node, (now, only_urgent), out);
        }
        let start = if left > 0 { Bound::Included(first) } else { Bound::Excluded(first) };
        let behind = self.remotes.range((start, Bound::Unbounded)).map(|(node, _)| *node).next();
        let mut next = behind;
        let mut has_wrapped = false;
        loop {
            let Some(node) = next else {
                if std::mem::replace(&mut has_wrapped, true) {
                    return None;
                }
                next = self.remotes.keys().next().copied();
                next?;
                continue;
            };
            // It had its turn before the end, and one that has nothing is not asked twice.
            if has_wrapped && behind.is_some_and(|behind| node >= behind) {
                return None;
            }
            if let Some(sent) = self.poll_remote(node, (now, only_urgent), out) {
                self.turn = if node == first && left > 0 { (node, left - 1) } else { (node, TURN_DATAGRAMS) };
                return Some(sent);
            }
            let after = (Bound::Excluded(node), Bound::Unbounded);
            next = self.remotes.range(after).map(|(node, _)| *node).next();
        }
    }

    fn poll_remote(
        &mut self,
        node: NodeId,
        (now, only_urgent): (Instant<Raw>, bool),
        out: &mut Vec<u8>,
    ) -> Option<(To, Ecn)> {
        let local = self.clock.at(now);
        let remote = self.remotes.get_mut(&node)?;
        // Where it has shown that it receives.
        let locator = self.discovery.locator(node)?;
        if let Some(request) = remote.poll_request(local) {
            out.extend_from_slice(&request.encode());
            return Some((To::One(locator), Ecn::NotCapable));
        }
        remote.poll_transmit((now, only_urgent), out).then(|| (To::One(locator), remote.ecn()))
    }

    /// Whether all that is new since the last look for datagrams waits for more, to leave with it.
    pub(in crate::node) fn is_gathering(&self, now: Instant<Raw>) -> bool {
        !self.remotes.is_empty() && self.remotes.values().all(|remote| remote.is_gathering(now))
    }

    /// Whether the sample queued last ended the wait of others, all of which can be sent.
    pub(in crate::node) fn has_gathered(&self) -> bool {
        self.remotes.values().any(Remote::has_gathered)
    }

    /// Whether another node waits for feedback.
    pub(in crate::node) fn has_urgent_feedback(&self) -> bool {
        self.remotes.values().any(Remote::has_urgent_feedback)
    }

    /// Whether a sample of several datagrams waits to be sent.
    pub(in crate::node) fn has_long_samples(&self) -> bool {
        self.remotes.values().any(Remote::has_long_samples)
    }

    /// Counts what links gave up, and notes it if it was reliable.
    fn count_given_up(&mut self, now: Instant<Raw>) {
        let mut notices = Vec::new();
        for (node, remote) in &mut self.remotes {
            while let Some((writer, samples)) = remote.poll_given_up() {
                let Some(topic) = self.publishers.get(&writer) else { continue };
                topic.count_given_up(samples);
                if topic.is_reliable()
                    && let Some(samples) = self.overload.count((writer, *node), samples, now)
                {
                    notices.push(Notice::GivenUp { topic: topic.name.clone(), node: *node, samples });
                }
            }
        }
        notices.into_iter().for_each(|notice| self.note(notice));
    }

    /// Notes which of our writers wait for a reader that does not read.
    pub(super) fn note_held_up(&mut self, now: Instant<Raw>) {
        let mut notices = Vec::new();
        for (node, remote) in &mut self.remotes {
            while let Some(writer) = remote.poll_held_up(HELD_UP, now) {
                let Some(topic) = self.publishers.get(&writer) else { continue };
                topic.held_up.fetch_add(1, Ordering::Relaxed);
                let (topic, node) = (topic.name.clone(), *node);
                notices.push(Notice::HeldUp { topic, node, process: None, waited: HELD_UP });
            }
        }
        notices.into_iter().for_each(|notice| self.note(notice));
    }

    /// The history of a writer, for a node that has just come to read it. What is not acknowledged goes several times.
    pub(super) fn send_history(&mut self, writer: EndpointId, node: NodeId, now: Instant<Raw>) {
        let Some(topic) = self.publishers.get(&writer).cloned() else { return };
        self.send_past(&topic, node, now);
        if topic.class == Class::BestEffort {
            self.histories.schedule(writer, node, now);
        }
    }

    fn send_past(&mut self, topic: &PublishedTopic, node: NodeId, now: Instant<Raw>) {
        for Past { sequence, origin, bytes } in topic.offer.history(topic.depth) {
            let admitted = self.admit(bytes.len());
            let is_admitted = self.is_admitted(&admitted, node, bytes.len());
            let Some(remote) = self.remotes.get_mut(&node) else { return };
            if remote.is_newer(topic.id, sequence) || topic.class == Class::BestEffort {
                let local = self.clock.at::<Local>(now);
                let payload: Arc<[u8]> = Arc::from(bytes);
                if is_admitted {
                    remote.send(&outgoing(topic, (sequence, origin), &payload, local), &payload, now);
                }
                self.keep_unacknowledged((topic.id, u64::from(!is_admitted)), &payload, now);
            }
        }
    }

    /// Sends the histories that are due again; a node that has them drops them.
    pub(super) fn handle_histories(&mut self, now: Instant<Raw>) {
        for (writer, node) in self.histories.take_due(now) {
            let is_read = self.audiences.get(&writer).is_some_and(|all| all.nodes().contains(&node));
            if let Some(topic) = self.publishers.get(&writer).filter(|_| is_read).cloned() {
                self.send_past(&topic, node, now);
            }
        }
    }

    /// Whether a reader of another host has still to get a sample of a writer, or to acknowledge it.
    pub(in crate::node) fn is_sending(&self, writer: EndpointId) -> bool {
        self.remotes.values().any(|remote| remote.is_sending(writer))
    }
}
