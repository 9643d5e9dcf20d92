use noctule_timebase::Span;
use proptest::prelude::*;

use super::*;
use crate::random::Random;

mod text;

fn link(text: &str, seed: u64) -> Link {
    let spec: LinkSpec = text.parse().unwrap();
    Link::new(&spec.a_to_b, Instant::from_ns(0), seed)
}

fn at(span: Span) -> Instant<Truth> {
    Instant::from_ns(span.ns())
}

/// Sends `count` packets of `bytes` at a fixed interval, each beginning with its number, and gives
/// when which arrived.
fn stream(link: &mut Link, count: u32, interval: Span, bytes: usize) -> Vec<(u32, Span)> {
    let mut arrivals = Vec::new();
    let take = |link: &mut Link, until: Instant<Truth>, arrivals: &mut Vec<(u32, Span)>| {
        while let Some(delivery) = link.poll_deliver(until) {
            let number = u32::from_le_bytes(delivery.bytes[..4].try_into().unwrap());
            arrivals.push((number, delivery.due - at(Span::ZERO)));
        }
    };
    for number in 0..count {
        let now = at(interval * i64::from(number));
        take(link, now, &mut arrivals);
        let mut packet = vec![0; bytes.max(4)];
        packet[..4].copy_from_slice(&number.to_le_bytes());
        link.handle_packet(now, &packet);
    }
    take(link, at(Span::MAX), &mut arrivals);
    assert_eq!(link.in_flight(), 0);
    arrivals
}

/// Five standard deviations: fails once in two million seeds if the model is right.
const SIGMAS: f64 = 5.0;

fn lost_pattern(link: &mut Link, count: u32, interval: Span) -> Vec<bool> {
    let mut lost = vec![true; count as usize];
    for (number, _) in stream(link, count, interval, 100) {
        lost[number as usize] = false;
    }
    lost
}

fn bursts(lost: &[bool]) -> Vec<usize> {
    lost.split(|lost| !lost).map(<[bool]>::len).filter(|length| *length > 0).collect()
}

#[test]
fn an_unimpaired_link_delivers_everything_at_once_and_unchanged() {
    let mut link = link("", 1);
    link.handle_packet(at(Span::ZERO), b"first");
    link.handle_packet(at(Span::ZERO), b"second");
    let mut next = || link.poll_deliver(at(Span::ZERO)).unwrap();
    assert_eq!((next().bytes, next().bytes), (b"first".to_vec(), b"second".to_vec()));
    assert_eq!(link.poll_timeout(), None);
}

#[test]
fn a_packet_is_due_after_its_delay_and_not_a_nanosecond_before() {
    let mut link = link("delay=10ms", 1);
    link.handle_packet(at(Span::from_ms(5)), b"x");
    let due = at(Span::from_ms(15));
    assert_eq!(link.poll_timeout(), Some(due));
    assert_eq!(link.poll_deliver(due - Span::from_ns(1)), None);
    assert_eq!(link.poll_deliver(due).unwrap().due, due);
}

#[test]
fn independent_losses_have_their_share_and_no_memory() {
    let count = 100_000;
    for (text, loss) in [("loss=0.1%", 0.001), ("loss=5%", 0.05), ("loss=50%", 0.5)] {
        let lost = lost_pattern(&mut link(text, 7), count, Span::from_ms(1));
        let n = f64::from(count);
        let expected = n * loss;
        let deviation = (n * loss * (1.0 - loss)).sqrt();
        let total = lost.iter().filter(|lost| **lost).count() as f64;
        assert!((total - expected).abs() < SIGMAS * deviation, "{text}: {total}, expected {expected}");
        // Two in a row: probability loss², nearly binomial as well.
        let pairs = lost.windows(2).filter(|pair| pair[0] && pair[1]).count() as f64;
        let pairs_expected = n * loss * loss;
        assert!(
            (pairs - pairs_expected).abs() < SIGMAS * 2.0 * pairs_expected.sqrt() + 3.0,
            "{text}: {pairs}"
        );
    }
}

