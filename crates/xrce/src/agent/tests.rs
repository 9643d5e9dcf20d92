mod limits;
mod rules;

use std::sync::Arc;

use super::*;
use crate::event::{Direction, Endpoint};

const HERE: ClientAddress = ClientAddress::Serial(1);

/// An agent whose time advances only when a test says so.
struct Bench {
    agent: Agent,
    now: Instant<Local>,
    readers: Vec<EndpointId>,
    events: Vec<Event>,
}

impl Bench {
    fn new() -> Bench {
        Bench::with(AgentConfig::default())
    }

    fn with(config: AgentConfig) -> Bench {
        let agent = Agent::new(config, References::default());
        Bench { agent, now: Instant::from_ns(5_000_000_000), readers: Vec::new(), events: Vec::new() }
    }

    fn stamp(&self) -> Stamp {
        Stamp { local: self.now, wall: Instant::from_ns(1_700_000_000_000_000_000 + self.now.ns()) }
    }

    fn client_says(&mut self, from: ClientAddress, message: &[u8]) -> Vec<Vec<u8>> {
        self.agent.handle_datagram(message, from, self.stamp());
        self.drain()
    }

    fn drain(&mut self) -> Vec<Vec<u8>> {
        while let Some(event) = self.agent.poll_event() {
            if let Event::Opened(Endpoint { id, direction: Direction::Read, .. }) = &event {
                self.readers.push(*id);
            }
            self.events.push(event);
        }
        let (mut sent, mut message) = (Vec::new(), Vec::new());
        while let Some(transmit) = self.agent.poll_transmit(self.now, &mut message) {
            if let Some(departure) = transmit.stamp {
                self.agent.handle_departure(departure, &mut message, self.stamp());
            }
            sent.push(message.clone());
        }
        sent
    }

    fn sample(&mut self, object: ObjectId, body: &[u8]) -> Vec<Vec<u8>> {
        let endpoint = *self.readers.iter().rfind(|endpoint| endpoint.object == object).unwrap();
        let sample = Sample { body: Arc::from(body), is_little_endian: true };
        self.agent.handle_sample(endpoint, sample, self.now);
        self.drain()
    }

    fn pass(&mut self, span: Span) -> Vec<Vec<u8>> {
        let end = self.now + span;
        let mut sent = Vec::new();
        while let Some(at) = self.agent.poll_timeout().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            self.agent.handle_timeout(self.now);
            sent.extend(self.drain());
        }
        self.now = end;
        sent
    }
}

fn octets(words: &str) -> Vec<Option<u8>> {
    let words = words.split_whitespace().filter(|word| *word != "|");
    words.map(|word| (word != "..").then(|| u8::from_str_radix(word, 16).unwrap())).collect()
}

fn bytes(words: &str) -> Vec<u8> {
    octets(words).into_iter().flatten().collect()
}

/// Plays a conversation of `vectors/xrce`.
fn play(text: &str) -> Bench {
    let mut bench = Bench::new();
    let mut sent: VecDeque<Vec<u8>> = VecDeque::new();
    for (number, line) in (1..).zip(text.lines()) {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        if matches!(word, ">" | "sample" | "after") {
            assert!(sent.is_empty(), "before line {number} the agent also sent {:02x?}", sent[0]);
        }
        match word {
            ">" => sent.extend(bench.client_says(HERE, &bytes(rest))),
            "sample" => {
                let (object, body) = rest.split_once(' ').unwrap();
                let object = u16::from_str_radix(object, 16).unwrap().to_be_bytes();
                sent.extend(bench.sample(ObjectId(object), &bytes(body)));
            }
            "after" => {
                let ms = rest.strip_suffix("ms").unwrap().parse().unwrap();
                sent.extend(bench.pass(Span::from_ms(ms)));
            }
            "<" => {
                let expected = octets(rest);
                let message = sent.pop_front().unwrap_or_default();
                let is_like = message.len() == expected.len()
                    && message
                        .iter()
                        .zip(&expected)
                        .all(|(byte, other)| other.is_none_or(|other| *byte == other));
                assert!(is_like, "line {number}: {rest}\n but the agent sent {message:02x?}");
            }
            _ => assert!(word.is_empty() || word.starts_with('#'), "line {number}: {line}"),
        }
    }
    assert!(sent.is_empty(), "at the end the agent also sent {:02x?}", sent[0]);
    bench
}

