//! Messages of one reliable stream to a client: kept until acknowledged, and never more of them than the
//! client can hold.
//!
//! # Problem
//!
//! A client drops what is further ahead of the last message it has handled than its history is long, and
//! does not say how long that is; 4 is the least in use. Two hundred milliseconds are gone then. Worse, a
//! sample in more pieces than the history holds can never arrive, and blocks the stream for ever.
//!
//! # Approach
//!
//! No more than [`WINDOW_DEFAULT`] messages are on the way. For a sample in more pieces the last piece is
//! sent first, alone: only a client whose history reaches so far keeps it, and its ACKNACK says so. Then the
//! window is known to be that wide. Otherwise the sample is given up before the client holds any of it.
//!
//! An ACKNACK names 16 messages, so a probe finds 16 at most. Where it is known what a client does with pieces (`Holding`) a
//! sample may have up to [`PIECES_MAX`], over which the window slides.

use std::collections::VecDeque;

use noctule_timebase::{Instant, Span};

use crate::Local;
use crate::wire::ObjectId;

/// Messages on the way to a client of which nothing is known.
pub const WINDOW_DEFAULT: usize = 4;
/// Most messages on the way, which is as many as an ACKNACK can name.
pub const WINDOW_MAX: usize = 16;
/// Most pieces of a sample, to a client that is known to take so many.
pub const PIECES_MAX: usize = 1024;
/// Messages that wait to be on the way.
pub const WAITING_MAX: usize = 64;

/// Time without an ACKNACK of this stream after which a HEARTBEAT is sent, or four round trips if that is less: on a line
/// with noise the last of a window, or its acknowledgement, is lost every few milliseconds.
const HEARTBEAT_FIRST: Span = Span::from_ms(60);
/// The least time before a heartbeat: a busy machine needs it to answer.
const HEARTBEAT_LEAST: Span = Span::from_ms(10);
/// The time before a heartbeat doubles with each, up to this.
const HEARTBEAT_LAST: Span = Span::from_s(1);
/// A message is not repeated sooner than this, however often it is asked for.
const REPEAT_LEAST: Span = Span::from_ms(4);
/// How often the last piece is tried before a sample is given up.
const PROBES_MAX: u32 = 5;

/// A piece that was repeated so often, while the client says that it misses it, is one that the client cannot hold.
const REPEATS_MAX: u32 = 32;

/// How a client holds the pieces of a sample until the last has come, as far as known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holding {
    /// Nothing: how many it holds is found by a probe.
    Unknown,
    /// It holds so many messages, those among them of which the last piece is not there.
    Messages(u16),
    /// It puts pieces together one after the other, however many there are.
    InOrder,
}

impl Holding {
    /// Messages on the way before anything else is known.
    fn window(self) -> usize {
        match self {
            Holding::Unknown | Holding::InOrder => WINDOW_DEFAULT,
            Holding::Messages(messages) => usize::from(messages).clamp(1, WINDOW_MAX),
        }
    }

    fn pieces_max(self) -> usize {
        match self {
            Holding::Unknown => WINDOW_MAX,
            Holding::Messages(messages) => usize::from(messages).min(PIECES_MAX),
            Holding::InOrder => PIECES_MAX,
        }
    }
}

/// One reliable stream to a client.
#[derive(Clone, Debug)]
pub(crate) struct Outbound {
    /// Number of the first message on the way.
    first: u16,
    /// On the way, in order. The beginning of a sample in pieces stays until the last is acknowledged, as
    /// it does in the client.
    flight: VecDeque<Message>,
    /// How many of them, from the first on, are acknowledged.
    acknowledged: usize,
    waiting: VecDeque<Waiting>,
    window: usize,
    holding: Holding,
    /// The last piece of the flight is on its way alone, this often so far.
    probes: Option<u32>,
    /// The reader of the sample in pieces that was put on its way last.
    reader: ObjectId,
    /// It has been reported that the client cannot hold that sample.
    is_stuck: bool,
    heartbeat_at: Option<Instant<Local>>,
    heartbeat_after: Span,
    /// The last heartbeat.
    asked_at: Option<Instant<Local>>,
    /// A time from sending to acknowledgement, rather the shorter ones.
    round_trip: Option<Span>,
    /// A place beyond ours that the client waits for; accepted when it says so twice.
    leap: Option<u16>,
}

