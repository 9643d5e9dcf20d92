use std::io::Cursor;

use mcap::records::MessageHeader;
use proptest::prelude::*;

use super::*;

const SECOND_NS: u64 = 1_000_000_000;
/// The first log time, on the day this was written.
const START_NS: u64 = 1_795_000_000 * SECOND_NS;
const IMU: &str =
    "std_msgs/Header header\nfloat64 x\n====\nMSG: std_msgs/Header\nbuiltin_interfaces/Time stamp\n";

fn ros2(stamp_ns: u64) -> Vec<u8> {
    let (seconds, rest) = ((stamp_ns / SECOND_NS) as u32, (stamp_ns % SECOND_NS) as u32);
    [&[0, 1, 0, 0], &seconds.to_le_bytes()[..], &rest.to_le_bytes(), &[0; 16]].concat()
}

/// A robot of 100 Hz with 1,000 messages a topic: `imu` is 1 to 3 ms old, of `odom` every tenth stamp is
/// 2 ms ahead, `text` has no stamp, `sim` one of another time.
fn robot(compression: Option<mcap::Compression>) -> Vec<u8> {
    let mut file = Cursor::new(Vec::new());
    let options = mcap::WriteOptions::new().compression(compression).chunk_size(Some(4096));
    let mut writer = options.create(&mut file).unwrap();
    let imu = writer.add_schema("sensor_msgs/msg/Imu", "ros2msg", IMU.as_bytes()).unwrap();
    let ros1 = writer.add_schema("nav_msgs/Odometry", "ros1msg", b"Header header\n").unwrap();
    let text = writer.add_schema("std_msgs/msg/String", "ros2msg", b"string data\n").unwrap();
    let mut channel =
        |schema, topic, encoding| writer.add_channel(schema, topic, encoding, &BTreeMap::new()).unwrap();
    let channels = [
        channel(imu, "imu", "cdr"),
        channel(ros1, "odom", "ros1"),
        channel(text, "text", "cdr"),
        channel(imu, "sim", "cdr"),
        channel(0, "state", "json"),
    ];
    for index in 0..1000 {
        let log_ns = START_NS + index * 10_000_000;
        let ros1_ns = if index % 10 == 0 { log_ns + 2_000_000 } else { log_ns - 1_000_000 };
        let ros1 = [&[0; 4], &ros2(ros1_ns)[4..]].concat();
        let (seconds, rest) = (log_ns / SECOND_NS, log_ns % SECOND_NS);
        let json = format!("{{\"header\": {{\"stamp\": {{\"sec\": {seconds}, \"nanosec\": {rest}}}}}}}");
        let payloads = [
            ros2(log_ns - 1_000_000 - index * 2_000),
            ros1,
            vec![0; 8],
            ros2(if index == 0 { 0 } else { index * 10_000_000 }),
            if index == 7 { b"{}".to_vec() } else { json.into_bytes() },
        ];
        for (channel_id, payload) in channels.into_iter().zip(payloads) {
            let header = MessageHeader { channel_id, sequence: 0, log_time: log_ns, publish_time: 0 };
            writer.write_to_known_channel(&header, &payload).unwrap();
        }
    }
    writer.finish().unwrap();
    drop(writer);
    file.into_inner()
}

/// Checks invariants of every file, damaged or not.
fn check(recording: &Recording) {
    for (_, topic) in recording.topics() {
        assert!(topic.stamped() as u64 + topic.unset + topic.unreadable <= topic.messages);
        assert!(topic.ages_ns().is_sorted() && topic.ahead() <= topic.stamped());
        assert!(
            topic.age_ns(1, 2) <= topic.oldest_ns()
                && topic.age_ns(1, 2) <= topic.age_ns(99, 100).or(topic.oldest_ns())
        );
        assert!(topic.rate_hz().is_none_or(|rate_hz| rate_hz.is_finite() && rate_hz >= 0.0));
        assert!(topic.bytes_per_s().is_none_or(f64::is_finite));
    }
}

