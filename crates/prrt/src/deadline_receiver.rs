//! The receiver of samples with a deadline: FEC decoding, reassembly, delivery once and in time, detection of loss.
//!
//! A sample's number is remembered until a later one's deadline has passed: until then it may come, afterwards it
//! is missed. The time between samples is learned from their source times, so that a silence is reported to
//! the sender as soon as it is one, not when the next datagram comes.

use std::collections::BTreeMap;

use noctule_timebase::{Instant, Span};

use crate::block_decoder::BlockDecoders;
use crate::counters::LinkCounters;
use crate::delivery::Sink;
use crate::reassembly::{Reassembly, Room};
use crate::sample_interval::SampleInterval;
use crate::stream::{Arrival, Bound, Delivered, Local, Order, Origin, StreamId};
use crate::trace::{self, Event, Record};
use crate::wire::{Fragment, Parity, Service};

/// Samples of one stream remembered at once, delivered or held.
const SEEN_LIMIT: usize = 4_096;

/// Arguments of every call: room for samples that are held, and outputs.
type World<'a, 'b> = (&'a mut Room, &'a mut Sink<'b>);

/// Counters of a stream with a deadline at its receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceivedCounters {
    /// Samples delivered, all of them in time.
    pub on_time: u64,
    /// Datagrams dropped because their deadline had passed.
    pub late: u64,
    /// Samples that did not come in time.
    pub missed: u64,
    /// Samples delivered thanks to a datagram retransmitted.
    pub repaired_by_repeat: u64,
    /// Fragments recovered from parity.
    pub repaired_by_parity: u64,
}

/// Expected streams with deadlines.
#[derive(Debug, Default)]
pub(crate) struct DeadlineReceiver {
    readers: BTreeMap<StreamId, Reader>,
}

#[derive(Debug)]
struct Reader {
    writer: StreamId,
    payload_bytes_max: u32,
    bound: Bound,
    /// Samples below this number are settled. Unknown before the first datagram.
    floor: Option<u64>,
    seen: BTreeMap<u64, Seen>,
    /// Number and source time of the sample delivered last.
    last: Option<(u64, i64)>,
    /// Not reported yet.
    missed: u64,
    /// Of the sample delivered next, if none is missed before it: the first floor, and one more for each delivered or missed.
    place: Option<u64>,
    counters: ReceivedCounters,
    repairs: BlockDecoders,
    sample_interval: SampleInterval,
}

#[derive(Debug)]
struct Seen {
    deadline_at: Instant<Local>,
    sample: Sample,
}

#[derive(Debug)]
enum Sample {
    Delivered,
    /// In part, or whole and waiting for its turn.
    Reassembly(Reassembly),
}

impl DeadlineReceiver {
    pub(crate) fn expect(&mut self, writer: StreamId, payload_bytes_max: u32, bound: Bound) {
        let reader = self.readers.entry(writer).or_insert_with(|| Reader {
            writer,
            payload_bytes_max,
            bound,
            floor: None,
            seen: BTreeMap::new(),
            last: None,
            missed: 0,
            place: None,
            counters: ReceivedCounters::default(),
            repairs: BlockDecoders::default(),
            sample_interval: SampleInterval::default(),
        });
        (reader.payload_bytes_max, reader.bound) = (payload_bytes_max, bound);
    }

    pub(crate) fn forget(&mut self, writer: StreamId, room: &mut Room) {
        if let Some(mut reader) = self.readers.remove(&writer) {
            reader.repairs.clear(room);
            for seen in reader.seen.values() {
                seen.leave(room);
            }
        }
    }

    /// Takes a fragment in. Gives the deadline of its stream, if it is expected, and whether the fragment came in time.
    pub(crate) fn handle_fragment(
        &mut self,
        fragment: &Fragment<'_>,
        arrival: Arrival,
        (room, sink): World<'_, '_>,
    ) -> Option<(Span, bool)> {
        let Some(reader) = self.readers.get_mut(&fragment.writer) else {
            sink.counters.unexpected += 1;
            return None;
        };
        if fragment.total_bytes > reader.payload_bytes_max {
            sink.counters.too_long += 1;
            return Some((reader.bound.deadline, true));
        }
        reader.sample_interval.observe(fragment.sequence, fragment.origin.source_time_ns, arrival.now);
        let expires_at = arrival.now + reader.bound.deadline;
        let recovered = reader.repairs.add_data(fragment, expires_at, room);
        let late = reader.counters.late;
        reader.take(fragment, arrival, (room, sink));
        let is_in_time = late == reader.counters.late;
        reader.take_recovered(recovered, arrival, (room, sink));
        Some((reader.bound.deadline, is_in_time))
    }

