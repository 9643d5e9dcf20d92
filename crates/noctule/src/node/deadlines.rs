//! The endpoints of a node that have a DEADLINE, each with its watch.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use noctule_discovery::{EndpointId, EndpointKind};
use noctule_timebase::{Instant, Span};

use crate::clock::{LocalClock, Raw};
use crate::deadline::{DeadlineMissed, Watch};
use crate::notice::Notice;
use crate::shared_topic::{PublishedTopic, SubscribedTopic};

/// The watches of all endpoints with a DEADLINE.
#[derive(Debug, Default)]
pub(super) struct Deadlines {
    watched: BTreeMap<EndpointId, (Topic, Watch)>,
    /// When the first is to be looked at, so that a busy node does not look through all.
    next_look: Option<Instant<Raw>>,
}

/// Whose promise or demand it is.
#[derive(Debug)]
pub(super) enum Topic {
    Published(Arc<PublishedTopic>),
    Subscribed(Arc<SubscribedTopic>),
}

impl Topic {
    fn newest(&self) -> Option<Instant<Raw>> {
        let ns = match self {
            Topic::Published(topic) => topic.last_ns.load(Ordering::Relaxed),
            Topic::Subscribed(topic) => topic.newest_ns(),
        };
        (ns > 0).then(|| Instant::from_ns(ns))
    }

    fn named(&self) -> (EndpointKind, &str) {
        match self {
            Topic::Published(topic) => (EndpointKind::Writer, &topic.name),
            Topic::Subscribed(topic) => (EndpointKind::Reader, &topic.endpoint.topic),
        }
    }
}

impl Deadlines {
    /// Watches an endpoint from `now` on, if it has a deadline.
    pub(super) fn add(&mut self, id: EndpointId, topic: Topic, period: Option<Span>, now: Instant<Raw>) {
        let Some(period) = period else { return };
        self.watched.insert(id, (topic, Watch::new(period, now)));
        self.plan();
    }

    pub(super) fn remove(&mut self, id: EndpointId) {
        if self.watched.remove(&id).is_some() {
            self.plan();
        }
    }

    /// Time has passed; `tell` gets what the user should know.
    pub(super) fn handle_timeout(&mut self, now: Instant<Raw>, mut tell: impl FnMut(Notice)) {
        if self.next_look.is_none_or(|at| now < at) {
            return;
        }
        for (topic, watch) in self.watched.values_mut() {
            if watch.handle_timeout(topic.newest(), now) {
                let (kind, name) = topic.named();
                let (period, (total, _)) = (watch.period, watch.missed());
                tell(Notice::DeadlineMissed { topic: name.to_owned(), kind, period, total });
            }
        }
        self.plan();
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant<Raw>> {
        self.next_look
    }

    /// How often an endpoint's deadline was missed, and when last on `clock`.
    pub(super) fn missed(&self, id: EndpointId, clock: &LocalClock) -> DeadlineMissed {
        let Some((_, watch)) = self.watched.get(&id) else { return DeadlineMissed::default() };
        let (total, last) = watch.missed();
        DeadlineMissed { total, last: last.map(|last| clock.at(last)) }
    }

    fn plan(&mut self) {
        self.next_look = self.watched.values().map(|(_, watch)| watch.poll_timeout()).min();
    }
}
