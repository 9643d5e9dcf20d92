//! A system that runs is recorded, the file is read, and played again.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

use noctule::{Endpoint, Format, Node, Reliability, SourceTime, Subscriber};
use noctule_record::ages;
use noctule_record::alarms::{Alarms, judge};
use noctule_record::check::{Contents, contents};
use noctule_record::ends;
use noctule_record::file::{self, Record};
use noctule_record::player::{Ages, Player, Selection as Choice};
use noctule_record::recorder::{Recorder, Selection};
use noctule_record::schedule::Schedule;
use noctule_record::stamp::Stamp;
use noctule_record::state::{self, SystemState, TopicEnd};
use noctule_record::times::SampleTimes;
use noctule_record::writer::{self, Limits, Recording, Stored};
use noctule_timebase::Span;

/// Nodes of tests that run at once must not meet.
fn domain(offset: u32) -> u32 {
    1000 + std::process::id() % 430 * 8 + offset
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
    alarmed(domain, path, limits, topics, Alarms::default())
}

fn alarmed(domain: u32, path: &Path, limits: Limits, topics: &[&str], alarms: Alarms) -> Recorder {
    let recording = Recording::create(path, limits, writer::Format { lz4: true }).unwrap();
    let topics = topics.iter().map(|topic| (*topic).to_owned()).collect();
    let selection = Selection { topics, queue_bytes_max: 64 << 20 };
    let definition = |_: &Node, _, endpoint: &Endpoint| {
        (endpoint.type_name == "test/msg/Number").then(|| ("ros2msg".into(), "uint64 number\n".into()))
    };
    Recorder::start(node("recorder", domain), recording, selection, Box::new(definition), alarms).unwrap()
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
    // The table of the file has the same, though its summary declares the channel once more.
    let mut recorded = ages::Recording::default();
    recorded.read_path(&path, &[]).unwrap();
    let [(_, aged)] = recorded.topics().collect::<Vec<_>>()[..] else { panic!("one topic") };
    assert_eq!((&aged.stamp, aged.bound_ns()), (&Ok(Stamp::SourceTime), topic.bound_max_ns));
    assert_eq!(aged.age_ns(1, 2), topic.age_p50_ns);
}

#[test]
fn a_recording_names_its_publishers_and_readers() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("robot.mcap");
    let (talker, listener) = (node("talker", domain(5)), node("listener", domain(5)));
    let mut number = talker.publisher("/number").type_name("test/msg/Number", 7).open().unwrap();
    let _reader = listener.subscriber("/number").open().unwrap();
    // Requests more than is offered.
    let picky = node("picky", domain(5));
    let _unmatched = picky.subscriber("/number").reliability(Reliability::Reliable).open().unwrap();
    let own = node("recorder", domain(5));
    until(|| own.endpoints().iter().filter(|known| known.endpoint.topic == "/number").count() == 3);
    let recording = Recording::create(&path, Limits::default(), writer::Format::default()).unwrap();
    let selection = Selection { topics: vec!["/number".into()], queue_bytes_max: 64 << 20 };
    let mut recorder =
        Recorder::start(own, recording, selection, Box::new(|_, _, _| None), Alarms::default()).unwrap();
    until(|| {
        recorder.look();
        number.readers() == 2
    });
    number.publish(b"1").unwrap();
    until(|| recorder.counts()["/number"].recorded == 1);
    recorder.finish().1.unwrap();
    let contents = read(&path);
    let metadata = &contents.channels.values().next().unwrap().metadata;
    let names = |key: &str| {
        ends::read(&metadata[key]).into_iter().map(|end| (end.number, end.name)).collect::<Vec<_>>()
    };
    let end = |node: &Node, name: &str| (node.id().to_string()[..16].to_owned(), name.to_owned());
    assert_eq!(names(ends::PUBLISHERS), [end(&talker, "talker")]);
    assert_eq!(names(ends::SUBSCRIBERS), [end(&listener, "listener")]);
}

/// System states in the file, as far as it is written.
fn states(path: &Path) -> Vec<(u64, SystemState)> {
    let mut states = Vec::new();
    // The file of a recorder that runs has no end.
    let _ = file::read_path(path, &mut |record| {
        if let Record::State(bytes) = record {
            states.push(state::decode(bytes).unwrap());
        }
        Ok(())
    });
    states
}

