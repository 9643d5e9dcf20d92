//! Reliable streams on narrow, shared and lossy lines.

use noctule_prrt::Class;
use noctule_timebase::Span;

mod bottleneck;

use bottleneck::{Offer, run};

/// 6 Mbit/s, a round trip of 20 ms, room for one bandwidth-delay product.
const NARROW: &str = "a>b: delay=10ms rate=6mbit queue=15kB; b>a: delay=10ms";
/// Goodput of the line with samples of 1,200 bytes, bits a second: 60 of the link's and 28 in front of each.
const NARROW_BPS: f64 = 6e6 * 1_200.0 / 1_288.0;

#[test]
fn alone_on_a_narrow_line_a_stream_uses_it_and_keeps_the_queue_short() {
    let outcome = run(NARROW, Offer::Elastic(1_200), None, (Span::from_s(60), 1));
    let used = outcome.stream_bps / NARROW_BPS;
    // Less the way, and 1.7 ms for its own bytes.
    let queue = outcome.transit(0.95) - Span::from_us(11_700);
    assert!(used > 0.95, "{used}");
    assert!(queue < Span::from_ms(9), "{queue:?}");
    assert!(outcome.counters.lost_packets < 50, "{}", outcome.counters.lost_packets);
    let capacity = outcome.capacity_bytes_per_s.unwrap() * 8.0;
    assert!((5.4e6..6.2e6).contains(&capacity), "{capacity}");
}

#[test]
fn beside_a_cubic_tcp_each_has_about_half_whichever_was_first_and_however_long_the_queue() {
    for queue in ["15kB", "30kB", "60kB"] {
        for tcp_from in [0, 5] {
            let line = format!("a>b: delay=10ms rate=6mbit queue={queue}; b>a: delay=10ms");
            let (from, span) = (Some(Span::from_s(tcp_from)), (Span::from_s(60), 1));
            let outcome = run(&line, Offer::Elastic(1_200), from, span);
            let share = outcome.stream_share();
            assert!((0.3..0.7).contains(&share), "{queue}, TCP from {tcp_from} s on: {share}");
        }
    }
}

#[test]
fn losses_by_chance_do_not_slow_a_stream_down() {
    let line = "a>b: delay=10ms rate=6mbit queue=15kB loss=2%; b>a: delay=10ms";
    let outcome = run(line, Offer::Elastic(1_200), None, (Span::from_s(60), 1));
    let used = outcome.stream_bps / NARROW_BPS;
    assert!(used > 0.9, "{used}");
}

#[test]
fn a_queue_too_short_to_be_seen_does_not_cost_a_third_of_what_is_sent() {
    let line = "a>b: delay=10ms rate=6mbit queue=3750B; b>a: delay=10ms";
    let outcome = run(line, Offer::Elastic(1_200), None, (Span::from_s(30), 1));
    let lost = outcome.counters.lost_packets as f64 / outcome.latencies.len() as f64;
    assert!(lost < 0.3, "{lost}");
    assert!(outcome.stream_bps / NARROW_BPS > 0.7, "{}", outcome.stream_bps);
}

#[test]
fn over_a_line_that_loses_in_bursts_small_reliable_samples_are_in_time_and_none_is_lost() {
    for seed in 1..=4 {
        let offer = Offer::Paced(115, Span::from_ms(5), Class::Reliable);
        let outcome = run("delay=10ms loss=5% burst=3", offer, None, (Span::from_s(60), seed));
        let on_time = outcome.on_time(Span::from_ms(60));
        assert_eq!(outcome.latencies.len() as u64, outcome.published, "seed {seed}");
        assert!(on_time > 0.985, "seed {seed}: {on_time}");
        assert_eq!(outcome.capacity_bytes_per_s, None, "seed {seed}");
    }
}
