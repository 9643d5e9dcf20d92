//! The protocol between threads and in single steps; between processes: `tests/` of the driver.

use std::sync::atomic::Ordering;
use std::thread;

use crate::reader_table::ATTACHED_MAX;
use crate::*;

mod pins;

const CONFIG: RingConfig =
    RingConfig { history: 4, pins: 3, payload_bytes_max: 1024, type_hash: 7, shift_bytes: 0 };

type Attach = fn(&ReaderTable, Memory, u32) -> Result<ReaderId, AttachError>;

struct Pair {
    memory: Memory,
    writer: Writer,
}

impl Pair {
    fn new(config: RingConfig) -> Self {
        let bytes = Layout::of(&config).unwrap().region_bytes() as usize;
        let memory = Memory::zeroed(bytes);
        Self { writer: Writer::create(memory.clone(), &config).unwrap(), memory }
    }

    fn reader(&self, pins: u32, start: StartAt) -> (Reader, ReaderId, Memory) {
        self.reader_by(ReaderTable::attach, pins, start)
    }

    fn reader_by(&self, attach: Attach, pins: u32, start: StartAt) -> (Reader, ReaderId, Memory) {
        let control = Memory::zeroed(CONTROL_BYTES);
        let id = attach(self.writer.reader_table(), control.clone(), pins).unwrap();
        let reader = Reader::open(self.memory.clone(), control.clone(), pins, 7, start).unwrap();
        (reader, id, control)
    }

    fn put(&mut self, text: &str) -> Wake {
        self.writer.copy_in(text.as_bytes(), Origin::default()).unwrap()
    }

    fn put_numbers(&mut self, count: u64) {
        for _ in 0..count {
            let number = self.writer.counters().published + 1;
            let _ = self.put(&format!("message {number}"));
        }
    }
}

fn next(reader: &mut Reader) -> Option<(String, u64)> {
    let mut buffer = [0; 1024];
    let sample = reader.take_next(&mut buffer).unwrap()?;
    Some((String::from_utf8(buffer[..sample.length_bytes].to_vec()).unwrap(), sample.missed))
}

fn text(borrowed: &Borrowed) -> String {
    let mut buffer = vec![0; borrowed.len()];
    borrowed.copy_to(&mut buffer);
    String::from_utf8(buffer).unwrap()
}

/// Memory of `bytes` as the example number `index` of the specification shows it: offset, bytes, words.
fn example(index: usize, bytes: usize) -> Vec<u8> {
    let page = include_str!("../../../docs/spec/shared-memory.md");
    let section = page.split("### Example in bytes\n").nth(1).unwrap();
    let block = section.split("```text\n").nth(index + 1).unwrap().split("```").next().unwrap();
    let mut memory = vec![0; bytes];
    for line in block.lines() {
        let mut columns = line.split("  ");
        let offset = usize::from_str_radix(columns.next().unwrap(), 16).unwrap();
        let octets = columns.next().unwrap().split(' ').map(|octet| u8::from_str_radix(octet, 16).unwrap());
        memory.splice(offset..offset + 8, octets);
    }
    memory
}

#[test]
#[cfg(target_endian = "little")]
fn a_ring_has_the_bytes_of_the_specification() {
    let config = RingConfig {
        history: 1,
        pins: 0,
        payload_bytes_max: 32,
        type_hash: 0x1122_3344_5566_7788,
        shift_bytes: 0,
    };
    let mut pair = Pair::new(config);
    let origin = Origin { source_time_ns: 1_000_000_000, user: 7 };
    let _ = pair.writer.copy_in(b"imu", origin).unwrap();
    let mut region = [0; 384];
    pair.memory.copy_out(0, &mut region);
    assert_eq!((pair.memory.length_bytes(), region.to_vec()), (384, example(0, 384)));

    let (memory, control) = (Memory::zeroed(384), Memory::zeroed(CONTROL_BYTES));
    memory.copy_in(0, &example(0, 384));
    let start = StartAt::From { position: 1, history: 0 };
    let mut reader = Reader::open(memory, control.clone(), 0, config.type_hash, start).unwrap();
    let mut buffer = [0; 32];
    let sample = reader.take_next(&mut buffer).unwrap().unwrap();
    assert_eq!((&buffer[..sample.length_bytes], sample.origin), (&b"imu"[..], origin));
    assert!(reader.begin_wait().is_some());
    let mut page = [0; CONTROL_BYTES];
    control.copy_out(0, &mut page);
    assert_eq!(page.to_vec(), example(1, CONTROL_BYTES));
}

