//! A random operator over random links with faults of clocks, hands and the loop: no rule is passed in silence.
//!
//! The judge knows the truth: when a command was really made, which one was spoiled, and which limit the arm exceeds, computed
//! anew from the state. One seed is a minute; `cargo xtask sim arm --count 1440` is a day.

use noctule_arm::capsules::{capsules, nearest_pair};
use noctule_arm::controller::{Command, Controller, ControllerConfig, Controlling, Mode};
use noctule_arm::forward::flange;
use noctule_arm::hand::Hand;
use noctule_arm::jacobian::{jacobian, singular_values};
use noctule_arm::profile::{Motion, ProfileLimits};
use noctule_arm::validate::{Rule, RuleCounts, Window};
use noctule_arm::{HOME_RAD, Joints, Rotation, Vector};
use noctule_netsim::random::Random;
use noctule_timebase::{Instant, Span};

const PERIOD: Span = Span::from_us(250);
const START: Instant<Controlling> = Instant::from_ns(1_000_000_000_000);
const MINUTE: Span = Span::from_s(60);
/// Lateness of a period where the loop stalls.
const STALL: Span = Span::from_ms(60);
/// So many minutes break each of the rules.
const SEEDS_FOR_ALL_RULES: u64 = 300;

/// A command on its way: when it was really made, and when it arrives.
struct Sent {
    made: Instant<Controlling>,
    arrives: Instant<Controlling>,
    command: Command,
}

/// Loss in bursts, delay and jitter; they change now and then.
struct Network {
    delay_ms: f64,
    jitter_ms: f64,
    loss: f64,
    burst: u32,
    losing: u32,
}

impl Network {
    fn drawn(random: &mut Random) -> Network {
        let delay_ms =
            if random.chance(0.1) { random.uniform(60.0, 200.0) } else { random.uniform(0.0, 40.0) };
        let loss = if random.chance(0.3) { random.uniform(0.0, 0.3) } else { 0.0 };
        let burst = random.uniform(1.0, 40.0) as u32;
        Network { delay_ms, jitter_ms: random.exponential(2.0), loss, burst, losing: 0 }
    }

    /// How long a packet takes; `None` if it is lost.
    fn carries(&mut self, random: &mut Random) -> Option<Span> {
        if self.losing == 0 && random.chance(self.loss / f64::from(self.burst)) {
            self.losing = self.burst;
        }
        if self.losing > 0 {
            self.losing -= 1;
            return None;
        }
        Some(Span::from_us(((self.delay_ms + random.exponential(self.jitter_ms)) * 1e3) as i64))
    }
}

/// A hand that rests, moves, lets go and presses again, and is sometimes no good.
struct Operator {
    number: u64,
    hand: Hand,
    began: Instant<Controlling>,
    clutch: bool,
    clutch_changes: Instant<Controlling>,
    silent_until: Instant<Controlling>,
    /// Its clock is wrong by this, and it claims to know it to this.
    clock_error: Span,
    claimed: Option<Span>,
    clock_right_again: Instant<Controlling>,
    offset_m: Vector,
    leaves: Instant<Controlling>,
}

impl Operator {
    fn drawn(random: &mut Random, number: u64, now: Instant<Controlling>) -> Operator {
        let size_m = if random.chance(0.3) { random.uniform(0.2, 1.5) } else { random.uniform(0.02, 0.15) };
        let reach_s = random.uniform(0.25, 1.5);
        let hand = match random.bits() % 3 {
            0 => Hand::Square { side_m: size_m, reach_s, rest_s: 0.1 },
            1 => Hand::Targets { count: 9, diameter_m: size_m, reach_s, rest_s: 0.1 },
            _ => Hand::Lissajous {
                amplitude_m: [size_m, size_m],
                frequency_hz: [random.uniform(0.1, 0.8), random.uniform(0.1, 0.8)],
            },
        };
        Operator {
            number,
            hand,
            began: now,
            clutch: false,
            clutch_changes: now + Span::from_ms(100),
            silent_until: now,
            clock_error: Span::ZERO,
            claimed: Some(Span::from_us(100)),
            clock_right_again: now,
            offset_m: Vector::zeros(),
            leaves: now + Span::from_us((random.uniform(1.0, 30.0) * 1e6) as i64),
        }
    }

