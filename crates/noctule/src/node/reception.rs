//! When a datagram came, and when this host took it in.

use noctule_sys::clock::realtime_ns;
use noctule_sys::datagram::Arrival;
use noctule_timebase::Instant;

use crate::clock::Raw;
use crate::sync::arrival::came;

/// The times of one arrival, and the octet of its IP header. Datagrams that the kernel joined have these in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reception {
    /// When the kernel took it in, in nanoseconds of `CLOCK_REALTIME`; `None` if it does not say.
    pub(super) stamp_realtime_ns: Option<i64>,
    /// The octet of RFC 2474; 0 if it is not known.
    pub(super) octet: u8,
    /// When it came: before `now` if it lay in its socket.
    pub(super) came: Instant<Raw>,
    /// When it is processed.
    pub(super) now: Instant<Raw>,
}

impl Reception {
    /// Of what was received and is processed `now`. Reads the wall clock.
    pub(super) fn of(arrival: &Arrival, now: Instant<Raw>) -> Reception {
        let Arrival { realtime_ns: stamp_realtime_ns, octet, .. } = *arrival;
        Reception { stamp_realtime_ns, octet, came: came(stamp_realtime_ns, realtime_ns(), now), now }
    }

    /// Of what came another way than a socket that stamps.
    pub(super) fn unstamped(now: Instant<Raw>) -> Reception {
        Reception { stamp_realtime_ns: None, octet: 0, came: now, now }
    }
}
