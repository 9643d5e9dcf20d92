//! `noctule.ActionClient`, `noctule.ActionServer`, and what they exchange.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use noctule::action::{
    ActionError, ActionTypes, GoalError, GoalEvent as Event, GoalId, GoalStamp, GoalStatus, RawActionClient,
    RawActionServer, RawActiveGoal, RawGoal,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::argument::{self, NoctuleError, closed, not_opened, not_taken};
use crate::request::{NoReplyError, OfNode, age, lock, no_reply, not_replied, not_served};
use crate::sample::Age;
use crate::waiting::wait;

/// Hashes of the types that are derived of an action: request and response of ``send_goal``, request and response of
/// ``get_result``, feedback.
pub(crate) type Hashes = (u64, u64, u64, u64, u64);

/// Sends goals of one action and follows them, with messages as bytes of CDR. Made by ``Node.action_client``. One thread at a time may use it.
#[pyclass(module = "noctule", frozen)]
pub(crate) struct ActionClient {
    open: Mutex<Option<OfNode<RawActionClient>>>,
}

/// Serves one action, with messages as bytes of CDR. Made by ``Node.action_server``.
#[pyclass(module = "noctule", frozen)]
pub(crate) struct ActionServer {
    open: Mutex<Option<OfNode<RawActionServer>>>,
}

/// Event in the life of a goal. ``bytes(event)`` is the CDR of feedback and of a result.
#[pyclass(module = "noctule", frozen)]
pub(crate) struct GoalEvent {
    kind: &'static str,
    goal: GoalId,
    status: Option<GoalStatus>,
    stamp_ns: Option<i64>,
    bytes: Vec<u8>,
    age: Option<Age>,
    cancel_code: Option<i8>,
    error: Option<PyErr>,
}

/// A goal at its server. ``bytes(goal)`` is the CDR of the request that sent it.
#[pyclass(module = "noctule", frozen)]
pub(crate) struct Goal {
    id: GoalId,
    bytes: Vec<u8>,
    age: Option<Age>,
    caller: String,
    stage: Mutex<Stage>,
}

enum Stage {
    Offered(RawGoal),
    Active(RawActiveGoal),
    Over,
}

pub(crate) fn types(name: &str, hashes: Hashes) -> ActionTypes {
    let mut types = ActionTypes::named(name);
    types.send_goal.request.hash = hashes.0;
    types.send_goal.response.hash = hashes.1;
    types.get_result.request.hash = hashes.2;
    types.get_result.response.hash = hashes.3;
    types.feedback.hash = hashes.4;
    types
}

pub(crate) fn no_action(error: &ActionError) -> PyErr {
    match error {
        ActionError::Service(error) => not_served(error),
        ActionError::Node(error) => not_opened(error),
        ActionError::System(_) => NoctuleError::new_err(error.to_string()),
        ActionError::TypeNames { .. } | ActionError::Format(_) => PyValueError::new_err(error.to_string()),
    }
}

fn no_goal(error: &GoalError) -> PyErr {
    match error {
        GoalError::Call(error) => no_reply(error),
        GoalError::Reply(error) => not_replied(error),
        GoalError::Take(error) => not_taken(error),
        GoalError::Full { .. } | GoalError::Random { .. } | GoalError::Closed { .. } => {
            NoctuleError::new_err(error.to_string())
        }
        GoalError::Rejected { .. } | GoalError::Unknown { .. } => NoReplyError::new_err(error.to_string()),
        _ => PyValueError::new_err(error.to_string()),
    }
}

fn goal_of(text: &str) -> PyResult<GoalId> {
    GoalId::parse(text).ok_or_else(|| PyValueError::new_err(format!("{text:?} is no number of a goal")))
}

impl ActionClient {
    pub(crate) fn new(client: RawActionClient, node: Arc<noctule::Node>) -> ActionClient {
        ActionClient { open: Mutex::new(Some((client, node))) }
    }
}

