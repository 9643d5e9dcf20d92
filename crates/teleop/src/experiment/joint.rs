//! E2: a joint's loop closed over a network.
//!
//! The motor sends its measurement, the controller at the other end answers with a voltage, and the motor runs on the
//! newest that arrived. Theory: the loop is stable up to 29 samples of 250 µs of delay (7.25 ms), and not with 30.

use noctule_arm::joint_loop::LoopConfig;
use noctule_arm::motor::Motor;
use noctule_arm::pid::Pid;
use noctule_netsim::link::LinkSpec;
use noctule_timebase::{Instant, Span};
use serde::Serialize;

use super::NumberedLink;

/// A measurement or a voltage with its time and 20 bytes of headers.
const PACKET_BYTES: usize = 48;
/// The reference is stepped by this at the start; the loop is linear, so its size means nothing.
pub(crate) const STEP_RAD: f64 = 0.1;

/// Result of a joint's loop.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct JointVerdict {
    /// Largest error of the last quarter over that of the second: below one it dies away.
    pub growth: f64,
    /// Whether the error dies away.
    pub stable: bool,
    /// Root of the mean square of the error over the first second, rad.
    pub rms_rad: f64,
    /// Above the reference, percent of the step.
    pub overshoot_percent: f64,
    /// Packets sent by the motor.
    pub sent: u64,
    /// Voltages that arrived.
    pub received: u64,
}

/// Runs a step of the reference through the loop for `duration`; `a>b` carries measurements, `b>a` voltages.
pub fn run(config: &LoopConfig, link: &LinkSpec, duration: Span, seed: u64) -> JointVerdict {
    let step_s = 1.0 / config.rate_hz;
    let mut motor = Motor::new(&config.motor, step_s, 0.0);
    let mut pid = Pid::new(config.gains, config.limit, step_s);
    let mut out = NumberedLink::new(&link.a_to_b, seed);
    let mut back = NumberedLink::new(&link.b_to_a, seed.wrapping_add(1));
    let (mut errors, mut voltages): (Vec<f64>, Vec<f64>) = (Vec::new(), Vec::new());
    let (mut voltage, mut received) = (0.0, 0_u64);
    let (mut newest_in, mut newest_out) = (None, None);
    let periods = (duration.as_s_f64() * config.rate_hz) as u64;
    let mut positions = Vec::with_capacity(periods as usize);
    for period in 0..periods {
        let now = Instant::from_ns((period as f64 * step_s * 1e9).round() as i64);
        let position_error = STEP_RAD - motor.angle_rad();
        positions.push(motor.angle_rad());
        let per_speed = config.motor.per_speed;
        errors.push((config.position_gain_per_s * position_error - motor.velocity_rad_s()) / per_speed);
        out.send(now, period, PACKET_BYTES);
        while let Some(number) = out.poll(now, period + 1) {
            if newest_in.is_none_or(|newest| number > newest) {
                newest_in = Some(number);
                back.send(now, voltages.len() as u64, PACKET_BYTES);
                voltages.push(pid.step(errors[number as usize], 0.0));
            }
        }
        while let Some(number) = back.poll(now, voltages.len() as u64) {
            received += 1;
            if newest_out.is_none_or(|newest| number > newest) {
                newest_out = Some(number);
                voltage = voltages[number as usize];
            }
        }
        motor.step(voltage);
        if !motor.angle_rad().is_finite() || motor.angle_rad().abs() > 1e6 {
            break;
        }
    }
    verdict(&positions, periods, config.rate_hz, received)
}

/// Judges a run by the angles of its periods; it may have been given up before `periods` of them.
pub(crate) fn verdict(positions: &[f64], periods: u64, rate_hz: f64, received: u64) -> JointVerdict {
    let quarter = (periods / 4) as usize;
    let largest = |part: &[f64]| part.iter().map(|angle| (angle - STEP_RAD).abs()).fold(0.0, f64::max);
    let growth = match positions.get(quarter * 3..) {
        Some(last) if !last.is_empty() => {
            largest(last) / largest(&positions[quarter..quarter * 2]).max(1e-12)
        }
        // It left all bounds before the end.
        _ => f64::INFINITY,
    };
    let second = &positions[..positions.len().min(rate_hz as usize)];
    let squares = second.iter().map(|angle| (angle - STEP_RAD) * (angle - STEP_RAD)).sum::<f64>();
    let peak = positions.iter().copied().fold(0.0, f64::max);
    JointVerdict {
        growth,
        // Nothing is left of the error, or it is on its way there.
        stable: growth < 1.0 || largest(&positions[positions.len() - positions.len() / 8..]) < 1e-9,
        rms_rad: (squares / second.len() as f64).sqrt(),
        overshoot_percent: (peak / STEP_RAD - 1.0).max(0.0) * 100.0,
        sent: positions.len() as u64,
        received,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn over(link: &str) -> JointVerdict {
        run(&LoopConfig::seed(), &link.parse().unwrap(), Span::from_s(40), 1)
    }

    #[test]
    fn it_tips_over_where_theory_says() {
        // Both ways together: 29 samples are 7.25 ms, 30 are 7.5 ms.
        let stable = over("a>b: delay=3500us; b>a: delay=3750us");
        let unstable = over("a>b: delay=3750us; b>a: delay=3750us");
        println!("7.25 ms: {stable:?}\n7.50 ms: {unstable:?}");
        assert!(stable.stable && !unstable.stable);
    }

    #[test]
    fn near_the_margin_the_loop_rings() {
        let near = over("delay=0");
        let far = over("delay=3500us");
        assert!(near.stable && near.overshoot_percent < 1.0, "{near:?}");
        assert!(far.stable && far.overshoot_percent > 5.0 * near.overshoot_percent, "{far:?}");
    }

    #[test]
    fn jitter_and_loss_eat_the_margin() {
        let quiet = over("delay=3ms");
        let shaken = over("delay=3ms jitter=1500us distribution=uniform loss=20% burst=8");
        assert!(quiet.stable && shaken.growth > quiet.growth, "{quiet:?} {shaken:?}");
    }
}
