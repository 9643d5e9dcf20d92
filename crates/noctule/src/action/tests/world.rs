//! Actions in virtual time, over a network that loses, duplicates and reorders, with servers that are killed and clients that give a number
//! twice.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use noctule_discovery::NodeId;
use noctule_timebase::Span;

use super::{at, stamp};
use crate::action::goals::{Goals, Offered, Outcome, Wanted};
use crate::action::{GoalId, GoalStatus};
use crate::request::outstanding::{Arrived, Copy, Ended, Outstanding, ServerRef, Terms};
use crate::request::remembered::{Remembered, Verdict};
use crate::request::wire::{ReplyHeader, RequestHeader, RequestId, Status};
use crate::sample::Age;

const CLIENTS: usize = 3;
const END_MS: i64 = 6_000;
const LAST_GOAL_MS: i64 = 3_000;
/// Two services: goals, and results.
const SEND: usize = 0;
const RESULT: usize = 1;

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

struct Server {
    number: u64,
    services: [Remembered; 2],
    goals: Goals,
}

/// Goals of a client's calls under way, by the number of the call.
type Calls = BTreeMap<i64, GoalId>;

struct Client {
    services: [Outstanding; 2],
    calls: [Calls; 2],
}

enum Event {
    Request(usize, usize, Copy),
    Reply(usize, usize, u64, ReplyHeader, Vec<u8>),
    /// The program of a server has worked on a goal.
    Work(u64, GoalId),
}

#[derive(Debug, PartialEq, Eq)]
enum End {
    Result(u8),
    Refused,
    Failed(Ended),
    Unknown,
}

struct World {
    random: Random,
    clients: Vec<Client>,
    server: Server,
    events: BTreeMap<(i64, u64), Event>,
    count: u64,
    sent: Vec<(usize, GoalId)>,
    /// How often each was begun by a program.
    begun: BTreeMap<GoalId, u32>,
    /// Final status of each goal at a server.
    outcomes: BTreeMap<GoalId, u8>,
    ends_of_goals: Vec<(usize, GoalId, End)>,
    duplicates: u64,
}

fn server(number: u64) -> Server {
    let services = [Remembered::new(number), Remembered::new(number)];
    Server { number, services, goals: Goals::new(Span::from_ms(200)) }
}

fn client(number: u64) -> Client {
    Client { services: [Outstanding::new(number), Outstanding::new(number)], calls: Default::default() }
}

