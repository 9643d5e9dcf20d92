//! Trace events of a link, of each datagram and sample: a lost one's way from sending to delivery.
//!
//! Off unless [`Link::start_trace`](crate::Link::start_trace) was called: then every event is one branch. On, the newest
//! [`EVENTS_LIMIT`] events are kept until [`Link::poll_event`](crate::Link::poll_event) takes them. Names and fields, as they stand in a
//! file, are those of `docs/guide/trace.md`; [`Display`](fmt::Display) is the same as a sentence.

use std::fmt;
use std::ops::{Deref, DerefMut};

use noctule_qlog::{Field, FieldsOfFile, Log, Put, reasons};
use noctule_timebase::Instant;

use crate::ack_state::ACK_RANGE_PACKETS;
use crate::counters::LinkCounters;
use crate::stream::{Local, StreamId};
use crate::wire::{Feedback, Load, Service};

pub use noctule_qlog::EVENTS_LIMIT;

/// Stands before the colon of an event's name in a file.
pub const SCHEMA: &str = "prrt";

reasons! {
    /// Why a datagram was sent, or what one that arrived is.
    Sending {
        First = "first", "carries its fragment for the first time";
        Retransmission = "retransmission", "carries again what was declared lost, or what may be lost while there is time to replace it";
        Parity = "parity", "carries parity that replaces any lost fragment of its block";
    }
}

reasons! {
    /// The rule that declared a packet lost.
    LossRule {
        PacketThreshold = "packet_threshold", "was overtaken by as many later packets as reordering on this path explains";
        TimeThreshold = "time_threshold", "is not named by feedback that left after it must have arrived";
        Timeout = "retransmission_timeout", "was not acknowledged before the retransmission time-out";
    }
}

reasons! {
    /// Why the sender gave up a sample.
    GivenUp {
        Replaced = "replaced", "gave way to a newer sample of its writer: its history or the queue was full";
        Unsubscribed = "unsubscribed", "is no longer wanted by the reader";
        QueueFull = "queue_full", "did not fit into the queue";
        Expired = "expired", "passed its deadline before any of it was sent";
        Unacknowledged = "unacknowledged", "passed its deadline without an acknowledgement of all its fragments";
    }
}

reasons! {
    /// Why a repair that was worth its price was not sent.
    Withheld {
        Budget = "budget", "would exceed the share of repairs that the stream may send";
        PathFull = "path_full", "would fill a path whose queue repairs already fill";
    }
}

reasons! {
    /// Why the receiver did not use a datagram.
    Discarded {
        Duplicate = "duplicate", "had arrived before";
        Superseded = "superseded", "is older than a sample that was delivered";
        AfterDeadline = "after_deadline", "arrived after its deadline";
        Unexpected = "unexpected", "is of a writer without a reader here";
        TooLong = "too_long", "is longer than its writer may write";
        BufferFull = "buffer_full", "did not fit into the reassembly buffer";
        Inconsistent = "inconsistent", "contradicts an earlier fragment of its sample";
    }
}

/// A part of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Number of the writer within its node.
    pub writer: StreamId,
    /// The sample's sequence number; `None` if it is no longer known, or of parity that arrived.
    pub sequence: Option<u64>,
    /// Fragment, or with a deadline the symbol of its block: data from 0, parity from 128.
    pub part: u16,
}

/// One thing that happened on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A datagram with a part of a sample left.
    Sent {
        /// Packet number; `None` at best effort, which has none.
        packet: Option<u64>,
        /// The part of a sample that it carries.
        part: Part,
        /// Of the datagram, without the envelope; 0: the sample is in the datagram of the event before, as several may be.
        bytes: u64,
        /// The purpose of sending it.
        why: Sending,
    },
    /// Feedback left.
    AckSent {
        /// The newest packet that arrived.
        newest: u64,
        /// Packets that it reports missing, of the 63 before the newest: a negative acknowledgement.
        missing: u64,
        /// It left with a sample.
        piggybacked: bool,
    },
    /// Feedback arrived.
    AckReceived {
        /// The newest packet that arrived at the other side.
        newest: u64,
        /// Packets that it reports missing, of the 63 before the newest.
        missing: u64,
    },
    /// A packet is known to have arrived.
    Acknowledged {
        /// Its number.
        packet: u64,
        /// The part of a sample that it carried.
        part: Part,
    },
    /// A packet arrived, and the other side did not keep what it carried.
    Refused {
        /// Its number.
        packet: u64,
        /// The part of a sample that it carried.
        part: Part,
    },
    /// A packet is declared lost.
    Lost {
        /// Its number.
        packet: u64,
        /// The part of a sample that it carried.
        part: Part,
        /// By which rule.
        rule: LossRule,
    },
    /// The sender gave up a sample.
    GivenUp {
        /// Which.
        part: Part,
        /// Why.
        why: GivenUp,
    },
    /// A repair was due and not sent.
    RepairWithheld {
        /// Of which block.
        part: Part,
        /// Why.
        why: Withheld,
    },
    /// A datagram with a part of a sample arrived.
    Received {
        /// Packet number; `None` at best effort.
        packet: Option<u64>,
        /// The part of a sample that it carries.
        part: Part,
        /// The purpose of sending it.
        why: Sending,
    },
    /// A datagram arrived that the receiver does not use.
    Discarded {
        /// The part of a sample that it carries.
        part: Part,
        /// Why.
        why: Discarded,
    },
    /// A fragment was computed from parity.
    Recovered {
        /// Which.
        part: Part,
    },
    /// A whole sample went to its reader.
    Delivered {
        /// Which; `part` is 0.
        part: Part,
    },
    /// Samples did not arrive by their deadline.
    Missed {
        /// The first; `part` is 0.
        part: Part,
        /// How many in a row.
        samples: u64,
    },
}

