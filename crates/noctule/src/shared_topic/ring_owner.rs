//! A publisher's shared memory: made when the first reader of this host comes.

use std::any::Any;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use noctule_shm_ring::{
    AttachError, CONTROL_BYTES, Layout, LayoutError, Memory, Origin, Reader, ReaderId, ReaderTable,
    RingConfig, StartAt, Writer,
};
use noctule_sys::sealed_memory::{SealedMemory, WrittenBy};
use rustix::io::Errno;

mod error;

pub(crate) use error::RingError;

/// Descriptors that rings leave to the rest of the process: a quarter of all if those are few.
const DESCRIPTORS_LEFT: u64 = 64;

/// The offer of a publisher to readers of this host.
#[derive(Debug)]
pub(crate) struct RingOwner {
    pub(crate) payload_bytes_max: usize,
    config: RingConfig,
    made: Mutex<Option<Made>>,
}

#[derive(Debug)]
struct Made {
    memory: Memory,
    /// To lend the memory to other processes; `None` if this one had no descriptor left.
    data: Option<OwnedFd>,
    reader_table: ReaderTable,
}

/// A sample of the history.
pub(crate) struct Past {
    pub(crate) sequence: u64,
    pub(crate) origin: Origin,
    pub(crate) bytes: Vec<u8>,
}

/// Ring as granted to a reader of this process.
pub(crate) struct GrantedHere {
    memory: (Memory, Memory),
    reader: ReaderId,
    reader_table: ReaderTable,
    /// As of [`Granted`].
    pub(crate) pins: u32,
    /// As of [`Granted`].
    pub(crate) position: u64,
}

impl GrantedHere {
    /// Its place in the reader table.
    pub(crate) fn reader(&self) -> ReaderId {
        self.reader
    }

    /// Where it is to be detached when it has gone.
    pub(crate) fn reader_table(&self) -> &ReaderTable {
        &self.reader_table
    }

    /// Data and control page.
    pub(crate) fn into_memory(self) -> (Memory, Memory) {
        self.memory
    }
}

/// Ring as granted to a reader of another process, beside the answer.
pub(crate) struct Granted {
    pub(crate) data: OwnedFd,
    pub(crate) control: OwnedFd,
    pub(crate) reader: ReaderId,
    /// Where it is to be detached when it has gone.
    pub(crate) reader_table: ReaderTable,
    /// Samples that it may borrow at once; fewer than it requested if there are no more.
    pub(crate) pins: u32,
    /// Where it begins: what is published from now on lies there or later.
    pub(crate) position: u64,
}

impl RingOwner {
    /// An offer of rings of this geometry.
    ///
    /// # Errors
    /// A geometry that is not possible.
    pub(crate) fn new(config: RingConfig) -> Result<RingOwner, LayoutError> {
        Layout::of(&config)?;
        Ok(RingOwner { payload_bytes_max: config.payload_bytes_max, config, made: Mutex::new(None) })
    }

    /// Makes the ring if it is not there yet; the writer is the caller's to pass on.
    ///
    /// # Errors
    /// No memory.
    pub(crate) fn make(&self) -> Result<Option<Writer>, RingError> {
        self.make_of(|length_bytes| create_to_lend(length_bytes).map(|(memory, data)| (memory, Some(data))))
    }

    /// The same where the reader is in this process: without a descriptor if there is none left, so that it cannot be handed on.
    ///
    /// # Errors
    /// As of [`make`](RingOwner::make).
    pub(crate) fn make_for_here(&self) -> Result<Option<Writer>, RingError> {
        self.make_of(|length_bytes| match create_to_lend(length_bytes) {
            Ok((memory, data)) => Ok((memory, Some(data))),
            Err(error) if is_out_of_descriptors(&error) => {
                SealedMemory::unnamed(length_bytes).map(|memory| (memory, None))
            }
            Err(error) => Err(error),
        })
    }

    /// The same where every reader ever is in this process: without a descriptor.
    ///
    /// # Errors
    /// As of [`make`](RingOwner::make).
    pub(crate) fn make_unnamed(&self) -> Result<Option<Writer>, RingError> {
        self.make_of(|length_bytes| SealedMemory::unnamed(length_bytes).map(|memory| (memory, None)))
    }

    fn make_of(
        &self,
        create: impl FnOnce(usize) -> io::Result<(SealedMemory, Option<OwnedFd>)>,
    ) -> Result<Option<Writer>, RingError> {
        let mut made = self.lock();
        if made.is_some() {
            return Ok(None);
        }
        let bytes = Layout::of(&self.config)?.region_bytes();
        let no_memory = |cause: io::Error| match is_out_of_descriptors(&cause) {
            true => RingError::NoDescriptorThere,
            false => RingError::NoMemory { bytes, cause },
        };
        let length = usize::try_from(bytes).map_err(|_| no_memory(io::ErrorKind::OutOfMemory.into()))?;
        let (memory, data) = create(length).map_err(no_memory)?;
        let memory = Memory::from(memory);
        let writer = Writer::create(memory.clone(), &self.config)?;
        *made = Some(Made { memory, data, reader_table: writer.reader_table().clone() });
        Ok(Some(writer))
    }

