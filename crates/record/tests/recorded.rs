//! A system that runs is recorded, the file is read, and played again.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

use noctule::{Endpoint, Format, Node, Reliability, SourceTime, Subscriber};
use noctule_record::check::{Contents, contents};
use noctule_record::player::{Ages, Player, Selection as Choice};
use noctule_record::recorder::{Recorder, Selection};
use noctule_record::schedule::Schedule;
use noctule_record::times::SampleTimes;
use noctule_record::writer::{self, Limits, Recording, Stored};
use noctule_timebase::Span;

/// Nodes of tests that run at once must not meet.
fn domain(offset: u32) -> u32 {
    1000 + std::process::id() % 1000 * 4 + offset
}

fn node(name: &str, domain: u32) -> Node {
    Node::builder(name).domain(domain).keep_notices().open().unwrap()
}

/// Turns until something is so; long enough for a machine with much else to do.
fn until(mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < end, "it did not come about in a minute");
        std::thread::yield_now();
    }
}

fn read(path: &Path) -> Contents {
    let (contents, result) = contents(File::open(path).unwrap());
    assert_eq!(result, Ok(()));
    contents
}

fn recorder(domain: u32, path: &Path, limits: Limits, topics: &[&str]) -> Recorder {
    let recording = Recording::create(path, limits, writer::Format { lz4: true }).unwrap();
    let topics = topics.iter().map(|topic| (*topic).to_owned()).collect();
    let selection = Selection { topics, queue_bytes_max: 64 << 20 };
    let definition = |_: &Node, _, endpoint: &Endpoint| {
        (endpoint.type_name == "test/msg/Number").then(|| ("ros2msg".into(), "uint64 number\n".into()))
    };
    Recorder::start(node("recorder", domain), recording, selection, Box::new(definition)).unwrap()
}

#[test]
fn every_sample_is_in_the_file_with_its_source_time_and_bound() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("robot.mcap");
    let talker = node("talker", domain(0));
    let builder = talker.publisher("/number").type_name("test/msg/Number", 7).format(Format::Cdr);
    let mut numbers = builder.reliability(Reliability::Reliable).keep_last(64).open().unwrap();
    let mut other = talker.publisher("/other").open().unwrap();
    let mut recorder = recorder(domain(0), &path, Limits::default(), &["/num*"]);
    until(|| {
        assert_eq!(recorder.look(), Vec::<String>::new());
        numbers.readers() == 1
    });
    for number in 0_u64..200 {
        let time = talker.now() - Span::from_ms(30);
        let source = SourceTime { time, bound: Some(Span::from_us(5)), sigma: Some(Span::from_us(1)) };
        numbers.publish_uncertain(&number.to_le_bytes(), source).unwrap();
        other.publish(b"not recorded").unwrap();
        until(|| recorder.counts()["/number"].recorded > number);
    }
    let (counts, ended) = recorder.finish();
    ended.unwrap();
    assert_eq!((counts.len(), counts["/number"].recorded, counts["/number"].missed), (1, 200, 0));
    let contents = read(&path);
    let [topic] = contents.channels.values().collect::<Vec<_>>()[..] else { panic!("one channel") };
    assert_eq!((topic.topic.as_str(), topic.encoding.as_str(), topic.messages), ("/number", "cdr", 200));
    assert_eq!((topic.type_name.as_str(), topic.has_definition), ("test/msg/Number", true));
    assert_eq!((topic.with_source_time, topic.with_bound, topic.publishers), (200, 200, 1));
    // Rounded up to what eleven bits can say.
    assert!((5_000..5_010).contains(&topic.bound_max_ns.unwrap()));
    assert!(topic.age_p50_ns.unwrap() >= 30_000_000);
    assert_eq!(topic.metadata["noctule_reliability"], "reliable");
}

#[test]
fn a_recorder_that_ends_by_an_error_counts_what_it_did_not_write() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("robot.mcap");
    // The second file of the recording cannot be made.
    std::fs::write(path.with_extension("1.mcap"), b"mine").unwrap();
    let talker = node("talker", domain(3));
    let mut numbers = talker.publisher("/number").keep_last(512).open().unwrap();
    let limits = Limits { segment_bytes: Some(1), ..Limits::default() };
    let mut recorder = recorder(domain(3), &path, limits, &[]);
    until(|| {
        assert_eq!(recorder.look(), Vec::<String>::new());
        numbers.readers() == 1
    });
    let mut published = 0_u64;
    until(|| {
        numbers.publish(&published.to_le_bytes()).unwrap();
        published += 1;
        let count = recorder.counts()["/number"];
        until(|| {
            let count = recorder.counts()["/number"];
            count.recorded + count.missed + count.not_written == published
        });
        recorder.has_failed() && count.not_written > 0
    });
    let (counts, ended) = recorder.finish();
    assert!(ended.unwrap_err().to_string().contains("exists; name another file"));
    let (contents, _) = contents(File::open(&path).unwrap());
    let in_file = contents.channels.values().map(|topic| topic.messages).sum::<u64>();
    let count = counts["/number"];
    assert!(in_file > 0 && count.not_written > 0, "{count:?}");
    assert_eq!((count.recorded, count.bytes), (in_file, 8 * in_file));
    assert_eq!(count.recorded + count.missed + count.left_out + count.not_written, published);
    assert_eq!(std::fs::read(path.with_extension("1.mcap")).unwrap(), b"mine");
}

const SECOND_NS: u64 = 1_000_000_000;
const START_NS: u64 = 1_800_000_000 * SECOND_NS;

