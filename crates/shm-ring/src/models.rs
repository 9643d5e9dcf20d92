//! The protocol under a model checker: every interleaving, and every value a relaxed load may
//! return, of one writer and one reader. `RUSTFLAGS="--cfg loom" cargo test --release -p noctule-shm-ring`.

use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

use crate::layout::{PINS, PUBLISHED};
use crate::sync::Ordering;
use crate::*;

const PAYLOAD: usize = 16;

fn ring(history: u32, pins: u32) -> (Memory, Writer) {
    let config = RingConfig { history, pins, payload_bytes_max: PAYLOAD, type_hash: 0, shift_bytes: 0 };
    let memory = Memory::zeroed(Layout::of(&config).unwrap().region_bytes() as usize);
    let writer = Writer::create(memory.clone(), &config).unwrap();
    (memory, writer)
}

fn reader(memory: &Memory, reader_table: &ReaderTable, pins: u32) -> Reader {
    let control = Memory::zeroed(CONTROL_BYTES);
    reader_table.attach(control.clone(), pins).unwrap();
    Reader::open(memory.clone(), control, pins, 0, StartAt::Next).unwrap()
}

/// Every word of a message is its number.
fn put(writer: &mut Writer) -> Wake {
    let number = writer.counters().published + 1;
    let word = number.to_ne_bytes();
    let origin = Origin { source_time_ns: number as i64, user: 0 };
    writer.copy_in(&[word, word].concat(), origin).unwrap()
}

fn put_times(count: usize, writer: &mut Writer) {
    for _ in 0..count {
        put(writer);
    }
}

fn check(sample: &Sample, bytes: &[u8]) {
    assert!(bytes.chunks(8).all(|word| word == sample.number.to_ne_bytes()), "torn");
    assert_eq!(sample.origin.source_time_ns as u64, sample.number);
}

/// As many preemptions as finish within seconds; each fault put in on purpose shows with two.
fn model(preemptions: usize, body: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(body);
}

#[test]
fn a_copy_is_whole_or_not_delivered() {
    model(3, || {
        let (memory, mut writer) = ring(1, 0);
        let mut reader = reader(&memory, writer.reader_table(), 0);
        let writing = thread::spawn(move || put_times(3, &mut writer));
        let mut buffer = [0; PAYLOAD];
        let mut last = 0;
        for _ in 0..2 {
            if let Some(sample) = reader.take_next(&mut buffer).unwrap() {
                check(&sample, &buffer);
                assert_eq!(sample.number, last + 1 + sample.missed);
                last = sample.number;
            }
        }
        writing.join().unwrap();
    });
}

#[test]
fn a_borrowed_sample_is_not_overwritten() {
    model(3, || {
        let (memory, mut writer) = ring(1, 1);
        let mut reader = reader(&memory, writer.reader_table(), 1);
        put_times(2, &mut writer);
        let writing = thread::spawn(move || put_times(3, &mut writer));
        if let Some(borrowed) = reader.borrow_next().unwrap() {
            let mut buffer = [0; PAYLOAD];
            borrowed.copy_to(&mut buffer);
            check(borrowed.sample(), &buffer);
        }
        writing.join().unwrap();
    });
}

#[test]
fn a_reader_that_moves_its_pin_costs_one_slot_or_its_grant() {
    model(3, || {
        let (_memory, mut writer) = ring(1, 1);
        let control = Memory::zeroed(CONTROL_BYTES);
        writer.reader_table().attach(control.clone(), 1).unwrap();
        put_times(3, &mut writer);
        let moving = thread::spawn(move || {
            for position in 1..=3 {
                control.word(PINS).store(position, Ordering::Relaxed);
            }
        });
        let _ = put(&mut writer);
        moving.join().unwrap();
        let counters = writer.counters();
        assert!(counters.skipped <= 1 && counters.revoked <= 1, "{counters:?}");
    });
}

/// A futex: the comparison and the going to sleep are one step for the thread that wakes.
struct Futex {
    lock: Mutex<()>,
    sleepers: Condvar,
}

impl Futex {
    fn new() -> Arc<Self> {
        Arc::new(Self { lock: Mutex::new(()), sleepers: Condvar::new() })
    }

    fn wait(&self, memory: &Memory, expected: u32) {
        let guard = self.lock.lock().unwrap();
        if memory.word(PUBLISHED).load(Ordering::Relaxed) as u32 == expected {
            drop(self.sleepers.wait(guard).unwrap());
        }
    }

    fn wake(&self, wake: Wake) {
        if wake == Wake::Readers {
            let _guard = self.lock.lock().unwrap();
            self.sleepers.notify_all();
        }
    }
}

/// Ends only if it is woken: loom reports a thread that sleeps for ever.
fn sleep_until_read(reader: &mut Reader, memory: &Memory, futex: &Futex, until: u64) {
    let mut buffer = [0; PAYLOAD];
    loop {
        if let Some(sample) = reader.take_next(&mut buffer).unwrap() {
            check(&sample, &buffer);
            if sample.number >= until {
                return;
            }
        } else if let Some(expected) = reader.begin_wait() {
            futex.wait(memory, expected);
            reader.end_wait();
        }
    }
}

#[test]
fn no_wake_up_is_lost() {
    model(3, || {
        let (memory, mut writer) = ring(1, 0);
        let mut reader = reader(&memory, writer.reader_table(), 0);
        let futex = Futex::new();
        let waker = Arc::clone(&futex);
        let writing = thread::spawn(move || {
            for _ in 0..2 {
                let wake = put(&mut writer);
                waker.wake(wake);
            }
        });
        sleep_until_read(&mut reader, &memory, &futex, 2);
        writing.join().unwrap();
    });
}

#[test]
fn a_reader_attached_while_the_writer_publishes_is_woken() {
    model(3, || {
        let (memory, mut writer) = ring(1, 0);
        let reader_table = writer.reader_table().clone();
        let futex = Futex::new();
        let waker = Arc::clone(&futex);
        let writing = thread::spawn(move || {
            let wake = put(&mut writer);
            waker.wake(wake);
        });
        let control = Memory::zeroed(CONTROL_BYTES);
        reader_table.attach(control.clone(), 0).unwrap();
        let mut reader = Reader::open(memory.clone(), control, 0, 0, StartAt::Oldest).unwrap();
        sleep_until_read(&mut reader, &memory, &futex, 1);
        writing.join().unwrap();
    });
}
