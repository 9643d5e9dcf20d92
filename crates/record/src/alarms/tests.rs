use proptest::prelude::*;

use super::*;

const MS: u64 = 1_000_000;
const AGE: &str = "[[alarms]]\ntopic = '/odom'\nage_above_ms = 50\nfor_seconds = 1\n";
const RATE: &str = "[[alarms]]\ntopic = '/odom'\nrate_below_hz = 10\nfor_seconds = 2\n";
const BOUND: &str = "[[alarms]]\ntopic = '/odom'\nbound_above_ms = 1\nfor_seconds = 0\n";

fn seen(log_ms: u64, age_ms: u64) -> Seen<'static> {
    Seen {
        topic: "/odom",
        log_ns: log_ms * MS,
        source_ns: Some((log_ms - age_ms) * MS),
        bound_ns: Some(MS / 2),
    }
}

/// At which of these samples, in ms and with its age, an alarm fires.
fn fired(text: &str, samples: impl IntoIterator<Item = (u64, u64)>) -> Vec<u64> {
    let mut alarms = Alarms::parse(text).unwrap();
    let mut at = Vec::new();
    for (log_ms, age_ms) in samples {
        alarms.handle_sample(seen(log_ms, age_ms));
        while alarms.poll_fired().is_some() {
            at.push(log_ms);
        }
    }
    at
}

#[test]
fn an_old_topic_fires_once_for_each_time_it_becomes_old() {
    let young = (0..100).map(|n| (1_000 + n * 10, 20));
    let old = (0..150).map(|n| (2_000 + n * 10, 80));
    let young_again = (0..100).map(|n| (3_500 + n * 10, 20));
    let old_again = (0..150).map(|n| (4_500 + n * 10, 51));
    // The newest content, of 1970 ms, is too old from 2020 ms on, whatever older content comes before that.
    assert_eq!(
        fired(AGE, young.clone().chain(old.clone()).chain(young_again).chain(old_again)),
        [3_020, 5_520]
    );
    // Nearly a second is none.
    assert_eq!(fired(AGE, young.chain(old.take(100)).chain([(3_000, 20)])), [0_u64; 0]);
}

#[test]
fn a_topic_that_is_silent_grows_old_and_slow() {
    let mut alarms = Alarms::parse(&[AGE, RATE].concat()).unwrap();
    let at = |alarms: &mut Alarms, now_ms: u64| {
        alarms.handle_time(now_ms * MS);
        std::iter::from_fn(|| alarms.poll_fired().map(ToString::to_string)).collect::<Vec<_>>()
    };
    assert_eq!(at(&mut alarms, 1_000), [""; 0], "nothing is known of it yet");
    (0..30).for_each(|n| alarms.handle_sample(seen(1_000 + n * 100, 10)));
    assert_eq!(at(&mut alarms, 3_900), [""; 0]);
    // Content of 3890 ms is older than 50 ms from 3940 ms on.
    assert_eq!(at(&mut alarms, 4_939), ["rate of /odom below 10 Hz for 2 s"]);
    assert_eq!(at(&mut alarms, 4_940), ["age of /odom above 50 ms for 1 s"]);
    assert_eq!(at(&mut alarms, 9_000), [""; 0], "they are on already");
    assert_eq!(at(&mut alarms, 100), [""; 0], "time does not run back");
    (0..30).for_each(|n| alarms.handle_sample(seen(10_000 + n * 100, 10)));
    assert_eq!(at(&mut alarms, 16_000).len(), 2, "they were off between");
}

#[test]
fn a_topic_that_never_comes_is_slow_and_of_unknown_age() {
    let mut alarms = Alarms::parse(&[AGE, RATE].concat()).unwrap();
    [0, 1_999, 2_001].iter().for_each(|ms| alarms.handle_time(*ms * MS));
    assert_eq!(alarms.poll_fired().map(|alarm| alarm.condition), Some(Condition::RateBelow(10.0)));
    assert!(alarms.poll_fired().is_none());
}

#[test]
fn a_bound_that_is_wide_or_not_proven_fires_at_once() {
    for (bound_ns, fires) in [(Some(MS), false), (Some(MS + 1), true), (None, true)] {
        let mut alarms = Alarms::parse(BOUND).unwrap();
        alarms.handle_sample(Seen { bound_ns, ..seen(100, 1) });
        assert_eq!(alarms.poll_fired().is_some(), fires, "{bound_ns:?}");
        alarms.handle_sample(Seen { topic: "/other", bound_ns: None, ..seen(200, 1) });
        assert!(alarms.poll_fired().is_none());
    }
}

