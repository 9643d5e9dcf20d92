//! `noctule topics`

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::time::{Duration, Instant};

use noctule::{EndpointKind, Incompatible, KnownEndpoint, Node, NodeId, Qos, incompatible};
use noctule_codegen::described::{Described, ros2msg};
use noctule_codegen::hash::rihs01;
use serde_json::{Value, json};

use crate::Outcome;
use crate::stop::Stop;
use crate::swarm::{SwarmArguments, seconds, short};
use crate::types::{Types, TypesArguments};
use crate::units::{columns, printable};

/// Mismatches shown of one topic.
const MISMATCHES_LIMIT: usize = 64;
/// Interval between two looks for a topic.
const LOOK: Duration = Duration::from_millis(20);

#[derive(clap::Args)]
pub(crate) struct TopicsArguments {
    /// Listen this long
    #[arg(long, value_name = "S", value_parser = seconds, default_value = "2")]
    seconds: Duration,
    /// Show what the samples of this topic are made of
    #[arg(long = "type", value_name = "TOPIC")]
    type_of: Option<String>,
    /// Print JSON instead of the table
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    types: TypesArguments,
    #[command(flatten)]
    swarm: SwarmArguments,
}

pub(crate) fn run(arguments: &TopicsArguments) -> Result<Outcome, Box<dyn Error>> {
    let stop = Stop::after(Some(arguments.seconds))?;
    let mut types = arguments.types.load()?;
    let node = arguments.swarm.join("topics")?;
    if let Some(topic) = &arguments.type_of {
        return definition(arguments, topic, &mut types, (&node, &stop));
    }
    stop.wait();
    let topics = Topics::of(&node);
    if arguments.json {
        anstream::println!("{}", serde_json::to_string_pretty(&topics.as_json())?);
    } else if !topics.by_name.is_empty() {
        anstream::print!("{}", topics.table());
    }
    if topics.by_name.is_empty() {
        let others = node.nodes().len();
        let what = "no topic was seen";
        let sentence = match others {
            0 => arguments.swarm.nothing_seen(what, stop.elapsed(), &node),
            _ => format!("{what}: {others} other nodes are there, and none has a topic"),
        };
        anstream::eprintln!("noctule: {sentence}");
        return Ok(Outcome::NotValid);
    }
    Ok(Outcome::Done)
}

/// Prints the definition of a topic's type as soon as a node with it is seen.
fn definition(
    arguments: &TopicsArguments,
    topic: &str,
    types: &mut Types,
    (node, stop): (&Node, &Stop),
) -> Result<Outcome, Box<dyn Error>> {
    let has_topic = || node.endpoints().iter().any(|known| known.endpoint.topic == topic);
    let found = loop {
        // A reader of any type may be seen before the writer.
        let found = types.of_topic(node, topic);
        if stop.is_due() || !matches!(found, Ok(None)) {
            break found?;
        }
        stop.wait_until(Instant::now() + LOOK);
    };
    let Some(found) = found else {
        let topic = printable(topic);
        if has_topic() {
            anstream::eprintln!(
                "noctule: {topic} has plain bytes and no type; name its definitions with --types FOLDER if it has one"
            );
        } else {
            let what = format!("{topic} was not seen");
            anstream::eprintln!("noctule: {}", arguments.swarm.nothing_seen(&what, stop.elapsed(), node));
        }
        return Ok(Outcome::NotValid);
    };
    let Described { library, name } = &found.described;
    let (hash, rihs01) = (format!("{:016x}", found.description.hash()), rihs01(library, name));
    if arguments.json {
        let all = json!({
            "topic": topic, "type": name.as_str(), "hash": hash, "rihs01": rihs01,
            "description": found.description.text(), "ros2msg": ros2msg(library, name),
        });
        anstream::println!("{}", serde_json::to_string_pretty(&all)?);
    } else {
        anstream::print!("# hash {hash}\n# {rihs01}\n{}", printable(found.description.text()));
    }
    Ok(Outcome::Done)
}

/// Topics and nodes of the network, from discovery.
struct Topics {
    by_name: BTreeMap<String, Topic>,
    hosts: BTreeMap<NodeId, String>,
}

#[derive(Default)]
struct Topic {
    writers: Vec<KnownEndpoint>,
    readers: Vec<KnownEndpoint>,
}

/// A writer and a reader that do not fit.
struct Mismatch<'a> {
    writer: &'a KnownEndpoint,
    reader: &'a KnownEndpoint,
    why: Incompatible,
}

impl Topics {
    fn of(node: &Node) -> Topics {
        let host = |known: &noctule::KnownNode| match known.same_host {
            true => "this host".to_owned(),
            false => known.address.ip().to_string(),
        };
        let hosts = node.nodes().iter().map(|known| (known.id, host(known))).collect();
        let mut by_name = BTreeMap::<String, Topic>::new();
        for known in node.endpoints() {
            let topic = by_name.entry(known.endpoint.topic.clone()).or_default();
            match known.endpoint.kind {
                EndpointKind::Writer => topic.writers.push(known),
                EndpointKind::Reader => topic.readers.push(known),
            }
        }
        Topics { by_name, hosts }
    }

