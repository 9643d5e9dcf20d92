//! `noctule.Subscriber`.

use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::argument::{self, NoctuleError, closed, not_taken};
use crate::sample::Sample;
use crate::statistics::Statistics;
use crate::waiting::wait;

/// Receives the samples of one topic from all its publishers. Made by ``Node.subscriber``.
///
/// Iterating waits for samples for ever, or until another thread closes the subscriber. One thread at a time may
/// receive.
#[pyclass(module = "noctule", frozen)]
pub(crate) struct Subscriber {
    open: Mutex<Option<Open>>,
    is_closed: AtomicBool,
    topic: String,
}

pub(crate) struct Open {
    pub(crate) subscriber: noctule::Subscriber,
    // After the subscriber: its thread tells the others that the subscriber has gone.
    _node: Arc<noctule::Node>,
}

#[pymethods]
impl Subscriber {
    /// Wait for the next sample, up to ``timeout`` seconds, or for ever; ``None`` when the time is over, or when another
    /// thread closes the subscriber meanwhile.
    ///
    /// Other threads run meanwhile, and Ctrl-C is seen within 0.1 s. Raises ``NoctuleError`` if as many samples are held
    /// as may be at once.
    #[pyo3(signature = (timeout=None))]
    fn receive(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Option<Sample>> {
        let timeout = argument::timeout(timeout)?;
        let mut open = self.lock()?;
        let Open { subscriber, .. } = open.as_mut().ok_or_else(|| closed("subscriber"))?;
        let received = wait(py, timeout, |step| {
            let sample = py.detach(|| subscriber.receive(Some(step))).map_err(|error| not_taken(&error))?;
            Ok((sample.is_some() || self.is_closed()).then_some(sample))
        })?;
        let sample = received.flatten();
        if self.is_closed() {
            // The thread that closed it could not wait for us.
            let gone = open.take();
            py.detach(|| drop(gone));
        }
        Ok(sample.map(Sample::new))
    }

    /// The next sample if there is one, else ``None``. Raises as ``receive``.
    fn take(&self) -> PyResult<Option<Sample>> {
        let mut open = self.lock()?;
        let Open { subscriber, .. } = open.as_mut().ok_or_else(|| closed("subscriber"))?;
        Ok(subscriber.take().map_err(|error| not_taken(&error))?.map(Sample::new))
    }

    /// The newest sample if there is one, else ``None``; older ones are passed over and count as missed. Raises as ``receive``.
    fn latest(&self) -> PyResult<Option<Sample>> {
        let mut open = self.lock()?;
        let Open { subscriber, .. } = open.as_mut().ok_or_else(|| closed("subscriber"))?;
        Ok(subscriber.take_latest().map_err(|error| not_taken(&error))?.map(Sample::new))
    }

    /// Publishers that are matched now.
    #[getter]
    fn publishers(&self) -> PyResult<usize> {
        let mut open = self.lock()?;
        let Open { subscriber, .. } = open.as_mut().ok_or_else(|| closed("subscriber"))?;
        Ok(subscriber.publishers())
    }

    /// A file descriptor for ``select``, ``poll`` and event loops, readable while there may be a sample. When it is, take until there is none,
    /// which makes it wait for the next; do not read from it. It goes with the subscriber. Starts a thread that sleeps while nothing comes.
    fn fileno(&self) -> PyResult<i32> {
        let mut open = self.lock()?;
        let Open { subscriber, .. } = open.as_mut().ok_or_else(|| closed("subscriber"))?;
        Ok(subscriber.descriptor()?.as_raw_fd())
    }

    /// The samples as they come, for ``async for``; see ``noctule.aio``.
    fn __aiter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, PyAny>> {
        slf.py().import("noctule.aio")?.getattr("Samples")?.call1((slf,))
    }

    /// Statistics since it was opened: counts, rates, ages.
    fn statistics(&self) -> PyResult<Statistics> {
        let open = self.lock()?;
        let Open { subscriber, .. } = open.as_ref().ok_or_else(|| closed("subscriber"))?;
        Ok(subscriber.statistics().into())
    }

    /// The topic's name.
    #[getter]
    fn topic(&self) -> &str {
        &self.topic
    }

    /// Announce to other nodes that it is gone, and end a wait in another thread. Samples stay valid. May be called twice.
    fn close(&self, py: Python<'_>) {
        self.is_closed.store(true, Ordering::Release);
        // If another thread is receiving, it sees the flag soon.
        if let Ok(mut open) = self.lock() {
            let gone = open.take();
            drop(open);
            py.detach(|| drop(gone));
        }
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Sample>> {
        self.receive(py, None)
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) {
        self.close(py);
    }
}

impl Subscriber {
    pub(crate) fn new(subscriber: noctule::Subscriber, node: Arc<noctule::Node>) -> Subscriber {
        let topic = subscriber.topic().to_owned();
        Subscriber {
            open: Mutex::new(Some(Open { subscriber, _node: node })),
            is_closed: AtomicBool::new(false),
            topic,
        }
    }

    /// Whether another thread has closed it while this one holds it.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    pub(crate) fn lock(&self) -> PyResult<MutexGuard<'_, Option<Open>>> {
        match self.open.try_lock() {
            Ok(open) => Ok(open),
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => Err(NoctuleError::new_err(format!(
                "topic {}: another thread is receiving from this subscriber; open one for each thread",
                self.topic
            ))),
        }
    }
}
