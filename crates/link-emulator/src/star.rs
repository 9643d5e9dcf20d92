//! Several nodes around a hub that costs nothing: each sends over a link of its own to all others.
//!
//! Node 0 is `a` and sends by the direction a>b of the specification, all others by b>a. A node's rate
//! and queue are used once per packet however many get it; loss, delay and all that happens in the air
//! are independent for each receiver. With two nodes this is the plain link.

use std::net::Ipv4Addr;

use noctule_netsim::Truth;
use noctule_netsim::link::{Delivery, Link, LinkSpec};
use noctule_netsim::network::node_seed;
use noctule_timebase::Instant;

/// Most nodes of one link: they are named by letters.
pub const NODES_MAX: usize = 26;
/// The addresses of all nodes, a part of 10.0.0.0/8. Namespaces are private, so links may share it.
const NETWORK: [u8; 3] = [10, 78, 0];
/// Length of the network part of an address.
pub const PREFIX_BITS: u32 = 24;
/// Shortest IPv4 header.
const HEADER_BYTES: usize = 20;

/// The links of all nodes.
#[derive(Debug)]
pub struct Star {
    links: Vec<Link>,
    /// Packets to addresses without a node.
    pub unroutable: u64,
    /// Packets of other protocols than IPv4, such as the kernel's own IPv6 chatter.
    pub not_ipv4: u64,
}

/// `a`, `b`, …
pub fn node_name(node: usize) -> String {
    char::from(b'a'.saturating_add(node.min(NODES_MAX - 1) as u8)).to_string()
}

/// The address of a node: 10.78.0.1 is `a`.
pub fn node_address(node: usize) -> Ipv4Addr {
    let [a, b, c] = NETWORK;
    Ipv4Addr::new(a, b, c, node as u8 + 1)
}

/// Which node gets a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Route {
    Node(usize),
    All,
    Nowhere,
}

impl Star {
    /// `nodes` is 2 to [`NODES_MAX`]; scripts count from `start`.
    pub fn new(spec: &LinkSpec, nodes: usize, start: Instant<Truth>, seed: u64) -> Star {
        let link = |node| {
            let direction = if node == 0 { &spec.a_to_b } else { &spec.b_to_a };
            Link::to_receivers(direction, nodes, start, node_seed(seed, node))
        };
        Star { links: (0..nodes).map(link).collect(), unroutable: 0, not_ipv4: 0 }
    }

    /// A node has sent a packet. One node's own address never gets here; its kernel keeps it.
    pub fn handle_packet(&mut self, now: Instant<Truth>, from: usize, packet: &[u8]) {
        if packet.len() < HEADER_BYTES || packet[0] >> 4 != 4 {
            self.not_ipv4 += 1;
            return;
        }
        let target = Ipv4Addr::new(packet[16], packet[17], packet[18], packet[19]);
        match self.route(target) {
            Route::All => self.links[from].handle_packet_except(now, from, packet),
            Route::Node(node) if node != from => self.links[from].handle_packet_to(now, node, packet),
            Route::Node(_) | Route::Nowhere => self.unroutable += 1,
        }
    }

    /// The next packet due by `now`, of any sender.
    pub fn poll_deliver(&mut self, now: Instant<Truth>) -> Option<Delivery> {
        let due = |link: &Link| link.poll_timeout().filter(|due| *due <= now);
        let earliest = self.links.iter_mut().filter(|link| due(link).is_some());
        earliest.min_by_key(|link| link.poll_timeout())?.poll_deliver(now)
    }

    /// When the next packet is due.
    pub fn poll_timeout(&self) -> Option<Instant<Truth>> {
        self.links.iter().filter_map(Link::poll_timeout).min()
    }

    /// The link out of each node.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    fn route(&self, target: Ipv4Addr) -> Route {
        let [a, b, c, last] = target.octets();
        let in_network = [a, b, c] == NETWORK;
        if target.is_multicast() || target.is_broadcast() || in_network && last == 255 {
            return Route::All;
        }
        let node = usize::from(last).wrapping_sub(1);
        if in_network && node < self.links.len() { Route::Node(node) } else { Route::Nowhere }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(target: [u8; 4]) -> Vec<u8> {
        let mut packet = vec![0; 28];
        packet[0] = 0x45;
        packet[16..20].copy_from_slice(&target);
        packet
    }

    fn receivers(star: &mut Star) -> Vec<usize> {
        std::iter::from_fn(|| star.poll_deliver(Instant::from_ns(i64::MAX))).map(|d| d.receiver).collect()
    }

    #[test]
    fn a_packet_goes_to_its_address_and_a_group_to_all_others() {
        let mut star = Star::new(&LinkSpec::default(), 4, Instant::from_ns(0), 1);
        let now = Instant::from_ns(0);
        star.handle_packet(now, 0, &packet([10, 78, 0, 3]));
        assert_eq!(receivers(&mut star), [2]);
        for group in [[239, 255, 0, 7], [255, 255, 255, 255], [10, 78, 0, 255]] {
            star.handle_packet(now, 2, &packet(group));
            assert_eq!(receivers(&mut star), [0, 1, 3]);
        }
    }

    #[test]
    fn what_has_no_receiver_is_counted() {
        let mut star = Star::new(&LinkSpec::default(), 2, Instant::from_ns(0), 1);
        for target in [[10, 78, 0, 0], [10, 78, 0, 9], [192, 168, 0, 1], [10, 78, 0, 1]] {
            star.handle_packet(Instant::from_ns(0), 0, &packet(target));
        }
        star.handle_packet(Instant::from_ns(0), 0, &[0x60; 40]);
        star.handle_packet(Instant::from_ns(0), 0, &[0x45; 3]);
        assert_eq!((star.unroutable, star.not_ipv4, star.poll_timeout()), (4, 2, None));
    }

    #[test]
    fn packets_of_several_links_come_out_in_the_order_of_time() {
        let spec: LinkSpec = "a>b: delay=5ms; b>a: delay=2ms".parse().unwrap();
        let mut star = Star::new(&spec, 2, Instant::from_ns(0), 1);
        star.handle_packet(Instant::from_ns(0), 0, &packet([10, 78, 0, 2]));
        star.handle_packet(Instant::from_ns(0), 1, &packet([10, 78, 0, 1]));
        assert_eq!(star.poll_timeout(), Some(Instant::from_ns(2_000_000)));
        assert_eq!(receivers(&mut star), [0, 1]);
    }
}
