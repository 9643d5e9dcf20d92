//! The reassembly buffer: a sample of which some fragments arrived, and the limit on the memory of all of them.
//!
//! Memory grows with the fragments that arrive; what counts against the limits is the announced length. The memory of one sample that was delivered is kept for
//! the next: of long ones the allocator gives it back to the kernel, and each page of new memory costs a page fault.

use crate::config::{LinkConfig, SAMPLE_OVERHEAD_BYTES};
use crate::delivery::Sink;
use crate::fragment_set::FragmentSet;
use crate::stream::Origin;
use crate::wire::Fragment;

/// The longest memory kept for the next sample.
const SPARE_BYTES_MAX: usize = 4 << 20;

/// The memory of all samples held, of all writers together.
#[derive(Debug)]
pub(crate) struct Room {
    partials_max: usize,
    samples_max: usize,
    bytes_max: usize,
    /// Samples of which fragments are missing.
    pub(crate) partials: usize,
    /// Those, and whole ones that wait for their turn.
    samples: usize,
    bytes: usize,
    /// For the next sample, empty.
    spare: Vec<u8>,
}

#[derive(Debug)]
pub(crate) struct Reassembly {
    pub(crate) sequence: u64,
    pub(crate) origin: Origin,
    total_bytes: u32,
    count: u16,
    arrived: FragmentSet,
    /// As long as the furthest fragment that arrived reaches; `None` if each is written where the sample goes.
    payload: Option<Vec<u8>>,
}

impl Room {
    pub(crate) fn new(config: &LinkConfig) -> Room {
        Room {
            partials_max: config.partial_samples_max,
            samples_max: config.held_samples_max,
            bytes_max: config.held_bytes_max,
            partials: 0,
            samples: 0,
            bytes: 0,
            spare: Vec::new(),
        }
    }

    /// Bytes reserved for samples held, with [`SAMPLE_OVERHEAD_BYTES`] each.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes bytes besides samples, if they fit.
    pub(crate) fn take(&mut self, bytes: usize) -> bool {
        let fits = self.bytes + bytes <= self.bytes_max;
        self.bytes += if fits { bytes } else { 0 };
        fits
    }

    /// Gives them back.
    pub(crate) fn give_back(&mut self, bytes: usize) {
        self.bytes -= bytes;
    }

    pub(crate) fn fits(&self, fragment: &Fragment<'_>) -> bool {
        let bytes = reserved_bytes(fragment.total_bytes, fragment.count);
        let partials = self.partials < self.partials_max || fragment.count == 1;
        partials && self.samples < self.samples_max && self.bytes + bytes <= self.bytes_max
    }

    /// A sample of which this is the first fragment. If `is_begun`, its fragments are written where it goes.
    pub(crate) fn enter(&mut self, fragment: &Fragment<'_>, is_begun: bool) -> Reassembly {
        let held = Reassembly {
            sequence: fragment.sequence,
            origin: fragment.origin,
            total_bytes: fragment.total_bytes,
            count: fragment.count,
            arrived: FragmentSet::default(),
            payload: (!is_begun).then(|| std::mem::take(&mut self.spare)),
        };
        self.partials += 1;
        self.samples += 1;
        self.bytes += held.cost();
        held
    }

    pub(crate) fn leave(&mut self, held: &Reassembly) {
        self.partials -= usize::from(!held.is_whole());
        self.samples -= 1;
        self.bytes -= held.cost();
    }

    /// Takes back the memory of a sample that was delivered.
    pub(crate) fn reuse(&mut self, held: Reassembly) {
        let Some(mut payload) = held.payload else { return };
        if (self.spare.capacity()..=SPARE_BYTES_MAX).contains(&payload.capacity()) {
            payload.clear();
            self.spare = payload;
        }
    }
}

impl Reassembly {
    /// Puts a fragment where it belongs. `false` if it contradicts the others, or cannot be written.
    pub(crate) fn add(&mut self, fragment: &Fragment<'_>, room: &mut Room, sink: &mut Sink<'_>) -> bool {
        if !self.belongs_to(fragment) {
            sink.counters.inconsistent += 1;
            return false;
        }
        if self.arrived.contains(fragment.index) {
            sink.counters.duplicates += 1;
            return true;
        }
        let start = fragment.start();
        match &mut self.payload {
            Some(payload) => write(payload, self.total_bytes, start, fragment.payload),
            None if !sink.delivery.write(fragment.writer, start, fragment.payload) => return false,
            None => {}
        }
        self.arrived.insert(fragment.index);
        room.partials -= usize::from(self.is_whole());
        true
    }

    /// Its bytes, once it is whole; `None` if they are where it goes.
    pub(crate) fn payload(&self) -> Option<&[u8]> {
        self.payload.as_deref()
    }

    fn cost(&self) -> usize {
        reserved_bytes(self.total_bytes, self.count)
    }

    pub(crate) fn is_whole(&self) -> bool {
        self.arrived.len() == u32::from(self.count)
    }

    /// Whether `fragment` is of the same sample, cut into more fragments since.
    pub(crate) fn is_cut_again_by(&self, fragment: &Fragment<'_>) -> bool {
        (self.sequence, self.origin, self.total_bytes)
            == (fragment.sequence, fragment.origin, fragment.total_bytes)
            && self.count < fragment.count
    }

    fn belongs_to(&self, fragment: &Fragment<'_>) -> bool {
        (self.sequence, self.origin, self.total_bytes, self.count)
            == (fragment.sequence, fragment.origin, fragment.total_bytes, fragment.count)
    }
}

fn write(payload: &mut Vec<u8>, total_bytes: u32, start: usize, fragment: &[u8]) {
    let end = start + fragment.len();
    if payload.capacity() < end {
        // At most twice what has to be there, and never more than the whole.
        let capacity = (2 * end).min(total_bytes as usize);
        payload.reserve_exact(capacity - payload.len());
    }
    if payload.len() == start {
        return payload.extend_from_slice(fragment);
    }
    if payload.len() < end {
        payload.resize(end, 0);
    }
    payload[start..end].copy_from_slice(fragment);
}

/// Memory of a sample held: its payload, a bit for every fragment, and the rest.
fn reserved_bytes(total_bytes: u32, count: u16) -> usize {
    total_bytes as usize + usize::from(count / 8) + SAMPLE_OVERHEAD_BYTES
}
