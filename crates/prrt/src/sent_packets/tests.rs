use super::*;
use crate::congestion::path_mtu::Sizes;

const BYTES: usize = 1400;
const COST: usize = BYTES + PACKET_OVERHEAD_BYTES;

fn at(ms: i64) -> Instant<Local> {
    Instant::from_ns(ms * 1_000_000)
}

fn sent_packets() -> SentPackets {
    let sizes = Sizes { base_bytes: BYTES, initial_bytes: BYTES, max_bytes: BYTES, envelope_bytes: 0 };
    let limits = WindowLimits { packet_bytes: COST, initial_bytes: 10 * COST, max_bytes: 100 * COST };
    SentPackets::new(limits, PathMtu::new(sizes, at(0)), at(0))
}

fn carried(position: u64) -> Carried {
    Carried { writer: StreamId(1), position, index: 0, kind: Kind::Fragment { count: 1 } }
}

/// Sends packets, with their numbers for positions, until the window is full. Says how many.
fn fill(sent_packets: &mut SentPackets, now: Instant<Local>) -> u64 {
    let first = sent_packets.next_number();
    while sent_packets.has_room() {
        sent_packets.sent(carried(sent_packets.next_number()), BYTES, now);
    }
    sent_packets.next_number() - first
}

/// Positions that arrived, and that were lost.
type Settled = (Vec<u64>, Vec<u64>);

fn settling(call: impl FnOnce(&mut dyn FnMut(PacketOutcome, u64, Carried))) -> Settled {
    let (mut arrived, mut lost) = (Vec::new(), Vec::new());
    call(&mut |outcome, _, carried| match outcome {
        PacketOutcome::Arrived => arrived.push(carried.position),
        PacketOutcome::Lost(_) => lost.push(carried.position),
        PacketOutcome::Refused => panic!("nothing was refused"),
    });
    (arrived, lost)
}

fn acknowledge(sent_packets: &mut SentPackets, newest: u64, earlier: u64, now: Instant<Local>) -> Settled {
    let feedback = Feedback { newest, earlier, refused: 0, arrived_ns: 0, delay_ns: 0, marks: None };
    settling(|settle| assert!(sent_packets.handle_feedback(&feedback, (now, now), settle).is_some()))
}

#[test]
fn a_packet_is_lost_when_a_later_one_has_arrived_and_a_third_one_after_that_was_wrong() {
    let mut sent_packets = sent_packets();
    fill(&mut sent_packets, at(0));
    assert_eq!(acknowledge(&mut sent_packets, 1, 0, at(1)), (vec![1], vec![0]));
    // They had only been overtaken.
    assert_eq!(acknowledge(&mut sent_packets, 3, 0b111, at(1)), (vec![0, 2, 3], vec![]));
    assert_eq!(acknowledge(&mut sent_packets, 5, 0b10, at(1)), (vec![5], vec![]));
    assert_eq!(acknowledge(&mut sent_packets, 6, 0b101, at(1)), (vec![6], vec![4]));
}

#[test]
fn a_packet_is_lost_when_feedback_came_that_must_have_seen_it() {
    let mut sent_packets = sent_packets();
    for number in 0..8 {
        sent_packets.sent(carried(number), BYTES, at(number as i64 * 10));
        acknowledge(&mut sent_packets, number, 0, at(number as i64 * 10 + 2));
    }
    sent_packets.sent(carried(8), BYTES, at(80));
    let sent = sent_packets.next_number() - 1;
    assert_eq!(acknowledge(&mut sent_packets, sent - 1, 0, at(82)), (vec![], vec![]));
    assert_eq!(acknowledge(&mut sent_packets, sent - 1, 0, at(89)), (vec![], vec![8]));
}

#[test]
fn feedback_that_lay_unread_was_said_before_and_has_not_taken_so_long() {
    let mut sent_packets = sent_packets();
    for number in 0..8 {
        sent_packets.sent(carried(number), BYTES, at(number as i64 * 10));
        acknowledge(&mut sent_packets, number, 0, at(number as i64 * 10 + 2));
    }
    let known = sent_packets.round_trip().unwrap().smoothed;
    sent_packets.sent(carried(8), BYTES, at(80));
    let mut read_late = |newest, came| {
        let feedback = Feedback { newest, earlier: 0, refused: 0, arrived_ns: 0, delay_ns: 0, marks: None };
        settling(|settle| {
            assert!(sent_packets.handle_feedback(&feedback, (at(came), at(120)), settle).is_some())
        })
    };
    // Two that lay in the socket for 39 and 38 ms: the first was sent too early to prove a loss.
    assert_eq!(read_late(7, 81), (vec![], vec![]));
    assert_eq!(read_late(8, 82), (vec![8], vec![]));
    assert_eq!(sent_packets.round_trip().unwrap().smoothed, known);
}

