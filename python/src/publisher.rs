//! `noctule.Publisher`.
#![allow(unsafe_code)] // one look into the memory of a Python object

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use noctule_timebase::Instant;
use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::argument::closed;

/// Publishes samples of one topic. Made by ``Node.publisher``.
#[pyclass(module = "noctule", frozen)]
pub(crate) struct Publisher {
    open: Mutex<Option<Open>>,
    topic: String,
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
    /// They are true now, or were at ``source_time_ns`` of the node's clock. Never waits. Raises ``ValueError`` if they
    /// are longer than ``payload_bytes_max``, ``BufferError`` or ``TypeError`` for what is no contiguous buffer.
    #[pyo3(signature = (buffer, source_time_ns=None))]
    fn publish(
        &self,
        py: Python<'_>,
        buffer: &Bound<'_, PyAny>,
        source_time_ns: Option<i64>,
    ) -> PyResult<()> {
        let buffer = PyUntypedBuffer::get(buffer)?;
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
            Some(ns) => publisher.publish_at(bytes, Instant::from_ns(ns)),
        };
        drop(open);
        buffer.release(py);
        published.map_err(|error| PyValueError::new_err(error.to_string()))
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

    /// Tell the others that it is gone. May be called twice.
    fn close(&self, py: Python<'_>) {
        let open = self.lock().take();
        py.detach(|| drop(open));
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) {
        self.close(py);
    }
}

impl Publisher {
    pub(crate) fn new(publisher: noctule::Publisher, node: Arc<noctule::Node>) -> Publisher {
        let topic = publisher.topic().to_owned();
        Publisher { open: Mutex::new(Some(Open { publisher, _node: node })), topic }
    }

    /// Never waits: nobody keeps it while another thread can run.
    fn lock(&self) -> MutexGuard<'_, Option<Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
