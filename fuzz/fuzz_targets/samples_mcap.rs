//! A file of samples: any bytes are read or refused.
#![no_main]

use libfuzzer_sys::fuzz_target;
use noctule_lab_report::mcap;

fuzz_target!(|bytes: &[u8]| {
    let file = tempfile::NamedTempFile::new_in("/dev/shm").expect("room for a small file");
    std::fs::write(file.path(), bytes).expect("written");
    let _ = mcap::read(file.path(), 3);
});
