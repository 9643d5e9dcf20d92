//! `bench_sync NOCTULE SECONDS DIRECTORY [idle|busy]`: the clock exchange live over UDP, on an idle and on
//! a busy machine or on one of them, each for that long.

#![allow(clippy::print_stdout)]

use std::path::Path;

use noctule_clock_lab::live::LOADS;

fn main() -> Result<(), String> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [noctule, seconds, directory, load @ ..] = arguments.as_slice() else {
        return Err("usage: bench_sync NOCTULE SECONDS DIRECTORY [idle|busy]".into());
    };
    let chosen = |name: &&str| load.is_empty() || load.iter().any(|load| load == name);
    let loads: Vec<&str> = LOADS.into_iter().filter(chosen).collect();
    let seconds = seconds.parse().map_err(|_| format!("{seconds} is no whole number of seconds"))?;
    let runs = noctule_clock_lab::live::measure(Path::new(noctule), seconds, &loads, Path::new(directory))?;
    print!("{}", noctule_clock_lab::live::table(&runs));
    let left: u64 = runs.iter().filter_map(|run| run.whole.bound_violations).sum();
    if left > 0 { Err(format!("the truth left the bound {left} times")) } else { Ok(()) }
}
