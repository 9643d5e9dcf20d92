//! The default estimator: a proven interval, and inside it the most likely value.
//!
//! Two questions are kept apart.
//!
//! *How wrong can it be?* Every exchange proves an interval for the offset; intervals of recent
//! exchanges are intersected, each widened by its age times the largest drift the configuration
//! allows ([`interval`]). Nothing statistical enters except to make it wider: when the measured
//! drift exceeds the configured limit the widening follows it, and when an exchange looks wrong the
//! past is dropped.
//!
//! *What is it most likely?* Exchanges are gathered into blocks, each block gives the midpoint
//! between its two edges ([`block`]), a Kalman filter of offset and drift follows those midpoints
//! with a variance taken from the block's excess over the least round trip ([`kalman`]). Where one
//! direction queues and the other does not, the quiet direction has more weight ([`path`]).
//!
//! *Has a clock been stepped?* An exchange contradicts when its own interval excludes the estimate
//! or everything proven before. The first one withdraws the bound, the third in a row starts the
//! estimate anew from those three. A smaller disagreement, which causality still allows but the
//! least round trip does not, drops the past from the bound and counts towards the three.
//!
//! State is fixed in size, arithmetic is integer: the C twin agrees bit for bit.

mod block;
mod interval;
mod kalman;
mod path;

use noctule_timebase::{Instant, Span};

use crate::exchange::{Counters, Drift, Estimate, Estimator, Exchange, Local, Rejection, State};
use crate::fixed::{div_shift, mul_shift, root, square_shift};
use block::Block;
use interval::{Interval, Window, edges};
use kalman::{Bank, Measurement, OFFSET_BITS, VARIANCE_BITS};
use path::{Floor, Movement, RunningMean};

/// An exchange that lasts longer than this (about 18 minutes) is refused, and after a longer gap
/// nothing old is used: the estimator starts again.
pub const LONGEST_GAP: Span = Span::from_ns(1 << 40);

/// Contradictions in a row that mean a step.
const CONTRADICTIONS_TO_RELOCK: u32 = 3;
/// One ppm in parts per 2^46, rounded up.
const PPM: i64 = 70_368_745;
/// The drift counts as settled below this standard deviation.
const SETTLED_DRIFT: i64 = PPM;
/// A jump that a change of rate below this could explain is taken for one.
const PLAUSIBLE_RATE: i64 = 2_000 * PPM;
/// Two relocks closer than this mean that the drift kept from before was wrong.
const RELOCK_AGAIN: Span = Span::from_s(10);
/// A block's width counts as a round trip when the error of its slope makes less than this.
const SLOPE_ERROR_NS: i64 = 3_000;
/// The root of two with 16 fraction bits.
const ROOT_2: i64 = 92_682;
/// Smallest standard deviation of a measurement: stamps are not better than this.
const STAMP_NOISE_NS: i64 = 50;

/// The assumptions of the estimator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoundedConfig {
    /// The clocks never drift apart faster than this. Bounds are proven under this premise. Default
    /// 200 ppm, which covers two uncalibrated crystals over temperature; at most 10,000.
    pub max_drift_ppm: u32,
    /// The request spends at least this long on the wire. Default zero; negative is taken as zero.
    pub wire_forward: Span,
    /// The reply spends at least this long on the wire. Default zero; negative is taken as zero.
    pub wire_back: Span,
    /// Step in which the local clock counts. Default 1 ns.
    pub local_resolution: Span,
    /// Step in which the remote clock counts. Default 1 ns.
    pub remote_resolution: Span,
    /// Prove each bound from the last exchange alone. A step of a few milliseconds can hide behind a
    /// queue of a few milliseconds until the next quick exchange, and until then an intersection
    /// with the past is false. Where the remote clock may be stepped (a wall clock under NTP) and
    /// that must not happen, this costs a bound as wide as the last exchange. Default false: a
    /// monotonic clock does not step.
    pub distrust_past: bool,
    /// Without an exchange for this long the state is [`State::Stale`]. Default 10 s.
    pub stale_after: Span,
}

