//! Counters of a route: samples forwarded, refused, missed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::plan::Route;
use noctule_bridge::ages::Stamping;

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
    stamping: Mutex<Stamping>,
}

/// Description and counters of a route, for the report.
#[derive(Clone, Debug)]
pub struct RouteStatus {
    /// Which topic, which way, how.
    pub route: Route,
    /// Samples that went through.
    pub samples: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Samples in another encoding than CDR of version 1.
    pub unreadable: u64,
    /// Samples that readers in DDS were too slow for.
    pub refused: u64,
    /// Samples longer than [`SAMPLE_BYTES_MAX`](crate::cyclone::SAMPLE_BYTES_MAX).
    pub too_large: u64,
    /// Samples that newer ones replaced before this route came to them (KEEP_LAST); from the bus, also those lost on the
    /// way to this host.
    pub missed: u64,
    /// Samples of other bridges between the same networks.
    pub ignored: u64,
    /// How samples from DDS are dated.
    pub stamping: Stamping,
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
