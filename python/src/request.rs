//! `noctule.Client`, `noctule.Server`, and what they exchange.

use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::time::Duration;

use noctule::request::{RawClient, RawReply, RawRequest, RawServer, ReplyError, ServiceError};
use noctule::{CallError, SampleInfo};
use noctule_timebase::Span;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::argument::{self, NoctuleError, closed, not_opened, not_taken};
use crate::sample::Age;
use crate::waiting::{LOOK_UP, wait};

pyo3::create_exception!(
    noctule,
    NoReplyError,
    NoctuleError,
    "A call has no response, or a reply came too late: one sentence that says why."
);

/// With the node that it belongs to: the last of them ends the node's thread.
pub(crate) type OfNode<T> = (T, Arc<noctule::Node>);

/// Calls one service, with messages as bytes of CDR. Made by ``Node.client``. One thread at a time may use it.
#[pyclass(module = "noctule", frozen)]
pub(crate) struct Client {
    open: Mutex<Option<OfNode<RawClient>>>,
}

/// Serves one service, with messages as bytes of CDR. Made by ``Node.server``. One thread at a time may use it.
#[pyclass(module = "noctule", frozen)]
pub(crate) struct Server {
    open: Mutex<Option<OfNode<RawServer>>>,
}

/// A response. ``bytes(reply)`` is its CDR.
#[pyclass(module = "noctule", frozen)]
pub(crate) struct Reply(RawReply);

/// A request. ``bytes(request)`` is its CDR.
#[pyclass(module = "noctule", frozen)]
pub(crate) struct Request(RawRequest);

pub(crate) fn lock<'a, T>(open: &'a Mutex<Option<T>>, what: &str) -> PyResult<MutexGuard<'a, Option<T>>> {
    match open.try_lock() {
        Ok(open) => Ok(open),
        Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => Err(NoctuleError::new_err(format!(
            "another thread is using this {what}; open one for each thread"
        ))),
    }
}

pub(crate) fn not_served(error: &ServiceError) -> PyErr {
    match error {
        ServiceError::Node(error) => not_opened(error),
        ServiceError::Name { .. } => PyValueError::new_err(error.to_string()),
    }
}

pub(crate) fn no_reply(error: &CallError) -> PyErr {
    match error {
        CallError::Publish(_) | CallError::NoTime { .. } | CallError::Unknown { .. } => {
            PyValueError::new_err(error.to_string())
        }
        CallError::Take(_) | CallError::Full { .. } => NoctuleError::new_err(error.to_string()),
        _ => NoReplyError::new_err(error.to_string()),
    }
}

pub(crate) fn not_replied(error: &ReplyError) -> PyErr {
    match error {
        ReplyError::Publish(_) | ReplyError::Twice { .. } => PyValueError::new_err(error.to_string()),
        _ => NoReplyError::new_err(error.to_string()),
    }
}

pub(crate) fn age(info: &SampleInfo) -> Option<Age> {
    let age = info.age()?;
    Some(Age { ns: age.span.ns(), bound_ns: age.bound.map(Span::ns), sigma_ns: age.sigma.map(Span::ns) })
}

impl Client {
    pub(crate) fn new(client: RawClient, node: Arc<noctule::Node>) -> Client {
        Client { open: Mutex::new(Some((client, node))) }
    }
}

#[pymethods]
impl Client {
    /// Send a request and wait for its response; ``deadline``: seconds, default the client's.
    ///
    /// Other threads run meanwhile, and Ctrl-C is seen within 0.1 s and cancels the call. Raises ``NoReplyError`` if there is no response, with the reason.
    #[pyo3(signature = (request, *, deadline=None))]
    fn call(&self, py: Python<'_>, request: &[u8], deadline: Option<f64>) -> PyResult<Reply> {
        let deadline = argument::timeout(deadline)?;
        let mut open = lock(&self.open, "client")?;
        let (client, _) = open.as_mut().ok_or_else(|| closed("client"))?;
        let call = py.detach(|| client.start(request, deadline)).map_err(|error| no_reply(&error))?;
        loop {
            // There is one call at a time: this is the only one that can end.
            let next = py.detach(|| client.next(Some(LOOK_UP))).map_err(|error| no_reply(&error))?;
            if let Some(ended) = next.filter(|ended| ended.call == call) {
                return ended.result.map(Reply).map_err(|error| no_reply(&error));
            }
            if let Err(interrupted) = py.check_signals() {
                // Its result is passed over by the next call.
                let _ = client.cancel(call);
                return Err(interrupted);
            }
        }
    }

