//! Submessages to a client.

use std::sync::Arc;

use super::Control;
use crate::event::{Counters, EndpointId, Sample, count, time_octets};
use crate::outbound::Outbound;
use crate::wire::{
    COOKIE, LAST_FRAGMENT, LITTLE_ENDIAN, ObjectId, RequestId, SUBHEADER_BYTES, Status, SubmessageWriter,
    VENDOR, VENDOR_OURS, VERSION, id,
};

/// Bytes of a sample's identity: GUID (16), sequence number (8).
pub(crate) const IDENTITY_BYTES: usize = 24;

pub(super) fn acknack(out: &mut Vec<u8>, first: u16, missing: u16, stream: u8) {
    let mut writer = SubmessageWriter::begin(out, id::ACKNACK, LITTLE_ENDIAN);
    writer.u16(first).octets(&missing.to_be_bytes()).octets(&[stream]);
}

pub(super) fn heartbeat(out: &mut Vec<u8>, first: u16, last: u16, stream: u8) {
    SubmessageWriter::begin(out, id::HEARTBEAT, LITTLE_ENDIAN).u16(first).u16(last).octets(&[stream]);
}

pub(super) fn status(out: &mut Vec<u8>, request: RequestId, object: ObjectId, status: Status) {
    let mut writer = SubmessageWriter::begin(out, id::STATUS, LITTLE_ENDIAN);
    writer.octets(&request.0).octets(&object.0).octets(&[status as u8, 0]);
}

/// The answer to CREATE_CLIENT.
pub(crate) fn status_agent(out: &mut Vec<u8>, status: Status, is_ours: bool) {
    let mut writer = SubmessageWriter::begin(out, id::STATUS_AGENT, LITTLE_ENDIAN);
    writer.octets(&[status as u8, 0]);
    agent(&mut writer, is_ours);
}

/// The answer to GET_INFO. `has_session`: whether the client has one. `locators`: IPv4 addresses and ports.
pub(crate) fn info(out: &mut Vec<u8>, request: RequestId, has_session: bool, locators: &[([u8; 4], u16)]) {
    const AGENT: u8 = 0x0D;
    const MEDIUM: u8 = 1;
    let mut writer = SubmessageWriter::begin(out, id::INFO, LITTLE_ENDIAN);
    writer.octets(&request.0).octets(&ObjectId::AGENT.0).octets(&[0, u8::from(has_session), 1, AGENT]);
    agent(&mut writer, false);
    writer.octets(&[1, AGENT]).u16(1).u32(locators.len() as u32);
    for (address, port) in locators {
        writer.octets(&[MEDIUM]).octets(address).u16(*port);
    }
}

fn agent(writer: &mut SubmessageWriter<'_>, is_ours: bool) {
    let vendor = if is_ours { VENDOR_OURS } else { VENDOR };
    writer.octets(&COOKIE).octets(&VERSION).octets(&vendor).octets(&[0]);
}

/// "Are you there?"
pub(super) fn question() -> Control {
    let mut body = Vec::new();
    let mut writer = SubmessageWriter::begin(&mut body, id::GET_INFO, LITTLE_ENDIAN);
    writer.octets(&[0, 0]).octets(&ObjectId::CLIENT.0).u32(2);
    drop(writer);
    Control::Submessage(body)
}

/// Writes an answer outside of streams; returns where in the message its time of departure is.
pub(super) fn control(out: &mut Vec<u8>, control: &Control) -> Option<usize> {
    match control {
        Control::Submessage(body) => {
            out.extend_from_slice(body);
            None
        }
        Control::Time { received, originated } => {
            let at = out.len() + SUBHEADER_BYTES;
            let mut writer = SubmessageWriter::begin(out, id::TIMESTAMP_REPLY, LITTLE_ENDIAN);
            writer.octets(&[0; 8]).octets(&time_octets(*received)).octets(originated);
            Some(at)
        }
    }
}

/// DATA, as the answer to a READ_DATA.
pub(super) fn sample(request: RequestId, object: ObjectId, sample: &Sample) -> Vec<u8> {
    let mut body = Vec::with_capacity(SUBHEADER_BYTES + 4 + sample.body.len());
    let mut writer = SubmessageWriter::begin(&mut body, id::DATA, u8::from(sample.is_little_endian));
    writer.octets(&request.0).octets(&object.0).octets(&sample.body);
    drop(writer);
    body
}

/// Puts DATA into a reliable stream, in pieces if it must; false if there would be too many.
pub(super) fn push_reliable(
    outbound: &mut Outbound,
    object: ObjectId,
    body: Vec<u8>,
    bytes_max: usize,
) -> bool {
    if body.len() <= bytes_max {
        // Alone: clients go on behind a requester's DATA in the wrong place.
        outbound.push_alone(body);
        return true;
    }
    // Lengths that are multiples of four, so that nothing need be padded.
    let piece_bytes = bytes_max.saturating_sub(SUBHEADER_BYTES) & !3;
    if piece_bytes == 0 || body.len().div_ceil(piece_bytes) > outbound.pieces_max() {
        return false;
    }
    let last = body.len().div_ceil(piece_bytes) - 1;
    let pieces = body.chunks(piece_bytes).enumerate().map(|(number, piece)| {
        let flags = if number == last { LITTLE_ENDIAN | LAST_FRAGMENT } else { LITTLE_ENDIAN };
        let mut message = Vec::with_capacity(SUBHEADER_BYTES + piece.len());
        SubmessageWriter::begin(&mut message, id::FRAGMENT, flags).octets(piece);
        message
    });
    outbound.push_pieces(object, pieces.collect());
    true
}

/// The identity that a requester's request goes by: the requester's GUID, then a sequence number that is
/// the request's own number, so that nothing need be remembered.
pub(super) fn identity(endpoint: EndpointId, request: RequestId) -> [u8; IDENTITY_BYTES] {
    let mut identity = [0; IDENTITY_BYTES];
    identity[..16].copy_from_slice(&guid(endpoint));
    // High word 0; low word the request's number, little-endian like all that agents write.
    identity[20..22].copy_from_slice(&u16::from_be_bytes(request.0).to_le_bytes());
    identity
}

/// Sixteen octets that no other requester has: `NC`, its serial number, its client, its object.
fn guid(endpoint: EndpointId) -> [u8; 16] {
    let mut guid = [0; 16];
    guid[..2].copy_from_slice(&VENDOR_OURS);
    guid[4..8].copy_from_slice(&endpoint.serial.to_be_bytes());
    guid[8..12].copy_from_slice(&endpoint.client.0);
    guid[12..14].copy_from_slice(&endpoint.object.0);
    guid
}

/// A reply as its requester gets it, with the request's number and object in place of the identity;
/// `None` if it is another client's.
pub(super) fn reply_for(requester: EndpointId, reply: Sample, counters: &mut Counters) -> Option<Sample> {
    let Some((identity, body)) = reply.body.split_first_chunk::<IDENTITY_BYTES>() else {
        count(&mut counters.malformed);
        return None;
    };
    if identity[..16] != guid(requester) {
        return None;
    }
    let request = u16::from_le_bytes([identity[20], identity[21]]).to_be_bytes();
    let whole: Vec<u8> = request.iter().chain(&requester.object.0).chain(body).copied().collect();
    Some(Sample { body: Arc::from(whole), is_little_endian: reply.is_little_endian })
}
