use proptest::prelude::*;

use super::*;

fn ms(ms: i64) -> Instant<Local> {
    Instant::from_ns(ms * 1_000_000)
}

fn with(messages: u8) -> Outbound {
    let mut stream = Outbound::new(Holding::Unknown);
    (0..messages).for_each(|number| stream.push_alone(vec![number]));
    stream
}

fn sent(stream: &mut Outbound, now: Instant<Local>) -> Vec<u16> {
    std::iter::from_fn(|| stream.poll_message(now).map(|(number, _)| number)).collect()
}

#[test]
fn no_more_are_on_the_way_than_the_window_is_wide() {
    let mut stream = with(10);
    assert_eq!(sent(&mut stream, ms(0)), [0, 1, 2, 3]);
    stream.handle_acknack(2, 0, ms(5));
    assert_eq!(sent(&mut stream, ms(5)), [4, 5]);
}

#[test]
fn a_stream_is_open_while_nothing_waits_and_the_window_has_room() {
    let mut stream = with(4);
    assert!(!stream.is_open(), "they wait");
    sent(&mut stream, ms(0));
    assert!(!stream.is_open(), "as many as the window is wide are on the way");
    stream.handle_acknack(1, 0, ms(5));
    assert!(stream.is_open());
    stream.push_alone(vec![4]);
    assert!(!stream.is_open(), "one waits");
}

#[test]
fn what_is_missed_is_repeated_but_not_at_once_again() {
    let mut stream = with(4);
    sent(&mut stream, ms(0));
    stream.handle_acknack(0, 0b1, ms(10));
    assert_eq!(sent(&mut stream, ms(10)), [0]);
    // The acknowledgements of the other three say the same.
    stream.handle_acknack(0, 0b1, ms(11));
    stream.handle_acknack(0, 0b1, ms(12));
    assert!(sent(&mut stream, ms(12)).is_empty());
    assert_eq!(stream.poll_timeout(), Some(ms(14)));
    assert_eq!(sent(&mut stream, ms(14)), [0]);
    stream.handle_acknack(4, 0, ms(20));
    assert_eq!((sent(&mut stream, ms(20)), stream.poll_timeout()), (vec![], None));
}

#[test]
fn a_silent_client_is_asked_ever_more_rarely() {
    let mut stream = with(2);
    sent(&mut stream, ms(0));
    let asked: Vec<i64> = (0..4_000).filter(|at| stream.poll_heartbeat(ms(*at)) == Some((0, 1))).collect();
    assert_eq!(asked, [60, 180, 420, 900, 1860, 2860, 3860]);
}

#[test]
fn a_client_is_asked_after_four_round_trips_of_which_shorter_ones_count_at_once_and_longer_ones_slowly() {
    let mut stream = Outbound::new(Holding::Unknown);
    let mut begin = 0;
    // Acknowledged after so many ms; when the client is asked about the next message, after that.
    for (number, (round_trip, asked)) in (1..).zip([(5, 20), (13, 24), (2, 10), (14, 14)]) {
        stream.push_alone(vec![0]);
        assert_eq!(sent(&mut stream, ms(begin)), [number - 1]);
        begin += round_trip;
        stream.handle_acknack(number, 0, ms(begin));
        let mut next = stream.clone();
        next.push_alone(vec![0]);
        sent(&mut next, ms(begin));
        assert_eq!(next.poll_timeout(), Some(ms(begin + asked)), "after a round trip of {round_trip} ms");
    }
    // The answer to a question says nothing about the round trip.
    stream.push_alone(vec![0]);
    sent(&mut stream, ms(begin));
    assert_eq!(stream.poll_heartbeat(ms(begin + 14)), Some((4, 4)));
    stream.handle_acknack(5, 0, ms(begin + 200));
    stream.push_alone(vec![0]);
    sent(&mut stream, ms(begin + 200));
    assert_eq!(stream.poll_timeout(), Some(ms(begin + 200 + 14)));
}

#[test]
fn answers_are_alone_and_share_messages_only_beyond_the_limit() {
    let mut stream = Outbound::new(Holding::Unknown);
    (0..WAITING_MAX + 2).for_each(|_| stream.push(8, vec![7; 4]));
    let mut lengths = Vec::new();
    while let Some(next) = stream.poll_message(ms(0)).map(|(_, body)| body.len()) {
        lengths.push(next);
        stream.handle_acknack(lengths.len() as u16, 0, ms(0));
    }
    assert_eq!(lengths.len(), WAITING_MAX + 1);
    assert_eq!(lengths.iter().rposition(|bytes| *bytes == 8), Some(WAITING_MAX - 1));
    assert_eq!(lengths.iter().sum::<usize>(), 4 * (WAITING_MAX + 2));
}

#[test]
fn the_number_that_a_client_names_twice_is_followed_and_nothing_is_lost() {
    let mut stream = with(2);
    sent(&mut stream, ms(0));
    stream.handle_acknack(500, 0, ms(1));
    assert!(sent(&mut stream, ms(1)).is_empty());
    stream.handle_acknack(500, 0, ms(100));
    assert_eq!(sent(&mut stream, ms(100)), [500, 501]);
}

