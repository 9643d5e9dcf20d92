//! A subscription: a queue of its own depth, which the hub fills.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use noctule::{Format, NodeError, ReadError, Sample, Subscriber};
use noctule_bridge::ages::Now;

use crate::door::Task;
use crate::gid::Gid;
use crate::graph::{Entry, Way};
use crate::participant::Participant;
use crate::quality::Quality;
use crate::queue::Inbox;
use crate::seen::Seen;
use crate::signal::{Waitable, lock};
use crate::status::{Kind, Statuses};
use crate::writer::Topic;

/// Samples taken from one subscriber before the others get their turn.
const BATCH: usize = 64;
/// Deadlines are looked at no more often than this.
const DEADLINE_MIN: Duration = Duration::from_millis(1);

/// Samples of a plain type that a subscription keeps where they lie; the rest is copied.
const BORROWS: u32 = 4;
/// A shorter one is copied: that costs less than keeping it from its publisher.
const LENT_BYTES_MIN: usize = 4096;

/// The bytes of a message.
#[derive(Debug)]
pub enum Body {
    /// A copy in this process's memory.
    Copied(Vec<u8>),
    /// A loan in shared memory; its publisher goes round it as long as this lives.
    Lent(Sample),
}

impl Body {
    /// First byte and number of bytes, valid as long as it lives and stays where it is.
    pub fn place(&self) -> (*const u8, usize) {
        match self {
            Body::Copied(bytes) => (bytes.as_ptr(), bytes.len()),
            Body::Lent(sample) => (sample.as_ptr(), sample.len()),
        }
    }

    /// A copy.
    pub fn to_vec(&self) -> Vec<u8> {
        match self {
            Body::Copied(bytes) => bytes.clone(),
            Body::Lent(sample) => sample.to_vec(),
        }
    }
}

/// A message and what is known of it.
#[derive(Debug)]
pub struct Taken {
    /// The message in CDR, with its header.
    pub body: Body,
    /// When it was true, in nanoseconds of the time of day; `None` if its publisher's clock is not known yet.
    pub source_ns: Option<i64>,
    /// When it came here, in nanoseconds of the time of day.
    pub received_ns: i64,
    /// Counts the samples of one publisher from 1.
    pub published: u64,
    /// Counts the samples of this subscription from 1.
    pub received: u64,
    /// Identity of its publisher.
    pub gid: Gid,
}

/// A subscription.
#[derive(Debug)]
pub struct Reader {
    participant: Arc<Participant>,
    number: u64,
    gid: Gid,
    quality: Quality,
    ignores_own: bool,
    is_plain: bool,
    inbox: Inbox<Taken>,
    seen: Mutex<Seen>,
    received: AtomicU64,
    lost: AtomicU64,
    matched: AtomicUsize,
    statuses: Statuses,
}

impl Reader {
    /// Opens a subscription; `ignores_own`: messages of this context are left out.
    ///
    /// # Errors
    /// As [`SubscriberBuilder::open`](noctule::SubscriberBuilder::open).
    pub fn open(
        participant: &Arc<Participant>,
        topic: &Topic<'_>,
        ignores_own: bool,
    ) -> Result<Arc<Reader>, NodeError> {
        let builder = participant
            .node
            .subscriber(topic.name)
            .type_name(topic.type_name, topic.type_hash)
            .formats(&[Format::Cdr])
            .borrows(if topic.is_plain { BORROWS } else { 1 });
        let subscriber = topic.quality.subscriber(builder).open()?;
        let (node, endpoint) = subscriber.endpoint();
        let gid = Gid::of(node, endpoint);
        let number = participant.registry.number();
        let reader = Arc::new(Reader {
            participant: Arc::clone(participant),
            number,
            gid,
            quality: topic.quality,
            ignores_own,
            is_plain: topic.is_plain,
            inbox: Inbox::new(topic.quality.history()),
            seen: Mutex::default(),
            received: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            matched: AtomicUsize::new(0),
            statuses: Statuses::default(),
        });
        let entry = participant.entry(Way::Reads, topic.name, (topic.type_name, topic.type_hash), gid);
        let entry = Entry { quality: topic.quality, rihs01: topic.rihs01, ..entry };
        participant.registry.show([(number, entry)]);
        participant.door.add(number, Box::new(Heard { subscriber, reader: Arc::clone(&reader) }));
        Ok(reader)
    }