const CREATE_CLIENT: &str = "80 00 00 00 00 01 10 00 58 52 43 45 01 00 01 0F AA AA BB BB 81 00 FC 01";

#[test]
fn a_publisher_is_made_and_heard_as_captured() {
    let bench = play(include_str!("../../../../vectors/xrce/publish.txt"));
    let published = bench.events.iter().filter(|event| matches!(event, Event::Published { .. })).count();
    assert_eq!(published, 4);
    let opened = bench.events.iter().find_map(|event| match event {
        Event::Opened(endpoint) => Some((endpoint.topic.name.as_str(), endpoint.topic.type_name.as_str())),
        _ => None,
    });
    assert_eq!(opened, Some(("rt/t", "T")));
    assert!(matches!(bench.events.last(), Some(Event::Disconnected { reason: Gone::Left, .. })));
}

#[test]
fn a_subscriber_gets_what_it_asks_for_as_captured() {
    play(include_str!("../../../../vectors/xrce/subscribe.txt"));
}

#[test]
fn pings_and_times_are_answered_as_captured() {
    play(include_str!("../../../../vectors/xrce/ping.txt"));
}

#[test]
fn px4_is_served_as_captured() {
    let bench = play(include_str!("../../../../vectors/xrce/foreign/px4.txt"));
    let topics: Vec<_> = bench.events.iter().filter_map(opened).collect();
    let expected = [
        (Direction::Read, "rt/fmu/in/register_ext_component_request", false),
        (Direction::Write, "rr/fmu/vehicle_commandReply", true),
        (Direction::Read, "rq/fmu/vehicle_commandRequest", true),
        (Direction::Write, "rt/fmu/out/timesync_status", false),
        (Direction::Write, "rt/fmu/out/vehicle_attitude", false),
    ];
    assert_eq!(topics, expected);
    assert!(
        bench
            .events
            .iter()
            .any(|event| matches!(event, Event::Named { name, .. } if name == "/px4_micro_xrce_dds"))
    );
}

#[test]
fn micro_ros_is_served_and_taken_apart_as_captured() {
    let bench = play(include_str!("../../../../vectors/xrce/foreign/micro_ros.txt"));
    let topics: Vec<_> = bench.events.iter().filter_map(opened).collect();
    let expected = [
        (Direction::Write, "rt/robot/count", true),
        (Direction::Read, "rt/robot/count", true),
        (Direction::Write, "rr/add_two_intsReply", true),
        (Direction::Read, "rq/add_two_intsRequest", true),
        (Direction::Write, "rq/add_two_intsRequest", true),
        (Direction::Read, "rr/add_two_intsReply", true),
    ];
    assert_eq!(topics, expected);
    let closed = bench.events.iter().filter(|event| matches!(event, Event::Closed { .. })).count();
    assert_eq!((closed, bench.agent.clients().count()), (topics.len(), 0));
}

/// Direction, topic and reliability of what was opened.
fn opened(event: &Event) -> Option<(Direction, &str, bool)> {
    match event {
        Event::Opened(endpoint) => {
            Some((endpoint.direction, endpoint.topic.name.as_str(), endpoint.qos.reliable))
        }
        _ => None,
    }
}

#[test]
fn a_client_with_properties_says_its_size_behind_them() {
    let mut bench = Bench::new();
    // uxr_hl = 000300; the submessage's length says 16 all the same.
    let message = bytes(
        "80 00 00 00 00 01 10 00 58 52 43 45 01 00 01 0F AA AA BB BB 81 01 00 00 01 00 00 00 07 00 00 00 \
         75 78 72 5F 68 6C 00 00 07 00 00 00 30 30 30 33 30 30 00 00 FC 01",
    );
    assert_eq!(bench.client_says(HERE, &message).len(), 1);
    assert_eq!(bench.agent.agent.counters.malformed, 0);
    // It is asked after half of its 300 ms, and given up after all of them.
    let sent = bench.pass(Span::from_ms(151));
    assert_eq!(sent, [bytes("81 00 00 00 02 01 08 00 00 00 FF FE 02 00 00 00")]);
    bench.pass(Span::from_ms(150));
    assert!(matches!(bench.events.last(), Some(Event::Disconnected { reason: Gone::Silent, .. })));
    // Whatever it says then brings it back, with its objects.
    bench.client_says(HERE, &bytes("81 00 00 00 06 01 04 00 00 00 00 00"));
    assert!(matches!(bench.events.last(), Some(Event::Connected { .. })));
}

