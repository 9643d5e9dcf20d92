//! The thread of an action's server.

use std::sync::atomic::Ordering;
use std::time::Duration;

use noctule_formats::{decode_cdr, encode_cdr};

use super::{Decision, Offer, Served, State};
use crate::action::goals::{CancelCode, Offered, Outcome, Wanted, count};
use crate::action::types::{GOAL_BYTES, STATUS_AT};
use crate::action::{GoalId, GoalStamp, GoalStatus, goal_info, of_goal_info};
use crate::error::TakeError;
use crate::generated::action_msgs::srv;
use crate::request::{RawRequest, RawServer, RequestId};
use crate::subscriber::{Subscriber, WaitSet};

/// Requests of one kind that are taken before the others have their turn.
const TURN: usize = 64;
/// A server whose samples are all held elsewhere is asked again after this.
const HELD_PAUSE: Duration = Duration::from_millis(1);
const NONE: Option<Duration> = Some(Duration::ZERO);

/// The three services, in the order of the array that is waited on.
const RESULTS: usize = 0;
const CANCELS: usize = 1;
const GOALS: usize = 2;

/// Serves until the server is dropped.
pub(super) fn run(shared: &Served, mut servers: [RawServer; 3], mut set: WaitSet) {
    loop {
        let is_over = shared.is_over.load(Ordering::Acquire);
        let taken = serve(shared, &mut servers);
        let mut state = shared.lock();
        settle(shared, &mut state, &mut servers);
        if is_over {
            break;
        }
        let now = state.feedback.now();
        let timeout = state.goals.next_time().map(|at| Duration::from_nanos((at - now).ns().max(0) as u64));
        drop(state);
        match taken {
            Ok(()) => drop(set.wait(&mut servers, timeout)),
            // Its samples are held elsewhere, and would be found again at once.
            Err(_) => drop(set.wait::<&mut Subscriber>(&mut [], Some(HELD_PAUSE))),
        }
    }
    shared.has_news.notify_all();
}

/// Takes what has come.
fn serve(shared: &Served, servers: &mut [RawServer; 3]) -> Result<(), TakeError> {
    for _ in 0..TURN {
        let Some(request) = servers[GOALS].receive(NONE)? else { break };
        offer(shared, &mut servers[GOALS], request);
    }
    for _ in 0..TURN {
        let Some(request) = servers[RESULTS].receive(NONE)? else { break };
        result(shared, &mut servers[RESULTS], &request);
    }
    for _ in 0..TURN {
        let Some(request) = servers[CANCELS].receive(NONE)? else { break };
        cancel(shared, &mut servers[CANCELS], &request);
    }
    Ok(())
}

/// Carries out the program's decisions, sends results of goals that have ended, and drops those that have expired.
fn settle(shared: &Served, state: &mut State, servers: &mut [RawServer; 3]) {
    while let Some(decision) = state.decisions.pop_front() {
        decide(state, &mut servers[GOALS], decision);
    }
    let now = state.feedback.now();
    state.goals.handle_time(now);
    while let Some((request, outcome)) = state.goals.poll_answer() {
        answer(shared, &mut servers[RESULTS], request, &outcome);
    }
    state.publish_status();
    shared.has_news.notify_all();
}

/// The number of the goal at the start of a message in CDR.
fn goal_id(bytes: &[u8]) -> Option<GoalId> {
    Some(GoalId(bytes.get(STATUS_AT..GOAL_BYTES)?.try_into().ok()?))
}

/// A goal has come.
fn offer(shared: &Served, server: &mut RawServer, request: RawRequest) {
    let mut state = shared.lock();
    let why = match goal_id(request.bytes()) {
        None => {
            count(&mut state.goals.counters.malformed);
            format!("{} bytes are no request to send a goal", request.bytes().len())
        }
        Some(id) if id.is_none() => {
            count(&mut state.goals.counters.malformed);
            "a goal without a number; give it a UUID".to_owned()
        }
        Some(id) => match state.goals.handle_offer(id) {
            Offered::New => {
                let (request_id, info) = (request.id(), *request.info());
                let bytes = request.into_bytes();
                state.offers.push_back(Offer { id, request: request_id, bytes, info });
                shared.has_news.notify_all();
                return;
            }
            Offered::Duplicate => {
                format!("goal {id} is known here already; give each goal a number of its own")
            }
            Offered::Full => {
                format!("{} goals are under way here; send it later", crate::action::GOALS_MAX)
            }
        },
    };
    drop(state);
    fail(server, request.id(), &why);
}

