use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use proptest::prelude::*;
use rusqlite::Connection;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use tempfile::TempDir;

use super::*;
use crate::check::{Contents, RecordedTopic, contents_at};
use crate::times::SampleTimes;
use crate::writer;

/// As rosbag2 makes them: Foxy's without and with QoS, and Jazzy's.
const FIRST: &str = "CREATE TABLE topics(id INTEGER PRIMARY KEY,name TEXT NOT NULL,type TEXT NOT NULL,serialization_format TEXT NOT NULL);";
const WITH_QOS: &str = "CREATE TABLE topics(id INTEGER PRIMARY KEY,name TEXT NOT NULL,type TEXT NOT NULL,serialization_format TEXT NOT NULL,\
     offered_qos_profiles TEXT NOT NULL);";
const NEWEST: &str = "CREATE TABLE schema(schema_version INTEGER PRIMARY KEY,ros_distro TEXT NOT NULL);\
     CREATE TABLE metadata(id INTEGER PRIMARY KEY,metadata_version INTEGER NOT NULL,metadata TEXT NOT NULL);\
     CREATE TABLE topics(id INTEGER PRIMARY KEY,name TEXT NOT NULL,type TEXT NOT NULL,serialization_format TEXT NOT NULL,\
     offered_qos_profiles TEXT NOT NULL,type_description_hash TEXT NOT NULL);\
     CREATE TABLE message_definitions(id INTEGER PRIMARY KEY,topic_type TEXT NOT NULL,encoding TEXT NOT NULL,\
     encoded_message_definition TEXT NOT NULL,type_description_hash TEXT NOT NULL);";
const MESSAGES: &str = "CREATE TABLE messages(id INTEGER PRIMARY KEY,topic_id INTEGER NOT NULL,timestamp INTEGER NOT NULL,data BLOB NOT NULL);\
     CREATE INDEX timestamp_idx ON messages(timestamp ASC);";

/// Packs the bytes of a message, e.g. compresses them.
type Pack = fn(&[u8]) -> Vec<u8>;

/// A folder with a bag in the making.
struct Bench {
    folder: TempDir,
}

