//! Made by generators; not ours to edit. After a change of `schemas/uav_state.fbs`:
//!
//! ```text
//! cargo install planus-cli@1.3.0
//! planus rust -o crates/formats/src/generated/uav_state.rs crates/formats/schemas/uav_state.fbs && cargo fmt
//! ```

#[allow(unsafe_code, missing_docs, unreachable_pub, dead_code)]
#[allow(
    clippy::all,
    clippy::unwrap_used,
    clippy::undocumented_unsafe_blocks,
    clippy::too_many_lines,
    clippy::too_many_arguments
)]
pub(crate) mod uav_state;
