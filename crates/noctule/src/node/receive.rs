//! Datagrams of the node's own socket, read by the thread that waits for them.

use std::net::SocketAddr;
use std::sync::PoisonError;
use std::time::Duration;

use noctule_discovery::Via;
use noctule_prrt::BATCH_LIMIT;
use noctule_sys::datagram::Arrival;
use noctule_sys::datagram_batch::send_now;
use noctule_timebase::{Instant, Span};

use super::Shared;
use super::receive_offload::DATAGRAM_BYTES_MAX;
use super::reception::Reception;
use super::send::Effort;
use super::state::State;
use crate::clock::{self, Raw};
use crate::deadline::span;

/// A thread that wakes so late is stalled.
const STALLED: Span = Span::from_ms(3);

impl Shared {
    /// Waits for samples of other hosts by reading the socket, until `is_done` or for no reason. False,
    /// at once, if another reads it; then [`follow`](Shared::follow).
    pub(crate) fn receive_or_follow(
        &self,
        timeout: Option<Duration>,
        buffer: &mut Vec<u8>,
        is_done: impl FnMut() -> bool,
    ) -> bool {
        if !self.take_socket() {
            return false;
        }
        self.read_socket(timeout, buffer, is_done);
        if self.lead.leave(clock::now()) {
            self.kick();
        }
        true
    }

    /// Counts the caller among those that wait for another to read, while `sleep` lasts.
    pub(crate) fn follow(&self, sleep: impl FnOnce()) {
        self.begin_following();
        sleep();
        self.end_following();
    }

    /// As [`follow`](Shared::follow), for a thread that waits on several nodes.
    pub(crate) fn begin_following(&self) {
        self.lead.begin_following();
    }

    /// Ends what [`begin_following`](Shared::begin_following) began.
    pub(crate) fn end_following(&self) {
        self.lead.end_following();
    }

    /// Receives one datagram that is there, if no other thread reads.
    #[inline]
    pub(crate) fn try_receive(&self, buffer: &mut Vec<u8>) {
        if self.take_socket() {
            buffer.resize(DATAGRAM_BYTES_MAX, 0);
            if let Ok(Some(arrival)) = self.sockets.receive_own(buffer) {
                self.process(buffer, &arrival, || true);
            }
            if self.lead.leave(clock::now()) {
                self.kick();
            }
        }
    }

    /// Receives all datagrams that are there, a batch at most, if no other thread reads.
    pub(crate) fn receive_all(&self, buffer: &mut Vec<u8>) {
        if !self.lead.take_free() {
            return;
        }
        buffer.resize(DATAGRAM_BYTES_MAX, 0);
        for _ in 0..BATCH_LIMIT {
            let Ok(Some(arrival)) = self.sockets.receive_own(buffer) else { break };
            self.process(buffer, &arrival, || true);
        }
        if self.lead.leave(clock::now()) {
            self.kick();
        }
    }

    /// Makes the caller the reader of the own socket, if it can be: it waits, and will read again soon.
    #[inline]
    fn take_socket(&self) -> bool {
        self.lead.take_free() || self.take_socket_from_thread()
    }

    #[cold]
    fn take_socket_from_thread(&self) -> bool {
        let is_taken = self.lead.take_from_thread();
        if is_taken {
            // A datagram that the thread received before is processed, and it receives no other.
            drop(self.lock());
        }
        is_taken
    }

    /// Ends the sleep of a subscriber that reads the socket: it is to look round.
    pub(crate) fn wake_reader(&self) {
        if self.lead.is_taken() {
            // An empty datagram from ourselves.
            let to = SocketAddr::from((self.sockets.own_address(), self.sockets.port));
            let _ = send_now(&self.sockets.own, &[], to);
        }
    }

    fn read_socket(
        &self,
        timeout: Option<Duration>,
        buffer: &mut Vec<u8>,
        mut is_done: impl FnMut() -> bool,
    ) {
        buffer.resize(DATAGRAM_BYTES_MAX, 0);
        let (socket, offload) = (&self.sockets.own, &self.sockets.offload);
        // Datagrams that bring the caller nothing do not extend it.
        let until = timeout.map(|timeout| clock::now() + span(timeout));
        while !is_done() {
            let left = until.map(|until| until - clock::now());
            let arrival = match left {
                None => offload.receive_blocking(socket, buffer),
                Some(left) if left <= Span::ZERO => return,
                Some(left) => match offload.wait(socket, left.ns()) {
                    Ok(true) => self.sockets.receive_own(buffer),
                    _ => return,
                },
            };
            match arrival {
                // Empty: the thread wants us to look round.
                Ok(Some(Arrival { length_bytes: 0, .. })) => return,
                Ok(Some(arrival)) if self.process(buffer, &arrival, &mut is_done) => return,
                Ok(Some(_)) => {}
                // A signal, or the ICMP error of a datagram that found no socket.
                Ok(None) | Err(_) => return,
            }
        }
    }

