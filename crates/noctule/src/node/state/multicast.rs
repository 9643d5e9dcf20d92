//! Streams to groups ([`Groups`](crate::node::groups::Groups)) of this node's topics.

use noctule_discovery::{Endpoint, EndpointId, NodeId};
use noctule_prrt::group::Membership;
use noctule_timebase::Instant;

use super::State;
use crate::clock::Raw;
use crate::node::groups::node_of;
use crate::node::remote::class;
use crate::node::sockets::To;
use crate::notice::Notice;

impl State {
    /// A node of another host reads one of our writers, which may serve a group.
    pub(super) fn join_group(&mut self, writer: EndpointId, node: NodeId, now: Instant<Raw>) {
        let is_group = self.discovery.local(writer).is_some_and(|endpoint| endpoint.qos.multicast);
        if is_group
            && let Some(topic) = self.publishers.get(&writer)
            && let Some(locator) = self.discovery.locator(node)
        {
            self.groups.join((self.me, writer), topic.class, (node, locator), now);
        }
    }

    /// This node receives a writer of another host that serves a group.
    pub(super) fn expect_group(&mut self, node: NodeId, writer: &Endpoint) {
        let random = self.exchange_key.first_chunk().copied().unwrap_or_default();
        self.groups.expect((node, writer.id), class(&writer.qos), u64::from_le_bytes(random));
    }

    /// Reports the nodes that were set apart from one of our groups, or taken back.
    pub(super) fn note_memberships(&mut self) {
        while let Some((writer, change)) = self.groups.poll_membership() {
            let Some(topic) = self.publishers.get(&writer) else { continue };
            let topic = topic.name.clone();
            self.note(match change {
                Membership::Apart { member, loss } => {
                    Notice::MulticastDemoted { topic, node: node_of(member), loss }
                }
                Membership::Back { member } => Notice::MulticastRestored { topic, node: node_of(member) },
            });
        }
    }

    /// Appends the next datagram of a group, or about one.
    pub(super) fn poll_groups(&mut self, now: Instant<Raw>, out: &mut Vec<u8>) -> Option<To> {
        if let Some((channel, reach)) = self.groups.poll_transmit(now, out) {
            return Some(To::Channel(channel, reach));
        }
        let before = out.len();
        while let Some(node) = self.groups.poll_report(now, out) {
            if let Some(locator) = self.discovery.locator(node) {
                return Some(To::One(locator));
            }
            // It has gone, and is forgotten with the next event.
            out.truncate(before);
        }
        None
    }
}
