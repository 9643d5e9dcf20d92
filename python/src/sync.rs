//! The native half of `noctule.sync`: arrays in, arrays out, no decisions.
//!
//! `noctule/sync.py` defines the arrays and checks all that a user may pass. Stamps
//! are copied while the interpreter's lock is held, since another thread may write to an array as
//! soon as it is not; the estimators then run without it.

use noctule_time_sync::{
    AnyEstimator, BoundedConfig, Estimate, Estimator, EstimatorKind, Exchange, Rejection, offline,
};
use noctule_timebase::Span;
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// `t1` to `t4`, ns.
pub(crate) type Stamps<'py> = [PyReadonlyArray1<'py, i64>; 4];
/// Largest drift in ppm, least time on the wire forward and back in ns, whether the past is distrusted.
pub(crate) type Premise = (u32, i64, i64, bool);
pub(crate) type Integers<'py> = Bound<'py, PyArray1<i64>>;
pub(crate) type Floats<'py> = Bound<'py, PyArray1<f64>>;
pub(crate) type Codes<'py> = Bound<'py, PyArray1<i8>>;

/// Offset, drift, bound, sigma, state and verdict.
pub(crate) type Estimates<'py> =
    (Integers<'py>, Floats<'py>, Integers<'py>, Integers<'py>, Codes<'py>, Codes<'py>);
/// First and last `t4`, offset, drift and clearance.
pub(crate) type Pieces<'py> = (Integers<'py>, Integers<'py>, Integers<'py>, Floats<'py>, Integers<'py>);

/// Estimates after each exchange.
#[pyfunction]
pub(crate) fn replay<'py>(
    py: Python<'py>,
    stamps: Stamps<'py>,
    estimator: &str,
    premise: Premise,
) -> PyResult<Estimates<'py>> {
    let exchanges = exchanges(&stamps)?;
    let mut estimator = build(estimator, premise)?;
    let (verdicts, estimates): (Vec<i8>, Vec<Option<Estimate>>) = py.detach(|| {
        let after = |exchange: &Exchange| {
            let verdict = estimator.handle_exchange(exchange);
            (verdict.map_or_else(Rejection::code, |()| 0), estimator.estimate(exchange.t4))
        };
        exchanges.iter().map(after).unzip()
    });
    let integers = |field: fn(&Estimate) -> i64, unknown: i64| {
        let column = estimates.iter().map(|e| e.as_ref().map_or(unknown, field));
        column.collect::<Vec<_>>().into_pyarray(py)
    };
    let drift_ppm = estimates.iter().map(|e| e.map_or(f64::NAN, |e| e.drift.ppm()));
    let state = estimates.iter().map(|e| e.map_or(-1, |e| e.state.code()));
    Ok((
        integers(|e| e.offset.ns(), i64::MIN),
        drift_ppm.collect::<Vec<_>>().into_pyarray(py),
        integers(|e| e.bound.map_or(-1, Span::ns), -1),
        integers(|e| e.sigma.map_or(-1, Span::ns), -1),
        state.collect::<Vec<_>>().into_pyarray(py),
        verdicts.into_pyarray(py),
    ))
}

/// The straight pieces of a whole trace.
#[pyfunction]
pub(crate) fn align<'py>(py: Python<'py>, stamps: Stamps<'py>, premise: Premise) -> PyResult<Pieces<'py>> {
    let exchanges = exchanges(&stamps)?;
    let pieces = py.detach(|| offline::align(&exchanges, &config(premise)));
    let integers =
        |field: fn(&offline::Piece) -> i64| pieces.iter().map(field).collect::<Vec<_>>().into_pyarray(py);
    Ok((
        integers(|piece| piece.from.ns()),
        integers(|piece| piece.to.ns()),
        integers(|piece| piece.offset.ns()),
        pieces.iter().map(|piece| piece.drift_ppm).collect::<Vec<_>>().into_pyarray(py),
        integers(|piece| piece.clearance.ns()),
    ))
}

fn exchanges(stamps: &Stamps<'_>) -> PyResult<Vec<Exchange>> {
    let [t1, t2, t3, t4] = stamps.each_ref().map(PyReadonlyArray1::as_array);
    if [t2.len(), t3.len(), t4.len()] != [t1.len(); 3] {
        return Err(PyValueError::new_err("t1, t2, t3 and t4 must be equally long"));
    }
    let rows = t1.iter().zip(&t2).zip(&t3).zip(&t4);
    Ok(rows.map(|(((t1, t2), t3), t4)| Exchange::from_ns(*t1, *t2, *t3, *t4)).collect())
}

fn config((max_drift_ppm, forward_ns, back_ns, distrust_past): Premise) -> BoundedConfig {
    BoundedConfig {
        max_drift_ppm,
        wire_forward: Span::from_ns(forward_ns),
        wire_back: Span::from_ns(back_ns),
        distrust_past,
        ..BoundedConfig::default()
    }
}

fn build(name: &str, premise: Premise) -> PyResult<AnyEstimator> {
    let kind = name.parse::<EstimatorKind>();
    let kind = kind.map_err(|e| PyValueError::new_err(format!("no estimator is called \"{name}\"; {e}")))?;
    Ok(kind.build(config(premise)))
}
