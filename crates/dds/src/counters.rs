//! Counters of a route between the bus and DDS.

use std::sync::Arc;

pub(crate) use noctule_bridge::counters::{RouteCounters, count};

use crate::plan::Route;

/// Description and counters of a route, for the report.
pub type RouteStatus = noctule_bridge::counters::RouteStatus<Route>;

/// A route and what is counted of it.
pub(crate) type Counted = (Arc<Route>, Arc<RouteCounters>);
