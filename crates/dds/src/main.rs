//! `noctule-dds`: the bridge as a process of its own, which `noctule gateway --dds` starts. A fault in the engine, which
//! is C and listens to a network, ends this process and not the boards' gateway.

// The command's work is to print; its libraries must not.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::Parser;
use noctule_bridge::printable;
use noctule_dds::bridge::{Bridge, BridgeConfig, BridgeStatus, RouteStatus, ServiceStatus};
use noctule_dds::plan::Direction;
use noctule_dds::rules::Rules;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::{Value, json};

/// Notices, and whether to end, are looked for this often.
const LOOK: Duration = Duration::from_millis(100);

/// Joins a DDS domain, such as ROS 2's, and a Noctule bus
#[derive(Parser)]
#[command(name = "noctule-dds", version)]
struct Arguments {
    /// DDS domain: ROS 2's ROS_DOMAIN_ID
    domain: u32,
    /// Domain of the bus
    #[arg(long, value_name = "N", default_value_t = 0)]
    bus_domain: u32,
    /// Exchange only these topics; * matches any characters; repeatable
    #[arg(long, value_name = "PATTERN")]
    topic: Vec<String>,
    /// Do not exchange these; repeatable
    #[arg(long, value_name = "PATTERN")]
    except: Vec<String>,
    /// DDS only over the interface with this address
    #[arg(long, value_name = "ADDRESS")]
    interface: Option<Ipv4Addr>,
    /// Report this often
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0)]
    every: f64,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// End when the input ends: with the program that started this one
    #[arg(long)]
    with_input: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("noctule-dds: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), Box<dyn std::error::Error>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    let every = Duration::try_from_secs_f64(arguments.every)
        .ok()
        .filter(|every| !every.is_zero())
        .ok_or_else(|| format!("{} is no number of seconds; write e.g. --every 5", arguments.every))?;
    let bridge = Bridge::open(BridgeConfig {
        domain: arguments.domain,
        bus_domain: arguments.bus_domain,
        interface: arguments.interface,
        rules: Rules { only: arguments.topic.clone(), except: arguments.except.clone() },
    })?;
    match arguments.json {
        true => say(&json!({ "dds": arguments.domain, "bus_domain": arguments.bus_domain }).to_string()),
        false => say(&format!("joined DDS domain {}", arguments.domain)),
    }
    let mut report_at = Instant::now() + every;
    loop {
        while let Some(notice) = bridge.poll_notice() {
            match arguments.json {
                true => say(&json!({ "notice": notice }).to_string()),
                false => eprintln!("noctule-dds: {}", printable(&notice)),
            }
        }
        let ends = stop.load(Ordering::Relaxed) || arguments.with_input && input_has_ended();
        if ends || Instant::now() >= report_at {
            report(arguments, &bridge.status());
            report_at = Instant::now() + every;
        }
        if ends {
            return Ok(());
        }
        wait(arguments.with_input);
    }
}

/// A line of the output; a reader that has gone is no fault.
fn say(line: &str) {
    let _ = writeln!(io::stdout(), "{}", printable(line)).and_then(|()| io::stdout().flush());
}

/// Waits a little, or for the input's end.
fn wait(with_input: bool) {
    let timeout = Timespec { tv_sec: 0, tv_nsec: LOOK.subsec_nanos().into() };
    let stdin = io::stdin();
    let mut watched = [PollFd::new(&stdin, PollFlags::IN)];
    let watched = if with_input { &mut watched[..] } else { &mut [] };
    // Interrupted or not: the caller looks again.
    let _ = poll(watched, Some(&timeout));
}

fn input_has_ended() -> bool {
    let stdin = io::stdin();
    let mut watched = [PollFd::new(&stdin, PollFlags::IN)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    if poll(&mut watched, Some(&now)).is_ok_and(|ready| ready == 0) {
        return false;
    }
    let mut word = [0; 64];
    !matches!(rustix::io::read(&stdin, &mut word), Ok(1..))
}

fn report(arguments: &Arguments, status: &BridgeStatus) {
    if arguments.json {
        let routes = status.routes.iter().map(route_json).collect::<Vec<Value>>();
        let services = status.services.iter().map(service_json).collect::<Vec<Value>>();
        return say(&json!({
            "dds": arguments.domain, "participants": status.participants, "standby": status.is_standby,
            "routes": routes, "services": services, "ros_nodes": status.ros_nodes,
        })
        .to_string());
    }
    let standby = if status.is_standby { ", standing by" } else { "" };
    say(&format!("DDS domain {}: {} other participants{standby}", arguments.domain, status.participants));
    if !status.ros_nodes.is_empty() {
        say(&format!("  nodes of ROS 2: {}", status.ros_nodes.join(", ")));
    }
    for route in &status.routes {
        let RouteStatus { samples, unreadable, refused, too_large, missed, ignored, .. } = route;
        let unread = if route.route.is_read { "" } else { ", not read there" };
        let (way, stamped) = match route.route.direction {
            Direction::FromDds => ("from DDS", format!(", {}", route.stamping.describe())),
            Direction::ToDds => ("to DDS", String::new()),
        };
        say(&format!(
            "  {} {} {way}: {samples} samples, {unreadable} unreadable, {refused} refused, {too_large} too large, \
             {missed} missed, {ignored} of other bridges{stamped}{unread}",
            route.route.topic, route.route.type_name
        ));
    }
    for of in &status.services {
        let ServiceStatus { requests, replies, failed, late, unreadable, full, ignored, .. } = of;
        let way = match of.route.direction {
            Direction::FromDds => "from DDS",
            Direction::ToDds => "to DDS",
        };
        say(&format!(
            "  service {} {way}: {requests} requests, {replies} replies, {failed} without a reply, {late} late, {unreadable} unreadable, \
             {full} too many, {ignored} of other bridges",
            of.route.service
        ));
    }
}

fn service_json(of: &ServiceStatus) -> Value {
    json!({
        "service": of.route.service,
        "request": of.route.types.request.name, "response": of.route.types.response.name,
        "way": match of.route.direction { Direction::FromDds => "from_dds", Direction::ToDds => "to_dds" },
        "requests": of.requests, "replies": of.replies, "failed": of.failed, "late": of.late,
        "unreadable": of.unreadable, "full": of.full, "ignored": of.ignored,
    })
}

fn route_json(route: &RouteStatus) -> Value {
    let qos = route.route.qos;
    json!({
        "topic": route.route.topic,
        "type": route.route.type_name,
        "way": match route.route.direction { Direction::FromDds => "from_dds", Direction::ToDds => "to_dds" },
        "reliability": qos.reliability.to_string(), "durability": qos.durability.to_string(),
        "is_read": route.route.is_read,
        "keep_last": qos.depth,
        "deadline_ns": qos.deadline.map(|span| span.ns()), "lifespan_ns": qos.lifespan.map(|span| span.ns()),
        "samples": route.samples, "bytes": route.bytes, "unreadable": route.unreadable,
        "refused": route.refused, "too_large": route.too_large, "missed": route.missed, "ignored": route.ignored,
        "stamped": route.stamping.describe(),
    })
}
