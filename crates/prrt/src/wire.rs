//! Bytes of a link's datagrams. Every byte: `docs/spec/prrt.md`.

use std::ops::Range;

use crate::StreamId;
use crate::stream::{Origin, Outgoing};

/// Bytes in front of the payload when everything is aboard: prefix, feedback, sample, numbers.
pub(crate) const HEADER_BYTES_MAX: usize =
    PREFIX_BYTES + FEEDBACK_BYTES + REFUSED_BYTES + SAMPLE_BYTES + NUMBERS_BYTES;
const PREFIX_BYTES: usize = 12;
const FEEDBACK_BYTES: usize = 28;
const REFUSED_BYTES: usize = 8;
const SAMPLE_BYTES: usize = 4 + SYMBOL_HEADER_BYTES;
/// Of a symbol, in front of the payload: a sample without its writer. Four less if its source time has no error.
pub(crate) const SYMBOL_HEADER_BYTES: usize = 28;
/// Of a reliable sample; those of one with a deadline are fewer.
const NUMBERS_BYTES: usize = 20;

/// The most pieces that a sample is cut into. The bit above says that the source time has an error.
pub(crate) const PIECES_MAX: u16 = UNCERTAIN - 1;
const UNCERTAIN: u16 = 1 << 15;

/// Number of a block's first parity symbol.
pub(crate) const FIRST_PARITY: u8 = 128;

const MAGIC: [u8; 4] = *b"NCTM";
const VERSION: u8 = 2;
const FEEDBACK: u8 = 1;
const SAMPLE: u8 = 2;
const RELIABLE: u8 = 4;
const REFUSES: u8 = 8;
const BOUND: u8 = 16;
const PARITY: u8 = 32;
const PROBE: u8 = 64;

/// One datagram of a link. Never without content: it acknowledges, or carries a sample, or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// Number of the pair of nodes, the same on both sides.
    pub session: u32,
    /// What its sender has received so far.
    pub feedback: Option<Feedback>,
    /// A sample, a piece of one, or parity over several.
    pub load: Option<Load<'a>>,
}

/// What a datagram is sent for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load<'a> {
    /// A sample, or a piece of one.
    Fragment(Fragment<'a>),
    /// What repairs any of several that is lost.
    Parity(Parity<'a>),
    /// Nothing: the datagram is sent for its length.
    Probe(Probe),
}

/// Asks whether the path carries a datagram of this length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Counts the numbered datagrams of a link.
    pub packet: u64,
    /// Zeros that fill the datagram.
    pub zeros: usize,
}

/// Which numbered datagrams have arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feedback {
    /// The highest packet number that arrived.
    pub newest: u64,
    /// Bit `i` of the lower 63: packet number `newest − 1 − i` arrived too. The highest bit is 0.
    pub earlier: u64,
    /// Bit `i`: packet number `newest − i` arrived but was not taken; it is to be sent again, later.
    pub refused: u64,
    /// When `newest` arrived, by the clock of the node that received it.
    pub arrived_ns: i64,
    /// Time since then; 2^32 − 1 = that long or longer.
    pub delay_ns: u32,
}

/// A piece of a sample, or a whole one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment<'a> {
    /// Who wrote it.
    pub writer: StreamId,
    /// Length of the whole sample.
    pub total_bytes: u32,
    /// Number of the sample, counted by its writer.
    pub sequence: u64,
    /// When it was true, by the writer's clock.
    pub origin: Origin,
    /// Which piece of the sample this is, from 0.
    pub index: u16,
    /// Pieces of the sample, 1 to 32767.
    pub count: u16,
    /// What it carries besides, by its class.
    pub service: Service,
    /// The piece.
    pub payload: &'a [u8],
}

/// What a fragment carries besides, by the class of its stream.
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
    /// Counts the blocks of the stream.
    pub block: u32,
    /// Which symbol of the block this is: data from 0, parity from 128.
    pub symbol: u8,
    /// Data symbols of the block, 1 to 128; 0 while it is not known. Never 0 with parity.
    pub symbols: u8,
    /// Repair packets sent for the block so far, this one included; 255 stands for more, too.
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

/// What a reliable datagram carries besides.
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

/// Bytes of each piece but the last of a sample of `total_bytes` in `count` pieces: pieces are of equal
/// length, so that their place follows from their number.
pub(crate) fn piece_bytes(total_bytes: usize, count: u16) -> usize {
    total_bytes.div_ceil(usize::from(count.max(1)))
}