#[test]
fn clients_that_cannot_be_served_get_an_error_and_nothing_is_kept() {
    for (message, status) in [
        // Key zero; version 2; messages of 16 bytes; another cookie.
        ("80 00 00 00 00 01 10 00 58 52 43 45 01 00 01 0F 00 00 00 00 81 00 FC 01", 0x85),
        ("80 00 00 00 00 01 10 00 58 52 43 45 02 00 01 0F AA AA BB BB 81 00 FC 01", 0x86),
        ("80 00 00 00 00 01 10 00 58 52 43 45 01 00 01 0F AA AA BB BB 81 00 10 00", 0x85),
        ("80 00 00 00 00 01 10 00 58 52 43 46 01 00 01 0F AA AA BB BB 81 00 FC 01", 0x85),
    ] {
        let mut bench = Bench::new();
        let sent = bench.client_says(HERE, &bytes(message));
        assert_eq!((sent[0][4], sent[0][8]), (id::STATUS_AGENT, status));
        assert_eq!(bench.agent.clients().count(), 0);
    }
}

#[test]
fn one_client_too_many_is_refused_unless_another_is_silent() {
    let mut bench = Bench::with(AgentConfig { clients_max: 2, ..AgentConfig::default() });
    let introduce = |bench: &mut Bench, number: u8| {
        let mut message = bytes(CREATE_CLIENT);
        message[16] = number;
        bench.client_says(ClientAddress::Serial(number), &message)[0][8]
    };
    assert_eq!([1, 2, 3].map(|number| introduce(&mut bench, number)), [0, 0, 0x87]);
    bench.agent.handle_lost(ClientAddress::Serial(1), bench.now);
    assert_eq!(introduce(&mut bench, 3), 0);
    assert_eq!(bench.agent.clients().map(|client| client.key.0[0]).collect::<Vec<_>>(), [2, 3]);
}

#[test]
fn the_same_key_from_elsewhere_finds_its_objects_again() {
    let mut bench = play(include_str!("../../../../vectors/xrce/subscribe.txt"));
    let mut introduction = bytes(CREATE_CLIENT);
    introduction[16..20].copy_from_slice(&[0xCC, 0xCC, 0xDD, 0xDD]);
    let there = ClientAddress::Serial(9);
    bench.client_says(there, &introduction);
    // Best-effort stream, number 0 again: the reader is still there, and what was kept for it comes.
    let sent = bench.client_says(there, &bytes("81 01 00 00 08 01 08 00 00 0F 00 16 01 00 00 00"));
    assert_eq!(sent, [bytes("81 01 00 00 09 01 08 00 00 0F 00 16 0B 0C 0D 0E")]);
    assert_eq!(bench.agent.clients().count(), 1);
}

#[test]
fn a_sample_for_a_reader_of_the_session_before_is_not_for_the_one_of_its_number_now() {
    let conversation = include_str!("../../../../vectors/xrce/subscribe.txt");
    let mut bench = play(conversation);
    let before = bench.readers[0];
    bench.client_says(HERE, &bytes("81 00 00 00 03 01 04 00 00 02 FF FE"));
    // All over again, up to the wish for samples.
    for message in conversation.lines().filter_map(|line| line.strip_prefix("> ")).take(8) {
        bench.client_says(HERE, &bytes(message));
    }
    let sample = Sample { body: Arc::from([1, 2, 3, 4]), is_little_endian: true };
    bench.agent.handle_sample(before, sample, bench.now);
    assert!(bench.drain().is_empty());
    let sent = bench.sample(before.object, &[5, 6]);
    assert_eq!(sent, [bytes("81 80 03 00 09 01 06 00 00 0E 00 16 05 06")]);
}

