//! Flow control of a reliable stream, as of RFC 9000, sections 19.10 and 19.13. Not numbered: a node that misses it asks again.

use noctule_proto_kit::Bytes;

use super::Malformed;
use super::fields::{Fields, put_varint};
use crate::stream::StreamId;

/// "Of this writer I take samples of positions below the limit."
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The other side's.
    pub writer: StreamId,
    /// 2^64 − 1: all of them.
    pub position: u64,
}

/// "This writer waits at your limit; which is it?"
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// Whose samples wait.
    pub writer: StreamId,
    /// Its oldest position that is not acknowledged, as the oldest of a fragment.
    pub oldest: u64,
}

impl Limit {
    pub(super) fn encode(self, out: &mut Vec<u8>) {
        put(self.writer, self.position, out);
    }

    pub(super) fn decode(cursor: Bytes<'_>) -> Result<Limit, Malformed> {
        take(cursor).map(|(writer, position)| Limit { writer, position })
    }
}

impl Blocked {
    pub(super) fn encode(self, out: &mut Vec<u8>) {
        put(self.writer, self.oldest, out);
    }

    pub(super) fn decode(cursor: Bytes<'_>) -> Result<Blocked, Malformed> {
        match take(cursor)? {
            (_, u64::MAX) => Err(Malformed::Value),
            (writer, oldest) => Ok(Blocked { writer, oldest }),
        }
    }
}

fn put(writer: StreamId, position: u64, out: &mut Vec<u8>) {
    put_varint(out, writer.0.into());
    put_varint(out, position);
}

/// Both, and no more than that.
fn take(mut cursor: Bytes<'_>) -> Result<(StreamId, u64), Malformed> {
    let both = (StreamId(cursor.varint_of()?), cursor.varint()?);
    if cursor.is_empty() { Ok(both) } else { Err(Malformed::Length) }
}
