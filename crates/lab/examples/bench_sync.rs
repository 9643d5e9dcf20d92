//! `bench_sync NOCTULE SECONDS DIRECTORY`: the clock exchange live over UDP, four runs of that length.

#![allow(clippy::print_stdout)]

use std::path::Path;

fn main() -> Result<(), String> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [noctule, seconds, directory] = arguments.as_slice() else {
        return Err("usage: bench_sync NOCTULE SECONDS DIRECTORY".into());
    };
    let seconds = seconds.parse().map_err(|_| format!("{seconds} is no whole number of seconds"))?;
    let runs = noctule_lab::sync::live::measure(Path::new(noctule), seconds, Path::new(directory))?;
    print!("{}", noctule_lab::sync::live::table(&runs));
    let left: u64 = runs.iter().filter_map(|run| run.whole.bound_violations).sum();
    if left > 0 { Err(format!("the truth left the bound {left} times")) } else { Ok(()) }
}
