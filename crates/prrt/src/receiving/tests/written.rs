//! Long samples that are written where they go, fragment by fragment.

use proptest::prelude::*;

use super::*;
use crate::delivery::Delivery;

/// What was delivered: sequence, missed, and the bytes.
type Taken = (u64, u64, Vec<u8>);

/// Memory for one sample, and all that was delivered.
#[derive(Default)]
struct Slot {
    memory: Vec<u8>,
    begun: usize,
    written: usize,
    delivered: Vec<Taken>,
}

impl Delivery for Slot {
    fn deliver(&mut self, sample: Delivered<'_>) {
        // What is written after this is not where the sample begun before expects it.
        self.memory.fill(0);
        self.delivered.push((sample.sequence, sample.missed, sample.payload.to_vec()));
    }

    fn begin(&mut self, writer: StreamId, bytes: usize) -> bool {
        assert_eq!(writer, WRITER);
        self.begun += 1;
        self.memory = vec![0; bytes];
        true
    }

    fn write(&mut self, _: StreamId, start: usize, fragment: &[u8]) -> bool {
        self.memory[start..start + fragment.len()].copy_from_slice(fragment);
        true
    }

    fn deliver_written(&mut self, sample: Delivered<'_>) {
        assert!(sample.payload.is_empty());
        self.written += 1;
        self.delivered.push((sample.sequence, sample.missed, std::mem::take(&mut self.memory)));
    }
}

/// Fragment `index` of three of reliable sample `sequence`: the last is shorter, and no two of all have the same bytes.
fn part(sequence: u64, behind: u32, index: u16) -> (Fragment<'static>, [u8; 7]) {
    let service = Service::Reliable(Numbers { packet: 0, position: sequence, behind });
    let fragment = Fragment { service, total_bytes: 20, count: 3, ..fragment(WRITER, sequence, index, 3) };
    (fragment, [sequence as u8 * 4 + index as u8; 7])
}

fn take(bench: &mut Bench, slot: &mut Slot, sequence: u64, behind: u32, index: u16) -> bool {
    let (fragment, bytes) = part(sequence, behind, index);
    let payload = if index == 2 { &bytes[..6] } else { &bytes[..] };
    let mut sink = Sink { counters: &mut bench.counters, delivery: slot };
    bench.receiving.handle_fragment(&Fragment { payload, ..fragment }, &mut sink)
}

fn whole(sequence: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    (0..3).for_each(|index| bytes.extend(part(sequence, 0, index).1));
    bytes.truncate(20);
    bytes
}

#[test]
fn the_next_in_order_is_written_where_it_goes_and_what_comes_before_its_turn_is_not() {
    let (mut bench, mut slot) = (Bench::new(true), Slot::default());
    for (sequence, index) in [(1, 2), (1, 0), (2, 1), (2, 0), (1, 0), (1, 1), (2, 2), (3, 0), (3, 1), (3, 2)]
    {
        assert!(take(&mut bench, &mut slot, sequence, sequence as u32 - 1, index));
    }
    let expected: Vec<_> = (1..4).map(|sequence| (sequence, 0, whole(sequence))).collect();
    assert_eq!(slot.delivered, expected);
    assert_eq!((slot.begun, slot.written, bench.counters.duplicates), (2, 2, 1));
    assert_eq!((bench.receiving.held_bytes(), bench.receiving.room.partials), (0, 0));
}

#[test]
fn one_that_is_given_up_makes_way_for_the_next() {
    let (mut bench, mut slot) = (Bench::new(true), Slot::default());
    assert!(take(&mut bench, &mut slot, 1, 0, 0));
    assert!(take(&mut bench, &mut slot, 2, 0, 0), "1 will not come");
    assert!(take(&mut bench, &mut slot, 1, 0, 1), "it is not waited for");
    assert!(take(&mut bench, &mut slot, 2, 0, 1) && take(&mut bench, &mut slot, 2, 0, 2));
    assert_eq!(slot.delivered, [(2, 0, whole(2))]);
    assert_eq!((slot.begun, bench.counters.incomplete), (2, 1));
}

#[test]
fn the_rest_of_a_sample_that_is_being_written_is_refused_where_it_cannot_be() {
    let (mut bench, mut slot) = (Bench::new(true), Slot::default());
    assert!(take(&mut bench, &mut slot, 1, 0, 0));
    assert!(!bench.reliable_of_three(1, 1));
    assert!(take(&mut bench, &mut slot, 1, 0, 1) && take(&mut bench, &mut slot, 1, 0, 2));
    assert_eq!(slot.delivered, [(1, 0, whole(1))]);
}

impl Bench {
    /// By the way that delivers whole samples only.
    fn reliable_of_three(&mut self, sequence: u64, index: u16) -> bool {
        let (fragment, bytes) = part(sequence, 0, index);
        self.take(&Fragment { payload: &bytes, ..fragment })
    }
}

proptest! {
    /// Fragments in any order, several times, of which the sender gives some up: what is delivered does not depend on where it is written.
    #[test]
    fn what_is_delivered_is_the_same(arrivals in proptest::collection::vec((1u64..7, 0u32..6, 0u16..3), 0..120)) {
        let (mut written, mut slot) = (Bench::new(true), Slot::default());
        let (mut held, mut all) = (Bench::new(true), Vec::new());
        for (sequence, behind, index) in arrivals {
            let behind = behind.min(sequence as u32 - 1);
            let taken = take(&mut written, &mut slot, sequence, behind, index);
            let (fragment, bytes) = part(sequence, behind, index);
            let payload = if index == 2 { &bytes[..6] } else { &bytes[..] };
            let deliver = &mut |sample: Delivered<'_>| {
                all.push((sample.sequence, sample.missed, sample.payload.to_vec()));
            };
            let mut sink = Sink { counters: &mut held.counters, delivery: &mut Whole(deliver) };
            prop_assert_eq!(taken, held.receiving.handle_fragment(&Fragment { payload, ..fragment }, &mut sink));
        }
        for (sequence, _, bytes) in &slot.delivered {
            prop_assert_eq!(bytes, &whole(*sequence));
        }
        prop_assert_eq!(slot.delivered, all);
        prop_assert_eq!(written.receiving.held_bytes(), held.receiving.held_bytes());
    }
}
