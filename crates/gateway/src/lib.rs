//! Boards and flight controllers on the bus.
//!
//! # Problem
//!
//! A board speaks DDS-XRCE over a serial line or UDP, and an agent represents it on the network: usually a
//! process of its own, which adds a hop and cannot say how old what it passes on is.
//!
//! # Approach
//!
//! A [`Gateway`] lives in any process that has a [`Node`](noctule::Node): the application's own, or
//! `noctule gateway`. Each serial device, each UDP port and each TCP port is a *line* with an agent
//! (`noctule-xrce`) and a thread of its own, so that no line waits for another. What a client publishes
//! appears on the bus under its ROS 2 name, as CDR, with the time it was measured as far as that is known
//! ([`ages`]); what it subscribes to is taken from the bus by a thread that hands it to the line directly.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let node = std::sync::Arc::new(noctule::Node::new("companion")?);
//! let gateway = noctule_gateway::Gateway::builder().serial("/dev/ttyUSB0", 921_600).attach(&node)?;
//! let mut odometry = node.subscriber("/fmu/out/vehicle_odometry").open()?;
//! while let Some(sample) = odometry.receive(None)? {
//!     println!("{:?}", sample.age());
//! }
//! # drop(gateway);
//! # Ok(())
//! # }
//! ```
//!
//! An autopilot that speaks MAVLink has the topics that MAVROS gives it ([`mavlink::bridge`]).
//!
//! Why so: `docs/design/gateway.md`. How to use it: `docs/guide/gateway.md`.
#![forbid(unsafe_code)]

pub mod ages;
mod bus;
mod bus_reader;
mod gateway;
mod inlet;
mod line;
pub mod mavlink;
mod serial;
mod services;
mod tcp;
mod udp;

pub use ::mavlink::dialects::dynamic::DynamicDialect;
pub use bus::Definitions;
pub use gateway::{Gateway, GatewayBuilder, GatewayError};
pub use line::{ClientStatus, LineStatus, NOTICES_MAX};
/// Names of topics and types on the bus and in DDS.
pub use noctule_bridge::names;
pub use noctule_xrce::{AgentConfig, References, XmlError};
pub use serial::BAUD_DEFAULT;
pub use tcp::CONNECTIONS_MAX;
