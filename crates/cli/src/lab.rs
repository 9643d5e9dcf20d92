//! `noctule lab …`

mod flights;
mod studies;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Subcommand;
use noctule_lab::peer_registry::PeerRegistry;
use noctule_lab::peers::{self, manifest};
use noctule_lab::plan::Choice;
use noctule_lab::scenario::ScenarioFile;
use noctule_lab::session::Request;
use noctule_lab::{engine, session};
use noctule_lab_peers::{self as built_in, DDS_BRIDGE};
use noctule_lab_report::{self as report, text_table};

use crate::Outcome;
use crate::gateway::bridge;
use crate::progress::Progress;
use crate::{lab_arm, lab_report};

/// Peers in programs of their own that the scenarios of this repository name.
const FOREIGN: [&str; 19] = [
    "aeron",
    "cyclonedds",
    "cyphal",
    "ecal",
    "enet",
    "fastdds",
    "iceoryx2",
    "lcm",
    "mqtt",
    "nng",
    "noctule_c",
    "quinn",
    "ros1",
    "ros2",
    "rtp",
    "srt",
    "zenoh",
    "zenoh_pico",
    "zeromq",
];

const QUICK: &str = include_str!("../../../scenarios/quick.toml");

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Measure for about a minute: the floors of this machine and the middlewares that are built
    Quick {
        #[command(flatten)]
        output: OutputArguments,
    },
    /// Run a scenario
    Run {
        /// A scenario file, e.g. scenarios/payload_sweep.toml
        scenario: PathBuf,
        /// A second scenario, measured in turns with the first, for `lab compare` (writes DIR/a and DIR/b)
        #[arg(long, value_name = "SCENARIO")]
        versus: Option<PathBuf>,
        /// Only this peer; may be repeated
        #[arg(long = "peer", value_name = "NAME")]
        peers: Vec<String>,
        /// The short form, about a minute
        #[arg(long)]
        smoke: bool,
        #[command(flatten)]
        output: OutputArguments,
    },
    /// List the peers: version, state, what they offer or what is missing
    Peers {
        /// Print them as JSON
        #[arg(long)]
        json: bool,
    },
    /// Turn recorded data into a run with its report
    Import(lab_report::ImportArguments),
    /// Compare two runs, with intervals and a verdict in words
    Compare(lab_report::CompareArguments),
    /// Make report.html, charts and histograms of a finished run again
    Report(lab_report::ReportArguments),
    /// Be one node of a built-in peer (started by the lab itself)
    #[command(hide = true)]
    Node {
        /// The peer's name
        name: String,
    },
}

