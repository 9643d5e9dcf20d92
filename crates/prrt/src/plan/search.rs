//! The search for the best schedule.

use crate::gilbert::Gilbert;

use super::{
    Demand, Feasible, Infeasible, Path, Plan, ROUNDS_MAX, Round, Span, TAIL_EXTRAS_MAX, Timing, Trigger, walk,
};

/// Messages per block that are tried, where the deadline leaves time for them.
const BLOCKS: [u8; 13] = [1, 2, 3, 4, 6, 8, 12, 16, 20, 24, 32, 48, 64];
/// Sizes of the last round for which time is kept free, as it begins earlier if it may be larger.
const TAIL_RESERVES: [usize; 3] = [4, 10, TAIL_EXTRAS_MAX];
/// Rounds before the last.
const EARLY_ROUNDS_MAX: usize = 3;
/// Extras of a round before the last.
const EARLY_EXTRAS: [u8; 4] = [1, 2, 3, 6];
/// Steps of one local search at most; the grid needs fewer than ten.
const CLIMB_STEPS_MAX: usize = 20;
/// Local searches of one fast plan; more only until one of them meets the target.
const CLIMBS: usize = 3;
/// Local searches where the deadline leaves no time for news.
const CLIMBS_BLIND: usize = 12;
/// A plan this close to capacity is good enough not to look at larger blocks.
const CAPACITY_MARGIN: f64 = 1.1;
/// Above any redundancy: a schedule that misses the loss target.
const MISSED: f64 = 1e3;
/// Factors of the deadline with which an infeasible demand is tried again.
const LONGER: [i64; 4] = [2, 3, 5, 8];

/// The plan of least redundancy in the whole class, by trying all of it: the reference. Takes up to seconds.
pub fn exact(demand: &Demand, path: &Path) -> Result<Plan, Infeasible> {
    plan(demand, path, true)
}

/// The plan of least redundancy, for a sender that plans anew ten times a second.
pub fn fast(demand: &Demand, path: &Path) -> Result<Plan, Infeasible> {
    plan(demand, path, false)
}

fn plan(demand: &Demand, path: &Path, exhaustive: bool) -> Result<Plan, Infeasible> {
    let path = path.clamped();
    let delay = path.one_way + path.transmit * demand.datagrams() + path.reaction;
    if delay > demand.deadline {
        let feasible = Feasible { deadline: longer(demand, &path, delay), loss_target: None };
        return Err(Infeasible::BelowDelay { delay, feasible });
    }
    let search = Search::run(demand, &path, exhaustive);
    search.best.ok_or_else(|| {
        let feasible = Feasible {
            deadline: longer(demand, &path, demand.deadline),
            loss_target: Some(search.least_loss),
        };
        Infeasible::BeyondCapacity { feasible }
    })
}

/// The shortest deadline tried, from `shortest` on, with which the demand can be met.
fn longer(demand: &Demand, path: &Path, shortest: Span) -> Option<Span> {
    LONGER
        .iter()
        .map(|&factor| shortest + (path.news_delay() + demand.interval) * (factor - 1))
        .find(|&deadline| Search::run(&Demand { deadline, ..*demand }, path, false).best.is_some())
}

struct Search<'a> {
    demand: &'a Demand,
    path: &'a Path,
    best: Option<Plan>,
    least_loss: f64,
}

/// One block size and one time for the last round.
struct Frame {
    block: u8,
    /// When the block's last datagram has left.
    closed: Span,
    last: Span,
    reserve: usize,
    /// When early rounds may be sent.
    times: Vec<Span>,
    /// From this of `times` on, a block may have been reported missing.
    news_from: usize,
    /// Those of `times` from which news comes just before the next, the latest first.
    chain: Vec<Span>,
}

