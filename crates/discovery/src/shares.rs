//! How much of the tables each source address has: a node with one address only cannot fill them.

use std::collections::BTreeMap;
use std::net::IpAddr;

/// Nodes of one source address that can be known at once: more processes than a robot has.
pub const NODES_PER_ADDRESS_LIMIT: usize = 1024;
/// Pages of nodes of one source address that are held at once.
pub const PAGES_PER_ADDRESS_LIMIT: usize = 2048;

/// Table entries of the nodes of one address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Share {
    nodes: usize,
    pages: usize,
}

/// Table entries by address. Loopback is not limited: a process that can send from there can do worse.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shares {
    by_address: BTreeMap<IpAddr, Share>,
    pages: usize,
}

impl Shares {
    /// Whether another node of this address may be known.
    pub(crate) fn has_room_for_node(&self, ip: IpAddr) -> bool {
        let ip = ip.to_canonical();
        ip.is_loopback() || self.by_address.get(&ip).is_none_or(|share| share.nodes < NODES_PER_ADDRESS_LIMIT)
    }

    /// Whether another page of a node of this address may be held.
    pub(crate) fn has_room_for_page(&self, ip: IpAddr) -> bool {
        let ip = ip.to_canonical();
        ip.is_loopback() || self.by_address.get(&ip).is_none_or(|share| share.pages < PAGES_PER_ADDRESS_LIMIT)
    }

    /// Nodes known of an address.
    pub(crate) fn nodes(&self, ip: IpAddr) -> usize {
        self.by_address.get(&ip.to_canonical()).map_or(0, |share| share.nodes)
    }

    /// Pages held of all addresses.
    pub(crate) fn pages(&self) -> usize {
        self.pages
    }

    /// A node has come, with so many pages.
    pub(crate) fn add(&mut self, ip: IpAddr, pages: usize) {
        let share = self.by_address.entry(ip.to_canonical()).or_default();
        share.nodes += 1;
        share.pages += pages;
        self.pages += pages;
    }

    /// One more page of a node is held.
    pub(crate) fn add_page(&mut self, ip: IpAddr) {
        self.by_address.entry(ip.to_canonical()).or_default().pages += 1;
        self.pages += 1;
    }

    /// A node that had so many pages is gone.
    pub(crate) fn remove(&mut self, ip: IpAddr, pages: usize) {
        let ip = ip.to_canonical();
        self.pages = self.pages.saturating_sub(pages);
        if let Some(share) = self.by_address.get_mut(&ip) {
            share.nodes = share.nodes.saturating_sub(1);
            share.pages = share.pages.saturating_sub(pages);
            if *share == Share::default() {
                self.by_address.remove(&ip);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_has_its_share_and_no_more_and_gives_it_back() {
        let mut shares = Shares::default();
        let [one, other] = [1, 2].map(|last| IpAddr::from([10, 0, 0, last]));
        (0..NODES_PER_ADDRESS_LIMIT).for_each(|_| shares.add(one, 2));
        assert!(!shares.has_room_for_node(one) && !shares.has_room_for_page(one));
        assert!(shares.has_room_for_node(other) && shares.has_room_for_page(other));
        assert!(shares.has_room_for_node(IpAddr::from([127, 0, 0, 1])));
        shares.remove(one, 2);
        shares.add_page(other);
        assert!(shares.has_room_for_node(one) && shares.has_room_for_page(one));
        assert_eq!(shares.pages(), PAGES_PER_ADDRESS_LIMIT - 1);
        (1..NODES_PER_ADDRESS_LIMIT).for_each(|_| shares.remove(one, 2));
        shares.remove(other, 1);
        assert!(shares.by_address.is_empty(), "nothing is kept of those that have gone");
    }
}
