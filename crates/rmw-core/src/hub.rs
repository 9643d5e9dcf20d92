//! The thread that has everything of a context that receives.
//!
//! It sleeps on all rings at once, moves what comes into the queues of who reads it, keeps the calls of clients going, and looks at partners and
//! deadlines when the library says that something has changed. Others give it orders through its [`Door`].

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::thread::{JoinHandle, ThreadId};
use std::time::Duration;

use noctule::request::{CallError, RawClient, RawReply, RawRequest, RawServer, RequestId};
use noctule::{SampleInfo, Subscriber, Wait, WaitSet, Waker};
use noctule_bridge::ages::Now;

use crate::context::Registry;
use crate::gid::Gid;
use crate::graph::{Entry, Misfit, Way, misfit};
use crate::reader::Reader;
use crate::services::{ClientEnd, Incoming, ServerEnd, deadline};
use crate::signal::lock;
use crate::status::{Kind, Status};
use crate::writer::Writer;

/// Samples taken from one subscriber before the others get their turn.
const BATCH: usize = 64;
/// Calls of one client that wait for their replies; the oldest is cancelled for the next, for rmw cannot say that a caller has given up.
const CALLS_MAX: usize = 512;
/// A publisher that was busy is looked at again after this.
const LOOK_AGAIN: Duration = Duration::from_millis(5);
/// Deadlines are looked at no more often than this.
const DEADLINE_MIN: Duration = Duration::from_millis(1);

/// The hub of a context; dropping it ends its thread.
pub(crate) struct Hub {
    door: Arc<Door>,
    thread: Option<JoinHandle<()>>,
}

/// Where the hub gets its orders.
pub(crate) struct Door {
    /// `None`: the hub has ended.
    orders: Mutex<Option<VecDeque<Order>>>,
    must_look: AtomicBool,
    waker: Waker,
    thread: OnceLock<ThreadId>,
}

enum Order {
    Add(u64, Box<Task>),
    Remove(u64, Sender<()>),
    Request { number: u64, sequence: i64, bytes: Vec<u8> },
    Reply { number: u64, id: RequestId, bytes: Vec<u8> },
    Stop,
}

/// Something that receives.
#[derive(Debug)]
pub(crate) enum Task {
    Reader { subscriber: Box<Subscriber>, reader: Arc<Reader> },
    Client(Box<Called>),
    Server { server: Box<RawServer>, end: Arc<ServerEnd> },
}

/// A client with the calls that are under way.
#[derive(Debug)]
pub(crate) struct Called {
    client: RawClient,
    end: Arc<ClientEnd>,
    /// The numbers that rmw knows them by, in the order in which they began.
    calls: BTreeMap<noctule::request::CallId, i64>,
}

struct Numbered {
    number: u64,
    task: Task,
}

struct Loop {
    door: Arc<Door>,
    registry: Arc<Registry>,
    set: WaitSet,
    tasks: Vec<Numbered>,
    /// Ends that do not fit, each told once.
    misfits: BTreeSet<(u64, Gid)>,
    is_busy: bool,
    /// The shortest DEADLINE of a publisher.
    offered: Option<Duration>,
}

impl Hub {
    pub(crate) fn start(registry: Arc<Registry>) -> io::Result<Hub> {
        let set = WaitSet::new(Wait::Block);
        let door = Arc::new(Door {
            orders: Mutex::new(Some(VecDeque::new())),
            must_look: AtomicBool::new(false),
            waker: set.waker(),
            thread: OnceLock::new(),
        });
        let run = Loop {
            door: Arc::clone(&door),
            registry,
            set,
            tasks: Vec::new(),
            misfits: BTreeSet::new(),
            is_busy: false,
            offered: None,
        };
        let thread = std::thread::Builder::new().name("noctule-rmw".into()).spawn(move || run.run())?;
        let _ = door.thread.set(thread.thread().id());
        Ok(Hub { door, thread: Some(thread) })
    }

    pub(crate) fn door(&self) -> &Arc<Door> {
        &self.door
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        self.door.order(Order::Stop);
        if let Some(thread) = self.thread.take().filter(|_| !self.door.is_hub()) {
            // It panics only by a bug, which has been printed then.
            let _ = thread.join();
        }
    }
}

impl Door {
    pub(crate) fn add(&self, number: u64, task: Task) {
        self.order(Order::Add(number, Box::new(task)));
        self.look();
    }

    /// Returns when it is closed: then nothing comes from it any more.
    pub(crate) fn remove(&self, number: u64) {
        let (done, wait) = channel();
        self.order(Order::Remove(number, done));
        if !self.is_hub() {
            // The hub may have ended with its context.
            let _ = wait.recv();
        }
    }

