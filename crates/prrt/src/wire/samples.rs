//! Several small samples of one reliable writer in one datagram: positions and sequence numbers rise by one from each to the next, and each is exact
//! about its source time.

use noctule_proto_kit::Bytes;

use super::fields::{Fields, put_varint};
use super::{Fragment, Malformed, Numbers, Reference, Service, put_time};
use crate::stream::{Origin, StreamId};

/// The most samples of a datagram: what one acknowledges, and what is handed on before anything else gets its turn.
pub const SAMPLES_MAX: usize = 64;

/// Whole samples that follow each other, two or more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Samples<'a> {
    /// Their writer.
    pub writer: StreamId,
    /// Of the first.
    pub numbers: Numbers,
    /// Of the first.
    pub sequence: u64,
    /// Of the first, by the writer's clock.
    pub source_time_ns: i64,
    /// Of each its length and payload; between them, of each but the first, the time since the one before.
    pub body: &'a [u8],
}

impl<'a> Samples<'a> {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, self.writer.0.into());
        put_varint(out, self.sequence);
        put_time(out, self.source_time_ns, true);
        self.numbers.encode(self.sequence, out);
        out.extend_from_slice(self.body);
    }

    /// Takes the rest of the datagram.
    pub(super) fn decode(mut cursor: Bytes<'a>, reference: &Reference) -> Result<Samples<'a>, Malformed> {
        let writer = StreamId(cursor.varint_of()?);
        let sequence = cursor.varint()?;
        let source_time_ns = cursor.time_near(reference.clock_ns)?;
        let numbers = Numbers::decode(&mut cursor, sequence, reference)?;
        let samples = Samples { writer, numbers, sequence, source_time_ns, body: cursor.rest() };
        let mut entries = samples.entries();
        let mut count = 0;
        while let Some(entry) = entries.next()? {
            // Neither number may reach 2^64 − 1.
            let is_counted = entry.sequence < u64::MAX && entry.numbers.position < u64::MAX;
            count += 1;
            if !is_counted || count > SAMPLES_MAX {
                return Err(Malformed::Value);
            }
        }
        if count < 2 { Err(Malformed::Value) } else { Ok(samples) }
    }

    /// Each of them, as if it had come in a datagram of its own with the same packet number.
    pub(crate) fn fragments(&self) -> impl Iterator<Item = Fragment<'a>> + use<'a> {
        let (writer, mut entries) = (self.writer, self.entries());
        // What decoding found to be well-formed ends at its end.
        std::iter::from_fn(move || entries.next().ok().flatten()).map(move |entry| Fragment {
            writer,
            total_bytes: entry.payload.len() as u32,
            sequence: entry.sequence,
            origin: Origin::exactly(entry.source_time_ns),
            index: 0,
            count: 1,
            service: Service::Reliable(entry.numbers),
            payload: entry.payload,
        })
    }

    fn entries(&self) -> Entries<'a> {
        let Samples { numbers, sequence, source_time_ns, .. } = *self;
        let next = Entry { numbers, sequence, source_time_ns, payload: &[] };
        Entries { cursor: Bytes::new(self.body), next, is_first: true }
    }
}

#[derive(Clone, Copy)]
struct Entry<'a> {
    numbers: Numbers,
    sequence: u64,
    source_time_ns: i64,
    payload: &'a [u8],
}

struct Entries<'a> {
    cursor: Bytes<'a>,
    /// The entry before, once there is one.
    next: Entry<'a>,
    is_first: bool,
}

impl<'a> Entries<'a> {
    /// The next entry; `None` after the last.
    fn next(&mut self) -> Result<Option<Entry<'a>>, Malformed> {
        if self.cursor.is_empty() {
            return Ok(None);
        }
        if !std::mem::take(&mut self.is_first) {
            let Entry { numbers: Numbers { packet, position, behind }, sequence, .. } = self.next;
            let step_ns = unfolded(self.cursor.varint()?);
            let source_time_ns = self.next.source_time_ns.checked_add(step_ns).ok_or(Malformed::Value)?;
            let (Some(position), Some(behind), Some(sequence)) =
                (position.checked_add(1), behind.checked_add(1), sequence.checked_add(1))
            else {
                return Err(Malformed::Value);
            };
            let numbers = Numbers { packet, position, behind };
            self.next = Entry { numbers, sequence, source_time_ns, payload: &[] };
        }
        let length: u32 = self.cursor.varint_of()?;
        self.next.payload = self.cursor.slice(length as usize)?;
        Ok(Some(self.next))
    }
}

/// The body of a datagram with several samples, as it grows.
#[derive(Debug, Default)]
pub(crate) struct Body {
    bytes: Vec<u8>,
    count: usize,
    source_time_ns: i64,
}

impl Body {
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.count = 0;
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Appends one, unless there is no room for it within `bytes_max`.
    pub(crate) fn push(&mut self, source_time_ns: i64, payload: &[u8], bytes_max: usize) -> bool {
        let Some(step_ns) = self.step_ns(source_time_ns) else { return false };
        let before = self.bytes.len();
        if self.count == SAMPLES_MAX || before + payload.len() > bytes_max {
            return false;
        }
        if self.count > 0 {
            put_varint(&mut self.bytes, folded(step_ns));
        }
        put_varint(&mut self.bytes, payload.len() as u64);
        self.bytes.extend_from_slice(payload);
        if self.bytes.len() > bytes_max {
            self.bytes.truncate(before);
            return false;
        }
        (self.count, self.source_time_ns) = (self.count + 1, source_time_ns);
        true
    }

    /// From the last source time to this one; `None`: too far to be said.
    fn step_ns(&self, source_time_ns: i64) -> Option<i64> {
        if self.count == 0 { Some(0) } else { source_time_ns.checked_sub(self.source_time_ns) }
    }
}

/// Small numbers for small steps of either sign: 0, −1, 1, −2 … are 0, 1, 2, 3 …
fn folded(step: i64) -> u64 {
    (step << 1 ^ step >> 63).cast_unsigned()
}

fn unfolded(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -(number & 1).cast_signed()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn steps_come_back(step in any::<i64>(), shift in 0u32..64) {
            let step = step >> shift;
            prop_assert_eq!(unfolded(folded(step)), step);
            prop_assert!(folded(step) >> 1 <= step.unsigned_abs());
        }
    }
}
