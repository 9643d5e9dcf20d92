//! Connection identifiers of a link: the numbers that both sides give it, and which header the next datagram needs.
//!
//! Each side gives the link a number of its own and sends it in the long header, with its clock and the number of its next packet.
//! Once a datagram has shown that the other side has them, the short header does. The long one is repeated now and then, sooner while
//! nothing arrives: a side that restarts is understood within that time.

use noctule_timebase::{Instant, Span};

use crate::stream::Local;
use crate::wire::{Head, Opening, Reference};

/// A long header goes out this often.
const OPENING_INTERVAL: Span = Span::from_s(1);
/// The same while nothing has arrived since the last.
const OPENING_INTERVAL_UNHEARD: Span = Span::from_ms(200);
/// An opening by a side that does not know this one's number is answered no sooner than this after the last answer.
const ANSWER_INTERVAL: Span = Span::from_ms(20);
/// Packet numbers are cut while fewer than this are not acknowledged: a fourth of what their bytes can tell apart.
const PACKETS_CUT: u64 = 1 << 22;

/// A clock at a moment of the clock that drives the link: what it says later follows.
#[derive(Clone, Copy, Debug)]
struct Reading {
    clock_ns: i64,
    at: Instant<Local>,
}

impl Reading {
    fn at(self, now: Instant<Local>) -> i64 {
        self.clock_ns.saturating_add((now - self.at).ns())
    }
}

/// The numbers of both sides, as far as each knows the other's.
#[derive(Debug)]
pub(crate) struct Association {
    session: u32,
    own_id: u16,
    /// The other side's number, and its clock.
    other: Option<(u16, Reading)>,
    /// The other side knows our number and our clock.
    is_known: bool,
    /// Never changed: the other side may have any of our readings.
    own_clock: Option<Reading>,
    /// The highest number of a next packet that the other side named.
    next_packet: u64,
    opened_at: Option<Instant<Local>>,
    /// Something came since the last opening.
    has_heard: bool,
    /// The other side waits for our opening.
    owes_opening: bool,
    answered_at: Option<Instant<Local>>,
}

impl Association {
    /// `own_id` is not 0.
    pub(crate) fn new(session: u32, own_id: u16) -> Association {
        Association {
            session,
            own_id: own_id.max(1),
            other: None,
            is_known: false,
            own_clock: None,
            next_packet: 0,
            opened_at: None,
            has_heard: false,
            owes_opening: false,
            answered_at: None,
        }
    }

    /// Sets this node's clock. Only the first counts.
    pub(crate) fn observe_clock(&mut self, clock_ns: i64, at: Instant<Local>) {
        self.own_clock.get_or_insert(Reading { clock_ns, at });
    }

    /// Whether a datagram that begins so is of this link and can be read.
    pub(crate) fn is_ours(&self, head: Head) -> bool {
        match head {
            Head::Long(opening) => opening.session == self.session,
            Head::Short(id) => id == self.own_id && self.other.is_some(),
        }
    }

    /// The reference that completes the short fields of a datagram of the link. `packet` is about the next that should come, as far as its
    /// numbers are known, `own_packet` our next.
    pub(crate) fn reference(&self, packet: u64, own_packet: u64, now: Instant<Local>) -> Reference {
        let clock_ns = self.other.map_or(0, |(_, reading)| reading.at(now));
        Reference { packet: packet.max(self.next_packet), clock_ns, own_packet }
    }

    /// A whole datagram of the link has come.
    pub(crate) fn handle(&mut self, head: Head, now: Instant<Local>) {
        self.has_heard = true;
        let Head::Long(opening) = head else {
            self.is_known = true;
            return;
        };
        self.other = Some((opening.own_id, Reading { clock_ns: opening.clock_ns, at: now }));
        self.next_packet = self.next_packet.max(opening.next_packet);
        self.is_known = opening.other_id == self.own_id;
        if !self.is_known && self.answered_at.is_none_or(|at| now - at >= ANSWER_INTERVAL) {
            self.owes_opening = true;
        }
    }

    /// Whether an opening is to be sent even if nothing else is.
    pub(crate) fn owes_opening(&self) -> bool {
        self.owes_opening
    }

    /// Our clock as the other side knows it.
    pub(crate) fn clock_ns(&self, now: Instant<Local>) -> i64 {
        self.own_clock.map_or(0, |reading| reading.at(now))
    }

    /// The short header if the other side understands it; numbers of packets up to `acknowledged` are known to have arrived.
    pub(crate) fn head(&self, next_packet: u64, acknowledged: u64, now: Instant<Local>) -> Head {
        let interval = if self.has_heard { OPENING_INTERVAL } else { OPENING_INTERVAL_UNHEARD };
        let is_due = self.owes_opening || self.opened_at.is_none_or(|at| now - at >= interval);
        match self.other {
            Some((id, _)) if self.is_known && !is_due && next_packet - acknowledged < PACKETS_CUT => {
                Head::Short(id)
            }
            _ => self.long(next_packet, now),
        }
    }

    /// The long header.
    pub(crate) fn long(&self, next_packet: u64, now: Instant<Local>) -> Head {
        Head::Long(Opening {
            session: self.session,
            own_id: self.own_id,
            other_id: self.other.map_or(0, |(id, _)| id),
            clock_ns: self.clock_ns(now),
            next_packet,
        })
    }

    /// A datagram that begins so was sent.
    pub(crate) fn sent(&mut self, head: Head, now: Instant<Local>) {
        if matches!(head, Head::Long(_)) {
            if std::mem::take(&mut self.owes_opening) {
                self.answered_at = Some(now);
            }
            self.opened_at = Some(now);
            self.has_heard = false;
        }
    }
}
