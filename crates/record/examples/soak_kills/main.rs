//! Kills recorders at random points, or cuts the power of their disk, and reads what is left.
//!
//! ```text
//! soak_kills NOCTULE KILLS SEED [--power] [--keep FOLDER] [--at-once N]
//! ```
//!
//! `NOCTULE` is the program. Each trial has a domain, a publisher and a recorder of its own. The publisher sends 200 B at 500 Hz and 60 kB or
//! 300 kB at 20 Hz. At a time that the seed draws, 0 to 3 s after its start, the recorder is killed. Each trial ends with these questions:
//!
//! - Does every file open, and is it damaged nowhere but at its cut end?
//! - Is every sample there from the first to the last, but those that the recorder counts as missed?
//! - How much older than the kill is the last sample that is there? That is what the kill cost.
//!
//! With `--power` the file lies on an ext4 image of its own, and what is read is a copy of the image from the moment of the cut: what the
//! kernel had not written to the disk is lost with the process. It needs root and loop devices.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod judge;
mod power;
mod trial;

use std::error::Error;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use trial::{Outcome, Plan, TrialError};

/// A trial is kept for other readers this often.
const KEEP_EVERY: u64 = 10;
/// A trial and what it has shown.
type Numbered = (u64, Result<Outcome, TrialError>);

const SECOND_NS: u64 = 1_000_000_000;

struct Arguments {
    program: PathBuf,
    kills: u64,
    seed: u64,
    is_power: bool,
    keep: Option<PathBuf>,
    at_once: u64,
}

fn arguments() -> Result<Arguments, Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let mut next =
        || words.next().ok_or("soak_kills NOCTULE KILLS SEED [--power] [--keep FOLDER] [--at-once N]");
    let (program, kills, seed) = (next()?.into(), next()?.parse()?, next()?.parse()?);
    let mut arguments = Arguments { program, kills, seed, is_power: false, keep: None, at_once: 4 };
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        match word.as_str() {
            "--power" => arguments.is_power = true,
            "--keep" => arguments.keep = Some(value()?.into()),
            "--at-once" => arguments.at_once = value()?.parse()?,
            _ => return Err(format!("{word} is no option of this program").into()),
        }
    }
    Ok(arguments)
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = arguments()?;
    let scratch = tempfile::tempdir()?;
    if let Some(folder) = &arguments.keep {
        std::fs::create_dir_all(folder)?;
    }
    println!("seed {}, {} trials, {} at once", arguments.seed, arguments.kills, arguments.at_once);
    let (next, outcomes) = (AtomicU64::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..arguments.at_once {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= arguments.kills {
                        return;
                    }
                    let plan = Plan::draw(arguments.seed, number, scratch.path());
                    let outcome = run(&arguments, &plan);
                    let _ = std::fs::remove_dir_all(&plan.folder);
                    if let Ok(mut outcomes) = outcomes.lock() {
                        outcomes.push((number, outcome));
                    }
                }
            });
        }
    });
    let outcomes = outcomes.into_inner().map_err(|_| "a trial failed")?;
    if report(&outcomes) { Ok(()) } else { Err("not every file is as it should be".into()) }
}

fn run(arguments: &Arguments, plan: &Plan) -> Result<Outcome, TrialError> {
    let keep = arguments.keep.as_ref().filter(|_| plan.number.is_multiple_of(KEEP_EVERY));
    if arguments.is_power {
        power::run(&arguments.program, plan, keep)
    } else {
        trial::run(&arguments.program, plan, keep)
    }
}

/// Prints what was found; whether all is as it should be.
fn report(outcomes: &[Numbered]) -> bool {
    let faults: Vec<_> =
        outcomes.iter().filter_map(|(number, outcome)| Some((number, outcome.as_ref().err()?))).collect();
    for (number, fault) in &faults {
        println!("trial {number}: {fault}");
    }
    let found: Vec<&Outcome> = outcomes.iter().filter_map(|(_, outcome)| outcome.as_ref().ok()).collect();
    let count = |is_so: &dyn Fn(&Outcome) -> bool| found.iter().filter(|outcome| is_so(outcome)).count();
    println!("before the recorder had a file: {}", count(&|outcome| outcome.files == 0));
    println!("before its first sample: {}", count(&|outcome| outcome.files > 0 && outcome.messages == 0));
    println!("in several files: {}", count(&|outcome| outcome.files > 1));
    println!("messages read: {}", found.iter().map(|outcome| outcome.messages).sum::<u64>());
    println!("files that could not be read, or lack samples in the middle: {}", faults.len());
    let mut lost_ns: Vec<u64> = found.iter().filter_map(|outcome| outcome.lost_ns).collect();
    lost_ns.sort_unstable();
    let ms = |ns: u64| ns as f64 / 1e6;
    if let Some(longest_ns) = lost_ns.last() {
        let at = |share: f64| ms(lost_ns[(lost_ns.len() as f64 * share) as usize]);
        println!(
            "time lost before the end, of {} trials with a reader: p50 {:.0} ms, p90 {:.0} ms, p99 {:.0} ms, max {:.0} ms",
            lost_ns.len(),
            at(0.5),
            at(0.9),
            at(0.99),
            ms(*longest_ns)
        );
    }
    let above = lost_ns.iter().filter(|ns| **ns > SECOND_NS).count();
    println!("more than 1 s lost: {above}");
    faults.is_empty() && outcomes.len() == found.len()
}
