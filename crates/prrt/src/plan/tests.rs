//! The model against published figures, against formulas, and against simulation.

use noctule_netsim::random::Random;

use super::*;
use crate::gilbert::Gilbert;
use crate::outcome::Tail;

const SEED: u64 = 1;

fn independent(p: f64) -> LossModel {
    LossModel::Independent { p }
}

fn bursts(p: f64, mean_burst: f64) -> LossModel {
    LossModel::Bursts { p, mean_burst }
}

/// 1 kHz, 20 ms there and back, all else at once; feedback is not lost.
fn ideal(loss: LossModel) -> (Demand, Path) {
    let demand = Demand {
        deadline: Span::from_ms(500),
        loss_target: 1e-5,
        interval: Span::from_ms(1),
        datagrams_per_message: 1,
        redundancy_max: 10.0,
        steady: true,
    };
    let path = Path {
        one_way: Span::from_ms(10),
        round_trip: Span::from_ms(20),
        round_trip_jitter: Span::ZERO,
        loss,
        feedback_loss: independent(0.0),
        transmit: Span::ZERO,
        reaction: Span::ZERO,
    };
    (demand, path)
}

/// The lossy link of the budget: 115 B at 200 Hz, deadline 60 ms, bursts of 3 both ways.
fn lossy_cell(loss_target: f64) -> (Demand, Path) {
    let demand = Demand {
        deadline: Span::from_ms(60),
        loss_target,
        interval: Span::from_ms(5),
        datagrams_per_message: 1,
        redundancy_max: 4.0,
        steady: true,
    };
    let path = Path {
        one_way: Span::from_ms(10),
        round_trip: Span::from_ms(20),
        round_trip_jitter: Span::from_us(200),
        loss: bursts(0.05, 3.0),
        feedback_loss: bursts(0.05, 3.0),
        transmit: Span::from_us(9),
        reaction: Span::from_us(100),
    };
    (demand, path)
}

/// Redundancy and residual loss of the literature's schedule: `counts[0]` proactively, the others one after
/// the other, each when the one before is known to have been too little.
fn classic(p: f64, block: u8, counts: &[u8]) -> (f64, f64) {
    let (demand, path) = ideal(independent(p));
    let closed = demand.interval * i64::from(block - 1);
    let at = |round: usize| closed + Span::from_ms(21) * round as i64;
    let rounds: Vec<Round> = counts[..counts.len() - 1]
        .iter()
        .enumerate()
        .map(|(round, &extras)| Round { at: at(round), extras, trigger: Trigger::Unacknowledged })
        .collect();
    let tail = walk(&demand, &path, block, &rounds, at(counts.len() - 1));
    total(&tail, (*counts.last().unwrap()).into())
}

fn total(tail: &Tail, extras: usize) -> (f64, f64) {
    let each = tail.missing.redundancy_per_extra + tail.unheard.redundancy_per_extra;
    let lost = tail.lost_otherwise + tail.missing.lost[extras] + tail.unheard.lost[extras];
    (tail.redundancy + each * extras as f64, lost)
}

/// All ways to write `sum` as `parts` counts.
fn compositions(sum: u8, parts: usize) -> Vec<Vec<u8>> {
    if parts == 1 {
        return vec![vec![sum]];
    }
    let with_first = |first| {
        compositions(sum - first, parts - 1).into_iter().map(move |rest| [vec![first], rest].concat())
    };
    (0..=sum).flat_map(with_first).collect()
}

fn binomial(n: u32, k: u32) -> f64 {
    (0..k).map(|i| f64::from(n - i) / f64::from(k - i)).product()
}

