//! Clients and servers.

use std::ffi::{c_char, c_int};
use std::ptr;
use std::sync::Arc;

use noctule::request::{ServiceTypes, TypeRef};
use noctule_rmw_core::services::Service;
use noctule_rmw_core::{ClientEnd, Gid, ServerEnd, Waitable};

use crate::endpoints::hash;
use crate::text::{Error, given, report};
use crate::{Message, NodeHandle, QualityOf, give};

/// A client.
pub struct ClientHandle(Arc<ClientEnd>);
/// A server.
pub struct ServerHandle(Arc<ServerEnd>);

/// As in the header.
#[repr(C)]
pub struct ServiceOf {
    name: *const c_char,
    request_name: *const c_char,
    request_hash: u64,
    response_name: *const c_char,
    response_hash: u64,
    rihs01: *const u8,
    quality: QualityOf,
}

/// # Safety
/// The header's contract.
unsafe fn service<R>(of: *const ServiceOf, open: impl FnOnce(&Service<'_>) -> R) -> R {
    // SAFETY: the header's contract.
    let (of, name, request, response, rihs01) = unsafe {
        let (request, response) = (given((*of).request_name), given((*of).response_name));
        (&*of, given((*of).name), request.into_owned(), response.into_owned(), hash((*of).rihs01))
    };
    let types = ServiceTypes {
        request: TypeRef { name: request, hash: of.request_hash },
        response: TypeRef { name: response, hash: of.response_hash },
    };
    open(&Service { name: &name, types, rihs01, quality: of.quality.quality() })
}

/// # Safety
/// The header's contract.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrmw_client_open(
    node: *mut NodeHandle,
    of: *const ServiceOf,
    error: *mut Error,
) -> *mut ClientHandle {
    // SAFETY: the header's contract.
    let opened = unsafe { service(of, |service| ClientEnd::open(&(*node).0, service)) };
    match opened {
        Ok(client) => Box::into_raw(Box::new(ClientHandle(client))),
        Err(why) => {
            // SAFETY: the header's contract.
            unsafe { report(error, &why) };
            ptr::null_mut()
        }
    }
}

/// # Safety
/// The header's contract.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrmw_client_free(client: *mut ClientHandle) {
    // SAFETY: the header's contract: it came of `nrmw_client_open` and was not freed.
    unsafe { Box::from_raw(client) }.0.close();
}

/// # Safety
/// The header's contract.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrmw_client_send(
    client: *mut ClientHandle,
    bytes: *const u8,
    length: usize,
    error: *mut Error,
) -> i64 {
    // SAFETY: the header's contract.
    let (client, bytes) = unsafe { (&*client, std::slice::from_raw_parts(bytes, length)) };
    client.0.send(bytes.to_vec()).unwrap_or_else(|why| {
        // SAFETY: the header's contract.
        unsafe { report(error, &why) };
        0
    })
}

/// # Safety
/// The header's contract.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrmw_client_take(client: *mut ClientHandle, message: *mut Message) -> bool {
    // SAFETY: the header's contract.
    unsafe { give((*client).0.take().map(Message::of_incoming), message) }
}

/// # Safety
/// The header's contract.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrmw_client_servers(client: *const ClientHandle) -> usize {
    // SAFETY: the header's contract.
    unsafe { &*client }.0.servers()
}

/// # Safety
/// The header's contract.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrmw_client_gid(client: *const ClientHandle, gid: *mut [u8; 16]) {
    // SAFETY: the header's contract.
    unsafe { *gid = (*client).0.gid().0 };
}

/// # Safety
/// The header's contract.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrmw_client_waitable(client: *mut ClientHandle) -> *const Waitable {
    // SAFETY: the header's contract.
    ptr::from_ref(unsafe { &*client }.0.waitable())
}

/// # Safety
/// The header's contract.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrmw_server_open(
    node: *mut NodeHandle,
    of: *const ServiceOf,
    error: *mut Error,
) -> *mut ServerHandle {
    // SAFETY: the header's contract.
    let opened = unsafe { service(of, |service| ServerEnd::open(&(*node).0, service)) };
    match opened {
        Ok(server) => Box::into_raw(Box::new(ServerHandle(server))),
        Err(why) => {
            // SAFETY: the header's contract.
            unsafe { report(error, &why) };
            ptr::null_mut()
        }
    }
}

/// # Safety
/// The header's contract.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrmw_server_free(server: *mut ServerHandle) {
    // SAFETY: the header's contract: it came of `nrmw_server_open` and was not freed.
    unsafe { Box::from_raw(server) }.0.close();
}

/// # Safety
/// The header's contract.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrmw_server_take(server: *mut ServerHandle, message: *mut Message) -> bool {
    // SAFETY: the header's contract.
    unsafe { give((*server).0.take().map(Message::of_incoming), message) }
}

/// # Safety
/// The header's contract.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrmw_server_reply(
    server: *mut ServerHandle,
    gid: *const [u8; 16],
    number: i64,
    bytes: *const u8,
    length: usize,
    error: *mut Error,
) -> c_int {
    // SAFETY: the header's contract.
    let (server, gid, bytes) = unsafe { (&*server, Gid(*gid), std::slice::from_raw_parts(bytes, length)) };
    match server.0.reply(gid, number, bytes.to_vec()) {
        Ok(true) => 0,
        Ok(false) => 1,
        Err(why) => {
            // SAFETY: the header's contract.
            unsafe { report(error, &why) };
            2
        }
    }
}

/// # Safety
/// The header's contract.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrmw_server_waitable(server: *mut ServerHandle) -> *const Waitable {
    // SAFETY: the header's contract.
    ptr::from_ref(unsafe { &*server }.0.waitable())
}
