//! Path MTU discovery (PLPMTUD, DPLPMTUD, RFC 8899): the longest datagram that passes.
//!
//! # Problem
//!
//! Fewer, longer datagrams are cheaper for both hosts; one that is longer than any line on its way carries is dropped there,
//! often without a word (a black hole). Fragments of IP are no way out: one lost loses all, and many firewalls drop them.
//!
//! # Approach
//!
//! Packetization layer path MTU discovery for datagrams (RFC 8899), with probes that carry nothing:
//!
//! - Begins with a size that every path carries. A longer one is used once a probe of it has arrived.
//! - Sizes of well-known lines are tried first, then the middle between what arrived and what did not. Three probes lost
//!   say that a size does not pass; a silence says nothing, until a probe of the base has been answered.
//! - Probes only while there are samples that need more than one datagram, one at a time.
//! - Eight of the longer datagrams lost in a row, or three probes of the size in use: back to the base, and search again.

use noctule_timebase::{Instant, Span};

use crate::stream::Local;

/// Bytes of UDP payload, in the order that they are tried: Ethernet, its jumbo frames, tunnels (WireGuard; the least of
/// IPv6), frames of 4 KiB, Wi-Fi's longest.
const WELL_KNOWN_BYTES: [usize; 6] = [1_472, 8_972, 1_392, 1_252, 4_052, 2_276];
/// The search ends when no more than this part of the size in use is to be gained.
const GAIN_LEAST: usize = 8;
/// Probes of one size that are lost before it counts as too long (RFC 8899, section 5.1.2).
const TRIES: u32 = 3;
/// PROBE_TIMER: time without acknowledgement after which a probe may be lost (section 5.1.1).
const PROBE_TIMEOUT: Span = Span::from_s(1);
/// Time without probes after a loss: losses come in bursts.
const PAUSE: Span = Span::from_ms(100);
/// Time after a long sample in which probes are sent.
const DEMAND: Span = Span::from_s(1);
/// After so long without a proof the size in use is confirmed.
const CONFIRM_AFTER: Span = Span::from_s(10);
/// After so long a longer size is tried again (section 5.1.1).
const SEARCH_AGAIN_AFTER: Span = Span::from_s(600);
/// A black hole: this many longer datagrams lost and none arrived, over at least this time and this many round trips.
const BLACK_HOLE_LOSSES: u32 = 8;
const BLACK_HOLE_LEAST: Span = Span::from_ms(50);
const BLACK_HOLE_ROUND_TRIPS: i64 = 3;

/// Lengths of datagrams, without what an envelope adds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    /// Every path carries it.
    pub(crate) base_bytes: usize,
    /// Assumed at first.
    pub(crate) initial_bytes: usize,
    pub(crate) max_bytes: usize,
    /// Bytes that an envelope adds.
    pub(crate) envelope_bytes: usize,
}

/// Path MTU discovery of one path (RFC 8899).
#[derive(Debug)]
pub(crate) struct PathMtu {
    sizes: Sizes,
    /// In use.
    confirmed: usize,
    /// The shortest that is too long, as far as is known.
    failed: usize,
    probe: Option<Probe>,
    /// The size tried last, and how many probes of it were lost.
    tried: (usize, u32),
    /// Probes of this size are lost, or no node is there: a probe of the base decides.
    doubted: Option<usize>,
    /// No probe before this.
    ready_at: Instant<Local>,
    /// Until then samples are longer than a datagram of the base, and than one of those in use.
    used_until: Instant<Local>,
    wanted_until: Instant<Local>,
    search_again_at: Instant<Local>,
    /// When the size in use last arrived.
    proven_at: Instant<Local>,
    losses: Losses,
}

#[derive(Clone, Copy, Debug)]
struct Probe {
    packet: u64,
    bytes: usize,
    sent_at: Instant<Local>,
}

/// Longer datagrams lost in a row.
#[derive(Clone, Copy, Debug)]
struct Losses {
    count: u32,
    least_bytes: usize,
    first_sent_at: Instant<Local>,
}

const NO_LOSSES: Losses = Losses { count: 0, least_bytes: usize::MAX, first_sent_at: Instant::MAX };

