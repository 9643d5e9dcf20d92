//! Files of other recorders: any bytes behind the beginning of a bag of ROS 1 or a log of PX4 are read or refused.
#![no_main]

use libfuzzer_sys::fuzz_target;

const BAG: &[u8] = b"#ROSBAG V2.0\n";
const LOG: &[u8] = b"ULog\x01\x12\x35\x01\0\0\0\0\0\0\0\0";
/// A definition and two messages of it that are logged.
const DEFINED: &[u8] = b"\x15\0Fa:uint64_t timestamp;\
    \x17\0Fb:a[2] x;uint16_t[3] y;\
    \x04\0A\0\x05\0a\x04\0A\x01\x06\0b";

fuzz_target!(|input: (u8, &[u8])| {
    let (kind, bytes) = input;
    let file = match kind % 6 {
        0 => [BAG, bytes].concat(),
        1 => [BAG, &chunk("none", bytes)].concat(),
        2 => [BAG, &chunk("bz2", bytes)].concat(),
        3 => [BAG, &chunk("lz4", bytes)].concat(),
        4 => [LOG, bytes].concat(),
        _ => [LOG, DEFINED, bytes].concat(),
    };
    let (contents, _) = noctule_record::check::contents(&file[..]);
    for topic in contents.channels.values() {
        assert!(topic.with_source_time <= topic.messages && topic.age_p50_ns <= topic.age_max_ns);
    }
});

/// A chunk of a bag that says what is true of it.
fn chunk(compression: &str, bytes: &[u8]) -> Vec<u8> {
    let field = |text: &[u8]| [&(text.len() as u32).to_le_bytes()[..], text].concat();
    let header =
        [field(b"op=\x05"), field(format!("compression={compression}").as_bytes()), field(b"size=\0\0\0\0")]
            .concat();
    [&(header.len() as u32).to_le_bytes()[..], &header, &(bytes.len() as u32).to_le_bytes(), bytes].concat()
}
