use super::*;
use crate::delay_table::Quantiles;
use crate::gilbert::{Gilbert, LossModel};

fn at(ms: i64) -> Instant<Local> {
    Instant::from_ns(ms * 1_000_000)
}

/// 20 ms round trip, 5 % in bursts of 3; the sample was sent at 0, its deadline is at 60 ms.
fn path() -> Path {
    Path {
        one_way: Span::from_ms(10),
        round: Span::from_ms(20),
        rounds: Quantiles::all(Span::from_ms(20)),
        long: [Span::from_ms(10), Span::from_ms(20)],
        known: (Departure { packet: 9, sent_at: at(-5) }, false),
        next: 15,
        heard_at: at(19),
        channel: Gilbert::new(&LossModel::Bursts { p: 0.05, mean_burst: 3.0 }),
        is_limited: false,
        floor: Span::from_ms(16),
        is_doubtful: false,
        may_repair: true,
        lateness: Span::from_us(300),
        capacity_bytes_per_s: None,
    }
}

fn prospect<'a>(path: &'a Path, pending: &'a [Pending], now: Instant<Local>) -> Prospect<'a> {
    Prospect {
        now,
        latest: at(50),
        hopeless: at(52),
        path,
        interval: Span::from_ms(5),
        needed: 1,
        pending,
        last_sent: pending.last().map_or(at(0), |pending| pending.sent_at),
        was_lost: pending.len() > 1,
        stake: Stake::Sample,
        price: 0.01,
    }
}

#[test]
fn what_is_known_to_be_lost_is_retransmitted_at_once_and_never_after_the_last_useful_moment() {
    let path = path();
    assert_eq!(prospect(&path, &[], at(21)).step(), Step::Send(1.0));
    assert_eq!(prospect(&path, &[], at(50)).step(), Step::Send(1.0));
    assert_eq!(prospect(&path, &[], at(53)).step(), Step::Rest);
    assert_eq!(Prospect { needed: 0, ..prospect(&path, &[], at(21)) }.step(), Step::Rest);
}

#[test]
fn nothing_is_sent_while_news_can_still_be_acted_on() {
    let path = path();
    let first = [Pending { packet: 10, sent_at: at(0), is_expected: false, ack_delay: Span::ZERO }];
    assert_eq!(prospect(&path, &first, at(1)).step(), Step::Wait(at(20)));
    assert_eq!(prospect(&path, &first, at(22)).step(), Step::Wait(at(27)));
    let again = [Pending { packet: 10, sent_at: at(28), is_expected: false, ack_delay: Span::ZERO }];
    assert_eq!(prospect(&path, &again, at(29)).step(), Step::Wait(at(48)));
}

#[test]
fn without_hope_of_news_copies_are_spread_until_one_more_is_not_worth_its_price() {
    let path = path();
    let mut pending =
        vec![Pending { packet: 10, sent_at: at(35), is_expected: false, ack_delay: Span::ZERO }];
    assert_eq!(prospect(&path, &pending, at(36)).step(), Step::Wait(at(40)));
    let mut sent = 0;
    while matches!(prospect(&path, &pending, at(50)).step(), Step::Send(_)) {
        sent += 1;
        pending.push(Pending {
            packet: 14 + sent,
            sent_at: at(50),
            is_expected: false,
            ack_delay: Span::ZERO,
        });
    }
    assert!((1..10).contains(&sent), "{sent}");
    let Step::Risk(risk, _) = prospect(&path, &pending, at(50)).step() else { panic!("it is enough") };
    assert!(risk < 0.05, "{risk}");
    let dear = Prospect { price: 0.5, ..prospect(&path, &pending[..1], at(50)) };
    assert!(matches!(dear.step(), Step::Risk(..)));
}

#[test]
fn a_sender_that_wakes_late_still_sends_what_may_be_in_time_and_without_a_pause() {
    let path = path();
    let pending = [Pending { packet: 10, sent_at: at(49), is_expected: false, ack_delay: Span::ZERO }];
    assert!(matches!(prospect(&path, &pending, at(51)).step(), Step::Send(_)));
    let just_sent = [Pending { packet: 10, sent_at: at(50), is_expected: false, ack_delay: Span::ZERO }];
    assert!(matches!(prospect(&path, &just_sent, at(50)).step(), Step::Send(_)));
}

#[test]
fn the_price_falls_while_too_much_risk_is_left_and_rises_again() {
    let mut price = Price::new();
    let target = 1e-4;
    let initial = price.now(target);
    (0..100).for_each(|_| {
        price.settle(0.001, 0.0, target / 2.0, 0.0);
    });
    let low = price.now(target);
    assert!(low < initial / 2.0, "{low}");
    (0..10_000).for_each(|_| {
        price.settle(0.0, 0.0, target / 2.0, 0.0);
    });
    assert!(price.now(target) > initial, "{}", price.now(target));
}

#[test]
fn failures_that_were_not_foreseen_make_every_risk_count_for_more() {
    let (mut lucky, mut unlucky) = (Price::new(), Price::new());
    for round in 0..1_000 {
        lucky.settle(0.0005, 0.0, 5e-4, 0.0);
        unlucky.settle(0.0005, f64::from(u8::from(round % 100 == 0)), 5e-4, 0.0);
    }
    assert!(unlucky.now(1e-3) < lucky.now(1e-3));
}

#[test]
fn experience_counts_for_no_more_than_its_limit() {
    let mut price = Price::new();
    (0..1_000).for_each(|_| _ = price.settle(0.0, 1.0, 5e-4, 0.0));
    assert_eq!(price.settle(0.001, 0.0, 5e-4, 0.0), 0.001 * EXPERIENCE_MOST);
}
