//! The sender of samples with a deadline: hybrid ARQ, by retransmission and by repair symbols (FEC).
//!
//! Every sample is sent at once. Then its block is examined at each feedback on it, and when its
//! [`repair`](crate::repair) rule says so, until it has arrived or its time is over.

mod naming;
mod retire;
mod spread;

use std::collections::{BTreeMap, VecDeque};

use noctule_timebase::{Instant, Span};

use spread::{Spread, long_block};

use crate::block::{Block, NEWS_BUNDLED};
use crate::config::SAMPLE_OVERHEAD_BYTES;
use crate::congestion::repair_budget::RepairBudget;
use crate::erasure;
use crate::feasibility::{Feasibility, FeasibilityChange};
use crate::path::{Path, ROUND_TRIP_PRIOR};
use crate::repair::{Price, Step};
use crate::sent_counters::SentCounters;
use crate::sent_packets::{Carried, Kind, PacketOutcome, SentPackets};
use crate::stream::{Bound, Local, Outgoing, StreamId};
use crate::trace::{self, Event, GivenUp, Record, Withheld};
use crate::wire::{
    FIRST_PARITY, FRAGMENTS_MAX, Fragment, Load, Parity, Place, SYMBOL_HEADER_BYTES, block_number, symbol_of,
};

/// Data symbols of a block at most; a long sample is several blocks. The more a block has, the less parity is as safe.
const BLOCK_SYMBOLS_MAX: usize = erasure::DATA_SYMBOLS_MAX;
/// Blocks of one stream that wait for their fate or their deadline.
const BLOCKS_LIMIT: usize = 65_536;
/// Threads wake late, by as much at least.
const LATENESS_LEAST: Span = Span::from_us(300);
/// A thread that sleeps for longer stalled, which says nothing of the next time, nor of the channel.
const LATENESS_LIMIT: Span = Span::from_ms(3);
/// One wake in twenty is later than the estimate, found by counting: a step of this part down with every wake, so many up with a later one.
const LATENESS_STEPS: i64 = 64;
const LATENESS_ODDS: i64 = 19;

/// After the deadline a block is kept for so many round trips: the price of redundancy is learned from its fate.
const ROUNDS_FOR_THE_FATE: i64 = 4;

/// Header bytes of a datagram of a long sample, about: header, sample and place.
pub(crate) const HEADER_BYTES: usize = 28;
/// No time between samples is taken to be shorter; and one sample may prove it to be as long as this, or twice what it was: a stream
/// may begin with samples of one moment.
const INTERVAL_LEAST: Span = Span::from_us(10);
const INTERVAL_MOST_LEAST: Span = Span::from_ms(1);
/// Bursts that last for all but this part of the time until the deadline are not outlived.
const OUTAGE_PARTS: i64 = 8;
/// Least price of a datagram under a rate limit, in samples of risk: fresh samples are worth more.
const PRICE_UNDER_LIMIT: f64 = 0.5;
/// The price for a block that lost time because this host stalled, in parts of the usual one: it has fewer chances left.
const PRICE_AFTER_STALL: f64 = 0.2;

/// Streams with deadlines.
#[derive(Debug)]
pub(crate) struct DeadlineSender {
    streams: BTreeMap<StreamId, DeadlineStream>,
    queue_bytes: usize,
    /// The stream that sent last: under a limit streams take turns.
    turn: StreamId,
    /// The pace lets nothing leave before this.
    ready_at: Instant<Local>,
    /// When `next` was to be asked again, and how late that is at most 19 times in 20.
    wake_at: Option<Instant<Local>>,
    lateness: Span,
    /// When this host last did, as far as noticed.
    stalled: (Instant<Local>, Instant<Local>),
}

#[derive(Debug)]
struct DeadlineStream {
    writer: StreamId,
    bound: Bound,
    /// Numbered from `first` without gaps.
    blocks: VecDeque<Block>,
    first: u64,
    /// No block is to be looked at before this.
    due: Instant<Local>,
    /// Time between two samples, smoothed; `None` before the second.
    interval: Option<Span>,
    last_at: Option<Instant<Local>>,
    /// A sample fails if any of its blocks does.
    blocks_per_sample: f64,
    /// Numbers of the samples that failed, and that were never sent, last.
    failed_last: Option<u64>,
    expired_last: Option<u64>,
    /// The path bears less than was offered, as last known; the sample that is being sent.
    is_limited: bool,
    current: Option<u64>,
    /// A round trip, as last known.
    round: Span,
    /// Probability that the channel loses everything until about the deadline, as last known.
    outage: f64,
    capacity_bytes_per_s: Option<f64>,
    spread: Spread,
    price: Price,
    budget: RepairBudget,
    feasibility: Feasibility,
    counters: SentCounters,
}

