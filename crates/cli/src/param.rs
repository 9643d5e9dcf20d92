//! `noctule param`: parameters of nodes, ROS 2's behind a bridge included.

mod text;

use std::collections::BTreeSet;
use std::error::Error;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use noctule::parameter::{ParameterCallError, ParameterClient, ParameterType, ParameterValue};
use noctule::request::ServiceTopics;
use noctule::{CallError, EndpointKind, Node};
use serde_json::{Value, json};

use self::text::{dumped, flat, json_of, value_of};
use crate::Outcome;
use crate::stop::Stop;
use crate::swarm::{SwarmArguments, seconds};
use crate::units::printable;

/// Interval between two looks for nodes.
const LOOK: Duration = Duration::from_millis(10);
/// Parameters that one request names: what they hold must fit its response.
const NAMES_AT_ONCE: usize = 16;
/// Longest file of parameters.
const FILE_BYTES_MAX: u64 = 16 << 20;

#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// List the parameters of a node, or of all nodes that have some
    List {
        /// The node, such as /arm
        node: Option<String>,
        #[command(flatten)]
        asking: Asking,
    },
    /// Show the value of a parameter
    Get {
        /// The node, such as /arm
        node: String,
        /// The parameter
        parameter: String,
        #[command(flatten)]
        asking: Asking,
    },
    /// Set a parameter
    Set {
        /// The node, such as /arm
        node: String,
        /// The parameter
        parameter: String,
        /// The value as YAML or JSON: 0.5, true, text, '[1, 2]'
        #[arg(allow_hyphen_values = true)]
        value: String,
        #[command(flatten)]
        asking: Asking,
    },
    /// Say what parameters are: type, description, range
    Describe {
        /// The node, such as /arm
        node: String,
        /// The parameters
        #[arg(required = true)]
        names: Vec<String>,
        #[command(flatten)]
        asking: Asking,
    },
    /// Print all parameters of a node as YAML, as ROS 2 has it in files
    Dump {
        /// The node, such as /arm
        node: String,
        #[command(flatten)]
        asking: Asking,
    },
    /// Set the parameters of a node that a file of YAML names
    Load {
        /// The node, such as /arm
        node: String,
        /// A file as `noctule param dump` writes it
        file: PathBuf,
        #[command(flatten)]
        asking: Asking,
    },
}

#[derive(clap::Args)]
pub(crate) struct Asking {
    /// Give up after this many seconds
    #[arg(long, value_name = "S", value_parser = seconds, default_value = "5")]
    seconds: Duration,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    swarm: SwarmArguments,
}

/// Why a command has no result.
enum Failed {
    /// No node answered: exit code 1.
    NoAnswer(String),
    /// The arguments are wrong, or the node refuses: exit code 2.
    Wrong(String),
}

impl From<ParameterCallError> for Failed {
    fn from(error: ParameterCallError) -> Failed {
        match error {
            ParameterCallError::Call(CallError::NoServer { service, .. }) => {
                let node = service.rsplit_once('/').map_or(service.as_str(), |(node, _)| node);
                Failed::NoAnswer(format!(
                    "no node {node} with parameters was found; `noctule param list` shows those there are"
                ))
            }
            other => Failed::NoAnswer(other.to_string()),
        }
    }
}

impl From<String> for Failed {
    fn from(sentence: String) -> Failed {
        Failed::Wrong(sentence)
    }
}

pub(crate) fn run(command: &Command) -> Result<Outcome, Box<dyn Error>> {
    let result = match command {
        Command::List { node: None, asking } => return list_all(asking),
        Command::List { node: Some(node), asking } => asking.ask(node, |client| list(asking, client)),
        Command::Get { node, parameter, asking } => asking.ask(node, |client| get(asking, client, parameter)),
        Command::Set { node, parameter, value, asking } => {
            let value = text::parsed(value)?;
            asking.ask(node, |client| set(client, node, &[(parameter.clone(), value)]))
        }
        Command::Describe { node, names, asking } => {
            asking.ask(node, |client| describe(asking, client, names))
        }
        Command::Dump { node, asking } => asking.ask(node, |client| dump(asking, client, node)),
        Command::Load { node, file, asking } => {
            let bytes =
                std::fs::metadata(file).map_err(|error| format!("{}: {error}", file.display()))?.len();
            if bytes > FILE_BYTES_MAX {
                return Err(format!(
                    "{}: {bytes} bytes are more than a file of parameters has",
                    file.display()
                )
                .into());
            }
            let text =
                std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
            let values = flat(&text, node).map_err(|why| format!("{}: {why}", file.display()))?;
            asking.ask(node, |client| set(client, node, &values))
        }
    };
    match result? {
        Ok(text) => {
            anstream::print!("{text}");
            Ok(Outcome::Done)
        }
        Err(Failed::NoAnswer(why)) => {
            anstream::eprintln!("noctule: {}", printable(&why));
            Ok(Outcome::NotValid)
        }
        Err(Failed::Wrong(why)) => Err(printable(&why).into()),
    }
}

/// A node's answer in words, or why there is none.
type Asked = Result<String, Failed>;

impl Asking {
    fn ask(
        &self,
        node: &str,
        work: impl FnOnce(&mut ParameterClient) -> Result<String, Failed>,
    ) -> Result<Asked, Box<dyn Error>> {
        ServiceTopics::of(&format!("{node}/set_parameters_atomically"))?;
        let own = self.swarm.join("param")?;
        let mut client = own.parameter_client(node, self.seconds)?;
        Ok(work(&mut client))
    }
}

fn list(asking: &Asking, client: &mut ParameterClient) -> Result<String, Failed> {
    let names = client.list(&[], 0)?.names;
    if asking.json {
        return Ok(pretty(&json!(names)));
    }
    Ok(names.iter().map(|name| printable(name) + "\n").collect())
}

