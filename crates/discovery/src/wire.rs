//! Bytes of the six datagrams. Every byte: `docs/spec/discovery.md`.

use std::fmt;

use noctule_proto_kit::{Bytes, Truncated};
use noctule_timebase::Span;

use crate::endpoint::{Durability, Endpoint, EndpointId, EndpointKind, NAME_BYTES_MAX, Qos, Reliability};

/// Longest datagram, so that it crosses every link in one piece even inside a tunnel.
pub const DATAGRAM_BYTES_MAX: usize = 1200;
/// Longest node name, in bytes of UTF-8.
pub const NODE_NAME_BYTES_MAX: usize = 64;
/// Pages one node may fill; with names of usual length about 2,500 endpoints.
pub const PAGES_LIMIT: usize = 256;

const MAGIC: [u8; 4] = *b"NCTD";
const VERSION: u8 = 1;
const HELLO: u8 = 1;
const PAGE: u8 = 2;
const QUERY: u8 = 3;
const BYE: u8 = 4;
const PATH_CHALLENGE: u8 = 5;
const PATH_RESPONSE: u8 = 6;
const NEW_HERE: u8 = 1;
/// Bytes before the body: magic, version, kind, two zeros, node, domain.
const PREFIX_BYTES: usize = 28;
/// Bytes of a page before its endpoints.
pub(crate) const PAGE_PREFIX_BYTES: usize = PREFIX_BYTES + 8;
/// Bytes of an endpoint without its names.
const ENDPOINT_BYTES: usize = 48;
/// Of a writer: multicast. Of a reader: relayed.
const FLAG: u8 = 1;
/// Of both: HISTORY is keep all.
const KEEP_ALL: u8 = 2;
/// Stands for "none" where a duration belongs.
const NO_SPAN: i64 = i64::MAX;

/// A node's name for machines: random, drawn at every start.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub [u8; 16]);

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The node that a datagram names as its sender, if it begins as one of ours does.
pub fn sender(bytes: &[u8]) -> Option<NodeId> {
    let header = bytes.first_chunk::<24>().filter(|header| header.starts_with(&MAGIC))?;
    header.last_chunk().copied().map(NodeId)
}

/// The domain in the header of a datagram, if it begins as one of ours does.
pub fn domain(bytes: &[u8]) -> Option<u32> {
    let prefix = bytes.first_chunk::<PREFIX_BYTES>().filter(|prefix| prefix.starts_with(&MAGIC))?;
    prefix.last_chunk().copied().map(u32::from_le_bytes)
}

/// A set of page numbers: bit `n % 8` of byte `n / 8` is page `n`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageSet([u8; PAGES_LIMIT / 8]);

impl PageSet {
    /// No page.
    pub const EMPTY: PageSet = PageSet([0; PAGES_LIMIT / 8]);

    /// Adds a page below [`PAGES_LIMIT`]; higher numbers are ignored.
    pub fn insert(&mut self, page: u16) {
        if let Some(byte) = self.0.get_mut(usize::from(page / 8)) {
            *byte |= 1 << (page % 8);
        }
    }

    /// Whether the page is in the set.
    pub fn contains(&self, page: u16) -> bool {
        self.0.get(usize::from(page / 8)).is_some_and(|byte| byte & 1 << (page % 8) != 0)
    }
}

/// One datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Its sender.
    pub from: NodeId,
    /// Nodes of different domains do not see each other.
    pub domain: u32,
    /// The content.
    pub body: Body,
}

/// The content of a datagram, by its kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// "I am here, and this is the digest of what I offer."
    Hello(Hello),
    /// One page of the offer.
    Page(Page),
    /// "Send me what changed since this revision of yours."
    Query {
        /// Its receiver.
        to: NodeId,
        /// The newest revision that the requester holds completely; 0 = none.
        since: u32,
        /// Pages that need not be sent although they changed since then.
        except: PageSet,
    },
    /// "I am leaving."
    Bye,
    /// "Show that you receive at this address: send this number back."
    PathChallenge {
        /// The node that is to answer.
        to: NodeId,
        /// Means something to its sender only.
        number: u64,
    },
    /// The answer, with a hello: its receiver has kept nothing.
    PathResponse {
        /// Of the challenge.
        number: u64,
        /// As it would be sent now.
        hello: Hello,
    },
}

