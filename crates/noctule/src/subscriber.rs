//! The reading end of a topic.
//!
//! Every publisher of the topic is a ring of its own, whether it is in this process, in another of this
//! host, or on another host, whose samples the receiving thread puts into a ring first. So reading and waiting know one thing only.

mod readiness;
mod stream;
mod typed;
mod wait_set;
mod waiting;

pub use stream::Samples;
pub use typed::{InPlace, TypedSample, TypedSubscriber, TypedSubscriberBuilder};
pub use wait_set::{Ready, WaitSet, Waker};

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use noctule_discovery::{Durability, Endpoint, EndpointId, EndpointKind, NodeId, Qos, Reliability};
use noctule_formats::{Format, FormatError};
use noctule_prrt::ReceivedCounters;
use noctule_shm_ring::{ReadError, Sample as RingSample};
use noctule_time_sync::Local;
use noctule_timebase::{Instant, Span};

use crate::age_histogram::AgeHistogram;
use crate::deadline::{DeadlineMissed, loss_ppm, span};
use crate::error::{NodeError, ReceiveError, TakeError};
use crate::node::{Node, Shared};
use crate::notice::Notice;
use crate::sample::{Route, Sample, SampleInfo, unpack_widths};
use crate::shared_topic::{History, Read, Source, Sources, SubscribedTopic};
use crate::statistics::{Recorder, SubscriberCounters, SubscriberStatistics};
use crate::topic_formats::ANY_FORMAT;
use readiness::Readiness;

/// A sample younger than this is taken for one of the history without a look at what the publisher wrote since.
const YOUNG: Span = Span::from_ns(500);

/// How a subscriber waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wait {
    /// Polls without pause: fastest, and burns a core.
    Spin,
    /// Sleeps in the kernel.
    #[default]
    Block,
    /// Polls for 50 µs, then sleeps.
    Hybrid,
}

/// Receives the samples of one topic from all its publishers.
#[derive(Debug)]
pub struct Subscriber {
    shared: Arc<Shared>,
    topic: Arc<SubscribedTopic>,
    sources: Sources,
    version: u32,
    wait: Wait,
    lifespan: Option<Span>,
    deadline: Option<Span>,
    /// Samples of each publisher that may wait to be taken, if fewer than the publisher's history.
    keep_last: u32,
    recorder: Recorder,
    /// For datagrams, if this subscriber reads the socket.
    datagram: Vec<u8>,
    /// For event loops.
    readiness: Option<Readiness>,
}

/// Settings of a subscriber, in the words of DDS and ROS 2.
#[derive(Debug)]
#[must_use = "call open"]
pub struct SubscriberBuilder {
    shared: Arc<Shared>,
    endpoint: Endpoint,
    left_out: u32,
    wait: Wait,
    pins: u32,
    history: History,
    ignores_local: bool,
}

impl Node {
    /// Settings for a subscriber to plain bytes of any type.
    pub fn subscriber(&self, topic: &str) -> SubscriberBuilder {
        SubscriberBuilder::new(self.shared(), topic)
    }
}

impl SubscriberBuilder {
    fn new(shared: Arc<Shared>, topic: &str) -> SubscriberBuilder {
        let endpoint = Endpoint {
            id: EndpointId(0),
            kind: EndpointKind::Reader,
            topic: topic.to_owned(),
            type_name: String::new(),
            type_hash: 0,
            formats: ANY_FORMAT,
            payload_bytes_max: u32::MAX,
            qos: Qos::default(),
            relayed: false,
        };
        SubscriberBuilder {
            shared,
            endpoint,
            left_out: 0,
            wait: Wait::Block,
            pins: 1,
            history: History::AsPublished,
            ignores_local: false,
        }
    }

    /// Name and layout hash of the type that is expected. Default: any.
    pub fn type_name(mut self, name: &str, hash: u64) -> Self {
        (self.endpoint.type_name, self.endpoint.type_hash) = (name.to_owned(), hash);
        self
    }

    /// The formats that are understood, besides which a publisher may use none. Default: any.
    pub fn formats(mut self, formats: &[Format]) -> Self {
        self.endpoint.formats = formats.iter().fold(0, |bits, format| bits | format.bit());
        self
    }

    /// All of QoS at once.
    pub fn qos(mut self, qos: Qos) -> Self {
        self.endpoint.qos = qos;
        self
    }