#[test]
fn alarms_that_nobody_polls_are_counted_and_not_kept() {
    let mut alarms = Alarms::parse(BOUND).unwrap();
    for n in 0..2 * FIRED_MAX as u64 {
        alarms.handle_sample(Seen { bound_ns: Some(n % 2 * 2 * MS), ..seen(100 + n, 1) });
    }
    alarms.handle_sample(seen(9_999, 1));
    assert_eq!(alarms.watches[0].times, FIRED_MAX as u64);
    for n in 0..10 {
        alarms.handle_sample(Seen { bound_ns: Some(n % 2 * 2 * MS), ..seen(10_000 + n, 1) });
    }
    assert_eq!(alarms.watches[0].times, FIRED_MAX as u64 + 5);
    assert_eq!(std::iter::from_fn(|| alarms.poll_fired().map(|_| ())).count(), FIRED_MAX);
}

#[test]
fn texts_that_say_nothing_are_refused_with_the_way_out() {
    let why = |text: &str| Alarms::parse(text).unwrap_err().to_string();
    assert!(why("").contains("0 alarms; write 1 to 1000"));
    assert!(why(&AGE.replace("50", "-1")).contains("alarm 1 (/odom): a time in milliseconds"));
    assert!(why(&AGE.replace("age_above_ms = 50\n", "")).contains("write one of"));
    assert!(why(&AGE.replace("= 50", "= 50\nrate_below_hz = 1")).contains("write one of"));
    assert!(why(&RATE.replace("= 10", "= 1e9")).contains("100000 samples"));
    assert!(why(&RATE.replace("= 2", "= 0")).contains("for_seconds"));
    assert!(why(&AGE.replace("'/odom'", "''")).contains("no name"));
    assert!(why("[[alarms]]\nage = 1").contains("age"));
    assert!(why(&" ".repeat(TEXT_BYTES_MAX + 1)).contains("bytes"));
    assert!(why(&AGE.repeat(ALARMS_MAX + 1)).contains("1001 alarms"));
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "(?s).{0,200}", key in "[a-z_]{0,15}", value in any::<f64>()) {
        let _ = Alarms::parse(&text);
        let _ = Alarms::parse(&format!("[[alarms]]\ntopic = '/a'\n{key} = {value:?}\nfor_seconds = {value:?}"));
        let _ = Alarms::parse(&format!("[[alarms]]\ntopic = '/a'\nrate_below_hz = {value:?}\nfor_seconds = 1"));
    }

    /// The newest content decides, however samples and moments mix: against the definition.
    #[test]
    fn an_age_fires_as_it_is_defined(
        steps in proptest::collection::vec((1_u64..400, proptest::option::of(0_u64..120)), 1..60),
    ) {
        let mut alarms = Alarms::parse(AGE).unwrap();
        let (mut now_ms, mut newest_ms, mut old_since, mut is_on) = (1_000, None, None, false);
        for (pause_ms, age_ms) in steps {
            // Every millisecond of the pause, then the sample.
            for _ in 0..pause_ms {
                now_ms += 1;
                if newest_ms.is_some_and(|newest_ms: u64| now_ms > newest_ms + 50) {
                    // A millisecond is looked at as a whole: the content became too old at its beginning.
                    old_since = old_since.or(Some(now_ms - 1));
                }
                let fires = old_since.is_some_and(|since| now_ms - since >= 1_000) && !is_on;
                is_on |= fires;
                alarms.handle_time(now_ms * MS);
                prop_assert_eq!(alarms.poll_fired().is_some(), fires);
            }
            if let Some(age_ms) = age_ms {
                newest_ms = newest_ms.max(Some(now_ms - age_ms));
                let is_old = newest_ms.is_some_and(|newest_ms| now_ms - newest_ms > 50);
                if is_old {
                    old_since = old_since.or(Some(now_ms));
                } else {
                    (old_since, is_on) = (None, false);
                }
                alarms.handle_sample(seen(now_ms, age_ms));
                prop_assert!(alarms.poll_fired().is_none());
            }
        }
    }
}
