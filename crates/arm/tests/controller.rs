//! The controller on good days and on bad ones: each way of stopping has its name.

use noctule_arm::controller::{Command, CommandMode, Controller, ControllerConfig, Controlling, Mode};
use noctule_arm::hand::Hand;
use noctule_arm::validate::Rule;
use noctule_arm::{HOME_RAD, Rotation, Vector};
use noctule_timebase::{Instant, Span};

const PERIOD: Span = Span::from_us(250);

/// Makes a command invalid.
type Mangle = fn(&mut Command);

struct Bench {
    controller: Controller,
    now: Instant<Controlling>,
    hand: Hand,
    /// Commands are so old when they arrive.
    delay: Span,
    operator: u64,
    clutch: bool,
    /// The operator's commands arrive.
    speaks: bool,
    mangle: Mangle,
}

impl Bench {
    fn new(config: ControllerConfig) -> Bench {
        Bench {
            controller: Controller::new(config, HOME_RAD),
            now: Instant::from_ns(1_000_000_000_000),
            hand: Hand::Square { side_m: 0.1, reach_s: 0.5, rest_s: 0.1 },
            delay: Span::from_ms(5),
            operator: 1,
            clutch: false,
            speaks: true,
            mangle: |_| {},
        }
    }

    fn time_s(&self) -> f64 {
        (self.now - Instant::from_ns(1_000_000_000_000)).as_s_f64()
    }

    fn command(&self) -> Command {
        let hand = self.hand.at(self.time_s() - self.delay.as_s_f64());
        Command {
            operator: self.operator,
            position_m: hand.position_m,
            rotation: Rotation::identity(),
            linear_m_s: hand.velocity_m_s,
            angular_rad_s: Vector::zeros(),
            clutch: self.clutch,
            scale: 1.0,
            source_time: self.now - self.delay,
            bound: Some(Span::from_us(50)),
        }
    }

    fn run(&mut self, span: Span) {
        let end = self.now + span;
        while self.now < end {
            if self.speaks && self.now.ns() % 1_000_000 == 0 {
                let mut command = self.command();
                (self.mangle)(&mut command);
                self.controller.handle_command(self.now, command);
            }
            self.controller.step(self.now);
            self.now += PERIOD;
        }
    }

    fn engage(&mut self) {
        self.clutch = false;
        self.run(Span::from_ms(20));
        self.clutch = true;
        self.run(Span::from_ms(20));
        assert_eq!(self.mode(), Mode::Engaged);
    }

    fn mode(&self) -> Mode {
        self.controller.state().mode
    }

    /// Runs until it stands; returns how long that took.
    fn until_stopped(&mut self, rule: Rule) -> Span {
        let begin = self.now;
        while self.mode() != Mode::Stopped(rule) {
            self.run(PERIOD);
            assert!(self.now - begin < Span::from_s(2), "{rule:?} expected, {:?} got", self.mode());
        }
        assert!(self.controller.state().rules.of(rule) > 0);
        self.now - begin
    }
}

fn stop_time() -> Span {
    let limits = noctule_arm::profile::ProfileLimits::default();
    Span::from_ns((limits.stop_time_max_s() * 1e9) as i64 + 2_000_000)
}

#[test]
fn it_follows_a_hand_and_releases() {
    let mut bench = Bench::new(ControllerConfig::default());
    bench.engage();
    let home = bench.controller.state().flange.translation.vector;
    let mut worst_m = 0.0_f64;
    for _ in 0..5_000 {
        bench.run(Span::from_ms(1));
        assert_eq!(bench.mode(), Mode::Engaged, "{:?}", bench.controller.state());
        let hand = bench.hand.at(bench.time_s());
        let error = bench.controller.state().flange.translation.vector - home - hand.position_m;
        worst_m = worst_m.max(error.norm());
    }
    println!("worst error {:.2} mm", worst_m * 1e3);
    assert!(worst_m < 0.005, "{worst_m}");
    bench.clutch = false;
    bench.run(Span::from_ms(500));
    assert_eq!(bench.mode(), Mode::Idle);
}

#[test]
fn silence_stops_it_within_the_deadline_and_only_the_clutch_engages() {
    let mut bench = Bench::new(ControllerConfig::default());
    bench.engage();
    bench.run(Span::from_ms(1_200));
    assert!(bench.controller.state().velocity_rad_s.norm() > 0.1, "it should be moving");
    bench.speaks = false;
    let took = bench.until_stopped(Rule::CommandTooOld);
    println!("stood {took} after the last command");
    assert!(took <= ControllerConfig::default().deadline + stop_time());
    // It comes back with the clutch held: nothing moves.
    bench.speaks = true;
    bench.run(Span::from_s(1));
    assert_eq!(bench.mode(), Mode::Stopped(Rule::CommandTooOld));
    bench.engage();
}

#[test]
fn each_bad_command_has_its_name() {
    let table: [(Rule, Mangle); 6] = [
        (Rule::CommandNotFinite, |command| command.position_m.x = f64::NAN),
        (Rule::CommandNotFinite, |command| command.linear_m_s.z = f64::INFINITY),
        (Rule::CommandNotFinite, |command| command.scale = 0.0),
        (Rule::CommandLeap, |command| command.position_m.y += 0.5),
        (Rule::AgeUnknown, |command| command.bound = None),
        (Rule::AgeUnknown, |command| command.bound = Some(Span::from_s(1))),
    ];
    for (rule, mangle) in table {
        let mut bench = Bench::new(ControllerConfig::default());
        bench.engage();
        bench.run(Span::from_ms(1_200));
        bench.mangle = mangle;
        let took = bench.until_stopped(rule);
        assert!(took <= stop_time(), "{rule:?}: {took}");
        bench.mangle = |_| {};
        bench.engage();
    }
}