#[test]
fn bursts_counted_in_packets_have_their_loss_and_their_mean_length_at_any_pace() {
    let (count, loss, mean) = (200_000, 0.05, 3.0);
    for interval in [Span::from_us(10), Span::from_ms(100)] {
        let lost = lost_pattern(&mut link("loss=5% burst=3", 11), count, interval);
        let n = f64::from(count);
        // A two-state chain: correlation 1 − p − r from packet to packet widens the binomial.
        let r: f64 = 1.0 / mean;
        let p = r * loss / (1.0 - loss);
        let correlation = 1.0 - p - r;
        let widening = (1.0 + correlation) / (1.0 - correlation);
        let deviation = (n * loss * (1.0 - loss) * widening).sqrt();
        let total = lost.iter().filter(|lost| **lost).count() as f64;
        assert!((total - n * loss).abs() < SIGMAS * deviation, "{total}, expected {}", n * loss);
        let bursts = bursts(&lost);
        let length = total / bursts.len() as f64;
        // Geometric with mean 3: standard deviation √(1 − r)/r.
        let error = (1.0 - r).sqrt() / r / (bursts.len() as f64).sqrt();
        assert!((length - mean).abs() < SIGMAS * error, "bursts of {length}, expected {mean}");
    }
}

#[test]
fn bursts_in_time_have_their_loss_and_their_length_whatever_the_pace() {
    let (loss, mean_ms) = (0.1, 30.0);
    for (interval, count) in [(Span::from_us(250), 800_000), (Span::from_ms(2), 200_000)] {
        let lost = lost_pattern(&mut link("loss=10% burst=30ms", 13), count, interval);
        let duration_ms = interval.ns() as f64 * 1e-6 * f64::from(count);
        let total = lost.iter().filter(|lost| **lost).count() as f64 / f64::from(count);
        // The share of time a two-state process is bad: variance 2π(1 − π)τ/T with settling time τ.
        let settling_ms = mean_ms * (1.0 - loss);
        let deviation = (2.0 * loss * (1.0 - loss) * settling_ms / duration_ms).sqrt();
        assert!((total - loss).abs() < SIGMAS * deviation, "{total} of time lost, expected {loss}");
        // The bad state ends at rate 1/T; a burst seen every `interval` ends with the chance that the
        // state is good one interval later.
        let interval_ms = interval.ns() as f64 * 1e-6;
        let end = (1.0 - loss) * (1.0 - (-interval_ms / settling_ms).exp());
        let bursts = bursts(&lost);
        let length = bursts.iter().sum::<usize>() as f64 / bursts.len() as f64;
        let error = (1.0 - end).sqrt() / end / (bursts.len() as f64).sqrt();
        assert!((length - 1.0 / end).abs() < SIGMAS * error, "{length} packets, expected {}", 1.0 / end);
    }
}

#[test]
fn losses_within_and_between_bursts_add_up_to_the_loss_asked_for() {
    let (count, loss) = (400_000, 0.05);
    let text = "loss=5% burst=8 burst_loss=60% gap_loss=1%";
    let lost = lost_pattern(&mut link(text, 17), count, Span::from_ms(1));
    let bad_share = (loss - 0.01) / (0.6 - 0.01);
    let correlation: f64 = 1.0 - 1.0 / 8.0 / (1.0 - bad_share);
    let between = bad_share * (1.0 - bad_share) * (0.59_f64).powi(2);
    let n = f64::from(count);
    let variance = n * (loss * (1.0 - loss) + 2.0 * between * correlation / (1.0 - correlation));
    let total = lost.iter().filter(|lost| **lost).count() as f64;
    assert!((total - n * loss).abs() < SIGMAS * variance.sqrt(), "{total}, expected {}", n * loss);
    // P(loss, then loss) = loss² + covariance at distance one.
    let expected = n * (loss * loss + between * correlation);
    let pairs = lost.windows(2).filter(|pair| pair[0] && pair[1]).count() as f64;
    assert!((pairs / expected - 1.0).abs() < 0.05, "{pairs} pairs, expected {expected}");
}

