//! The header of a link's datagram: long until both sides know each other's numbers, short afterwards.

use noctule_proto_kit::Bytes;

use super::{Malformed, put_low};

/// Bytes of the long header.
pub(crate) const LONG_BYTES: usize = 30;
const MAGIC: [u8; 4] = *b"NCTM";
const VERSION: u8 = 4;
/// Set in the first byte of a datagram with a short header; the rest of that byte is the content. No other datagram of a node
/// begins so.
const SHORT: u8 = 128;

/// Whether a datagram without its seal begins with a short header.
pub fn is_short(datagram: &[u8]) -> bool {
    datagram.first().is_some_and(|first| first & SHORT != 0)
}

/// Which link a datagram is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Head {
    /// Everything that the other side must know before it understands the short one.
    Long(Opening),
    /// The number that its receiver gave the link.
    Short(u16),
}

/// The long header: the numbers and the clock of its sender, at the beginning of a link and now and then afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opening {
    /// Number of the pair of nodes, the same on both sides.
    pub session: u32,
    /// The number by which the sender of this wants to be addressed; not 0.
    pub own_id: u16,
    /// The receiver's own number; 0: not received from it yet.
    pub other_id: u16,
    /// About now, by the sender's clock: times are cut against this.
    pub clock_ns: i64,
    /// The number of the sender's next packet: numbers are cut against this.
    pub next_packet: u64,
}

/// The reference that completes the fields of a datagram that were cut short.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reference {
    /// About the number of the packet.
    pub packet: u64,
    /// About now, by the clock of the datagram's sender.
    pub clock_ns: i64,
    /// The receiver's own next packet: feedback names one before it.
    pub own_packet: u64,
}

/// A header, the byte that says what follows it, and what follows.
type Decoded<'a> = (Head, u8, &'a [u8]);

impl Head {
    /// Reads how a datagram begins.
    ///
    /// # Errors
    /// The first rule of the specification that the bytes break.
    pub fn of(datagram: &[u8]) -> Result<Head, Malformed> {
        Head::decode(datagram).map(|(head, ..)| head)
    }

    /// Appends the header; `content` is below 128.
    pub(super) fn encode(&self, content: u8, out: &mut Vec<u8>) {
        match self {
            Head::Short(id) => {
                out.push(SHORT | content);
                out.extend_from_slice(&id.to_le_bytes());
            }
            Head::Long(opening) => {
                out.extend_from_slice(&MAGIC);
                out.extend_from_slice(&[VERSION, content]);
                out.extend_from_slice(&opening.own_id.to_le_bytes());
                out.extend_from_slice(&opening.other_id.to_le_bytes());
                put_low::<4>(out, opening.session.into());
                out.extend_from_slice(&opening.clock_ns.to_le_bytes());
                out.extend_from_slice(&opening.next_packet.to_le_bytes());
            }
        }
    }

    pub(super) fn decode(datagram: &[u8]) -> Result<Decoded<'_>, Malformed> {
        let mut cursor = Bytes::new(datagram);
        if is_short(datagram) {
            let content = cursor.u8()? & !SHORT;
            return Ok((Head::Short(cursor.u16()?), content, cursor.rest()));
        }
        if cursor.array::<4>()? != MAGIC {
            return Err(Malformed::Magic);
        }
        let [version, content] = cursor.array()?;
        if version != VERSION {
            return Err(Malformed::Version);
        }
        let (own_id, other_id) = (cursor.u16()?, cursor.u16()?);
        let (session, clock_ns, next_packet) = (cursor.u32()?, cursor.i64()?, cursor.u64()?);
        if own_id == 0 || content & SHORT != 0 || next_packet == u64::MAX {
            return Err(Malformed::Value);
        }
        let opening = Opening { session, own_id, other_id, clock_ns, next_packet };
        Ok((Head::Long(opening), content, cursor.rest()))
    }
}