#[pymethods]
impl ActionClient {
    /// Send a goal, a ``…_SendGoal_Request``, and give its number; one by chance is taken if it is zero. ``result_deadline``: seconds from its acceptance,
    /// default the client's.
    #[pyo3(signature = (request, *, result_deadline=None))]
    fn start(&self, py: Python<'_>, request: &[u8], result_deadline: Option<f64>) -> PyResult<String> {
        let deadline = argument::timeout(result_deadline)?;
        let mut open = lock(&self.open, "client")?;
        let (client, _) = open.as_mut().ok_or_else(|| closed("client"))?;
        let goal = py.detach(|| client.start(request, deadline)).map_err(|error| no_goal(&error))?;
        Ok(goal.to_string())
    }

    /// Wait for what becomes of any goal, up to ``timeout`` seconds, or for ever; ``None`` when the time is over or no goal is followed.
    ///
    /// Other threads run meanwhile, and Ctrl-C is seen within 0.1 s.
    #[pyo3(signature = (timeout=None))]
    fn next(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Option<GoalEvent>> {
        let timeout = argument::timeout(timeout)?;
        let mut open = lock(&self.open, "client")?;
        let (client, _) = open.as_mut().ok_or_else(|| closed("client"))?;
        let next = wait(py, timeout, |step| {
            let next = py.detach(|| client.next(Some(step))).map_err(|error| no_goal(&error))?;
            Ok((next.is_some() || !client.is_following()).then_some(next))
        })?;
        Ok(next.flatten().map(|(goal, event)| GoalEvent::new(goal, event)))
    }

    /// Ask to cancel a goal of any client, by default all goals, and all that were accepted at ``up_to_ns`` since 1970 or before; the answer is
    /// an event under the number that is given back.
    #[pyo3(signature = (goal=None, *, up_to_ns=0))]
    fn cancel(&self, goal: Option<&str>, up_to_ns: i64) -> PyResult<String> {
        let goal = goal.map(goal_of).transpose()?.unwrap_or_default();
        let sec = i32::try_from(up_to_ns.div_euclid(1_000_000_000))
            .map_err(|_| PyValueError::new_err(format!("up_to_ns is {up_to_ns}, which no stamp is")))?;
        let stamp = GoalStamp { sec, nanosec: up_to_ns.rem_euclid(1_000_000_000) as u32 };
        let mut open = lock(&self.open, "client")?;
        let (client, _) = open.as_mut().ok_or_else(|| closed("client"))?;
        client.start_cancel(goal, stamp).map_err(|error| no_goal(&error))?;
        Ok(goal.to_string())
    }

    /// Wait for a server, up to ``timeout`` seconds; whether there is one.
    fn wait_for_server(&self, py: Python<'_>, timeout: f64) -> PyResult<bool> {
        let timeout = argument::timeout(Some(timeout))?.unwrap_or(Duration::ZERO);
        let mut open = lock(&self.open, "client")?;
        let (client, _) = open.as_mut().ok_or_else(|| closed("client"))?;
        let found = wait(py, Some(timeout), |step| {
            let is_there = py.detach(|| client.wait_for_server(step)).map_err(|error| no_goal(&error))?;
            Ok(is_there.then_some(()))
        })?;
        Ok(found.is_some())
    }

    /// Announce to other nodes that it is gone; its goals go on at their server. May be called twice.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let gone = lock(&self.open, "client")?.take();
        py.detach(|| drop(gone));
        Ok(())
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close(py)
    }
}

impl ActionServer {
    pub(crate) fn new(server: RawActionServer, node: Arc<noctule::Node>) -> ActionServer {
        ActionServer { open: Mutex::new(Some((server, node))) }
    }
}

