//! Feedback (ACK frame): newest packet number, missing ones, refused ones, ACK delay; few bytes where few are missing.

use noctule_proto_kit::Bytes;

use super::Malformed;
use super::fields::{Fields, PACKET_BYTES, put_low, put_varint};
use super::head::Reference;

/// The longest feedback: everything is named bit by bit.
pub(crate) const FEEDBACK_BYTES_MAX: usize = 1 + PACKET_BYTES + 8 + 5 + 8 + 8 + 4;
/// Packet numbers before the newest that feedback names.
const ACK_RANGE_PACKETS: u64 = 63;
/// So many missing packets are named one by one, a byte each; more by bits.
const LISTED_MAX: u32 = 6;
const BY_BITS: u8 = 7;
const REFUSES: u8 = 8;
const FULL_TIME: u8 = 16;
const MARKS: u8 = 32;

/// Which numbered datagrams have arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feedback {
    /// The highest packet number that arrived.
    pub newest: u64,
    /// Bit `i` of the lower 63: packet number `newest − 1 − i` arrived too. The highest bit is 0.
    pub earlier: u64,
    /// Bit `i`: packet number `newest − i` arrived but was not taken; it is to be retransmitted, later.
    pub refused: u64,
    /// When `newest` arrived, by the clock of the node that received it.
    pub arrived_ns: i64,
    /// Time since then; 2^32 − 1 = that long or longer.
    pub delay_ns: u32,
    /// How the datagrams were marked that arrived so far, if that is reported.
    pub marks: Option<Marks>,
}

/// Numbered datagrams that arrived, each counted once, modulo 2^16 (RFC 9000, section 19.3.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// With ECT(0) or CE.
    pub capable: u16,
    /// With CE: a queue had marked them.
    pub marked: u16,
}

impl Feedback {
    /// Bits of the packets that there are before the newest.
    fn possible(newest: u64) -> u64 {
        (1 << newest.min(ACK_RANGE_PACKETS)) - 1
    }

    /// Appends the feedback. The clock is that of the datagram.
    pub(super) fn encode(&self, clock_ns: i64, out: &mut Vec<u8>) {
        let missing = !self.earlier & Feedback::possible(self.newest);
        let is_listed = missing.count_ones() <= LISTED_MAX;
        let mut flags = if is_listed { missing.count_ones() as u8 } else { BY_BITS };
        flags |= if self.refused != 0 { REFUSES } else { 0 };
        let is_short = super::is_short_time(self.arrived_ns, clock_ns);
        flags |= if is_short { 0 } else { FULL_TIME };
        flags |= if self.marks.is_some() { MARKS } else { 0 };
        out.push(flags);
        put_low::<PACKET_BYTES>(out, self.newest);
        super::put_time(out, self.arrived_ns, is_short);
        put_varint(out, self.delay_ns.into());
        if is_listed {
            let mut left = missing;
            while left != 0 {
                out.push(left.trailing_zeros() as u8);
                left &= left - 1;
            }
        } else {
            out.extend_from_slice(&self.earlier.to_le_bytes());
        }
        if self.refused != 0 {
            out.extend_from_slice(&self.refused.to_le_bytes());
        }
        if let Some(Marks { capable, marked }) = self.marks {
            out.extend_from_slice(&capable.to_le_bytes());
            out.extend_from_slice(&marked.to_le_bytes());
        }
    }

    pub(super) fn decode(cursor: &mut Bytes<'_>, reference: &Reference) -> Result<Feedback, Malformed> {
        let flags = cursor.u8()?;
        if flags & !(BY_BITS | REFUSES | FULL_TIME | MARKS) != 0 {
            return Err(Malformed::Value);
        }
        let newest = cursor.count_near::<PACKET_BYTES>(reference.own_packet)?;
        let arrived_ns = match flags & FULL_TIME {
            0 => cursor.time_near(reference.clock_ns)?,
            _ => cursor.i64()?,
        };
        let delay_ns = cursor.varint_of::<u32>()?;
        let possible = Feedback::possible(newest);
        let earlier = match flags & BY_BITS {
            BY_BITS => cursor.u64()?,
            count => {
                let mut missing = 0u64;
                for _ in 0..count {
                    let place = cursor.u8()?;
                    // In rising order, each once.
                    if u64::from(place) >= ACK_RANGE_PACKETS || missing >> place != 0 {
                        return Err(Malformed::Value);
                    }
                    missing |= 1 << place;
                }
                if missing & !possible != 0 {
                    return Err(Malformed::Value);
                }
                possible & !missing
            }
        };
        let is_by_bits = flags & BY_BITS == BY_BITS;
        let missing = (!earlier & possible).count_ones();
        let refused = if flags & REFUSES != 0 { cursor.u64()? } else { 0 };
        // No number lies before 0, and what did not arrive was not refused.
        let impossible = earlier & !possible != 0 || refused & !(earlier << 1 | 1) != 0;
        let has_other_form = is_by_bits && missing <= LISTED_MAX || flags & REFUSES != 0 && refused == 0;
        if impossible || has_other_form {
            return Err(Malformed::Value);
        }
        let marks = match flags & MARKS {
            0 => None,
            _ => Some(Marks { capable: cursor.u16()?, marked: cursor.u16()? }),
        };
        Ok(Feedback { newest, earlier, refused, arrived_ns, delay_ns, marks })
    }
}
