//! `noctule_action_*` and `noctule_goal_*`.

use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;
use std::time::Duration;

use noctule::Node;
use noctule::action::{
    ActionTypes, GoalEvent, GoalId, GoalStamp, GoalStatus, RawActionClient, RawActionServer, RawActiveGoal,
    RawGoal, RawResult,
};

use crate::argument;
use crate::failure::{Failure, NOTHING, OK, Outcome, guard};
use crate::node::{NodeHandle, close};
use crate::parameter::Context;
use crate::subscriber::Info;

/// `noctule_action_client_t`.
pub struct ActionClientHandle {
    client: RawActionClient,
    // After the client: its thread announces that the client has gone.
    _node: Arc<Node>,
}

/// `noctule_action_server_t`.
pub struct ActionServerHandle {
    server: RawActionServer,
    // After the server: its thread announces that the server has gone.
    _node: Arc<Node>,
}

/// `noctule_goal_t`.
pub struct GoalHandle {
    goal: Stage,
    bytes: Vec<u8>,
    _node: Arc<Node>,
}

enum Stage {
    Offered(RawGoal),
    Active(RawActiveGoal),
    /// Rejected, or its client has gone.
    Over,
}

/// `noctule_goal_message_t`.
pub enum MessageHandle {
    /// A `…_FeedbackMessage`.
    Feedback(Vec<u8>),
    /// A `…_GetResult_Response`.
    Result(Box<RawResult>),
}

/// `noctule_cancel_callback_t`
type OnCancel = unsafe extern "C" fn(context: *mut c_void, goal: *const u8) -> c_int;

/// `noctule_action_options_t`.
#[repr(C)]
pub struct ActionOptions {
    type_name: *const c_char,
    send_goal_request_hash: u64,
    send_goal_response_hash: u64,
    get_result_request_hash: u64,
    get_result_response_hash: u64,
    feedback_hash: u64,
    payload_bytes_max: u32,
    deadline_ns: i64,
    result_deadline_ns: i64,
    keep_results_ns: i64,
    empty_result: *const c_void,
    empty_result_bytes: usize,
    on_cancel: Option<OnCancel>,
    context: *mut c_void,
}

/// `noctule_goal_event_t`.
#[repr(C)]
pub struct Event {
    kind: c_int,
    goal: [u8; 16],
    status: c_int,
    stamp_ns: i64,
    message: *mut MessageHandle,
    info: Info,
}

const ACCEPTED: c_int = 1;
const STATUS: c_int = 2;
const FEEDBACK: c_int = 3;
const RESULT: c_int = 4;
const FAILED: c_int = 5;
const CANCEL: c_int = 6;

/// Settings by the options; those of the other end are without effect.
struct Settings {
    types: ActionTypes,
    payload_bytes_max: Option<u32>,
    deadline: Option<Duration>,
    result_deadline: Option<Duration>,
    keep_results: Option<Duration>,
    empty_result: Option<Vec<u8>>,
    on_cancel: Option<(OnCancel, Context)>,
}

/// # Safety
/// As in the header.
unsafe fn settings(options: *const ActionOptions) -> Result<Settings, Failure> {
    // SAFETY: null or the caller's options.
    let options = unsafe { argument::shared(options, "options") }?;
    // SAFETY: null or the caller's text.
    let name = unsafe { argument::text(options.type_name, "type_name") }?;
    let mut types = ActionTypes::named(name);
    types.send_goal.request.hash = options.send_goal_request_hash;
    types.send_goal.response.hash = options.send_goal_response_hash;
    types.get_result.request.hash = options.get_result_request_hash;
    types.get_result.response.hash = options.get_result_response_hash;
    types.feedback.hash = options.feedback_hash;
    let time = |ns: i64, what: &str| match ns {
        0 => Ok(None),
        ns if ns < 0 => {
            Err(Failure::argument(format!("{what} is {ns}; it must be positive, or 0 for its default")))
        }
        ns => Ok(Some(Duration::from_nanos(ns as u64))),
    };
    let empty_result = match options.empty_result.is_null() {
        true => None,
        false => {
            let (first, count) = (options.empty_result.cast::<u8>(), options.empty_result_bytes);
            // SAFETY: the caller's bytes.
            Some(unsafe { argument::slice(first, count, "empty_result") }?.to_vec())
        }
    };
    Ok(Settings {
        types,
        payload_bytes_max: (options.payload_bytes_max > 0).then_some(options.payload_bytes_max),
        deadline: time(options.deadline_ns, "deadline_ns")?,
        result_deadline: time(options.result_deadline_ns, "result_deadline_ns")?,
        keep_results: time(options.keep_results_ns, "keep_results_ns")?,
        empty_result,
        on_cancel: options.on_cancel.map(|call| (call, Context(options.context))),
    })
}

