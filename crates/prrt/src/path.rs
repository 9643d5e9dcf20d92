//! A snapshot of the path (RTT, one-way delay, loss) and of the packets in flight, for the repair rule.

use noctule_timebase::{Instant, Span};

use crate::delay_table::Quantiles;
use crate::gilbert::{Departure, Gilbert};
use crate::sent_packets::SentPackets;
use crate::stream::Local;

/// Before a round trip has been measured it is assumed to be this long.
pub(crate) const ROUND_TRIP_PRIOR: Span = Span::from_ms(100);
/// Stamps are no better than this: an acknowledgement that comes so much later than the slowest is not late.
const STAMP_ERROR: Span = Span::from_us(10);

/// A datagram of unknown fate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pending {
    pub(crate) packet: u64,
    pub(crate) sent_at: Instant<Local>,
    /// The receiver waits for it, and says so if it does not come.
    pub(crate) is_expected: bool,
    /// Its acknowledgement may leave so much later.
    pub(crate) ack_delay: Span,
}

/// How the path is at the moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path {
    pub(crate) one_way: Span,
    /// From sending a datagram to hearing of it.
    pub(crate) round: Span,
    /// The same without what is added for threads that wake late.
    pub(crate) rounds: Quantiles,
    /// One way and round trip of long samples, whose delays are mostly their own queue: mean and variations, not the slowest.
    pub(crate) long: [Span; 2],
    /// The newest datagram of known fate, and whether it was lost.
    pub(crate) known: (Departure, bool),
    /// Number of the next datagram.
    pub(crate) next: u64,
    /// When the last feedback came.
    pub(crate) heard_at: Instant<Local>,
    pub(crate) channel: Gilbert,
    /// It bears less than was offered.
    pub(crate) is_limited: bool,
    /// It may do.
    pub(crate) is_doubtful: bool,
    /// One more repair may leave now: repairs are not what fills it.
    pub(crate) may_repair: bool,
    /// The shortest round trip: without a queue.
    pub(crate) floor: Span,
    /// Capacity of the path, if known.
    pub(crate) capacity_bytes_per_s: Option<f64>,
    /// How much later than asked for threads wake.
    pub(crate) lateness: Span,
}

/// An acknowledgement that is not urgent waits for this part of the deadline at most.
pub(crate) const ACK_DELAY_PARTS: i64 = 3;
/// One in so many blocks asks for its acknowledgement soon on a path that loses: feedback names those before it, too.
const LOSSY_BLOCKS: u64 = 2;
/// With a greater share of losses acknowledgements count: what none names in time is retransmitted in vain.
const ACK_DELAY_LOSS_MAX: f64 = 0.01;

impl Path {
    /// How it is now, with what can be relied on. One way is half a round trip only if the other side's clock is not known.
    pub(crate) fn of(sent_packets: &mut SentPackets, lateness: Span, now: Instant<Local>) -> Path {
        let rounds = sent_packets.round_trips().unwrap_or(Quantiles::all(ROUND_TRIP_PRIOR));
        let round = rounds.highest() + lateness + STAMP_ERROR;
        let one_way =
            sent_packets.ways_there().as_ref().map_or(rounds.highest() / 2, Quantiles::highest) + lateness;
        Path {
            one_way,
            round,
            rounds,
            long: sent_packets
                .round_trip()
                .map_or([ROUND_TRIP_PRIOR / 2, ROUND_TRIP_PRIOR], |trip| trip.with_variations(lateness)),
            known: sent_packets.known(),
            next: sent_packets.next_number(),
            heard_at: sent_packets.heard_at(),
            channel: sent_packets.channel(),
            is_limited: sent_packets.pace().limit_bytes_per_s().is_some(),
            is_doubtful: sent_packets.pace().is_doubtful(),
            may_repair: sent_packets.allows_repair(now),
            floor: sent_packets.floor(),
            capacity_bytes_per_s: sent_packets.capacity_bytes_per_s(),
            lateness,
        }
    }

    /// One way without a queue: half of the shortest round trip, but no more than has been measured of the way there. What is sent
    /// with less time left is sent in vain; what is sent with `one_way` left is not, however long the way back is.
    pub(crate) fn soonest(&self) -> Span {
        (self.floor / 2).min(self.one_way - self.lateness)
    }

    /// How long the acknowledgement of a block may be held back: not at all where the deadline leaves no time to wait for it; on a
    /// lossy path every second block is acknowledged at once, and the acknowledgement of the other waits for the next block's. What is missing is acknowledged at once, whatever is asked for.
    pub(crate) fn ack_delay(&self, deadline: Span, interval: Span, block: u64) -> Span {
        let most = deadline / ACK_DELAY_PARTS;
        let slack = deadline - self.one_way - self.round;
        let may_be_full = self.is_limited || self.is_doubtful;
        if slack < most || may_be_full {
            Span::ZERO
        } else if self.channel.loss < ACK_DELAY_LOSS_MAX {
            most
        } else {
            let later = (LOSSY_BLOCKS - block % LOSSY_BLOCKS) % LOSSY_BLOCKS;
            most.min(interval * later as i64)
        }
    }
}
