//! A publisher of messages of any length.
//!
//! A ring's slots have one length, fixed when the publisher opens. A message that does not fit opens the publisher anew with slots that have
//! room for it and for twice as much as before, waits until its readers are there, and publishes the history of a transient local
//! topic again. Memory is taken as slots are first written to, so long slots cost what they hold.

mod lend;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, TryLockError};
use std::time::{Duration, Instant as Timer};

use noctule::{Format, NodeError, PublishError, Publisher};
use noctule_time_sync::Local;
use noctule_timebase::Instant;

use crate::gid::Gid;
use crate::graph::{Entry, Way};
use crate::loans::{LOANS_MAX, Loans};
use crate::participant::{Participant, Watched};
use crate::quality::Quality;
use crate::signal::{lock, wait};
use crate::status::{Kind, Statuses};

/// Slots of a type without a bound, at first: of a publisher of little depth, and of one of much.
const SLOT_BYTES: u32 = 256 << 10;
const SLOT_BYTES_DEEP: u32 = 64 << 10;
/// From this depth on it is much.
const DEEP: u32 = 100;
/// Longest message (`docs/spec/shared-memory.md`).
pub const MESSAGE_BYTES_MAX: usize = 1 << 30;
/// Bytes of a transient local history that are kept to be published again; the oldest go first.
const HISTORY_BYTES_MAX: usize = 64 << 20;
/// How long a publisher that was opened anew waits for the readers it had.
const READERS_WITHIN: Duration = Duration::from_millis(200);
/// How long [`Writer::publish`] waits for room with KEEP_ALL, as DDS's `max_blocking_time`.
const ROOM_WITHIN: Duration = Duration::from_millis(100);
/// Of that, as long as other threads that need the publisher may wait; also how often [`Writer::wait_for_acknowledgments`] looks.
const ROOM_SLICE: Duration = Duration::from_millis(2);

/// Topic of a publisher: its name, its type and its QoS.
#[derive(Clone, Debug)]
pub struct Topic<'a> {
    /// `/chatter`.
    pub name: &'a str,
    /// `std_msgs/msg/String`.
    pub type_name: &'a str,
    /// Hash from [`Participant::describe`]; 0: not known.
    pub type_hash: u64,
    /// ROS 2's hash of the type.
    pub rihs01: Option<[u8; 32]>,
    /// Offered or requested.
    pub quality: Quality,
    /// Longest message, if the type has a bound; 0: it has none.
    pub bytes_max: usize,
    /// Every message is as long, and in CDR as in memory: so it can be lent.
    pub is_plain: bool,
}

/// A publisher.
#[derive(Debug)]
pub struct Writer {
    participant: Arc<Participant>,
    number: u64,
    gid: Gid,
    quality: Quality,
    name: String,
    type_name: String,
    type_hash: u64,
    is_plain: bool,
    inner: Mutex<Inner>,
    matched: AtomicUsize,
    statuses: Statuses,
}

/// A message and when it was true.
type Kept = (Instant<Local>, Vec<u8>);

#[derive(Debug)]
struct Inner {
    /// `None`: closed.
    publisher: Option<Publisher>,
    loans: Loans,
    bytes_max: usize,
    history: VecDeque<Kept>,
    history_bytes: usize,
}

/// Why a message was not published.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The library refused it.
    #[error(transparent)]
    Publish(#[from] PublishError),
    /// Slots that are long enough are not to be had.
    #[error(transparent)]
    Open(#[from] NodeError),
    /// Its owner has closed it.
    #[error("topic {topic}: the publisher was closed; open another")]
    Closed {
        /// The topic.
        topic: String,
    },
    /// Nothing was lent at this place, or it was given back.
    #[error(
        "topic {topic}: no loan of this publisher is at that place; borrow a message first, and publish it once"
    )]
    NotLent {
        /// The topic.
        topic: String,
    },
    /// As many loans are out as a publisher may have.
    #[error("topic {topic}: {LOANS_MAX} loans are out; publish some or give them back")]
    TooManyLoans {
        /// The topic.
        topic: String,
    },
    /// A reader was behind by the whole history for 100 ms, with KEEP_ALL.
    #[error(
        "topic {topic} keeps all samples and a reader did not read for 100 ms; publish again later, or keep last"
    )]
    TimedOut {
        /// The topic.
        topic: String,
    },
}

