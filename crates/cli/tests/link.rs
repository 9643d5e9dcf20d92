//! `noctule link` as processes: up, exec, list, down, and what a killed link leaves.
//!
//! Needs the rights to make network namespaces, as the rest of the workspace's tests do.

#![allow(clippy::unwrap_used)]

use std::process::{Command, Output};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

fn noctule(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_noctule")).args(arguments).output().unwrap()
}

fn json(arguments: &[&str]) -> Value {
    let output = noctule(arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn refused(arguments: &[&str]) -> String {
    let output = noctule(arguments);
    assert_eq!(output.status.code(), Some(2));
    String::from_utf8(output.stderr).unwrap()
}

/// Of this test run only.
fn name(of: &str) -> String {
    format!("test-{}-{of}", std::process::id())
}

#[test]
fn a_link_is_brought_up_entered_listed_and_taken_down() {
    let name = name("whole");
    let state = json(&["link", "up", &name, "--spec", "satellite; b>a: loss=1%", "--nodes", "3", "--json"]);
    assert_eq!(state["nodes"][2], serde_json::json!(["c", "10.78.0.3"]));
    assert!(refused(&["link", "up", &name]).contains("is up already"));
    assert!(refused(&["link", "exec", &name, "d", "--", "true"]).contains("it has a, b, c"));
    assert!(refused(&["link", "exec", &name, "a", "--", "/no/such"]).contains("cannot run /no/such"));
    // The program's own exit code, in a namespace that has the link's device.
    let inside = ["link", "exec", &name, "a", "--", "sh", "-c", "grep -q noctule0 /proc/net/dev && exit 7"];
    assert_eq!(noctule(&inside).status.code(), Some(7));
    let listed = json(&["link", "list", "--json"]);
    let listed = listed.as_array().unwrap().iter().find(|link| link["name"] == name.as_str()).unwrap();
    assert_eq!(listed["report"]["nodes"][0]["to"].as_array().unwrap().len(), 2);
    let report = json(&["link", "down", &name, "--json"]);
    assert!(report["lateness_ns"].is_object());
    assert!(refused(&["link", "down", &name]).contains("there is no link"));
}

#[test]
fn a_killed_link_leaves_nothing_in_the_way_of_the_next() {
    let name = name("killed");
    let state = json(&["link", "up", &name, "--json"]);
    let process = Pid::from_raw(state["process"].as_i64().unwrap() as i32).unwrap();
    kill_process(process, Signal::KILL).unwrap();
    // The kernel frees the socket's name when it has ended the process: bounded tries, no clock.
    let again = (0..200).map(|_| noctule(&["link", "up", &name, "--json"])).find(|up| up.status.success());
    assert_ne!(serde_json::from_slice::<Value>(&again.unwrap().stdout).unwrap()["process"], state["process"]);
    json(&["link", "down", &name, "--json"]);
}

#[test]
fn what_cannot_be_a_link_is_refused_in_one_sentence() {
    let name = name("refused");
    assert!(refused(&["link", "up", &name, "--spec", "loss=5"]).contains("such as 5%"));
    assert!(refused(&["link", "up", &name, "--spec", "replay:/no/such"]).contains("cannot read /no/such"));
    assert!(refused(&["link", "up", &name, "--nodes", "27"]).contains("2 to 26 nodes"));
    assert!(refused(&["link", "up", "a/b"]).contains("no name of a link"));
}
