//! `noctule_nodes`, `noctule_endpoints`, `noctule_node_id`, `noctule_ping` and the counters of a node and its links.

use std::ffi::{CString, c_char, c_int, c_void};

use noctule::{Durability, EndpointKind, NodeId, PingError, Reliability};

use crate::argument;
use crate::failure::{Failure, NOTHING, OK, guard};
use crate::node::NodeHandle;

/// `noctule_known_node_t`.
#[repr(C)]
pub struct KnownNode {
    id: [u8; 16],
    name: *const c_char,
    address: *const c_char,
    same_host: bool,
}

/// `noctule_known_endpoint_t`.
#[repr(C)]
pub struct KnownEndpoint {
    node: [u8; 16],
    node_name: *const c_char,
    topic: *const c_char,
    type_name: *const c_char,
    type_hash: u64,
    same_host: bool,
    is_publisher: bool,
    transient_local: bool,
    reliability: c_int,
    keep_last: u32,
    payload_bytes_max: u32,
}

/// `noctule_node_counters_t`.
#[repr(C)]
pub struct NodeCounters {
    sent_datagrams: u64,
    send_calls: u64,
    send_would_block: u64,
    send_failed: u64,
    unacknowledged_bytes: u64,
    malformed: u64,
    strangers: u64,
    impostors: u64,
    refused_full: u64,
    refused_matches: u64,
}

/// `noctule_node_callback_t`.
type NodeCallback = unsafe extern "C" fn(context: *mut c_void, node: *const KnownNode);
/// `noctule_endpoint_callback_t`.
type EndpointCallback = unsafe extern "C" fn(context: *mut c_void, endpoint: *const KnownEndpoint);

/// Names of others may hold a zero byte; C would see the part before it.
fn text(text: &str) -> CString {
    CString::new(text.replace('\0', "")).unwrap_or_default()
}

fn count(count: usize) -> c_int {
    c_int::try_from(count).unwrap_or(c_int::MAX)
}

/// The node's number.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_node_id(node: *const NodeHandle, id: *mut [u8; 16]) -> c_int {
    guard(|| {
        // SAFETY: the memory of the caller for the result.
        let id = unsafe { argument::exclusive(id, "id") }?;
        // SAFETY: null or the caller's handle.
        *id = unsafe { argument::shared(node, "node") }?.0.id().0;
        Ok(OK)
    })
}

/// Calls with each other node.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_nodes(
    node: *const NodeHandle,
    call: Option<NodeCallback>,
    context: *mut c_void,
) -> c_int {
    guard(|| {
        // SAFETY: null or the caller's handle.
        let nodes = unsafe { argument::shared(node, "node") }?.0.nodes();
        let call = call.ok_or_else(|| Failure::argument("callback is NULL"))?;
        for known in &nodes {
            let (name, address) = (text(&known.name), text(&known.address.to_string()));
            let (id, name, address) = (known.id.0, name.as_ptr(), address.as_ptr());
            let given = KnownNode { id, name, address, same_host: known.same_host };
            // SAFETY: the caller's function and its context; the texts stay until it returns.
            unsafe { call(context, &raw const given) }
        }
        Ok(count(nodes.len()))
    })
}

/// Calls with each endpoint of other nodes.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_endpoints(
    node: *const NodeHandle,
    call: Option<EndpointCallback>,
    context: *mut c_void,
) -> c_int {
    guard(|| {
        // SAFETY: null or the caller's handle.
        let endpoints = unsafe { argument::shared(node, "node") }?.0.endpoints();
        let call = call.ok_or_else(|| Failure::argument("callback is NULL"))?;
        for known in &endpoints {
            let endpoint = &known.endpoint;
            let texts = [&known.node_name, &endpoint.topic, &endpoint.type_name].map(|name| text(name));
            let given = KnownEndpoint {
                node: known.node.0,
                node_name: texts[0].as_ptr(),
                topic: texts[1].as_ptr(),
                type_name: texts[2].as_ptr(),
                type_hash: endpoint.type_hash,
                same_host: known.same_host,
                is_publisher: endpoint.kind == EndpointKind::Writer,
                transient_local: endpoint.qos.durability == Durability::TransientLocal,
                reliability: match endpoint.qos.reliability {
                    Reliability::BestEffort => 0,
                    Reliability::DeadlineBound => 1,
                    Reliability::Reliable => 2,
                },
                keep_last: endpoint.qos.depth,
                payload_bytes_max: endpoint.payload_bytes_max,
            };
            // SAFETY: the caller's function and its context; the texts stay until it returns.
            unsafe { call(context, &raw const given) }
        }
        Ok(count(endpoints.len()))
    })
}

