//! One node, to which the test plays all others: when it speaks, which node it asks for what, and which node gives way to which.

#![allow(clippy::unwrap_used, clippy::panic)] // tests

use std::net::SocketAddr;

use noctule_discovery::datagram::{Body, Datagram, Hello, Page, PageSet};
use noctule_discovery::{
    Discovery, DiscoveryConfig, Endpoint, EndpointId, EndpointKind, Event, Identity, Local, NODES_LIMIT,
    NodeId, Qos, Reason, Via,
};
use noctule_timebase::{Instant, Span};

const START: Instant<Local> = Instant::from_ns(0);

/// A node that needs no proof of its address, since it is on a loopback network; from 127.0.1.0 on.
fn address(number: u32) -> SocketAddr {
    SocketAddr::from(([127, (number >> 16) as u8, 1 + (number >> 8) as u8, number as u8], 9))
}

fn id(number: u32) -> NodeId {
    let mut id = [1; 16];
    id[..4].copy_from_slice(&number.to_le_bytes());
    NodeId(id)
}

fn hello(host: u64) -> Hello {
    let (lifetime, name) = (Span::from_s(60), "other".to_owned());
    Hello { revision: 1, pages: 1, lifetime, port: 9, new_here: false, host, digest: 9, name }
}

fn endpoint(kind: EndpointKind, topic: String) -> Endpoint {
    Endpoint {
        id: EndpointId(1),
        kind,
        topic,
        type_name: String::new(),
        type_hash: 0,
        formats: 1,
        payload_bytes_max: 64,
        qos: Qos::default(),
        relayed: false,
    }
}

/// A node of host 0 with the number 0.
fn node(config: DiscoveryConfig, static_peers: Vec<SocketAddr>) -> Discovery {
    let me = Identity { id: NodeId([0; 16]), name: "one".into(), host: 0, port: 9 };
    Discovery::new(config, me, static_peers, [5; 16], START)
}

fn receive(to: &mut Discovery, from: NodeId, source: SocketAddr, body: Body, now: Instant<Local>) {
    let mut bytes = Vec::new();
    Datagram { from, domain: 0, body }.encode(&mut bytes);
    assert_eq!(to.handle_datagram(&bytes, source, Via::Unicast, now), Ok(()));
}

/// All that a node says from `now` on until `end`, and when.
fn said(node: &mut Discovery, mut now: Instant<Local>, end: Instant<Local>) -> Vec<(Instant<Local>, Body)> {
    let (mut said, mut bytes) = (Vec::new(), Vec::new());
    loop {
        now = now.max(node.poll_timeout());
        if now >= end {
            return said;
        }
        node.handle_timeout(now);
        while node.poll_transmit(now, &mut bytes).is_some() {
            said.push((now, Datagram::decode(&bytes).unwrap().body));
            assert!(said.len() < 10_000, "it does not stop");
        }
    }
}

/// When it sent a hello, in ms, and whether as a newcomer.
fn hellos(said: &[(Instant<Local>, Body)]) -> Vec<(i64, bool)> {
    let hello = |(at, body): &(Instant<Local>, Body)| match body {
        Body::Hello(hello) => Some((at.ns() / 1_000_000, hello.new_here)),
        _ => None,
    };
    said.iter().filter_map(hello).collect()
}

#[test]
fn a_node_says_hello_four_times_at_its_start_and_again_when_its_network_has_changed() {
    let mut node = node(DiscoveryConfig::default(), Vec::new());
    let newcomers = |begin: i64| [0, 30, 120, 400].map(|after| (begin + after, true));
    let at_the_start = hellos(&said(&mut node, START, START + Span::from_ms(10_500)));
    assert_eq!(at_the_start[..4], newcomers(0));
    assert!(at_the_start[4..].iter().all(|(_, new_here)| !new_here));
    let change = START + Span::from_ms(10_500);
    node.handle_network_change(change);
    assert_eq!(hellos(&said(&mut node, change, change + Span::from_ms(800))), newcomers(10_500));
}

