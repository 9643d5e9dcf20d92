//! A topic without a reader on the other side is not forwarded; and the cost of having many topics.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use noctule::{Format, Node, Reliability};
use serde_json::Value;

use super::{LIVE, Place, Process, STRING, TIMEOUT, foreign, report_until, string, text};

const SENSOR: [&str; 2] = ["best_effort", "volatile"];

fn cyclone() -> Option<&'static Path> {
    foreign().iter().find(|(name, _)| *name == "cyclone").map(|(_, program)| program.as_path())
}

fn becomes(holds: impl Fn() -> bool) -> bool {
    let end = Instant::now() + TIMEOUT;
    while !holds() && Instant::now() < end {
        std::thread::park_timeout(Duration::from_millis(10));
    }
    holds()
}

/// The unread route's bytes in the next reports, from the first that has more than `above` (reports of before may still wait in
/// the pipe): first and last.
fn unread_bytes(bridge: &Process, reports: usize, above: Option<u64>) -> (u64, u64) {
    let mut bytes = Vec::new();
    report_until(bridge, "reports of the route", |report| {
        let route = &report["routes"][0];
        if route["topic"] == "/chatter" && route["is_read"] == false && route["bytes"].as_u64() > above {
            bytes.push(route["bytes"].as_u64().unwrap());
        }
        bytes.len() == reports
    });
    (bytes[0], bytes[reports - 1])
}

#[test]
fn of_a_stream_in_dds_that_the_bus_does_not_read_no_byte_crosses() {
    let Some(program) = cyclone() else { return };
    let place = Place::new(12);
    // 10 MB/s.
    let stream = place.program(program, "stream", SENSOR, &["10000", "camera 1 ."]);
    assert_eq!(stream.line(), "readers 0");
    let (node, bridge) = (place.node(), place.bridge(&[]));
    assert_eq!(unread_bytes(&bridge, 5, None), (0, 0));
    assert_eq!(node.endpoints().iter().filter(|known| known.endpoint.topic == "/chatter").count(), 1);
    // Its reader would be reported here, before any byte.
    assert!(stream.lines.try_recv().is_err(), "a reader exists");

    let mut subscriber = node.subscriber("/chatter").formats(&[Format::Cdr]).open().unwrap();
    assert_eq!(stream.line(), "readers 1");
    assert_eq!(text(&subscriber.receive(Some(TIMEOUT)).unwrap().expect("a sample")).len(), 100_000);
    drop(subscriber);
    assert_eq!(stream.line(), "readers 0");
    let (first, last) = unread_bytes(&bridge, 5, Some(100_000));
    assert_eq!(first, last);
    // And again.
    let mut subscriber = node.subscriber("/chatter").formats(&[Format::Cdr]).open().unwrap();
    assert_eq!(stream.line(), "readers 1");
    assert!(subscriber.receive(Some(TIMEOUT)).unwrap().is_some());
    assert!(stream.end() && bridge.end());
}

#[test]
fn of_a_stream_on_the_bus_that_dds_does_not_read_no_byte_crosses() {
    for (number, (name, program)) in foreign().iter().enumerate() {
        let place = Place::new(13 + number as u32);
        let (node, bridge) = (place.node(), place.bridge(&[]));
        let publisher = node.publisher("/chatter").type_name(STRING, 0).format(Format::Cdr);
        let mut publisher = publisher.reliability(Reliability::Reliable).open().unwrap();
        let sample = string(&"camera".repeat(10_000));
        let mut reports = 0;
        report_until(&bridge, "five reports", |report| {
            publisher.publish(&sample).unwrap();
            let route = &report["routes"][0];
            reports += u32::from(route["topic"] == "/chatter");
            assert!(route.is_null() || route["is_read"] == false && route["bytes"] == 0, "{name} {report}");
            reports == 5
        });
        assert_eq!(publisher.readers(), 0, "{name}");

        let reader = place.program(program, "read", LIVE, &["3"]);
        assert_eq!(reader.line(), "matched");
        let mut came = 0;
        let end = Instant::now() + TIMEOUT;
        while came < 3 && Instant::now() < end {
            publisher.publish(&sample).unwrap();
            came += u32::from(reader.lines.recv_timeout(Duration::from_millis(20)).is_ok());
        }
        assert!(came == 3 && reader.end(), "{name}: {came} came");
        // Reports of before the reader came may still wait in the pipe.
        report_until(&bridge, "no reader", |report| {
            let route = &report["routes"][0];
            route["is_read"] == false && route["bytes"].as_u64() >= Some(3 * 60_000)
        });
        assert!(becomes(|| publisher.readers() == 0), "{name}");
        assert!(bridge.end());
    }
}

