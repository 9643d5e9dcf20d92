//! E1: the operator's commands over a network.
//!
//! The hand draws a Lissajous figure of ±100 mm; the arm follows what arrives. The error is that of the flange to the
//! hand where it is *now*, not where it was.

use noctule_arm::controller::{Command, CommandMode, Controller, ControllerConfig, Controlling};
use noctule_arm::hand::Hand;
use noctule_arm::joint_loop::LoopConfig;
use noctule_arm::validate::{ValidatorConfig, Window};
use noctule_arm::{HOME_RAD, Rotation, Vector};
use noctule_netsim::link::Direction;
use noctule_timebase::{Instant, Span};
use serde::Serialize;

use super::NumberedLink;

/// Periods of the joint loop in one command: 1 kHz at 4 kHz.
const PERIODS_PER_COMMAND: u64 = 4;
const PERIOD: Span = Span::from_us(250);
/// The clutch is pressed then; until then the hand is at rest.
const ENGAGED: Span = Span::from_ms(50);
/// The hand has come up to its amplitude, and the arm has followed.
pub(super) const SETTLED: Span = Span::from_s(4);
/// Size of a command on the wire: its fields and 20 bytes of headers.
const COMMAND_BYTES: usize = 160;
/// How far back the path error looks for the nearest point of the path.
const PATH_MEMORY: usize = 1_000;

/// Parameters of an experiment.
#[derive(Clone, Debug)]
pub struct CommandExperiment {
    /// Use of the commands' age.
    pub mode: CommandMode,
    /// Link from the operator to the arm.
    pub direction: Direction,
    /// The age that the controller is given is too large by this.
    pub age_error: Span,
    /// With the jerk-limited profile and the cascade of the live system, instead of the seed's joint loop alone.
    pub with_profile: bool,
    /// Motion of the hand.
    pub hand: Hand,
    /// Duration of the measurement.
    pub duration: Span,
    /// Seed of the link.
    pub seed: u64,
}

impl CommandExperiment {
    /// The figure of ±100 mm over four of its periods.
    pub fn new(mode: CommandMode, direction: Direction) -> CommandExperiment {
        CommandExperiment {
            mode,
            direction,
            age_error: Span::ZERO,
            with_profile: false,
            hand: Hand::FIGURE,
            duration: Span::from_s(16),
            seed: 1,
        }
    }
}

/// Result of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CommandCost {
    /// Root of the mean square of the distance to the hand, mm.
    pub rms_mm: f64,
    /// Largest distance, mm.
    pub max_mm: f64,
    /// 99th percentile of the distance, mm.
    pub p99_mm: f64,
    /// Root of the mean square of the distance to the path that the hand has drawn, mm: it does not see latency.
    pub path_rms_mm: f64,
    /// Mean age of the newest command when it was used, ms.
    pub mean_age_ms: f64,
    /// Commands sent.
    pub sent: u64,
    /// Commands that the controller took in.
    pub received: u64,
    /// Root of the mean square of the joints' voltages, V.
    pub effort_v: f64,
    /// The theory's line: root mean square speed times mean age for `hold`, half of the acceleration times the mean
    /// square of the age for `age`, mm.
    pub theory_mm: f64,
    /// The arm followed to the end.
    pub followed: bool,
}

/// Transport of the hand's poses to the arm.
pub(super) trait Carrier {
    /// A period begins, `since` after the start: sends what is to be sent.
    fn handle_period(&mut self, since: Span, hand: &Hand);

    /// The next pose that has arrived: when the hand was there, after the start.
    fn poll(&mut self, since: Span) -> Option<Span>;

    /// Commands sent so far.
    fn sent(&self) -> u64;
}

/// A link of `noctule-netsim`.
struct ModelledLink {
    link: NumberedLink,
    sent: Vec<Span>,
}

impl Carrier for ModelledLink {
    fn handle_period(&mut self, since: Span, _: &Hand) {
        if since.ns() % (PERIOD.ns() * PERIODS_PER_COMMAND as i64) == 0 {
            self.link.send(Instant::from_ns(since.ns()), self.sent.len() as u64, COMMAND_BYTES);
            self.sent.push(since);
        }
    }

    fn poll(&mut self, since: Span) -> Option<Span> {
        let number = self.link.poll(Instant::from_ns(since.ns()), self.sent.len() as u64)?;
        self.sent.get(number as usize).copied()
    }

    fn sent(&self) -> u64 {
        self.sent.len() as u64
    }
}

/// Runs it: about a second of computing for twenty of the arm.
pub fn run(experiment: &CommandExperiment) -> CommandCost {
    let link = NumberedLink::new(&experiment.direction, experiment.seed);
    run_over(experiment, &mut ModelledLink { link, sent: Vec::new() })
}

