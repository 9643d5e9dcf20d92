//! DESIGN's lossy cell, simulated: share on time and redundancy.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

#[path = "../tests/lossy/mod.rs"]
mod lossy;

use lossy::{Cell, run};

fn main() {
    let samples = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1_000_000);
    let outcome = run(Cell::LOSSY, samples, 1);
    println!("{outcome:#?}");
    println!("residual {:.2e}, redundancy {:.4}", outcome.residual(), outcome.redundancy());
}
