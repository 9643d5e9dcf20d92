//! Bytes of a link's datagrams. Every byte: `docs/spec/link.md`.

use crate::StreamId;

/// Bytes in front of the payload when everything is aboard: prefix, acknowledgement, sample, numbers.
pub(crate) const HEADER_BYTES_MAX: usize =
    PREFIX_BYTES + ACKNOWLEDGEMENT_BYTES + REFUSED_BYTES + SAMPLE_BYTES + NUMBERS_BYTES;
const PREFIX_BYTES: usize = 12;
const ACKNOWLEDGEMENT_BYTES: usize = 20;
const REFUSED_BYTES: usize = 8;
const SAMPLE_BYTES: usize = 28;
const NUMBERS_BYTES: usize = 20;

const MAGIC: [u8; 4] = *b"NCTM";
const VERSION: u8 = 1;
const ACKNOWLEDGES: u8 = 1;
const SAMPLE: u8 = 2;
const RELIABLE: u8 = 4;
const REFUSES: u8 = 8;

/// One datagram of a link. Never without content: it acknowledges, or carries a sample, or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// Number of the pair of nodes, the same on both sides.
    pub session: u32,
    /// What its sender has received so far.
    pub acknowledgement: Option<Acknowledgement>,
    /// A sample, or a piece of one.
    pub fragment: Option<Fragment<'a>>,
}

/// Which reliable datagrams have arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledgement {
    /// The highest packet number that arrived.
    pub newest: u64,
    /// Bit `i` of the lower 63: packet number `newest − 1 − i` arrived too. The highest bit is 0.
    pub earlier: u64,
    /// Bit `i`: packet number `newest − i` arrived but was not taken; it is to be sent again, later.
    pub refused: u64,
    /// Time since `newest` arrived; 2^32 − 1 = that long or longer.
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
    /// When it was written, by the writer's clock.
    pub source_time_ns: i64,
    /// Which piece of the sample this is, from 0.
    pub index: u16,
    /// Pieces of the sample, at least 1.
    pub count: u16,
    /// Present if it is to be acknowledged.
    pub reliable: Option<Numbers>,
    /// The piece.
    pub payload: &'a [u8],
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

impl<'a> Datagram<'a> {
    /// Appends the datagram's bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut content = 0;
        content |= match self.acknowledgement {
            None => 0,
            Some(Acknowledgement { refused: 0, .. }) => ACKNOWLEDGES,
            Some(_) => ACKNOWLEDGES | REFUSES,
        };
        content |= if self.fragment.is_some() { SAMPLE } else { 0 };
        content |=
            if self.fragment.is_some_and(|fragment| fragment.reliable.is_some()) { RELIABLE } else { 0 };
        out.reserve(HEADER_BYTES_MAX + self.fragment.map_or(0, |fragment| fragment.payload.len()));
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&[VERSION, content, 0, 0]);
        out.extend_from_slice(&self.session.to_le_bytes());
        if let Some(acknowledgement) = &self.acknowledgement {
            out.extend_from_slice(&acknowledgement.newest.to_le_bytes());
            out.extend_from_slice(&acknowledgement.earlier.to_le_bytes());
            out.extend_from_slice(&acknowledgement.delay_ns.to_le_bytes());
            if acknowledgement.refused != 0 {
                out.extend_from_slice(&acknowledgement.refused.to_le_bytes());
            }
        }
        let Some(fragment) = &self.fragment else { return };
        out.extend_from_slice(&fragment.writer.0.to_le_bytes());
        out.extend_from_slice(&fragment.total_bytes.to_le_bytes());
        out.extend_from_slice(&fragment.sequence.to_le_bytes());
        out.extend_from_slice(&fragment.source_time_ns.to_le_bytes());
        out.extend_from_slice(&fragment.index.to_le_bytes());
        out.extend_from_slice(&fragment.count.to_le_bytes());
        if let Some(numbers) = &fragment.reliable {
            out.extend_from_slice(&numbers.packet.to_le_bytes());
            out.extend_from_slice(&numbers.position.to_le_bytes());
            out.extend_from_slice(&numbers.behind.to_le_bytes());
        }
        out.extend_from_slice(fragment.payload);
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
        if (zero, zero_too) != (0, 0) || !matches!(content, 1 | 2 | 3 | 6 | 7 | 9 | 11 | 15) {
            return Err(Malformed::Value);
        }
        let session = cursor.u32()?;
        let acknowledgement = match content & ACKNOWLEDGES {
            0 => None,
            _ => Some(Acknowledgement::decode(&mut cursor, content & REFUSES != 0)?),
        };
        let fragment = match content & SAMPLE {
            0 if cursor.rest.is_empty() => None,
            0 => return Err(Malformed::Length),
            _ => Some(Fragment::decode(cursor, content & RELIABLE != 0)?),
        };
        Ok(Datagram { session, acknowledgement, fragment })
    }
}

impl Acknowledgement {
    fn decode(cursor: &mut Cursor<'_>, refuses: bool) -> Result<Acknowledgement, Malformed> {
        let (newest, earlier, delay_ns) = (cursor.u64()?, cursor.u64()?, cursor.u32()?);
        let refused = if refuses { cursor.u64()? } else { 0 };
        // No number lies before 0, and what did not arrive was not refused.
        let impossible = earlier >> newest.min(63) != 0 || refused & !(earlier << 1 | 1) != 0;
        if impossible || refuses && refused == 0 {
            return Err(Malformed::Value);
        }
        Ok(Acknowledgement { newest, earlier, refused, delay_ns })
    }
}

impl<'a> Fragment<'a> {
    /// Takes the rest of the datagram.
    fn decode(mut cursor: Cursor<'a>, reliable: bool) -> Result<Fragment<'a>, Malformed> {
        let writer = StreamId(cursor.u32()?);
        let total_bytes = cursor.u32()?;
        let sequence = cursor.u64()?;
        let source_time_ns = i64::from_le_bytes(cursor.take()?);
        let (index, count) = (cursor.u16()?, cursor.u16()?);
        let reliable = if reliable { Some(Numbers::decode(&mut cursor)?) } else { None };
        let payload = cursor.rest;
        if index >= count || sequence == u64::MAX {
            return Err(Malformed::Value);
        }
        let total = total_bytes as usize;
        let piece = piece_bytes(total, count);
        let start = usize::from(index) * piece;
        let last_start = usize::from(count - 1) * piece;
        if count > 1 && last_start >= total {
            return Err(Malformed::Value);
        }
        if payload.len() != piece.min(total - start) {
            return Err(Malformed::Length);
        }
        Ok(Fragment { writer, total_bytes, sequence, source_time_ns, index, count, reliable, payload })
    }

    /// Rises from one sample of a writer to the next: the position if reliable, else the sequence number.
    pub(crate) fn key(&self) -> u64 {
        self.reliable.map_or(self.sequence, |numbers| numbers.position)
    }

    /// Where the piece lies in the sample.
    pub(crate) fn start(&self) -> usize {
        usize::from(self.index) * piece_bytes(self.total_bytes as usize, self.count)
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
