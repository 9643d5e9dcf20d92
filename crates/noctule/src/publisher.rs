//! The writing end of a topic.

mod cdr;
mod loan;
mod room;
mod typed;

pub(crate) use cdr::CdrPublisher;
use loan::Lent;
use room::Waiting;
pub use typed::{FieldsInPlace, TypedPublisher, TypedPublisherBuilder};

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use noctule_discovery::{Durability, Endpoint, EndpointId, EndpointKind, NodeId, Qos, Reliability};
use noctule_formats::Format;
use noctule_prrt::SentCounters;
use noctule_shm_ring::{Loan, Origin, RingConfig, Writer};
use noctule_sys::clock::now_ns;
use noctule_time_sync::Local;
use noctule_timebase::{Instant, Span};

use crate::deadline::{DeadlineMissed, loss_ppm, span};
use crate::error::{NodeError, PublishError};
use crate::node::{Node, Shared};
use crate::sample::pack_widths;
use crate::shared_topic::PublishedTopic;
use crate::topic_formats::{RAW_FORMATS, TopicFormats};

/// Largest sample unless a topic says otherwise: 64 KiB.
pub const PAYLOAD_BYTES_DEFAULT: u32 = 64 << 10;

/// How long dropping a reliable publisher waits for acknowledgements by default: about ten retransmissions on a bad link.
pub const LINGER_DEFAULT: Duration = Duration::from_secs(1);

/// Bytes added to a header of four bytes, so that a multiple of 8 follows.
const SHIFT_BYTES: usize = 4;

/// Publishes samples of one topic. Samples of readers on this host go through shared memory; those of
/// other hosts by UDP. Never waits for the network: what the line does not carry yet is queued, and of that the oldest that has not begun
/// to be sent gives way to the newest ([`PublisherBuilder::keep_last`]). Reliable samples that follow each other by less than 20 µs wait for each other, up to
/// 0.1 ms, so that several leave together.
#[derive(Debug)]
pub struct Publisher {
    shared: Arc<Shared>,
    topic: Arc<PublishedTopic>,
    writer: Option<Writer>,
    /// No sample gives way: HISTORY keep all.
    keeps_all: bool,
    sequence: u64,
    /// Samples not published because a reader was behind.
    would_block: u64,
    waiting: Waiting,
    shift_bytes: usize,
    lent: Option<Lent>,
    /// For what is lent where it cannot be in a ring.
    buffer: Vec<u8>,
    /// Memory for the next sample to other hosts.
    spare: Option<Arc<[u8]>>,
    linger: Duration,
}

/// When a sample was true, on the publisher's clock, and how far that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceTime {
    /// The time.
    pub time: Instant<Local>,
    /// Proven: the truth is within plus or minus this. `None`: nothing is proven.
    pub bound: Option<Span>,
    /// The standard error. `None`: not known.
    pub sigma: Option<Span>,
}

/// Settings of a publisher, in the words of DDS and ROS 2.
#[derive(Debug)]
#[must_use = "call open"]
pub struct PublisherBuilder {
    pub(crate) shared: Arc<Shared>,
    pub(crate) endpoint: Endpoint,
    pub(crate) pins: u32,
    linger: Duration,
    /// Of the ring ([`RingConfig::shift_bytes`](noctule_shm_ring::RingConfig::shift_bytes)).
    shift_bytes: usize,
    /// Chosen by the user.
    format: Option<Format>,
}

impl Node {
    /// Settings for a publisher of plain bytes.
    pub fn publisher(&self, topic: &str) -> PublisherBuilder {
        PublisherBuilder::new(self.shared(), topic)
    }
}

impl PublisherBuilder {
    fn new(shared: Arc<Shared>, topic: &str) -> PublisherBuilder {
        let endpoint = Endpoint {
            id: EndpointId(0),
            kind: EndpointKind::Writer,
            topic: topic.to_owned(),
            type_name: "bytes".to_owned(),
            type_hash: 0,
            formats: RAW_FORMATS,
            payload_bytes_max: PAYLOAD_BYTES_DEFAULT,
            qos: Qos::default(),
            relayed: false,
        };
        PublisherBuilder { shared, endpoint, pins: 7, linger: LINGER_DEFAULT, shift_bytes: 0, format: None }
    }

