//! What is sent for one deadline: some data symbols, and whatever repairs them.
//!
//! A symbol is a datagram from the length of its sample on (see the specification). Any as many different
//! symbols as the block has data symbols give the block, parity symbols included. A block of one symbol has no
//! parity: the symbol is sent again.

use noctule_timebase::{Instant, Span};

use crate::gilbert::Gilbert;
use crate::repair::{Prospect, Step};
use crate::stream::Local;
use crate::wire::FIRST_PARITY;

/// Parity symbols of a block at most: as many as there are numbers for.
const PARITY_MAX: u8 = 127;

/// Of so many symbols that a block needs, one more is sent whenever one is found worth it.
const DECIDED_AT_ONCE: usize = 8;
/// News of a block of more symbols than that is looked at together.
const NEWS_BUNDLED: Span = Span::from_us(500);

/// See the module.
#[derive(Debug)]
pub(crate) struct Block {
    /// By when it must arrive.
    pub(crate) deadline_at: Instant<Local>,
    /// Number of the sample, or of the first one, and how many there are. Several blocks may be of one sample.
    pub(crate) sequence: u64,
    pub(crate) samples: u32,
    /// When to look at it again.
    pub(crate) due: Instant<Local>,
    /// When it is closed although symbols are missing.
    pub(crate) close_at: Instant<Local>,
    /// Its first datagram goes at this time, each further one so much later.
    pub(crate) begin: Instant<Local>,
    pub(crate) spacing: Span,
    /// Probability that it fails, as last computed.
    pub(crate) risk: f64,
    symbols: Vec<Vec<u8>>,
    /// No more symbols will be added.
    is_closed: bool,
    /// What was not sent will not be.
    is_abandoned: bool,
    /// Data symbols never sent yet begin here.
    unsent: usize,
    /// Symbols that arrived, by number.
    arrived: [u64; 4],
    arrived_count: usize,
    parities: u8,
    extras: u8,
    /// Datagrams that were decided on and not sent yet.
    owed: usize,
    /// Datagrams of unknown fate, in rising order.
    pending: Vec<Pending>,
    /// Data symbols known to be lost.
    lost: Vec<u8>,
    last_sent: Instant<Local>,
}

/// A datagram of unknown fate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pending {
    pub(crate) packet: u64,
    pub(crate) sent_at: Instant<Local>,
}

/// How the path is at the moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path {
    pub(crate) one_way: Span,
    /// From sending a datagram to hearing of it.
    pub(crate) round: Span,
    /// The newest datagram of known fate, and whether it was lost.
    pub(crate) known: (u64, bool),
    /// Number of the next datagram.
    pub(crate) next: u64,
    /// When the last feedback came.
    pub(crate) heard_at: Instant<Local>,
    pub(crate) channel: Gilbert,
    /// It bears less than was offered.
    pub(crate) is_limited: bool,
    /// One way without a queue.
    pub(crate) soonest: Span,
}

impl Block {
    pub(crate) fn new(sequence: u64, deadline_at: Instant<Local>, now: Instant<Local>) -> Block {
        Block {
            deadline_at,
            sequence,
            samples: 0,
            due: now,
            close_at: Instant::MAX,
            begin: now,
            spacing: Span::ZERO,
            risk: 0.0,
            symbols: Vec::new(),
            is_closed: false,
            is_abandoned: false,
            unsent: 0,
            arrived: [0; 4],
            arrived_count: 0,
            parities: 0,
            extras: 0,
            owed: 0,
            pending: Vec::new(),
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

    /// What to send once more: what is lost, else parity. `None` if there is no more of it.
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
    pub(crate) fn sent(&mut self, symbol: u8, packet: u64, now: Instant<Local>) -> u8 {
        if usize::from(symbol) == self.unsent {
            self.unsent += 1;
        } else {
            self.extras = self.extras.saturating_add(1);
            // In a long block several are decided on at once, so that what is computed stays in proportion.
            self.owed = self.owed.checked_sub(1).unwrap_or(self.needed() / DECIDED_AT_ONCE);
        }
        self.pending.push(Pending { packet, sent_at: now });
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
        self.pending.retain(|pending| pending.packet != packet);
        if symbol < FIRST_PARITY && !self.has_arrived(symbol) && !self.lost.contains(&symbol) {
            self.lost.push(symbol);
        }
        self.due = self.after_news(now);
    }

    fn has_arrived(&self, symbol: u8) -> bool {
        self.arrived[usize::from(symbol / 64)] >> (symbol % 64) & 1 == 1
    }

    /// When to look again after news of it.
    fn after_news(&self, now: Instant<Local>) -> Instant<Local> {
        if self.symbols.len() < DECIDED_AT_ONCE { now } else { now + NEWS_BUNDLED }
    }

    /// Whether to send more for it, now or later.
    pub(crate) fn step(&self, path: &Path, interval: Span, price: f64, now: Instant<Local>) -> Step {
        if !self.is_closed {
            return Step::Wait(self.close_at.min(self.deadline_at));
        }
        if self.owed > 0 && self.needed() > 0 {
            return Step::Send;
        }
        let prospect = Prospect {
            now,
            latest: self.deadline_at - path.one_way,
            path,
            interval,
            needed: self.needed(),
            pending: &self.pending,
            last_sent: self.last_sent,
            price,
        };
        prospect.step()
    }
}
