//! A ring whose other side is hostile: a reader survives any region, a writer any control page.
#![no_main]

use libfuzzer_sys::fuzz_target;
use noctule_shm_ring::{
    CONTROL_BYTES, Layout, Memory, Origin, Reader, RingConfig, StartAt, Writer,
};
use noctule_sys::sealed_memory::{SealedMemory, WrittenBy};

const CONFIG: RingConfig = RingConfig { history: 4, pins: 3, payload_bytes_max: 600, type_hash: 7, shift_bytes: 0 };

/// Memory, and a hand of the other side in it.
struct Shared {
    memory: Memory,
    start: *mut u64,
    words: usize,
}

impl Shared {
    fn new(length_bytes: usize) -> Self {
        let (sealed, _) = SealedMemory::create(length_bytes, WrittenBy::Holder).expect("room");
        let (start, words) = (sealed.start().as_ptr().cast(), sealed.length_bytes() / 8);
        Self { memory: sealed.into(), start, words }
    }

    fn scribble(&self, at: u16, value: u64) {
        // SAFETY: inside the mapping, which `memory` keeps; one thread.
        unsafe { self.start.add(usize::from(at) % self.words).write_volatile(value) }
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Some((&[kind, size], bytes)) = bytes.split_first_chunk::<2>() else { return };
    let region = Layout::of(&CONFIG).expect("a layout").region_bytes() as usize;
    let data = Shared::new(if kind & 1 == 0 { region } else { usize::from(size) * 64 + 8 });
    let control = Shared::new(CONTROL_BYTES);
    let mut writer = (kind & 1 == 0).then(|| {
        let writer = Writer::create(data.memory.clone(), &CONFIG).expect("a ring");
        writer.reader_table().attach(control.memory.clone(), u32::from(kind >> 4) % 4).expect("room");
        writer
    });
    let mut scribbles = bytes.chunks_exact(11).map(|chunk| {
        let at = u16::from_le_bytes([chunk[0], chunk[1]]);
        (chunk[2], at, u64::from_le_bytes(chunk[3..].try_into().expect("8 bytes")))
    });
    if kind & 2 != 0 {
        // All of the region before it is opened.
        for (_, at, value) in scribbles.by_ref().take(40) {
            data.scribble(at, value);
        }
    }
    let reader = Reader::open(data.memory.clone(), control.memory.clone(), 2, 7, StartAt::Oldest);
    let mut reader = reader.ok();
    let mut buffer = [0; 700];
    for (what, at, value) in scribbles {
        match what % 8 {
            0 => data.scribble(at, value),
            // The first lines: flags and pins; positions are small numbers.
            1 => control.scribble(at % 8, value & 63),
            2 => control.scribble(at, value),
            3 => data.scribble(16, value & 127),
            _ => {}
        }
        if let Some(writer) = &mut writer {
            let length = usize::from(at) % 601;
            let _ = writer.copy_in(&buffer[..length], Origin::default()).expect("it fits");
        }
        if let Some(reader) = &mut reader {
            let _ = reader.take_next(&mut buffer[..usize::from(what) * 2]);
            let _ = reader.take_latest(&mut buffer);
            if let Ok(Some(borrowed)) = reader.borrow_next() {
                borrowed.copy_to(&mut buffer);
            }
            if reader.begin_wait().is_some() {
                reader.end_wait();
            }
        }
    }
});