/// Nodes of the bus that answer for parameters.
fn nodes(own: &Node) -> BTreeSet<String> {
    let endpoints = own.endpoints();
    let readers = endpoints.iter().filter(|known| known.endpoint.kind == EndpointKind::Reader);
    let services = readers.filter_map(|known| ServiceTopics::service_of(&known.endpoint.topic));
    services.filter_map(|service| service.strip_suffix("/list_parameters").map(str::to_owned)).collect()
}

fn list_all(asking: &Asking) -> Result<Outcome, Box<dyn Error>> {
    let stop = Stop::after(Some(asking.seconds.min(Duration::from_secs(2))))?;
    let own = asking.swarm.join("param")?;
    while !stop.is_due() {
        stop.wait_until(Instant::now() + LOOK);
    }
    let nodes = nodes(&own);
    if nodes.is_empty() {
        let sentence = asking.swarm.nothing_seen("no node with parameters was seen", stop.elapsed(), &own);
        anstream::eprintln!("noctule: {sentence}");
        return Ok(Outcome::NotValid);
    }
    let mut all = serde_json::Map::new();
    for node in nodes {
        let mut client = own.parameter_client(&node, asking.seconds)?;
        let names = client.list(&[], 0).map_err(|error| printable(&error.to_string()))?.names;
        if !asking.json {
            anstream::println!("{}:", printable(&node));
            names.iter().for_each(|name| anstream::println!("  {}", printable(name)));
        }
        all.insert(node, json!(names));
    }
    if asking.json {
        anstream::print!("{}", pretty(&Value::Object(all)));
    }
    Ok(Outcome::Done)
}

fn get(asking: &Asking, client: &mut ParameterClient, name: &str) -> Result<String, Failed> {
    let value = client.get(&[name])?.pop().unwrap_or_default();
    if value == ParameterValue::NotSet {
        return Err(not_declared(name));
    }
    Ok(match asking.json {
        true => pretty(&json!({ "name": name, "type": value.kind().name(), "value": json_of(&value) })),
        false => text::shown(&value),
    })
}

fn not_declared(name: &str) -> Failed {
    Failed::Wrong(format!("parameter {name} is not declared; `noctule param list NODE` shows those that are"))
}

/// Sets values by the types that the node has declared; all are tried.
fn set(client: &mut ParameterClient, node: &str, values: &[(String, Value)]) -> Result<String, Failed> {
    let mut refused = Vec::new();
    for some in values.chunks(NAMES_AT_ONCE) {
        let names: Vec<&str> = some.iter().map(|(name, _)| name.as_str()).collect();
        let kinds = client.types(&names)?;
        let mut typed = Vec::new();
        for ((name, value), kind) in some.iter().zip(kinds) {
            match kind {
                ParameterType::NotSet => {
                    refused.push(format!("parameter {name} cannot be set because it was not declared"));
                }
                kind => match value_of(value, kind) {
                    Ok(value) => typed.push((name.as_str(), value)),
                    Err(why) => refused.push(format!("parameter {name}: {why}")),
                },
            }
        }
        let results = client.set(&typed)?;
        refused.extend(results.into_iter().filter_map(|set| Some(set.err()?.to_string())));
    }
    match refused.is_empty() {
        true => Ok(String::new()),
        false => Err(Failed::Wrong(format!("node {node}: {}", refused.join("; ")))),
    }
}

fn describe(asking: &Asking, client: &mut ParameterClient, names: &[String]) -> Result<String, Failed> {
    let asked: Vec<&str> = names.iter().map(String::as_str).collect();
    let described = client.describe(&asked)?;
    let mut lines = String::new();
    let mut all = Vec::new();
    for (name, (kind, descriptor)) in names.iter().zip(described) {
        if kind == ParameterType::NotSet {
            return Err(not_declared(name));
        }
        let range = descriptor.range.map(|range| range.to_string());
        all.push(json!({
            "name": name, "type": kind.name(), "description": descriptor.description,
            "constraints": descriptor.constraints, "read_only": descriptor.read_only,
            "dynamic_typing": descriptor.dynamic_typing, "range": range,
        }));
        lines.push_str(&format!("{}\n", printable(name)));
        let mut line = |what: &str, text: &str| {
            if !text.is_empty() {
                lines.push_str(&format!("  {what}: {}\n", printable(text)));
            }
        };
        line("type", kind.name());
        line("description", &descriptor.description);
        line("range", range.as_deref().unwrap_or_default());
        line("constraints", &descriptor.constraints);
        line("read-only", if descriptor.read_only { "yes" } else { "" });
        line("other types", if descriptor.dynamic_typing { "allowed" } else { "" });
    }
    Ok(if asking.json { pretty(&json!(all)) } else { lines })
}

fn dump(asking: &Asking, client: &mut ParameterClient, node: &str) -> Result<String, Failed> {
    let names = client.list(&[], 0)?.names;
    let mut values = Vec::new();
    for some in names.chunks(NAMES_AT_ONCE) {
        let asked: Vec<&str> = some.iter().map(String::as_str).collect();
        // One at a time if together they are longer than a response.
        match client.get(&asked) {
            Ok(found) => values.extend(some.iter().cloned().zip(found)),
            Err(ParameterCallError::Call(CallError::Failed { .. })) => {
                for name in some {
                    values.push((name.clone(), client.get(&[name])?.pop().unwrap_or_default()));
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
    let tree = dumped(node, &values);
    match asking.json {
        true => Ok(pretty(&tree)),
        false => serde_saphyr::to_string(&tree).map_err(|error| Failed::Wrong(error.to_string())),
    }
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}
