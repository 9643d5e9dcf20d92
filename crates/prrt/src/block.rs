//! A source block of samples with a deadline (FEC with retransmission, hybrid ARQ): its source symbols and what repairs them.
//!
//! A source symbol is a datagram from the length of its sample on (see the specification). Any as many different
//! symbols as the block has source symbols give the block, repair symbols (parity) included. A block of one symbol has no
//! parity: the symbol is retransmitted (ARQ).

use noctule_timebase::{Instant, Span};

use crate::path::{Path, Pending};
use crate::repair::{Prospect, Stake, Step};
use crate::stream::Local;
use crate::wire::FIRST_PARITY;

/// Parity symbols of a block at most: as many as there are numbers for.
const PARITY_MAX: u8 = 127;

/// News of a block of so many symbols is looked at together, and an extra that the budget does not allow not before that.
const MANY_SYMBOLS: usize = 8;
pub(crate) const NEWS_BUNDLED: Span = Span::from_us(500);

/// The symbols of one block, and what is known of each.
#[derive(Debug)]
pub(crate) struct Block {
    /// By when it must arrive.
    pub(crate) deadline_at: Instant<Local>,
    /// Number of the sample, or of the first one, and how many there are. Several blocks may be of one sample.
    pub(crate) sequence: u64,
    pub(crate) samples: u32,
    /// When to look at it again.
    pub(crate) due: Instant<Local>,
    /// After this nothing arrives in time, as last reckoned.
    latest: Instant<Local>,
    /// When it is closed although symbols are missing.
    pub(crate) close_at: Instant<Local>,
    /// Its first datagram goes at this time, each further one so much later.
    pub(crate) begin: Instant<Local>,
    pub(crate) spacing: Span,
    /// Samples lost with it on average, as last computed.
    pub(crate) risk: f64,
    /// This host stalled meanwhile: what becomes of it says little of the channel.
    stalled: bool,
    /// A datagram of it was declared lost.
    has_lost: bool,
    /// A datagram of it came too late.
    came_late: bool,
    symbols: Vec<Vec<u8>>,
    /// No more symbols will be added.
    is_closed: bool,
    /// Its unsent symbols stay unsent.
    is_abandoned: bool,
    /// Data symbols never sent yet begin here.
    unsent: usize,
    /// Symbols that arrived, by number.
    arrived: [u64; 4],
    arrived_count: usize,
    parities: u8,
    extras: u8,
    /// Datagrams of unknown fate, in rising order.
    pending: Vec<Pending>,
    /// Samples of one datagram that were lost when they were sent for the first time.
    firsts_lost: u32,
    /// Data symbols known to be lost.
    lost: Vec<u8>,
    last_sent: Instant<Local>,
}

impl Block {
    pub(crate) fn new(sequence: u64, deadline_at: Instant<Local>, now: Instant<Local>) -> Block {
        Block {
            deadline_at,
            sequence,
            samples: 0,
            due: now,
            latest: deadline_at,
            close_at: Instant::MAX,
            begin: now,
            spacing: Span::ZERO,
            risk: 0.0,
            stalled: false,
            has_lost: false,
            came_late: false,
            symbols: Vec::new(),
            is_closed: false,
            is_abandoned: false,
            unsent: 0,
            arrived: [0; 4],
            arrived_count: 0,
            parities: 0,
            extras: 0,
            pending: Vec::new(),
            firsts_lost: 0,
            lost: Vec::new(),
            last_sent: now,
        }
    }

    pub(crate) fn add(&mut self, symbol: Vec<u8>) {
        self.symbols.push(symbol);
    }

