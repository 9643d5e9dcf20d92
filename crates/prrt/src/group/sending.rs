//! The sender of a group's stream: source blocks, repair symbols on demand (NORM, RFC 5740), reports.

use std::collections::VecDeque;

use noctule_qlog::Log;
use noctule_timebase::{Instant, Span};

use super::members::Members;
use super::rate::GroupRate;
use super::shortfall::{parity_alone, parity_for, sent_once};
use super::trace::{Answer, Event, Left, Purpose};
use super::wire::{Ask, Body, Datagram, HEADER_BYTES, Report, SPAN_MAX, Symbol, SymbolKind, ahead};
use super::{
    BLOCK_SAMPLES_MAX, FRAGMENTS_MAX, GUARD_LEAST, GroupConfig, MemberId, Membership, PARITY_SHARE_MAX,
    ROUND_TRIP_PRIOR,
};
use crate::erasure::{self, PARITY_SYMBOLS_MAX};
use crate::stream::{Local, Outgoing};
use crate::wire::{FIRST_PARITY, SYMBOL_HEADER_BYTES, symbol_of};

/// Blocks kept for repair.
const BLOCKS_LIMIT: usize = 256;
/// Bytes of their symbols.
const HELD_BYTES_MAX: usize = 16 << 20;
/// Times that a block leaves to ask for parity and get it, if it still has so many samples then.
const ROUNDS: i64 = 3;
const BLOCK_ENOUGH: u8 = 8;
/// Parity that a receiver needs with more than this probability is sent unasked, by how often there is still time to ask.
const UNASKED_SHARES: [f64; 2] = [0.1, 0.8];
/// Parity that may be saved up.
const PARITY_SAVED_LIMIT: f64 = 64.0;
/// When no receiver hears the group, it is tried so often.
const PROBE_INTERVAL: Span = Span::from_s(1);
/// A receiver that joins is asked whether it hears the group before there is a sample: so many times, twice as long apart each time.
const HAILS: u32 = 6;
const HAIL_INTERVAL_FIRST: Span = Span::from_ms(50);
/// Bounds of a datagram: what every host must take (RFC 791), and a jumbo frame.
const DATAGRAM_BYTES: std::ops::RangeInclusive<usize> = 512..=9_000;
/// Of requests without time for another; the share of them that is assumed at least.
const LAST_SHARE_LEAST: f64 = 1e-3;
/// The most that a request without time for another may fail with.
const LAST_FAILS_MAX: f64 = 0.05;

/// Counters of a sender to a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderCounters {
    /// Samples given out for sending.
    pub samples: u64,
    /// Their datagrams.
    pub datagrams: u64,
    /// Parity datagrams sent unasked.
    pub parity_unasked: u64,
    /// Parity datagrams that were asked for.
    pub parity_asked: u64,
    /// Bytes of all of them, without what an envelope adds.
    pub bytes: u64,
    /// Reports taken in.
    pub reports: u64,
    /// Requests in them.
    pub asks: u64,
    /// Requests that came too late, or of blocks no longer here.
    pub asks_late: u64,
    /// Reports of what was never sent, of nodes that are no members, or requests that contradict what was sent.
    pub impossible: u64,
    /// Times that parity was wanted, but more than [`PARITY_SHARE_MAX`] had been sent.
    pub parity_refused: u64,
    /// Datagrams of data not sent because their deadline had passed.
    pub expired: u64,
    /// Samples not sent because the path to the slowest receiver is full.
    pub held_back: u64,
    /// Samples left to links because no receiver hears the group, or because they are too long or too many.
    pub left_to_links: u64,
}

/// The sending end of a stream to a group. See [`group`](crate::group).
#[derive(Debug)]
pub struct GroupSender {
    config: GroupConfig,
    members: Members,
    /// Numbered from `first` without gaps.
    blocks: VecDeque<Block>,
    first: u32,
    held_bytes: usize,
    interval: Option<Span>,
    last_at: Option<Instant<Local>>,
    probe_at: Instant<Local>,
    hail_at: Instant<Local>,
    hails_left: u32,
    parity_saved: f64,
    rate: GroupRate,
    /// Between samples as they are offered, and datagrams of one.
    offered: Option<(Span, f64)>,
    offered_at: Option<Instant<Local>>,
    /// Share of blocks with a request that left no time for another.
    last_share: f64,
    counters: SenderCounters,
    log: Log<Event>,
}

