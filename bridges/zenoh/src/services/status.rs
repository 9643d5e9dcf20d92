//! Counters of a service: requests and replies that were forwarded, failed or came late.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use noctule_ros_zenoh::services::ServiceRoute;

/// Counts of one service, written where messages pass.
#[derive(Debug, Default)]
pub(crate) struct ServiceCounters {
    pub(crate) requests: AtomicU64,
    pub(crate) replies: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) late: AtomicU64,
    pub(crate) unreadable: AtomicU64,
    pub(crate) full: AtomicU64,
}

/// Description and counters of a service, for the report.
#[derive(Clone, Debug)]
pub(crate) struct ServiceStatus {
    /// Which, and where its server is.
    pub(crate) route: ServiceRoute,
    /// Requests that were passed on.
    pub(crate) requests: u64,
    /// Replies that were passed on.
    pub(crate) replies: u64,
    /// Requests that have no reply; the client learns it.
    pub(crate) failed: u64,
    /// Replies whose client did not wait any more.
    pub(crate) late: u64,
    /// Requests and replies that are none of ROS 2's or of the bus's.
    pub(crate) unreadable: u64,
    /// Requests that found a queue full.
    pub(crate) full: u64,
}

/// A service and what is counted of it.
pub(crate) type CountedService = (Arc<ServiceRoute>, Arc<ServiceCounters>);

/// Those that are exchanged now, for the planning thread and the status.
#[derive(Clone, Debug, Default)]
pub(crate) struct ListedServices(Arc<Mutex<Vec<CountedService>>>);

impl ListedServices {
    pub(crate) fn set(&self, services: Vec<CountedService>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = services;
    }

    pub(crate) fn statuses(&self) -> Vec<ServiceStatus> {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let status = |(route, counters): &CountedService| ServiceStatus {
            route: ServiceRoute::clone(route),
            requests: of(&counters.requests),
            replies: of(&counters.replies),
            failed: of(&counters.failed),
            late: of(&counters.late),
            unreadable: of(&counters.unreadable),
            full: of(&counters.full),
        };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().map(status).collect()
    }
}