impl Default for BoundedConfig {
    fn default() -> BoundedConfig {
        BoundedConfig {
            max_drift_ppm: 200,
            wire_forward: Span::ZERO,
            wire_back: Span::ZERO,
            local_resolution: Span::from_ns(1),
            remote_resolution: Span::from_ns(1),
            distrust_past: false,
            stale_after: Span::from_s(10),
        }
    }
}

/// The default estimator.
#[derive(Clone, Debug)]
pub struct Bounded {
    config: BoundedConfig,
    lock: Option<Lock>,
    counters: Counters,
}

/// Everything known since the last start.
#[derive(Clone, Debug)]
struct Lock {
    distrust_past: bool,
    /// Offsets inside are counted from here, in ns.
    anchor_ns: i64,
    /// `t4` of the last exchange.
    last_ns: i64,
    /// `t4` of the last exchange that agreed.
    agreed_ns: i64,
    relocked_ns: Option<i64>,
    window: Window,
    /// No bound until an exchange agrees again.
    withdrawn: bool,
    bank: Bank,
    floor: Floor,
    movement: Movement,
    /// The last block's value minus what the filter expected, ns.
    disagreement_ns: i64,
    /// Mean excess of a block's width over the least round trip, ns.
    usual_excess: RunningMean,
    block: Option<Block>,
    /// Exchanges after which the present block is closed, and blocks closed at that size.
    block_target: u32,
    blocks_at_target: u32,
    contradiction: Option<Contradiction>,
}

/// Exchanges in a row that contradict the estimate, and what they prove among themselves.
#[derive(Clone, Copy, Debug)]
struct Contradiction {
    count: u32,
    window: Window,
    block: Block,
}

/// One exchange as the estimator sees it.
struct Seen {
    t4_ns: i64,
    /// Middle of the exchange on the local clock: the time that its midpoint belongs to.
    at_ns: i64,
    at_least_ns: i64,
    at_most_ns: i64,
    round_trip_ns: i64,
    proven: Interval,
}

/// How an exchange stands to the estimate.
#[derive(PartialEq)]
enum Standing {
    Agrees,
    /// Causality allows it, but not together with the least round trip seen.
    Doubtful,
    /// Causality forbids it.
    Contradicts,
}

impl Bounded {
    /// An estimator that has seen nothing.
    pub fn new(config: BoundedConfig) -> Bounded {
        let span = |s: Span| Span::from_ns(s.ns().clamp(0, LONGEST_GAP.ns()));
        Bounded {
            config: BoundedConfig {
                max_drift_ppm: config.max_drift_ppm.min(10_000),
                wire_forward: span(config.wire_forward),
                wire_back: span(config.wire_back),
                local_resolution: span(config.local_resolution),
                remote_resolution: span(config.remote_resolution),
                stale_after: span(config.stale_after),
                ..config
            },
            lock: None,
            counters: Counters::default(),
        }
    }

    /// The least round trip of the recent past with the known wire time taken out: no proven
    /// interval will be much narrower than this.
    pub fn least_round_trip(&self) -> Option<Span> {
        self.lock.as_ref().map(|lock| Span::from_ns(lock.floor.ns()))
    }

    /// One-sidedness of the jitter between −1 and 1: positive when the way there is the quiet one
    /// and the estimate leans on it, negative for the way back, zero while both are alike.
    pub fn asymmetry(&self) -> f64 {
        self.lock.as_ref().map_or(0.0, |lock| lock.movement.tilt() as f64 / 65_536.0)
    }

    /// The hull of the last block minus the filter's expectation: a cross-check. One much
    /// larger than sigma, again and again with the same sign, means that the filter lags.
    pub fn hull_disagreement(&self) -> Option<Span> {
        self.lock.as_ref().map(|lock| Span::from_ns(lock.disagreement_ns))
    }

