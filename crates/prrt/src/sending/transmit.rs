//! One datagram of what has no deadline: encoded, counted as sent, noted.

use noctule_timebase::Instant;

use super::{Piggyback, Sending, part};
use crate::sent_packets::{Carried, Kind};
use crate::stream::{Local, StreamId};
use crate::trace::{Event, Record, Sending as Purpose};
use crate::wire::{Fragment, Load, Numbers, Probe, Samples, Service, fragment_range};

impl Sending {
    /// Notes that a fragment without a deadline was sent in a datagram of so many bytes.
    pub(super) fn note_sent(&self, carried: Carried, why: Purpose, bytes: usize, counters: &mut Record) {
        counters.note_each(carried.each(), |each| {
            let is_reliable = self.streams.get(&each.writer).is_some_and(|stream| stream.reliable);
            let packet = is_reliable.then(|| self.sent_packets.next_number().saturating_sub(1));
            let part = part(&self.streams, &self.bound, each);
            let bytes = if each.position == carried.position { bytes as u64 } else { 0 };
            Event::Sent { packet, part, bytes, why }
        });
    }

    pub(super) fn transmit_probe(
        &mut self,
        bytes: usize,
        now: Instant<Local>,
        piggyback: &mut Piggyback,
        out: &mut Vec<u8>,
    ) {
        let before = out.len();
        let probe = Probe { packet: self.sent_packets.next_number(), zeros: 0 };
        piggyback.head = piggyback.long;
        piggyback.encode(Some(Load::Probe(probe)), out);
        // What fills it is zeros.
        out.resize(before + bytes, 0);
        let carried = Carried { writer: StreamId(0), position: 0, index: 0, kind: Kind::Probe };
        self.note_in_flight(carried, bytes, now);
    }

    /// A numbered datagram was sent; what had to be forgotten for it is to be retransmitted.
    pub(super) fn note_in_flight(&mut self, carried: Carried, bytes: usize, now: Instant<Local>) {
        let forgotten = self.sent_packets.sent(carried, bytes, now);
        self.lost.extend(forgotten.into_iter().flat_map(Carried::each));
    }

    pub(super) fn transmit(
        &mut self,
        carried: Carried,
        now: Instant<Local>,
        piggyback: &mut Piggyback,
        out: &mut Vec<u8>,
    ) {
        let Some(stream) = self.streams.get(&carried.writer) else { return };
        let Some(sample) = stream.sample(carried.position) else { return };
        let numbers = Numbers {
            packet: self.sent_packets.next_number(),
            position: carried.position,
            // Every sample held costs more than a byte, so there are never 2^32.
            behind: (carried.position - stream.first_position()) as u32,
        };
        let load = match carried.kind {
            Kind::Samples { .. } => Load::Samples(Samples {
                writer: carried.writer,
                numbers,
                sequence: sample.sequence,
                source_time_ns: sample.origin.source_time_ns,
                body: self.body.bytes(),
            }),
            _ => Load::Fragment(Fragment {
                writer: carried.writer,
                total_bytes: sample.total_bytes() as u32,
                sequence: sample.sequence,
                origin: sample.origin,
                index: carried.index,
                count: sample.count,
                service: if stream.reliable { Service::Reliable(numbers) } else { Service::BestEffort },
                payload: &sample.payload()[fragment_range(sample.total_bytes(), sample.count, carried.index)],
            }),
        };
        let before = out.len();
        piggyback.encode(Some(load), out);
        if stream.reliable {
            self.note_in_flight(carried, out.len() - before, now);
        }
    }
}
