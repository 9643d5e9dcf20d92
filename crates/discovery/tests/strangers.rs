//! Limits of what an attacker can make a node send and keep: forged addresses, nodes by the thousand, pages, endpoints.

#![allow(clippy::unwrap_used, clippy::panic)] // tests and what they share

use std::net::SocketAddr;

use noctule_discovery::datagram::{Body, Datagram, Hello, Page};
use noctule_discovery::trace::SCHEMA;
use noctule_discovery::{
    Destination, Discovery, DiscoveryConfig, Endpoint, EndpointId, EndpointKind, Event, Identity,
    MATCHES_PER_NODE_LIMIT, NODES_LIMIT, NODES_PER_ADDRESS_LIMIT, NodeId, PAGES_PER_ADDRESS_LIMIT, Qos,
    Reason, Via,
};
use noctule_timebase::{Instant, Span};

const START: Instant<noctule_discovery::Local> = Instant::from_ns(0);

/// A node under attack, and what it has sent so far to each address.
struct Victim {
    discovery: Discovery,
    now: Instant<noctule_discovery::Local>,
}

impl Victim {
    fn new() -> Victim {
        let me = Identity { id: NodeId([0; 16]), name: "victim".into(), host: 0, port: 1 };
        let mut discovery = Discovery::new(DiscoveryConfig::default(), me, Vec::new(), [5; 16], START);
        discovery.trace().start();
        Victim { discovery, now: START }
    }

    fn receive(&mut self, from: NodeId, source: SocketAddr, body: Body) -> usize {
        let mut bytes = Vec::new();
        Datagram { from, domain: 0, body }.encode(&mut bytes);
        assert_eq!(self.discovery.handle_datagram(&bytes, source, Via::Unicast, self.now), Ok(()));
        bytes.len()
    }

    /// Datagrams to one address alone.
    fn sent(&mut self) -> Vec<(SocketAddr, Vec<u8>)> {
        let (mut sent, mut bytes) = (Vec::new(), Vec::new());
        while let Some(destination) = self.discovery.poll_transmit(self.now, &mut bytes) {
            match destination {
                Destination::One(to) => sent.push((to, bytes.clone())),
                Destination::Everyone => {
                    sent.extend(self.discovery.unicast_peers().map(|to| (to, bytes.clone())));
                }
            }
        }
        sent
    }

    /// A node that is where it says: it answers the challenge.
    fn join(&mut self, from: NodeId, source: SocketAddr, hello: Hello) {
        self.receive(from, source, Body::Hello(hello.clone()));
        let number =
            self.sent().into_iter().find_map(|(to, bytes)| match Datagram::decode(&bytes).unwrap().body {
                Body::PathChallenge { number, .. } if to == source => Some(number),
                _ => None,
            });
        let number = number.unwrap_or_else(|| panic!("{source} was not challenged"));
        self.receive(from, source, Body::PathResponse { number, hello });
        self.sent();
    }

    fn events(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.discovery.poll_event()).collect()
    }

    /// Events of its trace since the last call, as sentences.
    fn sentences(&mut self) -> Vec<String> {
        let events = std::iter::from_fn(|| self.discovery.trace().poll());
        events.map(|(_, event)| SCHEMA.sentence_of(&event).unwrap()).collect()
    }

    /// How many of them contain `part`.
    fn noted(&mut self, part: &str) -> usize {
        self.sentences().iter().filter(|sentence| sentence.contains(part)).count()
    }
}

fn hello(port: u16) -> Hello {
    let (lifetime, name) = (Span::from_s(60), "stranger".to_owned());
    Hello { revision: 1, pages: 1, lifetime, port, new_here: true, host: 7, digest: 9, name }
}

fn id(number: u32) -> NodeId {
    let mut id = [1; 16];
    id[..4].copy_from_slice(&number.to_le_bytes());
    NodeId(id)
}

fn address(number: u32, port: u16) -> SocketAddr {
    SocketAddr::from(([10, (number >> 16) as u8, (number >> 8) as u8, number as u8], port))
}

fn endpoint(kind: EndpointKind, id: u32) -> Endpoint {
    Endpoint {
        id: EndpointId(id),
        kind,
        topic: "camera".into(),
        type_name: String::new(),
        type_hash: 0,
        formats: 1,
        payload_bytes_max: 64,
        qos: Qos::default(),
        relayed: false,
    }
}

