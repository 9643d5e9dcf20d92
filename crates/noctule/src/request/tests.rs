//! Clients and servers in virtual time, over a network that loses, duplicates and reorders, with servers that are killed.

use std::collections::{BTreeMap, BTreeSet};

use noctule_discovery::NodeId;
use noctule_time_sync::Local;
use noctule_timebase::{Instant, Span};

use super::outstanding::{Arrived, Copy, Ended, OUTSTANDING_MAX, Outstanding, ServerRef, Terms};
use super::remembered::{NotOpen, REMEMBERED_MAX, Remembered, Verdict};
use super::wire::{Kind, ReplyHeader, RequestHeader, RequestId, Status};
use super::{ServiceTopics, remembered};
use crate::sample::Age;

fn at(ms: i64) -> Instant<Local> {
    Instant::from_ns(ms * 1_000_000)
}

fn server(number: u64) -> ServerRef {
    ServerRef { number, node: NodeId([number as u8; 16]) }
}

fn terms(deadline_ms: i64, is_idempotent: bool) -> Terms {
    Terms { deadline: Span::from_ms(deadline_ms), is_idempotent, only: None }
}

fn header(copy: &Copy) -> RequestHeader {
    RequestHeader::decode(&copy.bytes).unwrap().0
}

fn age(ms: i64) -> Option<Age> {
    Some(Age { span: Span::from_ms(ms), bound: Some(Span::ZERO), sigma: None })
}

#[test]
fn topics_are_named_as_ros_2_names_them() {
    let topics = ServiceTopics::of("/arm/add_two_ints").unwrap();
    assert_eq!(topics.request, "rq/arm/add_two_intsRequest");
    assert_eq!(topics.reply, "rr/arm/add_two_intsReply");
    assert_eq!(ServiceTopics::of("arm/add_two_ints").unwrap(), topics);
    assert_eq!(ServiceTopics::service_of(&topics.request).as_deref(), Some("/arm/add_two_ints"));
    assert_eq!(ServiceTopics::service_of(&topics.reply), None);
    assert!(ServiceTopics::of(&"x".repeat(243)).unwrap().request.len() <= 255);
    for wrong in ["", "/", &"x".repeat(244)] {
        let error = ServiceTopics::of(wrong).unwrap_err().to_string();
        assert!(error.contains("1 to 243 bytes"), "{error}");
    }
}

#[test]
fn without_a_server_a_call_ends_at_its_deadline_and_says_so() {
    let mut client = Outstanding::new(1);
    let call = client.handle_call(at(0), b"q", terms(100, false)).unwrap();
    assert!(client.poll_send().is_none());
    client.handle_time(at(99));
    assert_eq!((client.poll_ended(), client.next_time()), (None, Some(at(100))));
    client.handle_time(at(100));
    assert_eq!(client.poll_ended(), Some((call, Ended::NoServer { waited: Span::from_ms(100) })));
}

#[test]
fn a_call_ends_with_its_server_unless_it_is_idempotent() {
    for is_idempotent in [false, true] {
        let mut client = Outstanding::new(1);
        client.handle_servers(at(0), &[server(5)]);
        let call = client.handle_call(at(0), b"q", terms(1_000, is_idempotent)).unwrap();
        assert_eq!(header(&client.poll_send().unwrap()).server, 5);
        client.handle_servers(at(10), &[server(6)]);
        if is_idempotent {
            let copy = client.poll_send().unwrap();
            assert_eq!((header(&copy).server, header(&copy).id.sequence, copy.source_time), (6, call, at(0)));
            assert_eq!((client.poll_ended(), client.counters.moved), (None, 1));
        } else {
            assert_eq!(client.poll_ended(), Some((call, Ended::ServerGone { server: server(5).node })));
            assert_eq!((client.poll_send().is_none(), client.counters.server_gone), (true, 1));
        }
    }
}

