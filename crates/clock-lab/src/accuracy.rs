//! How well an estimator did against the truth.

use noctule_time_sync::Estimate;
use serde::Serialize;

use super::replay::Replayed;
use noctule_lab::trace::TraceRow;

/// Errors count from this long after the start and after each step.
const SETTLING_S: f64 = 60.0;
/// "Good enough to use": the error that [`Accuracy::time_to_100us_s`] waits for.
const USABLE_NS: f64 = 100_000.0;
/// The truth has been stepped where it changes by more than this, [`STEP_PPM`] added.
const STEP_NS: f64 = 1_000_000.0;
/// How much a slewed clock may change between two exchanges, ppm of the time between them.
const STEP_PPM: f64 = 2_000.0;
/// The true drift is the slope of the truth over this long either side.
const SLOPE_S: f64 = 5.0;

/// The figures of `sync replay --json`. What does not apply, or was never reached, is `None`.
///
/// Without the truth only the widths and the counts apply.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Accuracy {
    /// Root of the mean squared error at `t4`, from 60 s after the start and after each step.
    pub rms_error_ns: Option<f64>,
    /// Largest absolute error over the same time.
    pub max_error_ns: Option<f64>,
    /// Exchanges after which the truth lay outside the bound. An exchange during which the clock was
    /// stepped does not count. `None` for an estimator that proves nothing.
    pub bound_violations: Option<u64>,
    /// Mean of the bound where one was given.
    pub mean_bound_ns: Option<f64>,
    /// Mean of the standard error where one was given.
    pub mean_sigma_ns: Option<f64>,
    /// Share of exchanges with an error of at most two sigma, over the same time as `rms_error_ns`; 0.954 for
    /// an honest sigma of a normal error.
    pub within_2_sigma: Option<f64>,
    /// Time from the first exchange until the error stays within 100 µs up to the first step or the end.
    pub time_to_100us_s: Option<f64>,
    /// The same after a step, from the departure of the first exchange after it; the worst step.
    /// `None` also if one of them was never recovered from.
    pub relock_after_step_s: Option<f64>,
    /// Root of the mean squared error of the drift, over the same time as `rms_error_ns`.
    pub drift_error_ppm: Option<f64>,
    /// Exchanges used.
    pub accepted: u32,
    /// Exchanges not used.
    pub rejected: u32,
}

/// Judges an estimator's results for a trace.
pub fn judge(rows: &[TraceRow], replayed: &Replayed) -> Accuracy {
    judge_after(rows, replayed, SETTLING_S)
}

/// As [`judge`], for a trace that is too short for 60 s of settling after each step.
pub fn judge_after(rows: &[TraceRow], replayed: &Replayed, settling_s: f64) -> Accuracy {
    let estimates = &replayed.estimates;
    let given = |width: fn(&Estimate) -> Option<f64>| mean(estimates.iter().flatten().filter_map(width));
    let mut accuracy = Accuracy {
        rms_error_ns: None,
        max_error_ns: None,
        bound_violations: None,
        mean_bound_ns: given(|e| e.bound.map(|bound| bound.ns() as f64)),
        mean_sigma_ns: given(|e| e.sigma.map(|sigma| sigma.ns() as f64)),
        within_2_sigma: None,
        time_to_100us_s: None,
        relock_after_step_s: None,
        drift_error_ppm: None,
        accepted: replayed.counters.accepted,
        rejected: replayed.counters.rejected(),
    };
    let Some(points) = points(rows, estimates) else {
        return accuracy;
    };
    let segments = segments(&points);
    let violations = rows.iter().zip(estimates).zip(&points).filter(|((row, estimate), point)| {
        let bound = estimate.and_then(|e| e.bound);
        !row.step_in_flight
            && bound.is_some_and(|bound| point.error_ns.is_some_and(|e| e.abs() > bound.ns() as f64))
    });
    accuracy.bound_violations = accuracy.mean_bound_ns.map(|_| violations.count() as u64);
    accuracy.time_to_100us_s = segments.first().and_then(|segment| usable_after_s(segment));
    if segments.len() > 1 {
        let relocks: Option<Vec<f64>> = segments[1..].iter().map(|segment| usable_after_s(segment)).collect();
        accuracy.relock_after_step_s = relocks.and_then(|times| times.into_iter().reduce(f64::max));
    }
    let settled: Vec<&Point> = segments
        .iter()
        .flat_map(|segment| segment.iter().filter(|point| point.at_s - segment[0].at_s >= settling_s))
        .collect();
    let errors = || settled.iter().filter_map(|point| point.error_ns);
    accuracy.rms_error_ns = mean(errors().map(|e| e * e)).map(f64::sqrt);
    accuracy.max_error_ns = errors().map(f64::abs).reduce(f64::max);
    let covered = settled.iter().filter_map(|p| Some(p.error_ns?.abs() <= 2.0 * p.sigma_ns?));
    accuracy.within_2_sigma = mean(covered.map(|is| f64::from(u8::from(is))));
    accuracy.drift_error_ppm =
        mean(settled.iter().filter_map(|p| p.drift_error_ppm).map(|e| e * e)).map(f64::sqrt);
    accuracy
}