impl Writer {
    /// Opens a publisher.
    ///
    /// # Errors
    /// As [`PublisherBuilder::open`](noctule::PublisherBuilder::open).
    pub fn open(participant: &Arc<Participant>, topic: &Topic<'_>) -> Result<Arc<Writer>, NodeError> {
        let deep = topic.quality.depth() >= DEEP;
        let first = if deep { SLOT_BYTES_DEEP } else { SLOT_BYTES } as usize;
        let bytes_max = match topic.bytes_max {
            0 => first,
            bytes if topic.is_plain => bytes.min(MESSAGE_BYTES_MAX),
            bytes => bytes.min(first),
        };
        let publisher = open(participant, topic, bytes_max)?;
        let (node, endpoint) = publisher.endpoint();
        let gid = Gid::of(node, endpoint);
        let number = participant.registry.number();
        let (history, history_bytes) = (VecDeque::new(), 0);
        let writer = Arc::new(Writer {
            participant: Arc::clone(participant),
            number,
            gid,
            quality: topic.quality,
            name: topic.name.to_owned(),
            type_name: topic.type_name.to_owned(),
            type_hash: topic.type_hash,
            is_plain: topic.is_plain,
            inner: Mutex::new(Inner {
                publisher: Some(publisher),
                loans: Loans::default(),
                bytes_max,
                history,
                history_bytes,
            }),
            matched: AtomicUsize::new(0),
            statuses: Statuses::default(),
        });
        let entry = participant.entry(Way::Writes, topic.name, (topic.type_name, topic.type_hash), gid);
        let watched: Arc<dyn Watched> = writer.clone();
        lock(&participant.registry.writers).insert(number, Arc::downgrade(&watched));
        drop(watched);
        let entry = Entry { quality: topic.quality, rihs01: topic.rihs01, ..entry };
        participant.registry.show([(number, entry)]);
        participant.door.look();
        Ok(writer)
    }

