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
