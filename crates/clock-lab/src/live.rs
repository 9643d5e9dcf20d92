//! The clock exchange live over UDP, on an idle and on a busy machine, judged by a known truth.
//!
//! Two network namespaces joined by veth, a server and a prober in each; the server's clock is 50 ppm
//! fast and is stepped by 20 ms in the middle. All of it with the kernel's receive stamps and with the
//! processes' own.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use noctule_local_clock::{ClockError, LocalClock, now};
use noctule_sys::{clock, scheduling};
use noctule_time_sync::{Bounded, BoundedConfig};
use noctule_timebase::Span;
use serde::Serialize;
use serde_json::{Value, json};

use super::accuracy::{Accuracy, judge_after};
use super::replay::{Replayed, replay};
use noctule_lab::clock_pair::{ClockPair, ClockPairError, Ended, PairPlan, Side};
use noctule_lab::network::{Network, NetworkError};
use noctule_lab::trace::TraceRow;

/// Drift and step of the server's clock; the moment of the step is chosen by the run.
const DRIFT_PPM: u32 = 50;
const STEP_MS: u32 = 20;
/// Errors count from this long after the start and after the step, or [`SETTLING_PART`] if that is less.
const SETTLING_S: f64 = 60.0;
/// The part of the time between start and step after which errors count in a short run.
const SETTLING_PART: f64 = 0.2;

/// One of the four runs.
#[derive(Debug, Clone, Serialize)]
pub struct LiveRun {
    /// `idle`, or `busy`: every core spins.
    pub load: &'static str,
    /// `kernel` or `process`: which of them stamps arrivals.
    pub stamps: &'static str,
    /// Errors count from this long after the start and after the step.
    pub settling_s: f64,
    /// Accuracy over everything.
    pub whole: Accuracy,
    /// Accuracy up to the step.
    pub before_step: Accuracy,
    /// Accuracy from the step on.
    pub after_step: Accuracy,
    /// The last words of `sync probe` and of `sync serve`.
    pub prober: Value,
    /// See `prober`.
    pub server: Value,
}

/// The loads there are: nothing else running, every core spinning.
pub const LOADS: [&str; 2] = ["idle", "busy"];

