//! Samples that wait to be sent, and reliable ones until they have arrived.
//!
//! Samples with a deadline go first, and repairs among them ([`bound_sending`](crate::bound_sending)). Writers take turns, a datagram each, so that a camera does not hold up an inertial sensor. What was lost
//! goes before what is new. What was refused (its reader may not be there yet) rests before it is sent again,
//! so that it cannot fill the line.

use std::collections::{BTreeMap, VecDeque};

use noctule_timebase::{Instant, Span};

use crate::bound_sending::{BoundSending, SentCounters};
use crate::feasibility::Wish;
use crate::flight::{Carried, Fate, Flight};
use crate::fragment_set::FragmentSet;
use crate::link::{LinkCounters, SAMPLE_OVERHEAD_BYTES};
use crate::round_trip::RoundTrip;
use crate::stream::{Class, Local, Outgoing, StreamId};
use crate::wire::{Datagram, Feedback, Fragment, HEADER_BYTES_MAX, Load, Numbers, Service, piece_bytes};

/// What was refused is sent again after this.
const REST: Span = Span::from_ms(50);

/// What every datagram carries besides.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Aboard {
    pub(crate) session: u32,
    pub(crate) feedback: Option<Feedback>,
}

#[derive(Debug)]
pub(crate) struct Sending {
    piece_bytes_max: usize,
    queue_bytes_max: usize,
    queue_bytes: usize,
    streams: BTreeMap<StreamId, Stream>,
    /// Writers with fragments never sent yet, each once, in the order of their turns.
    turns: VecDeque<StreamId>,
    lost: VecDeque<Carried>,
    /// With the time when each has rested enough.
    resting: VecDeque<(Instant<Local>, Carried)>,
    bound: BoundSending,
    flight: Flight,
    /// Kept from one parity symbol to the next.
    parity: Vec<u8>,
}

/// The samples of one writer, oldest first, numbered by position without gaps.
#[derive(Debug, Default)]
struct Stream {
    reliable: bool,
    samples: VecDeque<Queued>,
    next_position: u64,
    /// The first fragment never sent yet: position of its sample, and its number.
    unsent: (u64, u16),
    has_turn: bool,
}

#[derive(Debug)]
struct Queued {
    sequence: u64,
    source_time_ns: i64,
    count: u16,
    /// Empty once every fragment has arrived.
    payload: Vec<u8>,
    arrived: FragmentSet,
}

impl Sending {
    /// `datagram_bytes_max` must leave room for a header and a byte.
    pub(crate) fn new(datagram_bytes_max: usize, queue_bytes_max: usize, flight: Flight) -> Sending {
        Sending {
            piece_bytes_max: datagram_bytes_max - HEADER_BYTES_MAX,
            queue_bytes_max,
            queue_bytes: 0,
            streams: BTreeMap::new(),
            turns: VecDeque::new(),
            lost: VecDeque::new(),
            resting: VecDeque::new(),
            bound: BoundSending::new(),
            flight,
            parity: Vec::new(),
        }
    }

    /// Queues a sample, in place of older ones of its writer where a limit says so.
    pub(crate) fn send(&mut self, sample: &Outgoing<'_>, now: Instant<Local>, counters: &mut LinkCounters) {
        if let Class::DeadlineBound(bound) = sample.class {
            let room = self.queue_bytes_max.saturating_sub(self.queue_bytes);
            self.bound.send(sample, bound, (self.piece_bytes_max, room), (now, counters));
            return;
        }
        let reliable = sample.class == Class::Reliable;
        let cost = sample.payload.len() + SAMPLE_OVERHEAD_BYTES;
        let pieces = sample.payload.len().div_ceil(self.piece_bytes_max).max(1);
        let stream = self.streams.entry(sample.writer).or_default();
        let replaceable = || stream.samples.iter().map(Queued::cost).sum::<usize>();
        let queue_bytes_max = self.queue_bytes_max.saturating_sub(self.bound.queue_bytes());
        let full = self.queue_bytes + cost > queue_bytes_max;
        let Ok(count) = u16::try_from(pieces) else {
            counters.refused_too_long += 1;
            return;
        };
        if full && self.queue_bytes + cost - replaceable() > queue_bytes_max {
            counters.refused_full += 1;
            return;
        }
        let kept = if stream.reliable == reliable { sample.depth.max(1) as usize - 1 } else { 0 };
        stream.reliable = reliable;
        while stream.samples.len() > kept || self.queue_bytes + cost > queue_bytes_max {
            self.queue_bytes -= stream.give_up_oldest(counters);
        }
        self.queue_bytes += cost;
        stream.samples.push_back(Queued {
            sequence: sample.sequence,
            source_time_ns: sample.source_time_ns,
            count,
            payload: sample.payload.to_vec(),
            arrived: FragmentSet::default(),
        });
        stream.next_position += 1;
        if !stream.has_turn {
            stream.has_turn = true;
            self.turns.push_back(sample.writer);
        }
    }

