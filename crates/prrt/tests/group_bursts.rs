//! A group whose receivers lose in bursts, or all together: what it costs, and that parity and requests are dimensioned for it.
#![allow(clippy::unwrap_used, clippy::panic)] // tests and what they share

use noctule_prrt::group::{Ask, Body, Datagram, GroupSender, MemberId, Report, SymbolKind};
use noctule_prrt::{Local, Outgoing};
use noctule_timebase::{Instant, Span};

#[allow(dead_code)]
mod swarm;

use swarm::{Fade, Swarm, Terms};

/// How the network loses.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Loss {
    /// At each receiver, and on each way back, as `burst=` of `docs/spec/link-text.md` has it.
    Each(&'static str),
    /// At the writer's radio, so long in a row.
    All(Span),
}

const LOSSES: [Loss; 5] =
    [Loss::Each("1"), Loss::Each("3"), Loss::Each("10"), Loss::Each("15ms"), Loss::All(Span::from_ms(15))];

/// Delay and deadline in ms: time for three requests, for six, and for none.
const TIMES: [(i64, i64); 3] = [(5, 60), (5, 100), (50, 100)];

/// Results of one cell, means over the seeds.
#[derive(Clone, Copy, Debug, Default)]
struct Figures {
    worst: f64,
    mean: f64,
    /// Parity and repairs per datagram of data; of them those unasked.
    extras: f64,
    unasked: f64,
}

/// 16 receivers, 115 B at 200 Hz, target 1e-3.
fn run(loss: Loss, percent: u32, (delay_ms, deadline_ms): (i64, i64), samples: i64, seed: u64) -> Figures {
    let terms = Terms { payload_bytes: 115, deadline: Span::from_ms(deadline_ms), ..Terms::of(16, seed) };
    let spec = match loss {
        Loss::Each(burst) => format!("delay={delay_ms}ms loss={percent}% burst={burst}"),
        Loss::All(_) => format!("delay={delay_ms}ms"),
    };
    let mut swarm = Swarm::new(terms, &spec.parse().unwrap());
    if let Loss::All(mean) = loss {
        swarm.writer().fade = Some(Fade::new(f64::from(percent) / 100.0, mean, seed));
    }
    // Twenty seconds are the estimates'.
    swarm.run(terms.interval * 4_000);
    let (before, from) = (swarm.sender_counters(), swarm.writer().published.len() as u64);
    swarm.writer().stops_at = swarm.network.local_now(0) + terms.interval * samples;
    swarm.run(terms.interval * samples + Span::from_s(1));
    let after = swarm.sender_counters();
    let outcomes = (1..=16).map(|number| {
        let outcome = swarm.outcome(number, from);
        let faults = (outcome.late, outcome.twice, outcome.damaged);
        assert_eq!(faults, (0, 0, 0), "seed {seed}, reader {number}: late, twice, damaged");
        outcome.residual
    });
    let residuals: Vec<f64> = outcomes.collect();
    let data = (after.datagrams - before.datagrams) as f64;
    let unasked = (after.parity_unasked - before.parity_unasked) as f64 / data;
    let asked = (after.parity_asked - before.parity_asked) as f64 / data;
    let worst = residuals.iter().copied().fold(0.0, f64::max);
    Figures { worst, mean: residuals.iter().sum::<f64>() / 16.0, extras: unasked + asked, unasked }
}

fn runs(loss: Loss, percent: u32, times: (i64, i64), samples: i64, seeds: u64) -> Figures {
    let all: Vec<Figures> = (1..=seeds).map(|seed| run(loss, percent, times, samples, seed)).collect();
    let mean = |of: fn(&Figures) -> f64| all.iter().map(of).sum::<f64>() / all.len() as f64;
    Figures {
        worst: mean(|of| of.worst),
        mean: mean(|of| of.mean),
        extras: mean(|of| of.extras),
        unasked: mean(|of| of.unasked),
    }
}

fn line(loss: Loss, percent: u32, (delay_ms, deadline_ms): (i64, i64), figures: Figures) -> String {
    let Figures { worst, mean, extras, unasked } = figures;
    format!(
        "| {delay_ms} | {deadline_ms} | {percent} % | {loss:?} | {worst:.1e} | {mean:.1e} | {extras:.2} | {unasked:.2} |"
    )
}

