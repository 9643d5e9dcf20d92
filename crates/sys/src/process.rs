//! Who this process is.

/// The effective user id: whose files this process may read.
pub fn user_id() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// When a process started, in clock ticks since boot: with its number it names one process for good,
/// since numbers are used again. `None` if there is none.
pub fn start_time_ticks(process: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name, in brackets, may hold blanks and brackets; the start is the 20th field behind it.
    stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}

/// Leaves the session and terminal the process was started from, so that closing it ends nothing.
pub fn leave_session() -> std::io::Result<()> {
    Ok(rustix::process::setsid().map(|_| ())?)
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_process_has_one_start_and_a_missing_one_none() {
        let own = super::start_time_ticks(std::process::id());
        assert!(own.is_some_and(|ticks| ticks > 0));
        assert_eq!(super::start_time_ticks(std::process::id()), own);
        assert_eq!(super::start_time_ticks(u32::MAX), None);
    }
}
