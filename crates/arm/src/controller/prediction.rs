//! Where the hand is by now, and where the arm shall be for it.

use super::{Command, CommandMode};
use crate::{Pose, Rotation, Vector};

/// A pose with its velocity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Prediction {
    pub(super) pose: Pose,
    pub(super) linear_m_s: Vector,
    pub(super) angular_rad_s: Vector,
}

impl Prediction {
    /// The hand of a command that is `age_s` old.
    pub(super) fn new(command: &Command, mode: CommandMode, age_s: f64) -> Prediction {
        let age_s = match mode {
            CommandMode::Hold => 0.0,
            CommandMode::Age => age_s,
        };
        let turned = Rotation::from_scaled_axis(command.angular_rad_s * age_s) * command.rotation;
        let moved = command.position_m + command.linear_m_s * age_s;
        Prediction {
            pose: Pose::from_parts(moved.into(), turned),
            linear_m_s: command.linear_m_s,
            angular_rad_s: command.angular_rad_s,
        }
    }
}

/// The difference of hand and arm when the clutch was pressed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grip {
    hand: Pose,
    arm: Pose,
    scale: f64,
}

impl Grip {
    pub(super) fn new(hand: &Prediction, arm: &Pose, scale: f64) -> Grip {
        Grip { hand: hand.pose, arm: *arm, scale }
    }

    /// The arm's pose for a hand's: translations are scaled, rotations are not.
    pub(super) fn applied(&self, hand: &Prediction) -> Prediction {
        let moved = hand.pose.translation.vector - self.hand.translation.vector;
        let turned = hand.pose.rotation * self.hand.rotation.inverse();
        let position = self.arm.translation.vector + moved * self.scale;
        Prediction {
            pose: Pose::from_parts(position.into(), turned * self.arm.rotation),
            linear_m_s: hand.linear_m_s * self.scale,
            angular_rad_s: hand.angular_rad_s,
        }
    }
}

/// Brings the velocity that a command names and the velocity with which its prediction moves together.
///
/// A hand that accelerates was slower when it sent its velocity; the prediction moves with `v + a·age`. Fed forward as
/// it is, the named velocity would hold the arm back by `a·age / K`. The difference changes slowly, so it is measured
/// from the goal's own motion and smoothed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Drift {
    difference_m_s: Vector,
    last_m_s: Option<Vector>,
}

/// Time constant of the measured difference, s.
const SMOOTHING_S: f64 = 0.005;

impl Drift {
    /// The velocity to feed forward: the named one corrected, or that of the goal itself where limits hold it back.
    pub(super) fn corrected(
        &mut self,
        named: &Vector,
        moved: &Vector,
        step_s: f64,
        is_limited: bool,
    ) -> Vector {
        let last = self.last_m_s.replace(*named);
        if is_limited {
            return *moved;
        }
        if let Some(last) = last {
            // Over the period the named velocity was, on average, between its two values.
            let difference = moved - (named + last) / 2.0;
            self.difference_m_s += (difference - self.difference_m_s) * (step_s / SMOOTHING_S);
        }
        named + self.difference_m_s
    }
}