    /// Drops what is queued of a writer. Its numbering goes on, should it come back.
    pub(crate) fn stop(&mut self, writer: StreamId, counters: &mut LinkCounters) {
        self.bound.stop(writer);
        let Some(stream) = self.streams.get_mut(&writer) else { return };
        while !stream.samples.is_empty() {
            self.queue_bytes -= stream.give_up_oldest(counters);
        }
    }

    /// Whether anything of a writer is queued.
    pub(crate) fn holds(&self, writer: StreamId) -> bool {
        self.bound.holds(writer) || self.streams.get(&writer).is_some_and(|stream| !stream.samples.is_empty())
    }

    /// Gives when the newest datagram that it names had left, if that is news.
    pub(crate) fn handle_feedback(
        &mut self,
        feedback: &Feedback,
        now: Instant<Local>,
        counters: &mut LinkCounters,
    ) -> Option<Instant<Local>> {
        let Sending { flight, streams, queue_bytes, lost, resting, bound, .. } = self;
        let known = flight.handle_feedback(feedback, now, &mut |fate, packet, carried| {
            counters.lost_packets += u64::from(fate == Fate::Lost);
            match fate {
                _ if carried.bound => bound.settle(fate, packet, carried, now),
                Fate::Arrived => *queue_bytes -= arrived(streams, carried),
                Fate::Refused => resting.push_back((now + REST, carried)),
                Fate::Lost => lost.push_back(carried),
            }
        });
        counters.impossible_feedback += u64::from(known.is_none());
        known.flatten()
    }

    /// Gives up packets whose time-out has passed, wakes fragments that have rested.
    pub(crate) fn handle_timeout(&mut self, now: Instant<Local>, counters: &mut LinkCounters) {
        let Sending { flight, lost, .. } = self;
        let passed = flight.handle_timeout(now, &mut |_, _, carried| {
            counters.lost_packets += 1;
            lost.push_back(carried);
        });
        counters.timeouts += u64::from(passed);
        while self.resting.front().is_some_and(|(until, _)| *until <= now) {
            self.lost.extend(self.resting.pop_front().map(|(_, carried)| carried));
        }
    }

    /// Appends the next datagram to `out`, if one may be sent.
    pub(crate) fn poll_transmit(
        &mut self,
        now: Instant<Local>,
        aboard: Aboard,
        out: &mut Vec<u8>,
        counters: &mut LinkCounters,
    ) -> bool {
        if let Some(next) = self.bound.next(&self.flight, now, counters) {
            let Aboard { session, feedback } = aboard;
            let load = self.bound.load(&next, &mut self.parity);
            let before = out.len();
            Datagram { session, feedback, load }.encode(out);
            self.lost.extend(self.flight.sent(next.carried, out.len() - before, now));
            return true;
        }
        if self.flight.has_room() {
            while let Some(carried) = self.lost.pop_front() {
                if self.is_wanted(carried) {
                    counters.repeated += 1;
                    self.transmit(carried, now, aboard, out);
                    return true;
                }
            }
        }
        for _ in 0..self.turns.len() {
            let Some(writer) = self.turns.pop_front() else { break };
            let Some(stream) = self.streams.get_mut(&writer) else { continue };
            let Some((position, index)) = stream.next_unsent() else {
                stream.has_turn = false;
                continue;
            };
            self.turns.push_back(writer);
            if stream.reliable && !self.flight.has_room() {
                continue;
            }
            self.transmit(Carried { writer, position, index, bound: false }, now, aboard, out);
            self.queue_bytes -= self.streams.get_mut(&writer).map_or(0, Stream::advance);
            return true;
        }
        false
    }

    /// When [`handle_timeout`](Sending::handle_timeout) next has something to do.
    pub(crate) fn timeout(&self) -> Option<Instant<Local>> {
        let rested = self.resting.front().map(|(until, _)| *until);
        self.flight.timeout().into_iter().chain(rested).chain(self.bound.timeout()).min()
    }

    pub(crate) fn round_trip(&self) -> Option<RoundTrip> {
        self.flight.round_trip()
    }

    /// What was sent of a stream with a deadline.
    pub(crate) fn sent_counters(&self, writer: StreamId) -> Option<SentCounters> {
        self.bound.counters(writer)
    }

    /// What can be had of the wishes of streams.
    pub(crate) fn poll_wish(&mut self, now: Instant<Local>) -> Option<(StreamId, Wish)> {
        self.bound.poll_wish(&self.flight, now)
    }

