//! The rings that samples of one other node go into, as its link sees them.
//!
//! A ring has a slot that is written next. So a long reliable sample, which nothing of its writer overtakes, needs no other memory: each fragment is
//! written where readers will find it.

use std::collections::BTreeMap;

use noctule_discovery::EndpointId;
use noctule_prrt::{Delivered, Delivery, StreamId};
use noctule_timebase::Instant;

use super::inbound::{Inbound, SourceClock};
use crate::clock::Raw;

/// While one datagram is taken in.
pub(super) struct Rings<'a> {
    pub(super) inbound: &'a mut BTreeMap<EndpointId, Inbound>,
    pub(super) clock: SourceClock,
    pub(super) now: Instant<Raw>,
    /// The writer of a delivered sample, if its link is to be granted something.
    pub(super) granted: Option<EndpointId>,
}

impl Rings<'_> {
    fn take(&mut self, sample: &Delivered<'_>, is_written: bool) {
        let writer = EndpointId(sample.writer.0);
        let Some(inbound) = self.inbound.get_mut(&writer) else { return };
        inbound.take(sample, is_written, self.clock, self.now);
        self.granted = inbound.is_to_grant().then_some(writer);
    }
}

impl Delivery for Rings<'_> {
    fn deliver(&mut self, sample: Delivered<'_>) {
        self.take(&sample, false);
    }

    fn begin(&mut self, writer: StreamId, bytes: usize) -> bool {
        self.inbound.get_mut(&EndpointId(writer.0)).is_some_and(|inbound| inbound.begin(bytes))
    }

    fn write(&mut self, writer: StreamId, start: usize, fragment: &[u8]) -> bool {
        let inbound = self.inbound.get_mut(&EndpointId(writer.0));
        inbound.is_some_and(|inbound| inbound.write(start, fragment))
    }

    fn deliver_written(&mut self, sample: Delivered<'_>) {
        self.take(&sample, true);
    }
}