    fn table(&self) -> String {
        let heading = ["topic", "type", "writers", "readers", "qos", "hosts"];
        let mut rows = vec![heading.map(str::to_owned).to_vec()];
        let mut mismatches = String::new();
        for (name, topic) in &self.by_name {
            rows.push(vec![
                printable(name),
                printable(&join(topic.types())),
                topic.writers.len().to_string(),
                topic.readers.len().to_string(),
                join(topic.qos()),
                join(topic.endpoints().map(|known| self.host(known))),
            ]);
            for mismatch in topic.mismatches() {
                let node = |known: &KnownEndpoint| {
                    format!("{} ({})", printable(&known.node_name), short(known.node))
                };
                mismatches += &format!(
                    "{}: {} and {} do not fit: {}\n",
                    printable(name),
                    node(mismatch.writer),
                    node(mismatch.reader),
                    printable(&mismatch.why.to_string())
                );
            }
        }
        columns(&rows, &[false, false, true, true, false, false]) + &mismatches
    }

    fn as_json(&self) -> Value {
        let endpoint = |known: &KnownEndpoint| {
            let qos = known.endpoint.qos;
            json!({
                "node": known.node.to_string(),
                "node_name": known.node_name,
                "host": self.host(known),
                "type": known.endpoint.type_name,
                "payload_bytes_max": known.endpoint.payload_bytes_max,
                "reliability": qos.reliability.to_string(),
                "durability": qos.durability.to_string(),
                "keep_last": qos.depth,
                "deadline_ns": qos.deadline.map(|span| span.ns()),
                "lifespan_ns": qos.lifespan.map(|span| span.ns()),
            })
        };
        let mismatch = |mismatch: Mismatch<'_>| {
            json!({
                "writer": mismatch.writer.node.to_string(),
                "reader": mismatch.reader.node.to_string(),
                "why": mismatch.why.to_string(),
            })
        };
        let topic = |(name, topic): (&String, &Topic)| {
            json!({
                "topic": name,
                "writers": topic.writers.iter().map(endpoint).collect::<Vec<_>>(),
                "readers": topic.readers.iter().map(endpoint).collect::<Vec<_>>(),
                "mismatches": topic.mismatches().map(mismatch).collect::<Vec<_>>(),
            })
        };
        json!({ "topics": self.by_name.iter().map(topic).collect::<Vec<_>>() })
    }

    fn host(&self, known: &KnownEndpoint) -> String {
        self.hosts.get(&known.node).cloned().unwrap_or_else(|| "gone".to_owned())
    }
}

impl Topic {
    fn endpoints(&self) -> impl Iterator<Item = &KnownEndpoint> {
        self.writers.iter().chain(&self.readers)
    }

    /// Readers of any type name none.
    fn types(&self) -> impl Iterator<Item = String> {
        self.endpoints().map(|known| known.endpoint.type_name.clone()).filter(|name| !name.is_empty())
    }

    /// QoS that writers offer, or if there are none, that readers request.
    fn qos(&self) -> impl Iterator<Item = String> {
        let meant = if self.writers.is_empty() { &self.readers } else { &self.writers };
        meant.iter().map(|known| words(&known.endpoint.qos, known.endpoint.kind))
    }

    fn mismatches(&self) -> impl Iterator<Item = Mismatch<'_>> {
        let pairs =
            self.writers.iter().flat_map(|writer| self.readers.iter().map(move |reader| (writer, reader)));
        let found = pairs.filter_map(|(writer, reader)| {
            Some(Mismatch { writer, reader, why: incompatible(&writer.endpoint, &reader.endpoint)? })
        });
        found.take(MISMATCHES_LIMIT)
    }
}

/// QoS in the words of DDS and ROS 2; only a writer has a history.
fn words(qos: &Qos, kind: EndpointKind) -> String {
    let mut words = format!("{} {}", qos.reliability, qos.durability);
    if kind == EndpointKind::Writer {
        words += &format!(" keep_last {}", qos.depth);
    }
    let millis = |span: noctule_timebase::Span| span.ns() as f64 / 1e6;
    if let Some(deadline) = qos.deadline {
        words += &format!(" deadline {} ms", millis(deadline));
    }
    if let Some(lifespan) = qos.lifespan {
        words += &format!(" lifespan {} ms", millis(lifespan));
    }
    words
}

/// Each once, in order; a dash for none.
fn join(words: impl Iterator<Item = String>) -> String {
    let words: BTreeSet<String> = words.collect();
    if words.is_empty() { "–".to_owned() } else { words.into_iter().collect::<Vec<_>>().join(", ") }
}
