//! Two CSV files of recorded round trips: any bytes are read or refused.
#![no_main]

use libfuzzer_sys::fuzz_target;
use noctule_lab::import;

fuzz_target!(|bytes: &[u8]| {
    let directory = tempfile::tempdir_in("/dev/shm").expect("room for two small files");
    let (published, received) = (directory.path().join("pub.csv"), directory.path().join("sub.csv"));
    let half = bytes.len() / 2;
    std::fs::write(&published, &bytes[..half]).expect("written");
    std::fs::write(&received, &bytes[half..]).expect("written");
    if let Ok((run, _)) = import::pingpong(&published, &received) {
        let _ = import::render(&run);
    }
});
