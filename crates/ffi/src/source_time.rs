//! `noctule_source_time_of`: stamps of other clocks of this machine.

use std::ffi::c_int;

use noctule::StampClock;
use noctule_timebase::Span;

use crate::argument;
use crate::failure::{Failure, OK, guard};
use crate::node::NodeHandle;

/// `noctule_source_time_t`.
#[repr(C)]
pub struct SourceTimeGiven {
    pub(crate) time_ns: i64,
    pub(crate) bound_ns: i64,
    pub(crate) sigma_ns: i64,
}

/// A stamp of another clock on the node's.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_source_time_of(
    node: *const NodeHandle,
    clock: c_int,
    stamp_ns: i64,
    source_time: *mut SourceTimeGiven,
) -> c_int {
    guard(|| {
        // SAFETY: the memory of the caller for the result.
        let result = unsafe { argument::exclusive(source_time, "source_time") }?;
        // SAFETY: null or the caller's handle.
        let node = unsafe { argument::shared(node, "node") }?;
        let clock = match clock {
            0 => StampClock::Monotonic,
            1 => StampClock::Realtime,
            2 => StampClock::Tai,
            _ => return Err(Failure::argument(format!("no clock has the number {clock}; 0 to 2 are"))),
        };
        let time =
            node.0.source_time_of(clock, stamp_ns).map_err(|error| Failure::argument(error.to_string()))?;
        let width = |width: Option<Span>| width.map_or(-1, Span::ns);
        *result = SourceTimeGiven {
            time_ns: time.time.ns(),
            bound_ns: width(time.bound),
            sigma_ns: width(time.sigma),
        };
        Ok(OK)
    })
}
