//! The seal of datagrams of a link that both sides know: the numbers of the link and a part of the counter stand for the whole header.

use std::collections::BTreeMap;

use noctule_discovery::NodeId;
use ring::aead::{Aad, LessSafeKey, Tag};

use super::header::nonce;
use super::{HEADER_BYTES, Refused, TAG_BYTES};

/// Content and number of the link, as without a seal.
const CLEAR_BYTES: usize = 3;
/// Of the counter.
const COUNTER_BYTES: usize = 3;
const COUNTERS: u64 = 1 << (8 * COUNTER_BYTES);
pub(super) const SHORT_HEADER_BYTES: usize = CLEAR_BYTES + COUNTER_BYTES;
/// Bytes of the associated data: the header, the sender and the receiver. So a datagram opens with its receiver only.
const ASSOCIATED_BYTES: usize = SHORT_HEADER_BYTES + 32;

/// The numbers by which nodes address the links of this one.
#[derive(Debug)]
pub(super) struct LinkIds {
    nodes: BTreeMap<u16, NodeId>,
    next: u16,
}

impl LinkIds {
    /// `random`, so that a node that begins anew seldom takes what is for the one before.
    pub(super) fn new(random: u64) -> LinkIds {
        LinkIds { nodes: BTreeMap::new(), next: random as u16 }
    }

    /// A number for the link to a node, not 0; `None` if all 65,535 are taken.
    pub(super) fn open(&mut self, node: NodeId) -> Option<u16> {
        let is_free = |id: &u16| *id != 0 && !self.nodes.contains_key(id);
        let id = (0..=u16::MAX).map(|step| self.next.wrapping_add(step)).find(is_free)?;
        self.next = id.wrapping_add(1);
        self.nodes.insert(id, node);
        Some(id)
    }

    pub(super) fn close(&mut self, node: NodeId) {
        self.nodes.retain(|_, known| *known != node);
    }

    /// The node whose datagrams begin like this.
    pub(super) fn node(&self, datagram: &[u8]) -> Option<NodeId> {
        let [_, low, high] = *datagram.first_chunk::<CLEAR_BYTES>()?;
        self.nodes.get(&u16::from_le_bytes([low, high])).copied()
    }
}

/// Seals what lies behind the room for a long header.
pub(super) fn seal(key: &LessSafeKey, counter: u64, (from, to): (NodeId, NodeId), out: &mut Vec<u8>) {
    out.copy_within(HEADER_BYTES..HEADER_BYTES + CLEAR_BYTES, 0);
    out[CLEAR_BYTES..SHORT_HEADER_BYTES].copy_from_slice(&counter.to_le_bytes()[..COUNTER_BYTES]);
    let body = HEADER_BYTES + CLEAR_BYTES;
    out.copy_within(body.., SHORT_HEADER_BYTES);
    out.truncate(out.len() - (body - SHORT_HEADER_BYTES));
    let associated = associated(out, from, to);
    let body = &mut out[SHORT_HEADER_BYTES..];
    // Fails only for bodies of 64 GiB and more.
    if let Ok(tag) = key.seal_in_place_separate_tag(nonce(counter), Aad::from(associated), body) {
        out.extend_from_slice(tag.as_ref());
    } else {
        out.clear();
    }
}

/// Opens in place what `from` sealed for `to`; the body begins [`CLEAR_BYTES`] later than the datagram.
pub(super) fn open<'a>(
    key: &LessSafeKey,
    counter: u64,
    (from, to): (NodeId, NodeId),
    bytes: &'a mut [u8],
) -> Result<&'a [u8], Refused> {
    if bytes.len() < SHORT_HEADER_BYTES + TAG_BYTES {
        return Err(Refused::Malformed);
    }
    let associated = associated(bytes, from, to);
    let end = bytes.len() - TAG_BYTES;
    let (front, tag) = bytes.split_at_mut(end);
    let tag = Tag::try_from(&*tag).map_err(|_| Refused::Malformed)?;
    key.open_in_place_separate_tag(
        nonce(counter),
        Aad::from(associated),
        tag,
        &mut front[SHORT_HEADER_BYTES..],
        0..,
    )
    .map_err(|_| Refused::WrongKey)?;
    front.copy_within(..CLEAR_BYTES, COUNTER_BYTES);
    Ok(&front[COUNTER_BYTES..])
}

/// The counter nearest to `newest` whose low bytes a datagram carries.
pub(super) fn counter(datagram: &[u8], newest: u64) -> Option<u64> {
    let header = datagram.first_chunk::<SHORT_HEADER_BYTES>()?;
    let mut low = [0; 8];
    low[..COUNTER_BYTES].copy_from_slice(&header[CLEAR_BYTES..]);
    let ahead = u64::from_le_bytes(low).wrapping_sub(newest) % COUNTERS;
    if ahead < COUNTERS / 2 { newest.checked_add(ahead) } else { (newest + ahead).checked_sub(COUNTERS) }
}

fn associated(datagram: &[u8], from: NodeId, to: NodeId) -> [u8; ASSOCIATED_BYTES] {
    let mut bytes = [0; ASSOCIATED_BYTES];
    bytes[..SHORT_HEADER_BYTES].copy_from_slice(&datagram[..SHORT_HEADER_BYTES]);
    bytes[SHORT_HEADER_BYTES..SHORT_HEADER_BYTES + 16].copy_from_slice(&from.0);
    bytes[SHORT_HEADER_BYTES + 16..].copy_from_slice(&to.0);
    bytes
}