    fn judge(&mut self, exchange: &Exchange) -> Result<(), Rejection> {
        exchange.check()?;
        if exchange.t4 - exchange.t1 > LONGEST_GAP {
            return Err(Rejection::RoundTripTooLong);
        }
        let limit = self.drift_limit();
        let proven = Interval::of(exchange, &self.config, limit);
        if proven.is_empty() {
            return Err(Rejection::NegativeRoundTrip);
        }
        let (at_least_ns, at_most_ns) = edges(exchange, &self.config);
        let (t1_ns, t4_ns) = (exchange.t1.ns(), exchange.t4.ns());
        let seen = Seen {
            t4_ns,
            at_ns: t1_ns + ((t4_ns - t1_ns) >> 1),
            at_least_ns,
            at_most_ns,
            round_trip_ns: at_most_ns.saturating_sub(at_least_ns).max(0),
            proven,
        };
        let Some(lock) = &mut self.lock else {
            self.lock = Some(Lock::new(&seen, &self.config));
            return Ok(());
        };
        let elapsed_ns = t4_ns - lock.last_ns;
        if elapsed_ns < 0 {
            return Err(Rejection::OutOfOrder);
        }
        if elapsed_ns > LONGEST_GAP.ns() {
            self.lock = Some(Lock::new(&seen, &self.config));
            self.counters.relocks = self.counters.relocks.saturating_add(1);
            return Ok(());
        }
        lock.advance(elapsed_ns, limit);
        match lock.standing(&seen) {
            Standing::Agrees => lock.agree(&seen),
            standing => {
                if !lock.disagree(&seen, standing == Standing::Contradicts, limit) {
                    return Err(Rejection::Contradiction);
                }
                self.counters.relocks = self.counters.relocks.saturating_add(1);
            }
        }
        Ok(())
    }

    /// The drift by which intervals are widened, in parts per 2^46: the configured limit, or more
    /// when the clocks are seen to drift faster than that.
    fn drift_limit(&self) -> i64 {
        let configured = i64::from(self.config.max_drift_ppm) * PPM;
        let Some(lock) = &self.lock else {
            return configured;
        };
        let drift = lock.bank.drift().saturating_abs();
        configured.max(drift + (drift >> 2) + 3 * lock.bank.drift_deviation())
    }
}

impl Lock {
    fn new(seen: &Seen, config: &BoundedConfig) -> Lock {
        let drift_deviation = i64::from(config.max_drift_ppm) * PPM;
        let anchor_ns = seen.at_least_ns.saturating_add(seen.round_trip_ns >> 1);
        let mut lock = Lock {
            distrust_past: config.distrust_past,
            anchor_ns,
            last_ns: seen.t4_ns,
            agreed_ns: seen.t4_ns,
            relocked_ns: None,
            window: Window::new(seen.proven),
            withdrawn: false,
            bank: Bank::new(
                &Measurement { at_ns: seen.at_ns, offset: 0, variance: 0, explained: 0 },
                drift_deviation,
            ),
            floor: Floor::new(seen.round_trip_ns),
            movement: Movement::default(),
            disagreement_ns: 0,
            usual_excess: RunningMean::new(seen.round_trip_ns >> 1),
            block: None,
            block_target: 1,
            blocks_at_target: 0,
            contradiction: None,
        };
        let first = lock.measure(&lock.new_block(seen));
        lock.bank = Bank::new(&first, drift_deviation);
        lock
    }

    fn relative(&self, ns: i64) -> i64 {
        ns.saturating_sub(self.anchor_ns)
    }

    fn new_block(&self, seen: &Seen) -> Block {
        let (at_least_ns, at_most_ns) = (self.relative(seen.at_least_ns), self.relative(seen.at_most_ns));
        Block::new(seen.at_ns, at_least_ns, at_most_ns, self.bank.drift())
    }

