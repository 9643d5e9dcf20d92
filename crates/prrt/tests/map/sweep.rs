//! The map as a table on standard output.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use super::{Cell, Fault, Form, Outcome, cells};

const HEADER: &str = "axis,name,load,deadline_ms,beside,link,seed,class,samples,on_time,late,redundancy,wire_ratio,p50_ms,p99_ms,beside_mbps,on_time_by_part";

/// Runs the cells that `words` names with each of `classes`, and prints a row for each: SEED DRAWN [full|short|drawn] [THREADS [FROM TO
/// [RUNS]]]. Of several runs each has another seed of what happens on the links, from that of the drawn cells on.
#[allow(clippy::print_stdout, clippy::print_stderr)] // a table on standard output is what this is for
pub fn sweep(
    words: &[String],
    classes: &[&str],
    run: impl Fn(&Cell, usize, u64) -> Result<Outcome, Fault> + Sync,
) {
    let number = |place: usize, other: u64| words.get(place).and_then(|w| w.parse().ok()).unwrap_or(other);
    let (seed, draws, threads) = (number(0, 1), number(1, 150), number(3, 1));
    let runs = number(6, 1);
    let form = if words.get(2).is_some_and(|word| word == "short") { Form::Short } else { Form::Full };
    let is_drawn = words.get(2).is_some_and(|word| word == "drawn");
    let drawn = (0..draws).map(|number| cells::drawn(form, seed, number));
    let mut cells: Vec<Cell> = if is_drawn { drawn.collect() } else { cells::cells(form, draws, seed) };
    cells.truncate(number(5, u64::MAX) as usize);
    cells.drain(..cells.len().min(number(4, 0) as usize));
    let runs: Vec<(&Cell, u64)> =
        (0..runs).flat_map(|run| cells.iter().map(move |cell| (cell, seed.wrapping_add(run)))).collect();
    let (next, rows) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    let begin = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some((place, (cell, seed))) =
                    runs.iter().enumerate().nth(next.fetch_add(1, Ordering::Relaxed))
                {
                    let start = Instant::now();
                    let row = |(class, name): (usize, &&str)| {
                        let outcome = catch_unwind(AssertUnwindSafe(|| run(cell, class, *seed)));
                        line(cell, (name, *seed), outcome.unwrap_or_else(|_| Err("it panicked".into())))
                    };
                    let lines: Vec<String> = classes.iter().enumerate().map(row).collect();
                    eprintln!(
                        "{place} of {}: {} {}, {:.1} s",
                        runs.len(),
                        cell.axis,
                        cell.name,
                        start.elapsed().as_secs_f64()
                    );
                    rows.lock().unwrap_or_else(PoisonError::into_inner).insert(place, lines);
                }
            });
        }
    });
    println!("{HEADER}");
    for line in rows.into_inner().unwrap_or_else(PoisonError::into_inner).into_values().flatten() {
        println!("{line}");
    }
    eprintln!("{} cells in {:.0} s", cells.len(), begin.elapsed().as_secs_f64());
}

fn line(cell: &Cell, (class, seed): (&str, u64), outcome: Result<Outcome, Fault>) -> String {
    let Cell { axis, name, load, deadline, link, beside, .. } = cell;
    let deadline_ms = (deadline.ns() / 100_000) as f64 / 10.0;
    let (load, beside) = (load.name(), beside.name());
    let begin = format!("{axis},{name},{load},{deadline_ms},{beside},{link},{seed},{class}");
    match outcome {
        Ok(outcome) => format!("{begin},{}", figures(&outcome)),
        Err(why) => format!("{begin},{},0,0,,,,,,{}", cell.samples(), why.to_string().replace(',', ";")),
    }
}

fn figures(outcome: &Outcome) -> String {
    let Outcome { samples, on_time, late, wire_ratio, p50_ms, p99_ms, beside_mbps, .. } = outcome;
    let redundancy = outcome.redundancy.map_or(String::new(), |share| format!("{share:.5}"));
    let parts: Vec<String> = outcome.on_time_by_part.iter().map(u64::to_string).collect();
    format!(
        "{samples},{on_time},{late},{redundancy},{wire_ratio:.4},{p50_ms:.3},{p99_ms:.3},{beside_mbps:.4},{}",
        parts.join(" ")
    )
}
