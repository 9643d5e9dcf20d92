//! `noctule_parameters_*`, `noctule_parameter_*`.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

use noctule::Node;
use noctule::parameter::{
    ParameterClient, ParameterDescriptor, ParameterRange, ParameterType, ParameterValue, Parameters,
};

use crate::argument;
use crate::failure::{Failure, NOTHING, OK, Outcome, guard};
use crate::node::{NodeHandle, close};

/// Room for the sentence with which a callback refuses.
const WHY_BYTES: usize = 256;
/// How long a call waits unless it is given a deadline.
const DEADLINE_DEFAULT: Duration = Duration::from_secs(5);

/// `noctule_parameters_t`.
pub struct ParametersHandle {
    parameters: Parameters,
    // After the parameters: its thread announces that they have gone.
    _node: Arc<Node>,
}

/// `noctule_parameter_client_t`.
pub struct ParameterClientHandle {
    client: ParameterClient,
    // After the client, as above.
    _node: Arc<Node>,
}

/// `noctule_parameter_t`: what a value that was handed out points to.
pub struct Kept {
    value: ParameterValue,
    text: CString,
    _texts: Vec<CString>,
    pointers: Vec<*const c_char>,
}

/// `noctule_parameter_value_t`.
#[repr(C)]
pub struct Value {
    kind: c_int,
    /// A C `bool`, which may hold anything if it was not initialised.
    boolean: u8,
    integer: i64,
    real: f64,
    text: *const c_char,
    elements: *const c_void,
    count: usize,
}

/// `noctule_parameter_options_t`.
#[repr(C)]
pub struct Options {
    description: *const c_char,
    constraints: *const c_char,
    read_only: u8,
    dynamic_typing: u8,
    has_range: u8,
    integer_from: i64,
    integer_to: i64,
    integer_step: u64,
    from: f64,
    to: f64,
    step: f64,
}

type Callback = unsafe extern "C" fn(
    context: *mut c_void,
    name: *const c_char,
    value: *const Value,
    why: *mut c_char,
    why_bytes: usize,
) -> c_int;
type NameCallback = unsafe extern "C" fn(context: *mut c_void, name: *const c_char);

/// A caller's context, which the header requires to be usable from any thread.
pub(crate) struct Context(pub(crate) *mut c_void);
// SAFETY: the caller's promise.
unsafe impl Send for Context {}
// SAFETY: the caller's promise.
unsafe impl Sync for Context {}

impl Context {
    pub(crate) fn get(&self) -> *mut c_void {
        self.0
    }
}

/// Text of ours for C: what stands behind a zero is cut off.
fn c_text(text: &str) -> CString {
    let end = text.find('\0').unwrap_or(text.len());
    CString::new(&text[..end]).unwrap_or_default()
}

impl Kept {
    fn new(value: ParameterValue) -> Box<Kept> {
        let text = match &value {
            ParameterValue::String(text) => c_text(text),
            _ => CString::default(),
        };
        let texts: Vec<CString> = match &value {
            ParameterValue::StringArray(texts) => texts.iter().map(|text| c_text(text)).collect(),
            _ => Vec::new(),
        };
        let pointers = texts.iter().map(|text| text.as_ptr()).collect();
        Box::new(Kept { value, text, _texts: texts, pointers })
    }

    fn shown(&self) -> Value {
        let mut value = Value {
            kind: self.value.kind() as c_int,
            boolean: 0,
            integer: 0,
            real: 0.0,
            text: ptr::null(),
            elements: ptr::null(),
            count: 0,
        };
        let (elements, count): (*const c_void, usize) = match &self.value {
            ParameterValue::NotSet => (ptr::null(), 0),
            ParameterValue::Bool(boolean) => {
                value.boolean = u8::from(*boolean);
                (ptr::null(), 0)
            }
            ParameterValue::Integer(integer) => {
                value.integer = *integer;
                (ptr::null(), 0)
            }
            ParameterValue::Double(real) => {
                value.real = *real;
                (ptr::null(), 0)
            }
            ParameterValue::String(_) => {
                value.text = self.text.as_ptr();
                (ptr::null(), 0)
            }
            ParameterValue::ByteArray(list) => (list.as_ptr().cast(), list.len()),
            ParameterValue::BoolArray(list) => (list.as_ptr().cast(), list.len()),
            ParameterValue::IntegerArray(list) => (list.as_ptr().cast(), list.len()),
            ParameterValue::DoubleArray(list) => (list.as_ptr().cast(), list.len()),
            ParameterValue::StringArray(_) => (self.pointers.as_ptr().cast(), self.pointers.len()),
        };
        (value.elements, value.count) = (elements, count);
        value
    }
}