/// The body of a hello.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Counts changes of the offer.
    pub revision: u32,
    /// Pages of the offer.
    pub pages: u16,
    /// Without another hello for this long the node counts as gone. In steps of 100 ms on the wire.
    pub lifetime: Span,
    /// UDP port for data.
    pub port: u16,
    /// The node has just started and requests the hellos of all.
    pub new_here: bool,
    /// Nodes with the same number share memory.
    pub host: u64,
    /// XOR over all pages of a mix of page number and page revision.
    pub digest: u64,
    /// For people.
    pub name: String,
}

/// The body of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// From 0.
    pub number: u16,
    /// Revision of the offer in which this page last changed.
    pub revision: u32,
    /// The endpoints on it.
    pub endpoints: Vec<Endpoint>,
}

/// Why a datagram is not one of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Ends early, or is longer than [`DATAGRAM_BYTES_MAX`].
    #[error("the datagram ends in the middle of a field or is too long")]
    Length,
    /// Begins otherwise.
    #[error("the datagram does not begin with NCTD: it is no discovery")]
    Magic,
    /// Of another version.
    #[error("the datagram is of another version of discovery; use the same release on all nodes")]
    Version,
    /// An unknown kind or an impossible value.
    #[error("the datagram holds a value that no sender of this version writes")]
    Value,
}

impl From<Truncated> for Malformed {
    fn from(_: Truncated) -> Malformed {
        Malformed::Length
    }
}

impl Datagram {
    /// Appends the datagram's bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let kind = match &self.body {
            Body::Hello(_) => HELLO,
            Body::Page(_) => PAGE,
            Body::Query { .. } => QUERY,
            Body::Bye => BYE,
            Body::PathChallenge { .. } => PATH_CHALLENGE,
            Body::PathResponse { .. } => PATH_RESPONSE,
        };
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&[VERSION, kind, 0, 0]);
        out.extend_from_slice(&self.from.0);
        out.extend_from_slice(&self.domain.to_le_bytes());
        match &self.body {
            Body::Hello(hello) => hello.encode(out),
            Body::Page(page) => {
                out.extend_from_slice(&page.number.to_le_bytes());
                out.extend_from_slice(&(page.endpoints.len() as u16).to_le_bytes());
                out.extend_from_slice(&page.revision.to_le_bytes());
                page.endpoints.iter().for_each(|endpoint| encode_endpoint(endpoint, out));
            }
            Body::Query { to, since, except } => {
                out.extend_from_slice(&to.0);
                out.extend_from_slice(&since.to_le_bytes());
                out.extend_from_slice(&except.0);
            }
            Body::Bye => {}
            Body::PathChallenge { to, number } => {
                out.extend_from_slice(&to.0);
                out.extend_from_slice(&number.to_le_bytes());
            }
            Body::PathResponse { number, hello } => {
                out.extend_from_slice(&number.to_le_bytes());
                hello.encode(out);
            }
        }
    }

    /// Reads one datagram.
    ///
    /// # Errors
    /// The first rule of the specification that the bytes break.
    pub fn decode(bytes: &[u8]) -> Result<Datagram, Malformed> {
        if bytes.len() > DATAGRAM_BYTES_MAX {
            return Err(Malformed::Length);
        }
        let mut bytes = Bytes::new(bytes);
        if bytes.array::<4>()? != MAGIC {
            return Err(Malformed::Magic);
        }
        let [version, kind, zero, zero_too] = bytes.array::<4>()?;
        if version != VERSION {
            return Err(Malformed::Version);
        }
        if (zero, zero_too) != (0, 0) {
            return Err(Malformed::Value);
        }
        let from = NodeId(bytes.array()?);
        let domain = bytes.u32()?;
        let body = match kind {
            HELLO => Body::Hello(Hello::decode(&mut bytes)?),
            PAGE => Body::Page(Page::decode(&mut bytes)?),
            QUERY => Body::Query {
                to: NodeId(bytes.array()?),
                since: bytes.u32()?,
                except: PageSet(bytes.array()?),
            },
            BYE => Body::Bye,
            PATH_CHALLENGE => Body::PathChallenge { to: NodeId(bytes.array()?), number: bytes.u64()? },
            PATH_RESPONSE => Body::PathResponse { number: bytes.u64()?, hello: Hello::decode(&mut bytes)? },
            _ => return Err(Malformed::Value),
        };
        if bytes.is_empty() { Ok(Datagram { from, domain, body }) } else { Err(Malformed::Length) }
    }
}