#[test]
fn what_was_not_sent_is_not_acknowledged() {
    let mut stream = with(6);
    stream.handle_acknack(2, 0, ms(0));
    assert_eq!(sent(&mut stream, ms(0)), [0, 1, 2, 3], "it has not arrived");
    let mut stream = long(Holding::InOrder);
    assert_eq!(sent(&mut stream, ms(0)), [0, 1, 2, 3]);
    stream.handle_acknack(5, 0, ms(1));
    assert!(sent(&mut stream, ms(1)).is_empty());
    stream.handle_acknack(4, 0, ms(2));
    assert_eq!(sent(&mut stream, ms(2)), [4, 5, 6, 7]);
}

#[test]
fn old_news_changes_nothing() {
    let mut stream = with(4);
    sent(&mut stream, ms(0));
    stream.handle_acknack(3, 0, ms(5));
    stream.handle_acknack(1, 0b1, ms(50));
    assert!(sent(&mut stream, ms(50)).is_empty());
    stream.handle_acknack(4, 0, ms(60));
    assert_eq!(stream.poll_timeout(), None);
}

#[test]
fn numbers_wrap() {
    let mut stream = Outbound { first: u16::MAX, ..with(3) };
    assert_eq!(sent(&mut stream, ms(0)), [u16::MAX, 0, 1]);
    stream.handle_acknack(1, 0, ms(5));
    assert_eq!((stream.first, stream.flight.len()), (1, 1));
}

/// Six pieces, the last sent alone.
fn probing() -> Outbound {
    let mut stream = Outbound::new(Holding::Unknown);
    stream.push_pieces(ObjectId([0, 6]), (0..6).map(|number| vec![number]).collect());
    stream.push_alone(vec![9]);
    assert_eq!(sent(&mut stream, ms(0)), [5]);
    stream
}

#[test]
fn a_client_that_keeps_the_last_piece_gets_the_others() {
    let mut stream = probing();
    stream.handle_acknack(0, 0b01_1111, ms(2));
    assert_eq!(sent(&mut stream, ms(2)), [0, 1, 2, 3, 4]);
    // In pieces until all are there: nothing is on the way beyond them.
    stream.handle_acknack(4, 0b1, ms(4));
    assert!(sent(&mut stream, ms(4)).is_empty());
    stream.handle_acknack(4, 0b1, ms(8));
    assert_eq!(sent(&mut stream, ms(8)), [4]);
    stream.handle_acknack(6, 0, ms(9));
    assert_eq!(sent(&mut stream, ms(9)), [6]);
    assert_eq!(stream.window, 6);
}

#[test]
fn a_client_that_drops_the_last_piece_is_spared_the_others_and_loses_no_number() {
    let mut stream = probing();
    let mut given_up = 0;
    for try_again in 1..=5 {
        // Lost or dropped: unknown.
        given_up +=
            u32::from(stream.handle_acknack(0, 0b11_1111, ms(try_again * 10)).undeliverable.is_some());
        let next = sent(&mut stream, ms(try_again * 10 + 5));
        assert_eq!(next, if try_again < 5 { [5] } else { [0] }, "try {try_again}");
    }
    assert_eq!(given_up, 1);
}

/// Forty pieces to a client of which this is known, and something behind them.
fn long(holding: Holding) -> Outbound {
    let mut stream = Outbound::new(holding);
    stream.push_pieces(ObjectId([0, 6]), (0..40).map(|number| vec![number]).collect());
    stream.push_alone(vec![40]);
    stream
}

#[test]
fn the_window_slides_over_a_sample_in_more_pieces_than_an_acknowledgement_can_name() {
    for (holding, window) in [(Holding::InOrder, 4), (Holding::Messages(64), 16), (Holding::Messages(40), 16)]
    {
        let mut stream = long(holding);
        let (mut came, mut end): (Vec<u16>, u16) = (Vec::new(), 0);
        for at in 0..200 {
            let now = sent(&mut stream, ms(at * 10));
            assert!(
                now.iter().all(|number| usize::from(*number) < came.len() + window),
                "{now:?} after {came:?}"
            );
            // Each second time one is lost, and the client keeps nothing behind it.
            for (place, number) in now.iter().enumerate() {
                end = end.max(number + 1);
                let is_lost = place == 2 && at % 2 == 0;
                if usize::from(*number) == came.len() && !is_lost {
                    came.push(*number);
                }
            }
            let next = came.len() as u16;
            let missed = (0..16).filter(|bit| next + bit < end).fold(0, |missed, bit| missed | 1 << bit);
            assert_eq!(stream.handle_acknack(next, missed, ms(at * 10 + 5)), Outcome::default());
        }
        assert_eq!(came, (0..=40).collect::<Vec<u16>>(), "{holding:?}");
        assert!(stream.flight.is_empty());
    }
}

#[test]
fn a_client_that_holds_less_than_is_said_of_it_is_named_once() {
    let mut stream = long(Holding::Messages(64));
    assert_eq!(sent(&mut stream, ms(0)), (0..16).collect::<Vec<u16>>());
    // Its history is 16: it has those, and none behind them fits.
    let mut named = Vec::new();
    for at in 1..100 {
        named.extend(stream.handle_acknack(16, 0b1111, ms(at * 10)).undeliverable);
        sent(&mut stream, ms(at * 10 + 5));
    }
    assert_eq!(named, [(ObjectId([0, 6]), 40)]);
}

