//! The cost of latency, in virtual time: the same cores that run live, links of `noctule-netsim`, and a known truth.
//!
//! - [`commands`]: E1, the operator's commands over a network.
//! - [`arrivals`]: E1 over what was measured: arrivals of a live network, whatever carried them.
//! - [`recorded`]: E1 of a recorded run: where the arm was, and where the hand was at the same time.
//! - [`joint`]: E2, a joint's loop closed over a network.
//! - [`human`]: E3, a human model that sees late and acts late.
//! - [`force`]: E4, a force that comes back late to the operator's hand.

pub mod arrivals;
pub mod commands;
pub mod force;
pub mod human;
pub mod joint;
pub mod recorded;

use noctule_netsim::Truth;
use noctule_netsim::link::{Direction, Link};
use noctule_timebase::Instant;

/// A link that carries numbers: what was sent is kept by the sender, packets name it.
#[derive(Debug)]
struct NumberedLink(Link);

impl NumberedLink {
    fn new(direction: &Direction, seed: u64) -> NumberedLink {
        NumberedLink(Link::new(direction, Instant::from_ns(0), seed))
    }

    /// Sends a number in a packet of `length_bytes`, at least 8.
    fn send(&mut self, now: Instant<Truth>, number: u64, length_bytes: usize) {
        let mut packet = vec![0; length_bytes.max(8)];
        packet[..8].copy_from_slice(&number.to_le_bytes());
        self.0.handle_packet(now, &packet);
    }

    /// The next number that has arrived. A spoiled packet is as good as a lost one; a checksum finds it.
    fn poll(&mut self, now: Instant<Truth>, sent: u64) -> Option<u64> {
        while let Some(delivery) = self.0.poll_deliver(now) {
            let number = delivery.bytes.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
            if let Some(number) = number.filter(|number| *number < sent) {
                return Some(number);
            }
        }
        None
    }
}
