//! Messaging for robots, in which every sample has its age.
//!
//! A [`Node`] joins a swarm; a [`Publisher`] writes samples of a topic, a [`Subscriber`] reads them, each
//! with its [`Age`] in the reader's own clock and a bound for it. On one host samples go through shared
//! memory; between hosts by UDP. Discovery finds the readers.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let node = noctule::Node::new("camera")?;
//! let mut publisher = node.publisher("image").open()?;
//! publisher.publish(b"pixels")?;
//!
//! let mut subscriber = node.subscriber("image").open()?;
//! while let Some(sample) = subscriber.receive(None)? {
//!     println!("{} bytes, {:?} old", sample.len(), sample.age());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Values of a Rust type travel in one of eleven [`formats`], of which CDR and the plain layout are always there and each
//! other one is a feature of this crate (`json`, `protobuf`, …, `all_formats`); name and definition of the type go along, so that two
//! programs that disagree both get a notice:
//!
//! ```no_run
//! use serde::{Deserialize, Serialize};
//!
//! noctule::message! {
//!     /// Where the robot is.
//!     #[derive(Debug, Serialize, Deserialize)]
//!     pub struct Pose: "demo/Pose" {
//!         /// East, north, up.
//!         pub position_m: [f64; 3],
//!         /// Of the map.
//!         pub frame: String,
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let node = noctule::Node::new("localisation")?;
//! let mut publisher = node.publisher("pose").typed::<Pose>().open()?;
//! publisher.publish(&Pose { position_m: [1.0, 2.0, 0.5], frame: "map".into() })?;
//!
//! let mut subscriber = node.subscriber("pose").typed::<Pose>().open()?;
//! while let Some(pose) = subscriber.receive(None)? {
//!     println!("{:?} in {}, {:?} old", pose.position_m, pose.frame, pose.age());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Cores (`noctule-discovery`, `noctule-time-sync`, `noctule-shm-ring`) decide and never see a socket;
//! this crate has the sockets, the clock and one thread per node.
#![forbid(unsafe_code)]

// What the generator makes names this crate as every other does.
extern crate self as noctule;

pub mod action;
pub mod envelope;
pub mod swarm_key;
pub mod sync;

mod age_histogram;
mod deadline;
mod dispatcher;
mod error;
#[rustfmt::skip]
#[path = "generated/mod.rs"]
#[allow(unreachable_pub, missing_debug_implementations)]
mod generated;
mod key_file;
mod link_report;
mod node;
mod notice;
pub mod parameter;
mod publisher;
pub mod request;
mod sample;
mod shared_topic;
mod stamp;
mod statistics;
mod subscriber;
mod topic_formats;
mod type_descriptions;

/// The clock of a process: the machine's own, or an artificial one.
pub use noctule_local_clock as clock;

/// Serialization: what values of a type become, see [`PublisherBuilder::typed`].
pub use noctule_formats as formats;

pub use age_histogram::{AGE_HISTOGRAM_BYTES, AgeHistogram};
pub use deadline::DeadlineMissed;
pub use dispatcher::{DispatchError, Dispatcher, Receive, SpinResult, Stopper};
pub use error::{NodeError, PublishError, ReceiveError, TakeError};
pub use link_report::LinkReport;
pub use noctule_discovery::{
    Counters as DiscoveryCounters, Durability, Endpoint, EndpointId, EndpointKind, Incompatible, NodeId, Qos,
    Reason, Reliability, UnknownQosWord, incompatible,
};
pub use noctule_formats::{Format, FormatError, Message, TypeDescription, message};
/// Terms of the transport in notices and counters.
pub use noctule_prrt::{Infeasible, LinkCounters, ReceivedCounters, SentCounters};
pub use noctule_shm_ring::ReadError;
pub use noctule_time_sync::{Estimate, Exchange};
pub use node::{
    DescribeError, KnownEndpoint, KnownNode, Node, NodeBuilder, NodeCounters, PINGS_LIMIT, PathFigures,
    PingError, RELAY_TRACE_SCHEMA, SendCounters, UNACKNOWLEDGED_BYTES_DEFAULT,
};
pub use notice::{Notice, NoticeHook};
pub use publisher::{
    FieldsInPlace, LINGER_DEFAULT, LoanedSample, PAYLOAD_BYTES_DEFAULT, Publisher, PublisherBuilder,
    SourceTime, TypedPublisher, TypedPublisherBuilder,
};
pub use request::{CallError, Client, Failure, Reply, Request, RequestId, Server};
pub use sample::{Age, Route, Sample, SampleInfo};
pub use stamp::{StampClock, StampError};
pub use statistics::{StatisticsWindow, SubscriberCounters, SubscriberStatistics, WindowStatistics};
pub use subscriber::{
    InPlace, Ready, Samples, Subscriber, SubscriberBuilder, TypedSample, TypedSubscriber,
    TypedSubscriberBuilder, Wait, WaitSet, Waker,
};
pub use type_descriptions::{DESCRIBED_BYTES_MAX, DESCRIBED_TYPES_MAX, DescriptionCounters};

/// Reads what a local socket brings, from a socket of any name, and a kernel's list of such names; for the fuzzer.
#[doc(hidden)]
pub fn local_packet(name: &[u8], bytes: &mut [u8]) -> bool {
    node::local_packet(name, bytes)
}

/// Reads a datagram about samples by UDP on one host and writes it again; for the fuzzer.
#[doc(hidden)]
pub fn by_udp_again(bytes: &[u8]) -> Option<Vec<u8>> {
    node::by_udp_again(bytes)
}

/// Reads the headers of a request and of a reply and writes them again; for the fuzzer.
#[doc(hidden)]
pub fn request_again(bytes: &[u8]) -> [Option<Vec<u8>>; 2] {
    request::wire::again(bytes)
}

/// Reads a question of another node, or an answer, about types or links, and writes it again; for the fuzzer.
#[doc(hidden)]
pub fn question_again(bytes: &[u8]) -> Option<Vec<u8>> {
    type_descriptions::wire::again(bytes)
}

/// Reads a packet of the hand-over and writes it again; for the fuzzer.
#[doc(hidden)]
pub fn ring_handshake_again(bytes: &[u8]) -> Option<Vec<u8>> {
    node::ring_handshake_again(bytes)
}
