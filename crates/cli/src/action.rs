//! `noctule action`: goals of actions, ROS 2's behind a bridge included.

use std::collections::BTreeMap;
use std::error::Error;
use std::time::{Duration, Instant};

use noctule::action::{
    ActionNames, ActionTypes, CancelCode, Canceled, GoalError, GoalEvent, GoalId, GoalStamp, GoalStatus,
    KnownGoal, RawActionClient,
};
use noctule::request::{ServiceTypes, TypeRef};
use noctule::{Endpoint, EndpointKind, Format, Node};
use noctule_codegen::cdr::{Tree, yaml};
use serde_json::{Value, json};

use crate::Outcome;
use crate::services::{End, services};
use crate::stop::Stop;
use crate::swarm::{SwarmArguments, seconds, short};
use crate::types::{TopicType, TypesArguments, parsed};
use crate::units::{age, columns, printable};

/// Interval between two looks for a server.
const LOOK: Duration = Duration::from_millis(10);
/// Longest goal.
const GOAL_BYTES_MAX: u32 = 16 << 20;

#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// List actions with their types, servers and clients
    List {
        /// Listen this long
        #[arg(long, value_name = "S", value_parser = seconds, default_value = "2")]
        seconds: Duration,
        #[command(flatten)]
        shared: Shared,
    },
    /// Show the nodes that serve and use an action, and its goals
    Info {
        /// The action, such as /count
        action: String,
        /// Listen this long
        #[arg(long, value_name = "S", value_parser = seconds, default_value = "2")]
        seconds: Duration,
        #[command(flatten)]
        shared: Shared,
    },
    /// Send a goal and wait for its result; Ctrl-C cancels it
    Send(SendArguments),
    /// Cancel a goal, or all goals
    Cancel {
        /// The action, such as /count
        action: String,
        /// The goal's number, as `send` and `info` show it; without it all goals
        goal: Option<String>,
        /// Give up after this many seconds
        #[arg(long, value_name = "S", value_parser = seconds, default_value = "5")]
        seconds: Duration,
        #[command(flatten)]
        shared: Shared,
    },
}

#[derive(clap::Args)]
pub(crate) struct SendArguments {
    /// The action, such as /count
    action: String,
    /// The goal as YAML or JSON, e.g. '{to: 5}'
    #[arg(default_value = "{}")]
    value: String,
    /// Show feedback
    #[arg(long)]
    feedback: bool,
    /// Give up if the goal is not accepted after this many seconds
    #[arg(long, value_name = "S", value_parser = seconds, default_value = "5")]
    seconds: Duration,
    /// Give up if there is no result this many seconds after that; default 24 hours
    #[arg(long, value_name = "S", value_parser = seconds)]
    result_seconds: Option<Duration>,
    #[command(flatten)]
    types: TypesArguments,
    #[command(flatten)]
    shared: Shared,
}

#[derive(clap::Args)]
pub(crate) struct Shared {
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    swarm: SwarmArguments,
}

/// An action of other nodes. An end is that of its service for goals.
#[derive(Default)]
struct Seen {
    servers: Vec<End>,
    clients: Vec<End>,
}

/// A server of an action, with all that a client must know.
struct Server {
    goal: End,
    result: End,
    feedback: Endpoint,
}

pub(crate) fn run(command: &Command) -> Result<Outcome, Box<dyn Error>> {
    match command {
        Command::List { seconds, shared } => list(*seconds, shared),
        Command::Info { action, seconds, shared } => info(action, *seconds, shared),
        Command::Send(arguments) => send(arguments),
        Command::Cancel { action, goal, seconds, shared } => {
            cancel(action, goal.as_deref(), *seconds, shared)
        }
    }
}

fn actions(node: &Node) -> BTreeMap<String, Seen> {
    let found = services(node).into_iter().filter_map(|(name, service)| {
        let action = ActionNames::action_of(&name)?;
        Some((action, Seen { servers: service.servers, clients: service.clients }))
    });
    found.collect()
}

