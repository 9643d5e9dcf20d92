//! The controller of the arm: commands with ages in, joint states out.
//!
//! Drain order: any number of [`Controller::handle_command`], then one [`Controller::step`] each period; the state is
//! read after it. Every fourth period (1 kHz at 4 kHz) it plans: the newest command is brought to the present by its
//! age, clamped to the window, solved, selected and handed to the profile. Every period the joint loops run and the
//! validator looks.
//!
//! The clutch makes hand and arm one: at the moment it is pressed the difference of both is kept, so that the arm
//! never leaps to a hand. After every stop only a clutch that was released and pressed again moves the arm.

mod command;
mod prediction;

pub use crate::clock::Controlling;
pub use command::{Command, CommandMode};

use noctule_timebase::{Instant, Span};
use serde::Serialize;

use crate::dh::Geometry;
use crate::forward::flange;
use crate::inverse::{Branch, inverse};
use crate::jacobian::{jacobian, singular_values};
use crate::joint_loop::{JointLoop, LoopConfig, Reference};
use crate::profile::{Motion, Profile, ProfileLimits};
use crate::select::{NoSelection, Selector, SelectorConfig};
use crate::validate::{Measured, Rule, RuleCounts, ValidatorConfig, broken_rule, is_within};
use crate::{Joints, Pose};

use self::prediction::{Drift, Grip, Prediction};

/// Time constant with which the acceleration of the goal is smoothed, s.
const ACCELERATION_SMOOTHING_S: f64 = 0.01;

/// Periods of the joint loop in one of the planner.
pub const PERIODS_PER_PLAN: u64 = 4;

/// Configuration of a controller.
#[derive(Clone, Debug, PartialEq)]
pub struct ControllerConfig {
    /// Lengths of the arm.
    pub geometry: Geometry,
    /// Use of a command's age.
    pub mode: CommandMode,
    /// A command older than this stops the arm.
    pub deadline: Span,
    /// Configuration of the selector.
    pub selector: SelectorConfig,
    /// Limits of the profile; `None` hands solutions to the joints as they are, as the experiment needs it.
    pub profile: Option<ProfileLimits>,
    /// The joints' loop.
    pub joint_loop: LoopConfig,
    /// Limits of the validator.
    pub validator: ValidatorConfig,
    /// Speed of the commanded flange, m/s; 0.25 is the usual reduced mode.
    pub flange_speed_max_m_s: f64,
    /// A command that asks for more speed than this since the one before is a leap, m/s.
    pub leap_speed_m_s: f64,
}

impl Default for ControllerConfig {
    fn default() -> ControllerConfig {
        ControllerConfig {
            geometry: Geometry::default(),
            mode: CommandMode::Age,
            deadline: Span::from_ms(100),
            selector: SelectorConfig::default(),
            profile: Some(ProfileLimits::default()),
            joint_loop: LoopConfig::cascade(),
            validator: ValidatorConfig::default(),
            flange_speed_max_m_s: 1.0,
            leap_speed_m_s: 5.0,
        }
    }
}

/// Mode of the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "mode", content = "rule")]
pub enum Mode {
    /// Holds its pose and waits for the clutch.
    Idle,
    /// Follows the operator.
    Engaged,
    /// The clutch was released: comes to rest.
    Releasing,
    /// Comes to rest because of a rule.
    Stopping(Rule),
    /// Stands because of a rule; a clutch released and pressed again engages.
    Stopped(Rule),
}

/// The state after a period.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct State {
    /// Mode of the controller.
    pub mode: Mode,
    /// Measured angles, rad.
    pub joints_rad: Joints,
    /// Measured velocities, rad/s.
    pub velocity_rad_s: Joints,
    /// Voltages, V.
    pub voltage_v: Joints,
    /// Flange by the measured angles.
    pub flange: Pose,
    /// Flange that the operator wants, at present.
    pub goal: Pose,
    /// Age of the newest command.
    pub command_age: Option<Span>,
    /// Bound of that age.
    pub command_bound: Option<Span>,
    /// The present solution's branch.
    pub branch: Option<Branch>,
    /// Smallest singular value.
    pub sigma_min: f64,
    /// How often the branch changed.
    pub flips: u64,
    /// Commands that were taken in.
    pub commands: u64,
    /// Commands that came later than a newer one.
    pub outdated: u64,
    /// Periods that ran.
    pub periods: u64,
    /// Rules that were broken.
    pub rules: RuleCounts,
}