#[test]
fn an_address_that_has_not_answered_gets_no_more_than_three_times_what_came_from_it() {
    let mut victim = Victim::new();
    let _ = victim.discovery.add(endpoint(EndpointKind::Writer, 0), START);
    let forged = address(9, 9);
    let (mut received, mut sent) = (0, 0);
    for ms in 0..60_000 {
        victim.now = START + Span::from_ms(ms);
        if ms % 500 == 0 {
            received += victim.receive(id(1), forged, Body::Hello(hello(9)));
            let endpoints = vec![endpoint(EndpointKind::Reader, 1)];
            received += victim.receive(id(1), forged, Body::Page(Page { number: 0, revision: 1, endpoints }));
        }
        sent +=
            victim.sent().iter().filter(|(to, _)| *to == forged).map(|(_, bytes)| bytes.len()).sum::<usize>();
    }
    assert!(sent > 0 && sent <= 3 * received, "{sent} bytes sent for {received}");
    assert_eq!((victim.discovery.nodes().count(), victim.events()), (0, vec![]));
}

#[test]
fn an_answer_makes_a_node_known_and_a_guessed_or_moved_one_does_not() {
    let mut victim = Victim::new();
    victim.receive(id(1), address(1, 9), Body::PathResponse { number: 3, hello: hello(9) });
    assert_eq!((victim.discovery.nodes().count(), victim.discovery.counters().refused_responses), (0, 1));
    assert_eq!(victim.noted("from 10.0.0.1:9 is refused: it fits no challenge"), 1);
    victim.join(id(1), address(1, 9), hello(9));
    assert!(matches!(victim.events()[..], [Event::Joined { .. }]));
    assert_eq!(victim.discovery.locator(id(1)), Some(address(1, 9)));
}

#[test]
fn goodbye_and_pages_count_only_from_where_the_node_is() {
    let mut victim = Victim::new();
    let _ = victim.discovery.add(endpoint(EndpointKind::Writer, 0), START);
    victim.join(id(1), address(1, 9), hello(9));
    let page = |revision| {
        let endpoints = vec![endpoint(EndpointKind::Reader, 1)];
        Body::Page(Page { number: 0, revision, endpoints })
    };
    victim.events();
    for forger in [address(2, 9), address(1, 10)] {
        victim.receive(id(1), forger, Body::Bye);
        victim.receive(id(1), forger, page(5));
    }
    assert_eq!((victim.events(), victim.discovery.counters().misplaced), (vec![], 4));
    assert_eq!(victim.noted("is ignored: the node is at another address"), 4);
    victim.receive(id(1), address(1, 9), page(5));
    victim.receive(id(1), address(1, 9), Body::Bye);
    let events = victim.events();
    assert!(
        matches!(
            events[..],
            [Event::Matched { .. }, Event::Unmatched { .. }, Event::Gone { reason: Reason::Left, .. }]
        ),
        "{events:?}"
    );
}

#[test]
fn a_node_moves_when_it_answers_from_its_new_address_and_only_then() {
    let mut victim = Victim::new();
    victim.join(id(1), address(1, 9), hello(9));
    victim.now = START + Span::from_s(1);
    // A copy over another network, right behind the first and proven, is no move, but datagrams from there are the node's, too.
    victim.events();
    victim.receive(id(1), address(1, 9), Body::Hello(hello(9)));
    victim.sentences();
    victim.join(id(1), address(2, 9), hello(9));
    victim.receive(id(1), address(2, 9), Body::Hello(hello(9)));
    let noted = victim.sentences();
    assert!(noted.iter().any(|one| one.ends_with(" is also at 10.0.0.2:9")), "{noted:?}");
    assert!(victim.sent().iter().all(|(to, _)| *to != address(2, 9)), "it has proven that one");
    assert_eq!(victim.discovery.locator(id(1)), Some(address(1, 9)));
    assert_eq!(victim.events(), [Event::AlsoAt { node: id(1), locator: address(2, 9) }]);
    victim.now = START + Span::from_s(2);
    let mut forged = hello(9);
    (forged.revision, forged.digest) = (1_000, 3);
    victim.receive(id(1), address(3, 9), Body::Hello(forged));
    assert_eq!(victim.discovery.locator(id(1)), Some(address(1, 9)));
    victim.events();
    victim.join(id(1), address(2, 9), hello(9));
    assert_eq!(victim.discovery.locator(id(1)), Some(address(2, 9)));
    assert_eq!(victim.events(), [Event::Moved { node: id(1), locator: address(2, 9) }]);
    assert_eq!(victim.noted("is reached at 10.0.0.2:9 from now on"), 1);
}