/// The program has accepted or rejected a goal.
fn decide(state: &mut State, server: &mut RawServer, decision: Decision) {
    let Decision { id, request, accepted, done } = decision;
    let stamp = accepted.map_or(GoalStamp::default(), |(stamp, _)| stamp);
    match accepted {
        Some((stamp, is_begun)) => state.goals.handle_acceptance(id, stamp, is_begun),
        None => state.goals.handle_rejection(id),
    };
    let mut bytes = Vec::new();
    // Two fields of known size.
    let _ = encode_cdr(&(accepted.is_some(), stamp.to_message()), &mut bytes);
    let replied = server.reply(request, &bytes);
    if replied.is_err() && accepted.is_some() {
        state.goals.handle_withdrawal(id);
    }
    // The program waits for it.
    let _ = done.send(replied);
}

/// A client requests the result of a goal.
fn result(shared: &Served, server: &mut RawServer, request: &RawRequest) {
    let mut state = shared.lock();
    let Some(id) = goal_id(request.bytes()) else {
        count(&mut state.goals.counters.malformed);
        drop(state);
        return fail(server, request.id(), &format!("{} bytes name no goal", request.bytes().len()));
    };
    let mut wanted = state.goals.handle_request(id, request.id());
    if wanted == Wanted::Full {
        state.goals.handle_gone(|waiting| server.is_cancelled(waiting));
        wanted = state.goals.handle_request(id, request.id());
    }
    drop(state);
    match wanted {
        Wanted::Waits => {}
        Wanted::Answer(outcome) => answer(shared, server, request.id(), &outcome),
        Wanted::Unknown => match shared.empty_response(GoalStatus::Unknown) {
            // The client may have gone.
            Some(response) => drop(server.reply(request.id(), &response)),
            None => fail(
                server,
                request.id(),
                &format!(
                    "goal {id} is not known here; it was never accepted, or its result is kept no longer"
                ),
            ),
        },
        Wanted::Full => fail(server, request.id(), "too many requests wait for results here; ask later"),
    }
}

fn answer(shared: &Served, server: &mut RawServer, request: RequestId, outcome: &Outcome) {
    match outcome.response.clone().or_else(|| shared.empty_response(outcome.status)) {
        // The client may have gone.
        Some(response) => drop(server.reply(request, &response)),
        None => fail(server, request, &format!("the goal is {}, and left no result", outcome.status)),
    }
}

/// A client requests that goals be canceled.
fn cancel(shared: &Served, server: &mut RawServer, request: &RawRequest) {
    let message = match decode_cdr::<srv::CancelGoal_Request>(request.bytes()) {
        Ok(message) => message,
        Err(why) => {
            count(&mut shared.lock().goals.counters.malformed);
            return fail(server, request.id(), &format!("the cancellation cannot be read: {why}"));
        }
    };
    let (id, stamp) = of_goal_info(&message.goal_info);
    let (mut code, named) = shared.lock().goals.cancelable(id, stamp);
    let has_named = !named.is_empty();
    let mut goals_canceling = Vec::new();
    for id in named {
        // Without the lock: the callback may look at the goal.
        if shared.on_cancel.as_ref().is_some_and(|callback| !callback(id)) {
            continue;
        }
        let mut state = shared.lock();
        // It may have ended meanwhile; if it is canceling already, that is as well.
        let _ = state.goals.handle_step(id, GoalStatus::Canceling);
        if state.goals.status(id) == GoalStatus::Canceling {
            goals_canceling.push(goal_info(id, state.goals.stamp(id)));
        }
    }
    if has_named && goals_canceling.is_empty() {
        code = CancelCode::Rejected;
    }
    shared.has_news.notify_all();
    let mut bytes = Vec::new();
    let response = srv::CancelGoal_Response { return_code: code as i8, goals_canceling };
    match encode_cdr(&response, &mut bytes) {
        // The client may have gone.
        Ok(()) => drop(server.reply(request.id(), &bytes)),
        Err(why) => fail(server, request.id(), &why.to_string()),
    }
}

fn fail(server: &mut RawServer, request: RequestId, why: &str) {
    // The client may have gone.
    let _ = server.fail(request, why);
}
