//! Bytes: message and submessage headers, identifiers, and a reader and a writer of CDR that know where
//! they stand. Every byte: `docs/spec/xrce.md`.

use std::fmt;

use noctule_timebase::Instant;

/// Bytes of a message header without a client key.
pub(crate) const HEADER_BYTES: usize = 4;
/// Bytes of a submessage header.
pub(crate) const SUBHEADER_BYTES: usize = 4;
/// `XRCE`, the first field of everyone's self-description.
pub(crate) const COOKIE: [u8; 4] = *b"XRCE";
/// Version of the protocol spoken here, and the only major one understood.
pub(crate) const VERSION: [u8; 2] = [1, 0];
/// Vendor number of eProsima, whose dialect this is: extensions (requesters, repliers, transmit stamps)
/// are read by clients that look for it.
pub(crate) const VENDOR: [u8; 2] = [1, 0x0F];
/// Vendor number of our own client, and of an agent that answers it.
pub(crate) const VENDOR_OURS: [u8; 2] = *b"NC";

/// Numbers of submessages.
pub(crate) mod id {
    pub(crate) const CREATE_CLIENT: u8 = 0;
    pub(crate) const CREATE: u8 = 1;
    pub(crate) const GET_INFO: u8 = 2;
    pub(crate) const DELETE: u8 = 3;
    pub(crate) const STATUS_AGENT: u8 = 4;
    pub(crate) const STATUS: u8 = 5;
    pub(crate) const INFO: u8 = 6;
    pub(crate) const WRITE_DATA: u8 = 7;
    pub(crate) const READ_DATA: u8 = 8;
    pub(crate) const DATA: u8 = 9;
    pub(crate) const ACKNACK: u8 = 10;
    pub(crate) const HEARTBEAT: u8 = 11;
    pub(crate) const RESET: u8 = 12;
    pub(crate) const FRAGMENT: u8 = 13;
    pub(crate) const TIMESTAMP: u8 = 14;
    pub(crate) const TIMESTAMP_REPLY: u8 = 15;
    /// Ours: when the sample that follows was measured.
    pub(crate) const STAMP: u8 = 0xC0;
}

/// Flag: the body is little-endian.
pub(crate) const LITTLE_ENDIAN: u8 = 1;
/// Flag of CREATE: an object that is there and alike is used again.
pub(crate) const REUSE: u8 = 2;
/// Flag of CREATE: an object that is there is replaced.
pub(crate) const REPLACE: u8 = 4;
/// Flag of FRAGMENT: the last one.
pub(crate) const LAST_FRAGMENT: u8 = 2;

/// A client's own number, four octets, never zero.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientKey(pub [u8; 4]);

impl fmt::Debug for ClientKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for ClientKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", u32::from_be_bytes(self.0))
    }
}

/// Number of a request, as its client chose it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RequestId(pub(crate) [u8; 2]);

/// Number of an object: 12 bits of the client's choice and 4 bits of kind.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectId(pub [u8; 2]);

impl ObjectId {
    /// The agent itself.
    pub const AGENT: ObjectId = ObjectId([0xFF, 0xFD]);
    /// The client itself.
    pub const CLIENT: ObjectId = ObjectId([0xFF, 0xFE]);

    /// The kind, if it is one that a client can create.
    pub fn kind(self) -> Option<Kind> {
        Kind::from_number(self.0[1] & 0x0F)
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04x}", u16::from_be_bytes(self.0))
    }
}

/// Kinds of object that a client can create.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// A member of one DDS domain.
    Participant = 1,
    /// A name and a type.
    Topic = 2,
    /// A group of writers.
    Publisher = 3,
    /// A group of readers.
    Subscriber = 4,
    /// Writes one topic.
    Writer = 5,
    /// Reads one topic.
    Reader = 6,
    /// Asks a service.
    Requester = 7,
    /// Answers for a service.
    Replier = 8,
}

