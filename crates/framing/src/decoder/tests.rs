use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::{encode, encoded_bytes_max};

const PAYLOAD_BYTES_MAX: u16 = 512;

fn framed(payload: &[u8]) -> Vec<u8> {
    let mut line = vec![0; encoded_bytes_max(payload.len())];
    let length = encode(1, 0, payload, &mut line).unwrap();
    line.truncate(length);
    line
}

/// Payloads of all whole frames, the line being read in pieces of `piece` bytes.
fn payloads(decoder: &mut Decoder, line: &[u8], piece: usize) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    for mut bytes in line.chunks(piece.max(1)) {
        while let Some(frame) = decoder.next_frame(&mut bytes) {
            found.push(frame.payload.to_vec());
        }
    }
    found
}

#[test]
fn a_ping_captured_from_a_client_is_encoded_and_decoded_to_the_byte() {
    let payload = [0x80, 0, 0, 0, 2, 1, 8, 0, 0, 0x0A, 0xFF, 0xFD, 2, 0, 0, 0];
    let captured = [&[0x7E, 1, 0, 0x10, 0][..], &payload, &[0xCF, 0x12]].concat();
    assert_eq!(framed(&payload), captured);
    let mut decoder = Decoder::new(PAYLOAD_BYTES_MAX);
    let frame = decoder.next_frame(&mut &captured[..]).map(|frame| (frame.source, frame.destination));
    assert_eq!(frame, Some((1, 0)));
    assert_eq!(payloads(&mut decoder, &captured, 1), [payload]);
}

#[test]
fn a_checksum_byte_can_be_escaped() {
    let payload = (0..u16::MAX).map(u16::to_le_bytes).find(|payload| crate::crc16(payload) >> 8 == 0x7E);
    let payload = payload.unwrap();
    let line = framed(&payload);
    assert_eq!(line[line.len() - 2..], [ESCAPE, BEGIN ^ FLIP]);
    assert_eq!(payloads(&mut Decoder::new(PAYLOAD_BYTES_MAX), &line, 1), [payload]);
}

#[test]
fn a_frame_longer_than_agreed_is_dropped_and_nothing_is_allocated_for_it() {
    let mut decoder = Decoder::new(16);
    let capacity = decoder.payload.capacity();
    assert!(payloads(&mut decoder, &framed(&[7; 17]), 64).is_empty());
    assert_eq!(payloads(&mut decoder, &framed(&[7; 16]), 64), [[7; 16]]);
    assert_eq!((decoder.counters().length, decoder.counters().frames), (1, 1));
    assert_eq!(decoder.payload.capacity(), capacity);
}

#[test]
fn an_empty_frame_is_no_message() {
    let mut decoder = Decoder::new(16);
    assert!(payloads(&mut decoder, &framed(&[]), 64).is_empty());
    assert_eq!(decoder.counters().length, 1);
}

#[test]
fn a_buffer_too_short_for_a_frame_is_refused_at_every_length() {
    let line = framed(&[0x7E, 1, 0x7D, 2]);
    for length in 0..line.len() {
        assert_eq!(encode(1, 0, &[0x7E, 1, 0x7D, 2], &mut vec![0; length]), Err(crate::NoRoom));
    }
    assert_eq!(encode(1, 0, &vec![0; 65_536], &mut vec![0; 200_000]), Err(crate::NoRoom));
}

proptest! {
    #[test]
    fn every_payload_comes_back_however_the_line_is_cut(
        sent in vec(vec(any::<u8>(), 1..200), 1..8), piece in 1usize..300,
    ) {
        let line: Vec<u8> = sent.iter().flat_map(|payload| framed(payload)).collect();
        prop_assert_eq!(payloads(&mut Decoder::new(PAYLOAD_BYTES_MAX), &line, piece), sent);
    }

    /// Frames made of noise that a checksum cannot recognise (one in 65,536) are excluded by looking for the
    /// real frames in order among those found.
    #[test]
    fn noise_between_frames_costs_no_frame(
        sent in vec((vec(any::<u8>(), 1..100), vec(any::<u8>(), 0..100)), 1..8), piece in 1usize..300,
    ) {
        let line: Vec<u8> = sent.iter().flat_map(|(payload, noise)| [noise.clone(), framed(payload)].concat()).collect();
        let mut found = payloads(&mut Decoder::new(PAYLOAD_BYTES_MAX), &line, piece).into_iter();
        for (payload, _) in &sent {
            prop_assert!(found.any(|other| other == *payload), "{:02x?} is missing", payload);
        }
    }

    #[test]
    fn a_damaged_byte_costs_its_own_frame_and_no_other(
        sent in vec(vec(any::<u8>(), 1..100), 3..8), at in any::<prop::sample::Index>(), flip in 1u8..,
    ) {
        let frames: Vec<Vec<u8>> = sent.iter().map(|payload| framed(payload)).collect();
        let mut line = frames.concat();
        let at = at.index(line.len());
        line[at] ^= flip;
        let mut end = 0;
        let hit = frames.iter().position(|frame| { end += frame.len(); at < end }).unwrap();
        let found = payloads(&mut Decoder::new(PAYLOAD_BYTES_MAX), &line, 64);
        for (number, payload) in sent.iter().enumerate().filter(|(number, _)| *number != hit) {
            prop_assert!(found.contains(payload), "frame {} was lost, byte {} of frame {} was damaged", number, at, hit);
        }
    }

    #[test]
    fn any_bytes_are_survived(line in vec(any::<u8>(), 0..2000)) {
        let mut decoder = Decoder::new(PAYLOAD_BYTES_MAX);
        for payload in payloads(&mut decoder, &line, 64) {
            prop_assert!((1..=usize::from(PAYLOAD_BYTES_MAX)).contains(&payload.len()));
        }
    }
}