#[test]
fn a_reader_begins_where_its_writer_let_it_in_however_late_it_opens() {
    let mut pair = Pair::new(CONFIG);
    pair.put_numbers(5);
    let position = pair.writer.reader_table().next_position();
    pair.put_numbers(2);
    let (mut coming, ..) = pair.reader(0, StartAt::From { position, history: 0 });
    let (mut whole, ..) = pair.reader(0, StartAt::From { position, history: 2 });
    assert_eq!(next(&mut coming), Some(("message 6".to_owned(), 0)));
    assert_eq!(next(&mut whole), Some(("message 4".to_owned(), 0)));
    // One that was overtaken meanwhile knows how many it has missed.
    let position = pair.writer.reader_table().next_position();
    pair.put_numbers(30);
    let (mut late, ..) = pair.reader(0, StartAt::From { position, history: 0 });
    let (_, missed) = next(&mut late).unwrap();
    assert_eq!((missed, late.counters().missed), (0, 0), "its predecessor is gone, so nothing is known");
    // What a hostile writer makes up is not waited for.
    let (mut fooled, ..) = pair.reader(0, StartAt::From { position: u64::MAX, history: u32::MAX });
    assert!(next(&mut fooled).is_some());
}

#[test]
fn messages_of_every_length_arrive_as_they_were_sent() {
    let mut pair = Pair::new(CONFIG);
    let (mut reader, ..) = pair.reader(1, StartAt::Next);
    for length in (0..=130).chain([511, 512, 513, 1023, 1024]) {
        let bytes: Vec<u8> = (0..length).map(|index| (index * 7 + length) as u8).collect();
        let origin = Origin { source_time_ns: -5 - length as i64, user: u32::MAX - length as u32 };
        let _ = pair.writer.copy_in(&bytes, origin).unwrap();
        let mut buffer = [0xEE; 1024];
        let sample = reader.take_next(&mut buffer).unwrap().unwrap();
        assert_eq!((sample.length_bytes, sample.origin, sample.missed), (length, origin, 0));
        assert_eq!(buffer[..length], bytes);
        assert!(buffer[length..].iter().all(|byte| *byte == 0xEE), "nothing written behind the message");
    }
    let error = pair.writer.copy_in(&[0; 1025], Origin::default()).unwrap_err();
    assert_eq!(error, WriteError::TooLong { length_bytes: 1025, payload_bytes_max: 1024 });
}

#[test]
fn late_joiners_begin_where_they_ask() {
    let mut pair = Pair::new(CONFIG);
    let (mut first, ..) = pair.reader(0, StartAt::Newest);
    assert_eq!(next(&mut first), None);
    pair.put_numbers(100);
    let (mut oldest, ..) = pair.reader(0, StartAt::Oldest);
    let (mut newest, ..) = pair.reader(0, StartAt::Newest);
    let (mut coming, ..) = pair.reader(0, StartAt::Next);
    let kept: Vec<_> = std::iter::from_fn(|| next(&mut oldest)).collect();
    assert!(kept.len() >= CONFIG.history as usize, "{kept:?}");
    assert_eq!(kept.last().unwrap().0, "message 100");
    assert_eq!(next(&mut newest).unwrap().0, "message 100");
    assert_eq!(next(&mut coming), None);
    pair.put_numbers(1);
    assert_eq!(next(&mut coming), Some(("message 101".into(), 0)));
}

#[test]
fn the_last_messages_are_counted_as_messages_and_not_as_slots() {
    let mut pair = Pair::new(CONFIG);
    let (mut holder, ..) = pair.reader(3, StartAt::Next);
    pair.put_numbers(3);
    let held: Vec<_> = (0..3).map(|_| holder.borrow_next().unwrap().unwrap()).collect();
    for count in 4..30 {
        pair.put_numbers(1);
        let (mut late, id, _) = pair.reader(0, StartAt::Last(3));
        let kept: Vec<_> = std::iter::from_fn(|| next(&mut late)).map(|(text, _)| text).collect();
        let expected: Vec<_> = (count - 2..=count).map(|number| format!("message {number}")).collect();
        assert_eq!(kept, expected);
        pair.writer.reader_table().detach(id);
    }
    drop(held);
}