impl PathMtu {
    pub(crate) fn new(sizes: Sizes, now: Instant<Local>) -> PathMtu {
        PathMtu {
            sizes,
            confirmed: sizes.initial_bytes,
            failed: sizes.max_bytes + 1,
            probe: None,
            tried: (0, 0),
            doubted: None,
            ready_at: now,
            used_until: Instant::MIN,
            wanted_until: Instant::MIN,
            search_again_at: Instant::MAX,
            proven_at: now,
            losses: NO_LOSSES,
        }
    }

    /// No datagram but a probe is longer.
    pub(crate) fn datagram_bytes(&self) -> usize {
        self.confirmed
    }

    /// The length that every path carries.
    pub(crate) fn base_bytes(&self) -> usize {
        self.sizes.base_bytes
    }

    /// There is a sample that as one fragment would make a datagram of this length.
    pub(crate) fn demand(&mut self, whole_bytes: usize, now: Instant<Local>) {
        if whole_bytes > self.sizes.base_bytes {
            self.used_until = now + DEMAND;
        }
        if whole_bytes > self.confirmed {
            self.wanted_until = now + DEMAND;
            if now >= self.search_again_at {
                self.failed = self.sizes.max_bytes + 1;
                self.search_again_at = Instant::MAX;
            }
        }
    }

    /// The length of a probe, if one is due; it is sent as this packet.
    pub(crate) fn poll_probe(&mut self, packet: u64, now: Instant<Local>) -> Option<usize> {
        for until in [&mut self.used_until, &mut self.wanted_until] {
            *until = if now > *until { Instant::MIN } else { *until };
        }
        let (at, bytes) = self.due().filter(|_| self.probe.is_none())?;
        if now < at {
            return None;
        }
        self.probe = Some(Probe { packet, bytes, sent_at: now });
        Some(bytes)
    }

    /// When a probe is due, or given up.
    pub(crate) fn timeout(&self) -> Option<Instant<Local>> {
        match self.probe {
            Some(probe) => Some(probe.sent_at + PROBE_TIMEOUT),
            None => self.due().map(|(at, _)| at),
        }
    }

    /// Time has passed. An unacknowledged probe may have been lost for another reason than its length.
    pub(crate) fn handle_timeout(&mut self, now: Instant<Local>) {
        let Some(probe) = self.probe.filter(|probe| probe.sent_at + PROBE_TIMEOUT <= now) else { return };
        (self.probe, self.ready_at) = (None, now + PAUSE);
        if probe.bytes > self.sizes.base_bytes {
            self.doubted = Some(probe.bytes);
        }
    }

    /// A numbered datagram has arrived.
    pub(crate) fn arrived(&mut self, packet: u64, bytes: usize, now: Instant<Local>) {
        if bytes >= self.losses.least_bytes {
            self.losses = NO_LOSSES;
        }
        // Fragments of a sample are equally long, so few are as long as they might be.
        if bytes >= self.confirmed - self.confirmed / GAIN_LEAST {
            self.proven_at = now;
        }
        let Some(probe) = self.probe.filter(|probe| probe.packet == packet) else { return };
        (self.probe, self.ready_at) = (None, now);
        if let Some(doubted) = self.doubted.take().filter(|doubted| *doubted > probe.bytes) {
            self.count_lost_probe(doubted, now);
            return;
        }
        self.tried = (0, 0);
        if probe.bytes > self.confirmed {
            self.confirmed = probe.bytes;
            self.proven_at = now;
        }
        self.plan(now);
    }

    /// A numbered datagram is lost, although others that left at the time have arrived or the time-out has passed.
    pub(crate) fn lost(
        &mut self,
        (packet, bytes): (u64, usize),
        sent_at: Instant<Local>,
        round_trip: Span,
        now: Instant<Local>,
    ) {
        if let Some(probe) = self.probe.filter(|probe| probe.packet == packet) {
            (self.probe, self.ready_at) = (None, now + PAUSE);
            if probe.bytes > self.sizes.base_bytes {
                self.count_lost_probe(probe.bytes, now);
            }
            return;
        }
        if bytes <= self.sizes.base_bytes || bytes > self.confirmed {
            return;
        }
        let Losses { count, least_bytes, first_sent_at } = self.losses;
        let first_sent_at = first_sent_at.min(sent_at);
        self.losses = Losses { count: count + 1, least_bytes: least_bytes.min(bytes), first_sent_at };
        let lasting = BLACK_HOLE_LEAST.max(round_trip * BLACK_HOLE_ROUND_TRIPS);
        if self.losses.count >= BLACK_HOLE_LOSSES && sent_at - first_sent_at >= lasting {
            self.fall_back(self.confirmed + 1, now);
        }
    }