    /// Name and layout hash of the type; a reader that expects another gets a notice. Default `bytes`.
    pub fn type_name(mut self, name: &str, hash: u64) -> Self {
        (self.endpoint.type_name, self.endpoint.type_hash) = (name.to_owned(), hash);
        self
    }

    /// The format that samples are written in, for all readers. Default: bytes in no format; and see
    /// [`typed`](PublisherBuilder::typed).
    pub fn format(mut self, format: Format) -> Self {
        self.endpoint.formats = TopicFormats::only(Some(format)).bits();
        self.format = Some(format);
        self
    }

    /// All of QoS at once.
    pub fn qos(mut self, qos: Qos) -> Self {
        self.endpoint.qos = qos;
        self
    }

    /// RELIABILITY. Default best effort.
    pub fn reliability(mut self, reliability: Reliability) -> Self {
        self.endpoint.qos.reliability = reliability;
        self
    }

    /// HISTORY keep last: how many samples a reader may lag behind, and how many wait to be sent to other hosts at most,
    /// besides those that are being sent. 1 to 65,535; default 8.
    pub fn keep_last(mut self, depth: u32) -> Self {
        (self.endpoint.qos.depth, self.endpoint.qos.keep_all) = (depth, false);
        self
    }

    /// HISTORY keep all: no sample is given up or overwritten for a newer one. While `samples` of them are still to be read by a reader
    /// on this host, or to be sent to or acknowledged by one on another, [`publish`](Publisher::publish) returns
    /// [`WouldBlock`](PublishError::WouldBlock), which [`would_block`](Publisher::would_block) counts, and publishes nothing. 1 to 65,535.
    /// The publisher waits for a reader to read, and a reader of another host acknowledges only where it has room, if both are
    /// [`Reliable`](Reliability::Reliable) and the reader does not keep the last
    /// ([`SubscriberBuilder::keep_last`](crate::SubscriberBuilder::keep_last)). So such a reader that stops
    /// reading stops its publisher, which a notice reports after 5 s if it is on another host; one that closes or dies does not. Any
    /// other reader counts as missed what it did not read in time.
    pub fn keep_all(mut self, samples: u32) -> Self {
        (self.endpoint.qos.depth, self.endpoint.qos.keep_all) = (samples, true);
        self
    }

    /// DURABILITY transient local: late joiners get the history first.
    pub fn transient_local(mut self) -> Self {
        self.endpoint.qos.durability = Durability::TransientLocal;
        self
    }

    /// DEADLINE: a sample at least this often; with [`Reliability::DeadlineBound`] also the time from its
    /// source time by which each must have arrived.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.endpoint.qos.deadline = Some(span(deadline));
        self
    }

    /// Share of samples that may miss the deadline if [`Reliability::DeadlineBound`]; the less, the more
    /// redundancy is spent. From one in a million to 1; default 0.0001.
    pub fn tolerable_loss(mut self, share: f64) -> Self {
        self.endpoint.qos.loss_ppm = loss_ppm(share);
        self
    }

    /// LIFESPAN: older samples are not delivered; a subscriber may request less.
    pub fn lifespan(mut self, lifespan: Duration) -> Self {
        self.endpoint.qos.lifespan = Some(span(lifespan));
        self
    }

    /// Serves readers of other hosts together: each datagram goes once to a multicast group, and parity repairs what
    /// each of them lost. For best effort and deadline bound, from two such readers on; a reader that the group does not reach, or that
    /// loses far more than the others, is served by itself. Over Wi-Fi, which sends multicast slowly and without repair, it
    /// pays from about five readers on. Default no.
    pub fn multicast(mut self, multicast: bool) -> Self {
        self.endpoint.qos.multicast = multicast;
        self
    }

    /// Longest sample in bytes. Default 64 KiB. Memory is taken when the first reader of this host
    /// comes: this times history and borrows.
    pub fn payload_bytes_max(mut self, bytes: u32) -> Self {
        self.endpoint.payload_bytes_max = bytes;
        self
    }

    /// Samples that all readers of this host together may have borrowed at once. Default 7.
    pub fn borrows(mut self, samples: u32) -> Self {
        self.pins = samples;
        self
    }

    /// Aligns the payload behind the first four bytes of a sample in shared memory, as behind the header of CDR, to 8 bytes, in place of the
    /// first: so a struct behind that header is written and read in place. Default no.
    pub fn aligned_behind_header(mut self) -> Self {
        self.shift_bytes = SHIFT_BYTES;
        self
    }

    /// How long dropping a [`Reliable`](Reliability::Reliable) publisher waits for readers of other hosts to acknowledge what was published.
    /// Default 1 s; a program that must end at once says zero.
    pub fn linger(mut self, linger: Duration) -> Self {
        self.linger = linger;
        self
    }

    /// Opens the topic and tells the others.
    ///
    /// # Errors
    /// A name that cannot travel, sizes out of limits, or no room for another endpoint.
    pub fn open(self) -> Result<Publisher, NodeError> {
        let PublisherBuilder { shared, endpoint, pins, linger, shift_bytes, .. } = self;
        let keeps_all = endpoint.qos.keep_all;
        let config = RingConfig {
            history: endpoint.qos.depth,
            pins,
            payload_bytes_max: endpoint.payload_bytes_max as usize,
            type_hash: endpoint.type_hash,
            shift_bytes,
        };
        let topic = shared.add_publisher(endpoint, config)?;
        let (lent, buffer) = (None, Vec::new());
        let (sequence, would_block) = (0, 0);
        let writer = None;
        Ok(Publisher {
            shared,
            topic,
            writer,
            keeps_all,
            sequence,
            would_block,
            waiting: Waiting::default(),
            shift_bytes,
            lent,
            buffer,
            spare: None,
            linger,
        })
    }

    fn keeps_history(&self) -> bool {
        self.endpoint.qos.durability == Durability::TransientLocal
    }
}