impl Event {
    /// The sample that it is about; `None` if it is about several or none.
    pub fn sample(&self) -> Option<(StreamId, u64)> {
        let part = self.part()?;
        Some((part.writer, part.sequence?))
    }

    /// The packet number, if it is about one.
    pub fn packet(&self) -> Option<u64> {
        match *self {
            Event::Sent { packet, .. } | Event::Received { packet, .. } => packet,
            Event::Acknowledged { packet, .. }
            | Event::Refused { packet, .. }
            | Event::Lost { packet, .. } => Some(packet),
            _ => None,
        }
    }

    /// The part of a sample that the event is about.
    pub fn part(&self) -> Option<Part> {
        match *self {
            Event::AckSent { .. } | Event::AckReceived { .. } => None,
            Event::Sent { part, .. }
            | Event::Acknowledged { part, .. }
            | Event::Refused { part, .. }
            | Event::Lost { part, .. }
            | Event::GivenUp { part, .. }
            | Event::RepairWithheld { part, .. }
            | Event::Received { part, .. }
            | Event::Discarded { part, .. }
            | Event::Recovered { part }
            | Event::Delivered { part }
            | Event::Missed { part, .. } => Some(part),
        }
    }

    /// The event of this name whose fields `get` gives; `None` if there is none such.
    pub fn of_fields<'a>(name: &str, get: &FieldsOfFile<'a, '_>) -> Option<Event> {
        let number = |key| match get(key)? {
            Field::Number(number) => Some(number),
            Field::Word(_) | Field::Flag(_) => None,
        };
        let trigger = || match get("trigger")? {
            Field::Word(word) => Some(word),
            Field::Number(_) | Field::Flag(_) => None,
        };
        let part = || {
            let writer = StreamId(u32::try_from(number("writer")?).ok()?);
            let part = u16::try_from(number("part")?).ok()?;
            Some(Part { writer, sequence: number("sequence"), part })
        };
        let packet = number("packet_number");
        Some(match name {
            "datagram_sent" => {
                let why = Sending::of_word(trigger()?)?;
                Event::Sent { packet, part: part()?, bytes: number("bytes")?, why }
            }
            "ack_sent" => {
                let piggybacked = get("piggybacked")? == Field::Flag(true);
                Event::AckSent { newest: number("newest")?, missing: number("missing")?, piggybacked }
            }
            "ack_received" => Event::AckReceived { newest: number("newest")?, missing: number("missing")? },
            "packet_acknowledged" => Event::Acknowledged { packet: packet?, part: part()? },
            "packet_refused" => Event::Refused { packet: packet?, part: part()? },
            "packet_lost" => {
                Event::Lost { packet: packet?, part: part()?, rule: LossRule::of_word(trigger()?)? }
            }
            "sample_given_up" => Event::GivenUp { part: part()?, why: GivenUp::of_word(trigger()?)? },
            "repair_withheld" => Event::RepairWithheld { part: part()?, why: Withheld::of_word(trigger()?)? },
            "datagram_received" => {
                Event::Received { packet, part: part()?, why: Sending::of_word(trigger()?)? }
            }
            "datagram_discarded" => Event::Discarded { part: part()?, why: Discarded::of_word(trigger()?)? },
            "fragment_recovered" => Event::Recovered { part: part()? },
            "sample_delivered" => Event::Delivered { part: part()? },
            "sample_missed" => Event::Missed { part: part()?, samples: number("samples")? },
            _ => return None,
        })
    }
}

