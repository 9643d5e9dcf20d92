//! States of goals, step by step; a whole world of them in virtual time is in `world`.

mod world;

use std::collections::BTreeSet;
use std::sync::Arc;

use noctule_time_sync::Local;
use noctule_timebase::{Instant, Span};

use super::goals::{
    CancelCode, GOALS_MAX, Goals, Offered, Outcome, RESULTS_BYTES_MAX, RESULTS_MAX, WAITING_MAX, Wanted,
};
use super::{ActionNames, ActionTypes, GoalId, GoalStamp, GoalStatus};
use crate::formats::{Definition, message};
use crate::generated::builtin_interfaces::msg::Time;
use crate::generated::unique_identifier_msgs::msg::UUID;
use crate::request::RequestId;

const ALL: [GoalStatus; 7] = [
    GoalStatus::Unknown,
    GoalStatus::Accepted,
    GoalStatus::Executing,
    GoalStatus::Canceling,
    GoalStatus::Succeeded,
    GoalStatus::Canceled,
    GoalStatus::Aborted,
];

fn at(ms: i64) -> Instant<Local> {
    Instant::from_ns(ms * 1_000_000)
}

fn goal(number: u128) -> GoalId {
    GoalId(number.to_le_bytes())
}

fn stamp(sec: i32) -> GoalStamp {
    GoalStamp { sec, nanosec: 0 }
}

fn request(sequence: i64) -> RequestId {
    RequestId { client: 1, sequence }
}

fn outcome(status: GoalStatus, bytes: usize) -> Outcome {
    Outcome { status, response: Some(Arc::from(vec![0; bytes])) }
}

fn goals() -> Goals {
    Goals::new(Span::from_s(10))
}

/// A goal that has come to this state by steps that exist.
fn at_status(goals: &mut Goals, id: GoalId, status: GoalStatus) {
    if status == GoalStatus::Unknown {
        return;
    }
    assert_eq!(goals.handle_offer(id), Offered::New);
    assert!(goals.handle_acceptance(id, stamp(1), false));
    if status >= GoalStatus::Executing {
        goals.handle_step(id, GoalStatus::Executing).unwrap();
    }
    if matches!(status, GoalStatus::Canceling | GoalStatus::Canceled) {
        goals.handle_step(id, GoalStatus::Canceling).unwrap();
    }
    if status.is_end() {
        goals.handle_end(at(0), id, outcome(status, 8)).unwrap();
    }
    assert_eq!(goals.status(id), status);
}

#[test]
fn a_goal_takes_the_steps_that_rcl_action_has_and_no_other() {
    use GoalStatus::{Aborted, Accepted, Canceled, Canceling, Executing, Succeeded};
    let possible = [
        (Accepted, Executing),
        (Accepted, Canceling),
        (Executing, Canceling),
        (Executing, Succeeded),
        (Executing, Aborted),
        (Canceling, Succeeded),
        (Canceling, Aborted),
        (Canceling, Canceled),
        // Ours: the handle of a goal is dropped before it was begun.
        (Accepted, Aborted),
    ];
    for from in ALL {
        for to in ALL {
            let mut goals = goals();
            at_status(&mut goals, goal(1), from);
            let taken = match to.is_end() {
                true => goals.handle_end(at(0), goal(1), outcome(to, 8)),
                false => goals.handle_step(goal(1), to),
            };
            let is_possible = possible.contains(&(from, to));
            assert_eq!(taken, if is_possible { Ok(()) } else { Err(from) }, "{from} to {to}");
            assert_eq!(goals.status(goal(1)), if is_possible { to } else { from });
        }
    }
}

#[test]
fn a_number_that_is_known_is_refused_until_its_result_is_kept_no_longer() {
    let mut goals = goals();
    assert_eq!(goals.handle_offer(goal(1)), Offered::New);
    assert_eq!(goals.handle_offer(goal(1)), Offered::Duplicate);
    assert!(goals.handle_acceptance(goal(1), stamp(1), true));
    assert!(!goals.handle_acceptance(goal(1), stamp(1), true));
    assert_eq!(goals.handle_offer(goal(1)), Offered::Duplicate);
    goals.handle_end(at(5), goal(1), outcome(GoalStatus::Succeeded, 8)).unwrap();
    assert_eq!(goals.handle_offer(goal(1)), Offered::Duplicate);
    assert_eq!(goals.next_time(), Some(at(10_005)));
    goals.handle_time(at(10_004));
    assert_eq!(goals.handle_offer(goal(1)), Offered::Duplicate);
    goals.handle_time(at(10_005));
    assert_eq!(goals.handle_request(goal(1), request(1)), Wanted::Unknown);
    assert_eq!(goals.handle_offer(goal(1)), Offered::New);
    assert!(goals.handle_rejection(goal(1)) && !goals.handle_rejection(goal(1)));
    assert_eq!(goals.handle_offer(goal(1)), Offered::New);
    let counters = goals.counters;
    assert_eq!((counters.goals, counters.accepted, counters.duplicates, counters.unknown), (3, 1, 4, 1));
}

