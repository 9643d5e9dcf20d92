//! A recorded robot: any bytes after the magic, alone or as a chunk, and any message are read or refused.
#![no_main]

use libfuzzer_sys::fuzz_target;
use noctule_record::ages::Recording;
use noctule_record::stamp::Stamp;

const MAGIC: &[u8] = b"\x89MCAP0\r\n";

fuzz_target!(|input: (u8, &[u8])| {
    let (kind, bytes) = input;
    match kind % 5 {
        0 => file(&[MAGIC, bytes].concat()),
        1 => file(&[MAGIC, &chunk("", bytes)].concat()),
        2 => file(&[MAGIC, &chunk("lz4", bytes)].concat()),
        3 => file(&[MAGIC, &chunk("zstd", bytes)].concat()),
        _ => message(bytes),
    }
});

/// A chunk that says what is true of it, without a checksum.
fn chunk(compression: &str, bytes: &[u8]) -> Vec<u8> {
    let name = compression.as_bytes();
    let mut body = vec![0; 28];
    body.extend((name.len() as u32).to_le_bytes());
    body.extend(name);
    body.extend((bytes.len() as u64).to_le_bytes());
    body.extend(bytes);
    [&[6], &(body.len() as u64).to_le_bytes()[..], &body].concat()
}

fn file(bytes: &[u8]) {
    let (contents, _) = noctule_record::check::contents(bytes);
    for topic in contents.channels.values() {
        assert!(topic.with_bound <= topic.messages && topic.with_source_time <= topic.messages);
        assert!(topic.age_p50_ns <= topic.age_max_ns);
    }
    let mut recording = Recording::default();
    let _ = recording.read(bytes, &[]);
    for (_, topic) in recording.topics() {
        assert!(topic.stamped() as u64 + topic.unset + topic.unreadable <= topic.messages);
        assert!(topic.ages_ns().is_sorted() && topic.ahead() <= topic.stamped());
        assert!(topic.age_ns(99, 100) <= topic.oldest_ns());
        assert!(topic.rate_hz().is_none_or(|rate_hz| rate_hz.is_finite()));
    }
}

/// A definition up to the first zero, then a message of every kind of sender.
fn message(bytes: &[u8]) {
    let mut parts = bytes.splitn(2, |byte| *byte == 0);
    let (Some(text), Some(payload)) = (parts.next(), parts.next()) else { return };
    let text = String::from_utf8_lossy(text);
    for (encoding, language) in [("cdr", "ros2msg"), ("ros1", "ros1msg"), ("json", "")] {
        let _ = Stamp::of(encoding, ("a/msg/B", language, &text)).map(|stamp| stamp.read_ns(payload));
    }
    let _ = Stamp::Cdr.read_ns(payload);
    let _ = Stamp::Ros1.read_ns(payload);
    let _ = Stamp::Scheduled.read_ns(payload);
}
