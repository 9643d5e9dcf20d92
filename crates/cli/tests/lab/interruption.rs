//! Ctrl-C in the middle keeps what was measured and marks the run partial.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use super::*;

#[test]
fn interrupted_run_is_kept_marked_and_not_a_success() {
    let experiment = Experiment::new(
        "name = \"x\"\ntrials = 200\nseconds = 0.05\nmessages = 50\n[[cells]]\npeer = \"udp\"\n",
    );
    let mut child = command(&["lab", "run", text(&experiment.scenario()), "--out", text(&experiment.out())])
        .stderr(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut errors = BufReader::new(child.stderr.take().unwrap()).lines();
    // The second line of progress comes after a tenth of the trials: something has been measured.
    let second = errors.by_ref().map_while(Result::ok).filter(|line| line.starts_with("measuring")).nth(1);
    assert!(second.is_some(), "progress is printed");
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(table.contains("PARTIAL"), "{table}");
    let run = std::fs::read_to_string(experiment.out().join("run.json")).unwrap();
    let run: Value = serde_json::from_str(&run).unwrap();
    assert_eq!(run["partial"], true);
    let cells = run["cells"].as_array().unwrap();
    assert!(cells.len() >= 20 && cells.len() < 200, "{} trials kept", cells.len());
    assert!(cells.iter().all(|cell| cell["valid"] == true));
    assert!(experiment.out().join("report.html").exists());
}