    /// Draws the faults of this millisecond, if there are any.
    fn live(&mut self, random: &mut Random, now: Instant<Controlling>) {
        let seconds =
            |random: &mut Random, from: f64, to: f64| Span::from_us((random.uniform(from, to) * 1e6) as i64);
        if now >= self.clutch_changes {
            self.clutch = !self.clutch;
            let (from, to) = if self.clutch { (0.5, 8.0) } else { (0.05, 0.5) };
            self.clutch_changes = now + seconds(random, from, to);
        }
        if random.chance(1e-4) {
            self.silent_until = now + seconds(random, 0.02, 1.0);
        }
        if random.chance(5e-5) {
            self.offset_m = Vector::from_fn(|_, _| random.uniform(-2.0, 2.0));
        }
        if random.chance(5e-5) {
            // Within its bound, far beyond it, or not known at all.
            (self.clock_error, self.claimed) = match random.bits() % 5 {
                0 => (Span::from_ms(8), Some(Span::from_ms(10))),
                1 => (Span::from_ms(-8), Some(Span::from_ms(10))),
                2 => (Span::from_s(5), Some(Span::from_us(100))),
                3 => (Span::from_s(-5), Some(Span::from_us(100))),
                _ => (Span::ZERO, None),
            };
            self.clock_right_again = now + seconds(random, 0.1, 2.0);
        } else if now >= self.clock_right_again {
            (self.clock_error, self.claimed) = (Span::ZERO, Some(Span::from_us(100)));
        }
    }

    fn command(&self, random: &mut Random, now: Instant<Controlling>) -> Command {
        let hand = self.hand.at((now - self.began).as_s_f64());
        let mut command = Command {
            operator: self.number,
            position_m: hand.position_m + self.offset_m,
            rotation: Rotation::identity(),
            linear_m_s: hand.velocity_m_s,
            angular_rad_s: Vector::zeros(),
            clutch: self.clutch,
            scale: 1.0,
            source_time: now + self.clock_error,
            bound: self.claimed,
        };
        if random.chance(5e-5) {
            command.linear_m_s.y = f64::NAN;
        }
        command
    }
}

/// Independent record of the arm, not taken from its controller.
struct Judge {
    seed: u64,
    /// When the command was really made that may move the arm, by operator.
    freshest: [Instant<Controlling>; 3],
    /// Since the last stop an operator's released clutch arrived.
    released: [bool; 3],
    stopping_since: Option<Instant<Controlling>>,
    before: (Mode, RuleCounts, Motion),
    total: [u64; Rule::ALL.len()],
}

impl Judge {
    fn new(seed: u64, controller: &Controller) -> Judge {
        Judge {
            seed,
            freshest: [Instant::from_ns(0); 3],
            released: [false; 3],
            stopping_since: None,
            before: (Mode::Idle, RuleCounts::default(), *controller.motion()),
            total: [0; Rule::ALL.len()],
        }
    }

    /// A command arrives; what is wrong with it must be counted.
    fn deliver(&mut self, now: Instant<Controlling>, sent: &Sent, controller: &mut Controller) {
        let before = *controller.state();
        controller.handle_command(now, sent.command.clone());
        let after = controller.state();
        let grew = |rule: Rule| after.rules.of(rule) > before.rules.of(rule);
        count(&mut self.total, &before.rules, &after.rules);
        // One that is overtaken or of another operator is refused before its content is read.
        let is_passed_over = grew(Rule::OtherOperator) || after.outdated > before.outdated;
        if !sent.command.is_finite() && !is_passed_over {
            assert!(grew(Rule::CommandNotFinite), "seed {}: a NaN passed", self.seed);
        }
        let moves = |mode: Mode| matches!(mode, Mode::Engaged | Mode::Releasing);
        if moves(before.mode) && !moves(after.mode) {
            self.stop(now);
        }
        if after.commands > before.commands {
            let operator = sent.command.operator as usize;
            self.freshest[operator] = self.freshest[operator].max(sent.made);
            self.released[operator] |= !sent.command.clutch;
        }
    }

    fn stop(&mut self, now: Instant<Controlling>) {
        self.released = [false; 3];
        self.stopping_since = Some(now);
    }