/// Where a piece lies in such a sample.
pub(crate) fn piece_range(total_bytes: usize, count: u16, index: u16) -> Range<usize> {
    let length = piece_bytes(total_bytes, count);
    let start = usize::from(index) * length;
    start..(start + length).min(total_bytes)
}

/// A piece of a sample as parity is computed over it.
pub(crate) fn symbol_of(sample: &Outgoing<'_>, index: u16, count: u16) -> Vec<u8> {
    let fragment = Fragment {
        writer: sample.writer,
        total_bytes: sample.payload.len() as u32,
        sequence: sample.sequence,
        origin: sample.origin,
        index,
        count,
        service: Service::BestEffort,
        payload: &sample.payload[piece_range(sample.payload.len(), count, index)],
    };
    let mut symbol = Vec::with_capacity(SYMBOL_HEADER_BYTES + fragment.payload.len());
    fragment.encode_symbol(&mut symbol);
    symbol
}

impl<'a> Datagram<'a> {
    /// Appends the datagram's bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let feedback = match self.feedback {
            None => 0,
            Some(Feedback { refused: 0, .. }) => FEEDBACK,
            Some(_) => FEEDBACK | REFUSES,
        };
        let (load, length) = match &self.load {
            None => (0, 0),
            Some(Load::Parity(parity)) => (PARITY, parity.symbol.len()),
            Some(Load::Probe(probe)) => (PROBE, probe.zeros),
            Some(Load::Fragment(fragment)) => {
                let class = match fragment.service {
                    Service::BestEffort => 0,
                    Service::Reliable(_) => RELIABLE,
                    Service::Bound(_) => BOUND,
                };
                (SAMPLE | class, fragment.payload.len())
            }
        };
        out.reserve(HEADER_BYTES_MAX + length);
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&[VERSION, feedback | load, 0, 0]);
        out.extend_from_slice(&self.session.to_le_bytes());
        if let Some(feedback) = &self.feedback {
            feedback.encode(out);
        }
        match &self.load {
            None => {}
            Some(Load::Fragment(fragment)) => fragment.encode(out),
            Some(Load::Probe(Probe { packet, zeros })) => {
                out.extend_from_slice(&packet.to_le_bytes());
                out.resize(out.len() + zeros, 0);
            }
            Some(Load::Parity(Parity { writer, place, symbol })) => {
                out.extend_from_slice(&writer.0.to_le_bytes());
                place.encode(out);
                // No symbol is longer than a datagram.
                out.extend_from_slice(&(symbol.len() as u16).to_le_bytes());
                out.extend_from_slice(symbol);
            }
        }
    }

    /// Reads one datagram.
    ///
    /// # Errors
    /// The first rule of the specification that the bytes break.
    pub fn decode(bytes: &'a [u8]) -> Result<Datagram<'a>, Malformed> {
        let mut cursor = Cursor { rest: bytes };
        if cursor.take::<4>()? != MAGIC {
            return Err(Malformed::Magic);
        }
        let [version, content, zero, zero_too] = cursor.take::<4>()?;
        if version != VERSION {
            return Err(Malformed::Version);
        }
        let feedback = content & (FEEDBACK | REFUSES);
        let load = content & !(FEEDBACK | REFUSES);
        let loads = [0, SAMPLE, SAMPLE | RELIABLE, SAMPLE | BOUND, PARITY, PROBE];
        let known = feedback != REFUSES && loads.contains(&load) && content != 0;
        if (zero, zero_too) != (0, 0) || !known {
            return Err(Malformed::Value);
        }
        let session = cursor.u32()?;
        let feedback = match feedback {
            0 => None,
            both => Some(Feedback::decode(&mut cursor, both & REFUSES != 0)?),
        };
        let load = match load {
            0 if cursor.rest.is_empty() => None,
            0 => return Err(Malformed::Length),
            PARITY => Some(Load::Parity(Parity::decode(cursor)?)),
            PROBE => Some(Load::Probe(Probe::decode(cursor)?)),
            sample => Some(Load::Fragment(Fragment::decode(cursor, sample)?)),
        };
        Ok(Datagram { session, feedback, load })
    }
}

