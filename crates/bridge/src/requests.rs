//! Requests that pass a bridge.

use std::time::Duration;

/// How long the bus is given for a request of a client that names no deadline, as in DDS and XRCE; rmw_zenoh gives its own as much. The result of
/// an action is asked for when its goal begins, and has a day.
pub fn deadline_of(service: &str) -> Duration {
    let seconds = if service.ends_with("/_action/get_result") { 86_400 } else { 600 };
    Duration::from_secs(seconds)
}
