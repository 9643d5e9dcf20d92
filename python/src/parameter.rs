//! `noctule.Parameters` and `noctule.ParameterClient`.

use std::sync::{Arc, Mutex, PoisonError};

use noctule::CallError;
use noctule::parameter::{
    ParameterCallError, ParameterClient as Asking, ParameterDescriptor, ParameterRange, ParameterType,
    ParameterValue, Parameters as Served, ParametersError,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyList, PyTuple};

use crate::argument::{NoctuleError, closed, not_opened};
use crate::request::{NoReplyError, not_served};

/// One of them, and the node that it needs.
type OnNode<T> = (T, Arc<noctule::Node>);

/// The parameters of a node, which other programs read and set while this is open. Made by ``Node.parameters``. Any thread may use it.
#[pyclass(module = "noctule", frozen)]
pub(crate) struct Parameters {
    open: Mutex<Option<Arc<OnNode<Served>>>>,
}

/// Reads and sets the parameters of another node. Made by ``Node.parameter_client``. One thread at a time may use it.
#[pyclass(module = "noctule", frozen)]
pub(crate) struct ParameterClient {
    open: Mutex<Option<OnNode<Asking>>>,
}

pub(crate) fn not_there(error: &ParametersError) -> PyErr {
    match error {
        ParametersError::Service(error) => not_served(error),
        ParametersError::Node(error) => not_opened(error),
        ParametersError::System(_) => NoctuleError::new_err(error.to_string()),
    }
}

fn no_answer(error: &ParameterCallError) -> PyErr {
    match error {
        ParameterCallError::Call(CallError::Publish(_) | CallError::NoTime { .. }) => {
            PyValueError::new_err(error.to_string())
        }
        _ => NoReplyError::new_err(error.to_string()),
    }
}

fn kind_of(name: &str) -> PyResult<ParameterType> {
    (1..10).filter_map(ParameterType::of_number).find(|kind| kind.name() == name).ok_or_else(|| {
        PyValueError::new_err(format!(
            "{name:?} is no type of parameters; bool, integer, double, string, byte_array, bool_array, integer_array, double_array \
             and string_array are"
        ))
    })
}

/// Converts a value of Python; `declared` decides which list an empty one is, and that an int is meant as a double.
fn value_of(value: &Bound<'_, PyAny>, declared: Option<ParameterType>) -> PyResult<ParameterValue> {
    if value.is_none() {
        return Ok(ParameterValue::NotSet);
    }
    if value.is_instance_of::<PyBool>() {
        return Ok(ParameterValue::Bool(value.extract()?));
    }
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Ok(ParameterValue::ByteArray(bytes.as_bytes().to_vec()));
    }
    if let Ok(text) = value.extract::<String>() {
        return Ok(ParameterValue::String(text));
    }
    if declared == Some(ParameterType::Double)
        && let Ok(number) = value.extract::<f64>()
    {
        return Ok(ParameterValue::Double(number));
    }
    if let Ok(number) = value.extract::<i64>() {
        return Ok(ParameterValue::Integer(number));
    }
    if let Ok(number) = value.extract::<f64>() {
        return Ok(ParameterValue::Double(number));
    }
    list_of(value, declared)
}

fn list_of(value: &Bound<'_, PyAny>, declared: Option<ParameterType>) -> PyResult<ParameterValue> {
    let refused = || {
        PyTypeError::new_err(
            "a parameter is None, a bool, an int of 64 bits, a float, a str, bytes, or a list of one of them",
        )
    };
    let items: Vec<Bound<'_, PyAny>> = value.extract().map_err(|_| refused())?;
    let Some(first) = items.first() else {
        return Ok(match declared {
            Some(ParameterType::ByteArray) => ParameterValue::ByteArray(Vec::new()),
            Some(ParameterType::BoolArray) => ParameterValue::BoolArray(Vec::new()),
            Some(ParameterType::IntegerArray) => ParameterValue::IntegerArray(Vec::new()),
            Some(ParameterType::DoubleArray) => ParameterValue::DoubleArray(Vec::new()),
            Some(ParameterType::StringArray) => ParameterValue::StringArray(Vec::new()),
            _ => {
                return Err(PyValueError::new_err(
                    "an empty list is of no type; say it, e.g. type=\"double_array\"",
                ));
            }
        });
    };
    if declared == Some(ParameterType::ByteArray) {
        return Ok(ParameterValue::ByteArray(value.extract().map_err(|_| refused())?));
    }
    if first.is_instance_of::<PyBool>() {
        return Ok(ParameterValue::BoolArray(value.extract().map_err(|_| refused())?));
    }
    if declared != Some(ParameterType::DoubleArray)
        && let Ok(numbers) = value.extract::<Vec<i64>>()
    {
        return Ok(ParameterValue::IntegerArray(numbers));
    }
    if let Ok(numbers) = value.extract::<Vec<f64>>() {
        return Ok(ParameterValue::DoubleArray(numbers));
    }
    Ok(ParameterValue::StringArray(value.extract().map_err(|_| refused())?))
}

