//! The wire format of a link's datagrams. Every byte: `docs/spec/prrt.md`.

use noctule_proto_kit::{Bytes, Truncated};

use crate::StreamId;
use crate::stream::Origin;
use fields::{Fields, PACKET_BYTES, TIME_BYTES, put_low, put_varint};

mod feedback;
mod fields;
mod flow;
mod fragment;
mod head;
mod samples;

pub(crate) use feedback::FEEDBACK_BYTES_MAX;
pub use feedback::{Feedback, Marks};
pub use flow::{Blocked, Limit};
pub(crate) use fragment::{fragment_bytes, fragment_range, symbol_of};
pub use head::{Head, Opening, Reference, is_short};
pub(crate) use samples::Body;
pub use samples::{SAMPLES_MAX, Samples};

/// The most bytes in front of a payload, feedback not counted: it is sent with a fragment only where there is room.
pub(crate) const HEADER_BYTES_MAX: usize = head::LONG_BYTES + 5 + TAGS_BYTES_MAX + NUMBERS_BYTES_MAX;
/// The same of a symbol of a block.
pub(crate) const SYMBOL_HEADER_BYTES: usize = 1 + TAGS_BYTES_MAX;
/// Sequence number, source time, total, index, count, error of the source time.
const TAGS_BYTES_MAX: usize = fields::VARINT_BYTES_MAX + 8 + 5 + 3 + 3 + 4;
/// Of a reliable sample: packet, and what relates position and sequence number; those of one with a deadline are fewer.
const NUMBERS_BYTES_MAX: usize = PACKET_BYTES + 1 + 5 + fields::VARINT_BYTES_MAX;

/// The most fragments that a sample is cut into.
pub(crate) const FRAGMENTS_MAX: u16 = 32_767;

/// Number of a block's first parity symbol.
pub(crate) const FIRST_PARITY: u8 = 128;

/// A sample of several fragments, with an error of its source time, and with all bytes of that.
const FRAGMENT: u8 = 1;
const UNCERTAIN: u8 = 2;
const FULL_TIME: u8 = 4;
const TAGS: u8 = FRAGMENT | UNCERTAIN | FULL_TIME;
/// Kinds of load.
const BEST_EFFORT: u8 = 1 << 3;
const RELIABLE: u8 = 2 << 3;
const BOUND: u8 = 3 << 3;
/// With a deadline, the only symbol of its block.
const BOUND_ALONE: u8 = 4 << 3;
const PARITY: u8 = 5 << 3;
const PROBE: u8 = 6 << 3;
const FLOW: u8 = 7 << 3;
const LOAD: u8 = 7 << 3;
/// Of flow control: the writer asks.
const ASKS: u8 = 1;
/// In place of flow control.
const SAMPLES: u8 = 2;
const FEEDBACK: u8 = 64;
/// In a byte with seven other bits, or above the number of a block.
const ACK_SOON: u8 = 128;
/// Blocks are counted modulo this.
pub(crate) const BLOCKS: u32 = 1 << 23;
/// Escape value of a half byte: the integer is behind it.
const BEHIND_IT: u8 = 15;
/// A time is cut if it lies so close to the clock of its sender: a fourth of what could be represented.
const SHORT_TIME_NS: u64 = 1 << 38;

/// One datagram of a link. One with a short header is never without content: it acknowledges, or carries a sample, or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// Which link it is of.
    pub head: Head,
    /// Feedback on the packets that its sender has received.
    pub feedback: Option<Feedback>,
    /// A sample, a fragment of one, or parity over several.
    pub load: Option<Load<'a>>,
}

