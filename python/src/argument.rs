//! Python's numbers and words, and the library's errors.

use std::ops::RangeInclusive;
use std::time::Duration;

use noctule::{Durability, Format, NodeError, Qos, Reliability, TakeError, UnknownQosWord, Wait};
use noctule_timebase::Span;
use pyo3::exceptions::{PyException, PyValueError};
use pyo3::prelude::*;

pyo3::create_exception!(
    noctule,
    NoctuleError,
    PyException,
    "A failure with valid arguments: one sentence, with the way out."
);

/// A number within limits; Python's have none.
pub(crate) fn whole(name: &str, value: i64, range: RangeInclusive<u32>) -> PyResult<u32> {
    let (first, last) = (*range.start(), *range.end());
    u32::try_from(value)
        .ok()
        .filter(|value| range.contains(value))
        .ok_or_else(|| PyValueError::new_err(format!("{name} is {value}; {first} to {last} are possible")))
}

/// QoS that a publisher offers or a subscriber requests; a subscriber's history is not part of a request.
#[expect(clippy::too_many_arguments, reason = "keywords of Python, named where they are given")]
pub(crate) fn qos(
    reliability: &str,
    keep_last: Option<i64>,
    transient_local: bool,
    deadline: Option<f64>,
    lifespan: Option<f64>,
    tolerable_loss: f64,
) -> PyResult<Qos> {
    if !(1e-6..=1.0).contains(&tolerable_loss) {
        let text = format!("tolerable_loss is {tolerable_loss}; a share from 0.000001 to 1 is possible");
        return Err(PyValueError::new_err(text));
    }
    let depth = keep_last.map(|keep_last| whole("keep_last", keep_last, 1..=65535)).transpose()?;
    Ok(Qos {
        reliability: self::reliability(reliability)?,
        durability: if transient_local { Durability::TransientLocal } else { Durability::Volatile },
        depth: depth.unwrap_or(Qos::default().depth),
        deadline: span("deadline", deadline)?,
        lifespan: span("lifespan", lifespan)?,
        loss_ppm: (tolerable_loss * 1e6).round() as u32,
        ..Qos::default()
    })
}

/// The name of a format.
pub(crate) fn format(name: &str) -> PyResult<Format> {
    name.parse().map_err(|error: noctule::formats::UnknownFormat| PyValueError::new_err(error.to_string()))
}

/// Seconds of which zero is not enough.
fn span(name: &str, seconds: Option<f64>) -> PyResult<Option<Span>> {
    let Some(seconds) = seconds else { return Ok(None) };
    let duration = Duration::try_from_secs_f64(seconds).ok().filter(|duration| !duration.is_zero());
    let wrong = || PyValueError::new_err(format!("{name} is {seconds} s; it must be positive, or None"));
    let ns = i64::try_from(duration.ok_or_else(wrong)?.as_nanos()).map_err(|_| wrong())?;
    Ok(Some(Span::from_ns(ns)))
}

/// How long to wait; zero looks once.
pub(crate) fn timeout(seconds: Option<f64>) -> PyResult<Option<Duration>> {
    let Some(seconds) = seconds else { return Ok(None) };
    let wrong = |_| {
        PyValueError::new_err(format!(
            "timeout is {seconds} s; it must not be negative, or None to wait for ever"
        ))
    };
    Duration::try_from_secs_f64(seconds).map(Some).map_err(wrong)
}

/// One of the words of `Reliability`'s `Display`.
fn reliability(word: &str) -> PyResult<Reliability> {
    word.parse().map_err(|error: UnknownQosWord| PyValueError::new_err(error.to_string()))
}

/// How a subscriber waits.
pub(crate) fn wait(word: &str) -> PyResult<Wait> {
    match word {
        "block" => Ok(Wait::Block),
        "spin" => Ok(Wait::Spin),
        "hybrid" => Ok(Wait::Hybrid),
        _ => Err(PyValueError::new_err(format!(
            "no way to wait is called {word:?}; there are 'block', 'spin' and 'hybrid'"
        ))),
    }
}

/// `NoctuleError` where the system refuses, `ValueError` for everything else.
pub(crate) fn not_opened(error: &NodeError) -> PyErr {
    match error {
        NodeError::System { .. } | NodeError::File { .. } | NodeError::Full => {
            NoctuleError::new_err(error.to_string())
        }
        _ => PyValueError::new_err(error.to_string()),
    }
}

pub(crate) fn not_taken(error: &TakeError) -> PyErr {
    NoctuleError::new_err(error.to_string())
}

/// As Python says of closed files.
pub(crate) fn closed(what: &str) -> PyErr {
    PyValueError::new_err(format!("the {what} is closed"))
}
