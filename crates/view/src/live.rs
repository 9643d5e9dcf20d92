//! The running system: a reader of every topic, the nodes and their clocks.

mod definitions;
mod watch;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use noctule::{EndpointKind, KnownEndpoint, Node, NodeId, Qos};
use noctule_record::observer::{Observer, mismatches};
use serde_json::{Value, json};

use crate::content::Kind;
use crate::figures::Figures;
use crate::sample::ShownSample;
use crate::types::Types;

use self::definitions::Definitions;
use self::watch::Watch;

pub use self::watch::NewPoints;
pub(crate) use self::watch::{AGE_PATH, BOUND_PATH};

/// Topics followed at once, 50 kB and a thread each.
pub const TOPICS_LIMIT: usize = 512;
/// Notices kept.
const NOTICES_LIMIT: usize = 64;

/// A running system under observation.
pub struct Live {
    node: Arc<Node>,
    types: Arc<Types>,
    /// Empty for all.
    wanted: Vec<String>,
    topics: Vec<Topic>,
    notices: Vec<String>,
    /// Topics beyond the limit.
    left_out: usize,
    endpoints: Vec<KnownEndpoint>,
    names: BTreeMap<NodeId, String>,
    observer: Observer,
    definitions: Definitions,
}

/// A topic keeps its place as long as the view runs, so that its number means the same for all pages.
struct Topic {
    name: String,
    /// `None` when it has no publisher any longer.
    watch: Option<Watch>,
    kind: Kind,
}

impl Live {
    /// Follows all topics, or those that are named.
    pub fn new(node: Node, wanted: Vec<String>, types: Arc<Types>) -> Live {
        let node = Arc::new(node);
        let observer = Observer::start(&node, "this view");
        let definitions = Definitions::start(&node, &types);
        Live {
            node,
            types,
            wanted,
            topics: Vec::new(),
            notices: Vec::new(),
            left_out: 0,
            endpoints: Vec::new(),
            names: BTreeMap::new(),
            observer,
            definitions,
        }
    }

    /// Now, ns of the view's clock.
    pub fn now_ns(&self) -> i64 {
        self.node.now().ns()
    }

    /// Looks which nodes are there.
    pub fn look(&mut self) {
        self.endpoints = self.node.endpoints();
        self.names = self.node.nodes().into_iter().map(|known| (known.id, known.name)).collect();
        let mut published = BTreeSet::new();
        self.left_out = 0;
        for known in std::mem::take(&mut self.endpoints) {
            let endpoint = &known.endpoint;
            let is_wanted = self.wanted.is_empty() || self.wanted.contains(&endpoint.topic);
            if endpoint.kind == EndpointKind::Writer && is_wanted {
                self.follow(endpoint);
                self.definitions.want(known.node, &endpoint.type_name, endpoint.type_hash);
                published.insert(endpoint.topic.clone());
            }
            self.endpoints.push(known);
        }
        for topic in &mut self.topics {
            if let Some(trouble) = topic.watch.as_ref().and_then(Watch::trouble) {
                note(&mut self.notices, format!("{}: {trouble}", topic.name));
                topic.watch = None;
            }
            if !published.contains(&topic.name) {
                topic.watch = None;
            }
        }
        while let Some(notice) = self.node.poll_notice() {
            note(&mut self.notices, notice.to_string());
        }
    }

    fn follow(&mut self, writer: &noctule::Endpoint) {
        let place = self.topics.iter().position(|topic| topic.name == writer.topic);
        let place = match place {
            Some(place) => place,
            None if self.topics.len() >= TOPICS_LIMIT => {
                self.left_out += 1;
                return;
            }
            None => {
                let kind = Kind::of(&writer.type_name);
                self.topics.push(Topic { name: writer.topic.clone(), watch: None, kind });
                self.topics.len() - 1
            }
        };
        let topic = &mut self.topics[place];
        if topic.watch.is_none() {
            match Watch::start(&self.node, &topic.name, &self.types) {
                Ok(watch) => topic.watch = Some(watch),
                Err(error) => note(&mut self.notices, format!("{}: {error}", topic.name)),
            }
        }
        topic.kind = Kind::of(&writer.type_name);
        if let Some(watch) = &topic.watch {
            watch.handle_writer(writer);
        }
    }