#[test]
fn published_redundancies_come_out() {
    for (p, block, counts, expected) in [
        (0.01, 5, &[3][..], 0.600),
        (0.01, 5, &[0, 3], 0.0294),
        (0.01, 5, &[0, 1, 1, 1], 0.0101),
        (0.05, 20, &[2, 6], 0.1284),
        (0.05, 20, &[0, 1, 2, 5], 0.0668),
        (0.10, 20, &[2, 3, 6], 0.1670),
    ] {
        let (redundancy, _) = classic(p, block, counts);
        assert!((redundancy - expected).abs() < 0.000_05, "{block} {counts:?}: {redundancy}");
    }
}

#[test]
fn published_optima_are_the_best_compositions() {
    for (p, block, best) in [
        (0.01, 5, &[0, 3][..]),
        (0.01, 5, &[0, 1, 1, 1]),
        (0.05, 20, &[2, 6]),
        (0.05, 20, &[0, 1, 2, 5]),
        (0.10, 20, &[2, 3, 6]),
    ] {
        let all = compositions(best.iter().sum(), best.len());
        let cost = |counts: &Vec<u8>| classic(p, block, counts).0;
        let found = all.iter().min_by(|a, b| cost(a).total_cmp(&cost(b))).unwrap();
        assert_eq!(found, best, "{p} {block}");
    }
}

#[test]
fn residual_loss_of_parity_is_the_double_sum_of_the_literature() {
    for (p, k, parity) in [(0.01, 5, 3), (0.05, 20, 8), (0.2, 12, 5)] {
        let mut lost = 0.0;
        for i in 1..=k {
            for j in (parity + 1_u32).saturating_sub(i)..=parity {
                let ways = binomial(k, i) * binomial(parity, j);
                let probability: f64 = p;
                lost += f64::from(i)
                    * ways
                    * probability.powi((i + j) as i32)
                    * (1.0 - p).powi((k + parity - i - j) as i32);
            }
        }
        let (_, residual) = classic(p, k as u8, &[parity as u8]);
        assert!((residual / (lost / f64::from(k)) - 1.0).abs() < 1e-9, "{residual}, {lost}");
    }
}

#[test]
fn residual_loss_of_copies_in_bursts_is_the_product_over_their_distances() {
    let (demand, path) = ideal(bursts(0.05, 3.0));
    let gilbert = Gilbert::new(&path.loss);
    let memory = 1.0 - gilbert.begins - gilbert.ends;
    let again = |packets: i32| 0.05 + 0.95 * memory.powi(packets);
    let first = Round { at: Span::from_ms(4), extras: 2, trigger: Trigger::Unacknowledged };
    let tail = walk(&demand, &path, 1, &[first], Span::from_ms(9));
    // Data 0, others 1 to 4, two copies, others 5 to 9, one copy.
    let expected = 0.05 * again(5) * again(1) * again(6);
    let (_, residual) = total(&tail, 1);
    assert!((residual / expected - 1.0).abs() < 1e-12, "{residual}, {expected}");
}

/// One direction of a simulated path.
struct Channel {
    gilbert: Gilbert,
    lost: bool,
}

impl Channel {
    fn new(model: &LossModel, random: &mut Random) -> Channel {
        let gilbert = Gilbert::new(model);
        Channel { gilbert, lost: random.chance(gilbert.loss) }
    }

    fn delivers(&mut self, random: &mut Random) -> bool {
        self.lost =
            if self.lost { !random.chance(self.gilbert.ends) } else { random.chance(self.gilbert.begins) };
        !self.lost
    }
}

/// A message of a simulated stream with blocks of one message.
#[derive(Default)]
struct Message {
    arrived: bool,
    /// When a feedback that reached the sender was caused, the first that said so.
    acknowledged_ns: Option<i64>,
    reported_missing_ns: Option<i64>,
    extras_sent_ns: Option<i64>,
}