impl Bench {
    fn new() -> Bench {
        Bench { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A database with topics `/a` and `/b`, numbered from `first`; `/b` has as many messages as `/a`, a second each.
    fn database(&self, name: &str, topics: &str, first: i64, pack: Pack) -> Connection {
        let connection = Connection::open(self.path(name)).unwrap();
        // A test needs no disk.
        connection.execute_batch("PRAGMA synchronous=OFF; PRAGMA journal_mode=MEMORY;").unwrap();
        connection.execute_batch(&format!("{topics}{MESSAGES}")).unwrap();
        let more = match topics {
            FIRST => "",
            WITH_QOS => ",'- reliability: 1'",
            _ => ",'- reliability: reliable','RIHS01_ab'",
        };
        let mut text = String::new();
        for (at, topic, kind) in
            [(first, "/a", "std_msgs/msg/String"), (first + 1, "/b", "sensor_msgs/msg/Imu")]
        {
            writeln!(text, "INSERT INTO topics VALUES({at},'{topic}','{kind}','cdr'{more});").unwrap();
        }
        if topics == NEWEST {
            text += "INSERT INTO message_definitions(topic_type,encoding,encoded_message_definition,type_description_hash) \
                 VALUES('std_msgs/msg/String','ros2msg','string data','RIHS01_ab'),('sensor_msgs/msg/Imu','unknown','','');";
        }
        connection.execute_batch(&text).unwrap();
        // The later is written first.
        for index in [1_i64, 0, 2] {
            for (at, topic) in [(first, b"a"), (first + 1, b"b")] {
                let data = pack(&[&topic[..], &[index as u8; 9]].concat());
                let values = rusqlite::params![at, (1_000 + index) * 1_000_000_000, data];
                let insert = "INSERT INTO messages(topic_id,timestamp,data) VALUES(?1,?2,?3)";
                connection.execute(insert, values).unwrap();
            }
        }
        connection
    }

    fn metadata(&self, files: &[&str], more: &str) {
        let mut text = "rosbag2_bagfile_information:\n  version: 5\n  storage_identifier: sqlite3\n  relative_file_paths:\n".to_owned();
        files.iter().for_each(|file| writeln!(text, "    - {file}").unwrap());
        text += "  duration:\n    nanoseconds: 2\n  message_count: 6\n  topics_with_message_count: []\n";
        fs::write(self.path(METADATA), text + more).unwrap();
    }
}

fn plain(bytes: &[u8]) -> Vec<u8> {
    bytes.to_vec()
}

fn packed(bytes: &[u8]) -> Vec<u8> {
    compress_to_vec(bytes, CompressionLevel::Fastest)
}

/// Checks that the file holds two topics of three messages each, `times` times.
fn whole(path: &Path, times: u64) -> Contents {
    let (contents, result) = contents_at(path);
    assert_eq!(result, Ok(()), "{}", path.display());
    let found: Vec<_> = contents.channels.values().map(|of| (&*of.topic, of.messages, of.bytes)).collect();
    assert_eq!(found, [("/a", 3 * times, 30 * times), ("/b", 3 * times, 30 * times)], "{}", path.display());
    assert_eq!(
        (contents.first_log_ns, contents.last_log_ns),
        (Some(1_000_000_000_000), Some(1_002_000_000_000))
    );
    contents
}

fn refusal(path: &Path) -> String {
    contents_at(path).1.unwrap_err().to_string()
}

#[test]
fn databases_of_each_version_are_read_by_time() {
    for (topics, with_definition) in [(FIRST, false), (WITH_QOS, false), (NEWEST, true)] {
        let bench = Bench::new();
        // A name that an address must escape.
        let name = "a bag? 100%#.db3";
        drop(bench.database(name, topics, 7, plain));
        let contents = whole(&bench.path(name), 1);
        assert_eq!(contents.out_of_order, 0);
        let [a, b] = contents.channels.values().collect::<Vec<_>>()[..] else { panic!("{contents:?}") };
        assert_eq!((&*a.type_name, &*a.encoding), ("std_msgs/msg/String", "cdr"));
        assert_eq!((a.has_definition, b.has_definition), (with_definition, false));
        assert_eq!(a.metadata.contains_key("offered_qos_profiles"), topics != FIRST);
        assert_eq!(a.metadata.contains_key("topic_type_hash"), topics == NEWEST);
        let mut order = Vec::new();
        let mut take = |record: Record<'_>| {
            if let Record::Message { sequence, payload, .. } = record {
                order.push((sequence, payload[0], payload[1]));
            }
            Ok(())
        };
        crate::file::read_path(&bench.path(name), &mut take).unwrap();
        assert_eq!(
            order,
            [(0, b'a', 0), (0, b'b', 0), (1, b'a', 1), (1, b'b', 1), (2, b'a', 2), (2, b'b', 2)]
        );
    }
}

#[test]
fn several_files_are_one_bag_whatever_their_numbers() {
    let bench = Bench::new();
    drop(bench.database("x_0.db3", NEWEST, 1, plain));
    drop(bench.database("x_1.db3", NEWEST, 2, plain));
    // The first versions put the folder in front.
    bench.metadata(&["x/x_0.db3", "x/x_1.db3"], "  compression_format: \"\"\n  compression_mode: \"\"\n");
    let contents = whole(bench.folder.path(), 2);
    assert_eq!(contents.out_of_order, 4, "all of the second but those of the time at which the first ends");
    whole(&bench.path("x_1.db3"), 1);
    assert!(crate::file::is_recording(bench.folder.path().to_str().unwrap()));
    fs::remove_file(bench.path("x_1.db3")).unwrap();
    assert!(refusal(bench.folder.path()).starts_with("x_1.db3: it cannot be opened: No such file"));
}

#[test]
fn compressed_messages_and_compressed_files_are_unpacked() {
    let bench = Bench::new();
    drop(bench.database("m.db3", WITH_QOS, 1, packed));
    bench.metadata(&["m.db3"], "  compression_format: zstd\n  compression_mode: MESSAGE\n");
    whole(bench.folder.path(), 1);
    whole(&bench.path("m.db3"), 1);
    bench.metadata(&["m.db3"], "  compression_format: fake_comp\n  compression_mode: message\n");
    assert!(refusal(bench.folder.path()).contains("\"fake_comp\""));

    let bench = Bench::new();
    drop(bench.database("f.db3", NEWEST, 1, plain));
    fs::write(bench.path("f.db3.zstd"), packed(&fs::read(bench.path("f.db3")).unwrap())).unwrap();
    bench.metadata(&["f.db3.zstd"], "  compression_format: zstd\n  compression_mode: FILE\n");
    whole(bench.folder.path(), 1);
    whole(&bench.path("f.db3.zstd"), 1);

    // Without a file beside it, the database says it itself; what is no metadata says nothing.
    let said = "{relative_file_paths: [m.db3], compression_format: zstd, compression_mode: MESSAGE}";
    let outer = format!("rosbag2_bagfile_information: {said}");
    let cases: [(&str, Pack); 4] = [(said, packed), (&outer, packed), ("{}", plain), ("[", plain)];
    for (said, pack) in cases {
        let bench = Bench::new();
        let connection = bench.database("m.db3", NEWEST, 1, pack);
        connection.execute("INSERT INTO metadata(metadata_version,metadata) VALUES(9,?1)", [said]).unwrap();
        drop(connection);
        whole(&bench.path("m.db3"), 1);
    }
}

/// Recordings of our own in a bag's folder keep their source times and bounds, though each file numbers its topics anew.
#[test]
fn source_times_of_several_files_are_kept() {
    let bench = Bench::new();
    for (name, topics) in [("x_0.mcap", ["/a", "/b"]), ("x_1.mcap", ["/b", "/a"])] {
        let (limits, format) = (writer::Limits::default(), writer::Format::default());
        let mut recording = writer::Recording::create(&bench.path(name), limits, format).unwrap();
        for (number, topic) in topics.into_iter().enumerate() {
            let encoding = "cdr".to_owned();
            let topic =
                recording.add_topic(writer::Topic { name: topic.into(), encoding, ..Default::default() });
            let times = SampleTimes {
                channel: 0,
                has_source_time: true,
                sequence: 0,
                publisher: [1; 8],
                publisher_sequence: 1,
                missed: 0,
                bound_ns: Some(if topics[number] == "/a" { 7 } else { 9 }),
                sigma_ns: None,
            };
            let stored = writer::Stored { topic, log_ns: 10, publish_ns: 5, times };
            recording.write(&[(stored, vec![number as u8])]).unwrap();
        }
        recording.finish().unwrap();
    }
    bench.metadata(&["x_0.mcap", "x_1.mcap"], "");
    let (contents, result) = contents_at(bench.folder.path());
    assert_eq!(result, Ok(()));
    let found: Vec<_> = contents.channels.values().collect();
    let figures = |of: &RecordedTopic| (of.topic.clone(), of.messages, of.with_bound, of.bound_max_ns);
    let figures: Vec<_> = found.into_iter().map(figures).collect();
    assert_eq!(figures, [("/a".to_owned(), 2, 2, Some(7)), ("/b".to_owned(), 2, 2, Some(9))]);
}

/// A recorder that was killed leaves a log of what is not merged yet.
#[test]
fn what_was_not_merged_yet_is_read() {
    let bench = Bench::new();
    drop(bench.database("whole.db3", NEWEST, 1, plain));
    let connection = Connection::open(bench.path("whole.db3")).unwrap();
    connection.pragma_update(None, "journal_mode", "WAL").unwrap();
    let late = "INSERT INTO messages(topic_id,timestamp,data) VALUES(1,2000000000000,x'0102')";
    connection.execute(late, ()).unwrap();
    for end in ["", "-wal"] {
        fs::copy(bench.path(&format!("whole.db3{end}")), bench.path(&format!("killed.db3{end}"))).unwrap();
    }
    let (contents, result) = contents_at(&bench.path("killed.db3"));
    assert_eq!(result, Ok(()));
    assert_eq!(contents.channels.values().map(|topic| topic.messages).sum::<u64>(), 7);
}

#[test]
fn what_is_no_bag_is_refused_with_a_sentence() {
    let bench = Bench::new();
    assert!(refusal(bench.folder.path()).contains("without metadata.yaml"));
    assert!(refusal(&bench.path("none.db3")).starts_with("it cannot be opened"));
    Connection::open(bench.path("other.db3")).unwrap().execute_batch("CREATE TABLE topics(id)").unwrap();
    assert!(refusal(&bench.path("other.db3")).contains("without the tables"));
    fs::write(bench.path(METADATA), "rosbag2_bagfile_information: [").unwrap();
    assert!(refusal(bench.folder.path()).contains("metadata.yaml"));

    let made = |name: &str, sql: &str| {
        let connection = Connection::open(bench.path(name)).unwrap();
        connection
            .execute_batch(&format!("{FIRST}INSERT INTO topics VALUES(1,'/a','t','cdr');{sql}"))
            .unwrap();
        refusal(&bench.path(name))
    };
    let endless = "CREATE VIEW messages AS WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM r) \
         SELECT n AS id, 1 AS topic_id, n AS timestamp, x'00' AS data FROM r";
    assert!(made("view.db3", endless).contains("without the tables"));
    let row = "INSERT INTO messages(topic_id,timestamp,data) VALUES";
    assert!(made("topic.db3", &format!("{MESSAGES}{row}(9,1,x'00')")).contains("names topic 9"));
    assert!(made("time.db3", &format!("{MESSAGES}{row}(1,-1,x'00')")).contains("no time since 1970"));
    assert!(made("data.db3", &format!("{MESSAGES}{row}(1,1,17)")).contains("no bytes"));
    let swollen = "CREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id, timestamp, data AS (zeroblob(1000000)));\
         INSERT INTO messages(topic_id,timestamp) VALUES(1,1)";
    assert!(made("swollen.db3", swollen).contains("longer than the file"));
    let huge = "CREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id, timestamp, data AS (zeroblob(300000000)));\
         INSERT INTO messages(topic_id,timestamp) VALUES(1,1)";
    assert!(made("huge.db3", huge).contains("more than 268435456 bytes"));
}

#[test]
fn a_bag_that_is_cut_gives_what_comes_before() {
    let bench = Bench::new();
    let connection = bench.database("whole.db3", NEWEST, 1, plain);
    connection.execute_batch("BEGIN").unwrap();
    for index in 0..500_i64 {
        let insert = "INSERT INTO messages(topic_id,timestamp,data) VALUES(1,?1,zeroblob(200))";
        connection.execute(insert, [2_000_000_000_000 + index]).unwrap();
    }
    connection.execute_batch("COMMIT").unwrap();
    drop(connection);
    let bytes = fs::read(bench.path("whole.db3")).unwrap();
    let mut most = 0;
    for cut in (8..bytes.len()).step_by(999) {
        fs::write(bench.path("cut.db3"), &bytes[..cut]).unwrap();
        let (contents, result) = contents_at(&bench.path("cut.db3"));
        assert!(result.is_err(), "{cut} of {} bytes", bytes.len());
        most = most.max(contents.channels.values().map(|topic| topic.messages).sum());
    }
    assert!((400..506).contains(&most), "{most} of 506 messages");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn flipped_bytes_are_read_or_refused(
        flips in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..40),
    ) {
        let bench = Bench::new();
        drop(bench.database("a.db3", NEWEST, 1, plain));
        let mut file = fs::read(bench.path("a.db3")).unwrap();
        for (at, value) in flips {
            let at = at.index(file.len());
            file[at] = value;
        }
        fs::write(bench.path("a.db3"), &file).unwrap();
        let (contents, _) = contents_at(&bench.path("a.db3"));
        let bytes: u64 = contents.channels.values().map(|topic| topic.bytes).sum();
        prop_assert!(bytes <= file.len() as u64);
    }

    #[test]
    fn any_metadata_are_read_or_refused(text in "(?s).{0,200}") {
        let _ = Information::parse(&text);
        let _ = Information::parse(&format!("rosbag2_bagfile_information:\n  {text}"));
    }
}
