//! `noctule sync probe`

use std::error::Error;
use std::fs::File;
use std::io::{IsTerminal, Write};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use noctule::clock::{self, LocalClock, Raw};
use noctule::sync::wire::MalformedCounters;
use noctule::sync::{ArrivalCounters, Measured, Prober, ProberCounters};
use noctule_time_sync::{BoundedConfig, Estimate, EstimatorKind, ExchangerConfig};
use noctule_timebase::{Instant, Span};
use serde_json::{Value, json};

use super::error::SyncError;
use super::{EndArguments, clock as clock_argument};
use crate::Outcome;
use crate::argument::ArgumentError;

/// A server that has never answered is given up after this long.
const TIMEOUT: Span = Span::from_s(5);
/// Without a terminal, and on one, the figures are shown this often.
const LINE_EVERY: Span = Span::from_s(1);
const REDRAW_EVERY: Span = Span::from_ms(200);

#[derive(clap::Args)]
pub(crate) struct ProbeArguments {
    /// The server that is asked, as HOST:PORT
    server: String,
    #[command(flatten)]
    end: EndArguments,
    /// The clock of a server on this machine, as it printed it: the error is then known, and shown
    #[arg(long, value_name = "SPEC", value_parser = clock_argument)]
    server_clock: Option<LocalClock>,
    /// Which estimator: ema, ema_mavros, last_sample, minimum_of_8 or bounded
    #[arg(long, default_value = "bounded")]
    estimator: EstimatorKind,
    /// The clocks never drift apart faster than this; bounds are proven under this premise
    #[arg(long, value_name = "PPM", default_value_t = BoundedConfig::default().max_drift_ppm)]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=10_000))]
    max_drift_ppm: u32,
    /// Ask at least this often, in milliseconds; otherwise once a second when all is calm
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(i64).range(1..=1_000))]
    every_ms: Option<i64>,
    /// Stop after this many seconds
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    seconds: Option<u32>,
    /// Stop after this many exchanges
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    exchanges: Option<u64>,
    /// Write every exchange to this CSV file, for `sync replay`
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Print one JSON object at the end instead of the table
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: ProbeArguments) -> Result<Outcome, Box<dyn Error>> {
    let stop = arguments.end.interruption()?;
    let server = resolve(&arguments.server)?;
    if arguments.server_clock.as_ref().is_some_and(LocalClock::depends_on_start) {
        return Err("--server-clock does not say from when it counts; give it as `sync serve` prints it, \
                    with since=NS"
            .into());
    }
    let mut prober = connect(server, &arguments)?;
    let mut trace = arguments.csv.as_deref().map(|path| Trace::create(path, &arguments)).transpose()?;
    let mut display = Display::new(arguments.json);
    let mut tally = Tally::default();
    let start = clock::now();
    let end = arguments.seconds.map_or(Instant::MAX, |seconds| start + Span::from_s(i64::from(seconds)));
    let wanted = arguments.exchanges.unwrap_or(u64::MAX);
    while !stop.load(Ordering::Relaxed) && clock::now() < end && tally.exchanges < wanted {
        let until = display.due.min(end).min(clock::now() + LINE_EVERY);
        if let Some(measured) = prober.next(until)? {
            let truth =
                arguments.server_clock.as_ref().map(|other| Truth::of(&measured, prober.clock(), other));
            tally.add(&measured, truth);
            if let Some(trace) = &mut trace {
                trace.write(&measured, truth)?;
            }
        }
        if tally.exchanges == 0 && clock::now() - start >= TIMEOUT {
            break;
        }
        display.show(&prober, &tally);
    }
    display.finish(&prober, &tally);
    if tally.exchanges == 0 {
        anstream::eprintln!("noctule: {}", silence(&arguments.server, &prober.counters()));
        return Ok(Outcome::NotValid);
    }
    if arguments.json {
        anstream::println!("{}", serde_json::to_string_pretty(&summary(server, &prober, &tally))?);
    }
    Ok(if tally.violations == 0 { Outcome::Done } else { Outcome::NotValid })
}