#[test]
fn another_client_at_the_same_place_replaces_the_first() {
    let mut bench = play(include_str!("../../../../vectors/xrce/subscribe.txt"));
    bench.client_says(HERE, &bytes(CREATE_CLIENT));
    assert_eq!(
        bench.agent.clients().map(|client| client.key.0).collect::<Vec<_>>(),
        [[0xAA, 0xAA, 0xBB, 0xBB]]
    );
    assert!(
        bench.events.iter().any(|event| matches!(event, Event::Disconnected { reason: Gone::Replaced, .. }))
    );
}

#[test]
fn a_flood_is_cut_and_others_are_served() {
    let mut bench = Bench::with(AgentConfig { client_messages_per_s: 100, ..AgentConfig::default() });
    bench.client_says(HERE, &bytes(CREATE_CLIENT));
    let ping = bytes("81 00 00 00 02 01 08 00 00 0A FF FD 02 00 00 00");
    let answered = (0..1000).filter(|_| !bench.client_says(HERE, &ping).is_empty()).count();
    assert_eq!(answered, 11, "a tenth of a second's worth and one");
    assert_eq!(bench.agent.agent.counters.over_budget, 989);
    bench.pass(Span::from_s(1));
    assert_eq!(bench.client_says(HERE, &ping).len(), 1);
}

#[test]
fn absurd_lengths_and_identifiers_get_an_error_status() {
    let mut bench = Bench::new();
    bench.client_says(HERE, &bytes(CREATE_CLIENT));
    let mut status = |sequence: u8, submessage: &str| {
        let message = [bytes("81 80"), vec![sequence, 0], bytes(submessage)].concat();
        let sent = bench.client_says(HERE, &message);
        bench.client_says(
            HERE,
            &[bytes("81 00 00 00 0A 01 05 00"), vec![sequence + 1, 0, 0, 0, 0x80]].concat(),
        );
        sent.iter().find(|message| message[4] == id::STATUS).unwrap()[12]
    };
    // XML of four gigabytes; a kind that is none; kinds that disagree; a reference to nothing.
    assert_eq!(status(0, "01 01 10 00 00 0A 00 11 01 02 00 00 FF FF FF FF 00 00 00 00"), 0x85);
    assert_eq!(status(1, "01 01 10 00 00 0A 00 19 09 03 00 00 02 00 00 00 00 00 00 00"), 0x85);
    assert_eq!(status(2, "01 01 10 00 00 0A 00 11 02 03 00 00 02 00 00 00 00 00 00 00"), 0x85);
    assert_eq!(status(3, "01 01 10 00 00 0A 00 11 01 01 00 00 02 00 00 00 78 00 00 00"), 0x84);
    assert_eq!(status(4, "01 01 10 00 00 0A 00 13 03 03 00 00 02 00 00 00 00 00 FF FF"), 0x84);
    assert_eq!(bench.agent.clients().next().unwrap().objects, 0);
}

#[test]
fn a_client_of_ours_is_greeted_as_such_and_its_fourth_stamp_makes_an_exchange() {
    let mut bench = Bench::new();
    let sent = bench
        .client_says(HERE, &bytes("80 00 00 00 00 01 10 00 58 52 43 45 01 00 4E 43 AA AA BB BB 81 00 FC 01"));
    assert_eq!(sent, [bytes("81 00 00 00 04 01 0B 00 00 00 58 52 43 45 01 00 4E 43 00")]);
    let asked = bench.now;
    let sent = bench.client_says(HERE, &bytes("81 00 00 00 0E 01 08 00 01 00 00 00 00 65 CD 1D"));
    bench.now += Span::from_ms(3);
    let mut fourth = bytes("81 00 00 00 0F 01 18 00 02 00 00 00 01 00 00 00 02 00 00 00 00 00 00 00");
    fourth.extend_from_slice(&sent[0][8..16]);
    bench.client_says(HERE, &fourth);
    let exchange = bench.events.iter().find_map(|event| match event {
        Event::Exchanged { exchange, .. } => Some(*exchange),
        _ => None,
    });
    let expected = crate::Exchange {
        t1: asked,
        t2: Instant::from_ns(2_000_000_000),
        t3: Instant::from_ns(2_000_000_001),
        t4: bench.now,
    };
    assert_eq!(exchange, Some(expected));
    let before = bench.events.len();
    bench.client_says(HERE, &fourth);
    assert_eq!(bench.events.len(), before, "a stamp is good once");
}

