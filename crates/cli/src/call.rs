//! `noctule call`

use std::error::Error;
use std::time::{Duration, Instant};

use noctule::request::{RawReply, ServiceTopics, ServiceTypes, TypeRef};
use noctule::{CallError, Node};
use noctule_codegen::cdr::yaml;
use serde_json::json;

use crate::Outcome;
use crate::services::{End, services};
use crate::stop::Stop;
use crate::swarm::{SwarmArguments, seconds};
use crate::types::{TopicType, TypesArguments};
use crate::units::{age, printable};

/// Interval between two looks for a server.
const LOOK: Duration = Duration::from_millis(10);
/// Longest request.
const REQUEST_BYTES_MAX: u32 = 16 << 20;

#[derive(clap::Args)]
pub(crate) struct CallArguments {
    /// The service
    service: String,
    /// The request as YAML or JSON, e.g. '{a: 2, b: 3}'
    #[arg(default_value = "{}")]
    value: String,
    /// Give up after this many seconds
    #[arg(long, value_name = "S", value_parser = seconds, default_value = "5")]
    seconds: Duration,
    /// Ask another server if the first one ends: the request may be executed more than once
    #[arg(long)]
    idempotent: bool,
    /// Print one JSON object: the response, its age, the server
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    types: TypesArguments,
    #[command(flatten)]
    swarm: SwarmArguments,
}

pub(crate) fn run(arguments: &CallArguments) -> Result<Outcome, Box<dyn Error>> {
    ServiceTopics::of(&arguments.service)?;
    let stop = Stop::after(Some(arguments.seconds))?;
    let mut types = arguments.types.load()?;
    let node = arguments.swarm.join("call")?;
    let Some(server) = server(arguments, &node, &stop) else {
        let what = format!("no server of {} was seen", printable(&arguments.service));
        anstream::eprintln!("noctule: {}", arguments.swarm.nothing_seen(&what, stop.elapsed(), &node));
        return Ok(Outcome::NotValid);
    };
    let request = types.of_endpoint(&node, server.node, &server.request)?;
    let response = types.of_endpoint(&node, server.node, &server.reply)?;
    let bytes = request.encoded(arguments.value.as_bytes())?;
    let left = arguments.seconds.saturating_sub(stop.elapsed()).max(LOOK);
    let type_ref =
        |endpoint: &noctule::Endpoint| TypeRef { name: endpoint.type_name.clone(), hash: endpoint.type_hash };
    let types = ServiceTypes { request: type_ref(&server.request), response: type_ref(&server.reply) };
    let mut client = node
        .raw_client(&arguments.service, types)
        .deadline(left)
        .idempotent(arguments.idempotent)
        .payload_bytes_max((bytes.len() as u32).clamp(64, REQUEST_BYTES_MAX))
        .open()?;
    match client.call(&bytes) {
        Ok(reply) => show(arguments, &node, &response, &reply),
        Err(error @ (CallError::Publish(_) | CallError::Take(_))) => Err(error.into()),
        Err(error) => {
            anstream::eprintln!("noctule: {}", printable(&error.to_string()));
            Ok(Outcome::NotValid)
        }
    }
}

/// The first server that is seen.
fn server(arguments: &CallArguments, node: &Node, stop: &Stop) -> Option<End> {
    let name = arguments.service.strip_prefix('/').unwrap_or(&arguments.service);
    let name = format!("/{name}");
    while !stop.is_due() {
        if let Some(server) =
            services(node).remove(&name).and_then(|service| service.servers.into_iter().next())
        {
            return Some(server);
        }
        stop.wait_until(Instant::now() + LOOK);
    }
    None
}

fn show(
    arguments: &CallArguments,
    node: &Node,
    response: &TopicType,
    reply: &RawReply,
) -> Result<Outcome, Box<dyn Error>> {
    let value = response.value(Some(noctule::Format::Cdr), reply.bytes(), usize::MAX)?;
    let server = reply.server();
    if arguments.json {
        let known = reply.age();
        let all = json!({
            "service": arguments.service,
            "server": server.to_string(),
            "age_ns": known.map(|age| age.span.ns()),
            "bound_ns": known.and_then(|age| age.bound).map(|bound| bound.ns()),
            "response": serde_json::to_value(&value)?,
        });
        anstream::println!("{}", serde_json::to_string_pretty(&all)?);
    } else {
        let nodes = node.nodes().into_iter();
        let name =
            nodes.filter(|known| known.id == server).map(|known| known.name).next().unwrap_or_default();
        anstream::print!("# {}, {} old\n{}", printable(&name), age(reply.age()), yaml(&value));
    }
    Ok(Outcome::Done)
}