    /// A period has run.
    fn handle_period(&mut self, now: Instant<Controlling>, stalled: bool, controller: &Controller) {
        let (config, state) = (controller.config(), controller.state());
        let (mode, rules, motion) = self.before;
        let seed = self.seed;
        let what = || format!("seed {seed}, {:.4} s: {mode:?} to {:?}", (now - START).as_s_f64(), state.mode);
        let grew = || rules.all().iter().sum::<u64>() < state.rules.all().iter().sum::<u64>();
        let moved = matches!(mode, Mode::Engaged | Mode::Releasing);
        let moves = matches!(state.mode, Mode::Engaged | Mode::Releasing);
        if moved && state.mode != Mode::Idle && (stalled || exceeds(controller)) {
            assert!(!moves && grew(), "{}: a limit is exceeded, and nothing stops", what());
        }
        if state.mode == Mode::Engaged {
            let youngest = self.freshest.iter().map(|made| now - *made).min().unwrap_or(Span::MAX);
            let allowed = config.deadline + config.validator.age_bound_max + Span::from_ms(1);
            assert!(youngest <= allowed, "{}: it follows a command that is {youngest} old", what());
        }
        if moved && !moves && state.mode != Mode::Idle {
            assert!(grew(), "{}: it stopped, and no rule was counted", what());
            self.stop(now);
        }
        if mode != Mode::Engaged && state.mode == Mode::Engaged {
            assert!(self.released.iter().any(|released| *released), "{}: no clutch was released", what());
        }
        match (state.mode, self.stopping_since) {
            (Mode::Stopping(_), Some(since)) => {
                let longest =
                    Span::from_us((ProfileLimits::default().stop_time_max_s() * 1e6) as i64 + 2_000);
                // The stalled period itself is none of its motion.
                assert!(now - since <= longest + STALL, "{}: not at rest after {}", what(), now - since);
            }
            _ => self.stopping_since = None,
        }
        let planned = (state.periods - 1).is_multiple_of(noctule_arm::controller::PERIODS_PER_PLAN);
        if planned && matches!(state.mode, Mode::Engaged | Mode::Releasing | Mode::Stopping(_)) {
            within_limits(&motion, controller.motion(), &what);
        }
        count(&mut self.total, &rules, &state.rules);
        self.before = (state.mode, state.rules, *controller.motion());
    }
}

/// Whether the state is beyond a limit of the validator, computed anew.
fn exceeds(controller: &Controller) -> bool {
    let (config, state) = (controller.config(), controller.state());
    let limits = &config.validator;
    let pose = flange(&config.geometry, &state.joints_rad);
    let position = pose.translation.vector;
    let outside: f64 = (0..3)
        .map(|axis| {
            (limits.window.lower_m[axis] - position[axis])
                .max(position[axis] - limits.window.upper_m[axis])
                .max(0.0)
        })
        .map(|excess| excess * excess)
        .sum::<f64>()
        .sqrt();
    let planned = (state.periods).is_multiple_of(noctule_arm::controller::PERIODS_PER_PLAN);
    let sigma = || singular_values(&jacobian(&config.geometry, &state.joints_rad))[5];
    state.joints_rad.iter().zip(limits.position_rad.iter()).any(|(angle, limit)| angle.abs() > *limit)
        || state.velocity_rad_s.amax() > limits.velocity_rad_s
        || state.voltage_v.amax() > limits.voltage_v
        || outside > limits.window_margin_m + 1e-9
        || planned
            && (sigma() < limits.sigma_min - 1e-9
                || body_is_where_it_must_not_be(config, &state.joints_rad)
                || off_profile_m(controller) > limits.tracking_m + 1e-9)
}

/// A part of the arm that can be is below the table, or touches another.
fn body_is_where_it_must_not_be(config: &ControllerConfig, joints_rad: &Joints) -> bool {
    let body = capsules(&config.geometry, joints_rad);
    let lowest_m = body[2..].iter().map(|part| part.from_m.z.min(part.to_m.z) - part.radius_m);
    lowest_m.fold(f64::INFINITY, f64::min) < config.validator.table_z_m - 1e-9
        || nearest_pair(&body).2 < -1e-9
}

/// From the measured flange to the profile's, at the end of a plan.
fn off_profile_m(controller: &Controller) -> f64 {
    let (config, state) = (controller.config(), controller.state());
    let wanted = flange(&config.geometry, &controller.motion().position_rad);
    (wanted.translation.vector - flange(&config.geometry, &state.joints_rad).translation.vector).norm()
}

fn within_limits(before: &Motion, after: &Motion, what: &dyn Fn() -> String) {
    let limits = ProfileLimits::default();
    let (a, j) = (limits.stop_acceleration_rad_s2, limits.stop_jerk_rad_s3);
    let jerk = (after.acceleration_rad_s2 - before.acceleration_rad_s2).amax() / 1e-3;
    let fine = 1.0 + 1e-6;
    assert!(after.velocity_rad_s.amax() <= limits.velocity_rad_s * fine, "{}: {after:?}", what());
    assert!(after.acceleration_rad_s2.amax() <= a * fine, "{}: {after:?}", what());
    assert!(jerk <= j * fine, "{}: jerk {jerk}", what());
}