impl Seen {
    /// `package/action/Name`
    fn type_name(&self) -> &str {
        let end = self.servers.iter().chain(&self.clients).next();
        let name = end.map_or("", |end| end.request.type_name.as_str());
        name.strip_suffix("_SendGoal_Request").unwrap_or(name)
    }

    fn as_json(&self, name: &str) -> Value {
        let end = |end: &End| json!({ "node": end.node.to_string(), "node_name": end.node_name });
        json!({
            "action": name,
            "type": self.type_name(),
            "servers": self.servers.iter().map(end).collect::<Vec<_>>(),
            "clients": self.clients.iter().map(end).collect::<Vec<_>>(),
        })
    }
}

fn names(ends: &[End]) -> String {
    let names = ends.iter().map(|end| format!("{} ({})", printable(&end.node_name), short(end.node)));
    match ends {
        [] => "nobody".to_owned(),
        _ => names.collect::<Vec<_>>().join(", "),
    }
}

fn list(seconds: Duration, shared: &Shared) -> Result<Outcome, Box<dyn Error>> {
    let stop = Stop::after(Some(seconds))?;
    let node = shared.swarm.join("action")?;
    stop.wait();
    let actions = actions(&node);
    if shared.json {
        let all: Vec<Value> = actions.iter().map(|(name, seen)| seen.as_json(name)).collect();
        anstream::println!("{}", serde_json::to_string_pretty(&json!({ "actions": all }))?);
    } else if !actions.is_empty() {
        let heading = ["action", "type", "served by", "clients"];
        let mut rows = vec![heading.map(str::to_owned).to_vec()];
        for (name, seen) in &actions {
            rows.push(vec![
                printable(name),
                printable(seen.type_name()),
                names(&seen.servers),
                seen.clients.len().to_string(),
            ]);
        }
        anstream::print!("{}", columns(&rows, &[false, false, false, true]));
    }
    if actions.is_empty() {
        let sentence = shared.swarm.nothing_seen("no action was seen", stop.elapsed(), &node);
        anstream::eprintln!("noctule: {sentence}");
        return Ok(Outcome::NotValid);
    }
    Ok(Outcome::Done)
}

fn info(action: &str, seconds: Duration, shared: &Shared) -> Result<Outcome, Box<dyn Error>> {
    let stop = Stop::after(Some(seconds))?;
    let node = shared.swarm.join("action")?;
    let name = format!("/{}", action.trim_matches('/'));
    let server = server(&name, &node, &stop);
    // Opened before the rest of the time, in which its goals become known.
    let mut client = match &server {
        Some(server) => Some(node.raw_action_client(&name, server.types()).open()?),
        None => None,
    };
    stop.wait();
    let Some(seen) = actions(&node).remove(&name) else {
        return Ok(nobody(&name, &stop, shared, &node));
    };
    let goals = match &mut client {
        Some(client) => client.goals()?,
        None => &[],
    };
    if shared.json {
        let goal = |(id, stamp, status): &KnownGoal| json!({ "goal": id.to_string(), "status": status.name(), "accepted": [stamp.sec, stamp.nanosec] });
        let mut all = seen.as_json(&name);
        all["goals"] = goals.iter().map(goal).collect();
        anstream::println!("{}", serde_json::to_string_pretty(&all)?);
        return Ok(Outcome::Done);
    }
    anstream::println!("type:      {}", printable(seen.type_name()));
    anstream::println!("served by: {}", names(&seen.servers));
    anstream::println!("clients:   {}", names(&seen.clients));
    for (id, _, status) in goals {
        anstream::println!("goal {id}: {status}");
    }
    Ok(Outcome::Done)
}

fn nobody(action: &str, stop: &Stop, shared: &Shared, node: &Node) -> Outcome {
    let what = format!("no server of {} was seen", printable(action));
    anstream::eprintln!("noctule: {}", shared.swarm.nothing_seen(&what, stop.elapsed(), node));
    Outcome::NotValid
}