#[test]
fn one_address_has_its_share_of_the_nodes_and_a_full_table_lets_newcomers_in() {
    let mut victim = Victim::new();
    let flood = NODES_PER_ADDRESS_LIMIT as u32 + 10;
    (0..flood)
        .for_each(|number| victim.join(id(number), address(1, 2 + number as u16), hello(2 + number as u16)));
    assert_eq!(victim.discovery.nodes().count(), NODES_PER_ADDRESS_LIMIT);
    assert_eq!(victim.discovery.counters().refused_full, 10);
    assert_eq!(victim.noted("it comes from an address that has as many nodes as one may have"), 10);
    let rest = (NODES_LIMIT - NODES_PER_ADDRESS_LIMIT) as u32;
    let mut displaced = 0;
    for number in 0..rest + 5 {
        victim.join(id(100_000 + number), address(100 + number, 9), hello(9));
        victim.events();
        displaced += victim.noted("it gave its place in a full table to another node");
    }
    assert_eq!(displaced, 5);
    assert_eq!((victim.discovery.nodes().count(), victim.discovery.counters().displaced), (NODES_LIMIT, 5));
    let left =
        victim.discovery.nodes().filter(|(_, _, locator, _)| locator.ip() == address(1, 0).ip()).count();
    assert_eq!(left, NODES_PER_ADDRESS_LIMIT - 5, "those of the address that has most give way");
}

#[test]
fn an_empty_page_of_a_high_number_costs_one_page_and_an_address_has_its_share() {
    let mut victim = Victim::new();
    for node in 0..12 {
        victim.join(id(node), address(1, 2 + node as u16), hello(2 + node as u16));
        for number in (0..=255).rev() {
            let page = Page { number, revision: 1, endpoints: Vec::new() };
            victim.receive(id(node), address(1, 2 + node as u16), Body::Page(page));
        }
    }
    assert_eq!(victim.discovery.counters().refused_full, 12 * 256 - PAGES_PER_ADDRESS_LIMIT as u64);
    assert_eq!(victim.noted("is not kept: as many pages"), 12 * 256 - PAGES_PER_ADDRESS_LIMIT);
    victim.join(id(99), address(2, 9), hello(9));
    let page = Page { number: 255, revision: 1, endpoints: Vec::new() };
    victim.receive(id(99), address(2, 9), Body::Page(page));
    assert_eq!(victim.discovery.counters().refused_full, 12 * 256 - PAGES_PER_ADDRESS_LIMIT as u64);
}

#[test]
fn a_node_with_a_thousand_writers_of_a_topic_has_its_share_of_a_readers_matches() {
    let mut victim = Victim::new();
    let _ = victim.discovery.add(endpoint(EndpointKind::Reader, 0), START);
    victim.join(id(1), address(1, 9), hello(9));
    let writers: Vec<Endpoint> = (0..1_500).map(|number| endpoint(EndpointKind::Writer, number)).collect();
    for (number, some) in (0..).zip(writers.chunks(20)) {
        let page = Page { number, revision: 1, endpoints: some.to_vec() };
        victim.receive(id(1), address(1, 9), Body::Page(page));
    }
    let matches = victim.events().into_iter().filter(|event| matches!(event, Event::Matched { .. })).count();
    assert_eq!(matches, MATCHES_PER_NODE_LIMIT);
    assert_eq!(victim.discovery.counters().refused_matches, 1_500 - MATCHES_PER_NODE_LIMIT as u64);
    assert_eq!(victim.noted("has as many partners as it may have"), 1_500 - MATCHES_PER_NODE_LIMIT);
    victim.join(id(2), address(2, 9), hello(9));
    let page = Page { number: 0, revision: 1, endpoints: vec![endpoint(EndpointKind::Writer, 1)] };
    victim.receive(id(2), address(2, 9), Body::Page(page));
    assert!(victim.events().iter().any(|event| matches!(event, Event::Matched { .. })));
}