/// The load of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load<'a> {
    /// A sample, or a fragment of one.
    Fragment(Fragment<'a>),
    /// Several reliable samples.
    Samples(Samples<'a>),
    /// A repair symbol: it repairs any of several that is lost.
    Parity(Parity<'a>),
    /// Nothing: the datagram is sent for its length.
    Probe(Probe),
    /// How far a writer of the receiver may send.
    Limit(Limit),
    /// A question after that.
    Blocked(Blocked),
}

/// Asks whether the path carries a datagram of this length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Counts the numbered datagrams of a link.
    pub packet: u64,
    /// Zeros that fill the datagram.
    pub zeros: usize,
}

/// A fragment of a sample, or a whole one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment<'a> {
    /// Its writer.
    pub writer: StreamId,
    /// Length of the whole sample.
    pub total_bytes: u32,
    /// Number of the sample, counted by its writer.
    pub sequence: u64,
    /// When it was true, by the writer's clock.
    pub origin: Origin,
    /// Which fragment of the sample this is, from 0.
    pub index: u16,
    /// Fragments of the sample, 1 to 32767.
    pub count: u16,
    /// The fields of its class of service.
    pub service: Service,
    /// The fragment.
    pub payload: &'a [u8],
}

/// The fields of a fragment that depend on the class of its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// Nothing: it is not acknowledged.
    BestEffort,
    /// Numbers for order and repetition.
    Reliable(Numbers),
    /// Its place in a block.
    Bound(Place),
}

/// Where a datagram with a deadline belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Counts the numbered datagrams of a link.
    pub packet: u64,
    /// Counts the blocks of the stream, modulo 2^23; 0 if it is the only symbol of its block.
    pub block: u32,
    /// Which symbol of the block this is: data from 0, parity from 128.
    pub symbol: u8,
    /// Data symbols of the block, 1 to 128; 0 while it is not known. Never 0 with parity.
    pub symbols: u8,
    /// Repair packets sent for the block so far, this one included; 255: that many or more.
    pub attempt: u8,
    /// The sender needs the acknowledgement soon; else it may wait for a third of the deadline.
    pub ack_soon: bool,
}

/// Parity over the data symbols of a block: their datagrams from the total length on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parity<'a> {
    /// Whose.
    pub writer: StreamId,
    /// Which.
    pub place: Place,
    /// The symbol.
    pub symbol: &'a [u8],
}

/// The numbers of a reliable datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers {
    /// Counts the reliable datagrams of a link, repeated ones anew.
    pub packet: u64,
    /// Counts the writer's reliable samples on this link, without gaps.
    pub position: u64,
    /// `position − behind` is the oldest position still to come or already here: what lies before it and is
    /// not here was given up.
    pub behind: u32,
}

/// Why a datagram is not one of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Ends early, or is not as long as it says.
    #[error("the datagram is not as long as its fields say")]
    Length,
    /// Begins otherwise.
    #[error("the datagram does not begin with NCTM: it carries no samples")]
    Magic,
    /// Of another version.
    #[error("the datagram is of another version of the link; use the same release on all nodes")]
    Version,
    /// An impossible value.
    #[error("the datagram holds a value that no sender of this version writes")]
    Value,
}

impl From<Truncated> for Malformed {
    fn from(_: Truncated) -> Malformed {
        Malformed::Length
    }
}

/// The number of a block of so many data symbols as it travels: without parity no receiver asks for it.
pub(crate) fn block_number(position: u64, symbols: u8) -> u32 {
    if symbols == 1 { 0 } else { (position % u64::from(BLOCKS)) as u32 }
}

