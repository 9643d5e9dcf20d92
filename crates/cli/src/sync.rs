//! `noctule sync …`

mod error;
mod probe;
mod serve;

use std::error::Error;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Subcommand;
use noctule::clock::{ClockError, LocalClock};
use noctule::sync::StampSource;
use noctule_clock_lab::page::Heading;
use noctule_clock_lab::{self as clock_lab, Accuracy, Replayed, TraceRow};
use noctule_time_sync::{BoundedConfig, EstimatorKind};
use noctule_timebase::Span;

use crate::Outcome;
use crate::argument::ArgumentError;
use error::SyncError;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Feed recorded round trips to a clock estimator and say how well it did
    ///
    /// The trace is CSV with the columns t1_ns,t2_ns,t3_ns,t4_ns and, where the truth is known,
    /// offset_true_ns: remote minus local at t4. Exit code 1 if the truth ever left the bound.
    Replay(ReplayArguments),
    /// Tell the time to every host that asks over UDP, until Ctrl-C
    Serve(serve::ServeArguments),
    /// Ask a server for its time, and show how its clock and this one differ
    ///
    /// Exit code 1 if nobody answers, or if --server-clock says that the truth ever left the bound.
    Probe(probe::ProbeArguments),
}

#[derive(clap::Args)]
pub(crate) struct ReplayArguments {
    /// The trace
    trace: PathBuf,
    /// Which estimator: ema (the autopilot's filter), ema_mavros (its ground side's constants),
    /// last_sample, minimum_of_8 (NTP's), or bounded (a proven interval, a Kalman estimate inside)
    #[arg(long, value_name = "NAME", default_value_t = EstimatorKind::Bounded)]
    estimator: EstimatorKind,
    /// Known wire time there and back in nanoseconds, e.g. 1247829,217013
    #[arg(long, value_name = "FWD,BACK", value_parser = wire_times, default_value = "0,0")]
    wire_ns: (Span, Span),
    /// The clocks never drift apart faster than this; bounds are proven under this premise
    #[arg(long, value_name = "PPM", default_value_t = BoundedConfig::default().max_drift_ppm)]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=10_000))]
    max_drift_ppm: u32,
    /// Prove each bound from the last exchange alone, so that no step can hide behind a queue
    #[arg(long)]
    distrust_past: bool,
    /// Print JSON instead of the table
    #[arg(long)]
    json: bool,
    /// Write offset, drift, bound, sigma and state after each exchange to this CSV file
    #[arg(long, value_name = "FILE")]
    estimates: Option<PathBuf>,
    /// Write a self-contained page with charts of error, round trips and steadiness
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
    /// Write the same charts as one picture
    #[arg(long, value_name = "FILE.svg|png", value_parser = picture_path)]
    picture: Option<PathBuf>,
}

pub(crate) fn run(command: Command) -> Result<Outcome, Box<dyn Error>> {
    match command {
        Command::Replay(arguments) => replay(&arguments),
        Command::Serve(arguments) => serve::run(&arguments),
        Command::Probe(arguments) => probe::run(arguments),
    }
}

fn replay(arguments: &ReplayArguments) -> Result<Outcome, Box<dyn Error>> {
    let rows = read(&arguments.trace)?;
    let (wire_forward, wire_back) = arguments.wire_ns;
    let kind = arguments.estimator;
    let mut estimator = kind.build(BoundedConfig {
        max_drift_ppm: arguments.max_drift_ppm,
        wire_forward,
        wire_back,
        distrust_past: arguments.distrust_past,
        ..BoundedConfig::default()
    });
    let replayed = clock_lab::replay(&rows, &mut estimator);
    let accuracy = clock_lab::judge(&rows, &replayed);
    if let Some(path) = &arguments.estimates {
        let cannot = |error| format!("{} cannot be written: {error}; name another file", path.display());
        let mut output = BufWriter::new(File::create(path).map_err(cannot)?);
        clock_lab::write_estimates(&rows, &replayed.estimates, &mut output).map_err(cannot)?;
    }
    draw(arguments, kind, (&rows, &replayed, &accuracy))?;
    if arguments.json {
        anstream::println!("{}", serde_json::to_string_pretty(&accuracy)?);
    } else {
        anstream::print!("{}", table(kind, &accuracy));
    }
    let held = accuracy.bound_violations.is_none_or(|count| count == 0);
    Ok(if held { Outcome::Done } else { Outcome::NotValid })
}

fn draw(
    arguments: &ReplayArguments,
    kind: EstimatorKind,
    (rows, replayed, accuracy): (&[TraceRow], &Replayed, &Accuracy),
) -> Result<(), SyncError> {
    if arguments.report.is_none() && arguments.picture.is_none() {
        return Ok(());
    }
    let panels = clock_lab::panels::panels(rows, replayed);
    if panels.is_empty() {
        return Err(SyncError::NothingToDraw);
    }
    let name = arguments.trace.file_name().unwrap_or_default().to_string_lossy();
    let heading =
        Heading { trace: &name, estimator: settings(arguments, kind), figures: figures(kind, accuracy) };
    if let Some(path) = &arguments.report {
        clock_lab::page::write_page(path, &heading, accuracy, &panels).map_err(SyncError::write(path))?;
    }
    if let Some(path) = &arguments.picture {
        clock_lab::page::write_picture(path, &heading, &panels).map_err(SyncError::write(path))?;
    }
    Ok(())
}