impl noctule_qlog::Event for Event {
    fn schema(&self) -> &'static str {
        SCHEMA
    }

    fn name(&self) -> &'static str {
        match self {
            Event::Sent { .. } => "datagram_sent",
            Event::AckSent { .. } => "ack_sent",
            Event::AckReceived { .. } => "ack_received",
            Event::Acknowledged { .. } => "packet_acknowledged",
            Event::Refused { .. } => "packet_refused",
            Event::Lost { .. } => "packet_lost",
            Event::GivenUp { .. } => "sample_given_up",
            Event::RepairWithheld { .. } => "repair_withheld",
            Event::Received { .. } => "datagram_received",
            Event::Discarded { .. } => "datagram_discarded",
            Event::Recovered { .. } => "fragment_recovered",
            Event::Delivered { .. } => "sample_delivered",
            Event::Missed { .. } => "sample_missed",
        }
    }

    fn fields(&self, put: &mut Put<'_>) {
        if let Some(packet) = self.packet() {
            put("packet_number", Field::Number(packet));
        }
        if let Some(Part { writer, sequence, part }) = self.part() {
            put("writer", Field::Number(writer.0.into()));
            if let Some(sequence) = sequence {
                put("sequence", Field::Number(sequence));
            }
            put("part", Field::Number(part.into()));
        }
        match *self {
            Event::Sent { bytes, why, .. } => {
                put("bytes", Field::Number(bytes));
                put("trigger", Field::Word(why.word()));
            }
            Event::AckSent { newest, missing, piggybacked } => {
                put("newest", Field::Number(newest));
                put("missing", Field::Number(missing));
                put("piggybacked", Field::Flag(piggybacked));
            }
            Event::AckReceived { newest, missing } => {
                put("newest", Field::Number(newest));
                put("missing", Field::Number(missing));
            }
            Event::Lost { rule, .. } => put("trigger", Field::Word(rule.word())),
            Event::GivenUp { why, .. } => put("trigger", Field::Word(why.word())),
            Event::RepairWithheld { why, .. } => put("trigger", Field::Word(why.word())),
            Event::Received { why, .. } => put("trigger", Field::Word(why.word())),
            Event::Discarded { why, .. } => put("trigger", Field::Word(why.word())),
            Event::Missed { samples, .. } => put("samples", Field::Number(samples)),
            Event::Acknowledged { .. }
            | Event::Refused { .. }
            | Event::Recovered { .. }
            | Event::Delivered { .. } => {}
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.sequence {
            Some(sequence) => write!(out, "sample {sequence} of writer {}", self.writer.0)?,
            None => write!(out, "a sample of writer {}", self.writer.0)?,
        }
        if self.part > 0 { write!(out, ", part {}", self.part) } else { Ok(()) }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.packet() {
            Some(packet) => write!(out, "packet {packet} ")?,
            None if matches!(self, Event::Sent { .. } | Event::Received { .. }) => {
                write!(out, "a datagram ")?
            }
            None => {}
        }
        match self {
            Event::Sent { part, bytes, why, .. } => {
                write!(out, "is sent ({bytes} B, {part}): it {}", why.sentence())
            }
            Event::AckSent { newest, missing, piggybacked } => {
                let way = if *piggybacked { "piggybacked on a sample" } else { "in a datagram of its own" };
                write!(
                    out,
                    "an acknowledgement is sent {way}: packet {newest} is the newest, {missing} before it missing"
                )
            }
            Event::AckReceived { newest, missing } => {
                write!(
                    out,
                    "an acknowledgement arrives: packet {newest} is the newest, {missing} before it missing"
                )
            }
            Event::Acknowledged { part, .. } => write!(out, "is acknowledged ({part})"),
            Event::Refused { part, .. } => {
                write!(out, "arrived and was refused ({part}): it is sent once more later")
            }
            Event::Lost { part, rule, .. } => {
                write!(out, "is declared lost ({part}): it {}", rule.sentence())
            }
            Event::GivenUp { part, why } => write!(out, "{part} is given up: it {}", why.sentence()),
            Event::RepairWithheld { part, why } => {
                write!(out, "no repair is sent for {part}: it {}", why.sentence())
            }
            Event::Received { part, why, .. } => {
                let what = match why {
                    Sending::First => "",
                    Sending::Retransmission => ", a repair packet",
                    Sending::Parity => ", parity",
                };
                write!(out, "arrives ({part}{what})")
            }
            Event::Discarded { part, why } => write!(out, "{part} is discarded: it {}", why.sentence()),
            Event::Recovered { part } => write!(out, "{part} is recovered from parity"),
            Event::Delivered { part } => write!(out, "{part} is delivered"),
            Event::Missed { part, samples: 1 } => write!(out, "{part} did not arrive by its deadline"),
            Event::Missed { part, samples } => {
                write!(out, "{samples} samples from {part} on did not arrive by their deadlines")
            }
        }
    }
}

