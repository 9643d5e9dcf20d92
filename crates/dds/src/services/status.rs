//! Counters of a service: requests and replies that were forwarded, failed or came late.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::plan::ServiceRoute;

/// Counts of one service, written where messages pass.
#[derive(Debug, Default)]
pub(crate) struct ServiceCounters {
    pub(crate) requests: AtomicU64,
    pub(crate) replies: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) late: AtomicU64,
    pub(crate) unreadable: AtomicU64,
    pub(crate) full: AtomicU64,
    pub(crate) ignored: AtomicU64,
}

/// Description and counters of a service, for the report.
#[derive(Clone, Debug)]
pub struct ServiceStatus {
    /// Which, and where its server is.
    pub route: ServiceRoute,
    /// Requests that were passed on.
    pub requests: u64,
    /// Replies that were passed on.
    pub replies: u64,
    /// Requests from DDS that the bus has no reply to; their clients are not able to learn it.
    pub failed: u64,
    /// Requests and replies whose time was over before they could be passed on.
    pub late: u64,
    /// Samples of DDS that are no requests or replies as `rmw_cyclonedds_cpp` writes them, and requests of the bus that are no CDR.
    pub unreadable: u64,
    /// Requests and replies that found a queue full.
    pub full: u64,
    /// Requests of other bridges between the same networks.
    pub ignored: u64,
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
        service_statuses(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Status of each service.
fn service_statuses(services: &[CountedService]) -> Vec<ServiceStatus> {
    let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let status = |(route, counters): &CountedService| ServiceStatus {
        route: ServiceRoute::clone(route),
        requests: of(&counters.requests),
        replies: of(&counters.replies),
        failed: of(&counters.failed),
        late: of(&counters.late),
        unreadable: of(&counters.unreadable),
        full: of(&counters.full),
        ignored: of(&counters.ignored),
    };
    services.iter().map(status).collect()
}