#[test]
fn an_overrun_queue_says_how_many_it_missed() {
    let mut pair = Pair::new(CONFIG);
    let (mut reader, ..) = pair.reader(0, StartAt::Next);
    pair.put_numbers(1000);
    let mut last = 0;
    while let Some((text, missed)) = next(&mut reader) {
        last += 1 + missed;
        assert_eq!(text, format!("message {last}"));
    }
    assert_eq!(last, 1000);
    let counters = reader.counters();
    assert_eq!(counters.read + counters.missed, 1000);
    assert!(counters.read >= CONFIG.history.into());
}

#[test]
fn latest_and_queue_are_views_of_one_reader() {
    let mut pair = Pair::new(CONFIG);
    let (mut reader, ..) = pair.reader(0, StartAt::Next);
    let mut buffer = [0; 64];
    assert_eq!(reader.take_latest(&mut buffer).unwrap(), None);
    pair.put_numbers(3);
    let sample = reader.take_latest(&mut buffer).unwrap().unwrap();
    assert_eq!((sample.number, sample.missed), (3, 2));
    assert_eq!(reader.take_latest(&mut buffer).unwrap(), None);
    pair.put_numbers(2);
    assert_eq!(next(&mut reader), Some(("message 4".into(), 0)));
    pair.put_numbers(500);
    assert_eq!(reader.take_latest(&mut buffer).unwrap().unwrap().number, 505);
}

#[test]
fn a_borrowed_sample_stays_while_the_writer_goes_round_it() {
    let mut pair = Pair::new(CONFIG);
    let (mut reader, ..) = pair.reader(3, StartAt::Next);
    let mut held = Vec::new();
    for _ in 0..3 {
        pair.put_numbers(1);
        held.push(reader.borrow_next().unwrap().unwrap());
    }
    assert!(matches!(reader.borrow_next(), Ok(None)));
    pair.put_numbers(500);
    assert!(matches!(reader.borrow_next(), Err(ReadError::Pins { pins: 3 })));
    for (index, borrowed) in held.iter().enumerate() {
        assert_eq!(text(borrowed), format!("message {}", index + 1));
    }
    let skipped = pair.writer.counters().skipped;
    assert!(skipped >= 3 * (500 / 16), "{skipped}");
    // History holds with all pins taken, and a queue counts messages, not slots.
    let (mut late, ..) = pair.reader(0, StartAt::Oldest);
    assert!(std::iter::from_fn(|| next(&mut late)).count() >= CONFIG.history as usize);
    drop(reader);
    assert_eq!(text(&held[0]), "message 1", "a sample outlives its reader");
    drop(held);
    let skipped = pair.writer.counters().skipped;
    pair.put_numbers(100);
    assert!(pair.writer.counters().skipped <= skipped + 1, "let go, the slots are used again");
}

#[test]
fn an_abandoned_loan_publishes_nothing() {
    let mut pair = Pair::new(CONFIG);
    let (mut reader, ..) = pair.reader(0, StartAt::Next);
    let mut loan = pair.writer.loan(100).unwrap();
    loan.copy_from(&[1; 100]);
    let _ = loan; // goes without a commit
    assert_eq!(next(&mut reader), None);
    let mut loan = pair.writer.loan(100).unwrap();
    // SAFETY: 100 bytes were lent.
    unsafe { loan.as_mut_ptr().write_bytes(b'x', 100) };
    let _ = loan.commit(Origin::default());
    assert_eq!(next(&mut reader).unwrap().0, "x".repeat(100));
    assert!(pair.writer.loan(1025).is_err());
}

