//! A run.json: any bytes are read or refused; what is read can be compared with itself.
#![no_main]

use libfuzzer_sys::fuzz_target;
use noctule_lab::{compare, run::Run};

fuzz_target!(|bytes: &[u8]| {
    let file = tempfile::NamedTempFile::new_in("/dev/shm").expect("room for a small file");
    std::fs::write(file.path(), bytes).expect("written");
    if let Ok(run) = Run::read(file.path()) {
        let _ = compare::compare(&run, &run, 1);
    }
});
