//! `noctule.Sample`, `noctule.SampleInfo` and `noctule.Age`.
#![allow(unsafe_code)] // shows Python the memory of a sample

use std::ffi::{c_int, c_void};

use noctule::{Format, Route};
use noctule_timebase::Span;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// A sample where it lies in shared memory, which is not used again while this object or a view of it lives.
///
/// It is a read-only buffer: ``memoryview(sample)``, ``bytes(sample)`` and ``numpy.frombuffer(sample, dtype)`` work.
#[pyclass(module = "noctule", frozen)]
pub(crate) struct Sample(noctule::Sample);

#[pymethods]
impl Sample {
    /// Its bytes where they lie, as a read-only ``uint8`` array. The array keeps the sample; ``copy`` does not.
    #[getter]
    fn data<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        static ASARRAY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        static MEMORY_VIEW: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let py = slf.py();
        let view = MEMORY_VIEW.import(py, "builtins", "memoryview")?.call1((slf,))?;
        ASARRAY.import(py, "numpy", "asarray")?.call1((view,))
    }

    /// A copy of its bytes, as a ``uint8`` array that needs the sample no longer.
    fn copy<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Sample::data(slf)?.call_method0("copy")
    }

    /// How old it was when it was taken; ``None`` while the publisher's clock is not known yet.
    #[getter]
    fn age(&self) -> Option<Age> {
        let age = self.0.age()?;
        Some(Age { ns: age.span.ns(), bound_ns: age.bound.map(Span::ns), sigma_ns: age.sigma.map(Span::ns) })
    }

    /// Its times, clock bound and counts.
    #[getter]
    fn info(&self) -> SampleInfo {
        let info = self.0.info();
        SampleInfo {
            sequence: info.sequence,
            missed: info.missed,
            source_time_ns: info.source_time.map(|time| time.ns()),
            receive_time_ns: info.receive_time.ns(),
            bound_ns: info.bound.map(Span::ns),
            sigma_ns: info.sigma.map(Span::ns),
            format: info.format.map(Format::name),
            publisher: info.publisher.to_string(),
            endpoint: info.endpoint.0,
            route: match info.route {
                Route::SharedMemory => "shared_memory",
                Route::Udp => "udp",
            },
        }
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    /// # Safety
    /// `view` is the interpreter's, to be filled.
    unsafe fn __getbuffer__(slf: &Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let sample = &slf.get().0;
        let first = sample.as_ptr().cast_mut().cast::<c_void>();
        // No object is longer than `isize::MAX`, which is what the ring's own limit is far below.
        let length = sample.len() as ffi::Py_ssize_t;
        let is_read_only = 1;
        // SAFETY: the bytes stay while the sample does, of which the view takes a reference. It refuses
        // to be written.
        let filled =
            unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), first, length, is_read_only, flags) };
        if filled == 0 { Ok(()) } else { Err(PyErr::fetch(slf.py())) }
    }
}

impl Sample {
    pub(crate) fn new(sample: noctule::Sample) -> Sample {
        Sample(sample)
    }
}

/// How old a sample is, in the clock of the reader, and how wrong that may be.
#[pyclass(module = "noctule", frozen, eq)]
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Age {
    /// Nanoseconds.
    #[pyo3(get)]
    pub(crate) ns: i64,
    /// Proven: the true age is within plus or minus this; 0 on one clock, ``None`` where nothing is proven.
    #[pyo3(get)]
    pub(crate) bound_ns: Option<i64>,
    /// Standard error if least delays are equal both ways; 0 on one clock, ``None`` if unknown.
    #[pyo3(get)]
    pub(crate) sigma_ns: Option<i64>,
}

#[pymethods]
impl Age {
    /// Seconds.
    #[getter]
    fn seconds(&self) -> f64 {
        self.ns as f64 / 1e9
    }

    fn __float__(&self) -> f64 {
        self.seconds()
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        named(slf.as_any(), &["ns", "bound_ns", "sigma_ns"])
    }
}

/// Metadata of a sample, beside its bytes and its age.
#[pyclass(module = "noctule", frozen, get_all, eq)]
#[derive(PartialEq, Eq)]
pub(crate) struct SampleInfo {
    /// Counts the samples of one publisher, missed ones too.
    sequence: u64,
    /// Samples of this publisher that are missing before this one: lost on the way, or overwritten unread.
    missed: u64,
    /// When its content was true, in the reader's clock; ``None`` while the publisher's clock is not known yet.
    source_time_ns: Option<i64>,
    /// When it was taken, in the reader's clock.
    receive_time_ns: i64,
    /// Proven: ``source_time_ns`` is wrong by no more; ``None`` where nothing is proven.
    bound_ns: Option<i64>,
    /// Standard error of ``source_time_ns``; ``None`` if unknown.
    sigma_ns: Option<i64>,
    /// Name of the format of its bytes; ``None`` if its publisher names none.
    format: Option<&'static str>,
    /// The node that published it, 32 hexadecimal digits.
    publisher: String,
    /// The publisher's number in its node; never used again while that lives.
    endpoint: u32,
    /// ``"shared_memory"``, or ``"udp"`` (from another host, or where shared memory was refused).
    route: &'static str,
}

#[pymethods]
impl SampleInfo {
    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        named(
            slf.as_any(),
            &[
                "sequence",
                "missed",
                "source_time_ns",
                "receive_time_ns",
                "bound_ns",
                "sigma_ns",
                "format",
                "publisher",
                "endpoint",
                "route",
            ],
        )
    }
}

/// `Name(field=value, …)`.
pub(crate) fn named(object: &Bound<'_, PyAny>, fields: &[&str]) -> PyResult<String> {
    let values = fields.iter().map(|field| Ok(format!("{field}={}", object.getattr(*field)?.repr()?)));
    let values = values.collect::<PyResult<Vec<_>>>()?;
    Ok(format!("{}({})", object.get_type().name()?, values.join(", ")))
}