#[test]
fn parts_of_a_message_may_be_written_at_any_place_in_any_order_by_one_loan_after_another() {
    let mut pair = Pair::new(RingConfig { payload_bytes_max: 4096, ..CONFIG });
    let (mut reader, ..) = pair.reader(0, StartAt::Next);
    let whole: Vec<u8> = (0..2_900_u32).map(|number| (number * 7 % 251) as u8).collect();
    // Short ones go by words, long ones in one piece; none begins where a word does.
    let cuts = [0, 3, 10, 707, 711, 720, 1_333, 2_899, 2_900];
    let mut parts: Vec<_> = cuts.windows(2).map(|cut| cut[0]..cut[1]).collect();
    parts.rotate_left(3);
    parts.reverse();
    // What lies there before is no excuse.
    pair.writer.loan(whole.len()).unwrap().copy_from(&vec![0xFF; whole.len()]);
    for part in parts {
        pair.writer.loan(whole.len()).unwrap().write_at(part.start, &whole[part]);
    }
    let _ = pair.writer.loan(whole.len()).unwrap().commit(Origin::default());
    let mut buffer = vec![0; 4096];
    let sample = reader.take_next(&mut buffer).unwrap().unwrap();
    assert_eq!(buffer[..sample.length_bytes], whole);
}

#[test]
fn a_buffer_that_is_too_small_does_not_lose_the_message() {
    let mut pair = Pair::new(CONFIG);
    let (mut reader, ..) = pair.reader(0, StartAt::Next);
    let _ = pair.put("eleven byte");
    let error = reader.take_next(&mut [0; 10]).unwrap_err();
    assert_eq!(error, ReadError::BufferTooSmall { length_bytes: 11, buffer_bytes: 10 });
    assert_eq!(next(&mut reader).unwrap().0, "eleven byte");
}

#[test]
fn the_writer_learns_of_sleepers_once() {
    let mut pair = Pair::new(CONFIG);
    let (mut reader, ..) = pair.reader(0, StartAt::Next);
    assert_eq!(pair.put("no reader sleeps"), Wake::None);
    assert_eq!(reader.begin_wait(), None, "there is something to read");
    assert!(next(&mut reader).is_some());
    assert_eq!(reader.begin_wait(), Some(1));
    assert_eq!(pair.put("one sleeps"), Wake::Readers);
    assert_eq!(pair.put("it was woken"), Wake::None);
    reader.end_wait();
    assert_eq!(pair.writer.counters().woken, 1);
}

#[test]
fn limits_of_readers_and_pins_are_refusals() {
    let mut pair = Pair::new(CONFIG);
    let pins = pair.writer.layout().pins();
    let reader_table = pair.writer.reader_table().clone();
    let control = || Memory::zeroed(CONTROL_BYTES);
    assert_eq!(reader_table.attach(control(), 8).unwrap_err(), AttachError::Pins { wanted: 8, left: 5 });
    let greedy = reader_table.attach(control(), pins).unwrap();
    assert_eq!(reader_table.attach(control(), 1).unwrap_err(), AttachError::Pins { wanted: 1, left: 0 });
    reader_table.detach(greedy);
    for _ in 0..READERS_MAX {
        reader_table.attach(control(), 0).unwrap();
    }
    assert_eq!(reader_table.attach(control(), 0).unwrap_err(), AttachError::Readers);
    // The writer's own process has room beyond that, which no other can take.
    for at in 0..OWN_READERS_MAX {
        reader_table.attach_own(control(), 0, at % 2 == 0).unwrap();
    }
    assert_eq!(reader_table.attach_own(control(), 0, false).unwrap_err(), AttachError::OwnReaders);
    assert!(matches!(reader_table.attach(Memory::zeroed(64), 0), Err(AttachError::Control(_))));
    let extra = reader_table.attach_extra(control()).unwrap();
    assert_eq!(reader_table.len(), ATTACHED_MAX);
    assert_eq!(reader_table.attach_extra(control()).unwrap_err(), AttachError::Readers);
    pair.put_numbers(20);
    reader_table.detach(extra);
}