fn config(random: &mut Random) -> ControllerConfig {
    let mut config = ControllerConfig::default();
    if random.chance(0.5) {
        // Poses out of reach, singular ones and the table come into play.
        config.validator.window =
            Window { lower_m: Vector::from_element(-2.0), upper_m: Vector::from_element(2.0) };
    }
    if random.chance(0.5) {
        narrow(random, &mut config);
    }
    config
}

/// Limits that a healthy arm exceeds: each rule must be broken, not only those that an operator can break.
fn narrow(random: &mut Random, config: &mut ControllerConfig) {
    let around_home = |random: &mut Random| HOME_RAD.map(|angle| angle.abs() + random.uniform(0.02, 0.4));
    let (position_rad, upper_rad) = (around_home(random), around_home(random));
    let limits = &mut config.validator;
    match random.bits() % 7 {
        0 => limits.voltage_v = random.uniform(0.01, 0.5),
        1 => limits.velocity_rad_s = random.uniform(0.1, 3.0),
        2 => limits.tracking_m = random.uniform(1e-4, 3e-3),
        3 => limits.position_rad = position_rad,
        4 => limits.sigma_min = random.uniform(0.02, 0.23),
        // Nothing but a gap of zero is within.
        5 => limits.closure_m = 0.0,
        _ => (config.selector.lower_rad, config.selector.upper_rad) = (-upper_rad, upper_rad),
    }
}

/// A minute; returns how often each rule was broken.
fn minute(seed: u64) -> [u64; Rule::ALL.len()] {
    let mut random = Random::new(seed);
    let mut controller = Controller::new(config(&mut random), HOME_RAD);
    let mut judge = Judge::new(seed, &controller);
    let mut network = Network::drawn(&mut random);
    let mut operators = vec![Operator::drawn(&mut random, 0, START)];
    let mut on_the_way: Vec<Sent> = Vec::new();
    let (mut now, mut period) = (START, 0_u64);
    while now - START < MINUTE {
        if period % 4 == 0 {
            if random.chance(5e-5) {
                network = Network::drawn(&mut random);
            }
            operators.retain(|operator| now < operator.leaves);
            // One comes soon after the last has gone, a second one while there is another now and then.
            if random.chance(if operators.is_empty() { 2e-3 } else { 2e-5 }) {
                let number = random.bits() % 3;
                operators.retain(|operator| operator.number != number);
                operators.push(Operator::drawn(&mut random, number, now));
            }
            for operator in &mut operators {
                operator.live(&mut random, now);
                if now >= operator.silent_until
                    && let Some(delay) = network.carries(&mut random)
                {
                    let command = operator.command(&mut random, now);
                    on_the_way.push(Sent { made: now, arrives: now + delay, command });
                }
            }
        }
        on_the_way.sort_by_key(|sent| sent.arrives);
        let arrived = on_the_way.iter().take_while(|sent| sent.arrives <= now).count();
        for sent in on_the_way.drain(..arrived) {
            judge.deliver(now, &sent, &mut controller);
        }
        // Rules that commands broke have been counted; the period's own counts begin here, the mode is the one before both.
        let stalled = random.chance(2e-6);
        now += if stalled { STALL } else { PERIOD };
        judge.before.1 = controller.state().rules;
        judge.before.0 = controller.state().mode;
        controller.step(now);
        judge.handle_period(now, stalled, &controller);
        period += 1;
    }
    judge.total
}

fn count(total: &mut [u64; Rule::ALL.len()], before: &RuleCounts, after: &RuleCounts) {
    for (total, (after, before)) in total.iter_mut().zip(after.all().iter().zip(before.all())) {
        *total += after - before;
    }
}

fn from_environment(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn random_minutes_pass_no_rule_in_silence() {
    let (first, seeds) = (from_environment("NOCTULE_SEED", 1), from_environment("NOCTULE_SEEDS", 4));
    let mut total = [0_u64; Rule::ALL.len()];
    for seed in first..first + seeds {
        let found = minute(seed);
        total.iter_mut().zip(found).for_each(|(total, found)| *total += found);
    }
    println!("{seeds} minutes from seed {first}:");
    for (rule, count) in Rule::ALL.iter().zip(total) {
        println!("{count:>12}  {rule:?}: {}", rule.sentence());
    }
    let of = |rule: Rule| total[rule as usize];
    assert!(of(Rule::CommandTooOld) > 0, "nothing was tried");
    let never: Vec<Rule> = Rule::ALL.into_iter().filter(|rule| of(*rule) == 0).collect();
    assert!(seeds < SEEDS_FOR_ALL_RULES || never.is_empty(), "never broken: {never:?}");
}
