//! One estimator over one trace.

use std::io::Write;

use noctule_time_sync::{Counters, Estimate, Estimator, Rejection};

use noctule_lab::trace::TraceRow;

/// Estimates after each exchange of a trace.
pub struct Replayed {
    /// Estimate at each row's `t4`, after that exchange was handled.
    pub estimates: Vec<Option<Estimate>>,
    /// Verdict on each row: used, or why not.
    pub verdicts: Vec<Result<(), Rejection>>,
    /// Counts of exchanges by their fate.
    pub counters: Counters,
}

/// Feeds a trace to an estimator.
pub fn replay(rows: &[TraceRow], estimator: &mut dyn Estimator) -> Replayed {
    let after = |row: &TraceRow| {
        let verdict = estimator.handle_exchange(&row.exchange);
        (verdict, estimator.estimate(row.exchange.t4))
    };
    let (verdicts, estimates) = rows.iter().map(after).unzip();
    Replayed { estimates, verdicts, counters: estimator.counters() }
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