    /// Wait for a server, up to ``timeout`` seconds; whether there is one.
    fn wait_for_server(&self, py: Python<'_>, timeout: f64) -> PyResult<bool> {
        let timeout = argument::timeout(Some(timeout))?.unwrap_or(Duration::ZERO);
        let mut open = lock(&self.open, "client")?;
        let (client, _) = open.as_mut().ok_or_else(|| closed("client"))?;
        let found = wait(py, Some(timeout), |step| {
            let is_there = py.detach(|| client.wait_for_server(step)).map_err(|error| no_reply(&error))?;
            Ok(is_there.then_some(()))
        })?;
        Ok(found.is_some())
    }

    /// Announce to other nodes that it is gone. May be called twice.
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

impl Server {
    pub(crate) fn new(server: RawServer, node: Arc<noctule::Node>) -> Server {
        Server { open: Mutex::new(Some((server, node))) }
    }

    fn with<T>(&self, act: impl FnOnce(&mut RawServer) -> Result<T, ReplyError>) -> PyResult<T> {
        let mut open = lock(&self.open, "server")?;
        let (server, _) = open.as_mut().ok_or_else(|| closed("server"))?;
        act(server).map_err(|error| not_replied(&error))
    }
}

#[pymethods]
impl Server {
    /// Wait for the next request, up to ``timeout`` seconds, or for ever; ``None`` when the time is over.
    ///
    /// Other threads run meanwhile, and Ctrl-C is seen within 0.1 s.
    #[pyo3(signature = (timeout=None))]
    fn receive(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Option<Request>> {
        let timeout = argument::timeout(timeout)?;
        let mut open = lock(&self.open, "server")?;
        let (server, _) = open.as_mut().ok_or_else(|| closed("server"))?;
        let received = wait(py, timeout, |step| {
            py.detach(|| server.receive(Some(step))).map_err(|error| not_taken(&error))
        })?;
        Ok(received.map(Request))
    }

    /// Answer a request with a response in CDR, once, in any order. Raises ``NoReplyError`` if the client does not wait for it any more.
    fn reply(&self, request: &Request, response: &[u8]) -> PyResult<()> {
        self.with(|server| server.reply(request.0.id(), response))
    }

    /// Answer a request with the reason why there is no response.
    fn fail(&self, request: &Request, why: &str) -> PyResult<()> {
        self.with(|server| server.fail(request.0.id(), why))
    }

    /// Whether the client does not wait for the answer any more; a cancellation is seen by ``receive``.
    fn is_cancelled(&self, request: &Request) -> PyResult<bool> {
        self.with(|server| Ok(server.is_cancelled(request.0.id())))
    }

    /// Announce to other nodes that it is gone. May be called twice.
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

#[pymethods]
impl Reply {
    /// Time since the server answered; ``None`` while its clock is not known yet.
    #[getter]
    fn age(&self) -> Option<Age> {
        age(self.0.info())
    }

    /// The server's node, 32 hexadecimal digits.
    #[getter]
    fn server(&self) -> String {
        self.0.server().to_string()
    }

    fn __bytes__<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.0.bytes())
    }

    fn __len__(&self) -> usize {
        self.0.bytes().len()
    }
}

#[pymethods]
impl Request {
    /// Time since the call began; ``None`` while the caller's clock is not known yet.
    #[getter]
    fn age(&self) -> Option<Age> {
        age(self.0.info())
    }

    /// The caller's node, 32 hexadecimal digits.
    #[getter]
    fn caller(&self) -> String {
        self.0.caller().to_string()
    }

    /// The age at which the caller waits no longer, in nanoseconds.
    #[getter]
    fn deadline_ns(&self) -> i64 {
        self.0.deadline().ns()
    }

    fn __bytes__<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.0.bytes())
    }

    fn __len__(&self) -> usize {
        self.0.bytes().len()
    }
}
