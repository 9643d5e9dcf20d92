//! `noctule_client_*`, `noctule_call*`, `noctule_server_*`, `noctule_request_*` and `noctule_reply_*`.

use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;

use noctule::Node;
use noctule::request::{
    CallId, RawClient, RawReply, RawRequest, RawServer, RequestId, ServiceTypes, TypeRef,
};

use crate::argument;
use crate::failure::{Failure, NOTHING, OK, Outcome, guard};
use crate::node::{NodeHandle, close};
use crate::subscriber::Info;

/// `noctule_client_t`.
pub struct ClientHandle {
    client: RawClient,
    // After the client: its thread announces that the client has gone.
    _node: Arc<Node>,
}

/// `noctule_server_t`.
pub struct ServerHandle {
    server: RawServer,
    // After the server: its thread announces that the server has gone.
    _node: Arc<Node>,
}

/// `noctule_reply_t`.
pub struct ReplyHandle(RawReply);

/// `noctule_request_t`.
pub struct RequestHandle(RawRequest);

/// `noctule_service_options_t`.
#[repr(C)]
pub struct ServiceOptions {
    request_type: *const c_char,
    request_hash: u64,
    response_type: *const c_char,
    response_hash: u64,
    payload_bytes_max: u32,
    deadline_ns: i64,
    /// A C `bool`, which may hold anything if it was not initialised.
    idempotent: u8,
}

/// Types, the longest message, a client's deadline and whether its requests are idempotent.
type Settings = (ServiceTypes, Option<u32>, Option<std::time::Duration>, bool);

/// # Safety
/// As in the header.
unsafe fn settings(options: *const ServiceOptions) -> Result<Settings, Failure> {
    let any = || TypeRef { name: "bytes".to_owned(), hash: 0 };
    let mut types = ServiceTypes { request: any(), response: any() };
    // SAFETY: null or the caller's options.
    let Some(options) = (unsafe { options.as_ref() }) else { return Ok((types, None, None, false)) };
    // SAFETY: null or the caller's texts.
    let (request, response) = unsafe {
        (
            argument::optional_text(options.request_type, "request_type")?,
            argument::optional_text(options.response_type, "response_type")?,
        )
    };
    if let Some(name) = request {
        types.request = TypeRef { name: name.to_owned(), hash: options.request_hash };
    }
    if let Some(name) = response {
        types.response = TypeRef { name: name.to_owned(), hash: options.response_hash };
    }
    if options.deadline_ns < 0 {
        return Err(Failure::argument(format!(
            "deadline_ns is {}; it must be positive, or 0 for 5 s",
            options.deadline_ns
        )));
    }
    let most = (options.payload_bytes_max > 0).then_some(options.payload_bytes_max);
    let deadline = argument::timeout(options.deadline_ns).filter(|deadline| !deadline.is_zero());
    Ok((types, most, deadline, options.idempotent != 0))
}

/// Opens a client.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_client_open(
    node: *const NodeHandle,
    service: *const c_char,
    options: *const ServiceOptions,
    client: *mut *mut ClientHandle,
) -> c_int {
    guard(|| {
        // SAFETY: the memory of the caller for the result.
        let handle = unsafe { argument::exclusive(client, "client") }?;
        *handle = std::ptr::null_mut();
        // SAFETY: null or the caller's handle and text.
        let (node, service) =
            unsafe { (argument::shared(node, "node")?, argument::text(service, "service")?) };
        // SAFETY: null or the caller's options.
        let (types, most, deadline, is_idempotent) = unsafe { settings(options) }?;
        let mut builder = node.0.raw_client(service, types).idempotent(is_idempotent);
        if let Some(bytes) = most {
            builder = builder.payload_bytes_max(bytes);
        }
        if let Some(deadline) = deadline {
            builder = builder.deadline(deadline);
        }
        let client = builder.open()?;
        *handle = Box::into_raw(Box::new(ClientHandle { client, _node: Arc::clone(&node.0) }));
        Ok(OK)
    })
}