/// The counters of a link, and its events if they are wanted: code that counts may also note.
#[derive(Debug, Default)]
pub(crate) struct Record {
    counters: LinkCounters,
    log: Log<Event>,
}

impl Deref for Record {
    type Target = LinkCounters;

    fn deref(&self) -> &LinkCounters {
        &self.counters
    }
}

impl DerefMut for Record {
    fn deref_mut(&mut self) -> &mut LinkCounters {
        &mut self.counters
    }
}

impl Record {
    pub(crate) fn start(&mut self) {
        self.log.start();
    }

    /// Sets the time of the events that follow.
    #[inline]
    pub(crate) fn at(&mut self, now: Instant<Local>) {
        self.log.at(now);
    }

    /// Notes an event, which is made only if events are wanted.
    #[inline]
    pub(crate) fn note(&mut self, event: impl FnOnce() -> Event) {
        self.log.note(event);
    }

    /// Notes an event of each sample that a packet carries.
    #[inline]
    pub(crate) fn note_each<T>(&mut self, samples: impl Iterator<Item = T>, event: impl Fn(T) -> Event) {
        if self.log.is_on() {
            samples.for_each(|sample| self.log.note(|| event(sample)));
        }
    }

    pub(crate) fn poll(&mut self) -> Option<(Instant<Local>, Event)> {
        self.log.poll()
    }

    /// Events dropped since the last call.
    pub(crate) fn poll_dropped(&mut self) -> u64 {
        self.log.poll_dropped()
    }

    /// A datagram with this load arrived. Gives the counters, for [`note_discarded`](Record::note_discarded), if events are wanted.
    pub(crate) fn note_received(&mut self, load: &Load<'_>) -> Option<LinkCounters> {
        if !self.log.is_on() {
            return None;
        }
        if let Some(event) = received(load) {
            self.note(|| event);
        }
        Some(self.counters)
    }

    /// It was not used, and why, if the counters `before` and now say so.
    pub(crate) fn note_discarded(&mut self, load: &Load<'_>, before: &LinkCounters) {
        let now = self.counters;
        let reasons = [
            (now.duplicates > before.duplicates, Discarded::Duplicate),
            (now.late > before.late, Discarded::Superseded),
            (now.after_deadline > before.after_deadline, Discarded::AfterDeadline),
            (now.unexpected > before.unexpected, Discarded::Unexpected),
            (now.too_long > before.too_long, Discarded::TooLong),
            (now.held_full > before.held_full, Discarded::BufferFull),
            (now.beyond_limit > before.beyond_limit, Discarded::BufferFull),
            (now.inconsistent > before.inconsistent, Discarded::Inconsistent),
        ];
        let why = reasons.into_iter().find(|(is_so, _)| *is_so);
        if let (Some(part), Some((_, why))) = (received(load).and_then(|event| event.part()), why) {
            self.note(|| Event::Discarded { part, why });
        }
    }
}

/// That a datagram with this load arrived; `None` of what carries nothing of a sample.
fn received(load: &Load<'_>) -> Option<Event> {
    let fragment = match load {
        // Several samples are noted one by one.
        Load::Probe(_) | Load::Limit(_) | Load::Blocked(_) | Load::Samples(_) => return None,
        Load::Parity(parity) => {
            let part = Part { writer: parity.writer, sequence: None, part: parity.place.symbol.into() };
            return Some(Event::Received { packet: Some(parity.place.packet), part, why: Sending::Parity });
        }
        Load::Fragment(fragment) => fragment,
    };
    let (part, packet, why) = match fragment.service {
        Service::BestEffort => (fragment.index, None, Sending::First),
        Service::Reliable(numbers) => (fragment.index, Some(numbers.packet), Sending::First),
        Service::Bound(place) => {
            let why = if place.attempt > 0 { Sending::Retransmission } else { Sending::First };
            (place.symbol.into(), Some(place.packet), why)
        }
    };
    let part = Part { writer: fragment.writer, sequence: Some(fragment.sequence), part };
    Some(Event::Received { packet, part, why })
}

/// A whole sample.
pub(crate) fn sample(writer: StreamId, sequence: u64) -> Part {
    Part { writer, sequence: Some(sequence), part: 0 }
}

/// Packets that feedback does not name, of the 63 before the newest.
pub(crate) fn missing(feedback: &Feedback) -> u64 {
    let named = feedback.earlier.count_ones();
    let before = feedback.newest.min(ACK_RANGE_PACKETS) as u32;
    before.saturating_sub(named).into()
}

#[cfg(test)]
mod tests;