    /// Share of datagrams lost, and the mean number in a row.
    pub(crate) fn loss(&self) -> (f64, f64) {
        (self.flight.loss().share(), self.flight.loss().mean_burst())
    }

    /// Bytes of the samples held, with [`SAMPLE_OVERHEAD_BYTES`] each.
    pub(crate) fn queue_bytes(&self) -> usize {
        self.queue_bytes + self.bound.queue_bytes()
    }

    fn is_wanted(&self, carried: Carried) -> bool {
        let sample = self.streams.get(&carried.writer).and_then(|stream| stream.sample(carried.position));
        sample.is_some_and(|sample| !sample.has_arrived() && !sample.arrived.contains(carried.index))
    }

    fn transmit(&mut self, carried: Carried, now: Instant<Local>, aboard: Aboard, out: &mut Vec<u8>) {
        let Some(stream) = self.streams.get(&carried.writer) else { return };
        let Some(sample) = stream.sample(carried.position) else { return };
        let numbers = Numbers {
            packet: self.flight.next_number(),
            position: carried.position,
            // Every sample held costs more than a byte, so there are never 2^32.
            behind: (carried.position - stream.first_position()) as u32,
        };
        let piece = piece_bytes(sample.payload.len(), sample.count);
        let start = usize::from(carried.index) * piece;
        let end = (start + piece).min(sample.payload.len());
        let fragment = Fragment {
            writer: carried.writer,
            total_bytes: sample.payload.len() as u32,
            sequence: sample.sequence,
            source_time_ns: sample.source_time_ns,
            index: carried.index,
            count: sample.count,
            service: if stream.reliable { Service::Reliable(numbers) } else { Service::BestEffort },
            payload: &sample.payload[start..end],
        };
        let before = out.len();
        let Aboard { session, feedback } = aboard;
        Datagram { session, feedback, load: Some(Load::Fragment(fragment)) }.encode(out);
        if stream.reliable {
            // There was room for it, so nothing was forgotten.
            self.flight.sent(carried, Flight::cost(out.len() - before), now);
        }
    }
}

impl Stream {
    fn first_position(&self) -> u64 {
        self.next_position - self.samples.len() as u64
    }

    fn sample(&self, position: u64) -> Option<&Queued> {
        let place = position.checked_sub(self.first_position())?;
        self.samples.get(usize::try_from(place).ok()?)
    }

    /// Gives the cost of what it drops.
    fn give_up_oldest(&mut self, counters: &mut LinkCounters) -> usize {
        let oldest = self.samples.pop_front();
        counters.given_up += u64::from(oldest.as_ref().is_some_and(|sample| !sample.has_arrived()));
        oldest.map_or(0, |sample| sample.cost())
    }

    /// The first fragment never sent yet, of a sample that is still held.
    fn next_unsent(&mut self) -> Option<(u64, u16)> {
        self.unsent = self.unsent.max((self.first_position(), 0));
        (self.unsent.0 < self.next_position).then_some(self.unsent)
    }

    /// The first fragment never sent yet has been sent. Gives the cost of what need not be kept.
    fn advance(&mut self) -> usize {
        let (position, index) = self.unsent;
        let count = self.sample(position).map_or(0, |sample| sample.count);
        if index + 1 < count {
            self.unsent = (position, index + 1);
            return 0;
        }
        self.unsent = (position + 1, 0);
        if self.reliable { 0 } else { self.samples.pop_front().map_or(0, |sample| sample.cost()) }
    }
}

impl Queued {
    /// What it counts against the limit of the queue.
    fn cost(&self) -> usize {
        self.payload.len() + SAMPLE_OVERHEAD_BYTES
    }

    fn has_arrived(&self) -> bool {
        self.arrived.len() == u32::from(self.count)
    }
}

/// A fragment has arrived. Gives the bytes that need no longer be kept.
fn arrived(streams: &mut BTreeMap<StreamId, Stream>, carried: Carried) -> usize {
    let Some(stream) = streams.get_mut(&carried.writer) else { return 0 };
    let Some(place) = carried.position.checked_sub(stream.first_position()) else { return 0 };
    let Some(sample) = stream.samples.get_mut(place as usize) else { return 0 };
    if !sample.arrived.insert(carried.index) || !sample.has_arrived() {
        return 0;
    }
    let mut freed_bytes = std::mem::take(&mut sample.payload).len();
    while stream.samples.front().is_some_and(Queued::has_arrived) {
        freed_bytes += stream.samples.pop_front().map_or(0, |sample| sample.cost());
    }
    freed_bytes
}