/// # Safety
/// As in the header.
unsafe fn value_of(value: *const Value) -> Result<ParameterValue, Failure> {
    // SAFETY: null or the caller's value.
    let value = unsafe { argument::shared(value, "value") }?;
    let kind = u8::try_from(value.kind).ok().and_then(ParameterType::of_number);
    let kind = kind.ok_or_else(|| {
        Failure::argument(format!(
            "value->type is {}; NOCTULE_PARAMETER_NOT_SET to NOCTULE_PARAMETER_STRING_ARRAY are possible",
            value.kind
        ))
    })?;
    /// # Safety
    /// An array of this type has what the header states.
    unsafe fn list<T: Clone>(value: &Value) -> Result<Vec<T>, Failure> {
        // SAFETY: passed on.
        Ok(unsafe { argument::slice(value.elements.cast::<T>(), value.count, "value->elements") }?.to_vec())
    }
    // SAFETY: the caller's arrays and texts, of the type that it names.
    Ok(unsafe {
        match kind {
            ParameterType::NotSet => ParameterValue::NotSet,
            ParameterType::Bool => ParameterValue::Bool(value.boolean != 0),
            ParameterType::Integer => ParameterValue::Integer(value.integer),
            ParameterType::Double => ParameterValue::Double(value.real),
            ParameterType::String => {
                ParameterValue::String(argument::text(value.text, "value->text")?.to_owned())
            }
            ParameterType::ByteArray => ParameterValue::ByteArray(list(value)?),
            ParameterType::BoolArray => {
                ParameterValue::BoolArray(list::<u8>(value)?.into_iter().map(|byte| byte != 0).collect())
            }
            ParameterType::IntegerArray => ParameterValue::IntegerArray(list(value)?),
            ParameterType::DoubleArray => ParameterValue::DoubleArray(list(value)?),
            ParameterType::StringArray => {
                let texts = list::<*const c_char>(value)?.into_iter();
                let texts = texts.map(|text| argument::text(text, "value->elements").map(str::to_owned));
                ParameterValue::StringArray(texts.collect::<Result<_, _>>()?)
            }
        }
    })
}

/// # Safety
/// As in the header.
unsafe fn give(value: ParameterValue, kept: *mut *mut Kept, shown: *mut Value) -> Outcome {
    // SAFETY: the memory of the caller for the results.
    let (kept, shown) = unsafe { (argument::exclusive(kept, "kept")?, argument::exclusive(shown, "value")?) };
    let held = Kept::new(value);
    *shown = held.shown();
    *kept = Box::into_raw(held);
    Ok(OK)
}

/// Opens a node's parameters.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_parameters_open(
    node: *const NodeHandle,
    name: *const c_char,
    parameters: *mut *mut ParametersHandle,
) -> c_int {
    guard(|| {
        // SAFETY: the memory of the caller for the result.
        let handle = unsafe { argument::exclusive(parameters, "parameters") }?;
        *handle = ptr::null_mut();
        // SAFETY: null or the caller's handle and text.
        let (node, name) = unsafe { (argument::shared(node, "node")?, argument::text(name, "name")?) };
        let parameters = node.0.parameters(name)?;
        *handle = Box::into_raw(Box::new(ParametersHandle { parameters, _node: Arc::clone(&node.0) }));
        Ok(OK)
    })
}

