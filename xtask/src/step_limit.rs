//! Ends a step that hangs, so that a hanging test is a failure with a name and not a run without an end.
//!
//! All processes that the step started are ended, with those that these started. They are found by their parents and not by a process
//! group: of a group of its own Ctrl-C would not end them.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use crate::shell;

/// Twice the longest step, cold, on two processors that other builds use too. The whole run has 45 minutes.
pub const LIMIT: Duration = Duration::from_secs(30 * 60);
/// A step that goes on with its next command is ended again after this.
const END_AGAIN: Duration = Duration::from_secs(1);

/// Why a step failed.
pub struct Failure {
    /// One sentence, or what the step says.
    pub why: String,
    /// It hung, and would hang again.
    pub is_over_limit: bool,
}

/// Does the work of a step, which takes `limit` at most.
///
/// # Errors
/// The work's own, or that it took longer; that sentence names the step, the limit, the last line that was printed and what still ran.
pub fn run(step: &str, limit: Duration, work: impl FnOnce() -> Result<(), String>) -> Result<(), Failure> {
    // Processes that compile ahead belong to all steps.
    let before: BTreeSet<u32> =
        processes().iter().filter(|(_, of)| *of == std::process::id()).map(|it| it.0).collect();
    run_with(step, limit, move |child| !before.contains(&child), work)
}

/// As [`run`], of the children of this process that `is_of_step` says.
fn run_with(
    step: &str,
    limit: Duration,
    is_of_step: impl Fn(u32) -> bool + Send + 'static,
    work: impl FnOnce() -> Result<(), String>,
) -> Result<(), Failure> {
    // The last line of the step before is not this one's.
    _ = shell::take_last_line();
    let (working, ended) = channel::<()>();
    let watch = std::thread::spawn(move || {
        let (mut wait, mut still_ran) = (limit, None);
        while ended.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
            let ended = end(&is_of_step);
            still_ran.get_or_insert(ended);
            wait = END_AGAIN;
        }
        still_ran
    });
    let result = work();
    drop(working);
    let Some(still_ran) = watch.join().unwrap_or_default() else {
        return result.map_err(|why| Failure { why, is_over_limit: false });
    };
    let (limit_s, last) = (limit.as_secs(), shell::take_last_line());
    let why = format!(
        "the step \"{step}\" took longer than its limit of {limit_s} s and was ended; the last line that it printed: {last}; it still ran: {still_ran}"
    );
    Err(Failure { why, is_over_limit: true })
}

/// Every process of this machine, and its parent (proc_pid_stat(5), field 4).
fn processes() -> Vec<(u32, u32)> {
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    all.filter_map(|entry| {
        let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
        // The second field, a name in brackets, may have spaces.
        let parent = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?;
        Some((entry.file_name().to_str()?.parse().ok()?, parent.parse().ok()?))
    })
    .collect()
}

/// Ends the children of this process that are of the step, with their own; the command lines of those that waited for no child of theirs.
fn end(is_of_step: impl Fn(u32) -> bool) -> String {
    let (processes, us) = (processes(), std::process::id());
    let mut found: Vec<u32> =
        processes.iter().filter(|(it, of)| *of == us && is_of_step(*it)).map(|(it, _)| *it).collect();
    let mut at = 0;
    while let Some(parent) = found.get(at).copied() {
        found.extend(processes.iter().filter(|(_, of)| *of == parent).map(|(it, _)| *it));
        at += 1;
    }
    let waits = |process: &u32| processes.iter().any(|(_, of)| of == process);
    let last = found.iter().filter(|process| !waits(process)).filter_map(|process| command_line(*process));
    let last = last.collect::<Vec<_>>().join(", ");
    let numbers = found.iter().map(u32::to_string);
    // One that has ended by itself meanwhile is no fault.
    _ = Command::new("kill").arg("-KILL").args(numbers).stderr(Stdio::null()).status();
    last
}

/// As it was started (proc_pid_cmdline(5)).
fn command_line(process: u32) -> Option<String> {
    let line = std::fs::read_to_string(format!("/proc/{process}/cmdline")).ok()?;
    Some(format!("`{}`", line.trim_end_matches('\0').replace('\0', " ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_that_hangs_fails_by_name_with_its_last_line_and_its_processes_end() {
        let line = "echo 'test a ... ok'; (tail -f /dev/null; true) & wait";
        // Other tests have children of their own.
        let is_ours = move |child| {
            std::fs::read_to_string(format!("/proc/{child}/cmdline")).is_ok_and(|its| its.contains(line))
        };
        let hangs = || shell::run_logged(&shell::root(), line);
        let failure = run_with("tests", Duration::from_secs(2), is_ours, hangs).err().unwrap();
        assert!(failure.is_over_limit);
        assert_eq!(
            failure.why,
            "the step \"tests\" took longer than its limit of 2 s and was ended; the last line that it printed: test a ... ok; it still ran: `tail -f /dev/null`"
        );
        let quick = run("quick", LIMIT, || Err("no".to_owned())).err().unwrap();
        assert!(!quick.is_over_limit && quick.why == "no");
        assert!(run("quick", LIMIT, || Ok(())).is_ok());
    }
}
