//! The C interface of `noctule-rmw-core`: `include/noctule_rmw.h` says what each function does.
//!
//! Handles are boxes of `Arc`s, so that the hub's thread may still have the other one. The only caller is this package's C++, which checks its own
//! arguments first; the header's rules for pointers are what every `// SAFETY:` here relies on ("the header's contract").

pub mod endpoints;
pub mod graph;
pub mod services;
pub mod text;
pub mod waiting;

use std::ffi::{c_char, c_void};
use std::ptr;
use std::sync::Arc;

use noctule_rmw_core::{Body, Context, Incoming, Participant, Quality, Settings, Taken};

use text::{Error, given, report};

/// A context.
pub struct ContextHandle(pub(crate) Context);
/// A node.
pub struct NodeHandle(pub(crate) Arc<Participant>);

/// As in the header.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct QualityOf {
    reliable: bool,
    transient_local: bool,
    keep_all: bool,
    depth: u32,
    deadline_ns: i64,
    lifespan_ns: i64,
}

/// As in the header.
#[repr(C)]
pub struct Message {
    bytes: *const u8,
    length: usize,
    source_ns: i64,
    received_ns: i64,
    number: i64,
    received: u64,
    gid: [u8; 16],
    is_lent: bool,
    owner: *mut c_void,
}

impl QualityOf {
    pub(crate) fn quality(&self) -> Quality {
        let duration = |ns: i64| (ns > 0).then(|| std::time::Duration::from_nanos(ns as u64));
        Quality {
            reliable: self.reliable,
            transient_local: self.transient_local,
            keep_all: self.keep_all,
            depth: self.depth,
            deadline: duration(self.deadline_ns),
            lifespan: duration(self.lifespan_ns),
        }
    }

    pub(crate) fn of(quality: &Quality) -> QualityOf {
        let ns = |duration: Option<std::time::Duration>| {
            duration.map_or(0, |duration| i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX))
        };
        QualityOf {
            reliable: quality.reliable,
            transient_local: quality.transient_local,
            keep_all: quality.keep_all,
            depth: quality.depth,
            deadline_ns: ns(quality.deadline),
            lifespan_ns: ns(quality.lifespan),
        }
    }
}

impl Message {
    fn of(body: Body) -> Message {
        let is_lent = matches!(body, Body::Lent(_));
        let owner = Box::new(body);
        let (bytes, length) = owner.place();
        let owner = Box::into_raw(owner).cast();
        let (source_ns, received_ns, number, received, gid) = (0, 0, 0, 0, [0; 16]);
        Message { bytes, length, source_ns, received_ns, number, received, gid, is_lent, owner }
    }

    pub(crate) fn of_taken(taken: Taken) -> Message {
        Message {
            source_ns: taken.source_ns.unwrap_or(i64::MIN),
            received_ns: taken.received_ns,
            number: taken.published as i64,
            received: taken.received,
            gid: taken.gid.0,
            ..Message::of(taken.body)
        }
    }

    pub(crate) fn of_incoming(incoming: Incoming) -> Message {
        Message {
            source_ns: incoming.source_ns.unwrap_or(i64::MIN),
            received_ns: incoming.received_ns,
            number: incoming.sequence,
            gid: incoming.client.0,
            ..Message::of(Body::Copied(incoming.bytes))
        }
    }
}

/// Gives a message away, if there is one.
///
/// # Safety
/// `to` is valid for writing.
pub(crate) unsafe fn give(message: Option<Message>, to: *mut Message) -> bool {
    let is_some = message.is_some();
    if let Some(message) = message {
        // SAFETY: the caller's word.
        unsafe { to.write(message) };
    }
    is_some
}

/// # Safety
/// The header's contract.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrmw_message_free(message: *mut Message) {
    // SAFETY: the header's contract: it came of a `_take` and was not freed; the owner is that box.
    unsafe { drop(Box::from_raw((*message).owner.cast::<Body>())) };
}

/// # Safety
/// The header's contract.
#[allow(clippy::too_many_arguments)] // C has no better way to say it
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrmw_context_new(
    domain: u32,
    localhost: bool,
    peers: *const *const c_char,
    peer_count: usize,
    enclave: *const c_char,
    notify: extern "C" fn(bool, *const c_char),
    error: *mut Error,
) -> *mut ContextHandle {
    // SAFETY: the header's contract.
    let peers = (0..peer_count).map(|at| unsafe { given(*peers.add(at)) }.into_owned()).collect();
    // SAFETY: the same.
    let enclave = unsafe { given(enclave) }.into_owned();
    let notify =
        Arc::new(move |is_warning: bool, sentence: &str| notify(is_warning, text::owned(sentence).as_ptr()));
    match Context::new(Settings { domain, localhost, peers, enclave, notify }) {
        Ok(context) => Box::into_raw(Box::new(ContextHandle(context))),
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
pub unsafe extern "C" fn nrmw_context_free(context: *mut ContextHandle) {
    // SAFETY: the header's contract: it came of `nrmw_context_new` and was not freed.
    drop(unsafe { Box::from_raw(context) });
}

/// # Safety
/// The header's contract.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrmw_node_open(
    context: *mut ContextHandle,
    namespace: *const c_char,
    name: *const c_char,
    error: *mut Error,
) -> *mut NodeHandle {
    // SAFETY: the header's contract.
    let (context, namespace, name) = unsafe { (&*context, given(namespace), given(name)) };
    match context.0.open(&namespace, &name) {
        Ok(node) => Box::into_raw(Box::new(NodeHandle(node))),
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
pub unsafe extern "C" fn nrmw_node_free(node: *mut NodeHandle) {
    // SAFETY: the header's contract: it came of `nrmw_node_open` and was not freed.
    drop(unsafe { Box::from_raw(node) });
}

/// # Safety
/// The header's contract.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrmw_node_graph(node: *mut NodeHandle) -> *const noctule_rmw_core::Waitable {
    // SAFETY: the header's contract.
    ptr::from_ref(unsafe { &*node }.0.graph())
}

/// # Safety
/// The header's contract.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrmw_node_describe(node: *mut NodeHandle, text: *const c_char) -> u64 {
    // SAFETY: the header's contract.
    let (node, text) = unsafe { (&*node, given(text)) };
    node.0.describe(&text)
}
