//! Packets of the hand-over: any bytes are refused, or come back as they were.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Some(again) = noctule::hand_over_again(bytes) {
        assert_eq!(again, bytes);
    }
});
