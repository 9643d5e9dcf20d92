//! Which process of this host a publisher that keeps all waits for.

use noctule_discovery::EndpointId;
use noctule_shm_ring::ReaderId;

use super::Connections;
use crate::node::Shared;
use crate::node::command::Command;
use crate::notice::Notice;
use crate::shared_topic::HELD_UP;

impl Shared {
    /// A reader of one of our writers' rings has read nothing for [`HELD_UP`] although no room is left: the node's thread knows whose it is.
    pub(crate) fn name_reader(&self, writer: EndpointId, reader: ReaderId) {
        self.lock().commands.push_back(Command::NameReader { writer, reader });
        self.kick();
    }
}

impl Connections {
    /// Says which node and which process a reader of one of our writers is in. Says nothing of one that has gone meanwhile.
    pub(in crate::node) fn name_reader(&self, (writer, reader): (EndpointId, ReaderId), shared: &Shared) {
        let ours = (shared.id, writer);
        let other = self.incoming.values().find(|incoming| incoming.admitted.has(ours, reader));
        let (node, process) = match other {
            Some(other) => (other.node, other.socket.credentials().map_or(0, |process| process.pid)),
            None if self.own.has(writer, reader) => (Some(shared.id), std::process::id().cast_signed()),
            None => return,
        };
        let mut state = shared.lock();
        if let (Some(topic), Some(node)) = (state.publishers.get(&writer), node) {
            let topic = topic.name.clone();
            state.note(Notice::HeldUp { topic, node, process: Some(process), waited: HELD_UP });
        }
    }
}
