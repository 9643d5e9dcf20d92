//! The record that MCAP does not have: how well the source time of each sample is known.
//!
//! MCAP leaves the opcodes from 0x80 on to applications, and readers step over those that they do not know (MCAP
//! specification, "Records"). One such record stands before the messages of each chunk and describes them, in their
//! order. Bytes: `docs/spec/recording.md`.

/// Opcode of the record.
pub const TIMES_OPCODE: u8 = 0xA6;
/// Version of its content.
const VERSION: u8 = 1;
/// Bytes before the entries: version, 3 zeros, number of entries.
const HEAD_BYTES: usize = 8;
/// Bytes of an entry.
const ENTRY_BYTES: usize = 48;
/// Value in the file for an unknown width.
const UNKNOWN: u64 = u64::MAX;

/// Times and counts of one message, beside its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleTimes {
    /// Channel of the message in this file.
    pub channel: u16,
    /// Whether the publish time of the message is the sample's source time. If not, the source time was not known and the publish
    /// time repeats the log time.
    pub has_source_time: bool,
    /// Sequence of the message in its channel.
    pub sequence: u32,
    /// The first eight bytes of the number of the node that published the sample.
    pub publisher: [u8; 8],
    /// The publisher's own count of samples, from 1, as the recording host received them.
    pub publisher_sequence: u64,
    /// Samples of this publisher that were lost between it and the recorder, immediately before this one.
    pub missed: u64,
    /// The true source time is within plus or minus this of the publish time, ns; `None` if nothing is proven.
    pub bound_ns: Option<u64>,
    /// Standard error of the publish time, ns; `None` if it is not known.
    pub sigma_ns: Option<u64>,
}

/// Writes the record's content for the messages of a chunk.
pub fn encode(entries: &[SampleTimes]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEAD_BYTES + entries.len() * ENTRY_BYTES);
    bytes.extend([VERSION, 0, 0, 0]);
    // A chunk holds far fewer than 2^32 messages: its size has a limit.
    bytes.extend((entries.len() as u32).to_le_bytes());
    for entry in entries {
        bytes.extend(entry.channel.to_le_bytes());
        bytes.extend([u8::from(entry.has_source_time), 0]);
        bytes.extend(entry.sequence.to_le_bytes());
        bytes.extend(entry.publisher);
        bytes.extend(entry.publisher_sequence.to_le_bytes());
        bytes.extend(entry.missed.to_le_bytes());
        bytes.extend(entry.bound_ns.unwrap_or(UNKNOWN).to_le_bytes());
        bytes.extend(entry.sigma_ns.unwrap_or(UNKNOWN).to_le_bytes());
    }
    bytes
}

/// Reads the entries of a record; `None` if it is not of a version that is known, or damaged.
pub fn decode(bytes: &[u8]) -> Option<Vec<SampleTimes>> {
    let (head, rest) = bytes.split_at_checked(HEAD_BYTES)?;
    let count = u32::from_le_bytes(*head[4..].first_chunk()?) as usize;
    if head[..4] != [VERSION, 0, 0, 0] || rest.len() != count.checked_mul(ENTRY_BYTES)? {
        return None;
    }
    rest.chunks_exact(ENTRY_BYTES).map(entry).collect()
}

fn entry(bytes: &[u8]) -> Option<SampleTimes> {
    let word = |at: usize| Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
    let width = |at: usize| Some(word(at)?).map(|width| (width != UNKNOWN).then_some(width));
    let flags = *bytes.get(2)?;
    if flags > 1 || *bytes.get(3)? != 0 {
        return None;
    }
    Some(SampleTimes {
        channel: u16::from_le_bytes(*bytes.first_chunk()?),
        has_source_time: flags == 1,
        sequence: u32::from_le_bytes(*bytes.get(4..)?.first_chunk()?),
        publisher: *bytes.get(8..)?.first_chunk()?,
        publisher_sequence: word(16)?,
        missed: word(24)?,
        bound_ns: width(32)?,
        sigma_ns: width(40)?,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_entry() -> impl Strategy<Value = SampleTimes> {
        let width = || proptest::option::of(0..UNKNOWN);
        let counts = (any::<u16>(), any::<bool>(), any::<u32>(), any::<[u8; 8]>());
        (counts, any::<u64>(), any::<u64>(), width(), width()).prop_map(
            |(
                (channel, has_source_time, sequence, publisher),
                publisher_sequence,
                missed,
                bound_ns,
                sigma_ns,
            )| {
                SampleTimes {
                    channel,
                    has_source_time,
                    sequence,
                    publisher,
                    publisher_sequence,
                    missed,
                    bound_ns,
                    sigma_ns,
                }
            },
        )
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(entries in proptest::collection::vec(any_entry(), 0..20)) {
            prop_assert_eq!(decode(&encode(&entries)), Some(entries));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Some(entries) = decode(&bytes) {
                prop_assert_eq!(encode(&entries), bytes);
            }
        }
    }

    #[test]
    fn the_example_of_the_specification() {
        let entry = SampleTimes {
            channel: 3,
            has_source_time: true,
            sequence: 7,
            publisher: [1, 2, 3, 4, 5, 6, 7, 8],
            publisher_sequence: 9,
            missed: 1,
            bound_ns: Some(25_000),
            sigma_ns: None,
        };
        let bytes = encode(&[entry]);
        let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(
            digits,
            "0100000001000000\
             0300010007000000010203040506070809000000000000000100000000000000a861000000000000ffffffffffffffff"
        );
    }
}