#[test]
fn out_of_reach_is_named_when_the_window_allows_it() {
    let mut config = ControllerConfig::default();
    config.validator.window.lower_m = Vector::from_element(-5.0);
    config.validator.window.upper_m = Vector::from_element(5.0);
    config.validator.sigma_min = 0.0;
    config.validator.table_z_m = -5.0;
    let mut bench = Bench::new(config);
    bench.hand = Hand::Lissajous { amplitude_m: [0.8, 0.0], frequency_hz: [0.1, 0.1] };
    bench.engage();
    bench.until_stopped_by_any(&[
        Rule::OutOfReach,
        Rule::BranchChange,
        Rule::SelfCollision,
        Rule::JointPosition,
    ]);
}

impl Bench {
    fn until_stopped_by_any(&mut self, rules: &[Rule]) {
        for _ in 0..20_000 {
            self.run(Span::from_ms(1));
            if let Mode::Stopped(rule) = self.mode() {
                assert!(rules.contains(&rule), "stopped by {rule:?}");
                return;
            }
        }
        panic!("it did not stop: {:?}", self.controller.state());
    }
}

#[test]
fn the_window_holds_the_goal_back() {
    let mut bench = Bench::new(ControllerConfig::default());
    bench.hand = Hand::Lissajous { amplitude_m: [0.4, 0.0], frequency_hz: [0.2, 0.2] };
    bench.engage();
    let mut worst_m = 0.0_f64;
    for _ in 0..6_000 {
        bench.run(Span::from_ms(1));
        assert_eq!(bench.mode(), Mode::Engaged);
        let window = bench.controller.config().validator.window;
        let flange = bench.controller.state().flange.translation.vector;
        worst_m = worst_m.max(window.excess_m(&flange));
    }
    println!("{:.1} mm outside", worst_m * 1e3);
    assert!(worst_m < 0.005, "{worst_m}");
}

#[test]
fn a_second_operator_is_refused_until_the_first_lets_go() {
    let mut bench = Bench::new(ControllerConfig::default());
    bench.engage();
    for _ in 0..100 {
        bench.run(Span::from_ms(1));
        let other = Command { operator: 2, ..bench.command() };
        bench.controller.handle_command(bench.now, other);
    }
    assert_eq!(bench.mode(), Mode::Engaged);
    assert_eq!(bench.controller.state().rules.of(Rule::OtherOperator), 100);
    bench.clutch = false;
    bench.run(Span::from_ms(400));
    bench.operator = 2;
    bench.clutch = true;
    bench.run(Span::from_ms(100));
    assert_eq!(bench.mode(), Mode::Idle, "a new operator must release the clutch first");
    bench.engage();
}

#[test]
fn a_stall_of_100_ms_stops_it() {
    let mut bench = Bench::new(ControllerConfig::default());
    bench.engage();
    bench.run(Span::from_ms(1_200));
    bench.now += Span::from_ms(100);
    bench.until_stopped(Rule::LoopStalled);
}

#[test]
fn a_command_that_was_overtaken_is_counted_and_ignored() {
    let mut bench = Bench::new(ControllerConfig::default());
    bench.engage();
    let mut old = bench.command();
    old.source_time -= Span::from_ms(10);
    old.clutch = false;
    bench.controller.handle_command(bench.now, old);
    bench.run(Span::from_ms(1));
    assert_eq!((bench.mode(), bench.controller.state().outdated), (Mode::Engaged, 1));
}

#[test]
fn holding_and_extrapolating_differ_as_speed_times_age() {
    let errors = [CommandMode::Hold, CommandMode::Age].map(|mode| {
        let mut bench = Bench::new(ControllerConfig { mode, ..ControllerConfig::default() });
        bench.hand = Hand::Lissajous { amplitude_m: [0.05, 0.05], frequency_hz: [0.5, 0.75] };
        bench.delay = Span::from_ms(20);
        bench.engage();
        let home = bench.controller.state().flange.translation.vector;
        bench.run(Span::from_ms(2_500));
        let mut sum = 0.0;
        for _ in 0..4_000 {
            bench.run(Span::from_ms(1));
            let hand = bench.hand.at(bench.time_s());
            sum +=
                (bench.controller.state().flange.translation.vector - home - hand.position_m).norm_squared();
        }
        assert_eq!(bench.mode(), Mode::Engaged);
        (sum / 4_000.0).sqrt() * 1e3
    });
    println!("hold {:.2} mm, age {:.2} mm", errors[0], errors[1]);
    assert!(errors[0] > 3.0 && errors[1] < errors[0] / 5.0, "{errors:?}");
}

#[test]
fn a_command_from_the_future_is_refused() {
    let mut bench = Bench::new(ControllerConfig::default());
    bench.engage();
    bench.run(Span::from_ms(1_200));
    // The operator's clock leaps ahead: by this date a command would stay fresh for 5 s of silence.
    bench.mangle = |command| command.source_time += Span::from_s(5);
    bench.run(Span::from_ms(1));
    bench.speaks = false;
    let took = bench.until_stopped(Rule::AgeUnknown);
    assert!(took <= stop_time());
    assert!(bench.controller.state().command_age.is_some_and(|age| age >= Span::ZERO));
}