impl Kind {
    pub(crate) fn from_number(number: u8) -> Option<Kind> {
        const ALL: [Kind; 8] = [
            Kind::Participant,
            Kind::Topic,
            Kind::Publisher,
            Kind::Subscriber,
            Kind::Writer,
            Kind::Reader,
            Kind::Requester,
            Kind::Replier,
        ];
        ALL.get(usize::from(number).checked_sub(1)?).copied()
    }
}

/// Answer to a request, as STATUS reports it to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// Done.
    Ok = 0x00,
    /// It was there already, and alike.
    Matched = 0x01,
    /// Reuse was requested, but what is there differs.
    Mismatch = 0x81,
    /// It is there, and neither reuse nor replacement was requested.
    AlreadyExists = 0x82,
    /// An object that it refers to (parent, topic, profile) is not there.
    UnknownReference = 0x84,
    /// Bytes or XML that say nothing.
    InvalidData = 0x85,
    /// Another version of the protocol.
    Incompatible = 0x86,
    /// A limit of this agent is reached.
    Resources = 0x87,
}

/// First fields of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) session: u8,
    pub(crate) stream: u8,
    pub(crate) sequence: u16,
    /// Present for sessions below 0x80.
    pub(crate) key: Option<ClientKey>,
}

impl Header {
    /// The header and the rest of the message; `None` if it ends early.
    pub(crate) fn split(message: &[u8]) -> Option<(Header, &[u8])> {
        let [session, stream, low, high, rest @ ..] = message else { return None };
        let sequence = u16::from_le_bytes([*low, *high]);
        let mut header = Header { session: *session, stream: *stream, sequence, key: None };
        if has_key(*session) {
            let (key, rest) = rest.split_first_chunk::<4>()?;
            header.key = Some(ClientKey(*key));
            return Some((header, rest));
        }
        Some((header, rest))
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let [low, high] = self.sequence.to_le_bytes();
        out.extend([self.session, self.stream, low, high]);
        out.extend(self.key.into_iter().flat_map(|key| key.0));
    }
}

/// Whether messages of this session carry the client's key.
pub(crate) fn has_key(session: u8) -> bool {
    session < 0x80
}

/// One submessage. `rest` is all that follows its header, for kinds whose length is not to be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Submessage<'a> {
    pub(crate) id: u8,
    pub(crate) flags: u8,
    pub(crate) body: &'a [u8],
    pub(crate) rest: &'a [u8],
}

impl Submessage<'_> {
    pub(crate) fn is_little_endian(&self) -> bool {
        self.flags & LITTLE_ENDIAN != 0
    }
}

/// The submessages of a message, one after the other; each begins at a multiple of four bytes.
#[derive(Clone, Debug)]
pub(crate) struct Submessages<'a> {
    rest: &'a [u8],
}

impl<'a> Submessages<'a> {
    /// Those of what follows the message header.
    pub(crate) fn of(rest: &'a [u8]) -> Submessages<'a> {
        Submessages { rest }
    }
}

impl<'a> Iterator for Submessages<'a> {
    type Item = Submessage<'a>;

    /// Ends at the first one that is not whole.
    fn next(&mut self) -> Option<Submessage<'a>> {
        let [id, flags, low, high, rest @ ..] = self.rest else { return None };
        let mut length = usize::from(u16::from_le_bytes([*low, *high]));
        // A sample of 64 KiB or more fills the rest of the message and says 0.
        if length == 0 && *id == id::WRITE_DATA {
            length = rest.len();
        }
        let Some(body) = rest.get(..length) else {
            self.rest = &[];
            return None;
        };
        self.rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(Submessage { id: *id, flags: *flags, body, rest })
    }
}

/// Reads CDR fields, each at a multiple of its size from the start of the bytes.
#[derive(Clone, Debug)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    little: bool,
}