#[derive(Debug)]
struct Block {
    /// Data symbols it is meant to have; 0: it is not repaired.
    planned: u8,
    symbols: Vec<Vec<u8>>,
    /// Data symbols given out.
    sent: usize,
    /// Packets of the parity symbols given out; how many are to be, and how many of those without being asked for.
    parity_packets: Vec<u32>,
    decided: u8,
    unasked: u8,
    /// Between its samples.
    interval: Span,
    /// No data symbol is added after this.
    closes_at: Instant<Local>,
    is_closed: bool,
    first_deadline: Instant<Local>,
    last_deadline: Instant<Local>,
    had_last_request: bool,
}

impl GroupSender {
    /// A stream to a group that no node has joined.
    pub fn new(config: GroupConfig, now: Instant<Local>) -> GroupSender {
        let datagram_bytes_max =
            config.datagram_bytes_max.clamp(*DATAGRAM_BYTES.start(), *DATAGRAM_BYTES.end());
        GroupSender {
            config: GroupConfig { datagram_bytes_max, ..config },
            members: Members::default(),
            blocks: VecDeque::new(),
            first: 0,
            held_bytes: 0,
            interval: None,
            last_at: None,
            probe_at: now,
            hail_at: now,
            hails_left: 0,
            parity_saved: PARITY_SAVED_LIMIT,
            rate: GroupRate::new(now),
            offered: None,
            offered_at: None,
            last_share: LAST_SHARE_LEAST,
            counters: SenderCounters::default(),
            log: Log::default(),
        }
    }

    /// A node that reads the stream has come. False if there are too many; it is to be served by a link.
    pub fn join(&mut self, member: MemberId) -> bool {
        let is_member = self.members.join(member);
        if is_member {
            (self.hails_left, self.hail_at) = (HAILS, Instant::MIN);
        }
        is_member
    }

    /// It reads no more.
    pub fn leave(&mut self, member: MemberId) {
        self.members.leave(member);
    }

    /// Whether what is sent to the group reaches it: it reports, and costs the others no more than is fair. A member that is not
    /// served must be sent the sample by a link.
    pub fn serves(&self, member: MemberId) -> bool {
        self.members.hears(member)
    }

    /// Queues a sample for the group. False if it is left to links: it is too long, there is no room, or nobody
    /// hears the group and it is not yet time to try again.
    pub fn send(&mut self, sample: &Outgoing<'_>, now: Instant<Local>) -> bool {
        self.handle_timeout(now);
        let fragment_max = self.config.datagram_bytes_max - HEADER_BYTES - SYMBOL_HEADER_BYTES;
        let count = sample.payload.len().div_ceil(fragment_max).max(1);
        self.note_offer(count, now);
        if !self.rate.allows(now) {
            self.counters.held_back += 1;
            self.log.note(|| Event::HeldBack { sequence: sample.sequence });
            return true;
        }
        self.observe(now);
        let cost = sample.payload.len() + count * SYMBOL_HEADER_BYTES;
        let is_probe = !self.members.serves_any();
        let fits = count <= FRAGMENTS_MAX && self.held_bytes + cost <= HELD_BYTES_MAX;
        if !fits || self.blocks.len() >= BLOCKS_LIMIT || is_probe && now < self.probe_at {
            self.close_open();
            self.counters.left_to_links += 1;
            let trigger = if is_probe { Left::Unheard } else { Left::DoesNotFit };
            self.log.note(|| Event::LeftToLinks { sequence: sample.sequence, trigger });
            return false;
        }
        self.probe_at = now + PROBE_INTERVAL;
        self.counters.samples += 1;
        self.held_bytes += cost;
        let deadline_at = self.config.bound.map_or(now, |bound| now + (bound.deadline - sample.age));
        // A sample of several fragments is a block by itself.
        if count > 1 || self.config.bound.is_none() {
            self.close_open();
        }
        if self.blocks.back().is_none_or(|block| block.is_closed) {
            self.open(count, deadline_at, now);
        }
        let interval = self.interval;
        let number = self.first.wrapping_add(self.blocks.len() as u32).wrapping_sub(1);
        let Some(block) = self.blocks.back_mut() else { return false };
        let (sequence, fragments) = (sample.sequence, count as u16);
        self.log.note(|| Event::Taken { sequence, block: number, pieces: fragments });
        for index in 0..count as u16 {
            block.symbols.push(symbol_of(sample, index, count as u16));
        }
        block.last_deadline = block.last_deadline.max(deadline_at);
        // Two intervals without a sample: no more will come in time.
        block.closes_at = now + interval.unwrap_or(Span::ZERO) * 2;
        if block.symbols.len() >= usize::from(block.planned.max(1)) {
            self.close_open();
        }
        true
    }

