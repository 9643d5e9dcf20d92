//! What a change of this host's interfaces and addresses means for a node.

use noctule_timebase::Instant;

use super::{State, discovery_clock};
use crate::clock::Raw;
use crate::notice::Notice;

impl State {
    /// An interface or an address of this host has come or gone.
    pub(in crate::node) fn handle_network_change(&mut self, now: Instant<Raw>) {
        self.discovery.handle_network_change(discovery_clock(now));
    }

    /// Datagrams leave this host by an interface: says so once if they are not sealed.
    pub(in crate::node) fn warn_without_key(&mut self, interface: String) {
        if !self.envelope.is_sealed() && !std::mem::replace(&mut self.warned_without_key, true) {
            self.note(Notice::NoKey { interface });
        }
    }
}
