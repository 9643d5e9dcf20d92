//! Limits of a link.

use crate::wire;

/// Bytes that every sample held counts against a limit besides its payload.
pub const SAMPLE_OVERHEAD_BYTES: usize = 256;
/// Bounds of [`LinkConfig::datagram_bytes_max`]: the datagram that every host must take (RFC 791), and the
/// largest payload of UDP over IPv4.
pub(crate) const DATAGRAM_BYTES: std::ops::RangeInclusive<usize> = 512..=65_507;

/// Limits of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkConfig {
    /// Number of this pair of nodes, the same on both sides and another after a restart of either; for
    /// instance the exclusive or of their random numbers. Default 0.
    pub session: u32,
    /// The number by which the other side addresses this link once it knows it: not that of another link of this node, and not
    /// 0. Default 1.
    pub id: u16,
    /// Longest datagram, header included. Default 1,400; between 512 and 65,507.
    pub datagram_bytes_max: usize,
    /// Datagrams that every path carries. Longer ones are sent once a probe has found that the path carries them
    /// (RFC 8899), and no more if they do not arrive. Default 1,400, at most the longest: then nothing is probed.
    pub datagram_bytes_base: usize,
    /// Path MTU that is assumed before anything is known. Default 1,400; between base and longest.
    pub datagram_bytes_initial: usize,
    /// Bytes that an envelope adds to each datagram: the sizes of well-known lines are those of the whole. Default 0.
    pub envelope_bytes: usize,
    /// Reliable bytes on their way before anything is known of the other side, 512 added for every
    /// datagram. Default 20 KiB, about the ten packets of RFC 6928.
    pub window_bytes_initial: usize,
    /// The same once much is known. Default 4 MiB.
    pub window_bytes_max: usize,
    /// Samples waiting to be sent or acknowledged, [`SAMPLE_OVERHEAD_BYTES`] added for each. Default 64 MiB.
    pub queue_bytes_max: usize,
    /// Samples received in part. Default 64.
    pub partial_samples_max: usize,
    /// Those, and whole ones that wait for an older one. Default 4,096.
    pub held_samples_max: usize,
    /// Bytes of the same, reserved by the announced length, [`SAMPLE_OVERHEAD_BYTES`] added for each.
    /// One sample per reliable writer, the next in order, may exceed these three limits. Default 64 MiB.
    pub held_bytes_max: usize,
}

impl Default for LinkConfig {
    fn default() -> LinkConfig {
        LinkConfig {
            session: 0,
            id: 1,
            datagram_bytes_max: 1400,
            datagram_bytes_base: 1400,
            datagram_bytes_initial: 1400,
            envelope_bytes: 0,
            window_bytes_initial: 20 << 10,
            window_bytes_max: 4 << 20,
            queue_bytes_max: 64 << 20,
            partial_samples_max: 64,
            held_samples_max: 4096,
            held_bytes_max: 64 << 20,
        }
    }
}

impl LinkConfig {
    /// The longest sample that any path carries, bytes: of so many fragments of the shortest datagrams, and no longer than the
    /// queue.
    pub fn sample_bytes_max(&self) -> usize {
        let base_bytes = self.datagram_bytes_base.clamp(*DATAGRAM_BYTES.start(), *DATAGRAM_BYTES.end());
        let fragments_bytes = usize::from(wire::FRAGMENTS_MAX) * (base_bytes - wire::HEADER_BYTES_MAX);
        fragments_bytes.min(self.queue_bytes_max.saturating_sub(SAMPLE_OVERHEAD_BYTES))
    }
}
