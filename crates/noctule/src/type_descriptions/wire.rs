//! The datagrams by which one node asks another for a type description, or for its links. Every byte: `docs/spec/type-description.md`.

use crate::link_report::{self, LINK_BYTES};

/// The version that this code speaks.
const VERSION: u8 = 1;
const MAGIC: [u8; 4] = *b"NCTQ";
const REQUEST: u8 = 1;
const REPLY: u8 = 2;
const LINKS_REQUEST: u8 = 3;
const LINKS_REPLY: u8 = 4;
const REQUEST_BYTES: usize = 28;
const REPLY_HEADER_BYTES: usize = 32;

/// Bytes of a description in one reply, so that a sealed reply fits into every path.
pub(crate) const PART_BYTES_MAX: usize = 1024;

/// The subject of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    /// Description of a type; offsets and lengths are bytes of the text.
    Type,
    /// The links of the node; offsets and lengths are links, and there is no hash.
    Links,
}

/// The content of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// About what.
    pub(crate) about: Subject,
    /// Comes back in the reply.
    pub(crate) nonce: u64,
    /// Of the type.
    pub(crate) hash: u64,
    /// The first byte, or link, that is wanted.
    pub(crate) offset: u32,
}

/// The answer: a part of the text, or nothing because there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reply<'a> {
    /// Of the request.
    pub(crate) about: Subject,
    /// Of the request.
    pub(crate) nonce: u64,
    /// Of the type.
    pub(crate) hash: u64,
    /// Length of the whole text in bytes, or number of links; 0 if the node has none.
    pub(crate) total_bytes: u32,
    /// Where the part begins.
    pub(crate) offset: u32,
    /// At most [`PART_BYTES_MAX`].
    pub(crate) part: &'a [u8],
}

/// Either.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Datagram<'a> {
    Request(Request),
    Reply(Reply<'a>),
}

impl Request {
    pub(crate) fn encode(self, out: &mut Vec<u8>) {
        let kind = if self.about == Subject::Type { REQUEST } else { LINKS_REQUEST };
        header(kind, self.nonce, self.hash, out);
        out.extend(self.offset.to_le_bytes());
    }
}

impl Reply<'_> {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let kind = if self.about == Subject::Type { REPLY } else { LINKS_REPLY };
        header(kind, self.nonce, self.hash, out);
        out.extend(self.total_bytes.to_le_bytes());
        out.extend(self.offset.to_le_bytes());
        out.extend(self.part);
    }
}

fn header(kind: u8, nonce: u64, hash: u64, out: &mut Vec<u8>) {
    out.extend(MAGIC);
    out.extend([VERSION, kind, 0, 0]);
    out.extend(nonce.to_le_bytes());
    out.extend(hash.to_le_bytes());
}

/// Reads a datagram; `None` if it breaks the specification.
pub(crate) fn decode(bytes: &[u8]) -> Option<Datagram<'_>> {
    let u64_at = |at: usize| Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
    let u32_at = |at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
    let [m0, m1, m2, m3, version, kind, 0, 0] = *bytes.first_chunk::<8>()? else { return None };
    if [m0, m1, m2, m3] != MAGIC || version != VERSION {
        return None;
    }
    let (nonce, hash) = (u64_at(8)?, u64_at(16)?);
    let about = if matches!(kind, LINKS_REQUEST | LINKS_REPLY) { Subject::Links } else { Subject::Type };
    if about == Subject::Links && hash != 0 {
        return None;
    }
    match kind {
        REQUEST | LINKS_REQUEST if bytes.len() == REQUEST_BYTES => {
            Some(Datagram::Request(Request { about, nonce, hash, offset: u32_at(24)? }))
        }
        REPLY | LINKS_REPLY => {
            let (total_bytes, offset, part) = (u32_at(24)?, u32_at(28)?, bytes.get(REPLY_HEADER_BYTES..)?);
            let each = if about == Subject::Links { LINK_BYTES } else { 1 };
            let end = u64::from(offset) + (part.len() / each) as u64;
            let is_whole = part.len().is_multiple_of(each);
            let fits = is_whole && part.len() <= PART_BYTES_MAX && end <= u64::from(total_bytes);
            fits.then_some(Datagram::Reply(Reply { about, nonce, hash, total_bytes, offset, part }))
        }
        _ => None,
    }
}

/// Reads a question or an answer and writes it again, links as links; for the fuzzer.
pub(crate) fn again(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    match decode(bytes)? {
        Datagram::Request(request) => request.encode(&mut out),
        Datagram::Reply(reply) => {
            let is_stable = |link: &[u8; LINK_BYTES]| {
                let read = link_report::decode(link);
                link_report::decode(&link_report::encode(&read)) == read
            };
            debug_assert!(reply.about == Subject::Type || reply.part.as_chunks().0.iter().all(is_stable));
            reply.encode(&mut out);
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bytes_are_those_of_the_specification() {
        let mut out = Vec::new();
        Request { about: Subject::Type, nonce: 2, hash: 3, offset: 4 }.encode(&mut out);
        assert_eq!(out, *b"NCTQ\x01\x01\0\0\x02\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\x04\0\0\0");
        out.clear();
        Reply { about: Subject::Type, nonce: 2, hash: 3, total_bytes: 9, offset: 7, part: b"x\n" }
            .encode(&mut out);
        assert_eq!(out, *b"NCTQ\x01\x02\0\0\x02\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\x09\0\0\0\x07\0\0\0x\n");
        assert!(decode(&out).is_some());
        assert_eq!(decode(&[&out[..], b"y"].concat()), None, "a part that ends behind the whole");
        out.clear();
        Request { about: Subject::Links, nonce: 2, hash: 0, offset: 4 }.encode(&mut out);
        assert_eq!(out, *b"NCTQ\x01\x03\0\0\x02\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x04\0\0\0");
        out.clear();
        Reply { about: Subject::Links, nonce: 2, hash: 0, total_bytes: 5, offset: 4, part: &[7; LINK_BYTES] }
            .encode(&mut out);
        assert!(decode(&out).is_some());
        assert_eq!(decode(&out[..out.len() - 1]), None, "half a link");
        assert_eq!(decode(&[&out[..], &[7; LINK_BYTES]].concat()), None, "more links than there are");
    }

    proptest! {
        #[test]
        fn what_is_read_is_written_again(tail in proptest::collection::vec(any::<u8>(), 0..80), kind in 0_u8..6, is_of_type in any::<bool>()) {
            let mut bytes = [&b"NCTQ\x01"[..], &[kind, 0, 0], &tail].concat();
            if !is_of_type && let Some(hash) = bytes.get_mut(16..24) {
                hash.fill(0);
            }
            if let Some(again) = again(&bytes) {
                prop_assert_eq!(again, bytes);
            }
        }
    }
}
