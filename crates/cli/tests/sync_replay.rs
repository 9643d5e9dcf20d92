//! `noctule sync replay` as its users meet it: exit codes, JSON, and sentences.

#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Output};

use noctule_netsim::{Scenario, round_trips};

fn replay(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_noctule")).args(["sync", "replay"]).args(arguments).output().unwrap()
}

/// Writes a simulated trace and returns its path.
fn trace(directory: &Path, scenario: &str) -> String {
    let mut text = String::from("t1_ns,t2_ns,t3_ns,t4_ns,offset_true_ns\n");
    for t in round_trips(&Scenario::named(scenario).unwrap(), 1) {
        writeln!(text, "{},{},{},{},{}", t.t1_ns, t.t2_ns, t.t3_ns, t.t4_ns, t.offset_true_ns).unwrap();
    }
    let path = directory.join(format!("{scenario}.csv"));
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn json_has_every_contracted_field_and_null_where_nothing_applies() {
    let directory = tempfile::tempdir().unwrap();
    let output = replay(&[&trace(directory.path(), "F"), "--estimator", "bounded", "--json"]);
    assert_eq!(output.status.code(), Some(0));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(json["rms_error_ns"].as_f64().unwrap() < 3_000.0);
    assert!(json["relock_after_step_s"].as_f64().unwrap() <= 0.3);
    assert_eq!(json["bound_violations"], 0);
    for field in ["max_error_ns", "mean_bound_ns", "mean_sigma_ns", "time_to_100us_s", "drift_error_ppm"] {
        assert!(json[field].is_number(), "{field}");
    }
    assert_eq!(json["accepted"].as_u64().unwrap() + json["rejected"].as_u64().unwrap(), 5_999);

    let output = replay(&[&trace(directory.path(), "A"), "--estimator", "ema", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    for field in ["bound_violations", "mean_bound_ns", "mean_sigma_ns", "relock_after_step_s"] {
        assert!(json[field].is_null(), "{field}");
    }
}

#[test]
fn estimates_are_written_one_row_per_exchange() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("estimates.csv");
    let output = replay(&[&trace(directory.path(), "I"), "--estimates", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0));
    let text = std::fs::read_to_string(file).unwrap();
    assert_eq!(text.lines().count(), 1 + 599);
    assert!(text.lines().last().unwrap().contains(",locked,"));
}

#[test]
fn report_and_picture_are_written_and_a_wrong_ending_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let csv = trace(directory.path(), "F");
    let [page, picture] = ["f.html", "f.svg"].map(|name| directory.path().join(name));
    let output = replay(&[&csv, "--report", page.to_str().unwrap(), "--picture", picture.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("data-chart=\"allan\"") && page.contains("never left the bound in 5\u{2009}999"));
    assert!(std::fs::read_to_string(picture).unwrap().starts_with("<svg"));

    let output = replay(&[&csv, "--picture", "f.gif"]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("a picture is .svg or .png"), "{said}");
}

#[test]
fn a_bound_that_was_left_is_exit_code_one() {
    // The stamps prove an offset within a millisecond of zero; the truth column says 50 ms.
    let directory = tempfile::tempdir().unwrap();
    let csv = directory.path().join("lying.csv");
    let mut text = String::from("t1_ns,t2_ns,t3_ns,t4_ns,offset_true_ns\n");
    for i in 0..100_i64 {
        let (sent, received) = (i * 100_000_000, i * 100_000_000 + 1_000_000);
        writeln!(text, "{sent},{received},{received},{},50000000", received + 1_000_000).unwrap();
    }
    std::fs::write(&csv, text).unwrap();
    let output = replay(&[csv.to_str().unwrap(), "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["bound_violations"], 100);
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn wrong_input_is_exit_code_two_and_one_sentence() {
    let directory = tempfile::tempdir().unwrap();
    let bad = directory.path().join("bad.csv");
    std::fs::write(&bad, "t1_ns,t2_ns,t3_ns,t4_ns\n1,2,x,4\n").unwrap();
    for (arguments, words) in [
        (vec!["/nowhere.csv"], "name a CSV trace"),
        (vec![bad.to_str().unwrap()], "line 2: t3_ns is \"x\", but must be a whole number"),
        (vec![bad.to_str().unwrap(), "--wire-ns", "5"], "two whole numbers of nanoseconds"),
        (vec![bad.to_str().unwrap(), "--estimator", "magic"], "bounded"),
    ] {
        let output = replay(&arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains(words), "{said}");
    }
}
