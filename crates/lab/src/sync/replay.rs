//! One estimator over one trace.

use std::fmt;
use std::io::Write;

use noctule_time_sync::{
    Bounded, BoundedConfig, Counters, Ema, EmaPreset, Estimate, Estimator, LastSample, MinimumOf8,
};

use super::trace::TraceRow;

/// The estimators that can be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EstimatorKind {
    /// The autopilot's filter.
    Px4,
    /// The same filter with the ground side's constants.
    Mavros,
    /// The last midpoint.
    LastSample,
    /// The midpoint of the fastest of the last eight.
    MinimumOf8,
    /// The default.
    Bounded,
}

/// All of them, in the order of the tables.
pub const ESTIMATORS: [EstimatorKind; 5] = [
    EstimatorKind::Px4,
    EstimatorKind::Mavros,
    EstimatorKind::LastSample,
    EstimatorKind::MinimumOf8,
    EstimatorKind::Bounded,
];

impl EstimatorKind {
    /// A fresh estimator of this kind; `config` matters to [`EstimatorKind::Bounded`] alone.
    pub fn build(self, config: BoundedConfig) -> Box<dyn Estimator + Send> {
        match self {
            EstimatorKind::Px4 => Box::new(Ema::new(EmaPreset::Px4)),
            EstimatorKind::Mavros => Box::new(Ema::new(EmaPreset::Mavros)),
            EstimatorKind::LastSample => Box::new(LastSample::default()),
            EstimatorKind::MinimumOf8 => Box::new(MinimumOf8::default()),
            EstimatorKind::Bounded => Box::new(Bounded::new(config)),
        }
    }
}

impl fmt::Display for EstimatorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            EstimatorKind::Px4 => "ema (px4)",
            EstimatorKind::Mavros => "ema (mavros)",
            EstimatorKind::LastSample => "last sample",
            EstimatorKind::MinimumOf8 => "minimum of 8",
            EstimatorKind::Bounded => "bounded",
        })
    }
}

/// What an estimator said after each exchange of a trace.
pub struct Replayed {
    /// At each row's `t4`, after that exchange was handled.
    pub estimates: Vec<Option<Estimate>>,
    /// What became of the exchanges.
    pub counters: Counters,
}

/// Feeds a trace to an estimator.
pub fn replay(rows: &[TraceRow], estimator: &mut dyn Estimator) -> Replayed {
    let estimates = rows
        .iter()
        .map(|row| {
            // Why one was not used is in the counters.
            let _ = estimator.handle_exchange(&row.exchange);
            estimator.estimate(row.exchange.t4)
        })
        .collect();
    Replayed { estimates, counters: estimator.counters() }
}

/// Writes offset, drift, bound, sigma and state after each exchange as CSV; what is not known is
/// left empty.
///
/// # Errors
/// Passes on what the output says.
pub fn write_estimates(
    rows: &[TraceRow],
    estimates: &[Option<Estimate>],
    output: &mut dyn Write,
) -> std::io::Result<()> {
    writeln!(output, "t4_ns,offset_ns,drift_ppm,bound_ns,sigma_ns,state,offset_true_ns")?;
    let optional = |ns: Option<i64>| ns.map(|ns| ns.to_string()).unwrap_or_default();
    for (row, estimate) in rows.iter().zip(estimates) {
        let truth = optional(row.offset_true_ns);
        let t4_ns = row.exchange.t4.ns();
        match estimate {
            None => writeln!(output, "{t4_ns},,,,,,{truth}")?,
            Some(e) => writeln!(
                output,
                "{t4_ns},{},{:.6},{},{},{},{truth}",
                e.offset.ns(),
                e.drift.ppm(),
                optional(e.bound.map(|bound| bound.ns())),
                optional(e.sigma.map(|sigma| sigma.ns())),
                e.state,
            )?,
        }
    }
    Ok(())
}
