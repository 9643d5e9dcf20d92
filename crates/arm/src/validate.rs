//! Rules that hold each period, with a name and a counter; a rule that is broken stops the arm.

use noctule_timebase::Span;
use serde::Serialize;

use crate::capsules::{capsules, nearest_pair};
use crate::dh::Geometry;
use crate::{Joints, Pose, Vector};

/// Why a command was refused or the arm stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// The newest command is older than its deadline.
    CommandTooOld,
    /// The bound of a command's age is wider than allowed, or there is none.
    AgeUnknown,
    /// A command contains a number that is not finite, or a rotation that is none.
    CommandNotFinite,
    /// A command is further from the one before it than a hand can move meanwhile.
    CommandLeap,
    /// A command of another operator while one has the clutch. It is refused; the arm does not stop.
    OtherOperator,
    /// The pose has no solution.
    OutOfReach,
    /// All solutions are beyond a joint's limit.
    BeyondJointLimits,
    /// The arm would have to change to another of the eight solutions in the middle of a motion.
    BranchChange,
    /// Forward kinematics of the chosen solution is not the pose it was chosen for.
    Closure,
    /// The measured flange is too far from where the profile wants it.
    Tracking,
    /// A measured joint angle is beyond its limit.
    JointPosition,
    /// A measured joint velocity is beyond its limit.
    JointVelocity,
    /// A voltage is beyond its limit.
    Voltage,
    /// The smallest singular value of the Jacobian is too small.
    Singularity,
    /// The measured flange is outside of the window.
    Window,
    /// A part of the arm is below the table.
    Table,
    /// Two parts of the arm touch.
    SelfCollision,
    /// The loop itself stalled.
    LoopStalled,
}

impl Rule {
    /// All, in the order of their counters.
    pub const ALL: [Rule; 18] = [
        Rule::CommandTooOld,
        Rule::AgeUnknown,
        Rule::CommandNotFinite,
        Rule::CommandLeap,
        Rule::OtherOperator,
        Rule::OutOfReach,
        Rule::BeyondJointLimits,
        Rule::BranchChange,
        Rule::Closure,
        Rule::Tracking,
        Rule::JointPosition,
        Rule::JointVelocity,
        Rule::Voltage,
        Rule::Singularity,
        Rule::Window,
        Rule::Table,
        Rule::SelfCollision,
        Rule::LoopStalled,
    ];

    /// A sentence for people.
    pub fn sentence(self) -> &'static str {
        match self {
            Rule::CommandTooOld => "no command arrived within the deadline",
            Rule::AgeUnknown => "the age of a command is not known well enough",
            Rule::CommandNotFinite => "a command contained a number that is not finite",
            Rule::CommandLeap => "a command leapt further than a hand can move",
            Rule::OtherOperator => "another operator has the clutch",
            Rule::OutOfReach => "the commanded pose is out of reach",
            Rule::BeyondJointLimits => "the commanded pose is beyond a joint's limit",
            Rule::BranchChange => "the arm would have to turn over to reach the pose",
            Rule::Closure => "forward kinematics does not give back the commanded pose",
            Rule::Tracking => "the arm does not follow its profile",
            Rule::JointPosition => "a joint is beyond its limit",
            Rule::JointVelocity => "a joint is too fast",
            Rule::Voltage => "a voltage is beyond its limit",
            Rule::Singularity => "the arm is near to a singular pose",
            Rule::Window => "the tool left its window",
            Rule::Table => "the arm is below the table",
            Rule::SelfCollision => "two parts of the arm touch",
            Rule::LoopStalled => "the control loop stalled",
        }
    }
}

/// How often each rule was broken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RuleCounts([u64; Rule::ALL.len()]);

impl RuleCounts {
    /// Counts a break of a rule.
    pub fn count(&mut self, rule: Rule) {
        self.0[rule as usize] += 1;
    }

    /// Breaks of a rule.
    pub fn of(&self, rule: Rule) -> u64 {
        self.0[rule as usize]
    }

    /// All, in the order of [`Rule::ALL`].
    pub fn all(&self) -> [u64; Rule::ALL.len()] {
        self.0
    }
}

/// A box of space, m, base frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// Smallest coordinates.
    pub lower_m: Vector,
    /// Largest coordinates.
    pub upper_m: Vector,
}

impl Window {
    /// The nearest point inside.
    pub fn clamped(&self, point_m: &Vector) -> Vector {
        point_m.sup(&self.lower_m).inf(&self.upper_m)
    }

