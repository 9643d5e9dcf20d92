//! The `noctule` command: words to calls, results to text, errors to exit codes.
//!
//! Exit codes: 0 done and valid; 1 ran, but a threshold or validity check failed; 2 wrong usage or
//! input, with one sentence that names the fact and the way out.

// The command's work is to print; its libraries must not.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod action;
mod argument;
mod call;
mod echo;
mod fcu;
mod gateway;
mod generate;
mod key;
mod lab;
mod lab_arm;
mod lab_report;
mod link;
mod page_window;
mod param;
mod ping;
mod play;
mod progress;
mod publish;
mod record;
mod services;
mod stop;
mod swarm;
mod swarm_flight;
mod sync;
mod teleop;
mod top;
mod topics;
mod trace;
mod types;
mod units;
mod view;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "noctule", version, about = "Messaging for robots that always knows how old its data is")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure the latency of any middleware, format, link and topology by one honest method
    #[command(subcommand)]
    Lab(lab::Command),
    /// Find what on this machine spoils latency, and the command that mends it
    Doctor {
        /// Print the findings as JSON
        #[arg(long)]
        json: bool,
    },
    /// Put unmodified programs on a bad link: delay, loss, rate, order, recorded or modelled
    #[command(subcommand)]
    Link(link::Command),
    /// Know another clock: its offset, its drift, and how wrong both may be
    #[command(subcommand)]
    Sync(sync::Command),
    /// Fly a simulated flight controller with a companion computer, and see what wrong times cost
    Fcu(fcu::FcuArguments),
    /// Move an arm from afar, and see what latency costs: kinematics, control analysis, experiments
    Teleop(teleop::TeleopArguments),
    /// Fly a swarm that knows how old its neighbours' states are
    #[command(subcommand)]
    Swarm(swarm_flight::Command),
    /// Publish samples of a topic
    Pub(publish::PubArguments),
    /// Show the samples of a topic, each with its age
    Echo(echo::EchoArguments),
    /// List topics with their writers, readers and quality of service, and what does not fit
    Topics(topics::TopicsArguments),
    /// Call a service and show its response
    ///
    /// Exit code 1 if no response came: no server, no reply within the time, or a server that failed.
    Call(call::CallArguments),
    /// List services with their types, servers and clients
    Services(services::ServicesArguments),
    /// Actions: list, info, send a goal, cancel
    ///
    /// Exit code 1 if there is no answer, or the goal did not succeed; 2 if the goal does not fit its type.
    #[command(subcommand)]
    Action(action::Command),
    /// Parameters of nodes: list, get, set, describe, dump, load
    ///
    /// Exit code 1 if the node did not answer, 2 if it refused or the value does not fit.
    #[command(subcommand)]
    Param(param::Command),
    /// Ask nodes for a reply: the whole trip, and each way with the bound of the clocks
    ///
    /// A ping goes by UDP from this node's thread to the other's, not through the shared memory of a topic.
    /// Exit code 1 if a node did not answer at all.
    Ping(ping::PingArguments),
    /// Put boards and flight controllers on the bus: DDS-XRCE over serial, UDP and TCP
    ///
    /// Replaces the agent of PX4 and micro-ROS. Topics have their ROS 2 names; `noctule top` shows their ages.
    Gateway(gateway::GatewayArguments),
    /// Turn message definitions into typed endpoints, hashes and bytes
    Gen(generate::GenArguments),
    /// Make a swarm key, or say which one a file holds
    #[command(subcommand)]
    Key(key::Command),
    /// Write the samples of topics into an MCAP file, each with its source time and bound
    ///
    /// Foxglove, PlotJuggler and rosbag2 open it. A slow or full disk loses samples of the recording, which are counted, never of the
    /// robot. Ctrl-C ends it; a file whose recorder was killed lacks less than a second.
    Record(record::RecordArguments),
    /// Publish a recording again, at its own times
    Play(play::PlayArguments),
    /// Look at the running system, or at a recording, in a browser
    ///
    /// Topics with their ages, which node sends to which, clocks and links, fields against time, pictures, space. It is one more best-effort
    /// reader of each topic. The page needs no account and no internet connection.
    View(view::ViewArguments),
    /// Watch all topics: rate, age with its bound, loss, traffic
    ///
    /// It is one more best-effort reader of each topic. What it is too slow to read counts as loss, too.
    Top(top::TopArguments),
    /// Follow a sample through the transport: datagrams sent, lost, retransmitted, delivered, and why
    ///
    /// A program writes FILE if it is started with NOCTULE_TRACE=FILE. Files of both sides together show both ends of the way.
    Trace(trace::TraceArguments),
}

/// How a command ended, if it did not fail.
pub(crate) enum Outcome {
    /// Done and valid: exit code 0.
    Done,
    /// Ran, but a threshold or validity check failed: exit code 1.
    NotValid,
}

fn main() -> ExitCode {
    let (commit, sources) = (option_env!("NOCTULE_COMMIT"), option_env!("NOCTULE_SOURCES"));
    noctule_lab::host::built_from(noctule_lab::host::BuiltFrom { commit, sources });
    let outcome = match Arguments::parse().command {
        // A node's exit code is its own.
        Command::Lab(lab::Command::Node { name }) => return lab::serve_node(&name),
        Command::Lab(command) => lab::run(command),
        Command::Link(command) => link::run(command),
        Command::Doctor { json } => examine(json),
        Command::Sync(command) => sync::run(command),
        Command::Fcu(arguments) => fcu::run(&arguments),
        Command::Teleop(arguments) => teleop::run(&arguments),
        Command::Swarm(command) => swarm_flight::run(&command),
        Command::Pub(arguments) => publish::run(&arguments),
        Command::Echo(arguments) => echo::run(&arguments),
        Command::Topics(arguments) => topics::run(&arguments),
        Command::Call(arguments) => call::run(&arguments),
        Command::Services(arguments) => services::run(&arguments),
        Command::Action(command) => action::run(&command),
        Command::Param(command) => param::run(&command),
        Command::Ping(arguments) => ping::run(&arguments),
        Command::Gateway(arguments) => gateway::run(&arguments),
        Command::Gen(arguments) => generate::run(&arguments),
        Command::Key(command) => key::run(command),
        Command::Record(arguments) => record::run(&arguments),
        Command::Play(arguments) => play::run(&arguments),
        Command::View(arguments) => view::run(&arguments),
        Command::Top(arguments) => top::run(&arguments),
        Command::Trace(arguments) => trace::run(&arguments),
    };
    match outcome {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::NotValid) => ExitCode::from(1),
        Err(error) => {
            anstream::eprintln!("noctule: {error}");
            ExitCode::from(2)
        }
    }
}

fn examine(json: bool) -> Result<Outcome, Box<dyn std::error::Error>> {
    let findings = noctule_doctor::examine();
    match json {
        true => anstream::println!("{}", serde_json::to_string_pretty(&findings)?),
        false => anstream::print!("{}", noctule_doctor::render(&findings)),
    }
    Ok(Outcome::Done)
}