#[test]
fn each_distribution_has_its_mean_and_its_spread() {
    let mean = 20.0;
    let cases = [
        ("uniform", 3.0 / 3.0_f64.sqrt(), 1.0),
        ("normal", 3.0, 1.0),
        ("lognormal", 3.0, 2.0),
        ("pareto", 3.0, 12.0),
    ];
    for (name, deviation, tail) in cases {
        let text = format!("delay=20ms jitter=3ms distribution={name} reorder=jitter");
        let count = 200_000;
        let interval = Span::from_ms(1);
        let arrivals = stream(&mut link(&text, 19), count, interval, 10);
        let delays: Vec<f64> = arrivals
            .iter()
            .map(|(number, due)| (*due - interval * i64::from(*number)).ns() as f64 * 1e-6)
            .collect();
        let n = f64::from(count);
        let m = delays.iter().sum::<f64>() / n;
        assert!((m - mean).abs() < SIGMAS * deviation / n.sqrt(), "{name}: mean {m}");
        let d = (delays.iter().map(|delay| (delay - m).powi(2)).sum::<f64>() / (n - 1.0)).sqrt();
        // The spread of a spread grows with the tail; for a normal one it is d/√(2n).
        assert!((d - deviation).abs() < SIGMAS * tail * deviation / (2.0 * n).sqrt(), "{name}: spread {d}");
        if name == "pareto" {
            let shape = 1.0 + (1.0 + (mean / deviation).powi(2)).sqrt();
            let least = mean * (shape - 1.0) / shape;
            assert!(delays.iter().all(|delay| *delay >= least - 1e-6), "below the least, {least} ms");
            let beyond = delays.iter().filter(|delay| **delay > 2.0 * least).count() as f64;
            let expected = n * 2.0_f64.powf(-shape);
            assert!((beyond - expected).abs() < SIGMAS * expected.sqrt(), "{beyond} beyond, not {expected}");
        }
    }
}

#[test]
fn order_is_kept_unless_asked_otherwise() {
    let sorted = |arrivals: &[(u32, Span)]| arrivals.is_sorted_by_key(|(number, _)| *number);
    let run = |text: &str| stream(&mut link(text, 23), 20_000, Span::from_us(100), 10);
    assert!(sorted(&run("delay=10ms jitter=3ms")));
    assert!(!sorted(&run("delay=10ms jitter=3ms reorder=jitter")));
    let held = run("delay=10ms reorder=2%/1ms");
    let late = held
        .iter()
        .filter(|(number, due)| *due - Span::from_us(100) * i64::from(*number) == Span::from_ms(11));
    let expected = 400.0;
    let deviation = (20_000.0_f64 * 0.02 * 0.98).sqrt();
    assert!((late.count() as f64 - expected).abs() < SIGMAS * deviation);
    assert!(held.windows(2).filter(|pair| pair[0].0 > pair[1].0).count() > 200);
}

#[test]
fn a_train_of_packets_takes_exactly_its_time_at_any_rate() {
    // 1,042 bytes at 3 Mbit/s: 2,778,666.66… ns each.
    let mut link = link("rate=3mbit queue=64MiB overhead=42B", 1);
    let arrivals = stream(&mut link, 3_000, Span::ZERO, 1_000);
    for (number, due) in arrivals {
        let exact_ns = (i64::from(number) + 1) * 1_042 * 8 * 1_000 / 3;
        assert_eq!(due.ns(), exact_ns);
    }
}

#[test]
fn a_preamble_costs_its_time_for_every_packet() {
    let mut link = link("rate=1mbit preamble=1ms", 1);
    let arrivals = stream(&mut link, 10, Span::ZERO, 125);
    assert_eq!(arrivals.last(), Some(&(9, Span::from_ms(20))));
}

#[test]
fn a_full_queue_drops_the_newest_and_counts_it() {
    // 10 ms at 8 Mbit/s are 10,000 bytes: ten packets of 1,000.
    let mut by_time = link("rate=8mbit queue=10ms", 1);
    let arrived: Vec<u32> = stream(&mut by_time, 30, Span::ZERO, 1_000).iter().map(|(n, _)| *n).collect();
    assert_eq!(arrived, (0..10).collect::<Vec<_>>());
    assert_eq!(by_time.transmitter().queue_full, 20);
    assert_eq!(by_time.transmitter().queue_peak_bytes, 10_000);
    let mut by_packets = link("rate=8mbit queue=1s queue_packets=4", 1);
    assert_eq!(stream(&mut by_packets, 30, Span::ZERO, 1_000).len(), 4);
    // Offered at the rate, nothing waits.
    let mut paced = link("rate=8mbit queue=10ms", 1);
    assert_eq!(stream(&mut paced, 1_000, Span::from_ms(1), 1_000).len(), 1_000);
}

#[test]
fn an_emptied_queue_has_room_again_and_delay_is_not_queue() {
    // One bandwidth-delay product is far more than the queue: packets in the air take no room in it.
    let mut link = link("rate=8mbit queue=2ms delay=500ms", 1);
    assert_eq!(stream(&mut link, 2_000, Span::from_ms(1), 1_000).len(), 2_000);
}

