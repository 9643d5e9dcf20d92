//! What a node knows, behind one lock: discovery, the seal, and its own topics.
//!
//! Sans-IO like the cores it joins: datagrams come in, datagrams and wishes come out, `now` is an
//! argument. The node's thread and whoever waits for samples of other hosts take turns with it.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;

use noctule_discovery::{
    Destination, Discovery, Endpoint, EndpointId, EndpointKind, Event, Local as DiscoveryClock, NodeId,
    Reason, Via,
};
use noctule_timebase::Instant;

use crate::clock::Raw;
use crate::envelope::Envelope;
use crate::notice::Notice;
use crate::publisher::PublishedTopic;
use crate::subscriber::SubscribedTopic;

/// Notices kept for who asks; older ones are dropped.
const NOTICES_LIMIT: usize = 256;

/// What the node's thread is to do with other processes of this host.
#[derive(Debug)]
pub(super) enum Wish {
    /// Get the ring of a writer for one of our readers.
    Attach { node: NodeId, writer: Arc<Endpoint>, reader: EndpointId },
    /// Let go of it.
    Release { node: NodeId, writer: EndpointId, reader: EndpointId },
    /// The node is gone, and its connection with it.
    Forget { node: NodeId },
}

/// An endpoint of another node, or of this one.
pub(super) type Partner = (NodeId, EndpointId);

/// See the module.
#[derive(Debug)]
pub(super) struct State {
    pub(super) discovery: Discovery,
    pub(super) envelope: Envelope,
    pub(super) publishers: BTreeMap<EndpointId, Arc<PublishedTopic>>,
    pub(super) subscribers: BTreeMap<EndpointId, Arc<SubscribedTopic>>,
    /// Partners of each of our endpoints.
    pub(super) partners: BTreeMap<EndpointId, Vec<Partner>>,
    /// Nodes whose memory we share, or not.
    same_host: BTreeMap<NodeId, bool>,
    wishes: VecDeque<Wish>,
    notices: VecDeque<Notice>,
    me: NodeId,
}

impl State {
    pub(super) fn new(me: NodeId, discovery: Discovery, envelope: Envelope) -> State {
        State {
            discovery,
            envelope,
            publishers: BTreeMap::new(),
            subscribers: BTreeMap::new(),
            partners: BTreeMap::new(),
            same_host: BTreeMap::new(),
            wishes: VecDeque::new(),
            notices: VecDeque::new(),
            me,
        }
    }

    /// A datagram from one of the sockets.
    pub(super) fn handle_datagram(
        &mut self,
        bytes: &mut [u8],
        source: SocketAddr,
        via: Via,
        now: Instant<Raw>,
    ) {
        // Why one is not believed is counted by who did not believe it.
        let Ok(opened) = self.envelope.open(bytes, source, now) else {
            self.note_refusals();
            return;
        };
        let _ = self.discovery.handle_datagram(opened.body, source, via, discovery_clock(now));
        self.handle_events();
    }

    /// Time has passed.
    pub(super) fn handle_timeout(&mut self, now: Instant<Raw>) {
        self.discovery.handle_timeout(discovery_clock(now));
        self.handle_events();
    }

    /// A process of this host has died: its connection ended.
    pub(super) fn handle_death(&mut self, node: NodeId) {
        if node != self.me {
            self.discovery.handle_death(node);
            self.handle_events();
        }
    }

    /// The next datagram to send, sealed.
    pub(super) fn poll_transmit(&mut self, now: Instant<Raw>, out: &mut Vec<u8>) -> Option<Destination> {
        if let Some((to, bytes)) = self.envelope.poll_transmit() {
            *out = bytes;
            return Some(Destination::One(to));
        }
        let mut body = Vec::new();
        let destination = self.discovery.poll_transmit(discovery_clock(now), &mut body)?;
        self.envelope.begin(out);
        out.extend_from_slice(&body);
        self.envelope.seal(out);
        Some(destination)
    }

    /// When something is to be done again.
    pub(super) fn poll_timeout(&self) -> Instant<Raw> {
        Instant::from_ns(self.discovery.poll_timeout().ns())
    }

    /// What the node's thread is to do next.
    pub(super) fn poll_wish(&mut self) -> Option<Wish> {
        self.wishes.pop_front()
    }

    /// What the user should know.
    pub(super) fn poll_notice(&mut self) -> Option<Notice> {
        self.notices.pop_front()
    }

    pub(super) fn note(&mut self, notice: Notice) {
        if self.notices.len() >= NOTICES_LIMIT {
            self.notices.pop_front();
        }
        self.notices.push_back(notice);
    }