    /// The figures of all topics that are published, each with its number.
    pub fn figures(&self) -> Vec<(usize, Figures)> {
        let now = self.node.now();
        let of = |(id, topic): (usize, &Topic)| Some((id, topic.watch.as_ref()?.figures(now)));
        self.topics.iter().enumerate().filter_map(of).collect()
    }

    /// Number and kind of a topic.
    pub fn topic(&self, name: &str) -> Option<(usize, Kind)> {
        let id = self.topics.iter().position(|topic| topic.name == name)?;
        Some((id, self.topics[id].kind))
    }

    /// Topics whose bytes, and fields that pages look at.
    pub fn want(&self, bytes: &BTreeSet<String>, fields: &BTreeMap<String, Vec<String>>) {
        for topic in &self.topics {
            if let Some(watch) = &topic.watch {
                watch.want_bytes(bytes.contains(&topic.name));
                watch.want_curves(fields.get(&topic.name).map_or(&[], Vec::as_slice));
            }
        }
    }

    /// The newest sample of a topic that is wanted.
    pub fn newest(&self, name: &str) -> Option<ShownSample> {
        let (id, _) = self.topic(name)?;
        let known = |info: &noctule::SampleInfo| {
            let name = self.names.get(&info.publisher).cloned();
            name.unwrap_or_else(|| info.publisher.to_string())
        };
        self.topics[id].watch.as_ref()?.newest(known)
    }

    /// Points of a field from number `from` on, and the number of the next.
    pub fn curve_since(&self, topic: &str, path: &str, from: u64) -> Option<NewPoints> {
        let (id, _) = self.topic(topic)?;
        self.topics[id].watch.as_ref()?.curve_since(path, from)
    }

    /// Topics, their types and the nodes that have them, what does not fit, notices.
    pub fn catalog(&self) -> Value {
        let endpoint = |known: &KnownEndpoint| {
            let id = known.node.to_string();
            json!({ "node": id, "name": known.node_name, "qos": words(&known.endpoint.qos, known.endpoint.kind), "type": known.endpoint.type_name })
        };
        let of = |name: &str, kind: EndpointKind| -> Vec<Value> {
            let fits = |known: &&KnownEndpoint| known.endpoint.topic == name && known.endpoint.kind == kind;
            self.endpoints.iter().filter(fits).map(endpoint).collect()
        };
        let topics = self.topics.iter().enumerate().map(|(id, topic)| {
            let writers = of(&topic.name, EndpointKind::Writer);
            let type_name = writers.first().map_or(json!(""), |writer| writer["type"].clone());
            json!({
                "id": id, "name": topic.name, "type": type_name, "kind": topic.kind.word(), "live": topic.watch.is_some(),
                "writers": writers, "readers": of(&topic.name, EndpointKind::Reader),
            })
        });
        json!({
            "t": "catalog",
            "topics": topics.collect::<Vec<_>>(),
            "mismatches": mismatches(&self.endpoints),
            "notices": self.notices,
            "left_out": self.left_out,
        })
    }

    /// Every node with its clock and the link to it, and the links between nodes.
    pub fn nodes(&self) -> Value {
        json!({ "t": "nodes", "nodes": self.observer.nodes(), "links": self.observer.links() })
    }
}

fn note(notices: &mut Vec<String>, notice: String) {
    if notices.len() < NOTICES_LIMIT && !notices.contains(&notice) {
        notices.push(notice);
    }
}

/// QoS in the words of DDS and ROS 2; only a writer has a history.
fn words(qos: &Qos, kind: EndpointKind) -> String {
    let mut words = format!("{} {}", qos.reliability, qos.durability);
    if kind == EndpointKind::Writer {
        words += &format!(" keep_last {}", qos.depth);
    }
    for (name, span) in [("deadline", qos.deadline), ("lifespan", qos.lifespan)] {
        if let Some(span) = span {
            words += &format!(" {name} {} ms", span.ns() as f64 / 1e6);
        }
    }
    words
}
