//! A motion that joints can follow: limits of velocity, acceleration and jerk, planned anew every period from the
//! present state.

use rsruckig::prelude::{
    ControlInterface, IgnoreErrorHandler, InputParameter, OutputParameter, Ruckig, RuckigResult,
    Synchronization, TargetState, Trackig,
};

use crate::Joints;

/// Both poles of the linear law near to a goal, rad/s.
const SERVO_RAD_S: f64 = 40.0;
/// Errors within which the linear law acts.
const SERVO_POSITION_RAD: f64 = 0.03;
const SERVO_VELOCITY_RAD_S: f64 = 0.6;

/// Limits of every joint's motion.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProfileLimits {
    /// Greatest speed of each joint.
    pub velocity_rad_s: f64,
    /// Greatest acceleration of each joint.
    pub acceleration_rad_s2: f64,
    /// Greatest jerk of each joint.
    pub jerk_rad_s3: f64,
    /// Greatest acceleration of each joint while it ramps to standstill.
    pub stop_acceleration_rad_s2: f64,
    /// Greatest jerk of each joint while it ramps to standstill.
    pub stop_jerk_rad_s3: f64,
}

impl Default for ProfileLimits {
    /// 180 °/s is the manufacturer's; acceleration and jerk are not published and are ours.
    fn default() -> ProfileLimits {
        ProfileLimits {
            velocity_rad_s: std::f64::consts::PI,
            acceleration_rad_s2: 15.0,
            jerk_rad_s3: 500.0,
            stop_acceleration_rad_s2: 40.0,
            stop_jerk_rad_s3: 4_000.0,
        }
    }
}

impl ProfileLimits {
    /// The longest that a ramp to standstill takes, s, from full velocity and full acceleration away from rest.
    pub fn stop_time_max_s(&self) -> f64 {
        let (a, j) = (self.stop_acceleration_rad_s2, self.stop_jerk_rad_s3);
        // The acceleration that is left turns first; what it adds to the velocity meanwhile must go, too.
        let turning_s = self.acceleration_rad_s2 / j;
        let fastest = self.velocity_rad_s + self.acceleration_rad_s2 * turning_s / 2.0;
        turning_s + fastest / a + a / j
    }
}

/// Where joints are on the profile.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Motion {
    /// rad.
    pub position_rad: Joints,
    /// rad/s.
    pub velocity_rad_s: Joints,
    /// rad/s².
    pub acceleration_rad_s2: Joints,
}

impl Motion {
    /// Joints at rest.
    pub fn at_rest(position_rad: Joints) -> Motion {
        Motion { position_rad, ..Motion::default() }
    }

    /// A little later, with the acceleration kept.
    pub fn after(&self, seconds: f64) -> Motion {
        Motion {
            position_rad: self.position_rad
                + self.velocity_rad_s * seconds
                + self.acceleration_rad_s2 * (seconds * seconds / 2.0),
            velocity_rad_s: self.velocity_rad_s + self.acceleration_rad_s2 * seconds,
            acceleration_rad_s2: self.acceleration_rad_s2,
        }
    }

    /// Neither velocity nor acceleration is left.
    pub fn is_still(&self) -> bool {
        self.velocity_rad_s.amax() < 1e-6 && self.acceleration_rad_s2.amax() < 1e-3
    }
}

/// Plans motions under limits. The planner is Ruckig (Berscheid 2021), in its port to Rust.
pub struct Profile {
    limits: ProfileLimits,
    step_s: f64,
    tracker: Trackig<6, IgnoreErrorHandler>,
    stopper: Ruckig<6, IgnoreErrorHandler>,
    input: InputParameter<6>,
    output: OutputParameter<6>,
    motion: Motion,
    failures: u64,
}

impl std::fmt::Debug for Profile {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Profile")
            .field("limits", &self.limits)
            .field("motion", &self.motion)
            .finish_non_exhaustive()
    }
}

impl Profile {
    /// A profile at rest at `position_rad`; each call advances by `step_s`.
    pub fn new(limits: ProfileLimits, step_s: f64, position_rad: Joints) -> Profile {
        let mut input = InputParameter::new(None);
        input.synchronization = Synchronization::None;
        Profile {
            limits,
            step_s,
            tracker: Trackig::new(None, step_s),
            stopper: Ruckig::new(None, step_s),
            input,
            output: OutputParameter::new(None),
            motion: Motion::at_rest(position_rad),
            failures: 0,
        }
    }

    /// Present position, velocity and acceleration.
    pub fn motion(&self) -> &Motion {
        &self.motion
    }

    /// Puts it somewhere else, for a loop that was driven without it.
    pub fn set_motion(&mut self, motion: Motion) {
        self.motion = motion;
        self.tracker.reset();
        self.stopper.reset();
    }

    /// Plans that failed numerically; each was replaced by a step of the ramp to standstill.
    pub fn failures(&self) -> u64 {
        self.failures
    }