impl Feedback {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.newest.to_le_bytes());
        out.extend_from_slice(&self.earlier.to_le_bytes());
        out.extend_from_slice(&self.arrived_ns.to_le_bytes());
        out.extend_from_slice(&self.delay_ns.to_le_bytes());
        if self.refused != 0 {
            out.extend_from_slice(&self.refused.to_le_bytes());
        }
    }

    fn decode(cursor: &mut Cursor<'_>, refuses: bool) -> Result<Feedback, Malformed> {
        let (newest, earlier) = (cursor.u64()?, cursor.u64()?);
        let (arrived_ns, delay_ns) = (i64::from_le_bytes(cursor.take()?), cursor.u32()?);
        let refused = if refuses { cursor.u64()? } else { 0 };
        // No number lies before 0, and what did not arrive was not refused.
        let impossible = earlier >> newest.min(63) != 0 || refused & !(earlier << 1 | 1) != 0;
        if impossible || refuses && refused == 0 {
            return Err(Malformed::Value);
        }
        Ok(Feedback { newest, earlier, refused, arrived_ns, delay_ns })
    }
}

impl<'a> Fragment<'a> {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.writer.0.to_le_bytes());
        self.encode_symbol_header(out);
        match &self.service {
            Service::BestEffort => {}
            Service::Reliable(numbers) => {
                out.extend_from_slice(&numbers.packet.to_le_bytes());
                out.extend_from_slice(&numbers.position.to_le_bytes());
                out.extend_from_slice(&numbers.behind.to_le_bytes());
            }
            Service::Bound(place) => place.encode(out),
        }
        out.extend_from_slice(self.payload);
    }

    fn encode_symbol_header(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.total_bytes.to_le_bytes());
        out.extend_from_slice(&self.sequence.to_le_bytes());
        let Origin { source_time_ns, source_error } = self.origin;
        out.extend_from_slice(&source_time_ns.to_le_bytes());
        out.extend_from_slice(&self.index.to_le_bytes());
        if source_error == 0 {
            out.extend_from_slice(&self.count.to_le_bytes());
        } else {
            out.extend_from_slice(&(self.count | UNCERTAIN).to_le_bytes());
            out.extend_from_slice(&source_error.to_le_bytes());
        }
    }

    /// Appends what parity is computed over: all that cannot be known without the datagram.
    pub(crate) fn encode_symbol(&self, out: &mut Vec<u8>) {
        self.encode_symbol_header(out);
        out.extend_from_slice(self.payload);
    }

    /// Reads what [`encode_symbol`](Fragment::encode_symbol) wrote.
    pub(crate) fn decode_symbol(
        writer: StreamId,
        place: Place,
        symbol: &'a [u8],
    ) -> Result<Fragment<'a>, Malformed> {
        let mut cursor = Cursor { rest: symbol };
        let header = SymbolHeader::decode(&mut cursor)?;
        header.fragment(writer, Service::Bound(place), cursor.rest)
    }

    /// Takes the rest of the datagram.
    fn decode(mut cursor: Cursor<'a>, content: u8) -> Result<Fragment<'a>, Malformed> {
        let writer = StreamId(cursor.u32()?);
        let header = SymbolHeader::decode(&mut cursor)?;
        let service = match content & (RELIABLE | BOUND) {
            0 => Service::BestEffort,
            BOUND => {
                let place = Place::decode(&mut cursor)?;
                if place.symbol >= FIRST_PARITY || place.symbols != 0 && place.symbol >= place.symbols {
                    return Err(Malformed::Value);
                }
                Service::Bound(place)
            }
            _ => Service::Reliable(Numbers::decode(&mut cursor)?),
        };
        header.fragment(writer, service, cursor.rest)
    }

    /// Rises from one sample of a writer to the next: the position if reliable, else the sequence number.
    pub(crate) fn key(&self) -> u64 {
        match self.service {
            Service::Reliable(numbers) => numbers.position,
            Service::BestEffort | Service::Bound(_) => self.sequence,
        }
    }

    /// Where the piece lies in the sample.
    pub(crate) fn start(&self) -> usize {
        usize::from(self.index) * piece_bytes(self.total_bytes as usize, self.count)
    }
}

/// A fragment without its payload, its writer and its service.
struct SymbolHeader {
    total_bytes: u32,
    sequence: u64,
    origin: Origin,
    index: u16,
    count: u16,
}

