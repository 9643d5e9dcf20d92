//! State that a publisher shares with the node's thread.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};

use noctule_discovery::EndpointId;
use noctule_prrt::Class;
use noctule_shm_ring::Writer;
use noctule_timebase::Span;

use super::{RingError, RingOwner};

/// Time for which a keep-all reader receives nothing before a notice says so: longer than a program computes between two samples.
pub(crate) const HELD_UP: Span = Span::from_s(5);

/// A publisher's state that the node's thread shares.
#[derive(Debug)]
pub(crate) struct PublishedTopic {
    pub(crate) id: EndpointId,
    pub(crate) name: String,
    pub(crate) class: Class,
    pub(crate) depth: u32,
    pub(crate) offer: RingOwner,
    /// The ring, from when it is made until the publisher fetches it.
    pub(crate) fresh: Mutex<Option<Writer>>,
    pub(crate) is_fresh: AtomicBool,
    /// Readers on other hosts.
    pub(crate) remote_readers: AtomicU32,
    pub(crate) published: AtomicU64,
    pub(crate) refused: AtomicU64,
    /// Samples that did not go to some reader on another host because its path carried less than was published.
    pub(crate) given_up: AtomicU64,
    /// Times that a keep-all reader received nothing for [`HELD_UP`].
    pub(crate) held_up: AtomicU64,
    /// The same and what was refused, since acknowledgements were last waited for.
    pub(crate) undelivered: AtomicU64,
    /// The longest sample that travels to other hosts.
    pub(crate) remote_bytes_max: usize,
    pub(crate) has_deadline: bool,
    /// When the last sample was published, on the crystal, if there is a deadline; 0 before.
    pub(crate) last_ns: AtomicI64,
}

impl PublishedTopic {
    /// So many samples did not go to some reader on another host.
    pub(crate) fn count_given_up(&self, samples: u64) {
        self.given_up.fetch_add(samples, Ordering::Relaxed);
        self.undelivered.fetch_add(samples, Ordering::Relaxed);
    }

    pub(crate) fn is_reliable(&self) -> bool {
        self.class == Class::Reliable
    }

    /// Makes the ring, if it is not there; the publisher writes into it from its next sample on.
    ///
    /// # Errors
    /// No memory.
    pub(crate) fn make_ring(&self) -> Result<(), RingError> {
        self.leave_fresh(self.offer.make()?)
    }

    /// The same for a reader of the own node: without a descriptor if there is none left.
    ///
    /// # Errors
    /// No memory.
    pub(crate) fn make_ring_for_here(&self) -> Result<(), RingError> {
        self.leave_fresh(self.offer.make_for_here()?)
    }

    fn leave_fresh(&self, made: Option<Writer>) -> Result<(), RingError> {
        if let Some(ring) = made {
            *self.fresh.lock().map_err(|_| RingError::PublisherFailed)? = Some(ring);
            self.is_fresh.store(true, Ordering::Release);
        }
        Ok(())
    }
}
