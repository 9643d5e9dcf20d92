//! `NOCTULE_TRACE=FILE`: what the links of this process do and its nodes decide, written to a file by a thread of its own.
//!
//! A link's events go through a channel of limited length, so that a slow disk delays no datagram: what does not fit is dropped, and
//! the file says how many were. Without the variable a link has no [`LinkTrace`], and nothing is done.

use std::fmt;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::sync::{Mutex, OnceLock, PoisonError};

use noctule_discovery::{Discovery, NodeId};
use noctule_prrt::trace::SCHEMA;
use noctule_prrt::{Link, Local as LinkClock};
use noctule_qlog::{self as qlog, Field, Log, text};
use noctule_sys::clock::realtime_ns;
use noctule_timebase::Instant;

use super::reader_route::ReaderRoutes;
use crate::clock::{self, Raw};
use crate::error::NodeError;

/// Names the file; `%p` in it is replaced by the number of the process.
const TRACE_VARIABLE: &str = "NOCTULE_TRACE";
/// Entries that wait for the disk.
const WAITING_LIMIT: usize = 65_536;

/// The channel to the thread that writes; `None` without the variable.
static FILE: OnceLock<Option<TraceFile>> = OnceLock::new();
/// Held while the file is opened, so that only one thread does.
static OPENING: Mutex<()> = Mutex::new(());

struct TraceFile {
    entries: SyncSender<Entry>,
    /// The origin of the times.
    began: Instant<Raw>,
}

/// Entry for the thread that writes the file.
enum Entry {
    Event {
        at_ms: f64,
        group: String,
        event: Box<dyn qlog::Event + Send>,
    },
    Topic {
        at_ms: f64,
        group: String,
        writer: u32,
        topic: String,
    },
    Dropped {
        at_ms: f64,
        schema: &'static str,
        group: String,
        events: u64,
    },
    /// Writes all before this to the file, and drops the sender.
    Flush(SyncSender<()>),
}

/// Opens the file that the environment names, once for all nodes of the process.
///
/// # Errors
/// The file cannot be written.
pub(super) fn open() -> Result<(), NodeError> {
    let _opening = OPENING.lock().unwrap_or_else(PoisonError::into_inner);
    if FILE.get().is_some() {
        return Ok(());
    }
    let Some(path) = std::env::var_os(TRACE_VARIABLE).filter(|path| !path.is_empty()) else {
        FILE.get_or_init(|| None);
        return Ok(());
    };
    let process = std::process::id();
    let path = PathBuf::from(path.to_string_lossy().replace("%p", &process.to_string()));
    let unwritable = |cause| NodeError::Trace { path: path.clone(), cause };
    let began = clock::now();
    let mut file = BufWriter::new(File::create(&path).map_err(unwritable)?);
    let header = text::header(&format!("process {process}"), realtime_ns() as f64 / 1e6);
    file.write_all(header.as_bytes()).map_err(unwritable)?;
    file.flush().map_err(unwritable)?;
    let (entries, waiting) = sync_channel(WAITING_LIMIT);
    let thread = std::thread::Builder::new().name("noctule-trace".into());
    thread.spawn(move || write(&waiting, file)).map_err(unwritable)?;
    FILE.get_or_init(|| Some(TraceFile { entries, began }));
    Ok(())
}

/// Waits until all that was noted is in the file.
pub(super) fn flush() {
    let Some(file) = FILE.get().and_then(Option::as_ref) else { return };
    let (done, written) = sync_channel(0);
    if file.entries.send(Entry::Flush(done)).is_ok() {
        // The other end is dropped when all is written.
        let _ = written.recv();
    }
}

/// The thread: ends when the disk refuses.
fn write(waiting: &Receiver<Entry>, mut file: BufWriter<File>) {
    let mut out = String::new();
    while let Some(entry) = next(waiting, &mut file) {
        out.clear();
        match entry {
            Entry::Event { at_ms, group, event } => text::record(&mut out, at_ms, &group, &*event),
            Entry::Topic { at_ms, group, writer, topic } => {
                let fields = [("writer", Field::Number(writer.into())), ("topic", Field::Word(&topic))];
                text::record_fields(&mut out, at_ms, (SCHEMA, "writer_matched"), &group, &fields);
            }
            Entry::Dropped { at_ms, schema, group, events } => {
                text::record_dropped(&mut out, at_ms, (schema, &group), events);
            }
            Entry::Flush(done) => {
                if file.flush().is_err() {
                    return;
                }
                drop(done);
            }
        }
        if file.write_all(out.as_bytes()).is_err() {
            return;
        }
    }
}