/// A datagram to send.
pub(crate) struct Next {
    pub(crate) carried: Carried,
    place: Place,
}

impl DeadlineSender {
    pub(crate) fn new() -> DeadlineSender {
        DeadlineSender {
            streams: BTreeMap::new(),
            queue_bytes: 0,
            turn: StreamId(0),
            ready_at: Instant::MIN,
            wake_at: None,
            lateness: LATENESS_LEAST,
            stalled: (Instant::MIN, Instant::MIN),
        }
    }

    /// Queues a sample; its deadline is counted from its source time.
    pub(crate) fn send(
        &mut self,
        sample: &Outgoing<'_>,
        bound: Bound,
        (fragment_bytes_max, queue_bytes_max): (usize, usize),
        (now, counters): (Instant<Local>, &mut Record),
    ) {
        let fragment_bytes_max = fragment_bytes_max.min(erasure::SYMBOL_BYTES_MAX - SYMBOL_HEADER_BYTES);
        let fragments = sample.payload.len().div_ceil(fragment_bytes_max).max(1);
        if fragments > usize::from(FRAGMENTS_MAX) {
            counters.refused_too_long += 1;
            return;
        }
        let cost = sample.payload.len() + SAMPLE_OVERHEAD_BYTES + fragments * SYMBOL_HEADER_BYTES;
        let deadline_at = now + (bound.deadline - sample.age);
        let stream = self
            .streams
            .entry(sample.writer)
            .or_insert_with(|| DeadlineStream::new(sample.writer, bound, now));
        let blocks = fragments.div_ceil(BLOCK_SYMBOLS_MAX);
        if self.queue_bytes + cost > queue_bytes_max || stream.blocks.len() + blocks > BLOCKS_LIMIT {
            counters.refused_full += 1;
            let part = trace::sample(sample.writer, sample.sequence);
            counters.note(|| Event::GivenUp { part, why: GivenUp::QueueFull });
            return;
        }
        if deadline_at < now {
            counters.expired += 1;
            stream.counters.expired += 1;
            let part = trace::sample(sample.writer, sample.sequence);
            counters.note(|| Event::GivenUp { part, why: GivenUp::Expired });
            return;
        }
        counters.bound_samples += 1;
        stream.counters.samples += 1;
        stream.bound = bound;
        stream.observe(now);
        stream.due = now;
        stream.feasibility.count_offered();
        if fragments == 1 && !stream.is_limited && (stream.feasibility.block() > 1 || stream.has_open_block())
        {
            self.queue_bytes += stream.join((sample.sequence, symbol_of(sample, 0, 1)), deadline_at, now);
            return;
        }
        stream.blocks_per_sample = blocks as f64;
        let spacing = stream.spacing(fragments, sample.payload.len(), deadline_at, now);
        for number in 0..blocks {
            let mut block = Block::new(sample.sequence, deadline_at, now);
            let first = fragments * number / blocks;
            (block.begin, block.spacing) = (now + spacing * first as i64, spacing);
            block.samples = 1;
            for index in first..fragments * (number + 1) / blocks {
                block.add(symbol_of(sample, index as u16, fragments as u16));
            }
            block.close();
            self.queue_bytes += block.bytes() + SAMPLE_OVERHEAD_BYTES;
            stream.blocks.push_back(block);
        }
    }

    /// Drops what is queued of a writer.
    pub(crate) fn stop(&mut self, writer: StreamId) {
        if let Some(stream) = self.streams.remove(&writer) {
            self.queue_bytes -= stream.blocks.iter().map(cost).sum::<usize>();
        }
        if self.streams.is_empty() {
            self.wake_at = None;
        }
    }

    /// Whether no stream has a deadline.
    pub(crate) fn is_empty(&self) -> bool {
        self.streams.is_empty()
    }

    /// Fragments are no longer than this from now on: what is longer cannot arrive, and there is no time to begin anew.
    pub(crate) fn give_up_longer(&mut self, fragment_bytes_max: usize) {
        for stream in self.streams.values_mut() {
            let too_long = |block: &&mut Block| block.longest() > SYMBOL_HEADER_BYTES + fragment_bytes_max;
            for block in stream.blocks.iter_mut().filter(|block| !block.is_done()).filter(too_long) {
                block.abandon();
            }
        }
    }

