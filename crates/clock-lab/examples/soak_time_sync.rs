//! Searches random clocks and paths for one where the truth leaves the bound of `bounded`.
//!
//! Arguments: first seed and number of seeds (default 1 and 10,000). Exit code 1 if one is found.

#![allow(clippy::print_stdout)]

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut numbers = std::env::args().skip(1).map(|word| word.parse::<u64>());
    let (first, count) = match (numbers.next(), numbers.next()) {
        (None, _) => (1, 10_000),
        (Some(Ok(first)), Some(Ok(count))) => (first, count),
        _ => {
            println!("soak_time_sync takes two whole numbers: the first seed and how many");
            return ExitCode::from(2);
        }
    };
    let found = noctule_clock_lab::sweep::soak(first..first.saturating_add(count));
    for (seed, accuracy) in &found {
        println!("seed {seed}: the truth left the bound {:?} times", accuracy.bound_violations);
    }
    println!("{count} seeds from {first}: {} with violations", found.len());
    if found.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) }
}