#[test]
fn a_late_reply_a_second_one_and_one_to_another_client_are_distinguished() {
    let mut client = Outstanding::new(1);
    client.handle_servers(at(0), &[server(5)]);
    let late = client.handle_call(at(0), b"q", terms(100, false)).unwrap();
    client.handle_time(at(100));
    assert!(matches!(client.poll_ended(), Some((_, Ended::DeadlineExceeded { sent: 1, .. }))));
    let reply = |client, sequence| ReplyHeader {
        status: Status::Done,
        id: RequestId { client, sequence },
        server: 5,
    };
    let node = server(5).node;
    assert_eq!(
        client.handle_reply(at(130), &reply(1, late), node),
        Arrived::Late { since: Span::from_ms(130) }
    );
    assert_eq!(client.handle_reply(at(131), &reply(1, late), node), Arrived::Unexpected);
    assert_eq!(client.handle_reply(at(132), &reply(2, late), node), Arrived::Unexpected);
    let call = client.handle_call(at(200), b"q", terms(100, false)).unwrap();
    assert_eq!(client.handle_reply(at(210), &reply(1, call), node), Arrived::Expected);
    assert_eq!(client.handle_reply(at(211), &reply(1, call), node), Arrived::Unexpected);
    let counters = client.counters;
    assert_eq!((counters.late_replies, counters.duplicate_replies, counters.other_clients), (1, 2, 1));
}

#[test]
fn a_client_with_all_its_calls_under_way_refuses_one_more() {
    let mut client = Outstanding::new(1);
    for _ in 0..OUTSTANDING_MAX {
        assert!(client.handle_call(at(0), b"", terms(100, false)).is_some());
    }
    assert_eq!(client.handle_call(at(0), b"", terms(100, false)), None);
    assert_eq!(client.counters.full, 1);
    client.handle_time(at(100));
    assert!(client.handle_call(at(100), b"", terms(100, false)).is_some());
}

fn request(client: u64, sequence: i64, deadline_ms: i64) -> RequestHeader {
    RequestHeader {
        kind: Kind::Request,
        is_idempotent: false,
        attempt: 0,
        id: RequestId { client, sequence },
        server: 5,
        deadline: Span::from_ms(deadline_ms),
    }
}

#[test]
fn a_server_executes_a_request_once_and_repeats_its_reply() {
    let mut server = Remembered::new(5);
    let request = request(1, 1, 1_000);
    assert_eq!(server.handle_request(at(0), &request, age(1)), Verdict::Execute);
    assert_eq!(server.handle_request(at(50), &request, age(51)), Verdict::Ignore);
    let reply = server.handle_answer(at(60), request.id, (Status::Done, b"r")).unwrap();
    assert_eq!((reply.id, reply.server), (request.id, 5));
    assert_eq!(server.handle_answer(at(61), request.id, (Status::Done, b"r")), Err(NotOpen::Twice));
    let again = Verdict::Answer(Status::Done, b"r".to_vec());
    assert_eq!(server.handle_request(at(70), &request, age(71)), again);
    // Long after its deadline, when it is forgotten: its age refuses it.
    let late = Verdict::Answer(Status::Late, Vec::new());
    assert_eq!(server.handle_request(at(5_000), &request, age(5_001)), late);
    assert_eq!(server.handle_answer(at(5_000), request.id, (Status::Done, b"r")), Err(NotOpen::TooLate));
    let counters = server.counters;
    assert_eq!((counters.requests, counters.duplicates, counters.late, counters.late_replies), (1, 2, 1, 1));
    assert_eq!(
        server.handle_request(at(0), &RequestHeader { server: 6, ..request }, age(1)),
        Verdict::Ignore
    );
}

#[test]
fn what_was_cancelled_is_not_executed_and_not_answered() {
    let mut server = Remembered::new(5);
    let first = request(1, 1, 1_000);
    assert_eq!(server.handle_request(at(0), &first, age(0)), Verdict::Execute);
    assert!(!server.is_cancelled(first.id));
    let cancel = RequestHeader { kind: Kind::Cancel, ..first };
    assert_eq!(server.handle_request(at(1), &cancel, age(1)), Verdict::Ignore);
    assert!(server.is_cancelled(first.id));
    assert_eq!(server.handle_answer(at(2), first.id, (Status::Done, b"")), Err(NotOpen::Cancelled));
    // The cancellation overtakes its request.
    let second = request(1, 2, 1_000);
    let cancel = RequestHeader { kind: Kind::Cancel, ..second };
    assert_eq!(server.handle_request(at(3), &cancel, age(0)), Verdict::Ignore);
    let cancelled = Verdict::Answer(Status::Cancelled, Vec::new());
    assert_eq!(server.handle_request(at(4), &second, age(1)), cancelled);
}

