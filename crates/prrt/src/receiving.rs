//! Samples on their way in: put together, put in order, delivered once.
//!
//! A whole sample that is the next in order goes straight through. Anything else is held: pieces of a sample
//! until the last one is there, reliable samples until those before them are there or were given up. What is
//! held grows with what arrives and has limits. At a limit, pieces of best-effort samples give way; a
//! reliable sample is refused, except the next in order: without it nothing held behind it could ever leave.

use std::collections::BTreeMap;

use crate::StreamId;
use crate::fragment_set::FragmentSet;
use crate::wire::Fragment;
use crate::{Delivered, LinkConfig, LinkCounters, SAMPLE_OVERHEAD_BYTES};

/// Where things go.
pub(crate) struct Sink<'a> {
    pub(crate) counters: &'a mut LinkCounters,
    pub(crate) deliver: &'a mut dyn FnMut(Delivered<'_>),
}

#[derive(Debug)]
pub(crate) struct Receiving {
    readers: BTreeMap<StreamId, Reader>,
    room: Room,
}

/// What is held of all writers together.
#[derive(Debug)]
struct Room {
    partials_max: usize,
    samples_max: usize,
    bytes_max: usize,
    /// Samples of which pieces are missing.
    partials: usize,
    /// Those, and whole ones that wait for their turn.
    samples: usize,
    bytes: usize,
}

/// One expected writer. Its samples are told apart by a key that rises from one to the next: the position
/// if they are reliable, else the sequence number.
#[derive(Debug)]
struct Reader {
    writer: StreamId,
    payload_bytes_max: u32,
    reliable: bool,
    last_sequence: Option<u64>,
    /// Lowest key that may still be delivered. Unknown before the first datagram.
    next: Option<u64>,
    held: BTreeMap<u64, Held>,
}

#[derive(Debug)]
struct Held {
    sequence: u64,
    source_time_ns: i64,
    total_bytes: u32,
    count: u16,
    arrived: FragmentSet,
    /// As long as the furthest piece that arrived reaches.
    payload: Vec<u8>,
}

impl Receiving {
    pub(crate) fn new(config: &LinkConfig) -> Receiving {
        let room = Room {
            partials_max: config.partial_samples_max,
            samples_max: config.held_samples_max,
            bytes_max: config.held_bytes_max,
            partials: 0,
            samples: 0,
            bytes: 0,
        };
        Receiving { readers: BTreeMap::new(), room }
    }

    pub(crate) fn expect(&mut self, writer: StreamId, payload_bytes_max: u32, reliable: bool) {
        if self.readers.get(&writer).is_some_and(|reader| reader.reliable != reliable) {
            self.forget(writer);
        }
        let (last_sequence, next, held) = (None, None, BTreeMap::new());
        let fresh = Reader { writer, payload_bytes_max, reliable, last_sequence, next, held };
        self.readers.entry(writer).or_insert(fresh).payload_bytes_max = payload_bytes_max;
    }

    pub(crate) fn forget(&mut self, writer: StreamId) {
        if let Some(reader) = self.readers.remove(&writer) {
            reader.held.values().for_each(|held| self.room.leave(held));
        }
    }

    /// Bytes reserved for samples held, with [`SAMPLE_OVERHEAD_BYTES`] each.
    pub(crate) fn held_bytes(&self) -> usize {
        self.room.bytes
    }

    /// Takes a fragment in. `false` if it was not taken: a reliable one must be sent again.
    pub(crate) fn handle_fragment(&mut self, fragment: &Fragment<'_>, sink: &mut Sink<'_>) -> bool {
        let Receiving { readers, room } = self;
        let expected = readers.get_mut(&fragment.writer);
        let Some(reader) = expected.filter(|reader| reader.reliable == fragment.reliable.is_some()) else {
            sink.counters.unexpected += 1;
            return false;
        };
        if fragment.total_bytes > reader.payload_bytes_max {
            sink.counters.too_long += 1;
            return false;
        }
        if let Some(numbers) = fragment.reliable {
            reader.skip_to(numbers.oldest(), room, sink);
        }
        let key = fragment.key();
        if reader.next.is_some_and(|next| key < next) {
            let count = if reader.reliable { &mut sink.counters.duplicates } else { &mut sink.counters.late };
            *count += 1;
            return true;
        }
        let in_order = !reader.reliable || reader.next == Some(key);
        let is_new = !reader.held.contains_key(&key);
        if in_order && is_new && fragment.count == 1 {
            reader.skip_to(key, room, sink);
            reader.deliver(fragment.sequence, fragment.source_time_ns, fragment.payload, sink);
            reader.next = Some(key + 1);
            reader.drain(room, sink);
            return true;
        }
        let must_be_taken = reader.reliable && in_order;
        if is_new && !self.make_room_for(fragment, sink.counters) && !must_be_taken {
            sink.counters.held_full += 1;
            return false;
        }
        let Receiving { readers, room } = self;
        let Some(reader) = readers.get_mut(&fragment.writer) else { return false };
        let taken = reader.hold(fragment, room, sink.counters);
        if in_order && reader.held.get(&key).is_some_and(Held::is_whole) {
            reader.skip_to(key, room, sink);
        }
        taken
    }

