use super::*;

mod written;

use crate::SAMPLE_OVERHEAD_BYTES;
use crate::delivery::Whole;
use crate::trace::Record;
use crate::wire::Numbers;

/// A receiving side with what it has delivered: sequence, missed, length.
struct Bench {
    receiving: Receiving,
    counters: Record,
    delivered: Vec<(u64, u64, usize)>,
}

const WRITER: StreamId = StreamId(1);
const OTHER: StreamId = StreamId(2);
const FRAGMENT: usize = 100;

impl Bench {
    fn new(reliable: bool) -> Bench {
        Bench::with(LinkConfig::default(), reliable)
    }

    fn with(config: LinkConfig, reliable: bool) -> Bench {
        let mut receiving = Receiving::new(&config);
        receiving.expect(WRITER, 1_000, reliable);
        Bench { receiving, counters: Record::default(), delivered: Vec::new() }
    }

    fn take(&mut self, fragment: &Fragment<'_>) -> bool {
        let delivered = &mut self.delivered;
        let deliver = &mut |sample: Delivered<'_>| {
            assert!(sample.payload.iter().all(|byte| *byte == sample.sequence as u8));
            delivered.push((sample.sequence, sample.missed, sample.payload.len()));
        };
        let delivery = &mut Whole(deliver);
        self.receiving.handle_fragment(fragment, &mut Sink { counters: &mut self.counters, delivery })
    }

    /// Fragment `index` of `count` of best-effort sample `sequence`.
    fn fragment(&mut self, sequence: u64, index: u16, count: u16) -> bool {
        self.take(&fragment(WRITER, sequence, index, count))
    }

    /// The same of a reliable sample, at the position of its sequence number.
    fn reliable(&mut self, sequence: u64, behind: u32, index: u16, count: u16) -> bool {
        let service = Service::Reliable(Numbers { packet: 0, position: sequence, behind });
        self.take(&Fragment { service, ..fragment(WRITER, sequence, index, count) })
    }

    fn sequences(&self) -> Vec<u64> {
        self.delivered.iter().map(|(sequence, _, _)| *sequence).collect()
    }
}

fn fragment(writer: StreamId, sequence: u64, index: u16, count: u16) -> Fragment<'static> {
    let payload: &[u8] = match sequence {
        1 => &[1; FRAGMENT],
        2 => &[2; FRAGMENT],
        3 => &[3; FRAGMENT],
        4 => &[4; FRAGMENT],
        _ => &[5; FRAGMENT],
    };
    let total_bytes = u32::from(count) * FRAGMENT as u32;
    Fragment {
        writer,
        total_bytes,
        sequence,
        origin: Origin::exactly(sequence as i64),
        index,
        count,
        service: Service::BestEffort,
        payload,
    }
}

#[test]
fn fragments_in_any_order_make_a_sample() {
    let mut bench = Bench::new(false);
    for index in [2, 0, 2, 1] {
        bench.fragment(1, index, 3);
    }
    assert_eq!(bench.delivered, [(1, 0, 300)]);
    assert_eq!((bench.counters.duplicates, bench.receiving.held_bytes()), (1, 0));
}

#[test]
fn a_newer_best_effort_sample_supersedes_older_ones() {
    let mut bench = Bench::new(false);
    bench.fragment(1, 0, 2);
    bench.fragment(3, 0, 2);
    bench.fragment(4, 0, 2);
    bench.fragment(3, 1, 2);
    assert_eq!(bench.delivered, [(3, 0, 200)]);
    assert_eq!(bench.counters.incomplete, 1);
    bench.fragment(1, 1, 2);
    bench.fragment(2, 0, 1);
    bench.fragment(3, 0, 2);
    assert_eq!(bench.counters.late, 3);
    bench.fragment(4, 1, 2);
    assert_eq!(bench.delivered, [(3, 0, 200), (4, 0, 200)]);
    assert_eq!(bench.receiving.held_bytes(), 0);
}

