//! Control analysis of a joint's loop: margins in both directions, delay margin, poles, step response.
//!
//! The loop is analysed twice: continuous, as textbooks do, and sampled, as it runs: the motor held between samples,
//! the controller in backward-Euler steps, and as many whole samples of delay as the computation or a network takes.

mod frequency;
mod step;

pub use frequency::{Crossing, Margins, Response, margins};
pub use step::{
    StepMetrics, StepPoint, closed_loop, is_stable, spectral_radius, step_metrics, step_response,
};

use nalgebra::{Complex, Matrix3, Vector3};

use crate::joint_loop::LoopConfig;

/// A complex value.
pub type Value = Complex<f64>;

/// Model by which a loop is analysed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum View {
    /// The loop as differential equations.
    Continuous,
    /// The loop as it runs at its rate, with whole samples of delay.
    Sampled {
        /// Samples between measurement and voltage: 0 is none, 1 the usual computation.
        delay_samples: u32,
    },
}

/// A loop that can be asked for its frequency response.
#[derive(Clone, Debug)]
pub struct OpenLoop {
    config: LoopConfig,
    view: View,
    transition: Matrix3<f64>,
    input: Vector3<f64>,
}

impl OpenLoop {
    /// Prepares the view.
    pub fn new(config: &LoopConfig, view: View) -> OpenLoop {
        let (transition, input) = config.motor.held(1.0 / config.rate_hz);
        OpenLoop { config: *config, view, transition, input }
    }

    /// The controller alone, at this angular frequency.
    pub fn controller(&self, omega_rad_s: f64) -> Value {
        let gains = self.config.gains;
        let s = match self.view {
            View::Continuous => Value::new(0.0, omega_rad_s),
            View::Sampled { .. } => {
                let z = self.z(omega_rad_s);
                (z - 1.0) / z * self.config.rate_hz
            }
        };
        Value::from(gains.p) + s.inv() * gains.i + s * gains.d * gains.n / (s + gains.n)
    }

    /// The motor with both of its feedbacks: speed, and position times its gain, in the controller's units.
    pub fn plant(&self, omega_rad_s: f64) -> Value {
        let LoopConfig { motor, position_gain_per_s, .. } = self.config;
        match self.view {
            View::Continuous => {
                let s = Value::new(0.0, omega_rad_s);
                let speed = Value::from(motor.gain) / (s * s + s * motor.damping + motor.stiffness);
                speed * (Value::from(1.0) + s.inv() * position_gain_per_s)
            }
            View::Sampled { delay_samples } => {
                let z = self.z(omega_rad_s);
                let shifted = Matrix3::from_diagonal_element(z) - self.transition.map(Value::from);
                let state = shifted.try_inverse().map(|inverse| inverse * self.input.map(Value::from));
                let state = state.unwrap_or_else(|| Vector3::from_element(Value::from(f64::INFINITY)));
                let output = state.x + state.z * (position_gain_per_s / motor.per_speed);
                output * z.powi(-(delay_samples as i32))
            }
        }
    }

    /// The motor alone, from voltage to its speed signal; continuous.
    pub fn motor_alone(&self, omega_rad_s: f64) -> Value {
        let (s, motor) = (Value::new(0.0, omega_rad_s), self.config.motor);
        Value::from(motor.gain) / (s * s + s * motor.damping + motor.stiffness)
    }

    /// The whole open loop.
    pub fn at(&self, omega_rad_s: f64) -> Value {
        self.controller(omega_rad_s) * self.plant(omega_rad_s)
    }

    /// Above this angular frequency the loop has no meaning, rad/s.
    pub fn highest_rad_s(&self) -> f64 {
        match self.view {
            View::Continuous => 1e6,
            View::Sampled { .. } => std::f64::consts::PI * self.config.rate_hz,
        }
    }

    fn z(&self, omega_rad_s: f64) -> Value {
        Value::from_polar(1.0, omega_rad_s / self.config.rate_hz)
    }
}