#[pymethods]
impl ActionServer {
    /// Wait for the next goal, up to ``timeout`` seconds, or for ever; ``None`` when the time is over.
    ///
    /// Other threads run meanwhile, and Ctrl-C is seen within 0.1 s. One thread at a time may wait; each goal may then be used on another.
    #[pyo3(signature = (timeout=None))]
    fn next(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Option<Goal>> {
        let timeout = argument::timeout(timeout)?;
        let open = lock(&self.open, "server")?;
        let (server, _) = open.as_ref().ok_or_else(|| closed("server"))?;
        let goal = wait(py, timeout, |step| Ok(py.detach(|| server.next(Some(step)))))?;
        Ok(goal.map(Goal::new))
    }

    /// Announce to other nodes that it is gone; goals under way end with it. May be called twice.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let gone = lock(&self.open, "server")?.take();
        py.detach(|| drop(gone));
        Ok(())
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close(py)
    }
}

impl GoalEvent {
    fn new(goal: GoalId, event: Event) -> GoalEvent {
        let (status, stamp_ns, age, cancel_code, error) = (None, None, None, None, None);
        let bytes = Vec::new();
        let empty = GoalEvent { kind: "", goal, status, stamp_ns, bytes, age, cancel_code, error };
        match event {
            Event::Accepted { stamp, .. } => {
                let stamp_ns = Some(i64::from(stamp.sec) * 1_000_000_000 + i64::from(stamp.nanosec));
                GoalEvent { kind: "accepted", stamp_ns, ..empty }
            }
            Event::Status(status) => GoalEvent { kind: "status", status: Some(status), ..empty },
            Event::Feedback { bytes, info } => {
                GoalEvent { kind: "feedback", bytes, age: self::age(&info), ..empty }
            }
            Event::Result(result) => GoalEvent {
                kind: "result",
                status: Some(result.status()),
                bytes: result.bytes().to_vec(),
                age: self::age(result.info()),
                ..empty
            },
            Event::Failed(why) => GoalEvent { kind: "failed", error: Some(no_goal(&why)), ..empty },
            Event::Cancel(Ok(answer)) => {
                GoalEvent { kind: "cancel", cancel_code: Some(answer.code as i8), ..empty }
            }
            Event::Cancel(Err(why)) => GoalEvent { kind: "cancel", error: Some(no_goal(&why)), ..empty },
        }
    }
}

#[pymethods]
impl GoalEvent {
    /// ``"accepted"``, ``"status"``, ``"feedback"``, ``"result"``, ``"failed"`` or ``"cancel"``. The result and the failure are the last of a goal.
    #[getter]
    fn kind(&self) -> &'static str {
        self.kind
    }

    /// The goal's number; all zero: the answer to a cancellation of all goals.
    #[getter]
    fn goal(&self) -> String {
        self.goal.to_string()
    }

    /// Of a status and a result: ``"executing"``, ``"canceling"``, ``"succeeded"``, ``"canceled"``, ``"aborted"``.
    #[getter]
    fn status(&self) -> Option<&'static str> {
        self.status.map(GoalStatus::name)
    }

    /// Of an acceptance: the server's time of day, nanoseconds since 1970.
    #[getter]
    fn stamp_ns(&self) -> Option<i64> {
        self.stamp_ns
    }

    /// Of the answer to a cancellation: 0 goals are being canceled, 1 refused, 2 the goal is not known, 3 it has ended.
    #[getter]
    fn cancel_code(&self) -> Option<i8> {
        self.cancel_code
    }

    /// Of feedback and results: time since the server published it; ``None`` while its clock is not known yet.
    #[getter]
    fn age(&self) -> Option<Age> {
        self.age.clone()
    }

    /// Why it failed, or was not answered.
    #[getter]
    fn error(&self, py: Python<'_>) -> Option<PyErr> {
        self.error.as_ref().map(|error| error.clone_ref(py))
    }

    fn __bytes__<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.bytes)
    }
}

impl Goal {
    fn new(goal: RawGoal) -> Goal {
        Goal {
            id: goal.id(),
            bytes: goal.bytes().to_vec(),
            age: age(goal.info()),
            caller: goal.caller().to_string(),
            stage: Mutex::new(Stage::Offered(goal)),
        }
    }

