//! One service and what is under way, and the thread that passes for many of them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use noctule::request::{CallId, RawClient, RawRequest, RawServer, ReplyError, RequestId};
use noctule::{CallError, Subscriber, WaitSet, Waker};
use noctule_bridge::ages::Now;
use noctule_bridge::orders::{Order, Orders};
use noctule_bridge::payload::without_padding;
use noctule_bridge::requests::deadline_of;
use noctule_ros_zenoh::attachment::RosAttachment;
use noctule_ros_zenoh::services::ServiceRoute;
use zenoh::Wait;
use zenoh::query::{ConsolidationMode, Query, QueryTarget};
use zenoh::sample::Locality;

use super::status::ServiceCounters;
use crate::counters::count;
use crate::shared::Shared;

/// Messages from Zenoh that wait for one thread; more are refused and counted.
const INBOX_MAX: usize = 1024;
/// Requests of the bus that are under way in Zenoh at once, of one service.
const ASKED_MAX: usize = 1024;
/// A response of `send_goal`: not accepted, no stamp.
const REJECTED: [u8; 16] = [0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/// Message from Zenoh for the service of this number.
pub(super) struct Arrived {
    pub(super) number: u32,
    pub(super) what: What,
}

/// A server of ROS 2 answers with an error, which has this text.
#[derive(Debug, thiserror::Error)]
#[error("its server in Zenoh refuses: {0}")]
pub(super) struct Refused(String);

impl Refused {
    /// Of a reply's bytes, which may be anything and are for people.
    fn of(bytes: &[u8]) -> Refused {
        Refused(String::from_utf8_lossy(bytes).chars().filter(|c| !c.is_control()).take(200).collect())
    }
}

pub(super) enum What {
    /// A client of ROS 2 asks.
    Asked(Box<Query>),
    /// A server of ROS 2 answers our request of this number: with bytes, or with why not.
    Answered(i64, Result<Vec<u8>, Refused>),
    /// No more answers come to it.
    Ended(i64),
}

/// Queue of a thread.
pub(super) type Waiting = Arc<Mutex<VecDeque<Arrived>>>;

/// Where a thread's messages from Zenoh wait.
#[derive(Clone)]
pub(super) struct Inbox {
    waiting: Waiting,
    waker: Waker,
}

impl Inbox {
    pub(super) fn new(waiting: Waiting, waker: Waker) -> Inbox {
        Inbox { waiting, waker }
    }

    /// False if there is no room. There is always room for the ends of requests, of which there are only so many.
    pub(super) fn push(&self, arrived: Arrived) -> bool {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() >= INBOX_MAX && !matches!(arrived.what, What::Ended(_)) {
            return false;
        }
        waiting.push_back(arrived);
        drop(waiting);
        self.waker.wake();
        true
    }

    fn pop(&self) -> Option<Arrived> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}

/// A service and what is under way.
pub(super) struct Exchange {
    pub(super) number: u32,
    pub(super) route: Arc<ServiceRoute>,
    pub(super) counters: Arc<ServiceCounters>,
    pub(super) inbox: Inbox,
    pub(super) end: End,
}

/// The bridge's end on the bus.
pub(super) enum End {
    /// The server is in ROS 2, under this key; and by which number we ask.
    Server { server: Box<RawServer>, key: String, gid: [u8; 16], next: i64, asked: BTreeMap<i64, RequestId> },
    /// The server is on the bus.
    Client { client: Box<RawClient>, asked: BTreeMap<CallId, (Box<Query>, RosAttachment)> },
}

impl AsMut<Subscriber> for Exchange {
    fn as_mut(&mut self) -> &mut Subscriber {
        match &mut self.end {
            End::Server { server, .. } => server.subscriber(),
            End::Client { client, .. } => client.subscriber(),
        }
    }
}

/// Says at its end that no more answers come.
struct Ending {
    inbox: Inbox,
    number: u32,
    request: i64,
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.inbox.push(Arrived { number: self.number, what: What::Ended(self.request) });
    }
}

impl Exchange {
    fn due(&self) -> Option<Duration> {
        match &self.end {
            End::Client { client, .. } => client.next_due(),
            End::Server { .. } => None,
        }
    }

