//! Reports of this node's links, for other nodes.

use noctule_discovery::NodeId;

use super::remote::{Remote, Remotes};
use crate::link_report::{LINK_BYTES, LINKS_MAX, LinkReport, encode};
use crate::type_descriptions::wire::PART_BYTES_MAX;

/// Links from a number on, in the order of their nodes, as many as fit into a datagram; and how many there are.
pub(super) fn links_from(remotes: &Remotes, from: usize) -> (Vec<u8>, usize) {
    let most = LINKS_MAX.saturating_sub(from).min(PART_BYTES_MAX / LINK_BYTES);
    let few = remotes.iter().skip(from).take(most);
    let bytes = few.flat_map(|(to, remote)| encode(&report(*to, remote)));
    (bytes.collect(), remotes.len().min(LINKS_MAX))
}

pub(super) fn report(to: NodeId, remote: &Remote) -> LinkReport {
    let (path, counted) = (remote.path_figures(), remote.link_counters());
    let round_trip = remote.round_trip();
    LinkReport {
        to,
        round_trip,
        // What is not acknowledged teaches nothing; the estimate is what it began with then.
        loss: round_trip.map(|_| path.loss),
        capacity_bytes_per_s: path.capacity_bytes_per_s,
        sent_datagrams: counted.sent_datagrams,
        extra_datagrams: counted.bound_repeats + counted.bound_parity + counted.repeated,
        received_datagrams: counted.received_datagrams,
    }
}
