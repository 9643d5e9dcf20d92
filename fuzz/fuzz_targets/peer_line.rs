//! A line of the peer protocol: any bytes parse or are refused; what parses survives the wire.
#![no_main]

use libfuzzer_sys::fuzz_target;
use noctule_peer::Line;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    if let Ok(line) = text.parse::<Line>() {
        // Tabs and newlines inside a value become spaces once; from then on nothing changes.
        let once: Line = line.to_string().parse().expect("what was written can be read");
        let twice: Line = once.to_string().parse().expect("what was written can be read");
        assert_eq!(once, twice);
    }
});
