use super::*;
use crate::{Bounded, BoundedConfig, Estimator};
use proptest::prelude::*;
use std::vec::Vec;

const KEY: [u8; 16] = *b"not a secret key";

fn at_ms(ms: i64) -> Instant<Local> {
    Instant::from_ns(ms * 1_000_000)
}

fn exchanger() -> Exchanger {
    Exchanger::new(ExchangerConfig::default(), KEY, at_ms(0))
}

/// Remote stamps of a peer whose clock shows the same as ours.
fn stamps(ms: i64) -> (Instant<Remote>, Instant<Remote>) {
    (Instant::from_ns(ms * 1_000_000), Instant::from_ns(ms * 1_000_000))
}

/// Requests given out until `until_ms` if each is answered at once with `state`.
fn requests_until(exchanger: &mut Exchanger, until_ms: i64, state: State) -> Vec<i64> {
    let mut times_ms = Vec::new();
    while exchanger.poll_timeout() < at_ms(until_ms) {
        let now = exchanger.poll_timeout();
        let nonce = exchanger.poll_request(now).unwrap();
        assert_eq!(exchanger.poll_request(now), None, "one at a time");
        times_ms.push(now.ns() / 1_000_000);
        exchanger.handle_reply(nonce, stamps(now.ns() / 1_000_000), now).unwrap();
        exchanger.handle_state(state, now);
    }
    times_ms
}

#[test]
fn the_start_is_a_burst_of_eight_and_then_ten_a_second() {
    let times_ms = requests_until(&mut exchanger(), 500, State::Acquiring);
    assert_eq!(times_ms, [0, 10, 20, 30, 40, 50, 60, 70, 170, 270, 370, 470]);
}

#[test]
fn another_rhythm_holds_from_the_next_request_on() {
    let mut exchanger = exchanger();
    let fastest_interval = Span::from_ms(500);
    exchanger.set_config(ExchangerConfig { fastest_interval, ..ExchangerConfig::default() });
    let times_ms = requests_until(&mut exchanger, 1_600, State::Acquiring);
    assert_eq!(times_ms, [0, 10, 20, 30, 40, 50, 60, 70, 570, 1_070, 1_570]);
    exchanger.set_config(ExchangerConfig::default());
    // The one that is due comes when it was.
    assert_eq!(requests_until(&mut exchanger, 2_800, State::Acquiring), [2_070, 2_570, 2_670, 2_770]);
}

#[test]
fn a_settled_clock_is_asked_once_a_second() {
    let times_ms = requests_until(&mut exchanger(), 60_000, State::Locked);
    let last = times_ms.len() - 1;
    assert_eq!(times_ms[last] - times_ms[last - 1], 1_000);
}

#[test]
fn a_step_brings_a_burst_at_once() {
    let mut exchanger = exchanger();
    requests_until(&mut exchanger, 60_000, State::Locked);
    let now = at_ms(60_000);
    exchanger.handle_state(State::Stepped, now);
    assert_eq!(exchanger.poll_timeout(), now);
    let times_ms = requests_until(&mut exchanger, 60_200, State::Stepped);
    assert_eq!(times_ms, [60_000, 60_010, 60_020, 60_030, 60_040, 60_050, 60_060, 60_070, 60_170]);
}

#[test]
fn a_late_caller_does_not_send_a_volley() {
    let mut exchanger = exchanger();
    assert!(exchanger.poll_request(at_ms(10_000)).is_some());
    assert_eq!(exchanger.poll_request(at_ms(10_000)), None);
}

#[test]
fn a_silent_peer_is_asked_once_a_second() {
    let mut exchanger = exchanger();
    let mut times_ms = Vec::new();
    while exchanger.poll_timeout() < at_ms(20_000) {
        let now = exchanger.poll_timeout();
        exchanger.poll_request(now).unwrap();
        times_ms.push(now.ns() / 1_000_000);
    }
    let last = times_ms.len() - 1;
    assert_eq!(times_ms[last] - times_ms[last - 1], 1_000);
    assert!(exchanger.counters().given_up >= SILENCE);
}

