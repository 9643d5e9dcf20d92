//! The long header, and sealing and opening behind it.

use noctule_discovery::NodeId;
use ring::aead::{Aad, LessSafeKey, NONCE_LEN, Nonce, Tag};

use super::{HEADER_BYTES, OVERHEAD_BYTES, Refused, TAG_BYTES};

pub(super) const MAGIC: [u8; 4] = *b"NCTX";
pub(super) const VERSION: u8 = 2;

/// The kind of a datagram, which determines the key that seals it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Discovery: every member can open it, whether it knows the sender or not.
    Open = 0,
    Challenge = 1,
    Answer = 2,
    /// For all that have the sender's key.
    Group = 3,
    /// For one node.
    Node = 4,
}

impl Kind {
    pub(super) fn of(byte: u8) -> Option<Kind> {
        [Kind::Open, Kind::Challenge, Kind::Answer, Kind::Group, Kind::Node]
            .into_iter()
            .find(|kind| *kind as u8 == byte)
    }
}

/// The header of a sealed datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) kind: Kind,
    /// Of the sender's keys: with [`Kind::Open`] the newest that it has, with [`Kind::Group`] and [`Kind::Node`] the one it sealed
    /// with, else 0.
    pub(super) epoch: u16,
    pub(super) from: NodeId,
    pub(super) counter: u64,
}

impl Header {
    fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut header = [0; HEADER_BYTES];
        header[..4].copy_from_slice(&MAGIC);
        (header[4], header[5]) = (VERSION, self.kind as u8);
        header[6..8].copy_from_slice(&self.epoch.to_le_bytes());
        header[8..24].copy_from_slice(&self.from.0);
        header[24..].copy_from_slice(&self.counter.to_le_bytes());
        header
    }

    /// Of a datagram that begins with [`MAGIC`].
    pub(super) fn decode(bytes: &[u8]) -> Result<Header, Refused> {
        let header = bytes.first_chunk::<HEADER_BYTES>().ok_or(Refused::Malformed)?;
        let kind = Kind::of(header[5]).ok_or(Refused::Malformed)?;
        if bytes.len() < OVERHEAD_BYTES || header[4] != VERSION {
            return Err(Refused::Malformed);
        }
        let (mut from, mut counter) = ([0; 16], [0; 8]);
        from.copy_from_slice(&header[8..24]);
        counter.copy_from_slice(&header[24..]);
        let epoch = u16::from_le_bytes([header[6], header[7]]);
        Ok(Header { kind, epoch, from: NodeId(from), counter: u64::from_le_bytes(counter) })
    }
}

/// Seals what lies behind the room for the header.
pub(super) fn seal(key: &LessSafeKey, header: &Header, out: &mut Vec<u8>) {
    let encoded = header.encode();
    out[..HEADER_BYTES].copy_from_slice(&encoded);
    let body = &mut out[HEADER_BYTES..];
    // Fails only for bodies of 64 GiB and more.
    if let Ok(tag) = key.seal_in_place_separate_tag(nonce(header.counter), Aad::from(encoded), body) {
        out.extend_from_slice(tag.as_ref());
    } else {
        out.clear();
    }
}

/// Opens in place; what does not open is destroyed.
pub(super) fn open<'a>(key: &LessSafeKey, counter: u64, bytes: &'a mut [u8]) -> Result<&'a [u8], Refused> {
    let (header, rest) = bytes.split_at_mut(HEADER_BYTES);
    let (body, tag) = rest.split_at_mut(rest.len() - TAG_BYTES);
    let tag = Tag::try_from(&*tag).map_err(|_| Refused::Malformed)?;
    key.open_in_place_separate_tag(nonce(counter), Aad::from(&*header), tag, body, 0..)
        .map(|body| &*body)
        .map_err(|_| Refused::WrongKey)
}

pub(super) fn nonce(counter: u64) -> Nonce {
    let mut bytes = [0; NONCE_LEN];
    bytes[..8].copy_from_slice(&counter.to_le_bytes());
    Nonce::assume_unique_for_key(bytes)
}