fn to_python<'py>(py: Python<'py>, value: ParameterValue) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        ParameterValue::NotSet => py.None().into_bound(py),
        ParameterValue::Bool(value) => PyBool::new(py, value).to_owned().into_any(),
        ParameterValue::Integer(value) => value.into_pyobject(py)?.into_any(),
        ParameterValue::Double(value) => value.into_pyobject(py)?.into_any(),
        ParameterValue::String(value) => value.into_pyobject(py)?.into_any(),
        ParameterValue::ByteArray(value) => PyBytes::new(py, &value).into_any(),
        ParameterValue::BoolArray(value) => PyList::new(py, value)?.into_any(),
        ParameterValue::IntegerArray(value) => PyList::new(py, value)?.into_any(),
        ParameterValue::DoubleArray(value) => PyList::new(py, value)?.into_any(),
        ParameterValue::StringArray(value) => PyList::new(py, value)?.into_any(),
    })
}

fn range_of(range: Option<&Bound<'_, PyTuple>>, kind: ParameterType) -> PyResult<Option<ParameterRange>> {
    let Some(range) = range else { return Ok(None) };
    let wrong = || {
        PyValueError::new_err(
            "a range is (from, to) or (from, to, step), of ints for an integer, of floats for a double",
        )
    };
    if !(2..=3).contains(&range.len()) {
        return Err(wrong());
    }
    let double = |at: usize| range.get_item(at).and_then(|item| item.extract::<f64>()).map_err(|_| wrong());
    let integer = |at: usize| range.get_item(at).and_then(|item| item.extract::<i64>()).map_err(|_| wrong());
    let has_step = range.len() == 3;
    Ok(Some(match kind {
        ParameterType::Integer => {
            let step = if has_step { u64::try_from(integer(2)?).map_err(|_| wrong())? } else { 0 };
            ParameterRange::Integer { from: integer(0)?, to: integer(1)?, step }
        }
        ParameterType::Double => {
            let step = if has_step { double(2)? } else { 0.0 };
            ParameterRange::Double { from: double(0)?, to: double(1)?, step }
        }
        _ => return Err(wrong()),
    }))
}

impl Parameters {
    pub(crate) fn new(parameters: Served, node: Arc<noctule::Node>) -> Parameters {
        Parameters { open: Mutex::new(Some(Arc::new((parameters, node)))) }
    }

    fn open(&self) -> PyResult<Arc<OnNode<Served>>> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.clone().ok_or_else(|| closed("set of parameters"))
    }
}

#[pymethods]
impl Parameters {
    /// Declare a parameter of the type of this value, or of ``type`` (``"double_array"``, …), which an empty list needs.
    ///
    /// ``range``: (from, to) or (from, to, step) of a number. ``dynamic_typing``: it may be set to values of other types, and deleted by ``None``. Raises
    /// ``ValueError`` with the reason if it cannot be.
    #[expect(clippy::too_many_arguments, reason = "keywords of Python, named where they are given")]
    #[pyo3(signature = (name, value, *, r#type=None, description="", constraints="", read_only=false, dynamic_typing=false, range=None))]
    fn declare(
        &self,
        py: Python<'_>,
        name: &str,
        value: &Bound<'_, PyAny>,
        r#type: Option<&str>,
        description: &str,
        constraints: &str,
        read_only: bool,
        dynamic_typing: bool,
        range: Option<&Bound<'_, PyTuple>>,
    ) -> PyResult<()> {
        let value = value_of(value, r#type.map(kind_of).transpose()?)?;
        let range = range_of(range, value.kind())?;
        let descriptor = ParameterDescriptor {
            description: description.to_owned(),
            constraints: constraints.to_owned(),
            read_only,
            dynamic_typing,
            range,
        };
        let open = self.open()?;
        let declared = py.detach(|| open.0.declare_as(name, value, descriptor));
        declared.map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// The value of a parameter; ``None`` if it is not declared.
    fn get<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, self.open()?.0.get(name).unwrap_or_default())
    }

