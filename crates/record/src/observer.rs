//! Looks at a running system for a page or a recording: every node's clock, the links between nodes, what does not match.

mod round_trips;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use noctule::{EndpointKind, KnownEndpoint, Node, NodeId, incompatible};

use self::round_trips::{RoundTrip, RoundTrips};
use crate::ends::End;
use crate::state::{ClockState, ENTRIES_MAX, LinkState, Mismatch, NodeState, SystemState, TopicEnd, ms};

/// Mismatches that are found at once.
pub const MISMATCHES_MAX: usize = 64;

/// Looks until it is dropped; a thread of its own pings every node each two seconds.
pub struct Observer {
    node: Arc<Node>,
    /// How it calls its own node, e.g. "this view".
    own: &'static str,
    round_trips: RoundTrips,
}

impl Observer {
    /// Begins to ping the nodes that `node` knows.
    pub fn start(node: &Arc<Node>, own: &'static str) -> Observer {
        Observer { node: Arc::clone(node), own, round_trips: RoundTrips::start(node) }
    }

    /// Every node with its clock and the link to it.
    pub fn nodes(&self) -> Vec<NodeState> {
        // This node answers itself at once.
        let own = self.node.links_of(self.node.id(), Duration::ZERO).unwrap_or_default();
        let of = |known: noctule::KnownNode| {
            let trip = self.round_trips.of(known.id, self.node.now());
            let link = own.iter().find(|link| link.to == known.id);
            let counted = self.node.link_counters(known.id).unwrap_or_default();
            NodeState {
                id: known.id.to_string(),
                name: known.name,
                address: known.address.to_string(),
                same_host: known.same_host,
                clock: if known.same_host { None } else { self.clock(known.id, trip) },
                rtt_ms: trip.and_then(|trip| trip.last_ns).map(ms),
                rtt_min_ms: trip.and_then(|trip| trip.least_ns).map(ms),
                pings: trip.map(|trip| trip.asked),
                answers: trip.map(|trip| trip.answered),
                sent: counted.sent_datagrams,
                received: counted.received_datagrams,
                delivered: counted.delivered,
                extras: link.map_or(0, |link| link.extra_datagrams),
                loss: link.and_then(|link| link.loss),
                capacity_bytes_per_s: link.and_then(|link| link.capacity_bytes_per_s),
            }
        };
        self.node.nodes().into_iter().take(ENTRIES_MAX).map(of).collect()
    }

    fn clock(&self, node: NodeId, trip: Option<RoundTrip>) -> Option<ClockState> {
        // The library's own estimate is fed more often.
        let clock = self.node.clock_of(node).or_else(|| trip?.clock)?;
        Some(ClockState {
            offset_ms: ms(clock.offset.ns()),
            drift_ppm: clock.drift.ppm(),
            bound_ms: clock.bound.map(|bound| ms(bound.ns())),
            sigma_ms: clock.sigma.map(|sigma| ms(sigma.ns())),
            state: clock.state.to_string(),
        })
    }

    /// Links that nodes have to others, as they report them.
    pub fn links(&self) -> Vec<LinkState> {
        let names: BTreeMap<NodeId, String> =
            self.node.nodes().into_iter().map(|known| (known.id, known.name)).collect();
        let name = |id: NodeId| match names.get(&id) {
            Some(name) => name.clone(),
            None if id == self.node.id() => self.own.to_owned(),
            None => id.to_string(),
        };
        let links = self.round_trips.links().into_iter().take(ENTRIES_MAX).map(|(from, link)| LinkState {
            from: name(from),
            from_id: from.to_string(),
            to: name(link.to),
            to_id: link.to.to_string(),
            rtt_ms: link.round_trip.map(|trip| ms(trip.ns())),
            loss: link.loss,
            capacity_bytes_per_s: link.capacity_bytes_per_s,
            sent: link.sent_datagrams,
            extras: link.extra_datagrams,
            received: link.received_datagrams,
        });
        links.collect()
    }

    /// All of it, for a recording: of publishers and readers those that are not in `written` yet, which gets them.
    pub(crate) fn state(&self, written: &mut BTreeSet<TopicEnd>) -> SystemState {
        let endpoints = self.node.endpoints();
        let of_others = endpoints.iter().filter(|known| known.node != self.node.id());
        let end = |known: &KnownEndpoint| {
            let End { number, name } = End::of(known);
            let publishes = known.endpoint.kind == EndpointKind::Writer;
            TopicEnd { topic: known.endpoint.topic.clone(), publishes, number, name }
        };
        let came = of_others.map(end).filter(|end| !written.contains(end));
        // Entries that have no room come with the next record.
        let came: BTreeSet<TopicEnd> = came.take(ENTRIES_MAX).collect();
        written.extend(came.iter().cloned());
        let ends = came.into_iter().collect();
        SystemState { nodes: self.nodes(), links: self.links(), mismatches: mismatches(&endpoints), ends }
    }
}

/// Writers and readers of a topic that get nothing from each other.
pub fn mismatches(endpoints: &[KnownEndpoint]) -> Vec<Mismatch> {
    let of = |kind| endpoints.iter().filter(move |known| known.endpoint.kind == kind);
    let mut by_topic = BTreeMap::<&str, Vec<&KnownEndpoint>>::new();
    of(EndpointKind::Reader).for_each(|known| by_topic.entry(&known.endpoint.topic).or_default().push(known));
    let pairs = of(EndpointKind::Writer).flat_map(|writer| {
        let readers = by_topic.get(writer.endpoint.topic.as_str()).into_iter().flatten();
        readers.map(move |reader| (writer, *reader))
    });
    let mismatch = |(writer, reader): (&KnownEndpoint, &KnownEndpoint)| {
        let why = incompatible(&writer.endpoint, &reader.endpoint)?;
        Some(Mismatch {
            topic: writer.endpoint.topic.clone(),
            writer: writer.node_name.clone(),
            writer_node: writer.node.to_string(),
            reader: reader.node_name.clone(),
            reader_node: reader.node.to_string(),
            why: why.to_string(),
        })
    };
    pairs.filter_map(mismatch).take(MISMATCHES_MAX).collect()
}