/// Figures of `benchmarks/prrt.md`: `cargo test -p noctule-prrt --test group_bursts -- --ignored --nocapture`.
#[test]
#[ignore = "prints figures for minutes"]
fn figures() {
    println!(
        "| delay, ms | deadline, ms | loss | bursts | worst receiver | mean | extras | of them unasked |"
    );
    for times in TIMES {
        for (percent, loss) in [1, 5].into_iter().flat_map(|percent| LOSSES.map(|loss| (percent, loss))) {
            println!("{}", line(loss, percent, times, runs(loss, percent, times, 20_000, 3)));
        }
    }
}

/// Means in bursts were 6.8e-4, 1.6e-3 and 6.2e-3; the ceilings of the first and the last cell are what independent losses cost then.
#[test]
fn bursts_are_repaired_and_independent_losses_cost_no_more_for_that() {
    let [soon, _, blind] = TIMES;
    let cells = [
        (Loss::Each("1"), 1, soon, 1e-4, 0.13),
        (Loss::Each("3"), 1, soon, 4e-4, 0.17),
        (Loss::Each("3"), 5, soon, 1e-3, 0.72),
        (Loss::Each("3"), 1, blind, 1e-3, 1.01),
        (Loss::Each("1"), 1, blind, 2e-4, 0.21),
    ];
    for (loss, percent, times, residual_most, extras_most) in cells {
        let figures = runs(loss, percent, times, 6_000, 2);
        println!("{}", line(loss, percent, times, figures));
        assert!(figures.mean <= residual_most, "{loss:?}, {percent} %, {times:?}: {figures:?}");
        assert!(figures.worst <= 4.0 * residual_most, "{loss:?}, {percent} %, {times:?}: {figures:?}");
        assert!(figures.extras <= extras_most, "{loss:?}, {percent} %, {times:?}: {figures:?}");
    }
}

/// A repair that is lost is announced by nothing but itself: the receiver's second request is equal to its first.
#[test]
fn parity_that_was_lost_with_all_that_announced_it_is_replaced_when_later_datagrams_arrived() {
    let at = |ms: i64| Instant::<Local>::from_ns(ms * 1_000_000);
    let terms = Terms { deadline: Span::from_ms(300), ..Terms::of(2, 1) };
    let mut sender = GroupSender::new(terms.group(1), at(0));
    assert!(sender.join(MemberId(1)));
    // Gives the packets of parity of block 0 among what leaves, and the newest packet.
    let mut newest = 0;
    let mut leave = |sender: &mut GroupSender, now: Instant<Local>| {
        let (mut parity, mut bytes) = (Vec::new(), Vec::new());
        while sender.poll_transmit(now, &mut bytes) {
            let Body::Symbol(symbol) = Datagram::decode(&bytes).unwrap().body else { panic!("no symbol") };
            newest = symbol.packet;
            if symbol.block == 0 && matches!(symbol.kind, SymbolKind::Parity { .. }) {
                parity.push(symbol.packet);
            }
            bytes.clear();
        }
        (parity, newest)
    };
    let (_, hailed) = leave(&mut sender, at(0));
    let report = |newest, asks: &[Ask]| Report { newest, received: newest, delay_ns: 0, asks: asks.to_vec() };
    sender.handle_report(MemberId(1), &report(hailed, &[]), at(10));
    let payload = [1; 80];
    let sample = |number| Outgoing { sequence: number, ..terms.sample(&payload) };
    assert!(sender.send(&sample(1), at(10)));
    leave(&mut sender, at(10));
    // Of the first block nothing arrives, of the second all does.
    assert!(sender.send(&sample(2), at(100)));
    let (_, before) = leave(&mut sender, at(100));
    let ask = Ask { block: 0, held: 0, settled: 0 };
    sender.handle_report(MemberId(1), &report(before, &[ask]), at(110));
    let (first, newest) = leave(&mut sender, at(110));
    assert!(!first.is_empty());
    sender.handle_report(MemberId(1), &report(before, &[ask]), at(115));
    let (again, _) = leave(&mut sender, at(115));
    assert!(again.is_empty(), "equal requests are answered once: {again:?}");
    sender.handle_report(MemberId(1), &report(newest, &[ask]), at(120));
    let (replaced, _) = leave(&mut sender, at(120));
    assert!(!replaced.is_empty(), "{first:?} is lost");
}