    /// Set a parameter as others do. Raises ``ValueError`` with the reason if it is refused.
    fn set(&self, py: Python<'_>, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let open = self.open()?;
        let value = value_of(value, open.0.get(name).map(|value| value.kind()))?;
        let set = py.detach(|| open.0.set(name, value));
        set.map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// Ask ``callback`` before parameters are set, with a dict of all that are set together: an exception refuses, and its text is
    /// what the caller gets. It may read the parameters, but not set them.
    fn on_set(&self, callback: Py<PyAny>) -> PyResult<()> {
        self.open()?.0.on_set(move |values| {
            Python::attach(|py| {
                let asked = || -> PyResult<()> {
                    let given = PyDict::new(py);
                    for (name, value) in values {
                        given.set_item(name, to_python(py, value.clone())?)?;
                    }
                    callback.call1(py, (given,)).map(|_| ())
                };
                asked().map_err(|error| error.value(py).to_string().into())
            })
        });
        Ok(())
    }

    /// Names of all parameters.
    fn names(&self) -> PyResult<Vec<String>> {
        Ok(self.open()?.0.names())
    }

    /// Take the parameters away from other programs. May be called twice.
    fn close(&self, py: Python<'_>) {
        let gone = self.open.lock().unwrap_or_else(PoisonError::into_inner).take();
        py.detach(|| drop(gone));
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) {
        self.close(py);
    }
}

impl Drop for Parameters {
    fn drop(&mut self) {
        // Its thread may wait for the interpreter, to call back.
        Python::attach(|py| self.close(py));
    }
}

impl ParameterClient {
    pub(crate) fn new(client: Asking, node: Arc<noctule::Node>) -> ParameterClient {
        ParameterClient { open: Mutex::new(Some((client, node))) }
    }

    fn ask<T: Send>(
        &self,
        py: Python<'_>,
        ask: impl FnOnce(&mut Asking) -> Result<T, ParameterCallError> + Send,
    ) -> PyResult<T> {
        py.detach(|| {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            open.as_mut().map(|(client, _)| ask(client))
        })
        .ok_or_else(|| closed("client"))?
        .map_err(|error| no_answer(&error))
    }
}

#[pymethods]
impl ParameterClient {
    /// Names of the node's parameters below these prefixes, all if there is none; ``depth``: parts of a name behind the prefix, 0: however many.
    ///
    /// Raises ``NoReplyError`` if the node does not answer, as all of these do.
    #[pyo3(signature = (prefixes=Vec::new(), depth=0))]
    fn list(&self, py: Python<'_>, prefixes: Vec<String>, depth: u64) -> PyResult<Vec<String>> {
        let prefixes: Vec<&str> = prefixes.iter().map(String::as_str).collect();
        Ok(self.ask(py, |client| client.list(&prefixes, depth))?.names)
    }

    /// The value of a parameter; ``None`` if it is not declared.
    fn get<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let value = self.ask(py, |client| client.get(&[name]))?.pop();
        to_python(py, value.unwrap_or_default())
    }

    /// Set a parameter. Raises ``ValueError`` with the node's reason if it refuses.
    fn set(&self, py: Python<'_>, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let is_ambiguous = value.extract::<Vec<Bound<'_, PyAny>>>().is_ok_and(|items| items.is_empty())
            || value.extract::<i64>().is_ok()
            || value.extract::<Vec<i64>>().is_ok();
        let kind = match is_ambiguous {
            true => self.ask(py, |client| client.types(&[name]))?.pop(),
            false => None,
        };
        let value = value_of(value, kind)?;
        let results = self.ask(py, |client| client.set(&[(name, value)]))?;
        match results.into_iter().next() {
            Some(Err(why)) => Err(PyValueError::new_err(why.to_string())),
            _ => Ok(()),
        }
    }

    /// Description: ``type``, ``description``, ``constraints``, ``read_only``, ``dynamic_typing``, ``range``; ``None`` if it is not declared.
    fn describe<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some((kind, descriptor)) = self.ask(py, |client| client.describe(&[name]))?.pop() else {
            return Ok(None);
        };
        if kind == ParameterType::NotSet {
            return Ok(None);
        }
        let found = PyDict::new(py);
        found.set_item("type", kind.name())?;
        found.set_item("description", descriptor.description)?;
        found.set_item("constraints", descriptor.constraints)?;
        found.set_item("read_only", descriptor.read_only)?;
        found.set_item("dynamic_typing", descriptor.dynamic_typing)?;
        match descriptor.range {
            None => found.set_item("range", py.None())?,
            Some(ParameterRange::Integer { from, to, step }) => found.set_item("range", (from, to, step))?,
            Some(ParameterRange::Double { from, to, step }) => found.set_item("range", (from, to, step))?,
        }
        Ok(Some(found))
    }

    /// Close it. May be called twice.
    fn close(&self, py: Python<'_>) {
        let gone = self.open.lock().unwrap_or_else(PoisonError::into_inner).take();
        py.detach(|| drop(gone));
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) {
        self.close(py);
    }
}
