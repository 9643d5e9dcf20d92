//! Streams that go to several nodes at once, and those that come so.
//!
//! A stream to a group belongs to a *channel*: one of a few multicast addresses, given by the numbers of its writer and its node,
//! so that both sides compute it without a message, and it reveals nothing of the topic. Nodes listen to the channels that they read from.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use noctule_discovery::{EndpointId, NodeId};
use noctule_prrt::group::trace::Event;
use noctule_prrt::group::{
    Body, Datagram, GroupConfig, GroupReceiver, GroupSender, MemberId, Membership, SenderCounters,
};
use noctule_prrt::{Class, LinkConfig, Local as LinkClock, Outgoing, SentCounters, StreamId};
use noctule_qlog::Log;
use noctule_time_sync::Local;
use noctule_timebase::Instant;

use super::ports::CHANNELS;
use super::remote::{Remote, link_clock};
use super::sockets::Reach;
use crate::clock::Raw;

/// Nodes of other hosts from which on a group is worth it.
const READERS_MIN: usize = 2;

/// The multicast streams that this node sends and receives.
#[derive(Debug, Default)]
pub(super) struct Groups {
    sending: BTreeMap<EndpointId, Sending>,
    receiving: BTreeMap<(NodeId, EndpointId), GroupReceiver>,
    /// Channels that were requested last, a bit each.
    listening: u16,
    malformed: u64,
    /// Each stream keeps its events from its first on.
    is_traced: bool,
}

/// One of our writers.
#[derive(Debug)]
struct Sending {
    sender: GroupSender,
    session: u32,
    channel: u8,
    readers: BTreeMap<NodeId, SocketAddr>,
}

impl Groups {
    /// A node reads one of our writers that serves a group.
    pub(super) fn join(
        &mut self,
        (me, writer): (NodeId, EndpointId),
        class: Class,
        (node, locator): (NodeId, SocketAddr),
        now: Instant<Raw>,
    ) {
        let (config, is_traced) = (config((me, writer), class), self.is_traced);
        let sending = self.sending.entry(writer).or_insert_with(|| Sending {
            sender: GroupSender::new(config, link_clock(now)),
            session: config.session,
            channel: channel(me, writer),
            readers: BTreeMap::new(),
        });
        if is_traced {
            sending.sender.trace().start();
        }
        // If there are too many it never reports, and is served by its link.
        let _ = sending.sender.join(member(node));
        sending.readers.insert(node, locator);
    }

    /// It no longer does.
    pub(super) fn leave(&mut self, writer: EndpointId, node: NodeId) {
        if let Some(sending) = self.sending.get_mut(&writer) {
            sending.sender.leave(member(node));
            sending.readers.remove(&node);
        }
    }

    /// One of our writers is no more.
    pub(super) fn close(&mut self, writer: EndpointId) {
        self.sending.remove(&writer);
    }

    /// A node is gone.
    pub(super) fn forget(&mut self, node: NodeId) {
        self.receiving.retain(|(known, _), _| *known != node);
        let writers: Vec<EndpointId> = self.sending.keys().copied().collect();
        writers.into_iter().for_each(|writer| self.leave(writer, node));
    }

    /// A writer of another node that serves a group is read here.
    pub(super) fn expect(&mut self, writer: (NodeId, EndpointId), class: Class, random: u64) {
        let fresh = || GroupReceiver::new(config(writer, class), random);
        let receiver = self.receiving.entry(writer).or_insert_with(fresh);
        if self.is_traced {
            receiver.trace().start();
        }
    }

    /// It no longer is.
    pub(super) fn stop(&mut self, writer: (NodeId, EndpointId)) {
        self.receiving.remove(&writer);
    }

    /// Channels to be listened to from now on, a bit each, if they are others than before.
    pub(super) fn poll_channels(&mut self) -> Option<u16> {
        let bits = self.receiving.keys().fold(0, |bits, (node, writer)| bits | 1 << channel(*node, *writer));
        (std::mem::replace(&mut self.listening, bits) != bits).then_some(bits)
    }

    /// A sample of one of our writers; whether it goes to the group.
    pub(super) fn send(&mut self, writer: EndpointId, sample: &Outgoing<'_>, now: Instant<Raw>) -> bool {
        let Some(sending) = self.sending.get_mut(&writer) else { return false };
        sending.readers.len() >= READERS_MIN && sending.sender.send(sample, link_clock(now))
    }

    /// Whether what goes to the group reaches a node.
    pub(super) fn serves(&self, writer: EndpointId, node: NodeId) -> bool {
        self.sending.get(&writer).is_some_and(|sending| sending.sender.serves(member(node)))
    }

    /// A datagram of a node, to one of its groups or about one of ours.
    pub(super) fn handle_datagram(
        &mut self,
        (from, remote): (NodeId, &mut Remote),
        body: &[u8],
        (now, local): (Instant<Raw>, Instant<Local>),
    ) {
        let Ok(datagram) = Datagram::decode(body) else {
            self.malformed = self.malformed.saturating_add(1);
            return;
        };
        let writer = EndpointId(datagram.writer.0);
        if let Body::Report(report) = &datagram.body {
            if let Some(sending) = self.sending.get_mut(&writer)
                && sending.session == datagram.session
            {
                sending.sender.handle_report(member(from), report, link_clock(now));
            }
        } else if let Some(receiver) = self.receiving.get_mut(&(from, writer)) {
            remote.handle_group_datagram((&datagram, body.len()), receiver, now, local);
        }
    }

