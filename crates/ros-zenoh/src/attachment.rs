//! Attachments: metadata that each sample and request carries beside its bytes.
//!
//! ROS 2's: number, source time stamp, publisher; exactly 33 bytes, for `rmw_zenoh_cpp` ends its process at another length.
//! Between two gateways of Noctule the publisher's own clock and what is proven of it go in one of our own, on keys of our own.

use noctule_proto_kit::Bytes;
use noctule_timebase::Span;

/// Length of ROS 2's attachment.
pub const ROS_BYTES: usize = 33;
/// Length of ours.
pub const SITE_BYTES: usize = 49;
/// The first byte of ours.
const SITE_VERSION: u8 = 1;
/// Length of a GID, as a sequence's length is written (LEB128).
const GID_LENGTH: u8 = 16;
/// Value on the wire for an unknown width.
const UNKNOWN: u64 = u64::MAX;
/// The names before the fields, in ROS 2 before April 2025, each behind its length.
const NAMES: [&[u8]; 3] = [b"\x0fsequence_number", b"\x10source_timestamp", b"\x0asource_gid"];

/// Attachment of ROS 2 (`rmw_zenoh_cpp`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RosAttachment {
    /// Counts a publisher's samples from 1, or a client's requests.
    pub sequence: i64,
    /// The time of day at its writer, in nanoseconds.
    pub stamp_ns: i64,
    /// Identity of the publisher, or of the client that asked.
    pub gid: [u8; 16],
}

impl RosAttachment {
    /// Its bytes.
    pub fn encode(&self) -> [u8; ROS_BYTES] {
        let mut bytes = [0; ROS_BYTES];
        bytes[..8].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.stamp_ns.to_le_bytes());
        bytes[16] = GID_LENGTH;
        bytes[17..].copy_from_slice(&self.gid);
        bytes
    }

    /// From its bytes, which may be anything: with the fields' names or without.
    pub fn decode(bytes: &[u8]) -> Option<RosAttachment> {
        let has_names = bytes.len() > ROS_BYTES;
        let mut rest = Bytes::new(bytes);
        let name = |at: usize, rest: &mut Bytes<'_>| -> Option<()> {
            let is_next = !has_names || rest.slice(NAMES[at].len()) == Ok(NAMES[at]);
            is_next.then_some(())
        };
        name(0, &mut rest)?;
        let sequence = rest.i64().ok()?;
        name(1, &mut rest)?;
        let stamp_ns = rest.i64().ok()?;
        name(2, &mut rest)?;
        let length = rest.u8().ok()?;
        let gid = rest.array().ok()?;
        (length == GID_LENGTH && rest.is_empty()).then_some(RosAttachment { sequence, stamp_ns, gid })
    }
}

/// Attachment between two gateways of Noctule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SiteAttachment {
    /// Counts a publisher's samples from 1.
    pub sequence: i64,
    /// When the sample was true, in nanoseconds of the publishing gateway's clock: the one that its clock exchange stamps by.
    pub source_ns: i64,
    /// Proven error of that, without what the clock exchange adds.
    pub bound: Option<Span>,
    /// Its standard error.
    pub sigma: Option<Span>,
    /// Identity of the publisher.
    pub gid: [u8; 16],
}

impl SiteAttachment {
    /// Its bytes.
    pub fn encode(&self) -> [u8; SITE_BYTES] {
        let width =
            |span: Option<Span>| span.and_then(|span| u64::try_from(span.ns()).ok()).unwrap_or(UNKNOWN);
        let mut bytes = [0; SITE_BYTES];
        bytes[0] = SITE_VERSION;
        bytes[1..9].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[9..17].copy_from_slice(&self.source_ns.to_le_bytes());
        bytes[17..25].copy_from_slice(&width(self.bound).to_le_bytes());
        bytes[25..33].copy_from_slice(&width(self.sigma).to_le_bytes());
        bytes[33..].copy_from_slice(&self.gid);
        bytes
    }

    /// From its bytes, which may be anything.
    pub fn decode(bytes: &[u8]) -> Option<SiteAttachment> {
        let mut rest = Bytes::new(bytes);
        let version = rest.u8().ok()?;
        let (sequence, source_ns) = (rest.i64().ok()?, rest.i64().ok()?);
        let [bound, sigma] = [rest.u64().ok()?, rest.u64().ok()?];
        let gid = rest.array().ok()?;
        // A width that does not fit into 292 years bounds nothing.
        let [bound, sigma] = [bound, sigma].map(|ns| i64::try_from(ns).ok().map(Span::from_ns));
        let whole = SiteAttachment { sequence, source_ns, bound, sigma, gid };
        (version == SITE_VERSION && rest.is_empty()).then_some(whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes_of(digits: &str) -> Vec<u8> {
        (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect()
    }

    #[test]
    fn what_ros_2_wrote_is_read_and_written_again() {
        let bytes = bytes_of("0b000000000000006a6935a6b35cea1810d52ee971d939fef9bb7dc430741e6987");
        let read = RosAttachment::decode(&bytes).unwrap();
        assert_eq!((read.sequence, read.stamp_ns), (11, 0x18ea_5cb3_a635_696a));
        assert_eq!(read.gid[..3], [0xd5, 0x2e, 0xe9]);
        assert_eq!(read.encode()[..], bytes);
    }

    #[test]
    fn the_form_with_names_is_read() {
        let new = RosAttachment { sequence: 3, stamp_ns: 5, gid: [7; 16] };
        let bytes = new.encode();
        let old = [NAMES[0], &bytes[..8], NAMES[1], &bytes[8..16], NAMES[2], &bytes[16..]].concat();
        assert_eq!((old.len(), RosAttachment::decode(&old)), (77, Some(new)));
    }

    #[test]
    fn other_lengths_are_refused() {
        let ros = RosAttachment { sequence: 1, stamp_ns: 2, gid: [3; 16] }.encode();
        let site =
            SiteAttachment { sequence: 1, source_ns: 2, bound: None, sigma: None, gid: [3; 16] }.encode();
        for length in 0..ROS_BYTES {
            assert_eq!(RosAttachment::decode(&ros[..length]), None);
        }
        for length in 0..SITE_BYTES {
            assert_eq!(SiteAttachment::decode(&site[..length]), None);
        }
        assert_eq!(RosAttachment::decode(&[&ros[..], &[0]].concat()), None);
        assert_eq!(SiteAttachment::decode(&[&site[..], &[0]].concat()), None);
    }

    proptest! {
        #[test]
        fn anything_is_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..90)) {
            if let Some(read) = RosAttachment::decode(&bytes) {
                prop_assert_eq!(RosAttachment::decode(&read.encode()), Some(read));
            }
            if let Some(read) = SiteAttachment::decode(&bytes) {
                prop_assert_eq!(SiteAttachment::decode(&read.encode()), Some(read));
            }
        }

        #[test]
        fn what_is_written_comes_back(sequence: i64, at: i64, bound in proptest::option::of(0..i64::MAX), gid: [u8; 16]) {
            let ros = RosAttachment { sequence, stamp_ns: at, gid };
            prop_assert_eq!(RosAttachment::decode(&ros.encode()), Some(ros));
            let bound = bound.map(Span::from_ns);
            let site = SiteAttachment { sequence, source_ns: at, bound, sigma: bound, gid };
            prop_assert_eq!(SiteAttachment::decode(&site.encode()), Some(site));
        }
    }
}