impl Publisher {
    /// Publishes a copy of `bytes`, true now.
    ///
    /// # Errors
    /// Longer than the topic allows, or than travels to other hosts if there are readers; or a reader is behind by the whole
    /// history, with [`keep_all`](PublisherBuilder::keep_all).
    #[inline]
    pub fn publish(&mut self, bytes: &[u8]) -> Result<(), PublishError> {
        self.publish_at(bytes, self.shared.clock.now())
    }

    /// Publishes a copy of `bytes` that were true at `source_time` of this node's clock.
    ///
    /// # Errors
    /// Longer than the topic allows.
    #[inline]
    pub fn publish_at(&mut self, bytes: &[u8], source_time: Instant<Local>) -> Result<(), PublishError> {
        if self.topic.is_fresh.load(Ordering::Acquire) {
            self.fetch_ring();
        }
        self.put(Some(bytes), Some(bytes), exactly(source_time))
    }

    /// Publishes a copy of `bytes` that came from elsewhere, such as from a board with a clock of its own:
    /// true at `source.time`, as far as that is known. Readers learn how far; those on other hosts add what
    /// they do not know of this node's clock.
    ///
    /// # Errors
    /// Longer than the topic allows.
    pub fn publish_uncertain(&mut self, bytes: &[u8], source: SourceTime) -> Result<(), PublishError> {
        if self.topic.is_fresh.load(Ordering::Acquire) {
            self.fetch_ring();
        }
        let user = pack_widths(source.bound, source.sigma);
        self.put(Some(bytes), Some(bytes), Origin { source_time_ns: source.time.ns(), user })
    }

    /// Whether samples are read on this host, and on others.
    fn readers_where(&mut self) -> (bool, bool) {
        if self.topic.is_fresh.load(Ordering::Acquire) {
            self.fetch_ring();
        }
        (self.writer.is_some(), self.topic.remote_readers.load(Ordering::Relaxed) > 0)
    }

    /// Publishes a sample as it is for readers of this host, and as it is for those of others.
    #[inline]
    fn put(
        &mut self,
        here: Option<&[u8]>,
        elsewhere: Option<&[u8]>,
        origin: Origin,
    ) -> Result<(), PublishError> {
        if self.shared.is_in_child() {
            return Err(PublishError::Forked { topic: self.topic.name.clone() });
        }
        let (here_bytes, bytes) = (here.map_or(0, <[u8]>::len), elsewhere.map_or(0, <[u8]>::len));
        let is_read_elsewhere = self.topic.remote_readers.load(Ordering::Relaxed) > 0;
        self.check_length(here_bytes, false)?;
        self.check_length(bytes, is_read_elsewhere)?;
        // What was lent in the ring lies where this is written.
        self.lent = None;
        if self.keeps_all && !self.has_room(is_read_elsewhere.then_some(bytes)) {
            return Err(self.would_have_blocked());
        }
        self.count();
        if let (Some(writer), Some(bytes)) = (&mut self.writer, here) {
            // Its length was checked above, so this does not fail.
            if let Ok(wake) = writer.copy_in(bytes, origin) {
                writer.wake(wake);
            }
        }
        if is_read_elsewhere && let Some(bytes) = elsewhere {
            self.shared.send(&self.topic, (self.sequence, origin), bytes, &mut self.spare);
        }
        Ok(())
    }