    /// A report of a member. What cannot be is ignored and counted.
    pub fn handle_report(&mut self, member: MemberId, report: &Report, now: Instant<Local>) {
        self.handle_timeout(now);
        self.counters.reports += 1;
        let block = self.planned().into();
        if !self.members.handle_report(member, report, block, now) {
            self.counters.impossible += 1;
            return;
        }
        let limit_before = self.rate.limit();
        let slowest = self.rate.slowest();
        if slowest.is_some_and(|slowest| !self.members.hears(slowest)) {
            self.rate.forget();
        }
        // Without parity there is none to leave out, and what a full path loses is all there is to lose.
        if self.config.bound.is_some() && self.members.slowest(slowest) == Some(member) {
            let offered_per_s =
                self.offered.map_or(0.0, |(interval, datagrams)| datagrams / interval.as_s_f64().max(1e-6));
            self.rate.handle_report(member, (report.newest, report.received), offered_per_s, now);
        }
        let (trigger, per_s) = self.rate.limit();
        if (trigger, per_s) != limit_before {
            self.log.note(|| Event::RateChanged { per_s, trigger });
        }
        if self.members.hears(member) {
            report.asks.iter().for_each(|ask| self.handle_ask(member, ask, report.newest, now));
        }
    }

    /// Appends the next datagram for the group. Call again until `false`.
    pub fn poll_transmit(&mut self, now: Instant<Local>, out: &mut Vec<u8>) -> bool {
        self.handle_timeout(now);
        let before = out.len();
        let round_trip = self.members.round_trip().unwrap_or(Span::ZERO);
        let Some((place, kind)) = self.next() else { return self.hail(now, out) };
        let number = self.first.wrapping_add(place as u32);
        let block = &mut self.blocks[place];
        let mut parity = Vec::new();
        let (bytes, left) = match kind {
            SymbolKind::Data { index, .. } => {
                block.sent += 1;
                self.counters.datagrams += 1;
                let share = self.rate.parity_share();
                let most = share.map_or(PARITY_SAVED_LIMIT, |share| share * f64::from(BLOCK_SAMPLES_MAX));
                self.parity_saved = (self.parity_saved + share.unwrap_or(PARITY_SHARE_MAX)).min(most);
                let after = i64::from(block.planned.saturating_sub(index + 1));
                (&block.symbols[usize::from(index)], block.interval * after)
            }
            SymbolKind::Parity { index, .. } => {
                let symbols = block.symbols.iter().enumerate().map(|(at, symbol)| (at as u8, &symbol[..]));
                // The index is below the limit, and no symbol is longer than a datagram.
                let _ = erasure::parity_of(index, symbols, &mut parity);
                self.parity_saved -= 1.0;
                let unasked = index < block.unasked;
                self.counters.parity_unasked += u64::from(unasked);
                self.counters.parity_asked += u64::from(!unasked);
                (&parity, Span::ZERO)
            }
        };
        let packet = self.members.sent(now);
        self.rate.sent();
        if matches!(kind, SymbolKind::Parity { .. }) {
            block.parity_packets.push(packet);
        }
        let (unasked, symbol_bytes) = (block.unasked, bytes.len());
        self.log.note(|| {
            let (symbol, trigger) = match kind {
                SymbolKind::Data { index, .. } => (index, Purpose::Data),
                SymbolKind::Parity { index, .. } => {
                    let trigger = if index < unasked { Purpose::ParityUnasked } else { Purpose::ParityAsked };
                    (FIRST_PARITY.saturating_add(index), trigger)
                }
            };
            let bytes = (symbol_bytes + HEADER_BYTES) as u32;
            Event::Sent { packet_number: packet, block: number, symbol, bytes, trigger }
        });
        let decided = block.decided.max(block.unasked);
        let report_every_s = self.members.report_every_s();
        let symbol = Symbol { packet, block: number, kind, decided, round_trip, left, report_every_s, bytes };
        let GroupConfig { session, writer, .. } = self.config;
        Datagram { session, writer, body: Body::Symbol(symbol) }.encode(out);
        self.counters.bytes += (out.len() - before) as u64;
        true
    }