    pub(crate) fn request(&self, number: u64, sequence: i64, bytes: Vec<u8>) {
        self.order(Order::Request { number, sequence, bytes });
    }

    pub(crate) fn reply(&self, number: u64, id: RequestId, bytes: Vec<u8>) {
        self.order(Order::Reply { number, id, bytes });
    }

    /// Partners may have come or gone.
    pub(crate) fn look(&self) {
        if !self.must_look.swap(true, Ordering::AcqRel) {
            self.waker.wake();
        }
    }

    fn order(&self, order: Order) {
        // What comes after the end is dropped, which whoever waits for it learns.
        if let Some(orders) = &mut *lock(&self.orders) {
            orders.push_back(order);
        }
        self.waker.wake();
    }

    fn is_hub(&self) -> bool {
        self.thread.get() == Some(&std::thread::current().id())
    }
}

impl Loop {
    fn run(mut self) {
        loop {
            loop {
                let Some(order) = lock(&self.door.orders).as_mut().and_then(VecDeque::pop_front) else {
                    break;
                };
                if matches!(order, Order::Stop) {
                    *lock(&self.door.orders) = None;
                    return;
                }
                self.obey(order);
            }
            if self.door.must_look.swap(false, Ordering::AcqRel) {
                self.look();
            }
            let timeout = self.next_due();
            if let noctule::Ready::Sample(at) = self.set.wait(&mut self.tasks, timeout) {
                self.tasks[at].task.drain();
            } else {
                self.tend();
            }
        }
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Add(number, task) => self.tasks.push(Numbered { number, task: *task }),
            Order::Remove(number, done) => {
                self.tasks.retain(|task| task.number != number);
                // Whoever asked may not wait.
                let _ = done.send(());
            }
            Order::Request { number, sequence, bytes } => {
                if let Some(Task::Client(called)) = self.task(number) {
                    called.begin(sequence, &bytes);
                }
            }
            Order::Reply { number, id, bytes } => {
                if let Some(Task::Server { server, end }) = self.task(number)
                    && server.reply(id, &bytes).is_err()
                {
                    end.count_unanswered();
                }
            }
            Order::Stop => {}
        }
    }

    fn task(&mut self, number: u64) -> Option<&mut Task> {
        self.tasks.iter_mut().find(|task| task.number == number).map(|task| &mut task.task)
    }

    /// What must be done though nothing comes.
    fn tend(&mut self) {
        for Numbered { task, .. } in &mut self.tasks {
            match task {
                Task::Client(called) if called.is_due() => called.drain(),
                Task::Reader { subscriber, reader } if reader.quality().deadline.is_some() => {
                    reader.refresh(subscriber);
                }
                _ => {}
            }
        }
        if self.is_busy || self.offered.is_some() {
            self.look_at_writers();
        }
    }

    fn next_due(&self) -> Option<Duration> {
        let tasks = self.tasks.iter().filter_map(|task| match &task.task {
            Task::Client(called) => called.client.next_due(),
            Task::Reader { reader, .. } => reader.quality().deadline.map(|period| period.max(DEADLINE_MIN)),
            Task::Server { .. } => None,
        });
        let again = self.is_busy.then_some(LOOK_AGAIN);
        tasks.chain(self.offered.map(|period| period.max(DEADLINE_MIN))).chain(again).min()
    }

    fn writers(&self) -> Vec<Arc<Writer>> {
        lock(&self.registry.writers).values().filter_map(Weak::upgrade).collect()
    }

    fn look_at_writers(&mut self) {
        let writers = self.writers();
        self.offered = writers.iter().filter_map(|writer| writer.quality().deadline).min();
        self.is_busy = false;
        for writer in writers {
            self.is_busy |= !writer.refresh();
        }
    }

    /// Partners may have come or gone.
    fn look(&mut self) {
        self.look_at_writers();
        for Numbered { task, .. } in &mut self.tasks {
            match task {
                Task::Reader { subscriber, reader } => reader.refresh(subscriber),
                Task::Client(called) => called.look(),
                Task::Server { .. } => {}
            }
        }
        self.look_for_misfits();
        self.registry.ring();
    }

    fn look_for_misfits(&mut self) {
        let others = self.registry.others();
        let own = lock(&self.registry.own).clone();
        self.misfits.retain(|(number, _)| own.contains_key(number));
        for (number, ours) in &own {
            let all = own.values().chain(&others);
            for other in all.filter(|other| other.topic == ours.topic && other.way != ours.way) {
                let (writer, reader) = if ours.way == Way::Writes { (ours, other) } else { (other, ours) };
                let Some(why) = misfit(writer, reader) else { continue };
                if self.misfits.insert((*number, other.gid)) {
                    self.tell(*number, ours, why);
                }
            }
        }
    }

    fn tell(&self, number: u64, ours: &Entry, why: Misfit) {
        let (kind, policy) = match why {
            Misfit::Type => (Kind::IncompatibleType, 0),
            Misfit::Policy(policy) => (Kind::IncompatibleQos, policy),
        };
        let change = |status: &mut Status| {
            status.policy = policy;
            let total = status.total + 1;
            status.ever(total)
        };
        if ours.way == Way::Writes {
            let writer = lock(&self.registry.writers).get(&number).and_then(Weak::upgrade);
            if let Some(writer) = writer {
                writer.statuses().update(kind, change);
            }
        } else if let Some(Numbered { task: Task::Reader { reader, .. }, .. }) =
            self.tasks.iter().find(|task| task.number == number)
        {
            reader.statuses().update(kind, change);
        }
    }
}

