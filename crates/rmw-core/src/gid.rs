//! The identity of an endpoint as ROS 2 has it.

use noctule::{EndpointId, NodeId};

/// 16 bytes: the first 12 of the node's number, then the endpoint's, little-endian.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Gid(pub [u8; 16]);

/// Bytes in front of a client's number: no node's number begins so but by a chance of one in 2^64.
const CLIENT: [u8; 8] = *b"ncltclnt";

impl Gid {
    /// Identity of an endpoint of a node.
    pub fn of(node: NodeId, endpoint: EndpointId) -> Gid {
        let mut bytes = node.0;
        bytes[12..].copy_from_slice(&endpoint.0.to_le_bytes());
        Gid(bytes)
    }

    /// Identity of a client of a service, which requests carry as a number.
    pub fn of_client(number: u64) -> Gid {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&CLIENT);
        bytes[8..].copy_from_slice(&number.to_le_bytes());
        Gid(bytes)
    }

    /// The number of the client that this is of; `None` if it is of no client.
    pub fn client(self) -> Option<u64> {
        let (front, number) = self.0.split_first_chunk::<8>()?;
        (*front == CLIENT).then(|| number.try_into().ok().map(u64::from_le_bytes)).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_of_one_node_differ_and_a_client_comes_back() {
        let of = |endpoint| Gid::of(NodeId([7; 16]), EndpointId(endpoint));
        assert_ne!(of(1), of(2));
        assert_eq!(of(0x0403_0201).0[12..], [1, 2, 3, 4]);
        assert_eq!(Gid::of_client(u64::MAX - 1).client(), Some(u64::MAX - 1));
        assert_eq!(of(1).client(), None);
    }
}
