//! The receiver of reliable and best-effort samples: reassembly, ordering, delivery once.
//!
//! A whole sample that is the next in order goes straight through. Anything else is held: fragments of a sample
//! until the last one is there, reliable samples until those before them are there or were given up. What is
//! held grows with what arrives and has limits. At a limit, fragments of best-effort samples give way; a
//! reliable sample is refused, except the next in order: without it nothing held behind it could ever leave.

use std::collections::BTreeMap;

use crate::config::LinkConfig;
use crate::counters::LinkCounters;
use crate::delivery::Sink;
use crate::flow_control::Credit;
use crate::reassembly::{Reassembly, Room};
use crate::stream::{Delivered, Origin, StreamId};
use crate::trace::{self, Event};
use crate::wire::{Blocked, Fragment, Limit, Service};

#[derive(Debug)]
pub(crate) struct Receiving {
    readers: BTreeMap<StreamId, Reader>,
    room: Room,
    /// Some writer is to be given its limit.
    has_limits: bool,
}

/// One expected writer. Its samples are distinguished by a key that rises from one to the next: the position
/// if they are reliable, else the sequence number.
#[derive(Debug)]
struct Reader {
    writer: StreamId,
    payload_bytes_max: u32,
    reliable: bool,
    last_sequence: Option<u64>,
    /// Lowest key that may still be delivered. Unknown before the first datagram.
    next: Option<u64>,
    held: BTreeMap<u64, Reassembly>,
    /// For how many more there is room, if the reader has reported it.
    credit: Option<Credit>,
}

impl Receiving {
    pub(crate) fn new(config: &LinkConfig) -> Receiving {
        Receiving { readers: BTreeMap::new(), room: Room::new(config), has_limits: false }
    }

    pub(crate) fn expect(&mut self, writer: StreamId, payload_bytes_max: u32, reliable: bool) {
        if self.readers.get(&writer).is_some_and(|reader| reader.reliable != reliable) {
            self.forget(writer);
        }
        let (last_sequence, next, held, credit) = (None, None, BTreeMap::new(), None);
        let fresh = Reader { writer, payload_bytes_max, reliable, last_sequence, next, held, credit };
        self.readers.entry(writer).or_insert(fresh).payload_bytes_max = payload_bytes_max;
    }

    pub(crate) fn forget(&mut self, writer: StreamId) {
        if let Some(reader) = self.readers.remove(&writer) {
            reader.held.values().for_each(|held| self.room.leave(held));
        }
    }

    /// There is room for so many more samples of a reliable writer, of so many at most; `None`: for all. Gives from how much room on
    /// this is to be called again.
    pub(crate) fn grant(&mut self, writer: StreamId, room: Option<(u32, u32)>) -> u32 {
        let Some(reader) = self.readers.get_mut(&writer).filter(|reader| reader.reliable) else { return 0 };
        let again = match (room, &mut reader.credit) {
            (Some(room), credit) => credit.get_or_insert_default().grant(room, reader.next),
            (None, Some(credit)) => {
                credit.lift();
                0
            }
            (None, None) => return 0,
        };
        self.has_limits = true;
        again
    }

    /// A writer asks for its limit.
    pub(crate) fn handle_blocked(&mut self, blocked: Blocked, sink: &mut Sink<'_>) {
        let Receiving { readers, room, has_limits } = self;
        let Some(reader) = readers.get_mut(&blocked.writer).filter(|reader| reader.reliable) else { return };
        reader.skip_to(blocked.oldest, room, sink);
        reader.credit.get_or_insert_default().ask();
        *has_limits = true;
    }

    /// A limit that its writer is to be given.
    pub(crate) fn poll_limit(&mut self) -> Option<Limit> {
        if !self.has_limits {
            return None;
        }
        let limit = self.readers.values_mut().find_map(|reader| {
            let position = reader.credit.as_mut()?.poll(reader.next)?;
            Some(Limit { writer: reader.writer, position })
        });
        self.has_limits = limit.is_some();
        limit
    }

    /// Where all that is held is accounted for.
    pub(crate) fn room(&mut self) -> &mut Room {
        &mut self.room
    }

    /// Bytes reserved for samples held, with [`SAMPLE_OVERHEAD_BYTES`] each.
    pub(crate) fn held_bytes(&self) -> usize {
        self.room.bytes()
    }

