//! The first byte picks a format, the rest is decoded: no panic, and what could be read can be written and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use noctule_formats::uav_state::UavState;
use noctule_formats::{Format, decode, encode};

fuzz_target!(|bytes: &[u8]| {
    let Some((pick, bytes)) = bytes.split_first() else { return };
    let format = Format::ALL[usize::from(*pick) % Format::ALL.len()];
    let Ok(state) = decode::<UavState>(format, bytes) else { return };
    // CDR holds every state but one with NUL in a text.
    let mut out = Vec::new();
    if encode(Format::Cdr, &state, &mut out).is_ok() {
        let again = decode::<UavState>(Format::Cdr, &out);
        // NaN is not equal to itself, so bytes are compared.
        let mut second = Vec::new();
        encode(Format::Cdr, &again.expect("CDR reads what it wrote"), &mut second).expect("twice");
        assert_eq!(out, second, "{format}");
    }
});
