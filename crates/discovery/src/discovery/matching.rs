//! Which of our endpoints and those of others belong together.

use std::sync::Arc;

use super::{Discovery, MATCHES_LIMIT, MATCHES_PER_NODE_LIMIT, count};
use crate::endpoint::{Endpoint, EndpointId, EndpointKind, incompatible};
use crate::event::Event;
use crate::trace;
use crate::wire::NodeId;

impl Discovery {
    pub(super) fn take_remote(&mut self, node: NodeId, endpoint: Arc<Endpoint>) {
        self.report_beside(&endpoint);
        let ids = self.local_topics.get(&endpoint.topic).cloned().unwrap_or_default();
        ids.into_iter().for_each(|id| self.pair(id, node, &endpoint));
        let topic = self.remote_topics.entry(endpoint.topic.clone()).or_default();
        topic.insert((node, endpoint.id), endpoint);
    }

    pub(super) fn change_remote(&mut self, node: NodeId, endpoint: Arc<Endpoint>) {
        self.report_beside(&endpoint);
        for local in self.local_topics.get(&endpoint.topic).cloned().unwrap_or_default() {
            if self.matched.contains(&(local, node, endpoint.id)) {
                self.report(Event::Changed { local, node, remote: Arc::clone(&endpoint) });
            }
        }
        if let Some(topic) = self.remote_topics.get_mut(&endpoint.topic) {
            topic.insert((node, endpoint.id), endpoint);
        }
    }

    /// To our readers of the topic of another.
    fn report_beside(&mut self, other: &Endpoint) {
        if other.kind != EndpointKind::Reader {
            return;
        }
        for local in self.local_topics.get(&other.topic).cloned().unwrap_or_default() {
            if self.catalogue.endpoint(local).is_some_and(|ours| ours.kind == EndpointKind::Reader) {
                self.report(Event::Beside { local });
            }
        }
    }

    pub(super) fn drop_remote(&mut self, node: NodeId, endpoint: &Endpoint) {
        self.report_beside(endpoint);
        if let Some(topic) = self.remote_topics.get_mut(&endpoint.topic) {
            topic.remove(&(node, endpoint.id));
            if topic.is_empty() {
                self.remote_topics.remove(&endpoint.topic);
            }
        }
        for local in self.local_topics.get(&endpoint.topic).cloned().unwrap_or_default() {
            let pair = (local, node, endpoint.id);
            self.mismatched.remove(&pair);
            if self.matched.remove(&pair) {
                self.report(Event::Unmatched { local, node, remote: endpoint.id });
            }
        }
    }

    pub(super) fn pair(&mut self, local: EndpointId, node: NodeId, remote: &Arc<Endpoint>) {
        let Some(ours) = self.catalogue.endpoint(local) else { return };
        let verdict = match (ours.kind, remote.kind) {
            (EndpointKind::Writer, EndpointKind::Reader) => incompatible(ours, remote),
            (EndpointKind::Reader, EndpointKind::Writer) => incompatible(remote, ours),
            _ => return,
        };
        let (pair, remote) = ((local, node, remote.id), Arc::clone(remote));
        if verdict.is_none() && !self.matched.contains(&pair) && !self.has_room_for_match(local, node) {
            count(&mut self.counters.refused_matches);
            let (local, remote) = (local.0, remote.id.0);
            self.log.note(|| trace::Event::MatchRefused { local, node, remote });
            return;
        }
        match verdict {
            None if self.matched.insert(pair) => self.report(Event::Matched { local, node, remote }),
            Some(why) if self.mismatched.insert(pair) => {
                self.report(Event::Mismatched { local, node, remote, why });
            }
            _ => {}
        }
    }

    fn has_room_for_match(&self, local: EndpointId, node: NodeId) -> bool {
        let [none, all] = [NodeId([0; 16]), NodeId([255; 16])];
        let [first, last] = [EndpointId(0), EndpointId(u32::MAX)];
        let with_node = self.matched.range((local, node, first)..=(local, node, last)).count();
        let with_all = self.matched.range((local, none, first)..=(local, all, last)).count();
        with_node < MATCHES_PER_NODE_LIMIT && with_all < MATCHES_LIMIT
    }
}