#[test]
fn best_effort_samples_that_never_came_are_counted() {
    let mut bench = Bench::new(false);
    bench.fragment(1, 0, 1);
    bench.fragment(4, 0, 1);
    assert_eq!(bench.delivered, [(1, 0, 100), (4, 2, 100)]);
}

#[test]
fn reliable_samples_wait_for_those_before_them() {
    let mut bench = Bench::new(true);
    assert!(bench.reliable(2, 1, 0, 1));
    assert!(bench.reliable(4, 3, 0, 1));
    assert!(bench.reliable(3, 2, 0, 2));
    assert!(bench.delivered.is_empty());
    assert!(bench.reliable(1, 0, 0, 1));
    assert_eq!(bench.sequences(), [1, 2]);
    assert!(bench.reliable(3, 2, 1, 2));
    assert_eq!(bench.sequences(), [1, 2, 3, 4]);
    for sequence in 1..5 {
        assert!(bench.reliable(sequence, 0, 0, 1), "a repetition is acknowledged");
    }
    assert_eq!((bench.delivered.len(), bench.counters.duplicates), (4, 4));
}

#[test]
fn what_the_sender_gave_up_is_not_waited_for() {
    let mut bench = Bench::new(true);
    bench.reliable(1, 0, 0, 1);
    bench.reliable(2, 0, 0, 2);
    bench.reliable(4, 1, 0, 1);
    assert_eq!(bench.sequences(), [1]);
    // 2 and 3 will not come: 4 may go.
    bench.reliable(5, 1, 0, 2);
    assert_eq!(bench.delivered, [(1, 0, 100), (4, 2, 100)]);
    assert_eq!(bench.counters.incomplete, 1);
    bench.reliable(5, 0, 1, 2);
    assert_eq!(bench.sequences(), [1, 4, 5]);
}

#[test]
fn a_late_joiner_begins_with_the_oldest_still_to_come() {
    let mut bench = Bench::new(true);
    bench.reliable(5, 2, 0, 1);
    assert!(bench.delivered.is_empty());
    bench.reliable(3, 0, 0, 1);
    bench.reliable(4, 0, 0, 1);
    assert_eq!(bench.delivered, [(3, 0, 100), (4, 0, 100), (5, 0, 100)]);
}

#[test]
fn a_fragment_that_contradicts_the_others_is_not_taken() {
    let mut bench = Bench::new(true);
    bench.reliable(1, 0, 0, 3);
    assert!(!bench.reliable(1, 0, 1, 4));
    assert!(!bench.reliable(1, 0, 0, 1));
    assert_eq!((bench.counters.inconsistent, bench.delivered.len()), (2, 0));
}

#[test]
fn a_sample_that_is_cut_into_more_fragments_begins_anew_and_one_that_is_whole_does_not() {
    let mut bench = Bench::new(true);
    let cut = |bench: &mut Bench, sequence: u64, index, count| {
        let service =
            Service::Reliable(Numbers { packet: 0, position: sequence, behind: sequence as u32 - 1 });
        let payload = &[sequence as u8; 60][..60 / usize::from(count)];
        bench.take(&Fragment {
            service,
            total_bytes: 60,
            payload,
            ..fragment(WRITER, sequence, index, count)
        })
    };
    cut(&mut bench, 1, 0, 2);
    for index in 0..3 {
        cut(&mut bench, 2, index, 3);
    }
    assert!(cut(&mut bench, 1, 1, 4));
    assert!(!cut(&mut bench, 1, 1, 2), "of the cut before");
    assert!(cut(&mut bench, 2, 0, 4), "it is whole and waits");
    for index in [0, 2, 3] {
        assert!(bench.delivered.is_empty());
        assert!(cut(&mut bench, 1, index, 4));
    }
    assert_eq!(bench.delivered, [(1, 0, 60), (2, 0, 60)]);
    assert_eq!((bench.counters.inconsistent, bench.counters.duplicates), (1, 1));
}