#[derive(clap::Args)]
pub(crate) struct OutputArguments {
    /// Directory for run.json, samples.mcap and report.html; made if it is not there
    #[arg(long, value_name = "DIR", default_value = "out")]
    out: PathBuf,
    /// Print run.json instead of the table
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(command: Command) -> Result<Outcome, Box<dyn Error>> {
    match command {
        Command::Quick { output } => {
            let file = ScenarioFile::parse("quick", QUICK.to_owned())?;
            run_scenarios(&[Request { file, choice: Choice::default() }], &output)
        }
        Command::Run { scenario, versus, peers, smoke, output } => {
            if let Some(text) = flights::read(&scenario) {
                prepare(&output.out)?;
                return flights::run(&text, smoke, &output);
            }
            if let Some(text) = studies::read(&scenario) {
                prepare(&output.out)?;
                return studies::run(&text, smoke, &output);
            }
            let choice = Choice { peers, smoke };
            let request = |path: &PathBuf| -> Result<Request, Box<dyn Error>> {
                Ok(Request { file: ScenarioFile::read(path)?, choice: choice.clone() })
            };
            let requests: Result<Vec<Request>, _> =
                [Some(&scenario), versus.as_ref()].into_iter().flatten().map(request).collect();
            run_scenarios(&requests?, &output)
        }
        Command::Peers { json } => list_peers(json),
        Command::Import(arguments) => lab_report::import(arguments),
        Command::Compare(arguments) => lab_report::compare_runs(&arguments),
        Command::Report(arguments) => lab_report::regenerate(&arguments),
        Command::Node { .. } => Ok(Outcome::Done),
    }
}

/// Serves as one node of a built-in peer until the lab closes the line.
pub(crate) fn serve_node(name: &str) -> ExitCode {
    match built_in::by_name(name) {
        Some(peer) => noctule_peer::serve(peer.as_ref()),
        None => {
            anstream::eprintln!("noctule: no built-in peer is called \"{name}\"; see `noctule lab peers`");
            ExitCode::from(2)
        }
    }
}

fn run_scenarios(requests: &[Request], output: &OutputArguments) -> Result<Outcome, Box<dyn Error>> {
    let folders: Vec<PathBuf> = match requests.len() {
        1 => vec![output.out.clone()],
        _ => vec![output.out.join("a"), output.out.join("b")],
    };
    // Before measuring: a minute's work must not end at an unwritable directory.
    folders.iter().try_for_each(|folder| prepare(folder))?;
    let mut directory = directory()?;
    let wants_dds = requests.iter().any(|request| request.file.has_option("gateway", "dds"));
    if wants_dds && directory.missing_for(&built_in::dds_need()).is_none() {
        // Now, for it takes longer than a node may take to open.
        if let Err(why) = bridge::program() {
            directory.add_missing(DDS_BRIDGE, format!("is not there: {why}"));
        }
    }
    let interrupted = engine::interrupt_flag()?;
    let mut progress = Progress::new();
    let results = session::run(requests, &directory, interrupted, &mut progress)?;
    let elapsed = progress.finish();
    let mut valid = true;
    for ((folder, (run, samples)), request) in folders.iter().zip(&results).zip(requests) {
        report::write_all(folder, run, samples)?;
        valid &= run.succeeded();
        if output.json {
            anstream::println!("{}", serde_json::to_string_pretty(run)?);
        } else {
            anstream::print!("{}", text_table::render(run, samples));
            anstream::println!("Report: {}", folder.join(report::PAGE_FILE).display());
        }
        if request.file.scenario.arm {
            let table = lab_arm::follow(folder, run, samples)?;
            anstream::eprintln!(
                "\nAn arm behind each cell ({}):\n{table}",
                folder.join(lab_arm::FILE).display()
            );
        }
    }
    anstream::eprintln!("Measured in {:.0} s.", elapsed.as_secs_f64());
    if let [a, b] = folders.as_slice() {
        anstream::eprintln!(
            "Compare: noctule lab compare {0}/run.json {1}/run.json",
            a.display(),
            b.display()
        );
    }
    Ok(if valid { Outcome::Done } else { Outcome::NotValid })
}

/// All peers: the floors, and the programs of the nearest `peers/` (or of `NOCTULE_PEERS`).
fn directory() -> Result<PeerRegistry, Box<dyn Error>> {
    let mut directory = built_in::registry(&std::env::current_exe()?);
    let wanted = std::env::var_os("NOCTULE_PEERS");
    match manifest::find_folder(wanted.as_deref(), &std::env::current_dir()?) {
        Some(folder) => peers::add_all(&mut directory, &folder)?,
        // Installed, away from a checkout: name what the scenarios that ship with Noctule ask for.
        None => FOREIGN.iter().for_each(|name| {
            directory.add_missing(name, "is not here: set NOCTULE_PEERS to a folder of peers".into());
        }),
    }
    Ok(directory)
}

fn list_peers(json: bool) -> Result<Outcome, Box<dyn Error>> {
    let directory = directory()?;
    if json {
        anstream::println!("{}", serde_json::to_string_pretty(&directory)?);
        return Ok(Outcome::Done);
    }
    for (name, entry) in &directory.entries {
        let offer = &entry.description;
        let kind = if entry.is_floor { "floor" } else { "built" };
        let links: Vec<String> = offer.links.iter().map(ToString::to_string).collect();
        let (links, waits, modes) = (links.join(" "), offer.waits.join(" "), offer.modes.join(" "));
        anstream::println!("{name:<14} {:<10} {kind:<6} {links:<12} {waits:<18} {modes}", offer.version);
    }
    for (name, why) in &directory.missing {
        anstream::println!("{name:<14} {:<10} {why}", "–");
    }
    Ok(Outcome::Done)
}

/// The directory of `--out` takes no file.
#[derive(Debug, thiserror::Error)]
#[error("cannot write to {directory}: {cause}; name a writable directory with --out")]
struct NotWritable {
    directory: PathBuf,
    cause: std::io::Error,
}

/// Makes the output directory and checks that a file can be written there.
fn prepare(directory: &Path) -> Result<(), NotWritable> {
    let probe = directory.join(".noctule-writable");
    let written = std::fs::create_dir_all(directory).and_then(|()| std::fs::write(&probe, b""));
    written.map_err(|cause| NotWritable { directory: directory.to_owned(), cause })?;
    let _ = std::fs::remove_file(probe);
    Ok(())
}
