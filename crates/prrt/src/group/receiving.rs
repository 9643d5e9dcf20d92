//! The receiver of a group's stream: reassembly, FEC decoding, and NACKs for repair symbols, suppressed by random delays (NORM, RFC 5740).

use std::collections::VecDeque;

use noctule_proto_kit::SplitMix64;
use noctule_qlog::Log;
use noctule_timebase::{Instant, Span};

use super::trace::Event;
use super::wire::{ASKS_MAX, Ask, Body, Datagram, Report, Symbol, SymbolKind, ahead};
use super::{GUARD_LEAST, GroupConfig, ROUND_TRIP_PRIOR};
use crate::block_decoder::Symbols;
use crate::config::LinkConfig;
use crate::reassembly::Room;
use crate::stream::{Arrival, Local, StreamId};
use crate::wire::{FIRST_PARITY, Fragment, Place};

/// Blocks remembered at once.
const BLOCKS_LIMIT: usize = 64;
/// Bytes of symbols held for repair.
const HELD_BYTES_MAX: usize = 16 << 20;
/// Blocks in a row of which nothing arrived that are asked for; more are taken for an interruption.
const GAP_BLOCKS_MAX: i32 = 4;
/// Numbers of packets further apart are accepted when a second one agrees (RFC 3550, appendix A.1).
const JUMP_PACKETS_MAX: u32 = 3_000;
/// Requests for one block.
const ASKS_PER_BLOCK_MAX: u8 = 8;
/// After so many reports with requests since the last datagram of the sender this receiver does not receive it, and parity would only take the
/// channel from the others: it resumes its requests once a datagram arrives.
const UNHEARD_REQUESTS_MAX: u32 = 2;
/// The first reports follow each other by this, then by twice as much each time.
const REPORT_FIRST: Span = Span::from_ms(50);
/// Reports are no more than so many bytes for each that arrived (RFC 9000, section 8.1), saved up to the limit.
const REPORT_SHARE: usize = 3;
const REPORT_SAVED_LIMIT_BYTES: usize = 64 << 10;

/// Counters of a receiver of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiverCounters {
    /// Datagrams taken in, each counted once.
    pub datagrams: u64,
    /// Of another life of the sender, or of another stream.
    pub other_session: u64,
    /// Symbols that were repaired.
    pub repaired: u64,
    /// Symbols that are none: forged parity.
    pub inconsistent: u64,
    /// Reports given out.
    pub reports: u64,
    /// Their bytes, without what an envelope adds.
    pub bytes: u64,
    /// Requests in them.
    pub asks: u64,
    /// Blocks that lacked something when it could no longer come.
    pub given_up: u64,
    /// Blocks whose requests waited for the next datagram of the sender.
    pub silenced: u64,
    /// Reports not sent because they would have been more than three times what came.
    pub withheld: u64,
}

/// The receiving end of a stream to a group. See [`group`](crate::group).
#[derive(Debug)]
pub struct GroupReceiver {
    session: u32,
    writer: StreamId,
    deadline: Option<Span>,
    /// Numbered from `first` without gaps.
    blocks: VecDeque<Block>,
    first: u32,
    /// Far from the others: accepted when it comes again.
    stray: Option<u32>,
    room: Room,
    packets: Packets,
    /// Reports with requests since the last datagram of the sender.
    unheard_requests: u32,
    round_trip: Span,
    jitter: Span,
    report_at: Option<Instant<Local>>,
    report_interval: Span,
    report_interval_max: Span,
    has_news: bool,
    /// The sender asked which receivers hear it.
    is_hailed: bool,
    saved_bytes: usize,
    random: SplitMix64,
    counters: ReceiverCounters,
    log: Log<Event>,
}

/// Which datagrams have arrived.
#[derive(Debug, Default)]
struct Packets {
    /// The highest number, and when it arrived.
    newest: Option<(u32, Instant<Local>)>,
    /// Bit `i`: the number `i` below has arrived.
    window: u64,
    received: u32,
    /// Far from the others: accepted when the next one agrees.
    stray: Option<u32>,
}

#[derive(Debug)]
struct Block {
    symbols: Symbols,
    /// Data symbols, as known: what was planned until parity says how many there are.
    count: u8,
    is_counted: bool,
    /// Parity symbols announced.
    decided: u8,
    /// When the last data symbol is expected; between two; when the last can no longer come in time.
    ends_at: Instant<Local>,
    step: Span,
    expires_at: Instant<Local>,
    stage: Stage,
    asks: u8,
}

