use super::*;

fn ms(ms: i64) -> Instant<Local> {
    Instant::from_ns(ms * 1_000_000)
}

fn with(messages: u8) -> Outbound {
    let mut stream = Outbound::new();
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
fn answers_share_a_message_as_long_as_they_fit() {
    let mut stream = Outbound::new();
    (0..3u8).for_each(|number| stream.push(8, |body| body.extend([number; 4])));
    let first = stream.poll_message(ms(0)).map(|(_, body)| body.to_vec());
    assert_eq!(first, Some(vec![0, 0, 0, 0, 1, 1, 1, 1]));
    assert_eq!(stream.poll_message(ms(0)).map(|(_, body)| body.len()), Some(4));
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
    let mut stream = Outbound::new();
    stream.push_pieces((0..6).map(|number| vec![number]).collect());
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
        // Lost or dropped, nobody knows.
        given_up += u32::from(stream.handle_acknack(0, 0b11_1111, ms(try_again * 10)).given_up);
        let next = sent(&mut stream, ms(try_again * 10 + 5));
        assert_eq!(next, if try_again < 5 { [5] } else { [0] }, "try {try_again}");
    }
    assert_eq!(given_up, 1);
}