    fn decide(
        &self,
        py: Python<'_>,
        act: impl FnOnce(RawGoal) -> Result<Stage, GoalError> + Send,
    ) -> PyResult<()> {
        py.detach(|| {
            let mut stage = self.stage.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            match std::mem::replace(&mut *stage, Stage::Over) {
                Stage::Offered(offered) => {
                    *stage = act(offered).map_err(|error| no_goal(&error))?;
                    Ok(())
                }
                other => {
                    *stage = other;
                    Err(PyValueError::new_err("the goal was accepted or rejected before"))
                }
            }
        })
    }

    fn with<T: Send>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&mut RawActiveGoal) -> Result<T, GoalError> + Send,
    ) -> PyResult<T> {
        py.detach(|| {
            let mut stage = self.stage.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            match &mut *stage {
                Stage::Active(active) => act(active).map_err(|error| no_goal(&error)),
                _ => Err(PyValueError::new_err("the goal is not accepted")),
            }
        })
    }
}

#[pymethods]
impl Goal {
    /// Its number.
    #[getter]
    fn id(&self) -> String {
        self.id.to_string()
    }

    /// Time since it was sent, when it was taken; ``None`` while the sender's clock is not known yet.
    #[getter]
    fn age(&self) -> Option<Age> {
        self.age.clone()
    }

    /// The sender's node, 32 hexadecimal digits.
    #[getter]
    fn caller(&self) -> String {
        self.caller.clone()
    }

    /// Accept it and execute it, now or, with ``False``, later. Raises ``NoReplyError`` if its client waits no longer; it is as if it had never come.
    #[pyo3(signature = (execute=true))]
    fn accept(&self, py: Python<'_>, execute: bool) -> PyResult<()> {
        self.decide(py, |offered| {
            Ok(Stage::Active(if execute { offered.accept()? } else { offered.defer()? }))
        })
    }

    /// Reject it.
    fn reject(&self, py: Python<'_>) -> PyResult<()> {
        self.decide(py, |offered| offered.reject().map(|()| Stage::Over))
    }

    /// Execute a goal that was accepted for later.
    fn execute(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, RawActiveGoal::execute)
    }

    /// Wait until it is to be canceled, up to ``timeout`` seconds; whether it is.
    #[pyo3(signature = (timeout=0.0))]
    fn wait_for_cancel(&self, py: Python<'_>, timeout: f64) -> PyResult<bool> {
        let timeout = argument::timeout(Some(timeout))?.unwrap_or(Duration::ZERO);
        let asked = wait(py, Some(timeout), |step| {
            Ok(self.with(py, |active| Ok(active.wait_for_cancel(Some(step))))?.then_some(()))
        })?;
        Ok(asked.is_some())
    }

    /// Publish feedback, a ``…_FeedbackMessage``; the goal's number is written into it.
    fn feedback(&self, py: Python<'_>, message: &[u8]) -> PyResult<()> {
        self.with(py, |active| active.feedback(message))
    }

    /// End it as ``"succeeded"``, ``"aborted"`` or, if it is to be canceled, ``"canceled"``, with a ``…_GetResult_Response``.
    fn end(&self, py: Python<'_>, status: &str, response: &[u8]) -> PyResult<()> {
        let ends = [GoalStatus::Succeeded, GoalStatus::Aborted, GoalStatus::Canceled];
        let Some(status) = ends.into_iter().find(|end| end.name() == status) else {
            let sentence =
                format!("a goal does not end as {status:?}, but as succeeded, aborted or canceled");
            return Err(PyValueError::new_err(sentence));
        };
        self.with(py, |active| active.end(status, response))
    }

    /// Reject it if it was not accepted, abort it if it was not ended. May be called twice.
    fn close(&self, py: Python<'_>) {
        py.detach(|| {
            let mut stage = self.stage.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            *stage = Stage::Over;
        });
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) {
        self.close(py);
    }

    fn __bytes__<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.bytes)
    }
}