/// Stage of a block: the event that it waits for.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Stage {
    /// Symbols that are on their way.
    Arriving(Instant<Local>),
    /// Others to ask for the same.
    Holding(Instant<Local>),
    /// Its turn in the next report.
    Asking(Instant<Local>),
    /// A datagram of the sender, after too many requests without one.
    Deaf,
    Rest,
}

/// Takes a fragment: as it arrived, or repaired.
pub type TakeFragment<'a> = dyn FnMut(&Fragment<'_>, bool) + 'a;

impl GroupReceiver {
    /// For a stream of which no datagram has arrived. `random` spreads reports that would leave at the same time.
    pub fn new(config: GroupConfig, random: u64) -> GroupReceiver {
        GroupReceiver {
            session: config.session,
            writer: config.writer,
            deadline: config.bound.map(|bound| bound.deadline),
            blocks: VecDeque::new(),
            first: 0,
            stray: None,
            room: Room::new(&LinkConfig { held_bytes_max: HELD_BYTES_MAX, ..LinkConfig::default() }),
            packets: Packets::default(),
            unheard_requests: 0,
            round_trip: ROUND_TRIP_PRIOR,
            jitter: Span::ZERO,
            report_at: None,
            report_interval: REPORT_FIRST,
            report_interval_max: Span::from_s(1),
            has_news: false,
            is_hailed: false,
            saved_bytes: 0,
            random: SplitMix64::new(random),
            counters: ReceiverCounters::default(),
            log: Log::default(),
        }
    }

    /// Processes a datagram of `length_bytes`; its fragment, and those that it repairs, go to `take`.
    pub fn handle_datagram(
        &mut self,
        datagram: &Datagram<'_>,
        length_bytes: usize,
        arrival: Arrival,
        take: &mut TakeFragment<'_>,
    ) {
        let Body::Symbol(symbol) = &datagram.body else { return };
        if (datagram.session, datagram.writer) != (self.session, self.writer) {
            self.counters.other_session += 1;
            return;
        }
        let now = arrival.now;
        self.saved_bytes = (self.saved_bytes + REPORT_SHARE * length_bytes).min(REPORT_SAVED_LIMIT_BYTES);
        self.log.at(now);
        // Before it is recorded.
        let missing = if self.log.is_on() { self.packets.gap_before(symbol.packet) } else { 0 };
        if self.packets.record(symbol.packet, now) {
            self.counters.datagrams += 1;
            self.has_news = true;
            self.hear(now);
            self.report_at.get_or_insert(now);
        }
        self.report_interval_max = Span::from_s(symbol.report_every_s.max(1).into());
        self.round_trip = if symbol.round_trip > Span::ZERO { symbol.round_trip } else { ROUND_TRIP_PRIOR };
        match symbol.kind {
            SymbolKind::Data { planned: 0, .. } if symbol.bytes.is_empty() => {
                (self.is_hailed, self.report_at) = (true, Some(now));
            }
            SymbolKind::Data { index, planned } => {
                let place = Place {
                    packet: 0,
                    block: symbol.block,
                    symbol: index,
                    symbols: 1,
                    attempt: 0,
                    ack_soon: true,
                };
                // What is no sample is no symbol either.
                let Ok(fragment) = Fragment::decode_symbol(self.writer, place, symbol.bytes) else {
                    self.counters.inconsistent += 1;
                    return;
                };
                let (packet_number, block, sequence) = (symbol.packet, symbol.block, fragment.sequence);
                self.log.note(|| Event::DataReceived { packet_number, block, sequence, missing });
                take(&fragment, false);
                let age = arrival.peer_ns.map(|peer| peer.saturating_sub(fragment.origin.source_time_ns));
                let age = age.map_or(self.round_trip / 2, |ns| Span::from_ns(ns.max(0)));
                if planned > 0 && self.deadline.is_some() {
                    self.handle_data(symbol, (index, planned), (now, age), take);
                }
            }
            SymbolKind::Parity { index, symbols } if self.deadline.is_some() => {
                self.log.note(|| Event::ParityReceived {
                    packet_number: symbol.packet,
                    block: symbol.block,
                    symbol: FIRST_PARITY.saturating_add(index),
                    missing,
                });
                self.handle_parity(symbol, (index, symbols), now, take);
            }
            SymbolKind::Parity { .. } => {}
        }
    }

