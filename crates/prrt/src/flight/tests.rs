use super::*;

const COST: usize = 1912;

fn at(ms: i64) -> Instant<Local> {
    Instant::from_ns(ms * 1_000_000)
}

fn flight() -> Flight {
    let limits = WindowLimits { packet_bytes: COST, initial_bytes: 10 * COST, max_bytes: 100 * COST };
    Flight::new(limits, at(0))
}

fn carried(position: u64) -> Carried {
    Carried { writer: StreamId(1), position, index: 0, bound: false }
}

/// Sends packets, with their numbers for positions, until the window is full. Says how many.
fn fill(flight: &mut Flight, now: Instant<Local>) -> u64 {
    let first = flight.next_number();
    while flight.has_room() {
        flight.sent(carried(flight.next_number()), COST, now);
    }
    flight.next_number() - first
}

/// Positions that arrived, and that were lost.
type Settled = (Vec<u64>, Vec<u64>);

fn settling(call: impl FnOnce(&mut dyn FnMut(Fate, u64, Carried))) -> Settled {
    let (mut arrived, mut lost) = (Vec::new(), Vec::new());
    call(&mut |fate, _, carried| match fate {
        Fate::Arrived => arrived.push(carried.position),
        Fate::Lost => lost.push(carried.position),
        Fate::Refused => panic!("nothing was refused"),
    });
    (arrived, lost)
}

fn acknowledge(flight: &mut Flight, newest: u64, earlier: u64, now: Instant<Local>) -> Settled {
    let feedback = Feedback { newest, earlier, refused: 0, arrived_ns: 0, delay_ns: 0 };
    settling(|settle| assert!(flight.handle_feedback(&feedback, now, settle).is_some()))
}

#[test]
fn a_packet_is_lost_when_the_third_after_it_has_arrived() {
    let mut flight = flight();
    fill(&mut flight, at(0));
    assert_eq!(acknowledge(&mut flight, 3, 0b11, at(1)), (vec![1, 2, 3], vec![0]));
    assert_eq!(acknowledge(&mut flight, 6, 0b1_1100, at(1)), (vec![6], vec![]));
    assert_eq!(acknowledge(&mut flight, 7, 0b1, at(1)), (vec![7], vec![4]));
}

#[test]
fn one_that_was_given_up_may_still_arrive_but_is_settled_once() {
    let mut flight = flight();
    fill(&mut flight, at(0));
    acknowledge(&mut flight, 3, 0b11, at(1));
    assert_eq!(acknowledge(&mut flight, 3, 0b111, at(2)), (vec![0], vec![]));
    assert_eq!(acknowledge(&mut flight, 3, 0b111, at(3)), (vec![], vec![]));
}

#[test]
fn what_was_refused_is_neither_lost_nor_on_its_way() {
    let mut flight = flight();
    fill(&mut flight, at(0));
    acknowledge(&mut flight, 3, 0b11, at(1));
    let feedback = Feedback { newest: 5, earlier: 0b11111, refused: 0b100011, arrived_ns: 0, delay_ns: 0 };
    let (in_flight_bytes, mut refused) = (flight.in_flight_bytes, Vec::new());
    flight.handle_feedback(&feedback, at(1), &mut |fate, _, carried| {
        assert_eq!(fate, Fate::Refused);
        refused.push(carried.position);
    });
    // 0 was given up for lost before: it is being sent again already.
    assert_eq!((refused, in_flight_bytes - flight.in_flight_bytes), (vec![4, 5], 2 * COST));
}

#[test]
fn what_was_never_sent_cannot_be_acknowledged() {
    let mut flight = flight();
    let sent = fill(&mut flight, at(0));
    for newest in [sent, u64::MAX] {
        let feedback = Feedback { newest, earlier: u64::MAX >> 1, refused: 0, arrived_ns: 0, delay_ns: 0 };
        let settled = settling(|settle| assert!(flight.handle_feedback(&feedback, at(1), settle).is_none()));
        assert_eq!(settled, (vec![], vec![]));
    }
}

#[test]
fn the_round_trip_is_smoothed_as_rfc_6298_says() {
    let mut flight = flight();
    for (number, milliseconds) in [(0, 80), (1, 160)] {
        flight.sent(carried(number), COST, at(0));
        acknowledge(&mut flight, number, 0, at(milliseconds));
    }
    // 80 + 80/8; variation 40, then 3/4·40 + 1/4·80 = 50.
    assert_eq!(flight.round_trip().map(|trip| trip.smoothed), Some(Span::from_ms(90)));
    assert_eq!(flight.patience(), Span::from_ms(90 + 4 * 50 + 2));
}

