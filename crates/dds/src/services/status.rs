//! Counters of a service between the bus and DDS.

pub(crate) use noctule_bridge::counters::ServiceCounters;

use super::plan::ServiceRoute;

/// Description and counters of a service, for the report.
pub type ServiceStatus = noctule_bridge::counters::ServiceStatus<ServiceRoute>;

/// A service and what is counted of it.
pub(crate) type CountedService = noctule_bridge::counters::CountedService<ServiceRoute>;

/// Those that are exchanged now, for the planning thread and the status.
pub(crate) type ListedServices = noctule_bridge::counters::ListedServices<ServiceRoute>;