fn read(bytes: &[u8]) -> (Recording, Result<(), FileError>) {
    let mut recording = Recording::default();
    let result = recording.read(bytes, &[]);
    (recording, result)
}

#[test]
fn ages_and_rates_of_a_robot_are_those_it_was_recorded_with() {
    for compression in [None, Some(mcap::Compression::Lz4)] {
        let (recording, result) = read(&robot(compression));
        assert_eq!(result, Ok(()));
        let topics: BTreeMap<&str, &RecordedTopic> = recording.topics().collect();
        assert_eq!(topics.keys().copied().collect::<Vec<_>>(), ["imu", "odom", "sim", "state", "text"]);
        let imu = topics["imu"];
        assert_eq!((imu.messages, imu.bytes, imu.ahead()), (1000, 28_000, 0));
        assert!((imu.rate_hz().unwrap() - 100.0).abs() < 1e-6 && (imu.duration_s() - 9.99).abs() < 1e-9);
        assert_eq!(imu.age_ns(1, 2), Some(2_000_000));
        assert_eq!(imu.age_ns(99, 100), Some(2_980_000));
        assert_eq!(imu.oldest_ns(), Some(2_998_000));
        let odom = topics["odom"];
        assert_eq!((odom.ahead(), odom.ages_ns[0], odom.oldest_ns()), (100, -2_000_000, Some(1_000_000)));
        assert_eq!((topics["state"].unreadable, topics["state"].oldest_ns()), (1, Some(0)));
        assert_eq!((topics["sim"].unset, topics["text"].ages_ns.len()), (1, 0));
    }
}

fn record(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind], &(body.len() as u64).to_le_bytes()[..], body].concat()
}

fn named(name: &str) -> Vec<u8> {
    [&(name.len() as u32).to_le_bytes()[..], name.as_bytes()].concat()
}

/// A chunk whose records are compressed, as its writer says, with a checksum.
fn chunk(compression: &str, records: &[u8], compressed: &[u8]) -> Vec<u8> {
    let mut body = vec![0; 24];
    body.extend(crc32fast::hash(records).to_le_bytes());
    body.extend(named(compression));
    body.extend((compressed.len() as u64).to_le_bytes());
    body.extend(compressed);
    record(6, &body)
}

fn one_message() -> Vec<u8> {
    let channel = [&[1, 0, 0, 0], &named("imu")[..], &named("json"), &[0; 4]].concat();
    let json = br#"{"stamp": {"sec": 1, "nsec": 0}}"#;
    let message = [&[1, 0, 0, 0, 0, 0], &(2 * SECOND_NS).to_le_bytes()[..], &[0; 8], json].concat();
    [record(4, &channel), record(5, &message)].concat()
}

fn whole(records: &[u8]) -> Vec<u8> {
    let magic = b"\x89MCAP0\r\n";
    [magic, records, &record(2, &[0; 20]), magic].concat()
}

#[test]
fn chunks_compressed_with_zstd_are_read_and_a_wrong_checksum_is_reported() {
    let records = one_message();
    let level = ruzstd::encoding::CompressionLevel::Fastest;
    let compressed = ruzstd::encoding::compress_to_vec(&records[..], level);
    let (recording, result) = read(&whole(&chunk("zstd", &records, &compressed)));
    assert_eq!(result, Ok(()));
    assert_eq!(recording.topics["imu"].ages_ns, [SECOND_NS as i64]);
    let (_, result) = read(&whole(&chunk("", &records[1..], &records)));
    assert!(result.unwrap_err().to_string().contains("checksum"));
    let (_, result) = read(&whole(&chunk("brotli\u{1b}", &records, &records)));
    assert_eq!(
        result.unwrap_err().to_string(),
        "it is compressed with \"brotli\\u{1b}\", which is not supported"
    );
}