/// The first server that is seen whole.
fn server(action: &str, node: &Node, stop: &Stop) -> Option<Server> {
    let names = ActionNames::of(action);
    while !stop.is_due() {
        let mut services = services(node);
        let mut servers = |name: &str| services.remove(name).map(|found| found.servers).unwrap_or_default();
        let (goals, mut results) = (servers(&names.send_goal), servers(&names.get_result));
        let endpoints = node.endpoints();
        for goal in goals {
            let feedback = endpoints.iter().find(|known| {
                known.node == goal.node
                    && known.endpoint.topic == names.feedback
                    && known.endpoint.kind == EndpointKind::Writer
            });
            let result = results.iter().position(|end| end.node == goal.node);
            if let (Some(feedback), Some(result)) = (feedback, result) {
                let feedback = feedback.endpoint.clone();
                return Some(Server { goal, result: results.swap_remove(result), feedback });
            }
        }
        stop.wait_until(Instant::now() + LOOK);
    }
    None
}

impl Server {
    fn types(&self) -> ActionTypes {
        let of = |endpoint: &Endpoint| TypeRef { name: endpoint.type_name.clone(), hash: endpoint.type_hash };
        let service = |end: &End| ServiceTypes { request: of(&end.request), response: of(&end.reply) };
        ActionTypes {
            send_goal: service(&self.goal),
            get_result: service(&self.result),
            feedback: of(&self.feedback),
        }
    }
}

fn send(arguments: &SendArguments) -> Result<Outcome, Box<dyn Error>> {
    let SendArguments { action, shared, .. } = arguments;
    let value = json!({ "goal": parsed(arguments.value.as_bytes())? });
    let search = Stop::after(Some(arguments.seconds))?;
    let mut types = arguments.types.load()?;
    let node = shared.swarm.join("action")?;
    let Some(server) = server(action, &node, &search) else {
        return Ok(nobody(action, &search, shared, &node));
    };
    let goal = types.of_endpoint(&node, server.goal.node, &server.goal.request)?.encoded_value(&value)?;
    let result = types.of_endpoint(&node, server.result.node, &server.result.reply)?;
    let feedback = match arguments.feedback {
        true => Some(types.of_endpoint(&node, server.goal.node, &server.feedback)?),
        false => None,
    };
    let left = arguments.seconds.saturating_sub(search.elapsed()).max(LOOK);
    let mut client = node
        .raw_action_client(action, server.types())
        .deadline(left)
        .payload_bytes_max((goal.len() as u32).clamp(64, GOAL_BYTES_MAX))
        .open()?;
    client.start(&goal, arguments.result_seconds)?;
    let stop = Stop::after(None)?;
    let follow = Follow { json: shared.json, feedback, result };
    follow.to_the_end(&mut client, &stop)
}

/// Output format of a goal's feedback and result, with their types.
struct Follow {
    json: bool,
    feedback: Option<std::sync::Arc<TopicType>>,
    result: std::sync::Arc<TopicType>,
}

impl Follow {
    fn to_the_end(&self, client: &mut RawActionClient, stop: &Stop) -> Result<Outcome, Box<dyn Error>> {
        let mut current = None;
        let mut is_canceled = false;
        loop {
            if let (true, false, Some(goal)) = (stop.is_due(), is_canceled, current) {
                is_canceled = true;
                client.start_cancel(goal, GoalStamp::default())?;
            }
            let Some((goal, event)) = client.next(Some(stop.tick()))? else { continue };
            current = Some(goal);
            match event {
                GoalEvent::Accepted { server, .. } => {
                    self.show(
                        &json!({ "goal": goal.to_string(), "server": server.to_string() }),
                        &format!("# goal {goal} is accepted\n"),
                    )?;
                }
                GoalEvent::Status(status) => {
                    self.show(&json!({ "status": status.name() }), &format!("# {status}\n"))?;
                }
                GoalEvent::Feedback { bytes, info } => self.show_feedback(&bytes, &info)?,
                GoalEvent::Result(result) => {
                    let value =
                        member(self.result.value(Some(Format::Cdr), result.bytes(), usize::MAX)?, "result");
                    let known = result.age();
                    let all = json!({
                        "status": result.status().name(),
                        "age_ns": known.map(|age| age.span.ns()),
                        "bound_ns": known.and_then(|age| age.bound).map(|bound| bound.ns()),
                        "result": serde_json::to_value(&value)?,
                    });
                    let text = format!("# {}, {} old\n{}", result.status(), age(known), yaml(&value));
                    self.show(&all, &text)?;
                    let has_succeeded = result.status() == GoalStatus::Succeeded;
                    return Ok(if has_succeeded { Outcome::Done } else { Outcome::NotValid });
                }
                GoalEvent::Failed(why) => return failed(why),
                GoalEvent::Cancel(Ok(Canceled { code: CancelCode::None, .. })) => {}
                GoalEvent::Cancel(Ok(_)) => {
                    anstream::eprintln!("noctule: the server does not cancel the goal; it goes on");
                }
                GoalEvent::Cancel(Err(why)) => return failed(why),
            }
        }
    }