#[test]
fn feedback_that_went_with_something_else_is_no_sign_of_loss_where_packets_have_lain_unread() {
    for has_lain in [false, true] {
        let mut sent_packets = sent_packets();
        for number in 0..8 {
            sent_packets.sent(carried(number), BYTES, at(number as i64 * 10));
            acknowledge(&mut sent_packets, number, 0, at(number as i64 * 10 + 1));
        }
        let acknowledge = |sent_packets: &mut SentPackets, newest, earlier, now| {
            let feedback =
                Feedback { newest, earlier, refused: 0, arrived_ns: 0, delay_ns: 3_000_000, marks: None };
            settling(|settle| assert!(sent_packets.handle_feedback(&feedback, (now, now), settle).is_some()))
        };
        if has_lain {
            // Eight that are read together: feedback goes at once, and says how long the newest lay.
            for number in 8..16 {
                sent_packets.sent(carried(number), BYTES, at(100));
            }
            acknowledge(&mut sent_packets, 15, 0x7f, at(104));
        }
        let first = sent_packets.next_number();
        for number in first..first + 2 {
            sent_packets.sent(carried(number), BYTES, at(104));
        }
        // After the first of the two, whose reader then had something to send: the second lies where the first lay, or it is lost.
        let expected = if has_lain { vec![] } else { vec![first + 1] };
        assert_eq!(acknowledge(&mut sent_packets, first, 0b111, at(108)).1, expected, "{has_lain}");
    }
}

#[test]
fn time_tells_a_loss_where_one_later_packet_no_longer_does() {
    let mut sent_packets = sent_packets();
    fill(&mut sent_packets, at(0));
    assert_eq!(acknowledge(&mut sent_packets, 1, 0, at(1)), (vec![1], vec![0]));
    assert_eq!(acknowledge(&mut sent_packets, 3, 0b111, at(1)), (vec![0, 2, 3], vec![]));
    assert_eq!(acknowledge(&mut sent_packets, 6, 0b111, at(1)), (vec![4, 5, 6], vec![]));
    for _ in 0..30 {
        let now = at(2 + sent_packets.next_number() as i64 * 10);
        sent_packets.sent(carried(sent_packets.next_number()), BYTES, now);
        let newest = sent_packets.next_number() - 1;
        acknowledge(&mut sent_packets, newest, 0b111, now + Span::from_ms(1));
    }
    let first = sent_packets.next_number();
    sent_packets.sent(carried(first), BYTES, at(1_000));
    sent_packets.sent(carried(first + 1), BYTES, at(1_010));
    assert_eq!(acknowledge(&mut sent_packets, first + 1, 0, at(1_011)), (vec![first + 1], vec![first]));
}

#[test]
fn one_that_merely_took_long_was_not_overtaken() {
    let mut sent_packets = sent_packets();
    for number in 0..8 {
        sent_packets.sent(carried(number), BYTES, at(number as i64 * 10));
        acknowledge(&mut sent_packets, number, 0, at(number as i64 * 10 + 2));
    }
    sent_packets.sent(carried(8), BYTES, at(80));
    assert_eq!(acknowledge(&mut sent_packets, 7, 0, at(89)), (vec![], vec![8]));
    assert_eq!(acknowledge(&mut sent_packets, 8, 0, at(90)), (vec![8], vec![]));
    assert_eq!(sent_packets.later, 1);
}

#[test]
fn where_packets_were_overtaken_a_reliable_one_has_as_much_time_as_those_took() {
    let mut sent_packets = sent_packets();
    for number in 0..3 {
        sent_packets.sent(carried(number), BYTES, at(0));
    }
    assert_eq!(acknowledge(&mut sent_packets, 1, 0, at(10)), (vec![1], vec![0]));
    // It took 8 ms longer than the one after it.
    assert_eq!(acknowledge(&mut sent_packets, 2, 0b11, at(18)).0, vec![0, 2]);
    assert!(sent_packets.reordering > Span::from_ms(6), "{:?}", sent_packets.reordering);
    let first = sent_packets.next_number();
    for number in first..first + 4 {
        sent_packets.sent(carried(number), BYTES, at(100));
    }
    // Three later ones have arrived, and it may still have been overtaken; after as much time as the other took it is lost.
    assert_eq!(acknowledge(&mut sent_packets, first + 3, 0b11, at(110)).1, Vec::<u64>::new());
    sent_packets.sent(carried(first + 4), BYTES, at(115));
    assert_eq!(acknowledge(&mut sent_packets, first + 4, 0b111, at(125)).1, vec![first]);
}