    /// Takes a fragment in. `false` if it was not taken: a reliable one must be retransmitted.
    pub(crate) fn handle_fragment(&mut self, fragment: &Fragment<'_>, sink: &mut Sink<'_>) -> bool {
        let Receiving { readers, room, has_limits } = self;
        let expected = readers.get_mut(&fragment.writer);
        let Some(reader) =
            expected.filter(|reader| reader.reliable == matches!(fragment.service, Service::Reliable(_)))
        else {
            sink.counters.unexpected += 1;
            return false;
        };
        if fragment.total_bytes > reader.payload_bytes_max {
            sink.counters.too_long += 1;
            return false;
        }
        if let Service::Reliable(numbers) = fragment.service {
            reader.skip_to(numbers.oldest(), room, sink);
        }
        let key = fragment.key();
        if reader.next.is_some_and(|next| key < next) {
            let count = if reader.reliable { &mut sink.counters.duplicates } else { &mut sink.counters.late };
            *count += 1;
            return true;
        }
        if let Some(held) = reader.held.get(&key).filter(|held| held.is_cut_again_by(fragment)) {
            if held.is_whole() {
                sink.counters.duplicates += 1;
                return true;
            }
            room.leave(held);
            reader.held.remove(&key);
        }
        let next = reader.next;
        if reader.credit.as_mut().is_some_and(|credit| credit.refuses(key, next)) {
            sink.counters.beyond_limit += 1;
            *has_limits = true;
            return false;
        }
        let in_order = !reader.reliable || reader.next == Some(key);
        let is_new = !reader.held.contains_key(&key);
        if in_order && is_new && fragment.count == 1 {
            reader.skip_to(key, room, sink);
            reader.deliver(fragment.sequence, fragment.origin, Some(fragment.payload), sink);
            reader.next = Some(key + 1);
            reader.drain(room, sink);
            return true;
        }
        let must_be_taken = reader.reliable && in_order;
        if is_new && !self.make_room_for(fragment, sink.counters) && !must_be_taken {
            sink.counters.held_full += 1;
            return false;
        }
        let Receiving { readers, room, .. } = self;
        let Some(reader) = readers.get_mut(&fragment.writer) else { return false };
        let taken = reader.hold(fragment, room, sink);
        if in_order && reader.held.get(&key).is_some_and(Reassembly::is_whole) {
            reader.skip_to(key, room, sink);
        }
        taken
    }

    /// Whether `fragment` fits, if need be after dropping best-effort samples: of its own writer those older
    /// than itself, then the oldest of any writer.
    fn make_room_for(&mut self, fragment: &Fragment<'_>, counters: &mut LinkCounters) -> bool {
        while !self.room.fits(fragment) {
            let best_effort = self.readers.values().filter(|reader| !reader.reliable);
            let oldest = |reader: &Reader| {
                let (sequence, held) = reader.held.first_key_value()?;
                let own = reader.writer == fragment.writer;
                let gives_way = !own || *sequence < fragment.sequence;
                gives_way.then_some((!own, held.origin.source_time_ns, reader.writer, *sequence))
            };
            let Some((_, _, writer, sequence)) = best_effort.filter_map(oldest).min() else { return false };
            if let Some(reader) = self.readers.get_mut(&writer) {
                reader.held.remove(&sequence).iter().for_each(|held| self.room.leave(held));
            }
            counters.incomplete += 1;
        }
        true
    }
}

impl Reader {
    /// Nothing before `key` is to come any more. What is whole is delivered, what is not is dropped.
    fn skip_to(&mut self, key: u64, room: &mut Room, sink: &mut Sink<'_>) {
        while let Some(entry) = self.held.first_entry().filter(|entry| *entry.key() < key) {
            let held = entry.remove();
            room.leave(&held);
            if held.is_whole() {
                self.deliver_held(held, room, sink);
            } else {
                sink.counters.incomplete += 1;
            }
        }
        self.next = Some(self.next.map_or(key, |next| next.max(key)));
        self.drain(room, sink);
    }

    /// Delivers what is held and next in order.
    fn drain(&mut self, room: &mut Room, sink: &mut Sink<'_>) {
        while let Some(entry) = self.held.first_entry() {
            let key = *entry.key();
            if self.next != Some(key) || !entry.get().is_whole() {
                return;
            }
            let held = entry.remove();
            room.leave(&held);
            self.next = Some(key + 1);
            self.deliver_held(held, room, sink);
        }
    }

    fn deliver_held(&mut self, held: Reassembly, room: &mut Room, sink: &mut Sink<'_>) {
        self.deliver(held.sequence, held.origin, held.payload(), sink);
        room.reuse(held);
    }

    /// Without a payload it was written where it goes.
    fn deliver(&mut self, sequence: u64, origin: Origin, payload: Option<&[u8]>, sink: &mut Sink<'_>) {
        let after = |last: u64| sequence.saturating_sub(last).saturating_sub(1);
        let missed = self.last_sequence.map_or(0, after);
        self.last_sequence = Some(sequence);
        if let Some(credit) = &mut self.credit {
            credit.take();
        }
        sink.counters.delivered += 1;
        sink.counters.note(|| Event::Delivered { part: trace::sample(self.writer, sequence) });
        let is_written = payload.is_none();
        let payload = payload.unwrap_or_default();
        let sample = Delivered { writer: self.writer, sequence, place: sequence, origin, missed, payload };
        if is_written {
            sink.delivery.deliver_written(sample);
        } else {
            sink.delivery.deliver(sample);
        }
    }

    /// Puts a fragment where it belongs. `false` if it contradicts the others.
    fn hold(&mut self, fragment: &Fragment<'_>, room: &mut Room, sink: &mut Sink<'_>) -> bool {
        let key = fragment.key();
        // What is next in order is delivered before all else of its writer, so nothing else can be written where it goes.
        let is_next = self.reliable && self.next == Some(key);
        let held = self.held.entry(key).or_insert_with(|| {
            let begins = is_next && sink.delivery.begin(fragment.writer, fragment.total_bytes as usize);
            room.enter(fragment, begins)
        });
        held.add(fragment, room, sink)
    }
}

#[cfg(test)]
mod tests;
