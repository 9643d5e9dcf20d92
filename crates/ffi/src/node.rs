//! `noctule_node_*`.

use std::ffi::{CString, c_char, c_int, c_void};
use std::sync::Arc;

use noctule::{DescribeError, Node, NodeBuilder};

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
    interface_address: *const c_char,
    /// A C `bool`, which may hold anything if it was not initialised.
    shares_with_group: u8,
    group: u32,
    without_shared_memory: u8,
    unacknowledged_bytes_max: usize,
    on_notice: Option<NoticeCallback>,
    on_notice_context: *mut c_void,
    on_notice_done: Option<unsafe extern "C" fn(context: *mut c_void)>,
}

/// Starts a node.
///
/// # Safety
/// As in the header.
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
/// As in the header.
unsafe fn open(name: *const c_char, options: *const NodeOptions, node: *mut *mut NodeHandle) -> Outcome {
    // SAFETY: the memory of the caller for the result.
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
        // SAFETY: passed on.
        builder = unsafe { more_options(builder, options) }?;
    }
    *node = Box::into_raw(Box::new(NodeHandle(Arc::new(builder.open()?))));
    Ok(OK)
}

/// Describes a type.
///
/// # Safety
/// As in the header.
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

/// `noctule_notice_callback_t`.
type NoticeCallback =
    unsafe extern "C" fn(context: *mut c_void, kind: *const c_char, sentence: *const c_char);

/// The caller's, which the node's thread may use, and what is called when it does no more.
struct Context(*mut c_void, Option<unsafe extern "C" fn(context: *mut c_void)>);

// SAFETY: the caller's promise: the node's thread may use it, and no other does through us.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Drop for Context {
    fn drop(&mut self) {
        if let Some(done) = self.1 {
            // SAFETY: the caller's function and its context, once.
            unsafe { done(self.0) }
        }
    }
}

impl Context {
    /// As a method, so that a closure takes all of it and not the pointer alone.
    fn pointer(&self) -> *mut c_void {
        self.0
    }
}

/// # Safety
/// As in the header.
unsafe fn more_options(mut builder: NodeBuilder, options: &NodeOptions) -> Result<NodeBuilder, Failure> {
    // SAFETY: null or the caller's text.
    if let Some(address) = unsafe { argument::optional_text(options.interface_address, "interface_address") }?
    {
        let wrong = |_| {
            let not_there = "is no IPv4 address of an interface, and IPv6 is not supported here";
            Failure::argument(format!("{address} {not_there}; write e.g. 192.168.1.7"))
        };
        builder = builder.interface(address.parse().map_err(wrong)?);
    }
    if options.shares_with_group != 0 {
        builder = builder.share_with_group(options.group);
    }
    if options.without_shared_memory != 0 {
        builder = builder.without_shared_memory();
    }
    if options.unacknowledged_bytes_max > 0 {
        builder = builder.unacknowledged_bytes_max(options.unacknowledged_bytes_max);
    }
    if let Some(call) = options.on_notice {
        let context = Context(options.on_notice_context, options.on_notice_done);
        builder = builder.on_notice(move |notice| {
            let kind = CString::new(notice.kind()).unwrap_or_default();
            let sentence = CString::new(notice.to_string().replace('\0', "")).unwrap_or_default();
            // SAFETY: the caller's function and its context; both texts stay until it returns.
            unsafe { call(context.pointer(), kind.as_ptr(), sentence.as_ptr()) }
        });
    }
    Ok(builder)
}

/// Now on the node's clock.
///
/// # Safety
/// As in the header.
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
/// As in the header.
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
