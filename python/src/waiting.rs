//! Waiting in steps, between which signals (Ctrl-C) are seen.

use std::time::{Duration, Instant};

use pyo3::prelude::*;

/// The longest wait without a look at signals (Ctrl-C) and at `close`.
pub(crate) const LOOK_UP: Duration = Duration::from_millis(100);

/// Waits up to `timeout`, or for ever, until `look` finds something; `None` when the time is over. `look` waits up to the time that it is
/// given, and lets other threads run meanwhile.
///
/// # Errors
/// Those of `look`, and a signal's.
pub(crate) fn wait<T>(
    py: Python<'_>,
    timeout: Option<Duration>,
    mut look: impl FnMut(Duration) -> PyResult<Option<T>>,
) -> PyResult<Option<T>> {
    let start = Instant::now();
    loop {
        let left = timeout.map_or(LOOK_UP, |timeout| timeout.saturating_sub(start.elapsed()));
        let found = look(left.min(LOOK_UP))?;
        if found.is_some() || timeout.is_some() && left <= LOOK_UP {
            return Ok(found);
        }
        py.check_signals()?;
    }
}