#[test]
fn requests_for_a_result_wait_for_the_end_and_each_is_answered_once() {
    let mut goals = goals();
    at_status(&mut goals, goal(1), GoalStatus::Executing);
    assert_eq!(goals.handle_request(goal(1), request(1)), Wanted::Waits);
    assert_eq!(goals.handle_request(goal(1), request(2)), Wanted::Waits);
    // No client waits for the second any more.
    goals.handle_gone(|id| id == request(2));
    assert_eq!(goals.poll_answer(), None);
    let end = outcome(GoalStatus::Aborted, 9);
    goals.handle_end(at(0), goal(1), end.clone()).unwrap();
    assert_eq!(goals.poll_answer(), Some((request(1), end.clone())));
    assert_eq!(goals.poll_answer(), None);
    assert_eq!(goals.handle_request(goal(1), request(3)), Wanted::Answer(end));
    assert_eq!(goals.poll_answer(), None);
}

#[test]
fn goals_results_and_waiting_requests_have_limits() {
    let mut goals = goals();
    for number in 0..GOALS_MAX as u128 {
        assert_eq!(goals.handle_offer(goal(number + 1)), Offered::New);
    }
    assert_eq!(goals.handle_offer(goal(9_999)), Offered::Full);
    for number in 0..GOALS_MAX as u128 {
        assert!(goals.handle_acceptance(goal(number + 1), stamp(1), true));
    }
    assert_eq!(goals.handle_offer(goal(9_999)), Offered::Full);
    for sequence in 0..WAITING_MAX as i64 {
        assert_eq!(goals.handle_request(goal(1), request(sequence)), Wanted::Waits);
    }
    assert_eq!(goals.handle_request(goal(2), request(-1)), Wanted::Full);
    for number in 0..GOALS_MAX as u128 {
        goals.handle_end(at(0), goal(number + 1), outcome(GoalStatus::Succeeded, 8)).unwrap();
    }
    // Those that have ended are no longer under way, and one more end drops the oldest.
    at_status(&mut goals, goal(9_999), GoalStatus::Executing);
    goals.handle_end(at(1), goal(9_999), outcome(GoalStatus::Succeeded, 8)).unwrap();
    assert_eq!((goals.status(goal(1)), goals.statuses().len()), (GoalStatus::Unknown, RESULTS_MAX));
    at_status(&mut goals, goal(10_000), GoalStatus::Executing);
    goals.handle_end(at(2), goal(10_000), outcome(GoalStatus::Succeeded, RESULTS_BYTES_MAX - 8)).unwrap();
    let left: BTreeSet<GoalId> = goals.statuses().into_iter().map(|(id, ..)| id).collect();
    assert_eq!(left, BTreeSet::from([goal(9_999), goal(10_000)]));
    let counters = goals.counters;
    assert_eq!((counters.full, counters.waiting_full, counters.results_dropped), (2, 1, 256));
}

#[test]
fn cancellations_name_one_goal_those_up_to_a_time_both_or_all() {
    let mut goals = goals();
    for (number, sec, status) in [
        (1, 10, GoalStatus::Executing),
        (2, 20, GoalStatus::Executing),
        (3, 30, GoalStatus::Accepted),
        (4, 5, GoalStatus::Succeeded),
    ] {
        goals.handle_offer(goal(number));
        goals.handle_acceptance(goal(number), stamp(sec), status != GoalStatus::Accepted);
        if status.is_end() {
            goals.handle_end(at(0), goal(number), outcome(status, 8)).unwrap();
        }
    }
    let named = |goals: &Goals, id, sec| {
        let (code, named) = goals.cancelable(goal(id), stamp(sec));
        (code, named.iter().map(|id| u128::from_le_bytes(id.0)).collect::<Vec<_>>())
    };
    assert_eq!(named(&goals, 2, 0), (CancelCode::None, vec![2]));
    assert_eq!(named(&goals, 4, 0), (CancelCode::Ended, vec![]));
    assert_eq!(named(&goals, 5, 0), (CancelCode::UnknownGoal, vec![]));
    assert_eq!(named(&goals, 0, 20), (CancelCode::None, vec![1, 2]));
    assert_eq!(named(&goals, 3, 10), (CancelCode::None, vec![1, 3]));
    assert_eq!(named(&goals, 0, 9), (CancelCode::None, vec![]));
    assert_eq!(named(&goals, 0, 0), (CancelCode::None, vec![1, 2, 3]));
    goals.handle_step(goal(1), GoalStatus::Canceling).unwrap();
    assert_eq!(named(&goals, 0, 0), (CancelCode::None, vec![2, 3]));
    // Once more, by its number: a copy of the request that a person sends.
    assert_eq!(named(&goals, 1, 0), (CancelCode::None, vec![1]));
}