    /// Processes a fragment that came another way than by the link, so that neither its blocks nor its rhythm matter.
    pub(crate) fn handle_group_fragment(
        &mut self,
        fragment: &Fragment<'_>,
        is_repaired: bool,
        arrival: Arrival,
        (room, sink): World<'_, '_>,
    ) {
        let Some(reader) = self.readers.get_mut(&fragment.writer) else { return };
        if fragment.total_bytes > reader.payload_bytes_max {
            sink.counters.too_long += 1;
            return;
        }
        sink.counters.repaired_by_parity += u64::from(is_repaired);
        reader.counters.repaired_by_parity += u64::from(is_repaired);
        reader.take(fragment, arrival, (room, sink));
    }

    /// Takes parity in. Gives the deadline of its stream, if it is expected.
    pub(crate) fn handle_parity(
        &mut self,
        parity: &Parity<'_>,
        arrival: Arrival,
        (room, sink): World<'_, '_>,
    ) -> Option<Span> {
        let Some(reader) = self.readers.get_mut(&parity.writer) else {
            sink.counters.unexpected += 1;
            return None;
        };
        let expires_at = arrival.now + reader.bound.deadline;
        let recovered = reader.repairs.add_parity(parity, expires_at, room);
        reader.take_recovered(recovered, arrival, (room, sink));
        Some(reader.bound.deadline)
    }

    /// Delivers what need not wait any longer. Whether a datagram that was expected has not come.
    pub(crate) fn handle_timeout(&mut self, now: Instant<Local>, (room, sink): World<'_, '_>) -> bool {
        let mut is_silent = false;
        for reader in self.readers.values_mut() {
            reader.settle(now, (room, sink));
            is_silent |= reader.sample_interval.is_overdue(now, reader.bound.deadline);
        }
        is_silent
    }

    pub(crate) fn counters(&self, writer: StreamId) -> Option<ReceivedCounters> {
        self.readers.get(&writer).map(|reader| reader.counters)
    }

    pub(crate) fn timeout(&self) -> Option<Instant<Local>> {
        self.readers.values().filter_map(Reader::timeout).min()
    }
}

impl Reader {
    fn take_recovered(&mut self, symbols: Vec<Vec<u8>>, arrival: Arrival, (room, sink): World<'_, '_>) {
        for symbol in symbols {
            let place =
                crate::wire::Place { packet: 0, block: 0, symbol: 0, symbols: 1, attempt: 0, ack_soon: true };
            // Parity that was forged gives symbols that are none.
            match Fragment::decode_symbol(self.writer, place, &symbol) {
                Ok(fragment) if fragment.total_bytes <= self.payload_bytes_max => {
                    sink.counters.repaired_by_parity += 1;
                    self.counters.repaired_by_parity += 1;
                    let part = trace::sample(self.writer, fragment.sequence);
                    sink.counters.note(|| Event::Recovered { part });
                    self.take(&fragment, arrival, (room, sink));
                }
                _ => sink.counters.inconsistent += 1,
            }
        }
    }

    fn take(&mut self, fragment: &Fragment<'_>, arrival: Arrival, (room, sink): World<'_, '_>) {
        let (now, sequence) = (arrival.now, fragment.sequence);
        let floor = *self.floor.get_or_insert(sequence);
        self.place.get_or_insert(floor);
        let age = arrival.peer_ns.map_or(0, |peer| peer.saturating_sub(fragment.origin.source_time_ns));
        let left = self.bound.deadline - Span::from_ns(age);
        if left < Span::ZERO {
            sink.counters.after_deadline += 1;
            self.counters.late += 1;
            return;
        }
        if sequence < floor {
            sink.counters.duplicates += 1;
            return;
        }
        let deadline_at = now + left;
        let is_known = self.seen.contains_key(&sequence);
        if !is_known && self.seen.len() >= SEEN_LIMIT {
            self.give_up_first(now, (room, sink));
        }
        let immediately = self.bound.order == Order::Asap && fragment.count == 1;
        if !is_known && immediately {
            self.count_repair(fragment, sink.counters);
            self.seen.insert(sequence, Seen { deadline_at, sample: Sample::Delivered });
            self.deliver(sequence, fragment.origin, fragment.payload, sink);
        } else if is_known || room.fits(fragment) {
            self.hold(fragment, deadline_at, (room, sink));
        } else {
            sink.counters.held_full += 1;
        }
        self.settle(now, (room, sink));
    }

    fn hold(&mut self, fragment: &Fragment<'_>, deadline_at: Instant<Local>, (room, sink): World<'_, '_>) {
        let seen = self
            .seen
            .entry(fragment.sequence)
            .or_insert_with(|| Seen { deadline_at, sample: Sample::Reassembly(room.enter(fragment, false)) });
        let Sample::Reassembly(held) = &mut seen.sample else {
            sink.counters.duplicates += 1;
            return;
        };
        let was_whole = held.is_whole();
        held.add(fragment, room, sink);
        if !held.is_whole() || was_whole {
            return;
        }
        if self.bound.order == Order::Asap
            && let Sample::Reassembly(held) = std::mem::replace(&mut seen.sample, Sample::Delivered)
        {
            room.leave(&held);
            self.count_repair(fragment, sink.counters);
            self.deliver(held.sequence, held.origin, held.payload().unwrap_or_default(), sink);
            room.reuse(held);
        }
    }