#[test]
fn a_full_server_refuses_and_remembers_again_after_deadlines() {
    let mut server = Remembered::new(5);
    for sequence in 0..REMEMBERED_MAX as i64 {
        assert_eq!(server.handle_request(at(0), &request(1, sequence, 100), age(0)), Verdict::Execute);
    }
    let full = Verdict::Answer(Status::Full, Vec::new());
    assert_eq!(server.handle_request(at(1), &request(2, 0, 100), age(0)), full);
    assert_eq!(server.counters.full, 1);
    assert_eq!(server.handle_request(at(100), &request(2, 0, 100), age(0)), Verdict::Execute);
}

#[test]
fn a_full_server_forgets_what_was_answered_ten_seconds_ago() {
    let mut server = Remembered::new(5);
    let far = 600_000;
    for sequence in 0..REMEMBERED_MAX as i64 {
        assert_eq!(server.handle_request(at(sequence), &request(1, sequence, far), age(0)), Verdict::Execute);
        let id = RequestId { client: 1, sequence };
        assert!(server.handle_answer(at(sequence), id, (Status::Done, b"")).is_ok());
    }
    // A copy shows that its client still waits.
    let copy = server.handle_request(at(16_400), &request(1, 0, far), age(16_400));
    assert_eq!(copy, Verdict::Answer(Status::Done, Vec::new()));
    for sequence in 0..100 {
        assert_eq!(server.handle_request(at(16_401), &request(2, sequence, far), age(0)), Verdict::Execute);
    }
    assert_eq!(server.handle_request(at(16_402), &request(1, 0, far), age(16_402)), copy, "not forgotten");
    // As many under way as there is room for are refused.
    let mut sequence = 100;
    while server.handle_request(at(40_000), &request(2, sequence, far), age(0)) == Verdict::Execute {
        sequence += 1;
    }
    assert_eq!((sequence, server.counters.full), (REMEMBERED_MAX as i64, 1));
}

#[test]
fn replies_beyond_the_limit_in_bytes_are_not_kept_and_a_copy_learns_it() {
    let mut server = Remembered::new(5);
    let long = vec![0; remembered::REPLIES_BYTES_MAX / 2 + 1];
    for sequence in 0..2 {
        assert_eq!(server.handle_request(at(0), &request(1, sequence, 100), age(0)), Verdict::Execute);
        let id = RequestId { client: 1, sequence };
        assert!(server.handle_answer(at(0), id, (Status::Done, &long)).is_ok());
    }
    assert_eq!(server.counters.replies_not_kept, 1);
    let forgotten = Verdict::Answer(Status::Forgotten, Vec::new());
    assert_eq!(server.handle_request(at(1), &request(1, 1, 100), age(1)), forgotten);
    // What is forgotten makes room.
    server.handle_time(at(200));
    assert_eq!(server.handle_request(at(200), &request(1, 2, 100), age(0)), Verdict::Execute);
    let id = RequestId { client: 1, sequence: 2 };
    assert!(server.handle_answer(at(200), id, (Status::Done, &long)).is_ok());
    assert_eq!(server.counters.replies_not_kept, 1);
}

/// xorshift64.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    fn is_one_in(&mut self, many: u64) -> bool {
        self.below(many) == 0
    }
}

const CLIENTS: u64 = 3;
const SERVERS: u64 = 3;
const END_MS: i64 = 4_000;

enum Event {
    Request(u64, Copy),
    Reply(u64, u64, ReplyHeader, Vec<u8>),
    /// The program of a server has done its work.
    Answer(u64, RequestId, Vec<u8>),
}

