//! `noctule services`

use std::collections::BTreeMap;
use std::error::Error;
use std::time::Duration;

use noctule::request::ServiceTopics;
use noctule::{Endpoint, EndpointKind, KnownEndpoint, Node, NodeId};
use serde_json::{Value, json};

use crate::Outcome;
use crate::stop::Stop;
use crate::swarm::{SwarmArguments, seconds, short};
use crate::units::{columns, printable};

#[derive(clap::Args)]
pub(crate) struct ServicesArguments {
    /// Listen this long
    #[arg(long, value_name = "S", value_parser = seconds, default_value = "2")]
    seconds: Duration,
    /// Print JSON instead of the table
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    swarm: SwarmArguments,
}

pub(crate) fn run(arguments: &ServicesArguments) -> Result<Outcome, Box<dyn Error>> {
    let stop = Stop::after(Some(arguments.seconds))?;
    let node = arguments.swarm.join("services")?;
    stop.wait();
    let services = services(&node);
    if arguments.json {
        let all: Vec<Value> = services.iter().map(|(name, service)| service.as_json(name)).collect();
        anstream::println!("{}", serde_json::to_string_pretty(&json!({ "services": all }))?);
    } else if !services.is_empty() {
        anstream::print!("{}", table(&services));
    }
    if services.is_empty() {
        let what = "no service was seen";
        let sentence = match node.nodes().len() {
            0 => arguments.swarm.nothing_seen(what, stop.elapsed(), &node),
            others => format!("{what}: {others} other nodes are there, and none has a service"),
        };
        anstream::eprintln!("noctule: {sentence}");
        return Ok(Outcome::NotValid);
    }
    Ok(Outcome::Done)
}

/// One end of a service: a node that reads requests and writes replies, or the reverse.
pub(crate) struct End {
    pub(crate) node: NodeId,
    pub(crate) node_name: String,
    pub(crate) request: Endpoint,
    pub(crate) reply: Endpoint,
}

#[derive(Default)]
pub(crate) struct Service {
    pub(crate) servers: Vec<End>,
    pub(crate) clients: Vec<End>,
}

/// The services of other nodes, by name. An end whose other topic is not there yet is left out.
pub(crate) fn services(node: &Node) -> BTreeMap<String, Service> {
    let endpoints = node.endpoints();
    let mut found = BTreeMap::<String, Service>::new();
    for request in &endpoints {
        let Some(name) = ServiceTopics::service_of(&request.endpoint.topic) else { continue };
        let Ok(topics) = ServiceTopics::of(&name) else { continue };
        let is_other_end = |known: &&KnownEndpoint| {
            known.node == request.node
                && known.endpoint.topic == topics.reply
                && known.endpoint.kind != request.endpoint.kind
        };
        let Some(reply) = endpoints.iter().find(is_other_end) else { continue };
        let end = End {
            node: request.node,
            node_name: request.node_name.clone(),
            request: request.endpoint.clone(),
            reply: reply.endpoint.clone(),
        };
        let service = found.entry(name).or_default();
        match request.endpoint.kind {
            EndpointKind::Reader => service.servers.push(end),
            EndpointKind::Writer => service.clients.push(end),
        }
    }
    found
}

fn table(services: &BTreeMap<String, Service>) -> String {
    let heading = ["service", "request", "response", "served by", "clients"];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    for (name, service) in services {
        let of_type = |type_of: fn(&End) -> &Endpoint| {
            let mut names: Vec<&str> = service
                .ends()
                .map(|end| type_of(end).type_name.as_str())
                .filter(|name| !name.is_empty())
                .collect();
            names.sort_unstable();
            names.dedup();
            printable(&names.join(", "))
        };
        let servers: Vec<String> = service
            .servers
            .iter()
            .map(|end| format!("{} ({})", printable(&end.node_name), short(end.node)))
            .collect();
        rows.push(vec![
            printable(name),
            of_type(|end| &end.request),
            of_type(|end| &end.reply),
            if servers.is_empty() { "nobody".to_owned() } else { servers.join(", ") },
            service.clients.len().to_string(),
        ]);
    }
    columns(&rows, &[false, false, false, false, true])
}

impl Service {
    fn ends(&self) -> impl Iterator<Item = &End> {
        self.servers.iter().chain(&self.clients)
    }

    fn as_json(&self, name: &str) -> Value {
        let end = |end: &End| {
            json!({
                "node": end.node.to_string(),
                "node_name": end.node_name,
                "request_type": end.request.type_name,
                "request_hash": format!("{:016x}", end.request.type_hash),
                "response_type": end.reply.type_name,
                "response_hash": format!("{:016x}", end.reply.type_hash),
            })
        };
        json!({
            "service": name,
            "servers": self.servers.iter().map(end).collect::<Vec<_>>(),
            "clients": self.clients.iter().map(end).collect::<Vec<_>>(),
        })
    }
}
