//! Limits and settings of an agent.

use std::num::NonZeroU16;

use noctule_timebase::Span;

/// Limits and settings of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgentConfig {
    /// Clients at once; the one that has been silent longest makes room. Default 256.
    pub clients_max: usize,
    /// Messages per second of one client, with a tenth of a second's worth at once; more are dropped.
    /// Default 20,000.
    pub client_messages_per_s: u32,
    /// Largest sample from a client, with its submessage header, in bytes. Default 1 MiB.
    pub sample_bytes_max: usize,
    /// The longest that an acknowledgement waits for an answer to what it acknowledges, for clients of ours whose samples
    /// are answered so fast: for slow lines. Default none, and an acknowledgement goes before all else then.
    pub hold: Span,
    /// Reliable messages that clients of others hold until one that is missing has come, the pieces of a sample among them: the history
    /// that they are built with, e.g. `STREAM_HISTORY` of the examples of Micro XRCE-DDS. `None`, the default: found out, up to 16.
    pub client_history: Option<NonZeroU16>,
}

impl Default for AgentConfig {
    fn default() -> AgentConfig {
        AgentConfig {
            clients_max: 256,
            client_messages_per_s: 20_000,
            sample_bytes_max: 1 << 20,
            hold: Span::ZERO,
            client_history: None,
        }
    }
}
