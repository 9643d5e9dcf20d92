//! Where and how urgently this process runs, and what the host of a guest takes of its cores.

use std::fs::File;
use std::io::{self, Write};

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

/// While it exists no core of this machine enters an idle state that takes time to leave. It costs power: idle cores spin.
#[derive(Debug)]
pub struct Awake(#[expect(dead_code, reason = "the kernel forgets the wish when the file is closed")] File);

/// Asks the kernel for it, as cyclictest does. Needs root, or the right to write `/dev/cpu_dma_latency`.
///
/// # Errors
/// The file cannot be written, or the kernel has none.
pub fn stay_awake() -> io::Result<Awake> {
    let mut file = File::options().write(true).open("/dev/cpu_dma_latency")?;
    // Longest tolerable latency in µs, a number of 32 bits.
    file.write_all(&0_i32.to_ne_bytes())?;
    Ok(Awake(file))
}

/// Time of all cores together since boot, in ticks of the kernel's accounting (10 ms).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoreTime {
    /// All of it.
    pub ticks: u64,
    /// In which a core had work, and the host of this guest ran something else on it.
    pub stolen_ticks: u64,
}

impl CoreTime {
    /// Until now; `None` where `/proc/stat` says nothing of it.
    pub fn now() -> Option<CoreTime> {
        CoreTime::of_stat(&std::fs::read_to_string("/proc/stat").ok()?)
    }

    /// Of the text of `/proc/stat`: user, nice, system, idle, iowait, irq, softirq, steal. What guests of this machine used is in
    /// user and nice already. Reference: proc_stat(5).
    pub fn of_stat(text: &str) -> Option<CoreTime> {
        let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let ticks: Vec<u64> = line.split_whitespace().take(8).map_while(|word| word.parse().ok()).collect();
        let stolen_ticks = *ticks.get(7)?;
        let ticks = ticks.iter().fold(0_u64, |sum, part| sum.saturating_add(*part));
        Some(CoreTime { ticks, stolen_ticks })
    }

    /// Share that was stolen since `earlier`; `None` if no time has passed.
    pub fn stolen_share_since(self, earlier: CoreTime) -> Option<f64> {
        let ticks = self.ticks.checked_sub(earlier.ticks).filter(|ticks| *ticks > 0)?;
        Some(self.stolen_ticks.saturating_sub(earlier.stolen_ticks) as f64 / ticks as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::CoreTime;

    #[test]
    fn what_the_host_took_is_the_eighth_number() {
        let of = |text: &str| CoreTime::of_stat(text);
        let before = of("cpu  10 20 30 40 50 60 70 80 999 999\ncpu0 1 2 3\nbtime 5\n").unwrap();
        assert_eq!(before, CoreTime { ticks: 360, stolen_ticks: 80 });
        let after = of("cpu  10 20 30 130 50 60 70 90 999 999\n").unwrap();
        assert_eq!(after.stolen_share_since(before), Some(0.1));
        assert_eq!(before.stolen_share_since(before), None);
        assert_eq!(before.stolen_share_since(after), None, "numbers that went back say nothing");
        for text in [
            "",
            "cpu",
            "cpu  1 2 3 4 5 6 7",
            "cpu  1 2 3 x 5 6 7 8",
            "cpu0 1 2 3 4 5 6 7 8",
            "cpu  -1 2 3 4 5 6 7 8",
        ] {
            assert_eq!(of(text), None, "{text:?}");
        }
        let most = u64::MAX;
        assert_eq!(of(&format!("cpu  {most} {most} 0 0 0 0 0 1")).unwrap().ticks, most);
    }

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