    /// Whether `fragment` fits, if need be after dropping best-effort samples: of its own writer those older
    /// than itself, then whoever's is the oldest.
    fn make_room_for(&mut self, fragment: &Fragment<'_>, counters: &mut LinkCounters) -> bool {
        while !self.room.fits(fragment) {
            let best_effort = self.readers.values().filter(|reader| !reader.reliable);
            let oldest = |reader: &Reader| {
                let (sequence, held) = reader.held.first_key_value()?;
                let own = reader.writer == fragment.writer;
                let gives_way = !own || *sequence < fragment.sequence;
                gives_way.then_some((!own, held.source_time_ns, reader.writer, *sequence))
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
                self.deliver(held.sequence, held.source_time_ns, &held.payload, sink);
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
            self.deliver(held.sequence, held.source_time_ns, &held.payload, sink);
        }
    }

    fn deliver(&mut self, sequence: u64, source_time_ns: i64, payload: &[u8], sink: &mut Sink<'_>) {
        let after = |last: u64| sequence.saturating_sub(last).saturating_sub(1);
        let missed = self.last_sequence.map_or(0, after);
        self.last_sequence = Some(sequence);
        sink.counters.delivered += 1;
        (sink.deliver)(Delivered { writer: self.writer, sequence, source_time_ns, missed, payload });
    }

    /// Puts a piece where it belongs. `false` if it contradicts the others.
    fn hold(&mut self, fragment: &Fragment<'_>, room: &mut Room, counters: &mut LinkCounters) -> bool {
        let held = self.held.entry(fragment.key()).or_insert_with(|| room.enter(fragment));
        if !held.belongs_to(fragment) {
            counters.inconsistent += 1;
            return false;
        }
        if !held.arrived.insert(fragment.index) {
            counters.duplicates += 1;
            return true;
        }
        held.write(fragment.start(), fragment.payload);
        room.partials -= usize::from(held.is_whole());
        true
    }
}

impl Room {
    fn fits(&self, fragment: &Fragment<'_>) -> bool {
        let bytes = reserved_bytes(fragment.total_bytes, fragment.count);
        let partials = self.partials < self.partials_max || fragment.count == 1;
        partials && self.samples < self.samples_max && self.bytes + bytes <= self.bytes_max
    }

    fn enter(&mut self, fragment: &Fragment<'_>) -> Held {
        let held = Held {
            sequence: fragment.sequence,
            source_time_ns: fragment.source_time_ns,
            total_bytes: fragment.total_bytes,
            count: fragment.count,
            arrived: FragmentSet::default(),
            payload: Vec::new(),
        };
        self.partials += 1;
        self.samples += 1;
        self.bytes += held.cost();
        held
    }

    fn leave(&mut self, held: &Held) {
        self.partials -= usize::from(!held.is_whole());
        self.samples -= 1;
        self.bytes -= held.cost();
    }
}

impl Held {
    fn cost(&self) -> usize {
        reserved_bytes(self.total_bytes, self.count)
    }

    fn is_whole(&self) -> bool {
        self.arrived.len() == u32::from(self.count)
    }

    fn belongs_to(&self, fragment: &Fragment<'_>) -> bool {
        (self.sequence, self.source_time_ns, self.total_bytes, self.count)
            == (fragment.sequence, fragment.source_time_ns, fragment.total_bytes, fragment.count)
    }

    fn write(&mut self, start: usize, piece: &[u8]) {
        let end = start + piece.len();
        if self.payload.capacity() < end {
            // At most twice what has to be there, and never more than the whole.
            let capacity = (2 * end).min(self.total_bytes as usize);
            self.payload.reserve_exact(capacity - self.payload.len());
        }
        if self.payload.len() < end {
            self.payload.resize(end, 0);
        }
        self.payload[start..end].copy_from_slice(piece);
    }
}

/// What a sample held counts: its payload, a bit for every piece, and the rest.
fn reserved_bytes(total_bytes: u32, count: u16) -> usize {
    total_bytes as usize + usize::from(count / 8) + SAMPLE_OVERHEAD_BYTES
}

#[cfg(test)]
mod tests;