    /// Appends the next report for the sender. Call again until `false`.
    pub fn poll_transmit(&mut self, now: Instant<Local>, out: &mut Vec<u8>) -> bool {
        self.handle_timeout(now);
        let Some((newest, arrived)) = self.packets.newest else { return false };
        let asks = self.asks(now);
        let is_due = self.has_news && self.report_at.is_some_and(|at| at <= now);
        if asks.is_empty() && !is_due {
            return false;
        }
        let delay_ns = u32::try_from((now - arrived).ns().max(0)).unwrap_or(u32::MAX);
        let count = asks.len() as u64;
        let report = Report { newest, received: self.packets.received, delay_ns, asks };
        let before = out.len();
        let (session, writer) = (self.session, self.writer);
        Datagram { session, writer, body: Body::Report(report) }.encode(out);
        if std::mem::take(&mut self.is_hailed) {
            // It may be lost, or its sender not be known yet: the first sample is answered at once all the same.
            self.report_at = None;
        } else {
            let spread = 0.75 + self.random.uniform() / 2.0;
            self.report_at = Some(now + scaled(self.report_interval, spread));
            self.report_interval = (self.report_interval * 2).min(self.report_interval_max);
        }
        self.has_news = false;
        let Some(left) = self.saved_bytes.checked_sub(out.len() - before) else {
            out.truncate(before);
            self.counters.withheld += 1;
            return false;
        };
        self.saved_bytes = left;
        self.counters.reports += 1;
        self.counters.asks += count;
        self.counters.bytes += (out.len() - before) as u64;
        true
    }

    /// When [`poll_transmit`](GroupReceiver::poll_transmit) may have something although nothing came.
    pub fn poll_timeout(&self) -> Option<Instant<Local>> {
        let blocks = self.blocks.iter().filter_map(|block| match block.stage {
            Stage::Arriving(at) | Stage::Holding(at) | Stage::Asking(at) => Some(at),
            Stage::Deaf | Stage::Rest => None,
        });
        blocks.chain(self.report_at.filter(|_| self.has_news)).min()
    }

    /// Trace of this receiver: start it to keep events, and poll it. An event costs one branch until then.
    pub fn trace(&mut self) -> &mut Log<Event> {
        &mut self.log
    }

    /// Counters so far.
    pub fn counters(&self) -> ReceiverCounters {
        self.counters
    }

    /// Bytes held for repair.
    pub fn held_bytes(&self) -> usize {
        self.room.bytes()
    }

    /// A datagram of the sender arrived: blocks that waited for that are due for a request.
    fn hear(&mut self, now: Instant<Local>) {
        if std::mem::take(&mut self.unheard_requests) >= UNHEARD_REQUESTS_MAX {
            let deaf = self.blocks.iter_mut().filter(|block| block.stage == Stage::Deaf);
            deaf.for_each(|block| block.stage = Stage::Arriving(now));
        }
    }

    fn handle_data(
        &mut self,
        symbol: &Symbol<'_>,
        (index, planned): (u8, u8),
        (now, age): (Instant<Local>, Span),
        take: &mut TakeFragment<'_>,
    ) {
        let Some(deadline) = self.deadline else { return };
        let follow = planned - index - 1;
        // A stranger's times cannot overflow: an age is at most half of all there is.
        let expires_at = now + (deadline - age).max(Span::ZERO) + symbol.left;
        let is_first = self.blocks.is_empty();
        let Some(place) = self.place(symbol.block, planned, (now, expires_at)) else { return };
        let guard = self.guard();
        let block = &mut self.blocks[place];
        if is_first && index > 0 {
            // Of what was sent before it listened nothing is asked for.
            block.stage = Stage::Rest;
            block.asks = ASKS_PER_BLOCK_MAX;
        }
        if !block.is_counted {
            block.count = planned;
            block.symbols.count = Some(planned);
        }
        let ends_at = now + symbol.left;
        if block.symbols.held() > 0 {
            let wandered = (ends_at - block.ends_at).abs();
            self.jitter += (wandered - self.jitter) / 16;
        }
        (block.ends_at, block.expires_at) = (ends_at, expires_at);
        if follow > 0 {
            block.step = symbol.left / i64::from(follow);
        }
        block.announce(symbol.decided, Stage::Arriving(ends_at + guard));
        self.add(place, index, symbol.bytes, take);
    }