    /// When [`poll_transmit`](GroupSender::poll_transmit) may have something although nothing was put in.
    pub fn poll_timeout(&self) -> Option<Instant<Local>> {
        let closes_at = self.blocks.back().filter(|block| !block.is_closed).map(|block| block.closes_at);
        let hail_at = (self.hails_left > 0).then_some(self.hail_at);
        closes_at.into_iter().chain(hail_at).min()
    }

    /// A receiver is set apart or taken back, each change once.
    pub fn poll_membership(&mut self) -> Option<Membership> {
        let change = self.members.poll_event()?;
        self.log.note(|| match change {
            Membership::Apart { member, loss } => Event::Apart { member, loss_ppm: (loss * 1e6) as u32 },
            Membership::Back { member } => Event::Back { member },
        });
        Some(change)
    }

    /// Trace of this sender: start it to keep events, and poll it. An event costs one branch until then.
    pub fn trace(&mut self) -> &mut Log<Event> {
        &mut self.log
    }

    /// Counters so far.
    pub fn counters(&self) -> SenderCounters {
        self.counters
    }

    /// Bytes held for repair.
    pub fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    /// Asks which nodes hear the group, with a symbol without bytes: else the first samples would go by links to all.
    fn hail(&mut self, now: Instant<Local>, out: &mut Vec<u8>) -> bool {
        if self.hails_left == 0 || now < self.hail_at {
            return false;
        }
        if self.members.all_hear() {
            self.hails_left = 0;
            return false;
        }
        self.hail_at = now + HAIL_INTERVAL_FIRST * (1 << (HAILS - self.hails_left));
        self.hails_left -= 1;
        let before = out.len();
        let packet = self.members.sent(now);
        self.log.note(|| Event::Hailed { packet_number: packet });
        let symbol = Symbol {
            packet,
            block: self.first.wrapping_add(self.blocks.len() as u32),
            kind: SymbolKind::Data { index: 0, planned: 0 },
            decided: 0,
            round_trip: Span::ZERO,
            left: Span::ZERO,
            report_every_s: self.members.report_every_s(),
            bytes: &[],
        };
        let GroupConfig { session, writer, .. } = self.config;
        Datagram { session, writer, body: Body::Symbol(symbol) }.encode(out);
        self.counters.bytes += (out.len() - before) as u64;
        true
    }

    fn handle_timeout(&mut self, now: Instant<Local>) {
        self.log.at(now);
        if self.blocks.back().is_some_and(|block| !block.is_closed && block.closes_at <= now) {
            self.close_open();
        }
        let one_way = self.one_way();
        while let Some(block) = self.blocks.front() {
            let unsent = block.symbols.len() - block.sent;
            let is_over = match block.planned {
                0 => unsent == 0,
                // What has not left yet does so until its deadline: the round trip may be shorter by now, and without data no report would say so.
                _ if unsent > 0 => block.is_closed && block.last_deadline < now,
                _ => block.is_closed && block.last_deadline < now + one_way,
            };
            if !is_over {
                break;
            }
            self.counters.expired += unsent as u64;
            if unsent > 0 {
                let block = self.first;
                self.log.note(|| Event::Expired { block, datagrams: unsent as u32 });
            }
            let requested = f64::from(u8::from(block.had_last_request));
            self.last_share = (self.last_share + (requested - self.last_share) / 64.0).max(LAST_SHARE_LEAST);
            self.held_bytes -= block.symbols.iter().map(Vec::len).sum::<usize>();
            self.blocks.pop_front();
            self.first = self.first.wrapping_add(1);
        }
    }

