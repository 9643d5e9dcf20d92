//! `noctule_node_*`.

use std::ffi::{c_char, c_int};
use std::sync::Arc;

use noctule::{DescribeError, Node};

use crate::argument;
use crate::failure::{Failure, OK, Outcome, guard};

/// `noctule_node_t`.
pub struct NodeHandle(pub(crate) Arc<Node>);

/// `noctule_node_options_t`.
#[repr(C)]
pub struct NodeOptions {
    domain: u32,
    static_peers: *const *const c_char,
    static_peers_count: usize,
    swarm_key: *const c_char,
}

/// Starts a node.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_node_open(
    name: *const c_char,
    options: *const NodeOptions,
    node: *mut *mut NodeHandle,
) -> c_int {
    // SAFETY: passed on.
    guard(|| unsafe { open(name, options, node) })
}

/// # Safety
/// As the header says.
unsafe fn open(name: *const c_char, options: *const NodeOptions, node: *mut *mut NodeHandle) -> Outcome {
    // SAFETY: where the caller wants the result.
    let node = unsafe { argument::exclusive(node, "node") }?;
    *node = std::ptr::null_mut();
    // SAFETY: the caller's text.
    let mut builder = Node::builder(unsafe { argument::text(name, "name") }?);
    // SAFETY: null or the caller's options.
    if let Some(options) = unsafe { options.as_ref() } {
        builder = builder.domain(options.domain);
        let (first, count) = (options.static_peers, options.static_peers_count);
        // SAFETY: the caller's array.
        for peer in unsafe { argument::slice(first, count, "static_peers") }? {
            // SAFETY: the caller's text.
            builder = builder.static_peer(unsafe { argument::text(*peer, "a static peer") }?);
        }
        // SAFETY: null or the caller's text.
        if let Some(file) = unsafe { argument::optional_text(options.swarm_key, "swarm_key") }? {
            builder = builder.swarm_key(file);
        }
    }
    *node = Box::into_raw(Box::new(NodeHandle(Arc::new(builder.open()?))));
    Ok(OK)
}

/// Describes a type.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_node_describe(node: *const NodeHandle, description: *const c_char) -> c_int {
    guard(|| {
        // SAFETY: null or the caller's handle and text.
        let (node, text) =
            unsafe { (argument::shared(node, "node")?, argument::text(description, "description")?) };
        match node.0.describe(text) {
            Ok(_) => Ok(OK),
            Err(error @ DescribeError::Text(_)) => Err(Failure::argument(error.to_string())),
            Err(error) => Err(Failure::system(error.to_string())),
        }
    })
}

/// Now on the node's clock.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_now_ns(node: *const NodeHandle) -> i64 {
    let mut now_ns = i64::MIN;
    guard(|| {
        // SAFETY: null or the caller's handle.
        now_ns = unsafe { argument::shared(node, "node") }?.0.now().ns();
        Ok(OK)
    });
    now_ns
}

/// Closes a node.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_node_close(node: *mut NodeHandle) {
    // SAFETY: null or a handle that the caller gives back.
    unsafe { close(node) }
}

/// Takes a handle back.
///
/// # Safety
/// `handle` is null or came from `Box::into_raw`, and is not used again.
pub(crate) unsafe fn close<T>(handle: *mut T) {
    if !handle.is_null() {
        guard(|| {
            // SAFETY: the caller's promise.
            drop(unsafe { Box::from_raw(handle) });
            Ok(OK)
        });
    }
}