    fn handle_parity(
        &mut self,
        symbol: &Symbol<'_>,
        (index, symbols): (u8, u8),
        now: Instant<Local>,
        take: &mut TakeFragment<'_>,
    ) {
        let Some(deadline) = self.deadline else { return };
        if self.blocks.is_empty() {
            // Of a block of which nothing else arrived; its samples were sent before.
            return;
        }
        let expires_at = now + deadline - self.round_trip / 2;
        let Some(place) = self.place(symbol.block, symbols, (now, expires_at)) else { return };
        let guard = self.guard();
        let block = &mut self.blocks[place];
        (block.count, block.is_counted) = (symbols, true);
        block.symbols.count = Some(symbols);
        block.announce(symbol.decided, Stage::Arriving(now + guard));
        self.add(place, FIRST_PARITY.saturating_add(index), symbol.bytes, take);
    }

    fn add(&mut self, place: usize, number: u8, bytes: &[u8], take: &mut TakeFragment<'_>) {
        let block_number = self.first.wrapping_add(place as u32);
        let block = &mut self.blocks[place];
        for symbol in block.symbols.add(number, bytes.to_vec(), &mut self.room) {
            let alone = Place { packet: 0, block: 0, symbol: 0, symbols: 1, attempt: 0, ack_soon: true };
            match Fragment::decode_symbol(self.writer, alone, &symbol) {
                Ok(fragment) => {
                    self.counters.repaired += 1;
                    let sequence = fragment.sequence;
                    self.log.note(|| Event::Repaired { sequence, block: block_number });
                    take(&fragment, true);
                }
                Err(_) => self.counters.inconsistent += 1,
            }
        }
        if block.symbols.is_done {
            block.stage = Stage::Rest;
        }
    }

    /// Where a block is; it is made, and those that were skipped before it, if it is new. `None` if it is over.
    fn place(
        &mut self,
        number: u32,
        count: u8,
        (now, expires_at): (Instant<Local>, Instant<Local>),
    ) -> Option<usize> {
        let known = self.blocks.len() as i32;
        let mut offset = if known == 0 { 0 } else { ahead(number, self.first) };
        if known == 0 {
            self.first = number;
        }
        let is_far = offset > known + GAP_BLOCKS_MAX || offset < -(BLOCKS_LIMIT as i32);
        if is_far && self.stray.replace(number) != Some(number) || !is_far && offset < 0 {
            return None;
        }
        if is_far {
            // It was away for longer than anything could be repaired.
            self.blocks.iter_mut().for_each(|block| block.symbols.leave(&mut self.room));
            self.blocks.clear();
            self.first = number;
            offset = 0;
        }
        let guard = self.guard();
        // Blocks that were skipped are taken to be like the one before them: what is too old to be repaired is not asked for.
        let step = self.blocks.back().map_or(Span::ZERO, |block| block.step);
        let period = self.blocks.back().map_or(Span::ZERO, |block| block.step * i64::from(block.count));
        while (self.blocks.len() as i32) <= offset {
            let expires_at = expires_at - period * i64::from(offset - self.blocks.len() as i32);
            let mut symbols = Symbols::new(expires_at);
            symbols.count = Some(count);
            self.blocks.push_back(Block {
                symbols,
                count,
                is_counted: false,
                decided: 0,
                ends_at: now,
                step,
                expires_at,
                stage: Stage::Arriving(now + guard),
                asks: 0,
            });
        }
        while self.blocks.len() > BLOCKS_LIMIT {
            if let Some(mut oldest) = self.blocks.pop_front() {
                oldest.symbols.leave(&mut self.room);
            }
            self.first = self.first.wrapping_add(1);
        }
        usize::try_from(ahead(number, self.first)).ok()
    }