impl World {
    fn new(seed: u64) -> World {
        World {
            random: Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1),
            clients: (0..CLIENTS as u64).map(|number| client(number + 100)).collect(),
            server: server(1),
            events: BTreeMap::new(),
            count: 0,
            sent: Vec::new(),
            begun: BTreeMap::new(),
            outcomes: BTreeMap::new(),
            ends_of_goals: Vec::new(),
            duplicates: 0,
        }
    }

    fn after(&mut self, now_ms: i64, delay_ms: u64, event: Event) {
        self.count += 1;
        self.events.insert((now_ms + 1 + delay_ms as i64, self.count), event);
    }

    /// One in five is lost, one in five comes twice, in any order.
    fn delays(&mut self) -> Vec<u64> {
        let count = [0, 1, 1, 1, 2][self.random.below(5) as usize];
        (0..count).map(|_| self.random.below(30)).collect()
    }

    fn run(&mut self) {
        for now_ms in 0..END_MS {
            while let Some(entry) = self.events.first_entry().filter(|entry| entry.key().0 <= now_ms) {
                let event = entry.remove();
                self.handle(now_ms, event);
            }
            if self.random.is_one_in(400) {
                self.duplicates += self.server.goals.counters.duplicates;
                self.server = server(self.server.number + 1);
            }
            self.server.goals.handle_time(at(now_ms));
            self.answer(now_ms);
            for index in 0..CLIENTS {
                self.step_client(now_ms, index);
            }
        }
        self.duplicates += self.server.goals.counters.duplicates;
    }

    fn step_client(&mut self, now_ms: i64, index: usize) {
        let number = self.server.number;
        let there = ServerRef { number, node: NodeId([number as u8; 16]) };
        let sees = self.random.is_one_in(20);
        if now_ms < LAST_GOAL_MS && self.random.is_one_in(20) {
            // One in ten has the number of an earlier one, of any client.
            let known = self.sent.len() as u64;
            let id = match known > 0 && self.random.is_one_in(10) {
                true => self.sent[self.random.below(known) as usize].1,
                false => GoalId((u128::from(known) << 64 | 1).to_le_bytes()),
            };
            self.sent.push((index, id));
            let terms = Terms { deadline: Span::from_ms(300), is_idempotent: false, only: None };
            let client = &mut self.clients[index];
            let call = client.services[SEND].handle_call_of(at(now_ms), None, (&id.0, terms)).unwrap();
            client.calls[SEND].insert(call, id);
        }
        for service in [SEND, RESULT] {
            let core = &mut self.clients[index].services[service];
            if sees {
                core.handle_servers(at(now_ms), &[there]);
            }
            core.handle_time(at(now_ms));
            let copies: Vec<Copy> = std::iter::from_fn(|| core.poll_send()).collect();
            let ended: Vec<_> = std::iter::from_fn(|| core.poll_ended()).collect();
            for (call, ended) in ended {
                self.end(index, (service, call), End::Failed(ended));
            }
            for copy in copies {
                for delay_ms in self.delays() {
                    let Copy { sequence, ref bytes, source_time, source } = copy;
                    let copy = Copy { sequence, bytes: bytes.clone(), source_time, source };
                    self.after(now_ms, delay_ms, Event::Request(index, service, copy));
                }
            }
        }
    }

    fn handle(&mut self, now_ms: i64, event: Event) {
        match event {
            Event::Request(index, service, copy) => self.request(now_ms, (index, service), &copy),
            Event::Reply(index, service, number, header, bytes) => {
                self.reply(now_ms, (index, service, number), &header, &bytes);
            }
            Event::Work(number, id) if number == self.server.number => {
                let status = [GoalStatus::Succeeded, GoalStatus::Aborted][self.random.below(2) as usize];
                let response = Some(Arc::from([status as u8].as_slice()));
                self.server.goals.handle_end(at(now_ms), id, Outcome { status, response }).unwrap();
                self.outcomes.insert(id, status as u8);
            }
            Event::Work(..) => {}
        }
    }

    fn request(&mut self, now_ms: i64, (index, service): (usize, usize), copy: &Copy) {
        let (header, message) = RequestHeader::decode(&copy.bytes).unwrap();
        let age = Age { span: at(now_ms) - copy.source_time, bound: Some(Span::ZERO), sigma: None };
        match self.server.services[service].handle_request(at(now_ms), &header, Some(age)) {
            Verdict::Execute => {}
            Verdict::Answer(status, bytes) => {
                let reply = ReplyHeader { status, id: header.id, server: self.server.number };
                return self.publish(now_ms, (index, service), reply, &bytes);
            }
            Verdict::Ignore => return,
        }
        let id = GoalId(message.try_into().unwrap());
        if service == SEND {
            let offered = self.server.goals.handle_offer(id);
            let accepts = offered == Offered::New && !self.random.is_one_in(10);
            if accepts {
                assert!(self.server.goals.handle_acceptance(id, stamp(now_ms as i32 + 1), true));
                *self.begun.entry(id).or_default() += 1;
                let work_ms = self.random.below(400);
                self.after(now_ms, work_ms, Event::Work(self.server.number, id));
            } else {
                self.server.goals.handle_rejection(id);
            }
            return self.reply_with(now_ms, (service, header.id), &[u8::from(accepts)]);
        }
        match self.server.goals.handle_request(id, header.id) {
            Wanted::Waits => {}
            Wanted::Answer(outcome) => {
                self.reply_with(now_ms, (service, header.id), &outcome.response.unwrap());
            }
            Wanted::Unknown | Wanted::Full => self.reply_with(now_ms, (service, header.id), &[0]),
        }
    }

    /// Those that waited for the end of a goal.
    fn answer(&mut self, now_ms: i64) {
        while let Some((request, outcome)) = self.server.goals.poll_answer() {
            self.reply_with(now_ms, (RESULT, request), &outcome.response.unwrap());
        }
    }

    fn reply_with(&mut self, now_ms: i64, (service, id): (usize, RequestId), message: &[u8]) {
        let reply = (Status::Done, message);
        if let Ok(header) = self.server.services[service].handle_answer(at(now_ms), id, reply) {
            self.publish(now_ms, ((id.client - 100) as usize, service), header, message);
        }
    }

    fn publish(&mut self, now_ms: i64, (index, service): (usize, usize), header: ReplyHeader, bytes: &[u8]) {
        for delay_ms in self.delays() {
            let event = Event::Reply(index, service, header.server, header, bytes.to_vec());
            self.after(now_ms, delay_ms, event);
        }
    }

    fn reply(
        &mut self,
        now_ms: i64,
        (index, service, number): (usize, usize, u64),
        header: &ReplyHeader,
        bytes: &[u8],
    ) {
        let node = NodeId([number as u8; 16]);
        let arrived = self.clients[index].services[service].handle_reply(at(now_ms), header, node);
        if arrived != Arrived::Expected || header.status != Status::Done {
            return;
        }
        let call = header.id.sequence;
        match (service, bytes[0]) {
            (SEND, 1) => {
                let terms = Terms { deadline: Span::from_ms(2_000), is_idempotent: false, only: Some(node) };
                let client = &mut self.clients[index];
                let id = client.calls[SEND].remove(&call).unwrap();
                let call = client.services[RESULT].handle_call_of(at(now_ms), None, (&id.0, terms)).unwrap();
                client.calls[RESULT].insert(call, id);
            }
            (SEND, _) => self.end(index, (service, call), End::Refused),
            (_, 0) => self.end(index, (service, call), End::Unknown),
            (_, status) => self.end(index, (service, call), End::Result(status)),
        }
    }

    fn end(&mut self, index: usize, (service, call): (usize, i64), how: End) {
        let id = self.clients[index].calls[service].remove(&call).expect("a goal that ended twice");
        if let End::Result(status) = how {
            assert_eq!(self.outcomes.get(&id), Some(&status), "the result of another goal");
        }
        self.ends_of_goals.push((index, id, how));
    }
}

