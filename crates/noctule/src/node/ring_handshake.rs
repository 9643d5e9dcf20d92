//! Handshake of two nodes of one host about shared memory. Bytes: `docs/spec/shared-memory.md`.

use noctule_discovery::{EndpointId, NodeId};

use super::guid::Guid;
use crate::envelope::PROOF_BYTES;

/// Longest packet: a refusal with its reason.
pub(super) const PACKET_BYTES_MAX: usize = 512;
const MAGIC: [u8; 4] = *b"NCTR";
const VERSION: u8 = 4;
pub(super) const ASK: u8 = 1;
pub(super) const GRANT: u8 = 2;
const REFUSE: u8 = 3;
const RELEASE: u8 = 4;
const END: u8 = 5;

/// That a packet is by the node that it names, which knows the swarm key.
pub(super) type Proof = [u8; PROOF_BYTES];

/// A number and a proof, and nothing else.
fn numbered(rest: &[u8]) -> Option<(u64, Proof)> {
    let (number, proof) = rest.split_first_chunk()?;
    Some((u64::from_le_bytes(*number), proof.try_into().ok()?))
}

/// Bytes that the proof of an ask or a grant covers: its kind, its receiver, the endpoints, the number of the question.
pub(super) fn proven(kind: u8, to: NodeId, (writer, reader): (Guid, EndpointId), number: u64) -> Vec<u8> {
    let mut bytes = vec![kind];
    bytes.extend(to.0);
    bytes.extend(writer.0.0);
    [writer.1.0, reader.0].iter().for_each(|word| bytes.extend(word.to_le_bytes()));
    bytes.extend(number.to_le_bytes());
    bytes
}

/// The abstract socket name of a node.
pub(super) fn socket_name(node: NodeId) -> String {
    format!("noctule/{node}")
}

/// One packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Packet {
    /// "Let my reader read your writer", or what you receive from a writer of another host.
    Ask {
        writer: Guid,
        reader: EndpointId,
        /// Samples that it may borrow at once.
        pins: u32,
        /// Begin with the oldest sample there is, not with the next.
        history: bool,
        /// It is to lose nothing: a writer that keeps all waits for it.
        keeps_all: bool,
        /// Drawn at random for this question.
        number: u64,
        proof: Proof,
    },
    /// "Here it is"; two descriptors come along: data and control.
    Grant {
        writer: Guid,
        reader: EndpointId,
        pins: u32,
        /// Where in the ring the reader begins: nothing published after this answer lies before.
        position: u64,
        proof: Proof,
    },
    /// "No, because."
    Refuse { writer: Guid, reader: EndpointId, why: String },
    /// "My reader is done."
    Release { writer: Guid, reader: EndpointId },
    /// "What I received from a writer of another host, and let you read, ends here."
    End { writer: Guid, reader: EndpointId },
}

impl Packet {
    /// Encodes it as a packet from node `from`.
    pub(super) fn encode(&self, from: NodeId) -> Vec<u8> {
        let (kind, writer, reader, number, flags) = match self {
            Packet::Ask { writer, reader, pins, history, keeps_all, .. } => {
                (ASK, writer, reader, *pins, u8::from(*history) | u8::from(*keeps_all) << 1)
            }
            Packet::Grant { writer, reader, pins, .. } => (GRANT, writer, reader, *pins, 0),
            Packet::Refuse { writer, reader, .. } => (REFUSE, writer, reader, 0, 0),
            Packet::Release { writer, reader } => (RELEASE, writer, reader, 0, 0),
            Packet::End { writer, reader } => (END, writer, reader, 0, 0),
        };
        let mut bytes = MAGIC.to_vec();
        bytes.extend([VERSION, kind, flags, 0]);
        bytes.extend(from.0);
        bytes.extend(writer.0.0);
        [writer.1.0, reader.0, number].iter().for_each(|word| bytes.extend(word.to_le_bytes()));
        match self {
            Packet::Grant { position, proof, .. } => {
                bytes.extend(position.to_le_bytes());
                bytes.extend(proof);
            }
            Packet::Ask { number, proof, .. } => {
                bytes.extend(number.to_le_bytes());
                bytes.extend(proof);
            }
            Packet::Refuse { why, .. } => {
                let room = PACKET_BYTES_MAX - bytes.len();
                let end = (0..=why.len().min(room)).rfind(|end| why.is_char_boundary(*end)).unwrap_or(0);
                bytes.extend(&why.as_bytes()[..end]);
            }
            Packet::Release { .. } | Packet::End { .. } => {}
        }
        bytes
    }

