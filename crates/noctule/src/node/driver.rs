//! The node's thread: owns what waits.
//!
//! It sleeps on the sockets, on connections of this host and on the next time-out, and runs the state
//! inline. Publishers and subscribers do not need it for a sample to travel through shared memory.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use noctule_discovery::Via;
use noctule_prrt::BATCH_LIMIT;
use noctule_sys::datagram::{self, Arrival};
use noctule_timebase::{Instant, Span};
use rustix::event::epoll;
use rustix::fd::OwnedFd;

use super::Shared;
use super::changes::Seen;
use super::command::Command;
use super::directory::Received;
use super::ports::CHANNELS;
use super::receive_offload::DATAGRAM_BYTES_MAX;
use super::reception::Reception;
use super::same_host::{Connections, FIRST_TOKEN};
use super::send::Effort;
use super::socket_lease::{Duty, UNREAD_MAX};
use super::state::State;
use super::well_known_port::WellKnownPort;
use crate::clock;
use crate::key_file::KeyFile;
use crate::notice::Notice;
use crate::swarm_key::SwarmKey;

const KICK: u64 = 0;
const GROUP: u64 = 1;
const OWN: u64 = 2;
const LISTENER: u64 = 3;
const CHANNEL: u64 = 4;
const ALARM: u64 = 5;
const GROUP_V6: u64 = 6;
const DOOR: u64 = 7;
const DIRECTORY: u64 = 8;
const CHANGES: u64 = 9;
/// Datagrams taken from one socket before the others get their turn, and before what they provoke is sent.
const BATCH: usize = BATCH_LIMIT;
/// The longest that the thread sleeps.
const LONGEST_SLEEP: Span = Span::from_s(1);
/// A subscriber that has not seen a change is woken again after this: it may have been falling asleep.
const WAKE_AGAIN: Span = Span::from_ms(10);

pub(super) fn start(shared: Arc<Shared>, key_file: Option<KeyFile>) -> io::Result<JoinHandle<()>> {
    let connections = Connections::open(shared.id)?;
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let watch = |descriptor: rustix::fd::BorrowedFd<'_>, token| {
        epoll::add(&epoll, descriptor, epoll::EventData::new_u64(token), epoll::EventFlags::IN)
    };
    watch(shared.kick.as_fd(), KICK)?;
    watch(shared.sockets.group.as_fd(), GROUP)?;
    watch(shared.sockets.own.as_fd(), OWN)?;
    watch(shared.sockets.channels.as_fd(), CHANNEL)?;
    watch(shared.sockets.well_known_port.as_fd(), DOOR)?;
    watch(shared.sockets.directory.as_fd(), DIRECTORY)?;
    if let Some(group) = &shared.sockets.group_v6 {
        watch(group.as_fd(), GROUP_V6)?;
    }
    if let Some(changes) = &shared.sockets.changes {
        watch(changes.as_fd(), CHANGES)?;
    }
    watch(shared.wake_timer.as_fd(), ALARM)?;
    watch(connections.listener().as_fd(), LISTENER)?;
    let (buffer, well_known_port) = (vec![0; DATAGRAM_BYTES_MAX], WellKnownPort::default());
    let seen = Seen::default();
    let driver = Driver { shared, epoll, connections, listening: 0, buffer, well_known_port, key_file, seen };
    std::thread::Builder::new().name("noctule-node".into()).spawn(move || driver.run())
}

struct Driver {
    shared: Arc<Shared>,
    epoll: OwnedFd,
    connections: Connections,
    /// Channels that are joined, a bit each.
    listening: u16,
    buffer: Vec<u8>,
    well_known_port: WellKnownPort,
    key_file: Option<KeyFile>,
    seen: Seen,
}

