use std::io::Cursor;

use mcap::records::MessageHeader;

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

fn read(bytes: &[u8], wanted: &[&String]) -> (Recording, Result<(), String>) {
    let mut recording = Recording::default();
    let result = recording.read(bytes, wanted);
    (recording, result)
}

#[test]
fn ages_and_rates_of_a_robot_are_those_it_was_recorded_with() {
    for compression in [None, Some(mcap::Compression::Lz4)] {
        let (mut recording, result) = read(&robot(compression), &[]);
        assert_eq!(result, Ok(()));
        let rows = recording.rows(Order::Name);
        let topics: BTreeMap<&str, &Topic> = rows.iter().map(|row| (row.name, row.topic)).collect();
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

#[test]
fn what_the_figures_do_not_say_is_said_by_name() {
    let (mut recording, _) = read(&robot(None), &[]);
    let text = plain(&recording.rows(Order::Name));
    let says = |line: &str| assert!(text.lines().any(|other| other.starts_with(line)), "{line}\nin\n{text}");
    says("topic  messages      rate   age p50");
    says("imu        1000  100.0 Hz  2 ms ± ?  2.98 ms ± ?  3.00 ms ± ?");
    says("odom: 100 of 1000 stamps are later than the log, by up to 2 ms: the clock of the stamps is ahead");
    says("text: no age: std_msgs/msg/String does not begin with a header");
    says("state: 1 of 1000 messages have no stamp");
    says("sim: 1 of 1000 stamps are zero: never set");
    says("sim: no age: stamps and log do not count from one beginning");
    says("age = log time of the recorder");
}

#[test]
fn only_topics_that_are_named_are_read() {
    let (mut recording, result) = read(&robot(None), &[&"odom".to_owned()]);
    assert_eq!(result, Ok(()));
    assert_eq!(recording.rows(Order::Age).iter().map(|row| row.name).collect::<Vec<_>>(), ["odom"]);
}

#[test]
fn the_oldest_topic_comes_first_if_sorted_by_age() {
    let (mut recording, _) = read(&robot(None), &[]);
    let names: Vec<_> = recording.rows(Order::Age).iter().map(|row| row.name).collect();
    assert_eq!(names, ["imu", "odom", "state", "sim", "text"]);
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
    [b"\x89MCAP0\r\n", records, &record(2, &[0; 20])].concat()
}

#[test]
fn chunks_compressed_with_zstd_are_read_and_a_wrong_checksum_is_told() {
    let records = one_message();
    let level = ruzstd::encoding::CompressionLevel::Fastest;
    let compressed = ruzstd::encoding::compress_to_vec(&records[..], level);
    let (recording, result) = read(&whole(&chunk("zstd", &records, &compressed)), &[]);
    assert_eq!(result, Ok(()));
    assert_eq!(recording.topics["imu"].ages_ns, [SECOND_NS as i64]);
    let (_, result) = read(&whole(&chunk("", &records[1..], &records)), &[]);
    assert!(result.unwrap_err().contains("checksum"));
    let (_, result) = read(&whole(&chunk("brotli\u{1b}", &records, &records)), &[]);
    assert_eq!(result.unwrap_err(), "a chunk is compressed with \"brotli\\u{1b}\", not with lz4 or zstd");
}

#[test]
fn a_file_that_is_cut_gives_what_comes_before_and_says_so() {
    for compression in [None, Some(mcap::Compression::Lz4)] {
        let bytes = robot(compression);
        let mut counts = Vec::new();
        for cut in (0..20).map(|part| bytes.len() * part / 20).chain([3, 8, 9, bytes.len() / 2 + 1]) {
            let (recording, result) = read(&bytes[..cut], &[]);
            assert!(result.unwrap_err().contains("ends in the middle"), "{cut} bytes of {}", bytes.len());
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
            let (mut recording, _) = read(&flipped, &[]);
            let rows = recording.rows(Order::Bytes);
            let _ = plain(&rows);
            rows.iter().for_each(|row| drop(row.as_json()));
        }
    }
    let magic = b"\x89MCAP0\r\n";
    for kind in 0..=16 {
        for length in [u64::MAX, u64::MAX / 2, 1 << 40, 1 << 28] {
            let bytes = [&magic[..], &[kind], &length.to_le_bytes()[..], &[0xff; 64]].concat();
            let (recording, result) = read(&bytes, &[]);
            assert!(result.is_err() || kind == 2, "kind {kind}, length {length}");
            assert_eq!(recording.messages, 0);
        }
    }
    let (_, result) = read(b"#ROSBAG V2.0\n", &[]);
    assert!(result.unwrap_err().contains("does not begin"));
}

#[test]
fn names_and_topics_have_limits() {
    let channel = |id: u16, topic: &str| {
        record(4, &[&id.to_le_bytes(), &[0, 0], &named(topic)[..], &named("json"), &[0; 4]].concat())
    };
    let (_, result) = read(&whole(&channel(1, &"n".repeat(2000))), &[]);
    assert!(result.unwrap_err().contains("1024"));
    let many: Vec<u8> = (0..5000).flat_map(|id| channel(id, &format!("t{id}"))).collect();
    let (recording, result) = read(&whole(&many), &[]);
    assert!(result.unwrap_err().contains("4096"));
    assert_eq!(recording.topics.len(), TOPICS_LIMIT);
}
