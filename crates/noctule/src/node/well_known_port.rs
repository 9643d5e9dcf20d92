//! The well-known port of a host: what comes there is passed on to every node of the host.
//!
//! A process that can send to the port can have a datagram copied once for each node of the host, so only what may be discovery's is
//! passed on, and no more of it a second than a large swarm sends.

use std::net::SocketAddr;

use noctule_timebase::{Instant, Span};

use super::directory::{Directory, Entry};
use crate::clock::Raw;
use crate::envelope::OVERHEAD_BYTES;

/// Datagrams passed on in a second; more are dropped, and discovery repeats them.
const FORWARDED_PER_S: u32 = 2_000;
/// Lifetime of the cached list of this host's nodes: reading it costs some 100 µs.
const LISTED_FOR: Span = Span::from_ms(100);
/// Longer datagrams are not discovery's.
const BYTES_MAX: usize = noctule_discovery::DATAGRAM_BYTES_MAX + OVERHEAD_BYTES;

/// Passes on what arrives at the well-known port to every node of this host.
#[derive(Debug, Default)]
pub(super) struct WellKnownPort {
    others: Vec<Entry>,
    listed: Option<Instant<Raw>>,
    second: Option<Instant<Raw>>,
    forwarded: u32,
}

impl WellKnownPort {
    /// Passes a datagram on.
    pub(super) fn forward(
        &mut self,
        directory: &Directory,
        source: SocketAddr,
        datagram: &[u8],
        now: Instant<Raw>,
    ) {
        if !self.lets_through(datagram, now) {
            return;
        }
        if self.listed.is_none_or(|listed| now - listed >= LISTED_FOR) {
            self.others = directory.others(None);
            self.listed = Some(now);
        }
        // The domain cannot be seen from outside if the datagram is sealed.
        let domain = noctule_discovery::domain(datagram);
        let is_meant = |other: &&Entry| domain.is_none_or(|domain| other.0 == domain);
        let to: Vec<Entry> = self.others.iter().filter(is_meant).copied().collect();
        directory.forward(&to, source, datagram);
    }

    fn lets_through(&mut self, datagram: &[u8], now: Instant<Raw>) -> bool {
        let is_discovery = datagram.starts_with(b"NCTD") || datagram.starts_with(b"NCTX");
        if !is_discovery || datagram.len() > BYTES_MAX {
            return false;
        }
        if self.second.is_none_or(|second| now - second >= Span::from_s(1)) {
            (self.second, self.forwarded) = (Some(now), 0);
        }
        self.forwarded = self.forwarded.saturating_add(1);
        self.forwarded <= FORWARDED_PER_S
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_passed_on_no_faster_than_the_limit_and_other_datagrams_never() {
        let mut well_known_port = WellKnownPort::default();
        let at = |us: i64| Instant::from_ns(us * 1_000);
        let passed = (0..30_000).filter(|i| well_known_port.lets_through(b"NCTD", at(i * 100))).count();
        assert_eq!(passed, 3 * FORWARDED_PER_S as usize);
        let late = at(10_000_000);
        assert!(
            !well_known_port.lets_through(b"NCTM", late)
                && !well_known_port.lets_through(&[b"NCTD".as_slice(), &[0; 1_300]].concat(), late)
        );
        assert!(well_known_port.lets_through(b"NCTX", late));
    }
}
