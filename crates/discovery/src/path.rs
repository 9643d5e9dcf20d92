//! Path validation: proof that a node receives at an address, before anything but a few bytes goes there.
//!
//! # Problem
//!
//! An attacker that forges the source address of a hello would have a camera's stream sent to a victim that never asked for it. And
//! one that sends hellos of a million nodes would have a million of them remembered.
//!
//! # Approach
//!
//! As in RFC 9000, sections 8 and 9: the address is sent a number, and counts once that came back from it. The number is a keyed
//! hash of the node, the address and the time (SipHash-2-4 with a key that no other node has), so nothing is kept until the answer comes. A challenge has
//! 52 bytes, and is sent only for a hello, which has at least 56. What comes from a loopback address needs no proof: no network delivers that.

use std::hash::Hasher;
use std::net::{IpAddr, SocketAddr};

use noctule_timebase::Instant;
use siphasher::sip::SipHasher24;

use crate::event::Via;
use crate::types::{Local, Locator};
use crate::wire::NodeId;

/// A number is good for this long, and at most as long again.
const EPOCH_NS: i64 = 4_000_000_000;
/// The lowest bit of a number says how the hello came.
const UNICAST: u64 = 1;

/// Makes and checks the numbers of path challenges.
#[derive(Clone, Debug)]
pub(crate) struct PathKey([u8; 16]);

impl PathKey {
    pub(crate) fn new(secret: [u8; 16]) -> PathKey {
        PathKey(secret)
    }

    /// The number for a node that sent a hello from this address.
    pub(crate) fn number(&self, node: NodeId, at: Locator, via: Via, now: Instant<Local>) -> u64 {
        self.of_epoch(node, at, via, epoch(now))
    }

    /// How the hello came that a number was made for; `None` if it is not ours, of another address, or too old.
    pub(crate) fn check(&self, node: NodeId, at: Locator, number: u64, now: Instant<Local>) -> Option<Via> {
        let via = if number & UNICAST == 0 { Via::Group } else { Via::Unicast };
        let epochs = [epoch(now), epoch(now) - 1];
        epochs.into_iter().any(|epoch| self.of_epoch(node, at, via, epoch) == number).then_some(via)
    }

    /// A seed for what is no secret.
    pub(crate) fn seed(&self) -> u64 {
        let mut hasher = SipHasher24::new_with_key(&self.0);
        hasher.write(b"jitter");
        hasher.finish()
    }

    fn of_epoch(&self, node: NodeId, at: Locator, via: Via, epoch: i64) -> u64 {
        let mut hasher = SipHasher24::new_with_key(&self.0);
        hasher.write(&node.0);
        hasher.write(&octets(at.ip()));
        hasher.write_u16(at.port());
        hasher.write_u8(u8::from(via == Via::Unicast));
        hasher.write_i64(epoch);
        hasher.finish() & !UNICAST | if via == Via::Unicast { UNICAST } else { 0 }
    }
}

/// Whether an address needs no proof.
pub(crate) fn is_proven_by_itself(at: SocketAddr) -> bool {
    at.ip().to_canonical().is_loopback()
}

fn epoch(now: Instant<Local>) -> i64 {
    now.ns().div_euclid(EPOCH_NS)
}

fn octets(ip: IpAddr) -> [u8; 16] {
    match ip {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    }
}

#[cfg(test)]
mod tests {
    use noctule_timebase::Span;

    use super::*;

    const NODE: NodeId = NodeId([7; 16]);

    fn address(last: u8, port: u16) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, last], port))
    }

    #[test]
    fn a_number_is_good_for_its_node_and_address_for_a_few_seconds() {
        let key = PathKey::new([3; 16]);
        let begin = Instant::from_ns(10_000_000_000);
        for via in [Via::Group, Via::Unicast] {
            let number = key.number(NODE, address(1, 5), via, begin);
            assert_eq!(key.check(NODE, address(1, 5), number, begin + Span::from_s(4)), Some(via));
            assert_eq!(key.check(NODE, address(1, 5), number, begin + Span::from_s(9)), None);
            assert_eq!(key.check(NODE, address(2, 5), number, begin), None);
            assert_eq!(key.check(NODE, address(1, 6), number, begin), None);
            assert_eq!(key.check(NodeId([8; 16]), address(1, 5), number, begin), None);
            assert_eq!(key.check(NODE, address(1, 5), number ^ 1, begin), None, "the way cannot be changed");
            assert_eq!(PathKey::new([4; 16]).check(NODE, address(1, 5), number, begin), None);
        }
    }

    #[test]
    fn nodes_of_unlike_secrets_wait_unlike_times() {
        let seeds = [3, 4, 5].map(|secret| PathKey::new([secret; 16]).seed());
        assert!(seeds[0] != seeds[1] && seeds[1] != seeds[2] && seeds[0] != seeds[2], "{seeds:?}");
    }

    #[test]
    fn both_forms_of_an_ipv4_address_are_one() {
        let key = PathKey::new([3; 16]);
        let mapped = "[::ffff:10.0.0.1]:5".parse().unwrap();
        let now = Instant::from_ns(0);
        let number = key.number(NODE, address(1, 5), Via::Group, now);
        assert_eq!(key.check(NODE, mapped, number, now), Some(Via::Group));
        assert!(is_proven_by_itself("[::ffff:127.0.0.1]:5".parse().unwrap()) && !is_proven_by_itself(mapped));
    }
}
