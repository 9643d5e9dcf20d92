//! Cost of moving data through a ring in one process on one core, beside a plain copy: no other
//! core's cache takes part, so only the work itself shows. Medians in ns, taken in turn.
//!
//! `cargo run --release -p noctule-shm-ring --example copies`
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::hint::black_box;

use noctule_shm_ring::{CONTROL_BYTES, Layout, Memory, Origin, Reader, RingConfig, StartAt, Writer};
use noctule_sys::clock::now_ns;

const ROUNDS: usize = 301;

struct Bench {
    writer: Writer,
    reader: Reader,
    message: Vec<u8>,
    buffer: Vec<u8>,
}

impl Bench {
    fn new(length_bytes: usize) -> Self {
        let config =
            RingConfig { history: 1, pins: 2, payload_bytes_max: length_bytes, type_hash: 0, shift_bytes: 0 };
        let memory = Memory::zeroed(Layout::of(&config).unwrap().region_bytes() as usize);
        let control = Memory::zeroed(CONTROL_BYTES);
        let writer = Writer::create(memory.clone(), &config).unwrap();
        writer.reader_table().attach(control.clone(), 1).unwrap();
        let reader = Reader::open(memory, control, 1, 0, StartAt::Next).unwrap();
        Self { writer, reader, message: vec![1; length_bytes], buffer: vec![2; length_bytes] }
    }

    fn plain_copy(&mut self) {
        self.buffer.copy_from_slice(black_box(&self.message));
        black_box(&mut self.buffer);
    }

    fn copy_in(&mut self) {
        let _ = self.writer.copy_in(black_box(&self.message), Origin::default()).unwrap();
    }

    fn copy_out(&mut self) {
        self.reader.take_next(&mut self.buffer).unwrap().unwrap();
    }

    fn loan(&mut self) {
        let length_bytes = self.message.len();
        let _ = self.writer.loan(length_bytes).unwrap().commit(Origin::default());
    }

    fn borrow(&mut self) {
        black_box(self.reader.borrow_next().unwrap().unwrap());
    }
}

fn main() {
    println!(
        "{:>9} {:>10} {:>10} {:>10} {:>10} {:>10}",
        "bytes", "plain", "copy in", "copy out", "loan", "borrow"
    );
    let works: [fn(&mut Bench); 5] =
        [Bench::plain_copy, Bench::copy_in, Bench::copy_out, Bench::loan, Bench::borrow];
    for length_bytes in [64, 512, 4096, 65_536, 1 << 20] {
        let mut bench = Bench::new(length_bytes);
        let mut times = [const { Vec::new() }; 5];
        for _ in 0..ROUNDS {
            for (work, times) in works.iter().zip(&mut times) {
                let start = now_ns();
                work(&mut bench);
                times.push(now_ns() - start);
            }
        }
        let medians = times.map(|mut times| {
            times.sort_unstable();
            format!("{:>10}", times[ROUNDS / 2])
        });
        println!("{length_bytes:>9} {}", medians.join(" "));
    }
}
