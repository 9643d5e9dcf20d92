//! Fragments of samples in bytes, and how samples are cut into them.

use std::ops::Range;

use noctule_proto_kit::Bytes;

use super::fields::{Fields, put_low, put_varint};
use super::{
    ACK_SOON, BEST_EFFORT, BOUND, BOUND_ALONE, FIRST_PARITY, FRAGMENT, FRAGMENTS_MAX, FULL_TIME, Fragment,
    LOAD, Malformed, Numbers, PACKET_BYTES, Place, RELIABLE, Reference, SYMBOL_HEADER_BYTES, Service, TAGS,
    UNCERTAIN, is_short_time, packet_near, put_time,
};
use crate::StreamId;
use crate::stream::{Origin, Outgoing};

/// Bytes of each fragment but the last of a sample of `total_bytes` in `count` fragments: fragments are of equal
/// length, so that their place follows from their number.
pub(crate) fn fragment_bytes(total_bytes: usize, count: u16) -> usize {
    total_bytes.div_ceil(usize::from(count.max(1)))
}

/// Where a fragment lies in such a sample.
pub(crate) fn fragment_range(total_bytes: usize, count: u16, index: u16) -> Range<usize> {
    let length = fragment_bytes(total_bytes, count);
    let start = usize::from(index) * length;
    start..(start + length).min(total_bytes)
}

/// A fragment of a sample as parity is computed over it.
pub(crate) fn symbol_of(sample: &Outgoing<'_>, index: u16, count: u16) -> Vec<u8> {
    let fragment = Fragment {
        writer: sample.writer,
        total_bytes: sample.payload.len() as u32,
        sequence: sample.sequence,
        origin: sample.origin,
        index,
        count,
        service: Service::BestEffort,
        payload: &sample.payload[fragment_range(sample.payload.len(), count, index)],
    };
    let mut symbol = Vec::with_capacity(SYMBOL_HEADER_BYTES + fragment.payload.len());
    fragment.encode_symbol(&mut symbol);
    symbol
}

impl<'a> Fragment<'a> {
    /// The content of its datagram.
    pub(super) fn content(&self, clock_ns: i64) -> u8 {
        let load = match &self.service {
            Service::BestEffort => BEST_EFFORT,
            Service::Reliable(_) => RELIABLE,
            Service::Bound(place) if place.is_alone() => BOUND_ALONE,
            Service::Bound(_) => BOUND,
        };
        let is_short = is_short_time(self.origin.source_time_ns, clock_ns);
        load | self.tags() | if is_short { 0 } else { FULL_TIME }
    }

    pub(super) fn tags(&self) -> u8 {
        let fragment = if self.count > 1 { FRAGMENT } else { 0 };
        fragment | if self.origin.source_error != 0 { UNCERTAIN } else { 0 }
    }

    pub(super) fn encode(&self, content: u8, out: &mut Vec<u8>) {
        put_varint(out, self.writer.0.into());
        self.encode_tags(content, out);
        match &self.service {
            Service::BestEffort => {}
            Service::Reliable(numbers) => numbers.encode(self.sequence, out),
            Service::Bound(place) => {
                put_low::<PACKET_BYTES>(out, place.packet);
                match content & LOAD {
                    BOUND_ALONE => out.push(place.attempt | place.ack_soon_bit()),
                    _ => place.encode(out),
                }
            }
        }
        out.extend_from_slice(self.payload);
        out.resize(out.len() + self.padding_bytes(), 0);
    }

    /// Of a reliable sample the last fragment is as long as the others, so that the kernel cuts the datagrams of several samples from one buffer.
    fn padding_bytes(&self) -> usize {
        let is_last = self.count > 1 && self.index + 1 == self.count;
        if !is_last || !matches!(self.service, Service::Reliable(_)) {
            return 0;
        }
        fragment_bytes(self.total_bytes as usize, self.count).saturating_sub(self.payload.len())
    }

    fn encode_tags(&self, tags: u8, out: &mut Vec<u8>) {
        put_varint(out, self.sequence);
        put_time(out, self.origin.source_time_ns, tags & FULL_TIME == 0);
        if tags & FRAGMENT != 0 {
            put_varint(out, self.total_bytes.into());
            put_varint(out, self.index.into());
            put_varint(out, self.count.into());
        }
        if tags & UNCERTAIN != 0 {
            out.extend_from_slice(&self.origin.source_error.to_le_bytes());
        }
    }

    /// Appends what parity is computed over: all that cannot be known without the datagram.
    pub(crate) fn encode_symbol(&self, out: &mut Vec<u8>) {
        let tags = self.tags() | FULL_TIME;
        out.push(tags);
        self.encode_tags(tags, out);
        out.extend_from_slice(self.payload);
    }