/// The bytes end in the middle of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Truncated;

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8], little: bool) -> Reader<'a> {
        Reader { bytes, at: 0, little }
    }

    pub(crate) fn is_little(&self) -> bool {
        self.little
    }

    pub(crate) fn octets<const N: usize>(&mut self) -> Result<[u8; N], Truncated> {
        let (octets, _) = self.rest().split_first_chunk::<N>().ok_or(Truncated)?;
        self.at += N;
        Ok(*octets)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Truncated> {
        self.octets::<1>().map(|[byte]| byte)
    }

    pub(crate) fn flag(&mut self) -> Result<bool, Truncated> {
        self.u8().map(|byte| byte != 0)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, Truncated> {
        self.align(2);
        self.octets().map(if self.little { u16::from_le_bytes } else { u16::from_be_bytes })
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Truncated> {
        self.align(4);
        self.octets().map(if self.little { u32::from_le_bytes } else { u32::from_be_bytes })
    }

    /// Seconds and nanoseconds, as nanoseconds.
    pub(crate) fn time<C>(&mut self) -> Result<Instant<C>, Truncated> {
        let (seconds, nanoseconds) = (self.u32()?, self.u32()?);
        Ok(Instant::from_ns(i64::from(seconds) * 1_000_000_000 + i64::from(nanoseconds)))
    }

    /// A length and as many bytes.
    pub(crate) fn sequence(&mut self) -> Result<&'a [u8], Truncated> {
        let length = self.u32()? as usize;
        let sequence = self.rest().get(..length).ok_or(Truncated)?;
        self.at += length;
        Ok(sequence)
    }

    /// A string without the zero at its end. What is no UTF-8 is none.
    pub(crate) fn string(&mut self) -> Result<&'a str, Truncated> {
        let bytes = self.sequence()?;
        let text = std::str::from_utf8(bytes).map_err(|_| Truncated)?;
        Ok(text.trim_end_matches('\0'))
    }

    /// A flag, and a field if it is set.
    pub(crate) fn optional<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, Truncated>,
    ) -> Result<Option<T>, Truncated> {
        if self.flag()? { read(self).map(Some) } else { Ok(None) }
    }

    /// All that is left.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    fn align(&mut self, size: usize) {
        self.at = self.at.next_multiple_of(size);
    }
}

/// Writes a submessage: its header, and then little-endian fields at multiples of their size from the
/// start of the body. The header's length is right when it is dropped.
#[derive(Debug)]
pub(crate) struct SubmessageWriter<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
}

impl<'a> SubmessageWriter<'a> {
    /// Begins at the next multiple of four bytes of `out`, which holds the message from its header on.
    pub(crate) fn begin(out: &'a mut Vec<u8>, id: u8, flags: u8) -> SubmessageWriter<'a> {
        out.resize(out.len().next_multiple_of(4), 0);
        out.extend([id, flags, 0, 0]);
        let start = out.len();
        SubmessageWriter { out, start }
    }

    pub(crate) fn octets(&mut self, octets: &[u8]) -> &mut Self {
        self.out.extend_from_slice(octets);
        self
    }

    pub(crate) fn u16(&mut self, value: u16) -> &mut Self {
        self.align(2);
        self.octets(&value.to_le_bytes())
    }

    pub(crate) fn u32(&mut self, value: u32) -> &mut Self {
        self.align(4);
        self.octets(&value.to_le_bytes())
    }

    fn align(&mut self, size: usize) {
        let length = (self.out.len() - self.start).next_multiple_of(size);
        self.out.resize(self.start + length, 0);
    }
}

impl Drop for SubmessageWriter<'_> {
    fn drop(&mut self) {
        // What does not fit says 0; only DATA in pieces gets so long, and its length is not read there.
        let length = u16::try_from(self.out.len() - self.start).unwrap_or(0).to_le_bytes();
        if let Some(place) = self.out.get_mut(self.start - 2..self.start) {
            place.copy_from_slice(&length);
        }
    }
}

/// Whether `a` comes before `b` in 16-bit serial arithmetic (RFC 1982).
pub(crate) fn precedes(a: u16, b: u16) -> bool {
    (b.wrapping_sub(a) as i16) > 0
}