#[test]
fn unexpected_writers_lengths_and_reliabilities_are_counted_and_not_acknowledged() {
    let mut bench = Bench::new(true);
    assert!(!bench.fragment(1, 0, 1));
    assert!(!bench.take(&fragment(OTHER, 1, 0, 1)));
    assert_eq!(bench.counters.unexpected, 2);
    assert!(!bench.reliable(1, 0, 0, 11));
    assert_eq!(bench.counters.too_long, 1);
    bench.receiving.expect(WRITER, 1_100, true);
    assert!(bench.reliable(1, 0, 0, 11));
    bench.receiving.forget(WRITER);
    assert!(!bench.reliable(1, 0, 1, 11));
    assert_eq!((bench.receiving.held_bytes(), bench.receiving.room.partials), (0, 0));
}

#[test]
fn at_the_limit_of_partial_samples_the_oldest_best_effort_one_gives_way() {
    let config = LinkConfig { partial_samples_max: 2, ..LinkConfig::default() };
    let mut bench = Bench::with(config, false);
    bench.receiving.expect(OTHER, 1_000, false);
    bench.take(&fragment(OTHER, 1, 0, 2));
    bench.fragment(2, 0, 2);
    bench.fragment(3, 0, 2);
    assert_eq!((bench.receiving.room.partials, bench.counters.incomplete), (2, 1));
    // Its own older one went, not the other writer's.
    bench.take(&fragment(OTHER, 1, 1, 2));
    assert_eq!(bench.sequences(), [1]);
    // Room for one: taken by 4. An older one than all held does not drive a newer one out.
    bench.fragment(4, 0, 2);
    assert!(!bench.fragment(2, 0, 2));
    assert_eq!(bench.counters.held_full, 1);
}

#[test]
fn at_each_limit_a_reliable_sample_is_refused_unless_it_is_the_next_in_order() {
    let roomy = LinkConfig::default();
    for config in [
        LinkConfig { partial_samples_max: 1, ..roomy },
        LinkConfig { held_samples_max: 1, ..roomy },
        LinkConfig { held_bytes_max: 2 * FRAGMENT + SAMPLE_OVERHEAD_BYTES, ..roomy },
    ] {
        let mut bench = Bench::with(config, true);
        assert!(bench.reliable(3, 2, 0, 2));
        assert!(!bench.reliable(4, 3, 0, 2));
        assert_eq!(bench.counters.held_full, 1);
        for (sequence, index) in [(1, 0), (1, 1), (2, 0), (2, 1), (3, 1)] {
            assert!(bench.reliable(sequence, 0, index, 2));
        }
        assert_eq!(bench.sequences(), [1, 2, 3]);
        assert!(bench.reliable(4, 0, 0, 2) && bench.reliable(4, 0, 1, 2));
        assert_eq!((bench.sequences(), bench.receiving.held_bytes()), (vec![1, 2, 3, 4], 0));
    }
}

#[test]
fn fragments_of_a_best_effort_sample_give_way_to_a_reliable_one() {
    let config = LinkConfig { partial_samples_max: 1, ..LinkConfig::default() };
    let mut bench = Bench::with(config, true);
    bench.receiving.expect(OTHER, 1_000, false);
    bench.take(&fragment(OTHER, 1, 0, 2));
    assert!(bench.reliable(2, 1, 0, 2));
    assert_eq!((bench.counters.incomplete, bench.receiving.room.partials), (1, 1));
    assert!(!bench.take(&fragment(OTHER, 2, 0, 2)));
}

#[test]
fn an_announced_length_reserves_no_memory_before_it_arrives() {
    let mut bench = Bench::new(true);
    bench.receiving.expect(WRITER, u32::MAX, true);
    let long = Fragment { total_bytes: 65_535 * 100, count: 65_535, ..fragment(WRITER, 1, 0, 1) };
    let service = Service::Reliable(Numbers { packet: 0, position: 1, behind: 0 });
    let memory = allocation_counter::measure(|| {
        bench.take(&Fragment { service, ..long });
        bench.take(&Fragment { service, index: 1, ..long });
    });
    assert!(memory.bytes_max < 4_096, "{} bytes for 200", memory.bytes_max);
}
