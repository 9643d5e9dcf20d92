//! YAML.
//!
//! By `serde-saphyr` (MIT or Apache-2.0), maintained, in safe Rust, with budgets against hostile documents.
//! `serde_yaml` is deprecated; its successors `serde_yaml_ng` and `serde_norway` stand on a C parser translated to
//! unsafe Rust. Anchors and aliases are refused: no encoder of messages writes them, and they are how a small document
//! becomes a large one.
//! Source: YAML 1.2.2.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::Fault;

pub(crate) fn encode<T: Serialize>(value: &T, out: &mut Vec<u8>) -> Result<(), Fault> {
    serde_saphyr::to_io_writer(out, value).map_err(Fault::of)
}

pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Fault> {
    // Each node, event or byte of text needs at least a byte of the document.
    let most = bytes.len() + 16;
    let budget = serde_saphyr::budget! {
        max_events: 3 * most,
        max_nodes: most,
        max_total_scalar_bytes: most,
        max_anchors: 0,
        max_aliases: 0,
        max_merge_keys: 0,
        max_documents: 1,
    };
    let options = serde_saphyr::options! { budget: budget };
    serde_saphyr::from_slice_with_options(bytes, options).map_err(Fault::of)
}
