//! The flight in real time.

use std::fs;
use std::io;

use noctule_flight::fusion::{Arrival, Correction, Fusion, FusionResult};
use noctule_flight::{Board, Imu, ImuModel, Trajectory, Truth};
use noctule_local_clock::{LocalClock, Raw, now};
use noctule_sys::clock::process_cpu_ns;
use noctule_time_sync::{Bounded, BoundedConfig, Estimate, Estimator};
use noctule_timebase::{Instant, Span};
use serde::Serialize;

use crate::line::{Line, READ_BYTES};
use crate::protocol::{Pose, Protocol, Traffic};

/// Poses whose age is kept; an hour at 200 Hz.
pub(crate) const AGES_MAX: usize = 720_000;

/// How a simulated controller flies.
#[derive(Clone, Debug)]
pub struct SimulatorConfig {
    /// The controller's clock.
    pub clock: LocalClock,
    /// Inertial samples a second.
    pub imu_hz: u32,
    /// Decides all errors of the sensors.
    pub seed: u64,
    /// Which corrections of the poses' stamps are to be compared.
    pub corrections: Vec<Correction>,
    /// How long nothing counts: clocks and filter settle.
    pub warm_up: Span,
    /// How long it flies, warm-up included.
    pub duration: Span,
}

/// The path that controller and camera fly: 8 m long, 3 m/s in its middle.
pub fn path() -> Trajectory {
    Trajectory::figure_of_eight(8.0, 3.0)
}

/// Ages of poses on arrival, ns: the truth, and what the controller's own clock exchange says.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Ages {
    /// Poses that counted.
    pub count: u64,
    /// The truth: median, or null.
    pub true_p50_ns: Option<i64>,
    /// The truth: 99 % are at most as old.
    pub true_p99_ns: Option<i64>,
    /// The truth: the oldest.
    pub true_max_ns: Option<i64>,
    /// Greatest difference between what was thought and the truth.
    pub error_max_ns: i64,
    /// Greatest bound that was given.
    pub bound_max_ns: i64,
    /// Poses whose true age was outside the bound.
    pub bound_violations: u64,
    /// Poses that came before the clock was known.
    pub without_clock: u64,
}

/// Results of a flight.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// `xrce` or `mavlink`.
    pub protocol: &'static str,
    /// Counts of messages sent and received.
    pub traffic: Traffic,
    /// Ages of the poses.
    pub ages: Ages,
    /// Position errors, a line for each correction.
    pub fusion: Vec<FusionLine>,
    /// Processor time spent on the protocol alone, ns.
    pub protocol_cpu_ns: i64,
    /// Processor time for each message sent or received, ns.
    pub protocol_cpu_ns_per_message: i64,
    /// Processor time of the whole process, estimators included, ns.
    pub process_cpu_ns: i64,
    /// Greatest memory of the process, bytes; null where the system does not say.
    pub memory_peak_bytes: Option<u64>,
    /// Duration of the flight, ns.
    pub duration_ns: i64,
}

/// One correction.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct FusionLine {
    /// Its name.
    pub correction: &'static str,
    /// Root mean square of the distance to the true position, m.
    pub position_rms_m: Option<f64>,
    /// The greatest such distance, m.
    pub position_max_m: f64,
    /// Poses fused.
    pub fused: u64,
    /// Poses too old, from the future, outside the filter's gate, or without a known clock.
    pub refused: u64,
    /// Times the filter had to start again.
    pub resets: u64,
}

impl From<FusionResult> for FusionLine {
    fn from(result: FusionResult) -> FusionLine {
        let counters = result.counters;
        FusionLine {
            correction: result.correction.name(),
            position_rms_m: result.position_rms_m,
            position_max_m: result.position_max_m,
            fused: counters.fused,
            refused: counters.too_old
                + counters.from_the_future
                + counters.rejected
                + counters.refused_full
                + result.without_clock,
            resets: counters.resets,
        }
    }
}

/// A flight under way.
pub struct Simulator {
    config: SimulatorConfig,
    line: Line,
    protocol: Box<dyn Protocol>,
    path: Trajectory,
    imu: Imu,
    fusion: Fusion,
    clock: Bounded,
    ages_ns: Vec<i64>,
    ages: Ages,
    counts_from: Instant<Raw>,
    protocol_cpu_ns: i64,
}

impl Simulator {
    /// A controller on `line`, about to fly.
    pub fn new(mut config: SimulatorConfig, line: Line, protocol: Box<dyn Protocol>) -> Simulator {
        let start = now();
        config.clock = config.clock.started(start);
        let path = path();
        let board = config.clock.at(start);
        let fusion = Fusion::new(&path, truth(start), board, config.warm_up, &config.corrections);
        Simulator {
            imu: Imu::new(ImuModel::CONSUMER, config.seed),
            clock: Bounded::new(BoundedConfig::default()),
            ages_ns: Vec::new(),
            ages: Ages::default(),
            counts_from: start + config.warm_up,
            protocol_cpu_ns: 0,
            fusion,
            path,
            line,
            protocol,
            config,
        }
    }