#[test]
fn a_service_is_asked_and_answered() {
    let mut bench = Bench::new();
    bench.client_says(HERE, &bytes(CREATE_CLIENT));
    bench
        .client_says(HERE, &bytes("81 80 00 00 01 07 10 00 00 0A 00 11 01 03 00 00 02 00 00 00 00 00 00 00"));
    // Requester 0x001 and replier 0x001 of service "s", types "A" and "B", topics by default.
    let service = "02 00 00 00 73 00 00 00 02 00 00 00 41 00 00 00 02 00 00 00 42 00 00 00";
    for (sequence, kind) in [(1u8, 7u8), (2, 8)] {
        let mut message =
            vec![0x81, 0x80, sequence, 0, 1, 7, 0x28, 0, 0, 0x0B, 0, 0x10 | kind, kind, 3, 0, 0];
        message.extend(bytes("1A 00 00 00"));
        message.extend(bytes(service));
        message.extend(bytes("00 00 00 11"));
        bench.client_says(HERE, &message);
    }
    let topics = bench.events.iter().filter_map(|event| match event {
        Event::Opened(endpoint) => Some((endpoint.direction, endpoint.topic.name.clone())),
        _ => None,
    });
    let topics: Vec<_> = topics.collect();
    let (asks, answers) = ("s_Request".to_owned(), "s_Reply".to_owned());
    let expected = [
        (Direction::Write, asks.clone()),
        (Direction::Read, answers.clone()),
        (Direction::Write, answers),
        (Direction::Read, asks),
    ];
    assert_eq!(topics, expected);
    bench
        .client_says(HERE, &bytes("81 80 03 00 08 01 10 00 00 20 00 17 01 00 00 01 FF FF 00 00 00 00 00 00"));
    bench
        .client_says(HERE, &bytes("81 80 04 00 08 01 10 00 00 21 00 18 01 00 00 01 FF FF 00 00 00 00 00 00"));
    bench.client_says(HERE, &bytes("81 80 05 00 07 01 08 00 00 33 00 17 0A 0B 0C 0D"));
    let last = |bench: &Bench| match bench.events.last() {
        Some(Event::Published { sample, .. }) => sample.body.to_vec(),
        other => panic!("{other:?}"),
    };
    let request = last(&bench);
    assert_eq!(request[IDENTITY_BYTES..], [0x0A, 0x0B, 0x0C, 0x0D]);
    // The replier gets it as it is, and answers with the same identity.
    let sent = bench.sample(ObjectId([0, 0x18]), &request);
    assert_eq!(sent[0][8..], [&[0, 0x21, 0, 0x18][..], &request].concat());
    let answer =
        [bytes("81 80 06 00 07 01 1E 00 00 34 00 18"), request[..IDENTITY_BYTES].to_vec(), vec![7, 7]];
    bench.client_says(HERE, &answer.concat());
    let reply = last(&bench);
    // The requester gets it with the number of its request; a reply to another client is not for it.
    let sent = bench.sample(ObjectId([0, 0x17]), &reply);
    assert_eq!(sent[0][8..], [0, 0x20, 0, 0x17, 0, 0x33, 0, 0x17, 7, 7]);
    let mut others = reply;
    others[8] ^= 1;
    assert!(bench.sample(ObjectId([0, 0x17]), &others).is_empty());
}

#[test]
fn of_requests_of_many_clients_at_once_none_is_replaced() {
    let mut bench = Bench::new();
    bench.client_says(HERE, &bytes(CREATE_CLIENT));
    bench
        .client_says(HERE, &bytes("81 80 00 00 01 07 10 00 00 0A 00 11 01 03 00 00 02 00 00 00 00 00 00 00"));
    // Replier 0x001 of service "s".
    let mut message = bytes("81 80 01 00 01 07 28 00 00 0B 00 18 08 03 00 00 1A 00 00 00");
    message.extend(bytes("02 00 00 00 73 00 00 00 02 00 00 00 41 00 00 00 02 00 00 00 42 00 00 00"));
    message.extend(bytes("00 00 00 11"));
    bench.client_says(HERE, &message);
    let replier = *bench.readers.last().unwrap();
    let request = |number: u8| Sample { body: Arc::from([number; 28]), is_little_endian: true };
    (0..50).for_each(|number| bench.agent.handle_sample(replier, request(number), bench.now));
    assert_eq!(bench.agent.counters().replaced, 0);
    // The client asks for all on its best-effort stream.
    let sent = bench
        .client_says(HERE, &bytes("81 80 02 00 08 01 10 00 00 21 00 18 01 00 00 01 FF FF 00 00 00 00 00 00"));
    let came: Vec<u8> = sent.iter().filter(|message| message[4] == 9).map(|message| message[12]).collect();
    assert_eq!(came, (0..50).collect::<Vec<u8>>());
    // The limit, and that it is counted.
    (0..60).for_each(|_| (0..5).for_each(|_| bench.agent.handle_sample(replier, request(1), bench.now)));
    assert_eq!(bench.agent.counters().replaced, 300 - u64::from(crate::SERVICE_SAMPLES_MAX));
}

