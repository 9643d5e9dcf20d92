//! Samples between this node and one other, over datagrams that may be lost, doubled or out of order.
//!
//! # Problem
//!
//! A datagram carries 1,400 bytes and a camera's picture has a megabyte; a command must arrive although a
//! datagram is lost, and is worthless once it is late; and a sender that does not listen drowns the socket buffer
//! of the other side.
//!
//! # Approach
//!
//! - Samples are cut into fragments of equal length (`sending`) and reassembled (`receiving`, `held`). *Best effort*: sent once, the newest
//!   wins. *Reliable*: retransmitted until acknowledged (ARQ: `sent_packets`), delivered in order, each once; of a writer that is too fast the oldest
//!   samples are given up (`history`, keep last), and the other side learns where not to wait.
//!   *Deadline bound*: hybrid ARQ (`deadline_sender`): retransmission or repair symbols (FEC: [`erasure`]) while they can be in time, with
//!   the least redundancy that keeps a loss target (`repair`).
//! - Path MTU discovery (`congestion/path_mtu`): datagrams are as long as the path carries; probes go while samples need several.
//! - Feedback (ACK and NACK: `ack_state`) is piggybacked on samples that go the other way, else sent alone. RTT: `round_trip`; loss
//!   detection and retransmission time-out (RTO): `sent_packets`.
//! - Congestion control (`congestion`): short queues, a fair share beside CUBIC TCP, and no decrease for random
//!   losses. The rest waits in a queue of limited length. Flow control: `flow_control`.
//! - Datagrams of an earlier or later session of either node are recognised by the session number and dropped.
//!
//! A stream that several nodes read can go to all of them at once: [`group`].
//!
//! [`Link`] is the state machine of one pair of nodes: `handle_*` in, `poll_*` out, `now` an argument. Drain
//! order after any call: [`poll_transmit`](Link::poll_transmit) until `false`, then wait until
//! [`poll_timeout`](Link::poll_timeout) and call [`handle_timeout`](Link::handle_timeout). After at most [`BATCH_LIMIT`] datagrams taken in a row, drain.
//!
//! Every byte: `docs/spec/prrt.md`; reasons and formulas: `docs/design/prrt.md`.
#![forbid(unsafe_code)]

pub mod erasure;
pub mod group;
pub mod loss;
pub mod trace;

mod ack_state;
mod association;
mod block;
mod block_decoder;
mod config;
mod congestion;
mod counters;
mod deadline_receiver;
mod deadline_sender;
mod delay_table;
mod delivery;
mod feasibility;
mod flow_control;
mod fragment_set;
mod gilbert;
mod history;
mod link;
mod path;
mod reassembly;
mod receiving;
mod repair;
mod residual_loss;
mod round_trip;
mod sample_interval;
mod sending;
mod sent_counters;
mod sent_packets;
#[cfg(test)]
mod specification;
mod stream;
mod wire;

pub use config::{LinkConfig, SAMPLE_OVERHEAD_BYTES};
pub use counters::LinkCounters;
pub use deadline_receiver::ReceivedCounters;
pub use delivery::Delivery;
pub use feasibility::FeasibilityChange;
pub use link::{BATCH_LIMIT, Link};
pub use residual_loss::{Feasible, Infeasible};
pub use sending::SendError;
pub use sent_counters::SentCounters;
pub use stream::{Arrival, Bound, Class, Delivered, Ecn, Local, Order, Origin, Outgoing, Stamps, StreamId};
pub use wire::Malformed;

/// The wire format alone, for tools and fuzzing.
pub mod datagram {
    pub use crate::wire::{
        Blocked, Datagram, Feedback, Fragment, Head, Limit, Load, Marks, Numbers, Opening, Parity, Place,
        Probe, Reference, SAMPLES_MAX, Samples, Service, has_deadline, is_short,
    };
}
