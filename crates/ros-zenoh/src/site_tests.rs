use super::*;
use noctule_proto_kit::SplitMix64;
use proptest::prelude::*;

/// A clock that shows `offset_ns` more than true time and runs `ppm` too fast.
#[derive(Clone, Copy)]
struct Clock {
    offset_ns: i64,
    ppm: i64,
}

impl Clock {
    fn at(self, true_ns: i64) -> i64 {
        true_ns + self.offset_ns + true_ns / 1_000_000 * self.ppm
    }
}

const NS_PER_MS: i64 = 1_000_000;

/// Virtual seconds of exchanges over a path, and of samples that are checked against the truth: samples, and those that a bound did not hold.
fn run(near: Clock, far: Clock, mut delay_ms: impl FnMut(u64, bool) -> i64) -> (u64, u64, Option<Span>) {
    let mut clock = SiteClock::new([7; 16], Instant::from_ns(near.at(0)));
    let (mut samples, mut outside) = (0, 0);
    let mut seed = 0;
    let mut true_ns = 0;
    let mut replies: Vec<(i64, [u8; REPLY_BYTES])> = Vec::new();
    while true_ns < 600_000 * NS_PER_MS {
        true_ns += 10 * NS_PER_MS;
        let now = Instant::from_ns(near.at(true_ns));
        while let Some(request) = clock.poll_request(now) {
            seed += 1;
            let there = true_ns + delay_ms(seed, false) * NS_PER_MS;
            let stamp = Instant::from_ns(far.at(there));
            let reply = clock_reply(&request, stamp, stamp).unwrap();
            seed += 1;
            replies.push((there + delay_ms(seed, true) * NS_PER_MS, reply));
        }
        replies.sort_unstable();
        while replies.first().is_some_and(|(at, _)| *at <= true_ns) {
            let (at, reply) = replies.remove(0);
            // Reordered ones do not count, and that is all.
            let _ = clock.handle_reply(&reply, Instant::from_ns(near.at(at)));
        }
        seed += 1;
        let measured_ns = true_ns - delay_ms(seed, true) * NS_PER_MS;
        let (bound, sigma) = (Some(Span::from_us(5)), None);
        let sample =
            SiteAttachment { sequence: 1, source_ns: far.at(measured_ns), bound, sigma, gid: [0; 16] };
        if let Some(Dated { source, bound: Some(bound), .. }) = clock.source(&sample, now) {
            samples += 1;
            let truth = Instant::<Local>::from_ns(near.at(measured_ns));
            outside += u64::from((source - truth).abs() > bound);
        }
    }
    (samples, outside, clock.bound(Instant::from_ns(near.at(true_ns))))
}

#[test]
fn over_80_ms_of_routers_ages_stay_inside_their_bounds() {
    let near = Clock { offset_ns: 5_000_000_000, ppm: -60 };
    let far = Clock { offset_ns: -3_000_000_000_000, ppm: 80 };
    for salt in 0..4_u64 {
        // 40 ms each way and queues: up to 10 ms on the way there, up to 30 ms on the way back.
        let bits = |seed| SplitMix64::new(seed).bits();
        let delay = |seed: u64, is_back: bool| {
            let queued_ms = bits(seed + salt * 1_000_003) % 10 + u64::from(is_back) * (bits(seed) % 20);
            40 + queued_ms as i64
        };
        let (samples, outside, bound) = run(near, far, delay);
        assert!(samples > 55_000 && outside == 0, "salt {salt}: {outside} of {samples}");
        assert!(bound.is_some_and(|bound| bound < Span::from_ms(60)), "salt {salt}: {bound:?}");
    }
}

#[test]
fn a_path_that_is_slow_one_way_alone_does_not_break_the_bound() {
    let (here, there) = (Clock { offset_ns: 0, ppm: 0 }, Clock { offset_ns: 7, ppm: 0 });
    let (samples, outside, bound) = run(here, there, |_, is_back| if is_back { 0 } else { 80 });
    assert!(samples > 55_000 && outside == 0);
    // Half of the way alone, and no less.
    assert!(bound.is_some_and(|bound| bound >= Span::from_ms(39)), "{bound:?}");
}

#[test]
fn nothing_is_proven_before_an_exchange_and_of_what_the_other_did_not_prove() {
    let now = Instant::from_ns(1_000);
    let mut clock = SiteClock::new([1; 16], now);
    let sample = SiteAttachment { sequence: 1, source_ns: 900, bound: None, sigma: None, gid: [0; 16] };
    assert_eq!(clock.source(&sample, now), None);
    let request = clock.poll_request(now).unwrap();
    let reply = clock_reply(&request, Instant::from_ns(1_500), Instant::from_ns(1_500)).unwrap();
    clock.handle_reply(&reply, Instant::from_ns(2_000)).unwrap();
    assert_eq!(clock.source(&sample, Instant::from_ns(2_100)).unwrap().bound, None);
    // The same once more, and stamps of another time.
    assert_eq!(
        clock.handle_reply(&reply, Instant::from_ns(2_100)),
        Err(ReplyFault::Dropped(Dropped::Duplicated))
    );
    for source_ns in [i64::MIN, i64::MAX] {
        let _ = clock.source(&SiteAttachment { source_ns, ..sample }, now);
    }
}

#[test]
fn keys_of_gateways_are_written_and_read() {
    assert_eq!(parse_presence(&presence(3, "ab12")), Some((3, "ab12")));
    let name = TypedName::new("/a/b", "x/msg/Y").unwrap();
    let key = sample_key(0, "ab12", &name, crate::key::NO_HASH);
    assert_eq!(key, "@noctule/0/sample/ab12/a/b/x::msg::dds_::Y_/TypeHashNotSupported");
    assert_eq!(sample_zid(&key), Some("ab12"));
    for key in ["", "@noctule", "@noctule/0/gateway/", "@noctule/x/gateway/ab", "@noctule/0/gateway/a*"] {
        assert_eq!((parse_presence(key), sample_zid(key)), (None, None), "{key}");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..40), at in 0_i64..1 << 60, key in "(@noctule/)?.{0,40}") {
        let mut clock = SiteClock::new([1; 16], Instant::from_ns(0));
        prop_assert!(clock.handle_reply(&bytes, Instant::from_ns(at)).is_err());
        let reply = clock_reply(&bytes, Instant::from_ns(at), Instant::from_ns(at));
        prop_assert_eq!(reply.is_some(), bytes.len() == REQUEST_BYTES && bytes[0] == VERSION);
        let _ = (parse_presence(&key), sample_zid(&key));
    }
}
