//! Report of one node's link to another, on request of a third: 64 bytes each, `docs/spec/type-description.md` section 3.

use noctule_discovery::NodeId;
use noctule_timebase::Span;

/// Bytes of one link.
pub(crate) const LINK_BYTES: usize = 64;
/// Links that one node reports.
pub(crate) const LINKS_MAX: usize = 4096;
/// Stands for what is not known.
const UNKNOWN: u64 = u64::MAX;

/// The state of a node's link to a node of another host: path, clock, counters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkReport {
    /// The other side.
    pub to: NodeId,
    /// Smoothed, the other side's waiting taken off; `None` before the first acknowledgement, so of links that carry only best effort.
    pub round_trip: Option<Span>,
    /// Share of the datagrams to it that the path loses, 0 to 1; `None` before the first acknowledgement.
    pub loss: Option<f64>,
    /// Bytes of datagrams a second that the path to it carries; `None` until its queue was once not empty.
    pub capacity_bytes_per_s: Option<f64>,
    /// Datagrams sent to it.
    pub sent_datagrams: u64,
    /// Repetitions and parity among what was sent.
    pub extra_datagrams: u64,
    /// Datagrams that came from it.
    pub received_datagrams: u64,
}

pub(crate) fn encode(link: &LinkReport) -> [u8; LINK_BYTES] {
    let round_trip_ns = link.round_trip.and_then(|span| u64::try_from(span.ns()).ok());
    // A cast saturates; what is not known is the largest number.
    let capacity = link.capacity_bytes_per_s.map(|capacity| (capacity as u64).min(UNKNOWN - 1));
    let loss_ppm = link.loss.map(|loss| (loss.clamp(0.0, 1.0) * 1e6).round() as u64);
    let numbers = [
        round_trip_ns.unwrap_or(UNKNOWN),
        capacity.unwrap_or(UNKNOWN),
        loss_ppm.unwrap_or(UNKNOWN),
        link.sent_datagrams,
        link.extra_datagrams,
        link.received_datagrams,
    ];
    let mut bytes = [0; LINK_BYTES];
    bytes[..16].copy_from_slice(&link.to.0);
    for (place, number) in bytes[16..].as_chunks_mut::<8>().0.iter_mut().zip(numbers) {
        *place = number.to_le_bytes();
    }
    bytes
}

pub(crate) fn decode(bytes: &[u8; LINK_BYTES]) -> LinkReport {
    let mut to = [0; 16];
    to.copy_from_slice(&bytes[..16]);
    let number =
        |at: usize| bytes[16..].as_chunks::<8>().0.get(at).map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let known = |at: usize| Some(number(at)).filter(|number| *number != UNKNOWN);
    LinkReport {
        to: NodeId(to),
        round_trip: known(0).and_then(|ns| i64::try_from(ns).ok()).map(Span::from_ns),
        loss: known(2).map(|ppm| ppm.min(1_000_000) as f64 / 1e6),
        capacity_bytes_per_s: known(1).map(|capacity| capacity as f64),
        sent_datagrams: number(3),
        extra_datagrams: number(4),
        received_datagrams: number(5),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bytes_are_those_of_the_specification() {
        let link = LinkReport {
            to: NodeId([9; 16]),
            round_trip: Some(Span::from_us(2)),
            loss: Some(0.25),
            capacity_bytes_per_s: None,
            sent_datagrams: 3,
            extra_datagrams: 1,
            received_datagrams: 2,
        };
        let bytes = encode(&link);
        let hex: String = bytes[16..].iter().map(|byte| format!("{byte:02x}")).collect();
        let expected = "d007000000000000 ffffffffffffffff 90d0030000000000 0300000000000000 0100000000000000 0200000000000000";
        assert_eq!(hex, expected.replace(' ', ""));
        assert_eq!((&bytes[..16], decode(&bytes)), (&[9; 16][..], link));
    }

    proptest! {
        #[test]
        fn whatever_comes_is_within_its_range(bytes in any::<[u8; 32]>(), more in any::<[u8; 32]>()) {
            let mut all = [0; LINK_BYTES];
            all[..32].copy_from_slice(&bytes);
            all[32..].copy_from_slice(&more);
            let link = decode(&all);
            prop_assert!(link.loss.is_none_or(|loss| (0.0..=1.0).contains(&loss)));
            prop_assert!(link.round_trip.is_none_or(|span| span.ns() >= 0));
            prop_assert_eq!(decode(&encode(&link)).sent_datagrams, link.sent_datagrams);
        }
    }
}