    /// Processes a datagram of the own socket, and those that the kernel joined with it until `is_done`, a batch at most; replies are sent at once, unless more of what was
    /// joined is left and no node waits for them. If it lay there, so may others, and an acknowledgement sent before they are processed would report them lost. Whether word to look round was among those.
    fn process(&self, buffer: &mut Vec<u8>, arrival: &Arrival, mut is_done: impl FnMut() -> bool) -> bool {
        let changes = self.changes.so_far();
        let offload = &self.sockets.offload;
        let looks_round = self.work_then(
            Effort::All,
            |state, now| match offload.may_wait(now) && !state.has_urgent_feedback() {
                true => None,
                false => Some(Effort::All),
            },
            |state, now| {
                let reception = Reception::of(arrival, now);
                let is_stalled = now - reception.came > STALLED;
                self.handle_joined(state, (buffer, arrival, reception), BATCH_LIMIT, || {
                    is_stalled || is_done()
                });
                is_stalled && self.drain(state, buffer)
            },
        );
        // The thread has to see that they are seen, and may sleep.
        if self.changes.so_far() != changes {
            self.kick();
        }
        looks_round
    }

    /// Receives a datagram of the own socket and hands it to the state with those that the kernel joined with it, `datagrams_max` at most. How many
    /// those were, and whether it was word to look round; `None` if there is none.
    pub(super) fn take_joined(
        &self,
        state: &mut State,
        buffer: &mut Vec<u8>,
        datagrams_max: usize,
    ) -> Option<(usize, bool)> {
        let arrival = self.sockets.receive_own(buffer).ok()??;
        let reception = Reception::of(&arrival, clock::now());
        let taken = self.handle_joined(state, (buffer, &arrival, reception), datagrams_max, || false);
        Some((taken, arrival.length_bytes == 0))
    }

    /// Hands a datagram of the own socket to the state, and those that the kernel joined with it until `is_done`, `datagrams_max` at most. How many
    /// those were.
    fn handle_joined(
        &self,
        state: &mut State,
        (buffer, arrival, reception): (&mut Vec<u8>, &Arrival, Reception),
        datagrams_max: usize,
        mut is_done: impl FnMut() -> bool,
    ) -> usize {
        let offload = &self.sockets.offload;
        let from = (self.sockets.in_own_family(arrival.from), Via::Unicast);
        let datagrams_max = datagrams_max.min(offload.left());
        let mut length_bytes = arrival.length_bytes.min(buffer.len());
        let mut handled = 0;
        loop {
            state.handle_datagram(&mut buffer[..length_bytes], from, reception);
            handled += 1;
            if handled >= datagrams_max || !offload.has_more() || is_done() {
                break;
            }
            let Ok(Some(next)) = self.sockets.receive_own(buffer) else { break };
            length_bytes = next.length_bytes;
        }
        offload.note_handled(handled);
        handled
    }

    /// Receives what lies in the own socket, if the thread is to and is stalled: without its feedback, repairs would be
    /// decided in vain.
    pub(super) fn drain_if_stalled(&self, state: &mut State, now: Instant<Raw>) {
        if !self.wake_timer.is_due_by(now - STALLED) || self.lead.is_away() {
            return;
        }
        // Kept: a publisher drains with each sample for as long as the thread stalls.
        let mut buffer = self.drained.lock().unwrap_or_else(PoisonError::into_inner);
        buffer.resize(DATAGRAM_BYTES_MAX, 0);
        self.drain(state, &mut buffer);
        drop(buffer);
        // A subscriber may have begun to read meanwhile.
        self.wake_reader();
    }

    /// Receives what lies in the own socket, a batch at most. Whether word to look round was there, too.
    fn drain(&self, state: &mut State, buffer: &mut Vec<u8>) -> bool {
        let (mut looks_round, mut left) = (false, self.sockets.offload.left());
        while left > 0 {
            let Some((taken, is_word)) = self.take_joined(state, buffer, left) else { break };
            (looks_round, left) = (looks_round | is_word, left - taken);
        }
        looks_round
    }
}