    /// Reads what [`encode_symbol`](Fragment::encode_symbol) wrote.
    pub(crate) fn decode_symbol(
        writer: StreamId,
        place: Place,
        symbol: &'a [u8],
    ) -> Result<Fragment<'a>, Malformed> {
        let mut cursor = Bytes::new(symbol);
        let tags = cursor.u8()?;
        if tags & FULL_TIME == 0 || tags & !TAGS != 0 {
            return Err(Malformed::Value);
        }
        let tags = Tags::decode(&mut cursor, tags, &Reference::default())?;
        tags.fragment(writer, Service::Bound(place), cursor.rest())
    }

    /// Takes the rest of the datagram.
    pub(super) fn decode(
        mut cursor: Bytes<'a>,
        content: u8,
        reference: &Reference,
    ) -> Result<Fragment<'a>, Malformed> {
        let writer = StreamId(cursor.varint_of()?);
        let tags = Tags::decode(&mut cursor, content & TAGS, reference)?;
        let service = match content & LOAD {
            BEST_EFFORT => Service::BestEffort,
            RELIABLE => Service::Reliable(Numbers::decode(&mut cursor, tags.sequence, reference)?),
            BOUND_ALONE => {
                let packet = packet_near(&mut cursor, reference)?;
                let byte = cursor.u8()?;
                Service::Bound(Place::alone(packet, byte & !ACK_SOON, byte & ACK_SOON != 0))
            }
            _ => {
                let place = Place::decode(&mut cursor, reference)?;
                let is_data = place.symbol < FIRST_PARITY;
                if !is_data || place.symbols != 0 && place.symbol >= place.symbols || place.is_alone() {
                    return Err(Malformed::Value);
                }
                Service::Bound(place)
            }
        };
        tags.fragment(writer, service, cursor.rest())
    }

    /// Rises from one sample of a writer to the next: the position if reliable, else the sequence number.
    pub(crate) fn key(&self) -> u64 {
        match self.service {
            Service::Reliable(numbers) => numbers.position,
            Service::BestEffort | Service::Bound(_) => self.sequence,
        }
    }

    /// Where the fragment lies in the sample.
    pub(crate) fn start(&self) -> usize {
        usize::from(self.index) * fragment_bytes(self.total_bytes as usize, self.count)
    }
}

/// A fragment without its payload, its writer and its service.
struct Tags {
    /// Unless it is the only fragment: then the payload says it.
    total_bytes: Option<u32>,
    sequence: u64,
    origin: Origin,
    index: u16,
    count: u16,
}

impl Tags {
    pub(super) fn decode(cursor: &mut Bytes<'_>, tags: u8, reference: &Reference) -> Result<Tags, Malformed> {
        let sequence = cursor.varint()?;
        let source_time_ns = match tags & FULL_TIME {
            0 => cursor.time_near(reference.clock_ns)?,
            _ => cursor.i64()?,
        };
        let is_fragment = tags & FRAGMENT != 0;
        let (total_bytes, index, count) = match is_fragment {
            true => (Some(cursor.varint_of()?), cursor.varint_of()?, cursor.varint_of()?),
            false => (None, 0, 1),
        };
        let is_uncertain = tags & UNCERTAIN != 0;
        let source_error = if is_uncertain { cursor.u32()? } else { 0 };
        let impossible = index >= count || count > FRAGMENTS_MAX || is_fragment && count == 1;
        if impossible || sequence == u64::MAX || is_uncertain && source_error == 0 {
            return Err(Malformed::Value);
        }
        let origin = Origin { source_time_ns, source_error };
        Ok(Tags { total_bytes, sequence, origin, index, count })
    }

    fn fragment(self, writer: StreamId, service: Service, payload: &[u8]) -> Result<Fragment<'_>, Malformed> {
        let Tags { total_bytes, sequence, origin, index, count } = self;
        let total_bytes = match total_bytes {
            Some(total_bytes) => total_bytes,
            None => u32::try_from(payload.len()).map_err(|_| Malformed::Length)?,
        };
        let total = total_bytes as usize;
        let length = fragment_bytes(total, count);
        if count > 1 && usize::from(count - 1) * length >= total {
            return Err(Malformed::Value);
        }
        let left_bytes = length.min(total - usize::from(index) * length);
        let is_padded = count > 1 && matches!(service, Service::Reliable(_));
        if payload.len() != if is_padded { length } else { left_bytes } {
            return Err(Malformed::Length);
        }
        let (payload, padding) = payload.split_at(left_bytes);
        if padding.iter().any(|byte| *byte != 0) {
            return Err(Malformed::Value);
        }
        Ok(Fragment { writer, total_bytes, sequence, origin, index, count, service, payload })
    }
}
