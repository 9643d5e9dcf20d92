//! `noctule call` and `noctule services` as real processes, with a server in this one.

#![allow(clippy::unwrap_used, clippy::panic, clippy::expect_used)]

use std::net::Ipv4Addr;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use noctule::{Failure, Node, message};
use serde::{Deserialize, Serialize};
use serde_json::Value;

message! {
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    struct Add: "demo/srv/Add_Request" {
        a: i64,
        b: i64,
    }
}

message! {
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    struct Sum: "demo/srv/Add_Response" {
        sum: i64,
    }
}

/// Of this test alone.
fn domain() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    3600 + std::process::id() % 80 * 6 + NEXT.fetch_add(1, Ordering::Relaxed)
}

fn node(domain: u32) -> Node {
    Node::builder("robot").domain(domain).interface(Ipv4Addr::LOCALHOST).keep_notices().open().unwrap()
}

/// Exit code, standard output, standard error.
fn run(words: &[&str], domain: u32) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_noctule"));
    command.args(words).args(["--domain", &domain.to_string(), "--interface", "127.0.0.1"]);
    let Output { status, stdout, stderr } = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

/// Does `work` while a server of `/add` adds.
fn with_server(node: &Node, work: impl FnOnce()) {
    let mut server = node.server::<Add, Sum>("/add").open().unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let served = server.serve(Some(Duration::from_millis(20)), |request| {
                    let sum = request.a.checked_add(request.b).map(|sum| Sum { sum });
                    sum.ok_or(Failure::from("the sum does not fit"))
                });
                served.unwrap();
            }
        });
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        is_over.store(true, Ordering::Relaxed);
        result.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

#[test]
fn a_service_is_listed_and_called_with_yaml_and_json() {
    let domain = domain();
    let node = node(domain);
    with_server(&node, || {
        let (code, out, error) = run(&["call", "/add", "{a: 2, b: 40}", "--seconds", "60"], domain);
        assert_eq!(
            (code, out.contains("sum: 42"), out.contains("robot, ")),
            (Some(0), true, true),
            "{out}{error}"
        );
        let call = ["call", "add", r#"{"a": 1, "b": 2}"#, "--seconds", "60", "--json", "--idempotent"];
        let (code, out, error) = run(&call, domain);
        assert_eq!(code, Some(0), "{error}");
        let reply: Value = serde_json::from_str(&out).unwrap();
        assert_eq!(reply["response"]["sum"], 3);
        assert!(reply["age_ns"].as_i64().unwrap() > 0 && reply["bound_ns"] == 0, "{out}");
        assert_eq!(reply["server"], node.id().to_string());

        let (code, out, error) = run(&["services", "--seconds", "3", "--json"], domain);
        assert_eq!(code, Some(0), "{error}");
        let services: Value = serde_json::from_str(&out).unwrap();
        let service = &services["services"][0];
        assert_eq!(
            (&service["service"], &service["servers"][0]["node_name"]),
            (&"/add".into(), &"robot".into())
        );
        assert_eq!(service["servers"][0]["response_type"], "demo/srv/Add_Response");
        let (code, out, _) = run(&["services", "--seconds", "3"], domain);
        assert_eq!(code, Some(0));
        assert!(out.contains("demo/srv/Add_Request") && out.contains("robot ("), "{out}");
    });
}

#[test]
fn what_does_not_fit_is_two_and_what_does_not_answer_is_one() {
    let domain = domain();
    let node = node(domain);
    with_server(&node, || {
        let (code, out, error) = run(&["call", "/add", "{c: 1}", "--seconds", "60"], domain);
        assert_eq!((code, out.as_str(), error.lines().count()), (Some(2), "", 1), "{error}");
        assert!(error.contains('c'), "{error}");
        let (code, _, error) = run(&["call", "/", "{}", "--seconds", "60"], domain);
        assert_eq!((code, error.lines().count()), (Some(2), 1), "{error}");
        let most = format!("{{a: {}, b: 1}}", i64::MAX);
        let (code, _, error) = run(&["call", "/add", &most, "--seconds", "60"], domain);
        assert_eq!(code, Some(1), "{error}");
        assert!(error.contains("failed: the sum does not fit"), "{error}");
        let (code, _, error) = run(&["call", "/nobody", "--seconds", "0.5"], domain);
        assert_eq!(code, Some(1), "{error}");
        assert!(error.contains("no server of /nobody was seen"), "{error}");
    });
}
