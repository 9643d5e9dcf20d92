//! `noctule-zenoh`: a Zenoh network, such as ROS 2's with rmw_zenoh, and a Noctule bus, joined; a process of its own, which
//! `noctule gateway --zenoh` starts. A fault in what a network reaches ends this process and not the boards' gateway.
//!
//! `crates/ros-zenoh`, which knows no Zenoh, decides what is exchanged and under which names; this program carries it out:
//!
//! - `bridge`: the thread that plans and announces. `routes`: what it has opened.
//! - `from_zenoh`, `to_zenoh`: samples. `services`: requests and replies.
//! - `clocks`: the clocks of other gateways, by which the samples between two sites keep their ages.
//! - `engine`: Zenoh's session, publishers and subscribers with ROS 2's options.

mod bridge;
mod clocks;
mod counters;
mod engine;
mod from_zenoh;
mod report;
mod routes;
mod services;
mod shared;
mod siblings;
mod to_zenoh;

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::Parser;
use noctule::clock::LocalClock;
use noctule_bridge::rules::Rules;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::json;

use crate::bridge::{Bridge, BridgeConfig, BridgeError};

/// Notices, and whether to end, are looked for this often.
const LOOK: Duration = Duration::from_millis(100);
/// A router that is not there is looked for this often.
const AGAIN: Duration = Duration::from_secs(1);

/// Joins a Zenoh network, such as ROS 2's, and a Noctule bus
#[derive(Parser)]
#[command(name = "noctule-zenoh", version)]
pub(crate) struct Arguments {
    /// Endpoint of a router
    #[arg(long, value_name = "ENDPOINT")]
    endpoint: Option<String>,
    /// File of Zenoh's own settings (JSON5): TLS, access, mode
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// ROS 2's ROS_DOMAIN_ID
    #[arg(long, value_name = "N", default_value_t = 0)]
    domain: u32,
    /// Domain of the bus
    #[arg(long, value_name = "N", default_value_t = 0)]
    bus_domain: u32,
    /// Exchange only these topics and services; * matches any characters; repeatable
    #[arg(long, value_name = "PATTERN")]
    topic: Vec<String>,
    /// Do not exchange these; repeatable
    #[arg(long, value_name = "PATTERN")]
    except: Vec<String>,
    /// Stamp with an artificial clock: offset=5s,ppm=50,step=20ms@30s[,since=NS]
    #[arg(long, value_name = "CLOCK")]
    clock: Option<LocalClock>,
    /// Report this often
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0)]
    every: f64,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// End when the input ends: with the program that started this one
    #[arg(long)]
    with_input: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("noctule-zenoh: {error}");
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
    let Some(bridge) = open(arguments, &stop)? else { return Ok(()) };
    let at = arguments.endpoint.as_deref().unwrap_or(engine::ENDPOINT_DEFAULT);
    match arguments.json {
        true => report::print(
            &json!({ "zenoh": at, "domain": arguments.domain, "bus_domain": arguments.bus_domain })
                .to_string(),
        ),
        false => report::print(&format!("joined Zenoh at {at}, ROS domain {}", arguments.domain)),
    }
    let mut report_at = Instant::now() + every;
    loop {
        while let Some(notice) = bridge.poll_notice() {
            report::notice(arguments.json, &notice);
        }
        let ends = has_to_end(arguments, &stop);
        if ends || Instant::now() >= report_at {
            report::status(arguments, &bridge.status());
            report_at = Instant::now() + every;
        }
        if ends {
            return Ok(());
        }
        wait(arguments.with_input, LOOK);
    }
}

/// Joins, as soon as there is a router; `None` if it is to end before that.
fn open(arguments: &Arguments, stop: &AtomicBool) -> Result<Option<Bridge>, Box<dyn std::error::Error>> {
    let mut has_reported = false;
    loop {
        let zenoh = engine::config(arguments.endpoint.as_deref(), arguments.config.as_deref())?;
        let config = BridgeConfig {
            zenoh,
            domain: arguments.domain,
            bus_domain: arguments.bus_domain,
            rules: Rules { only: arguments.topic.clone(), except: arguments.except.clone() },
            clock: arguments.clock.clone(),
        };
        let why = match Bridge::open(config) {
            Ok(bridge) => return Ok(Some(bridge)),
            Err(BridgeError::Zenoh(why)) => why,
            Err(error) => return Err(error.into()),
        };
        if !has_reported {
            has_reported = true;
            let at = arguments.endpoint.as_deref().unwrap_or(engine::ENDPOINT_DEFAULT);
            report::notice(
                arguments.json,
                &format!(
                    "no router of Zenoh answers at {at} ({}); start one (ros2 run rmw_zenoh_cpp rmw_zenohd, or zenohd); this \
                    is tried again every second",
                    why.lines().next().unwrap_or_default()
                ),
            );
        }
        let again = Instant::now() + AGAIN;
        while Instant::now() < again {
            if has_to_end(arguments, stop) {
                return Ok(None);
            }
            wait(arguments.with_input, LOOK);
        }
    }
}

fn has_to_end(arguments: &Arguments, stop: &AtomicBool) -> bool {
    stop.load(Ordering::Relaxed) || arguments.with_input && input_has_ended()
}

/// Waits a little, or for the input's end.
fn wait(with_input: bool, most: Duration) {
    let timeout = Timespec { tv_sec: 0, tv_nsec: most.subsec_nanos().into() };
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