#[derive(Clone, Debug)]
struct Message {
    body: Vec<u8>,
    /// Another piece of the same sample follows.
    has_more: bool,
    sent_at: Option<Instant<Local>>,
    repeats: u32,
    is_missed: bool,
}

#[derive(Clone, Debug)]
enum Waiting {
    Single(Vec<u8>),
    Pieces(ObjectId, Vec<Vec<u8>>),
}

/// Result of processing an ACKNACK.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// The client cannot hold a sample: its reader and how many bytes its pieces have.
    pub(crate) undeliverable: Option<(ObjectId, usize)>,
}

impl Outbound {
    pub(crate) fn new(holding: Holding) -> Outbound {
        Outbound {
            first: 0,
            flight: VecDeque::new(),
            acknowledged: 0,
            waiting: VecDeque::new(),
            window: holding.window(),
            holding,
            probes: None,
            reader: ObjectId([0, 0]),
            is_stuck: false,
            heartbeat_at: None,
            heartbeat_after: HEARTBEAT_FIRST,
            asked_at: None,
            round_trip: None,
            leap: None,
        }
    }

    /// Whether a sample would be on its way soon: otherwise it had better wait where newer ones replace it.
    pub(crate) fn is_open(&self) -> bool {
        self.waiting.is_empty() && self.flight.len() < self.window && self.probes.is_none()
    }

    /// Whether another answer can be taken.
    pub(crate) fn has_room(&self) -> bool {
        self.waiting.len() < WAITING_MAX
    }

    /// Takes an answer, alone: micro-ROS sends two DELETEs in one message and then waits for one status after the
    /// other, so it does not see the second of two in one message. Only what is more than [`WAITING_MAX`], by which
    /// one message of a client can ask for more, shares the last one.
    pub(crate) fn push(&mut self, bytes_max: usize, mut body: Vec<u8>) {
        let is_full = !self.has_room();
        match self.waiting.back_mut() {
            Some(Waiting::Single(last))
                if is_full && last.len().next_multiple_of(4) + body.len() <= bytes_max =>
            {
                last.resize(last.len().next_multiple_of(4), 0);
                last.append(&mut body);
            }
            _ => self.waiting.push_back(Waiting::Single(body)),
        }
    }

    /// Takes a message that nothing may be put behind.
    pub(crate) fn push_alone(&mut self, body: Vec<u8>) {
        self.waiting.push_back(Waiting::Pieces(ObjectId([0, 0]), vec![body]));
    }

    /// Most pieces that a sample may have.
    pub(crate) fn pieces_max(&self) -> usize {
        self.holding.pieces_max()
    }

    /// Takes the pieces of one submessage for a reader, at most [`pieces_max`](Outbound::pieces_max).
    pub(crate) fn push_pieces(&mut self, object: ObjectId, pieces: Vec<Vec<u8>>) {
        self.waiting.push_back(Waiting::Pieces(object, pieces));
    }

    /// Length of the next message to send, in bytes.
    pub(crate) fn next_bytes(&mut self, now: Instant<Local>) -> Option<usize> {
        self.next(now).map(|at| self.flight[at].body.len())
    }

    /// Where in the flight the next message to send is.
    fn next(&mut self, now: Instant<Local>) -> Option<usize> {
        let repeat_after = self.round_trip.unwrap_or(REPEAT_LEAST).max(REPEAT_LEAST);
        let is_due = |message: &Message| match message.sent_at {
            None => true,
            Some(sent_at) => message.is_missed && now - sent_at >= repeat_after,
        };
        if self.probes.is_none() {
            self.fill_flight();
        }
        match self.probes {
            Some(_) => self.flight.len().checked_sub(1).filter(|last| is_due(&self.flight[*last])),
            None => self.flight.iter().take(self.acknowledged + self.window).position(is_due),
        }
    }

