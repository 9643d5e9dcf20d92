//! Bounds of the misses and repairs of a session, computed from its cell alone: loss, deadline, loss target.
//!
//! Nothing here is fitted to seeds. A sample is missed if its first transmission is lost, and so is every repair that the deadline leaves
//! a round trip for. Repairs are what the lost datagrams ask for, and copies for those samples of which no acknowledgement can come in time.
#![allow(clippy::cast_precision_loss)]

use noctule_prrt::Order;
use noctule_timebase::Span;

use super::Cell;

/// Standard deviations beyond the mean that a session may be: one in thirty thousand is, were it normal.
const DEVIATIONS: f64 = 4.0;
/// Repairs may be this many times what the loss asks for: the sender learns from few losses how the channel is.
const REPAIRS_FACTOR: f64 = 1.25;
/// Repairs for each datagram of data at most, and those that a stream may send before anything arrived: the budget of `docs/spec/prrt.md`.
const BUDGET_PER_DATAGRAM: f64 = 4.0;
const BUDGET_FIRST: f64 = 32.0;
/// A datagram carries so much of a long sample, or a little more.
const FRAGMENT_BYTES: usize = 1_300;
/// Time that both ends need to notice a loss and to answer: late wakes of threads, and the least time after which a datagram is missed.
const REACTION: Span = Span::from_ms(2);
/// Time until the path is known, in round trips.
const ROUND_TRIPS_TO_LEARN: f64 = 1.5;

/// How many of something there are on average, and how they scatter.
#[derive(Clone, Copy, Debug, Default)]
pub struct Count {
    mean: f64,
    variance: f64,
}

impl Count {
    pub fn most(&self) -> f64 {
        self.mean + DEVIATIONS * self.variance.sqrt()
    }

    /// So many trials of this probability, which follow each other in a channel that remembers (0 to 1) its state.
    fn of_trials(trials: f64, probability: f64, memory: f64) -> Count {
        let clumping = (1.0 + memory) / (1.0 - memory);
        let variance = trials * probability * (1.0 - probability).max(0.0) * clumping;
        Count { mean: trials * probability, variance }
    }
}

impl std::ops::Add for Count {
    type Output = Count;

    fn add(self, other: Count) -> Count {
        Count { mean: self.mean + other.mean, variance: self.variance + other.variance }
    }
}

/// Upper bounds on what a session misses and spends.
#[derive(Clone, Copy, Debug, Default)]
pub struct Expected {
    /// Whether the deadline leaves time to repair what is lost.
    pub repairs_in_time: bool,
    /// Samples that are not in time.
    pub missed: Count,
    /// Retransmissions and repair symbols.
    pub repairs: Count,
}

impl Expected {
    /// Sentence on the bound that was exceeded, if one was.
    pub fn beyond(&self, missed: u64, repairs: u64) -> Option<String> {
        let (missed_most, repairs_most) = (self.missed.most(), self.repairs.most());
        if missed as f64 > missed_most {
            return Some(format!("{missed} missed, at most {missed_most:.1} are expected"));
        }
        (repairs as f64 > repairs_most)
            .then(|| format!("{repairs} repairs, at most {repairs_most:.1} are expected"))
    }

    pub fn of(cell: &Cell, samples: u64) -> Expected {
        let channel = Channel::of(cell);
        let learning = channel.learning(samples as f64);
        let settled = samples as f64 - learning;
        let first = 1.0 - channel.first_in_time();
        let missed = Count::of_trials(learning, first, channel.memory)
            + Count::of_trials(settled, channel.missed(), channel.memory)
            + Count { mean: channel.lost_with_a_restart(), variance: 0.0 };
        let lives = 1.0 + f64::from(u8::from(cell.restarts));
        let asked = Count::of_trials(settled * channel.fragments, channel.repairs_asked(), channel.memory);
        let at_first = BUDGET_FIRST * lives + BUDGET_PER_DATAGRAM * learning * channel.fragments;
        let repairs = Count { mean: asked.mean * REPAIRS_FACTOR + at_first, variance: asked.variance };
        Expected { repairs_in_time: channel.repairs_in_time(), missed, repairs }
    }
}

/// Sessions together: the more there are, the less is chance.
#[derive(Clone, Copy, Debug, Default)]
pub struct Together {
    pub missed: u64,
    pub repairs: u64,
    pub expected: Expected,
}

impl Together {
    pub fn add(&mut self, expected: &Expected, missed: u64, repairs: u64) {
        (self.missed, self.repairs) = (self.missed + missed, self.repairs + repairs);
        self.expected.missed = self.expected.missed + expected.missed;
        self.expected.repairs = self.expected.repairs + expected.repairs;
    }
}

