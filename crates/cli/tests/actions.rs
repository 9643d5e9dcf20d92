//! `noctule action` as real processes, with a server in this one.

#![allow(clippy::unwrap_used, clippy::panic, clippy::expect_used)]

use std::io::{BufRead, BufReader};
use std::net::Ipv4Addr;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use noctule::action::{ActionServer, ActiveGoal};
use noctule::{Node, message};
use serde::{Deserialize, Serialize};
use serde_json::Value;

message! {
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    struct CountGoal: "demo/action/Count_Goal" {
        to: u32,
    }
}
message! {
    #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
    struct CountResult: "demo/action/Count_Result" {
        reached: u32,
    }
}
message! {
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    struct CountFeedback: "demo/action/Count_Feedback" {
        at: u32,
    }
}

type Count = (CountGoal, CountResult, CountFeedback);

const SHORT: Duration = Duration::from_millis(20);
const UNTIL_CANCELED: u32 = 1_000;

/// Of this test alone.
fn domain() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    4100 + std::process::id() % 80 * 6 + NEXT.fetch_add(1, Ordering::Relaxed)
}

fn command(words: &[&str], domain: u32) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_noctule"));
    command.args(words).args(["--domain", &domain.to_string(), "--interface", "127.0.0.1"]);
    command
}

/// Exit code, standard output, standard error.
fn run(words: &[&str], domain: u32) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = command(words, domain).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

fn work(mut goal: ActiveGoal<Count>, is_over: &AtomicBool) {
    for at in 1..=goal.to.min(3) {
        goal.feedback(&CountFeedback { at }).unwrap();
    }
    if goal.to < UNTIL_CANCELED {
        let reached = goal.to;
        return goal.succeed(&CountResult { reached }).unwrap();
    }
    while !goal.wait_for_cancel(Some(SHORT)) {
        if is_over.load(Ordering::Relaxed) {
            return;
        }
    }
    goal.canceled(&CountResult { reached: 7 }).unwrap();
}

/// Does `asks` while a server of `/count` counts.
fn with_server(domain: u32, asks: impl FnOnce(&ActionServer<Count>)) {
    let node =
        Node::builder("robot").domain(domain).interface(Ipv4Addr::LOCALHOST).keep_notices().open().unwrap();
    let server = node.action_server::<Count>("/count").open().unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let Some(goal) = server.next(Some(SHORT)) else { continue };
                let goal = goal.accept().unwrap();
                scope.spawn(|| work(goal, &is_over));
            }
        });
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| asks(&server)));
        is_over.store(true, Ordering::Relaxed);
        result.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

#[test]
fn a_goal_is_sent_followed_and_its_action_listed() {
    let domain = domain();
    with_server(domain, |_| {
        let send = ["action", "send", "/count", "{to: 3}", "--feedback", "--seconds", "60"];
        let (code, out, error) = run(&send, domain);
        assert_eq!((code, out.contains("# succeeded")), (Some(0), true), "{out}{error}");
        assert!(out.contains("reached: 3") && out.contains("at: 3") && out.contains("is accepted"), "{out}");
        let send = ["action", "send", "count", r#"{"to": 0}"#, "--json", "--seconds", "60"];
        let (code, out, error) = run(&send, domain);
        assert_eq!(code, Some(0), "{error}");
        let last: Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
        assert_eq!((&last["status"], &last["result"]["reached"]), (&"succeeded".into(), &0.into()));

        let (code, out, error) = run(&["action", "list", "--seconds", "3"], domain);
        assert_eq!(code, Some(0), "{error}");
        assert!(
            out.contains("/count") && out.contains("demo/action/Count ") && out.contains("robot ("),
            "{out}"
        );
        let (code, out, error) = run(&["action", "info", "/count", "--seconds", "3", "--json"], domain);
        assert_eq!(code, Some(0), "{error}");
        let info: Value = serde_json::from_str(&out).unwrap();
        assert_eq!(
            (&info["type"], &info["servers"][0]["node_name"]),
            (&"demo/action/Count".into(), &"robot".into())
        );
    });
}

#[test]
fn goals_are_canceled_and_what_does_not_fit_is_named() {
    let domain = domain();
    with_server(domain, |server| {
        let goal = format!("{{to: {UNTIL_CANCELED}}}");
        let mut sending = command(&["action", "send", "/count", &goal, "--json", "--seconds", "60"], domain)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(sending.stdout.take().unwrap()).lines();
        let mut lines = lines.map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
        let number = lines.find_map(|line| Some(line["goal"].as_str()?.to_owned())).expect("its number");
        assert_eq!(server.raw().goals().last().unwrap().0.to_string(), number);
        let (code, out, error) = run(&["action", "cancel", "/count", &number, "--seconds", "60"], domain);
        assert_eq!(code, Some(0), "{error}");
        assert!(out.contains(&format!("goal {number}: canceling")), "{out}");
        let result = lines.find(|line| line.get("result").is_some()).expect("its result");
        assert_eq!((&result["status"], &result["result"]["reached"]), (&"canceled".into(), &7.into()));
        assert_eq!(sending.wait().unwrap().code(), Some(1));

        let (code, _, error) = run(&["action", "cancel", "/count", "--seconds", "60"], domain);
        assert_eq!((code, error.contains("no goal is under way")), (Some(1), true), "{error}");
        let (code, _, error) = run(&["action", "cancel", "/count", "17", "--seconds", "60"], domain);
        assert_eq!((code, error.contains("17 is no number of a goal")), (Some(2), true), "{error}");
        let (code, _, error) = run(&["action", "send", "/count", "{fro: 1}", "--seconds", "60"], domain);
        assert_eq!((code, error.lines().count()), (Some(2), 1), "{error}");
        let (code, _, error) = run(&["action", "send", "/nobody", "{}", "--seconds", "0.5"], domain);
        assert_eq!((code, error.contains("no server of /nobody was seen")), (Some(1), true), "{error}");
    });
}
