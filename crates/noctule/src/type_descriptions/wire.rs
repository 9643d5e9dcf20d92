//! The datagrams by which one node asks another for a type description. Every byte: `docs/spec/type-description.md`.

/// The version that this code speaks.
const VERSION: u8 = 1;
const MAGIC: [u8; 4] = *b"NCTQ";
const REQUEST: u8 = 1;
const REPLY: u8 = 2;
const REQUEST_BYTES: usize = 28;
const REPLY_HEADER_BYTES: usize = 32;

/// Bytes of a description in one reply, so that a sealed reply fits into every path.
pub(crate) const PART_BYTES_MAX: usize = 1024;

/// What one asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// Comes back in the reply.
    pub(crate) nonce: u64,
    /// Of the type.
    pub(crate) hash: u64,
    /// The first byte that is wanted.
    pub(crate) offset: u32,
}

/// The answer: a part of the text, or nothing because there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reply<'a> {
    /// Of the request.
    pub(crate) nonce: u64,
    /// Of the type.
    pub(crate) hash: u64,
    /// Length of the whole text in bytes; 0 if the node has none.
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
        header(REQUEST, self.nonce, self.hash, out);
        out.extend(self.offset.to_le_bytes());
    }
}

impl Reply<'_> {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        header(REPLY, self.nonce, self.hash, out);
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
    match kind {
        REQUEST if bytes.len() == REQUEST_BYTES => {
            Some(Datagram::Request(Request { nonce, hash, offset: u32_at(24)? }))
        }
        REPLY => {
            let (total_bytes, offset, part) = (u32_at(24)?, u32_at(28)?, bytes.get(REPLY_HEADER_BYTES..)?);
            let end = u64::from(offset) + part.len() as u64;
            let fits = part.len() <= PART_BYTES_MAX && end <= u64::from(total_bytes);
            fits.then_some(Datagram::Reply(Reply { nonce, hash, total_bytes, offset, part }))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bytes_are_those_of_the_specification() {
        let mut out = Vec::new();
        Request { nonce: 2, hash: 3, offset: 4 }.encode(&mut out);
        assert_eq!(out, *b"NCTQ\x01\x01\0\0\x02\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\x04\0\0\0");
        out.clear();
        Reply { nonce: 2, hash: 3, total_bytes: 9, offset: 7, part: b"x\n" }.encode(&mut out);
        assert_eq!(out, *b"NCTQ\x01\x02\0\0\x02\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\x09\0\0\0\x07\0\0\0x\n");
        assert!(decode(&out).is_some());
        assert_eq!(decode(&[&out[..], b"y"].concat()), None, "a part that ends behind the whole");
    }

    proptest! {
        #[test]
        fn what_is_read_is_written_again(tail in proptest::collection::vec(any::<u8>(), 0..80), kind in 0_u8..4) {
            let bytes = [&b"NCTQ\x01"[..], &[kind, 0, 0], &tail].concat();
            let mut again = Vec::new();
            match decode(&bytes) {
                Some(Datagram::Request(request)) => request.encode(&mut again),
                Some(Datagram::Reply(reply)) => reply.encode(&mut again),
                None => return Ok(()),
            }
            prop_assert_eq!(again, bytes);
        }
    }
}