    /// How far a point is outside, m; 0 inside.
    pub fn excess_m(&self, point_m: &Vector) -> f64 {
        (point_m - self.clamped(point_m)).norm()
    }
}

impl Default for Window {
    /// The seed's working window of 300 × 310 mm, 150 mm deep about its height.
    fn default() -> Window {
        Window { lower_m: Vector::new(0.30, 0.13, -0.275), upper_m: Vector::new(0.60, 0.44, -0.125) }
    }
}

/// Limits of the rules about what was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct ValidatorConfig {
    /// Forward kinematics against the pose it was solved for, m.
    pub closure_m: f64,
    /// Measured flange against the profile's, m.
    pub tracking_m: f64,
    /// Magnitude of each joint's angle, rad.
    pub position_rad: Joints,
    /// Magnitude of each joint's velocity, rad/s.
    pub velocity_rad_s: f64,
    /// Magnitude of each voltage, V.
    pub voltage_v: f64,
    /// Smallest singular value.
    pub sigma_min: f64,
    /// The flange must be inside, but for [`ValidatorConfig::window_margin_m`].
    pub window: Window,
    /// How far the flange may overshoot the window, m.
    pub window_margin_m: f64,
    /// Deceleration with which the goal comes to the window's edge, m/s².
    pub brake_m_s2: f64,
    /// Height of the table in the base frame, m.
    pub table_z_m: f64,
    /// The widest bound of a command's age.
    pub age_bound_max: Span,
    /// Longer between two periods is a stall of the loop.
    pub stall: Span,
}

impl Default for ValidatorConfig {
    fn default() -> ValidatorConfig {
        use std::f64::consts::{PI, TAU};
        ValidatorConfig {
            closure_m: 1e-9,
            tracking_m: 0.03,
            position_rad: Joints::from([TAU, TAU, PI, TAU, TAU, TAU]),
            // The profile's limit and what the loop overshoots it by.
            velocity_rad_s: PI * 1.25,
            voltage_v: 24.0,
            sigma_min: 0.01,
            window: Window::default(),
            window_margin_m: 0.02,
            brake_m_s2: 1.0,
            table_z_m: -0.45,
            age_bound_max: Span::from_ms(20),
            stall: Span::from_ms(50),
        }
    }
}

/// Measurements of one period.
#[derive(Clone, Copy, Debug)]
pub struct Measured<'a> {
    /// Angles, rad.
    pub joints_rad: &'a Joints,
    /// Velocities, rad/s.
    pub velocity_rad_s: &'a Joints,
    /// Voltages, V.
    pub voltage_v: &'a Joints,
    /// Flange by these angles.
    pub flange: &'a Pose,
    /// Flange by the profile.
    pub wanted: &'a Pose,
    /// Smallest singular value.
    pub sigma_min: f64,
}

/// Whether a value is within a limit; NaN is within none.
pub(crate) fn is_within(value: f64, limit: f64) -> bool {
    value <= limit
}

/// The first rule that the measurement breaks. Costs a few µs.
pub fn broken_rule(config: &ValidatorConfig, geometry: &Geometry, measured: &Measured<'_>) -> Option<Rule> {
    let flange_m = measured.flange.translation.vector;
    let off_track_m = (flange_m - measured.wanted.translation.vector).norm();
    let beyond =
        measured.joints_rad.iter().zip(config.position_rad.iter()).any(|(angle, limit)| angle.abs() > *limit);
    let table = || {
        let capsules = capsules(geometry, measured.joints_rad);
        capsules[2..]
            .iter()
            .any(|capsule| capsule.from_m.z.min(capsule.to_m.z) - capsule.radius_m < config.table_z_m)
    };
    let touches = || nearest_pair(&capsules(geometry, measured.joints_rad)).2 < 0.0;
    if beyond || !measured.joints_rad.iter().all(|angle| angle.is_finite()) {
        Some(Rule::JointPosition)
    } else if !is_within(measured.velocity_rad_s.amax(), config.velocity_rad_s) {
        Some(Rule::JointVelocity)
    } else if !is_within(measured.voltage_v.amax(), config.voltage_v) {
        Some(Rule::Voltage)
    } else if !is_within(off_track_m, config.tracking_m) {
        Some(Rule::Tracking)
    } else if !is_within(config.sigma_min, measured.sigma_min) {
        Some(Rule::Singularity)
    } else if !is_within(config.window.excess_m(&flange_m), config.window_margin_m) {
        Some(Rule::Window)
    } else if table() {
        Some(Rule::Table)
    } else if touches() {
        Some(Rule::SelfCollision)
    } else {
        None
    }
}