    /// The datagram that made a sample whole was retransmitted.
    fn count_repair(&mut self, fragment: &Fragment<'_>, counters: &mut LinkCounters) {
        let repeated = matches!(fragment.service, Service::Bound(place) if place.attempt > 0);
        counters.repaired_by_repeat += u64::from(repeated);
        self.counters.repaired_by_repeat += u64::from(repeated);
    }

    /// Moves the floor over what has been delivered or can no longer come.
    fn settle(&mut self, now: Instant<Local>, (room, sink): World<'_, '_>) {
        while let (Some(floor), Some((&sequence, seen))) = (self.floor, self.seen.first_key_value()) {
            let is_next = sequence == floor;
            let is_over = seen.deadline_at <= now;
            let released_at = self.released_at(sequence, seen);
            match &seen.sample {
                Sample::Delivered if !is_next && !is_over => break,
                Sample::Reassembly(held) if !held.is_whole() && !is_over => break,
                Sample::Reassembly(held) if held.is_whole() && !is_next && now < released_at => break,
                _ => {}
            }
            self.pass(sequence, now, (room, sink));
        }
        self.repairs.expire(now, room);
    }

    /// Settles the first sample seen, and all before it.
    fn pass(&mut self, sequence: u64, now: Instant<Local>, (room, sink): World<'_, '_>) {
        let Some(seen) = self.seen.remove(&sequence) else { return };
        seen.leave(room);
        let between = sequence - self.floor.unwrap_or(sequence);
        self.miss(sequence - between, between, sink.counters);
        self.floor = Some(sequence + 1);
        match seen.sample {
            Sample::Delivered => {}
            // A thread that wakes late does not deliver late.
            Sample::Reassembly(held) if held.is_whole() && now <= seen.deadline_at => {
                self.deliver(sequence, held.origin, held.payload().unwrap_or_default(), sink);
                room.reuse(held);
            }
            Sample::Reassembly(held) => {
                sink.counters.incomplete += u64::from(!held.is_whole());
                self.miss(sequence, 1, sink.counters);
            }
        }
    }

    fn give_up_first(&mut self, now: Instant<Local>, world: World<'_, '_>) {
        if let Some((&sequence, _)) = self.seen.first_key_value() {
            self.pass(sequence, now, world);
        }
    }

    /// `samples` from `first` on do not come any more.
    fn miss(&mut self, first: u64, samples: u64, counters: &mut Record) {
        if samples > 0 {
            counters.note(|| Event::Missed { part: trace::sample(self.writer, first), samples });
        }
        self.missed = self.missed.saturating_add(samples);
        self.counters.missed = self.counters.missed.saturating_add(samples);
        counters.bound_missed = counters.bound_missed.saturating_add(samples);
    }

    /// When a whole sample need not wait for those before it any longer: at the deadline of the one just before,
    /// which lies as much earlier as their source times suggest.
    fn released_at(&self, sequence: u64, seen: &Seen) -> Instant<Local> {
        let (Some((last, last_source_ns)), Sample::Reassembly(held)) = (self.last, &seen.sample) else {
            return seen.deadline_at;
        };
        let samples = sequence.saturating_sub(last).clamp(1, 1 << 32) as i64;
        let between = held.origin.source_time_ns.saturating_sub(last_source_ns).max(0);
        seen.deadline_at - Span::from_ns(between / samples)
    }

    fn deliver(&mut self, sequence: u64, origin: Origin, payload: &[u8], sink: &mut Sink<'_>) {
        if self.last.is_none_or(|(last, _)| last < sequence) {
            self.last = Some((sequence, origin.source_time_ns));
        }
        let missed = std::mem::take(&mut self.missed);
        sink.counters.delivered += 1;
        sink.counters.note(|| Event::Delivered { part: trace::sample(self.writer, sequence) });
        self.counters.on_time += 1;
        let place = self.place.unwrap_or(sequence).saturating_add(missed);
        self.place = Some(place.saturating_add(1));
        sink.delivery.deliver(Delivered { writer: self.writer, sequence, place, origin, missed, payload });
    }

    /// Settlement time of the oldest held sample: after all before it, whose deadlines may be later, for the other clock may have stepped.
    fn timeout(&self) -> Option<Instant<Local>> {
        let mut before = Instant::MIN;
        let released = self.seen.iter().find_map(|(sequence, seen)| {
            let is_held = matches!(seen.sample, Sample::Reassembly(_));
            before = before.max(match &seen.sample {
                Sample::Reassembly(held) if held.is_whole() => self.released_at(*sequence, seen),
                _ => seen.deadline_at,
            });
            is_held.then_some(before)
        });
        released.into_iter().chain(self.sample_interval.expected_at()).min()
    }
}

impl Seen {
    fn leave(&self, room: &mut Room) {
        if let Sample::Reassembly(held) = &self.sample {
            room.leave(held);
        }
    }
}
