//! Bounds for a link: the least redundancy that keeps a loss target, and the least loss whatever is sent.
//!
//! Time goes in slots of one sample each. The channel is Gilbert's: good or bad, and what is sent while it is bad is lost; it steps with
//! every packet, or with every slot where bursts last a time. Feedback is late by whole slots and never lost, so what holds here holds
//! a fortiori where it is lost, too. Three yardsticks:
//!
//! - *capacity*: p / (1 − p) extras a datagram, which no feedback and no delay comes below;
//! - *coding*: a receiver of an extra repairs with it the oldest sample that is missing, which no code betters; how many to send in each slot
//!   follows from a dynamic program over feedback ([`Stream::coding`]);
//! - *repetition*: each sample for itself, repeated as a dynamic program decides ([`Stream::repetition`]).
//!
//! Both programs minimise extras + price × failures at a price; between two prices a mix of both policies is a policy. The lower of the two,
//! at the target, is therefore on a line.

/// Extras of one slot at most: of the code, whose states are many, and of a repeated sample.
const CODED_MOST: usize = 2;
const REPEATED_MOST: usize = 6;
/// Sweeps over all states of the code: its memory is shorter than this many slots.
const SWEEPS: usize = 70;

/// A stream with a deadline on one direction of a link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stream {
    /// Share of what is sent that is lost.
    pub loss: f64,
    /// Probabilities from good to bad and from bad to good, at every packet.
    pub by_packet: [f64; 2],
    /// The same, between one slot and the next.
    pub by_slot: [f64; 2],
    /// A sample may be repaired in this many slots after its own.
    pub repair_slots: usize,
    /// Delay of feedback, in slots; at least 2 for a code.
    pub feedback_slots: usize,
}

/// A policy's price: extras a sample, and samples that fail.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// Extras a sample.
    pub redundancy: f64,
    /// Share of samples that fail.
    pub residual: f64,
}

/// A possible outcome of the packets of a slot.
#[derive(Clone, Copy, Debug)]
struct Result {
    probability: f64,
    is_data_lost: bool,
    extras_received: usize,
    is_bad: usize,
}

/// Extras a datagram below which no scheme keeps `target`.
pub fn capacity(loss: f64, target: f64) -> f64 {
    (loss - target).max(0.0) / (1.0 - loss)
}

impl Stream {
    /// All results of a slot with `extras`, in which the sample's own datagram goes first.
    fn results(&self, is_bad: usize, extras: usize) -> Vec<Result> {
        let mut results: Vec<Result> = Vec::new();
        for state in [0, 1] {
            let probability = step(self.by_slot, is_bad, state);
            results.push(Result { probability, is_data_lost: false, extras_received: 0, is_bad: state });
        }
        for packet in 0..=extras {
            let mut next: Vec<Result> = Vec::new();
            for result in results {
                for state in [0, 1] {
                    let mut result = result;
                    result.probability *= step(self.by_packet, result.is_bad, state);
                    result.is_bad = state;
                    match packet {
                        0 => result.is_data_lost = state == 1,
                        _ => result.extras_received += 1 - state,
                    }
                    let same = |other: &&mut Result| {
                        (other.is_data_lost, other.extras_received, other.is_bad)
                            == (result.is_data_lost, result.extras_received, result.is_bad)
                    };
                    match next.iter_mut().find(same) {
                        Some(other) => other.probability += result.probability,
                        None => next.push(result),
                    }
                }
            }
            results = next;
        }
        results.retain(|result| result.probability > 0.0);
        results
    }

    /// The least redundancy at `target` of repetition with feedback, or `None` if no price buys that: what the rule of the transport could reach.
    pub fn repetition(&self, target: f64) -> Option<f64> {
        at_target(target, |price| Repetition::new(self, price).cost())
    }

    /// The same, where an extra repairs whichever sample is oldest.
    pub fn coding(&self, target: f64) -> Option<f64> {
        at_target(target, |price| Coding::new(self, price).cost())
    }

    /// Cost of the optimal code at one price.
    #[cfg(test)]
    fn coding_at(&self, price: f64) -> Cost {
        Coding::new(self, price).cost()
    }
}

fn step([begins, ends]: [f64; 2], from: usize, to: usize) -> f64 {
    match (from, to) {
        (0, 1) => begins,
        (0, _) => 1.0 - begins,
        (_, 0) => ends,
        _ => 1.0 - ends,
    }
}

/// Between the cheapest price that keeps the target and the dearest that does not.
fn at_target(target: f64, cost: impl Fn(f64) -> Cost) -> Option<f64> {
    let (mut low, mut high) = (3.0_f64, 1e5_f64);
    let (mut above, mut below) = (cost(low), cost(high));
    if above.residual <= target {
        return Some(above.redundancy);
    }
    if below.residual > target {
        return None;
    }
    for _ in 0..7 {
        let middle = (low * high).sqrt();
        let found = cost(middle);
        if found.residual > target { (low, above) = (middle, found) } else { (high, below) = (middle, found) }
    }
    let share = (above.residual - target) / (above.residual - below.residual).max(1e-300);
    Some(above.redundancy + share.min(1.0) * (below.redundancy - above.redundancy))
}

