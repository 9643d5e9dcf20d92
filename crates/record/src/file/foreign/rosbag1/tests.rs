use std::io::Write;

use proptest::prelude::*;

use super::*;
use crate::check::contents;

fn fields(pairs: &[(&str, &[u8])]) -> Vec<u8> {
    let field = |(name, value): &(&str, &[u8])| {
        [&((name.len() + 1 + value.len()) as u32).to_le_bytes()[..], name.as_bytes(), b"=", value].concat()
    };
    pairs.iter().flat_map(field).collect()
}

fn record(header: &[(&str, &[u8])], data: &[u8]) -> Vec<u8> {
    let header = fields(header);
    let length = |bytes: &[u8]| (bytes.len() as u32).to_le_bytes();
    [&length(&header)[..], &header, &length(data), data].concat()
}

fn connection(number: u32, topic: &str) -> Vec<u8> {
    let data = fields(&[
        ("topic", topic.as_bytes()),
        ("type", b"std_msgs/String"),
        ("message_definition", b"string data\n"),
        ("latching", b"1"),
    ]);
    record(&[("op", &[CONNECTION]), ("conn", &number.to_le_bytes()), ("topic", topic.as_bytes())], &data)
}

fn message(number: u32, seconds: u32, payload: &[u8]) -> Vec<u8> {
    let time = [seconds.to_le_bytes(), 5_u32.to_le_bytes()].concat();
    record(&[("op", &[MESSAGE]), ("conn", &number.to_le_bytes()), ("time", &time)], payload)
}

fn chunk(compression: &str, records: &[u8]) -> Vec<u8> {
    let packed = match compression {
        "bz2" => {
            let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
            encoder.write_all(records).unwrap();
            encoder.finish().unwrap()
        }
        "lz4" => {
            let mut encoder = lz4::EncoderBuilder::new().build(Vec::new()).unwrap();
            encoder.write_all(records).unwrap();
            encoder.finish().0
        }
        _ => records.to_vec(),
    };
    let size = (records.len() as u32).to_le_bytes();
    record(&[("op", &[CHUNK]), ("compression", compression.as_bytes()), ("size", &size)], &packed)
}

fn bag(compression: &str) -> Vec<u8> {
    let records =
        [connection(0, "/a"), message(0, 10, b"one"), connection(1, "/b"), message(1, 11, b"two!")].concat();
    [
        &b"#ROSBAG V2.0\n"[..],
        &record(&[("op", &[3]), ("index_pos", &[0; 8])], &[b' '; 100]),
        &chunk(compression, &records),
        // The index, and the connections again.
        &record(&[("op", &[4]), ("conn", &[0; 4])], &[0; 12]),
        &chunk(compression, &[connection(0, "/a"), message(0, 12, b"three")].concat()),
        &connection(0, "/a"),
    ]
    .concat()
}

#[test]
fn bags_are_read_in_each_compression() {
    for compression in ["none", "bz2", "lz4"] {
        let bag = bag(compression);
        let (contents, result) = contents(&bag[..]);
        assert_eq!(result, Ok(()), "{compression}");
        let [a, b] = contents.channels.values().collect::<Vec<_>>()[..] else { panic!("{contents:?}") };
        assert_eq!((a.topic.as_str(), a.messages, a.bytes, a.longest_bytes), ("/a", 2, 8, 5));
        assert_eq!((a.first_log_ns, a.last_log_ns), (10_000_000_005, 12_000_000_005));
        assert_eq!(
            (a.type_name.as_str(), a.encoding.as_str(), a.has_definition),
            ("std_msgs/String", "ros1", true)
        );
        assert_eq!(a.metadata["noctule_durability"], "transient_local");
        assert_eq!((b.topic.as_str(), b.messages, b.bytes), ("/b", 1, 4));
    }
}

#[test]
fn what_is_damaged_is_refused_with_a_sentence() {
    let read = |file: &[u8]| contents(file).1.map_err(|error| error.to_string());
    assert!(read(b"#ROSBAG V1.2\nx").unwrap_err().contains("rosbag migrate"));
    assert!(read(b"SQLite format 3\0").unwrap_err().contains("by its path"));
    let begun = |rest: &[u8]| [&b"#ROSBAG V2.0\n"[..], rest].concat();
    assert!(read(&begun(&message(9, 1, b""))).unwrap_err().contains("connection 9"));
    assert!(read(&begun(&chunk("snappy", b""))).unwrap_err().contains("snappy"));
    assert!(read(&begun(&[0xff; 8])).unwrap_err().contains("header of a record"));
    let nested = chunk("none", &chunk("none", b""));
    assert!(read(&begun(&nested)).unwrap_err().contains("chunk lies in a chunk"));
}

#[test]
fn a_bag_that_is_cut_anywhere_gives_what_comes_before() {
    for compression in ["none", "bz2", "lz4"] {
        let whole = bag(compression);
        let mut found = 0;
        for cut in 8..whole.len() {
            let (contents, result) = contents(&whole[..cut]);
            let messages: u64 = contents.channels.values().map(|topic| topic.messages).sum();
            assert!(
                messages >= found && matches!(result, Ok(()) | Err(FileError::Cut)),
                "{compression} {cut}: {result:?}"
            );
            found = messages;
        }
        assert_eq!(found, 3);
    }
}

proptest! {
    #[test]
    fn flipped_bytes_are_read_or_refused(
        compression in 0..3_usize,
        flips in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut file = bag(["none", "bz2", "lz4"][compression]);
        for (at, value) in flips {
            let at = at.index(file.len());
            file[at] = value;
        }
        let _ = contents(&file[..]);
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = contents(&[&b"#ROSBAG V2.0\n"[..], &bytes].concat()[..]);
    }
}
