//! One-way latencies between hosts whose clocks differ.

use super::*;

fn one_way(clocks: &str) -> (i32, Value, String) {
    Experiment::new(&format!(
        r#"
        name = "clocks"
        trials = 1
        seconds = 1
        warm_up_seconds = 0.01
        [[cells]]
        peer = "udp"
        mode = "one_way"
        hosts = 2
        clocks = {clocks}
        rate_hz = 200
        "#
    ))
    .run()
}

/// The reasons other than a machine too busy for the rate.
fn faults(cell: &Value) -> String {
    let why = why(cell);
    let faults: Vec<&str> =
        why.split("; ").filter(|why| !why.is_empty() && !why.starts_with("the rate was not held")).collect();
    faults.join("; ")
}

#[test]
fn a_latency_between_two_clocks_carries_the_bound_under_which_it_is_true() {
    let (_, run, errors) = one_way(r#"["offset=-7s", "offset=3s,ppm=50"]"#);
    let cell = only_cell(&run);
    assert_eq!(faults(cell), "", "{errors}");
    assert_eq!((&cell["sent"], &cell["received"]), (&200.into(), &200.into()));
    let (bound, sigma) = (cell["clock_bound_ns"].as_u64().unwrap(), cell["clock_sigma_ns"].as_u64().unwrap());
    assert!(bound > 0 && sigma > 0, "{cell}");
    assert_eq!(cell["clocks"][1], "offset=3s,ppm=50");
    if cell["valid"] == true {
        // Untranslated it would be ten seconds.
        assert!(cell["latency_ns"]["p50"].as_i64().unwrap() < 5_000_000_000, "{cell}");
    }
}

#[test]
fn a_step_between_exchanges_makes_the_cell_invalid_and_says_how_wrong_it_was() {
    let (code, run, _) = one_way(r#"["", "offset=3s,step=-20ms@500ms"]"#);
    assert_eq!(code, 1);
    let cell = only_cell(&run);
    assert_eq!(cell["latency_ns"], Value::Null);
    let faults = faults(cell);
    assert!(faults.contains("of 200 latencies are negative (down to -1"), "{faults}");
    assert!(faults.contains("of 200 latencies are wrong by more than their clock bound"), "{faults}");
}

#[test]
fn a_peer_that_cannot_stamp_with_an_artificial_clock_is_skipped_by_name() {
    let (code, _, errors) = Experiment::new(
        "name = \"x\"\n[[cells]]\npeer = \"faulty\"\nmode = \"one_way\"\nhosts = 2\nclocks = [\"\", \"ppm=5\"]\n",
    )
    .run();
    assert_eq!(code, 2);
    assert!(errors.contains("faulty: does not offer artificial_clock"), "{errors}");
}