/// Slot, channel, copies in each slot that nothing is known of.
type Place = (usize, usize, Vec<usize>);

/// One sample for itself; the others' datagrams, one a slot, are news of the channel.
///
/// A state is the slot, the channel by the last feedback, and how many copies left in each slot since.
struct Repetition<'a> {
    stream: &'a Stream,
    price: f64,
    results: [Vec<Vec<Result>>; 2],
    memory: std::collections::HashMap<Place, Cost>,
}

impl<'a> Repetition<'a> {
    fn new(stream: &'a Stream, price: f64) -> Repetition<'a> {
        let results = [0, 1].map(|bad| (0..=REPEATED_MOST).map(|n| stream.results(bad, n)).collect());
        Repetition { stream, price, results, memory: Default::default() }
    }

    fn cost(mut self) -> Cost {
        let silent = vec![0; self.stream.feedback_slots - 1];
        let [good, bad] = [0, 1].map(|state| self.go_on(0, state, &silent));
        let loss = self.stream.loss;
        Cost {
            redundancy: (1.0 - loss) * good.redundancy + loss * bad.redundancy,
            residual: (1.0 - loss) * good.residual + loss * bad.residual,
        }
    }

    /// From slot `slot` on, if no feedback on the sample came yet. `sent`: copies in the slots that nothing is known of, oldest first.
    fn go_on(&mut self, slot: usize, is_bad: usize, sent: &[usize]) -> Cost {
        let Stream { repair_slots, feedback_slots, .. } = *self.stream;
        // The slot that the next feedback covers has no copy of the sample any more.
        if slot >= repair_slots + feedback_slots {
            return Cost { redundancy: 0.0, residual: 1.0 };
        }
        let key = (slot, is_bad, sent.to_vec());
        if let Some(known) = self.memory.get(&key) {
            return *known;
        }
        let most = if slot <= repair_slots { REPEATED_MOST } else { 0 };
        let mut best: Option<Cost> = None;
        for copies in 0..=most {
            let mut window = sent.to_vec();
            window.push(copies);
            let heard = window.remove(0);
            let is_own = slot + 1 == feedback_slots;
            let mut cost = Cost { redundancy: copies as f64, residual: 0.0 };
            for result in self.results[is_bad][heard].clone() {
                if result.extras_received > 0 || (is_own && !result.is_data_lost) {
                    continue;
                }
                let next = self.go_on(slot + 1, result.is_bad, &window);
                cost.redundancy += result.probability * next.redundancy;
                cost.residual += result.probability * next.residual;
            }
            let total = |cost: &Cost| cost.redundancy + self.price * cost.residual;
            if best.as_ref().is_none_or(|best| total(&cost) < total(best)) {
                best = Some(cost);
            }
        }
        let best = best.unwrap_or(Cost { redundancy: 0.0, residual: 1.0 });
        self.memory.insert(key, best);
        best
    }
}

/// All samples together.
///
/// A state is the channel and the missing samples by age, by the last feedback, and the extras of each slot since. Relative values are
/// iterated; then the policy's extras and failures are averaged over where it goes.
struct Coding {
    price: f64,
    /// Outcomes of a slot by channel and extras.
    results: [Vec<Vec<Result>>; 2],
    masks: usize,
    /// Combinations of extras in the slots that nothing is known of.
    windows: usize,
}

impl Coding {
    fn new(stream: &Stream, price: f64) -> Coding {
        let results = [0, 1].map(|bad| (0..=CODED_MOST).map(|n| stream.results(bad, n)).collect());
        let windows = (CODED_MOST + 1).pow(stream.feedback_slots as u32 - 1);
        Coding { price, results, masks: 1 << stream.repair_slots, windows }
    }

    /// The missing samples after a slot, and whether one of them has failed.
    fn after(&self, mask: usize, result: &Result) -> (usize, bool) {
        let mut mask = mask << 1 | usize::from(result.is_data_lost);
        for _ in 0..result.extras_received {
            if mask != 0 {
                mask &= !(1 << mask.ilog2());
            }
        }
        (mask & (self.masks - 1), mask >= self.masks)
    }

    /// Calls `visit` with every result of the oldest slot of a state: its probability, failures, and the next state before a decision.
    fn follow(&self, state: usize, mut visit: impl FnMut(f64, bool, usize)) {
        let (window, place) = (state % self.windows, state / self.windows);
        let (mask, is_bad) = (place % self.masks, place / self.masks);
        // There is a slot that nothing is known of.
        let oldest = (self.windows / (CODED_MOST + 1)).max(1);
        let (extras, rest) = (window / oldest, window % oldest);
        for result in &self.results[is_bad][extras] {
            let (mask, failed) = self.after(mask, result);
            let next = ((result.is_bad * self.masks + mask) * self.windows) + rest * (CODED_MOST + 1);
            visit(result.probability, failed, next);
        }
    }

