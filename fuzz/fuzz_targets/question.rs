//! Questions of nodes about types and links, and their answers: any bytes are refused, or come back as they were.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Some(again) = noctule::question_again(bytes) {
        assert_eq!(again, bytes);
    }
});