    /// Number and body of the next message to send.
    pub(crate) fn poll_message(&mut self, now: Instant<Local>) -> Option<(u16, &[u8])> {
        let at = self.next(now)?;
        if let Some(probes) = &mut self.probes {
            *probes += 1;
        }
        self.heartbeat_at.get_or_insert(now + self.heartbeat_after);
        let number = self.first.wrapping_add(at as u16);
        let message = &mut self.flight[at];
        if message.sent_at.is_some() {
            message.repeats += 1;
        }
        (message.sent_at, message.is_missed) = (Some(now), false);
        Some((number, &message.body))
    }

    /// First and last number on the way, if it is time to ask for an acknowledgement.
    pub(crate) fn poll_heartbeat(&mut self, now: Instant<Local>) -> Option<(u16, u16)> {
        if self.heartbeat_at? > now {
            return None;
        }
        let sent = self.flight.iter().rposition(|message| message.sent_at.is_some())?;
        self.heartbeat_after = (self.heartbeat_after + self.heartbeat_after).min(HEARTBEAT_LAST);
        self.heartbeat_at = Some(now + self.heartbeat_after);
        self.asked_at = Some(now);
        let first = self.first.wrapping_add(self.acknowledged as u16);
        Some((first, self.first.wrapping_add(sent as u16)))
    }

    /// When something is to be sent although nothing arrives.
    pub(crate) fn poll_timeout(&self) -> Option<Instant<Local>> {
        let repeat_after = self.round_trip.unwrap_or(REPEAT_LEAST).max(REPEAT_LEAST);
        let missed = self.flight.iter().filter(|message| message.is_missed);
        let repeat_at = missed.filter_map(|message| Some(message.sent_at? + repeat_after)).min();
        self.heartbeat_at.into_iter().chain(repeat_at).min()
    }

    /// The client says which number it waits for, and which from there on it misses.
    pub(crate) fn handle_acknack(&mut self, first: u16, missed: u16, now: Instant<Local>) -> Outcome {
        let arrived = usize::from(first.wrapping_sub(self.first));
        let sent = self.flight.iter().take_while(|message| message.sent_at.is_some()).count();
        if arrived > sent {
            // Old news, or we have begun anew and the client has not: what was not sent has not arrived.
            let is_old = arrived > usize::from(u16::MAX / 2);
            if !is_old && self.leap == Some(first) {
                self.follow_to(first);
            } else {
                self.leap = (!is_old).then_some(first);
            }
            return Outcome::default();
        }
        self.leap = None;
        if self.probes.is_some() {
            return self.judge_probe(first, missed, now);
        }
        if arrived > self.acknowledged {
            self.measure(arrived, now);
            (self.acknowledged, self.is_stuck) = (arrived, false);
            self.release();
        }
        // It is there, whatever it has.
        self.heartbeat_after = self.heartbeat_interval();
        self.heartbeat_at = (!self.flight.is_empty()).then(|| now + self.heartbeat_after);
        self.mark_missed(first, missed);
        Outcome { undeliverable: self.find_stuck() }
    }

    /// A sample in more pieces than the window is wide that does not get on: the client holds fewer than configured. Nothing else can
    /// get on then until it begins anew, for it holds the beginning.
    fn find_stuck(&mut self) -> Option<(ObjectId, usize)> {
        let next = self.flight.get(self.acknowledged)?;
        let is_stuck = self.flight.len() > self.window && next.is_missed && next.repeats >= REPEATS_MAX;
        if !is_stuck || std::mem::replace(&mut self.is_stuck, true) {
            return None;
        }
        Some((self.reader, self.flight.iter().map(|message| message.body.len()).sum()))
    }

    /// How long the client may be silent before it is asked.
    fn heartbeat_interval(&self) -> Span {
        let round_trips = self.round_trip.map_or(HEARTBEAT_FIRST, |round_trip| round_trip * 4);
        round_trips.clamp(HEARTBEAT_LEAST, HEARTBEAT_FIRST)
    }

