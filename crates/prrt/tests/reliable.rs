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
            "{line}: {:.1} MB/s, {used:.3} of the line, {lost} lost, {again} sent again, {:?}",
            outcome.stream_bps / 8e6,
            outcome.transit(0.5)
        );
        if used < least {
            slow.push(format!("{line}: {used}"));
        }
    }
    assert!(slow.is_empty(), "{slow:?}");
}