    /// Whether anything of a writer may still be sent.
    pub(crate) fn holds(&self, writer: StreamId) -> bool {
        self.streams.get(&writer).is_some_and(|stream| stream.blocks.iter().any(|block| !block.is_done()))
    }

    pub(crate) fn queue_bytes(&self) -> usize {
        self.queue_bytes
    }

    /// Handles the fate of a packet.
    pub(crate) fn settle(
        &mut self,
        outcome: PacketOutcome,
        packet: u64,
        carried: Carried,
        now: Instant<Local>,
    ) {
        let Some(stream) = self.streams.get_mut(&carried.writer) else { return };
        if !matches!(outcome, PacketOutcome::Lost(_)) {
            stream.budget.arrived();
        }
        let Some(place) = carried.position.checked_sub(stream.first) else { return };
        let Some(block) = stream.blocks.get_mut(place as usize) else { return };
        let symbol = carried.index as u8;
        stream.due = now;
        match outcome {
            PacketOutcome::Arrived => block.handle_arrival(symbol, packet, now),
            PacketOutcome::Refused => block.handle_late(packet),
            PacketOutcome::Lost(_) => {
                block.handle_loss(symbol, packet, now);
                if block.spacing > Span::ZERO {
                    let (block, context) = (long_block(block), stream.spread_context());
                    stream.spread.handle_loss(block, context);
                }
            }
        }
    }

    /// The next datagram to send, if one is due.
    pub(crate) fn next(
        &mut self,
        sent_packets: &mut SentPackets,
        now: Instant<Local>,
        counters: &mut Record,
    ) -> Option<Next> {
        // Many links have none, and how the path is takes as long to say as all else that a datagram needs.
        if self.is_empty() {
            return None;
        }
        self.note_wake(now);
        let path = Path::of(sent_packets, self.lateness, now);
        let queue = sent_packets.queue();
        self.ready_at = sent_packets.pace().ready_at();
        self.streams.values_mut().for_each(|stream| stream.look(sent_packets, now));
        let turn = self.turn;
        for after in [true, false] {
            for (writer, stream) in self.streams.iter_mut().filter(|(writer, _)| (**writer > turn) == after) {
                self.queue_bytes -=
                    stream.retire((path.round, queue), sent_packets.pace_mut(), (now, counters));
                if now < self.ready_at {
                    continue;
                }
                let Some((position, symbol)) = stream.next(&path, now, counters) else { continue };
                let carried = Carried { writer: *writer, position, index: symbol.into(), kind: Kind::Symbol };
                let block = &mut stream.blocks[(position - stream.first) as usize];
                let packet = sent_packets.next_number();
                let symbols = if block.is_closed() { block.symbols() } else { 0 };
                let deadline = stream.bound.deadline;
                let ack_delay = path.ack_delay(deadline, stream.interval.unwrap_or(deadline), position);
                let attempt = block.sent(symbol, packet, (now, ack_delay));
                let block = block_number(position, symbols);
                let place =
                    Place { packet, block, symbol, symbols, attempt, ack_soon: ack_delay == Span::ZERO };
                self.turn = *writer;
                return Some(Next { carried, place });
            }
        }
        self.wake_at = self.timeout();
        None
    }

    /// This host took in now what it got before.
    pub(crate) fn handle_wait(&mut self, came: Instant<Local>, now: Instant<Local>) {
        let (from, until) = self.stalled;
        if now - came > LATENESS_LIMIT && (until < now || came < from) {
            self.stalled = (came, now);
            let blocks = self.streams.values_mut().flat_map(|stream| &mut stream.blocks);
            blocks.for_each(|block| block.handle_stall(came, now));
        }
    }

    fn note_wake(&mut self, now: Instant<Local>) {
        if let Some(wake_at) = self.wake_at.take_if(|at| *at <= now) {
            self.handle_wait(wake_at, now);
            let step = self.lateness / LATENESS_STEPS;
            let was_later = now - wake_at > self.lateness;
            let moved = if was_later { step * LATENESS_ODDS } else { Span::ZERO - step };
            self.lateness = (self.lateness + moved).clamp(LATENESS_LEAST, LATENESS_LIMIT);
        }
    }

    /// The load of a datagram. `parity` is where parity is computed.
    pub(crate) fn load<'a>(&'a self, next: &Next, parity: &'a mut Vec<u8>) -> Option<Load<'a>> {
        let Carried { writer, position, .. } = next.carried;
        let stream = self.streams.get(&writer)?;
        let block = stream.blocks.get(position.checked_sub(stream.first)? as usize)?;
        let place = next.place;
        if place.symbol < FIRST_PARITY {
            let fragment = Fragment::decode_symbol(writer, place, block.symbol(place.symbol)?).ok()?;
            return Some(Load::Fragment(fragment));
        }
        erasure::parity_of(place.symbol - FIRST_PARITY, block.data(), parity).ok()?;
        Some(Load::Parity(Parity { writer, place, symbol: parity }))
    }