    pub(crate) fn close(&mut self) {
        self.is_closed = true;
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Data symbols so far.
    pub(crate) fn symbols(&self) -> u8 {
        self.symbols.len() as u8
    }

    /// Bytes of its symbols.
    pub(crate) fn bytes(&self) -> usize {
        self.symbols.iter().map(Vec::len).sum()
    }

    /// Bytes of the longest of them.
    pub(crate) fn longest(&self) -> usize {
        self.symbols.iter().map(Vec::len).max().unwrap_or(0)
    }

    pub(crate) fn symbol(&self, number: u8) -> Option<&[u8]> {
        self.symbols.get(usize::from(number)).map(Vec::as_slice)
    }

    /// All data symbols with their numbers.
    pub(crate) fn data(&self) -> impl Iterator<Item = (u8, &[u8])> {
        (0u8..).zip(self.symbols.iter().map(Vec::as_slice))
    }

    pub(crate) fn is_done(&self) -> bool {
        self.is_abandoned || self.is_closed && self.needed() == 0
    }

    /// It is too late for what was not sent.
    pub(crate) fn abandon(&mut self) {
        self.is_abandoned = true;
    }

    pub(crate) fn is_abandoned(&self) -> bool {
        self.is_abandoned
    }

    /// A symbol of it has been sent.
    pub(crate) fn has_begun(&self) -> bool {
        self.unsent > 0
    }

    /// This host stalled from then to then.
    pub(crate) fn handle_stall(&mut self, from: Instant<Local>, until: Instant<Local>) {
        self.stalled |= self.begin < until && from < self.deadline_at;
    }

    /// Whether a datagram of it was.
    pub(crate) fn has_lost(&self) -> bool {
        self.has_lost
    }

    /// Whether this host did meanwhile, as far as noticed.
    pub(crate) fn has_stalled(&self) -> bool {
        self.stalled
    }

    /// Whether what became of it is this host's doing rather than the channel's, as far as is known: it stalled, or it was too
    /// late to weigh the risk.
    pub(crate) fn is_excused(&self) -> bool {
        self.stalled || self.came_late || self.risk == 0.0 && self.needed() > 0
    }

    fn needed(&self) -> usize {
        self.symbols.len().saturating_sub(self.arrived_count)
    }

    /// A data symbol never sent yet.
    pub(crate) fn next_unsent(&self) -> Option<u8> {
        (self.unsent < self.symbols.len()).then_some(self.unsent as u8)
    }

    /// When that is to be sent.
    pub(crate) fn unsent_at(&self) -> Instant<Local> {
        self.begin + self.spacing * self.unsent as i64
    }

    /// The next symbol to send once more: one that is lost, else parity. `None` if there is no more of it.
    pub(crate) fn next_extra(&mut self) -> Option<u8> {
        if self.symbols.len() == 1 {
            return Some(0);
        }
        while let Some(symbol) = self.lost.pop() {
            if !self.has_arrived(symbol) {
                return Some(symbol);
            }
        }
        let parity = self.parities;
        (parity < PARITY_MAX).then(|| {
            self.parities += 1;
            FIRST_PARITY + parity
        })
    }

    /// A symbol is sent in the datagram `packet`. Gives how often extra ones were before, if it is one.
    pub(crate) fn sent(&mut self, symbol: u8, packet: u64, (now, ack_delay): (Instant<Local>, Span)) -> u8 {
        let is_first = usize::from(symbol) == self.unsent;
        // It knows when samples come, not of how many fragments they are nor what is retransmitted.
        let is_expected = is_first && self.samples as usize == self.symbols.len();
        if is_first {
            self.unsent += 1;
        } else {
            self.extras = self.extras.saturating_add(1);
        }
        // Whatever is retransmitted is acknowledged at once.
        let ack_delay = if is_first { ack_delay } else { Span::ZERO };
        self.pending.push(Pending { packet, sent_at: now, is_expected, ack_delay });
        (self.last_sent, self.due) = (now, now);
        self.extras
    }

    pub(crate) fn handle_arrival(&mut self, symbol: u8, packet: u64, now: Instant<Local>) {
        self.pending.retain(|pending| pending.packet != packet);
        if !self.has_arrived(symbol) {
            self.arrived[usize::from(symbol / 64)] |= 1 << (symbol % 64);
            self.arrived_count += 1;
        }
        self.due = self.after_news(now);
    }

    pub(crate) fn handle_loss(&mut self, symbol: u8, packet: u64, now: Instant<Local>) {
        let is_first = |pending: &Pending| pending.packet == packet && pending.is_expected;
        self.firsts_lost += u32::from(self.pending.iter().any(is_first));
        self.has_lost = true;
        self.pending.retain(|pending| pending.packet != packet);
        if symbol < FIRST_PARITY && !self.has_arrived(symbol) && !self.lost.contains(&symbol) {
            self.lost.push(symbol);
        }
        self.due = self.after_news(now);
    }

    /// A datagram of it came after the deadline: nothing more helps, and the channel did not lose it.
    pub(crate) fn handle_late(&mut self, packet: u64) {
        self.pending.retain(|pending| pending.packet != packet);
        self.came_late = true;
    }

    fn has_arrived(&self, symbol: u8) -> bool {
        self.arrived[usize::from(symbol / 64)] >> (symbol % 64) & 1 == 1
    }

    /// When to look again after news of it: more of the same may come, but not for ever.
    fn after_news(&self, now: Instant<Local>) -> Instant<Local> {
        let bundled = if self.symbols.len() < MANY_SYMBOLS { now } else { now + NEWS_BUNDLED };
        bundled.min(self.due).min(self.latest.max(now))
    }

    /// Whether to send more for it, now or later.
    pub(crate) fn step(&mut self, path: &Path, interval: Span, price: f64, now: Instant<Local>) -> Step {
        let [one_way, round] = path.long;
        let long = Path { one_way, round, ..*path };
        let path = if self.symbols.len() < MANY_SYMBOLS { path } else { &long };
        self.latest = self.deadline_at - path.one_way;
        if !self.is_closed {
            return Step::Wait(self.close_at.min(self.deadline_at));
        }
        let prospect = Prospect {
            now,
            latest: self.latest,
            // Behind a queue nothing takes the shortest way.
            hopeless: if path.is_limited { self.latest } else { self.deadline_at - path.soonest() },
            path,
            interval,
            needed: self.needed(),
            pending: &self.pending,
            last_sent: self.last_sent,
            was_lost: self.extras > 0,
            stake: self.stake(),
            price,
        };
        prospect.step()
    }

    /// Samples lost with it, as far as is known.
    pub(crate) fn failed(&self) -> u32 {
        match self.stake() {
            _ if self.needed() == 0 => 0,
            Stake::Sample => 1,
            Stake::Symbols { .. } => (self.symbols.len() - self.data_arrived()) as u32,
        }
    }

    /// Samples of one datagram that were lost when they were sent for the first time.
    pub(crate) fn firsts_lost(&self) -> u32 {
        self.firsts_lost
    }

    fn stake(&self) -> Stake {
        if self.samples <= 1 {
            return Stake::Sample;
        }
        // A data symbol that is neither there nor lost is pending.
        let pending = self.symbols.len().saturating_sub(self.data_arrived() + self.lost.len());
        let share = pending as f64 / self.pending.len().max(1) as f64;
        Stake::Symbols { lost: self.lost.len(), pending: share.min(1.0) }
    }

    fn data_arrived(&self) -> usize {
        let data = &self.arrived[..usize::from(FIRST_PARITY) / 64];
        data.iter().map(|bits| bits.count_ones() as usize).sum()
    }
}
