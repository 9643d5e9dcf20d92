//! Bags of rosbag2: any bytes in a database, any change of one, any metadata beside it, are read or refused.
#![no_main]

use std::fs;

use libfuzzer_sys::fuzz_target;

const DATABASE: &[u8] = include_bytes!("../../vectors/rosbag2/jazzy.db3");

fuzz_target!(|input: (u8, &[u8])| {
    let (kind, bytes) = input;
    let Ok(folder) = tempfile::tempdir_in("/dev/shm") else { return };
    let metadata = "rosbag2_bagfile_information:\n  relative_file_paths: [a.db3, a.db3]\n";
    let (database, metadata) = match kind % 4 {
        0 => ([&DATABASE[..16], bytes].concat(), metadata.into()),
        1 => (changed(bytes), metadata.into()),
        2 => (DATABASE.to_vec(), String::from_utf8_lossy(bytes).into_owned()),
        _ => (DATABASE.to_vec(), format!("{metadata}  {}", String::from_utf8_lossy(bytes))),
    };
    let written = fs::write(folder.path().join("a.db3"), &database)
        .and_then(|()| fs::write(folder.path().join("metadata.yaml"), metadata));
    if written.is_err() {
        return;
    }
    let (contents, _) = noctule_record::check::contents_at(&folder.path().join("a.db3"));
    for topic in contents.channels.values() {
        assert!(topic.bytes <= database.len() as u64 && topic.with_source_time == 0);
    }
    let _ = noctule_record::check::contents_at(folder.path());
});

/// The database with a byte changed for each three: where, and what it becomes.
fn changed(changes: &[u8]) -> Vec<u8> {
    let mut database = DATABASE.to_vec();
    for change in changes.chunks_exact(3) {
        let at = usize::from(u16::from_le_bytes([change[0], change[1]])) % database.len();
        database[at] = change[2];
    }
    database
}
