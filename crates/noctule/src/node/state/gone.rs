//! A node that is gone, and everything that was kept for it.

use noctule_discovery::{NodeId, Reason};

use super::{Command, State};
use crate::notice::Notice;

impl State {
    /// Removes a node. A notice names it, unless it left or ended as nodes do.
    pub(super) fn handle_gone(&mut self, node: NodeId, reason: Reason) {
        self.routes.forget(node);
        self.fallback.forget(node);
        if let Some(remote) = self.remotes.remove(&node) {
            self.commands.extend(remote.writers().map(|writer| Command::End { writer: (node, writer) }));
            self.pace_exchanges();
        }
        self.envelope.close_link(node);
        self.groups.forget(node);
        self.overload.forget(node);
        self.descriptions.forget(node);
        self.by_address.retain(|_, known| *known != node);
        self.commands.push_back(Command::Forget { node });
        if !matches!(reason, Reason::Left | Reason::Died | Reason::Displaced) {
            self.note(Notice::Gone { node, reason });
        }
    }
}
