//! A writer of another host as this node receives it: a ring for those that read it here.
//!
//! A reader that keeps all is not overrun: the link is granted as many samples as there is room for, and grants more when the reader has
//! read on. That reader is in this process, because readers that request reliability are not relayed, and reports its progress itself: see [`Progress`].

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use noctule_discovery::{Endpoint, EndpointId};
use noctule_prrt::{Delivered, Link, Origin as LinkOrigin, StreamId};
use noctule_shm_ring::{Origin, PINS_PER_READER, ReaderId, RingConfig, Writer};
use noctule_time_sync::{Estimate, Local, Remote as RemoteClock};
use noctule_timebase::{Instant, Span};

use crate::clock::Raw;
use crate::sample::{pack_widths, unpack_widths};
use crate::shared_topic::{Granted, GrantedHere, Progress, RingError, RingOwner, SubscribedTopic};

/// The clock that source times are given in, as far as it is known.
#[derive(Clone, Copy, Debug)]
pub(super) enum SourceClock {
    /// It is our own.
    Ours,
    /// Another's: so far from ours, if that is known yet.
    Others(Option<Estimate>),
}

/// A writer of another host that we read.
#[derive(Debug)]
pub(super) struct Inbound {
    writer: Writer,
    offer: RingOwner,
    /// Those of our subscribers that read it.
    readers: BTreeMap<EndpointId, OwnReader>,
    /// In the ring's reader table, readers that have gone: as long as something of theirs may still be borrowed.
    gone: Vec<ReaderId>,
    /// The deadline's watch asks when the last came.
    has_deadline: bool,
    /// They come by a group.
    pub(super) is_group: bool,
    /// A reader keeps all, so the link is granted what there is room for.
    pub(super) is_kept: bool,
    /// A reader that keeps all will report when there is more room than the link knows: until then nothing can be granted.
    is_awaited: bool,
    /// Samples that the ring holds for readers.
    pub(super) depth: u32,
    /// Newest sequence that was put into the ring.
    pub(super) sequence: Option<u64>,
    /// The same for the subscribers, so that they know at the end what was still missing.
    pub(super) highest: Arc<AtomicU64>,
    /// Its number there, or that of one that came after it and is older ([`Delivered::place`]); 0 before the first.
    place: u64,
    /// Length of the sample that is being written into the ring's open slot.
    begun_bytes: usize,
}

/// One of our subscribers, as a reader of the ring.
#[derive(Debug)]
struct OwnReader {
    id: ReaderId,
    /// If it keeps all: samples that may wait for it, and how it says that it has read on.
    keeps: Option<(u32, Progress)>,
}

impl Inbound {
    /// With as much room as its first reader asks for; as much as the writer keeps if that cannot be had. A writer of this host is read by
    /// this process alone, so its ring takes no descriptor.
    ///
    /// # Errors
    /// No memory.
    pub(super) fn new(
        (writer, is_here): (&Endpoint, bool),
        most_bytes: u32,
        asked: Option<u32>,
    ) -> Result<Inbound, RingError> {
        let kept = writer.qos.depth;
        let asked = asked.filter(|asked| *asked > kept);
        let with_depth = |depth| Inbound::with_depth((writer, is_here), most_bytes, depth);
        asked.and_then(|depth| with_depth(depth).ok()).map_or_else(|| with_depth(kept), Ok)
    }

    fn with_depth(
        (writer, is_here): (&Endpoint, bool),
        most_bytes: u32,
        depth: u32,
    ) -> Result<Inbound, RingError> {
        let config = RingConfig {
            history: depth,
            pins: 2 * PINS_PER_READER,
            payload_bytes_max: most_bytes as usize,
            type_hash: writer.type_hash,
            shift_bytes: 0,
        };
        let has_deadline = writer.qos.deadline.is_some();
        let offer = RingOwner::new(config)?;
        let ring = if is_here { offer.make_unnamed() } else { offer.make_for_here() };
        let ring = ring?.ok_or(RingError::MadeBefore)?;
        Ok(Inbound {
            writer: ring,
            offer,
            readers: BTreeMap::new(),
            gone: Vec::new(),
            has_deadline,
            is_group: writer.qos.multicast,
            is_kept: false,
            is_awaited: false,
            depth,
            sequence: None,
            highest: Arc::default(),
            place: 0,
            begun_bytes: 0,
        })
    }

    /// Lets a subscriber of this node read the ring. If it keeps all it is to say how far it has read.
    ///
    /// # Errors
    /// No room for another reader.
    pub(super) fn attach(
        &mut self,
        topic: &SubscribedTopic,
        writer: &Endpoint,
    ) -> Result<(GrantedHere, Option<Progress>), RingError> {
        if let Some(reader_table) = self.offer.reader_table() {
            self.gone.retain(|id| !reader_table.release(*id));
        }
        let granted = self.offer.attach_here(topic.pins, false)?;
        let keeps = topic.keeps_all_of(writer).map(|depth| (depth.min(self.depth), Progress::default()));
        let progress = keeps.as_ref().map(|(_, progress)| progress.clone());
        self.is_kept |= keeps.is_some();
        self.readers.insert(topic.id, OwnReader { id: granted.reader(), keeps });
        Ok((granted, progress))
    }

    /// A subscriber of this node reads no more. True if it was the last.
    pub(super) fn detach(&mut self, reader: EndpointId) -> bool {
        self.gone.extend(self.readers.remove(&reader).map(|reader| reader.id));
        self.is_kept = self.readers.values().any(|reader| reader.keeps.is_some());
        self.readers.is_empty()
    }

