//! Flight controllers, micro-ROS boards and DDS networks ⇄ a Noctule node.
#![forbid(unsafe_code)]

pub mod mavlink;
