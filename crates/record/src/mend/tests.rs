//! Recordings cut anywhere, damaged and still being written.

use std::fs;

use super::*;
use crate::check::contents_at;
use crate::times::SampleTimes;
use crate::writer::{Format, Limits, Recording, Stored, Topic};

/// Messages in each chunk of a recording.
const CHUNKS: [u64; 4] = [3, 1, 5, 2];

fn recorded(folder: &Path, lz4: bool) -> Vec<u8> {
    let path = folder.join("whole.mcap");
    let mut recording = Recording::create(&path, Limits::default(), Format { lz4 }).unwrap();
    let topics: Vec<usize> = ["/a", "/b"]
        .map(|name| {
            recording.add_topic(Topic { name: name.into(), encoding: "cdr".into(), ..Topic::default() })
        })
        .to_vec();
    let mut log_ns = 100;
    for count in CHUNKS {
        let samples: Vec<(Stored, Vec<u8>)> = (0..count)
            .map(|index| {
                log_ns += 1;
                let times = SampleTimes {
                    channel: 0,
                    has_source_time: true,
                    sequence: 0,
                    publisher: [1; 8],
                    publisher_sequence: index,
                    missed: 0,
                    bound_ns: Some(5),
                    sigma_ns: None,
                };
                let topic = topics[usize::from(index % 2 == 1)];
                (Stored { topic, log_ns, publish_ns: log_ns - 1, times }, vec![7; 20])
            })
            .collect();
        recording.write(&samples).unwrap();
    }
    recording.finish().unwrap();
    let bytes = fs::read(&path).unwrap();
    fs::remove_file(&path).unwrap();
    bytes
}

/// Messages as readers by the index count them, and as we count them from front to back.
fn counts(path: &Path) -> (u64, u64, u64) {
    let bytes = fs::read(path).unwrap();
    let summary = mcap::Summary::read(&bytes).unwrap().unwrap();
    let by_chunk = summary.chunk_indexes.iter();
    let streamed =
        by_chunk.map(|index| summary.stream_chunk(&bytes, index).unwrap().map(Result::unwrap).count() as u64);
    let by_channel = summary.chunk_indexes.iter().map(|index| {
        let indexes = summary.read_message_indexes(&bytes, index).unwrap();
        assert_eq!(indexes.len(), index.message_index_offsets.len());
        indexes.values().flatten().count() as u64
    });
    assert_eq!(by_channel.sum::<u64>(), streamed.clone().sum::<u64>());
    let (contents, result) = contents_at(path);
    result.unwrap();
    let read = contents.channels.values().map(|topic| topic.messages).sum();
    (summary.stats.as_ref().unwrap().message_count, streamed.sum(), read)
}

#[test]
fn a_recording_that_was_cut_anywhere_opens_with_its_whole_chunks() {
    let folder = tempfile::tempdir().unwrap();
    for lz4 in [false, true] {
        let bytes = recorded(folder.path(), lz4);
        let path = folder.path().join("cut.mcap");
        let mut seen = std::collections::BTreeSet::new();
        for length in 8..bytes.len() {
            fs::write(&path, &bytes[..length]).unwrap();
            let mended = mend(&path).unwrap().unwrap();
            let (said, streamed, read) = counts(&path);
            assert_eq!([said, streamed, read], [mended.messages; 3], "{length}");
            assert_eq!(mended.messages, CHUNKS[..mended.chunks].iter().sum::<u64>(), "{length}");
            seen.insert(mended.chunks);
            assert_eq!(mend(&path).unwrap(), None, "{length}");
        }
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    }
}

#[test]
fn what_needs_no_end_or_can_have_none_is_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let whole = recorded(folder.path(), false);
    let path = folder.path().join("a.mcap");
    let unchanged = |bytes: &[u8], expected: &str| {
        fs::write(&path, bytes).unwrap();
        let refused = mend(&path).map(|mended| assert_eq!(mended, None));
        let said = refused.err().map(|error| error.to_string()).unwrap_or_default();
        assert!(said.contains(expected), "{said}");
        assert_eq!(fs::read(&path).unwrap(), bytes);
    };
    unchanged(&whole, "");
    unchanged(b"SQLite format 3\0 and more", "is no MCAP file");
    // A byte of the first chunk's content: its checksum tells.
    let mut damaged = whole[..whole.len() - 30].to_vec();
    let at = damaged.windows(20).position(|part| part == [7; 20]).unwrap();
    damaged[at] = 8;
    unchanged(&damaged, "with whole chunks behind it");
    assert!(mend(&folder.path().join("nowhere.mcap")).unwrap_err().to_string().contains("cannot be mended"));
}

#[test]
fn zeros_behind_the_last_chunk_are_cut_off() {
    let folder = tempfile::tempdir().unwrap();
    let mut bytes = recorded(folder.path(), false);
    bytes.truncate(bytes.len() - 30);
    bytes.extend([0; 5_000]);
    let path = folder.path().join("a.mcap");
    fs::write(&path, bytes).unwrap();
    let mended = mend(&path).unwrap().unwrap();
    assert_eq!(mended.messages, CHUNKS.iter().sum::<u64>());
    assert!(mended.cut_bytes >= 5_000);
    assert_eq!(counts(&path).0, mended.messages);
}

#[test]
fn a_file_that_is_being_recorded_is_left_to_its_recorder() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mcap");
    let mut recording = Recording::create(&path, Limits::default(), Format::default()).unwrap();
    assert!(mend(&path).unwrap_err().to_string().contains("is being recorded"));
    recording.finish().unwrap();
    drop(recording);
    assert_eq!(mend(&path).unwrap(), None);
}

proptest::proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..300), kind in 0u8..20) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.mcap");
        let mut file = MAGIC.to_vec();
        file.push(kind);
        file.extend((bytes.len() as u64).to_le_bytes());
        file.extend(&bytes);
        fs::write(&path, &file).unwrap();
        let _ = mend(&path);
    }
}
