//! Messages of one stream from a client: order, gaps, and pieces put together.

use std::collections::BTreeMap;

use crate::wire::precedes;

/// Messages that may wait for one missing before them: as many as an ACKNACK can name.
pub const AHEAD_MAX: u16 = 16;

/// One reliable stream from a client.
#[derive(Clone, Debug, Default)]
pub(crate) struct Inbound {
    /// Number of the message to be handled next.
    expected: u16,
    /// One behind the highest number announced or received.
    end: u16,
    /// Messages behind a gap, by their distance from number 0 of the stream.
    ahead: BTreeMap<u16, Vec<u8>>,
    /// A first number beyond ours that the client announced; accepted when announced twice.
    leap: Option<u16>,
    assembly: Assembly,
    /// The client is to get an acknowledgement of what has arrived.
    pub(crate) ack_due: bool,
}

/// Result of receiving a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// It is the next one: handle it.
    Next,
    /// It waits for another.
    Waits,
    /// It was there before.
    Repeated,
    /// It is too far ahead; the client will send it again.
    Beyond,
}

impl Inbound {
    /// Takes the number of a message and what follows its header.
    pub(crate) fn handle_message(&mut self, sequence: u16, body: &[u8]) -> Arrival {
        self.ack_due = true;
        let distance = sequence.wrapping_sub(self.expected);
        if precedes(sequence, self.expected) {
            return Arrival::Repeated;
        }
        if distance >= AHEAD_MAX {
            return Arrival::Beyond;
        }
        self.leap = None;
        self.hear_of(sequence.wrapping_add(1));
        if distance == 0 {
            self.expected = self.expected.wrapping_add(1);
            return Arrival::Next;
        }
        match self.ahead.insert(sequence, body.to_vec()) {
            None => Arrival::Waits,
            Some(_) => Arrival::Repeated,
        }
    }

    /// The message that is next now, if it was waiting.
    pub(crate) fn poll_waiting(&mut self) -> Option<Vec<u8>> {
        let body = self.ahead.remove(&self.expected)?;
        self.expected = self.expected.wrapping_add(1);
        Some(body)
    }

    /// The client says which messages it holds for us.
    pub(crate) fn handle_heartbeat(&mut self, first: u16, last: u16) {
        self.ack_due = true;
        if precedes(self.expected, first) {
            // What is between can never come. Either this is old news of a session before, or we have
            // begun anew and the client has not.
            if self.leap == Some(first) {
                self.expected = first;
                self.end = first;
                self.ahead.retain(|sequence, _| !precedes(*sequence, first));
                self.assembly.give_up();
                self.leap = None;
            } else {
                self.leap = Some(first);
                return;
            }
        }
        // It may hold more than can wait here: what lies beyond is requested when there is room.
        let end = last.wrapping_add(1);
        if precedes(self.expected, end) {
            let distance = end.wrapping_sub(self.expected).min(AHEAD_MAX);
            self.hear_of(self.expected.wrapping_add(distance));
        }
    }

    /// First number not yet handled, and which of the 16 from there on are missing (bit 0 the first).
    pub(crate) fn acknowledgement(&self) -> (u16, u16) {
        let heard_of = self.end.wrapping_sub(self.expected).min(AHEAD_MAX);
        let missing =
            (0..heard_of).filter(|distance| !self.ahead.contains_key(&self.expected.wrapping_add(*distance)));
        (self.expected, missing.fold(0, |bits, distance| bits | 1 << distance))
    }

    /// Where fragments are put together.
    pub(crate) fn assembly(&mut self) -> &mut Assembly {
        &mut self.assembly
    }

    fn hear_of(&mut self, end: u16) {
        if precedes(self.end, end) {
            self.end = end;
        }
    }
}

/// A submessage that comes in pieces.
#[derive(Clone, Debug, Default)]
pub(crate) struct Assembly {
    bytes: Vec<u8>,
    /// Pieces are passed over up to the last one.
    is_given_up: bool,
}

impl Assembly {
    /// Takes a piece; the whole when it was the last. `Err` once for what grows beyond `bytes_max`.
    pub(crate) fn handle_piece(
        &mut self,
        piece: &[u8],
        is_last: bool,
        bytes_max: usize,
    ) -> Result<Option<Vec<u8>>, TooLarge> {
        let is_too_large = !self.is_given_up && self.bytes.len() + piece.len() > bytes_max;
        if is_too_large {
            self.give_up();
        }
        if !self.is_given_up {
            self.bytes.extend_from_slice(piece);
        }
        let whole = (is_last && !self.is_given_up).then(|| std::mem::take(&mut self.bytes));
        if is_last {
            *self = Assembly::default();
        }
        if is_too_large { Err(TooLarge) } else { Ok(whole) }
    }

