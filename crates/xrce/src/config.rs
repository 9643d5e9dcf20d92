//! What an agent allows.

use noctule_timebase::Span;

/// What an agent allows.
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
}

impl Default for AgentConfig {
    fn default() -> AgentConfig {
        AgentConfig {
            clients_max: 256,
            client_messages_per_s: 20_000,
            sample_bytes_max: 1 << 20,
            hold: Span::ZERO,
        }
    }
}
