//! A request or a reply in DDS and on the bus. In DDS its identity lies between the encapsulation header and the message, as `rmw_cyclonedds_cpp`
//! puts it there (`cdds_request_header`): client, u64, and sequence, i64, in the byte order of the encapsulation. On the bus it lies
//! in a header of its own (`docs/spec/requests.md`), and the message is CDR alone. 16 bytes keep the message's alignment.

use noctule_bridge::payload::{pad, without_padding};

/// Bytes of the identity.
pub const IDENTITY_BYTES: usize = 16;
const ENCAPSULATION_BYTES: usize = 4;

/// Which request: the client's number and its count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Identity {
    /// Number of the client, as it has chosen it.
    pub client: u64,
    /// Its count.
    pub sequence: i64,
}

/// A sample of DDS → its identity, and in `message` the CDR without it; `None` if it is none. The bytes may be anything: they come from a network.
pub fn from_dds(bytes: &[u8], message: &mut Vec<u8>) -> Option<Identity> {
    if !without_padding(bytes, message) {
        return None;
    }
    let is_little = message[1] == 1;
    let identity = message.get(ENCAPSULATION_BYTES..ENCAPSULATION_BYTES + IDENTITY_BYTES)?;
    let (client, sequence) = identity.split_at(8);
    let (client, sequence) = (client.try_into().ok()?, sequence.try_into().ok()?);
    let identity = match is_little {
        true => Identity { client: u64::from_le_bytes(client), sequence: i64::from_le_bytes(sequence) },
        false => Identity { client: u64::from_be_bytes(client), sequence: i64::from_be_bytes(sequence) },
    };
    message.drain(ENCAPSULATION_BYTES..ENCAPSULATION_BYTES + IDENTITY_BYTES);
    Some(identity)
}

/// CDR of the bus and an identity → a sample for DDS, padded; `None` if it is no CDR of version 1.
pub fn to_dds(identity: Identity, message: &[u8]) -> Option<Vec<u8>> {
    let (encapsulation, body) = message.split_at_checked(ENCAPSULATION_BYTES)?;
    let mut bytes = Vec::with_capacity(message.len() + IDENTITY_BYTES + 3);
    bytes.extend_from_slice(encapsulation);
    let (client, sequence) = match encapsulation[1] {
        1 => (identity.client.to_le_bytes(), identity.sequence.to_le_bytes()),
        _ => (identity.client.to_be_bytes(), identity.sequence.to_be_bytes()),
    };
    bytes.extend_from_slice(&client);
    bytes.extend_from_slice(&sequence);
    bytes.extend_from_slice(body);
    pad(&mut bytes).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_identity_lies_where_rmw_cyclonedds_has_it() {
        let identity = Identity { client: 0x0102, sequence: -2 };
        let little = to_dds(identity, &[0, 1, 0, 0, 9]).unwrap();
        assert_eq!(little[..4], [0, 1, 0, 3]);
        assert_eq!(little[4..12], [2, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(little[12..20], [0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
        assert_eq!(little[20..], [9, 0, 0, 0]);
        let big = to_dds(identity, &[0, 0, 0, 0, 9]).unwrap();
        assert_eq!(big[4..12], [0, 0, 0, 0, 0, 0, 1, 2]);
        for (bytes, encapsulation) in [(little, 1), (big, 0)] {
            let mut message = Vec::new();
            assert_eq!(from_dds(&bytes, &mut message), Some(identity));
            assert_eq!(message, [0, encapsulation, 0, 0, 9]);
        }
        assert_eq!(to_dds(identity, &[0, 1, 0]), None);
        assert_eq!(to_dds(identity, &[0, 7, 0, 0]), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_and_what_is_read_is_written_again(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let mut message = Vec::new();
            if let Some(identity) = from_dds(&bytes, &mut message) {
                let again = to_dds(identity, &message).unwrap();
                let mut second = Vec::new();
                prop_assert_eq!(from_dds(&again, &mut second), Some(identity));
                prop_assert_eq!(second, message);
            } else if bytes.len() >= 24 {
                prop_assert!(bytes[0] != 0 || bytes[1] > 1);
            }
        }
    }
}