#[test]
fn a_publisher_with_defaults_is_heard_by_a_reliable_reader_in_dds() {
    for (number, (name, program)) in foreign().iter().enumerate() {
        let place = Place::new(15 + number as u32);
        let (node, bridge) = (place.node(), place.bridge(&[]));
        let publisher = node.publisher("/chatter").type_name(STRING, 0).format(Format::Cdr);
        let mut publisher = publisher.open().unwrap();
        let reader = place.program(program, "read", LIVE, &["5"]);
        assert_eq!(reader.line(), "matched", "{name}");
        let (mut came, end) = (0, Instant::now() + TIMEOUT);
        while came < 5 && Instant::now() < end {
            publisher.publish(&string("default")).unwrap();
            came += u32::from(reader.lines.recv_timeout(Duration::from_millis(20)).is_ok());
        }
        assert!(came == 5 && reader.end() && bridge.end(), "{name}: {came} came");
    }
}

/// Threads of a process, by the kernel.
fn threads(process: &Process) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.child.id())).unwrap();
    let threads = status.lines().find_map(|line| line.strip_prefix("Threads:")).unwrap();
    threads.trim().parse().unwrap()
}

fn routes_are(bridge: &Process, count: usize) -> Value {
    report_until(bridge, "the routes", |report| {
        report["routes"].as_array().is_some_and(|routes| routes.len() == count)
    })
}

#[test]
fn many_topics_take_no_threads_and_all_are_joined_at_the_end() {
    const TOPICS: usize = 300;
    let place = Place::new(17);
    let (node, bridge) = (place.node(), place.bridge(&[]));
    routes_are(&bridge, 0);
    let alone = threads(&bridge);
    let publisher = |number: usize| {
        let publisher = node.publisher(&format!("/many/{number}")).type_name(STRING, 0);
        publisher.format(Format::Cdr).open().unwrap()
    };
    let publishers: Vec<_> = (0..TOPICS).map(publisher).collect();
    routes_are(&bridge, TOPICS);
    assert_eq!(threads(&bridge), alone, "they have no reader");
    drop(publishers);
    routes_are(&bridge, 0);
    // Kept samples are always read: one thread for every 31 topics, which end with the topics.
    let kept = |number: usize| {
        let publisher = node.publisher(&format!("/kept/{number}")).type_name(STRING, 0).transient_local();
        let mut publisher = publisher.format(Format::Cdr).payload_bytes_max(64).open().unwrap();
        publisher.publish(&string(&format!("{number}"))).unwrap();
        publisher
    };
    let publishers: Vec<_> = (0..62).map(kept).collect();
    report_until(&bridge, "a sample of each", |report| {
        let routes = report["routes"].as_array().map(Vec::as_slice).unwrap_or_default();
        routes.iter().filter(|route| route["samples"] == 1).count() == 62
    });
    assert_eq!(threads(&bridge), alone + 2);
    drop(publishers);
    routes_are(&bridge, 0);
    assert_eq!(threads(&bridge), alone);
    assert!(bridge.end());
    assert_eq!(topics(&node), BTreeSet::new());
}

fn topics(node: &Node) -> BTreeSet<String> {
    node.endpoints().into_iter().map(|known| known.endpoint.topic).collect()
}