    /// Counters of a stream so far.
    pub(crate) fn counters(&self, writer: StreamId) -> Option<SentCounters> {
        self.streams.get(&writer).map(|stream| stream.counters)
    }

    /// A wish that cannot be fulfilled, or can be again: each change once.
    pub(crate) fn poll_feasibility_change(
        &mut self,
        sent_packets: &mut SentPackets,
        now: Instant<Local>,
    ) -> Option<(StreamId, FeasibilityChange)> {
        self.streams.iter_mut().find_map(|(writer, stream)| {
            stream.look(sent_packets, now);
            stream.feasibility.poll().map(|change| (*writer, change))
        })
    }

    /// When [`next`](DeadlineSender::next) may have something although no feedback came.
    pub(crate) fn timeout(&self) -> Option<Instant<Local>> {
        let waiting = self.streams.values().filter(|stream| !stream.blocks.is_empty());
        waiting.map(|stream| stream.due.max(self.ready_at)).min()
    }
}

impl DeadlineStream {
    fn new(writer: StreamId, bound: Bound, now: Instant<Local>) -> DeadlineStream {
        DeadlineStream {
            writer,
            bound,
            blocks: VecDeque::new(),
            first: 0,
            due: now,
            interval: None,
            last_at: None,
            blocks_per_sample: 1.0,
            failed_last: None,
            expired_last: None,
            is_limited: false,
            current: None,
            round: ROUND_TRIP_PRIOR / 4,
            outage: 0.0,
            capacity_bytes_per_s: None,
            spread: Spread::new(),
            price: Price::new(),
            budget: RepairBudget::new(),
            feasibility: Feasibility::new(now),
            counters: SentCounters::default(),
        }
    }

    fn look(&mut self, sent_packets: &mut SentPackets, now: Instant<Local>) {
        if let Some(interval) = self.interval {
            self.feasibility.look(&self.bound, interval, sent_packets, now);
        }
    }

    fn has_open_block(&self) -> bool {
        self.blocks.back().is_some_and(|block| !block.is_closed())
    }

    /// Adds a sample of one datagram to a block of several. Gives what that costs.
    fn join(
        &mut self,
        (sequence, symbol): (u64, Vec<u8>),
        deadline_at: Instant<Local>,
        now: Instant<Local>,
    ) -> usize {
        let size = self.feasibility.block();
        let mut added = symbol.len();
        if !self.has_open_block() {
            let mut block = Block::new(sequence, deadline_at, now);
            let interval = self.interval.unwrap_or(Span::ZERO);
            block.close_at = now + interval * i64::from(size) - interval / 2;
            self.blocks.push_back(block);
            added += SAMPLE_OVERHEAD_BYTES;
        }
        if let Some(block) = self.blocks.back_mut() {
            block.add(symbol);
            block.samples += 1;
            if block.symbols() >= size {
                block.close();
            }
        }
        added
    }

    fn observe(&mut self, now: Instant<Local>) {
        if let Some(last) = self.last_at.replace(now) {
            let latest = now - last;
            // A writer that stalled writes late what it should have, all at once.
            self.interval = Some(self.interval.map_or(latest, |smoothed| {
                let most = (smoothed * 2).max(INTERVAL_MOST_LEAST);
                (smoothed + (latest.clamp(smoothed / 2, most) - smoothed) / 8).max(INTERVAL_LEAST)
            }));
        }
    }

    fn next(&mut self, path: &Path, now: Instant<Local>, counters: &mut Record) -> Option<(u64, u8)> {
        self.is_limited = path.is_limited;
        if now < self.due {
            return None;
        }
        self.round = path.long[1];
        let window = self.bound.deadline - path.one_way;
        self.outage = path.channel.outage(window - window / OUTAGE_PARTS);
        self.capacity_bytes_per_s = path.capacity_bytes_per_s;
        if let Some(place) = self.fresh() {
            return self.begin(place, counters);
        }
        if let Some(extra_or_data) = self.next_begun(path, now, counters) {
            return Some(extra_or_data);
        }
        if let Some(place) = self.newest_waiting() {
            return self.begin(place, counters);
        }
        // Blocks that are done wait for older ones only.
        let waiting = self.blocks.iter().filter(|block| !block.is_done());
        self.due = waiting.map(|block| block.due).min().unwrap_or(Instant::MAX);
        None
    }