#[test]
fn wrong_regions_are_refused_with_a_sentence() {
    let pair = Pair::new(CONFIG);
    let open = |memory: &Memory, hash| {
        Reader::open(memory.clone(), Memory::zeroed(CONTROL_BYTES), 0, hash, StartAt::Next).map(|_| ())
    };
    assert_eq!((pair.writer.layout().slot_count(), pair.writer.layout().pins()), (16, 5));
    assert_eq!(open(&pair.memory, 8), Err(LayoutError::Type { found: 7, wanted: 8 }));
    assert_eq!(open(&Memory::zeroed(64), 7), Err(LayoutError::NoRing));
    assert_eq!(open(&Memory::zeroed(4096), 7), Err(LayoutError::NoRing));
    for (offset, value) in [(8, 1), (16, 3), (16, 1 << 40), (24, 65), (32, u64::MAX), (32, 1 << 20), (48, 15)]
    {
        let right = pair.memory.word(offset).swap(value, Ordering::Relaxed);
        assert!(open(&pair.memory, 7).is_err(), "{value} at {offset}");
        pair.memory.word(offset).store(right, Ordering::Relaxed);
    }
    // A slot count that fits the rules but not the memory.
    pair.memory.word(16).store(SLOTS_MAX, Ordering::Relaxed);
    assert!(matches!(open(&pair.memory, 7), Err(LayoutError::TooSmall { .. })));
    for config in [
        RingConfig { history: 0, ..CONFIG },
        RingConfig { history: 1 << 16, ..CONFIG },
        RingConfig { payload_bytes_max: PAYLOAD_BYTES_MAX + 1, ..CONFIG },
    ] {
        assert!(Layout::of(&config).is_err(), "{config:?}");
    }
}

#[test]
fn an_impossible_length_is_counted_and_passed_over() {
    let mut pair = Pair::new(CONFIG);
    let (mut reader, ..) = pair.reader(1, StartAt::Next);
    pair.put_numbers(2);
    let layout = *pair.writer.layout();
    pair.memory.word(layout.slot(1) + 24).store(u64::from(u32::MAX), Ordering::Relaxed);
    assert!(matches!(reader.take_next(&mut [0; 64]), Err(ReadError::Corrupt { .. })));
    assert_eq!(reader.counters().corrupt, 1);
    assert_eq!(next(&mut reader).unwrap().0, "message 2");
}

/// Every word of a message is its number; a mixture of two messages shows.
#[test]
fn what_is_read_while_it_is_written_is_never_torn() {
    const MESSAGES: u64 = 30_000;
    for words in [1usize, 4, 12, 120] {
        let mut pair = Pair::new(RingConfig { history: 2, pins: 5, ..CONFIG });
        let mut readers: Vec<_> = (0..2).map(|_| pair.reader(2, StartAt::Next).0).collect();
        thread::scope(|scope| {
            for (index, reader) in readers.iter_mut().enumerate() {
                scope.spawn(move || read_all(reader, words, index == 0, MESSAGES));
            }
            for number in 1..=MESSAGES {
                let bytes: Vec<u8> = std::iter::repeat_n(number.to_ne_bytes(), words).flatten().collect();
                let origin = Origin { source_time_ns: number as i64, user: number as u32 };
                let _ = pair.writer.copy_in(&bytes, origin).unwrap();
            }
        });
    }
}

fn read_all(reader: &mut Reader, words: usize, in_place: bool, messages: u64) {
    let mut buffer = vec![0; words * 8];
    let (mut last, mut held) = (0, None);
    while last < messages {
        let sample = if in_place {
            let Some(borrowed) = reader.borrow_latest().unwrap() else { continue };
            borrowed.copy_to(&mut buffer);
            let sample = *borrowed.sample();
            held = Some(borrowed);
            sample
        } else {
            let Some(sample) = reader.take_next(&mut buffer).unwrap() else { continue };
            sample
        };
        let expected = sample.number.to_ne_bytes();
        assert!(buffer.chunks(8).all(|word| word == expected), "torn at {}", sample.number);
        assert_eq!(sample.origin.source_time_ns as u64, sample.number);
        assert_eq!(sample.number, last + 1 + sample.missed);
        last = sample.number;
    }
    drop(held);
}