/// Gives a reply to the caller.
///
/// # Safety
/// As in the header.
unsafe fn give(reply: RawReply, handle: *mut *mut ReplyHandle, info: *mut Info) -> Outcome {
    // SAFETY: the memory of the caller for the result.
    let (handle, info) =
        unsafe { (argument::exclusive(handle, "reply")?, argument::exclusive(info, "info")?) };
    let kept = Box::new(ReplyHandle(reply));
    *info = Info::new(kept.0.info(), kept.0.bytes().as_ptr());
    *handle = Box::into_raw(kept);
    Ok(OK)
}

/// Sends a request and waits for its response.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_call(
    client: *mut ClientHandle,
    bytes: *const c_void,
    length_bytes: usize,
    reply: *mut *mut ReplyHandle,
    info: *mut Info,
) -> c_int {
    guard(|| {
        // SAFETY: the memory of the caller for the result.
        *unsafe { argument::exclusive(reply, "reply") }? = std::ptr::null_mut();
        // SAFETY: the memory of the caller for the result.
        unsafe { argument::exclusive(info, "info") }?;
        // SAFETY: null or the caller's handle, which no other thread uses meanwhile, and its bytes.
        let (handle, bytes) = unsafe {
            (
                argument::exclusive(client, "client")?,
                argument::slice(bytes.cast::<u8>(), length_bytes, "bytes")?,
            )
        };
        let answer = handle.client.call(bytes)?;
        // SAFETY: both were looked at above.
        unsafe { give(answer, reply, info) }
    })
}

/// Begins a call.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_call_start(
    client: *mut ClientHandle,
    bytes: *const c_void,
    length_bytes: usize,
    deadline_ns: i64,
    call: *mut i64,
) -> c_int {
    guard(|| {
        // SAFETY: the memory of the caller for the result.
        let number = unsafe { argument::exclusive(call, "call") }?;
        // SAFETY: null or the caller's handle, which no other thread uses meanwhile, and its bytes.
        let (handle, bytes) = unsafe {
            (
                argument::exclusive(client, "client")?,
                argument::slice(bytes.cast::<u8>(), length_bytes, "bytes")?,
            )
        };
        let deadline = argument::timeout(deadline_ns).filter(|deadline| !deadline.is_zero());
        *number = handle.client.start(bytes, deadline)?.number();
        Ok(OK)
    })
}

/// Waits for a call that ends.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_call_next(
    client: *mut ClientHandle,
    timeout_ns: i64,
    call: *mut i64,
    reply: *mut *mut ReplyHandle,
    info: *mut Info,
) -> c_int {
    guard(|| {
        // SAFETY: the memory of the caller for the results.
        let number = unsafe {
            *argument::exclusive(reply, "reply")? = std::ptr::null_mut();
            argument::exclusive(info, "info")?;
            argument::exclusive(call, "call")?
        };
        *number = 0;
        // SAFETY: null or the caller's handle, which no other thread uses meanwhile.
        let handle = unsafe { argument::exclusive(client, "client") }?;
        let Some(ended) = handle.client.next(argument::timeout(timeout_ns))? else { return Ok(NOTHING) };
        *number = ended.call.number();
        // SAFETY: both were looked at above.
        unsafe { give(ended.result?, reply, info) }
    })
}

/// Cancels a call.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_call_cancel(client: *mut ClientHandle, call: i64) -> c_int {
    guard(|| {
        // SAFETY: null or the caller's handle, which no other thread uses meanwhile.
        let handle = unsafe { argument::exclusive(client, "client") }?;
        Ok(if handle.client.cancel(CallId::of(call))? { OK } else { NOTHING })
    })
}

/// Opens a server.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_server_open(
    node: *const NodeHandle,
    service: *const c_char,
    options: *const ServiceOptions,
    server: *mut *mut ServerHandle,
) -> c_int {
    guard(|| {
        // SAFETY: the memory of the caller for the result.
        let handle = unsafe { argument::exclusive(server, "server") }?;
        *handle = std::ptr::null_mut();
        // SAFETY: null or the caller's handle and text.
        let (node, service) =
            unsafe { (argument::shared(node, "node")?, argument::text(service, "service")?) };
        // SAFETY: null or the caller's options.
        let (types, most, ..) = unsafe { settings(options) }?;
        let mut builder = node.0.raw_server(service, types);
        if let Some(bytes) = most {
            builder = builder.payload_bytes_max(bytes);
        }
        let server = builder.open()?;
        *handle = Box::into_raw(Box::new(ServerHandle { server, _node: Arc::clone(&node.0) }));
        Ok(OK)
    })
}