/// # Safety
/// As in the header.
unsafe fn goal_id(goal: *const u8) -> Result<GoalId, Failure> {
    if goal.is_null() {
        return Ok(GoalId::default());
    }
    let mut id = GoalId::default();
    // SAFETY: the caller's 16 bytes.
    id.0.copy_from_slice(unsafe { argument::slice(goal, 16, "goal") }?);
    Ok(id)
}

/// Opens a client.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_action_client_open(
    node: *const NodeHandle,
    action: *const c_char,
    options: *const ActionOptions,
    client: *mut *mut ActionClientHandle,
) -> c_int {
    guard(|| {
        // SAFETY: the memory of the caller for the result.
        let handle = unsafe { argument::exclusive(client, "client") }?;
        *handle = std::ptr::null_mut();
        // SAFETY: null or the caller's handle and text.
        let (node, action) = unsafe { (argument::shared(node, "node")?, argument::text(action, "action")?) };
        // SAFETY: null or the caller's options.
        let settings = unsafe { settings(options) }?;
        let mut builder = node.0.raw_action_client(action, settings.types);
        if let Some(bytes) = settings.payload_bytes_max {
            builder = builder.payload_bytes_max(bytes);
        }
        if let Some(deadline) = settings.deadline {
            builder = builder.deadline(deadline);
        }
        if let Some(deadline) = settings.result_deadline {
            builder = builder.result_deadline(deadline);
        }
        let client = builder.open()?;
        *handle = Box::into_raw(Box::new(ActionClientHandle { client, _node: Arc::clone(&node.0) }));
        Ok(OK)
    })
}

/// Does something with a client.
///
/// # Safety
/// As in the header.
unsafe fn with_client(
    client: *mut ActionClientHandle,
    act: impl FnOnce(&mut RawActionClient) -> Outcome,
) -> c_int {
    guard(|| {
        // SAFETY: null or the caller's handle, which no other thread uses meanwhile.
        act(&mut unsafe { argument::exclusive(client, "client") }?.client)
    })
}

/// Sends a goal.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_action_send(
    client: *mut ActionClientHandle,
    bytes: *const c_void,
    length_bytes: usize,
    result_deadline_ns: i64,
    goal: *mut u8,
) -> c_int {
    let send = |client: &mut RawActionClient| {
        // SAFETY: the caller's bytes, and its memory for the number, or null.
        let (bytes, goal) = unsafe {
            let wanted = if goal.is_null() { None } else { Some(argument::buffer(goal, 16)?) };
            (argument::slice(bytes.cast::<u8>(), length_bytes, "bytes")?, wanted)
        };
        let deadline = argument::timeout(result_deadline_ns).filter(|deadline| !deadline.is_zero());
        let id = client.start(bytes, deadline)?;
        if let Some(goal) = goal {
            goal.copy_from_slice(&id.0);
        }
        Ok(OK)
    };
    // SAFETY: passed on.
    unsafe { with_client(client, send) }
}

/// Waits for what becomes of a goal.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_action_next(
    client: *mut ActionClientHandle,
    timeout_ns: i64,
    event: *mut Event,
) -> c_int {
    let next = |client: &mut RawActionClient| {
        // SAFETY: the memory of the caller for the result.
        let event = unsafe { argument::exclusive(event, "event") }?;
        (event.kind, event.goal, event.status, event.stamp_ns) = (0, [0; 16], 0, 0);
        event.message = std::ptr::null_mut();
        let Some((goal, what)) = client.next(argument::timeout(timeout_ns))? else { return Ok(NOTHING) };
        event.goal = goal.0;
        match what {
            GoalEvent::Accepted { stamp, .. } => (event.kind, event.stamp_ns) = (ACCEPTED, ns(stamp)),
            GoalEvent::Status(status) => (event.kind, event.status) = (STATUS, status as c_int),
            GoalEvent::Feedback { bytes, info } => {
                event.kind = FEEDBACK;
                event.info = Info::new(&info, bytes.as_ptr());
                event.message = Box::into_raw(Box::new(MessageHandle::Feedback(bytes)));
            }
            GoalEvent::Result(result) => {
                (event.kind, event.status) = (RESULT, result.status() as c_int);
                event.info = Info::new(result.info(), result.bytes().as_ptr());
                event.message = Box::into_raw(Box::new(MessageHandle::Result(Box::new(result))));
            }
            GoalEvent::Failed(why) => {
                event.kind = FAILED;
                return Err(why.into());
            }
            GoalEvent::Cancel(answer) => {
                event.kind = CANCEL;
                event.status = answer?.code as c_int;
            }
        }
        Ok(OK)
    };
    // SAFETY: passed on.
    unsafe { with_client(client, next) }
}

