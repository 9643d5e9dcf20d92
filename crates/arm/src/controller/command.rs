//! A command as the controller takes it in.

use noctule_timebase::{Instant, Span};

use crate::clock::Controlling;
use crate::{Rotation, Vector};

/// Use of a command's age.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CommandMode {
    /// The newest command counts as it is.
    Hold,
    /// The newest command is extrapolated by its velocity to the present.
    #[default]
    Age,
}

/// A word that is no mode.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is no way to use a command; use hold or age")]
pub struct UnknownMode(String);

impl std::str::FromStr for CommandMode {
    type Err = UnknownMode;

    fn from_str(text: &str) -> Result<CommandMode, UnknownMode> {
        match text {
            "hold" => Ok(CommandMode::Hold),
            "age" => Ok(CommandMode::Age),
            _ => Err(UnknownMode(text.to_owned())),
        }
    }
}

/// A pose that an operator's hand had.
#[derive(Clone, Debug, PartialEq)]
pub struct Command {
    /// Number of the operator; one at a time has the arm.
    pub operator: u64,
    /// Position of the hand, m.
    pub position_m: Vector,
    /// Orientation of the hand.
    pub rotation: Rotation,
    /// Velocity of the hand, m/s.
    pub linear_m_s: Vector,
    /// Angular velocity of the hand, rad/s.
    pub angular_rad_s: Vector,
    /// The dead man's switch is held.
    pub clutch: bool,
    /// Metres of the arm per metre of the hand.
    pub scale: f64,
    /// When the hand was there, in the controller's clock.
    pub source_time: Instant<Controlling>,
    /// How wrong the source time may be to either side; `None` if nothing is known.
    pub bound: Option<Span>,
}

impl Command {
    /// All numbers are finite, the scale makes sense and the rotation is one.
    pub fn is_finite(&self) -> bool {
        let vectors = [&self.position_m, &self.linear_m_s, &self.angular_rad_s];
        let is_rotation = (self.rotation.matrix().determinant() - 1.0).abs() < 1e-6;
        vectors.iter().all(|vector| vector.iter().all(|value| value.is_finite()))
            && is_rotation
            && (0.01..=10.0).contains(&self.scale)
    }
}
