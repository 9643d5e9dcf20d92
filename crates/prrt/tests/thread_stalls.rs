//! Threads that stall for 5 to 50 ms, about once a second, beside DESIGN's lossy link: what they delay is not taken for what the link
//! loses.

use noctule_timebase::Span;

mod lossy;

use lossy::{Cell, Outcome, ThreadStalls, run};

const SAMPLES: u64 = 20_000;
/// Stalls, and bursts of the link, are few: their mean is of several runs.
const SEEDS: std::ops::RangeInclusive<u64> = 1..=4;
const BUSY: Option<ThreadStalls> = Some(ThreadStalls::BUSY);

/// Share not in time, and redundancy, of all seeds together.
fn together(cell: Cell) -> (f64, f64) {
    let outcomes: Vec<Outcome> = SEEDS.map(|seed| run(cell, SAMPLES, seed)).collect();
    let sum = |of: fn(&Outcome) -> u64| outcomes.iter().map(of).sum::<u64>() as f64;
    let missing = sum(|outcome| outcome.sent - outcome.on_time);
    let extras = sum(|outcome| outcome.sender.bound_repeats + outcome.sender.bound_parity);
    (missing / sum(|outcome| outcome.sent), extras / sum(|outcome| outcome.sender.bound_data))
}

#[test]
fn a_stall_costs_what_it_must_and_redundancy_stays_in_proportion() {
    let (residual, quiet) = together(Cell::LOSSY);
    println!("none: residual {residual:.2e}, redundancy {quiet:.4}");
    // The share that came too late, or was not known to be lost in time, with room for chance.
    for (thread_stalls, writer_stalls, most) in [
        ([BUSY, None], false, 2e-4),
        ([BUSY, None], true, 8e-4),
        ([None, BUSY], false, 7e-4),
        ([BUSY; 2], false, 8e-4),
        ([BUSY; 2], true, 1.4e-3),
    ] {
        let (residual, redundancy) = together(Cell { thread_stalls, writer_stalls, ..Cell::LOSSY });
        let what = (thread_stalls.map(|thread_stalls| thread_stalls.is_some()), writer_stalls);
        println!("{what:?}: residual {residual:.2e}, redundancy {redundancy:.4}");
        assert!(redundancy <= 1.3 * quiet, "{what:?}, seeds {SEEDS:?}: {redundancy} instead of {quiet}");
        assert!(residual <= most, "{what:?}, seeds {SEEDS:?}: {residual:.2e}");
    }
}

#[test]
fn without_loss_a_busy_machine_spends_next_to_nothing() {
    let cell = Cell { loss: 0.0, burst: 1.0, thread_stalls: [BUSY; 2], ..Cell::LOSSY };
    let outcome = run(cell, SAMPLES, 1);
    println!("residual {:.2e}, redundancy {:.4}", outcome.residual(), outcome.redundancy());
    assert!(outcome.redundancy() < 0.03, "seed 1: {}", outcome.redundancy());
    // What was sent in time and lay in the receiver's socket beyond its deadline cannot be helped; there is little of it.
    assert!(outcome.residual() < 1e-3, "seed 1: {:.2e}", outcome.residual());
}

#[test]
fn a_thread_that_mostly_stalls_ends_nothing() {
    let always = ThreadStalls { every: Span::from_ms(20), length: (Span::from_ms(5), Span::from_ms(50)) };
    let cell = Cell { thread_stalls: [Some(always); 2], writer_stalls: true, ..Cell::LOSSY };
    let outcome = run(cell, SAMPLES, 1);
    println!("residual {:.2e}, redundancy {:.4}", outcome.residual(), outcome.redundancy());
    assert_eq!((outcome.late, outcome.twice), (0, 0), "seed 1");
    assert!(outcome.on_time > outcome.sent / 2, "seed 1: {} of {}", outcome.on_time, outcome.sent);
    assert!(outcome.redundancy() < 1.0, "seed 1: {}", outcome.redundancy());
}
