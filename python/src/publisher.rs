//! `noctule.Publisher`.
#![allow(unsafe_code)] // one look into the memory of a Python object

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant as Timer};

use noctule::SourceTime;
use noctule_timebase::{Instant, Span};
use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::{PyBlockingIOError, PyBufferError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::argument::{self, closed};
use crate::loan::Loan;
use crate::waiting::LOOK_UP;

/// Publishes samples of one topic. Made by ``Node.publisher``.
#[pyclass(module = "noctule", frozen)]
pub(crate) struct Publisher {
    open: Mutex<Option<Open>>,
    topic: String,
    /// Of a loan: while there are any, nothing else may happen to the publisher.
    views: AtomicUsize,
}

struct Open {
    publisher: noctule::Publisher,
    // After the publisher: its thread tells the others that the publisher has gone.
    _node: Arc<noctule::Node>,
}

#[pymethods]
impl Publisher {
    /// Publish a copy of a buffer's bytes: ``bytes``, ``bytearray``, a NumPy array of one dimension or more, anything
    /// contiguous.
    ///
    /// They are true now, or were at ``source_time_ns`` of the node's clock, within ``bound_ns`` if that is proven, with the standard error
    /// ``sigma_ns``; ``None`` for what is not known (see ``Node.source_time_of``). Does not wait for the network or for readers.
    /// Raises ``BlockingIOError`` with ``keep_all`` while a reader is behind, ``ValueError`` if they are longer than ``payload_bytes_max``, ``BufferError`` or ``TypeError`` for what is no contiguous buffer.
    #[pyo3(signature = (buffer, source_time_ns=None, *, bound_ns=Some(0), sigma_ns=Some(0)), text_signature = "($self, buffer, source_time_ns=None, *, bound_ns=0, sigma_ns=0)")]
    fn publish(
        &self,
        buffer: &Bound<'_, PyAny>,
        source_time_ns: Option<i64>,
        bound_ns: Option<i64>,
        sigma_ns: Option<i64>,
    ) -> PyResult<()> {
        self.check_views()?;
        let (py, buffer) = (buffer.py(), PyUntypedBuffer::get(buffer)?);
        if !buffer.is_c_contiguous() {
            return Err(PyValueError::new_err(
                "the buffer is not contiguous; publish a copy, e.g. numpy.ascontiguousarray(buffer)",
            ));
        }
        let bytes = match buffer.len_bytes() {
            0 => &[],
            // SAFETY: the buffer says so, and it is held until the end of this function. No Python code runs
            // meanwhile; an extension that writes to it now without the interpreter's lock tears the sample,
            // of which each byte is read once.
            length => unsafe {
                std::slice::from_raw_parts(buffer.buf_ptr().cast_const().cast::<u8>(), length)
            },
        };
        let mut open = self.lock();
        let Open { publisher, .. } = open.as_mut().ok_or_else(|| closed("publisher"))?;
        let published = match source_time_ns {
            None => publisher.publish(bytes),
            Some(ns) => {
                let (bound, sigma) = (bound_ns.map(Span::from_ns), sigma_ns.map(Span::from_ns));
                publisher.publish_uncertain(bytes, SourceTime { time: Instant::from_ns(ns), bound, sigma })
            }
        };
        drop(open);
        buffer.release(py);
        published.map_err(|error| not_published(&error))
    }

    /// A place of ``length_bytes`` for the next sample, to be written and then published: in shared memory if all readers are on this
    /// host, so that nothing is copied. One at a time::
    ///
    ///     with publisher.loan(1 << 20) as view:
    ///         camera.readinto(view)
    fn loan(slf: Py<Self>, length_bytes: usize) -> PyResult<Loan> {
        let publisher = slf.get();
        publisher.check_views()?;
        let mut open = publisher.lock();
        let Open { publisher, .. } = open.as_mut().ok_or_else(|| closed("publisher"))?;
        let first = publisher.loan(length_bytes).map_err(|error| not_published(&error))?;
        drop(open);
        Ok(Loan::new(slf, first, length_bytes))
    }

    /// Counts of its samples: ``published``, ``given_up`` (for some reader on another host), ``deadline_missed``,
    /// ``would_block``: calls that raised ``BlockingIOError`` and published nothing, and ``held_up``: times that a reader that keeps all had read
    /// nothing for 5 s, which a notice names.
    fn counters(&self) -> PyResult<BTreeMap<&'static str, u64>> {
        let open = self.lock();
        let Open { publisher, .. } = open.as_ref().ok_or_else(|| closed("publisher"))?;
        Ok(BTreeMap::from([
            ("published", publisher.published()),
            ("given_up", publisher.given_up()),
            ("deadline_missed", publisher.deadline_missed().total),
            ("would_block", publisher.would_block()),
            ("held_up", publisher.held_up()),
        ]))
    }

    /// Wait up to ``timeout`` seconds until readers of other hosts have all that was published and, if it is reliable, have
    /// acknowledged it. ``False`` when the time is over, or if something published since the last call was refused or given up
    /// because a path carries less than was published.
    #[pyo3(signature = (timeout))]
    fn wait_for_acknowledgments(&self, py: Python<'_>, timeout: f64) -> PyResult<bool> {
        let timeout = argument::timeout(Some(timeout))?.unwrap_or_default();
        self.wait(py, timeout, |publisher, step| publisher.wait_for_acknowledgments(step))
    }

    /// Wait up to ``timeout`` seconds until ``length_bytes`` can be published with ``keep_all``; ``False`` when the time is over.
    #[pyo3(signature = (length_bytes, timeout))]
    fn wait_for_room(&self, py: Python<'_>, length_bytes: usize, timeout: f64) -> PyResult<bool> {
        let timeout = argument::timeout(Some(timeout))?.unwrap_or_default();
        self.wait(py, timeout, |publisher, step| publisher.wait_for_room(length_bytes, step))
    }

    /// Subscribers that are matched now.
    #[getter]
    fn readers(&self) -> PyResult<usize> {
        self.lock().as_ref().map(|open| open.publisher.readers()).ok_or_else(|| closed("publisher"))
    }

    /// The topic's name.
    #[getter]
    fn topic(&self) -> &str {
        &self.topic
    }

    /// Announce to other nodes that it is gone; a ``"reliable"`` one waits before that, see ``linger``. May be called twice. Raises ``BufferError`` while
    /// a view of a loan lives.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.check_views()?;
        let open = self.lock().take();
        py.detach(|| drop(open));
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

impl Publisher {
    pub(crate) fn new(publisher: noctule::Publisher, node: Arc<noctule::Node>) -> Publisher {
        let topic = publisher.topic().to_owned();
        let views = AtomicUsize::new(0);
        Publisher { open: Mutex::new(Some(Open { publisher, _node: node })), topic, views }
    }

    /// A view of the loan is there from now on.
    pub(crate) fn add_view(&self) -> PyResult<()> {
        if self.lock().is_none() {
            return Err(closed("publisher"));
        }
        self.views.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    pub(crate) fn remove_view(&self) {
        self.views.fetch_sub(1, Ordering::SeqCst);
    }

    /// Publishes or drops a loan.
    pub(crate) fn end_loan(
        &self,
        end: impl FnOnce(&mut noctule::Publisher) -> Result<(), noctule::PublishError>,
    ) -> PyResult<()> {
        self.check_views()?;
        let mut open = self.lock();
        let Open { publisher, .. } = open.as_mut().ok_or_else(|| closed("publisher"))?;
        end(publisher).map_err(|error| not_published(&error))
    }

    fn check_views(&self) -> PyResult<()> {
        match self.views.load(Ordering::SeqCst) {
            0 => Ok(()),
            _ => Err(PyBufferError::new_err(format!(
                "topic {}: a view of a loan is there; release it, and arrays made of it, first",
                self.topic
            ))),
        }
    }

    /// Waits in steps, between which other threads may publish and signals (Ctrl-C) are seen.
    fn wait(
        &self,
        py: Python<'_>,
        timeout: Duration,
        mut wait: impl FnMut(&mut noctule::Publisher, Duration) -> bool + Send,
    ) -> PyResult<bool> {
        let start = Timer::now();
        loop {
            let left = timeout.saturating_sub(start.elapsed());
            let step = left.min(LOOK_UP);
            let is_done = py.detach(|| {
                let mut open = self.lock();
                open.as_mut().map(|Open { publisher, .. }| wait(publisher, step))
            });
            match is_done {
                None => return Err(closed("publisher")),
                Some(true) => return Ok(true),
                Some(false) if left <= LOOK_UP => return Ok(false),
                Some(false) => py.check_signals()?,
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn not_published(error: &noctule::PublishError) -> PyErr {
    match error {
        noctule::PublishError::WouldBlock { .. } => PyBlockingIOError::new_err(error.to_string()),
        error => PyValueError::new_err(error.to_string()),
    }
}
