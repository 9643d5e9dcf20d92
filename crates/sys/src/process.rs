//! Identity of this process.

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

/// Forks, runs `work` in the child and gives its result, below 128, as the child's exit code: to try what a fork does to a
/// library. The child has only the calling thread, and leaves without running destructors.
///
/// # Errors
/// No process can be had, or the child was killed.
pub fn in_child(work: impl FnOnce() -> u8) -> std::io::Result<u8> {
    // SAFETY: the child does what `work` does, with the calling thread alone, which is what the caller wants to try.
    match unsafe { libc::fork() } {
        -1 => Err(std::io::Error::last_os_error()),
        0 => {
            let code = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).unwrap_or(127);
            // SAFETY: ends the child at once.
            unsafe { libc::_exit(i32::from(code)) }
        }
        child => {
            let mut status = 0;
            // SAFETY: `status` outlives the call.
            let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
            match waited == child && libc::WIFEXITED(status) {
                true => Ok(libc::WEXITSTATUS(status) as u8),
                false => Err(std::io::Error::other("the child was killed")),
            }
        }
    }
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