    /// Closes it: nothing comes any more. The owner that drops the last of it must have called this.
    pub fn close(&self) {
        self.participant.door.remove(self.number);
        self.participant.registry.hide(&[self.number]);
    }

    /// The oldest message that was not taken.
    pub fn take(&self) -> Option<Taken> {
        self.inbox.take()
    }

    /// Rings when there is a message.
    pub fn waitable(&self) -> &Waitable {
        self.inbox.waitable()
    }

    /// Its identity.
    pub fn gid(&self) -> Gid {
        self.gid
    }

    /// Publishers that it is matched with.
    pub fn matched(&self) -> usize {
        self.matched.load(Ordering::Relaxed)
    }

    /// Its events.
    pub fn statuses(&self) -> &Statuses {
        &self.statuses
    }

    /// QoS that it requests.
    pub fn quality(&self) -> &Quality {
        &self.quality
    }

    /// Messages that gave way to newer ones before they were taken.
    pub fn overwritten(&self) -> u64 {
        self.inbox.overwritten()
    }

    /// Puts a sample into the queue.
    fn handle(&self, sample: Sample) {
        let info = *sample.info();
        if info.missed > 0 {
            let lost = self.lost.fetch_add(info.missed, Ordering::Relaxed) + info.missed;
            self.statuses.update(Kind::Lost, |status| status.ever(lost));
        }
        let registry = &self.participant.registry;
        if self.ignores_own && registry.is_own(info.publisher) {
            return;
        }
        let source = info.source_time;
        if self.quality.transient_local
            && let Some(at) = source
            && lock(&self.seen).is_again(info.publisher, info.endpoint, at.ns())
        {
            return;
        }
        let now = Now::read(&self.participant.node);
        let stays = self.is_plain && sample.is_lent() && info.length_bytes >= LENT_BYTES_MIN;
        let taken = Taken {
            body: if stays { Body::Lent(sample) } else { Body::Copied(sample.to_vec()) },
            source_ns: source.map(|at| now.stamp_ns(at)),
            received_ns: now.stamp_ns(info.receive_time),
            published: info.sequence,
            received: self.received.fetch_add(1, Ordering::Relaxed) + 1,
            gid: registry.gid(info.publisher, info.endpoint),
        };
        self.inbox.push(taken, info.length_bytes);
    }

    /// Looks at its publishers and its deadline.
    fn refresh(&self, subscriber: &mut Subscriber) {
        let publishers = subscriber.publishers();
        self.matched.store(publishers, Ordering::Relaxed);
        self.statuses.update(Kind::Matched, |status| status.now(publishers as u64));
        self.statuses.update(Kind::Liveliness, |status| status.now(publishers as u64));
        if self.quality.deadline.is_some() {
            let missed = subscriber.deadline_missed().total;
            self.statuses.update(Kind::Deadline, |status| status.ever(missed));
        }
    }
}

/// A subscription as the hub serves it.
#[derive(Debug)]
struct Heard {
    subscriber: Subscriber,
    reader: Arc<Reader>,
}

impl Task for Heard {
    fn drain(&mut self) -> bool {
        for _ in 0..BATCH {
            match self.subscriber.take() {
                Ok(Some(sample)) => self.reader.handle(sample),
                Ok(None) => break,
                Err(error) if error.cause == ReadError::Forked => return false,
                // A publisher that is broken has been noticed by the library; the next sample may be of another.
                Err(_) => {}
            }
        }
        true
    }

    fn look(&mut self) {
        self.reader.refresh(&mut self.subscriber);
    }

    fn tend(&mut self) -> bool {
        if self.reader.quality.deadline.is_some() {
            self.look();
        }
        true
    }

    fn next_due(&self) -> Option<Duration> {
        self.reader.quality.deadline.map(|period| period.max(DEADLINE_MIN))
    }

    fn statuses(&self) -> Option<&Statuses> {
        Some(&self.reader.statuses)
    }
}

impl AsMut<Subscriber> for Heard {
    fn as_mut(&mut self) -> &mut Subscriber {
        &mut self.subscriber
    }
}