#[test]
fn a_client_that_starts_again_within_milliseconds_is_served_where_nothing_arrives_late() {
    let participant = bytes("81 80 00 00 01 07 10 00 00 0A 00 11 01 03 00 00 02 00 00 00 00 00 00 00");
    let socket = ClientAddress::Socket(std::net::SocketAddr::from(([127, 0, 0, 1], 9)));
    for (from, is_served) in [(HERE, true), (ClientAddress::Connection(1), true), (socket, false)] {
        let mut bench = Bench::new();
        let has_status = |sent: &[Vec<u8>]| sent.iter().any(|message| message[4] == 5);
        bench.client_says(from, &bytes(CREATE_CLIENT));
        assert!(has_status(&bench.client_says(from, &participant)), "{from}");
        bench.now += Span::from_ms(2);
        bench.client_says(from, &bytes(CREATE_CLIENT));
        // Number 0 again. Over a network it is a late copy for 100 ms.
        assert_eq!(has_status(&bench.client_says(from, &participant)), is_served, "{from}");
    }
}

#[test]
fn a_sample_that_does_not_reach_its_client_is_an_event_with_its_size() {
    let mut bench = play(include_str!("../../../../vectors/xrce/subscribe.txt"));
    let object = bench.readers[0].object;
    bench
        .client_says(HERE, &bytes("81 01 00 00 08 01 10 00 00 0F 00 16 01 00 00 01 FF FF 00 00 00 00 00 00"));
    assert!(bench.sample(object, &[0; 9000]).iter().all(|message| message[4] != 9));
    bench.drain();
    let undeliverable = bench.events.iter().filter_map(|event| match event {
        Event::Undeliverable { object, bytes, .. } => Some((*object, *bytes)),
        _ => None,
    });
    assert_eq!(undeliverable.collect::<Vec<_>>(), [(object, 9008)]);
    assert_eq!(bench.agent.counters().undeliverable, 1);
}

/// As in `answer`.
const IDENTITY_BYTES: usize = 24;

/// A client of ours, and its reader and writer, on a slow line; its next reliable message has number 7, the agent's 6.
fn on_a_slow_line() -> Bench {
    let config = AgentConfig { hold: Span::from_us(500), ..AgentConfig::default() };
    let mut bench = Bench::with(config);
    let introduction = "80 00 00 00 00 01 10 00 58 52 43 45 01 00 4E 43 AA AA BB BB 81 00 FC 01";
    bench.client_says(HERE, &bytes(introduction));
    for (number, create) in (0u8..).zip([
        "01 07 10 00 00 0A 00 11 01 03 00 00 02 00 00 00 00 00 00 00",
        "01 07 22 00 00 0B 00 12 02 03 00 00 14 00 00 00 05 00 00 00 72 74 2F 74 00 00 01 00 02 00 00 00 54 00 00 \
         00 00 11",
        "01 07 10 00 00 0C 00 13 03 03 00 00 02 00 00 00 00 00 00 11",
        "01 07 19 00 00 0D 00 15 05 03 00 00 0B 00 00 00 00 12 01 00 0B 00 00 00 00 00 00 00 13",
        "01 07 10 00 00 0E 00 14 04 03 00 00 02 00 00 00 00 00 00 11",
        "01 07 19 00 00 0F 00 16 06 03 00 00 0B 00 00 00 00 12 01 00 03 00 00 00 00 00 00 00 14",
        "08 01 10 00 00 10 00 16 80 00 00 01 FF FF 00 00 00 00 00 00",
    ]) {
        let sent = bench.client_says(HERE, &[vec![0x81, 0x80, number, 0], bytes(create)].concat());
        // A client that has published nothing yet is acknowledged first.
        let expected = if number == 6 { vec![id::ACKNACK] } else { vec![id::ACKNACK, id::STATUS] };
        assert_eq!(kinds(&sent), expected, "message {number}");
        acknowledge(&mut bench, number + 1);
    }
    bench
}