impl Hello {
    fn encode(&self, out: &mut Vec<u8>) {
        let lifetime = (self.lifetime.ns() / 100_000_000).clamp(1, i64::from(u16::MAX)) as u16;
        out.extend_from_slice(&self.revision.to_le_bytes());
        out.extend_from_slice(&self.pages.to_le_bytes());
        out.extend_from_slice(&lifetime.to_le_bytes());
        out.extend_from_slice(&self.port.to_le_bytes());
        out.push(if self.new_here { NEW_HERE } else { 0 });
        out.push(self.name.len() as u8);
        out.extend_from_slice(&self.host.to_le_bytes());
        out.extend_from_slice(&self.digest.to_le_bytes());
        out.extend_from_slice(self.name.as_bytes());
    }

    fn decode(bytes: &mut Bytes<'_>) -> Result<Hello, Malformed> {
        let revision = bytes.u32()?;
        let pages = bytes.u16()?;
        let lifetime = Span::from_ms(i64::from(bytes.u16()?) * 100);
        let port = bytes.u16()?;
        let [flags, name_bytes] = bytes.array::<2>()?;
        let host = bytes.u64()?;
        let digest = bytes.u64()?;
        let name = decode_name(bytes, name_bytes)?;
        let fits = usize::from(pages) <= PAGES_LIMIT && name.len() <= NODE_NAME_BYTES_MAX;
        if !fits || flags & !NEW_HERE != 0 || lifetime == Span::ZERO {
            return Err(Malformed::Value);
        }
        Ok(Hello { revision, pages, lifetime, port, new_here: flags != 0, host, digest, name })
    }
}

impl Page {
    fn decode(bytes: &mut Bytes<'_>) -> Result<Page, Malformed> {
        let number = bytes.u16()?;
        let count = bytes.u16()?;
        let revision = bytes.u32()?;
        if usize::from(number) >= PAGES_LIMIT || revision == 0 {
            return Err(Malformed::Value);
        }
        // Grows with what is there, not by the announced count.
        let mut endpoints = Vec::new();
        for _ in 0..count {
            endpoints.push(decode_endpoint(bytes)?);
        }
        Ok(Page { number, revision, endpoints })
    }
}

/// Bytes an endpoint takes on a page.
pub(crate) fn endpoint_bytes(endpoint: &Endpoint) -> usize {
    ENDPOINT_BYTES + endpoint.topic.len() + endpoint.type_name.len()
}