    fn give_up(&mut self) {
        *self = Assembly { bytes: Vec::new(), is_given_up: !self.bytes.is_empty() || self.is_given_up };
        self.is_given_up = true;
    }
}

/// More than a sample may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooLarge;

/// One best-effort stream from a client: what is older than the newest is dropped.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Newest(Option<u16>);

impl Newest {
    /// Whether the message is newer than all before, and how many are missing in between.
    pub(crate) fn handle_message(&mut self, sequence: u16) -> Option<u16> {
        let missing = match self.0 {
            Some(newest) if !precedes(newest, sequence) => return None,
            Some(newest) => sequence.wrapping_sub(newest) - 1,
            None => 0,
        };
        self.0 = Some(sequence);
        Some(missing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_a_gap_waits_and_then_comes_in_order_also_across_the_wrap() {
        for start in [0u16, u16::MAX - 1] {
            let mut stream = Inbound { expected: start, end: start, ..Inbound::default() };
            let number = |n: u16| start.wrapping_add(n);
            assert_eq!(stream.handle_message(number(1), b"b"), Arrival::Waits);
            assert_eq!(stream.handle_message(number(3), b"d"), Arrival::Waits);
            assert_eq!(stream.acknowledgement(), (start, 0b101));
            assert_eq!(stream.handle_message(number(0), b"a"), Arrival::Next);
            assert_eq!(stream.poll_waiting().as_deref(), Some(&b"b"[..]));
            assert_eq!(stream.poll_waiting(), None);
            assert_eq!(stream.acknowledgement(), (number(2), 0b1));
            assert_eq!(stream.handle_message(number(1), b"b"), Arrival::Repeated);
            assert_eq!(stream.handle_message(number(2 + AHEAD_MAX), b"x"), Arrival::Beyond);
        }
    }

    #[test]
    fn a_client_that_holds_more_than_can_wait_is_asked_for_the_first_of_them() {
        for (start, last, missing) in
            [(0, 15, u16::MAX), (0, 43, u16::MAX), (65_530, 20, u16::MAX), (7, 8, 0b11)]
        {
            let mut stream = Inbound { expected: start, end: start, ..Inbound::default() };
            stream.handle_heartbeat(start, last);
            assert_eq!(stream.acknowledgement(), (start, missing), "from {start} to {last}");
            // Of what came before it asks for nothing.
            stream.handle_heartbeat(start.wrapping_sub(9), start.wrapping_sub(2));
            assert_eq!(stream.acknowledgement(), (start, missing));
        }
    }

    #[test]
    fn a_client_that_goes_on_from_elsewhere_is_followed_when_it_says_so_twice() {
        let mut stream = Inbound::default();
        stream.handle_heartbeat(50, 52);
        assert_eq!(stream.acknowledgement(), (0, 0), "one such claim may be old news");
        assert_eq!(stream.handle_message(0, b"a"), Arrival::Next);
        stream.handle_heartbeat(50, 52);
        stream.handle_heartbeat(50, 52);
        assert_eq!(stream.acknowledgement(), (50, 0b111));
    }

    #[test]
    fn pieces_are_put_together_and_too_many_are_dropped_up_to_the_last() {
        let mut assembly = Assembly::default();
        assert_eq!(assembly.handle_piece(b"ab", false, 4), Ok(None));
        assert_eq!(assembly.handle_piece(b"cd", true, 4), Ok(Some(b"abcd".to_vec())));
        assert_eq!(assembly.handle_piece(b"abc", false, 4), Ok(None));
        assert_eq!(assembly.handle_piece(b"de", false, 4), Err(TooLarge));
        assert_eq!(assembly.handle_piece(b"fg", true, 4), Ok(None));
        assert_eq!(assembly.handle_piece(b"ok", true, 4), Ok(Some(b"ok".to_vec())));
    }

    #[test]
    fn of_a_best_effort_stream_only_the_newer_is_taken() {
        let mut stream = Newest::default();
        let taken = [0, 1, 3, 2, 3, 65_000, 4].map(|sequence| stream.handle_message(sequence));
        assert_eq!(taken, [Some(0), Some(0), Some(1), None, None, None, Some(0)]);
    }
}
