//! Actions across, beside a program on Cyclone DDS that has its services and topics as `rmw_cyclonedds_cpp` has them.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use noctule::action::{ActiveGoal, CancelCode, GoalId, GoalStatus, TypedGoalEvent};

use super::{Place, Process, TIMEOUT, build, foreign, report_until};

noctule::message! {
    #[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
    struct CountGoal: "demo/action/Count_Goal" {
        to: u32,
    }
}
noctule::message! {
    #[derive(Debug, Clone, Default, serde::Serialize, serde::Deserialize)]
    struct CountResult: "demo/action/Count_Result" {
        reached: u32,
    }
}
noctule::message! {
    #[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
    struct CountFeedback: "demo/action/Count_Feedback" {
        at: u32,
    }
}

type Count = (CountGoal, CountResult, CountFeedback);

/// The program, if Cyclone is there.
fn program() -> Option<&'static PathBuf> {
    static BUILT: OnceLock<Option<PathBuf>> = OnceLock::new();
    let built = BUILT.get_or_init(|| {
        foreign().iter().find(|(name, _)| *name == "cyclone")?;
        Some(build("ros_action.idl", "action.c", "action"))
    });
    built.as_ref()
}

impl Place {
    fn action(&self, role: &str, rest: &[&str]) -> Option<Process> {
        let domain = self.dds.to_string();
        Some(Process::start(Command::new(program()?).args([role, &domain, "/count"]).args(rest)))
    }
}

#[test]
fn a_client_of_the_bus_sends_goals_to_an_action_on_cyclone() {
    let place = Place::new(24);
    let Some(theirs) = place.action("serve", &[]) else { return };
    let (node, bridge) = (place.node(), place.bridge(&[]));
    let mut client = node.action_client::<Count>("/count").deadline(TIMEOUT).open().unwrap();
    let goal = client.send_goal(&CountGoal { to: 3 }).unwrap();
    let result = client.wait_for_result(goal).unwrap();
    assert_eq!((result.status(), result.reached), (GoalStatus::Succeeded, 3));
    // The server is a process of this host, so that the age of its reply is proven.
    assert!(result.age().unwrap().bound.is_some(), "{:?}", result.age());

    let goal = client.start(&CountGoal { to: 1_000 }, None).unwrap();
    let mut feedback = Vec::new();
    while feedback.len() < 3 {
        let (of, event) = client.next(Some(TIMEOUT)).unwrap().expect("feedback");
        match event {
            TypedGoalEvent::Feedback { value, .. } if of == goal => feedback.push(value.at),
            TypedGoalEvent::Failed(why) => panic!("{why}"),
            _ => {}
        }
    }
    assert_eq!(feedback, [1, 2, 3]);
    assert_eq!(client.cancel(GoalId([9; 16])).unwrap().code, CancelCode::UnknownGoal);
    let answer = client.cancel(goal).unwrap();
    assert_eq!((answer.code, answer.goals[0].0, answer.goals.len()), (CancelCode::None, goal, 1));
    let result = client.wait_for_result(goal).unwrap();
    assert_eq!((result.status(), result.reached), (GoalStatus::Canceled, 1_000));
    assert_eq!(client.raw().counters().malformed, 0);
    assert!(theirs.end() && bridge.end());
}

/// Feedback is volatile: it is published until a reader in DDS has some. Then as the goal says.
fn work(mut goal: ActiveGoal<Count>, process: &Process, lines: &mut Vec<String>) {
    let (reached, end) = (goal.to, Instant::now() + TIMEOUT);
    while !lines.iter().any(|line| line == "feedback 3") {
        assert!(Instant::now() < end, "{lines:?}");
        goal.feedback(&CountFeedback { at: 3 }).unwrap();
        lines.extend(process.lines.recv_timeout(Duration::from_millis(20)));
    }
    if reached < 1_000 {
        return goal.succeed(&CountResult { reached }).unwrap();
    }
    assert!(goal.wait_for_cancel(Some(TIMEOUT)), "it is canceled");
    goal.canceled(&CountResult { reached }).unwrap();
}

/// Reads its lines until each of these has come, in any order.
fn until_all(process: &Process, expected: &[&str], lines: &mut Vec<String>) {
    let end = Instant::now() + TIMEOUT;
    while expected.iter().any(|line| !lines.iter().any(|came| came == line)) {
        assert!(Instant::now() < end, "{expected:?}: {lines:?}");
        lines.push(process.line());
    }
}

#[test]
fn a_client_on_cyclone_sends_goals_to_an_action_of_the_bus() {
    let place = Place::new(25);
    if program().is_none() {
        return;
    }
    let (node, bridge) = (place.node(), place.bridge(&[]));
    let hour = Duration::from_secs(3600);
    let server = node.action_server::<Count>("/count").keep_results(hour).open().unwrap();
    let expected = [
        ("3", 7, ["accepted 1", "feedback 3", "result 4 3", "status 4"].as_slice()),
        ("1000", 8, &["accepted 1", "feedback 3", "canceling 0 1", "result 5 1000", "status 5"]),
    ];
    for (to, number, lines) in expected {
        let theirs = place.action("send", &[to]).unwrap();
        let goal = server.next(Some(TIMEOUT)).expect("a goal");
        assert_eq!(goal.id().0[..3], [7, number, 0]);
        let goal = goal.accept().unwrap();
        let mut came = Vec::new();
        work(goal, &theirs, &mut came);
        until_all(&theirs, lines, &mut came);
        assert!(theirs.end());
    }
    // The number of the first goal once more, whose result is still kept.
    let theirs = place.action("send", &["3"]).unwrap();
    until_all(&theirs, &["accepted 0", "result 4 3"], &mut Vec::new());
    assert_eq!(server.raw().counters().duplicates, 1);
    report_until(&bridge, "why", |report| {
        report["notice"].as_str().is_some_and(|notice| notice.contains("is known here already"))
    });
    assert!(theirs.end() && bridge.end());
}