    /// Whether each stream that begins from now on keeps its events.
    pub(super) fn keep_traces(&mut self, keep: bool) {
        self.is_traced = keep;
    }

    /// Hands out the events of each stream, and its name: `group` and the writer for one that is sent, with its node for one that is received.
    pub(super) fn for_each_trace(&mut self, mut take: impl FnMut(String, &mut Log<Event>)) {
        for (writer, sending) in &mut self.sending {
            take(format!("group {}", writer.0), sending.sender.trace());
        }
        for ((node, writer), receiver) in &mut self.receiving {
            take(format!("{node} group {}", writer.0), receiver.trace());
        }
    }

    /// Datagrams that break the specification.
    pub(super) fn malformed(&self) -> u64 {
        self.malformed
    }

    /// Appends the next datagram for a channel.
    pub(super) fn poll_transmit(&mut self, now: Instant<Raw>, out: &mut Vec<u8>) -> Option<(u8, Reach)> {
        let sending = self.sending.values_mut();
        let mut sending = sending.filter_map(|sending| {
            let is_sent = sending.sender.poll_transmit(link_clock(now), out);
            is_sent.then(|| (sending.channel, reach(sending.readers.values())))
        });
        sending.next()
    }

    /// Appends the next report, and returns its destination.
    pub(super) fn poll_report(&mut self, now: Instant<Raw>, out: &mut Vec<u8>) -> Option<NodeId> {
        let mut receiving = self.receiving.iter_mut();
        receiving
            .find_map(|((node, _), receiver)| receiver.poll_transmit(link_clock(now), out).then_some(*node))
    }

    /// A node that is set apart from one of our groups or taken back.
    pub(super) fn poll_membership(&mut self) -> Option<(EndpointId, Membership)> {
        let mut sending = self.sending.iter_mut();
        sending.find_map(|(writer, sending)| Some((*writer, sending.sender.poll_membership()?)))
    }

    /// When something is to be done again.
    pub(super) fn poll_timeout(&self) -> Option<Instant<Raw>> {
        let sending = self.sending.values().filter_map(|sending| sending.sender.poll_timeout());
        let receiving = self.receiving.values().filter_map(GroupReceiver::poll_timeout);
        sending.chain(receiving).min().map(|at: Instant<LinkClock>| Instant::from_ns(at.ns()))
    }

    /// Counters of one of our writers at a node, if the group serves it now.
    pub(super) fn sent(&self, writer: EndpointId, node: NodeId) -> Option<SentCounters> {
        let sending = self.sending.get(&writer).filter(|_| self.serves(writer, node))?;
        let SenderCounters { samples, datagrams, parity_unasked, parity_asked, .. } =
            sending.sender.counters();
        let parity = parity_unasked + parity_asked;
        Some(SentCounters { samples, datagrams, parity, ..SentCounters::default() })
    }
}

/// The number of a node as a member of a group.
fn member(node: NodeId) -> MemberId {
    MemberId(u128::from_le_bytes(node.0))
}

/// The node of a member.
pub(super) fn node_of(member: MemberId) -> NodeId {
    NodeId(member.0.to_le_bytes())
}

fn config((node, writer): (NodeId, EndpointId), class: Class) -> GroupConfig {
    let [a, b, c, d, ..] = node.0;
    GroupConfig {
        session: u32::from_le_bytes([a, b, c, d]),
        writer: StreamId(writer.0),
        bound: class.bound(),
        datagram_bytes_max: LinkConfig::default().datagram_bytes_max,
    }
}

/// The channel of a writer: the first byte of its node's number and its own.
fn channel(node: NodeId, writer: EndpointId) -> u8 {
    (node.0[0].wrapping_add(writer.0 as u8)) % CHANNELS
}

fn reach<'a>(locators: impl Iterator<Item = &'a SocketAddr>) -> Reach {
    locators.fold(Reach::default(), |reach, locator| match locator.ip().to_canonical().is_loopback() {
        true => Reach { here: true, ..reach },
        false => Reach { elsewhere: true, ..reach },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_has_a_channel_that_both_sides_know() {
        let node = NodeId([0xfe; 16]);
        assert_eq!((channel(node, EndpointId(1)), channel(node, EndpointId(2))), (15, 0));
        assert_eq!(node_of(member(node)), node);
    }

    #[test]
    fn channels_are_those_of_the_streams_that_are_read() {
        let mut groups = Groups::default();
        let node = NodeId([0; 16]);
        groups.expect((node, EndpointId(3)), Class::BestEffort, 1);
        groups.expect((node, EndpointId(19)), Class::BestEffort, 1);
        assert_eq!((groups.poll_channels(), groups.poll_channels()), (Some(8), None));
        groups.stop((node, EndpointId(3)));
        assert_eq!(groups.poll_channels(), None, "another stream is on the same");
        groups.forget(node);
        assert_eq!(groups.poll_channels(), Some(0));
    }
}