/// Runs `messages` under `plan`, all extras on one channel, event by event; `every` message has extras, the
/// others are sent bare. Returns redundancy and residual loss of those with extras.
fn simulate((demand, path): (Demand, Path), plan: &Plan, messages: i64, every: i64) -> (f64, f64) {
    assert_eq!((plan.block, demand.steady), (1, true));
    let mut random = Random::new(SEED);
    let mut forward = Channel::new(&path.loss, &mut random);
    let mut feedback = Channel::new(&path.feedback_loss, &mut random);
    let interval_ns = demand.interval.ns();
    let mut events: Vec<(i64, usize, i64)> =
        (0..messages).map(|m| (m * interval_ns + path.transmit.ns(), 0, m)).collect();
    for message in (0..messages).step_by(every as usize) {
        for (round, timing) in plan.spread.iter().enumerate().filter(|(round, _)| plan.rounds[*round] > 0) {
            events.push((message * interval_ns + timing.at.ns(), round + 1, message));
        }
    }
    events.sort();
    let mut stream: Vec<Message> = (0..messages).map(|_| Message::default()).collect();
    let mut extras = 0_u32;
    let window = |now_ns: i64| (now_ns - demand.deadline.ns()).div_euclid(interval_ns).max(0) as usize;
    for (now_ns, round, message) in events {
        let newest = (now_ns - path.transmit.ns()).div_euclid(interval_ns) as usize;
        let mut packets = 1;
        if round > 0 {
            let known_ns = now_ns - path.news_delay().ns();
            let state = &mut stream[message as usize];
            if state.acknowledged_ns.is_some_and(|at| at <= known_ns) {
                continue;
            }
            let reported = state.reported_missing_ns.is_some_and(|at| at <= known_ns);
            let under_way = state.extras_sent_ns.is_some_and(|at| at > known_ns);
            let wanted = match plan.spread[round - 1].trigger {
                Trigger::Unacknowledged => true,
                Trigger::Missing => reported && !under_way,
                Trigger::Unheard => !reported,
            };
            if !wanted {
                continue;
            }
            packets = plan.rounds[round - 1];
            state.extras_sent_ns = Some(now_ns + path.transmit.ns() * i64::from(packets));
            extras += u32::from(packets);
        }
        let left_ns = if round > 0 { now_ns + path.transmit.ns() * i64::from(packets) } else { now_ns };
        for _ in 0..packets {
            let arrives = forward.delivers(&mut random);
            stream[message as usize].arrived |= arrives;
            // A lost datagram of data is overdue, a lost extra is not missed.
            if (arrives || round == 0) && feedback.delivers(&mut random) {
                for known in &mut stream[window(now_ns)..=newest] {
                    let slot = if known.arrived {
                        &mut known.acknowledged_ns
                    } else {
                        &mut known.reported_missing_ns
                    };
                    slot.get_or_insert(left_ns);
                }
            }
        }
    }
    let of_interest: Vec<&Message> = stream.iter().step_by(every as usize).collect();
    let count = of_interest.len() as f64;
    (f64::from(extras) / count, of_interest.iter().filter(|message| !message.arrived).count() as f64 / count)
}

#[test]
fn a_lone_message_among_others_fares_as_computed() {
    // Loose enough a target that its misses can be counted.
    for target in [1e-3, 5e-3] {
        let cell = lossy_cell(target);
        let plan = fast(&cell.0, &cell.1).unwrap();
        let (redundancy, residual) = simulate(cell, &plan, 6_000_000, 30);
        assert!((redundancy / plan.redundancy - 1.0).abs() < 0.05, "{redundancy}, {plan:?}");
        // 200,000 messages: a few hundred misses.
        let error = (plan.residual_loss / 200_000.0).sqrt();
        assert!((residual - plan.residual_loss).abs() < 4.0 * error, "{residual}, {plan:?}");
    }
}

#[test]
fn in_a_stream_whose_messages_all_have_extras_the_computed_loss_is_an_upper_bound() {
    let cell = lossy_cell(1e-4);
    let plan = fast(&cell.0, &cell.1).unwrap();
    let (redundancy, residual) = simulate(cell, &plan, 1_000_000, 1);
    assert!(residual <= 1e-4, "{residual}, {plan:?}");
    assert!(redundancy < 1.1 * plan.redundancy, "{redundancy}, {plan:?}");
}

