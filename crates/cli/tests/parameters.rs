//! `noctule param` as real processes, with a node that has parameters in this one.

#![allow(clippy::unwrap_used, clippy::panic, clippy::expect_used)]

use std::net::Ipv4Addr;
use std::process::{Command, Output};

use noctule::Node;
use noctule::parameter::{ParameterDescriptor, ParameterRange, Parameters};
use serde_json::Value;

/// Of the test with this number alone.
fn domain(number: u32) -> u32 {
    4600 + std::process::id() % 90 * 4 + number
}

/// A node with four parameters.
fn arm(domain: u32) -> (Parameters, Node) {
    let node = Node::builder("robot").domain(domain).interface(Ipv4Addr::LOCALHOST).open().unwrap();
    let parameters = node.parameters("/arm").unwrap();
    let range = Some(ParameterRange::Double { from: 0.0, to: 2.0, step: 0.0 });
    let speed = ParameterDescriptor { description: "m/s".into(), range, ..Default::default() };
    parameters.declare_as("joint.speed", 0.5, speed).unwrap();
    parameters.declare("names", vec!["a".to_owned(), "true".to_owned()]).unwrap();
    parameters.declare("count", -3).unwrap();
    let read_only = ParameterDescriptor { read_only: true, ..Default::default() };
    parameters.declare_as("serial", "X1", read_only).unwrap();
    (parameters, node)
}

/// Exit code, standard output, standard error.
fn run(words: &[&str], domain: u32) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_noctule"));
    command.arg("param").args(words).args(["--domain", &domain.to_string(), "--interface", "127.0.0.1"]);
    let Output { status, stdout, stderr } = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

/// Of a node that is there and may be slow.
fn done(words: &[&str], domain: u32) -> String {
    let (code, out, error) = run(&[words, &["--seconds", "60"]].concat(), domain);
    assert_eq!((code, error.as_str()), (Some(0), ""), "{words:?}: {out}");
    out
}

#[test]
fn parameters_are_listed_shown_set_dumped_and_loaded() {
    let domain = domain(0);
    let (parameters, _node) = arm(domain);
    assert_eq!(done(&["list", "arm"], domain), "count\njoint.speed\nnames\nserial\n");
    assert_eq!(done(&["get", "/arm", "joint.speed"], domain), "0.5\n");
    assert_eq!(done(&["set", "/arm", "joint.speed", "1"], domain), "");
    assert_eq!(done(&["set", "/arm", "count", "-7"], domain), "");
    assert_eq!(
        (parameters.get("joint.speed"), parameters.get("count")),
        (Some(1.0.into()), Some((-7).into()))
    );
    let described = done(&["describe", "/arm", "joint.speed", "serial"], domain);
    let expected = "joint.speed\n  type: double\n  description: m/s\n  range: 0 to 2\nserial\n  type: string\n  read-only: yes\n";
    assert_eq!(described, expected);

    let dumped = done(&["dump", "/arm"], domain);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("arm.yaml");
    // Read-only parameters cannot be loaded, and the others are.
    std::fs::write(&file, &dumped).unwrap();
    parameters.set("joint.speed", 0.25).unwrap();
    let load = ["load", "/arm", file.to_str().unwrap(), "--seconds", "60"];
    let (code, out, error) = run(&load, domain);
    let refused = "noctule: node /arm: parameter serial cannot be set because it is read-only\n";
    assert_eq!((code, out.as_str(), error.as_str()), (Some(2), "", refused));
    assert_eq!(parameters.get("joint.speed"), Some(1.0.into()), "{dumped}");
    let names = vec!["a".to_owned(), "true".to_owned()];
    assert_eq!(parameters.get("names"), Some(names.into()), "{dumped}");

    let tree: Value = serde_json::from_str(&done(&["dump", "/arm", "--json"], domain)).unwrap();
    assert_eq!(tree["/arm"]["ros__parameters"]["joint"]["speed"], 1.0);
    let all: Value = serde_json::from_str(&done(&["list", "--json"], domain)).unwrap();
    assert_eq!(all["/arm"].as_array().map(Vec::len), Some(4));
}

#[test]
fn what_does_not_fit_is_two_and_what_does_not_answer_is_one() {
    let domain = domain(1);
    let (_parameters, _node) = arm(domain);
    let long = "x".repeat(300);
    for (words, sentence) in [
        (&["set", "/arm", "joint.speed", "3"][..], "can be 0 to 2"),
        (&["set", "/arm", "joint.speed", "fast"], "is no value of type {double}"),
        (&["set", "/arm", "nothing", "1"], "was not declared"),
        (&["get", "/arm", "nothing"], "is not declared"),
        (&["describe", "/arm", "nothing"], "is not declared"),
        (&["set", "/arm", "count", "{"], "neither JSON nor YAML"),
        (&["load", "/arm", "/nothing.yaml"], "/nothing.yaml"),
        (&["list", long.as_str()], "1 to 243 bytes"),
    ] {
        let (code, out, error) = run(&[words, &["--seconds", "60"]].concat(), domain);
        assert_eq!((code, out.as_str(), error.lines().count()), (Some(2), "", 1), "{words:?} {error}");
        assert!(error.contains(sentence), "{words:?} {error}");
    }
    let (code, _, error) = run(&["get", "/nobody", "x", "--seconds", "0.5"], domain);
    assert_eq!(code, Some(1));
    assert_eq!(
        error,
        "noctule: no node /nobody with parameters was found; `noctule param list` shows those there are\n"
    );
}
