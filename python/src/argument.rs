//! Python's numbers and words, and the library's errors.

use std::ops::RangeInclusive;
use std::time::Duration;

use noctule::{NodeError, Reliability, TakeError, Wait};
use pyo3::exceptions::{PyException, PyValueError};
use pyo3::prelude::*;

pyo3::create_exception!(
    noctule,
    NoctuleError,
    PyException,
    "What went wrong although the arguments were right: one sentence, with the way out."
);

/// A number within limits; Python's have none.
pub(crate) fn whole(name: &str, value: i64, range: RangeInclusive<u32>) -> PyResult<u32> {
    let (first, last) = (*range.start(), *range.end());
    u32::try_from(value)
        .ok()
        .filter(|value| range.contains(value))
        .ok_or_else(|| PyValueError::new_err(format!("{name} is {value}; {first} to {last} are possible")))
}

/// Seconds of which zero is not enough.
pub(crate) fn duration(name: &str, seconds: Option<f64>) -> PyResult<Option<Duration>> {
    let Some(seconds) = seconds else { return Ok(None) };
    let duration = Duration::try_from_secs_f64(seconds).ok().filter(|duration| !duration.is_zero());
    let wrong = || PyValueError::new_err(format!("{name} is {seconds} s; it must be positive, or None"));
    duration.map(Some).ok_or_else(wrong)
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
pub(crate) fn reliability(word: &str) -> PyResult<Reliability> {
    match word {
        "best_effort" => Ok(Reliability::BestEffort),
        "deadline_bound" => Ok(Reliability::DeadlineBound),
        "reliable" => Ok(Reliability::Reliable),
        _ => Err(PyValueError::new_err(format!(
            "no reliability is called {word:?}; there are 'best_effort', 'deadline_bound' and 'reliable'"
        ))),
    }
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

/// What the system refuses is a `NoctuleError`, the rest the caller's.
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