fn connect(server: SocketAddr, arguments: &ProbeArguments) -> Result<Prober, SyncError> {
    let config = BoundedConfig { max_drift_ppm: arguments.max_drift_ppm, ..BoundedConfig::default() };
    let estimator = Box::new(arguments.estimator.build(config));
    let mut rhythm = ExchangerConfig::default();
    if let Some(ms) = arguments.every_ms {
        rhythm.slowest_interval = Span::from_ms(ms);
        rhythm.fastest_interval = rhythm.fastest_interval.min(rhythm.slowest_interval);
        rhythm.burst_interval = rhythm.burst_interval.min(rhythm.slowest_interval);
    }
    Prober::connect(server, arguments.end.clock.clone(), arguments.end.stamps(), rhythm, estimator)
        .map_err(|cause| SyncError::Ask { server, cause })
}

fn resolve(server: &str) -> Result<SocketAddr, ArgumentError> {
    let port = server.rsplit_once(':').map(|(_, port)| port.parse::<u16>());
    if !matches!(port, Some(Ok(1..))) {
        return Err(ArgumentError::NoPort(server.to_owned()));
    }
    let mut found =
        server.to_socket_addrs().map_err(|cause| ArgumentError::Host { server: server.to_owned(), cause })?;
    found.next().ok_or_else(|| ArgumentError::HostWithoutAddress(server.to_owned()))
}

/// Why no server answered, in one sentence.
fn silence(server: &str, counters: &ProberCounters) -> String {
    let asked = counters.replies.asked;
    if counters.refused > 0 {
        return format!("nobody listens on {server}; start `noctule sync serve` there");
    }
    match counters.malformed.total() {
        0 => format!(
            "{server} did not answer {asked} requests; start `noctule sync serve` there and let UDP through"
        ),
        count => {
            format!("{server} sent {count} datagrams that are no replies; use the same release on both sides")
        }
    }
}

/// True offset of an exchange, from the specifications of the artificial clocks.
#[derive(Clone, Copy)]
struct Truth {
    offset: Span,
    step_in_flight: bool,
}

impl Truth {
    fn of(measured: &Measured, local: &LocalClock, server: &LocalClock) -> Truth {
        Truth {
            offset: local.offset_to(server, measured.arrived),
            step_in_flight: local.steps_between(server, measured.sent, measured.arrived),
        }
    }
}

/// The exchanges in the format of `sync replay`.
struct Trace {
    file: File,
    with_truth: bool,
}

impl Trace {
    fn create(path: &Path, arguments: &ProbeArguments) -> Result<Trace, SyncError> {
        let mut trace = Trace {
            file: File::create(path).map_err(SyncError::write(path))?,
            with_truth: arguments.server_clock.is_some(),
        };
        let truth = if trace.with_truth { ",offset_true_ns,step_in_flight" } else { "" };
        writeln!(trace.file, "t1_ns,t2_ns,t3_ns,t4_ns{truth}").map_err(SyncError::write(path))?;
        Ok(trace)
    }

    /// One call per line, so that a program that reads while this runs sees whole lines.
    fn write(&mut self, measured: &Measured, truth: Option<Truth>) -> std::io::Result<()> {
        let e = &measured.exchange;
        let mut line = format!("{},{},{},{}", e.t1.ns(), e.t2.ns(), e.t3.ns(), e.t4.ns());
        if let Some(truth) = truth {
            line += &format!(",{},{}", truth.offset.ns(), u8::from(truth.step_in_flight));
        }
        line.push('\n');
        self.file.write_all(line.as_bytes())
    }
}

/// Sums over all exchanges.
#[derive(Default)]
struct Tally {
    exchanges: u64,
    last: Option<(Measured, Option<Truth>)>,
    least_round_trip: Option<Span>,
    bounds: Mean,
    sigmas: Mean,
    squared_errors: Mean,
    largest_error: Option<Span>,
    violations: u64,
}

#[derive(Clone, Copy, Default)]
struct Mean {
    sum: f64,
    count: u64,
}