    /// Attaches a reader of another process of this host to the ring, which has been made; a publisher that keeps all may have to wait
    /// for it.
    ///
    /// # Errors
    /// No ring yet, no descriptor, or no room for another reader.
    pub(crate) fn attach(&self, pins: u32, is_waited_for: bool) -> Result<Granted, RingError> {
        let made = self.lock();
        let made = made.as_ref().ok_or(RingError::NotMade)?;
        let no_descriptor = |error: io::Error| match is_out_of_descriptors(&error) {
            true => RingError::NoDescriptorThere,
            false => error.into(),
        };
        // Only for as long as it takes to send them.
        let (control, descriptor) =
            SealedMemory::create(CONTROL_BYTES, WrittenBy::Holder).map_err(no_descriptor)?;
        let data = made.data.as_ref().ok_or(RingError::NoDescriptorThere)?;
        let data = data.try_clone().map_err(no_descriptor)?;
        let control = Memory::from(control);
        let attach = if is_waited_for { ReaderTable::attach_waited_for } else { ReaderTable::attach };
        let (reader, pins) = enter(pins, |pins| attach(&made.reader_table, control.clone(), pins))?;
        let position = made.reader_table.next_position();
        let reader_table = made.reader_table.clone();
        Ok(Granted { data, control: descriptor, reader, reader_table, pins, position })
    }

    /// Attaches a reader of this process to the ring, which has been made. The thread that fills the ring asks itself how far it has read, see
    /// [`Progress`](super::Progress).
    ///
    /// # Errors
    /// No ring yet, or no room for another reader.
    pub(crate) fn attach_here(&self, pins: u32, is_waited_for: bool) -> Result<GrantedHere, RingError> {
        self.enter_here(|reader_table, control| {
            enter(pins, |pins| reader_table.attach_own(control.clone(), pins, is_waited_for))
        })
    }

    fn enter_here(
        &self,
        enter: impl FnOnce(&ReaderTable, &Memory) -> Result<(ReaderId, u32), RingError>,
    ) -> Result<GrantedHere, RingError> {
        let made = self.lock();
        let made = made.as_ref().ok_or(RingError::NotMade)?;
        let control = Memory::zeroed(CONTROL_BYTES);
        let (reader, pins) = enter(&made.reader_table, &control)?;
        let position = made.reader_table.next_position();
        let memory = (made.memory.clone(), control);
        Ok(GrantedHere { memory, reader, reader_table: made.reader_table.clone(), pins, position })
    }

    /// The last `depth` samples in the ring; nothing if there is no ring.
    pub(crate) fn history(&self, depth: u32) -> Vec<Past> {
        let mut samples = Vec::new();
        let granted =
            self.enter_here(|reader_table, control| Ok((reader_table.attach_extra(control.clone())?, 0)));
        let Ok(GrantedHere { memory, reader: id, reader_table, .. }) = granted else { return samples };
        let opened = open_ring(memory, 0, self.config.type_hash, StartAt::Last(depth));
        if let Ok(mut reader) = opened {
            let mut buffer = vec![0; self.payload_bytes_max];
            while let Ok(Some(sample)) = reader.take_next(&mut buffer) {
                let bytes = buffer[..sample.length_bytes].to_vec();
                samples.push(Past { sequence: sample.number, origin: sample.origin, bytes });
            }
        }
        reader_table.detach(id);
        samples
    }

    /// Where readers are detached; `None` before there is a ring.
    pub(crate) fn reader_table(&self) -> Option<ReaderTable> {
        self.lock().as_ref().map(|made| made.reader_table.clone())
    }

    /// Readers of this host to which all that is published from now on comes.
    pub(crate) fn readers(&self) -> usize {
        self.lock().as_ref().map_or(0, |made| made.reader_table.len())
    }

    fn lock(&self) -> MutexGuard<'_, Option<Made>> {
        // A panic while it was held cannot leave it half changed: it is replaced as a whole.
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A reader that cannot borrow copies: better than not to read.
fn enter(
    pins: u32,
    attach: impl Fn(u32) -> Result<ReaderId, AttachError>,
) -> Result<(ReaderId, u32), RingError> {
    let (reader, pins) = match attach(pins) {
        Err(AttachError::Pins { left, .. }) => (attach(left), left),
        attached => (attached, pins),
    };
    Ok((reader?, pins))
}

/// Memory whose descriptor can be lent to other processes. It is not one of the last, which the rest of the program, connections and the
/// descriptors that others lend need: the kernel gives the lowest number that is free, so all below it are taken.
fn create_to_lend(length_bytes: usize) -> io::Result<(SealedMemory, OwnedFd)> {
    let (memory, data) = SealedMemory::create(length_bytes, WrittenBy::Creator)?;
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let is_one_of_the_last = limit.is_some_and(|limit| {
        let left = DESCRIPTORS_LEFT.min(limit / 4);
        u64::from(data.as_raw_fd().unsigned_abs()) >= limit - left
    });
    if is_one_of_the_last { Err(Errno::MFILE.into()) } else { Ok((memory, data)) }
}

/// Whether this process, or the system, can have no more descriptors.
pub(crate) fn is_out_of_descriptors(error: &io::Error) -> bool {
    let code = error.raw_os_error();
    code == Some(Errno::MFILE.raw_os_error()) || code == Some(Errno::NFILE.raw_os_error())
}

/// Maps what the writer of another process granted: data and control page. As long as samples of it are borrowed, `kept` lives.
///
/// # Errors
/// Memory that is not sealed, or cannot be mapped.
pub(crate) fn map_granted(
    (data, control): (OwnedFd, OwnedFd),
    kept: impl Any + Send + Sync,
) -> Result<(Memory, Memory), RingError> {
    let data = SealedMemory::open(data, WrittenBy::Creator).map_err(RingError::NotMapped)?;
    let control = SealedMemory::open(control, WrittenBy::Holder).map_err(RingError::NotMapped)?;
    Ok((Memory::from(data), Memory::with(control, kept)))
}

/// Opens the reading end of a ring.
///
/// # Errors
/// Memory that is not the ring that was expected.
pub(crate) fn open_ring(
    (data, control): (Memory, Memory),
    pins: u32,
    type_hash: u64,
    start: StartAt,
) -> Result<Reader, LayoutError> {
    Reader::open(data, control, pins, type_hash, start)
}