#[test]
fn the_other_sides_waiting_is_no_part_of_the_round_trip() {
    let mut flight = flight();
    flight.sent(carried(0), COST, at(0));
    let feedback = Feedback { newest: 0, earlier: 0, refused: 0, arrived_ns: 0, delay_ns: 1_500_000 };
    flight.handle_feedback(&feedback, at(2), &mut |_, _, _| {});
    assert_eq!(flight.round_trip().map(|trip| trip.smoothed), Some(Span::from_us(500)));
    flight.sent(carried(1), COST, at(2));
    let boasting = Feedback { newest: 1, earlier: 0, refused: 0, arrived_ns: 0, delay_ns: u32::MAX };
    flight.handle_feedback(&boasting, at(3), &mut |_, _, _| {});
    assert!(flight.round_trip().unwrap().smoothed >= Span::ZERO);
}

#[test]
fn the_time_out_doubles_until_something_is_heard_and_has_a_floor() {
    let mut flight = flight();
    flight.sent(carried(0), COST, at(0));
    acknowledge(&mut flight, 0, 0, at(1));
    assert_eq!(flight.timeout(), None);
    flight.sent(carried(1), COST, at(10));
    assert_eq!(flight.timeout(), Some(at(20)));
    assert!(!flight.handle_timeout(at(19), &mut |_, _, _| {}));
    let (_, lost) = settling(|settle| assert!(flight.handle_timeout(at(20), settle)));
    assert_eq!(lost, [1]);
    flight.sent(carried(2), COST, at(20));
    assert_eq!(flight.timeout(), Some(at(40)));
    flight.handle_timeout(at(40), &mut |_, _, _| {});
    for round in 0..20 {
        flight.sent(carried(3 + round), COST, at(100_000));
        let timeout = flight.timeout().unwrap();
        assert!(timeout <= at(101_000));
        flight.handle_timeout(at(101_000), &mut |_, _, _| {});
    }
    flight.sent(carried(23), COST, at(200_000));
    acknowledge(&mut flight, 23, 0, at(200_001));
    flight.sent(carried(24), COST, at(200_010));
    assert_eq!(flight.timeout(), Some(at(200_020)));
}

#[test]
fn the_window_doubles_halves_once_a_round_trip_and_grows_by_one_packet() {
    let mut flight = flight();
    assert_eq!(fill(&mut flight, at(0)), 10);
    acknowledge(&mut flight, 9, u64::MAX >> 55, at(1));
    assert_eq!(fill(&mut flight, at(1)), 20);
    // 10 and 13 are lost, in one flight: halved once.
    acknowledge(&mut flight, 29, 0xffff ^ (1 << 15) | 0b1 << 16 | 0b1 << 17, at(2));
    assert_eq!(flight.window_bytes, 10 * COST);
    let before = flight.window_bytes;
    let sent = fill(&mut flight, at(2));
    let last = flight.next_number() - 1;
    acknowledge(&mut flight, last, (1 << (sent - 1)) - 1, at(3));
    let grown = flight.window_bytes - before;
    assert!((COST * 9 / 10..=COST).contains(&grown), "{grown} bytes");
}

#[test]
fn a_time_out_leaves_a_window_of_two() {
    let mut flight = flight();
    fill(&mut flight, at(0));
    flight.handle_timeout(at(1_000), &mut |_, _, _| {});
    assert_eq!((flight.in_flight_bytes, fill(&mut flight, at(1_000))), (0, 2));
}

#[test]
fn a_window_that_is_not_used_does_not_grow() {
    let mut flight = flight();
    for number in 0..100 {
        flight.sent(carried(number), COST, at(number as i64));
        acknowledge(&mut flight, number, 0, at(number as i64 + 1));
    }
    assert_eq!(flight.window_bytes, 10 * COST);
}

#[test]
fn packets_of_a_peer_that_never_answers_are_forgotten_at_the_limit() {
    let mut flight = flight();
    for round in 0..5_000 {
        fill(&mut flight, at(round * 1_000));
        flight.handle_timeout(at(round * 1_000 + 1_000), &mut |_, _, _| {});
    }
    assert_eq!(flight.packets.len(), PACKETS_LIMIT);
    assert!(flight.first > 0);
}