/// The next entry; the file is flushed before waiting for one.
fn next(waiting: &Receiver<Entry>, file: &mut BufWriter<File>) -> Option<Entry> {
    match waiting.try_recv() {
        Ok(entry) => Some(entry),
        Err(TryRecvError::Disconnected) => None,
        Err(TryRecvError::Empty) => {
            file.flush().ok()?;
            waiting.recv().ok()
        }
    }
}

/// The way of events into the file.
struct Tap {
    file: &'static TraceFile,
    /// Events that found the channel full.
    dropped: u64,
}

impl Tap {
    fn open() -> Option<Tap> {
        Some(Tap { file: FILE.get()?.as_ref()?, dropped: 0 })
    }

    /// Passes on what has happened to `group`; so many events of it were `dropped` before.
    fn pass<E: qlog::Event + Send + 'static>(
        &mut self,
        group: &str,
        mut next: impl FnMut() -> Option<(Instant<LinkClock>, E)>,
    ) {
        while let Some((at, event)) = next() {
            let (at_ms, group) = (self.ms(at.ns()), group.to_owned());
            self.put(Entry::Event { at_ms, group, event: Box::new(event) });
        }
    }

    fn pass_log<E: qlog::Event + Send + 'static>(&mut self, group: &str, log: &mut Log<E>) {
        self.pass(group, || log.poll());
        self.dropped += log.poll_dropped();
    }

    /// Writes how many events the file lacks, if it lacks any.
    fn pass_dropped(&mut self, schema: &'static str, group: &str) {
        if self.dropped > 0 {
            let (at_ms, group) = (self.ms(clock::now().ns()), group.to_owned());
            let events = std::mem::take(&mut self.dropped);
            if self.file.entries.try_send(Entry::Dropped { at_ms, schema, group, events }).is_err() {
                self.dropped = events;
            }
        }
    }

    fn put(&mut self, entry: Entry) {
        if let Err(TrySendError::Full(_)) = self.file.entries.try_send(entry) {
            self.dropped += 1;
        }
    }

    fn ms(&self, raw_ns: i64) -> f64 {
        (raw_ns - self.file.began.ns()) as f64 / 1e6
    }
}

/// The trace of one link.
pub(super) struct LinkTrace {
    tap: Tap,
    /// Whose link, and to which node.
    group: String,
}

impl fmt::Debug for NodeTrace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("NodeTrace").field("me", &self.me).finish_non_exhaustive()
    }
}

impl fmt::Debug for LinkTrace {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("LinkTrace").field("group", &self.group).finish_non_exhaustive()
    }
}

impl LinkTrace {
    /// Starts the trace of a link from `me` to `other`, if the environment requests one.
    pub(super) fn start(link: &mut Link, me: NodeId, other: NodeId) -> Option<LinkTrace> {
        let tap = Tap::open()?;
        link.start_trace();
        Some(LinkTrace { tap, group: format!("{me}→{other}") })
    }

    /// A writer of the other node that is read.
    pub(super) fn note_topic(&mut self, writer: u32, topic: &str) {
        let (at_ms, group) = (self.tap.ms(clock::now().ns()), self.group.clone());
        self.tap.put(Entry::Topic { at_ms, group, writer, topic: topic.to_owned() });
    }

    /// Passes on what has happened on the link.
    pub(super) fn drain(&mut self, link: &mut Link) {
        self.tap.pass(&self.group, || link.poll_event());
        self.tap.dropped += link.poll_dropped_events();
        self.tap.pass_dropped(SCHEMA, &self.group);
    }
}

/// The trace of what a node decides beside its links: discovery, the routes of its readers, its groups.
pub(super) struct NodeTrace {
    tap: Tap,
    me: String,
}

impl NodeTrace {
    /// Starts it, if the environment requests one.
    pub(super) fn start(
        me: NodeId,
        discovery: &mut Discovery,
        routes: &mut ReaderRoutes,
    ) -> Option<NodeTrace> {
        let tap = Tap::open()?;
        discovery.trace().start();
        routes.trace().start();
        Some(NodeTrace { tap, me: me.to_string() })
    }

    /// Passes on what has happened, but for the streams to groups.
    pub(super) fn drain(&mut self, discovery: &mut Discovery, routes: &mut ReaderRoutes) {
        self.tap.pass_log(&self.me, discovery.trace());
        self.tap.pass_log(&self.me, routes.trace());
        self.tap.pass_dropped(SCHEMA, &self.me);
    }

    /// Passes on what has happened to a stream to a group.
    pub(super) fn drain_stream<E: qlog::Event + Send + 'static>(&mut self, stream: &str, log: &mut Log<E>) {
        self.tap.pass_log(&format!("{}→{stream}", self.me), log);
    }
}