#[test]
fn a_newcomer_is_answered_at_once_and_a_hello_that_is_planned_serves_the_next_one_too() {
    let mut node = node(DiscoveryConfig::default(), Vec::new());
    said(&mut node, START, START + Span::from_ms(10_000));
    let spoke = said(&mut node, START + Span::from_ms(10_000), START + Span::from_ms(11_100));
    let Some(&(last, _)) = spoke.last() else { panic!("no hello in 1.1 s") };
    let now = last + Span::from_ms(100);
    for number in 1..=2 {
        receive(
            &mut node,
            id(number),
            address(number),
            Body::Hello(Hello { new_here: true, ..hello(7) }),
            now,
        );
    }
    let answers = hellos(&said(&mut node, now, now + Span::from_ms(20)));
    assert_eq!(answers.len(), 1, "{answers:?}");
}

#[test]
fn what_a_node_says_of_itself_is_known_by_its_number() {
    let mut node = node(DiscoveryConfig::default(), Vec::new());
    for (number, host) in [(1, 7), (2, 0)] {
        let hello = Hello { name: format!("node {number}"), ..hello(host) };
        receive(&mut node, id(number), address(number), Body::Hello(hello), START);
        assert_eq!(node.name(id(number)), Some(&*format!("node {number}")));
        assert_eq!((node.host(id(number)), node.is_here(id(number))), (Some(host), host == 0));
        assert_eq!(node.locator(id(number)), Some(address(number)));
    }
    assert_eq!((node.name(id(3)), node.host(id(3)), node.locator(id(3))), (None, None, None));
}

#[test]
fn one_lost_change_costs_one_page() {
    let [mut one, mut other] = [node(DiscoveryConfig::default(), Vec::new()), {
        let me = Identity { id: id(1), name: "other".into(), host: 7, port: 9 };
        Discovery::new(DiscoveryConfig::default(), me, Vec::new(), [6; 16], START)
    }];
    (0..100).for_each(|topic| {
        other.add(endpoint(EndpointKind::Writer, format!("topic_{topic}")), START).unwrap();
    });
    let pages = |said: &[(Instant<Local>, Body)]| {
        said.iter().filter(|(_, body)| matches!(body, Body::Page(_))).count()
    };
    let whole = said(&mut other, START, START + Span::from_s(2));
    assert!(pages(&whole) > 3);
    for (at, body) in whole {
        receive(&mut one, id(1), address(1), body, at);
    }
    // Nothing is missing, so nothing is asked.
    let is_question = |body: &Body| matches!(body, Body::Query { .. });
    let two = START + Span::from_s(2);
    assert!(!said(&mut one, two, two + Span::from_ms(200)).iter().any(|(_, body)| is_question(body)));
    other.add(endpoint(EndpointKind::Writer, "one more".into()), two).unwrap();
    let change = said(&mut other, two, two + Span::from_ms(500));
    assert_eq!(pages(&change), 1);
    for (at, body) in change.into_iter().filter(|(_, body)| matches!(body, Body::Hello(_))) {
        receive(&mut one, id(1), address(1), body, at);
    }
    let now = two + Span::from_ms(500);
    let asked = said(&mut one, now, now + Span::from_ms(100)).into_iter().find(|(_, body)| is_question(body));
    let Some((at, question)) = asked else { panic!("nothing was asked") };
    receive(&mut other, NodeId([0; 16]), address(0), Body::Hello(hello(0)), at);
    receive(&mut other, NodeId([0; 16]), address(0), question, at);
    let answer = said(&mut other, at, at + Span::from_ms(100));
    assert_eq!(pages(&answer), 1, "{answer:?}");
}

#[test]
fn changes_within_two_milliseconds_are_announced_together() {
    let mut node = node(DiscoveryConfig::default(), Vec::new());
    said(&mut node, START, START + Span::from_s(2));
    let (two, gathered) = (START + Span::from_s(2), START + Span::from_ms(2_002));
    for (number, now) in (0..).zip([two, two + Span::from_ms(1)]) {
        node.add(endpoint(EndpointKind::Writer, format!("topic_{number}")), now).unwrap();
        assert_eq!(said(&mut node, now, now + Span::from_ms(1)), []);
    }
    let said = said(&mut node, gathered, two + Span::from_ms(100));
    let [(first, Body::Hello(hello)), (second, Body::Page(page)), ..] = &said[..] else { panic!("{said:?}") };
    assert_eq!((*first, *second), (gathered, gathered));
    assert_eq!((hello.revision, page.endpoints.len()), (page.revision, 2));
    assert_eq!(said.iter().filter(|(_, body)| matches!(body, Body::Page(_))).count(), 1);
}