    fn advance(&mut self, elapsed_ns: i64, limit: i64) {
        self.window.advance(elapsed_ns, limit);
        if let Some(contradiction) = &mut self.contradiction {
            contradiction.window.advance(elapsed_ns, limit);
        }
        self.last_ns = self.last_ns.saturating_add(elapsed_ns);
    }

    /// The estimate at local time `at_ns`, in ns, not yet confined to what is proven.
    fn offset_at(&self, at_ns: i64) -> i64 {
        self.anchor_ns.saturating_add(self.bank.offset_at(at_ns) >> OFFSET_BITS)
    }

    fn sigma_at(&self, at_ns: i64) -> i64 {
        root(self.bank.variance_at(at_ns)) >> (VARIANCE_BITS / 2)
    }

    /// The reported error: that of the filter, and that of the least round trip, which is common
    /// to all tilted measurements and shows in none.
    fn reported_sigma_at(&self, at_ns: i64) -> i64 {
        let tilt = self.movement.tilt().saturating_abs();
        // The excess has an exponential distribution: its root mean square is √2 of its mean.
        let common_ns = mul_shift(mul_shift(self.floor.likely_excess_ns(), tilt, 17), ROOT_2, 16);
        let filter_ns = self.sigma_at(at_ns);
        if common_ns == 0 {
            return filter_ns;
        }
        root(square_shift(filter_ns, 0).saturating_add(square_shift(common_ns, 0)))
    }

    fn standing(&mut self, seen: &Seen) -> Standing {
        // A round trip below the least one so far lowers the least one before it is judged by it.
        self.lower_floor(seen.round_trip_ns);
        let estimate_ns = self.offset_at(seen.t4_ns);
        let sigma_ns = self.sigma_at(seen.t4_ns);
        let slack_ns = (4 * sigma_ns).saturating_add(STAMP_NOISE_NS);
        let inside_ns = seen.proven.nearest(estimate_ns);
        let disjoint = !self.withdrawn && self.window.interval().intersect(&seen.proven).is_empty();
        if disjoint || inside_ns.saturating_sub(estimate_ns).saturating_abs() > slack_ns {
            return Standing::Contradicts;
        }
        let midpoint_ns = seen.at_least_ns.saturating_add(seen.round_trip_ns >> 1);
        let off_ns = midpoint_ns.saturating_sub(self.offset_at(seen.at_ns)).saturating_abs();
        let explained_ns = (seen.round_trip_ns.saturating_sub(self.floor.ns()) >> 1)
            .saturating_add(6 * sigma_ns)
            .saturating_add(self.usual_excess.ns())
            .saturating_add(STAMP_NOISE_NS);
        if off_ns > explained_ns { Standing::Doubtful } else { Standing::Agrees }
    }

    fn agree(&mut self, seen: &Seen) {
        if self.withdrawn || self.distrust_past {
            // After a contradiction either the past or the contradiction was wrong, and nobody
            // knows which.
            self.window = Window::new(seen.proven);
            self.withdrawn = false;
        } else {
            self.window.add(&seen.proven);
        }
        self.contradiction = None;
        self.agreed_ns = seen.t4_ns;
        if self.block.as_ref().is_some_and(|block| block.is_over_at(seen.at_ns)) {
            self.close_block();
        }
        match self.block.take() {
            None => self.block = Some(self.new_block(seen)),
            Some(mut block) => {
                let (at_least_ns, at_most_ns) =
                    (self.relative(seen.at_least_ns), self.relative(seen.at_most_ns));
                block.add(seen.at_ns, at_least_ns, at_most_ns);
                self.block = Some(block);
            }
        }
        if self.block.as_ref().is_some_and(|block| block.count() >= self.block_target) {
            self.close_block();
        }
    }