#[test]
fn a_packet_longer_than_the_queue_passes_an_idle_transmitter() {
    assert_eq!(stream(&mut link("rate=8mbit queue=500B", 1), 1, Span::ZERO, 1_000).len(), 1);
}

#[test]
fn duplicates_and_flipped_bits_have_their_shares() {
    let count = 50_000_u32;
    let mut link = link("duplicate=3% corrupt=2%", 29);
    let original = [0_u8; 64];
    let (mut flipped, mut positions) = (0_u64, [0_u32; 512]);
    for number in 0..count {
        let now = at(Span::from_ms(i64::from(number)));
        link.handle_packet(now, &original);
        while let Some(delivery) = link.poll_deliver(now) {
            let bits: u32 = delivery.bytes.iter().map(|byte| byte.count_ones()).sum();
            assert!(bits <= 1);
            if bits == 1 {
                flipped += 1;
                let byte = delivery.bytes.iter().position(|byte| *byte != 0).unwrap();
                positions[byte * 8 + delivery.bytes[byte].trailing_zeros() as usize] += 1;
            }
        }
    }
    let statistics = link.channel(0);
    let near = |count: u64, share: f64| {
        let n = 50_000.0;
        (count as f64 - n * share).abs() < SIGMAS * (n * share * (1.0_f64 - share)).sqrt()
    };
    assert!(near(statistics.duplicated, 0.03) && near(statistics.corrupted, 0.02), "{statistics:?}");
    // Copies of a spoiled packet are spoiled alike.
    assert!(flipped >= statistics.corrupted && flipped < statistics.corrupted * 11 / 10);
    assert_eq!(statistics.delivered, u64::from(count) + statistics.duplicated);
    let least = positions.iter().filter(|count| **count == 0).count();
    // About two hits per position: e⁻² of them have none.
    assert!((40..110).contains(&least), "{least} of 512 bits were never flipped");
}

#[test]
fn a_stall_holds_packets_back_and_they_arrive_together_at_its_end() {
    let interval = Span::from_ms(1);
    let count = 200_000;
    let arrivals = stream(&mut link("stall=50ms/1s", 31), count, interval, 100);
    assert_eq!(arrivals.len(), count as usize);
    let held = arrivals.iter().filter(|(number, due)| *due > interval * i64::from(*number)).count();
    // 50 of 1,050 ms. About 190 stalls of exponential length: relative error √(2/190).
    let expected = f64::from(count) * 50.0 / 1_050.0;
    let error = expected * (2.0_f64 / 190.0).sqrt();
    assert!((held as f64 - expected).abs() < SIGMAS * error, "{held} held, expected {expected}");
    let together = arrivals.chunk_by(|a, b| a.1 == b.1).map(<[_]>::len).max().unwrap();
    assert!(together > 100, "at most {together} packets arrived together");
}

#[test]
fn a_script_changes_the_link_at_its_times() {
    let mut link =
        link("delay=1ms; @10s: loss=100%; @12s: loss=0 down; @14s: up delay=2ms; @16s b>a: down", 1);
    let arrivals = stream(&mut link, 2_000, Span::from_ms(10), 10);
    let delay = |(number, due): &(u32, Span)| *due - Span::from_ms(10) * i64::from(*number);
    assert!(arrivals[..1_000].iter().all(|arrival| delay(arrival) == Span::from_ms(1)));
    assert_eq!(arrivals[1_000].0, 1_400);
    assert!(arrivals[1_000..].iter().all(|arrival| delay(arrival) == Span::from_ms(2)));
    assert_eq!((link.channel(0).lost, link.transmitter().down), (200, 200));
}

#[test]
fn a_packet_above_the_mtu_vanishes() {
    let mut link = link("mtu=1000B", 1);
    link.handle_packet(at(Span::ZERO), &[0; 1_001]);
    link.handle_packet(at(Span::ZERO), &[0; 1_000]);
    assert_eq!(link.poll_deliver(at(Span::ZERO)).unwrap().bytes.len(), 1_000);
    assert_eq!((link.in_flight(), link.transmitter().too_long), (0, 1));
}

fn recording(entries: &[(i64, Option<i64>)]) -> Recording {
    let entry =
        |(at, delay): &(i64, Option<i64>)| Entry { at: Span::from_ms(*at), delay: delay.map(Span::from_ms) };
    Recording::new(entries.iter().map(entry).collect()).unwrap()
}

