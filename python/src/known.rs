//! `noctule.KnownNode` and `noctule.KnownEndpoint`.

use pyo3::prelude::*;

use crate::sample::named;

/// Another node.
#[pyclass(module = "noctule", frozen, get_all, eq)]
#[derive(PartialEq, Eq)]
pub(crate) struct KnownNode {
    /// Its number, 32 hexadecimal digits.
    id: String,
    /// For people; it need not be unique.
    name: String,
    /// Where its socket is.
    address: String,
    /// Whether it shares memory with this one.
    same_host: bool,
}

#[pymethods]
impl KnownNode {
    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        named(slf.as_any(), &["id", "name", "address", "same_host"])
    }
}

impl From<noctule::KnownNode> for KnownNode {
    fn from(known: noctule::KnownNode) -> KnownNode {
        let (id, address) = (known.id.to_string(), known.address.to_string());
        KnownNode { id, name: known.name, address, same_host: known.same_host }
    }
}

/// An endpoint of another node.
#[pyclass(module = "noctule", frozen, get_all, eq)]
#[derive(PartialEq, Eq)]
pub(crate) struct KnownEndpoint {
    /// Its node, 32 hexadecimal digits.
    node: String,
    /// The node's name.
    node_name: String,
    /// Whether the node shares memory with this one.
    same_host: bool,
    /// ``"publisher"`` or ``"subscriber"``.
    kind: &'static str,
    /// The topic.
    topic: String,
    /// Name of the type; empty for a subscriber to any.
    type_name: String,
    /// ``"best_effort"``, ``"deadline_bound"`` or ``"reliable"``.
    reliability: String,
    /// ``"volatile"`` or ``"transient_local"``.
    durability: String,
    /// Samples kept.
    keep_last: u32,
    /// Longest sample.
    payload_bytes_max: u32,
}

#[pymethods]
impl KnownEndpoint {
    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        named(slf.as_any(), &["node_name", "kind", "topic", "type_name", "reliability", "durability"])
    }
}

impl From<noctule::KnownEndpoint> for KnownEndpoint {
    fn from(known: noctule::KnownEndpoint) -> KnownEndpoint {
        let endpoint = known.endpoint;
        KnownEndpoint {
            node: known.node.to_string(),
            node_name: known.node_name,
            same_host: known.same_host,
            kind: match endpoint.kind {
                noctule::EndpointKind::Writer => "publisher",
                noctule::EndpointKind::Reader => "subscriber",
            },
            topic: endpoint.topic,
            type_name: endpoint.type_name,
            reliability: endpoint.qos.reliability.to_string(),
            durability: endpoint.qos.durability.to_string(),
            keep_last: endpoint.qos.depth,
            payload_bytes_max: endpoint.payload_bytes_max,
        }
    }
}
