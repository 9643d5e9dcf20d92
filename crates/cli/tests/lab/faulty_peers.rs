//! Peers that stall, lie, crash, hang and print garbage: each is found out and named.

use super::*;

/// Runs the faulty test peer with one fault for `messages` at `rate_hz` (0 = closed loop).
fn with_fault(fault: &str, rate_hz: u32, messages: u32) -> (i32, Value) {
    let (code, run, errors) = Experiment::new(&format!(
        "name = \"x\"\ntrials = 1\nseconds = 3\nmessages = {messages}\nreply_timeout_ms = 300\n\
         [[cells]]\npeer = \"faulty\"\nrate_hz = {rate_hz}\noptions = {{ fault = \"{fault}\" }}\n"
    ))
    .run();
    assert!(run["cells"].is_array(), "{fault}: {errors}");
    (code, run)
}

fn reason(fault: &str) -> String {
    let (code, run) = with_fault(fault, 0, 200);
    let cell = only_cell(&run);
    assert_eq!(code, 1, "{fault}");
    assert_eq!(cell["valid"], false, "{fault}");
    assert_eq!(cell["latency_ns"], Value::Null, "{fault}: no summary of an invalid cell");
    why(cell)
}

#[test]
fn a_stall_of_100_ms_at_1_khz_makes_about_100_messages_late() {
    let (_, run) = with_fault("stall", 1000, 1000);
    let cell = only_cell(&run);
    assert_eq!((&cell["sent"], &cell["lost"]), (&Value::from(1000), &Value::from(0)), "{cell}");
    let late = cell["late"].as_u64().unwrap();
    // Every message scheduled during the stall waited for its end: about 100. A closed loop, or stamps taken at the actual send, would
    // show one. A busy machine makes more late, so there is no upper bound.
    assert!(late >= 95, "{late} late");
}

#[test]
fn the_same_stall_in_a_closed_loop_is_seen_once() {
    let (_, run) = with_fault("stall", 0, 1000);
    let cell = only_cell(&run);
    assert_eq!(cell["valid"], true, "{}", why(cell));
    assert!(cell["latency_ns"]["max"].as_i64().unwrap() >= 100_000_000);
    assert!(cell["latency_ns"]["p95"].as_i64().unwrap() < 100_000_000);
}

#[test]
fn a_peer_that_lies_about_its_counts_is_found_out() {
    assert!(reason("lie").contains("its record holds"), "{}", reason("lie"));
}

#[test]
fn a_peer_that_crashes_is_named_with_its_exit_code() {
    let why = reason("crash");
    assert!(why.contains("(faulty) exited with code 3"), "{why}");
}

#[test]
fn a_peer_that_prints_garbage_breaks_the_protocol() {
    let why = reason("garbage");
    assert!(why.contains("broke the protocol"), "{why}");
}

#[test]
fn negative_latencies_are_an_error() {
    let why = reason("negative");
    assert!(why.contains("latencies are negative"), "{why}");
}

#[test]
fn lost_messages_are_counted_and_do_not_make_the_run_invalid() {
    let (_, run) = with_fault("drop", 500, 300);
    let cell = only_cell(&run);
    assert_eq!(cell["valid"], true, "{}", why(cell));
    let count = |key: &str| cell[key].as_u64().unwrap();
    assert!(count("lost") > 0);
    assert_eq!(count("sent"), count("received") + count("lost"));
}

#[test]
fn duplicates_are_counted_outside_received() {
    let (_, run) = with_fault("duplicate", 500, 300);
    let cell = only_cell(&run);
    assert_eq!(cell["valid"], true, "{}", why(cell));
    assert!(cell["duplicated"].as_u64().unwrap() > 0);
    assert_eq!(cell["received"], cell["sent"]);
}

#[test]
fn a_peer_that_hangs_is_given_up() {
    let why = reason("hang");
    assert!(why.contains("(faulty) hung: it said nothing for"), "{why}");
}