    fn handle_timeout(&mut self, now: Instant<Local>) {
        self.log.at(now);
        let (guard, round_trip) = (self.guard(), self.round_trip);
        let is_deaf = self.unheard_requests >= UNHEARD_REQUESTS_MAX;
        for place in 0..self.blocks.len() {
            let unit = self.random.uniform();
            let number = self.first.wrapping_add(place as u32);
            let block = &mut self.blocks[place];
            match block.stage {
                Stage::Arriving(at) if at <= now => {
                    let lacking = usize::from(block.count).saturating_sub(block.symbols.held());
                    let spare = block.repairable_until() - now - round_trip;
                    block.stage = if lacking == 0 || block.asks >= ASKS_PER_BLOCK_MAX || spare < Span::ZERO {
                        if lacking > 0 {
                            self.counters.given_up += 1;
                            self.log.note(|| Event::Lost { block: number, lacking: lacking as u32 });
                        }
                        Stage::Rest
                    } else if is_deaf {
                        self.counters.silenced += 1;
                        self.log.note(|| Event::AskWithheld { block: number });
                        Stage::Deaf
                    } else {
                        // The receiver that lacks most asks first, which may be enough for others.
                        let window = (round_trip * 2).min((spare - guard).max(Span::ZERO) / 4);
                        Stage::Holding(now + scaled(window, unit) / lacking as i64)
                    };
                }
                Stage::Holding(at) if at <= now => {
                    block.stage = if is_deaf { Stage::Deaf } else { Stage::Asking(at) };
                }
                _ => {}
            }
        }
        while self.blocks.len() > 1
            && let Some(oldest) = self.blocks.front_mut().filter(|block| block.expires_at <= now)
        {
            oldest.symbols.leave(&mut self.room);
            self.blocks.pop_front();
            self.first = self.first.wrapping_add(1);
        }
    }

    /// Requests that are due; each block then waits for the answer.
    fn asks(&mut self, now: Instant<Local>) -> Vec<Ask> {
        let (first, answer) = (self.first, now + self.round_trip + self.guard());
        let asking =
            self.blocks.iter_mut().enumerate().filter(|(_, block)| matches!(block.stage, Stage::Asking(_)));
        let asks = asking.take(ASKS_MAX).map(|(place, block)| {
            block.asks += 1;
            block.stage = Stage::Arriving(answer);
            let held = block.symbols.held().min(u8::MAX.into()) as u8;
            Ask { block: first.wrapping_add(place as u32), held, settled: block.decided }
        });
        let asks: Vec<Ask> = asks.collect();
        for Ask { block, held, .. } in &asks {
            let symbols = self.blocks.get(block.wrapping_sub(first) as usize).map_or(0, |block| block.count);
            self.log.note(|| Event::Asked { block: *block, held: *held, symbols });
        }
        self.unheard_requests += u32::from(!asks.is_empty());
        asks
    }

    fn guard(&self) -> Span {
        (self.jitter * 4).max(GUARD_LEAST)
    }
}

impl Block {
    /// More parity may follow than was known; `stage` waits for it unless nothing is lacking.
    fn announce(&mut self, decided: u8, stage: Stage) {
        self.decided = self.decided.max(decided);
        if self.asks < ASKS_PER_BLOCK_MAX && !self.symbols.is_done {
            self.stage = stage;
        }
    }

    /// When the last symbol that is missing can no longer come in time.
    fn repairable_until(&self) -> Instant<Local> {
        let missing = self.symbols.last_missing(self.count).unwrap_or(0);
        let behind = i64::from(self.count.saturating_sub(missing + 1));
        self.expires_at - self.step * behind
    }
}

impl Packets {
    /// Packets between the newest that has arrived and this one.
    fn gap_before(&self, packet: u32) -> u32 {
        let ahead = self.newest.map_or(0, |(newest, _)| ahead(packet, newest));
        if ahead.unsigned_abs() > JUMP_PACKETS_MAX {
            0
        } else {
            ahead.saturating_sub(1).max(0).unsigned_abs()
        }
    }

    /// A datagram has arrived; false if it had before, or is too old to tell.
    fn record(&mut self, packet: u32, now: Instant<Local>) -> bool {
        let Some((newest, _)) = self.newest else {
            (self.newest, self.window, self.received) = (Some((packet, now)), 1, 1);
            return true;
        };
        let forward = ahead(packet, newest);
        if forward.unsigned_abs() > JUMP_PACKETS_MAX {
            let agrees = self.stray.is_some_and(|stray| (1..=64).contains(&ahead(packet, stray)));
            self.stray = Some(packet);
            if !agrees {
                return false;
            }
            (self.newest, self.window) = (Some((packet, now)), 1);
        } else if forward > 0 {
            self.window = self.window.checked_shl(forward.unsigned_abs()).unwrap_or(0) | 1;
            self.newest = Some((packet, now));
        } else {
            let bit = 1_u64.checked_shl(forward.unsigned_abs()).unwrap_or(0);
            if bit == 0 || self.window & bit != 0 {
                return false;
            }
            self.window |= bit;
        }
        self.received = self.received.wrapping_add(1);
        true
    }
}

fn scaled(span: Span, factor: f64) -> Span {
    Span::from_ns((span.ns() as f64 * factor) as i64)
}