#[test]
fn the_fast_plan_is_never_below_the_least_and_near_it() {
    for p in [0.0, 0.01, 0.05, 0.2] {
        for loss in [independent(p), bursts(p, 3.0)] {
            for deadline_ms in [30, 60] {
                let (demand, path) = lossy_cell(1e-4);
                let demand = Demand { deadline: Span::from_ms(deadline_ms), ..demand };
                let path = Path { loss, feedback_loss: loss, ..path };
                match (fast(&demand, &path), exact(&demand, &path)) {
                    (Ok(fast), Ok(exact)) => {
                        assert!(fast.redundancy >= exact.redundancy - 1e-9, "{fast:?}, {exact:?}");
                        assert!(fast.redundancy <= 1.1 * exact.redundancy + 1e-9, "{fast:?}, {exact:?}");
                        assert!(fast.residual_loss <= demand.loss_target);
                    }
                    (Err(_), Err(_)) => {}
                    (fast, exact) => panic!("{loss:?}: {fast:?}, {exact:?}"),
                }
            }
        }
    }
}

#[test]
fn a_clean_path_needs_nothing() {
    let (demand, path) = ideal(independent(0.0));
    let plan = fast(&demand, &path).unwrap();
    assert_eq!((plan.redundancy, plan.proactive, plan.rounds), (0.0, 0, [0; ROUNDS_MAX]));
}

#[test]
fn a_deadline_below_the_delay_is_refused_with_one_that_would_do() {
    let (demand, path) = lossy_cell(1e-4);
    let wish = Demand { deadline: Span::from_ms(8), ..demand };
    let Err(Infeasible::BelowDelay { delay, feasible }) = fast(&wish, &path) else { panic!() };
    assert_eq!(delay, Span::from_us(10_109));
    let deadline = feasible.deadline.unwrap();
    assert!(fast(&Demand { deadline, ..wish }, &path).is_ok());
}

#[test]
fn a_loss_that_cannot_be_repaired_in_time_is_refused_with_what_can_be_had() {
    let (demand, path) = lossy_cell(1e-4);
    let wish = Demand { deadline: Span::from_ms(15), ..demand };
    let path = Path { loss: bursts(0.2, 20.0), ..path };
    let Err(Infeasible::BeyondCapacity { feasible }) = fast(&wish, &path) else { panic!() };
    let loss_target = feasible.loss_target.unwrap();
    assert!(loss_target > 1e-4);
    assert!(fast(&Demand { loss_target, ..wish }, &path).is_ok());
}

#[test]
fn a_message_of_many_datagrams_is_a_block_and_is_lost_as_a_whole() {
    let (demand, path) = lossy_cell(1e-3);
    let demand = Demand { datagrams_per_message: 40, interval: Span::from_ms(33), ..demand };
    let path = Path { loss: independent(0.01), transmit: Span::from_us(120), ..path };
    let plan = fast(&demand, &path).unwrap();
    assert_eq!(plan.block, 1);
    assert!(plan.residual_loss <= 1e-3 && plan.redundancy < 0.1, "{plan:?}");
}

#[test]
fn no_input_makes_planning_panic() {
    let nan = f64::NAN;
    for (loss, span) in [(bursts(0.999, 1e300), Span::MAX), (independent(nan), Span::MIN)] {
        let (demand, path) = lossy_cell(1e-4);
        let odd = Demand { deadline: span, interval: span, datagrams_per_message: 0, ..demand };
        let _ = fast(&odd, &Path { loss, round_trip: span, transmit: span, ..path });
    }
    let (demand, path) = lossy_cell(nan);
    let _ = fast(&Demand { interval: Span::ZERO, ..demand }, &path);
}