fn encode_endpoint(endpoint: &Endpoint, out: &mut Vec<u8>) {
    let span = |span: Option<Span>| span.map_or(NO_SPAN, Span::ns).to_le_bytes();
    let qos = &endpoint.qos;
    out.extend_from_slice(&endpoint.id.0.to_le_bytes());
    out.push(match endpoint.kind {
        EndpointKind::Writer => 0,
        EndpointKind::Reader => 1,
    });
    out.push(qos.reliability as u8);
    out.push(qos.durability as u8);
    let flag = match endpoint.kind {
        EndpointKind::Writer => qos.multicast,
        EndpointKind::Reader => endpoint.relayed,
    };
    out.push(if flag { FLAG } else { 0 } | if qos.keep_all { KEEP_ALL } else { 0 });
    out.extend_from_slice(&endpoint.formats.to_le_bytes());
    out.extend_from_slice(&endpoint.payload_bytes_max.to_le_bytes());
    out.extend_from_slice(&endpoint.type_hash.to_le_bytes());
    out.extend_from_slice(&span(qos.deadline));
    out.extend_from_slice(&span(qos.lifespan));
    out.extend_from_slice(&qos.loss_ppm.to_le_bytes());
    // Depth last, in 16 bits with the name lengths: more than 65,535 kept samples are no history.
    out.extend_from_slice(&(qos.depth.min(u32::from(u16::MAX)) as u16).to_le_bytes());
    out.push(endpoint.topic.len() as u8);
    out.push(endpoint.type_name.len() as u8);
    out.extend_from_slice(endpoint.topic.as_bytes());
    out.extend_from_slice(endpoint.type_name.as_bytes());
}

fn decode_endpoint(bytes: &mut Bytes<'_>) -> Result<Endpoint, Malformed> {
    let id = EndpointId(bytes.u32()?);
    let [kind, reliability, durability, flags] = bytes.array::<4>()?;
    let kind = match kind {
        0 => EndpointKind::Writer,
        1 => EndpointKind::Reader,
        _ => return Err(Malformed::Value),
    };
    let reliability = match reliability {
        0 => Reliability::BestEffort,
        1 => Reliability::DeadlineBound,
        2 => Reliability::Reliable,
        _ => return Err(Malformed::Value),
    };
    let durability = match durability {
        0 => Durability::Volatile,
        1 => Durability::TransientLocal,
        _ => return Err(Malformed::Value),
    };
    if flags & !(FLAG | KEEP_ALL) != 0 {
        return Err(Malformed::Value);
    }
    let (flag, keep_all) = (flags & FLAG != 0, flags & KEEP_ALL != 0);
    let (multicast, relayed) = (flag && kind == EndpointKind::Writer, flag && kind == EndpointKind::Reader);
    let formats = bytes.u32()?;
    let payload_bytes_max = bytes.u32()?;
    let type_hash = bytes.u64()?;
    let deadline = decode_span(bytes)?;
    let lifespan = decode_span(bytes)?;
    let loss_ppm = bytes.u32()?;
    let depth = u32::from(bytes.u16()?);
    let [topic_bytes, type_bytes] = bytes.array::<2>()?;
    let topic = decode_name(bytes, topic_bytes)?;
    let type_name = decode_name(bytes, type_bytes)?;
    let qos = Qos { reliability, durability, depth, keep_all, deadline, loss_ppm, lifespan, multicast };
    let endpoint =
        Endpoint { id, kind, topic, type_name, type_hash, formats, payload_bytes_max, qos, relayed };
    if depth == 0 || loss_ppm == 0 || endpoint.check_names().is_err() {
        return Err(Malformed::Value);
    }
    Ok(endpoint)
}

fn decode_span(bytes: &mut Bytes<'_>) -> Result<Option<Span>, Malformed> {
    match bytes.i64()? {
        NO_SPAN => Ok(None),
        ns if ns >= 0 => Ok(Some(Span::from_ns(ns))),
        _ => Err(Malformed::Value),
    }
}

fn decode_name(bytes: &mut Bytes<'_>, length_bytes: u8) -> Result<String, Malformed> {
    const { assert!(NAME_BYTES_MAX <= u8::MAX as usize, "one byte of length") };
    let name = std::str::from_utf8(bytes.slice(length_bytes.into())?).map_err(|_| Malformed::Value)?;
    if name.chars().any(char::is_control) {
        return Err(Malformed::Value);
    }
    Ok(name.to_owned())
}

#[cfg(test)]
mod tests;
