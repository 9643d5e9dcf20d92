//! Typed topics: what one program publishes as a value another receives as the same value, in every format, through
//! shared memory and between hosts.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests and what they share

use std::time::Duration;

use noctule::clock::LocalClock;
use noctule::formats::encode_cdr;
use noctule::formats::uav_state::{Header, Point, UavState, Waypoint};
use noctule::{
    Format, Message, Node, Notice, PublishError, Publisher, ReceiveError, Reliability, Route, Subscriber,
    TypedPublisher, TypedSample, TypedSubscriber, field, message,
};
use serde::{Deserialize, Serialize};

fn domain() -> u32 {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    2000 + (std::process::id() % 100) * 20 + NEXT.fetch_add(1, Ordering::Relaxed)
}

fn node(name: &str, domain: u32, clock: &str) -> Node {
    let clock: LocalClock = clock.parse().unwrap();
    Node::builder(name).domain(domain).clock(clock).keep_notices().open().unwrap()
}

/// Two nodes of one host, or of two.
fn nodes(route: Route) -> (Node, Node) {
    let domain = domain();
    let clock = if route == Route::Udp { "offset=3s" } else { "" };
    (node("a", domain, clock), node("b", domain, ""))
}

fn open<T: Message>(
    (a, b): (&Node, &Node),
    topic: &str,
    format: Option<Format>,
) -> (TypedPublisher<T>, TypedSubscriber<T>) {
    let mut builder = a.publisher(topic).reliability(Reliability::Reliable);
    if let Some(format) = format {
        builder = builder.format(format);
    }
    let subscriber = b.subscriber(topic).reliability(Reliability::Reliable);
    (builder.typed::<T>().open().unwrap(), subscriber.typed::<T>().open().unwrap())
}

/// Publishes again and again until the subscriber has something: no fixed times.
fn until_received<T: Message>(
    publisher: &mut TypedPublisher<T>,
    subscriber: &mut TypedSubscriber<T>,
    value: &T,
) -> TypedSample<T> {
    for _ in 0..1000 {
        publisher.publish(value).unwrap();
        if let Some(sample) = subscriber.receive(Some(Duration::from_millis(20))).unwrap() {
            return sample;
        }
    }
    panic!("nothing was received");
}

fn every_format_carries_a_state(route: Route) {
    let (a, b) = nodes(route);
    let state = UavState::realistic(1_000, 7);
    let here = Format::ALL.into_iter().filter(|format| UavState::formats() & format.bit() != 0);
    let chosen = here.map(Some).chain([None]);
    for format in chosen {
        let topic = format.map_or("default", Format::name);
        let (mut publisher, mut subscriber) = open::<UavState>((&a, &b), topic, format);
        let sample = until_received(&mut publisher, &mut subscriber, &state);
        assert_eq!(*sample, state, "{topic}");
        let by_default = if route == Route::Udp { Format::Cdr } else { Format::Plain };
        assert_eq!(sample.info().format, Some(format.unwrap_or(by_default)), "{topic}");
        assert_eq!(sample.info().route, route, "{topic}");
    }
}

#[test]
fn every_format_carries_a_state_through_shared_memory() {
    every_format_carries_a_state(Route::SharedMemory);
}

#[test]
fn every_format_carries_a_state_between_hosts() {
    every_format_carries_a_state(Route::Udp);
}

#[test]
fn one_topic_is_plain_for_readers_here_and_cdr_for_those_elsewhere() {
    let domain = domain();
    let (a, here, elsewhere) =
        (node("a", domain, ""), node("here", domain, ""), node("elsewhere", domain, "offset=1s"));
    let (mut publisher, mut near) = open::<UavState>((&a, &here), "state", None);
    let mut far = elsewhere.subscriber("state").typed::<UavState>().open().unwrap();
    let state = UavState::realistic(500, 1);
    let (mut formats, mut seen) = ([None; 2], 0);
    while formats.contains(&None) {
        publisher.publish(&state).unwrap();
        for (format, subscriber) in formats.iter_mut().zip([&mut near, &mut far]) {
            if let Some(sample) = subscriber.receive(Some(Duration::from_millis(5))).unwrap() {
                assert_eq!(*sample, state);
                (*format, seen) = (sample.info().format, seen + 1);
            }
        }
        assert!(seen < 10_000, "one of them hears nothing: {formats:?}");
    }
    assert_eq!(formats, [Some(Format::Plain), Some(Format::Cdr)]);
}