#[test]
fn a_reply_counts_once() {
    let mut exchanger = exchanger();
    let nonce = exchanger.poll_request(at_ms(0)).unwrap();
    exchanger.handle_sent(nonce, at_ms(1));
    let exchange = exchanger.handle_reply(nonce, stamps(2), at_ms(3)).unwrap();
    assert_eq!(exchange, Exchange::from_ns(1_000_000, 2_000_000, 2_000_000, 3_000_000));
    assert_eq!(exchanger.handle_reply(nonce, stamps(2), at_ms(4)), Err(Dropped::Duplicated));
    assert_eq!(exchanger.counters().duplicated, 1);
}

#[test]
fn a_reply_after_its_time_out_is_stale_and_never_matched_to_a_later_request() {
    let mut exchanger = exchanger();
    let late = exchanger.poll_request(at_ms(0)).unwrap();
    let next = exchanger.poll_request(at_ms(990)).unwrap();
    assert_eq!(exchanger.handle_reply(late, stamps(5), at_ms(1_001)), Err(Dropped::Stale));
    assert!(exchanger.handle_reply(next, stamps(995), at_ms(1_002)).is_ok());
}

#[test]
fn a_reply_overtaken_by_a_later_one_is_dropped() {
    let mut exchanger = exchanger();
    let first = exchanger.poll_request(at_ms(0)).unwrap();
    let second = exchanger.poll_request(at_ms(10)).unwrap();
    assert!(exchanger.handle_reply(second, stamps(12), at_ms(15)).is_ok());
    assert_eq!(exchanger.handle_reply(first, stamps(5), at_ms(16)), Err(Dropped::Reordered));
    assert_eq!(exchanger.counters().reordered, 1);
}

#[test]
fn when_too_many_wait_the_oldest_is_given_up() {
    let config = ExchangerConfig { fastest_interval: Span::from_ms(10), ..ExchangerConfig::default() };
    let mut exchanger = Exchanger::new(config, KEY, at_ms(0));
    let nonces: Vec<Nonce> =
        (0..=PENDING_LIMIT as i64).map(|i| exchanger.poll_request(at_ms(10 * i)).unwrap()).collect();
    assert_eq!(exchanger.counters().given_up, 1);
    assert_eq!(exchanger.handle_reply(nonces[0], stamps(1), at_ms(91)), Err(Dropped::Stale));
    assert!(exchanger.handle_reply(nonces[1], stamps(11), at_ms(91)).is_ok());
}

#[test]
fn nonces_do_not_repeat_and_depend_on_the_key() {
    let exchanger = exchanger();
    let mut nonces: Vec<u64> = (0..10_000).map(|sequence| exchanger.nonce(sequence).0).collect();
    nonces.sort_unstable();
    nonces.dedup();
    assert_eq!(nonces.len(), 10_000);
    let other = Exchanger::new(ExchangerConfig::default(), [7; 16], at_ms(0));
    assert_ne!(exchanger.nonce(0), other.nonce(0));
}

proptest! {
    #[test]
    fn an_attacker_that_does_not_know_the_nonce_cannot_move_the_estimate(
        forgeries in prop::collection::vec((any::<u64>(), any::<i64>(), any::<i64>()), 1..50),
    ) {
        let mut exchanger = exchanger();
        let mut bounded = Bounded::new(BoundedConfig::default());
        let mut now = at_ms(0);
        for (guess, t2, t3) in &forgeries {
            now = now.max(exchanger.poll_timeout());
            let nonce = exchanger.poll_request(now).unwrap();
            prop_assume!(Nonce(*guess) != nonce);
            let forged = (Instant::from_ns(*t2), Instant::from_ns(*t3));
            let verdict = exchanger.handle_reply(Nonce(*guess), forged, now);
            prop_assert_eq!(verdict, Err(Dropped::Forged));
            let honest = exchanger.handle_reply(nonce, stamps(now.ns() / 1_000_000), now).unwrap();
            bounded.handle_exchange(&honest).unwrap();
            prop_assert!(bounded.estimate(now).unwrap().offset.abs() <= Span::from_ns(1_000_000));
        }
        prop_assert_eq!(exchanger.counters().forged as usize, forgeries.len());
    }
}
