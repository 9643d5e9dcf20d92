//! Actions between nodes: through shared memory and by UDP, in one process and in two, with a server that is killed.
//! The second process is this test binary itself, started again with a role.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)] // a test, roles included

use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use noctule::action::{
    ActionClient, ActionServer, ActiveGoal, CancelCode, Canceled, GoalError, GoalId, GoalStatus,
    TypedGoalEvent,
};
use noctule::clock::LocalClock;
use noctule::formats::{decode_cdr, encode_cdr};
use noctule::request::{ServiceTypes, TypeRef};
use noctule::{CallError, Node, Notice, message};
use serde::{Deserialize, Serialize};

const ROLE: &str = "NOCTULE_ACTIONS_ROLE";
/// Far longer than anything takes here, on any machine.
const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(20);
/// Goals of special kinds.
const REJECT: u32 = 1_000;
const UNTIL_CANCELED: u32 = 1_001;
const DROP: u32 = 1_002;

message! {
    /// Up to which number.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    pub struct CountGoal: "demo/action/Count_Goal" {
        /// The last.
        pub to: u32,
    }
}
message! {
    /// The numbers.
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    pub struct CountResult: "demo/action/Count_Result" {
        /// All of them.
        pub counted: Vec<u32>,
    }
}
message! {
    /// How far it is.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    pub struct CountFeedback: "demo/action/Count_Feedback" {
        /// The last one counted.
        pub at: u32,
    }
}

type Count = (CountGoal, CountResult, CountFeedback);

fn domain() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    1000 + (std::process::id() % 100) * 20 + NEXT.fetch_add(1, Ordering::Relaxed)
}

fn node(name: &str, domain: u32, clock: &str) -> Node {
    let clock: LocalClock = clock.parse().unwrap();
    Node::builder(name).domain(domain).clock(clock).keep_notices().open().unwrap()
}

fn client(node: &Node) -> ActionClient<Count> {
    node.action_client::<Count>("/count").deadline(LONG).open().unwrap()
}

fn server(node: &Node) -> ActionServer<Count> {
    node.action_server::<Count>("/count").open().unwrap()
}

fn work(mut goal: ActiveGoal<Count>, is_over: &AtomicBool) {
    match goal.to {
        UNTIL_CANCELED => {
            while !goal.wait_for_cancel(Some(SHORT)) {
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
            }
            goal.canceled(&CountResult { counted: vec![7] }).unwrap();
        }
        DROP => drop(goal),
        to => {
            for at in 1..=to {
                goal.feedback(&CountFeedback { at }).unwrap();
            }
            goal.succeed(&CountResult { counted: (1..=to).collect() }).unwrap();
        }
    }
}

/// Serves while `asks` runs, each goal on a thread of its own.
fn serving(server: &ActionServer<Count>, asks: impl FnOnce()) {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let Some(goal) = server.next(Some(SHORT)) else { continue };
                if goal.to == REJECT {
                    goal.reject().unwrap();
                    continue;
                }
                let goal = goal.accept().unwrap();
                scope.spawn(|| work(goal, &is_over));
            }
        });
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(asks));
        is_over.store(true, Ordering::Relaxed);
        result.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