#[test]
fn states_are_reported_once_after_each_change_in_the_order_of_acceptance() {
    let mut goals = goals();
    assert_eq!(goals.poll_statuses(), None);
    for (number, sec) in [(1, 20), (2, 10)] {
        goals.handle_offer(goal(number));
        goals.handle_acceptance(goal(number), stamp(sec), true);
    }
    let executing = GoalStatus::Executing;
    let both = vec![(goal(2), stamp(10), executing), (goal(1), stamp(20), executing)];
    assert_eq!(goals.poll_statuses(), Some(both));
    assert_eq!(goals.poll_statuses(), None);
    goals.handle_withdrawal(goal(2));
    assert_eq!(goals.poll_statuses(), Some(vec![(goal(1), stamp(20), executing)]));
}

message! {
    #[derive(serde::Serialize, serde::Deserialize)]
    struct Goal: "demo/action/Count_Goal" { to: u32 }
}
message! {
    #[derive(Default, serde::Serialize, serde::Deserialize)]
    struct Reached: "demo/action/Count_Result" { reached: Vec<u32> }
}
message! {
    #[derive(serde::Serialize, serde::Deserialize)]
    struct Feedback: "demo/action/Count_Feedback" { at: u32 }
}
message! {
    #[derive(serde::Serialize, serde::Deserialize)]
    struct SendGoal: "demo/action/Count_SendGoal_Request" { goal_id: UUID, goal: Goal }
}
message! {
    #[derive(serde::Serialize, serde::Deserialize)]
    struct Accepted: "demo/action/Count_SendGoal_Response" { accepted: bool, stamp: Time }
}
message! {
    #[derive(serde::Serialize, serde::Deserialize)]
    struct GetResult: "demo/action/Count_GetResult_Request" { goal_id: UUID }
}
message! {
    #[derive(serde::Serialize, serde::Deserialize)]
    struct Got: "demo/action/Count_GetResult_Response" { status: i8, result: Reached }
}
message! {
    #[derive(serde::Serialize, serde::Deserialize)]
    struct FeedbackMessage: "demo/action/Count_FeedbackMessage" { goal_id: UUID, feedback: Feedback }
}

#[test]
fn types_are_those_that_the_generator_derives() {
    let types = ActionTypes::of::<(Goal, Reached, Feedback)>().unwrap();
    let got = [
        &types.send_goal.request,
        &types.send_goal.response,
        &types.get_result.request,
        &types.get_result.response,
        &types.feedback,
    ];
    let hashes = [SendGoal::HASH, Accepted::HASH, GetResult::HASH, Got::HASH, FeedbackMessage::HASH];
    assert_eq!(got.map(|one| one.hash), hashes);
    assert_eq!(types.feedback.name, "demo/action/Count_FeedbackMessage");
    let any = ActionTypes::named("demo/action/Count");
    assert_eq!(any.get_result.response.name, types.get_result.response.name);
    let wrong = ActionTypes::of::<(Goal, Reached, Time)>().unwrap_err().to_string();
    assert!(wrong.contains("builtin_interfaces/msg/Time") && wrong.contains("rename"), "{wrong}");
}

#[test]
fn names_are_those_of_ros_2() {
    let names = ActionNames::of("/arm/reach");
    assert_eq!(names, ActionNames::of("arm/reach"));
    assert_eq!(names.send_goal, "/arm/reach/_action/send_goal");
    assert_eq!(names.status, "/arm/reach/_action/status");
    assert_eq!(ActionNames::action_of(&names.send_goal).as_deref(), Some("/arm/reach"));
    assert_eq!(ActionNames::action_of("/_action/send_goal"), None);
    assert_eq!(ActionNames::action_of(&names.get_result), None);
    let id = GoalId::random().unwrap();
    assert_eq!(GoalId::parse(&id.to_string()), Some(id));
    assert_eq!((id.to_string().len(), id.to_string().as_bytes()[14]), (36, b'4'));
    for wrong in ["", "1234", &"x".repeat(32), &"é".repeat(16), &id.to_string()[1..]] {
        assert_eq!(GoalId::parse(wrong), None, "{wrong}");
    }
    for status in ALL {
        assert_eq!(GoalStatus::of_number(status as i8), Some(status));
    }
    assert_eq!((GoalStatus::of_number(-1), GoalStatus::of_number(7)), (None, None));
}