    fn close_block(&mut self) {
        let Some(block) = self.block.take() else {
            return;
        };
        let measured = self.measure(&block);
        let expected = self.bank.offset_at(measured.at_ns);
        self.disagreement_ns = measured.offset.saturating_sub(expected) >> OFFSET_BITS;
        if self.bank.update(&measured) {
            self.block_target = (self.block_target / 4).max(1);
            self.blocks_at_target = 0;
        }
        let edges = block.edges();
        self.floor.count_block(edges.width_ns());
        self.movement.add(&edges);
        self.blocks_at_target += 1;
        if self.blocks_at_target >= 2 && self.block_target < block::LARGEST {
            self.block_target *= 2;
            self.blocks_at_target = 0;
        }
        let moved_ns = self.bank.offset_at(edges.at_ns) >> OFFSET_BITS;
        self.anchor_ns = self.anchor_ns.saturating_add(moved_ns);
        self.bank.move_anchor(moved_ns);
        self.movement.move_anchor(moved_ns);
    }

    /// Turns a block into a measurement of the offset with a variance.
    fn measure(&mut self, block: &Block) -> Measurement {
        let edges = block.edges();
        // The edges may come from different exchanges, so a wrong slope makes the width wrong. It
        // says something about the least round trip only where that error is small, and nothing
        // where the exchanges contradict it: then the clock may have changed its rate.
        let slope_error_ns = mul_shift(block.span_ns(), self.bank.drift_deviation(), 46);
        if slope_error_ns < SLOPE_ERROR_NS && self.contradiction.is_none() {
            self.lower_floor(edges.width_ns());
        }
        let excess_ns = edges.width_ns().saturating_sub(self.floor.ns()).max(0);
        let rough = path::rougher(edges.count);
        self.usual_excess.add(excess_ns / rough);

        let (offset, spread_ns) = if self.movement.mean_is_steadier() {
            let mean_ns = self.movement.mean_ns().saturating_mul(rough);
            (edges.mean_ns << OFFSET_BITS, [mean_ns, 0, 0])
        } else {
            let tilt = self.movement.tilt();
            let leaning = mul_shift(excess_ns, tilt, 1);
            // Excess divided between the two directions in an unknown way: its halves differ by
            // about a quarter of it. What the tilt has explained no longer counts.
            let unexplained = 65_536 - tilt.saturating_abs();
            let usual_ns = (self.usual_excess.ns() >> 3).max(self.movement.middle_ns());
            let usual_ns = usual_ns.saturating_mul(rough);
            let quiet_ns = self.movement.quiet_ns().saturating_mul(rough);
            let spread_ns = [
                mul_shift(excess_ns >> 2, unexplained, 16),
                mul_shift(usual_ns, unexplained, 16),
                mul_shift(quiet_ns, tilt.saturating_abs(), 16),
            ];
            ((edges.middle_ns() << OFFSET_BITS).saturating_add(leaning), spread_ns)
        };
        let variance = spread_ns
            .into_iter()
            .chain([slope_error_ns >> 2, STAMP_NOISE_NS])
            .fold(0_i64, |sum, ns| sum.saturating_add(square_shift(ns, 0)));
        Measurement {
            at_ns: edges.at_ns,
            offset,
            variance: variance.min(1 << 52) << VARIANCE_BITS,
            explained: excess_ns << (OFFSET_BITS - 1),
        }
    }

    /// Takes in a round trip. One below the least so far says that every tilted measurement so far
    /// leaned too little, which is made good.
    fn lower_floor(&mut self, round_trip_ns: i64) {
        let before_ns = self.floor.ns();
        self.floor.add(round_trip_ns);
        let lower_ns = before_ns.saturating_sub(self.floor.ns());
        self.bank.shift(mul_shift(lower_ns, self.movement.tilt(), 1));
    }