/// A service in virtual time, steps of a millisecond. Servers are numbered from 1 and never come back under their number, as nodes.
struct World {
    random: Random,
    clients: Vec<Outstanding>,
    servers: BTreeMap<u64, Remembered>,
    next_server: u64,
    events: BTreeMap<(i64, u64), Event>,
    count: u64,
    /// Which servers executed a request.
    executed: BTreeMap<RequestId, Vec<u64>>,
    idempotent: BTreeSet<RequestId>,
    begun: BTreeMap<RequestId, i64>,
    ended: BTreeMap<RequestId, Option<Ended>>,
    /// Of servers that were killed.
    duplicates: u64,
}

impl World {
    fn new(seed: u64) -> World {
        World {
            random: Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1),
            clients: (0..CLIENTS).map(|client| Outstanding::new(client + 100)).collect(),
            servers: (1..=SERVERS).map(|number| (number, Remembered::new(number))).collect(),
            next_server: SERVERS + 1,
            events: BTreeMap::new(),
            count: 0,
            executed: BTreeMap::new(),
            idempotent: BTreeSet::new(),
            begun: BTreeMap::new(),
            ended: BTreeMap::new(),
            duplicates: 0,
        }
    }

    fn after(&mut self, now_ms: i64, delay_ms: u64, event: Event) {
        self.count += 1;
        self.events.insert((now_ms + 1 + delay_ms as i64, self.count), event);
    }

    /// One in five is lost, one in five comes twice, all in any order within 30 ms and some much later.
    fn copies(&mut self) -> Vec<u64> {
        let count = [0, 1, 1, 1, 2][self.random.below(5) as usize];
        let mut copies = Vec::new();
        for _ in 0..count {
            let most_ms = if self.random.is_one_in(20) { 900 } else { 30 };
            copies.push(self.random.below(most_ms));
        }
        copies
    }

    fn run(&mut self) {
        for now_ms in 0..END_MS {
            while let Some(entry) = self.events.first_entry().filter(|entry| entry.key().0 <= now_ms) {
                let event = entry.remove();
                self.handle(now_ms, event);
            }
            if self.random.is_one_in(200) {
                let killed = self.servers.keys().next().copied();
                let killed = killed.and_then(|number| self.servers.remove(&number));
                self.duplicates += killed.map_or(0, |server| server.counters.duplicates);
                self.servers.insert(self.next_server, Remembered::new(self.next_server));
                self.next_server += 1;
            }
            let servers: Vec<ServerRef> = self.servers.keys().map(|number| server(*number)).collect();
            for index in 0..CLIENTS {
                self.step_client(now_ms, index, &servers);
            }
        }
    }

    fn step_client(&mut self, now_ms: i64, index: u64, servers: &[ServerRef]) {
        let client = &mut self.clients[index as usize];
        if self.random.is_one_in(20) {
            client.handle_servers(at(now_ms), servers);
        }
        client.handle_time(at(now_ms));
        if now_ms < END_MS - 1_200 && self.random.is_one_in(10) {
            let is_idempotent = self.random.is_one_in(2);
            let deadline_ms = 20 + self.random.below(1_000) as i64;
            let message = (now_ms as u64 * CLIENTS + index).to_le_bytes();
            let call = client.handle_call(at(now_ms), &message, terms(deadline_ms, is_idempotent)).unwrap();
            let id = RequestId { client: index + 100, sequence: call };
            self.begun.insert(id, now_ms + deadline_ms);
            if is_idempotent {
                self.idempotent.insert(id);
            }
        }
        let client = &mut self.clients[index as usize];
        let copies: Vec<Copy> = std::iter::from_fn(|| client.poll_send()).collect();
        let ended: Vec<_> = std::iter::from_fn(|| client.poll_ended()).collect();
        for (sequence, ended) in ended {
            self.end(RequestId { client: index + 100, sequence }, Some(ended));
        }
        for copy in copies {
            for delay_ms in self.copies() {
                let (bytes, sequence) = (copy.bytes.clone(), copy.sequence);
                let copy = Copy { sequence, bytes, source_time: copy.source_time, source: copy.source };
                self.after(now_ms, delay_ms, Event::Request(index, copy));
            }
        }
    }

    fn handle(&mut self, now_ms: i64, event: Event) {
        match event {
            Event::Request(index, copy) => {
                let (header, message) = RequestHeader::decode(&copy.bytes).unwrap();
                let bound = Span::from_ms(self.random.below(5) as i64);
                let error = Span::from_ns(self.random.below(bound.ns() as u64 + 1) as i64);
                let span = at(now_ms) - copy.source_time + error;
                let age = Age { span, bound: Some(bound), sigma: None };
                // Every server of the service gets what is published.
                for number in self.servers.keys().copied().collect::<Vec<_>>() {
                    let Some(server) = self.servers.get_mut(&number) else { continue };
                    match server.handle_request(at(now_ms), &header, Some(age)) {
                        Verdict::Execute => {
                            self.executed.entry(header.id).or_default().push(number);
                            let work_ms = self.random.below(120);
                            self.after(now_ms, work_ms, Event::Answer(number, header.id, message.to_vec()));
                        }
                        Verdict::Answer(status, bytes) => {
                            let reply = ReplyHeader { status, id: header.id, server: number };
                            self.publish(now_ms, index, reply, bytes);
                        }
                        Verdict::Ignore => {}
                    }
                }
            }
            Event::Answer(number, id, message) => {
                let Some(server) = self.servers.get_mut(&number) else { return };
                if let Ok(header) = server.handle_answer(at(now_ms), id, (Status::Done, &message)) {
                    self.publish(now_ms, id.client - 100, header, message);
                }
            }
            Event::Reply(index, number, header, bytes) => {
                let client = &mut self.clients[index as usize];
                let arrived = client.handle_reply(at(now_ms), &header, server(number).node);
                if arrived == Arrived::Expected {
                    assert_eq!(header.id.client, index + 100, "a reply reached another client");
                    if header.status == Status::Done {
                        let asked = u64::from_le_bytes(bytes.try_into().unwrap());
                        assert_eq!(asked % CLIENTS, index, "the reply of another request");
                        self.end(header.id, None);
                    }
                }
            }
        }
    }

    /// A reply goes to all clients, each over a path of its own.
    fn publish(&mut self, now_ms: i64, _index: u64, header: ReplyHeader, bytes: Vec<u8>) {
        for index in 0..CLIENTS {
            for delay_ms in self.copies() {
                self.after(now_ms, delay_ms, Event::Reply(index, header.server, header, bytes.clone()));
            }
        }
    }

    fn end(&mut self, id: RequestId, how: Option<Ended>) {
        assert!(self.begun.contains_key(&id));
        assert!(self.ended.insert(id, how).is_none(), "request {id:?} ended twice");
    }
}

