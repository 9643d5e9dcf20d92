//! Modelled links, live: any unmodified program runs across them.
//!
//! # Problem
//!
//! A transport must be tried on bad links beside programs that know nothing of models, and the kernels of
//! many boards have no netem.
//!
//! # Approach
//!
//! Two or more network namespaces, in each a TUN device, and between the devices one thread that
//! runs the model of `noctule_netsim::link` in real time. Namespaces and devices have no names outside
//! and belong to the process: whatever ends it, nothing is left but a line of state that the next
//! start recognises by process number and start time.
//!
//! - [`star`]: packets of several nodes through their links; no sockets.
//! - [`forwarder`]: the thread, exact in time; what the lab uses.
//! - [`air`]: one shared Wi-Fi channel of up to 128 nodes.
//! - [`capture`]: what each node saw, as pcap.
//! - [`source`]: specifications from presets, files and recordings.
//! - [`instance`]: links with names, for commands.
//! - [`serial`]: a serial line between two pseudo-terminals.
//! - [`precision`]: what the emulator adds to the delay asked for.
//!
//! Reasons and figures: `docs/design/link-emulator.md`.
#![forbid(unsafe_code)]

pub mod air;
pub mod capture;
pub mod forwarder;
pub mod instance;
pub mod precision;
pub mod report;
pub mod serial;
pub mod source;
pub mod star;

pub use air::LiveAir;
pub use forwarder::{Forwarder, ForwarderSettings};
pub use report::Report;
