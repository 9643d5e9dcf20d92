//! The writing end of a local topic, and the thread that lets readers in and notices when they go.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::thread::JoinHandle;

use noctule_shm_ring::{
    CONTROL_BYTES, Layout, Loan, Memory, Origin, READERS_MAX, ReaderId, RingConfig, Roster, Wake, WriteError,
    Writer, WriterCounters,
};
use noctule_sys::local_socket::{LocalListener, LocalSocket, own_user};
use noctule_sys::sealed_memory::{SealedMemory, WrittenBy};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};

use super::handover::{Answer, PACKET_BYTES_MAX, Request};
use super::subscriber::LocalError;

/// Connections that have not said yet what they want; beyond, the one that waits longest is closed.
const UNDECIDED_MAX: usize = 16;

/// Who may read a topic, or write one that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Access {
    /// Members of this group, too; without it, only the user this process runs as.
    pub group: Option<u32>,
}

impl Access {
    /// Whether the process at the other end may take part; the sentence says why not.
    pub(super) fn check(self, socket: &LocalSocket) -> io::Result<Result<(), String>> {
        let peer = socket.credentials()?;
        if peer.uid == own_user() {
            return Ok(Ok(()));
        }
        Ok(match self.group {
            Some(group) if socket.peer_is_in_group(group)? => Ok(()),
            Some(group) => Err(format!(
                "user {} is neither user {} nor in group {group}; add it to the group",
                peer.uid,
                own_user()
            )),
            None => {
                Err(format!("user {} is not user {}; name a group that both are in", peer.uid, own_user()))
            }
        })
    }
}

/// Publishes one topic to readers on this host.
#[derive(Debug)]
pub struct Publisher {
    writer: Writer,
    roster: Roster,
    stop: Arc<OwnedFd>,
    door: Option<JoinHandle<()>>,
}

impl Publisher {
    /// Makes the ring and lets readers in under `address`, an abstract socket name that no other
    /// publisher has, up to 107 bytes.
    pub fn open(address: &str, topic: &str, config: &RingConfig, access: Access) -> Result<Self, LocalError> {
        let layout = Layout::of(config)?;
        let bytes = usize::try_from(layout.region_bytes()).unwrap_or(usize::MAX);
        let of = |what: &'static str| move |cause| LocalError::System { what, cause };
        let memory =
            SealedMemory::create(bytes, WrittenBy::Creator).map_err(of("create the shared memory"))?;
        let data = memory.as_fd().try_clone_to_owned().map_err(of("duplicate a descriptor"))?;
        let writer = Writer::create(Memory::from(memory), config)?;
        let listener = LocalListener::bind(address.as_bytes()).map_err(of("listen under the address"))?;
        let stop = eventfd(0, EventfdFlags::CLOEXEC).map_err(|e| of("create an eventfd")(e.into()))?;
        let stop = Arc::new(stop);
        let door = Door {
            listener,
            data,
            topic: topic.to_owned(),
            type_hash: config.type_hash,
            access,
            roster: writer.roster().clone(),
            guests: Vec::new(),
            stop: Arc::clone(&stop),
        };
        let thread = std::thread::Builder::new().name(format!("door {topic}"));
        let door = thread.spawn(move || door.run()).map_err(of("start a thread"))?;
        Ok(Self { roster: writer.roster().clone(), writer, stop, door: Some(door) })
    }

    /// Publishes a copy and wakes who sleeps.
    #[inline]
    pub fn publish(&mut self, bytes: &[u8], origin: Origin) -> Result<(), WriteError> {
        let wake = self.writer.copy_in(bytes, origin)?;
        self.writer.wake(wake);
        Ok(())
    }

    /// Lends the memory of the next message; hand it back to [`Self::wake`] what its commit returns.
    pub fn loan(&mut self, length_bytes: usize) -> Result<Loan<'_>, WriteError> {
        self.writer.loan(length_bytes)
    }

    /// Wakes who sleeps, after the commit of a loan.
    pub fn wake(&self, wake: Wake) {
        self.writer.wake(wake);
    }

    /// Readers connected now.
    pub fn readers(&self) -> usize {
        self.roster.len()
    }

    /// What the ring has met.
    pub fn counters(&self) -> WriterCounters {
        self.writer.counters()
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        // Cannot fail: the counter of a fresh eventfd is far from full.
        let _ = rustix::io::write(&*self.stop, &1u64.to_ne_bytes());
        if let Some(door) = self.door.take() {
            let _ = door.join();
        }
    }
}

