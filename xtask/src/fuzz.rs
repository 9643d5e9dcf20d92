//! Fuzzing, on a nightly compiler with the address sanitizer.

use crate::shell;

/// Fuzzes one target of `fuzz/`, or all in turn, for `seconds` each.
pub fn run(target: Option<&str>, seconds: u32) -> Result<(), String> {
    if shell::output("cargo +nightly fuzz --version").is_none() {
        println!("installing cargo-fuzz");
        shell::run("cargo install --quiet --locked cargo-fuzz")?;
    }
    let all = shell::output("ls fuzz/fuzz_targets").unwrap_or_default();
    let all: Vec<&str> = all.lines().filter_map(|file| file.strip_suffix(".rs")).collect();
    let chosen = match target {
        None => all.clone(),
        Some(target) if all.contains(&target) => vec![target],
        Some(other) => {
            return Err(format!("no fuzz target is called \"{other}\"; there are {}", all.join(", ")));
        }
    };
    for target in chosen {
        shell::run(&format!(
            "cargo +nightly fuzz run {target} -- -max_total_time={seconds} -max_len=4096 -rss_limit_mb=4096"
        ))?;
    }
    Ok(())
}
