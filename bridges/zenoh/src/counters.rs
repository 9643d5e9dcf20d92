//! Counters of a route: samples forwarded, refused, missed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use noctule_bridge::ages::Stamping;
use noctule_ros_zenoh::plan::Route;

/// Counts of one route, written where samples pass.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) samples: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) unreadable: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) too_large: AtomicU64,
    pub(crate) missed: AtomicU64,
    pub(crate) ignored: AtomicU64,
    pub(crate) undated: AtomicU64,
    stamping: Mutex<Stamping>,
}

/// Description and counters of a route, for the report.
#[derive(Clone, Debug)]
pub(crate) struct RouteStatus {
    /// Which topic, which way, how.
    pub(crate) route: Route,
    /// Samples that went through.
    pub(crate) samples: u64,
    /// Their bytes.
    pub(crate) bytes: u64,
    /// Samples that are no CDR of version 1, or whose attachment is none.
    pub(crate) unreadable: u64,
    /// Samples that Zenoh did not take.
    pub(crate) refused: u64,
    /// Samples longer than [`SAMPLE_BYTES_MAX`](crate::from_zenoh::SAMPLE_BYTES_MAX).
    pub(crate) too_large: u64,
    /// Samples that are missing before those that came, by their sequence numbers.
    pub(crate) missed: u64,
    /// Samples that came twice: on ROS 2's key and on our own.
    pub(crate) ignored: u64,
    /// Samples of other gateways that passed without a bound, because the clock was not known in time.
    pub(crate) undated: u64,
    /// How samples from Zenoh are dated.
    pub(crate) stamping: Stamping,
}

/// A route and what is counted of it.
pub(crate) type Counted = (Arc<Route>, Arc<Counters>);

impl Counters {
    pub(crate) fn status(&self, route: &Route) -> RouteStatus {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        RouteStatus {
            route: route.clone(),
            samples: of(&self.samples),
            bytes: of(&self.bytes),
            unreadable: of(&self.unreadable),
            refused: of(&self.refused),
            too_large: of(&self.too_large),
            missed: of(&self.missed),
            ignored: of(&self.ignored),
            undated: of(&self.undated),
            stamping: *self.stamping.lock().unwrap_or_else(PoisonError::into_inner),
        }
    }

    pub(crate) fn passed(&self, bytes: usize) {
        count(&self.samples, 1);
        count(&self.bytes, bytes as u64);
    }

    pub(crate) fn stamped(&self, stamping: Stamping) {
        *self.stamping.lock().unwrap_or_else(PoisonError::into_inner) = stamping;
    }
}

/// Adds to a counter.
pub(crate) fn count(counter: &AtomicU64, by: u64) {
    counter.fetch_add(by, Ordering::Relaxed);
}