/// Why the exchange could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// A file cannot be written.
    #[error("{} cannot be written: {source}", path.display())]
    Write {
        /// The directory.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// There is no network to measure in.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// The two ends do not work.
    #[error(transparent)]
    Pair(#[from] ClockPairError),
    /// The clock of the server is no clock.
    #[error(transparent)]
    Clock(#[from] ClockError),
    /// The thread of a run panicked.
    #[error("the run with stamps of the {0} failed")]
    Run(&'static str),
    /// The figures are no JSON.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// A trace could not be compressed.
    #[error("`gzip {}` failed; install gzip", .0.display())]
    Gzip(PathBuf),
}

/// Makes the runs of some [`LOADS`], two at a time, `seconds` each, and writes `run.json`, a table in `README.md` and one trace a
/// run into `directory`. Says on standard error what is under way.
///
/// # Errors
/// Missing privileges for namespaces, or files that cannot be written, in one sentence.
pub fn measure(
    noctule: &Path,
    seconds: u32,
    loads: &[&'static str],
    directory: &Path,
) -> Result<Vec<LiveRun>, LiveError> {
    let cannot = |source| LiveError::Write { path: directory.to_owned(), source };
    std::fs::create_dir_all(directory).map_err(cannot)?;
    let network = Network::create(2)?;
    let mut runs = Vec::new();
    for &load in loads {
        let _ = writeln!(io::stderr(), "{load}, {seconds} s");
        let spinning = AtomicBool::new(load == "busy");
        let ended = std::thread::scope(|scope| {
            for core in scheduling::allowed_cores().unwrap_or_default() {
                let spinning = &spinning;
                scope.spawn(move || spin(core, spinning));
            }
            // Side by side, so that both see the same machine.
            let pairs = ["kernel", "process"].map(|stamps| {
                let (network, trace) = (&network, directory.join(format!("{load}-{stamps}.csv")));
                let pair = scope.spawn(move || run(noctule, network, (stamps, seconds), &trace));
                (stamps, pair)
            });
            let ended = pairs.map(|(stamps, pair)| (stamps, pair.join()));
            spinning.store(false, Ordering::Relaxed);
            ended
        });
        for (stamps, ended) in ended {
            let ended = ended.map_err(|_| LiveError::Run(stamps))??;
            runs.push(judge_run((load, stamps), seconds, ended));
            compress(&directory.join(format!("{load}-{stamps}.csv")))?;
        }
    }
    let about = json!({
        "schema": 1,
        "kind": "sync",
        "host": noctule_lab::host::describe(),
        "seconds": seconds,
        "clock": format!("ppm={DRIFT_PPM},step={STEP_MS}ms@{}s", seconds / 2),
        "runs": runs,
    });
    let text = serde_json::to_string_pretty(&about)?;
    std::fs::write(directory.join("run.json"), text + "\n").map_err(cannot)?;
    std::fs::write(directory.join("README.md"), readme(&about, seconds, &runs)).map_err(cannot)?;
    Ok(runs)
}

/// Keeps a core busy while `spinning`.
fn spin(core: u32, spinning: &AtomicBool) {
    // Unpinned, the scheduler would do its best to keep the burners out of the way.
    let _ = scheduling::pin_to_core(core);
    while spinning.load(Ordering::Relaxed) {
        std::hint::spin_loop();
    }
}

fn run(
    noctule: &Path,
    network: &Network,
    (stamps, seconds): (&str, u32),
    trace: &Path,
) -> Result<Ended, LiveError> {
    let start = now();
    let text = format!("offset=5s,ppm={DRIFT_PPM},step={STEP_MS}ms@{}ms", u64::from(seconds) * 500);
    let fast: LocalClock = text.parse()?;
    let (fast, own) = (fast.started(start), LocalClock::default());
    let both: &[String] = if stamps == "process" { &["--process-stamps".into()] } else { &[] };
    let pair = ClockPair::start(
        network,
        PairPlan {
            noctule,
            server: Side { node: 0, clock: &fast },
            prober: Side { node: 1, clock: &own },
            prober_arguments: &[],
            both_arguments: both,
            trace: trace.to_owned(),
        },
    )?;
    let left = start + Span::from_s(i64::from(seconds)) - now();
    clock::sleep_until(clock::now_ns() + left.ns());
    Ok(pair.stop()?)
}

fn judge_run((load, stamps): (&'static str, &'static str), seconds: u32, ended: Ended) -> LiveRun {
    let Ended { rows, prober, server } = ended;
    let settling_s = SETTLING_S.min(f64::from(seconds) / 2.0 * SETTLING_PART);
    let replayed = replay(&rows, &mut Bounded::new(BoundedConfig::default()));
    let stepped = |pair: &[TraceRow]| match (pair[0].offset_true_ns, pair[1].offset_true_ns) {
        (Some(before), Some(after)) => after - before > i64::from(STEP_MS) * 500_000,
        _ => false,
    };
    let step = rows.windows(2).position(stepped).map_or(rows.len(), |before| before + 1);
    let part = |from: usize, to: usize| {
        let part = Replayed {
            estimates: replayed.estimates[from..to].to_vec(),
            verdicts: replayed.verdicts[from..to].to_vec(),
            counters: replayed.counters,
        };
        judge_after(&rows[from..to], &part, settling_s)
    };
    LiveRun {
        load,
        stamps,
        settling_s,
        whole: part(0, rows.len()),
        before_step: part(0, step),
        after_step: part(step, rows.len()),
        prober,
        server,
    }
}

fn compress(trace: &Path) -> Result<(), LiveError> {
    let status = Command::new("gzip").args(["-9nf"]).arg(trace).stdin(Stdio::null()).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        _ => Err(LiveError::Gzip(trace.to_owned())),
    }
}

fn readme(about: &Value, seconds: u32, runs: &[LiveRun]) -> String {
    let word = |key: &str| about["host"][key].as_str().unwrap_or("unknown").to_owned();
    let mut text = format!(
        "# The clock exchange live over UDP\n\n\
         `cargo xtask bench sync --seconds {seconds}` at commit {} on {} with {} cores, {}, {}.\n\
         Two network namespaces joined by veth; the server's clock is {DRIFT_PPM} ppm fast and is stepped by\n\
         {STEP_MS} ms in the middle; in `busy` every core spins. Errors count from {:.0} s after the start and\n\
         after the step, at every exchange. Traces: `zcat idle-kernel.csv.gz > t.csv && noctule sync replay t.csv`.\n\n\
         {}",
        word("commit"),
        word("cpu"),
        about["host"]["cores"],
        word("kernel"),
        word("started_at"),
        runs.first().map_or(0.0, |run| run.settling_s),
        table(runs),
    );
    text.push_str("\nWhat it shows: \n\nWhat surprised: \n");
    text
}

/// The figures as a table in Markdown.
pub fn table(runs: &[LiveRun]) -> String {
    let mut text = String::from(
        "| load | stamps | part | exchanges | rms µs | worst µs | bound µs | sigma µs | violations | re-lock s |\n\
         |---|---|---|---:|---:|---:|---:|---:|---:|---:|\n",
    );
    let us = |ns: Option<f64>| ns.map_or("–".into(), |ns| format!("{:.1}", ns / 1e3));
    for run in runs {
        let parts = [("whole", &run.whole), ("before", &run.before_step), ("after", &run.after_step)];
        for (part, accuracy) in parts {
            let exchanges = if part == "whole" { accuracy.accepted + accuracy.rejected } else { 0 };
            text += &format!(
                "| {} | {} | {part} | {} | {} | {} | {} | {} | {} | {} |\n",
                run.load,
                run.stamps,
                if exchanges > 0 { exchanges.to_string() } else { String::new() },
                us(accuracy.rms_error_ns),
                us(accuracy.max_error_ns),
                us(accuracy.mean_bound_ns),
                us(accuracy.mean_sigma_ns),
                accuracy.bound_violations.map_or("–".into(), |count| count.to_string()),
                accuracy.relock_after_step_s.map_or("–".into(), |s| format!("{s:.3}")),
            );
        }
    }
    text
}