    /// Lets another node of this host read the ring.
    ///
    /// # Errors
    /// No room for another reader.
    pub(super) fn hand_on(&self, pins: u32) -> Result<Granted, RingError> {
        self.offer.attach(pins, false)
    }

    /// Grants the link as many samples as there is room for: any number if no reader keeps all.
    pub(super) fn grant(&mut self, writer: EndpointId, link: &mut Link) {
        loop {
            let again = link.grant(StreamId(writer.0), self.room());
            if !self.watch(again) {
                return;
            }
        }
    }

    /// Whether the link is to be granted something after a sample: that makes no room, so not where a reader will report when there is some.
    pub(super) fn is_to_grant(&self) -> bool {
        self.is_kept && !self.is_awaited
    }

    /// Samples that there is room for, and at most, so that no reader that keeps all loses one.
    fn room(&mut self) -> Option<(u32, u32)> {
        let Inbound { writer, readers, .. } = self;
        let rooms = readers.values().filter_map(|reader| {
            let (depth, _) = reader.keeps.as_ref()?;
            let unread = u32::try_from(writer.unread(reader.id)).unwrap_or(u32::MAX);
            Some((depth.saturating_sub(unread), *depth))
        });
        rooms.reduce(|(room, most), (other, other_most)| (room.min(other), most.min(other_most)))
    }

    /// Has each reader say so when there is room for so many. True if one has read so far meanwhile.
    fn watch(&mut self, again: u32) -> bool {
        let Inbound { writer, readers, is_awaited, .. } = self;
        let mut has_room = false;
        *is_awaited = false;
        for OwnReader { id, keeps } in readers.values() {
            let Some((depth, progress)) = keeps else { continue };
            let left = depth.checked_sub(again).map(u64::from);
            let goal = match left {
                Some(left) => writer.position_with(left, *id),
                // When that many more have come and were read.
                None => Some(writer.position() + u64::from(again - depth)),
            };
            let Some(goal) = goal else {
                progress.rest();
                continue;
            };
            progress.watch(goal);
            *is_awaited = true;
            has_room |= left.is_some_and(|left| writer.unread(*id) <= left);
        }
        has_room
    }

    /// A long sample begins to arrive, the next that the link delivers. Whether it is to be [written](Inbound::write) into the ring: not of a writer whose samples come from a
    /// group, too, which would take its place.
    pub(super) fn begin(&mut self, bytes: usize) -> bool {
        self.begun_bytes = bytes;
        !self.is_group && self.writer.loan(bytes).is_ok()
    }

    /// Writes a part of it; false if it lies not inside.
    pub(super) fn write(&mut self, start: usize, fragment: &[u8]) -> bool {
        let is_inside = start.checked_add(fragment.len()).is_some_and(|end| end <= self.begun_bytes);
        let Ok(mut loan) = self.writer.loan(self.begun_bytes) else { return false };
        if is_inside {
            loan.write_at(start, fragment);
        }
        is_inside
    }

    /// Puts a sample that has arrived into the ring; if it `is_written`, its bytes are there.
    pub(super) fn take(
        &mut self,
        sample: &Delivered<'_>,
        is_written: bool,
        clock: SourceClock,
        now: Instant<Raw>,
    ) {
        if sample.place <= self.place {
            return;
        }
        // With the writer's numbers a reader can change over from one ring to another, and knows what neither held.
        self.writer.skip_numbers(sample.place - self.place - 1);
        self.place = sample.place;
        self.sequence = self.sequence.max(Some(sample.sequence));
        self.highest.fetch_max(sample.sequence, Ordering::Relaxed);
        if self.has_deadline {
            self.writer.stamp(now.ns());
        }
        let origin = here(sample.origin, clock);
        let wake = match is_written {
            true => self.writer.loan(self.begun_bytes).map(|loan| loan.commit(origin)),
            false => self.writer.copy_in(sample.payload, origin),
        };
        // Longer ones were not expected, so the link has not let them through.
        if let Ok(wake) = wake {
            self.writer.wake(wake);
        }
    }
}

/// When a sample of the other node was true, by the clock of this host. What its writer does not know of the time and what
/// this host does not know of the writer's clock add up: bounds as such, errors that have nothing to do with each other by their squares.
fn here(origin: LinkOrigin, clock: SourceClock) -> Origin {
    let known = match clock {
        SourceClock::Ours => {
            return Origin { source_time_ns: origin.source_time_ns, user: origin.source_error };
        }
        SourceClock::Others(Some(known)) => known,
        SourceClock::Others(None) => {
            return Origin { source_time_ns: Instant::<Local>::MIN.ns(), user: pack_widths(None, None) };
        }
    };
    let remote = Instant::<RemoteClock>::from_ns(origin.source_time_ns);
    let source_time = remote.translate::<Local>(Span::ZERO - known.offset);
    let (bound, sigma) = unpack_widths(origin.source_error);
    let bound = known.bound.zip(bound).map(|(clock, source)| clock + source);
    let sigma = known
        .sigma
        .zip(sigma)
        .map(|(clock, source)| Span::from_ns((clock.ns() as f64).hypot(source.ns() as f64).ceil() as i64));
    Origin { source_time_ns: source_time.ns(), user: pack_widths(bound, sigma) }
}