    fn show_feedback(&self, bytes: &[u8], info: &noctule::SampleInfo) -> Result<(), Box<dyn Error>> {
        let Some(feedback) = &self.feedback else { return Ok(()) };
        let value = member(feedback.value(Some(Format::Cdr), bytes, usize::MAX)?, "feedback");
        let known = info.age();
        let all = json!({
            "age_ns": known.map(|age| age.span.ns()),
            "bound_ns": known.and_then(|age| age.bound).map(|bound| bound.ns()),
            "feedback": serde_json::to_value(&value)?,
        });
        self.show(&all, &format!("# feedback, {} old\n{}", age(known), yaml(&value)))
    }

    /// One line of JSON, or text.
    fn show(&self, all: &Value, text: &str) -> Result<(), Box<dyn Error>> {
        match self.json {
            true => anstream::println!("{}", serde_json::to_string(all)?),
            false => anstream::print!("{text}"),
        }
        Ok(())
    }
}

/// A member of a message; the whole if there is none of this name.
fn member(tree: Tree, name: &str) -> Tree {
    match tree {
        Tree::Fields(mut fields) => match fields.iter().position(|(field, _)| field == name) {
            Some(at) => fields.swap_remove(at).1,
            None => Tree::Fields(fields),
        },
        other => other,
    }
}

fn failed(why: GoalError) -> Result<Outcome, Box<dyn Error>> {
    match why {
        GoalError::Publish(_) | GoalError::Take(_) => Err(why.into()),
        why => {
            anstream::eprintln!("noctule: {}", printable(&why.to_string()));
            Ok(Outcome::NotValid)
        }
    }
}

fn cancel(
    action: &str,
    goal: Option<&str>,
    seconds: Duration,
    shared: &Shared,
) -> Result<Outcome, Box<dyn Error>> {
    let id = match goal {
        None => GoalId::default(),
        Some(text) => GoalId::parse(text).ok_or_else(|| {
            format!("{} is no number of a goal; `noctule action info {action}` shows them", printable(text))
        })?,
    };
    let stop = Stop::after(Some(seconds))?;
    let node = shared.swarm.join("action")?;
    let Some(server) = server(action, &node, &stop) else {
        return Ok(nobody(action, &stop, shared, &node));
    };
    let left = seconds.saturating_sub(stop.elapsed()).max(LOOK);
    let mut client = node.raw_action_client(action, server.types()).deadline(left).open()?;
    let answer = match client.cancel(id) {
        Ok(answer) => answer,
        Err(why) => return failed(why),
    };
    let goals: Vec<String> = answer.goals.iter().map(|(goal, _)| goal.to_string()).collect();
    let why = match answer.code {
        CancelCode::None if goals.is_empty() => Some("no goal is under way"),
        CancelCode::None => None,
        CancelCode::Rejected => Some("the server does not cancel it"),
        CancelCode::UnknownGoal => Some("the server does not know this goal"),
        CancelCode::Ended => Some("the goal has ended"),
    };
    if shared.json {
        let all = json!({ "code": answer.code as i8, "canceling": goals });
        anstream::println!("{}", serde_json::to_string_pretty(&all)?);
    } else {
        goals.iter().for_each(|goal| anstream::println!("goal {goal}: canceling"));
    }
    match why {
        Some(why) => {
            anstream::eprintln!("noctule: action {}: {why}", printable(action));
            Ok(Outcome::NotValid)
        }
        None => Ok(Outcome::Done),
    }
}