impl<'a> Search<'a> {
    fn run(demand: &'a Demand, path: &'a Path, exhaustive: bool) -> Search<'a> {
        let mut search = Search { demand, path, best: None, least_loss: 1.0 };
        let blocks = if demand.datagrams() > 1 { &BLOCKS[..1] } else { &BLOCKS[..] };
        let shapes = blocks.iter().flat_map(|&block| TAIL_RESERVES.map(|reserve| (block, reserve)));
        let frames: Vec<Frame> =
            shapes.filter_map(|(block, reserve)| Frame::new(demand, path, block, reserve)).collect();
        if exhaustive {
            for frame in &frames {
                search.descend(frame, &mut Vec::with_capacity(EARLY_ROUNDS_MAX), 0);
            }
        } else {
            search.climb_from_the_best(&frames);
        }
        search
    }

    /// Local searches from the most promising among plain schedules: no early rounds, or one after the other
    /// as late as news allows.
    fn climb_from_the_best(&mut self, frames: &[Frame]) {
        let mut starts = Vec::new();
        for frame in frames {
            if frame.block > 1 && self.is_near_capacity() {
                break;
            }
            let longest = if frame.block == 1 { EARLY_ROUNDS_MAX } else { 1 };
            for length in 0..=frame.chain.len().min(longest) {
                let chain = frame.chain[..length].iter().rev();
                let rounds: Vec<Round> =
                    chain.map(|&at| Round { at, extras: 1, trigger: Trigger::Missing }).collect();
                if let Some(value) = self.evaluate(frame, &rounds) {
                    starts.push((value, frame, rounds));
                }
            }
        }
        // Without news every schedule is proactive: they differ little and a block is cheap to follow.
        let climbs = if frames.iter().all(|frame| frame.chain.is_empty()) { CLIMBS_BLIND } else { CLIMBS };
        starts.sort_by(|a, b| a.0.total_cmp(&b.0));
        for (climbed, (_, frame, rounds)) in starts.into_iter().enumerate() {
            // What looks bad at first may still be the only way to meet the target.
            if climbed >= climbs && self.best.is_some() {
                break;
            }
            self.climb(frame, rounds);
        }
    }

    /// Whether larger blocks are not worth their search: nothing beats the channel's capacity.
    fn is_near_capacity(&self) -> bool {
        let loss = Gilbert::new(&self.path.loss).loss;
        let least = (loss - self.demand.loss_target) / (1.0 - loss);
        self.best.is_some_and(|best| best.redundancy <= CAPACITY_MARGIN * least)
    }

    /// Tries all early rounds; leaves out what already costs more than the best, as each round only adds.
    fn descend(&mut self, frame: &Frame, rounds: &mut Vec<Round>, from: usize) {
        if self.evaluate(frame, rounds).is_none() || rounds.len() == frame.early_rounds_max() {
            return;
        }
        for index in from..frame.times.len() {
            for trigger in frame.triggers(index) {
                for extras in EARLY_EXTRAS {
                    rounds.push(Round { at: frame.times[index], extras, trigger: *trigger });
                    self.descend(frame, rounds, index + 1);
                    rounds.pop();
                }
            }
        }
    }

    fn climb(&mut self, frame: &Frame, mut rounds: Vec<Round>) {
        let Some(mut value) = self.evaluate(frame, &rounds) else { return };
        for _ in 0..CLIMB_STEPS_MAX {
            let mut better = None;
            for neighbour in frame.neighbours(&rounds) {
                if let Some(candidate) = self.evaluate(frame, &neighbour)
                    && candidate < value
                {
                    value = candidate;
                    better = Some(neighbour);
                }
            }
            match better {
                Some(neighbour) => rounds = neighbour,
                None => return,
            }
        }
    }

    /// Completes `rounds` by the cheapest last round. Lower is better; a schedule that misses the target is
    /// worse than any that meets it. `None` if the early rounds alone cost more than the best plan.
    fn evaluate(&mut self, frame: &Frame, rounds: &[Round]) -> Option<f64> {
        if self.best.is_some_and(|best| best.redundancy == 0.0) {
            return None;
        }
        let tail = walk(self.demand, self.path, frame.block, rounds, frame.last);
        let bound = self.best.map_or(self.demand.redundancy_max, |best| best.redundancy);
        if tail.redundancy > bound {
            return None;
        }
        let mut value = f64::INFINITY;
        for unheard in 0..=frame.reserve {
            for missing in 0..=frame.reserve {
                let redundancy = tail.redundancy
                    + tail.missing.redundancy_per_extra * missing as f64
                    + tail.unheard.redundancy_per_extra * unheard as f64;
                let residual_loss =
                    tail.lost_otherwise + tail.missing.lost[missing] + tail.unheard.lost[unheard];
                if redundancy > self.demand.redundancy_max || redundancy >= value {
                    break;
                }
                self.least_loss = self.least_loss.min(residual_loss);
                if residual_loss > self.demand.loss_target {
                    continue;
                }
                value = redundancy;
                if self.best.is_none_or(|best| redundancy < best.redundancy) {
                    let sizes = [missing as u8, unheard as u8];
                    self.best = Some(frame.plan(rounds, sizes, redundancy, residual_loss));
                }
                break;
            }
        }
        if value.is_infinite() {
            let most = frame.reserve;
            value = MISSED + tail.lost_otherwise + tail.missing.lost[most] + tail.unheard.lost[most];
        }
        Some(value)
    }
}

