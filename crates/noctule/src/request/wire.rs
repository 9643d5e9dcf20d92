//! The headers of requests and replies. Bytes: `docs/spec/requests.md`.

use noctule_timebase::Span;

/// Bytes in front of a request's message.
pub(crate) const REQUEST_HEADER_BYTES: usize = 40;
/// Bytes in front of a reply's message.
pub(crate) const REPLY_HEADER_BYTES: usize = 32;
const VERSION: u8 = 1;
const IDEMPOTENT: u8 = 1;

/// Which request: unique among all requests of a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId {
    /// The client's number, a hash of its node and its endpoint.
    pub client: u64,
    /// Counts the client's requests from 1.
    pub sequence: i64,
}

/// The kind of a sample of the request topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// To be answered.
    Request,
    /// The caller waits no longer.
    Cancel,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestHeader {
    pub(crate) kind: Kind,
    /// Another server may execute it again.
    pub(crate) is_idempotent: bool,
    /// Copies sent before this one; saturates.
    pub(crate) attempt: u8,
    pub(crate) id: RequestId,
    /// The server that is asked; 0: any.
    pub(crate) server: u64,
    /// Age at which the caller waits no longer; at least 1 ns.
    pub(crate) deadline: Span,
}

/// The outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// The message is the response.
    Done,
    /// The handler failed; the message is its sentence, UTF-8.
    Failed,
    /// The request was older than its deadline when it arrived, or could not be proven younger.
    Late,
    /// The server remembers as many requests as it may.
    Full,
    /// The caller cancelled it.
    Cancelled,
    /// It was executed, and the reply is not kept any more.
    Forgotten,
}

const STATUSES: [Status; 6] =
    [Status::Done, Status::Failed, Status::Late, Status::Full, Status::Cancelled, Status::Forgotten];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReplyHeader {
    pub(crate) status: Status,
    /// The request that is answered.
    pub(crate) id: RequestId,
    /// The server that answers; 0: not stated.
    pub(crate) server: u64,
}

impl RequestHeader {
    pub(crate) fn encode(&self) -> [u8; REQUEST_HEADER_BYTES] {
        let mut bytes = [0; REQUEST_HEADER_BYTES];
        let kind = match self.kind {
            Kind::Request => 0,
            Kind::Cancel => 1,
        };
        bytes[..4].copy_from_slice(&[VERSION, kind, u8::from(self.is_idempotent), self.attempt]);
        put_identity(&mut bytes, self.id, self.server);
        bytes[32..40].copy_from_slice(&self.deadline.ns().to_le_bytes());
        bytes
    }

    /// The header and what follows it; `None` if the bytes are no request of this version.
    pub(crate) fn decode(bytes: &[u8]) -> Option<(RequestHeader, &[u8])> {
        let (header, rest) = bytes.split_at_checked(REQUEST_HEADER_BYTES)?;
        let (id, server) = identity(header)?;
        let kind = match header[1] {
            0 => Kind::Request,
            1 if rest.is_empty() => Kind::Cancel,
            _ => return None,
        };
        let deadline = Span::from_ns(i64::from_le_bytes(word(header, 32)?));
        if header[2] & !IDEMPOTENT != 0 || deadline <= Span::ZERO {
            return None;
        }
        let (is_idempotent, attempt) = (header[2] == IDEMPOTENT, header[3]);
        Some((RequestHeader { kind, is_idempotent, attempt, id, server, deadline }, rest))
    }
}

impl ReplyHeader {
    pub(crate) fn encode(&self) -> [u8; REPLY_HEADER_BYTES] {
        let mut bytes = [0; REPLY_HEADER_BYTES];
        let status = STATUSES.iter().position(|status| *status == self.status);
        bytes[..2].copy_from_slice(&[VERSION, status.unwrap_or_default() as u8]);
        put_identity(&mut bytes, self.id, self.server);
        bytes
    }