#[test]
fn what_is_asked_of_another_node_is_not_answered() {
    let mut node = node(DiscoveryConfig::default(), Vec::new());
    node.add(endpoint(EndpointKind::Writer, "imu".into()), START).unwrap();
    receive(&mut node, id(1), address(1), Body::Hello(hello(7)), START);
    for (second, to, answered) in [(2, id(2), 0), (3, NodeId([0; 16]), 1)] {
        let now = START + Span::from_s(second);
        said(&mut node, now - Span::from_s(1), now);
        receive(&mut node, id(1), address(1), Body::Query { to, since: 0, except: PageSet::EMPTY }, now);
        receive(&mut node, id(1), address(1), Body::PathChallenge { to, number: 5 }, now);
        let answer = said(&mut node, now, now + Span::from_ms(50));
        let pages = answer.iter().filter(|(_, body)| matches!(body, Body::Page(_))).count();
        let is_proof = |body: &Body| matches!(body, Body::PathResponse { number: 5, .. });
        let proofs = answer.iter().filter(|(_, body)| is_proof(body)).count();
        assert_eq!((pages, proofs), (answered, answered), "asked of {to:?}");
    }
}

#[test]
fn each_page_that_changes_something_counts_as_a_change_and_no_other() {
    let mut node = node(DiscoveryConfig::default(), Vec::new());
    receive(&mut node, id(1), address(1), Body::Hello(hello(7)), START);
    let reader = endpoint(EndpointKind::Reader, "imu".into());
    let relayed = Endpoint { relayed: true, ..reader.clone() };
    for (revision, (endpoints, changes)) in (1..).zip([
        (vec![reader.clone()], 1),
        (vec![reader], 0),
        (vec![relayed], 1),
        (vec![], 1),
        (vec![], 0),
    ]) {
        let before = node.generation();
        receive(&mut node, id(1), address(1), Body::Page(Page { number: 0, revision, endpoints }), START);
        assert_eq!(node.generation() - before, changes, "revision {revision}");
    }
}

#[test]
fn pages_never_take_more_than_the_budget_and_all_are_sent() {
    let (budget_bytes_per_s, budget_saved_bytes) = (16 << 10, 4 << 10);
    let config = DiscoveryConfig { budget_bytes_per_s, budget_saved_bytes, ..DiscoveryConfig::default() };
    let mut node = node(config, Vec::new());
    for number in 0..1_000 {
        node.add(endpoint(EndpointKind::Writer, format!("topic_{number}")), START).unwrap();
    }
    let (mut bytes, mut endpoints) = (0, 0);
    for (at, body) in said(&mut node, START, START + Span::from_s(10)) {
        let Body::Page(page) = &body else { continue };
        endpoints += page.endpoints.len();
        let mut datagram = Vec::new();
        Datagram { from: NodeId([0; 16]), domain: 0, body }.encode(&mut datagram);
        bytes += datagram.len() as i64;
        let most =
            i64::from(budget_saved_bytes) + (at - START).ns() * i64::from(budget_bytes_per_s) / 1_000_000_000;
        assert!(bytes <= most + 1, "{bytes} bytes of at most {most} at {at:?}");
    }
    assert_eq!(endpoints, 1_000);
    assert!(bytes > 2 * i64::from(budget_saved_bytes), "{bytes} bytes need no budget");
}

#[test]
fn when_an_endpoint_is_removed_another_of_its_topic_still_matches() {
    let mut node = node(DiscoveryConfig::default(), Vec::new());
    let reader = || endpoint(EndpointKind::Reader, "imu".into());
    let (removed, kept) = (node.add(reader(), START).unwrap(), node.add(reader(), START).unwrap());
    node.remove(removed, START);
    receive(&mut node, id(1), address(1), Body::Hello(hello(7)), START);
    let endpoints = vec![endpoint(EndpointKind::Writer, "imu".into())];
    receive(&mut node, id(1), address(1), Body::Page(Page { number: 0, revision: 1, endpoints }), START);
    let matched: Vec<EndpointId> = std::iter::from_fn(|| node.poll_event())
        .filter_map(|event| match event {
            Event::Matched { local, .. } => Some(local),
            _ => None,
        })
        .collect();
    assert_eq!(matched, [kept]);
}