/// Declares a parameter.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_parameters_declare(
    parameters: *const ParametersHandle,
    name: *const c_char,
    value: *const Value,
    options: *const Options,
) -> c_int {
    guard(|| {
        // SAFETY: null or the caller's handle, texts and values.
        let (handle, name, value) = unsafe {
            (argument::shared(parameters, "parameters")?, argument::text(name, "name")?, value_of(value)?)
        };
        // SAFETY: null or the caller's options.
        let descriptor = unsafe { descriptor(options, value.kind()) }?;
        handle
            .parameters
            .declare_as(name, value, descriptor)
            .map_err(|why| Failure::argument(why.to_string()))?;
        Ok(OK)
    })
}

/// # Safety
/// As in the header.
unsafe fn descriptor(options: *const Options, kind: ParameterType) -> Result<ParameterDescriptor, Failure> {
    // SAFETY: null or the caller's options.
    let Some(options) = (unsafe { options.as_ref() }) else { return Ok(ParameterDescriptor::default()) };
    // SAFETY: null or the caller's texts.
    let (description, constraints) = unsafe {
        (
            argument::optional_text(options.description, "description")?,
            argument::optional_text(options.constraints, "constraints")?,
        )
    };
    let range = match kind {
        _ if options.has_range == 0 => None,
        ParameterType::Integer => Some(ParameterRange::Integer {
            from: options.integer_from,
            to: options.integer_to,
            step: options.integer_step,
        }),
        _ => Some(ParameterRange::Double { from: options.from, to: options.to, step: options.step }),
    };
    Ok(ParameterDescriptor {
        description: description.unwrap_or_default().to_owned(),
        constraints: constraints.unwrap_or_default().to_owned(),
        read_only: options.read_only != 0,
        dynamic_typing: options.dynamic_typing != 0,
        range,
    })
}

/// The value of a parameter.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_parameters_get(
    parameters: *const ParametersHandle,
    name: *const c_char,
    kept: *mut *mut Kept,
    value: *mut Value,
) -> c_int {
    guard(|| {
        // SAFETY: the memory of the caller for the result.
        *unsafe { argument::exclusive(kept, "kept") }? = ptr::null_mut();
        // SAFETY: null or the caller's handle and text.
        let (handle, name) =
            unsafe { (argument::shared(parameters, "parameters")?, argument::text(name, "name")?) };
        let Some(found) = handle.parameters.get(name) else { return Ok(NOTHING) };
        // SAFETY: passed on.
        unsafe { give(found, kept, value) }
    })
}

/// Sets a parameter.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_parameters_set(
    parameters: *const ParametersHandle,
    name: *const c_char,
    value: *const Value,
) -> c_int {
    guard(|| {
        // SAFETY: null or the caller's handle, text and value.
        let (handle, name, value) = unsafe {
            (argument::shared(parameters, "parameters")?, argument::text(name, "name")?, value_of(value)?)
        };
        handle.parameters.set(name, value).map_err(|why| Failure::argument(why.to_string()))?;
        Ok(OK)
    })
}

/// Has a callback called before parameters are set.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_parameters_on_set(
    parameters: *const ParametersHandle,
    call: Option<Callback>,
    context: *mut c_void,
) -> c_int {
    guard(|| {
        // SAFETY: null or the caller's handle.
        let handle = unsafe { argument::shared(parameters, "parameters") }?;
        let call = call.ok_or_else(|| Failure::argument("call is NULL"))?;
        let context = Context(context);
        handle.parameters.on_set(move |values| {
            for (name, value) in values {
                let (name, kept) = (c_text(name), Kept::new(value.clone()));
                let shown = kept.shown();
                let mut why: [c_char; WHY_BYTES] = [0; WHY_BYTES];
                // SAFETY: the caller's function, with texts and room that live through the call.
                let refused =
                    unsafe { call(context.get(), name.as_ptr(), &shown, why.as_mut_ptr(), WHY_BYTES) };
                if refused != 0 {
                    why[WHY_BYTES - 1] = 0;
                    // SAFETY: ends with a zero.
                    let why = unsafe { CStr::from_ptr(why.as_ptr()) }.to_string_lossy();
                    return Err(why.into_owned().into());
                }
            }
            Ok(())
        });
        Ok(OK)
    })
}

