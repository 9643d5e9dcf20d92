//! Joins viewers with a node: one reader for each topic that a viewer has subscribed, however many do.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use noctule::{Durability, Endpoint, EndpointKind, Format, KnownEndpoint, Node, NodeId, Sample, Subscriber};
use noctule_record::recorder::encoding;
use noctule_sys::clock::realtime_ns;
use noctule_web::{Frame as SocketFrame, Incoming, Outgoing, Protocol};

use crate::outbox::{Frame, Outbox};
use crate::session::{Channel, Session, message_frame, time_frame};

/// Topics that are advertised.
const CHANNELS_LIMIT: usize = 2048;
/// Topics are looked for, and the time is sent, this often.
const LOOK: Duration = Duration::from_millis(100);
/// Longest text of a viewer, bytes.
const TEXT_BYTES_MAX: usize = 1 << 20;
/// Versions of the protocol: the second is what Foxglove's SDK calls the same messages.
const NAMES: [&str; 2] = ["foxglove.websocket.v1", "foxglove.sdk.v1"];

/// Finds the definition of what a node publishes: its language (e.g. `ros2msg`) and its text. It may ask that node.
pub type Definitions = Box<dyn FnMut(&Node, NodeId, &Endpoint) -> Option<(String, String)> + Send>;
/// Language and text of definitions, by publisher and topic.
type Defined = BTreeMap<(NodeId, String), (String, String)>;

/// The protocol on a node. Dropping the last handle of it ends its threads.
#[derive(Debug)]
pub struct Bridge {
    hub: Arc<Hub>,
    looking: Option<JoinHandle<()>>,
}

struct Hub {
    node: Node,
    /// Name of this server for viewers, and the number of this run.
    name: String,
    session: String,
    definitions: Mutex<(Definitions, Defined)>,
    inside: Mutex<Inside>,
    stopped: Stop,
}

impl std::fmt::Debug for Hub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hub").field("inside", &self.inside).finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
struct Stop {
    is_set: Mutex<bool>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Inside {
    channels: Vec<Channel>,
    /// Numbers by topic: a topic that comes back has its number again.
    numbers: BTreeMap<String, u32>,
    viewers: BTreeMap<u64, Viewer>,
    next_viewer: u64,
    takers: BTreeMap<u32, Taker>,
    dropped: u64,
}

#[derive(Debug)]
struct Viewer {
    session: Session,
    outbox: Arc<Outbox>,
}

#[derive(Debug)]
struct Taker {
    is_wanted: Arc<AtomicBool>,
    taken: Arc<AtomicU64>,
}

impl Bridge {
    /// Serves the topics that `node` sees, as the server `name`.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start(node: Node, name: &str, definitions: Definitions) -> io::Result<Bridge> {
        let (inside, stopped) = (Mutex::default(), Stop::default());
        let session = format!("{:x}", realtime_ns());
        let definitions = Mutex::new((definitions, Defined::new()));
        let hub = Arc::new(Hub { node, name: name.to_owned(), session, definitions, inside, stopped });
        let looking = {
            let hub = Arc::clone(&hub);
            let work = move || {
                while !hub.stopped.wait(LOOK) {
                    hub.look();
                }
            };
            std::thread::Builder::new().name("foxglove-look".into()).spawn(work)?
        };
        Ok(Bridge { hub, looking: Some(looking) })
    }

    /// Connected viewers.
    pub fn viewers(&self) -> usize {
        self.hub.lock().viewers.len()
    }

    /// Samples that were read for viewers, and those that viewers were too slow for.
    pub fn counts(&self) -> (u64, u64) {
        let inside = self.hub.lock();
        let taken = inside.takers.values().map(|taker| taker.taken.load(Ordering::Relaxed)).sum();
        let waiting: u64 = inside.viewers.values().map(|viewer| viewer.outbox.dropped()).sum();
        (taken, inside.dropped + waiting)
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        self.hub.stopped.set();
        if let Some(thread) = self.looking.take() {
            let _ = thread.join();
        }
        let inside = self.hub.lock();
        inside.viewers.values().for_each(|viewer| viewer.outbox.close());
        inside.takers.values().for_each(|taker| taker.is_wanted.store(false, Ordering::Relaxed));
    }
}

