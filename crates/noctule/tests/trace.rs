//! `NOCTULE_TRACE=FILE`: the file of a process that publishes and receives by UDP.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests and what they share

use std::process::Command;
use std::time::Duration;

use noctule::clock::LocalClock;
use noctule::{Node, NodeError, Reliability};

const SAMPLES: u32 = 50;

/// Run by the tests below in a process of its own, because its environment is the process's.
#[test]
#[ignore = "the other tests of this file start it"]
fn two_nodes_exchange_samples() {
    let domain = 2000 + std::process::id() % 2000;
    let open = |name: &str, clock: &str| {
        let clock: LocalClock = clock.parse().unwrap();
        Node::builder(name).domain(domain).clock(clock).keep_notices().without_shared_memory().open()
    };
    let (a, b) = match (open("a", "offset=3s"), open("b", "")) {
        (Ok(a), Ok(b)) => (a, b),
        (Err(error @ NodeError::Trace { .. }), _) => {
            println!("{error}");
            return;
        }
        other => panic!("{other:?}"),
    };
    let mut publisher =
        a.publisher("pose").reliability(Reliability::Reliable).keep_last(SAMPLES).open().unwrap();
    let subscriber = b.subscriber("pose").reliability(Reliability::Reliable).keep_last(SAMPLES);
    let mut subscriber = subscriber.open().unwrap();
    while publisher.readers() == 0 || subscriber.publishers() == 0 {
        subscriber.wait(Some(Duration::from_millis(5)));
    }
    for number in 0..SAMPLES {
        publisher.publish(&number.to_le_bytes()).unwrap();
    }
    let mut received = 0;
    while received < SAMPLES {
        subscriber.wait(Some(Duration::from_millis(20)));
        while subscriber.take().unwrap().is_some() {
            received += 1;
        }
    }
}

/// Runs the exchange; gives what it printed.
fn exchange(trace: &str) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", "two_nodes_exchange_samples", "--nocapture"]);
    let output = command.env("NOCTULE_TRACE", trace).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

#[test]
fn the_file_holds_every_sample_from_its_sending_to_its_delivery() {
    let directory = tempfile::tempdir().unwrap();
    exchange(&format!("{}/trace-%p.sqlog", directory.path().display()));
    let files: Vec<_> =
        std::fs::read_dir(directory.path()).unwrap().map(|file| file.unwrap().path()).collect();
    let [file] = files.as_slice() else { panic!("{files:?}") };
    let name = file.file_name().unwrap().to_str().unwrap();
    assert!(name.strip_prefix("trace-").unwrap().starts_with(|digit: char| digit.is_ascii_digit()), "{name}");
    let text = std::fs::read_to_string(file).unwrap();
    let records: Vec<&str> = text.split('\u{1e}').skip(1).collect();
    assert!(
        records[0].starts_with("{\"qlog_version\":\"0.3\",\"qlog_format\":\"JSON-SEQ\""),
        "{}",
        records[0]
    );
    assert!(records.iter().all(|record| record.ends_with("}\n")), "each is whole");
    let count = |parts: &[&str]| {
        records.iter().filter(|record| parts.iter().all(|part| record.contains(part))).count()
    };
    assert_eq!(count(&["prrt:sample_delivered"]), SAMPLES as usize);
    assert!(count(&["prrt:datagram_sent", "\"trigger\":\"first\""]) >= SAMPLES as usize);
    assert!(count(&["prrt:writer_matched", "\"topic\":\"pose\""]) >= 1, "{text}");
    assert!(count(&["prrt:ack_received"]) > 0);
    // What the nodes decided beside their links.
    assert!(count(&["discovery:address_proved"]) + count(&["discovery:node_joined"]) >= 2, "{text}");
    assert!(count(&["discovery:endpoint_matched", "\"topic\":\"pose\""]) >= 2, "{text}");
}

#[test]
fn a_file_that_cannot_be_written_is_named_with_the_way_out() {
    let text = exchange("/nowhere/at/all.sqlog");
    let expected = "NOCTULE_TRACE names /nowhere/at/all.sqlog, which cannot be written";
    assert!(text.contains(expected) && text.contains("or unset it"), "{text}");
}
