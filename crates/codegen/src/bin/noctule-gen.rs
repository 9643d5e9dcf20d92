//! The generator by itself: `noctule gen` without the rest of `noctule`, for builds of C, C++ and Python.
//!
//! Exit codes: 0 done; 1 with `--check`, the folder is stale; 2 wrong usage or input, with a sentence.

#![allow(clippy::print_stderr)]

use std::process::ExitCode;

use clap::Parser;
use noctule_codegen::command::{GenArguments, Outcome, run};

#[derive(Parser)]
#[command(
    name = "noctule-gen",
    version,
    about = "Turn message definitions into typed endpoints, hashes and bytes"
)]
struct Arguments {
    #[command(flatten)]
    generate: GenArguments,
}

fn main() -> ExitCode {
    match run(&Arguments::parse().generate) {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::NotValid) => ExitCode::from(1),
        Err(error) => {
            anstream::eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}