#[test]
fn a_file_that_is_cut_gives_what_comes_before_and_says_so() {
    for compression in [None, Some(mcap::Compression::Lz4)] {
        let bytes = robot(compression);
        let mut counts = Vec::new();
        for cut in (0..20).map(|part| bytes.len() * part / 20).chain([3, 8, 9, bytes.len() / 2 + 1]) {
            let (recording, result) = read(&bytes[..cut]);
            assert!(
                result.unwrap_err().to_string().contains("ends in the middle"),
                "{cut} bytes of {}",
                bytes.len()
            );
            counts.push(recording.messages);
        }
        assert!(counts.iter().any(|count| (1..5000).contains(count)), "{counts:?}");
    }
}

#[test]
fn flipped_bytes_and_absurd_lengths_are_refused_and_never_panic() {
    for compression in [None, Some(mcap::Compression::Lz4)] {
        let bytes = robot(compression);
        let head = bytes.len().min(6000);
        for (at, flip) in (0..head).step_by(5).flat_map(|at| [(at, 0xff), (at, 1)]) {
            let mut flipped = bytes[..head].to_vec();
            flipped[at] ^= flip;
            check(&read(&flipped).0);
        }
    }
    let magic = b"\x89MCAP0\r\n";
    for kind in 0..=16 {
        for length in [u64::MAX, u64::MAX / 2, 1 << 40, 1 << 28] {
            let bytes = [&magic[..], &[kind], &length.to_le_bytes()[..], &[0xff; 64]].concat();
            let (recording, result) = read(&bytes);
            assert!(result.is_err() || kind == 2, "kind {kind}, length {length}");
            assert_eq!(recording.messages, 0);
        }
    }
    let (_, result) = read(b"#ROSBAGS are none of these");
    assert!(result.unwrap_err().to_string().contains("does not begin"));
}

#[test]
fn names_and_topics_have_limits() {
    let channel = |id: u16, topic: &str| {
        record(4, &[&id.to_le_bytes(), &[0, 0], &named(topic)[..], &named("json"), &[0; 4]].concat())
    };
    let (_, result) = read(&whole(&channel(1, &"n".repeat(2000))));
    assert!(result.unwrap_err().to_string().contains("1024"));
    let many: Vec<u8> = (0..5000).flat_map(|id| channel(id, &format!("t{id}"))).collect();
    let (recording, result) = read(&whole(&many));
    assert!(result.unwrap_err().to_string().contains("4096"));
    assert_eq!(recording.topics.len(), TOPICS_LIMIT);
}

/// Seconds, nanoseconds.
type Time = (u32, u32);

/// A message with a stamp as each kind of sender writes it: encoding, definition, payload.
fn stamped(sender: usize, (seconds, rest): Time, tail: &[u8]) -> (&'static str, [&'static str; 3], Vec<u8>) {
    let header = "# first\nstd_msgs/Header header\n";
    let little = [seconds.to_le_bytes(), rest.to_le_bytes()].concat();
    let big = [seconds.to_be_bytes(), rest.to_be_bytes()].concat();
    let scheduled_ns = i64::from(seconds) * SECOND_NS as i64 + i64::from(rest);
    match sender {
        0 => ("cdr", ["a/msg/B", "ros2msg", header], [&[0, 1, 0, 0], &little[..], tail].concat()),
        1 => ("cdr", ["a/msg/B", "ros2msg", header], [&[0, 0, 0, 0], &big[..], tail].concat()),
        2 => ("ros1", ["a/B", "ros1msg", header], [&[9, 9, 9, 9], &little[..], tail].concat()),
        3 => {
            let json = format!(
                "{{\"x\": {tail:?}, \"header\": {{\"stamp\": {{\"secs\": {seconds}, \"nsecs\": {rest}}}}}}}"
            );
            ("json", [""; 3], json.into_bytes())
        }
        _ => {
            let payload = [&[0, 1, 0, 0], &[0; 16][..], &scheduled_ns.to_le_bytes(), tail].concat();
            ("cdr", ["noctule/msg/Sample", "ros2msg", ""], payload)
        }
    }
}

