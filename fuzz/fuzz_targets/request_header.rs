//! Headers of requests and replies: any bytes are refused, or come back as they were.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    for again in noctule::request_again(bytes).into_iter().flatten() {
        assert_eq!(again, bytes);
    }
});
