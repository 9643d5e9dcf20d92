//! E2, live: a joint's loop closed over a network, its motor and its controller a process each.
//!
//! The motor runs on this machine's clock at the loop's rate, publishes its error in each period and runs on the newest voltage. The
//! controller answers each error that is newer than the last. What the loop is delayed by is measured in the loop itself: the period
//! that runs less the period that its voltage answers.

use std::time::Duration;

use noctule::{Node, NodeError, PublishError, ReceiveError, Reliability, TypedSubscriber};
use noctule_arm::joint_loop::LoopConfig;
use noctule_arm::motor::Motor;
use noctule_arm::pid::Pid;
use noctule_sys::clock::{now_ns, sleep_until};
use noctule_timebase::Span;
use serde::Serialize;

use crate::experiment::joint::{JointVerdict, STEP_RAD, verdict};
use crate::lateness::Lateness;
use crate::messages::{JOINT_ERROR_TOPIC, JOINT_VOLTAGE_TOPIC, JointError, JointVoltage};

/// Answers before the reference is stepped: both directions work, and the clocks of the link have settled.
const ANSWERS_BEFORE_STEP: u64 = 2_000;
/// A loop that has left this is given up: it is linear and would go on for ever.
const ANGLE_MAX_RAD: f64 = 1e6;

/// Why a run ended early.
#[derive(Debug, thiserror::Error)]
pub enum JointLinkError {
    /// It could not join.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// It could not publish.
    #[error(transparent)]
    Publish(#[from] PublishError),
    /// It was stopped, or the other side never answered.
    #[error("the run ended before the reference was stepped: {0} answers of {ANSWERS_BEFORE_STEP} arrived")]
    NoAnswer(u64),
}

/// Result of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JointRun {
    /// Result of the loop.
    pub verdict: JointVerdict,
    /// Mean delay of the loop since the step, both ways and both processes together, ms.
    pub delay_ms: f64,
    /// Its standard deviation, ms.
    pub delay_deviation_ms: f64,
    /// How the motor kept its time.
    pub lateness: Lateness,
}

/// The motor's side of a running loop.
struct MotorSide {
    motor: Motor,
    config: LoopConfig,
    reference_rad: f64,
    period: u64,
    newest: JointVoltage,
    answers: u64,
    /// Angles since the step.
    angles_rad: Vec<f64>,
    delays: Vec<u64>,
}

impl MotorSide {
    fn new(config: &LoopConfig) -> MotorSide {
        MotorSide {
            motor: Motor::new(&config.motor, 1.0 / config.rate_hz, 0.0),
            config: *config,
            reference_rad: 0.0,
            period: 0,
            newest: JointVoltage::default(),
            answers: 0,
            angles_rad: Vec::new(),
            delays: Vec::new(),
        }
    }

    fn error(&self) -> JointError {
        let position_error = self.reference_rad - self.motor.angle_rad();
        let speed = self.motor.velocity_rad_s();
        let error = (self.config.position_gain_per_s * position_error - speed) / self.config.motor.per_speed;
        JointError { period: self.period, error }
    }

    fn take_voltages(&mut self, voltages: &mut TypedSubscriber<JointVoltage>) {
        loop {
            match voltages.take() {
                Ok(Some(sample)) => {
                    self.answers += 1;
                    let voltage = sample.into_value();
                    if voltage.period > self.newest.period {
                        self.newest = voltage;
                    }
                }
                Ok(None) | Err(ReceiveError::Take(_)) => return,
                Err(_) => {}
            }
        }
    }

    fn step(&mut self) {
        if self.reference_rad != 0.0 {
            self.angles_rad.push(self.motor.angle_rad());
            self.delays.push(self.period - self.newest.period);
        }
        self.motor.step(self.newest.voltage_v);
        self.period += 1;
    }

    fn run(self, periods: u64, lateness: Lateness) -> JointRun {
        let count = self.delays.len().max(1) as f64;
        let period_ms = 1e3 / self.config.rate_hz;
        let mean = self.delays.iter().sum::<u64>() as f64 / count;
        let squares = self.delays.iter().map(|delay| (*delay as f64 - mean).powi(2)).sum::<f64>();
        JointRun {
            verdict: verdict(&self.angles_rad, periods, self.config.rate_hz, self.answers),
            delay_ms: mean * period_ms,
            delay_deviation_ms: (squares / count).sqrt() * period_ms,
            lateness,
        }
    }
}

