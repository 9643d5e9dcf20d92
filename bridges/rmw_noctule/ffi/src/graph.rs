//! The graph.

use std::ffi::{c_char, c_void};
use std::ptr;

use noctule_rmw_core::graph::{self, Wanted, Way};

use crate::text::{given, owned};
use crate::{ContextHandle, QualityOf};

/// In the order of the header.
const WANTED: [Wanted; 7] = [
    Wanted::Topics,
    Wanted::AllTopics,
    Wanted::Published,
    Wanted::Subscribed,
    Wanted::Services,
    Wanted::Served,
    Wanted::Called,
];

/// As in the header.
#[repr(C)]
pub struct EntryOf {
    node_namespace: *const c_char,
    node_name: *const c_char,
    type_name: *const c_char,
    rihs01: *const u8,
    quality: QualityOf,
    gid: [u8; 16],
}

fn wanted(number: u32) -> Wanted {
    WANTED.get(number as usize).copied().unwrap_or(Wanted::Topics)
}

/// # Safety
/// The header's contract.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrmw_nodes(
    context: *const ContextHandle,
    to: *mut c_void,
    visit: extern "C" fn(*mut c_void, *const c_char, *const c_char, *const c_char),
) {
    // SAFETY: the header's contract.
    for node in unsafe { &*context }.0.nodes() {
        let (namespace, name, enclave) = (owned(&node.namespace), owned(&node.name), owned(&node.enclave));
        visit(to, namespace.as_ptr(), name.as_ptr(), enclave.as_ptr());
    }
}

/// # Safety
/// The header's contract.
#[allow(clippy::too_many_arguments)] // C has no better way to say it
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrmw_names(
    context: *const ContextHandle,
    number: u32,
    node_namespace: *const c_char,
    node_name: *const c_char,
    to: *mut c_void,
    visit: extern "C" fn(*mut c_void, *const c_char, *const c_char),
) -> bool {
    // SAFETY: the header's contract.
    let context = &unsafe { &*context }.0;
    // SAFETY: the header's contract.
    let node = (!node_name.is_null()).then(|| unsafe { (given(node_namespace), given(node_name)) });
    let node = node.as_ref().map(|(namespace, name)| (namespace.as_ref(), name.as_ref()));
    if let Some((namespace, name)) = node
        && !context.nodes().iter().any(|node| node.namespace == namespace && node.name == name)
    {
        return false;
    }
    for (name, types) in graph::names(&context.entries(), wanted(number), node) {
        let name = owned(&name);
        if types.is_empty() {
            visit(to, name.as_ptr(), c"".as_ptr());
        }
        types.iter().for_each(|type_name| visit(to, name.as_ptr(), owned(type_name).as_ptr()));
    }
    true
}

/// # Safety
/// The header's contract.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrmw_count(
    context: *const ContextHandle,
    number: u32,
    name: *const c_char,
) -> usize {
    // SAFETY: the header's contract.
    let (context, name) = unsafe { (&*context, given(name)) };
    graph::count(&context.0.entries(), wanted(number), &name)
}

/// # Safety
/// The header's contract.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrmw_ends(
    context: *const ContextHandle,
    topic: *const c_char,
    writes: bool,
    to: *mut c_void,
    visit: extern "C" fn(*mut c_void, *const EntryOf),
) {
    // SAFETY: the header's contract.
    let (context, topic) = unsafe { (&(*context).0, given(topic)) };
    let way = if writes { Way::Writes } else { Way::Reads };
    let mut entries = context.entries();
    entries.retain(|entry| entry.topic == topic && entry.way == way);
    for entry in context.with_hashes(entries) {
        let (namespace, name) = (owned(&entry.node.namespace), owned(&entry.node.name));
        let type_name = owned(&entry.type_name);
        visit(
            to,
            &EntryOf {
                node_namespace: namespace.as_ptr(),
                node_name: name.as_ptr(),
                type_name: type_name.as_ptr(),
                rihs01: entry.rihs01.as_ref().map_or(ptr::null(), |hash| hash.as_ptr()),
                quality: QualityOf::of(&entry.quality),
                gid: entry.gid.0,
            },
        );
    }
}
