//! A group whose receivers lose in bursts, or all together: what it costs, and that it keeps its target.
#![allow(clippy::unwrap_used, clippy::panic)] // tests and what they share

use noctule_timebase::Span;

#[allow(dead_code)]
mod swarm;

use swarm::{Fade, Swarm, Terms};

/// How the network loses.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Loss {
    /// At each receiver, as `burst=` of `docs/spec/link-text.md` has it.
    Each(&'static str),
    /// At the writer's radio, so long in a row.
    All(Span),
}

const LOSSES: [Loss; 5] = [
    Loss::Each("1"),
    Loss::Each("3"),
    Loss::Each("10"),
    Loss::Each("15ms"),
    Loss::All(Span::from_ms(15)),
];

/// Results of one cell.
#[derive(Clone, Copy, Debug, Default)]
struct Figures {
    worst: f64,
    mean: f64,
    /// Parity and repairs per datagram of data.
    extras: f64,
    unasked: f64,
}

/// 16 receivers, 115 B at 200 Hz, 5 ms of delay, target 1e-3.
fn run(loss: Loss, percent: u32, deadline_ms: i64, samples: i64, seed: u64) -> Figures {
    let terms = Terms { payload_bytes: 115, deadline: Span::from_ms(deadline_ms), ..Terms::of(16, seed) };
    let spec = match loss {
        Loss::Each(burst) => {
            let back = std::env::var("BACK").unwrap_or_default();
            format!("delay=5ms loss={percent}% burst={burst}{back}")
        }
        Loss::All(_) => "delay=5ms".to_owned(),
    };
    let mut swarm = Swarm::new(terms, &spec.parse().unwrap());
    if let Loss::All(mean) = loss {
        swarm.writer().fade = Some(Fade::new(f64::from(percent) / 100.0, mean, seed));
    }
    // Half a minute is the estimates'.
    let (from, warm) = (6_000, 6_000);
    swarm.run(terms.interval * warm);
    let before = swarm.sender_counters();
    swarm.writer().stops_at = swarm.network.local_now(0) + terms.interval * samples;
    swarm.run(terms.interval * samples + Span::from_s(1));
    let after = swarm.sender_counters();
    let residuals: Vec<f64> = (1..=16)
        .map(|number| {
            let outcome = swarm.outcome(number, from);
            assert_eq!((outcome.late, outcome.twice, outcome.damaged), (0, 0, 0), "seed {seed}, reader {number}");
            outcome.residual
        })
        .collect();
    let data = (after.datagrams - before.datagrams) as f64;
    let unasked = (after.parity_unasked - before.parity_unasked) as f64 / data;
    let asked = (after.parity_asked - before.parity_asked) as f64 / data;
    Figures {
        worst: residuals.iter().copied().fold(0.0, f64::max),
        mean: residuals.iter().sum::<f64>() / 16.0,
        extras: unasked + asked,
        unasked,
    }
}

/// Figures of `benchmarks/prrt.md`: `cargo test -p noctule-prrt --test group_bursts -- --ignored --nocapture`.
#[test]
#[ignore = "prints figures for minutes"]
fn figures() {
    for deadline_ms in [60, 100] {
        for percent in [1, 5] {
            for loss in LOSSES {
                let all: Vec<Figures> = (1..=2).map(|seed| run(loss, percent, deadline_ms, 10_000, seed)).collect();
                let mean = |of: fn(&Figures) -> f64| all.iter().map(of).sum::<f64>() / all.len() as f64;
                println!(
                    "| {deadline_ms} | {percent} % | {loss:?} | {:.1e} | {:.1e} | {:.3} | {:.3} |",
                    mean(|of| of.worst),
                    mean(|of| of.mean),
                    mean(|of| of.extras),
                    mean(|of| of.unasked),
                );
            }
        }
    }
}

#[test]
#[ignore = "diagnosis"]
fn diagnose() {
    use noctule_prrt::group::trace::{Answer, Event};
    use noctule_prrt::group::MemberId;
    use std::collections::BTreeMap;
    for (percent, burst, deadline_ms) in [(1, "3", 60), (5, "3", 60), (1, "15ms", 60), (5,"10",60), (1,"10",100)] {
        let terms = Terms { payload_bytes: 115, deadline: Span::from_ms(deadline_ms), ..Terms::of(16, 1) };
        let spec = format!("delay=5ms loss={percent}% burst={burst}");
        let mut swarm = Swarm::new(terms, &spec.parse().unwrap());
        swarm.run(terms.interval * 4_000);
        swarm.note();
        swarm.run(terms.interval * 4_000);
        let sequences: Vec<u64> = (4_010..7_950).collect();
        let noted = swarm.noted().to_vec();
        let mut block_of: BTreeMap<u64, u32> = BTreeMap::new();
        let mut sent: BTreeMap<u32, (u32, u32, u32)> = BTreeMap::new();
        let mut reader: BTreeMap<(usize, u32), [u32; 8]> = BTreeMap::new();
        for (_, node, event) in &noted {
            match event {
                Event::Taken { sequence, block, .. } => { block_of.insert(*sequence, *block); }
                Event::Sent { block, symbol, trigger, .. } => {
                    let of = sent.entry(*block).or_default();
                    match trigger {
                        noctule_prrt::group::trace::Purpose::Data => of.0 += 1,
                        noctule_prrt::group::trace::Purpose::ParityUnasked => of.1 += 1,
                        _ => of.2 += 1,
                    }
                    let _ = symbol;
                }
                Event::AskReceived { member: MemberId(m), block, trigger, .. } => {
                    let at = match trigger { Answer::Granted => 0, Answer::Late => 1, Answer::Open => 2, _ => 3 };
                    reader.entry((*m as usize, *block)).or_default()[at] += 1;
                }
                Event::Asked { block, .. } => reader.entry((*node, *block)).or_default()[4] += 1,
                Event::DataReceived { block, .. } => reader.entry((*node, *block)).or_default()[5] += 1,
                Event::ParityReceived { block, .. } => reader.entry((*node, *block)).or_default()[6] += 1,
                Event::AskWithheld { block, .. } => reader.entry((*node, *block)).or_default()[7] += 1,
                _ => {}
            }
        }
        let counters = swarm.sender_counters();
        println!("== {percent} % {burst} {deadline_ms}: {counters:?} {:?}", swarm.writer().changes);
        let mut classes: BTreeMap<String, u32> = BTreeMap::new();
        let mut total = 0;
        for number in 1..=16 {
            let missed: Vec<u64> = sequences.iter().copied().filter(|n| !swarm.reader(number).on_time.contains(n)).collect();
            total += missed.len();
            for n in missed {
                let Some(block) = block_of.get(&n) else { *classes.entry("no block".into()).or_default() += 1; continue };
                let (data, unasked, asked) = sent.get(block).copied().unwrap_or_default();
                let r = reader.get(&(number, *block)).copied().unwrap_or_default();
                let class = format!("k={data} unasked={unasked} | got data {} parity {} of asked {asked} | asked {} granted {} late {} open {} withheld {}", r[5], r[6], r[4], r[0], r[1], r[2], r[7]);
                *classes.entry(class).or_default() += 1;
            }
        }
        let mut all: Vec<_> = classes.into_iter().collect();
        all.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
        println!("missed {total} of {}", sequences.len() * 16);
        for (class, n) in all.iter().take(22) { println!("{n:5} {class}"); }
    }
}
