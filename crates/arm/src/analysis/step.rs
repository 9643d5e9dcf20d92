//! The closed loop as matrices: poles, stability with delay, step response.

use nalgebra::{DMatrix, DVector};
use serde::Serialize;

use super::View;
use crate::joint_loop::LoopConfig;

/// Resolution of the continuous step response, s.
const FINE_STEP_S: f64 = 2e-6;

/// A closed loop: `next = transition · state + input · reference`, `output · state` is the fed-back quantity.
///
/// For the continuous view the matrices give the derivative instead of the next state.
#[derive(Clone, Debug)]
pub struct ClosedLoop {
    /// Matrix of the state.
    pub transition: DMatrix<f64>,
    /// Vector of the reference.
    pub input: DVector<f64>,
    /// From the state to position plus speed over its scale, in the units of the loop's error.
    pub output: DVector<f64>,
}

/// The closed loop. States: speed signal, its derivative, angle; integral, unless its gain is zero; filter; then voltages on their way.
pub fn closed_loop(config: &LoopConfig, view: View) -> ClosedLoop {
    let mut whole = match view {
        View::Continuous => continuous(config),
        View::Sampled { delay_samples } => sampled(config, delay_samples as usize),
    };
    if config.gains.i == 0.0 {
        // An integral that nothing enters is no part of the loop: it would be a pole of its own on the border of stability.
        whole.transition = whole.transition.remove_row(INTEGRAL).remove_column(INTEGRAL);
        whole.input = whole.input.remove_row(INTEGRAL);
        whole.output = whole.output.remove_row(INTEGRAL);
    }
    whole
}

/// Place of the integral among the states.
const INTEGRAL: usize = 3;

fn output_of(config: &LoopConfig, states: usize) -> DVector<f64> {
    let mut output = DVector::zeros(states);
    output[0] = 1.0;
    output[2] = config.position_gain_per_s / config.motor.per_speed;
    output
}

fn continuous(config: &LoopConfig) -> ClosedLoop {
    let (a, b) = config.motor.state_space();
    let gains = config.gains;
    let output = output_of(config, 5);
    // error = r − output·x; filter' = N (D e − filter); voltage = P e + integral + filter'.
    let mut error = DMatrix::zeros(1, 5);
    error.copy_from(&-output.transpose());
    let mut voltage = &error * (gains.p + gains.n * gains.d);
    voltage[(0, 3)] += 1.0;
    voltage[(0, 4)] -= gains.n;
    let mut transition = DMatrix::zeros(5, 5);
    transition.view_mut((0, 0), (3, 3)).copy_from(&a);
    let mut driven = transition.view_mut((0, 0), (3, 5));
    driven += b * &voltage;
    transition.row_mut(3).copy_from(&(&error * gains.i));
    transition.row_mut(4).copy_from(&(&error * (gains.n * gains.d)));
    transition[(4, 4)] -= gains.n;
    let mut input = DVector::zeros(5);
    input.rows_mut(0, 3).copy_from(&(b * (gains.p + gains.n * gains.d)));
    input[3] = gains.i;
    input[4] = gains.n * gains.d;
    ClosedLoop { transition, input, output }
}

fn sampled(config: &LoopConfig, delay: usize) -> ClosedLoop {
    let step_s = 1.0 / config.rate_hz;
    let (a, b) = config.motor.held(step_s);
    let gains = config.gains;
    let states = 5 + delay;
    let output = output_of(config, states);
    let share = 1.0 / (1.0 + gains.n * step_s);
    let error = DMatrix::from_row_slice(1, states, (-&output).as_slice());
    // integral⁺ = integral + T I e; d = N (D e − filter) / (1 + N T); filter⁺ = filter + T d.
    let proportional = gains.p + step_s * gains.i + gains.n * gains.d * share;
    let mut voltage = &error * proportional;
    voltage[(0, 3)] += 1.0;
    voltage[(0, 4)] -= gains.n * share;
    let mut transition = DMatrix::zeros(states, states);
    transition.view_mut((0, 0), (3, 3)).copy_from(&a);
    transition.row_mut(3).copy_from(&(&error * (step_s * gains.i)));
    transition[(3, 3)] += 1.0;
    transition.row_mut(4).copy_from(&(&error * (step_s * gains.n * gains.d * share)));
    transition[(4, 4)] += share;
    let mut input = DVector::zeros(states);
    input[3] = step_s * gains.i;
    input[4] = step_s * gains.n * gains.d * share;
    if delay == 0 {
        let mut driven = transition.view_mut((0, 0), (3, states));
        driven += b * &voltage;
        input.rows_mut(0, 3).copy_from(&(b * proportional));
        return ClosedLoop { transition, input, output };
    }
    // The oldest voltage drives the motor; the newest enters at the end.
    transition.view_mut((0, 5), (3, 1)).copy_from(&b);
    for index in 5..states - 1 {
        transition[(index, index + 1)] = 1.0;
    }
    transition.row_mut(states - 1).copy_from(&voltage);
    input[states - 1] = proportional;
    ClosedLoop { transition, input, output }
}