/// Runs it over anything that carries poses.
pub(super) fn run_over(experiment: &CommandExperiment, carrier: &mut dyn Carrier) -> CommandCost {
    let mut controller = Controller::new(config(experiment), HOME_RAD);
    let home_m = controller.state().flange.translation.vector;
    let mut tally = Tally::default();
    let mut path: Vec<Vector> = Vec::new();
    let periods = ((SETTLED + experiment.duration).ns() / PERIOD.ns()) as u64;
    for period in 0..periods {
        let since = Span::from_ns(period as i64 * PERIOD.ns());
        if period % PERIODS_PER_COMMAND == 0 {
            path.push(home_m + experiment.hand.at(since.as_s_f64()).position_m);
        }
        carrier.handle_period(since, &experiment.hand);
        while let Some(source) = carrier.poll(since) {
            controller.handle_command(at(since), command(experiment, source));
        }
        controller.step(at(since));
        if since >= SETTLED && period % PERIODS_PER_COMMAND == 0 {
            let state = controller.state();
            // After the step the arm is where it is at the end of the period.
            let now = experiment.hand.at((since + PERIOD).as_s_f64());
            let flange_m = state.flange.translation.vector;
            let age_s = state.command_age.map_or(0.0, |age| (age - experiment.age_error).as_s_f64());
            tally.record(&flange_m, &(home_m + now.position_m), age_s);
            tally.path(&flange_m, &path[path.len().saturating_sub(PATH_MEMORY)..]);
            tally.effort += state.voltage_v.norm_squared() / 6.0;
        }
    }
    let state = controller.state();
    let followed = state.mode == noctule_arm::controller::Mode::Engaged;
    let theory_mm = theory_mm(experiment, &tally);
    tally.cost(carrier.sent(), state.commands, theory_mm, followed)
}

/// The command of the hand where it was at `source`.
fn command(experiment: &CommandExperiment, source: Span) -> Command {
    let hand = experiment.hand.at(source.as_s_f64());
    Command {
        operator: 1,
        position_m: hand.position_m,
        rotation: Rotation::identity(),
        linear_m_s: hand.velocity_m_s,
        angular_rad_s: Vector::zeros(),
        // Released for the first moments: the clutch engages when it is pressed.
        clutch: source >= ENGAGED,
        scale: 1.0,
        source_time: at(source) - experiment.age_error,
        bound: Some(experiment.age_error.abs()),
    }
}

fn at(since: Span) -> Instant<Controlling> {
    Instant::from_ns(1_000_000_000) + since
}

fn config(experiment: &CommandExperiment) -> ControllerConfig {
    let everywhere = Window { lower_m: Vector::from_element(-2.0), upper_m: Vector::from_element(2.0) };
    let validator = ValidatorConfig {
        window: everywhere,
        // The experiment measures errors; it does not stop for them.
        tracking_m: 1.0,
        velocity_rad_s: 100.0,
        voltage_v: 1_000.0,
        age_bound_max: Span::from_s(10),
        brake_m_s2: 1_000.0,
        table_z_m: -2.0,
        ..ValidatorConfig::default()
    };
    let base = ControllerConfig {
        mode: experiment.mode,
        deadline: Span::from_s(5),
        validator,
        flange_speed_max_m_s: 100.0,
        leap_speed_m_s: 1_000.0,
        ..ControllerConfig::default()
    };
    match experiment.with_profile {
        true => base,
        false => ControllerConfig { profile: None, joint_loop: LoopConfig::seed(), ..base },
    }
}

/// Speed × age, or half of the acceleration × the square of the age.
fn theory_mm(experiment: &CommandExperiment, tally: &Tally) -> f64 {
    let Hand::Lissajous { amplitude_m, frequency_hz } = experiment.hand else { return f64::NAN };
    let of_order = |order: i32| {
        let squares = amplitude_m.iter().zip(frequency_hz).map(|(amplitude, hz)| {
            let value = amplitude * (std::f64::consts::TAU * hz).powi(order);
            value * value / 2.0
        });
        squares.sum::<f64>().sqrt()
    };
    match experiment.mode {
        CommandMode::Hold => of_order(1) * tally.age_s / tally.count * 1e3,
        CommandMode::Age => of_order(2) * tally.age_squared / tally.count / 2.0 * 1e3,
    }
}

#[derive(Default)]
struct Tally {
    count: f64,
    squares: f64,
    distances_m: Vec<f64>,
    path_squares: f64,
    age_s: f64,
    age_squared: f64,
    effort: f64,
}