#[test]
fn messages_of_any_length_come_whole_and_what_a_reader_that_polls_fetches_ahead_is_inside_the_ring() {
    let lengths = [0, 8, 28, 29, 32, 33, 60, 64, 65, 500, 512, 572, 600];
    for (payload_bytes_max, shift_bytes) in lengths.into_iter().flat_map(|length| [(length, 0), (length, 4)])
    {
        let mut pair =
            Pair::new(RingConfig { history: 1, pins: 0, payload_bytes_max, type_hash: 7, shift_bytes });
        let (mut reader, ..) = pair.reader(0, StartAt::Next);
        let mut buffer = vec![0; payload_bytes_max];
        for length_bytes in (0..=payload_bytes_max).rev().chain([payload_bytes_max; 4]) {
            assert!(reader.take_next(&mut buffer).unwrap().is_none(), "it polls");
            let message: Vec<u8> = (0..length_bytes).map(|index| (index * 7 + length_bytes) as u8).collect();
            let _ = pair.writer.copy_in(&message, Origin::default()).unwrap();
            let sample = reader.take_next(&mut buffer).unwrap().unwrap();
            assert_eq!((sample.length_bytes, &buffer[..length_bytes]), (length_bytes, &message[..]));
        }
    }
}

#[test]
fn what_follows_a_header_of_four_bytes_is_aligned_where_it_is_written_and_where_it_is_read() {
    let mut pair = Pair::new(RingConfig { shift_bytes: 4, ..CONFIG });
    let (mut reader, ..) = pair.reader(1, StartAt::Next);
    for length_bytes in [4, 12, 28, 29, 100, 1024] {
        let mut loan = pair.writer.loan(length_bytes).unwrap();
        loan.copy_from(&vec![length_bytes as u8; length_bytes]);
        let written = loan.as_mut_ptr();
        let _ = loan.commit(Origin::default());
        let borrowed = reader.borrow_next().unwrap().unwrap();
        assert_eq!((written.addr() % 8, borrowed.as_ptr().addr() % 8), (4, 4));
        let mut bytes = vec![0; length_bytes];
        borrowed.copy_to(&mut bytes);
        assert_eq!(bytes, vec![length_bytes as u8; length_bytes]);
    }
    let strange = RingConfig { shift_bytes: 8, ..CONFIG };
    assert_eq!(Layout::of(&strange), Err(LayoutError::Shift { shift_bytes: 8 }));
}

#[test]
fn a_history_of_four_holds_the_last_four_whatever_the_ring_has_room_for() {
    let mut pair = Pair::new(CONFIG);
    let (mut reader, ..) = pair.reader(1, StartAt::Next);
    pair.put_numbers(3);
    let mut buffer = [0; 1024];
    let first = reader.take_next(&mut buffer).unwrap().unwrap();
    assert!(!reader.pass_over(&first, 4), "two behind it");
    pair.put_numbers(5);
    let second = reader.take_next(&mut buffer).unwrap().unwrap();
    assert!(reader.pass_over(&second, 4));
    assert_eq!(next(&mut reader), Some(("message 5".to_owned(), 3)));
    assert_eq!(next(&mut reader), Some(("message 6".to_owned(), 0)));
    assert_eq!((reader.counters().read, reader.counters().missed), (3, 3));
    // What is pinned is gone round: the slot that is skipped is no message.
    let borrowed = reader.borrow_next().unwrap().unwrap();
    pair.put_numbers(14);
    let late = reader.take_next(&mut buffer).unwrap().unwrap();
    assert!(reader.pass_over(&late, 4));
    let left: Vec<String> = std::iter::from_fn(|| next(&mut reader)).map(|(text, _)| text).collect();
    assert_eq!(left, ["message 19", "message 20", "message 21", "message 22"]);
    assert_eq!(text(&borrowed), "message 7");
}

#[test]
fn a_history_is_exact_however_many_slots_were_skipped_within_it() {
    let config = RingConfig { history: 40, pins: 6, payload_bytes_max: 64, type_hash: 7, shift_bytes: 0 };
    let mut pair = Pair::new(config);
    let [mut holds, mut reader] = [6, 0].map(|pins| pair.reader(pins, StartAt::Next).0);
    let (mut held, mut buffer) = (Vec::new(), [0; 64]);
    for round in 0..400 {
        // Borrowed for some laps of the ring, at places that move: their slots are skipped.
        pair.put_numbers(1 + round % 7);
        held.extend(holds.borrow_latest().unwrap());
        pair.put_numbers(30 + round * 13 % 50);
        if held.len() == 6 {
            drop(held.drain(..1 + (round % 6) as usize));
        }
        let Some(first) = reader.take_next(&mut buffer).unwrap() else { continue };
        let (depth, last) = (1 + round * 7 % 40, pair.writer.counters().published);
        let is_passed_over = reader.pass_over(&first, depth as u32);
        assert_eq!(is_passed_over, last - first.number >= depth, "round {round}");
        let expected = if is_passed_over { last + 1 - depth } else { first.number + 1 };
        let left = std::iter::from_fn(|| reader.take_next(&mut buffer).unwrap());
        assert!(left.map(|sample| sample.number).eq(expected..=last), "round {round}");
    }
    assert!(pair.writer.counters().published > 15_000);
}