/// The arm behind its commands.
#[derive(Debug)]
pub struct Controller {
    config: ControllerConfig,
    selector: Selector,
    profile: Profile,
    loops: [JointLoop; 6],
    newest: Option<Command>,
    /// The clutch was seen released since the last stop.
    may_engage: bool,
    grip: Option<Grip>,
    /// When the present plan was made; references between plans are extrapolated from it.
    planned_at_period: u64,
    drift: Drift,
    last_rates: Option<Joints>,
    goal_acceleration_rad_s2: Joints,
    last_step: Option<Instant<Controlling>>,
    state: State,
}

impl Controller {
    /// A controller of an arm at rest.
    pub fn new(config: ControllerConfig, joints_rad: Joints) -> Controller {
        let plan_s = PERIODS_PER_PLAN as f64 / config.joint_loop.rate_hz;
        let flange = flange(&config.geometry, &joints_rad);
        let state = State {
            mode: Mode::Idle,
            joints_rad,
            velocity_rad_s: Joints::zeros(),
            voltage_v: Joints::zeros(),
            flange,
            goal: flange,
            command_age: None,
            command_bound: None,
            branch: None,
            sigma_min: singular_values(&jacobian(&config.geometry, &joints_rad))[5],
            flips: 0,
            commands: 0,
            outdated: 0,
            periods: 0,
            rules: RuleCounts::default(),
        };
        Controller {
            selector: Selector::new(config.selector.clone(), config.geometry),
            profile: Profile::new(config.profile.unwrap_or_default(), plan_s, joints_rad),
            loops: std::array::from_fn(|joint| JointLoop::new(&config.joint_loop, joints_rad[joint])),
            newest: None,
            may_engage: false,
            grip: None,
            planned_at_period: 0,
            drift: Drift::default(),
            last_rates: None,
            goal_acceleration_rad_s2: Joints::zeros(),
            last_step: None,
            config,
            state,
        }
    }

    /// The state after the last period.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Its configuration.
    pub fn config(&self) -> &ControllerConfig {
        &self.config
    }

    /// Present state of the profile.
    pub fn motion(&self) -> &Motion {
        self.profile.motion()
    }

    /// Takes a command in. A bad one stops the arm; one of another operator is refused; an outdated one is counted.
    pub fn handle_command(&mut self, now: Instant<Controlling>, command: Command) {
        let is_engaged = self.state.mode == Mode::Engaged;
        if let Some(newest) = &self.newest {
            let is_silent = now - newest.source_time > self.config.deadline;
            if newest.operator != command.operator && newest.clutch && !is_silent {
                self.state.rules.count(Rule::OtherOperator);
                return;
            }
            if newest.operator == command.operator && command.source_time <= newest.source_time {
                self.state.outdated += 1;
                return;
            }
        }
        if !command.is_finite() {
            self.breaks(Rule::CommandNotFinite);
            return;
        }
        if command.source_time - now > self.config.validator.age_bound_max {
            // By this clock it would stay fresh long after its operator has fallen silent.
            self.breaks(Rule::AgeUnknown);
            return;
        }
        self.state.commands += 1;
        let of_same = self.newest.as_ref().filter(|newest| newest.operator == command.operator);
        let (is_same, leaps) =
            (of_same.is_some(), of_same.is_some_and(|newest| self.is_leap(newest, &command)));
        if is_engaged && leaps {
            self.breaks(Rule::CommandLeap);
        }
        self.may_engage &= is_same;
        self.may_engage |= !command.clutch;
        self.newest = Some(command);
    }

    fn is_leap(&self, newest: &Command, command: &Command) -> bool {
        let seconds = (command.source_time - newest.source_time).as_s_f64();
        let moved_m = (command.position_m - newest.position_m).norm() * command.scale;
        // A hand may twitch by a millimetre in no time.
        moved_m > self.config.leap_speed_m_s * seconds + 1e-3
    }

    /// One period of the joint loop.
    pub fn step(&mut self, now: Instant<Controlling>) {
        let stalled = self.last_step.is_some_and(|last| now - last > self.config.validator.stall);
        self.last_step = Some(now);
        if stalled {
            self.breaks(Rule::LoopStalled);
        }
        if self.state.periods.is_multiple_of(PERIODS_PER_PLAN) {
            self.plan(now);
        }
        self.run_joints();
        self.state.periods += 1;
        self.validate();
    }

    /// A rule was broken: counts it and stops what moves.
    fn breaks(&mut self, rule: Rule) {
        self.state.rules.count(rule);
        if matches!(self.state.mode, Mode::Engaged | Mode::Releasing) {
            self.state.mode = Mode::Stopping(rule);
            self.let_go();
        }
    }

    fn let_go(&mut self) {
        self.grip = None;
        self.may_engage = false;
        self.last_rates = None;
        self.drift = Drift::default();
        self.goal_acceleration_rad_s2 = Joints::zeros();
        if self.config.profile.is_none() {
            // The profile was passed by: it takes over where the references are.
            self.profile.set_motion(Motion { acceleration_rad_s2: Joints::zeros(), ..self.present() });
        }
    }

