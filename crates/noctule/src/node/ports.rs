//! The ports and multicast groups of a domain. Bytes: `docs/spec/discovery.md`.
//!
//! Two fixed ports, both below 7400: DDS gives each of its domains a range that begins at 7400 + 250 × domain, and a DDS
//! program that finds one of its ports taken does not start. Domains differ by group, so the kernel keeps them apart.
//!
//! The own socket's port is the kernel's choice, and what Linux chooses from (32768 to 60999) overlaps DDS domains 102 to 214. So a port that a
//! program of such a domain cannot do without is given back.

use std::net::{Ipv4Addr, Ipv6Addr};

/// Discovery: by multicast over IPv4, and by unicast for static peers.
pub(super) const DISCOVERY_PORT: u16 = 7399;
/// Samples that go to several nodes at once, over IPv4; discovery by multicast over IPv6.
pub(super) const CHANNEL_PORT: u16 = 7396;
/// Channels: groups that streams of samples share. A socket may join no more than 20 on Linux.
pub(super) const CHANNELS: u8 = 16;
/// Domains that have groups of their own.
pub(super) const DOMAIN_MAX: u32 = 5_000;

/// Ports of a DDS domain (DDSI-RTPS 2.5, section 9.6.2): the first, and from one domain to the next.
const DDS_PORTS: (u16, u16) = (7_400, 250);
/// The first so many ports of a domain are left free: two for multicast, on which every program of the domain depends, and (from 10 on, in pairs)
/// those of the first 11 participants, whose numbers may be fixed. Behind them a program that finds a pair taken tries the next.
const DDS_PORTS_KEPT: u16 = 32;

/// Whether a DDS program may be unable to start because a port is taken.
pub(super) fn is_needed_by_dds(port: u16) -> bool {
    let (first, step) = DDS_PORTS;
    port.checked_sub(first).is_some_and(|above| above % step < DDS_PORTS_KEPT)
}

/// 239.193.0.0: of the block for organizations (RFC 2365, section 6.2), 32 addresses for each domain.
const FIRST_GROUP: u32 = 0xefc1_0000;
const GROUPS_PER_DOMAIN: u32 = 32;

/// Discovery's group over IPv4.
pub(super) fn discovery_group(domain: u32) -> Ipv4Addr {
    Ipv4Addr::from(FIRST_GROUP + GROUPS_PER_DOMAIN * domain.min(DOMAIN_MAX))
}

/// Discovery's group over IPv6: transient, and valid on one link (RFC 4291, section 2.7).
pub(super) fn discovery_group_v6(domain: u32) -> Ipv6Addr {
    Ipv6Addr::new(0xff12, 0, 0, 0, 0, 0, 0x4e43, domain.min(DOMAIN_MAX) as u16)
}

/// The group of a channel.
pub(super) fn channel_group(domain: u32, channel: u8) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(discovery_group(domain)) + 1 + u32::from(channel % CHANNELS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_port_is_one_of_dds_and_no_group_is_used_twice() {
        const { assert!(DISCOVERY_PORT < 7_400 && CHANNEL_PORT < 7_400 && CHANNEL_PORT > 1_023) };
        // Multicast and first participant of domain 0, then of domain 102.
        assert!([7_400, 7_401, 7_410, 7_411, 32_900, 32_901, 32_910].into_iter().all(is_needed_by_dds));
        assert!(
            [DISCOVERY_PORT, CHANNEL_PORT, 32_899, 32_932, 33_149]
                .into_iter()
                .all(|it| !is_needed_by_dds(it))
        );
        assert_eq!(discovery_group(0), Ipv4Addr::new(239, 193, 0, 0));
        assert_eq!(channel_group(1, 15), Ipv4Addr::new(239, 193, 0, 48));
        let last = channel_group(DOMAIN_MAX, CHANNELS - 1);
        assert!(last < Ipv4Addr::new(239, 196, 0, 0), "{last} is beyond the block");
        assert!(channel_group(7, CHANNELS - 1) < discovery_group(8));
        assert_eq!(discovery_group_v6(5).to_string(), "ff12::4e43:5");
    }
}