#[test]
fn a_history_is_one_format_and_late_joiners_of_any_host_read_it() {
    let domain = domain();
    let (a, elsewhere) = (node("a", domain, ""), node("elsewhere", domain, "offset=1s"));
    let builder = a.publisher("map").reliability(Reliability::Reliable).transient_local();
    let mut publisher = builder.typed::<UavState>().open().unwrap();
    let state = UavState::realistic(500, 1);
    publisher.publish(&state).unwrap();
    for node in [&a, &elsewhere] {
        let builder = node.subscriber("map").reliability(Reliability::Reliable).transient_local();
        let mut subscriber = builder.typed::<UavState>().open().unwrap();
        let sample = subscriber.receive(Some(Duration::from_secs(20))).unwrap().expect("the history");
        assert_eq!((&*sample, sample.info().format), (&state, Some(Format::Cdr)));
    }
}

/// Lets a subscriber without a type, which takes all, show that the publisher's samples arrive.
fn until_heard(publisher: &mut Publisher, subscriber: &mut Subscriber, bytes: &[u8]) {
    for _ in 0..1000 {
        publisher.publish(bytes).unwrap();
        if subscriber.receive(Some(Duration::from_millis(20))).unwrap().is_some() {
            return;
        }
    }
    panic!("nothing was received");
}

#[test]
fn a_sample_that_is_no_value_is_counted_and_named_and_the_next_is_received() {
    let (a, b) = nodes(Route::SharedMemory);
    // Says that it publishes waypoints in CDR, and does not always.
    let builder = a.publisher("goal").type_name(Waypoint::TYPE_NAME, Waypoint::type_hash());
    let mut liar = builder.format(Format::Cdr).open().unwrap();
    let mut witness = b.subscriber("goal").open().unwrap();
    let mut subscriber = b.subscriber("goal").typed::<Waypoint>().open().unwrap();
    while subscriber.subscriber().publishers() == 0 {
        subscriber.subscriber().wait(Some(Duration::from_millis(5)));
    }
    until_heard(&mut liar, &mut witness, b"\0\x01\0\0too short");
    let waypoint = Waypoint { latitude_deg: 47.0, longitude_deg: 11.0, altitude_m: 600.0, speed_m_s: 5.0 };
    let mut truth = Vec::new();
    encode_cdr(&waypoint, &mut truth).unwrap();
    liar.publish(&truth).unwrap();
    let mut errors = 0;
    let goal = loop {
        match subscriber.receive(Some(Duration::from_secs(20))) {
            Ok(sample) => break sample.expect("the good one"),
            Err(error) => {
                errors += 1;
                let ReceiveError::Format { topic, publisher, .. } = &error else { panic!("{error}") };
                assert_eq!((topic.as_str(), *publisher), ("goal", a.id()));
                assert!(error.to_string().contains("cannot decode as cdr"), "{error}");
            }
        }
    };
    assert_eq!(*goal, waypoint);
    assert!(errors > 0);
    assert_eq!(subscriber.subscriber().counters().undecodable, errors);
}

message! {
    /// The name of a waypoint, with other contents.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    pub struct OtherWaypoint: "uav/Waypoint" {
        /// North is positive.
        pub latitude_deg: f64,
    }
}

/// The next notices of both nodes.
fn notices(a: &Node, b: &Node, subscriber: &mut Subscriber) -> [String; 2] {
    [a, b].map(|node| {
        loop {
            match node.poll_notice() {
                // Where the machine has a network.
                Some(Notice::NoKey { .. }) => {}
                Some(notice) => break notice.to_string(),
                None => _ = subscriber.wait(Some(Duration::from_millis(5))),
            }
        }
    })
}

#[test]
fn another_definition_of_the_same_name_is_reported_on_both_sides() {
    let (a, b) = nodes(Route::SharedMemory);
    let _publisher = a.publisher("goal").typed::<OtherWaypoint>().open().unwrap();
    let mut subscriber = b.subscriber("goal").typed::<Waypoint>().open().unwrap();
    for notice in notices(&a, &b, subscriber.subscriber()) {
        assert!(notice.contains("uav/Waypoint") && notice.contains("definitions differ"), "{notice}");
    }
}

