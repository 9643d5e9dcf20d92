//! Explicit congestion notification (RFC 3168) in the headers of IP packets.

/// The two bits, and what they say.
const ECN: u8 = 3;
const MARKED: u8 = 3;

/// Marks an IP packet whose sender takes notice of that; false, and it stays as it is, if it is another.
pub(super) fn mark(packet: &mut [u8]) -> bool {
    match packet.first().map(|byte| byte >> 4) {
        Some(4) if packet.len() >= 20 => {
            let before = u16::from_be_bytes([packet[0], packet[1]]);
            if packet[1] & ECN == 0 {
                return false;
            }
            packet[1] |= MARKED;
            let after = u16::from_be_bytes([packet[0], packet[1]]);
            let sum = u16::from_be_bytes([packet[10], packet[11]]);
            packet[10..12].copy_from_slice(&changed(sum, before, after).to_be_bytes());
            true
        }
        // The traffic class lies across two bytes.
        Some(6) if packet.len() >= 40 => {
            let is_capable = packet[1] >> 4 & ECN != 0;
            packet[1] |= if is_capable { MARKED << 4 } else { 0 };
            is_capable
        }
        _ => false,
    }
}

/// The header's checksum after one of its words has changed (RFC 1624, equation 3).
fn changed(sum: u16, before: u16, after: u16) -> u16 {
    let new = u32::from(!sum) + u32::from(!before) + u32::from(after);
    let folded = (new & 0xffff) + (new >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header_sum(packet: &[u8]) -> u16 {
        let sum: u32 =
            packet[..20].chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum();
        ((sum & 0xffff) + (sum >> 16)) as u16
    }

    #[test]
    fn a_capable_packet_is_marked_and_its_checksum_holds() {
        for (octet, is_capable) in [(0xb8, false), (0xba, true), (0xb9, true), (0xbb, true), (2, true)] {
            let mut packet =
                [0x45, octet, 0, 28, 7, 7, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 1, 2, 3, 4];
            let sum = !header_sum(&packet);
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
            assert_eq!(mark(&mut packet), is_capable, "{octet:x}");
            assert_eq!(packet[1], if is_capable { octet | 3 } else { octet });
            assert_eq!(header_sum(&packet), 0xffff, "{octet:x}");
        }
    }

    #[test]
    fn of_version_6_it_is_the_traffic_class_and_others_are_left_alone() {
        let mut packet = [0; 48];
        (packet[0], packet[1]) = (0x6b, 0xa5);
        assert!(mark(&mut packet));
        assert_eq!((packet[0], packet[1]), (0x6b, 0xb5));
        packet[1] = 0x85;
        assert!(!mark(&mut packet));
        assert_eq!(packet[1], 0x85);
        for mut other in [vec![], vec![0x45, 2], vec![0x62; 39], vec![0x02; 60]] {
            let before = other.clone();
            assert!(!mark(&mut other));
            assert_eq!(other, before);
        }
    }
}