    /// This host's line does not take a datagram of this length.
    pub(crate) fn handle_too_long(&mut self, bytes: usize, now: Instant<Local>) {
        if self.probe.is_some_and(|probe| probe.bytes == bytes) {
            (self.probe, self.ready_at) = (None, now);
        }
        if bytes > self.sizes.base_bytes && bytes <= self.confirmed {
            self.fall_back(bytes, now);
        } else if bytes > self.confirmed {
            self.failed = self.failed.min(bytes);
            self.plan(now);
        }
    }

    /// Datagrams go another way from now on.
    pub(crate) fn restart(&mut self, now: Instant<Local>) {
        self.fall_back(self.sizes.max_bytes + 1, now);
    }

    fn fall_back(&mut self, failed: usize, now: Instant<Local>) {
        (self.confirmed, self.failed) = (self.sizes.base_bytes, failed);
        (self.probe, self.tried, self.doubted) = (None, (0, 0), None);
        (self.ready_at, self.losses, self.search_again_at) = (now + PAUSE, NO_LOSSES, Instant::MAX);
        self.wanted_until = self.used_until;
        self.plan(now);
    }

    /// A probe of this size is lost, and that is not because nothing arrives.
    fn count_lost_probe(&mut self, bytes: usize, now: Instant<Local>) {
        let lost = if self.tried.0 == bytes { self.tried.1 + 1 } else { 1 };
        self.tried = (bytes, lost);
        if lost < TRIES {
            return;
        }
        self.tried = (0, 0);
        if bytes <= self.confirmed {
            self.fall_back(self.confirmed + 1, now);
        } else {
            self.failed = bytes;
            self.plan(now);
        }
    }

    /// If the search is over, when to begin anew.
    fn plan(&mut self, now: Instant<Local>) {
        if self.candidate().is_none() && self.search_again_at == Instant::MAX {
            self.search_again_at = now + SEARCH_AGAIN_AFTER;
        }
    }

    /// The next probe.
    fn due(&self) -> Option<(Instant<Local>, usize)> {
        // Looked at for every datagram, and mostly no sample is that long.
        if self.ready_at > self.used_until.max(self.wanted_until) {
            return None;
        }
        if self.doubted.is_some() {
            return Some((self.ready_at, self.sizes.base_bytes)).filter(|(at, _)| *at <= self.used_until);
        }
        let longer = self.candidate().map(|bytes| (self.ready_at, bytes));
        let confirm_at = self.ready_at.max(self.proven_at + CONFIRM_AFTER);
        let same = (self.confirmed > self.sizes.base_bytes).then_some((confirm_at, self.confirmed));
        longer.filter(|(at, _)| *at <= self.wanted_until).or(same.filter(|(at, _)| *at <= self.used_until))
    }

    /// The size to try next; `None` if there is none worth it.
    fn candidate(&self) -> Option<usize> {
        let gain = self.failed.saturating_sub(self.confirmed + 1);
        let well_known = WELL_KNOWN_BYTES.map(|bytes| bytes.saturating_sub(self.sizes.envelope_bytes));
        let middle = self.confirmed.midpoint(self.failed);
        // What carries Ethernet's frames may carry whatever this host can send.
        let [ethernet, others @ ..] = well_known;
        let mut sizes = [ethernet, self.sizes.max_bytes].into_iter().chain(others).chain([middle]);
        sizes
            .find(|bytes| (self.confirmed + 1..self.failed).contains(bytes))
            .filter(|_| gain * GAIN_LEAST > self.confirmed)
    }
}

#[cfg(test)]
mod tests;