#[test]
fn a_format_that_the_reader_does_not_understand_is_reported_by_name() {
    let (a, b) = nodes(Route::SharedMemory);
    // Plain for this host and CDR for others: a reader of CDR alone does not understand all.
    let _publisher = a.publisher("goal").typed::<Waypoint>().open().unwrap();
    let mut subscriber = b.subscriber("goal").formats(&[Format::Cdr]).open().unwrap();
    for notice in notices(&a, &b, &mut subscriber) {
        assert!(notice.contains("the writer uses cdr, plain, the reader understands cdr"), "{notice}");
    }
}

#[test]
fn a_writer_of_what_this_program_is_built_without_is_reported_with_the_feature_that_reads_it() {
    for route in [Route::SharedMemory, Route::Udp] {
        let (a, b) = nodes(route);
        let builder = a.publisher("goal").type_name(Waypoint::TYPE_NAME, Waypoint::type_hash());
        let _publisher = builder.format(Format::Json).open().unwrap();
        let mut subscriber = b.subscriber("goal").typed::<Waypoint>().open().unwrap();
        if Format::Json.is_built_in() {
            // As it is if another crate of the same build needs it.
            while subscriber.subscriber().publishers() == 0 {
                subscriber.subscriber().wait(Some(Duration::from_millis(5)));
            }
            continue;
        }
        let [writer, reader] = notices(&a, &b, subscriber.subscriber());
        let expected = "topic goal, with node a: the writer uses json, which this program is built without; \
                    turn on the feature \"json\" of the crate noctule";
        assert_eq!(reader, expected);
        assert!(writer.contains("the writer uses json, the reader understands cdr, plain"), "{writer}");
        let refused = b.publisher("goal").format(Format::Json).typed::<Waypoint>().open().unwrap_err();
        assert!(refused.to_string().contains("turn on the feature \"json\""), "{refused}");
    }
}

#[test]
fn a_value_that_its_format_cannot_express_is_refused_and_reaches_nobody() {
    let (a, b) = nodes(Route::SharedMemory);
    let (mut publisher, mut subscriber) = open::<UavState>((&a, &b), "state", None);
    let mut state = UavState::realistic(0, 1);
    drop(until_received(&mut publisher, &mut subscriber, &state));
    while subscriber.take().unwrap().is_some() {}
    // The plain layout has room for 64 bytes.
    state.status_text = "x".repeat(65);
    let refused = publisher.publish(&state).unwrap_err();
    assert!(matches!(&refused, PublishError::Format { topic, .. } if topic == "state"), "{refused}");
    assert!(refused.to_string().contains("longer than 64 bytes"), "{refused}");
    assert!(subscriber.take().unwrap().is_none());
    let absent = a.publisher("goal").format(Format::Plain).typed::<Header>().open().unwrap_err();
    assert!(absent.to_string().contains("plain needs a schema"), "{absent}");
}

fn a_plain_value_is_read_field_by_field(route: Route) {
    let (a, b) = nodes(route);
    let (mut publisher, mut subscriber) = open::<Point>((&a, &b), "point", None);
    let point = Point { x_m: 1.0, y_m: 2.0, z_m: 3.0, intensity: 0.5 };
    let lent = loop {
        publisher.publish(&point).unwrap();
        if let Some(lent) = subscriber.receive_in_place(Some(Duration::from_millis(20))).unwrap() {
            break lent;
        }
    };
    assert_eq!((field!(lent, Point, z_m), field!(lent, Point, intensity)), (3.0, 0.5));
    assert_eq!((lent.value(), lent.info().route), (point, route));
}

#[test]
fn a_plain_value_is_read_field_by_field_where_it_lies() {
    a_plain_value_is_read_field_by_field(Route::SharedMemory);
}

#[test]
fn a_plain_value_from_another_host_reads_the_same() {
    a_plain_value_is_read_field_by_field(Route::Udp);
}

#[test]
fn a_topic_that_nobody_reads_encodes_nothing() {
    let (a, _b) = nodes(Route::SharedMemory);
    let mut publisher = a.publisher("state").typed::<UavState>().open().unwrap();
    let state = UavState::realistic(100_000, 1);
    publisher.publish(&state).unwrap();
    let measured = allocation_counter::measure(|| publisher.publish(&state).unwrap());
    assert_eq!(measured.count_total, 0);
    assert_eq!(publisher.publisher().published(), 2);
}