impl Mean {
    fn add(&mut self, value: f64) {
        self.sum += value;
        self.count += 1;
    }

    fn value(self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }
}

impl Tally {
    fn add(&mut self, measured: &Measured, truth: Option<Truth>) {
        self.exchanges += 1;
        self.last = Some((*measured, truth));
        let round_trip = measured.exchange.round_trip();
        self.least_round_trip = Some(self.least_round_trip.map_or(round_trip, |least| least.min(round_trip)));
        let Some(estimate) = measured.estimate else { return };
        estimate.bound.into_iter().for_each(|bound| self.bounds.add(bound.ns() as f64));
        estimate.sigma.into_iter().for_each(|sigma| self.sigmas.add(sigma.ns() as f64));
        let Some(truth) = truth else { return };
        let error = (estimate.offset - truth.offset).abs();
        self.squared_errors.add((error.ns() as f64).powi(2));
        self.largest_error = self.largest_error.max(Some(error));
        // The stamps of an exchange during which a clock was stepped belong to two offsets.
        if !truth.step_in_flight && estimate.bound.is_some_and(|bound| error > bound) {
            self.violations += 1;
        }
    }
}

/// Where and how often the figures are shown.
struct Display {
    silent: bool,
    terminal: bool,
    lines_drawn: usize,
    due: Instant<Raw>,
}

impl Display {
    fn new(silent: bool) -> Display {
        let due = if silent { Instant::MAX } else { clock::now() };
        Display { silent, terminal: std::io::stdout().is_terminal(), lines_drawn: 0, due }
    }

    fn show(&mut self, prober: &Prober, tally: &Tally) {
        let now = clock::now();
        if now < self.due {
            return;
        }
        self.due = now + if self.terminal { REDRAW_EVERY } else { LINE_EVERY };
        if tally.exchanges == 0 {
            return;
        }
        match self.terminal {
            true => self.redraw(&table(prober, tally)),
            false => anstream::println!("{}", line(prober, tally)),
        }
    }

    fn finish(&mut self, prober: &Prober, tally: &Tally) {
        if !self.silent && tally.exchanges > 0 {
            self.redraw(&table(prober, tally));
        }
    }

    fn redraw(&mut self, table: &str) {
        // Up to where the last one began, and clear from there; on a pipe nothing was drawn before.
        if self.lines_drawn > 0 {
            anstream::print!("\x1b[{}A\x1b[J", self.lines_drawn);
        }
        anstream::print!("{table}");
        self.lines_drawn = if self.terminal { table.lines().count() } else { 0 };
    }
}

/// The state of knowledge at this moment, not at the last exchange: a bound grows while the server does not answer.
fn now(prober: &Prober) -> Option<Estimate> {
    prober.estimate(prober.clock().now())
}

fn table(prober: &Prober, tally: &Tally) -> String {
    let estimate = now(prober);
    let counters = prober.counters();
    let us =
        |span: Option<Span>| span.map_or("–".into(), |span| format!("{:.1} µs", span.ns() as f64 / 1e3));
    let error = tally.last.and_then(|(measured, truth)| Some(measured.estimate?.offset - truth?.offset));
    let replies = &counters.replies;
    let not_counted = replies.forged + replies.duplicated + replies.stale + replies.reordered;
    let mut rows = vec![
        ("offset", estimate.map_or("–".into(), |e| format!("{:+.6} s", e.offset.as_s_f64()))),
        ("sigma (likely)", us(estimate.and_then(|e| e.sigma))),
        ("bound (proven)", us(estimate.and_then(|e| e.bound))),
        ("drift", estimate.map_or("–".into(), |e| format!("{:+.3} ppm", e.drift.ppm()))),
        ("round trip", us(tally.last.map(|(measured, _)| measured.exchange.round_trip()))),
        ("least round trip", us(tally.least_round_trip)),
        ("state", estimate.map_or("–".into(), |e| e.state.to_string())),
        ("asked", replies.asked.to_string()),
        ("answered", replies.answered.to_string()),
        ("given up", replies.given_up.to_string()),
        ("not counted", (not_counted.saturating_add(counters.malformed.total())).to_string()),
        ("not used", counters.exchanges.rejected().to_string()),
        ("kernel's stamps", counters.arrivals.kernel.to_string()),
    ];
    if tally.squared_errors.count > 0 {
        rows.push(("error", us(error)));
        rows.push(("rms error", us(tally.squared_errors.value().map(|e| Span::from_ns(e.sqrt() as i64)))));
        rows.push(("times out of bound", tally.violations.to_string()));
    }
    rows.iter().map(|(name, value)| format!("{name:<20} {value:>20}\n")).collect()
}

