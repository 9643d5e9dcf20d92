//! Reliable samples on links that delay irregularly, and long ones.
#![allow(clippy::print_stdout)] // what a failure is judged by

use noctule_netsim::seeds;
use noctule_prrt::Class;
use noctule_timebase::Span;

mod bottleneck;

use bottleneck::{Offer, run};

#[test]
fn jitter_does_not_make_reliable_samples_late() {
    let mut late = Vec::new();
    for sigma_ms in [2, 4, 6] {
        let line = format!("delay=22ms jitter={sigma_ms}ms");
        for seed in seeds(1, 3) {
            let [reliable, best_effort] = [Class::Reliable, Class::BestEffort].map(|class| {
                let offer = Offer::Paced(115, Span::from_ms(5), class);
                run(&line, offer, None, (Span::from_s(60), seed)).on_time(Span::from_ms(100))
            });
            println!("seed {seed}, {line}: reliable {reliable:.4}, best effort {best_effort:.4} on time");
            if reliable < best_effort - 0.003 {
                late.push(format!("seed {seed}, {line}: {reliable}, {best_effort}"));
            }
        }
    }
    assert!(late.is_empty(), "{late:?}");
}

/// A cause by which reliable samples were late where those of best effort were not.
struct Cause {
    name: &'static str,
    line: &'static str,
    bytes: usize,
    interval_ms: i64,
    deadline_ms: i64,
}

const CAUSES: [Cause; 6] = [
    Cause::of_sensor("reordering", "delay=21ms reorder=1%/5ms", 132),
    Cause::of_sensor("jitter in order", "delay=10ms jitter=1ms distribution=lognormal loss=0.1%", 60),
    Cause::of_state("jitter and bursts", "delay=68ms jitter=20ms reorder=1%/5ms loss=1% burst=15ms", 660),
    Cause::of_state("chance losses", "delay=10ms loss=20%", 60),
    Cause::of_state("long bursts", "delay=145ms loss=5% burst=30ms", 1_750),
    Cause::of_state(BESIDE_TCP, "delay=10ms; a>b: rate=20mbit queue=50kB", 60),
];
const BESIDE_TCP: &str = "a CUBIC TCP beside, after 5 s";

impl Cause {
    const fn of_state(name: &'static str, line: &'static str, deadline_ms: i64) -> Cause {
        Cause { name, line, bytes: 115, interval_ms: 5, deadline_ms }
    }

    const fn of_sensor(name: &'static str, line: &'static str, deadline_ms: i64) -> Cause {
        Cause { name, line, bytes: 1_200, interval_ms: 1, deadline_ms }
    }
}

#[test]
fn what_is_not_a_queue_of_ours_does_not_make_reliable_samples_later_than_best_effort() {
    let mut late = Vec::new();
    for Cause { name, line, bytes, interval_ms, deadline_ms } in CAUSES {
        let span = Span::from_s(if interval_ms == 1 { 10 } else { 60 });
        let tcp_from = (name == BESIDE_TCP).then_some(Span::from_s(5));
        let [reliable, best_effort] = [Class::Reliable, Class::BestEffort].map(|class| {
            let offer = Offer::Paced(bytes, Span::from_ms(interval_ms), class);
            run(line, offer, tcp_from, (span, 1)).on_time(Span::from_ms(deadline_ms))
        });
        println!("{name}: reliable {reliable:.4}, best effort {best_effort:.4} on time");
        if reliable < best_effort - 0.002 {
            late.push(format!("{name}: {reliable}, {best_effort}"));
        }
    }
    assert!(late.is_empty(), "{late:?}");
}

#[test]
fn a_policer_below_the_offer_is_not_sent_many_times_what_it_bears() {
    for (rate, bytes, interval) in [(159_200, 115, Span::from_ms(5)), (5_136_000, 1_200, Span::from_ms(1))] {
        let line = format!("delay=10ms; a>b: police={rate}bit/12840B");
        let offer = Offer::Paced(bytes, interval, Class::Reliable);
        let outcome = run(&line, offer, None, (Span::from_s(20), 1));
        let sent = outcome.sent_bps / rate as f64;
        println!("{rate} bit/s: {sent:.2} times that was sent");
        assert!(sent < 4.0, "{rate} bit/s: {sent}");
    }
}

#[test]
fn samples_of_a_megabyte_use_the_line() {
    let mut slow = Vec::new();
    for (line, least) in [
        ("delay=50us rate=1gbit queue=1MB; b>a: delay=50us", 0.78),
        ("delay=10ms rate=100mbit queue=250kB; b>a: delay=10ms", 0.85),
        ("delay=10ms rate=100mbit queue=250kB loss=0.5%; b>a: delay=10ms", 0.75),
    ] {
        let rate: f64 = if line.contains("1gbit") { 1e9 } else { 1e8 };
        let span = Span::from_s(if rate > 5e8 { 2 } else { 5 });
        let outcome = run(line, Offer::Elastic(1_000_000), None, (span, 1));
        let used = outcome.stream_bps / rate;
        let (lost, again) = (outcome.counters.lost_packets, outcome.counters.repeated);
        println!(
            "{line}: {:.1} MB/s, {used:.3} of the line, {lost} lost, {again} retransmitted, {:?}",
            outcome.stream_bps / 8e6,
            outcome.transit(0.5)
        );
        if used < least {
            slow.push(format!("{line}: {used}"));
        }
    }
    assert!(slow.is_empty(), "{slow:?}");
}

#[test]
fn feedback_that_is_lost_does_not_make_the_window_smaller() {
    let mut slow = Vec::new();
    for (feedback, least) in [("", 0.9), ("loss=5% burst=15ms", 0.9), ("loss=10% burst=30ms", 0.8)] {
        let line = format!("a>b: delay=10ms rate=200mbit queue=50ms; b>a: delay=10ms {feedback}");
        for seed in seeds(1, 3) {
            let offer = Offer::Paced(1_000_000, Span::from_ms(100), Class::Reliable);
            let on_time = run(&line, offer, None, (Span::from_s(10), seed)).on_time(Span::from_ms(250));
            println!("seed {seed}, {line}: {on_time:.3} on time");
            if on_time < least {
                slow.push(format!("seed {seed}, {line}: {on_time}"));
            }
        }
    }
    assert!(slow.is_empty(), "{slow:?}");
}

#[test]
fn a_window_that_was_made_smaller_grows_again_where_nothing_is_lost_after_it() {
    let mut slow = Vec::new();
    let line = "delay=3ms jitter=1ms distribution=lognormal loss=10% burst=60ms; a>b: rate=30mbit queue=5ms";
    for seed in seeds(1, 8) {
        let offer = Offer::Paced(1_200, Span::from_ms(1), Class::Reliable);
        let on_time = run(line, offer, None, (Span::from_s(10), seed)).on_time(Span::from_ms(500));
        println!("seed {seed}: {on_time:.3} on time");
        if on_time < 0.85 {
            slow.push(format!("seed {seed}: {on_time}"));
        }
    }
    assert!(slow.is_empty(), "{slow:?}");
}