impl Task {
    /// Takes what is there.
    fn drain(&mut self) {
        match self {
            Task::Reader { subscriber, reader } => {
                for _ in 0..BATCH {
                    // A publisher that is broken has been noticed by the library; the next sample may be of another.
                    match subscriber.take() {
                        Ok(Some(sample)) => reader.handle(&sample),
                        Ok(None) => break,
                        Err(_) => {}
                    }
                }
            }
            Task::Client(called) => called.drain(),
            Task::Server { server, end } => {
                for _ in 0..BATCH {
                    match server.receive(Some(Duration::ZERO)) {
                        Ok(Some(request)) => end.handle(asked(request, end)),
                        Ok(None) => break,
                        Err(_) => {}
                    }
                }
            }
        }
    }
}

impl Called {
    pub(crate) fn new(client: RawClient, end: Arc<ClientEnd>) -> Called {
        Called { client, end, calls: BTreeMap::new() }
    }

    fn begin(&mut self, sequence: i64, request: &[u8]) {
        // As on DDS: what is asked while nobody serves is not executed later.
        if self.client.servers().map_or(0, |servers| servers.len()) == 0 {
            return self.end.count_unsent();
        }
        if self.calls.len() >= CALLS_MAX
            && let Some((oldest, _)) = self.calls.pop_first()
        {
            let _ = self.client.cancel(oldest);
            self.end.count_unsent();
        }
        let within = deadline(self.client.service());
        match self.client.start(request, Some(within)) {
            Ok(call) => drop(self.calls.insert(call, sequence)),
            Err(_) => self.end.count_unsent(),
        }
        self.drain();
    }

    fn is_due(&self) -> bool {
        self.client.next_due().is_some_and(|due| due.is_zero())
    }

    fn drain(&mut self) {
        loop {
            match self.client.next(Some(Duration::ZERO)) {
                Ok(Some(ended)) => {
                    let sequence = self.calls.remove(&ended.call);
                    match (sequence, ended.result) {
                        (Some(sequence), Ok(reply)) => self.end.handle(answered(&reply, sequence, &self.end)),
                        (Some(_), Err(_)) => self.end.count_unsent(),
                        // Cancelled.
                        (None, _) => {}
                    }
                }
                Ok(None) => break,
                // A reply that cannot be read ends no call.
                Err(CallError::Take(_)) => {}
                Err(_) => break,
            }
        }
    }

    fn look(&mut self) {
        self.drain();
        let servers = self.client.servers().map_or(0, |servers| servers.len());
        self.end.set_servers(servers);
    }
}

fn times(node: &noctule::Node, info: &SampleInfo) -> (Option<i64>, i64) {
    let now = Now::read(node);
    (info.source_time.map(|at| now.stamp_ns(at)), now.stamp_ns(info.receive_time))
}

fn asked(request: RawRequest, end: &ServerEnd) -> Incoming {
    let (source_ns, received_ns) = times(&end.participant().node, request.info());
    let RequestId { client, sequence } = request.id();
    Incoming { client: Gid::of_client(client), sequence, source_ns, received_ns, bytes: request.into_bytes() }
}

fn answered(reply: &RawReply, sequence: i64, end: &ClientEnd) -> Incoming {
    let (source_ns, received_ns) = times(&end.participant().node, reply.info());
    Incoming { client: end.gid(), sequence, source_ns, received_ns, bytes: reply.bytes().to_vec() }
}

impl AsMut<Subscriber> for Numbered {
    fn as_mut(&mut self) -> &mut Subscriber {
        match &mut self.task {
            Task::Reader { subscriber, .. } => subscriber,
            Task::Client(called) => called.client.subscriber(),
            Task::Server { server, .. } => server.subscriber(),
        }
    }
}

impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hub")
    }
}

impl fmt::Debug for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Door")
    }
}