    /// The header and what follows it; `None` if the bytes are no reply of this version.
    pub(crate) fn decode(bytes: &[u8]) -> Option<(ReplyHeader, &[u8])> {
        let (header, rest) = bytes.split_at_checked(REPLY_HEADER_BYTES)?;
        let (id, server) = identity(header)?;
        let status = *STATUSES.get(usize::from(header[1]))?;
        if header[2..4] != [0; 2] {
            return None;
        }
        Some((ReplyHeader { status, id, server }, rest))
    }
}

/// Version, reserved bytes and identity lie alike in both headers.
fn put_identity(bytes: &mut [u8], id: RequestId, server: u64) {
    bytes[8..16].copy_from_slice(&id.client.to_le_bytes());
    bytes[16..24].copy_from_slice(&id.sequence.to_le_bytes());
    bytes[24..32].copy_from_slice(&server.to_le_bytes());
}

fn identity(header: &[u8]) -> Option<(RequestId, u64)> {
    if header[0] != VERSION || header[4..8] != [0; 4] {
        return None;
    }
    let client = u64::from_le_bytes(word(header, 8)?);
    let sequence = i64::from_le_bytes(word(header, 16)?);
    Some((RequestId { client, sequence }, u64::from_le_bytes(word(header, 24)?)))
}

fn word(bytes: &[u8], at: usize) -> Option<[u8; 8]> {
    bytes.get(at..at + 8)?.try_into().ok()
}

/// Reads a request and a reply and writes them again; for the fuzzer.
pub(crate) fn again(bytes: &[u8]) -> [Option<Vec<u8>>; 2] {
    let request = RequestHeader::decode(bytes).map(|(header, rest)| [&header.encode()[..], rest].concat());
    let reply = ReplyHeader::decode(bytes).map(|(header, rest)| [&header.encode()[..], rest].concat());
    [request, reply]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_bytes_are_those_of_the_specification() {
        let id = RequestId { client: 0x0807_0605_0403_0201, sequence: 3 };
        let header = RequestHeader {
            kind: Kind::Request,
            is_idempotent: true,
            attempt: 2,
            id,
            server: 9,
            deadline: Span::from_s(1),
        };
        let mut bytes = vec![1, 0, 1, 2, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
        bytes.extend([3, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0xca, 0x9a, 0x3b, 0, 0, 0, 0]);
        assert_eq!(header.encode()[..], bytes);
        let header = ReplyHeader { status: Status::Full, id, server: 9 };
        let mut bytes = vec![1, 3, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
        bytes.extend([3, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(header.encode()[..], bytes);
        assert_eq!(ReplyHeader::decode(&bytes), Some((header, &[][..])));
    }

    #[test]
    fn a_deadline_that_is_over_at_once_and_a_cancellation_with_a_message_are_refused() {
        let id = RequestId { client: 1, sequence: 1 };
        let deadline = Span::from_ns(1);
        let header =
            RequestHeader { kind: Kind::Cancel, is_idempotent: false, attempt: 0, id, server: 0, deadline };
        let bytes = header.encode();
        assert_eq!(RequestHeader::decode(&bytes), Some((header, &[][..])));
        assert_eq!(RequestHeader::decode(&[&bytes[..], &[7]].concat()), None);
        assert_eq!(RequestHeader::decode(&RequestHeader { deadline: Span::ZERO, ..header }.encode()), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_refused_or_come_back_as_they_were(
            mut bytes in prop::collection::vec(any::<u8>(), 0..64),
            looks_right: bool,
        ) {
            if looks_right && bytes.len() > 8 {
                let (kind, flags) = (bytes[1] % 8, bytes[2] % 2);
                bytes[..8].copy_from_slice(&[1, kind, flags, 0, 0, 0, 0, 0]);
            }
            for again in again(&bytes).into_iter().flatten() {
                prop_assert_eq!(&again, &bytes);
            }
        }
    }
}
