//! Services across: ROS 2's by `rmw_cyclonedds_cpp`, and the requests of the bus. Parameters and actions are services, too.
//!
//! - [`plan`]: which services, by both sides' endpoints; [`message`]: the bytes. Pure.
//! - `routes`: opens and closes what the plan wants.
//! - `intake`: a thread that takes requests and replies from DDS; `lane`: threads that pass them, each for many services; `exchange`: one service.
//!
//! A server in DDS is a server of the bridge's node on the bus, with all that the bus promises its clients: a request has a deadline, is passed on
//! once however often it comes, and ends with an error when its server goes. A server on the bus is called by the bridge's node for clients in
//! DDS, which know neither deadlines nor errors: there a request without a reply is counted and named by the bridge.

#[cfg(feature = "cyclone")]
mod exchange;
#[cfg(feature = "cyclone")]
mod intake;
#[cfg(feature = "cyclone")]
mod lane;
pub mod message;
pub mod plan;
#[cfg(feature = "cyclone")]
mod routes;
#[cfg(feature = "cyclone")]
mod status;

#[cfg(feature = "cyclone")]
pub(crate) use routes::ServiceRoutes;
#[cfg(feature = "cyclone")]
pub(crate) use status::ListedServices;
#[cfg(feature = "cyclone")]
pub use status::ServiceStatus;
