//! A sample as a subscriber gets it: bytes, and how old they are.

use std::fmt;

use noctule_discovery::{EndpointId, NodeId};
use noctule_formats::Format;
use noctule_shm_ring::Borrowed;
use noctule_time_sync::Local;
use noctule_timebase::{Instant, Span};

/// How old a sample is, in the reader's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Age {
    /// Now minus source time.
    pub span: Span,
    /// Proven: the true age is within plus or minus this of `span`. Zero on one clock; `None` where
    /// nothing is proven at the moment (just after a clock was stepped).
    pub bound: Option<Span>,
    /// The standard error of `span` if least delays are equal both ways. Zero on one clock.
    pub sigma: Option<Span>,
}

/// How the samples of a publisher come to this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Route {
    /// The publisher is on this host.
    SharedMemory,
    /// The publisher is on another host.
    Udp,
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Route::SharedMemory => "shm",
            Route::Udp => "udp",
        })
    }
}

/// Metadata of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleInfo {
    /// Counts the samples of one publisher, missed ones too: from another host as the publisher does, on its own host from when its topic
    /// first had a reader.
    pub sequence: u64,
    /// Samples of the same publisher that are missing before this one: lost on the way, or overwritten
    /// before they were read.
    pub missed: u64,
    /// When its content was true, translated into the reader's clock. `None` if the publisher's clock
    /// is not known yet.
    pub source_time: Option<Instant<Local>>,
    /// When it was taken, in the reader's clock.
    pub receive_time: Instant<Local>,
    /// Error of `source_time`, as in [`Age::bound`].
    pub bound: Option<Span>,
    /// Error of `source_time`, as in [`Age::sigma`].
    pub sigma: Option<Span>,
    /// Length in bytes.
    pub length_bytes: usize,
    /// The node that published it.
    pub publisher: NodeId,
    /// Which of that node's publishers; a number that is not used again while the node lives.
    pub endpoint: EndpointId,
    /// How it came.
    pub route: Route,
    /// The format of its bytes; `None` if its publisher names none.
    pub format: Option<Format>,
}

impl SampleInfo {
    /// Its age at `now`; `None` if the publisher's clock is not known yet.
    pub fn age_at(&self, now: Instant<Local>) -> Option<Age> {
        let span = now - self.source_time?;
        Some(Age { span, bound: self.bound, sigma: self.sigma })
    }

    /// Its age when it was taken.
    pub fn age(&self) -> Option<Age> {
        self.age_at(self.receive_time)
    }
}

/// A sample where it lies in shared memory. While it lives its memory is not used again; a publisher
/// goes on with the rest. Where all that may be lent at once is lent, it is a copy instead.
#[derive(Debug)]
pub struct Sample {
    pub(crate) info: SampleInfo,
    pub(crate) bytes: Bytes,
}

/// Where the bytes of a sample are.
#[derive(Debug)]
pub(crate) enum Bytes {
    /// In shared memory, pinned.
    Lent(Borrowed),
    /// The publisher has no sample left to lend.
    Copied(Vec<u8>),
}

impl Sample {
    /// Metadata of the sample: source time, age, writer.
    pub fn info(&self) -> &SampleInfo {
        &self.info
    }

    /// Its age when it was taken.
    pub fn age(&self) -> Option<Age> {
        self.info.age()
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.info.length_bytes
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A copy of its bytes.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut copy = vec![0; self.len()];
        self.copy_to(&mut copy);
        copy
    }

    /// Copies its bytes to the start of `buffer`.
    ///
    /// # Panics
    /// If `buffer` is shorter than the sample.
    pub fn copy_to(&self, buffer: &mut [u8]) {
        match &self.bytes {
            Bytes::Lent(lent) => lent.copy_to(buffer),
            Bytes::Copied(bytes) => buffer[..bytes.len()].copy_from_slice(bytes),
        }
    }

