//! Floors in shared memory: one cache line bounced between cores, with or without a wake-up.
//!
//! A mailbox is one cache line that the reader owns and the writer fills: sequence, index, stamp. It
//! holds only the newest message and carries no body: it is the cost of telling another process,
//! not of moving data (`memcpy` is that). `cache_line` polls it, `futex` sleeps on a word of it,
//! `eventfd` sleeps on a descriptor handed over by `pidfd_getfd`.

use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use noctule_peer::{Deliver, Description, Header, Open, Outgoing, Peer, PeerError, Transport, Wait};
use noctule_sys::shared_memory::{SharedMemory, futex_wait, futex_wake};
use rustix::event::{EventfdFlags, eventfd};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

use super::socket::{own_timeout, readable, start_pulse};

const SEQUENCE: usize = 0;
const INDEX: usize = 8;
const STAMP: usize = 16;
/// Exclusive or of index and turned stamp: a reading that mixes two messages does not match it. A
/// sequence written before *and* after would do too, but costs a reader that polls in between a
/// second trip of the line.
const CHECK: usize = 24;
/// Low half of the sequence again, for the futex. Same cache line.
const FUTEX_WORD: usize = 32;

/// A floor made of mailboxes.
pub(super) struct Mailbox {
    name: &'static str,
    wake: Wake,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Wake {
    Nothing,
    Futex,
    EventFd,
}

impl Mailbox {
    pub(super) const CACHE_LINE: Self = Self { name: "cache_line", wake: Wake::Nothing };
    pub(super) const FUTEX: Self = Self { name: "futex", wake: Wake::Futex };
    pub(super) const EVENTFD: Self = Self { name: "eventfd", wake: Wake::EventFd };
}

impl Peer for Mailbox {
    fn describe(&self) -> Description {
        let waits: &[Wait] = match self.wake {
            Wake::Nothing => &[Wait::Spin],
            Wake::Futex | Wake::EventFd => &[Wait::Block, Wait::Hybrid],
        };
        super::description(self.name, "shm", waits, noctule_peer::HEADER_BYTES as u64)
    }

    fn open(&self, open: &Open) -> Result<Box<dyn Transport>, PeerError> {
        let inbox = match open.subscribe {
            Some(_) => Some(Inbox::create(self.wake)?),
            None => None,
        };
        Ok(Box::new(Node { wake: self.wake, inbox, readers: Vec::new() }))
    }
}

struct Inbox {
    memory: SharedMemory,
    event: Option<OwnedFd>,
    /// Sequence of the newest message delivered.
    seen: u64,
}

struct Reader {
    memory: SharedMemory,
    event: Option<OwnedFd>,
    sequence: u64,
}

struct Node {
    wake: Wake,
    inbox: Option<Inbox>,
    readers: Vec<Reader>,
}

impl Inbox {
    fn create(wake: Wake) -> Result<Self, PeerError> {
        let memory =
            SharedMemory::create(4096).map_err(|e| PeerError::of("cannot create shared memory", e))?;
        let event = match wake {
            Wake::EventFd => {
                let event = eventfd(0, EventfdFlags::CLOEXEC);
                Some(event.map_err(|e| PeerError::of("cannot create an eventfd", e))?)
            }
            Wake::Nothing | Wake::Futex => None,
        };
        Ok(Self { memory, event, seen: 0 })
    }

    /// Delivers the mailbox's content if it is new. A reading during which the next message was
    /// written is dropped; the next call reads again.
    #[inline]
    fn look(&mut self, deliver: &mut Deliver<'_>) -> usize {
        let sequence = self.memory.word64(SEQUENCE).load(Ordering::Acquire);
        if sequence == self.seen {
            return 0;
        }
        let index = self.memory.word64(INDEX).load(Ordering::Relaxed);
        let stamp = self.memory.word64(STAMP).load(Ordering::Relaxed);
        if self.memory.word64(CHECK).load(Ordering::Relaxed) != check(index, stamp) {
            return 0;
        }
        self.seen = sequence;
        let mut message = [0; noctule_peer::HEADER_BYTES];
        message[..8].copy_from_slice(&index.to_le_bytes());
        message[8..].copy_from_slice(&stamp.to_le_bytes());
        deliver(&message);
        1
    }
}

impl Reader {
    fn open(address: &str) -> Result<Self, PeerError> {
        let mut parts = address.split(':');
        let path = parts.next().unwrap_or_default();
        let memory = SharedMemory::open(Path::new(path))
            .map_err(|e| PeerError::of(&format!("cannot open shared memory {path}"), e))?;
        let event = match (parts.next(), parts.next()) {
            (Some(process), Some(descriptor)) => Some(
                fetch_descriptor(process, descriptor)
                    .map_err(|e| PeerError::of("cannot fetch the reader's eventfd", e))?,
            ),
            _ => None,
        };
        Ok(Self { memory, event, sequence: 0 })
    }