    fn plan(&mut self, now: Instant<Controlling>) {
        self.planned_at_period = self.state.periods;
        self.state.command_age = self.newest.as_ref().map(|command| now - command.source_time);
        self.state.command_bound = self.newest.as_ref().and_then(|command| command.bound);
        self.follow_clutch(now);
        match self.state.mode {
            Mode::Engaged => self.follow(now),
            Mode::Idle | Mode::Stopped(_) => {
                self.profile.set_motion(Motion::at_rest(self.profile.motion().position_rad))
            }
            Mode::Releasing | Mode::Stopping(_) => {
                self.profile.stop();
                if self.profile.motion().is_still() {
                    self.state.mode = match self.state.mode {
                        Mode::Stopping(rule) => Mode::Stopped(rule),
                        _ => Mode::Idle,
                    };
                }
            }
        }
    }

    /// Engages, releases, or stops for age.
    fn follow_clutch(&mut self, now: Instant<Controlling>) {
        let Some(command) = self.newest.clone() else { return };
        let is_old = now - command.source_time > self.config.deadline;
        match self.state.mode {
            Mode::Engaged if is_old => self.breaks(Rule::CommandTooOld),
            Mode::Engaged if !command.clutch => {
                self.state.mode = Mode::Releasing;
                self.let_go();
                // Released by the operator: the same clutch may be pressed again.
                self.may_engage = true;
            }
            Mode::Idle | Mode::Stopped(_) if command.clutch && !is_old && self.may_engage => {
                if command.bound.is_none_or(|bound| bound > self.config.validator.age_bound_max) {
                    self.breaks(Rule::AgeUnknown);
                    return;
                }
                self.selector.reset();
                self.grip =
                    Some(Grip::new(&self.predicted(&command, now), &self.state.flange, command.scale));
                self.state.goal = self.state.flange;
                self.state.mode = Mode::Engaged;
            }
            _ => {}
        }
    }

    fn predicted(&self, command: &Command, now: Instant<Controlling>) -> Prediction {
        let age = (now - command.source_time).max(Span::ZERO).min(self.config.deadline);
        Prediction::new(command, self.config.mode, age.as_s_f64())
    }

    /// Turns the newest command into a motion of the profile.
    fn follow(&mut self, now: Instant<Controlling>) {
        let (Some(command), Some(grip)) = (&self.newest, &self.grip) else { return };
        if command.bound.is_none_or(|bound| bound > self.config.validator.age_bound_max) {
            self.breaks(Rule::AgeUnknown);
            return;
        }
        let wanted = grip.applied(&self.predicted(command, now));
        let limited = self.limited(wanted);
        self.state.goal = limited.pose;
        let at = *self.profile.motion();
        let solutions = inverse(&self.config.geometry, &limited.pose, &at.position_rad);
        let selection = match self.selector.select(&solutions, &at.position_rad, now) {
            Ok(selection) => selection,
            Err(NoSelection::NoSolution) => return self.breaks(Rule::OutOfReach),
            Err(NoSelection::BeyondLimits { .. }) => return self.breaks(Rule::BeyondJointLimits),
        };
        self.state.branch = Some(selection.branch);
        self.state.flips = self.selector.flips();
        if selection.is_flip {
            return self.breaks(Rule::BranchChange);
        }
        let closed = flange(&self.config.geometry, &selection.joints_rad);
        let gap_m = (closed.translation.vector - limited.pose.translation.vector).norm();
        if !is_within(gap_m, self.config.validator.closure_m) {
            return self.breaks(Rule::Closure);
        }
        let rates = self.joint_rates(&selection.joints_rad, &limited, selection.sigma_min);
        let wanted =
            Motion { position_rad: selection.joints_rad, velocity_rad_s: rates, ..Motion::default() };
        match self.config.profile {
            Some(_) => {
                let acceleration_rad_s2 = self.goal_acceleration(&rates);
                let plan_s = self.profile.step_s();
                // The profile then is at the end of the period: `present` goes back from there.
                self.profile.track(&Motion { acceleration_rad_s2, ..wanted }.after(plan_s));
            }
            None => self.profile.set_motion(wanted),
        }
    }

    /// How the goal's velocity changes, smoothed: it is a difference of differences.
    fn goal_acceleration(&mut self, rates: &Joints) -> Joints {
        let plan_s = self.profile.step_s();
        let raw = self.last_rates.map_or_else(Joints::zeros, |last| (rates - last) / plan_s);
        self.last_rates = Some(*rates);
        self.goal_acceleration_rad_s2 +=
            (raw - self.goal_acceleration_rad_s2) * (plan_s / ACCELERATION_SMOOTHING_S);
        self.goal_acceleration_rad_s2
    }

