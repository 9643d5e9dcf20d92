//! Messages a second through a ring, written and read where they lie: `in_place [MESSAGES]`, on the first two cores. The writer never gets further
//! ahead than the history, which both find out without a lock. For a busy machine: `chrt -f 10 in_place 200000`.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // a measuring program

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use noctule_shm_ring::{CONTROL_BYTES, Layout, Memory, Origin, Reader, RingConfig, StartAt, Writer};
use noctule_sys::scheduling::pin_to_core;

const HISTORY: u32 = 1_000;
const BYTES: usize = 1_024;
/// The reader says how far it is, and the writer looks, once in so many messages.
const EVERY: u64 = 64;

fn main() {
    let messages: u64 = std::env::args().nth(1).map_or(200_000, |text| text.parse().unwrap());
    let config =
        RingConfig { history: HISTORY, pins: 7, payload_bytes_max: BYTES, type_hash: 0, shift_bytes: 0 };
    let memory = Memory::zeroed(Layout::of(&config).unwrap().region_bytes() as usize);
    let mut writer = Writer::create(memory.clone(), &config).unwrap();
    let control = Memory::zeroed(CONTROL_BYTES);
    writer.reader_table().attach(control.clone(), 2).unwrap();
    let mut reader = Reader::open(memory, control, 2, 0, StartAt::Next).unwrap();
    let read = AtomicU64::new(0);
    let begin = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            pin_to_core(1).unwrap();
            let mut last = 0;
            while last < messages {
                let Some(message) = reader.borrow_next().unwrap() else {
                    std::hint::spin_loop();
                    continue;
                };
                message.read_at(0, &mut [0; 64]);
                last = message.sample().number;
                if last.is_multiple_of(EVERY) {
                    read.store(last, Ordering::Relaxed);
                }
            }
        });
        pin_to_core(0).unwrap();
        for number in 1..=messages {
            while number.is_multiple_of(EVERY)
                && number - read.load(Ordering::Relaxed) > u64::from(HISTORY) - 2 * EVERY
            {
                std::hint::spin_loop();
            }
            let mut loan = writer.loan(BYTES).unwrap();
            loan.write_at(0, &number.to_le_bytes());
            let _ = loan.commit(Origin::default());
        }
    });
    let (seconds, looks) = (begin.elapsed().as_secs_f64(), writer.counters().looks);
    println!(
        "{:.2} million messages a second; the pins were looked at {looks} times",
        messages as f64 / seconds / 1e6
    );
}
