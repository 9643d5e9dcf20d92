//! A DDS-XRCE agent as a state machine.
//!
//! # Problem
//!
//! Boards and flight controllers speak DDS-XRCE to an agent that takes part in the network for them. The
//! agent is usually a process of its own: one more hop, one more thing to start, and silent about how late
//! data are. Its clients cannot be changed, so all they expect, written down or not, must be kept.
//!
//! # Approach
//!
//! [`Agent`] is that agent without sockets, clocks and threads: a driver hands it datagrams or frames and
//! samples of topics, and carries away messages and events. It knows nothing of DDS but names: where
//! samples go is the driver's business.
//!
//! - What a client is sent it can hold: see [`outbound`] on how many messages are on the way.
//! - What waits for a client waits as a sample, where a newer one replaces it, and becomes a message when
//!   the line can take it.
//! - What a client sends is taken in order, acknowledged at once or, a client of ours on a slow line, behind a short answer, and bounded
//!   in every dimension; every limit is a constant with a name, and every drop has a counter.
//! - Time stamps are taken by the driver: arrivals are arguments, and departures are written into the
//!   finished message ([`Agent::handle_departure`]).
//!
//! Drain order after any `handle_*`: [`poll_event`](Agent::poll_event) until `None`,
//! [`poll_transmit`](Agent::poll_transmit) until `None`, then sleep until
//! [`poll_timeout`](Agent::poll_timeout) and call [`handle_timeout`](Agent::handle_timeout).
//!
//! Every byte: `docs/spec/xrce.md`. OMG DDS-XRCE 1.0 is formal/20-02-01.
#![forbid(unsafe_code)]

mod agent;
mod config;
mod creation;
mod data_reader;
mod description;
mod event;
mod inbound;
mod objects;
pub mod outbound;
mod session;
mod wire;
mod xml;

pub use agent::{Agent, ClientFigures, MESSAGE_BYTES_LEAST, REPLIES_MAX};
pub use config::AgentConfig;
pub use creation::References;
pub use data_reader::SAMPLES_DEFAULT;
pub use description::{KEEP_ALL, NAME_BYTES_MAX, Qos, SAMPLES_MAX, SERVICE_SAMPLES_MAX, Service, Topic};
pub use event::{
    ClientAddress, ClientClock, Counters, Departure, Direction, Endpoint, EndpointId, Event, Exchange, Gone,
    Local, Sample, Stamp, Transmit, Wall,
};
pub use inbound::AHEAD_MAX;
pub use objects::OBJECTS_MAX;
pub use session::{AHEAD_BYTES_MAX, BEST_EFFORT_MAX, CONTROL_MAX, EVENTS_MAX, STREAMS_MAX};
pub use wire::{ClientKey, Kind, ObjectId};
pub use xml::{DEPTH_MAX as XML_DEPTH_MAX, OBJECTS_MAX as XML_OBJECTS_MAX, XmlError};
