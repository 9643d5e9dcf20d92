//! Memory lent to others, in a process that has locked its own as real-time loops do.
#![allow(clippy::unwrap_used, clippy::expect_used)] // tests and what they share
#![allow(unsafe_code)] // memory that others may write is reached by its address

use noctule_sys::scheduling::lock_memory;
use noctule_sys::sealed_memory::{SealedMemory, WrittenBy};

const LENGTH_BYTES: usize = 256 << 20;
/// What a test program may need for itself meanwhile.
const LITTLE_KIB: usize = 8 << 10;

/// A line of this process's status, proc_pid_status(5), in KiB.
fn status_kib(name: &str) -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a line of the status");
    line.trim_start_matches(':').split_whitespace().next().unwrap().parse().unwrap()
}

/// If all were present at once, opening would stall its owner and each of its readers for 0.2 s, and take 256 MiB.
#[test]
fn a_large_region_gets_its_pages_when_they_are_used_and_they_stay() {
    if lock_memory().is_err() {
        println!("this user may not lock memory, so nothing is tested");
        return;
    }
    let before_kib = status_kib("RssShmem");
    let (owner, descriptor) = SealedMemory::create(LENGTH_BYTES, WrittenBy::Creator).unwrap();
    let reader = SealedMemory::open(descriptor, WrittenBy::Creator).unwrap();
    let unnamed = SealedMemory::unnamed(LENGTH_BYTES).unwrap();
    assert!(status_kib("RssShmem") < before_kib + LITTLE_KIB);
    // SAFETY: inside all three mappings; nothing else uses them.
    unsafe {
        owner.start().as_ptr().add(LENGTH_BYTES - 1).write_volatile(7);
        assert_eq!(reader.start().as_ptr().add(LENGTH_BYTES - 1).read_volatile(), 7);
        unnamed.start().as_ptr().write_volatile(7);
    }
    assert!(status_kib("VmLck") >= 3 * (LENGTH_BYTES >> 10), "all are locked");
    for memory in [owner, unnamed] {
        let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let first = format!("{:x}-", memory.start().as_ptr() as usize);
        let mapping = smaps.split_once(&first).expect("the mapping").1;
        let locked = mapping.lines().find_map(|line| line.strip_prefix("Locked:")).expect("its locked pages");
        assert_ne!(locked.split_whitespace().next(), Some("0"), "the page that was used");
    }
}
