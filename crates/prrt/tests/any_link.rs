//! The short form of the map of links: no class is worse than best effort on links that it was not tuned to.
//!
//! The long form is `cargo xtask sweep prrt`. Seeds are fixed, so a cell either fails or does not.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // tests and what they share

mod map;

use map::{Cell, Form, Outcome, PARTS, Service, cells, run};

const SEED: u64 = 1;
/// Cells of the whole space, drawn by the seed.
const DRAWN: u64 = 16;
/// No class may have fewer samples in time than best effort by more than this share, and the interval.
const ALLOWANCE: f64 = 0.001;
/// Student's t, 97.5 %, 19 degrees of freedom.
const STUDENT: f64 = 2.093;

/// Cells where a class is worse than best effort today, as axis and name. A cell that is no longer is taken out.
type Known = [(&'static str, &'static str)];

/// Every byte more displaces another where a line carries half of what is offered.
const DEADLINE_BOUND: &Known =
    &[("rate", "0.5 of the offer with a queue of 20ms"), ("rate", "0.5 of the offer with a policer")];
/// What is kept until it has arrived is late where more is offered than the line carries. The drawn one is a line of 1.2 times the offer whose queue holds two
/// datagrams, with jitter longer than that queue: each loss costs a part of the window, and QUIC is late there, too (66 %).
const RELIABLE: &Known = &[
    ("rate", "0.5 of the offer with a queue of 20ms"),
    ("rate", "0.5 of the offer with a policer"),
    ("drawn", "3"),
];

/// The cells that take milliseconds: the small load on each axis, and what the seed draws.
fn short_map() -> Vec<Cell> {
    let is_quick = |cell: &Cell| cell.load == map::Load::State && cell.beside == map::Beside::Nothing;
    let mut cells: Vec<Cell> = cells::cells(Form::Short, 0, SEED).into_iter().filter(is_quick).collect();
    cells.extend((0..DRAWN).map(|number| cells::drawn(Form::Short, SEED, number)).filter(is_quick));
    cells
}

/// By how much less of `ours` is in time than of `other`, and the half interval of that.
fn shortfall(ours: &Outcome, other: &Outcome) -> (f64, f64) {
    let of_part = ours.samples as f64 / PARTS as f64;
    let parts = ours.on_time_by_part.iter().zip(&other.on_time_by_part);
    let missing: Vec<f64> = parts.map(|(ours, other)| (*other as f64 - *ours as f64) / of_part).collect();
    let mean = missing.iter().sum::<f64>() / PARTS as f64;
    let variance = missing.iter().map(|m| (m - mean) * (m - mean)).sum::<f64>() / (PARTS - 1) as f64;
    (mean, STUDENT * (variance / PARTS as f64).sqrt())
}

fn expect_no_link_worse(class: Service, known: &Known) {
    let (mut worse, mut mended) = (Vec::new(), Vec::new());
    let cells = short_map();
    for cell in &cells {
        let [ours, other] = [class, Service::BestEffort].map(|class| run(cell, class, SEED).unwrap());
        let (missing, interval) = shortfall(&ours, &other);
        let is_worse = missing > ALLOWANCE + interval;
        let is_known = known.contains(&(cell.axis, cell.name.as_str()));
        if is_worse {
            println!("{} {}: {:.2} points worse", cell.axis, cell.name, missing * 100.0);
        }
        match (is_worse, is_known) {
            (true, false) => worse.push((cell.axis, cell.name.as_str())),
            (false, true) => mended.push((cell.axis, cell.name.as_str())),
            _ => {}
        }
    }
    println!("seed {SEED}: {} cells, {} known to be worse", cells.len(), known.len());
    assert!(worse.is_empty(), "seed {SEED}: worse than best effort: {worse:#?}");
    assert!(mended.is_empty(), "seed {SEED}: no longer worse than best effort, take them out: {mended:#?}");
}

#[test]
fn with_a_deadline_no_link_delivers_less_than_best_effort_does() {
    expect_no_link_worse(Service::DeadlineBound, DEADLINE_BOUND);
}

#[test]
fn what_is_reliable_is_in_time_as_often_as_best_effort_where_the_line_carries_what_is_offered() {
    expect_no_link_worse(Service::Reliable, RELIABLE);
}