/// The estimator and how it was configured.
fn settings(arguments: &ReplayArguments, kind: EstimatorKind) -> String {
    if kind != EstimatorKind::Bounded {
        return kind.to_string();
    }
    let (forward, back) = arguments.wire_ns;
    let mut text = format!("{kind}, drift up to {} ppm", arguments.max_drift_ppm);
    if (forward, back) != (Span::ZERO, Span::ZERO) {
        text += &format!(", wire time {} ns there and {} ns back", forward.ns(), back.ns());
    }
    if arguments.distrust_past {
        text += ", past distrusted";
    }
    text
}

/// The value of `--picture`.
pub(crate) fn picture_path(text: &str) -> Result<PathBuf, ArgumentError> {
    let path = PathBuf::from(text);
    match path.extension().and_then(|ending| ending.to_str()) {
        Some("svg" | "png") => Ok(path),
        _ => Err(ArgumentError::Picture),
    }
}

fn read(path: &Path) -> Result<Vec<TraceRow>, SyncError> {
    let file = File::open(path).map_err(|cause| SyncError::Read { path: path.to_owned(), cause })?;
    clock_lab::trace::read_csv(file).map_err(|cause| SyncError::Trace { path: path.to_owned(), cause })
}

fn wire_times(text: &str) -> Result<(Span, Span), ArgumentError> {
    let (forward, back) = text.split_once(',').ok_or(ArgumentError::WireTimes)?;
    let span = |word: &str| match word.trim().parse::<i64>() {
        Ok(ns) if ns >= 0 => Ok(Span::from_ns(ns)),
        _ => Err(ArgumentError::WireTimes),
    };
    Ok((span(forward)?, span(back)?))
}

fn figures(kind: EstimatorKind, accuracy: &Accuracy) -> Vec<(&'static str, String)> {
    let us = |ns: Option<f64>| ns.map_or("–".into(), |ns| format!("{:.1} µs", ns / 1e3));
    let with = |value: Option<f64>, unit: &str, digits: usize| {
        value.map_or("–".into(), |value| format!("{value:.digits$} {unit}"))
    };
    let violations = accuracy.bound_violations.map_or("–".into(), |count| count.to_string());
    vec![
        ("estimator", kind.to_string()),
        ("rms error", us(accuracy.rms_error_ns)),
        ("largest error", us(accuracy.max_error_ns)),
        ("mean bound (proven)", us(accuracy.mean_bound_ns)),
        ("mean sigma (likely)", us(accuracy.mean_sigma_ns)),
        ("times out of bound", violations),
        ("within 100 µs after", with(accuracy.time_to_100us_s, "s", 1)),
        ("again after a step", with(accuracy.relock_after_step_s, "s", 1)),
        ("drift error", with(accuracy.drift_error_ppm, "ppm", 3)),
        ("exchanges used", accuracy.accepted.to_string()),
        ("not used", accuracy.rejected.to_string()),
    ]
}

fn table(kind: EstimatorKind, accuracy: &Accuracy) -> String {
    figures(kind, accuracy).iter().map(|(name, value)| format!("{name:<20} {value:>14}\n")).collect()
}

/// Becomes true at Ctrl-C or SIGTERM; a second one ends the process at once.
pub(crate) fn interruption() -> std::io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&stop))?;
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    Ok(stop)
}

/// Arguments of both ends of a clock exchange.
#[derive(clap::Args)]
pub(crate) struct EndArguments {
    /// Stamp with an artificial clock: offset=5s,ppm=50,step=20ms@30s[,since=NS]
    #[arg(long, value_name = "SPEC", value_parser = clock, default_value = "")]
    clock: LocalClock,
    /// Stamp datagrams in this process only, not in the kernel
    #[arg(long)]
    process_stamps: bool,
    /// End when standard input does
    #[arg(long, hide = true)]
    until_input_ends: bool,
}

impl EndArguments {
    /// Becomes true when this end is to stop.
    fn interruption(&self) -> std::io::Result<Arc<AtomicBool>> {
        let stop = interruption()?;
        if self.until_input_ends {
            stop_with_input(&stop);
        }
        Ok(stop)
    }

    fn stamps(&self) -> StampSource {
        if self.process_stamps { StampSource::Process } else { StampSource::Kernel }
    }
}

/// Sets `stop` when standard input ends: the program that started this process is then gone, or done with it.
fn stop_with_input(stop: &Arc<AtomicBool>) {
    let stop = Arc::clone(stop);
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        stop.store(true, Ordering::Relaxed);
    });
}

fn clock(text: &str) -> Result<LocalClock, ClockError> {
    text.parse()
}
