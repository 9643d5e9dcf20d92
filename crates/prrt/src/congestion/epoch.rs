//! Statistics of some round trips of datagrams with deadlines: the measure of the rate limit.

use noctule_timebase::{Instant, Span};

use crate::stream::Local;

/// Before the next test after one that was not passed, twice as long each time: a test costs a small stream some ten samples.
pub(super) const RETRY_FIRST: Span = Span::from_s(5);
pub(super) const RETRY_MOST: Span = Span::from_s(80);
pub(super) const NOTHING: Total =
    Total { length: Span::ZERO, arrived_bytes: 0, unmarked_bytes: 0.0, sent_bytes: 0 };

/// Sums over the datagrams of one epoch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Epoch {
    pub(super) began: Instant<Local>,
    pub(super) length: Span,
    pub(super) arrived_bytes: usize,
    pub(super) sent_bytes: usize,
    pub(super) arrived: u32,
    pub(super) lost: u32,
    /// Of those that arrived: a queue that marks all but drops them.
    pub(super) marked: u32,
    pub(super) round_trips: u32,
    pub(super) least: Option<Span>,
}

/// Of several epochs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Total {
    pub(super) length: Span,
    pub(super) arrived_bytes: usize,
    pub(super) unmarked_bytes: f64,
    pub(super) sent_bytes: usize,
}

impl Epoch {
    pub(super) fn new(began: Instant<Local>) -> Epoch {
        Epoch {
            began,
            length: Span::ZERO,
            arrived_bytes: 0,
            sent_bytes: 0,
            arrived: 0,
            lost: 0,
            marked: 0,
            round_trips: 0,
            least: None,
        }
    }

    /// What arrived without a mark.
    pub(super) fn unmarked_bytes(&self) -> f64 {
        let marked = f64::from(self.marked.min(self.arrived)) / f64::from(self.arrived.max(1));
        self.arrived_bytes as f64 * (1.0 - marked)
    }

    /// Share of its packets that were lost, or marked in place of that.
    pub(super) fn loss(&self) -> f64 {
        f64::from(self.lost + self.marked.min(self.arrived)) / f64::from((self.lost + self.arrived).max(1))
    }
}

impl Total {
    pub(super) fn add(&mut self, epoch: &Epoch) {
        self.length += epoch.length;
        self.arrived_bytes += epoch.arrived_bytes;
        self.unmarked_bytes += epoch.unmarked_bytes();
        self.sent_bytes += epoch.sent_bytes;
    }

    pub(super) fn bytes_per_s(&self, bytes: usize) -> f64 {
        bytes as f64 / self.length.as_s_f64().max(1e-6)
    }
}