fn replaying(recorded: &Recording, by: &str) -> Link {
    let text = format!("replay=r replay_by={by}");
    let spec = LinkSpec::parse(&text, &mut |_| Ok(recorded.clone())).unwrap();
    Link::new(&spec.a_to_b, at(Span::ZERO), 1)
}

#[test]
fn a_recording_by_packets_plays_each_entry_once_and_begins_anew() {
    let recorded = recording(&[(0, Some(5)), (50, None), (100, Some(7))]);
    let arrivals = stream(&mut replaying(&recorded, "packet"), 6, Span::from_ms(20), 10);
    let delays: Vec<(u32, i64)> =
        arrivals.iter().map(|(n, due)| (*n, due.ns() / 1_000_000 - i64::from(*n) * 20)).collect();
    assert_eq!(delays, [(0, 5), (2, 7), (3, 5), (5, 7)]);
}

#[test]
fn a_recorded_stall_drains_at_any_pace_as_it_did_when_recorded() {
    // Sent every 50 ms; the second was held until 173 ms, those behind it drained after it.
    let recorded =
        recording(&[(0, Some(4)), (50, Some(123)), (100, Some(89)), (150, Some(54)), (200, Some(5))]);
    let arrivals = stream(&mut replaying(&recorded, "time"), 50, Span::from_ms(5), 10);
    assert_eq!(arrivals.len(), 50);
    for (number, due) in &arrivals {
        let sent = i64::from(*number) * 5;
        // Of those sent between two recorded ones, every arrival lies between theirs.
        let bounds = [(0, 4), (50, 173), (100, 189), (150, 204), (200, 205), (250, 260)];
        let next = bounds.iter().position(|(at, _)| *at > sent).unwrap();
        let (from, to) = (bounds[next - 1].1, bounds[next].1);
        let arrived = due.ns() as f64 / 1e6;
        assert!(arrived >= f64::from(from) && arrived <= f64::from(to), "{sent}: {arrived}");
    }
}

#[test]
fn recordings_that_cannot_be_played_are_refused() {
    let entry = |at, delay| Entry { at: Span::from_ms(at), delay };
    assert_eq!(Recording::new(vec![]), Err(RecordingError::Empty));
    assert_eq!(Recording::new(vec![entry(5, None), entry(4, None)]), Err(RecordingError::Order(1)));
    let negative = entry(0, Some(Span::from_ns(-1)));
    assert_eq!(Recording::new(vec![negative]), Err(RecordingError::Delay(0)));
    let many = vec![entry(0, None); RECORDING_ENTRIES_MAX + 1];
    assert_eq!(Recording::new(many), Err(RecordingError::TooLong(RECORDING_ENTRIES_MAX + 1)));
}

#[test]
fn a_flood_fills_the_emulator_to_its_limit_and_is_counted_apart() {
    let mut link = link("delay=1s", 1);
    for _ in 0..FLIGHT_PACKETS_MAX + 5 {
        link.handle_packet(at(Span::ZERO), b"x");
    }
    assert_eq!((link.in_flight(), link.channel(0).flight_full), (FLIGHT_PACKETS_MAX, 5));
    let mut heavy = self::link("delay=1s", 1);
    let packet = vec![0; 60_000];
    for _ in 0..2_000 {
        heavy.handle_packet(at(Span::ZERO), &packet);
    }
    assert_eq!(heavy.in_flight(), FLIGHT_BYTES_MAX / 60_000);
}

#[test]
fn receivers_lose_independently_and_the_rate_is_used_once() {
    let spec: LinkSpec = "loss=20% rate=8mbit queue=1s".parse().unwrap();
    let mut link = Link::to_receivers(&spec.a_to_b, 3, at(Span::ZERO), 5);
    let count = 20_000_u32;
    let mut got = vec![[false; 3]; count as usize];
    for number in 0..count {
        let now = at(Span::from_ms(i64::from(number)));
        link.handle_packet(now, &[number.to_le_bytes().as_slice(), &[0; 996]].concat());
        while let Some(delivery) = link.poll_deliver(now + Span::from_ms(1)) {
            let number = u32::from_le_bytes(delivery.bytes[..4].try_into().unwrap());
            got[number as usize][delivery.receiver] = true;
        }
    }
    assert_eq!(link.transmitter().queue_full, 0);
    let all_lost = got.iter().filter(|got| got.iter().all(|got| !got)).count() as f64;
    let expected = f64::from(count) * 0.008;
    assert!((all_lost - expected).abs() < SIGMAS * expected.sqrt(), "{all_lost} lost by all, not {expected}");
    link.handle_packet_except(at(Span::from_s(100)), 1, b"hub");
    let receivers: Vec<usize> =
        std::iter::from_fn(|| link.poll_deliver(at(Span::MAX))).map(|d| d.receiver).collect();
    assert!(!receivers.contains(&1));
}

