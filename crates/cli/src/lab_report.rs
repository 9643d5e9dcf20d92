//! `noctule lab import`, `compare` and `report`: what can be done with recorded data and finished runs.

use std::error::Error;
use std::path::{Path, PathBuf};

use noctule_lab::compare::{Change, compare};
use noctule_lab::import;
use noctule_lab::run::Run;
use noctule_lab_report::{self as report, PAGE_FILE, RUN_FILE, markdown, text_table};

use crate::Outcome;
use crate::lab_arm;

/// Seed of the resampling, so that equal runs give equal verdicts.
const SEED: u64 = 1;

#[derive(clap::Args)]
pub(crate) struct ImportArguments {
    #[command(subcommand)]
    format: ImportFormat,
}

#[derive(clap::Subcommand)]
enum ImportFormat {
    /// Round trips in two files without header: row number, nanoseconds, message index
    Pingpong {
        /// When each message was published
        #[arg(value_name = "PUB.csv")]
        published: PathBuf,
        /// When each answer arrived
        #[arg(value_name = "SUB.csv")]
        received: PathBuf,
        /// Directory for run.json, samples.mcap and report.html; made if it is not there
        #[arg(long, value_name = "DIR", default_value = "out")]
        out: PathBuf,
        /// Print run.json instead of the table
        #[arg(long)]
        json: bool,
    },
}

#[derive(clap::Args)]
pub(crate) struct CompareArguments {
    /// run.json of the first run, or its directory
    #[arg(value_name = "A/run.json")]
    a: PathBuf,
    /// run.json of the second run, or its directory
    #[arg(value_name = "B/run.json")]
    b: PathBuf,
    /// Seed of the resampling
    #[arg(long, value_name = "N", default_value_t = SEED)]
    seed: u64,
    /// Print the comparison as JSON
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
pub(crate) struct ReportArguments {
    /// A directory made by `noctule lab run --out`, with run.json and samples.mcap
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Print run.json instead of the table
    #[arg(long)]
    json: bool,
    /// Only print the table in Markdown, of run.json alone: round trips and their floors, medians over the trials
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    /// With --markdown: words that follow the commit
    #[arg(long, value_name = "WORDS", requires = "markdown", default_value = "", hide = true)]
    changed: String,
}

/// Imports a recording, writes its report, prints its figures.
pub(crate) fn import(arguments: ImportArguments) -> Result<Outcome, Box<dyn Error>> {
    let ImportFormat::Pingpong { published, received, out, json } = arguments.format;
    let (run, samples) = import::pingpong(&published, &received)?;
    report::write_all(&out, &run, &samples)?;
    if json {
        anstream::println!("{}", serde_json::to_string_pretty(&run)?);
    } else {
        anstream::print!("{}", import::render(&run));
        anstream::println!("Report: {}", out.join(PAGE_FILE).display());
    }
    Ok(outcome(run.succeeded()))
}

/// Compares two runs; not valid if they allow no statement about any cell.
pub(crate) fn compare_runs(arguments: &CompareArguments) -> Result<Outcome, Box<dyn Error>> {
    let (a, b) = (read(&arguments.a)?, read(&arguments.b)?);
    let comparison = compare(&a, &b, arguments.seed);
    match arguments.json {
        true => anstream::println!("{}", serde_json::to_string_pretty(&comparison)?),
        false => anstream::println!("{comparison}"),
    }
    Ok(outcome(comparison.cells.iter().any(|cell| cell.p50.change != Change::Unknown)))
}

/// Makes the derived files of a finished run again.
pub(crate) fn regenerate(arguments: &ReportArguments) -> Result<Outcome, Box<dyn Error>> {
    if arguments.markdown {
        let run = read(&arguments.directory)?;
        anstream::print!("{}", markdown::render(&run, &arguments.changed));
        return Ok(Outcome::Done);
    }
    let (run, samples) = report::regenerate(&arguments.directory)?;
    if arguments.json {
        anstream::println!("{}", serde_json::to_string_pretty(&run)?);
    } else {
        anstream::print!("{}", text_table::render(&run, &samples));
        anstream::println!("Report: {}", arguments.directory.join(PAGE_FILE).display());
    }
    if arguments.directory.join(lab_arm::FILE).exists() {
        anstream::eprintln!("\n{}", lab_arm::follow(&arguments.directory, &run, &samples)?);
    }
    Ok(outcome(run.succeeded()))
}

fn read(path: &Path) -> Result<Run, Box<dyn Error>> {
    let file = if path.is_dir() { path.join(RUN_FILE) } else { path.to_owned() };
    Ok(Run::read(&file)?)
}

fn outcome(valid: bool) -> Outcome {
    if valid { Outcome::Done } else { Outcome::NotValid }
}
