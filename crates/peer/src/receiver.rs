//! Waiting for messages by spinning, blocking, or first one and then the other.

use std::time::Duration;

use noctule_sys::clock;

use crate::transport::{Deliver, PeerError, Transport, Wait};

/// A receiver without messages looks at other things this often. Constant, so that a transport may
/// set it as its socket's timeout once.
pub(crate) const QUIET_NS: i64 = 20_000_000;

const HYBRID_SPIN_NS: i64 = 50_000;

/// Polls between two readings of the clock: a reading costs as much as several polls, and an answer
/// must not wait for it.
const POLLS_PER_CLOCK_READING: u32 = 256;

/// Receives at least one message, or nothing for [`QUIET_NS`]; returns how many.
#[inline]
pub(crate) fn receive(
    wait: Wait,
    transport: &mut dyn Transport,
    deliver: &mut Deliver<'_>,
) -> Result<usize, PeerError> {
    const QUIET: Duration = Duration::from_nanos(QUIET_NS as u64);
    match wait {
        Wait::Spin => spin(transport, deliver, QUIET_NS),
        Wait::Block => transport.receive(QUIET, deliver),
        Wait::Hybrid => match spin(transport, deliver, HYBRID_SPIN_NS)? {
            0 => transport.receive(QUIET, deliver),
            count => Ok(count),
        },
    }
}

/// Receives for `left_ns`: at most one batch of messages, or nothing. For a sender that waits for
/// its next turn.
pub(crate) fn receive_for(
    wait: Wait,
    transport: &mut dyn Transport,
    left_ns: i64,
    deliver: &mut Deliver<'_>,
) -> Result<usize, PeerError> {
    if left_ns <= 0 {
        return Ok(0);
    }
    let block = |transport: &mut dyn Transport, deliver: &mut Deliver<'_>, left_ns: i64| {
        transport.receive(Duration::from_nanos(left_ns.max(1) as u64), deliver)
    };
    match wait {
        Wait::Spin => spin(transport, deliver, left_ns),
        Wait::Block => block(transport, deliver, left_ns),
        Wait::Hybrid => match spin(transport, deliver, left_ns.min(HYBRID_SPIN_NS))? {
            0 if left_ns > HYBRID_SPIN_NS => block(transport, deliver, left_ns - HYBRID_SPIN_NS),
            count => Ok(count),
        },
    }
}

/// Polls until something is delivered or `limit_ns` has passed.
fn spin(transport: &mut dyn Transport, deliver: &mut Deliver<'_>, limit_ns: i64) -> Result<usize, PeerError> {
    let mut end_ns = None;
    loop {
        // A short limit must be kept, so short waits read the clock more often.
        let polls = if limit_ns > 1_000_000 { POLLS_PER_CLOCK_READING } else { 8 };
        for _ in 0..polls {
            let count = transport.try_receive(deliver)?;
            if count > 0 {
                return Ok(count);
            }
        }
        let now_ns = clock::now_ns();
        if now_ns >= *end_ns.get_or_insert(now_ns + limit_ns) {
            return Ok(0);
        }
    }
}