fn ns(stamp: GoalStamp) -> i64 {
    i64::from(stamp.sec) * 1_000_000_000 + i64::from(stamp.nanosec)
}

/// Requests the cancellation of goals.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_action_cancel(
    client: *mut ActionClientHandle,
    goal: *const u8,
    up_to_ns: i64,
) -> c_int {
    let cancel = |client: &mut RawActionClient| {
        let sec = i32::try_from(up_to_ns.div_euclid(1_000_000_000))
            .map_err(|_| Failure::argument(format!("up_to_ns is {up_to_ns}, which no stamp is")))?;
        let stamp = GoalStamp { sec, nanosec: up_to_ns.rem_euclid(1_000_000_000) as u32 };
        // SAFETY: null or the caller's 16 bytes.
        client.start_cancel(unsafe { goal_id(goal) }?, stamp)?;
        Ok(OK)
    };
    // SAFETY: passed on.
    unsafe { with_client(client, cancel) }
}

/// Waits for a server.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_action_wait_for_server(
    client: *mut ActionClientHandle,
    timeout_ns: i64,
) -> c_int {
    let wait = |client: &mut RawActionClient| {
        let timeout = argument::timeout(timeout_ns).unwrap_or(Duration::MAX);
        Ok(if client.wait_for_server(timeout)? { OK } else { NOTHING })
    };
    // SAFETY: passed on.
    unsafe { with_client(client, wait) }
}

/// Opens a server.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_action_server_open(
    node: *const NodeHandle,
    action: *const c_char,
    options: *const ActionOptions,
    server: *mut *mut ActionServerHandle,
) -> c_int {
    guard(|| {
        // SAFETY: the memory of the caller for the result.
        let handle = unsafe { argument::exclusive(server, "server") }?;
        *handle = std::ptr::null_mut();
        // SAFETY: null or the caller's handle and text.
        let (node, action) = unsafe { (argument::shared(node, "node")?, argument::text(action, "action")?) };
        // SAFETY: null or the caller's options.
        let settings = unsafe { settings(options) }?;
        let mut builder = node.0.raw_action_server(action, settings.types);
        if let Some(bytes) = settings.payload_bytes_max {
            builder = builder.payload_bytes_max(bytes);
        }
        if let Some(kept) = settings.keep_results {
            builder = builder.keep_results(kept);
        }
        if let Some(response) = settings.empty_result {
            builder = builder.empty_result(&response);
        }
        if let Some((call, context)) = settings.on_cancel {
            // SAFETY: the caller's function, with 16 bytes that live through the call.
            builder = builder.on_cancel(move |id| unsafe { call(context.get(), id.0.as_ptr()) } == 0);
        }
        let server = builder.open()?;
        *handle = Box::into_raw(Box::new(ActionServerHandle { server, _node: Arc::clone(&node.0) }));
        Ok(OK)
    })
}

/// Waits for a goal.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_action_server_next(
    server: *const ActionServerHandle,
    timeout_ns: i64,
    goal: *mut *mut GoalHandle,
    info: *mut Info,
) -> c_int {
    guard(|| {
        // SAFETY: the memory of the caller for the results.
        let (handle, info) =
            unsafe { (argument::exclusive(goal, "goal")?, argument::exclusive(info, "info")?) };
        *handle = std::ptr::null_mut();
        // SAFETY: null or the caller's handle.
        let server = unsafe { argument::shared(server, "server") }?;
        let Some(offered) = server.server.next(argument::timeout(timeout_ns)) else { return Ok(NOTHING) };
        let bytes = offered.bytes().to_vec();
        *info = Info::new(offered.info(), bytes.as_ptr());
        let node = Arc::clone(&server._node);
        *handle = Box::into_raw(Box::new(GoalHandle { goal: Stage::Offered(offered), bytes, _node: node }));
        Ok(OK)
    })
}

/// Does something with a goal that waits to be accepted.
///
/// # Safety
/// As in the header.
unsafe fn decide(
    goal: *mut GoalHandle,
    act: impl FnOnce(RawGoal) -> Result<Stage, noctule::action::GoalError>,
) -> c_int {
    guard(|| {
        // SAFETY: null or the caller's handle, which no other thread uses meanwhile.
        let handle = unsafe { argument::exclusive(goal, "goal") }?;
        match std::mem::replace(&mut handle.goal, Stage::Over) {
            Stage::Offered(offered) => {
                handle.goal = act(offered)?;
                Ok(OK)
            }
            stage => {
                handle.goal = stage;
                Err(Failure::argument("the goal was accepted or rejected before"))
            }
        }
    })
}