/// Largest magnitude of the sampled loop's poles: below one it is stable.
pub fn spectral_radius(config: &LoopConfig, delay_samples: u32) -> f64 {
    let poles = closed_loop(config, View::Sampled { delay_samples }).transition.complex_eigenvalues();
    poles.iter().map(|pole| pole.norm()).fold(0.0, f64::max)
}

/// Whether every motion of the closed loop dies away. A pole on the border, as that of a position that nothing holds, does not, and is only
/// known to a rounding of the matrix.
pub fn is_stable(config: &LoopConfig, view: View) -> bool {
    let transition = closed_loop(config, view).transition;
    let rounding = 1e-13 * transition.norm();
    transition.complex_eigenvalues().iter().all(|pole| match view {
        View::Continuous => pole.re < -rounding,
        View::Sampled { .. } => pole.norm() < 1.0 - rounding,
    })
}

/// A point of a step response.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct StepPoint {
    /// Time since the step, ms.
    pub time_ms: f64,
    /// Share of the final value.
    pub value: f64,
}

/// The usual numbers of a step response.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct StepMetrics {
    /// Overshoot above the final value, %.
    pub overshoot_percent: f64,
    /// Time of the peak, ms.
    pub peak_time_ms: f64,
    /// Time from 10 to 90 %.
    pub rise_time_ms: f64,
    /// Time from which on it stays within 2 %.
    pub settling_time_ms: f64,
}

/// The response to a unit step of L/(1 + L) over `duration_s`, at every sample, or every 2 µs.
pub fn step_response(config: &LoopConfig, view: View, duration_s: f64) -> Vec<StepPoint> {
    let ClosedLoop { transition, input, output } = closed_loop(config, view);
    let step_s = match view {
        View::Continuous => FINE_STEP_S,
        View::Sampled { .. } => 1.0 / config.rate_hz,
    };
    let (transition, input) = match view {
        View::Continuous => exact(&transition, &input, step_s),
        View::Sampled { .. } => (transition, input),
    };
    let mut state = DVector::zeros(input.len());
    let mut next = state.clone();
    let steps = (duration_s / step_s).round() as usize;
    let mut points = Vec::with_capacity(steps + 1);
    for index in 0..=steps {
        points.push(StepPoint { time_ms: index as f64 * step_s * 1e3, value: output.dot(&state) });
        next.copy_from(&input);
        next.gemv(1.0, &transition, &state, 1.0);
        std::mem::swap(&mut state, &mut next);
    }
    points
}

/// The continuous system over one step, with the reference held.
fn exact(a: &DMatrix<f64>, b: &DVector<f64>, step_s: f64) -> (DMatrix<f64>, DVector<f64>) {
    let states = b.len();
    let mut whole = DMatrix::zeros(states + 1, states + 1);
    whole.view_mut((0, 0), (states, states)).copy_from(a);
    whole.view_mut((0, states), (states, 1)).copy_from(b);
    let exponential = (whole * step_s).exp();
    let input = exponential.view((0, states), (states, 1)).column(0).into_owned();
    (exponential.view((0, 0), (states, states)).into_owned(), input)
}

/// The numbers of a response to a unit step; `None` if it does not rise to 90 % or does not settle.
pub fn step_metrics(points: &[StepPoint]) -> Option<StepMetrics> {
    let peak = points.iter().copied().max_by(|a, b| a.value.total_cmp(&b.value))?;
    let first_above =
        |value: f64| points.iter().find(|point| point.value >= value).map(|point| point.time_ms);
    let outside = points.iter().rposition(|point| (point.value - 1.0).abs() > 0.02)?;
    let settled = points.get(outside + 1)?;
    Some(StepMetrics {
        overshoot_percent: (peak.value - 1.0).max(0.0) * 100.0,
        peak_time_ms: peak.time_ms,
        rise_time_ms: first_above(0.9)? - first_above(0.1)?,
        settling_time_ms: settled.time_ms,
    })
}