/// `clock`: with one of its own, a node is another host.
fn goals_are_executed(clock: &str) {
    let domain = domain();
    let (a, b) = (node("asks", domain, clock), node("serves", domain, ""));
    let (mut client, server) = (client(&a), server(&b));
    serving(&server, || {
        assert!(client.raw().wait_for_server(LONG).unwrap());
        let goal = client.start(&CountGoal { to: 20 }, None).unwrap();
        let (mut feedback, mut accepted, mut executing) = (Vec::new(), 0, 0);
        let result = loop {
            let (of, event) = client.next(Some(LONG)).unwrap().expect("its result");
            assert_eq!(of, goal);
            match event {
                TypedGoalEvent::Accepted { server, stamp } => {
                    accepted += 1;
                    assert_eq!((server, stamp.is_none()), (b.id(), false));
                }
                TypedGoalEvent::Status(status) => executing += u32::from(status == GoalStatus::Executing),
                TypedGoalEvent::Feedback { value, info } => {
                    assert_eq!(info.publisher, b.id());
                    feedback.push(value.at);
                }
                TypedGoalEvent::Result(result) => break result,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!((result.status(), &result.counted), (GoalStatus::Succeeded, &(1..=20).collect()));
        assert!(result.age().is_some() && accepted == 1 && executing <= 1);
        assert!(feedback.is_sorted() && feedback.iter().all(|at| (1..=20).contains(at)), "{feedback:?}");
        // Between hosts the last ones may come after the result; on one host none does.
        assert!(!clock.is_empty() || feedback.len() == 20, "{feedback:?}");
        assert!(client.next(None).unwrap().is_none(), "nothing is followed any more");

        let rejected = client.send_goal(&CountGoal { to: REJECT }).unwrap_err();
        assert!(matches!(rejected, GoalError::Rejected { .. }), "{rejected}");
        let goals: Vec<GoalId> = (0..10).map(|to| client.send_goal(&CountGoal { to }).unwrap()).collect();
        for (to, goal) in goals.into_iter().enumerate().rev() {
            let result = client.wait_for_result(goal).unwrap();
            assert_eq!(result.counted, (1..=to as u32).collect::<Vec<_>>());
            let again = client.wait_for_result(goal).unwrap_err();
            assert!(matches!(again, GoalError::NotFollowed { .. }), "{again}");
        }
        let dropped = client.send_goal(&CountGoal { to: DROP }).unwrap();
        let dropped = client.wait_for_result(dropped).unwrap();
        assert_eq!((dropped.status(), dropped.into_value()), (GoalStatus::Aborted, CountResult::default()));
    });
    let (asked, served) = (client.raw().counters(), server.raw().counters());
    assert_eq!((asked.goals, asked.accepted, asked.rejected, asked.results), (13, 12, 1, 12));
    assert_eq!((served.goals, served.accepted, served.rejected, served.succeeded), (13, 12, 1, 11));
    assert_eq!((asked.malformed, served.malformed, served.duplicates, served.aborted), (0, 0, 0, 1));
}

#[test]
fn goals_are_executed_through_shared_memory() {
    goals_are_executed("");
}

#[test]
fn goals_are_executed_between_hosts() {
    goals_are_executed("offset=3s");
}

#[test]
fn goals_are_canceled_by_number_up_to_a_time_and_all() {
    let node = node("both", domain(), "");
    let (mut client, server) = (client(&node), server(&node));
    let codes = |answer: Canceled| (answer.code, answer.goals.len());
    serving(&server, || {
        let goals: Vec<GoalId> =
            (0..4).map(|_| client.send_goal(&CountGoal { to: UNTIL_CANCELED }).unwrap()).collect();
        let stamps: Vec<_> = server.raw().goals();
        assert_eq!(
            stamps.iter().map(|(id, ..)| *id).collect::<Vec<_>>(),
            goals,
            "in the order of acceptance"
        );
        let answer = client.cancel(goals[3]).unwrap();
        assert_eq!((answer.code, answer.goals), (CancelCode::None, vec![(goals[3], stamps[3].1)]));
        let canceled = client.wait_for_result(goals[3]).unwrap();
        assert_eq!((canceled.status(), &canceled.counted), (GoalStatus::Canceled, &vec![7]));
        assert_eq!(codes(client.cancel(goals[3]).unwrap()), (CancelCode::Ended, 0));
        assert_eq!(codes(client.cancel(GoalId([9; 16])).unwrap()), (CancelCode::UnknownGoal, 0));
        assert_eq!(codes(client.raw().cancel_before(stamps[1].1).unwrap()), (CancelCode::None, 2));
        for goal in &goals[..2] {
            assert_eq!(client.wait_for_result(*goal).unwrap().status(), GoalStatus::Canceled);
        }
        assert_eq!(codes(client.raw().cancel_all().unwrap()), (CancelCode::None, 1));
        assert_eq!(client.wait_for_result(goals[2]).unwrap().status(), GoalStatus::Canceled);
        assert_eq!(codes(client.raw().cancel_all().unwrap()), (CancelCode::None, 0));
    });
    assert_eq!((server.raw().counters().canceling, server.raw().counters().canceled), (4, 4));
}

#[test]
fn a_server_may_refuse_to_cancel_and_a_deferred_goal_is_executed_later() {
    let node = node("both", domain(), "");
    let mut client = client(&node);
    let server = node.action_server::<Count>("/count").on_cancel(|_| false).open().unwrap();
    let goal = client.start(&CountGoal { to: 1 }, None).unwrap();
    let offered = loop {
        // Copies of the request go out meanwhile.
        assert!(!matches!(client.next(Some(SHORT)).unwrap(), Some((_, TypedGoalEvent::Failed(_)))));
        if let Some(offered) = server.next(Some(SHORT)) {
            break offered;
        }
    };
    assert_eq!((offered.id(), offered.raw().caller()), (goal, node.id()));
    let mut active = offered.defer().unwrap();
    assert_eq!(active.raw().status(), GoalStatus::Accepted);
    let refused = client.cancel(goal).unwrap();
    assert_eq!((refused.code, refused.goals), (CancelCode::Rejected, vec![]));
    active.execute().unwrap();
    let twice = active.execute().unwrap_err();
    assert!(twice.to_string().contains("is executing, and cannot become executing"), "{twice}");
    let unasked = active.canceled(&CountResult::default()).unwrap_err();
    assert!(matches!(unasked, GoalError::Step { .. }), "{unasked}");
    assert_eq!(client.wait_for_result(goal).unwrap().status(), GoalStatus::Aborted);
}

/// A client of the services alone, as any program of ROS 2 is one.
#[test]
fn a_number_twice_and_a_goal_that_is_not_known_are_answered() {
    let node = node("both", domain(), "");
    let server = server(&node);
    let of = |name: &str| TypeRef { name: format!("demo/action/Count_{name}"), hash: 0 };
    let types = |request, response| ServiceTypes { request: of(request), response: of(response) };
    let send = types("SendGoal_Request", "SendGoal_Response");
    let get = types("GetResult_Request", "GetResult_Response");
    let mut send = node.raw_client("/count/_action/send_goal", send).deadline(LONG).open().unwrap();
    let mut get = node.raw_client("/count/_action/get_result", get).deadline(LONG).open().unwrap();
    serving(&server, || {
        let mut bytes = Vec::new();
        encode_cdr(&([5u8; 16], CountGoal { to: UNTIL_CANCELED }), &mut bytes).unwrap();
        let first = send.call(&bytes).unwrap();
        assert_eq!((first.bytes()[4], first.bytes().len()), (1, 16));
        let twice = send.call(&bytes).unwrap_err();
        assert!(twice.to_string().contains("is known here already"), "{twice}");
        let short = send.call(&bytes[..12]).unwrap_err();
        assert!(short.to_string().contains("12 bytes are no request"), "{short}");
        let unknown = get.call(&[[0, 1, 0, 0].as_slice(), &[6; 16]].concat()).unwrap();
        let (status, result) = decode_cdr::<(i8, CountResult)>(unknown.bytes()).unwrap();
        assert_eq!((status, result), (0, CountResult::default()));
    });
    let counters = server.raw().counters();
    assert_eq!((counters.duplicates, counters.malformed, counters.unknown), (1, 1, 1));
}

#[test]
fn a_result_after_its_deadline_is_a_notice_and_an_error_of_the_goal() {
    let domain = domain();
    let (a, b) = (node("asks", domain, ""), node("serves", domain, ""));
    let (mut client, server) = (client(&a), server(&b));
    serving(&server, || {
        assert!(client.raw().wait_for_server(LONG).unwrap());
        let goal = client.start(&CountGoal { to: UNTIL_CANCELED }, Some(Duration::from_millis(300))).unwrap();
        let late = client.wait_for_result(goal).expect_err("its deadline is over");
        // If the machine was so slow that the request was not sent at all within it, that is as well.
        let is_named = matches!(
            late,
            GoalError::Call(
                CallError::DeadlineExceeded { .. } | CallError::NoServer { .. } | CallError::Late { .. }
            )
        );
        assert!(is_named, "{late}");
        assert_eq!(server.raw().goals().len(), 1, "the goal goes on");
        client.raw().cancel_all().unwrap();
    });
    assert!(std::iter::from_fn(|| b.poll_notice()).all(|notice| !matches!(notice, Notice::LateReply { .. })));
}

/// Not a test by itself: what a started process does until it is killed.
#[test]
fn role_of_a_started_process() {
    let Ok(domain) = std::env::var(ROLE) else { return };
    let node = node("another process", domain.parse().unwrap(), "");
    let server = server(&node);
    serving(&server, || {
        loop {
            std::thread::park();
        }
    });
}

fn start(domain: u32) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "role_of_a_started_process", "--nocapture"])
        .env(ROLE, domain.to_string())
        .spawn()
        .unwrap()
}

