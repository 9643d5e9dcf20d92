//! Small samples of one reliable writer that wait leave in one datagram. What was lost is retransmitted one by one: another loss would take all, and on a path that loses in
//! bursts one datagram is one chance in place of several.

use super::Sending;
use crate::sent_packets::{Carried, Kind};
use crate::wire::is_short_time;

impl Sending {
    /// What the next datagram carries: the sample of `carried` and those behind it, of `samples` in a row that are to be sent. If it is more than one,
    /// the body of the datagram is written.
    pub(super) fn coalesce(&mut self, carried: Carried, samples: usize, clock_ns: i64) -> Carried {
        if samples < 2 || carried.kind != (Kind::Fragment { count: 1 }) {
            return carried;
        }
        let Sending { streams, body, fragment_bytes_max, sent_packets, .. } = self;
        let Some(stream) = streams.get(&carried.writer).filter(|stream| stream.reliable) else {
            return carried;
        };
        let sample = |place: usize| stream.sample(carried.position + place as u64);
        let length = |place| sample(place).map_or(usize::MAX, |sample| sample.total_bytes());
        let Some(first) = sample(0).filter(|first| is_short_time(first.origin.source_time_ns, clock_ns))
        else {
            return carried;
        };
        body.clear();
        if length(0).saturating_add(length(1)) >= *fragment_bytes_max {
            return carried;
        }
        for place in 0..samples.min(sent_packets.samples_in_window(length(0))) {
            let follows = sample(place).filter(|sample| {
                let is_next = sample.sequence == first.sequence + place as u64;
                is_next && sample.count == 1 && sample.origin.source_error == 0
            });
            let Some(next) = follows else { break };
            if !body.push(next.origin.source_time_ns, next.payload(), *fragment_bytes_max) {
                break;
            }
        }
        match body.count() {
            0 | 1 => carried,
            count => Carried { kind: Kind::Samples { count: count as u16 }, ..carried },
        }
    }
}