#[test]
fn more_loss_does_not_change_the_delays_of_what_arrives() {
    let run = |text: &str| stream(&mut link(text, 3), 1_000, Span::from_ms(50), 10);
    let clean = run("delay=20ms jitter=2ms");
    let lossy = run("delay=20ms jitter=2ms loss=30% burst=4 duplicate=0");
    assert!(lossy.len() < 900 && lossy.iter().all(|arrival| clean.contains(arrival)));
}

proptest! {
    #[test]
    fn every_packet_is_accounted_for_and_none_is_early(
        seed: u64, loss in 0u32..=100, jitter_us in 0u64..5_000, duplicate in 0u32..50,
        rate_kbit in 64u64..10_000, queue_ms in 1u32..100, count in 1u32..400,
    ) {
        let text = format!(
            "delay=3ms jitter={jitter_us}us loss={loss}% duplicate={duplicate}% rate={rate_kbit}kbit \
             queue={queue_ms}ms mtu=900B reorder=1%/2ms distribution=lognormal stall=5ms/50ms"
        );
        let spec: LinkSpec = text.parse().unwrap();
        let mut link = Link::new(&spec.a_to_b, at(Span::ZERO), seed);
        let mut random = Random::new(seed);
        let (mut now, mut delivered) = (at(Span::ZERO), 0_u64);
        for _ in 0..count {
            now += Span::from_us((random.bits() % 3_000) as i64);
            link.handle_packet(now, &vec![1; 4 + (random.bits() % 1_000) as usize]);
            while let Some(delivery) = link.poll_deliver(now) {
                prop_assert!(delivery.due <= now);
                delivered += 1;
            }
            prop_assert!(link.poll_timeout().is_none_or(|due| due > now));
        }
        while link.poll_deliver(at(Span::MAX)).is_some() {
            delivered += 1;
        }
        let (sent, channel) = (*link.transmitter(), link.channel(0));
        prop_assert_eq!(sent.packets, sent.queue_full + sent.down + sent.too_long + channel.sent);
        prop_assert_eq!(channel.sent + channel.duplicated, channel.delivered + channel.lost + channel.flight_full);
        prop_assert_eq!(channel.delivered, delivered);
    }
}

#[test]
fn a_policer_passes_its_burst_and_then_its_rate_and_delays_nothing() {
    // 10 packets of 1,000 B a second are let through of 100; 5 at once in the beginning.
    let mut link = link("delay=1ms police=80kbit/5kB", 3);
    let arrivals = stream(&mut link, 1_000, Span::from_ms(10), 1_000);
    let first: Vec<u32> = arrivals.iter().take(5).map(|(number, _)| *number).collect();
    assert_eq!(first, [0, 1, 2, 3, 4]);
    // Ten seconds' worth, and the bucket.
    assert_eq!(arrivals.len(), 104);
    assert!(
        arrivals
            .iter()
            .all(|(number, due)| *due == Span::from_ms(10) * i64::from(*number) + Span::from_ms(1))
    );
    assert_eq!((link.transmitter().policed, link.transmitter().queue_full), (896, 0));
}

#[test]
fn a_queue_that_is_long_marks_what_may_be_marked() {
    // Each of 1,000 B takes a millisecond; the fourth is the first that waits for more than three.
    let mut link = link("rate=8mbit mark=3ms", 1);
    let mut packet = [0; 1_000];
    for octet in [2, 2, 2, 2, 0, 2] {
        (packet[0], packet[1]) = (0x45, octet);
        link.handle_packet(at(Span::ZERO), &packet);
    }
    let octets: Vec<u8> =
        std::iter::from_fn(|| link.poll_deliver(at(Span::MAX))).map(|delivery| delivery.bytes[1]).collect();
    assert_eq!(octets, [2, 2, 2, 3, 0, 3]);
    assert_eq!(link.transmitter().marked, 2);
}
