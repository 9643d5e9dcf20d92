//! Packets of the hand-over, and those about samples by UDP: any bytes are refused, or come back as they were.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Some(again) = noctule::ring_handshake_again(bytes) {
        assert_eq!(again, bytes);
    }
    if let Some(again) = noctule::by_udp_again(bytes) {
        assert_eq!(again, bytes);
    }
});