/// `NOCTULE_SEED` for one seed; else the first 40.
#[test]
fn whatever_the_network_and_the_servers_do_a_call_ends_once_and_is_executed_at_most_once() {
    let given = std::env::var("NOCTULE_SEED").ok().and_then(|seed| seed.parse::<u64>().ok());
    let (mut done, mut gone, mut moved, mut repeated) = (0, 0, 0, 0);
    for seed in given.map_or(1..=40, |seed| seed..=seed) {
        println!("NOCTULE_SEED={seed}");
        let mut world = World::new(seed);
        world.run();
        assert_eq!(world.begun.len(), world.ended.len(), "each call has an end");
        for (id, servers) in &world.executed {
            let distinct: BTreeSet<_> = servers.iter().collect();
            assert_eq!(distinct.len(), servers.len(), "{id:?} was executed twice by one server");
            assert!(servers.len() == 1 || world.idempotent.contains(id), "{id:?} by {servers:?}");
        }
        done += world.ended.values().filter(|how| how.is_none()).count();
        gone += world.clients.iter().map(|client| client.counters.server_gone).sum::<u64>();
        moved += world.clients.iter().map(|client| client.counters.moved).sum::<u64>();
        repeated += world.duplicates;
    }
    println!("{done} done, {gone} ended with their server, {moved} moved, {repeated} duplicates");
    assert!(
        given.is_some() || done > 1_000 && gone > 100 && moved > 100 && repeated > 100,
        "the world is too kind"
    );
}