    /// Without a limit whatever is due, oldest first; under one, of samples that are not yet being sent only those that
    /// are too late are looked at.
    fn next_begun(&mut self, path: &Path, now: Instant<Local>, counters: &mut Record) -> Option<(u64, u8)> {
        let price = (self.price.now(self.bound.loss_target) * self.budget.scarcity()).min(1.0);
        let price = if path.is_limited || path.is_doubtful { price.max(PRICE_UNDER_LIMIT) } else { price };
        let interval = self.interval.unwrap_or(self.bound.deadline).min(self.bound.deadline);
        for (position, block) in (self.first..).zip(&mut self.blocks) {
            if block.is_done() {
                continue;
            }
            if let Some(symbol) = block.next_unsent() {
                if path.is_limited {
                    if now > block.deadline_at - path.soonest().min(self.bound.deadline / 2) {
                        block.abandon();
                        continue;
                    }
                    if !block.has_begun() && self.current != Some(block.sequence) {
                        continue;
                    }
                } else if block.unsent_at() > now {
                    block.due = block.unsent_at();
                    continue;
                }
                self.current = Some(block.sequence);
                self.count_data(counters);
                return Some((position, symbol));
            }
            if block.due > now {
                continue;
            }
            if block.close_at.min(block.deadline_at) <= now {
                block.close();
            }
            let at_the_end = block.deadline_at + path.round * ROUNDS_FOR_THE_FATE;
            let price = if block.has_stalled() { price * PRICE_AFTER_STALL } else { price };
            match block.step(path, interval, price, now) {
                Step::Send(risk) if !self.budget.allows() || !path.may_repair => {
                    counters.extras_refused += 1;
                    let why = if path.may_repair { Withheld::Budget } else { Withheld::PathFull };
                    let part = trace::sample(self.writer, block.sequence);
                    counters.note(|| Event::RepairWithheld { part, why });
                    block.risk = risk;
                    block.due = now + interval.max(NEWS_BUNDLED);
                }
                Step::Send(_) => {
                    block.risk = 0.0;
                    let Some(symbol) = block.next_extra() else {
                        block.due = at_the_end;
                        continue;
                    };
                    let parity = symbol >= FIRST_PARITY;
                    counters.bound_parity += u64::from(parity);
                    counters.bound_repeats += u64::from(!parity);
                    self.budget.spend();
                    self.counters.parity += u64::from(parity);
                    self.counters.repeats += u64::from(!parity);
                    return Some((position, symbol));
                }
                Step::Wait(until) => block.due = until,
                Step::Risk(risk, until) => {
                    block.risk = risk;
                    block.due = if now < until { until } else { at_the_end };
                }
                Step::Rest => block.due = at_the_end,
            }
        }
        None
    }

    /// Where a short sample is that has not left yet. It goes before repairs: of a burst into a full queue the last are dropped. Without a
    /// limit samples leave in order, so those that have not are the last.
    fn fresh(&self) -> Option<usize> {
        let waits = |block: &&Block| block.next_unsent().is_some() && block.spacing == Span::ZERO;
        let waiting = self.blocks.iter().rev().take_while(waits).count();
        let from = self.blocks.len() - if self.is_limited { 0 } else { waiting };
        (from..self.blocks.len()).find(|place| !self.blocks[*place].is_done())
    }

    fn begin(&mut self, place: usize, counters: &mut Record) -> Option<(u64, u8)> {
        let (sequence, symbol) = (self.blocks[place].sequence, self.blocks[place].next_unsent()?);
        self.current = Some(sequence);
        self.count_data(counters);
        Some((self.first + place as u64, symbol))
    }

    /// Where the newest sample begins that is not being sent: under a limit it goes before older ones.
    fn newest_waiting(&self) -> Option<usize> {
        if !self.is_limited {
            return None;
        }
        let waits = |block: &&Block| !block.is_done() && !block.has_begun() && block.next_unsent().is_some();
        let newest = self.blocks.iter().rev().find(waits)?.sequence;
        self.blocks.iter().position(|block| waits(&block) && block.sequence == newest)
    }

    fn count_data(&mut self, counters: &mut Record) {
        counters.bound_data += 1;
        self.counters.datagrams += 1;
        self.budget.sent();
    }
}

fn cost(block: &Block) -> usize {
    block.bytes() + SAMPLE_OVERHEAD_BYTES
}
