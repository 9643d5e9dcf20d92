//! The datagrams of the clock exchange: 32 bytes there, 32 bytes back.
//!
//! A server answers any request, so an answer must not be worth forging a sender address for:
//! request and reply have the same length. It must not answer answers either, or two servers could
//! be made to talk to each other for ever: the kind is checked before anything else is read.
//!
//! Every byte: `docs/spec/sync.md`.

use noctule_time_sync::{Nonce, Remote};
use noctule_timebase::Instant;

/// Length of a request and of a reply, in bytes.
pub const DATAGRAM_BYTES: usize = 32;

/// The version of the exchange that this code speaks.
pub const VERSION: u8 = 1;

const MAGIC: [u8; 4] = *b"NCTS";
const REQUEST: u8 = 1;
const REPLY: u8 = 2;

/// "What time is it with you?"
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Comes back in the reply.
    pub nonce: Nonce,
}

/// The answer: when the request arrived and when this left, both by the server's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Of the request.
    pub nonce: Nonce,
    /// The request arrived.
    pub t2: Instant<Remote>,
    /// The reply leaves.
    pub t3: Instant<Remote>,
}

/// Why a datagram is not what was expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Not [`DATAGRAM_BYTES`] long.
    #[error("the datagram is not 32 bytes long: it is no clock exchange")]
    Length,
    /// The first four bytes are others.
    #[error("the datagram does not begin with NCTS: it is no clock exchange")]
    Magic,
    /// Another [`VERSION`].
    #[error("the datagram is of another version of the clock exchange; use the same release on both sides")]
    Version,
    /// A reply where a request belongs, or the other way round, or neither.
    #[error(
        "the datagram is of the other direction: a server was asked by a server, or a prober by a prober"
    )]
    Kind,
    /// Bytes that must be zero are not.
    #[error("bytes of the datagram that must be zero are not")]
    Reserved,
}

/// How many datagrams were refused, by reason. Each saturates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MalformedCounters {
    /// [`Malformed::Length`].
    pub length: u32,
    /// [`Malformed::Magic`].
    pub magic: u32,
    /// [`Malformed::Version`].
    pub version: u32,
    /// [`Malformed::Kind`].
    pub kind: u32,
    /// [`Malformed::Reserved`].
    pub reserved: u32,
}

impl MalformedCounters {
    /// All of them.
    pub fn total(&self) -> u32 {
        [self.length, self.magic, self.version, self.kind, self.reserved]
            .into_iter()
            .fold(0, u32::saturating_add)
    }

    pub(super) fn count(&mut self, fault: Malformed) {
        let counter = match fault {
            Malformed::Length => &mut self.length,
            Malformed::Magic => &mut self.magic,
            Malformed::Version => &mut self.version,
            Malformed::Kind => &mut self.kind,
            Malformed::Reserved => &mut self.reserved,
        };
        *counter = counter.saturating_add(1);
    }
}

impl Request {
    /// As bytes on the wire.
    pub fn encode(self) -> [u8; DATAGRAM_BYTES] {
        assemble(REQUEST, self.nonce, 0, 0)
    }

    /// From bytes off the wire.
    ///
    /// # Errors
    /// The first rule of the specification that the bytes break.
    pub fn decode(bytes: &[u8]) -> Result<Request, Malformed> {
        let (nonce, t2_ns, t3_ns) = take_apart(bytes, REQUEST)?;
        match (t2_ns, t3_ns) {
            (0, 0) => Ok(Request { nonce }),
            _ => Err(Malformed::Reserved),
        }
    }
}

impl Reply {
    /// As bytes on the wire.
    pub fn encode(self) -> [u8; DATAGRAM_BYTES] {
        assemble(REPLY, self.nonce, self.t2.ns(), self.t3.ns())
    }

    /// From bytes off the wire. Whether the stamps make sense is for the estimator to judge.
    ///
    /// # Errors
    /// The first rule of the specification that the bytes break.
    pub fn decode(bytes: &[u8]) -> Result<Reply, Malformed> {
        let (nonce, t2_ns, t3_ns) = take_apart(bytes, REPLY)?;
        Ok(Reply { nonce, t2: Instant::from_ns(t2_ns), t3: Instant::from_ns(t3_ns) })
    }
}

fn assemble(kind: u8, nonce: Nonce, t2_ns: i64, t3_ns: i64) -> [u8; DATAGRAM_BYTES] {
    let mut bytes = [0; DATAGRAM_BYTES];
    bytes[..4].copy_from_slice(&MAGIC);
    bytes[4] = VERSION;
    bytes[5] = kind;
    bytes[8..16].copy_from_slice(&nonce.0.to_le_bytes());
    bytes[16..24].copy_from_slice(&t2_ns.to_le_bytes());
    bytes[24..].copy_from_slice(&t3_ns.to_le_bytes());
    bytes
}