fn line(prober: &Prober, tally: &Tally) -> String {
    let estimate = now(prober);
    let us =
        |span: Option<Span>| span.map_or("–".into(), |span| format!("{:.1} µs", span.ns() as f64 / 1e3));
    format!(
        "offset {} ± {} (proven {}), drift {}, round trip {}, {}, {} of {} answered",
        estimate.map_or("–".into(), |e| format!("{:+.6} s", e.offset.as_s_f64())),
        us(estimate.and_then(|e| e.sigma)),
        us(estimate.and_then(|e| e.bound)),
        estimate.map_or("–".into(), |e| format!("{:+.3} ppm", e.drift.ppm())),
        us(tally.last.map(|(measured, _)| measured.exchange.round_trip())),
        estimate.map_or("–".into(), |e| e.state.to_string()),
        prober.counters().replies.answered,
        prober.counters().replies.asked,
    )
}

fn summary(server: SocketAddr, prober: &Prober, tally: &Tally) -> Value {
    let estimate = now(prober);
    let ns = |span: Option<Span>| span.map(Span::ns);
    let counters = prober.counters();
    let (replies, exchanges) = (&counters.replies, &counters.exchanges);
    let known = tally.squared_errors.count > 0;
    json!({
        "server": server.to_string(),
        "clock": prober.clock().to_string(),
        "exchanges": tally.exchanges,
        "offset_ns": ns(estimate.map(|e| e.offset)),
        "drift_ppm": estimate.map(|e| e.drift.ppm()),
        "bound_ns": ns(estimate.and_then(|e| e.bound)),
        "sigma_ns": ns(estimate.and_then(|e| e.sigma)),
        "state": estimate.map(|e| e.state.to_string()),
        "mean_bound_ns": tally.bounds.value(),
        "mean_sigma_ns": tally.sigmas.value(),
        "least_round_trip_ns": ns(tally.least_round_trip),
        "rms_error_ns": tally.squared_errors.value().map(f64::sqrt),
        "max_error_ns": ns(tally.largest_error),
        "bound_violations": known.then_some(tally.violations),
        "replies": {
            "asked": replies.asked, "answered": replies.answered, "given_up": replies.given_up,
            "forged": replies.forged, "duplicated": replies.duplicated, "stale": replies.stale,
            "reordered": replies.reordered, "refused": counters.refused,
        },
        "malformed": malformed(&counters.malformed),
        "arrivals": arrivals(&counters.arrivals),
        "estimator": {
            "accepted": exchanges.accepted, "out_of_range": exchanges.out_of_range,
            "clock_went_back": exchanges.clock_went_back, "contradiction": exchanges.contradiction,
            "negative_round_trip": exchanges.negative_round_trip, "out_of_order": exchanges.out_of_order,
            "round_trip_too_long": exchanges.round_trip_too_long, "relocks": exchanges.relocks,
        },
    })
}

pub(super) fn malformed(counters: &MalformedCounters) -> Value {
    json!({
        "length": counters.length, "magic": counters.magic, "version": counters.version,
        "kind": counters.kind, "reserved": counters.reserved,
    })
}

pub(super) fn arrivals(counters: &ArrivalCounters) -> Value {
    json!({ "kernel": counters.kernel, "unstamped": counters.unstamped, "implausible": counters.implausible })
}