    fn handle_zenoh(&mut self, shared: &Shared, what: What) {
        match what {
            What::Asked(query) => self.ask_bus(shared, query),
            What::Answered(request, result) => self.answer_bus(shared, request, result),
            What::Ended(request) => {
                let End::Server { server, asked, .. } = &mut self.end else { return };
                if let Some(id) = asked.remove(&request) {
                    count(&self.counters.failed, 1);
                    // The client may have gone meanwhile.
                    let _ =
                        server.fail(id, "no server in Zenoh has answered: it has gone, or the time is over");
                }
            }
        }
    }

    /// Something came by the bus, or its time has.
    fn handle_bus(&mut self, shared: &Shared) {
        loop {
            match &mut self.end {
                End::Server { server, .. } => match server.receive(Some(Duration::ZERO)) {
                    Ok(None) => return,
                    Ok(Some(request)) => self.ask_zenoh(shared, &request),
                    Err(why) => return self.notice(shared, &why.to_string()),
                },
                End::Client { client, asked } => match client.next(Some(Duration::ZERO)) {
                    Ok(None) => return,
                    Ok(Some(ended)) => {
                        let Some(asker) = asked.remove(&ended.call) else { continue };
                        self.answer_zenoh(shared, asker, ended.result.map(|reply| reply.bytes().to_vec()));
                    }
                    Err(why) => return self.notice(shared, &why.to_string()),
                },
            }
        }
    }

    /// A client of ROS 2 asks a server of the bus.
    fn ask_bus(&mut self, shared: &Shared, query: Box<Query>) {
        let End::Client { client, asked } = &mut self.end else { return };
        let attachment = query.attachment().map(|bytes| bytes.to_bytes().into_owned()).unwrap_or_default();
        let bytes = query.payload().map(|bytes| bytes.to_bytes().into_owned()).unwrap_or_default();
        let mut payload = Vec::new();
        let ros = RosAttachment::decode(&attachment).filter(|_| without_padding(&bytes, &mut payload));
        let Some(ros) = ros else {
            count(&self.counters.unreadable, 1);
            count(&shared.malformed, 1);
            return refuse(&query, "it is no request of ROS 2");
        };
        let deadline = deadline_of(&self.route.name.name);
        let (source, _) = Now::read(&shared.node).source(Some(ros.stamp_ns), false, false);
        match client.start_from(&payload, Some(deadline), source) {
            Ok(call) => {
                count(&self.counters.requests, 1);
                asked.insert(call, (query, ros));
            }
            Err(why) => {
                let is_full = matches!(why, CallError::Full { .. });
                count(if is_full { &self.counters.full } else { &self.counters.failed }, 1);
                refuse(&query, &why.to_string());
            }
        }
    }

    fn answer_zenoh(
        &self,
        shared: &Shared,
        asker: (Box<Query>, RosAttachment),
        result: Result<Vec<u8>, CallError>,
    ) {
        let (query, ros) = asker;
        let is_goal = self.route.name.name.ends_with("/_action/send_goal");
        let bytes = match result {
            Ok(bytes) => bytes,
            // An action has an answer for that.
            Err(CallError::Failed { .. }) if is_goal => REJECTED.to_vec(),
            Err(why) => {
                count(&self.counters.failed, 1);
                return refuse(&query, &why.to_string());
            }
        };
        // A client compares the number of the request and its own.
        let attachment = RosAttachment { stamp_ns: Now::read(&shared.node).wall_ns, ..ros }.encode();
        match query.reply(query.key_expr(), bytes).attachment(attachment).wait() {
            Ok(()) => count(&self.counters.replies, 1),
            Err(_) => count(&self.counters.late, 1),
        }
    }

