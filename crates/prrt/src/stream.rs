//! The samples that a link takes and delivers, and the service (reliability) of their stream.

use noctule_timebase::{Instant, Span};

pub use noctule_timebase::Local;

/// Number of a stream of samples within its node: that of its writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamId(pub u32);

/// In which order a reader gets samples that have a deadline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Each as soon as it is there, so that a lost one holds up no other.
    #[default]
    Asap,
    /// Each after the one before it, or after the deadline of the one before it.
    InOrder,
}

/// By when samples must be there, and how many need not be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// From the source time to the arrival.
    pub deadline: Span,
    /// Share of samples that may fail to arrive by then, above 0.
    pub loss_target: f64,
    /// Order of delivery.
    pub order: Order,
}

/// How hard the link tries.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Class {
    /// Sent once; the newest sample wins.
    #[default]
    BestEffort,
    /// Repaired with the least redundancy that keeps the loss target, as long as it can still be in time;
    /// never delivered later.
    DeadlineBound(Bound),
    /// Retransmitted until it arrives; delivered in order.
    Reliable,
}

impl Class {
    /// Its terms, if it has a deadline.
    pub fn bound(&self) -> Option<Bound> {
        match self {
            Class::DeadlineBound(bound) => Some(*bound),
            Class::BestEffort | Class::Reliable => None,
        }
    }
}

/// When a sample was true, and how far that is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// By the writer's clock, nanoseconds.
    pub source_time_ns: i64,
    /// The error of it, in whatever form the nodes agree on; 0: none. Taken along, not looked at.
    pub source_error: u32,
}

impl Origin {
    /// A time without error.
    pub fn exactly(source_time_ns: i64) -> Origin {
        Origin { source_time_ns, source_error: 0 }
    }
}

/// A sample to send.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outgoing<'a> {
    /// Its writer.
    pub writer: StreamId,
    /// Its number, counted by the writer; rises from sample to sample, below 2^64 − 1.
    pub sequence: u64,
    /// When it was true, by the sender's clock.
    pub origin: Origin,
    /// Time since its source time, by the same clock: a deadline counts from the source time.
    pub age: Span,
    /// How hard to try.
    pub class: Class,
    /// Samples of this writer that wait to be sent, at most; 0 counts as 1. Besides there are those that are being sent
    /// (until acknowledged, if reliable). Those with a deadline are kept until then.
    pub depth: u32,
    /// Its bytes.
    pub payload: &'a [u8],
}

/// A sample that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivered<'a> {
    /// Its writer.
    pub writer: StreamId,
    /// Its number, counted by the writer.
    pub sequence: u64,
    /// Its place among its writer's samples: rises by one for each that is delivered and each that is missed. In order that is its
    /// [`sequence`](Delivered::sequence); out of order no higher than the highest of those. So a link that takes the stream over can be held
    /// against the one before it: what lies between the last place there and the first one here did not come by either.
    pub place: u64,
    /// When it was true, by the sender's clock.
    pub origin: Origin,
    /// Samples that will not come any more and were not counted with an earlier one. In order these are the
    /// ones between the sample before and this one; 0 for the first.
    pub missed: u64,
    /// Its bytes.
    pub payload: &'a [u8],
}

/// Explicit congestion notification: the two bits of a datagram's IP header that a queue may change where it would otherwise drop (RFC 3168).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Ecn {
    /// Its sender takes no notice of marks; also where the host does not say.
    #[default]
    NotCapable = 0,
    /// ECT(1), which nothing here sends.
    Capable1 = 1,
    /// ECT(0): a queue may mark it.
    Capable0 = 2,
    /// CE: a queue has marked it.
    Marked = 3,
}

impl Ecn {
    /// From the lowest two bits of the octet of RFC 2474.
    pub fn from_bits(bits: u8) -> Ecn {
        match bits & 3 {
            0 => Ecn::NotCapable,
            1 => Ecn::Capable1,
            2 => Ecn::Capable0,
            _ => Ecn::Marked,
        }
    }

    /// Those bits.
    pub fn bits(self) -> u8 {
        self as u8
    }
}

/// When a datagram arrived, by the clocks concerned, and whether a queue has marked it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// By the clock that drives the link, as it is taken in.
    pub now: Instant<Local>,
    /// When this host got it, by the same clock: earlier than `now` if the thread that takes it in stalled. `now` if that is
    /// not known.
    pub came: Instant<Local>,
    /// When it came, by this node's clock, the one that source times are given in.
    pub own_ns: i64,
    /// `now` by the other node's clock, as far as this one knows it. Without it a late sample cannot be
    /// recognised, and is delivered.
    pub peer_ns: Option<i64>,
    /// What its IP header says.
    pub ecn: Ecn,
}

/// Four stamps of one round trip: the clocks of both sides compared.
/// Arrivals are [`Arrival::came`]: a bound that must hold wants drivers that prove it, or the exchange of `docs/spec/sync.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamps {
    /// A datagram left.
    pub t1: Instant<Local>,
    /// It arrived, by the other node's clock.
    pub t2_ns: i64,
    /// The feedback on it left, by the same.
    pub t3_ns: i64,
    /// That arrived.
    pub t4: Instant<Local>,
}
