use super::*;
use crate::fixture;
use crate::statistics::LatencySummary;

const FLOORS: [(&str, f64); 8] = [
    ("cache_line", 120.0),
    ("futex", 43_000.0),
    ("memcpy", 72_000.0),
    ("eventfd", 41_000.0),
    ("unix", 52_000.0),
    ("udp", 48_000.0),
    ("tcp", 51_000.0),
    ("pty", 52_000.0),
];

/// A run of eight floors, ten trials each. Between trials the level wanders by 2–4 % as measured on
/// guests, the whole run by 1 %, blocks by 1 % (p50) and 6 % (p99).
fn floors(seed: u64, slowdown: f64) -> Run {
    let mut random = Random::new(seed);
    let of_run = 0.01 * random.normal();
    let mut cells = Vec::new();
    for trial in 0..10 {
        for (peer, p50_ns) in FLOORS {
            let between = 0.02 + 0.02 * random.uniform();
            let level = p50_ns * slowdown * (of_run + between * random.normal()).exp();
            let mut cell = fixture::round_trip(peer, trial, &[]).0;
            cell.blocks = (0..10)
                .map(|_| Block {
                    count: 1_000,
                    p50_ns: (level * (0.01 * random.normal()).exp()) as i64,
                    p99_ns: (level * 1.4 * (0.06 * random.normal()).exp()) as i64,
                })
                .collect();
            let mean = |of: fn(&Block) -> i64| {
                let logs: f64 = cell.blocks.iter().map(|block| (of(block) as f64).ln()).sum();
                Some((logs / 10.0).exp() as i64)
            };
            let constant = LatencySummary::of(vec![level as i64; 2_000]).unwrap();
            let (p50, p99) = (mean(|block| block.p50_ns), mean(|block| block.p99_ns));
            cell.latency_ns = Some(LatencySummary { p50, p99, ..constant });
            cells.push((cell, vec![]));
        }
    }
    fixture::run(cells).0
}

#[test]
fn two_runs_of_the_same_thing_show_no_change_in_nine_of_ten_tries_for_all_floors_together() {
    let tries = 60;
    let quiet = (0..tries)
        .filter(|seed| {
            let (a, b) = (floors(1_000 + seed, 1.0), floors(2_000 + seed, 1.0));
            let found = compare_with(&a, &b, *seed, 800);
            assert_eq!(found.cells.len(), 8);
            found.cells.iter().all(|cell| {
                assert_ne!(cell.p50.change, Change::Unknown);
                cell.p50.change == Change::None && cell.p99.change == Change::None
            })
        })
        .count();
    println!("no change in {quiet} of {tries} tries");
    assert!(quiet * 10 >= tries as usize * 9, "{quiet} of {tries}");
}

#[test]
fn a_slowdown_of_a_fifth_is_detected_in_nineteen_of_twenty_cells() {
    let tries = 15;
    let mut detected = 0;
    for seed in 0..tries {
        let (a, b) = (floors(3_000 + seed, 1.0), floors(4_000 + seed, 1.2));
        let found = compare_with(&a, &b, seed, 800);
        let slower = |cell: &&CellComparison| cell.p50.change == Change::Slower;
        detected += found.cells.iter().filter(slower).count();
        let back = compare_with(&b, &a, seed, 800);
        let faster = |cell: &CellComparison| cell.p50.change == Change::Faster;
        assert!(back.cells.iter().filter(|cell| faster(cell)).count() >= 6);
    }
    println!("detected {detected} of {}", tries * 8);
    assert!(detected * 20 >= tries as usize * 8 * 19, "{detected} of {}", tries * 8);
}

#[test]
fn verdicts_are_words_with_the_interval() {
    let of = |ratio, low, high| judge("p50", RatioInterval { ratio, low, high }).verdict;
    assert_eq!(of(1.2, 1.17, 1.24), "B is 1.2× slower at p50 (1.17–1.24)");
    assert_eq!(of(0.5, 0.4, 0.625), "B is 2× faster at p50 (1.6–2.5)");
    assert_eq!(of(1.04, 1.01, 1.07), "no change detected at p50 (1.01–1.07)");
    assert_eq!(
        of(1.1, 0.8, 1.5),
        "no change detected at p50 (0.8–1.5; the trials vary too much to see less)"
    );
}