impl SymbolHeader {
    fn decode(cursor: &mut Cursor<'_>) -> Result<SymbolHeader, Malformed> {
        let (total_bytes, sequence) = (cursor.u32()?, cursor.u64()?);
        let source_time_ns = i64::from_le_bytes(cursor.take()?);
        let (index, count) = (cursor.u16()?, cursor.u16()?);
        let is_uncertain = count & UNCERTAIN != 0;
        let source_error = if is_uncertain { cursor.u32()? } else { 0 };
        let count = count & !UNCERTAIN;
        if index >= count || sequence == u64::MAX || is_uncertain && source_error == 0 {
            return Err(Malformed::Value);
        }
        let origin = Origin { source_time_ns, source_error };
        Ok(SymbolHeader { total_bytes, sequence, origin, index, count })
    }

    fn fragment(self, writer: StreamId, service: Service, payload: &[u8]) -> Result<Fragment<'_>, Malformed> {
        let SymbolHeader { total_bytes, sequence, origin, index, count } = self;
        let total = total_bytes as usize;
        let piece = piece_bytes(total, count);
        if count > 1 && usize::from(count - 1) * piece >= total {
            return Err(Malformed::Value);
        }
        if payload.len() != piece.min(total - usize::from(index) * piece) {
            return Err(Malformed::Length);
        }
        Ok(Fragment { writer, total_bytes, sequence, origin, index, count, service, payload })
    }
}

impl Place {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.packet.to_le_bytes());
        out.extend_from_slice(&self.block.to_le_bytes());
        out.extend_from_slice(&[self.symbol, self.symbols, self.attempt, self.ack_soon.into()]);
    }

    fn decode(cursor: &mut Cursor<'_>) -> Result<Place, Malformed> {
        let (packet, block) = (cursor.u64()?, cursor.u32()?);
        let [symbol, symbols, attempt, ack_soon] = cursor.take::<4>()?;
        if packet == u64::MAX || symbol == u8::MAX || symbols > FIRST_PARITY || ack_soon > 1 {
            return Err(Malformed::Value);
        }
        Ok(Place { packet, block, symbol, symbols, attempt, ack_soon: ack_soon == 1 })
    }
}

impl<'a> Parity<'a> {
    /// Takes the rest of the datagram.
    fn decode(mut cursor: Cursor<'a>) -> Result<Parity<'a>, Malformed> {
        let writer = StreamId(cursor.u32()?);
        let place = Place::decode(&mut cursor)?;
        if place.symbol < FIRST_PARITY || place.symbols == 0 {
            return Err(Malformed::Value);
        }
        if usize::from(cursor.u16()?) != cursor.rest.len() {
            return Err(Malformed::Length);
        }
        Ok(Parity { writer, place, symbol: cursor.rest })
    }
}

impl Probe {
    /// Takes the rest of the datagram.
    fn decode(mut cursor: Cursor<'_>) -> Result<Probe, Malformed> {
        let packet = cursor.u64()?;
        let is_filled = packet != u64::MAX && cursor.rest.iter().all(|byte| *byte == 0);
        if is_filled { Ok(Probe { packet, zeros: cursor.rest.len() }) } else { Err(Malformed::Value) }
    }
}

impl Numbers {
    fn decode(cursor: &mut Cursor<'_>) -> Result<Numbers, Malformed> {
        let (packet, position, behind) = (cursor.u64()?, cursor.u64()?, cursor.u32()?);
        let impossible = packet == u64::MAX || position == u64::MAX || u64::from(behind) > position;
        if impossible { Err(Malformed::Value) } else { Ok(Numbers { packet, position, behind }) }
    }

    /// The oldest position still to come or already here.
    pub(crate) fn oldest(&self) -> u64 {
        self.position - u64::from(self.behind)
    }
}

struct Cursor<'a> {
    rest: &'a [u8],
}

impl Cursor<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (head, rest) = self.rest.split_first_chunk::<N>().ok_or(Malformed::Length)?;
        self.rest = rest;
        Ok(*head)
    }

    fn u16(&mut self) -> Result<u16, Malformed> {
        Ok(u16::from_le_bytes(self.take()?))
    }

    fn u32(&mut self) -> Result<u32, Malformed> {
        Ok(u32::from_le_bytes(self.take()?))
    }

    fn u64(&mut self) -> Result<u64, Malformed> {
        Ok(u64::from_le_bytes(self.take()?))
    }
}

#[cfg(test)]
mod tests;
