//! A publisher's shared memory: made when the first reader of this host comes.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use noctule_shm_ring::{CONTROL_BYTES, Layout, LayoutError, Memory, ReaderId, RingConfig, Roster, Writer};
use noctule_sys::sealed_memory::{SealedMemory, WrittenBy};

/// The bit of plain bytes among the formats of a topic.
pub(crate) const RAW_FORMATS: u32 = 1;
/// The formats of a reader that takes any.
pub(crate) const ANY_FORMAT: u32 = u32::MAX;

/// What a publisher offers to readers of this host.
#[derive(Debug)]
pub(crate) struct Offer {
    pub(crate) payload_bytes_max: usize,
    config: RingConfig,
    made: Mutex<Option<Made>>,
}

#[derive(Debug)]
struct Made {
    data: OwnedFd,
    roster: Roster,
}

/// What a reader gets, beside its answer.
pub(crate) struct Granted {
    pub(crate) data: OwnedFd,
    pub(crate) control: OwnedFd,
    pub(crate) reader: ReaderId,
}

impl Offer {
    /// An offer of rings of this geometry.
    ///
    /// # Errors
    /// A geometry that is not possible.
    pub(crate) fn new(config: RingConfig) -> Result<Offer, LayoutError> {
        Layout::of(&config)?;
        Ok(Offer { payload_bytes_max: config.payload_bytes_max, config, made: Mutex::new(None) })
    }

    /// Makes the ring if it is not there yet; the writer is the caller's to pass on.
    ///
    /// # Errors
    /// No memory, in words.
    pub(crate) fn make(&self) -> Result<Option<Writer>, String> {
        let mut made = self.lock();
        if made.is_some() {
            return Ok(None);
        }
        let layout = Layout::of(&self.config).map_err(|error| error.to_string())?;
        let bytes = layout.region_bytes();
        let no_memory = |error: io::Error| {
            format!(
                "{bytes} bytes of shared memory cannot be had ({error}); lower keep_last, borrows or payload_bytes_max"
            )
        };
        let length = usize::try_from(bytes).map_err(|_| no_memory(io::ErrorKind::OutOfMemory.into()))?;
        let memory = SealedMemory::create(length, WrittenBy::Creator).map_err(no_memory)?;
        let data = memory.as_fd().try_clone_to_owned().map_err(no_memory)?;
        let writer = Writer::create(Memory::from(memory), &self.config).map_err(|error| error.to_string())?;
        *made = Some(Made { data, roster: writer.roster().clone() });
        Ok(Some(writer))
    }

    /// Attaches a reader of this host to the ring, which has been made.
    ///
    /// # Errors
    /// Why not, in words for the reader.
    pub(crate) fn attach(&self, pins: u32) -> Result<Granted, String> {
        let made = self.lock();
        let made = made.as_ref().ok_or("the topic has no shared memory yet; try again")?;
        let control = SealedMemory::create(CONTROL_BYTES, WrittenBy::Holder).map_err(|e| e.to_string())?;
        let descriptor = control.as_fd().try_clone_to_owned().map_err(|e| e.to_string())?;
        let data = made.data.try_clone().map_err(|e| e.to_string())?;
        let reader = made.roster.attach(Memory::from(control), pins).map_err(|e| e.to_string())?;
        Ok(Granted { data, control: descriptor, reader })
    }

    /// Forgets a reader.
    pub(crate) fn detach(&self, reader: ReaderId) {
        if let Some(made) = self.lock().as_ref() {
            made.roster.detach(reader);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Made>> {
        // A panic while it was held cannot leave it half changed: it is replaced as a whole.
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