/// Lets readers in, and out.
struct Door {
    listener: LocalListener,
    data: OwnedFd,
    topic: String,
    type_hash: u64,
    access: Access,
    roster: Roster,
    guests: Vec<Guest>,
    stop: Arc<OwnedFd>,
}

struct Guest {
    socket: LocalSocket,
    /// `None` until it has said what it wants.
    reader: Option<ReaderId>,
}

impl Door {
    fn run(mut self) {
        loop {
            let mut watched =
                vec![PollFd::new(&*self.stop, PollFlags::IN), PollFd::new(&self.listener, PollFlags::IN)];
            watched.extend(self.guests.iter().map(|guest| PollFd::new(&guest.socket, PollFlags::IN)));
            if let Err(rustix::io::Errno::NOMEM) = poll(&mut watched, None) {
                return;
            }
            let ready: Vec<bool> = watched.iter().map(|fd| !fd.revents().is_empty()).collect();
            if ready[0] {
                return;
            }
            self.attend(&ready[2..]);
            if ready[1] {
                self.admit();
            }
        }
    }

    /// Reads what guests say; a guest that has a reader has nothing more to say but its end.
    fn attend(&mut self, ready: &[bool]) {
        let guests = std::mem::take(&mut self.guests);
        for (mut guest, ready) in guests.into_iter().zip(ready) {
            if !ready || self.keep(&mut guest) {
                self.guests.push(guest);
            } else if let Some(reader) = guest.reader {
                self.roster.detach(reader);
            }
        }
    }

    fn keep(&self, guest: &mut Guest) -> bool {
        let mut buffer = [0; PACKET_BYTES_MAX];
        let packet = match guest.socket.receive(&mut buffer) {
            Ok(packet) => packet,
            Err(error) => return error.kind() == io::ErrorKind::WouldBlock,
        };
        if packet.length_bytes == 0 || packet.truncated || guest.reader.is_some() {
            return false;
        }
        match self.answer(&guest.socket, &buffer[..packet.length_bytes]) {
            Ok(reader) => {
                guest.reader = Some(reader);
                true
            }
            Err(why) => {
                // If it does not even take the refusal, there is nothing left to tell it.
                let _ = guest.socket.send(&Answer::Refused(why).emit(), &[]);
                false
            }
        }
    }

    fn answer(&self, socket: &LocalSocket, packet: &[u8]) -> Result<ReaderId, String> {
        let text = |error: io::Error| format!("the writer's system says: {error}");
        self.access.check(socket).map_err(text)??;
        let request = Request::parse(packet).map_err(|error| error.to_string())?;
        if request.topic != self.topic {
            return Err(format!("this is topic \"{}\", not \"{}\"", self.topic, request.topic));
        }
        if request.type_hash != self.type_hash {
            return Err(format!(
                "topic \"{}\" carries type {:016x}, wanted is {:016x}; compare the definitions",
                self.topic, self.type_hash, request.type_hash
            ));
        }
        let control = SealedMemory::create(CONTROL_BYTES, WrittenBy::Holder).map_err(text)?;
        let descriptor = control.as_fd().try_clone_to_owned().map_err(text)?;
        let pins = request.pins;
        // Before the answer: once the reader knows, the writer heeds it.
        let reader = self.roster.attach(Memory::from(control), pins).map_err(|error| error.to_string())?;
        let descriptors = [self.data.as_fd(), descriptor.as_fd()];
        if let Err(error) = socket.send(&Answer::Accepted { pins }.emit(), &descriptors) {
            self.roster.detach(reader);
            return Err(text(error));
        }
        Ok(reader)
    }

    fn admit(&mut self) {
        // At most so many at a time, so that a crowd at the door does not keep anybody from leaving.
        for _ in 0..UNDECIDED_MAX {
            let Ok(Some(socket)) = self.listener.accept() else { return };
            let undecided = |guest: &Guest| guest.reader.is_none();
            if self.guests.iter().filter(|guest| undecided(guest)).count() >= UNDECIDED_MAX
                && let Some(oldest) = self.guests.iter().position(undecided)
            {
                self.guests.remove(oldest);
            }
            debug_assert!(self.guests.len() < READERS_MAX + UNDECIDED_MAX);
            self.guests.push(Guest { socket, reader: None });
        }
    }
}