/// Opens a client of the parameters of a node.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_parameter_client_open(
    node: *const NodeHandle,
    name: *const c_char,
    deadline_ns: i64,
    client: *mut *mut ParameterClientHandle,
) -> c_int {
    guard(|| {
        // SAFETY: the memory of the caller for the result.
        let handle = unsafe { argument::exclusive(client, "client") }?;
        *handle = ptr::null_mut();
        // SAFETY: null or the caller's handle and text.
        let (node, name) = unsafe { (argument::shared(node, "node")?, argument::text(name, "name")?) };
        if deadline_ns < 0 {
            let text = format!("deadline_ns is {deadline_ns}; it must be positive, or 0 for 5 s");
            return Err(Failure::argument(text));
        }
        let deadline = argument::timeout(deadline_ns).filter(|deadline| !deadline.is_zero());
        let client = node.0.parameter_client(name, deadline.unwrap_or(DEADLINE_DEFAULT))?;
        *handle = Box::into_raw(Box::new(ParameterClientHandle { client, _node: Arc::clone(&node.0) }));
        Ok(OK)
    })
}

/// Calls for each name of the node's parameters.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_parameter_client_list(
    client: *mut ParameterClientHandle,
    call: Option<NameCallback>,
    context: *mut c_void,
) -> c_int {
    guard(|| {
        // SAFETY: null or the caller's handle, which no other thread uses meanwhile.
        let handle = unsafe { argument::exclusive(client, "client") }?;
        let call = call.ok_or_else(|| Failure::argument("call is NULL"))?;
        for name in handle.client.list(&[], 0)?.names {
            // SAFETY: the caller's function, with a text that lives through the call.
            unsafe { call(context, c_text(&name).as_ptr()) };
        }
        Ok(OK)
    })
}

/// The value of another node's parameter.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_parameter_client_get(
    client: *mut ParameterClientHandle,
    name: *const c_char,
    kept: *mut *mut Kept,
    value: *mut Value,
) -> c_int {
    guard(|| {
        // SAFETY: the memory of the caller for the result.
        *unsafe { argument::exclusive(kept, "kept") }? = ptr::null_mut();
        // SAFETY: null or the caller's handle, which no other thread uses meanwhile, and its text.
        let (handle, name) =
            unsafe { (argument::exclusive(client, "client")?, argument::text(name, "name")?) };
        match handle.client.get(&[name])?.pop() {
            None | Some(ParameterValue::NotSet) => Ok(NOTHING),
            // SAFETY: passed on.
            Some(found) => unsafe { give(found, kept, value) },
        }
    })
}

/// Sets another node's parameter.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_parameter_client_set(
    client: *mut ParameterClientHandle,
    name: *const c_char,
    value: *const Value,
) -> c_int {
    guard(|| {
        // SAFETY: null or the caller's handle, which no other thread uses meanwhile, its text and its value.
        let (handle, name, value) = unsafe {
            (argument::exclusive(client, "client")?, argument::text(name, "name")?, value_of(value)?)
        };
        match handle.client.set(&[(name, value)])?.into_iter().next() {
            Some(Err(why)) => Err(Failure::argument(why.to_string())),
            _ => Ok(OK),
        }
    })
}

/// Gives a value back.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_parameter_release(kept: *mut Kept) {
    // SAFETY: null or a handle that the caller gives back.
    unsafe { close(kept) }
}

/// Closes a node's parameters.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_parameters_close(parameters: *mut ParametersHandle) {
    // SAFETY: null or a handle that the caller gives back.
    unsafe { close(parameters) }
}

/// Closes the client.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_parameter_client_close(client: *mut ParameterClientHandle) {
    // SAFETY: null or a handle that the caller gives back.
    unsafe { close(client) }
}