    /// Lets what may be on the way be so.
    fn fill_flight(&mut self) {
        while let Some(next) = self.waiting.front() {
            let count = match next {
                Waiting::Single(_) => 1,
                Waiting::Pieces(_, pieces) => pieces.len(),
            };
            let is_long = count > self.window && self.flight.is_empty();
            if !is_long && self.flight.len() + count > self.window {
                return;
            }
            let pieces = match self.waiting.pop_front() {
                Some(Waiting::Single(body)) => vec![body],
                Some(Waiting::Pieces(object, pieces)) => {
                    self.reader = object;
                    pieces
                }
                None => return,
            };
            let last = pieces.len() - 1;
            let message = |(at, body)| Message {
                body,
                has_more: at != last,
                sent_at: None,
                repeats: 0,
                is_missed: false,
            };
            self.flight.extend(pieces.into_iter().enumerate().map(message));
            if is_long && self.holding == Holding::Unknown {
                self.probes = Some(0);
                return;
            }
        }
    }

    /// Whether the client has kept the last piece that was sent alone.
    fn judge_probe(&mut self, first: u16, missed: u16, now: Instant<Local>) -> Outcome {
        let last = self.flight.len() - 1;
        let is_missed = |at: usize| missed >> at & 1 == 1;
        if first != self.first || !is_missed(last - 1) {
            // It says nothing about the last piece.
            return Outcome::default();
        }
        if !is_missed(last) {
            self.probes = None;
            self.window = self.flight.len();
            self.heartbeat_after = self.heartbeat_interval();
            self.heartbeat_at = Some(now + self.heartbeat_after);
            return Outcome::default();
        }
        // Dropped by the client, or lost on the way: the two cannot be distinguished, so it is tried again.
        self.flight[last].is_missed = true;
        if self.probes.is_some_and(|probes| probes >= PROBES_MAX) {
            let bytes = self.flight.drain(..).map(|message| message.body.len()).sum();
            (self.probes, self.heartbeat_at, self.heartbeat_after) = (None, None, self.heartbeat_interval());
            return Outcome { undeliverable: Some((self.reader, bytes)) };
        }
        Outcome::default()
    }

    /// Learns the round trip from the newest acknowledged message, if none before it had to be repeated, for which it
    /// would have waited, and the client was not asked since. Acknowledgements get lost as well, so a shorter time is
    /// adopted at once and a longer one slowly.
    fn measure(&mut self, arrived: usize, now: Instant<Local>) {
        let fresh = self.flight.range(self.acknowledged..arrived);
        let Some(sent_at) = fresh.clone().next_back().and_then(|message| message.sent_at) else { return };
        if fresh.clone().any(|message| message.repeats > 0)
            || self.asked_at.is_some_and(|asked| asked >= sent_at)
        {
            return;
        }
        let measured = now - sent_at;
        let before = self.round_trip.unwrap_or(measured).min(measured);
        self.round_trip = Some(Span::from_ns((before.ns() * 7 + measured.ns()) / 8));
    }

    /// Forgets what is acknowledged, but for the beginning of a sample whose end is not.
    fn release(&mut self) {
        let whole = self.flight.iter().take(self.acknowledged).rposition(|message| !message.has_more);
        let count = whole.map_or(0, |last| last + 1);
        self.flight.drain(..count);
        self.first = self.first.wrapping_add(count as u16);
        self.acknowledged -= count;
    }

    fn mark_missed(&mut self, first: u16, missed: u16) {
        let begin = usize::from(first.wrapping_sub(self.first));
        for bit in (0..16).filter(|bit| missed >> bit & 1 == 1) {
            let at = begin + bit;
            if let Some(message) = self.flight.get_mut(at).filter(|_| at >= self.acknowledged) {
                message.is_missed = message.sent_at.is_some();
            }
        }
    }

    /// Goes on from the number that the client waits for.
    fn follow_to(&mut self, first: u16) {
        (self.first, self.leap, self.acknowledged) = (first, None, 0);
        for message in &mut self.flight {
            (message.sent_at, message.is_missed) = (None, false);
        }
    }
}

#[cfg(test)]
mod tests;