    /// Publishes a message in CDR, true now.
    ///
    /// # Errors
    /// It is too long, or a reader is too far behind.
    pub fn publish(&self, bytes: &[u8]) -> Result<(), WriteError> {
        let mut end = None;
        loop {
            let mut inner = lock(&self.inner);
            self.make_room(&mut inner, bytes.len())?;
            let now = self.now();
            let Some(publisher) = &mut inner.publisher else { return Err(self.closed()) };
            match publisher.publish_at(bytes, now) {
                Ok(()) => {
                    self.remember(&mut inner, now, bytes);
                    return Ok(());
                }
                Err(PublishError::WouldBlock { topic }) => {
                    let end = *end.get_or_insert_with(|| Timer::now() + ROOM_WITHIN);
                    if Timer::now() >= end {
                        return Err(WriteError::TimedOut { topic });
                    }
                    publisher.wait_for_room(bytes.len(), ROOM_SLICE);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Waits until readers of other hosts have acknowledged everything; false when the time is over.
    pub fn wait_for_acknowledgments(&self, timeout: Option<Duration>) -> bool {
        let end = timeout.and_then(|timeout| Timer::now().checked_add(timeout));
        loop {
            let left = end.map_or(ROOM_SLICE, |end| end.saturating_duration_since(Timer::now()));
            let is_acknowledged = |open: &Publisher| open.wait_for_acknowledgments(Duration::ZERO);
            if lock(&self.inner).publisher.as_ref().is_none_or(is_acknowledged) {
                return true;
            }
            if left.is_zero() {
                return false;
            }
            // Without the lock: a thread that publishes meanwhile is not held up.
            wait(&Arc::default(), &[], Some(left.min(ROOM_SLICE)));
        }
    }

    /// Closes it, in this thread: it may wait until what was published is sent, and the hub, which may drop the last of it, must not.
    pub fn close(&self) {
        let mut inner = lock(&self.inner);
        let Some(publisher) = inner.publisher.take() else { return };
        let earlier = std::mem::take(&mut inner.loans).into_earlier();
        drop(inner);
        let registry = &self.participant.registry;
        lock(&registry.writers).remove(&self.number);
        registry.hide(&[self.number]);
        earlier.into_iter().chain([publisher]).for_each(|publisher| self.forget(publisher));
    }

    /// Its identity, for as long as it is open.
    pub fn gid(&self) -> Gid {
        self.gid
    }

    /// Readers that get what is published.
    pub fn matched(&self) -> usize {
        self.matched.load(Ordering::Relaxed)
    }

    /// Its events.
    pub fn statuses(&self) -> &Statuses {
        &self.statuses
    }

    /// QoS that it offers.
    pub fn quality(&self) -> &Quality {
        &self.quality
    }

    /// Its topic.
    fn name(&self) -> &str {
        &self.name
    }

    fn now(&self) -> Instant<Local> {
        self.participant.node.now()
    }

    fn closed(&self) -> WriteError {
        WriteError::Closed { topic: self.name.clone() }
    }

    /// Ends a publisher that another has taken the place of.
    fn forget(&self, before: Publisher) {
        let endpoint = before.endpoint();
        drop(before);
        self.participant.registry.forget_name(endpoint);
    }

    fn topic(&self) -> Topic<'_> {
        let (type_hash, quality) = (self.type_hash, self.quality);
        Topic {
            name: &self.name,
            type_name: &self.type_name,
            type_hash,
            rihs01: None,
            quality,
            bytes_max: 0,
            is_plain: self.is_plain,
        }
    }

    /// Opens anew if a message of so many bytes does not fit, or if a loan lies where it would be written.
    fn make_room(&self, inner: &mut Inner, bytes: usize) -> Result<(), NodeError> {
        if bytes > inner.bytes_max && bytes <= MESSAGE_BYTES_MAX {
            let twice = inner.bytes_max.saturating_mul(2).max(bytes).next_power_of_two();
            self.reopen(inner, twice.min(MESSAGE_BYTES_MAX))
        } else if inner.loans.is_slot_lent() {
            self.reopen(inner, inner.bytes_max)
        } else {
            Ok(())
        }
    }

    #[cold]
    fn reopen(&self, inner: &mut Inner, bytes_max: usize) -> Result<(), NodeError> {
        let Some(before) = &inner.publisher else { return Ok(()) };
        let mut publisher = open(&self.participant, &self.topic(), bytes_max)?;
        let readers = before.readers();
        let registry = &self.participant.registry;
        registry.rename(publisher.endpoint(), self.gid);
        let end = Timer::now() + READERS_WITHIN;
        let (signal, news) = (Arc::default(), &self.participant.news);
        loop {
            // Before the look: what comes after it is waited for.
            news.clear();
            let left = end.saturating_duration_since(Timer::now());
            if publisher.readers() >= readers || left.is_zero() {
                break;
            }
            wait(&signal, &[news], Some(left));
        }
        for (at, bytes) in &inner.history {
            // Each was published before, so it is not too long.
            let _ = publisher.publish_at(bytes, *at);
        }
        inner.bytes_max = bytes_max;
        let before = inner.publisher.replace(publisher);
        if let Some(before) = before.and_then(|before| inner.loans.replaced(before)) {
            self.forget(before);
        }
        Ok(())
    }

    /// Keeps what late joiners are to get.
    fn remember(&self, inner: &mut Inner, at: Instant<Local>, bytes: &[u8]) {
        if !self.quality.transient_local {
            return;
        }
        inner.history.push_back((at, bytes.to_vec()));
        inner.history_bytes += bytes.len();
        let depth = self.quality.depth() as usize;
        while inner.history.len() > depth
            || (inner.history_bytes > HISTORY_BYTES_MAX && inner.history.len() > 1)
        {
            let gone = inner.history.pop_front();
            inner.history_bytes -= gone.map_or(0, |(_, bytes)| bytes.len());
        }
    }
}

fn open(participant: &Participant, topic: &Topic<'_>, bytes_max: usize) -> Result<Publisher, NodeError> {
    let builder = participant
        .node
        .publisher(topic.name)
        .type_name(topic.type_name, topic.type_hash)
        .format(Format::Cdr)
        .payload_bytes_max(bytes_max as u32);
    let builder = if topic.is_plain { builder.aligned_behind_header() } else { builder };
    topic.quality.publisher(builder).open()
}

impl Watched for Writer {
    fn refresh(&self) -> bool {
        let inner = match self.inner.try_lock() {
            Ok(inner) => inner,
            Err(TryLockError::Poisoned(inner)) => inner.into_inner(),
            Err(TryLockError::WouldBlock) => return false,
        };
        let Some(publisher) = &inner.publisher else { return true };
        let readers = publisher.readers();
        let missed = self.quality.deadline.map(|_| publisher.deadline_missed().total);
        drop(inner);
        self.matched.store(readers, Ordering::Relaxed);
        self.statuses.update(Kind::Matched, |status| status.now(readers as u64));
        if let Some(missed) = missed {
            self.statuses.update(Kind::Deadline, |status| status.ever(missed));
        }
        true
    }

    fn deadline(&self) -> Option<Duration> {
        self.quality.deadline
    }

    fn statuses(&self) -> &Statuses {
        &self.statuses
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.close();
    }
}
