//! Packets of a local socket of this host: its name and its bytes may be anything.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (Vec<u8>, Vec<u8>)| {
    let (name, mut bytes) = input;
    let _ = noctule::local_packet(&name, &mut bytes);
});
