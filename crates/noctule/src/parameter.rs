//! Parameters: named values of a node that other programs read and set, with ROS 2's semantics.
//!
//! # Approach
//!
//! - The six services of `rcl_interfaces` below the node's name, over [requests](crate::request), and the topic `/parameter_events`: tools of ROS 2
//!   reach them through a bridge, and ours reach those of ROS 2.
//! - `store`: what is declared, and what may be set. Sans-IO.
//! - [`Parameters`]: a thread of its own answers, so that a program that is busy keeps its parameters reachable.
//! - [`ParameterClient`]: the client.
//!
//! Differences to ROS 2's libraries: a parameter that is not declared is answered as "not set" where `rclcpp` sends an empty list, as
//! `rcl_interfaces` asks for it. Limits: [`PARAMETERS_MAX`], [`PARAMETER_BYTES_MAX`].

mod client;
mod refusal;
mod served;
mod store;
mod value;

#[cfg(test)]
mod tests;

pub use client::{Described, ParameterCallError, ParameterClient, ParameterSet};
pub use refusal::Refusal;
pub use served::{Parameters, ParametersError};
pub use store::{
    PARAMETER_BYTES_MAX, PARAMETER_NAME_BYTES_MAX, PARAMETERS_MAX, ParameterChanges, ParameterError,
    ParameterNames,
};
pub use value::{ParameterDescriptor, ParameterRange, ParameterType, ParameterValue};

/// Topic of the changes of all nodes' parameters.
pub const PARAMETER_EVENTS: &str = "/parameter_events";
/// Longest request or response about parameters, in bytes.
const MESSAGE_BYTES_MAX: u32 = 256 << 10;

/// The service of a node's parameters by its last name.
fn service(node: &str, last: &str) -> String {
    format!("/{}/{last}", node.trim_matches('/'))
}
