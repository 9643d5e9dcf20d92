//! Topics between processes of one host, through shared memory.
//!
//! A [`Publisher`] owns a ring and listens under an abstract name. A [`Subscriber`] connects, says
//! what it wants, and is handed two descriptors: the ring, which it may only read, and a control page
//! of its own. The connection stays open for nothing but its end: whichever side dies, however it
//! dies, the other learns it, and the kernel takes back the memory.
//!
//! The ring itself is `noctule-shm-ring`; every byte of both: `docs/spec/shared-memory.md`.

mod handover;
mod publisher;
mod subscriber;
#[cfg(test)]
mod tests;

pub use handover::{Answer, HandoverError, REFUSAL_BYTES_MAX, Request, TOPIC_BYTES_MAX};
pub use noctule_shm_ring::{Borrowed, Loan, Origin, ReadError, RingConfig, Sample, StartAt, WriteError};
pub use publisher::{Access, Publisher};
pub use subscriber::{Interest, LocalError, Subscriber, Waiting, wait_any};