    /// Whether a sample of so many bytes may be published.
    #[inline]
    fn check_length(&self, bytes: usize, is_read_elsewhere: bool) -> Result<(), PublishError> {
        let most_bytes = self.topic.offer.payload_bytes_max;
        if bytes > most_bytes {
            let topic = self.topic.name.clone();
            return Err(self.refused(PublishError::TooLong { topic, bytes, most_bytes }));
        }
        let most_bytes = self.topic.remote_bytes_max;
        if is_read_elsewhere && bytes > most_bytes {
            let topic = self.topic.name.clone();
            return Err(self.refused(PublishError::TooLongForNetwork { topic, bytes, most_bytes }));
        }
        Ok(())
    }

    #[cold]
    fn refused(&self, why: PublishError) -> PublishError {
        self.topic.refused.fetch_add(1, Ordering::Relaxed);
        self.topic.undelivered.fetch_add(1, Ordering::Relaxed);
        why
    }

    /// Publishes a sample of `length_bytes`, true now, that `fill` writes where it will be read: no copy
    /// is made. What `fill` leaves is unspecified: what an earlier sample held there.
    ///
    /// # Errors
    /// Longer than the topic allows; `fill` is not called then.
    pub fn publish_in_place(
        &mut self,
        length_bytes: usize,
        fill: impl FnOnce(&mut LoanedSample<'_>),
    ) -> Result<(), PublishError> {
        if self.topic.is_fresh.load(Ordering::Acquire) {
            self.fetch_ring();
        }
        if self.shared.is_in_child() {
            return Err(PublishError::Forked { topic: self.topic.name.clone() });
        }
        let source_time = self.shared.clock.now();
        let alone = self.topic.remote_readers.load(Ordering::Relaxed) == 0;
        let most_bytes = self.topic.offer.payload_bytes_max;
        if alone && length_bytes <= most_bytes && self.writer.is_some() {
            self.lent = None;
            if self.keeps_all && !self.has_room(None) {
                return Err(self.would_have_blocked());
            }
            self.count();
            // Its length was checked above, so this does not fail.
            if let Some(writer) = &mut self.writer
                && let Ok(mut loan) = writer.loan(length_bytes)
            {
                fill(&mut LoanedSample(Where::Ring(&mut loan)));
                let wake = loan.commit(exactly(source_time));
                writer.wake(wake);
            }
            return Ok(());
        }
        // No reader here, or others elsewhere: the bytes are needed twice, or not at all.
        let mut bytes = vec![0; length_bytes.min(most_bytes.saturating_add(1))];
        if bytes.len() == length_bytes {
            fill(&mut LoanedSample(Where::Heap(&mut bytes)));
        }
        self.publish_at(&bytes, source_time)
    }

    /// Readers that get what is published from now on: those on this host that have been let in, and those
    /// of other hosts that are known.
    pub fn readers(&self) -> usize {
        // There the lock may be held for ever.
        if self.shared.is_in_child() { 0 } else { self.shared.readers_of(self.topic.id) }
    }

    /// Waits until nothing published is still to be sent to readers on other hosts or, if reliable, to be acknowledged by
    /// them. True if all of it was acknowledged; false if `timeout` was over first, or if a sample published since
    /// the last call was refused or given up because the path carries less than is published. Readers on this host need
    /// no acknowledgement: what is in shared memory stays there for them when the publisher has gone.
    pub fn wait_for_acknowledgments(&self, timeout: Duration) -> bool {
        let is_sent = !self.shared.is_in_child() && self.shared.wait_until_sent(self.topic.id, timeout);
        is_sent && self.topic.undelivered.swap(0, Ordering::Relaxed) == 0
    }

    /// Samples that some reader on another host did not get because the path to it carries less than was published: an older
    /// sample that had not begun to be sent gave way to a newer one. Readers count them as missed. Those of deadline-bound
    /// topics are in [`deadline_counters`](Publisher::deadline_counters).
    pub fn given_up(&self) -> u64 {
        self.topic.given_up.load(Ordering::Relaxed)
    }

    /// Counters of this topic's datagrams to each node of another host that reads it, if it is
    /// [`DeadlineBound`](Reliability::DeadlineBound): repairs, redundancy, and what failed.
    pub fn deadline_counters(&self) -> Vec<(NodeId, SentCounters)> {
        self.shared.sent(self.topic.id)
    }

    /// Capacity of the path to each node of another host that reads this topic, bytes of datagrams a second: what arrived
    /// while it was full. `None` until it was; with others on the same line, what they leave.
    pub fn capacities_bytes_per_s(&self) -> Vec<(NodeId, Option<f64>)> {
        self.shared.capacities(self.topic.id)
    }

    /// How often the DEADLINE offered was missed: nothing was published in time.
    pub fn deadline_missed(&self) -> DeadlineMissed {
        self.shared.deadline_missed(self.topic.id)
    }

    /// The topic's name.
    pub fn topic(&self) -> &str {
        &self.topic.name
    }

    /// Now on the node's clock.
    pub(crate) fn now(&self) -> Instant<Local> {
        self.shared.clock.now()
    }

    /// Its node and its number there, as [`SampleInfo`](crate::SampleInfo) gives them with each sample.
    pub fn endpoint(&self) -> (NodeId, EndpointId) {
        (self.shared.id(), self.topic.id)
    }

    /// Whether a sample of so many bytes would be published to the readers there are.
    ///
    /// # Errors
    /// It is too long; this counts as refused.
    pub(crate) fn check_bytes(&self, bytes: usize) -> Result<(), PublishError> {
        self.check_length(bytes, self.topic.remote_readers.load(Ordering::Relaxed) > 0)
    }

    /// Samples published so far.
    pub fn published(&self) -> u64 {
        self.sequence
    }

    /// One more sample.
    #[inline]
    fn count(&mut self) {
        self.sequence += 1;
        self.topic.published.store(self.sequence, Ordering::Relaxed);
        if self.topic.has_deadline {
            let now_ns = now_ns();
            self.topic.last_ns.store(now_ns, Ordering::Relaxed);
            if let Some(writer) = &self.writer {
                writer.stamp(now_ns);
            }
        }
    }

    #[cold]
    fn fetch_ring(&mut self) {
        let fresh = self.topic.fresh.lock().ok().and_then(|mut fresh| fresh.take());
        if fresh.is_some() {
            self.writer = fresh;
        }
        self.topic.is_fresh.store(false, Ordering::Release);
    }
}

/// Where a sample is being written.
#[derive(Debug)]
pub struct LoanedSample<'a>(Where<'a>);