impl Stop {
    fn set(&self) {
        *self.is_set.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    /// Waits; whether it was set.
    fn wait(&self, timeout: Duration) -> bool {
        let is_set = self.is_set.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(is_set, timeout, |is_set| !*is_set);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

impl Protocol for Bridge {
    fn names(&self) -> &[&'static str] {
        &NAMES
    }

    fn message_bytes_max(&self) -> usize {
        TEXT_BYTES_MAX
    }

    fn serve(&self, mut incoming: Incoming, mut outgoing: Outgoing) -> io::Result<()> {
        let outbox = Arc::new(Outbox::default());
        let number = self.hub.open(&outbox);
        let writing = {
            let outbox = Arc::clone(&outbox);
            let work = move || {
                while let Some(frame) = outbox.next() {
                    let written = outgoing.write(as_socket_frame(frame));
                    // Frames that wait already go in the same segment.
                    let sent =
                        if outbox.is_waiting() { written } else { written.and_then(|()| outgoing.flush()) };
                    if sent.is_err() {
                        break;
                    }
                }
            };
            std::thread::Builder::new().name("foxglove-write".into()).spawn(work)
        };
        if writing.is_ok() {
            while let Some(frame) = incoming.receive() {
                self.hub.handle(number, &frame);
            }
        }
        self.hub.close(number);
        writing?.join().map_err(|_| io::Error::other("the viewer's writer failed"))
    }
}

fn as_socket_frame(frame: Frame) -> SocketFrame {
    match frame {
        Frame::Text(text) => SocketFrame::Text(text),
        Frame::Time(now_ns) => SocketFrame::Binary(time_frame(now_ns)),
        Frame::Message { subscription, log_ns, payload } => {
            SocketFrame::Binary(message_frame(subscription, log_ns, &payload))
        }
    }
}

/// A topic as viewers know it.
fn channel(
    numbers: &mut BTreeMap<String, u32>,
    known: &KnownEndpoint,
    definition: Option<(String, String)>,
) -> Option<Channel> {
    let endpoint = &known.endpoint;
    let next = numbers.len() as u32 + 1;
    let id = match numbers.get(&endpoint.topic) {
        Some(id) => *id,
        None if numbers.len() >= CHANNELS_LIMIT => return None,
        None => *numbers.entry(endpoint.topic.clone()).or_insert(next),
    };
    let (schema_encoding, schema) = definition.unwrap_or_default();
    Some(Channel {
        id,
        topic: endpoint.topic.clone(),
        encoding: encoding(format(endpoint.formats, known.same_host)).to_owned(),
        schema_name: endpoint.type_name.clone(),
        schema,
        schema_encoding,
    })
}

impl Hub {
    fn open(self: &Arc<Hub>, outbox: &Arc<Outbox>) -> u64 {
        let mut inside = self.lock();
        let number = inside.next_viewer;
        inside.next_viewer += 1;
        let mut session = Session::new(&self.name, &self.session);
        session.handle_channels(&inside.channels);
        let mut viewer = Viewer { session, outbox: Arc::clone(outbox) };
        viewer.flush();
        inside.viewers.insert(number, viewer);
        number
    }

    fn handle(self: &Arc<Hub>, number: u64, frame: &SocketFrame) {
        let mut inside = self.lock();
        let Some(viewer) = inside.viewers.get_mut(&number) else { return };
        match frame {
            SocketFrame::Text(text) => viewer.session.handle_text(text),
            SocketFrame::Binary(_) => viewer.session.handle_binary(),
        }
        viewer.flush();
        self.take_what_is_wanted(&mut inside);
    }

    fn close(self: &Arc<Hub>, number: u64) {
        let mut inside = self.lock();
        if let Some(viewer) = inside.viewers.remove(&number) {
            viewer.outbox.close();
            inside.dropped += viewer.outbox.dropped();
        }
        self.take_what_is_wanted(&mut inside);
    }

    /// Finds the topics that there are, and says the time.
    fn look(self: &Arc<Hub>) {
        let mut writers: BTreeMap<String, KnownEndpoint> = BTreeMap::new();
        for known in self.node.endpoints() {
            if known.endpoint.kind == EndpointKind::Writer {
                writers.entry(known.endpoint.topic.clone()).or_insert(known);
            }
        }
        // Nodes may have to be asked, which viewers do not wait for.
        let defined = self.define(&writers);
        let mut inside = self.lock();
        let Inside { numbers, channels, viewers, .. } = &mut *inside;
        let found = writers.values().zip(defined);
        let found = found.filter_map(|(known, defined)| channel(numbers, known, defined)).collect();
        if *channels != found {
            *channels = found;
            viewers.values_mut().for_each(|viewer| viewer.session.handle_channels(channels));
        }
        let now_ns = u64::try_from(realtime_ns()).unwrap_or(0);
        for viewer in viewers.values_mut() {
            viewer.flush();
            viewer.outbox.set_time(now_ns);
        }
        self.take_what_is_wanted(&mut inside);
    }

    /// The definition of each topic's type.
    fn define(&self, writers: &BTreeMap<String, KnownEndpoint>) -> Vec<Option<(String, String)>> {
        let mut definitions = self.definitions.lock().unwrap_or_else(PoisonError::into_inner);
        let (find, known) = &mut *definitions;
        known.retain(|(owner, topic), _| writers.get(topic).is_some_and(|writer| writer.node == *owner));
        let mut of = |writer: &KnownEndpoint| {
            let key = (writer.node, writer.endpoint.topic.clone());
            if let Some(found) = known.get(&key) {
                return Some(found.clone());
            }
            let found = find(&self.node, writer.node, &writer.endpoint)?;
            known.insert(key, found.clone());
            Some(found)
        };
        writers.values().map(&mut of).collect()
    }

    /// Begins to read topics with a subscription, and ends those without.
    fn take_what_is_wanted(self: &Arc<Hub>, inside: &mut Inside) {
        let wanted: BTreeSet<u32> =
            inside.viewers.values().flat_map(|viewer| viewer.session.wanted()).collect();
        inside.takers.retain(|channel, taker| {
            let is_wanted = wanted.contains(channel);
            taker.is_wanted.store(is_wanted, Ordering::Relaxed);
            is_wanted
        });
        for channel in wanted {
            let Some(topic) = inside.channels.iter().find(|each| each.id == channel) else { continue };
            // One that cannot be opened now is tried again at the next look.
            if let Entry::Vacant(vacant) = inside.takers.entry(channel)
                && let Some(taker) = self.take(channel, topic.topic.clone())
            {
                vacant.insert(taker);
            }
        }
    }

    fn take(self: &Arc<Hub>, channel: u32, topic: String) -> Option<Taker> {
        let is_wanted = Arc::new(AtomicBool::new(true));
        let taken = Arc::new(AtomicU64::new(0));
        let taker = Taker { is_wanted: Arc::clone(&is_wanted), taken: Arc::clone(&taken) };
        let hub = Arc::clone(self);
        let work = move || {
            let Some(mut subscriber) = hub.subscriber(&topic) else {
                let mut inside = hub.lock();
                if is_wanted.load(Ordering::Relaxed) {
                    // The next look begins anew.
                    inside.takers.remove(&channel);
                }
                return;
            };
            while is_wanted.load(Ordering::Relaxed) {
                // A corrupt sample is skipped.
                if let Ok(Some(sample)) = subscriber.receive(Some(LOOK)) {
                    hub.hand_out(channel, &sample, &is_wanted);
                    taken.fetch_add(1, Ordering::Relaxed);
                }
            }
        };
        std::thread::Builder::new().name("foxglove-take".into()).spawn(work).ok().map(|_| taker)
    }

    fn subscriber(&self, topic: &str) -> Option<Subscriber> {
        let is_latched = self.node.endpoints().iter().any(|known| {
            known.endpoint.topic == topic && known.endpoint.qos.durability == Durability::TransientLocal
        });
        let builder = self.node.subscriber(topic);
        let builder = if is_latched { builder.transient_local() } else { builder };
        builder.open().ok()
    }

    fn hand_out(&self, channel: u32, sample: &Sample, is_wanted: &AtomicBool) {
        let since = self.node.now() - sample.info().receive_time;
        let log_ns = u64::try_from(realtime_ns().saturating_sub(since.ns())).unwrap_or(0);
        let payload: Arc<[u8]> = sample.to_vec().into();
        let inside = self.lock();
        // Another thread may read the topic again already.
        if !is_wanted.load(Ordering::Relaxed) {
            return;
        }
        for viewer in inside.viewers.values() {
            for subscription in viewer.session.subscriptions(channel) {
                viewer.outbox.send(subscription, log_ns, Arc::clone(&payload));
            }
        }
    }

    /// A change is whole even if a thread has panicked.
    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Viewer {
    fn flush(&mut self) {
        while let Some(text) = self.session.poll_text() {
            self.outbox.say(text);
        }
    }
}

/// The format in which samples of a writer reach this host.
fn format(formats: u32, same_host: bool) -> Option<Format> {
    let has = |format: &Format| formats & format.bit() != 0;
    let is_plain = has(&Format::Plain);
    let other = Format::ALL.into_iter().filter(|format| *format != Format::Plain).find(has);
    let plain = is_plain.then_some(Format::Plain);
    if same_host { plain.or(other) } else { other.or(plain) }
}
