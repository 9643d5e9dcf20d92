//! Questions of other nodes for descriptions of types and for the state of links, and their answers.

use std::net::SocketAddr;

use noctule_discovery::NodeId;
use noctule_timebase::Instant;

use super::State;
use crate::clock::Raw;
use crate::node::links::links_from;

impl State {
    /// A datagram about type descriptions or links, sealed by `from` or sent from `source`. The answer goes where discovery has proven
    /// that the node hears.
    pub(super) fn handle_description(
        &mut self,
        body: &[u8],
        (from, source): (Option<NodeId>, SocketAddr),
        now: Instant<Raw>,
    ) {
        let from = from.or_else(|| self.node_at(source));
        let to = from.and_then(|from| self.discovery.locator(from));
        let mut out = Vec::new();
        self.envelope.begin(&mut out);
        let known = from.filter(|_| to.is_some());
        let remotes = &self.remotes;
        let links = |from: usize| links_from(remotes, from);
        if self.descriptions.handle_datagram(body, (known, now), &links, &mut out)
            && let (Some(from), Some(to)) = (from, to)
            && self.envelope.seal_for(from, &mut out)
        {
            self.send_reply(to, out);
        }
    }
}
