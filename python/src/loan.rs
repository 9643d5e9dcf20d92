//! `noctule.Loan`.
#![allow(unsafe_code)] // shows Python the memory of a sample that is being written

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyAny, PyTuple};

use crate::publisher::Publisher;

/// A place for the next sample of a publisher, in shared memory if all readers are on this host. Made by ``Publisher.loan``.
///
/// It is a writable buffer: ``numpy.frombuffer(loan, dtype)`` and ``memoryview(loan)`` work, and must be gone before it is published.
/// In a ``with`` statement it gives a ``memoryview``, and is published at the end, or dropped if an exception leaves.
#[pyclass(module = "noctule", frozen)]
pub(crate) struct Loan {
    publisher: Py<Publisher>,
    first: AtomicPtr<u8>,
    length_bytes: usize,
    is_over: AtomicBool,
    view: Mutex<Option<Py<PyAny>>>,
}

#[pymethods]
impl Loan {
    /// Publish it, true at ``source_time_ns`` of the node's clock, or now. Raises ``BufferError`` while a view of it lives.
    #[pyo3(signature = (source_time_ns=None))]
    fn publish(&self, source_time_ns: Option<i64>) -> PyResult<()> {
        self.check()?;
        let publisher = self.publisher.get();
        publisher.end_loan(|publisher| {
            publisher.publish_loan(self.length_bytes, source_time_ns.map(noctule_timebase::Instant::from_ns))
        })?;
        self.is_over.store(true, Ordering::Release);
        Ok(())
    }

    /// Give it back unpublished. Raises ``BufferError`` while a view of it lives.
    fn drop(&self) -> PyResult<()> {
        self.check()?;
        self.publisher.get().end_loan(|publisher| {
            publisher.drop_loan();
            Ok(())
        })?;
        self.is_over.store(true, Ordering::Release);
        Ok(())
    }

    fn __len__(&self) -> usize {
        self.length_bytes
    }

    fn __enter__(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let view = slf.py().import("builtins")?.getattr("memoryview")?.call1((slf,))?.unbind();
        *slf.get().view.lock().unwrap_or_else(PoisonError::into_inner) = Some(view.clone_ref(slf.py()));
        Ok(view)
    }

    #[pyo3(signature = (*exception))]
    fn __exit__(&self, py: Python<'_>, exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        let view = self.view.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(view) = view {
            view.call_method0(py, "release")?;
        }
        let has_failed = exception.get_item(0).is_ok_and(|kind| !kind.is_none());
        match self.is_over.load(Ordering::Acquire) {
            true => Ok(()),
            false if has_failed => self.drop(),
            false => self.publish(None),
        }
    }

    /// # Safety
    /// `view` is the interpreter's, to be filled.
    unsafe fn __getbuffer__(slf: &Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let loan = slf.get();
        loan.check()?;
        loan.publisher.get().add_view()?;
        let first = loan.first.load(Ordering::Acquire).cast::<c_void>();
        // No object is longer than `isize::MAX`, which is what the ring's own limit is far below.
        let length = loan.length_bytes as ffi::Py_ssize_t;
        // SAFETY: the publisher keeps the place as long as there is a view: it neither publishes, lends nor closes.
        let filled = unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), first, length, 0, flags) };
        if filled == 0 {
            return Ok(());
        }
        loan.publisher.get().remove_view();
        Err(PyErr::fetch(slf.py()))
    }

    /// # Safety
    /// `view` is one that was filled.
    unsafe fn __releasebuffer__(&self, _view: *mut ffi::Py_buffer) {
        self.publisher.get().remove_view();
    }
}

impl Loan {
    pub(crate) fn new(publisher: Py<Publisher>, first: *mut u8, length_bytes: usize) -> Loan {
        let (first, is_over, view) = (AtomicPtr::new(first), AtomicBool::new(false), Mutex::new(None));
        Loan { publisher, first, length_bytes, is_over, view }
    }

    fn check(&self) -> PyResult<()> {
        match self.is_over.load(Ordering::Acquire) {
            true => Err(PyBufferError::new_err("the loan was published or dropped; ask for another")),
            false => Ok(()),
        }
    }
}