#[derive(Debug)]
enum Where<'a> {
    Ring(&'a mut dyn RingPlace),
    Heap(&'a mut [u8]),
}

/// A loan without the lifetime of its writer.
trait RingPlace: std::fmt::Debug {
    fn length_bytes(&self) -> usize;
    fn write_at(&mut self, offset: usize, bytes: &[u8]);
}

impl RingPlace for Loan<'_> {
    fn length_bytes(&self) -> usize {
        self.len()
    }

    fn write_at(&mut self, offset: usize, bytes: &[u8]) {
        Loan::write_at(self, offset, bytes);
    }
}

impl LoanedSample<'_> {
    /// Length of the sample in bytes.
    pub fn len(&self) -> usize {
        match &self.0 {
            Where::Ring(loan) => loan.length_bytes(),
            Where::Heap(bytes) => bytes.len(),
        }
    }

    /// Whether the sample has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes a part of the sample.
    ///
    /// # Panics
    /// If the part is not inside the sample.
    pub fn write_at(&mut self, offset: usize, bytes: &[u8]) {
        match &mut self.0 {
            Where::Ring(loan) => loan.write_at(offset, bytes),
            Where::Heap(place) => place[offset..offset + bytes.len()].copy_from_slice(bytes),
        }
    }
}

impl Drop for Publisher {
    /// Waits for the last acknowledgements, see [`linger`](PublisherBuilder::linger).
    fn drop(&mut self) {
        if self.topic.is_reliable() && self.topic.remote_readers.load(Ordering::Relaxed) > 0 {
            self.shared.linger(self.topic.id, self.linger);
        }
        self.shared.remove_publisher(self.topic.id);
    }
}

fn exactly(source_time: Instant<Local>) -> Origin {
    Origin { source_time_ns: source_time.ns(), user: 0 }
}