impl Driver {
    fn run(mut self) {
        self.warn_without_key();
        let mut events = Vec::with_capacity(BATCH);
        while !self.shared.stop.load(Ordering::Acquire) {
            let (is_copied, spent) = {
                let mut state = self.shared.lock();
                let now = clock::now();
                state.handle_timeout(now);
                (state.envelope.is_copied(), state.unacknowledged.take_spent(now))
            };
            if is_copied {
                return self.end_as_copy();
            }
            self.follow_key_file();
            self.connections.handle_timeout(&self.shared, &self.epoll);
            self.carry_out_commands();
            self.attend();
            if self.has_segments() {
                self.receive_own();
            }
            self.plan();
            self.tell();
            self.seen.follow(&self.shared);
            drop(spent);
            events.clear();
            // Until the alarm at the latest: a time-out given here would be rounded up to whole milliseconds, which is later than a
            // repair can wait. A signal is no event; whatever else fails, the loop comes round again.
            let _ = epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), None);
            for event in &events {
                match event.data.u64() {
                    // It is set again before the next sleep, and silent until then.
                    ALARM => {}
                    KICK => drop(rustix::io::read(&self.shared.kick, &mut [0; 8])),
                    GROUP => self.receive(Via::Group, |shared| Some(&shared.sockets.group)),
                    GROUP_V6 => self.receive(Via::Group, |shared| shared.sockets.group_v6.as_ref()),
                    OWN => self.receive_own(),
                    CHANNEL => {
                        self.receive(Via::Group, |shared| Some(&shared.sockets.channels));
                        // A subscriber that reads the own socket does not see what this thread takes in.
                        self.shared.wake_reader();
                    }
                    DOOR => self.receive_at_door(),
                    DIRECTORY => self.receive_here(),
                    CHANGES => self.follow_network(),
                    LISTENER => self.connections.accept(&self.shared, &self.epoll),
                    token => self.connections.handle(token, &self.shared),
                }
            }
        }
        self.shared.work(Effort::All, |state, _| state.discovery.leave());
        self.connections.close(self.shared.id);
    }

    /// Watches the own socket, or does not because a subscriber reads it.
    fn attend(&self) {
        let own = self.shared.sockets.own.as_fd();
        // Neither fails for a socket that is open and was not, or was, watched.
        match self.shared.lead.duty(clock::now()) {
            Duty::Keep => {}
            Duty::LetGo => _ = epoll::delete(&self.epoll, own),
            Duty::TakeBack => {
                let data = epoll::EventData::new_u64(OWN);
                _ = epoll::add(&self.epoll, own, data, epoll::EventFlags::IN);
            }
        }
    }

    /// Whether there are datagrams for this thread that the own socket no longer signals.
    fn has_segments(&self) -> bool {
        self.shared.sockets.offload.has_more() && !self.shared.lead.is_away()
    }

    /// Sends what is due, and sets the alarm for the next time.
    fn plan(&self) {
        self.shared.work(Effort::All, |_, _| ());
        let state = self.shared.lock();
        let now = clock::now();
        let mut longest = LONGEST_SLEEP;
        for topic in state.subscribers.values().filter(|topic| topic.is_behind()) {
            topic.wake();
            self.shared.wake_reader();
            longest = WAKE_AGAIN;
        }
        if self.shared.lead.must_look_again(now) {
            longest = longest.min(UNREAD_MAX);
        }
        if self.has_segments() {
            longest = Span::ZERO;
        }
        let mut due = state.poll_timeout(now).min(self.shared.check_at());
        // To busy-wait for a thread that was preempted while it sends would keep that from its core.
        if due <= now && self.shared.is_left_to_others() {
            due = now + longest;
        }
        let due = self.connections.poll_timeout().into_iter().fold(due, Instant::min);
        let sleep = (due - now).clamp(Span::ZERO, longest);
        self.shared.wake_timer.set(now + sleep);
    }

    /// Datagrams of the own socket, unless a subscriber has taken it: then the thread stops watching it before it sleeps.
    fn receive_own(&mut self) {
        if self.shared.lead.is_away() {
            return;
        }
        let shared = Arc::clone(&self.shared);
        let mut left = shared.sockets.offload.left();
        while left > 0 {
            // Before the look at the lease: a subscriber that takes it waits for the lock before it receives.
            let mut state = shared.lock();
            if shared.lead.is_away() {
                break;
            }
            let Some((taken, _)) = shared.take_joined(&mut state, &mut self.buffer, left) else { break };
            left -= taken;
        }
        shared.work(Effort::All, |_, _| ());
        // A subscriber may have begun to read meanwhile.
        self.shared.wake_reader();
    }

    fn receive(&mut self, via: Via, socket: fn(&Shared) -> Option<&UdpSocket>) {
        let shared = Arc::clone(&self.shared);
        let Some(socket) = socket(&shared) else { return };
        for _ in 0..BATCH {
            let Ok(Some(arrival)) = datagram::receive(socket, &mut self.buffer) else { break };
            let sockets = &shared.sockets;
            if via == Via::Group && (sockets.is_detour(arrival.from) || sockets.is_own(arrival.from)) {
                continue;
            }
            let from = (sockets.in_own_family(arrival.from), via);
            handle_arrival(&mut shared.lock(), &mut self.buffer, &arrival, from);
        }
        shared.work(Effort::All, |_, _| ());
    }

    /// Datagrams at the well-known port are for all nodes of this host.
    fn receive_at_door(&mut self) {
        let shared = Arc::clone(&self.shared);
        let sockets = &shared.sockets;
        for _ in 0..BATCH {
            let Ok(Some(arrival)) = datagram::receive(&sockets.well_known_port, &mut self.buffer) else {
                break;
            };
            if sockets.is_own(arrival.from) {
                continue;
            }
            let length = arrival.length_bytes.min(self.buffer.len());
            self.well_known_port.forward(
                &sockets.directory,
                arrival.from,
                &self.buffer[..length],
                clock::now(),
            );
            if sockets.directory.is_of_another_domain(&self.buffer[..length]) {
                continue;
            }
            let from = (sockets.in_own_family(arrival.from), Via::Unicast);
            handle_arrival(&mut shared.lock(), &mut self.buffer, &arrival, from);
        }
        shared.work(Effort::All, |_, _| ());
    }

    /// Receives datagrams that nodes of this host sent without a network, or forwarded.
    fn receive_here(&mut self) {
        let shared = Arc::clone(&self.shared);
        for _ in 0..BATCH {
            let Ok(Some(received)) = shared.sockets.directory.receive(&mut self.buffer) else { break };
            let (source, via, datagram) = match received {
                Received::Own(source, datagram) => (source, Via::Group, datagram),
                Received::Forwarded(source, datagram) => (source, Via::Unicast, datagram),
                Received::Unknown => continue,
            };
            if shared.sockets.is_own(source) {
                continue;
            }
            let from = (shared.sockets.in_own_family(source), via);
            shared.lock().handle_datagram(datagram, from, Reception::unstamped(clock::now()));
        }
        shared.work(Effort::All, |_, _| ());
    }

    /// An interface or an address has come or gone.
    fn follow_network(&mut self) {
        let Some(changes) = &self.shared.sockets.changes else { return };
        // What cannot be listed now is listed with the next change.
        if changes.drain() && self.shared.sockets.refresh(self.listening).unwrap_or(false) {
            self.shared.lock().handle_network_change(clock::now());
            self.warn_without_key();
        }
    }

    /// The swarm's key may be changed while the node runs.
    fn follow_key_file(&mut self) {
        match self.key_file.as_mut().and_then(|file| file.poll(clock::now())) {
            None => {}
            Some(Ok(keys)) => {
                let mut state = self.shared.lock();
                state.envelope.set_keys(&keys, clock::now());
                let fingerprint = keys.first().map(SwarmKey::fingerprint).unwrap_or_default();
                state.note(Notice::KeyChanged { fingerprint, keys: keys.len() });
            }
            // The keys stay as they are.
            Some(Err(error)) => self.shared.note(Notice::KeyUnusable { why: error.to_string() }),
        }
    }

    /// A copy of this machine goes on in this node's place: nothing leaves this one any more, no goodbye either, which would be the other's.
    fn end_as_copy(&self) {
        let shared = &self.shared;
        shared.copied.store(true, Ordering::Relaxed);
        shared.note(Notice::Copied);
        self.tell();
        // Threads that wait look round, and are refused.
        shared.sources_went(shared.id);
        shared.wake_reader();
    }

    fn warn_without_key(&self) {
        if let Some(interface) = self.shared.sockets.network() {
            self.shared.lock().warn_without_key(interface);
        }
    }

    fn carry_out_commands(&mut self) {
        loop {
            let command = self.shared.lock().poll_command();
            match command {
                None => break,
                Some(Command::Attach { via, writer, reader }) => {
                    self.connections.attach((via, writer, reader), &self.shared, &self.epoll);
                }
                Some(Command::Release { via, writer, reader }) => {
                    self.connections.release((via, writer, reader), &self.shared);
                }
                Some(Command::End { writer }) => self.connections.end(writer, &self.shared),
                Some(Command::NameReader { writer, reader }) => {
                    self.connections.name_reader((writer, reader), &self.shared);
                }
                Some(Command::Listen { channels }) => self.listen(channels),
                Some(Command::Forget { node }) => self.connections.forget(node, &self.shared, &self.epoll),
            }
        }
    }

    fn listen(&mut self, channels: u16) {
        let changed = self.listening ^ channels;
        for channel in (0..CHANNELS).filter(|channel| changed >> channel & 1 == 1) {
            self.shared.sockets.listen(channel, channels >> channel & 1 == 1);
        }
        self.listening = channels;
    }

    /// Notices go to the configured hook, so that none is silent. The state is not locked meanwhile.
    fn tell(&self) {
        let Some(hook) = &self.shared.hook else { return };
        loop {
            let Some(notice) = self.shared.lock().poll_notice() else { break };
            hook.call(&notice);
        }
    }
}

/// Hands the datagram that `buffer` begins with to the state, as arrived now from `from`.
fn handle_arrival(state: &mut State, buffer: &mut [u8], arrival: &Arrival, from: (SocketAddr, Via)) {
    let length = arrival.length_bytes.min(buffer.len());
    state.handle_datagram(&mut buffer[..length], from, Reception::of(arrival, clock::now()));
}

const _: () = assert!(CHANGES < FIRST_TOKEN);

#[cfg(test)]
mod copied;