/// Indices of the rows that came first after a step of the truth; none where the truth is not known.
pub(super) fn rows_after_steps(rows: &[TraceRow], estimates: &[Option<Estimate>]) -> Vec<usize> {
    points(rows, estimates).map(|points| step_indices(&points)).unwrap_or_default()
}

/// One row as the judgement sees it.
struct Point {
    at_s: f64,
    sent_s: f64,
    truth_ns: i64,
    /// `None` where the estimator gave no estimate.
    error_ns: Option<f64>,
    sigma_ns: Option<f64>,
    drift_error_ppm: Option<f64>,
}

/// `None` when a row lacks the truth.
fn points(rows: &[TraceRow], estimates: &[Option<Estimate>]) -> Option<Vec<Point>> {
    let start_ns = rows.first()?.exchange.t4.ns();
    let mut points = Vec::with_capacity(rows.len());
    for (row, estimate) in rows.iter().zip(estimates) {
        let truth_ns = row.offset_true_ns?;
        points.push(Point {
            at_s: (row.exchange.t4.ns().saturating_sub(start_ns)) as f64 / 1e9,
            sent_s: (row.exchange.t1.ns().saturating_sub(start_ns)) as f64 / 1e9,
            truth_ns,
            error_ns: estimate.map(|e| e.offset.ns().saturating_sub(truth_ns) as f64),
            sigma_ns: estimate.and_then(|e| e.sigma).map(|sigma| sigma.ns() as f64),
            drift_error_ppm: estimate.map(|e| e.drift.ppm()),
        });
    }
    subtract_true_drift(&mut points);
    Some(points)
}

/// Turns drifts into errors of drifts; near a step or an end of the trace there is no true slope.
fn subtract_true_drift(points: &mut [Point]) {
    let (mut from, mut to) = (0, 0);
    let starts: Vec<usize> = step_indices(points);
    for i in 0..points.len() {
        while points[i].at_s - points[from].at_s > SLOPE_S {
            from += 1;
        }
        while to + 1 < points.len() && points[to].at_s - points[i].at_s < SLOPE_S {
            to += 1;
        }
        let across_step = starts.iter().any(|&start| from < start && start <= to);
        let length_s = points[to].at_s - points[from].at_s;
        points[i].drift_error_ppm = if across_step || length_s < SLOPE_S {
            None
        } else {
            let true_ppm = (points[to].truth_ns - points[from].truth_ns) as f64 / length_s / 1e3;
            points[i].drift_error_ppm.map(|drift_ppm| drift_ppm - true_ppm)
        };
    }
}

/// Indices of the first row after each step.
fn step_indices(points: &[Point]) -> Vec<usize> {
    let stepped = |pair: &[Point]| {
        let moved_ns = (pair[1].truth_ns.saturating_sub(pair[0].truth_ns) as f64).abs();
        moved_ns > STEP_NS + STEP_PPM * 1e3 * (pair[1].at_s - pair[0].at_s)
    };
    (1..points.len()).filter(|&i| stepped(&points[i - 1..=i])).collect()
}

/// The trace cut at its steps.
fn segments(points: &[Point]) -> Vec<&[Point]> {
    let mut segments = Vec::new();
    let mut from = 0;
    for to in step_indices(points).into_iter().chain([points.len()]) {
        segments.push(&points[from..to]);
        from = to;
    }
    segments
}

/// Time from the departure of a segment's first exchange until the error stays usable to its end.
fn usable_after_s(segment: &[Point]) -> Option<f64> {
    let unusable = |point: &Point| point.error_ns.is_none_or(|error_ns| error_ns.abs() > USABLE_NS);
    let first_usable = segment.iter().rposition(unusable).map_or(0, |last| last + 1);
    segment.get(first_usable).map(|point| point.at_s - segment[0].sent_s)
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0_u64), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / count as f64)
}

#[cfg(test)]
mod tests;