impl Frame {
    fn new(demand: &Demand, path: &Path, block: u8, reserve: usize) -> Option<Frame> {
        let closed = demand.interval * i64::from(block - 1) + path.transmit * demand.datagrams();
        let last = demand.deadline - path.one_way - path.reaction - path.transmit * reserve as i64;
        if block > 1 && last < closed {
            return None;
        }
        let last = last.max(closed);
        let third = Span::from_ns((last - closed).ns() / 3);
        let spacing = path.news_delay() + path.transmit * 4;
        let chain: Vec<Span> =
            (1..=3).map(|rounds| last - spacing * rounds).filter(|&time| time >= closed).collect();
        let mut times = vec![
            closed,
            closed + third,
            closed + third * 2,
            last - spacing * 2 - demand.interval,
            last - spacing - demand.interval * 2,
            last - spacing - demand.interval,
            last - demand.interval,
        ];
        times.extend(&chain);
        times.retain(|&time| time >= closed && time < last);
        times.sort();
        times.dedup();
        let news_from = times.partition_point(|&time| time < closed + path.news_delay());
        Some(Frame { block, closed, last, reserve, times, news_from, chain })
    }

    fn early_rounds_max(&self) -> usize {
        if self.block == 1 { EARLY_ROUNDS_MAX } else { EARLY_ROUNDS_MAX - 1 }
    }

    fn triggers(&self, time: usize) -> &'static [Trigger] {
        const BOTH: [Trigger; 2] = [Trigger::Unacknowledged, Trigger::Missing];
        if time < self.news_from { &BOTH[..1] } else { &BOTH }
    }

    /// Schedules one change away: a round more, a round less, or one of other size, time or trigger.
    fn neighbours(&self, rounds: &[Round]) -> Vec<Vec<Round>> {
        let mut all = Vec::new();
        for (index, time) in self.times.iter().enumerate() {
            if rounds.len() == self.early_rounds_max() || rounds.iter().any(|round| round.at == *time) {
                continue;
            }
            for &trigger in self.triggers(index) {
                let mut more = rounds.to_vec();
                more.push(Round { at: *time, extras: 1, trigger });
                more.sort_by_key(|round| round.at);
                all.push(more);
            }
        }
        for changed in 0..rounds.len() {
            let mut less = rounds.to_vec();
            less.remove(changed);
            all.push(less);
            for round in self.variants(rounds, rounds[changed]) {
                let mut other = rounds.to_vec();
                other[changed] = round;
                all.push(other);
            }
        }
        all
    }

    fn variants(&self, rounds: &[Round], round: Round) -> Vec<Round> {
        let size = EARLY_EXTRAS.iter().position(|&extras| extras == round.extras).unwrap_or(0);
        let index = self.times.iter().position(|&time| time == round.at).unwrap_or(0);
        let sizes = [size.checked_sub(1), Some(size + 1)].into_iter().flatten();
        let sized = sizes.filter_map(|size| EARLY_EXTRAS.get(size)).map(|&extras| Round { extras, ..round });
        let triggers = self.triggers(index).iter().filter(|trigger| **trigger != round.trigger);
        let triggered = triggers.map(|&trigger| Round { trigger, ..round });
        let near = [index.checked_sub(1), Some(index + 1)].into_iter().flatten();
        let moved = near
            .filter_map(|near| Some((near, *self.times.get(near)?)))
            .filter(|(near, at)| {
                self.triggers(*near).contains(&round.trigger) && rounds.iter().all(|other| other.at != *at)
            })
            .map(|(_, at)| Round { at, ..round });
        sized.chain(triggered).chain(moved).collect()
    }

    fn plan(
        &self,
        early: &[Round],
        [missing, unheard]: [u8; 2],
        redundancy: f64,
        residual_loss: f64,
    ) -> Plan {
        let idle = Timing { at: Span::ZERO, trigger: Trigger::Unacknowledged };
        let mut plan = Plan {
            block: self.block,
            proactive: 0,
            rounds: [0; ROUNDS_MAX],
            spread: [idle; ROUNDS_MAX],
            redundancy,
            residual_loss,
        };
        let mut used = 0;
        let mut push = |extras, at, trigger| {
            if extras > 0 {
                plan.rounds[used] = extras;
                plan.spread[used] = Timing { at, trigger };
                used += 1;
            }
        };
        for round in early {
            if round.at == self.closed {
                plan.proactive = round.extras;
            } else {
                push(round.extras, round.at, round.trigger);
            }
        }
        if missing == unheard {
            push(missing, self.last, Trigger::Unacknowledged);
        } else {
            push(missing, self.last, Trigger::Missing);
            push(unheard, self.last, Trigger::Unheard);
        }
        plan
    }
}