/// The motor: waits until the controller answers, steps the reference, and runs for `duration` from there.
///
/// # Errors
/// The topics cannot be used, or no node answers until `is_due`.
pub fn run_motor(
    node: &Node,
    config: &LoopConfig,
    duration: Span,
    is_due: &dyn Fn() -> bool,
) -> Result<JointRun, JointLinkError> {
    let errors = node.publisher(JOINT_ERROR_TOPIC).reliability(Reliability::BestEffort);
    let mut errors = errors.typed::<JointError>().open()?;
    let voltages = node.subscriber(JOINT_VOLTAGE_TOPIC).reliability(Reliability::BestEffort);
    let mut voltages = voltages.keep_last(64).typed::<JointVoltage>().open()?;
    let period_ns = (1e9 / config.rate_hz) as i64;
    let periods = (duration.as_s_f64() * config.rate_hz) as u64;
    let mut side = MotorSide::new(config);
    let mut lateness = Lateness::default();
    let mut next_ns = now_ns();
    while (side.angles_rad.len() as u64) < periods && side.motor.angle_rad().abs() < ANGLE_MAX_RAD {
        if is_due() {
            return Err(JointLinkError::NoAnswer(side.answers));
        }
        next_ns += period_ns;
        sleep_until(next_ns);
        let late_ns = now_ns() - next_ns;
        if side.reference_rad == 0.0 && side.answers >= ANSWERS_BEFORE_STEP {
            side.reference_rad = STEP_RAD;
        }
        // The motor ran on while this process did not: what it missed is made up on the voltage that there was.
        for _ in 0..late_ns / period_ns {
            side.step();
            next_ns += period_ns;
        }
        if side.reference_rad != 0.0 {
            lateness.record(late_ns, period_ns);
        }
        errors.publish(&side.error())?;
        side.take_voltages(&mut voltages);
        side.step();
    }
    Ok(side.run(periods, lateness))
}

/// The controller: answers until `is_due`.
///
/// # Errors
/// The topics cannot be used.
pub fn run_controller(
    node: &Node,
    config: &LoopConfig,
    is_due: &dyn Fn() -> bool,
) -> Result<(), JointLinkError> {
    let voltages = node.publisher(JOINT_VOLTAGE_TOPIC).reliability(Reliability::BestEffort);
    let mut voltages = voltages.typed::<JointVoltage>().open()?;
    let errors = node.subscriber(JOINT_ERROR_TOPIC).reliability(Reliability::BestEffort);
    let mut errors = errors.keep_last(64).typed::<JointError>().open()?;
    let mut pid = Pid::new(config.gains, config.limit, 1.0 / config.rate_hz);
    let mut newest = None;
    while !is_due() {
        let Ok(Some(sample)) = errors.receive(Some(Duration::from_millis(50))) else { continue };
        let JointError { period, error } = sample.into_value();
        if newest.is_none_or(|newest| period > newest) {
            newest = Some(period);
            voltages.publish(&JointVoltage { period, voltage_v: pid.step(error, 0.0) })?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use noctule_arm::analysis::spectral_radius;

    use super::*;

    /// The motor's side with a controller whose answers come `delay` periods later.
    fn over(delay: u64) -> JointRun {
        let config = LoopConfig::seed();
        let (mut side, mut pid) =
            (MotorSide::new(&config), Pid::new(config.gains, config.limit, 1.0 / config.rate_hz));
        side.reference_rad = STEP_RAD;
        let periods = 32_000;
        let mut answers = std::collections::VecDeque::new();
        for _ in 0..periods {
            let JointError { period, error } = side.error();
            answers.push_back(JointVoltage { period, voltage_v: pid.step(error, 0.0) });
            if answers.len() as u64 > delay {
                side.newest = answers.pop_front().unwrap_or_default();
            }
            side.step();
        }
        side.run(periods, Lateness::default())
    }

    #[test]
    fn the_delay_is_measured_in_the_loop_and_decides_where_theory_says() {
        for (delay, stable) in [(4, true), (29, true), (30, false), (32, false)] {
            let run = over(delay);
            assert!((run.delay_ms - delay as f64 * 0.25).abs() < 0.01, "{run:?}");
            assert_eq!(run.verdict.stable, stable, "{run:?}");
            assert_eq!(spectral_radius(&LoopConfig::seed(), delay as u32) < 1.0, stable);
        }
    }
}
