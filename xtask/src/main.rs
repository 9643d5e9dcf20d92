//! Every developer command: `cargo xtask …`. CI calls the same door.

mod ahead;
mod arm64;
mod autopilot;
mod bench;
mod browser;
mod c_library;
mod circles;
mod dds;
mod docstrings;
mod error_types;
mod evidence;
mod examples;
mod excerpt;
mod fuzz;
mod generated;
mod lanes;
mod link_map;
mod lock_files;
mod microcontroller;
mod pages;
mod peers;
mod programs;
mod python;
mod readers;
mod readme;
mod rmw;
mod setup;
mod shell;
mod step_limit;
mod steps;
mod tidy;
mod words;
mod workspace_tests;
mod zenoh;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Every developer command")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Install what the tests need (Debian packages, a Python venv)
    Setup,
    /// Format, clippy, tidy and the fast tests: the inner loop
    Check,
    /// All tests: Rust, C, C++, Python, peers, browser, README blocks
    Test {
        /// Only this step, e.g. "c library"
        step: Option<String>,
    },
    /// The steps of CI: check, then test
    Ci,
    /// Build the library for C and C++ and install it: headers, libraries, CMake package, pkg-config file.
    /// After an installation into a folder of the system, run ldconfig
    Install {
        /// Folder that gets `include/`, `lib/` and so on
        #[arg(long, default_value = "/usr/local")]
        prefix: PathBuf,
    },
    /// Only the checks of layout, names and sizes
    Tidy,
    /// Rewrite the docstrings of python/noctule/_native.pyi from the docs of python/src
    Docstrings,
    /// Build the examples in all languages and let each publisher meet each subscriber
    Examples {
        /// Only meet: what is built, in this network namespace
        #[arg(long, hide = true)]
        meet: bool,
    },
    /// Build the programs of examples/generated in all languages and let each read every other; compare the bytes of values
    Generated {
        /// Instead, compare the bytes of 20 values of every type of all packages below these folders
        #[arg(long, num_args = 1.., value_name = "DIR")]
        sets: Vec<PathBuf>,
        /// Instead, let the 240 topics of examples/surgical_robot flow
        #[arg(long, conflicts_with = "sets")]
        robot: bool,
        /// Instead, run blocks of Simulink in Octave, and their C as its code generator would call it
        #[arg(long, conflicts_with_all = ["sets", "robot"])]
        simulink: bool,
        /// Only meet: what is built, in this network namespace
        #[arg(long, hide = true)]
        meet: bool,
    },
    /// Install what foreign peers need and build them (all if none is named)
    Peers {
        /// Folders of `peers/`
        names: Vec<String>,
        /// Build those of Debian packages and run the conformance test on them
        #[arg(long, conflicts_with = "names")]
        smoke: bool,
    },
    /// Build a bridge to another network, with optimizations: some minutes
    Bridge {
        /// `zenoh` or `dds`
        name: String,
    },
    /// Replay random simulated runs of a core from their seeds; a failure prints the seed to give here
    Sim {
        /// `arm`, `discovery`, `group`, `prrt`, `relay`, `time-sync` or `xrce`
        core: String,
        /// The first seed
        #[arg(long)]
        seed: u64,
        /// How many seeds, from that on
        #[arg(long, default_value_t = 1)]
        count: u64,
        /// `discovery`, `group`, `prrt`, `relay`: a file for every event of the first seed, which `noctule trace` prints as sentences
        #[arg(long)]
        trace: Option<PathBuf>,
    },
    /// Simulate a core over its grid and rewrite the committed table
    Sweep {
        /// `time-sync`, `discovery` or `prrt`
        core: String,
        /// `prrt`: seed of every link and of the cells that are drawn; then nothing committed is rewritten
        #[arg(long)]
        seed: Option<u64>,
        /// `prrt`: only so many cells, drawn by the seed, instead of the whole map
        #[arg(long)]
        cells: Option<u64>,
        /// `prrt`: the whole map, which is what it is without --cells
        #[arg(long, conflicts_with = "cells")]
        all: bool,
        /// `prrt`: a CSV file for the figures, instead of the committed ones
        #[arg(long)]
        out: Option<String>,
        /// `prrt`: only make table and page anew, of the figures that are committed
        #[arg(long, conflicts_with_all = ["seed", "cells", "out"])]
        redraw: bool,
        /// `prrt`: QUIC on the same links, by BBR and CUBIC, and where it is ahead of the reliable class
        #[arg(long)]
        quic: bool,
        /// `prrt`: so many runs of each cell, each with another seed of its link; they are compared by runs, and nothing committed is rewritten
        #[arg(long, default_value_t = 1, conflicts_with_all = ["quic", "redraw"], value_parser = clap::value_parser!(u64).range(1..=link_map::RUNS_MAX))]
        runs: u64,
    },
    /// Write scenarios of the lab on links that a seed draws, one for each; without a seed, scenarios/transports_map.toml
    LiveMap {
        /// Seed of the links
        #[arg(long)]
        seed: Option<u64>,
        /// Number of links
        #[arg(long, default_value_t = 40)]
        cells: u64,
        /// Folder for the scenarios
        #[arg(long, default_value = "target/live_map")]
        out: String,
    },
    /// Model-check the ring in shared memory
    Loom,
    /// The tests of the library and of the ring under the address and the thread sanitizer
    Sanitizers {
        /// Only this one: `address` or `thread`
        name: Option<String>,
    },
    /// The long runs: 10,000 simulated seeds, 1,000 kills, sanitizers, every parser fuzzed for ten
    /// minutes, boards on a bad line
    Soak {
        /// Only boards through the gateway, on a line with 1 % noise that is unplugged three times
        #[arg(long)]
        boards: bool,
        /// Only a robot's day, shortened: twelve processes on three hosts, links that go down, kills, strangers without the key
        #[arg(long, conflicts_with = "boards")]
        robot: bool,
        /// How long the boards, and the robot's day
        #[arg(long, default_value_t = 10)]
        minutes: u32,
        /// From which what happens to the robot is drawn
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Fuzz a parser (all of them if none is named)
    Fuzz {
        /// A file of fuzz/fuzz_targets
        target: Option<String>,
        /// Duration of each, s
        #[arg(long, default_value_t = 60)]
        seconds: u32,
    },
    /// Rewrite README.md's table from the run it names
    Readme,
    /// Benchmarks that compare with a program outside the workspace
    Bench {
        /// `floors`: the lab's floors against a minimal C program; `unchanged`,
        /// `slowed`: does `lab compare` cry wolf, and see one; `sync`: the clock exchange live over UDP
        name: String,
        /// `sync`: length of each of its four runs
        #[arg(long, default_value_t = 600)]
        seconds: u32,
        /// `sync`: where its evidence goes
        #[arg(long, default_value = "target/benchmarks/sync")]
        out: String,
    },
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Setup => setup::run(),
        Command::Check => steps::check(),
        Command::Test { step } => steps::test(step.as_deref()),
        Command::Ci => steps::ci(),
        Command::Install { prefix } => c_library::install(&prefix),
        Command::Docstrings => docstrings::rewrite(&shell::root()),
        Command::Examples { meet: true } => examples::meet(),
        Command::Examples { .. } => examples::run(),
        Command::Generated { robot: true, meet: true, .. } => generated::robot::meet(),
        Command::Generated { robot: true, .. } => generated::robot::run(),
        Command::Generated { simulink: true, meet: true, .. } => generated::simulink::meet(),
        Command::Generated { simulink: true, .. } => generated::simulink::run(),
        Command::Generated { meet: true, .. } => generated::meet(),
        Command::Generated { sets, .. } if !sets.is_empty() => generated::sets(&sets),
        Command::Generated { .. } => generated::run(),
        Command::Tidy => tidy::run(),
        Command::Peers { smoke: true, .. } => peers::smoke(),
        Command::Peers { names, .. } => peers::build(&names),
        Command::Bridge { name } => zenoh::build(&name),
        Command::Sim { core, seed, count, trace } => steps::sim(&core, seed, count, trace.as_deref()),
        Command::Sweep { core, seed, cells, out, redraw, quic, runs, .. } if core == "prrt" => {
            link_map::run(&link_map::Request { seed, cells, out, redraw, quic, runs })
        }
        Command::Sweep { core, .. } => steps::sweep(&core),
        Command::LiveMap { seed: None, .. } => link_map::live::rewrite_named(),
        Command::LiveMap { seed: Some(seed), cells, out } => link_map::live::draw(seed, cells, &out),
        Command::Loom => steps::loom(),
        Command::Sanitizers { name } => steps::sanitizers(name.as_deref()),
        Command::Soak { robot: true, minutes, seed, .. } => steps::soak_robot(minutes, seed),
        Command::Soak { boards: true, minutes, .. } => microcontroller::soak(60 * minutes, 3, true),
        Command::Soak { minutes, seed, .. } => steps::soak()
            .and_then(|()| steps::soak_robot(minutes, seed))
            .and_then(|()| microcontroller::soak(60 * minutes, 3, true)),
        Command::Fuzz { target, seconds } => fuzz::run(target.as_deref(), seconds),
        Command::Readme => readme::rewrite(),
        Command::Bench { name, seconds, out } if name == "sync" => bench::sync(seconds, &out),
        Command::Bench { name, .. } => bench::run(&name),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}