#[test]
fn what_waits_for_a_reader_is_messages_not_positions() {
    let mut pair = Pair::new(CONFIG);
    pair.put_numbers(4);
    let (mut late, late_id, _) = pair.reader(0, StartAt::Oldest);
    assert_eq!(pair.writer.unread(late_id), 4, "history waits, too");
    assert!((0..4).all(|_| next(&mut late).is_some()) && next(&mut late).is_none());
    let (mut holds, _, _) = pair.reader(3, StartAt::Next);
    let (mut reader, id, _) = pair.reader(0, StartAt::Next);
    pair.put_numbers(3);
    let held = [(); 3].map(|()| holds.borrow_next().unwrap().unwrap());
    assert!((0..3).all(|_| next(&mut reader).is_some()));
    for round in 0..60 {
        let skipped = pair.writer.counters().skipped;
        pair.put_numbers(2);
        assert_eq!(pair.writer.unread(id), 2, "{round}");
        let [one_left, none_left] = [1, 0].map(|left| pair.writer.position_with(left, id).unwrap());
        assert!(
            next(&mut reader).is_some() && reader.position() >= one_left && reader.position() < none_left
        );
        assert_eq!((pair.writer.position_with(1, id), pair.writer.unread(id)), (None, 1));
        assert!(next(&mut reader).is_some() && reader.position() >= none_left);
        assert_eq!((pair.writer.position_with(0, id), pair.writer.unread(id)), (None, 0));
        assert!(round < 20 || skipped > 0, "pins were never in the way");
    }
    drop(held);
}

#[test]
fn there_is_room_until_a_reader_has_four_messages_to_read() {
    let mut pair = Pair::new(CONFIG);
    assert!(pair.writer.has_room(4), "no reader is left");
    pair.put_numbers(20);
    let (mut reader, id, _) = pair.reader_by(ReaderTable::attach_waited_for, 1, StartAt::Next);
    // Of which nothing is expected.
    let (mut idle, ..) = pair.reader(0, StartAt::Next);
    for message in 0..4 {
        assert!(pair.writer.has_room(4), "{message}");
        pair.put_numbers(1);
    }
    assert!(!pair.writer.has_room(4));
    assert_eq!(pair.writer.slowest_reader(), Some(id), "the other is not waited for");
    assert!(next(&mut reader).is_some());
    assert!(pair.writer.has_room(4));
    pair.put_numbers(1);
    assert!(!pair.writer.has_room(4));
    // Nothing was overwritten, and a slot that was skipped because it is pinned does not count.
    let borrowed = reader.borrow_next().unwrap().unwrap();
    let missed: u64 = std::iter::from_fn(|| next(&mut reader)).map(|(_, missed)| missed).sum();
    assert_eq!(missed, 0);
    for _ in 0..40 {
        assert!(pair.writer.has_room(1));
        pair.put_numbers(1);
        assert!(!pair.writer.has_room(1));
        assert_eq!(next(&mut reader).unwrap().1, 0);
    }
    drop(borrowed);
    pair.put_numbers(4);
    assert!(!pair.writer.has_room(4));
    pair.writer.reader_table().detach(id);
    assert!(pair.writer.has_room(4), "the reader has gone");
    let (mut read, mut missed) = (0, 0);
    while let Some((_, before)) = next(&mut idle) {
        (read, missed) = (read + 1, missed + before);
    }
    assert!(missed > 0 && read >= 4, "{missed} missed, {read} read");
    assert_eq!(
        read + missed,
        pair.writer.counters().published - 20,
        "it is not waited for, and every message counts"
    );
}