    /// Takes note of an exchange that does not fit. True when it was the third in a row and the
    /// estimate now starts from those three.
    fn disagree(&mut self, seen: &Seen, contradicts: bool, limit: i64) -> bool {
        // Whatever happened, it happened before this exchange or during it; alone it still proves
        // what it proves, unless it is itself false, which a contradiction leaves open.
        self.window = Window::new(seen.proven);
        self.withdrawn |= contradicts;
        let fresh = Contradiction { count: 1, window: self.window, block: self.new_block(seen) };
        let contradiction = match self.contradiction.take() {
            None => fresh,
            Some(before) if before.window.interval().intersect(&seen.proven).is_empty() => {
                Contradiction { count: before.count + 1, ..fresh }
            }
            Some(mut before) => {
                before.count += 1;
                before.window.add(&seen.proven);
                before.block.add(seen.at_ns, self.relative(seen.at_least_ns), self.relative(seen.at_most_ns));
                before
            }
        };
        if contradiction.count < CONTRADICTIONS_TO_RELOCK {
            self.contradiction = Some(contradiction);
            return false;
        }
        self.contradiction = Some(contradiction);
        self.relock(contradiction, limit);
        true
    }

    fn relock(&mut self, mut contradiction: Contradiction, limit: i64) {
        let edges = contradiction.block.edges();
        let moved_ns = edges.middle_ns();
        let jump_ns = moved_ns.saturating_sub(self.bank.offset_at(edges.at_ns) >> OFFSET_BITS);
        let elapsed_ns = self.last_ns.saturating_sub(self.agreed_ns).max(1);
        let rate = div_shift(jump_ns.saturating_abs(), elapsed_ns, 46);
        // A step may be of any size; the filters count in small numbers from an anchor beside them.
        self.anchor_ns = self.anchor_ns.saturating_add(moved_ns);
        contradiction.block.move_anchor(moved_ns);
        let mut measured = self.measure(&contradiction.block);
        let again = self
            .relocked_ns
            .is_some_and(|before_ns| self.last_ns.saturating_sub(before_ns) < RELOCK_AGAIN.ns());
        let drift_deviation = if again {
            limit
        } else if rate < PLAUSIBLE_RATE {
            rate
        } else {
            PPM
        };
        // The three were joined along the old drift, which may be what has changed.
        let slope_error_ns = mul_shift(contradiction.block.span_ns(), drift_deviation, 46).min(1 << 26);
        measured.variance += square_shift(slope_error_ns, 0) << VARIANCE_BITS;
        self.bank.relock(&measured, drift_deviation);
        if !self.distrust_past {
            self.window = contradiction.window;
        }
        self.withdrawn = false;
        self.contradiction = None;
        self.block = None;
        self.block_target = 1;
        self.blocks_at_target = 0;
        self.movement.forget_position();
        self.agreed_ns = self.last_ns;
        self.relocked_ns = Some(self.last_ns);
    }
}

impl Estimator for Bounded {
    fn handle_exchange(&mut self, exchange: &Exchange) -> Result<(), Rejection> {
        let verdict = self.judge(exchange);
        self.counters.count(verdict)
    }

    fn estimate(&self, now: Instant<Local>) -> Option<Estimate> {
        let lock = self.lock.as_ref()?;
        let elapsed_ns = now.ns().saturating_sub(lock.last_ns);
        let proven = lock.window.interval().widen(elapsed_ns, self.drift_limit());
        let confined = !lock.withdrawn && !proven.is_empty();
        let likely_ns = lock.offset_at(now.ns());
        let offset_ns = if confined { proven.nearest(likely_ns) } else { likely_ns };
        let state = if elapsed_ns > self.config.stale_after.ns() {
            State::Stale
        } else if lock.withdrawn {
            State::Stepped
        } else if lock.bank.drift_deviation() > SETTLED_DRIFT {
            State::Acquiring
        } else {
            State::Locked
        };
        Some(Estimate {
            offset: Span::from_ns(offset_ns),
            drift: Drift::from_2_46(lock.bank.drift()),
            bound: confined.then(|| Span::from_ns(proven.reach_from(offset_ns))),
            sigma: Some(Span::from_ns(lock.reported_sigma_at(now.ns()))),
            state,
        })
    }

    fn counters(&self) -> Counters {
        self.counters
    }
}

#[cfg(test)]
mod tests;