impl<'a> Datagram<'a> {
    /// Appends the datagram's bytes; `clock_ns` is about now by the sender's clock, as the receiver knows it.
    pub fn encode(&self, clock_ns: i64, out: &mut Vec<u8>) {
        let length = match &self.load {
            None | Some(Load::Limit(_) | Load::Blocked(_)) => 0,
            Some(Load::Parity(parity)) => parity.symbol.len(),
            Some(Load::Probe(probe)) => probe.zeros,
            Some(Load::Fragment(fragment)) => fragment.payload.len(),
            Some(Load::Samples(samples)) => samples.body.len(),
        };
        out.reserve(HEADER_BYTES_MAX + FEEDBACK_BYTES_MAX + length);
        let content = match &self.load {
            None => 0,
            Some(Load::Parity(_)) => PARITY,
            Some(Load::Probe(_)) => PROBE,
            Some(Load::Limit(_)) => FLOW,
            Some(Load::Blocked(_)) => FLOW | ASKS,
            Some(Load::Samples(_)) => FLOW | SAMPLES,
            Some(Load::Fragment(fragment)) => fragment.content(clock_ns),
        };
        self.head.encode(content | if self.feedback.is_some() { FEEDBACK } else { 0 }, out);
        if let Some(feedback) = &self.feedback {
            feedback.encode(clock_ns, out);
        }
        match &self.load {
            None => {}
            Some(Load::Fragment(fragment)) => fragment.encode(content, out),
            Some(Load::Limit(limit)) => limit.encode(out),
            Some(Load::Blocked(blocked)) => blocked.encode(out),
            Some(Load::Samples(samples)) => samples.encode(out),
            Some(Load::Probe(Probe { packet, zeros })) => {
                put_low::<PACKET_BYTES>(out, *packet);
                out.resize(out.len() + zeros, 0);
            }
            Some(Load::Parity(Parity { writer, place, symbol })) => {
                put_varint(out, writer.0.into());
                put_low::<PACKET_BYTES>(out, place.packet);
                place.encode(out);
                out.extend_from_slice(symbol);
            }
        }
    }

    /// Reads one datagram. Its own numbers count if its header is long; else what was cut is completed with `reference`.
    ///
    /// # Errors
    /// The first rule of the specification that the bytes break.
    pub fn decode(bytes: &'a [u8], reference: &Reference) -> Result<Datagram<'a>, Malformed> {
        let (head, content, rest) = Head::decode(bytes)?;
        let mut reference = *reference;
        if let Head::Long(opening) = head {
            (reference.packet, reference.clock_ns) = (opening.next_packet, opening.clock_ns);
        }
        let mut cursor = Bytes::new(rest);
        let (load, tags) = (content & LOAD, content & TAGS);
        let is_empty = content == 0 && matches!(head, Head::Short(_));
        let most_tags = match load {
            BEST_EFFORT..=BOUND_ALONE => TAGS,
            FLOW => SAMPLES,
            _ => 0,
        };
        if is_empty || tags > most_tags {
            return Err(Malformed::Value);
        }
        let feedback = match content & FEEDBACK {
            0 => None,
            _ => Some(Feedback::decode(&mut cursor, &reference)?),
        };
        let load = match load {
            0 if cursor.is_empty() => None,
            0 => return Err(Malformed::Length),
            PARITY => Some(Load::Parity(Parity::decode(cursor, &reference)?)),
            PROBE => Some(Load::Probe(Probe::decode(cursor, &reference)?)),
            FLOW if tags == ASKS => Some(Load::Blocked(Blocked::decode(cursor)?)),
            FLOW if tags == SAMPLES => Some(Load::Samples(Samples::decode(cursor, &reference)?)),
            FLOW => Some(Load::Limit(Limit::decode(cursor)?)),
            _ => Some(Load::Fragment(Fragment::decode(cursor, content, &reference)?)),
        };
        Ok(Datagram { head, feedback, load })
    }
}

/// Whether a datagram without its seal carries a sample with a deadline, or parity for such: what its header says.
pub fn has_deadline(datagram: &[u8]) -> bool {
    let content = Head::decode(datagram).map_or(0, |(_, content, _)| content);
    matches!(content & LOAD, BOUND | BOUND_ALONE | PARITY)
}

/// Whether the low bytes of a time say enough.
pub(crate) fn is_short_time(time_ns: i64, clock_ns: i64) -> bool {
    time_ns.abs_diff(clock_ns) < SHORT_TIME_NS
}

fn put_time(out: &mut Vec<u8>, time_ns: i64, is_short: bool) {
    match is_short {
        true => put_low::<TIME_BYTES>(out, time_ns.cast_unsigned()),
        false => out.extend_from_slice(&time_ns.to_le_bytes()),
    }
}

/// A number that is not 2^64 − 1, so that one can follow.
fn packet_near(cursor: &mut Bytes<'_>, reference: &Reference) -> Result<u64, Malformed> {
    let packet = cursor.count_near::<PACKET_BYTES>(reference.packet)?;
    if packet == u64::MAX { Err(Malformed::Value) } else { Ok(packet) }
}

impl Place {
    /// Of a block that is one symbol: no parity needs its number.
    fn alone(packet: u64, attempt: u8, ack_soon: bool) -> Place {
        Place { packet, block: 0, symbol: 0, symbols: 1, attempt, ack_soon }
    }