#[test]
fn a_recording_says_what_the_system_was_and_which_nodes_came_later() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("robot.mcap");
    let talker = node("talker", domain(6));
    let mut number = talker.publisher("/number").open().unwrap();
    let mut recorder = recorder(domain(6), &path, Limits::default(), &[]);
    until(|| {
        recorder.look();
        number.readers() == 1
    });
    until(|| {
        number.publish(b"1").unwrap();
        !states(&path).is_empty()
    });
    let late = node("late", domain(6));
    let _reader = late.subscriber("/number").open().unwrap();
    let _picky = late.subscriber("/number").reliability(Reliability::Reliable).open().unwrap();
    let is_late =
        |end: &TopicEnd| (end.topic.as_str(), end.publishes, end.name.as_str()) == ("/number", false, "late");
    until(|| {
        number.publish(b"1").unwrap();
        states(&path).iter().any(|(_, state)| state.ends.iter().any(is_late) && !state.mismatches.is_empty())
    });
    recorder.finish().1.unwrap();
    let (contents, states) = (read(&path), states(&path));
    let (first_ns, last_ns) = (contents.first_log_ns.unwrap(), contents.last_log_ns.unwrap());
    assert!(
        states.iter().all(|(log_ns, _)| (first_ns..last_ns + 1_000_000_000).contains(log_ns)),
        "{states:?}"
    );
    let talking = |end: &TopicEnd| end.publishes && end.number == talker.id().to_string()[..16];
    // Each is written once a minute.
    assert_eq!(states.iter().flat_map(|(_, state)| &state.ends).filter(|end| talking(end)).count(), 1);
    let last = &states.last().unwrap().1;
    let known = last.nodes.iter().find(|node| node.name == "talker").unwrap();
    assert!(known.same_host && known.clock.is_none() && known.answers.unwrap() > 0, "{known:?}");
    assert!(last.mismatches[0].why.contains("reliable"), "{:?}", last.mismatches);
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

/// Times of a sample that was never published.
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
        let result = player.play(&path, &schedule, &mut |due_ns| {
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

/// An alarm keeps the files that led to it, the sample that set it off included, and a check of the file says the same.
#[test]
fn an_alarm_keeps_what_led_to_it_and_the_file_says_so_too() {
    const OLD: &str = "[[alarms]]\ntopic = '/odom'\nage_above_ms = 500\nfor_seconds = 0\n";
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ring.mcap");
    let limits = Limits { keep_ns: Some(1), ..Limits::default() };
    let talker = node("talker", domain(4));
    let mut odometry = talker.publisher("/odom").reliability(Reliability::Reliable).open().unwrap();
    let mut recorder = alarmed(domain(4), &path, limits, &["/odom"], Alarms::parse(OLD).unwrap());
    until(|| recorder.look().is_empty() && odometry.readers() == 1);
    let now = talker.now();
    odometry.publish_at(b"old", now - Span::from_ms(2_000)).unwrap();
    let mut fired = None;
    until(|| {
        fired = fired.take().or_else(|| recorder.poll_alarm());
        fired.is_some()
    });
    assert_eq!(fired.map(|alarm| alarm.to_string()).as_deref(), Some("age of /odom above 500 ms for 0 s"));
    // Files after that one are removed, but not that one.
    until(|| {
        path.with_extension("1.mcap").exists() || {
            odometry.publish(b"more").unwrap();
            false
        }
    });
    let (_, ended) = recorder.finish();
    ended.unwrap();
    let kept = read(&path);
    assert!(kept.channels.values().any(|topic| topic.topic == "/odom" && topic.messages > 0));
    let (judged, read) = judge(&path, Alarms::parse(OLD).unwrap());
    assert_eq!((read, judged.len()), (Ok(()), 1));
    assert_eq!((judged[0].times, judged[0].first_after_ns, judged[0].unknown), (1, Some(0), None));
    let (judged, _) = judge(&path, Alarms::parse(&OLD.replace("/odom", "/none")).unwrap());
    assert!(judged[0].times == 0 && judged[0].unknown.is_some());
}