fn take_apart(bytes: &[u8], kind: u8) -> Result<(Nonce, i64, i64), Malformed> {
    let bytes: &[u8; DATAGRAM_BYTES] = bytes.try_into().map_err(|_| Malformed::Length)?;
    let word = |at: usize| {
        let mut word = [0; 8];
        word.copy_from_slice(&bytes[at..at + 8]);
        u64::from_le_bytes(word)
    };
    if bytes[..4] != MAGIC {
        return Err(Malformed::Magic);
    }
    if bytes[4] != VERSION {
        return Err(Malformed::Version);
    }
    if bytes[5] != kind {
        return Err(Malformed::Kind);
    }
    if bytes[6..8] != [0, 0] {
        return Err(Malformed::Reserved);
    }
    Ok((Nonce(word(8)), word(16) as i64, word(24) as i64))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ASKED: [u8; 32] =
        *b"NCTS\x01\x01\0\0\x08\x07\x06\x05\x04\x03\x02\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
    const ANSWERED: [u8; 32] =
        *b"NCTS\x01\x02\0\0\x08\x07\x06\x05\x04\x03\x02\x01\xff\xff\xff\xff\xff\xff\xff\xff\x00\x01\0\0\0\0\0\0";
    const NONCE: Nonce = Nonce(0x0102_0304_0506_0708);

    #[test]
    fn the_examples_of_the_specification_are_these_bytes() {
        let specification = include_str!("../../../../docs/spec/sync.md");
        let blocks = specification.split("```hex\n").skip(1).map(|rest| rest.split("```").next().unwrap());
        let octets = |block: &str| -> Vec<u8> {
            block.split_whitespace().map(|octet| u8::from_str_radix(octet, 16).unwrap()).collect()
        };
        assert!(blocks.map(octets).eq([ASKED.to_vec(), ANSWERED.to_vec()]));
    }

    #[test]
    fn a_request_is_these_bytes() {
        assert_eq!(Request { nonce: NONCE }.encode(), ASKED);
        assert_eq!(Request::decode(&ASKED), Ok(Request { nonce: NONCE }));
    }

    #[test]
    fn a_reply_is_these_bytes() {
        let reply = Reply { nonce: NONCE, t2: Instant::from_ns(-1), t3: Instant::from_ns(256) };
        assert_eq!(reply.encode(), ANSWERED);
        assert_eq!(Reply::decode(&ANSWERED), Ok(reply));
    }

    #[test]
    fn each_broken_rule_has_its_own_name() {
        let with = |at: usize, byte: u8| {
            let mut bytes = ASKED;
            bytes[at] = byte;
            Request::decode(&bytes)
        };
        assert_eq!(Request::decode(&ASKED[..31]), Err(Malformed::Length));
        assert_eq!(Request::decode(&[ASKED.as_slice(), &[0]].concat()), Err(Malformed::Length));
        assert_eq!(with(0, b'X'), Err(Malformed::Magic));
        assert_eq!(with(4, 2), Err(Malformed::Version));
        assert_eq!(with(5, 0), Err(Malformed::Kind));
        assert_eq!(with(7, 1), Err(Malformed::Reserved));
        assert_eq!(with(16, 1), Err(Malformed::Reserved));
        assert_eq!(with(31, 1), Err(Malformed::Reserved));
    }

    #[test]
    fn a_reply_is_never_taken_for_a_request_nor_a_request_for_a_reply() {
        assert_eq!(Request::decode(&ANSWERED), Err(Malformed::Kind));
        assert_eq!(Reply::decode(&ASKED), Err(Malformed::Kind));
    }

    proptest! {
        #[test]
        fn any_bytes_are_refused_or_come_back_unchanged(
            head in prop::sample::select(vec![&[][..], &ASKED[..8], &ASKED, &ANSWERED[..8], &ANSWERED[..16]]),
            tail in prop::collection::vec(any::<u8>(), 0..34),
        ) {
            let bytes = [head, &tail].concat();
            if let Ok(request) = Request::decode(&bytes) {
                prop_assert_eq!(request.encode().to_vec(), bytes.clone());
            }
            if let Ok(reply) = Reply::decode(&bytes) {
                prop_assert_eq!(reply.encode().to_vec(), bytes);
            }
        }

        #[test]
        fn any_reply_survives_the_wire(nonce: u64, t2_ns: i64, t3_ns: i64) {
            let reply = Reply { nonce: Nonce(nonce), t2: Instant::from_ns(t2_ns), t3: Instant::from_ns(t3_ns) };
            prop_assert_eq!(Reply::decode(&reply.encode()), Ok(reply));
        }
    }
}