    fn is_alone(&self) -> bool {
        *self == Place::alone(self.packet, self.attempt & !ACK_SOON, self.ack_soon)
    }

    fn ack_soon_bit(&self) -> u8 {
        if self.ack_soon { ACK_SOON } else { 0 }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        put_low::<3>(out, (self.block | u32::from(self.ack_soon_bit()) << 16).into());
        out.extend_from_slice(&[self.symbol, self.symbols, self.attempt]);
    }

    fn decode(cursor: &mut Bytes<'_>, reference: &Reference) -> Result<Place, Malformed> {
        let packet = packet_near(cursor, reference)?;
        let block = cursor.low::<3>()? as u32;
        let [symbol, symbols, attempt] = cursor.array()?;
        if symbol == u8::MAX || symbols > FIRST_PARITY {
            return Err(Malformed::Value);
        }
        Ok(Place { packet, block: block % BLOCKS, symbol, symbols, attempt, ack_soon: block >= BLOCKS })
    }
}

impl<'a> Parity<'a> {
    /// Takes the rest of the datagram.
    fn decode(mut cursor: Bytes<'a>, reference: &Reference) -> Result<Parity<'a>, Malformed> {
        let writer = StreamId(cursor.varint_of()?);
        let place = Place::decode(&mut cursor, reference)?;
        if place.symbol < FIRST_PARITY || place.symbols == 0 {
            return Err(Malformed::Value);
        }
        Ok(Parity { writer, place, symbol: cursor.rest() })
    }
}

impl Probe {
    /// Takes the rest of the datagram.
    fn decode(mut cursor: Bytes<'_>, reference: &Reference) -> Result<Probe, Malformed> {
        let packet = packet_near(&mut cursor, reference)?;
        let is_filled = cursor.rest().iter().all(|byte| *byte == 0);
        if is_filled { Ok(Probe { packet, zeros: cursor.rest().len() }) } else { Err(Malformed::Value) }
    }
}

impl Numbers {
    /// A writer's sequence numbers and positions rise alike but for samples that were not sent: their distance is small.
    fn encode(&self, sequence: u64, out: &mut Vec<u8>) {
        put_low::<PACKET_BYTES>(out, self.packet);
        let ahead = sequence.wrapping_sub(self.position);
        let half = |value: u64| if value < BEHIND_IT.into() { value as u8 } else { BEHIND_IT };
        out.push(half(self.behind.into()) | half(ahead) << 4);
        if self.behind >= BEHIND_IT.into() {
            put_varint(out, self.behind.into());
        }
        if ahead >= BEHIND_IT.into() {
            put_varint(out, ahead);
        }
    }

    fn decode(cursor: &mut Bytes<'_>, sequence: u64, reference: &Reference) -> Result<Numbers, Malformed> {
        let packet = packet_near(cursor, reference)?;
        let halves = cursor.u8()?;
        let mut whole = |half: u8| match half {
            BEHIND_IT => cursor.varint().map(|value| (value, value < BEHIND_IT.into())),
            small => Ok((small.into(), false)),
        };
        let (behind, is_long) = whole(halves & BEHIND_IT)?;
        let (ahead, is_long_too) = whole(halves >> 4)?;
        let position = sequence.wrapping_sub(ahead);
        let behind = u32::try_from(behind).map_err(|_| Malformed::Value)?;
        if position == u64::MAX || u64::from(behind) > position || is_long || is_long_too {
            return Err(Malformed::Value);
        }
        Ok(Numbers { packet, position, behind })
    }

    /// The oldest position still to come or already here.
    pub(crate) fn oldest(&self) -> u64 {
        self.position - u64::from(self.behind)
    }
}

#[cfg(test)]
mod tests;