    /// A client of the bus asks a server of ROS 2.
    fn ask_zenoh(&mut self, shared: &Shared, request: &RawRequest) {
        let End::Server { server, key, gid, next, asked } = &mut self.end else { return };
        let id = request.id();
        if asked.len() >= ASKED_MAX {
            count(&self.counters.full, 1);
            // The client may have gone meanwhile.
            let _ = server.fail(id, "the bridge to Zenoh holds as many requests as it may; call again later");
            return;
        }
        let now = Now::read(&shared.node);
        let left = request.time_left(now.node).unwrap_or(request.deadline());
        let timeout = Duration::from_nanos(left.ns().max(1_000_000) as u64);
        *next += 1;
        let (number, sequence, info) = (self.number, *next, request.info());
        let stamp_ns = now.stamp_ns(info.source_time.unwrap_or(info.receive_time));
        let attachment = RosAttachment { sequence, stamp_ns, gid: *gid }.encode();
        let ending = Ending { inbox: self.inbox.clone(), number, request: sequence };
        let take = move |reply: zenoh::query::Reply| {
            let result = match reply.result() {
                Ok(sample) => Ok(sample.payload().to_bytes().into_owned()),
                Err(why) => Err(Refused::of(&why.payload().to_bytes())),
            };
            ending.inbox.push(Arrived { number, what: What::Answered(sequence, result) });
        };
        let get =
            shared.session.get(key.as_str()).payload(request.bytes()).attachment(attachment).timeout(timeout);
        let get = get.target(QueryTarget::AllComplete).consolidation(ConsolidationMode::None);
        match get.allowed_destination(Locality::Remote).callback(take).wait() {
            Ok(()) => {
                count(&self.counters.requests, 1);
                asked.insert(sequence, id);
            }
            Err(why) => {
                count(&self.counters.failed, 1);
                // The client may have gone meanwhile.
                let _ = server.fail(id, &format!("Zenoh does not take the request: {why}"));
            }
        }
    }

    fn answer_bus(&mut self, shared: &Shared, request: i64, result: Result<Vec<u8>, Refused>) {
        let End::Server { server, asked, .. } = &mut self.end else { return };
        // The first of several servers' answers counts.
        let Some(id) = asked.remove(&request) else { return };
        let mut payload = Vec::new();
        let replied = match result {
            Ok(bytes) if without_padding(&bytes, &mut payload) => {
                let source = Now::read(&shared.node).source(None, false, false).0;
                server.reply_from(id, &payload, source)
            }
            Ok(_) => {
                count(&self.counters.unreadable, 1);
                count(&shared.malformed, 1);
                server.fail(id, "its server in Zenoh answers with what is no CDR of version 1")
            }
            Err(why) => {
                count(&self.counters.failed, 1);
                // The client may have gone meanwhile.
                let _ = server.fail(id, &why.to_string());
                return;
            }
        };
        match replied {
            Ok(()) => count(&self.counters.replies, 1),
            Err(ReplyError::Publish(why)) => {
                count(&self.counters.full, 1);
                let _ = server.fail(id, &format!("the reply did not pass the bridge: {why}"));
            }
            // Its deadline is over, or it was cancelled.
            Err(_) => count(&self.counters.late, 1),
        }
    }

    /// Ends; clients on Zenoh learn it.
    fn close(self) {
        if let End::Client { asked, .. } = self.end {
            for (query, _) in asked.into_values() {
                count(&self.counters.failed, 1);
                refuse(&query, "its server on the bus has gone");
            }
        }
    }

    fn notice(&self, shared: &Shared, text: &str) {
        shared.notice_once(&format!("service {}: {text}", self.route.name.name));
    }
}

fn refuse(query: &Query, why: &str) {
    // The client may have gone meanwhile.
    let _ = query.reply_err(why).wait();
}

/// State of the thread.
pub(super) struct Work {
    pub(super) shared: Arc<Shared>,
    pub(super) set: WaitSet,
    pub(super) orders: Arc<Orders<Exchange>>,
    pub(super) inbox: Inbox,
    pub(super) exchanges: Vec<Exchange>,
}

impl Work {
    pub(super) fn run(&mut self) {
        loop {
            while let Some(order) = self.orders.pop() {
                match order {
                    Order::Start(_, exchange) => self.exchanges.push(exchange),
                    Order::Stop(number, answer) => {
                        if let Some(at) = self.exchanges.iter().position(|one| one.number == number) {
                            self.exchanges.swap_remove(at).close();
                        }
                        // No thread may wait any more.
                        let _ = answer.try_send(());
                    }
                    Order::End => return,
                }
            }
            while let Some(arrived) = self.inbox.pop() {
                let of = self.exchanges.iter_mut().find(|exchange| exchange.number == arrived.number);
                if let Some(exchange) = of {
                    exchange.handle_zenoh(&self.shared, arrived.what);
                }
            }
            for exchange in &mut self.exchanges {
                exchange.handle_bus(&self.shared);
            }
            let due = self.exchanges.iter().filter_map(Exchange::due).min();
            // A sample, or a server or a client of the bus that came or went.
            self.set.wait_for_news(&mut self.exchanges, due);
        }
    }
}