#[test]
fn what_cannot_be_compared_says_why_and_what_to_do() {
    let (a, mut b) = (floors(1, 1.0), floors(2, 1.0));
    b.cells.retain(|cell| cell.peer != "futex" || cell.trial < 2);
    b.cells.retain(|cell| cell.peer != "pty");
    let tcp = b.cells.iter_mut().find(|cell| cell.peer == "tcp").unwrap();
    tcp.valid = false;
    tcp.why_invalid = vec!["the rate was not held".into()];
    for cell in b.cells.iter_mut().filter(|cell| cell.peer == "udp") {
        cell.blocks.truncate(4);
    }
    for cell in b.cells.iter_mut().filter(|cell| cell.peer == "unix") {
        cell.latency_ns = cell.latency_ns.map(|summary| LatencySummary { p99: None, ..summary });
    }
    let found = compare_with(&a, &b, 1, 100);
    let of = |peer: &str| {
        let cell = found.cells.iter().find(|cell| cell.cell.starts_with(peer));
        cell.unwrap()
    };
    assert!(of("futex").p50.verdict.contains("too few trials to say: A has 10, B has 2"));
    assert!(of("udp").p50.verdict.contains("too few blocks to say: a trial has 4"));
    assert!(of("tcp").p50.verdict.contains("trial 0 of B is invalid: the rate was not held"));
    assert_eq!(of("unix").p50.change, Change::None);
    assert!(of("unix").p99.verdict.contains("fewer than ten beyond its p99"));
    assert_eq!(found.only_in_a.len(), 1);
    assert!(found.only_in_a[0].starts_with("pty"));
    assert!(found.to_string().contains("only in A: pty"));
    assert!(found.to_string().ends_with("seed 1"));
}

#[test]
fn runs_measured_in_turns_are_paired_by_trial_number() {
    let (mut a, mut b) = (floors(1, 1.0), floors(1, 1.12));
    assert!(!compare_with(&a, &b, 1, 100).paired);
    a.interleaving = Some("x".to_owned());
    b.interleaving = Some("x".to_owned());
    b.cells.reverse();
    b.cells.retain(|cell| cell.trial != 3);
    let found = compare_with(&a, &b, 1, 1_000);
    assert!(found.paired);
    for cell in &found.cells {
        assert_eq!(cell.p50.change, Change::Slower, "{}", cell.p50.verdict);
    }
}

#[test]
fn a_percentile_is_the_trials_own_even_if_its_blocks_are_short() {
    let (a, mut b) = (floors(1, 1.0), floors(1, 1.0));
    for block in b.cells.iter_mut().flat_map(|cell| &mut cell.blocks) {
        // Shorter blocks reach less far into the tail.
        (block.count, block.p99_ns) = (100, block.p99_ns * 7 / 10);
    }
    for cell in compare_with(&a, &b, 1, 100).cells {
        assert!((cell.p99.ratio.unwrap() - 1.0).abs() < 1e-9, "{}", cell.p99.verdict);
    }
}

#[test]
fn equal_seeds_give_equal_intervals() {
    let (a, b) = (floors(1, 1.0), floors(2, 1.0));
    assert_eq!(compare_with(&a, &b, 5, 200), compare_with(&a, &b, 5, 200));
    assert_ne!(compare_with(&a, &b, 5, 200), compare_with(&a, &b, 6, 200));
}

#[test]
fn what_differs_between_the_machines_is_named() {
    let (mut a, mut b) = (floors(1, 1.0), floors(2, 1.0));
    a.host.fingerprint.insert("load".to_owned(), "good: 0.10".to_owned());
    b.host.fingerprint.insert("load".to_owned(), "good: 0.12".to_owned());
    a.host.cpu = "X".to_owned();
    a.host.fingerprint.insert("clock_source".to_owned(), "hpet".to_owned());
    let found = compare_with(&a, &b, 1, 50);
    let names: Vec<&str> = found.differences.iter().map(|d| d.what.as_str()).collect();
    assert_eq!(names, ["processor", "clock_source"]);
}