/// Times of a sample that nobody published.
fn times(has_source_time: bool) -> SampleTimes {
    SampleTimes {
        channel: 0,
        has_source_time,
        sequence: 0,
        publisher: [1; 8],
        publisher_sequence: 1,
        missed: 0,
        bound_ns: has_source_time.then_some(1_000),
        sigma_ns: has_source_time.then_some(100),
    }
}

/// 200 numbers, one a second and 40 ms old, by turns of `/a` and `/b`.
fn numbers(path: &Path) -> Contents {
    let mut recording = Recording::create(path, Limits::default(), writer::Format::default()).unwrap();
    let reliable = [("noctule_reliability", "reliable"), ("noctule_keep_last", "500")];
    let metadata = reliable.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let topics = ["/a", "/b"].map(|name| {
        recording.add_topic(writer::Topic {
            name: name.into(),
            encoding: "bytes".into(),
            metadata: metadata.clone().into(),
            ..writer::Topic::default()
        })
    });
    for chunk in 0..10_u64 {
        let messages = (chunk * 20..chunk * 20 + 20).map(|number| {
            let log_ns = START_NS + number * SECOND_NS;
            let topic = topics[(number % 2) as usize];
            let stored = Stored { topic, log_ns, publish_ns: log_ns - 40_000_000, times: times(true) };
            (stored, number.to_le_bytes().to_vec())
        });
        recording.write(&messages.collect::<Vec<_>>()).unwrap();
    }
    recording.finish().unwrap();
    read(path)
}

/// Takes what is there; each sample is at least as old as it was when it was recorded, with its bound.
fn take(subscribers: &mut [Subscriber], numbers: &mut Vec<u64>) {
    for subscriber in subscribers {
        while let Some(sample) = subscriber.take().unwrap() {
            let age = sample.age().unwrap();
            assert!(age.span >= Span::from_ms(40), "{age:?}");
            assert!(age.bound.unwrap() >= Span::from_us(1), "{age:?}");
            numbers.push(u64::from_le_bytes(sample.to_vec().try_into().unwrap()));
        }
    }
}

#[test]
fn a_play_publishes_the_same_samples_in_the_same_order_with_their_ages() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("made.mcap");
    let contents = numbers(&path);
    let (player, listener) = (node("player", domain(1)), node("listener", domain(1)));
    let mut subscribers = [listener.subscriber("/a"), listener.subscriber("/c")]
        .map(|builder| builder.reliability(Reliability::Reliable).open().unwrap());
    let remap = [("/b".to_owned(), "/c".to_owned())].into();
    let choice = Choice { topics: Vec::new(), remap, ages: Ages::Preserved };
    let mut player = Player::open(&player, &contents, &choice).unwrap();
    until(|| player.matched() == (2, 2));
    assert_eq!(contents.first_log_ns, Some(START_NS));
    let (from_ns, to_ns) = (10 * SECOND_NS, Some(190 * SECOND_NS));
    let schedule = Schedule { rate: 2.0, start_ns: START_NS, from_ns, to_ns };
    for round in 1..=2 {
        let (mut due, mut numbers) = (Vec::new(), Vec::new());
        let result = player.play(File::open(&path).unwrap(), &schedule, &mut |due_ns| {
            take(&mut subscribers, &mut numbers);
            due.push(due_ns);
            true
        });
        result.unwrap();
        assert_eq!((player.played()["/a"], player.played()["/c"]), (90 * round, 90 * round));
        until(|| {
            take(&mut subscribers, &mut numbers);
            numbers.len() == 180
        });
        let expected: Vec<u64> = (0..180).map(|index| index * SECOND_NS / 2).collect();
        assert_eq!(due, expected);
        // Both topics are polled in turn, so the order within a pair is the listener's.
        let is_in_order = |parity| numbers.iter().filter(|number| **number % 2 == parity).is_sorted();
        assert!(is_in_order(0) && is_in_order(1), "{numbers:?}");
        numbers.sort_unstable();
        assert_eq!(numbers, (10..190).collect::<Vec<u64>>());
    }
}

#[test]
fn files_are_split_by_size_and_the_oldest_are_removed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("long.mcap");
    let limits = Limits { segment_bytes: None, segment_ns: None, keep_ns: Some(80) };
    let mut recording = Recording::create(&path, limits, writer::Format::default()).unwrap();
    let topic = recording.add_topic(writer::Topic { name: "/t".into(), ..writer::Topic::default() });
    for log_ns in 0..1_000 {
        let stored = Stored { topic, log_ns, publish_ns: log_ns, times: times(false) };
        recording.write(&[(stored, vec![0; 10])]).unwrap();
    }
    recording.finish().unwrap();
    let mut kept: Vec<Contents> =
        std::fs::read_dir(directory.path()).unwrap().map(|entry| read(&entry.unwrap().path())).collect();
    kept.sort_by_key(|contents| contents.first_log_ns);
    assert_eq!(kept.last().unwrap().last_log_ns, Some(999));
    let first_ns = kept[0].first_log_ns.unwrap();
    assert!((1_000 - 120..=1_000 - 80).contains(&first_ns), "from {first_ns}");
    let messages: u64 =
        kept.iter().flat_map(|contents| contents.channels.values()).map(|topic| topic.messages).sum();
    assert_eq!(messages, 1_000 - first_ns, "no gap between the files");
    assert!(Recording::create(&path.with_extension("999.mcap"), limits, writer::Format::default()).is_ok());
}

#[test]
fn a_topic_that_the_file_does_not_have_is_named() {
    let contents = Contents::default();
    let player = node("player", domain(2));
    let choice = Choice { topics: vec!["/x".into()], remap: [].into(), ages: Ages::Renewed };
    let error = Player::open(&player, &contents, &choice).unwrap_err().to_string();
    assert!(error.contains("no topic /x"), "{error}");
}
