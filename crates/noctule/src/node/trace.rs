//! `NOCTULE_TRACE=FILE`: what happens on the links of this process, written to a file by a thread of its own.
//!
//! A link's events go through a channel of limited length, so that a slow disk delays no datagram: what does not fit is dropped, and
//! the file says how many were. Without the variable a link has no [`LinkTrace`], and nothing is done.

use std::fmt;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::sync::{Mutex, OnceLock, PoisonError};

use noctule_discovery::NodeId;
use noctule_prrt::Link;
use noctule_prrt::trace::{Event, qlog};
use noctule_sys::clock::realtime_ns;
use noctule_timebase::Instant;

use crate::clock::{self, Raw};
use crate::error::NodeError;

/// Names the file; `%p` in it stands for the number of the process.
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

/// What the thread does next.
enum Entry {
    Event {
        at_ms: f64,
        group: String,
        event: Event,
    },
    Topic {
        at_ms: f64,
        group: String,
        writer: u32,
        topic: String,
    },
    Dropped {
        at_ms: f64,
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
    let header = qlog::header(&format!("process {process}"), realtime_ns() as f64 / 1e6);
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
    let mut text = String::new();
    while let Some(entry) = next(waiting, &mut file) {
        text.clear();
        match entry {
            Entry::Event { at_ms, group, event } => qlog::record(&mut text, at_ms, &group, &event),
            Entry::Topic { at_ms, group, writer, topic } => {
                qlog::record_topic(&mut text, at_ms, &group, (writer, &topic));
            }
            Entry::Dropped { at_ms, group, events } => {
                qlog::record_dropped(&mut text, at_ms, &group, events);
            }
            Entry::Flush(done) => {
                if file.flush().is_err() {
                    return;
                }
                drop(done);
            }
        }
        if file.write_all(text.as_bytes()).is_err() {
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

/// The trace of one link.
pub(super) struct LinkTrace {
    file: &'static TraceFile,
    /// Whose link, and to which node.
    group: String,
    /// Entries that found the channel full.
    dropped: u64,
}

impl fmt::Debug for LinkTrace {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("LinkTrace").field("group", &self.group).finish_non_exhaustive()
    }
}

impl LinkTrace {
    /// Starts the trace of a link from `me` to `other`, if the environment asks for one.
    pub(super) fn start(link: &mut Link, me: NodeId, other: NodeId) -> Option<LinkTrace> {
        let file = FILE.get()?.as_ref()?;
        link.start_trace();
        Some(LinkTrace { file, group: format!("{me}→{other}"), dropped: 0 })
    }

    /// A writer of the other node that is read.
    pub(super) fn note_topic(&mut self, writer: u32, topic: &str) {
        let (at_ms, group) = (self.ms(clock::now().ns()), self.group.clone());
        self.put(Entry::Topic { at_ms, group, writer, topic: topic.to_owned() });
    }

    /// Passes on what has happened on the link.
    pub(super) fn drain(&mut self, link: &mut Link) {
        while let Some((at, event)) = link.poll_event() {
            let (at_ms, group) = (self.ms(at.ns()), self.group.clone());
            self.put(Entry::Event { at_ms, group, event });
        }
        self.dropped += link.poll_dropped_events();
        if self.dropped > 0 {
            let (at_ms, group) = (self.ms(clock::now().ns()), self.group.clone());
            let events = std::mem::take(&mut self.dropped);
            if self.file.entries.try_send(Entry::Dropped { at_ms, group, events }).is_err() {
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
