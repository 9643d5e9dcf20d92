//! The motor of a joint: a second-order system from voltage to rotor speed, and the integrator behind it.

use nalgebra::{Matrix3, Matrix4, Vector3};

/// `gain / (s² + damping·s + stiffness)` from voltage to the speed signal, and `per_speed / s` from there to the angle.
///
/// The default is the seed's: a student's DC motor, not a UR5 joint.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MotorModel {
    /// Numerator of the transfer function.
    pub gain: f64,
    /// Coefficient of s.
    pub damping: f64,
    /// Constant term of the denominator.
    pub stiffness: f64,
    /// Joint speed in rad/s per unit of the speed signal: 15 = 180 / 12.
    pub per_speed: f64,
}

impl Default for MotorModel {
    fn default() -> MotorModel {
        MotorModel { gain: 361.0, damping: 3.098, stiffness: 56.11, per_speed: 15.0 }
    }
}

impl MotorModel {
    /// Derivative of (speed signal, its derivative, angle) as a matrix, and the effect of the voltage.
    pub fn state_space(&self) -> (Matrix3<f64>, Vector3<f64>) {
        #[rustfmt::skip]
        let a = Matrix3::new(
            0.0, 1.0, 0.0,
            -self.stiffness, -self.damping, 0.0,
            self.per_speed, 0.0, 0.0,
        );
        (a, Vector3::new(0.0, self.gain, 0.0))
    }

    /// The same over `step_s` with the voltage held: exact, not Euler's.
    pub fn held(&self, step_s: f64) -> (Matrix3<f64>, Vector3<f64>) {
        let (a, b) = self.state_space();
        let mut whole = Matrix4::zeros();
        whole.fixed_view_mut::<3, 3>(0, 0).copy_from(&a);
        whole.fixed_view_mut::<3, 1>(0, 3).copy_from(&b);
        let exponential = (whole * step_s).exp();
        (exponential.fixed_view::<3, 3>(0, 0).into_owned(), exponential.fixed_view::<3, 1>(0, 3).into_owned())
    }
}

/// A motor that runs in fixed steps.
#[derive(Clone, Debug)]
pub struct Motor {
    transition: Matrix3<f64>,
    input: Vector3<f64>,
    per_speed: f64,
    state: Vector3<f64>,
}

impl Motor {
    /// A motor at rest at `angle_rad`.
    pub fn new(model: &MotorModel, step_s: f64, angle_rad: f64) -> Motor {
        let (transition, input) = model.held(step_s);
        Motor { transition, input, per_speed: model.per_speed, state: Vector3::new(0.0, 0.0, angle_rad) }
    }

    /// One step with this voltage.
    pub fn step(&mut self, voltage_v: f64) {
        self.state = self.transition * self.state + self.input * voltage_v;
    }

    /// Its angle, rad.
    pub fn angle_rad(&self) -> f64 {
        self.state.z
    }

    /// Its speed, rad/s.
    pub fn velocity_rad_s(&self) -> f64 {
        self.state.x * self.per_speed
    }
}