    fn handle_ask(&mut self, member: MemberId, ask: &Ask, newest: u32, now: Instant<Local>) {
        self.counters.asks += 1;
        let trigger = self.answer(member, ask, newest, now);
        self.log.note(|| Event::AskReceived { member, block: ask.block, held: ask.held, trigger });
    }

    fn answer(&mut self, member: MemberId, ask: &Ask, newest: u32, now: Instant<Local>) -> Answer {
        let arrives = now + self.one_way();
        let another = arrives + self.round();
        let (loss, last_share) = (self.members.loss(member), self.last_share);
        let target = self.config.bound.map_or(1.0, |bound| bound.loss_target);
        let place = usize::try_from(ahead(ask.block, self.first)).ok();
        let Some(block) = place.and_then(|place| self.blocks.get_mut(place)) else {
            self.counters.asks_late += 1;
            return Answer::Late;
        };
        if ask.settled > block.decided.max(block.unasked) || block.planned == 0 {
            self.counters.impossible += 1;
            return Answer::Impossible;
        }
        // Of an open block what lacks is not known yet; a receiver that lacks it asks again.
        let lacking = block.symbols.len().saturating_sub(ask.held.into());
        if !block.is_closed || arrives > block.last_deadline || lacking == 0 {
            let is_late = arrives > block.last_deadline;
            self.counters.asks_late += u64::from(is_late);
            return if is_late { Answer::Late } else { Answer::Open };
        }
        let mut wanted = lacking as u8;
        if another > block.first_deadline {
            block.had_last_request = true;
            let fails = (target / last_share).clamp(f64::MIN_POSITIVE, LAST_FAILS_MAX);
            wanted = sent_once(lacking, loss, fails);
        }
        // Parity of which nothing was announced, because all of it was lost, is known to be by what arrived after it.
        let passed = block.parity_packets.iter().filter(|packet| ahead(newest, **packet) >= 0).count();
        let decided = passed.max(ask.settled.into()) + usize::from(wanted);
        block.decided = block.decided.max(decided.min(PARITY_SYMBOLS_MAX) as u8);
        Answer::Granted
    }

    /// The next symbol: data before parity, old blocks before new ones.
    fn next(&mut self) -> Option<(usize, SymbolKind)> {
        let has_data = |block: &Block| block.sent < block.symbols.len();
        if let Some(place) = self.blocks.iter().position(has_data) {
            let block = &self.blocks[place];
            return Some((place, SymbolKind::Data { index: block.sent as u8, planned: block.planned }));
        }
        let place = self.blocks.iter().position(|block| block.parity_packets.len() < block.decided.into())?;
        if self.parity_saved < 1.0 {
            // Data that follows earns some, if that is still in time.
            self.counters.parity_refused += 1;
            let block = self.first.wrapping_add(place as u32);
            self.log.note(|| Event::ParityWithheld { block });
            return None;
        }
        let block = &self.blocks[place];
        let index = block.parity_packets.len() as u8;
        Some((place, SymbolKind::Parity { index, symbols: block.symbols.len() as u8 }))
    }

    fn open(&mut self, count: usize, deadline_at: Instant<Local>, now: Instant<Local>) {
        let planned = match self.config.bound {
            None => 0,
            Some(_) if count > 1 => count as u8,
            Some(_) => self.planned(),
        };
        let interval = if count > 1 { Span::ZERO } else { self.interval.unwrap_or(Span::ZERO) };
        let unasked = if planned == 0 { 0 } else { self.unasked(planned, interval) };
        self.blocks.push_back(Block {
            planned,
            symbols: Vec::with_capacity(planned.into()),
            sent: 0,
            parity_packets: Vec::new(),
            // Announced with the data, sent behind it.
            decided: 0,
            unasked,
            interval,
            closes_at: now,
            is_closed: false,
            first_deadline: deadline_at,
            last_deadline: deadline_at,
            had_last_request: false,
        });
    }