    /// Advances one period towards a moving goal: where it is to be at the end of the period.
    ///
    /// Far from the goal a joint follows the fastest plan to it. A plan made anew each period lags behind a goal that
    /// accelerates, so near to the goal a linear law takes over, as long as it stays within all limits.
    pub fn track(&mut self, wanted: &Motion) {
        let ProfileLimits { acceleration_rad_s2, jerk_rad_s3, .. } = self.limits;
        self.load(ControlInterface::Position, acceleration_rad_s2, jerk_rad_s3);
        let mut goal = TargetState::new(None);
        for joint in 0..6 {
            goal.position[joint] = wanted.position_rad[joint];
            goal.velocity[joint] = self.reachable_velocity(joint, wanted);
        }
        let before = self.motion;
        match self.tracker.update(&goal, &self.input, &mut self.output) {
            Ok(RuckigResult::Working | RuckigResult::Finished) => {
                self.unload();
                for joint in 0..6 {
                    self.servo(joint, &before, wanted);
                }
            }
            _ => {
                self.failures += 1;
                self.stop();
            }
        }
    }

    /// Advances one period towards standstill.
    pub fn stop(&mut self) {
        let ProfileLimits { stop_acceleration_rad_s2, stop_jerk_rad_s3, .. } = self.limits;
        self.load(ControlInterface::Velocity, stop_acceleration_rad_s2, stop_jerk_rad_s3);
        for joint in 0..6 {
            self.input.target_velocity[joint] = 0.0;
            self.input.target_acceleration[joint] = 0.0;
        }
        self.stopper.reset();
        match self.stopper.update(&self.input, &mut self.output) {
            Ok(RuckigResult::Working) => self.unload(),
            Ok(RuckigResult::Finished) => {
                self.unload();
                self.motion = Motion::at_rest(self.motion.position_rad);
            }
            _ => {
                self.failures += 1;
                self.motion = Motion::at_rest(self.motion.position_rad);
            }
        }
        self.tracker.reset();
    }

    /// The goal's velocity as far as the joint can have it when it gets there.
    ///
    /// The fastest plan to a goal that is near and fast begins with a run-up, away from the goal; nobody expects that
    /// of an arm, so the plan asks for no more velocity than the way to the goal gives.
    fn reachable_velocity(&self, joint: usize, wanted: &Motion) -> f64 {
        let way_rad = wanted.position_rad[joint] - self.motion.position_rad[joint];
        let (velocity, goal) = (self.motion.velocity_rad_s[joint], wanted.velocity_rad_s[joint]);
        if way_rad * goal <= 0.0 {
            return 0.0;
        }
        let present = if velocity * goal > 0.0 { velocity } else { 0.0 };
        // Half of the acceleration: the jerk's limit takes its share.
        let most = (present * present + self.limits.acceleration_rad_s2 * way_rad.abs()).sqrt();
        goal.clamp(-most, most)
    }

    /// Replaces a joint's planned state by the linear law's, if that is within all limits.
    fn servo(&mut self, joint: usize, before: &Motion, wanted: &Motion) {
        let ProfileLimits { velocity_rad_s, acceleration_rad_s2, jerk_rad_s3, .. } = self.limits;
        let (position, velocity) = (before.position_rad[joint], before.velocity_rad_s[joint]);
        let old = before.acceleration_rad_s2[joint];
        // Errors against the goal as it is at the beginning of the period.
        let step_s = self.step_s;
        let goal_velocity = wanted.velocity_rad_s[joint] - wanted.acceleration_rad_s2[joint] * step_s;
        let position_error = wanted.position_rad[joint] - wanted.velocity_rad_s[joint] * step_s - position;
        let velocity_error = goal_velocity - velocity;
        let free = wanted.acceleration_rad_s2[joint]
            + 2.0 * SERVO_RAD_S * velocity_error
            + SERVO_RAD_S * SERVO_RAD_S * position_error;
        let change = jerk_rad_s3 * step_s;
        let acceleration =
            free.clamp(old - change, old + change).clamp(-acceleration_rad_s2, acceleration_rad_s2);
        let new_velocity = velocity + (old + acceleration) / 2.0 * step_s;
        // Growth of the velocity while the acceleration is taken back.
        let overshoot = acceleration * acceleration / (2.0 * jerk_rad_s3);
        let is_within = position_error.abs() <= SERVO_POSITION_RAD
            && velocity_error.abs() <= SERVO_VELOCITY_RAD_S
            && (acceleration - old).abs() <= change * (1.0 + 1e-9)
            && new_velocity.abs() + overshoot <= velocity_rad_s;
        if is_within {
            self.motion.position_rad[joint] =
                position + velocity * step_s + (2.0 * old + acceleration) / 6.0 * step_s * step_s;
            self.motion.velocity_rad_s[joint] = new_velocity;
            self.motion.acceleration_rad_s2[joint] = acceleration;
        }
    }

    fn load(&mut self, interface: ControlInterface, acceleration_rad_s2: f64, jerk_rad_s3: f64) {
        self.input.control_interface = interface;
        for joint in 0..6 {
            self.input.current_position[joint] = self.motion.position_rad[joint];
            self.input.current_velocity[joint] = self.motion.velocity_rad_s[joint];
            self.input.current_acceleration[joint] = self.motion.acceleration_rad_s2[joint];
            self.input.max_velocity[joint] = self.limits.velocity_rad_s;
            self.input.max_acceleration[joint] = acceleration_rad_s2;
            self.input.max_jerk[joint] = jerk_rad_s3;
        }
    }

    fn unload(&mut self) {
        for joint in 0..6 {
            self.motion.position_rad[joint] = self.output.new_position[joint];
            self.motion.velocity_rad_s[joint] = self.output.new_velocity[joint];
            self.motion.acceleration_rad_s2[joint] = self.output.new_acceleration[joint];
        }
    }

    /// Length of a period, s.
    pub fn step_s(&self) -> f64 {
        self.step_s
    }
}
