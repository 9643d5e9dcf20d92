//! A file that begins as MCAP, cut and damaged in any way: it is refused, or has an end afterwards that is not touched again.
#![no_main]

use std::fs;

use libfuzzer_sys::fuzz_target;
use noctule_record::mend::mend;

fuzz_target!(|bytes: &[u8]| {
    let Ok(folder) = tempfile::tempdir_in("/dev/shm") else { return };
    let path = folder.path().join("a.mcap");
    if fs::write(&path, [b"\x89MCAP0\r\n", bytes].concat()).is_err() {
        return;
    }
    if let Ok(Some(_)) = mend(&path) {
        assert!(mend(&path).is_ok_and(|again| again.is_none()));
    }
});
