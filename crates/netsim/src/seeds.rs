//! Which seeds a random simulation runs.

use std::ops::Range;

/// `count` seeds from `first` on, or those that `NOCTULE_SEED` (the first) and `NOCTULE_SEEDS` (how many) say:
/// `cargo xtask sim CORE --seed N` sets them.
///
/// # Panics
/// If one of them is no whole number.
pub fn seeds(first: u64, count: u64) -> Range<u64> {
    let first = number("NOCTULE_SEED", first);
    first..first.saturating_add(number("NOCTULE_SEEDS", count))
}

fn number(name: &str, usual: u64) -> u64 {
    let Ok(text) = std::env::var(name) else { return usual };
    text.parse().unwrap_or_else(|_| panic!("{name} is \"{text}\"; it must be a whole number"))
}