/// A cell's channel, as probabilities.
struct Channel<'a> {
    cell: &'a Cell,
    one_way: Span,
    /// Datagrams of a sample.
    fragments: f64,
    /// A datagram is lost, or damaged.
    loss: f64,
    /// Correlation of the channel's state one datagram later.
    memory: f64,
    /// Times that a loss can be reported and repaired by the deadline.
    rounds: i32,
}

impl Channel<'_> {
    fn of(cell: &Cell) -> Channel<'_> {
        let ends = if cell.burst <= 1.0 { 1.0 - cell.loss } else { 1.0 / cell.burst };
        let begins = ends * cell.loss / (1.0 - cell.loss);
        let one_way = cell.round_trip / 2;
        let round = cell.round_trip + cell.jitter * 2 + cell.interval + cell.interval / 4 + REACTION;
        let left = cell.deadline - one_way - cell.jitter;
        Channel {
            cell,
            one_way,
            fragments: cell.payload_bytes.div_ceil(FRAGMENT_BYTES).max(1) as f64,
            loss: 1.0 - (1.0 - cell.loss) * (1.0 - cell.corruption),
            memory: (1.0 - ends - begins).max(0.0),
            rounds: (left.ns() / round.ns()).max(0) as i32,
        }
    }

    /// A datagram is lost, so many after one that was.
    fn lost_again(&self, later: f64) -> f64 {
        let Cell { loss, corruption, .. } = *self.cell;
        1.0 - (1.0 - corruption) * (1.0 - loss - (1.0 - loss) * self.memory.powf(later))
    }

    /// A round of feedback and repair a round trip after a loss does not help: one of the two was lost.
    fn round_fails(&self) -> f64 {
        let later = 1.0 + (self.cell.round_trip.ns() / self.cell.interval.ns()) as f64;
        1.0 - (1.0 - self.lost_again(later)) * (1.0 - self.loss)
    }

    /// All datagrams of a sample arrive in time by themselves.
    fn first_in_time(&self) -> f64 {
        let Cell { deadline, jitter, corruption, .. } = *self.cell;
        let left = deadline - self.one_way;
        let within = if left >= jitter {
            1.0
        } else {
            (left.ns() as f64 / jitter.ns().max(1) as f64).max(0.0).powf(self.fragments)
        };
        let stays_good = 1.0 - self.cell.loss * (1.0 - self.memory);
        within * (1.0 - self.loss) * (stays_good * (1.0 - corruption)).powf(self.fragments - 1.0)
    }

    /// Of long samples a block may lose more than the budget allows.
    fn repairs_in_time(&self) -> bool {
        self.fragments <= 1.0 && self.rounds > 0
    }

    /// A sample is not in time once the path is known.
    fn missed(&self) -> f64 {
        let first = 1.0 - self.first_in_time();
        if !self.repairs_in_time() {
            return first;
        }
        // What the target permits need not be repaired.
        (first * self.round_fails().powi(self.rounds)).max(self.cell.loss_target.min(first))
    }

    /// Repairs for a datagram: those of what is lost; and where nothing more can be known in time, as many copies as the target asks for.
    fn repairs_asked(&self) -> f64 {
        let unacknowledged = match self.rounds {
            0 => 1.0,
            rounds => (1.0 - (1.0 - self.loss).powi(2)) * self.round_fails().powi(rounds - 1),
        };
        let left = self.loss * self.round_fails().powi(self.rounds);
        // Half of the target is aimed at.
        let aim = self.cell.loss_target / 2.0;
        let copies = if left > aim { ((aim / left).ln() / self.lost_again(1.0).ln()).ceil() } else { 0.0 };
        (self.loss / (1.0 - self.loss) + unacknowledged * copies).min(BUDGET_PER_DATAGRAM)
    }

    /// Samples that are written before the path is known, in all lives of the sender.
    fn learning(&self, samples: f64) -> f64 {
        let Cell { round_trip, jitter, interval, restarts, .. } = *self.cell;
        let time = round_trip.ns() as f64 * ROUND_TRIPS_TO_LEARN + jitter.ns() as f64;
        let lives = if restarts { 2.0 } else { 1.0 };
        ((time / interval.ns() as f64 + 1.0) * lives).min(samples)
    }

    /// Samples that were on their way, or waited for older ones.
    fn lost_with_a_restart(&self) -> f64 {
        let Cell { jitter, interval, deadline, order, restarts, .. } = *self.cell;
        let waits = if order == Order::InOrder { deadline } else { self.one_way + jitter };
        if restarts { 1.0 + (waits.ns() / interval.ns()) as f64 } else { 0.0 }
    }
}