/// Accepts a goal.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_goal_accept(goal: *mut GoalHandle, execute: u8) -> c_int {
    let accept = |offered: RawGoal| {
        Ok(Stage::Active(if execute != 0 { offered.accept()? } else { offered.defer()? }))
    };
    // SAFETY: passed on.
    unsafe { decide(goal, accept) }
}

/// Rejects a goal.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_goal_reject(goal: *mut GoalHandle) -> c_int {
    // SAFETY: passed on.
    unsafe { decide(goal, |offered| offered.reject().map(|()| Stage::Over)) }
}

/// Does something with a goal that was accepted.
///
/// # Safety
/// As in the header.
unsafe fn with_goal(goal: *mut GoalHandle, act: impl FnOnce(&mut RawActiveGoal) -> Outcome) -> c_int {
    guard(|| {
        // SAFETY: null or the caller's handle, which no other thread uses meanwhile.
        match &mut unsafe { argument::exclusive(goal, "goal") }?.goal {
            Stage::Active(active) => act(active),
            _ => Err(Failure::argument("the goal is not accepted")),
        }
    })
}

/// Executes a goal that was accepted for later.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_goal_execute(goal: *mut GoalHandle) -> c_int {
    let execute = |active: &mut RawActiveGoal| {
        active.execute()?;
        Ok(OK)
    };
    // SAFETY: passed on.
    unsafe { with_goal(goal, execute) }
}

/// The number of a goal.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_goal_id(goal: *const GoalHandle, id: *mut u8) -> c_int {
    guard(|| {
        // SAFETY: null or the caller's handle, and room for 16 bytes.
        let (handle, id) = unsafe { (argument::shared(goal, "goal")?, argument::buffer(id, 16)?) };
        // Requests shorter than that do not come.
        id.copy_from_slice(handle.bytes.get(4..20).unwrap_or(&[0; 16]));
        Ok(OK)
    })
}

/// Waits until a goal is to be canceled.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_goal_wait_for_cancel(goal: *mut GoalHandle, timeout_ns: i64) -> c_int {
    let wait = |active: &mut RawActiveGoal| {
        Ok(if active.wait_for_cancel(argument::timeout(timeout_ns)) { OK } else { NOTHING })
    };
    // SAFETY: passed on.
    unsafe { with_goal(goal, wait) }
}

/// Publishes feedback.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_goal_feedback(
    goal: *mut GoalHandle,
    bytes: *const c_void,
    length_bytes: usize,
) -> c_int {
    let feedback = |active: &mut RawActiveGoal| {
        // SAFETY: the caller's bytes.
        active.feedback(unsafe { argument::slice(bytes.cast::<u8>(), length_bytes, "bytes") }?)?;
        Ok(OK)
    };
    // SAFETY: passed on.
    unsafe { with_goal(goal, feedback) }
}

/// Ends a goal.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_goal_end(
    goal: *mut GoalHandle,
    status: c_int,
    bytes: *const c_void,
    length_bytes: usize,
) -> c_int {
    let end = |active: &mut RawActiveGoal| {
        let known = i8::try_from(status).ok().and_then(GoalStatus::of_number).filter(|known| known.is_end());
        let known = known.ok_or_else(|| {
            Failure::argument(format!("status is {status}; 4 is succeeded, 5 canceled, 6 aborted"))
        })?;
        // SAFETY: the caller's bytes.
        active.end(known, unsafe { argument::slice(bytes.cast::<u8>(), length_bytes, "bytes") }?)?;
        Ok(OK)
    };
    // SAFETY: passed on.
    unsafe { with_goal(goal, end) }
}

/// Gives a message back.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_goal_message_release(message: *mut MessageHandle) {
    // SAFETY: null or a handle that the caller gives back.
    unsafe { close(message) }
}

/// Closes a goal.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_goal_close(goal: *mut GoalHandle) {
    // SAFETY: null or a handle that the caller gives back.
    unsafe { close(goal) }
}

/// Closes a client.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_action_client_close(client: *mut ActionClientHandle) {
    // SAFETY: null or a handle that the caller gives back.
    unsafe { close(client) }
}

/// Closes a server.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_action_server_close(server: *mut ActionServerHandle) {
    // SAFETY: null or a handle that the caller gives back.
    unsafe { close(server) }
}
