//! Where and how urgently this process runs.

use std::io;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Cores the calling thread may run on, ascending.
pub fn allowed_cores() -> io::Result<Vec<u32>> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|&core| set.is_set(core)).map(|core| core as u32).collect())
}

/// Pins the calling thread, and threads it starts later, to one core.
pub fn pin_to_core(core: u32) -> io::Result<()> {
    if core as usize >= CpuSet::MAX_CPU {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    let mut set = CpuSet::new();
    set.set(core as usize);
    Ok(sched_setaffinity(None, &set)?)
}

/// Gives the calling thread `SCHED_FIFO` with `priority` 1 … 99. Needs `CAP_SYS_NICE` or an rtprio limit.
pub fn set_fifo_priority(priority: u32) -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: priority.min(99) as libc::c_int };
    // SAFETY: `parameters` is a valid, initialised sched_param that outlives the call; pid 0 is the
    // calling thread.
    let status = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameters) };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Makes the calling thread one that yields: `SCHED_BATCH`, which does not interrupt others when it wakes, with `nice` 0 … 19, and
/// interrupted by others after `slice_ns` (100 µs … 100 ms; before Linux 6.12 after the system's own 3 ms or so). Threads that it starts later are so
/// too. Needs no privilege, but for a `nice` below its own. Reference: sched_setattr(2), `sched_runtime` of fair tasks.
pub fn set_batch(nice: i32, slice_ns: u64) -> io::Result<()> {
    let attributes = libc::sched_attr {
        size: size_of::<libc::sched_attr>() as u32,
        sched_policy: libc::SCHED_BATCH as u32,
        sched_flags: 0,
        sched_nice: nice.clamp(0, 19),
        sched_priority: 0,
        sched_runtime: slice_ns,
        sched_deadline: 0,
        sched_period: 0,
    };
    // SAFETY: `attributes` is a valid, initialised sched_attr of the size it names and outlives the call; pid 0 is the calling thread.
    let status = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Locks all present and future pages of this process into memory, so that none can fault while
/// measuring. Needs `CAP_IPC_LOCK` or a memlock limit.
pub fn lock_memory() -> io::Result<()> {
    use rustix::mm::MlockAllFlags;
    Ok(rustix::mm::mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE)?)
}

/// Lets the calling thread's timers be as exact as the kernel can, instead of the usual 50 µs late.
pub fn set_exact_timers() -> io::Result<()> {
    // SAFETY: PR_SET_TIMERSLACK takes one number and touches no memory.
    let status = unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_usize) };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_thread_that_yields_is_alone_in_it() {
        let own = || rustix::process::getpriority_process(None).unwrap();
        let before = own();
        // 19 is the end of the scale.
        let lower = (before.max(0) + 1).min(19);
        let yielding = std::thread::spawn(move || {
            super::set_batch(lower, 100_000).unwrap();
            own()
        });
        assert_eq!((yielding.join().unwrap(), own()), (lower, before));
    }
}