    /// RELIABILITY that is requested. Default best effort, which every publisher offers.
    pub fn reliability(mut self, reliability: Reliability) -> Self {
        self.endpoint.qos.reliability = reliability;
        self
    }

    /// HISTORY keep last: how many samples of each publisher this subscriber may lag behind; older ones are passed over and
    /// count as missed. At least 1. Default: the publisher's own history, be it keep last or keep all; its depth is also the most for a
    /// publisher of this host. Of one of another host as many are kept as the first subscriber of this node requested.
    pub fn keep_last(mut self, depth: u32) -> Self {
        let depth = depth.max(1);
        (self.endpoint.qos.depth, self.endpoint.qos.keep_all) = (depth, false);
        self.history = History::KeepLast(depth);
        self
    }

    /// HISTORY keep all: of each publisher of another host up to `samples` wait here, 1 to 65,535; then its further samples are not
    /// acknowledged until this subscriber has read. Nothing that was acknowledged is lost, other topics go on, and a
    /// publisher that keeps all waits ([`PublisherBuilder::keep_all`](crate::PublisherBuilder::keep_all)); of one that keeps the
    /// last older samples give way there. If [`Reliable`](Reliability::Reliable): otherwise no publisher waits for it. Of a publisher of this
    /// host its own history counts.
    pub fn keep_all(mut self, samples: u32) -> Self {
        let samples = samples.max(1);
        (self.endpoint.qos.depth, self.endpoint.qos.keep_all) = (samples, true);
        self.history = History::KeepAll(samples);
        self
    }

    /// Samples of publishers of the same node are not received, as by `ignore_local_publications` of ROS 2. Default no.
    pub fn ignore_local(mut self, ignores: bool) -> Self {
        self.ignores_local = ignores;
        self
    }

    /// DURABILITY transient local: the publisher's history first.
    pub fn transient_local(mut self) -> Self {
        self.endpoint.qos.durability = Durability::TransientLocal;
        self
    }

    /// DEADLINE that is requested: a sample at least this often.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.endpoint.qos.deadline = Some(span(deadline));
        self
    }

    /// LIFESPAN: older samples are not taken, nor those older than their publisher's lifespan.
    pub fn lifespan(mut self, lifespan: Duration) -> Self {
        self.endpoint.qos.lifespan = Some(span(lifespan));
        self
    }

    /// Of [`DeadlineBound`](Reliability::DeadlineBound): the share of samples that may miss the deadline, 0.000001 to 1. A publisher
    /// that tolerates more does not match. Default 0.0001.
    pub fn tolerable_loss(mut self, share: f64) -> Self {
        self.endpoint.qos.loss_ppm = loss_ppm(share);
        self
    }

    /// How to wait. Default block.
    pub fn wait(mut self, wait: Wait) -> Self {
        self.wait = wait;
        self
    }

    /// Samples of one publisher that may be held at once, 1 to 7. Default 1.
    pub fn borrows(mut self, samples: u32) -> Self {
        self.pins = samples.clamp(1, 7);
        self
    }

    /// Opens the topic and tells the others. Publishers are found from now on.
    ///
    /// # Errors
    /// A name that cannot travel, or no room for another endpoint.
    pub fn open(self) -> Result<Subscriber, NodeError> {
        let Qos { lifespan, deadline, .. } = self.endpoint.qos;
        let held = (self.pins, self.history);
        let mut topic = SubscribedTopic::new(self.endpoint, self.left_out, held);
        topic.ignores_local = self.ignores_local;
        let topic = self.shared.add_subscriber(topic)?;
        Ok(Subscriber {
            shared: self.shared,
            topic,
            sources: Sources::default(),
            version: 0,
            wait: self.wait,
            lifespan,
            deadline,
            keep_last: match self.history {
                History::KeepLast(depth) => depth,
                History::AsPublished | History::KeepAll(_) => u32::MAX,
            },
            recorder: Recorder::default(),
            datagram: Vec::new(),
            readiness: None,
        })
    }
}

/// A sample of which `T` is the bytes, if there is one.
type Taken<T> = Result<Option<(SampleInfo, T)>, TakeError>;

impl Subscriber {
    /// The next sample of any publisher, in place, if there is one.
    ///
    /// # Errors
    /// All samples that this subscriber may hold at once are held; or a publisher is broken, and its sample is passed over.
    pub fn take(&mut self) -> Result<Option<Sample>, TakeError> {
        Ok(self.look(Source::take)?.map(|(info, bytes)| Sample { info, bytes }))
    }