    /// Flies until the time is over, or `stop` says so.
    ///
    /// # Errors
    ///
    /// The line is gone.
    pub fn run(mut self, stop: &dyn Fn() -> bool) -> io::Result<Report> {
        let interval = Span::from_ns(1_000_000_000 / i64::from(self.config.imu_hz.max(1)));
        let start = now();
        let cpu_ns = process_cpu_ns();
        let mut due = start + interval;
        let mut buffer = [0; READ_BYTES];
        let mut out = Vec::new();
        while now() - start < self.config.duration && !stop() {
            self.take_in(&mut buffer)?;
            while now() >= due {
                self.sense(due, interval);
                due += interval;
            }
            self.send(&mut out)?;
            let board = self.config.clock.now();
            let rest = (self.protocol.next_timeout(board) - board).ns().min((due - now()).ns());
            self.line.wait(rest);
        }
        Ok(self.report(now() - start, process_cpu_ns() - cpu_ns))
    }

    /// Everything that waits on the line.
    fn take_in(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        while let Some(length) = self.line.read(buffer)? {
            let cpu_ns = process_cpu_ns();
            self.protocol.handle_bytes(&buffer[..length], self.config.clock.now());
            self.protocol_cpu_ns += process_cpu_ns() - cpu_ns;
            while let Some(exchange) = self.protocol.poll_exchange() {
                // The verdict on it shows in the clock's estimates.
                let _ = self.clock.handle_exchange(&exchange);
                self.fusion.handle_exchange(&exchange);
            }
            while let Some(pose) = self.protocol.poll_pose() {
                self.fuse(&pose);
            }
        }
        Ok(())
    }

    fn fuse(&mut self, pose: &Pose) {
        let taken = self.protocol.companion_clock().moment_of(pose.stamp);
        let exact: Instant<Board> = self.config.clock.at(taken);
        self.fusion.handle_pose(&Arrival {
            pose: pose.pose,
            stamp: pose.stamp,
            arrived: pose.arrived,
            exact,
        });
        if now() < self.counts_from {
            return;
        }
        let age_ns = (pose.arrived - exact).ns();
        if self.ages_ns.len() < AGES_MAX {
            self.ages_ns.push(age_ns);
        }
        match self.clock.estimate(pose.arrived.translate(Span::ZERO)) {
            Some(known) => self.ages.judge(&known, pose, exact),
            None => self.ages.without_clock += 1,
        }
    }

    /// An inertial sample that ended at `at`.
    fn sense(&mut self, at: Instant<Raw>, interval: Span) {
        let stamp = self.config.clock.at(at);
        let sample = self.imu.sample(&self.path, truth(at), interval, stamp);
        self.fusion.handle_imu(&sample, &self.path.at(truth(at)).position_m);
        let cpu_ns = process_cpu_ns();
        self.protocol.publish(&sample);
        self.protocol_cpu_ns += process_cpu_ns() - cpu_ns;
    }

    /// Everything the protocol has to say, a frame a time: each carries the time at which it goes out.
    fn send(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        loop {
            out.clear();
            let cpu_ns = process_cpu_ns();
            let more = self.protocol.poll_transmit(self.config.clock.now(), out);
            self.protocol_cpu_ns += process_cpu_ns() - cpu_ns;
            if !more {
                return Ok(());
            }
            self.line.write(out)?;
        }
    }

    fn report(mut self, duration: Span, process_cpu_ns: i64) -> Report {
        let traffic = self.protocol.traffic();
        self.ages_ns.sort_unstable();
        let ages = Ages {
            count: self.ages_ns.len() as u64,
            true_p50_ns: quantile(&self.ages_ns, 0.5),
            true_p99_ns: quantile(&self.ages_ns, 0.99),
            true_max_ns: self.ages_ns.last().copied(),
            ..self.ages
        };
        let messages = (traffic.imu_sent + traffic.poses).max(1) as i64;
        Report {
            protocol: self.protocol.name(),
            traffic,
            ages,
            fusion: self.fusion.results().into_iter().map(FusionLine::from).collect(),
            protocol_cpu_ns: self.protocol_cpu_ns,
            protocol_cpu_ns_per_message: self.protocol_cpu_ns / messages,
            process_cpu_ns,
            memory_peak_bytes: memory_peak_bytes(),
            duration_ns: duration.ns(),
        }
    }
}

impl Ages {
    /// Holds what is known of the companion's clock against the truth.
    fn judge(&mut self, known: &Estimate, pose: &Pose, exact: Instant<Board>) {
        let thought: Instant<Board> = pose.stamp.translate(-known.offset);
        let error_ns = (thought - exact).ns().abs();
        self.error_max_ns = self.error_max_ns.max(error_ns);
        if let Some(bound) = known.bound {
            self.bound_max_ns = self.bound_max_ns.max(bound.ns());
            // The stamp itself is rounded to a microsecond.
            self.bound_violations += u64::from(error_ns > bound.ns() + 1_000);
        }
    }
}

/// The value below which this share of the sorted ones lies.
pub(crate) fn quantile(sorted: &[i64], share: f64) -> Option<i64> {
    let at = (share * sorted.len() as f64) as usize;
    sorted.get(at.min(sorted.len().saturating_sub(1))).copied()
}

/// The raw clock is the truth.
fn truth(raw: Instant<Raw>) -> Instant<Truth> {
    raw.translate(Span::ZERO)
}

fn memory_peak_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}
