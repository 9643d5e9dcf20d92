//! Pins: what is borrowed stays, and what pinning costs others.

use super::*;
use crate::layout::{PINS, PUBLISHED, WAITING};

#[test]
fn what_a_reader_has_borrowed_outlives_it_and_holds_up_no_writer() {
    let mut pair = Pair::new(CONFIG);
    let reader_table = pair.writer.reader_table().clone();
    let (mut reader, id, _) = pair.reader_by(ReaderTable::attach_waited_for, 2, StartAt::Next);
    pair.put_numbers(1);
    let held = reader.borrow_next().unwrap().unwrap();
    drop(reader);
    assert!(!reader_table.release(id) && reader_table.is_empty());
    for _ in 0..100 {
        assert!(pair.writer.has_room(1));
        pair.put_numbers(1);
    }
    assert_eq!(text(&held), "message 1");
    drop(held);
    assert!(reader_table.release(id));
}

#[test]
fn a_writer_looks_at_pins_once_for_as_many_messages_as_there_are_pins() {
    let mut pair = Pair::new(CONFIG);
    let (mut reader, ..) = pair.reader(3, StartAt::Next);
    for _ in 0..1_000 {
        pair.put_numbers(1);
        drop(reader.borrow_next().unwrap().unwrap());
    }
    assert!(pair.writer.counters().looks <= 1_000 / 4);
}

#[test]
fn a_reader_that_pins_everything_stops_nobody() {
    let mut pair = Pair::new(CONFIG);
    let (mut honest, ..) = pair.reader(1, StartAt::Next);
    let (_, hostile, control) = pair.reader(2, StartAt::Next);
    pair.put_numbers(20);
    // It pins all there is, in words it was granted and in those it was not.
    for lap in 0..100 {
        for pin in 0..7 {
            let position = pair.memory.word(PUBLISHED).load(Ordering::Relaxed) - pin % 8;
            control.word(PINS + pin as usize * 8).store(position, Ordering::Relaxed);
        }
        control.word(WAITING).store(lap, Ordering::Relaxed);
        pair.put_numbers(1);
    }
    let mut last = 0;
    while let Some((text, missed)) = next(&mut honest) {
        last += 1 + missed;
        assert_eq!(text, format!("message {last}"));
    }
    assert_eq!(last, 120);
    let skipped = pair.writer.counters().skipped;
    pair.writer.reader_table().detach(hostile);
    pair.put_numbers(20);
    assert!(pair.writer.counters().skipped <= skipped + 1);
}

#[test]
fn a_reader_that_moves_its_pins_costs_no_more_slots_than_it_was_granted() {
    let mut pair = Pair::new(RingConfig { history: 1, pins: 2, ..CONFIG });
    let (_, _, control) = pair.reader(2, StartAt::Next);
    let stop = std::sync::atomic::AtomicBool::new(false);
    pair.put_numbers(8);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut position = 0u64;
            while !stop.load(Ordering::Relaxed) {
                position += 1;
                let near = pair.memory.word(PUBLISHED).load(Ordering::Relaxed).saturating_sub(position % 8);
                control.word(PINS + (position % 2) as usize * 8).store(near, Ordering::Relaxed);
            }
        });
        for _ in 0..20_000 {
            let _ = pair.writer.copy_in(b"goes on", Origin::default()).unwrap();
        }
        stop.store(true, Ordering::Relaxed);
    });
    let counters = pair.writer.counters();
    assert_eq!(counters.published, 20_008);
    assert!(counters.skipped <= 2 * counters.published, "{counters:?}");
}