#[test]
fn pages_that_may_be_right_behind_their_hello_are_asked_for_after_ten_milliseconds() {
    let mut node = node(DiscoveryConfig::default(), Vec::new());
    for number in 1..=20 {
        let now = START + Span::from_s(number.into());
        receive(&mut node, id(number), address(number), Body::Hello(hello(7)), now);
        let said = said(&mut node, now, now + Span::from_ms(30));
        let is_question = |body: &Body| matches!(body, Body::Query { to, .. } if *to == id(number));
        let asked = said.iter().find(|(_, body)| is_question(body));
        let Some((asked, _)) = asked else { panic!("nothing was asked") };
        let wait = *asked - now;
        assert!(wait >= Span::from_ms(10) && wait <= Span::from_ms(20), "{wait}");
    }
}

#[test]
fn a_node_that_does_not_answer_is_asked_ever_more_rarely() {
    let mut node = node(DiscoveryConfig::default(), Vec::new());
    receive(&mut node, id(1), address(1), Body::Hello(hello(7)), START);
    let said = said(&mut node, START, START + Span::from_s(30));
    let questions = said.iter().filter(|(_, body)| matches!(body, Body::Query { .. })).map(|(at, _)| *at);
    let questions: Vec<_> = questions.collect();
    assert!(questions.len() > 7, "{questions:?}");
    for (asked, pair) in questions.windows(2).enumerate() {
        let wait = Span::from_ms(50 << asked.min(5));
        let gap = pair[1] - pair[0];
        assert!(gap >= wait && gap <= wait * 2, "{gap} after question {asked}");
    }
}

#[test]
fn a_port_that_reaches_a_whole_host_stands_for_its_nodes_and_for_no_others() {
    let well_known_port = Some(7_400);
    let socket = |last: u8, port: u16| SocketAddr::from(([127, 0, 0, last], port));
    let mut node =
        node(DiscoveryConfig { well_known_port, ..DiscoveryConfig::default() }, vec![socket(1, 7_400)]);
    let mut join = |number: u32, at: SocketAddr| {
        receive(&mut node, id(number), at, Body::Hello(Hello { port: at.port(), ..hello(7) }), START);
        node.unicast_peers().collect::<Vec<_>>()
    };
    assert_eq!(join(1, socket(1, 5)), [socket(1, 7_400)], "its host is a static peer");
    assert_eq!(join(2, socket(2, 5)), [socket(1, 7_400), socket(2, 5)]);
    join(3, socket(2, 6));
    assert_eq!(join(4, socket(2, 7)), [socket(1, 7_400), socket(2, 5), socket(2, 6), socket(2, 7)]);
    assert_eq!(join(5, socket(2, 8)), [socket(1, 7_400), socket(2, 7_400)], "from four nodes on by one port");
}

#[test]
fn a_node_that_matches_or_shares_this_host_gives_way_to_none() {
    let mut node = node(DiscoveryConfig::default(), Vec::new());
    node.add(endpoint(EndpointKind::Writer, "camera".into()), START).unwrap();
    let nodes = NODES_LIMIT as u32;
    // Ten at one address that match, ten at another on this host, one at each of many more.
    let source = |number: u32| match number {
        0..20 => SocketAddr::from(([127, 0, 0, 1 + (number / 10) as u8], 1 + number as u16)),
        _ => address(number),
    };
    for number in 0..nodes + 3 {
        let (source, host) = (source(number), if (10..20).contains(&number) { 0 } else { 7 });
        let hello = Hello { port: source.port(), ..hello(host) };
        receive(&mut node, id(number), source, Body::Hello(hello), START);
        if number < 10 {
            let endpoints = vec![endpoint(EndpointKind::Reader, "camera".into())];
            let page = Body::Page(Page { number: 0, revision: 1, endpoints });
            receive(&mut node, id(number), source, page, START);
        }
    }
    let gone: Vec<NodeId> = std::iter::from_fn(|| node.poll_event())
        .filter_map(|event| match event {
            Event::Gone { node, reason: Reason::Displaced } => Some(node),
            _ => None,
        })
        .collect();
    assert_eq!((gone.len(), node.counters().displaced), (3, 3));
    assert!((0..20).all(|number| !gone.contains(&id(number))), "{gone:?}");
}
