//! The estimators in Rust and in C say the same to the last bit.
//!
//! `vectors/time-sync/*.csv` hold exchanges and what each estimator says after each. Rust must
//! reproduce them, and so must `c/noctule_sync.c`, compiled here with the system's compiler; beyond
//! the vectors the two are compared on exchanges drawn at random. After a deliberate change run with
//! `NOCTULE_BLESS=1` to write the vectors anew, and review them as you would code.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use noctule_netsim::{Random, RoundTrip, Scenario, round_trips};
use noctule_time_sync::{Bounded, BoundedConfig, Ema, EmaPreset, Estimate, Estimator, Exchange, Rejection};

/// One row per exchange: stamps, then each estimator's verdict and estimate.
fn rows(exchanges: &[Exchange]) -> String {
    let mut bounded = Bounded::new(BoundedConfig::default());
    let mut emas = [Ema::new(EmaPreset::Px4), Ema::new(EmaPreset::Mavros)];
    let mut text = String::new();
    for exchange in exchanges {
        let [t1, t2] = [exchange.t1.ns(), exchange.t2.ns()];
        write!(text, "{t1},{t2},{},{}", exchange.t3.ns(), exchange.t4.ns()).unwrap();
        let verdict = bounded.handle_exchange(exchange);
        write_estimate(&mut text, verdict, bounded.estimate(exchange.t4));
        for ema in &mut emas {
            let verdict = ema.handle_exchange(exchange);
            write_estimate(&mut text, verdict, ema.estimate(exchange.t4));
            let (offset, skew) = ema.raw();
            write!(text, ":{:016x}:{:016x}", offset.to_bits(), skew.to_bits()).unwrap();
        }
        text.push('\n');
    }
    text
}

fn write_estimate(text: &mut String, verdict: Result<(), Rejection>, estimate: Option<Estimate>) {
    let verdict = verdict.map_or_else(Rejection::code, |()| 0);
    let Some(e) = estimate else {
        write!(text, ",{verdict}:-").unwrap();
        return;
    };
    let state = e.state.code();
    let or_none = |span: Option<noctule_timebase::Span>| span.map_or(-1, |span| span.ns());
    let (bound, sigma) = (or_none(e.bound), or_none(e.sigma));
    let (offset, drift) = (e.offset.ns(), e.drift.per_2_46());
    write!(text, ",{verdict}:{offset}:{drift}:{bound}:{sigma}:{state}").unwrap();
}

fn exchanges(trips: Vec<RoundTrip>) -> Vec<Exchange> {
    trips.iter().map(|t| Exchange::from_ns(t.t1_ns, t.t2_ns, t.t3_ns, t.t4_ns)).collect()
}

/// Implausible stamps: any bits, with now and then a plausible exchange between them.
fn hostile(seed: u64, count: usize) -> Vec<Exchange> {
    let mut random = Random::new(seed);
    let mut now_ns = 0_i64;
    let mut draw = || {
        let shift = random.bits() % 64;
        now_ns = now_ns.saturating_add((random.bits() >> (24 + random.bits() % 40)) as i64);
        let near = |random: &mut Random| (random.bits() >> (1 + random.bits() % 63)) as i64;
        match random.bits() % 4 {
            0 => [(); 4].map(|()| (random.bits() as i64) >> shift),
            1 => [now_ns, near(&mut random), near(&mut random), now_ns + 1_000_000],
            _ => {
                let (forward, back) = (random.bits() % 2_000_000, random.bits() % 2_000_000);
                let received = now_ns + forward as i64 + 5_000_000_000;
                [now_ns, received, received, now_ns + (forward + back) as i64]
            }
        }
    };
    (0..count).map(|_| draw()).map(|[a, b, c, d]| Exchange::from_ns(a, b, c, d)).collect()
}

/// Name and exchanges of each committed file.
fn vectors() -> Vec<(&'static str, Vec<Exchange>)> {
    let mut stepped = Scenario::named("F").unwrap();
    stepped.clock.steps[0].at = noctule_timebase::Span::from_s(55);
    let mut step = exchanges(round_trips(&stepped, 1));
    step.truncate(700);
    let mut timer = exchanges(round_trips(&Scenario::named("D").unwrap(), 1));
    timer.truncate(200);
    let mut drawn = exchanges(round_trips(&Scenario::drawn(4, 200.0), 4));
    drawn.truncate(200);
    vec![("step", step), ("polling_timer", timer), ("drawn", drawn), ("hostile", hostile(1, 200))]
}

fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Names the first line that differs instead of printing two long files.
fn assert_same(name: &str, got: &str, expected: &str) {
    for (number, (got, expected)) in got.lines().zip(expected.lines()).enumerate() {
        assert_eq!(got, expected, "{name}, line {}", number + 1);
    }
    assert_eq!(got.lines().count(), expected.lines().count(), "{name}: number of lines");
}

fn committed(name: &str) -> PathBuf {
    repository().join(format!("vectors/time-sync/{name}.csv"))
}

#[test]
fn rust_reproduces_the_vectors() {
    for (name, exchanges) in vectors() {
        let got = rows(&exchanges);
        if std::env::var_os("NOCTULE_BLESS").is_some() {
            fs::write(committed(name), &got).unwrap();
        }
        assert_same(name, &got, &fs::read_to_string(committed(name)).unwrap());
    }
}

#[test]
fn c_reproduces_the_vectors_and_agrees_on_exchanges_drawn_at_random() {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let program = directory.join("replay_sync");
    let status = Command::new("cc")
        .args(["-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-O2", "-ffp-contract=off"])
        .args(["-fsanitize=undefined", "-fno-sanitize-recover=all", "-o"])
        .arg(&program)
        .arg(repository().join("c/noctule_sync.c"))
        .arg(repository().join("c/tests/replay_sync.c"))
        .status()
        .expect("this test needs a C compiler named cc; install gcc or clang");
    assert!(status.success());

    let run = |input: &str| {
        let mut child = Command::new(&program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_owned();
        let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()).unwrap());
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    };
    for (name, _) in vectors() {
        let expected = fs::read_to_string(committed(name)).unwrap();
        assert_same(name, &run(&expected), &expected);
    }
    for seed in 0..60 {
        let drawn = rows(&exchanges(round_trips(&Scenario::drawn(seed, 200.0), seed)));
        assert_same(&format!("drawn, seed {seed}"), &run(&drawn), &drawn);
        let hostile = rows(&hostile(seed, 300));
        assert_same(&format!("hostile, seed {seed}"), &run(&hostile), &hostile);
    }
}