    /// Its sender and its content; `None` for what no node of this version sends.
    pub(super) fn decode(bytes: &[u8]) -> Option<(NodeId, Packet)> {
        let (head, rest) = bytes.split_first_chunk::<52>()?;
        let from = NodeId(*head[8..].first_chunk()?);
        let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let [version, kind, flags, zero] = [head[4], head[5], head[6], head[7]];
        if head[..4] != MAGIC
            || version != VERSION
            || flags > 3
            || zero != 0
            || bytes.len() > PACKET_BYTES_MAX
        {
            return None;
        }
        let node = NodeId(*head[24..].first_chunk()?);
        let (writer, reader, number) = ((node, EndpointId(word(40))), EndpointId(word(44)), word(48));
        let packet = match (kind, number, flags, rest) {
            (ASK, pins, flags, rest) => {
                let (number, proof) = numbered(rest)?;
                let (history, keeps_all) = (flags & 1 != 0, flags & 2 != 0);
                Some(Packet::Ask { writer, reader, pins, history, keeps_all, number, proof })
            }
            (GRANT, pins, 0, rest) => {
                let (position, proof) = numbered(rest)?;
                Some(Packet::Grant { writer, reader, pins, position, proof })
            }
            (REFUSE, 0, 0, why) => {
                let why = std::str::from_utf8(why).ok()?.to_owned();
                Some(Packet::Refuse { writer, reader, why })
            }
            (RELEASE, 0, 0, []) => Some(Packet::Release { writer, reader }),
            (END, 0, 0, []) => Some(Packet::End { writer, reader }),
            _ => None,
        };
        Some((from, packet?))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NODE: NodeId = NodeId([b'N'; 16]);
    const WRITER: Guid = (NodeId([b'W'; 16]), EndpointId(1));
    const READER: EndpointId = EndpointId(0x0102_0304);

    #[test]
    fn an_ask_has_the_bytes_of_the_specification() {
        let (number, proof) = (0x0807_0605_0403_0201, [b'P'; 32]);
        let (history, keeps_all) = (true, true);
        let ask = Packet::Ask { writer: WRITER, reader: READER, pins: 2, history, keeps_all, number, proof };
        let head = b"NCTR\x04\x01\x03\0NNNNNNNNNNNNNNNNWWWWWWWWWWWWWWWW\x01\0\0\0\x04\x03\x02\x01\x02\0\0\0";
        let rest = b"\x01\x02\x03\x04\x05\x06\x07\x08PPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPP";
        assert_eq!(ask.encode(NODE), [head.as_slice(), rest].concat());
    }

    #[test]
    fn every_kind_comes_back_as_it_went() {
        for packet in [
            Packet::Ask {
                writer: WRITER,
                reader: READER,
                pins: 7,
                history: false,
                keeps_all: true,
                number: 5,
                proof: [1; 32],
            },
            Packet::Grant { writer: WRITER, reader: READER, pins: 3, position: 1 << 40, proof: [2; 32] },
            Packet::Refuse { writer: WRITER, reader: READER, why: "full".into() },
            Packet::Release { writer: WRITER, reader: READER },
            Packet::End { writer: WRITER, reader: READER },
        ] {
            assert_eq!(Packet::decode(&packet.encode(NODE)), Some((NODE, packet)));
        }
        let why = "ä".repeat(1000);
        let long = Packet::Refuse { writer: WRITER, reader: READER, why }.encode(NODE);
        assert!(long.len() <= PACKET_BYTES_MAX && Packet::decode(&long).is_some());
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(kind in 0u8..7, rest in proptest::collection::vec(any::<u8>(), 0..120)) {
            let mut bytes = b"NCTR\x04".to_vec();
            bytes.push(kind);
            bytes.extend(rest);
            if let Some((from, packet)) = Packet::decode(&bytes) {
                prop_assert_eq!(packet.encode(from), bytes);
            }
        }
    }
}