#[test]
fn a_server_killed_in_the_middle_ends_its_goals_with_an_error_and_another_takes_the_next() {
    let domain = domain();
    let node = node("asks", domain, "");
    let mut client = client(&node);
    let mut child = start(domain);
    let done = client.send_goal(&CountGoal { to: 3 }).unwrap();
    assert_eq!(client.wait_for_result(done).unwrap().counted, [1, 2, 3]);
    let goals: Vec<GoalId> =
        (0..3).map(|_| client.send_goal(&CountGoal { to: UNTIL_CANCELED }).unwrap()).collect();
    child.kill().unwrap();
    child.wait().unwrap();
    for goal in goals {
        let gone = client.wait_for_result(goal).expect_err("its server was killed");
        assert!(matches!(gone, GoalError::Call(CallError::ServerGone { .. })), "{gone}");
    }
    let mut child = start(domain);
    // One more may go to the server that is gone, as long as its departure is on its way; no client sends it again unasked.
    let counted = loop {
        let next = client.send_goal(&CountGoal { to: 1 });
        match next.and_then(|next| client.wait_for_result(next)) {
            Ok(result) => break result.counted.clone(),
            Err(GoalError::Call(CallError::ServerGone { .. })) => {}
            Err(other) => panic!("{other}"),
        }
    };
    assert_eq!(counted, [1]);
    child.kill().unwrap();
    child.wait().unwrap();
}
