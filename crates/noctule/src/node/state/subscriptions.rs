//! Subscriptions of this node to the writers of other nodes.

use std::sync::Arc;

use noctule_discovery::{Endpoint, EndpointId, NodeId};
use noctule_timebase::Instant;

use super::{Command, Guid, State};
use crate::clock::Raw;
use crate::notice::Notice;

impl State {
    /// A reader of ours reads what this node receives of a writer.
    pub(super) fn subscribe(
        &mut self,
        reader: EndpointId,
        node: NodeId,
        writer: &Arc<Endpoint>,
        now: Instant<Raw>,
    ) {
        let Some(topic) = self.subscribers.get(&reader).cloned() else { return };
        let room = self.check_room_for_ring(node, writer.id);
        let subscribed = room.and_then(|()| self.remote(node, now).subscribe(node, writer, &topic));
        self.pace_exchanges();
        if let Err(why) = subscribed {
            let (topic, why) = (writer.topic.clone(), why.to_string());
            self.note(Notice::Unreadable { topic, why });
        } else if writer.qos.multicast {
            self.expect_group(node, writer);
        }
    }

    /// A reader of ours no longer reads what this node receives of a writer.
    pub(super) fn unsubscribe(&mut self, reader: EndpointId, writer: Guid) {
        let remote = self.remotes.get_mut(&writer.0);
        if remote.is_some_and(|remote| remote.unsubscribe(writer.1, reader)) {
            self.pace_exchanges();
            self.groups.stop(writer);
            self.commands.push_back(Command::End { writer });
        }
    }

    /// Shares the requests of the clock exchange between the nodes that are read.
    pub(super) fn pace_exchanges(&mut self) {
        let heard_by_groups = self.remotes.values().filter(|remote| remote.is_heard_by_groups()).count();
        self.remotes.values_mut().for_each(|remote| remote.pace_exchange(heard_by_groups));
    }
}
