//! `noctule lab …`

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Subcommand;
use noctule_lab::directory::Directory;
use noctule_lab::plan::Choice;
use noctule_lab::scenario::ScenarioFile;
use noctule_lab::{engine, floors, report, session, text_table};

use crate::Outcome;
use crate::progress::Progress;

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
        /// Only this peer; may be repeated
        #[arg(long = "peer", value_name = "NAME")]
        peers: Vec<String>,
        /// The short form, about a minute
        #[arg(long)]
        smoke: bool,
        #[command(flatten)]
        output: OutputArguments,
    },
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
            run_scenario(&file, &Choice::default(), &output)
        }
        Command::Run { scenario, peers, smoke, output } => {
            let file = ScenarioFile::read(&scenario)?;
            run_scenario(&file, &Choice { peers, smoke }, &output)
        }
        Command::Node { .. } => Ok(Outcome::Done),
    }
}

/// Serves as one node of a floor until the lab closes the line.
pub(crate) fn serve_node(name: &str) -> ExitCode {
    match floors::by_name(name) {
        Some(floor) => noctule_peer::serve(floor.as_ref()),
        None => {
            anstream::eprintln!("noctule: no built-in peer is called \"{name}\"; see `noctule lab peers`");
            ExitCode::from(2)
        }
    }
}

fn run_scenario(
    file: &ScenarioFile,
    choice: &Choice,
    output: &OutputArguments,
) -> Result<Outcome, Box<dyn Error>> {
    // Before measuring: a minute's work must not end at an unwritable directory.
    prepare(&output.out)?;
    let directory = Directory::built_in(&std::env::current_exe()?);
    let interrupted = engine::interrupt_flag()?;
    let mut progress = Progress::new();
    let (run, samples) = session::run(file, &directory, choice, interrupted, &mut progress)?;
    let elapsed = progress.finish();
    report::write_all(&output.out, &run, &samples)?;
    if output.json {
        anstream::println!("{}", serde_json::to_string_pretty(&run)?);
    } else {
        anstream::print!("{}", text_table::render(&run, &samples));
        anstream::println!(
            "Measured in {:.0} s. Report: {}",
            elapsed.as_secs_f64(),
            output.out.join(report::PAGE_FILE).display()
        );
    }
    Ok(if run.succeeded() { Outcome::Done } else { Outcome::NotValid })
}

/// Makes the output directory and checks that a file can be written there.
fn prepare(directory: &Path) -> Result<(), String> {
    let probe = directory.join(".noctule-writable");
    let written = std::fs::create_dir_all(directory).and_then(|()| std::fs::write(&probe, b""));
    written.map_err(|e| {
        format!("cannot write to {}: {e}; name a writable directory with --out", directory.display())
    })?;
    let _ = std::fs::remove_file(probe);
    Ok(())
}