#[test]
fn a_decrease_for_a_loss_that_was_none_is_taken_back() {
    let mut sent_packets = sent_packets();
    fill(&mut sent_packets, at(0));
    for number in 0..4 {
        acknowledge(&mut sent_packets, number, u64::MAX >> 1, at(10));
    }
    fill(&mut sent_packets, at(10));
    // Through a queue of 40 ms.
    for number in 4..7 {
        acknowledge(&mut sent_packets, number, u64::MAX >> 1, at(50));
    }
    let before = sent_packets.window.bytes();
    assert_eq!(acknowledge(&mut sent_packets, 8, 0, at(50)).1, vec![7]);
    assert!(sent_packets.window.bytes() < before, "{} of {before}", sent_packets.window.bytes());
    acknowledge(&mut sent_packets, 8, 0b1, at(51));
    assert!(sent_packets.window.bytes() >= before, "{} of {before}", sent_packets.window.bytes());
}

#[test]
fn one_that_was_given_up_may_still_arrive_but_is_settled_once() {
    let mut sent_packets = sent_packets();
    fill(&mut sent_packets, at(0));
    acknowledge(&mut sent_packets, 3, 0b11, at(1));
    assert_eq!(acknowledge(&mut sent_packets, 3, 0b111, at(2)), (vec![0], vec![]));
    assert_eq!(acknowledge(&mut sent_packets, 3, 0b111, at(3)), (vec![], vec![]));
}

#[test]
fn what_was_refused_is_neither_lost_nor_on_its_way() {
    let mut sent_packets = sent_packets();
    fill(&mut sent_packets, at(0));
    acknowledge(&mut sent_packets, 3, 0b11, at(1));
    let feedback =
        Feedback { newest: 5, earlier: 0b11111, refused: 0b100011, arrived_ns: 0, delay_ns: 0, marks: None };
    let (in_flight_bytes, mut refused) = (sent_packets.in_flight_bytes, Vec::new());
    sent_packets.handle_feedback(&feedback, (at(1), at(1)), &mut |outcome, _, carried| {
        assert_eq!(outcome, PacketOutcome::Refused);
        refused.push(carried.position);
    });
    // 0 was given up for lost before: it is being retransmitted already.
    assert_eq!((refused, in_flight_bytes - sent_packets.in_flight_bytes), (vec![4, 5], 2 * COST));
}

#[test]
fn what_was_never_sent_cannot_be_acknowledged() {
    let mut sent_packets = sent_packets();
    let sent = fill(&mut sent_packets, at(0));
    for newest in [sent, u64::MAX] {
        let feedback =
            Feedback { newest, earlier: u64::MAX >> 1, refused: 0, arrived_ns: 0, delay_ns: 0, marks: None };
        let settled = settling(|settle| {
            assert!(sent_packets.handle_feedback(&feedback, (at(1), at(1)), settle).is_none())
        });
        assert_eq!(settled, (vec![], vec![]));
    }
}

#[test]
fn the_round_trip_is_smoothed_as_rfc_6298_says() {
    let mut sent_packets = sent_packets();
    for (number, milliseconds) in [(0, 80), (1, 160)] {
        sent_packets.sent(carried(number), BYTES, at(0));
        acknowledge(&mut sent_packets, number, 0, at(milliseconds));
    }
    // 80 + 80/8; variation 40, then 3/4·40 + 1/4·80 = 50.
    assert_eq!(sent_packets.round_trip().map(|trip| trip.smoothed), Some(Span::from_ms(90)));
    assert_eq!(sent_packets.retransmission_timeout(), Span::from_ms(90 + 4 * 50 + 2));
}

#[test]
fn the_other_sides_waiting_is_no_part_of_the_round_trip() {
    let mut sent_packets = sent_packets();
    sent_packets.sent(carried(0), BYTES, at(0));
    let feedback =
        Feedback { newest: 0, earlier: 0, refused: 0, arrived_ns: 0, delay_ns: 1_500_000, marks: None };
    sent_packets.handle_feedback(&feedback, (at(2), at(2)), &mut |_, _, _| {});
    assert_eq!(sent_packets.round_trip().map(|trip| trip.smoothed), Some(Span::from_us(500)));
    sent_packets.sent(carried(1), BYTES, at(2));
    let boasting =
        Feedback { newest: 1, earlier: 0, refused: 0, arrived_ns: 0, delay_ns: u32::MAX, marks: None };
    sent_packets.handle_feedback(&boasting, (at(3), at(3)), &mut |_, _, _| {});
    assert!(sent_packets.round_trip().unwrap().smoothed >= Span::ZERO);
}