/// A client that keeps four messages behind a lost one, and acknowledges each at once.
#[derive(Default)]
struct Client {
    next: u16,
    /// One beyond the last that it knows of.
    end: u16,
    ahead: [bool; 4],
}

impl Client {
    fn handle_message(&mut self, number: u16) {
        self.end = self.end.max(number + 1);
        let at = usize::from(number.wrapping_sub(self.next));
        if at < self.ahead.len() {
            self.ahead[at] = true;
        }
        while self.ahead[0] {
            self.ahead.rotate_left(1);
            self.ahead[3] = false;
            self.next += 1;
        }
    }

    fn missed(&self) -> u16 {
        let known = usize::from(self.end - self.next).min(4);
        (0..known).filter(|at| !self.ahead[*at]).fold(0, |missed, at| missed | 1 << at)
    }
}

/// Ten samples in a tenth of a second, for half a minute, on a line that loses a fifth of all messages each way and is cut
/// during some milliseconds: how many arrived, and how many had to wait at the end of each second.
fn on_a_bad_line(cut: std::ops::Range<i64>) -> (u16, Vec<usize>) {
    let mut state = 0x1234_5678_9abc_def1_u64;
    let mut is_lost = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.is_multiple_of(5)
    };
    let mut stream = Outbound::new(Holding::Unknown);
    let mut client = Client::default();
    let (mut waiting, mut waited) = (0, Vec::new());
    let mut acknowledgements = VecDeque::new();
    for now in 0..30_000 {
        waiting += usize::from(now % 10 == 0);
        if now % 1000 == 999 {
            waited.push(waiting);
        }
        if cut.contains(&now) {
            acknowledgements.clear();
            continue;
        }
        if let Some((first, missed)) = acknowledgements.pop_front().flatten() {
            stream.handle_acknack(first, missed, ms(now));
        }
        while waiting > 0 && stream.is_open() {
            waiting -= 1;
            stream.push_alone(vec![0]);
        }
        // What is sent now is acknowledged a millisecond later.
        let asked = stream.poll_heartbeat(ms(now)).filter(|_| !is_lost());
        client.end = asked.map_or(client.end, |(_, last)| client.end.max(last + 1));
        let mut is_asked = asked.is_some();
        for number in sent(&mut stream, ms(now)) {
            if !is_lost() {
                client.handle_message(number);
                is_asked = true;
            }
        }
        acknowledgements.push_back((is_asked && !is_lost()).then_some((client.next, client.missed())));
    }
    (client.next, waited)
}

#[test]
fn a_hundred_samples_a_second_pass_a_line_that_loses_a_fifth_of_all_messages_each_way() {
    let (arrived, waited) = on_a_bad_line(0..0);
    assert!(
        arrived >= 2_980 && waited.iter().all(|waited| *waited <= 32),
        "{arrived} arrived; {waited:?} waited"
    );
}

#[test]
fn after_a_cut_a_stream_is_as_fast_as_before() {
    let times = (10_000..10_100).map(|begin| on_a_bad_line(begin..begin + 500).1[10]);
    let waited: Vec<usize> = times.collect();
    assert!(waited.iter().all(|waited| *waited <= 16), "{waited:?} waited half a second after the cut");
}

fn holdings() -> impl Strategy<Value = Holding> {
    prop_oneof![Just(Holding::Unknown), Just(Holding::InOrder), any::<u16>().prop_map(Holding::Messages)]
}

proptest! {
    /// Whatever a client says, right or wrong.
    #[test]
    fn no_more_are_on_the_way_than_a_client_may_hold_whatever_it_acknowledges(
        holding in holdings(),
        samples in prop::collection::vec(1..=PIECES_MAX, 1..4),
        said in prop::collection::vec((prop_oneof![0..1_100u16, any::<u16>()], any::<u16>(), 0..200i64), 0..100),
    ) {
        let mut stream = Outbound::new(holding);
        for pieces in samples {
            match pieces {
                1 => stream.push_alone(vec![0]),
                pieces => {
                    let pieces = pieces.min(stream.pieces_max()).max(1);
                    stream.push_pieces(ObjectId([0, 6]), vec![vec![0]; pieces]);
                }
            }
        }
        let mut now = 0;
        for (first, missed, later) in said {
            now += later;
            stream.handle_acknack(first, missed, ms(now));
            let begin = stream.first.wrapping_add(stream.acknowledged as u16);
            let on_the_way = |number: u16| usize::from(number.wrapping_sub(begin)) < WINDOW_MAX;
            for number in sent(&mut stream, ms(now)) {
                prop_assert!(on_the_way(number), "{} of {:?} behind {}", number, holding, begin);
            }
            if let Some((first, last)) = stream.poll_heartbeat(ms(now)) {
                prop_assert!(first == begin && on_the_way(last), "{}..{} of {:?}", first, last, holding);
            }
        }
    }
}