    /// Copies the next sample of any publisher to the start of `buffer`, if there is one.
    ///
    /// # Errors
    /// The buffer is too short (the sample stays), or a publisher is broken.
    #[inline]
    pub fn take_into(&mut self, buffer: &mut [u8]) -> Result<Option<SampleInfo>, TakeError> {
        self.look(|source| source.reader.take_next(buffer).map(|found| found.map(|sample| (sample, ()))))
            .map(|found| found.map(|(info, ())| info))
    }

    /// The newest sample of any publisher, in place, if there is one that was not taken: what came before it is passed over and
    /// counts as missed. However seldom it is called, what it gives is what was published last and has arrived.
    ///
    /// # Errors
    /// As [`take`](Subscriber::take).
    pub fn take_latest(&mut self) -> Result<Option<Sample>, TakeError> {
        if self.sources.list.iter().any(Source::is_on_socket) {
            self.shared.receive_all(&mut self.datagram);
        }
        let mut latest: Option<Sample> = None;
        // Once for each publisher: of several, the one whose sample was true last.
        for _ in 0..self.sources.list.len().max(1) {
            let Some((info, bytes)) = self.look(Source::take_latest)? else { break };
            if latest.as_ref().is_none_or(|known| known.info.source_time <= info.source_time) {
                latest = Some(Sample { info, bytes });
            }
        }
        Ok(latest)
    }

    /// Like [`take`](Subscriber::take), but waits up to `timeout` for a sample; `None` waits for ever.
    ///
    /// # Errors
    /// As [`take`](Subscriber::take).
    pub fn receive(&mut self, timeout: Option<Duration>) -> Result<Option<Sample>, TakeError> {
        let mut end = None;
        loop {
            if let Some(sample) = self.take()? {
                return Ok(Some(sample));
            }
            if !self.wait_until(timeout, &mut end) {
                return Ok(None);
            }
        }
    }

    /// Publishers matched now.
    pub fn publishers(&mut self) -> usize {
        self.take_changes();
        self.sources.publishers()
    }

    /// Counts how often publishers came or went, as far as was noticed by taking samples.
    pub(crate) fn version(&self) -> u32 {
        self.version
    }

    /// The publishers matched, each once.
    pub(crate) fn writers(&self) -> Vec<(NodeId, EndpointId)> {
        self.sources.writers()
    }

    /// Reports something about the system, as the node's own notices are.
    pub(crate) fn note(&self, notice: Notice) {
        self.shared.note(notice);
    }

    /// How often the DEADLINE requested was missed: nothing came in time, from any publisher.
    pub fn deadline_missed(&self) -> DeadlineMissed {
        self.shared.deadline_missed(self.topic.id)
    }

    /// Its node and its number there.
    pub fn endpoint(&self) -> (NodeId, EndpointId) {
        (self.shared.id(), self.topic.endpoint.id)
    }

    /// The topic's name.
    pub fn topic(&self) -> &str {
        &self.topic.endpoint.topic
    }

    /// Counters of samples so far.
    pub fn counters(&self) -> SubscriberCounters {
        self.recorder.counters.and_missed(self.sources.missed_unsaid())
    }

    /// Statistics of the topic so far. Looks through all of [`ages`](Subscriber::ages), some microseconds.
    pub fn statistics(&self) -> SubscriberStatistics {
        let deadline_missed = self.deadline.map_or(0, |_| self.deadline_missed().total);
        SubscriberStatistics { counters: self.counters(), deadline_missed, ..self.recorder.statistics() }
    }

    /// How often which age. Takes no memory before there is a publisher.
    pub fn ages(&self) -> &AgeHistogram {
        &self.recorder.ages
    }

    /// Counters of this topic's samples from each node of another host that writes it
    /// [`DeadlineBound`](Reliability::DeadlineBound): on time, late, repaired, missed.
    pub fn deadline_counters(&self) -> Vec<(NodeId, ReceivedCounters)> {
        self.shared.received(self.topic.endpoint.id)
    }