#[test]
fn the_time_out_doubles_until_something_is_heard_and_has_a_floor() {
    let mut sent_packets = sent_packets();
    sent_packets.sent(carried(0), BYTES, at(0));
    acknowledge(&mut sent_packets, 0, 0, at(1));
    assert_eq!(sent_packets.timeout(), None);
    sent_packets.sent(carried(1), BYTES, at(10));
    assert_eq!(sent_packets.timeout(), Some(at(20)));
    assert!(!sent_packets.handle_timeout(at(19), &mut |_, _, _| {}));
    let (_, lost) = settling(|settle| assert!(sent_packets.handle_timeout(at(20), settle)));
    assert_eq!(lost, [1]);
    sent_packets.sent(carried(2), BYTES, at(20));
    assert_eq!(sent_packets.timeout(), Some(at(40)));
    sent_packets.handle_timeout(at(40), &mut |_, _, _| {});
    for round in 0..20 {
        sent_packets.sent(carried(3 + round), BYTES, at(100_000));
        let timeout = sent_packets.timeout().unwrap();
        assert!(timeout <= at(101_000));
        sent_packets.handle_timeout(at(101_000), &mut |_, _, _| {});
    }
    sent_packets.sent(carried(23), BYTES, at(200_000));
    acknowledge(&mut sent_packets, 23, 0, at(200_001));
    sent_packets.sent(carried(24), BYTES, at(200_010));
    assert_eq!(sent_packets.timeout(), Some(at(200_020)));
}

#[test]
fn from_the_third_time_out_in_a_row_on_each_halves_the_window_down_to_two() {
    let mut sent_packets = sent_packets();
    fill(&mut sent_packets, at(0));
    for (ms, room) in [(1_000, 10), (3_000, 10), (6_000, 5), (9_000, 2), (12_000, 2)] {
        sent_packets.handle_timeout(at(ms), &mut |_, _, _| {});
        assert_eq!((sent_packets.in_flight_bytes, fill(&mut sent_packets, at(ms))), (0, room));
    }
}

#[test]
fn a_window_that_is_not_used_does_not_grow() {
    let mut sent_packets = sent_packets();
    for number in 0..100 {
        sent_packets.sent(carried(number), BYTES, at(number as i64));
        acknowledge(&mut sent_packets, number, 0, at(number as i64 + 1));
    }
    assert_eq!(sent_packets.window.bytes(), 10 * COST);
}

#[test]
fn packets_of_a_peer_that_never_answers_are_forgotten_at_the_limit() {
    let mut sent_packets = sent_packets();
    for round in 0..5_000 {
        fill(&mut sent_packets, at(round * 1_000));
        sent_packets.handle_timeout(at(round * 1_000 + 1_000), &mut |_, _, _| {});
    }
    assert_eq!(sent_packets.packets.len(), PACKETS_LIMIT);
    assert!(sent_packets.first > 0);
}

#[test]
fn a_lost_probe_is_no_loss_of_the_channel_and_takes_no_room() {
    let learned = |with_probes: bool| {
        let mut sent_packets = sent_packets();
        for position in 0..100 {
            sent_packets.sent(carried(position), BYTES, at(position as i64));
            let newest = sent_packets.next_number() - 1;
            if with_probes {
                let kind = Kind::Probe;
                sent_packets.sent(Carried { kind, ..carried(0) }, 9_000, at(position as i64));
            }
            // Every second number is never acknowledged.
            let earlier = if with_probes { 0x2aaa_aaaa_aaaa_aaaa } else { u64::MAX >> 1 };
            let settled = acknowledge(&mut sent_packets, newest, earlier, at(position as i64 + 1));
            assert_eq!(settled, (vec![position], vec![]));
        }
        let trip = sent_packets.round_trip().map(|trip| (trip.smoothed, trip.variation));
        (sent_packets.loss().share(), sent_packets.window.bytes(), sent_packets.in_flight_bytes, trip)
    };
    assert_eq!(learned(true), learned(false));
}

#[test]
fn a_link_without_deadlines_computes_no_quantiles_of_its_delays() {
    let mut sent_packets = sent_packets();
    for number in 0..1_000 {
        sent_packets.sent(carried(number), BYTES, at(number as i64 * 10));
        acknowledge(&mut sent_packets, number, 0, at(number as i64 * 10 + 2));
        sent_packets.measure_way_there(Span::from_ms(1));
    }
    assert_eq!([&sent_packets.round_trips, &sent_packets.ways_there].map(DelayTable::computed), [0, 0]);
    assert_eq!(sent_packets.round_trips().map(|delays| delays.highest()), Some(Span::from_ms(2)));
}