fn kinds(messages: &[Vec<u8>]) -> Vec<u8> {
    messages.iter().map(|message| message[4]).collect()
}

fn acknowledge(bench: &mut Bench, first: u8) {
    bench.client_says(HERE, &[bytes("81 00 00 00 0A 01 05 00"), vec![first, 0, 0, 0, 0x80]].concat());
}

fn ask(bench: &mut Bench, number: u8) -> Vec<u8> {
    let message = [vec![0x81, 0x80, number, 0], bytes("07 01 08 00 00 20 00 15 01 02 03 04")].concat();
    kinds(&bench.client_says(HERE, &message))
}

#[test]
fn an_answer_goes_ahead_of_the_acknowledgement_where_answers_are_fast() {
    let mut bench = on_a_slow_line();
    let reader = ObjectId([0, 0x16]);
    let nothing: [u8; 0] = [];
    // The first time is unknown, and the acknowledgement does not wait.
    assert_eq!(ask(&mut bench, 7), [id::ACKNACK]);
    bench.pass(Span::from_us(200));
    assert_eq!(kinds(&bench.sample(reader, &[1, 2, 3, 4])), [id::DATA]);
    // From then on it does.
    assert_eq!(ask(&mut bench, 8), nothing);
    bench.pass(Span::from_us(200));
    assert_eq!(kinds(&bench.sample(reader, &[1, 2, 3, 4])), [id::DATA, id::ACKNACK]);
    // An answer that is long goes behind.
    assert_eq!(ask(&mut bench, 9), nothing);
    assert_eq!(kinds(&bench.sample(reader, &[0; 200])), [id::ACKNACK, id::DATA]);
    // Without an answer the acknowledgement goes when its time is over, and at once from then on.
    assert_eq!(ask(&mut bench, 10), nothing);
    assert_eq!(kinds(&bench.pass(Span::from_us(499))), nothing);
    assert_eq!(kinds(&bench.pass(Span::from_us(1))), [id::ACKNACK]);
    acknowledge(&mut bench, 9);
    assert_eq!(ask(&mut bench, 11), [id::ACKNACK]);
}

#[test]
fn a_ping_does_not_wait_with_an_acknowledgement() {
    let mut bench = on_a_slow_line();
    ask(&mut bench, 7);
    bench.sample(ObjectId([0, 0x16]), &[1, 2, 3, 4]);
    let nothing: [u8; 0] = [];
    assert_eq!(ask(&mut bench, 8), nothing, "the acknowledgement waits");
    let ping = bytes("81 00 00 00 02 01 08 00 00 0A FF FD 02 00 00 00");
    assert_eq!(kinds(&bench.client_says(HERE, &ping)), [id::ACKNACK, id::INFO]);
}

#[test]
fn an_acknowledgement_is_overtaken_once() {
    let mut bench = on_a_slow_line();
    ask(&mut bench, 7);
    bench.sample(ObjectId([0, 0x16]), &[1, 2, 3, 4]);
    let two = "81 80 08 00 03 01 04 00 00 30 00 15 03 01 04 00 00 31 00 16";
    assert_eq!(kinds(&bench.client_says(HERE, &bytes(two))), [id::STATUS, id::ACKNACK, id::STATUS]);
}

#[test]
fn clients_of_others_are_acknowledged_first_on_slow_lines_too() {
    let config = AgentConfig { hold: Span::from_us(500), ..AgentConfig::default() };
    let mut bench = Bench::with(config);
    bench.client_says(HERE, &bytes(CREATE_CLIENT));
    let participant = "81 80 00 00 01 07 10 00 00 0A 00 11 01 03 00 00 02 00 00 00 00 00 00 00";
    assert_eq!(kinds(&bench.client_says(HERE, &bytes(participant))), [id::ACKNACK, id::STATUS]);
}