    fn close_open(&mut self) {
        let Some(block) = self.blocks.back().filter(|block| !block.is_closed) else { return };
        let (symbols, interval) = (block.symbols.len() as u8, block.interval);
        // Receivers wait for more, and for the parity that was announced; some parity signals that this is all.
        let ends_early = symbols < block.planned;
        let unasked = if ends_early {
            self.unasked(symbols, interval).max(block.unasked).max(1)
        } else {
            block.unasked
        };
        if let Some(block) = self.blocks.back_mut() {
            (block.is_closed, block.unasked) = (true, unasked);
            block.decided = block.decided.max(unasked);
        }
    }

    /// Samples of a block that leaves time to ask: three times if that does not make blocks too short, else less often.
    fn planned(&self) -> u8 {
        let fits = |rounds| self.samples_beside(rounds);
        let enough = |rounds| fits(rounds) >= BLOCK_ENOUGH || fits(rounds) * 2 >= fits(rounds - 1);
        let rounds = (2..=ROUNDS).rev().find(|rounds| fits(*rounds) > 0 && enough(*rounds));
        match rounds {
            Some(rounds) => fits(rounds),
            None if fits(1) > 0 => fits(1),
            None => fits(0).max(1),
        }
    }

    /// Samples of a block behind which parity can be asked for so often; 0: not even of one.
    fn samples_beside(&self, rounds: i64) -> u8 {
        let Some(bound) = self.config.bound else { return 1 };
        let spare = bound.deadline - self.one_way() - GUARD_LEAST - self.round() * rounds;
        if spare < Span::ZERO {
            return 0;
        }
        // Before two samples it is not known when the next will follow.
        let interval = self.interval.unwrap_or(SPAN_MAX * 2).ns().max(1);
        (spare.min(SPAN_MAX).ns() / interval + 1).clamp(1, BLOCK_SAMPLES_MAX.into()) as u8
    }

    /// Parity to send behind a block before any receiver asks.
    fn unasked(&self, symbols: u8, interval: Span) -> u8 {
        let Some(bound) = self.config.bound else { return 0 };
        let filled = interval * i64::from(symbols.saturating_sub(1));
        let rounds = (bound.deadline - filled - self.one_way()).ns() / self.round().ns().max(1);
        if rounds < 1 {
            // No receiver can ask: each for itself must get enough.
            let losses = self.members.losses_with_bursts();
            let parity = losses.map(|losses| parity_alone(losses, symbols.into(), bound.loss_target));
            return parity.max().unwrap_or(0);
        }
        let share = UNASKED_SHARES[usize::from(rounds > 1)];
        parity_for(&self.members.losses(), symbols.into(), share)
    }

    fn note_offer(&mut self, datagrams: usize, now: Instant<Local>) {
        let Some(last) = self.offered_at.replace(now) else { return };
        let latest = (now - last, datagrams as f64);
        let (interval, mean) = self.offered.unwrap_or(latest);
        self.offered = Some((interval + (latest.0 - interval) / 8, mean + (latest.1 - mean) / 8.0));
    }

    fn observe(&mut self, now: Instant<Local>) {
        if let Some(last) = self.last_at.replace(now) {
            let interval = now - last;
            let smoothed = self.interval.unwrap_or(interval);
            self.interval = Some(smoothed + (interval - smoothed) / 8);
        }
    }

    fn round_trip(&self) -> Span {
        self.members.round_trip().unwrap_or(ROUND_TRIP_PRIOR)
    }

    fn one_way(&self) -> Span {
        self.round_trip() / 2
    }

    /// From the end of a block to parity that was asked for, without the way of the block itself.
    fn round(&self) -> Span {
        self.round_trip() + GUARD_LEAST * 2
    }
}