/// `NOCTULE_SEED` for one seed; else the first 30.
#[test]
fn whatever_the_network_and_the_servers_do_a_goal_is_begun_at_most_once_and_ends_once() {
    let given = std::env::var("NOCTULE_SEED").ok().and_then(|seed| seed.parse::<u64>().ok());
    let (mut results, mut gone, mut refused, mut duplicates) = (0, 0, 0, 0);
    for seed in given.map_or(1..=30, |seed| seed..=seed) {
        println!("NOCTULE_SEED={seed}");
        let mut world = World::new(seed);
        world.run();
        let mut sent = world.sent.clone();
        let mut ended: Vec<_> = world.ends_of_goals.iter().map(|(index, id, _)| (*index, *id)).collect();
        sent.sort();
        ended.sort();
        assert_eq!(sent, ended, "each goal that was sent has one end at its client");
        let uses = world.sent.iter().fold(BTreeMap::<GoalId, u32>::new(), |mut uses, (_, id)| {
            *uses.entry(*id).or_default() += 1;
            uses
        });
        for (id, begun) in &world.begun {
            assert!(*begun <= uses[id], "{id} was begun {begun} times and sent {} times", uses[id]);
        }
        let count =
            |is_it: fn(&End) -> bool| world.ends_of_goals.iter().filter(|(.., how)| is_it(how)).count();
        results += count(|how| matches!(how, End::Result(_)));
        gone += count(|how| matches!(how, End::Failed(Ended::ServerGone { .. })));
        refused += count(|how| *how == End::Refused);
        duplicates += world.duplicates;
        let numbers: BTreeSet<GoalId> = world.sent.iter().map(|(_, id)| *id).collect();
        assert!(numbers.len() < world.sent.len(), "no number was given twice");
    }
    println!("{results} results, {gone} ended with their server, {refused} refused, {duplicates} duplicates");
    assert!(
        given.is_some() || results > 1_000 && gone > 100 && refused > 100 && duplicates > 50,
        "the world is too kind"
    );
}