    /// Looks at the sources in turn.
    #[inline]
    fn look<T>(&mut self, mut read: impl FnMut(&mut Source) -> Read<T>) -> Taken<T> {
        if self.shared.is_in_child() {
            return Err(TakeError { topic: self.topic().to_owned(), cause: ReadError::Forked });
        }
        if self.topic.version.load(Ordering::Acquire) != self.version {
            self.take_changes();
        }
        let mut passed_over = None;
        loop {
            match self.sources.next(&mut read) {
                Ok(Some((at, sample, rest))) => {
                    let Source { node, writer, route, format, relay, depth, lifespan, .. } =
                        self.sources.list[at];
                    if self.sources.list[at].is_awaited() {
                        self.shared.read_on(node, writer);
                    }
                    let depth = depth.min(self.keep_last);
                    let info = self.describe(&sample, (node, writer), route);
                    // A young one has none behind it; to ask the writer would cost more than to read. Once a call: what a quick writer
                    // publishes while this reads does not make it read again, for ever.
                    if passed_over != Some(at)
                        && info.age().is_none_or(|age| age.span > YOUNG)
                        && self.sources.list[at].pass_over(&sample, depth)
                    {
                        passed_over = Some(at);
                        continue;
                    }
                    self.recorder.counters.relayed += u64::from(relay.is_some());
                    let missed = self.sources.list[at].missed_since_given_out(info.missed);
                    let info = SampleInfo { format, missed, ..info };
                    if self.is_expired(&info, lifespan) {
                        self.recorder.counters.expired += 1;
                        self.sources.list[at].missed_before = missed;
                        continue;
                    }
                    self.recorder.record(&info, self.deadline);
                    return Ok(Some((info, rest)));
                }
                Ok(None) if self.sources.retire() => self.settle(),
                Ok(None) => {
                    self.report_progress();
                    if self.readiness.is_none() || !self.arm() {
                        return Ok(None);
                    }
                }
                Err(cause) => return Err(TakeError { topic: self.topic().to_owned(), cause }),
            }
        }
    }

    #[inline]
    fn describe(
        &self,
        sample: &RingSample,
        (publisher, endpoint): (NodeId, EndpointId),
        route: Route,
    ) -> SampleInfo {
        let (bound, sigma) = match sample.origin.user {
            0 => (Some(Span::ZERO), Some(Span::ZERO)),
            widths => unpack_widths(widths),
        };
        let source_time = Instant::<Local>::from_ns(sample.origin.source_time_ns);
        SampleInfo {
            sequence: sample.number,
            missed: sample.missed,
            source_time: (source_time != Instant::MIN).then_some(source_time),
            receive_time: self.shared.clock.now(),
            bound,
            sigma,
            length_bytes: sample.length_bytes,
            publisher,
            endpoint,
            route,
            format: None,
        }
    }

    /// Counts a sample that is no value, and says whose it was.
    fn undecodable(&mut self, info: &SampleInfo, cause: FormatError) -> ReceiveError {
        self.recorder.counters.undecodable += 1;
        ReceiveError::Format { topic: self.topic().to_owned(), publisher: info.publisher, cause }
    }

    /// Has publishers that wait for this reader go on, also where what it read was there before and is not delivered twice.
    #[inline]
    fn report_progress(&self) {
        let awaited = self.sources.list.iter().filter(|source| source.is_awaited());
        awaited.for_each(|source| self.shared.read_on(source.node, source.writer));
    }

    /// By the shorter of this subscriber's lifespan and its publisher's.
    #[inline]
    fn is_expired(&self, info: &SampleInfo, offered: Option<Span>) -> bool {
        let lifespan = self.lifespan.into_iter().chain(offered).min();
        lifespan.is_some_and(|lifespan| info.age().is_some_and(|age| age.span > lifespan))
    }

    #[cold]
    fn take_changes(&mut self) {
        self.version = self.topic.version.load(Ordering::Acquire);
        let changes =
            self.topic.changes.lock().map(|mut list| std::mem::take(&mut *list)).unwrap_or_default();
        for change in changes {
            // Now, and not on the way of the first sample.
            self.recorder.ages.allocate();
            self.sources.apply(change);
        }
        self.settle();
        self.topic.seen.store(self.version, Ordering::Release);
    }

    /// After any change of the sources: has the alarm where it will sleep.
    #[cold]
    fn settle(&mut self) {
        if let Ok(mut alarm) = self.topic.alarm.lock() {
            *alarm = match &self.sources.list[..] {
                [only] => Some(only.reader.alarm()),
                _ => None,
            };
        }
    }
}

impl AsMut<Subscriber> for Subscriber {
    fn as_mut(&mut self) -> &mut Subscriber {
        self
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        if self.shared.is_in_child() {
            // What the rings' control pages hold is the parent's.
            std::mem::forget(std::mem::take(&mut self.sources));
            std::mem::forget(self.readiness.take());
        }
        self.shared.remove_subscriber(self.topic.id);
    }
}
