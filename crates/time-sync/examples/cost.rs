//! Cost of an estimator: bytes of state, and nanoseconds per exchange on this machine.
//!
//! A figure, not a test: run it with `cargo run --release -p noctule-time-sync --example cost`.

#![allow(clippy::print_stdout)]

use std::hint::black_box;
use std::time::Instant;

use noctule_netsim::{Scenario, round_trips};
use noctule_time_sync::{
    Bounded, BoundedConfig, Ema, EmaPreset, Estimator, Exchange, Exchanger, LastSample, MinimumOf8,
};

/// Runs over the trace; the quickest is reported, since only disturbances make one slower.
const RUNS: usize = 20;

fn main() {
    let Some(scenario) = Scenario::named("B") else {
        return;
    };
    let exchanges: Vec<Exchange> = round_trips(&scenario, 1)
        .iter()
        .map(|trip| Exchange::from_ns(trip.t1_ns, trip.t2_ns, trip.t3_ns, trip.t4_ns))
        .collect();
    println!("estimator      state bytes   ns per exchange   ns per estimate");
    report("ema", size_of::<Ema>(), &exchanges, || Ema::new(EmaPreset::Px4));
    report("last sample", size_of::<LastSample>(), &exchanges, LastSample::default);
    report("minimum of 8", size_of::<MinimumOf8>(), &exchanges, MinimumOf8::default);
    report("bounded", size_of::<Bounded>(), &exchanges, || Bounded::new(BoundedConfig::default()));
    println!("exchanger      {:>11}", size_of::<Exchanger>());
}

fn report<E: Estimator>(name: &str, state_bytes: usize, exchanges: &[Exchange], new: impl Fn() -> E) {
    let (mut handle_ns, mut estimate_ns) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..RUNS {
        let mut estimator = new();
        let start = Instant::now();
        for exchange in exchanges {
            let _ = black_box(estimator.handle_exchange(black_box(exchange)));
        }
        handle_ns = handle_ns.min(start.elapsed().as_nanos() as f64 / exchanges.len() as f64);
        let start = Instant::now();
        for exchange in exchanges {
            black_box(estimator.estimate(black_box(exchange.t4)));
        }
        estimate_ns = estimate_ns.min(start.elapsed().as_nanos() as f64 / exchanges.len() as f64);
    }
    println!("{name:<14} {state_bytes:>11} {handle_ns:>17.0} {estimate_ns:>17.0}");
}