/// Waits for a request.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_server_receive(
    server: *mut ServerHandle,
    timeout_ns: i64,
    request: *mut *mut RequestHandle,
    info: *mut Info,
    deadline_ns: *mut i64,
) -> c_int {
    guard(|| {
        // SAFETY: the memory of the caller for the results.
        let (kept, info) =
            unsafe { (argument::exclusive(request, "request")?, argument::exclusive(info, "info")?) };
        *kept = std::ptr::null_mut();
        // SAFETY: null or the caller's handle, which no other thread uses meanwhile.
        let handle = unsafe { argument::exclusive(server, "server") }?;
        let Some(received) = handle.server.receive(argument::timeout(timeout_ns))? else {
            return Ok(NOTHING);
        };
        // SAFETY: null or the memory of the caller for the result.
        if let Some(deadline_ns) = unsafe { deadline_ns.as_mut() } {
            *deadline_ns = received.deadline().ns();
        }
        let boxed = Box::new(RequestHandle(received));
        *info = Info::new(boxed.0.info(), boxed.0.bytes().as_ptr());
        *kept = Box::into_raw(boxed);
        Ok(OK)
    })
}

/// Does something with a server and one of its requests.
///
/// # Safety
/// As in the header.
unsafe fn with_request(
    server: *mut ServerHandle,
    request: *const RequestHandle,
    act: impl FnOnce(&mut RawServer, RequestId) -> Outcome,
) -> c_int {
    guard(|| {
        // SAFETY: null or the caller's handles; no other thread uses the server meanwhile.
        let (handle, request) =
            unsafe { (argument::exclusive(server, "server")?, argument::shared(request, "request")?) };
        act(&mut handle.server, request.0.id())
    })
}

/// Answers a request.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_server_reply(
    server: *mut ServerHandle,
    request: *const RequestHandle,
    bytes: *const c_void,
    length_bytes: usize,
) -> c_int {
    let reply = |server: &mut RawServer, id| {
        // SAFETY: the caller's bytes.
        server.reply(id, unsafe { argument::slice(bytes.cast::<u8>(), length_bytes, "bytes") }?)?;
        Ok(OK)
    };
    // SAFETY: passed on.
    unsafe { with_request(server, request, reply) }
}

/// Answers a request with a reason.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_server_fail(
    server: *mut ServerHandle,
    request: *const RequestHandle,
    why: *const c_char,
) -> c_int {
    let fail = |server: &mut RawServer, id| {
        // SAFETY: the caller's text.
        server.fail(id, unsafe { argument::text(why, "why") }?)?;
        Ok(OK)
    };
    // SAFETY: passed on.
    unsafe { with_request(server, request, fail) }
}

/// Whether the client does not wait for an answer any more.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_server_is_cancelled(
    server: *mut ServerHandle,
    request: *const RequestHandle,
) -> c_int {
    // SAFETY: passed on.
    unsafe { with_request(server, request, |server, id| Ok(c_int::from(server.is_cancelled(id)))) }
}

/// Gives a reply back.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_reply_release(reply: *mut ReplyHandle) {
    // SAFETY: null or a handle that the caller gives back.
    unsafe { close(reply) }
}

/// Gives a request back.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_request_release(request: *mut RequestHandle) {
    // SAFETY: null or a handle that the caller gives back.
    unsafe { close(request) }
}

/// Closes a client.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_client_close(client: *mut ClientHandle) {
    // SAFETY: null or a handle that the caller gives back.
    unsafe { close(client) }
}

/// Closes a server.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_server_close(server: *mut ServerHandle) {
    // SAFETY: null or a handle that the caller gives back.
    unsafe { close(server) }
}