impl Tally {
    fn record(&mut self, flange_m: &Vector, hand_m: &Vector, age_s: f64) {
        let distance_m = (flange_m - hand_m).norm();
        self.count += 1.0;
        self.squares += distance_m * distance_m;
        self.distances_m.push(distance_m);
        self.age_s += age_s;
        self.age_squared += age_s * age_s;
    }

    fn path(&mut self, flange_m: &Vector, drawn_m: &[Vector]) {
        let nearest =
            drawn_m.iter().map(|point| (point - flange_m).norm_squared()).fold(f64::INFINITY, f64::min);
        self.path_squares += nearest;
    }

    fn cost(mut self, sent: u64, received: u64, theory_mm: f64, followed: bool) -> CommandCost {
        self.distances_m.sort_by(f64::total_cmp);
        let last = self.distances_m.len().saturating_sub(1);
        let quantile = |q: f64| self.distances_m.get((q * last as f64) as usize).copied().unwrap_or(f64::NAN);
        CommandCost {
            rms_mm: (self.squares / self.count).sqrt() * 1e3,
            max_mm: quantile(1.0) * 1e3,
            p99_mm: quantile(0.99) * 1e3,
            path_rms_mm: (self.path_squares / self.count).sqrt() * 1e3,
            mean_age_ms: self.age_s / self.count * 1e3,
            sent,
            received,
            effort_v: (self.effort / self.count).sqrt(),
            theory_mm,
            followed,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use noctule_netsim::link::LinkSpec;

    use super::*;

    fn cost(link: &str, mode: CommandMode, age_error: Span) -> CommandCost {
        let spec: LinkSpec = link.parse().unwrap();
        let experiment = CommandExperiment { age_error, ..CommandExperiment::new(mode, spec.a_to_b) };
        let cost = run(&experiment);
        assert!(cost.followed, "{link}");
        cost
    }

    /// The table of an independent prototype: rms by hold, by age, and with an age that is wrong by 1 ms.
    #[test]
    fn the_table_of_what_latency_costs() {
        let table = [
            ("delay=0", 0.29, 0.17, 0.31),
            ("delay=5ms", 2.30, 0.19, 0.33),
            ("delay=10ms", 4.30, 0.24, 0.37),
            ("delay=20ms", 8.31, 0.50, 0.58),
            ("delay=50ms", 20.4, 2.31, 2.36),
            ("delay=100ms", 40.2, 8.74, 8.80),
        ];
        for (link, hold, age, wrong) in table {
            let held = cost(link, CommandMode::Hold, Span::ZERO);
            let aged = cost(link, CommandMode::Age, Span::ZERO);
            let off = cost(link, CommandMode::Age, Span::from_ms(1));
            println!(
                "{link}: hold {:.2} ({hold}), age {:.2} ({age}), wrong {:.2} ({wrong}); path {:.2}, theory {:.2} {:.2}",
                held.rms_mm, aged.rms_mm, off.rms_mm, held.path_rms_mm, held.theory_mm, aged.theory_mm
            );
            // Where the joints' own error rules, the two implementations differ by some hundredths of a millimetre.
            let near =
                |got: f64, expected: f64, share: f64| (got - expected).abs() <= share * expected + 0.05;
            assert!(near(held.rms_mm, hold, 0.03), "{link}: hold {}", held.rms_mm);
            assert!(near(aged.rms_mm, age, 0.10), "{link}: age {}", aged.rms_mm);
            assert!(near(off.rms_mm, wrong, 0.15), "{link}: an age wrong by 1 ms {}", off.rms_mm);
            assert!(held.path_rms_mm < 0.5, "the path does not see latency: {}", held.path_rms_mm);
            let line = |cost: CommandCost| (cost.rms_mm - cost.theory_mm).abs();
            assert!(line(held) < 0.5 && line(aged) < 0.4, "the theory's lines");
        }
    }

    #[test]
    fn jitter_and_loss_cost_little_when_the_age_is_known() {
        let table = [
            ("delay=10ms jitter=5ms distribution=uniform reorder=jitter", 4.60, 0.26),
            ("delay=10ms loss=5% burst=3", 4.37, 0.25),
        ];
        for (link, hold, age) in table {
            let held = cost(link, CommandMode::Hold, Span::ZERO);
            let aged = cost(link, CommandMode::Age, Span::ZERO);
            println!("{link}: hold {:.2} ({hold}), age {:.2} ({age})", held.rms_mm, aged.rms_mm);
            assert!(aged.rms_mm < 0.45 && held.rms_mm > 3.0, "{link}: {aged:?}");
            assert!(held.rms_mm / aged.rms_mm > 8.0);
        }
    }
}
