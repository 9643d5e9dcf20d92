//! Requests that pass a bridge.

use std::time::Duration;

/// Deadline on the bus of a request whose client names none, as in DDS and XRCE: 10 minutes, as rmw_zenoh's own; 24 hours for `get_result` of an
/// action, which is called when the goal begins.
pub fn deadline_of(service: &str) -> Duration {
    let seconds = if service.ends_with("/_action/get_result") { 86_400 } else { 600 };
    Duration::from_secs(seconds)
}