    #[inline]
    fn put(&mut self, header: Header) {
        self.sequence += 1;
        let stamp = header.scheduled_ns as u64;
        self.memory.word64(INDEX).store(header.index, Ordering::Relaxed);
        self.memory.word64(STAMP).store(stamp, Ordering::Relaxed);
        self.memory.word64(CHECK).store(check(header.index, stamp), Ordering::Relaxed);
        self.memory.word64(SEQUENCE).store(self.sequence, Ordering::Release);
    }
}

fn check(index: u64, stamp: u64) -> u64 {
    index ^ stamp.rotate_left(32)
}

fn fetch_descriptor(process: &str, descriptor: &str) -> Result<OwnedFd, std::io::Error> {
    let invalid = |_| std::io::Error::from(std::io::ErrorKind::InvalidInput);
    let process = Pid::from_raw(process.parse().map_err(invalid)?);
    let process = process.ok_or(std::io::ErrorKind::InvalidInput)?;
    let pidfd = pidfd_open(process, PidfdFlags::empty())?;
    let descriptor = descriptor.parse().map_err(invalid)?;
    Ok(pidfd_getfd(pidfd, descriptor, PidfdGetfdFlags::empty())?)
}

impl Transport for Node {
    fn address(&self) -> Option<String> {
        let inbox = self.inbox.as_ref()?;
        let path = inbox.memory.path();
        Some(match &inbox.event {
            Some(event) => format!("{path}:{}:{}", std::process::id(), event.as_raw_fd()),
            None => path,
        })
    }

    fn connect(&mut self, readers: &[String]) -> Result<BTreeMap<String, String>, PeerError> {
        self.readers = readers.iter().map(|address| Reader::open(address)).collect::<Result<_, _>>()?;
        start_pulse()?;
        Ok(BTreeMap::new())
    }

    #[inline]
    fn send(&mut self, message: &mut Outgoing) -> Result<(), PeerError> {
        for reader in &mut self.readers {
            reader.put(message.header());
            match self.wake {
                Wake::Nothing => {}
                Wake::Futex => {
                    let word = reader.memory.word32(FUTEX_WORD);
                    word.store(reader.sequence as u32, Ordering::Release);
                    futex_wake(word);
                }
                Wake::EventFd => {
                    if let Some(event) = &reader.event {
                        rustix::io::write(event, &1u64.to_ne_bytes())
                            .map_err(|e| PeerError::of("cannot write the eventfd", e))?;
                    }
                }
            }
        }
        Ok(())
    }

    #[inline]
    fn try_receive(&mut self, deliver: &mut Deliver<'_>) -> Result<usize, PeerError> {
        Ok(self.inbox.as_mut().map_or(0, |inbox| inbox.look(deliver)))
    }

    fn receive(&mut self, timeout: Duration, deliver: &mut Deliver<'_>) -> Result<usize, PeerError> {
        let Some(inbox) = &mut self.inbox else {
            return Ok(0);
        };
        match &inbox.event {
            None => futex_wait(inbox.memory.word32(FUTEX_WORD), inbox.seen as u32, own_timeout(timeout)),
            Some(event) if own_timeout(timeout).is_some() && !readable(event, timeout)? => {}
            Some(event) => match rustix::io::read(event, &mut [0; 8]) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(PeerError::of("cannot read the eventfd", error)),
            },
        }
        Ok(inbox.look(deliver))
    }
}
