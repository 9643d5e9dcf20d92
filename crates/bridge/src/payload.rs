//! The bytes of a sample: the same on the bus and in DDS but for what RTPS pads them with.

/// Encapsulation of CDR in version 1 (DDSI-RTPS 2.3, table 10.2), big-endian and little-endian. The last two bits
/// of the header count the bytes of padding behind the sample (DDS-XTypes 1.3, 7.6.3.1.2).
fn is_cdr(bytes: &[u8]) -> bool {
    matches!(bytes, [0, 0 | 1, _, _, ..])
}

/// Copies CDR without the padding that DDS has put behind it; false if it is no CDR of version 1. The bytes may be
/// anything: they come from a network.
pub fn without_padding(bytes: &[u8], payload: &mut Vec<u8>) -> bool {
    payload.clear();
    if !is_cdr(bytes) {
        return false;
    }
    let padding = usize::from(bytes[3] & 3);
    payload.extend_from_slice(&bytes[..bytes.len().saturating_sub(padding).max(4)]);
    payload[2..4].fill(0);
    true
}

/// Pads CDR as RTPS wants it, and counts it in the header; false if it is no CDR.
pub fn pad(payload: &mut Vec<u8>) -> bool {
    if !is_cdr(payload) {
        return false;
    }
    let padding = payload.len().next_multiple_of(4) - payload.len();
    payload.resize(payload.len() + padding, 0);
    payload[2] = 0;
    payload[3] = padding as u8;
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_is_added_and_counted_and_taken_off_again() {
        for length in 4..9 {
            let mut payload: Vec<u8> = [0, 1, 0, 0, 7, 8, 9, 10, 11][..length].to_vec();
            let before = payload.clone();
            assert!(pad(&mut payload));
            assert_eq!(payload.len() % 4, 0);
            let mut after = Vec::new();
            assert!(without_padding(&payload, &mut after));
            assert_eq!(after, before);
        }
    }

    #[test]
    fn what_is_no_cdr_of_version_1_is_refused() {
        let mut out = Vec::new();
        // Nothing, a part of a header, XCDR version 2, a parameter list.
        for bytes in [&[][..], &[0, 1, 0], &[0, 7, 0, 0, 1, 2, 3, 4], &[0, 3, 0, 0]] {
            assert!(!without_padding(bytes, &mut out), "{bytes:?}");
            assert!(!pad(&mut bytes.to_vec()), "{bytes:?}");
        }
        // More padding than there is.
        assert!(without_padding(&[0, 1, 0, 3], &mut out));
        assert_eq!(out, [0, 1, 0, 0]);
    }
}