/// Counters of a node.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_node_counters(
    node: *const NodeHandle,
    counters: *mut NodeCounters,
) -> c_int {
    guard(|| {
        // SAFETY: the memory of the caller for the result.
        let result = unsafe { argument::exclusive(counters, "counters") }?;
        // SAFETY: null or the caller's handle.
        let node = &unsafe { argument::shared(node, "node") }?.0;
        let (received, sent) = (node.counters(), node.send_counters());
        *result = NodeCounters {
            sent_datagrams: sent.datagrams,
            send_calls: sent.system_calls,
            send_would_block: sent.would_block,
            send_failed: sent.failed,
            unacknowledged_bytes: node.unacknowledged_bytes() as u64,
            malformed: received.discovery.malformed + received.malformed_group,
            strangers: received.strangers,
            impostors: received.impostors,
            refused_full: received.discovery.refused_full,
            refused_matches: received.discovery.refused_matches,
        };
        Ok(OK)
    })
}

/// `noctule_link_counters_t`.
#[repr(C)]
pub struct LinkCounters {
    sent_datagrams: u64,
    sent_bytes: u64,
    lost_packets: u64,
    repeated: u64,
    given_up: u64,
    received_datagrams: u64,
    duplicates: u64,
    delivered: u64,
}

/// Counters of the link to a node of another host.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_link_counters(
    node: *const NodeHandle,
    other: *const [u8; 16],
    counters: *mut LinkCounters,
) -> c_int {
    guard(|| {
        // SAFETY: the memory of the caller for the result.
        let result = unsafe { argument::exclusive(counters, "counters") }?;
        // SAFETY: null or the caller's handle.
        let node = &unsafe { argument::shared(node, "node") }?.0;
        // SAFETY: null or the caller's number.
        let other = NodeId(*unsafe { argument::shared(other, "other") }?);
        let Some(link) = node.link_counters(other) else { return Ok(NOTHING) };
        *result = LinkCounters {
            sent_datagrams: link.sent_datagrams,
            sent_bytes: link.sent_bytes,
            lost_packets: link.lost_packets,
            repeated: link.repeated,
            given_up: link.given_up,
            received_datagrams: link.received_datagrams,
            duplicates: link.duplicates,
            delivered: link.delivered,
        };
        Ok(OK)
    })
}

/// `noctule_exchange_t`.
#[repr(C)]
pub struct Exchange {
    sent_ns: i64,
    arrived_ns: i64,
    replied_ns: i64,
    received_ns: i64,
}

/// Requests the time of another node.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_ping(
    node: *const NodeHandle,
    other: *const [u8; 16],
    timeout_ns: i64,
    exchange: *mut Exchange,
) -> c_int {
    guard(|| {
        // SAFETY: the memory of the caller for the result.
        let result = unsafe { argument::exclusive(exchange, "exchange") }?;
        // SAFETY: null or the caller's handle.
        let node = &unsafe { argument::shared(node, "node") }?.0;
        // SAFETY: null or the caller's number.
        let other = NodeId(*unsafe { argument::shared(other, "other") }?);
        let forever =
            || Failure::argument("timeout_ns is negative, but a reply may be lost; say how long to wait");
        let timeout = argument::timeout(timeout_ns).ok_or_else(forever)?;
        let times = node.ping(other, timeout).map_err(|error| match error {
            PingError::Unknown { .. } => Failure::argument(error.to_string()),
            PingError::Silent { .. } => Failure::no_reply(error.to_string()),
            PingError::Full | PingError::System(_) => Failure::system(error.to_string()),
        })?;
        *result = Exchange {
            sent_ns: times.t1.ns(),
            arrived_ns: times.t2.ns(),
            replied_ns: times.t3.ns(),
            received_ns: times.t4.ns(),
        };
        Ok(OK)
    })
}