    fn cost(&self) -> Cost {
        let states = 2 * self.masks * self.windows;
        let mut values = vec![0.0_f64; states];
        let mut policy = vec![0_u8; states];
        for _ in 0..SWEEPS {
            let mut next_values = vec![0.0; states];
            for (state, value) in next_values.iter_mut().enumerate() {
                let mut by_extras = [0.0; CODED_MOST + 1];
                self.follow(state, |probability, failed, next| {
                    let price = if failed { self.price } else { 0.0 };
                    for (extras, total) in by_extras.iter_mut().enumerate() {
                        *total += probability * (price + values[next + extras]);
                    }
                });
                let totals =
                    by_extras.iter().enumerate().map(|(extras, total)| (extras, extras as f64 + total));
                let best = totals.min_by(|(_, a), (_, b)| a.total_cmp(b)).unwrap_or((0, 0.0));
                (policy[state], *value) = (best.0 as u8, best.1);
            }
            let origin = next_values[0];
            next_values.iter_mut().for_each(|value| *value -= origin);
            values = next_values;
        }
        self.average(&policy)
    }

    fn average(&self, policy: &[u8]) -> Cost {
        let mut shares = vec![0.0; policy.len()];
        shares[0] = 1.0;
        let mut cost = Cost { redundancy: 0.0, residual: 0.0 };
        for _ in 0..4 * SWEEPS {
            let mut next_shares = vec![0.0; policy.len()];
            cost = Cost { redundancy: 0.0, residual: 0.0 };
            for (state, share) in shares.iter().enumerate().filter(|(_, share)| **share > 1e-12) {
                let extras = usize::from(policy[state]);
                cost.redundancy += share * extras as f64;
                self.follow(state, |probability, failed, next| {
                    cost.residual += if failed { share * probability } else { 0.0 };
                    next_shares[next + extras] += share * probability;
                });
            }
            shares = next_shares;
        }
        cost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 5 % in bursts of three packets, 20 ms, 60 ms, 200 Hz; golden values recomputed independently in Python.
    const CONTRACTED: Stream = Stream {
        loss: 0.05,
        by_packet: [1.0 / 3.0 * 0.05 / 0.95, 1.0 / 3.0],
        by_slot: [0.0, 0.0],
        repair_slots: 10,
        feedback_slots: 4,
    };

    #[test]
    fn the_capacity_is_the_golden_one() {
        assert!((capacity(0.05, 0.0) - 0.0526).abs() < 5e-5);
    }

    #[test]
    fn repetition_with_feedback_costs_what_it_does_in_the_golden_model() {
        let redundancy = CONTRACTED.repetition(1e-4).unwrap();
        // The golden model has 0.080; this one is a little below it, for it may mix two policies.
        assert!((0.076..0.081).contains(&redundancy), "{redundancy}");
    }

    #[test]
    fn the_bound_lies_between_capacity_and_what_the_golden_code_reached() {
        let cost = CONTRACTED.coding_at(200.0);
        println!("{cost:?}, at the target {:?}", CONTRACTED.coding(1e-4));
        assert!((2e-5..2e-4).contains(&cost.residual), "{cost:?}");
        assert!((0.0526..0.0590).contains(&cost.redundancy), "{cost:?}");
    }

    #[test]
    fn without_memory_and_delay_only_what_is_lost_is_retransmitted() {
        let stream = Stream {
            loss: 0.1,
            by_packet: [0.1, 0.9],
            by_slot: [0.0; 2],
            repair_slots: 6,
            feedback_slots: 2,
        };
        let expected = capacity(0.1, 1e-4);
        for found in [stream.repetition(1e-4).unwrap(), stream.coding(1e-4).unwrap()] {
            assert!((found - expected).abs() < 0.002, "{found}, {expected}");
        }
    }

    #[test]
    fn a_slot_has_all_its_results_and_the_loss_of_the_channel() {
        let from_mix = |bad: usize| if bad == 1 { 0.05 } else { 0.95 };
        let mut lost = 0.0;
        for bad in [0, 1] {
            let results = CONTRACTED.results(bad, 2);
            let sum: f64 = results.iter().map(|result| result.probability).sum();
            assert!((sum - 1.0).abs() < 1e-12, "{sum}");
            let share = |result: &Result| result.probability * f64::from(u8::from(result.is_data_lost));
            lost += from_mix(bad) * results.iter().map(share).sum::<f64>();
        }
        assert!((lost - 0.05).abs() < 1e-12, "{lost}");
    }
}
