//! Which marks a datagram has for the routers and radios on its way (RFC 2474, RFC 3168, RFC 4594, RFC 8325).

use noctule_prrt::Ecn;
use noctule_prrt::datagram::has_deadline;

/// Expedited forwarding: on Wi-Fi voice.
const EXPEDITED: u8 = 46;
/// Assured forwarding 41, interactive video: on Wi-Fi video.
const VIDEO: u8 = 34;
const DEFAULT: u8 = 0;
/// Longer ones with a deadline are parts of a picture.
const SMALL_BYTES: usize = 400;

/// The differentiated services code point of a datagram without its seal. What is small and has a deadline goes first; a picture with
/// one goes before what has none, and does not hold up what is small.
fn dscp(datagram: &[u8]) -> u8 {
    match has_deadline(datagram) {
        true if datagram.len() <= SMALL_BYTES => EXPEDITED,
        true => VIDEO,
        false => DEFAULT,
    }
}

/// The octet of its IP header: that, and what its link says of congestion notification.
pub(super) fn octet(datagram: &[u8], ecn: Ecn) -> u8 {
    dscp(datagram) << 2 | ecn.bits()
}

#[cfg(test)]
mod tests {
    use noctule_prrt::{Bound, Class, Link, LinkConfig, Order, Origin, Outgoing, StreamId};
    use noctule_timebase::{Instant, Span};

    use super::*;

    fn marks(class: Class, payload: &[u8]) -> Vec<u8> {
        let now = Instant::from_ns(0);
        let mut link = Link::new(LinkConfig::default(), now);
        let (writer, origin, age) = (StreamId(1), Origin::exactly(0), Span::ZERO);
        link.send(&Outgoing { writer, sequence: 1, origin, age, class, depth: 1, payload }, now).unwrap();
        let (mut marks, mut out) = (Vec::new(), Vec::new());
        while link.poll_transmit(now, &mut out) {
            marks.push(dscp(&out));
            assert_eq!(octet(&out, link.ecn()), dscp(&out) << 2 | 2);
            out.clear();
        }
        marks
    }

    #[test]
    fn the_mark_follows_the_class_and_the_length() {
        let bound = Bound { deadline: Span::from_ms(50), loss_target: 1e-3, order: Order::Asap };
        assert_eq!(marks(Class::DeadlineBound(bound), &[0; 100]), [EXPEDITED]);
        let of_long = marks(Class::DeadlineBound(bound), &[0; 2_000]);
        assert!(of_long.len() >= 2 && of_long.iter().all(|mark| *mark == VIDEO), "{of_long:?}");
        assert_eq!(marks(Class::Reliable, &[0; 100]), [DEFAULT]);
        assert_eq!(marks(Class::BestEffort, &[0; 100]), [DEFAULT]);
        for other in [&b"NCTD\x01\0\0\0"[..], b"NCTS\x01\x01", b"", b"\x80"] {
            assert_eq!(dscp(other), DEFAULT);
        }
    }
}
