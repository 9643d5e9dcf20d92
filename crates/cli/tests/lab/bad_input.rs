//! Bad input: exit code 2, one sentence that names the fact and the way out.

use super::*;

/// Runs, demands exit code 2 and exactly one line, and returns it.
fn complaint(arguments: &[&str]) -> String {
    let output = noctule(arguments);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {errors}");
    assert_eq!(errors.trim_end().lines().count(), 1, "one sentence: {errors}");
    errors
}

fn complaint_about(scenario: &str) -> String {
    let experiment = Experiment::new(scenario);
    complaint(&["lab", "run", text(&experiment.scenario()), "--out", text(&experiment.out())])
}

#[test]
fn missing_scenario_names_the_path_and_an_example() {
    let said = complaint(&["lab", "run", "no/such.toml"]);
    assert!(said.contains("no/such.toml") && said.contains("scenarios/quick.toml"), "{said}");
}

#[test]
fn faulty_scenario_points_to_its_line() {
    let said = complaint_about("name = \"x\"\n[[cells]]\npeer = \"udp\"\nspeed = 3\n");
    assert!(said.contains("scenario.toml:4:1: unknown field `speed`"), "{said}");
    let said = complaint_about("name = \"x\"\n\n[[cells]]\npeer = \"udpp\"\n");
    assert!(said.contains("scenario.toml:3:1: no peer is called \"udpp\"; there are"), "{said}");
    let said = complaint_about("\u{0}\u{1}");
    assert!(said.contains("scenario.toml:1:"), "{said}");
}

#[test]
fn unwritable_output_is_found_before_anything_is_measured() {
    let experiment = Experiment::new("name = \"x\"\n[[cells]]\npeer = \"udp\"\n");
    let said = complaint(&["lab", "run", text(&experiment.scenario()), "--out", "/dev/null/out"]);
    assert!(said.contains("cannot write to /dev/null/out") && said.contains("--out"), "{said}");
}

#[test]
fn nothing_to_measure_says_why() {
    let said = complaint_about("name = \"x\"\n[[cells]]\npeer = \"udp\"\npayload_bytes = 100_000\n");
    assert!(said.contains("udp: carries at most 65507 B, not 100000 B"), "{said}");
    let experiment = Experiment::new("name = \"x\"\n[[cells]]\npeer = \"udp\"\n");
    let said = complaint(&["lab", "run", text(&experiment.scenario()), "--peer", "tcp"]);
    assert!(said.contains("no cell matches the peers chosen"), "{said}");
}

#[test]
fn wrong_usage_is_exit_code_two() {
    let output = noctule(&["lab", "rum"]);
    assert_eq!(output.status.code(), Some(2));
    let output = noctule(&["lab", "node", "nobody"]);
    assert_eq!(output.status.code(), Some(2));
}