    /// Announces an endpoint; `None` if there is no room.
    pub(super) fn add(&mut self, endpoint: Endpoint, now: Instant<Raw>) -> Option<EndpointId> {
        let topic = endpoint.topic.clone();
        let kind = endpoint.kind;
        let mut endpoint = endpoint;
        // Within the node partners are found here: nobody hears its own announcements.
        let id = self.discovery.add(endpoint.clone(), discovery_clock(now))?;
        endpoint.id = id;
        self.partners.insert(id, Vec::new());
        let ours = Arc::new(endpoint);
        let others: Vec<_> = match kind {
            EndpointKind::Writer => self.subscribers.values().map(|topic| topic.endpoint.clone()).collect(),
            EndpointKind::Reader => {
                self.publishers.keys().filter_map(|id| self.discovery.local(*id).cloned()).collect()
            }
        };
        for other in others.into_iter().filter(|other| other.topic == topic) {
            let other = Arc::new(other);
            let (writer, reader) = match kind {
                EndpointKind::Writer => (&ours, &other),
                EndpointKind::Reader => (&other, &ours),
            };
            match noctule_discovery::incompatible(writer, reader) {
                None => self.match_local(self.me, writer, reader),
                Some(why) => {
                    self.note(Notice::Mismatch { topic: topic.clone(), node: "this node".into(), why })
                }
            }
        }
        self.handle_events();
        Some(id)
    }

    /// Takes an endpoint back.
    pub(super) fn remove(&mut self, id: EndpointId, now: Instant<Raw>) {
        let kind = self.discovery.local(id).map(|endpoint| endpoint.kind);
        for (node, other) in self.partners.remove(&id).unwrap_or_default() {
            if kind == Some(EndpointKind::Reader) {
                self.wishes.push_back(Wish::Release { node, writer: other, reader: id });
            }
            if node == self.me {
                self.part(other, (node, id));
            }
        }
        self.discovery.remove(id, discovery_clock(now));
        self.publishers.remove(&id);
        self.subscribers.remove(&id);
        self.handle_events();
    }

    fn match_local(&mut self, node: NodeId, writer: &Arc<Endpoint>, reader: &Arc<Endpoint>) {
        self.partners.entry(writer.id).or_default().push((node, reader.id));
        self.partners.entry(reader.id).or_default().push((node, writer.id));
        self.wishes.push_back(Wish::Attach { node, writer: Arc::clone(writer), reader: reader.id });
    }

    fn part(&mut self, ours: EndpointId, other: (NodeId, EndpointId)) {
        if let Some(partners) = self.partners.get_mut(&ours) {
            partners.retain(|partner| *partner != other);
        }
    }

    fn handle_events(&mut self) {
        while let Some(event) = self.discovery.poll_event() {
            match event {
                Event::Joined { node, same_host, .. } => {
                    self.same_host.insert(node, same_host);
                }
                Event::Gone { node, reason } => {
                    self.same_host.remove(&node);
                    self.wishes.push_back(Wish::Forget { node });
                    if !matches!(reason, Reason::Left | Reason::Died) {
                        self.note(Notice::Gone { node, reason });
                    }
                }
                Event::Matched { local, node, remote } => self.matched(local, node, remote),
                Event::Unmatched { local, node, remote } => {
                    self.part(local, (node, remote));
                    if self.subscribers.contains_key(&local) {
                        self.wishes.push_back(Wish::Release { node, writer: remote, reader: local });
                    }
                }
                Event::Mismatched { local, node, remote, why } => {
                    let _ = local;
                    let name = self
                        .discovery
                        .nodes()
                        .find(|(id, ..)| *id == node)
                        .map(|(_, name, ..)| name.to_owned());
                    let node = name.unwrap_or_else(|| node.to_string());
                    self.note(Notice::Mismatch { topic: remote.topic.clone(), node, why });
                }
            }
        }
    }

    fn matched(&mut self, local: EndpointId, node: NodeId, remote: Arc<Endpoint>) {
        self.partners.entry(local).or_default().push((node, remote.id));
        let here = self.same_host.get(&node).copied().unwrap_or(false);
        if here && remote.kind == EndpointKind::Writer {
            self.wishes.push_back(Wish::Attach { node, writer: remote, reader: local });
        }
    }

    fn note_refusals(&mut self) {
        while let Some(why) = self.envelope.poll_warning() {
            self.note(Notice::Seal { why });
        }
    }
}

/// The cores have a marker each for the one clock they are all driven by.
fn discovery_clock(now: Instant<Raw>) -> Instant<DiscoveryClock> {
    Instant::from_ns(now.ns())
}
