//! `noctule.Statistics`.

use noctule::SubscriberStatistics;
use noctule_timebase::Span;
use pyo3::prelude::*;

use crate::sample::named;

/// Statistics of a subscriber since it was opened.
///
/// Ages are those when samples were taken, in nanoseconds. A quantile is known, within 0.8 %, if ten samples lie beyond it;
/// ``None``: not known.
#[pyclass(module = "noctule", frozen, get_all, eq)]
#[derive(PartialEq, Eq)]
pub(crate) struct Statistics {
    /// Samples taken.
    taken: u64,
    /// Missing before those: lost on the way, or overwritten unread.
    missed: u64,
    /// Older than ``lifespan``, and dropped.
    expired: u64,
    /// Taken, but older than the ``deadline`` that was requested.
    late: u64,
    /// Periods of that ``deadline`` in which nothing came.
    deadline_missed: u64,
    /// Bytes of those that were taken.
    bytes: u64,
    /// Taken, and of known age.
    aged: u64,
    /// Median age.
    age_p50_ns: Option<i64>,
    /// 90th percentile of ages.
    age_p90_ns: Option<i64>,
    /// 99th percentile of ages.
    age_p99_ns: Option<i64>,
    /// 99.9th percentile of ages.
    age_p99_9_ns: Option<i64>,
    /// The largest age.
    age_max_ns: Option<i64>,
    /// No age is further from the truth; ``None`` if that is not proven of every sample.
    bound_ns: Option<i64>,
}

impl From<SubscriberStatistics> for Statistics {
    fn from(from: SubscriberStatistics) -> Statistics {
        let ns = |span: Option<Span>| span.map(Span::ns);
        Statistics {
            taken: from.counters.taken,
            missed: from.counters.missed,
            expired: from.counters.expired,
            late: from.counters.late,
            deadline_missed: from.deadline_missed,
            bytes: from.counters.bytes,
            aged: from.aged,
            age_p50_ns: ns(from.age_p50),
            age_p90_ns: ns(from.age_p90),
            age_p99_ns: ns(from.age_p99),
            age_p99_9_ns: ns(from.age_p99_9),
            age_max_ns: ns(from.age_max),
            bound_ns: ns(from.bound),
        }
    }
}

#[pymethods]
impl Statistics {
    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        named(
            slf.as_any(),
            &["taken", "missed", "expired", "late", "age_p50_ns", "age_p99_ns", "age_max_ns", "bound_ns"],
        )
    }
}
