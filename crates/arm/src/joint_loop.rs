//! The loop of one joint at a fixed rate: reference in, voltage to the motor, angle out.
//!
//! The seed adds an error of position in rad to an error of speed in units of its motor, and feeds the sum to one PID.
//! In right units this is a cascade: `(K·(position error) + speed error) / 15` with `K` = 15 /s, so that both presets
//! have one structure and one loop, `L = C·G·(1 + K/s)`, and can be analysed as such.

use crate::motor::{Motor, MotorModel};
use crate::pid::{Gains, Limit, Pid};

/// Configuration of a joint's loop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoopConfig {
    /// The motor.
    pub motor: MotorModel,
    /// The speed controller.
    pub gains: Gains,
    /// Outer position gain, 1/s.
    pub position_gain_per_s: f64,
    /// Limit of the voltage, with anti-windup; `None` has no limit, as the seed.
    pub limit: Option<Limit>,
    /// The derivative acts on the measurement alone.
    pub derives_measurement: bool,
    /// Steps a second.
    pub rate_hz: f64,
    /// Resolution of the encoder, rad; 0 is exact.
    pub encoder_step_rad: f64,
}

impl LoopConfig {
    /// The seed's loop, with its faults: no limit of the voltage, no anti-windup.
    pub fn seed() -> LoopConfig {
        LoopConfig {
            motor: MotorModel::default(),
            gains: Gains::SEED,
            position_gain_per_s: 15.0,
            limit: None,
            derives_measurement: false,
            rate_hz: 4_000.0,
            encoder_step_rad: 0.0,
        }
    }

    /// The same loop as a cascade that a machine may have: 24 V at most, anti-windup, an encoder of 2²⁰ steps a turn.
    ///
    /// The derivative still acts on the error: references come from a profile, which does not leap.
    pub fn cascade() -> LoopConfig {
        LoopConfig {
            limit: Some(Limit { voltage_v: 24.0, tracking_s: 0.05 }),
            encoder_step_rad: std::f64::consts::TAU / 1_048_576.0,
            ..LoopConfig::seed()
        }
    }
}

/// Where a joint shall be, and how fast.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reference {
    /// Angle.
    pub position_rad: f64,
    /// Its derivative, fed forward.
    pub velocity_rad_s: f64,
}

/// A joint's loop that runs.
#[derive(Clone, Debug)]
pub struct JointLoop {
    config: LoopConfig,
    motor: Motor,
    pid: Pid,
    voltage_v: f64,
}

impl JointLoop {
    /// A loop at rest at `angle_rad`.
    pub fn new(config: &LoopConfig, angle_rad: f64) -> JointLoop {
        let step_s = 1.0 / config.rate_hz;
        let pid = Pid::new(config.gains, config.limit, step_s);
        let pid = if config.derives_measurement { pid.on_measurement() } else { pid };
        JointLoop {
            config: *config,
            motor: Motor::new(&config.motor, step_s, angle_rad),
            pid,
            voltage_v: 0.0,
        }
    }

    /// One period: measures, computes the voltage, and lets the motor run on it.
    pub fn step(&mut self, reference: Reference) {
        let voltage_v = self.voltage_for(reference);
        self.run(voltage_v);
    }

    /// Output voltage of the controller for this reference, V.
    pub fn voltage_for(&mut self, reference: Reference) -> f64 {
        let LoopConfig { position_gain_per_s, motor, .. } = self.config;
        let position_error_rad = reference.position_rad - self.angle_rad();
        let velocity_rad_s = self.motor.velocity_rad_s();
        let error = position_gain_per_s * position_error_rad + reference.velocity_rad_s - velocity_rad_s;
        self.pid.step(error / motor.per_speed, velocity_rad_s / motor.per_speed)
    }

    /// One period of the motor on this voltage.
    pub fn run(&mut self, voltage_v: f64) {
        self.voltage_v = voltage_v;
        self.motor.step(voltage_v);
    }

    /// The angle as the encoder shows it, rad.
    pub fn angle_rad(&self) -> f64 {
        let (angle_rad, step_rad) = (self.motor.angle_rad(), self.config.encoder_step_rad);
        if step_rad > 0.0 { (angle_rad / step_rad).round() * step_rad } else { angle_rad }
    }

    /// Its speed, rad/s.
    pub fn velocity_rad_s(&self) -> f64 {
        self.motor.velocity_rad_s()
    }

    /// The voltage of the last period.
    pub fn voltage_v(&self) -> f64 {
        self.voltage_v
    }
}
