//! Bytes of a serial line: never a panic, never a frame longer than agreed, and what is found is what its
//! encoder writes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use noctule_framing::{Decoder, encode, encoded_bytes_max};

fuzz_target!(|line: &[u8]| {
    let mut decoder = Decoder::new(512);
    let mut rest = line;
    while let Some(frame) = decoder.next_frame(&mut rest) {
        assert!((1..=512).contains(&frame.payload.len()));
        let (source, destination, payload) = (frame.source, frame.destination, frame.payload.to_vec());
        let mut again = vec![0; encoded_bytes_max(payload.len())];
        let length = encode(source, destination, &payload, &mut again).expect("it fits");
        let mut other = Decoder::new(512);
        let frame = other.next_frame(&mut &again[..length]).expect("it is whole");
        assert_eq!((frame.source, frame.destination, frame.payload), (source, destination, &payload[..]));
    }
});