    /// Inside the window, no faster than allowed, and slower the nearer the window's edge is.
    fn limited(&mut self, mut wanted: Prediction) -> Prediction {
        let plan_s = self.profile.step_s();
        let ValidatorConfig { window, brake_m_s2, .. } = &self.config.validator;
        let from = self.state.goal.translation.vector;
        let mut step = window.clamped(&wanted.pose.translation.vector) - from;
        for axis in 0..3 {
            let free_m = if step[axis] > 0.0 {
                window.upper_m[axis] - from[axis]
            } else {
                from[axis] - window.lower_m[axis]
            };
            let longest_m = (2.0 * brake_m_s2 * free_m.max(0.0)).sqrt() * plan_s;
            step[axis] = step[axis].clamp(-longest_m, longest_m);
        }
        let longest_m = self.config.flange_speed_max_m_s * plan_s;
        let share = longest_m / step.norm().max(longest_m);
        let reached = from + step * share;
        let is_limited = (reached - wanted.pose.translation.vector).norm() > 1e-9;
        wanted.pose.translation.vector = reached;
        wanted.linear_m_s =
            self.drift.corrected(&wanted.linear_m_s, &((reached - from) / plan_s), plan_s, is_limited);
        wanted
    }

    /// Joint velocities for the wanted velocity of the flange; damped where the arm is nearly singular.
    fn joint_rates(&self, joints_rad: &Joints, wanted: &Prediction, sigma_min: f64) -> Joints {
        let jacobian = jacobian(&self.config.geometry, joints_rad);
        let mut twist = Joints::zeros();
        twist.fixed_rows_mut::<3>(0).copy_from(&wanted.linear_m_s);
        twist.fixed_rows_mut::<3>(3).copy_from(&wanted.angular_rad_s);
        let shortfall = (1.0 - sigma_min / self.config.selector.singular_sigma).max(0.0);
        if shortfall == 0.0
            && let Some(rates) = jacobian.lu().solve(&twist)
        {
            return rates;
        }
        let transposed = jacobian.transpose();
        let damping = nalgebra::SMatrix::<f64, 6, 6>::identity() * (0.05 * shortfall).powi(2).max(1e-12);
        let damped = (jacobian * transposed + damping).lu().solve(&twist);
        damped.map_or_else(Joints::zeros, |solved| transposed * solved)
    }

    /// The references between two plans: without a profile ahead from the plan, with one back from the period's end.
    fn present(&self) -> Motion {
        let since_s = (self.state.periods - self.planned_at_period) as f64 / self.config.joint_loop.rate_hz;
        let ahead_s = match (&self.config.profile, self.config.mode) {
            (Some(_), _) => since_s - self.profile.step_s(),
            // A held command is held between plans, too.
            (None, CommandMode::Hold) => 0.0,
            (None, CommandMode::Age) => since_s,
        };
        self.profile.motion().after(ahead_s)
    }

    fn run_joints(&mut self) {
        let wanted = self.present();
        for joint in 0..6 {
            let reference = Reference {
                position_rad: wanted.position_rad[joint],
                velocity_rad_s: wanted.velocity_rad_s[joint],
            };
            self.loops[joint].step(reference);
            self.state.joints_rad[joint] = self.loops[joint].angle_rad();
            self.state.velocity_rad_s[joint] = self.loops[joint].velocity_rad_s();
            self.state.voltage_v[joint] = self.loops[joint].voltage_v();
        }
    }

    fn validate(&mut self) {
        let geometry = self.config.geometry;
        self.state.flange = flange(&geometry, &self.state.joints_rad);
        let wanted = flange(&geometry, &self.present().position_rad);
        if self.state.periods.is_multiple_of(PERIODS_PER_PLAN) {
            self.state.sigma_min = singular_values(&jacobian(&geometry, &self.state.joints_rad))[5];
        }
        let measured = Measured {
            joints_rad: &self.state.joints_rad,
            velocity_rad_s: &self.state.velocity_rad_s,
            voltage_v: &self.state.voltage_v,
            flange: &self.state.flange,
            wanted: &wanted,
            sigma_min: self.state.sigma_min,
        };
        // At rest a rule may stay broken without end; it is counted while something moves.
        let moves = matches!(self.state.mode, Mode::Engaged | Mode::Releasing);
        if let Some(rule) = broken_rule(&self.config.validator, &geometry, &measured).filter(|_| moves) {
            self.breaks(rule);
        }
    }
}
