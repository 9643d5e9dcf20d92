//! Services across the bridge: requests from the side that has the clients, replies from the side that has the server.
//!
//! A server on the bus is a queryable in Zenoh, under its name and type and any hash; a server in ROS 2 is a server on the bus that asks by
//! queries. Each query has one asker, so a reply goes to the client that asked and to no other.

mod exchange;
mod routes;
mod status;

pub(crate) use routes::ServiceRoutes;
pub(crate) use status::{ListedServices, ServiceStatus};