/// A definition, a channel of it and its messages, each with a log time.
fn topic(encoding: &str, [name, language, text]: [&str; 3], messages: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let schema = [&[1, 0][..], &named(name), &named(language), &named(text)].concat();
    let channel = [&[1, 0, 1, 0][..], &named("t"), &named(encoding), &[0; 4]].concat();
    let mut records = [record(3, &schema), record(4, &channel)].concat();
    for (log_ns, payload) in messages {
        let head = [&[1, 0, 0, 0, 0, 0][..], &log_ns.to_le_bytes(), &[0; 8]].concat();
        records.extend(record(5, &[&head[..], payload].concat()));
    }
    records
}

fn in_chunk(compression: usize, records: &[u8]) -> Vec<u8> {
    let zstd = || {
        let level = ruzstd::encoding::CompressionLevel::Fastest;
        ruzstd::encoding::compress_to_vec(records, level)
    };
    match compression {
        0 => records.to_vec(),
        1 => chunk("", records, records),
        _ => chunk("zstd", records, &zstd()),
    }
}

proptest! {
    #[test]
    fn every_senders_stamp_gives_its_age_and_a_cut_takes_only_from_the_end(
        sender in 0usize..5,
        compression in 0usize..3,
        times in proptest::collection::vec((1u32..i32::MAX as u32, 0u32..1_000_000_000), 1..20),
        ahead_ns in -1_000_000_000i64..1_000_000_000,
        tail in proptest::collection::vec(any::<u8>(), 0..20),
        cut in any::<prop::sample::Index>(),
    ) {
        let (encoding, definition, _) = stamped(sender, (0, 0), &[]);
        let messages: Vec<(u64, Vec<u8>)> = times.iter().map(|&time| {
            let ns = i64::from(time.0) * SECOND_NS as i64 + i64::from(time.1);
            ((ns - ahead_ns).max(0) as u64, stamped(sender, time, &tail).2)
        }).collect();
        let bytes = whole(&in_chunk(compression, &topic(encoding, definition, &messages)));
        let (recording, result) = read(&bytes);
        prop_assert_eq!(result, Ok(()));
        check(&recording);
        let found = &recording.topics["t"];
        prop_assert_eq!((found.messages, found.unset, found.unreadable), (times.len() as u64, 0, 0));
        let mut ages_ns: Vec<i64> = messages.iter().zip(&times).map(|((log_ns, _), &(seconds, rest))| {
            *log_ns as i64 - i64::from(seconds) * SECOND_NS as i64 - i64::from(rest)
        }).collect();
        ages_ns.sort_unstable();
        prop_assert_eq!(found.ages_ns(), ages_ns);
        let cut = cut.index(bytes.len());
        let (part, result) = read(&bytes[..cut]);
        prop_assert!(result.is_err());
        check(&part);
        let fewer = part.topics.get("t").map_or(0, |topic| topic.messages);
        prop_assert!(fewer <= found.messages);
    }

    #[test]
    fn whatever_lies_in_records_is_read_or_refused(
        records in proptest::collection::vec(
            (0u8..8, proptest::collection::vec(any::<u8>(), 0..60)), 0..20),
        compression in 0usize..3,
        payloads in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..60), 1..10),
        sender in 0usize..5,
    ) {
        let (encoding, definition, _) = stamped(sender, (0, 0), &[]);
        let messages: Vec<(u64, Vec<u8>)> = payloads.into_iter().map(|payload| (START_NS, payload)).collect();
        let count = messages.len() as u64;
        let mut bytes = topic(encoding, definition, &messages);
        bytes.extend(records.iter().flat_map(|(kind, body)| record(*kind, body)));
        let (recording, _) = read(&whole(&in_chunk(compression, &bytes)));
        check(&recording);
        let found = &recording.topics["t"];
        prop_assert!(found.messages >= count);
        prop_assert_eq!(found.stamped() as u64 + found.unset + found.unreadable, found.messages);
    }
}