    /// Copies a part of its bytes: as many as `buffer` is long, from `offset` on.
    ///
    /// # Panics
    /// If the part is not inside the sample.
    pub fn read_at(&self, offset: usize, buffer: &mut [u8]) {
        match &self.bytes {
            Bytes::Lent(lent) => lent.read_at(offset, buffer),
            Bytes::Copied(bytes) => buffer.copy_from_slice(&bytes[offset..offset + buffer.len()]),
        }
    }

    /// Whether it lies in shared memory, and not in a copy.
    pub fn is_lent(&self) -> bool {
        matches!(self.bytes, Bytes::Lent(_))
    }

    /// First byte, valid for reads of [`len`](Sample::len) bytes while this lives; where it is lent,
    /// aligned to 8 bytes, to 64 if there are more than 32, or behind its first four if its publisher
    /// [says so](crate::PublisherBuilder::aligned_behind_header). Another process can write there: copy, or know your swarm.
    pub fn as_ptr(&self) -> *const u8 {
        match &self.bytes {
            Bytes::Lent(lent) => lent.as_ptr(),
            Bytes::Copied(bytes) => bytes.as_ptr(),
        }
    }
}

/// Stands for "nothing is known" where a width belongs.
const UNKNOWN: u16 = u16::MAX;
/// Bits of the significand.
const SIGNIFICAND_BITS: u32 = 11;

/// Both widths in the one word that a ring carries for its user: a floating-point number each, of 11
/// bits and an exponent of 5, rounded up, so that a bound stays a bound. Zero is zero, so what a
/// publisher on the same clock leaves empty means an exact time.
pub(crate) fn pack_widths(bound: Option<Span>, sigma: Option<Span>) -> u32 {
    u32::from(pack(bound)) | u32::from(pack(sigma)) << 16
}

/// The reverse of [`pack_widths`].
pub(crate) fn unpack_widths(word: u32) -> (Option<Span>, Option<Span>) {
    (unpack(word as u16), unpack((word >> 16) as u16))
}

fn pack(width: Option<Span>) -> u16 {
    let Some(width) = width else { return UNKNOWN };
    let ns = width.ns().max(0) as u64;
    let exponent = (64 - ns.leading_zeros()).saturating_sub(SIGNIFICAND_BITS);
    let significand = ns.div_ceil(1 << exponent);
    // Rounding up may have carried into a twelfth bit.
    let (significand, exponent) = match significand >> SIGNIFICAND_BITS {
        0 => (significand, exponent),
        _ => (significand >> 1, exponent + 1),
    };
    // More than 73 minutes is as good as unknown.
    if exponent > 30 { UNKNOWN } else { (exponent << SIGNIFICAND_BITS) as u16 | significand as u16 }
}

fn unpack(word: u16) -> Option<Span> {
    let (exponent, significand) = (word >> SIGNIFICAND_BITS, word & ((1 << SIGNIFICAND_BITS) - 1));
    // The last exponent means "unknown", whatever comes with it.
    (exponent < UNKNOWN >> SIGNIFICAND_BITS).then(|| Span::from_ns(i64::from(significand) << exponent))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_empty_word_is_an_exact_time() {
        assert_eq!(unpack_widths(0), (Some(Span::ZERO), Some(Span::ZERO)));
        assert_eq!(unpack_widths(pack_widths(None, None)), (None, None));
    }

    proptest! {
        #[test]
        fn a_width_is_rounded_up_by_less_than_a_thousandth(ns in 0i64..4_000_000_000_000 >> 1) {
            let (bound, sigma) = unpack_widths(pack_widths(Some(Span::from_ns(ns)), None));
            let packed = bound.map_or(-1, Span::ns);
            prop_assert!(packed >= ns && packed <= ns + ns / 1000, "{} became {}", ns, packed);
            prop_assert_eq!(sigma, None);
        }

        #[test]
        fn every_word_is_read(word: u32) {
            let (bound, sigma) = unpack_widths(word);
            prop_assert_eq!(unpack_widths(pack_widths(bound, sigma)), (bound, sigma));
        }
    }
}
