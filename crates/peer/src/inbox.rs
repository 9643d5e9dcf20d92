//! Where received messages are judged and recorded.

use crate::message::Touch;
use crate::message::{HEADER_BYTES, Header, Outgoing, parse};
use crate::stamp_clock::StampClock;
use crate::table::Table;

/// Counts of one node's received messages, and its record table.
pub(crate) struct Inbox {
    payload_bytes: usize,
    touch: Touch,
    pub(crate) clock: StampClock,
    pub(crate) table: Table,
    pub(crate) received: u64,
    pub(crate) duplicated: u64,
    pub(crate) unexpected: u64,
    /// Messages 0 … `sent` − 1 may come back; `u64::MAX` where another node sends.
    pub(crate) sent: u64,
    pub(crate) last_arrival_ns: i64,
}

impl Inbox {
    /// Allocates and touches the table.
    pub(crate) fn new(payload_bytes: usize, touch: Touch, messages: usize) -> Self {
        Self {
            payload_bytes,
            touch,
            clock: StampClock::default(),
            table: Table::new(messages),
            received: 0,
            duplicated: 0,
            unexpected: 0,
            sent: u64::MAX,
            last_arrival_ns: 0,
        }
    }

    /// Stamps, judges and records one message. Returns its header and stamp if it is new or warm-up.
    #[inline]
    pub(crate) fn take(&mut self, message: &[u8]) -> Option<(Header, i64)> {
        let now_ns = self.clock.now_ns();
        let header = self.judge(message)?;
        self.record(header, now_ns).then_some((header, now_ns))
    }

    /// The header of a message that may be counted: whole, and of an index that can have been sent.
    #[inline]
    pub(crate) fn judge(&mut self, message: &[u8]) -> Option<Header> {
        let header = parse(message, self.payload_bytes, self.touch);
        let header = header.filter(|header| header.is_warm_up() || header.index < self.sent);
        if header.is_none() {
            self.unexpected += 1;
        }
        header
    }

    /// True if the message has not been recorded yet, or is only warm-up.
    #[inline]
    pub(crate) fn is_new(&self, header: Header) -> bool {
        let slot = self.table.slots().get(header.index as usize);
        slot.is_none_or(|slot| slot.arrivals == 0)
    }

    /// Records an arrival; returns whether the message is new or warm-up.
    #[inline]
    pub(crate) fn record(&mut self, header: Header, now_ns: i64) -> bool {
        self.last_arrival_ns = now_ns;
        if header.is_warm_up() {
            return true;
        }
        let Some(slot) = self.table.slot(header.index) else { return false };
        slot.arrivals += 1;
        if slot.arrivals > 1 {
            self.duplicated += 1;
            return false;
        }
        slot.received_ns = self.clock.shown_ns(now_ns);
        slot.scheduled_ns = header.scheduled_ns;
        self.received += 1;
        true
    }

    /// Records that this node sent a message on.
    #[inline]
    pub(crate) fn record_sent(&mut self, header: Header, now_ns: i64) {
        if !header.is_warm_up()
            && let Some(slot) = self.table.slot(header.index)
        {
            slot.sent_ns = self.clock.shown_ns(now_ns);
        }
    }

    /// Measures what one stamp and record cost, on a message and a table like the real ones.
    pub(crate) fn calibrate(clock: &StampClock) -> f64 {
        const ROUNDS: u64 = 2048;
        let mut rehearsal = Self::new(HEADER_BYTES, Touch::Header, ROUNDS as usize);
        rehearsal.clock = clock.clone();
        let mut message = Outgoing::new(HEADER_BYTES, Touch::Header);
        let start_ns = clock.now_ns();
        for index in 0..ROUNDS {
            let bytes = message.set(Header { index, scheduled_ns: start_ns }).bytes();
            std::hint::black_box(rehearsal.take(std::hint::black_box(bytes)));
        }
        (clock.now_ns() - start_ns) as f64 / ROUNDS as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(index: u64) -> Vec<u8> {
        Outgoing::new(64, Touch::Header).set(Header { index, scheduled_ns: 5 }).bytes().to_vec()
    }

    #[test]
    fn every_message_is_counted_exactly_once_under_one_heading() {
        let mut inbox = Inbox::new(64, Touch::Header, 4);
        inbox.sent = 4;
        assert!(inbox.take(&message(2)).is_some());
        assert!(inbox.take(&message(2)).is_none(), "again");
        assert!(inbox.take(&message(4)).is_none(), "not sent yet");
        assert!(inbox.take(&message(0)[..63]).is_none(), "truncated");
        assert!(inbox.take(&message(crate::WARM_UP | 9)).is_some(), "warm-up");
        assert_eq!((inbox.received, inbox.duplicated, inbox.unexpected), (1, 1, 2));
        assert_eq!(inbox.table.slots()[2].arrivals, 2);
        assert_eq!(inbox.table.overrun, 0);
    }

    #[test]
    fn message_beyond_the_table_is_an_overrun_not_a_crash() {
        let mut inbox = Inbox::new(64, Touch::Header, 4);
        assert!(inbox.take(&message(4)).is_none());
        assert_eq!((inbox.received, inbox.table.overrun), (0, 1));
    }

    #[test]
    fn calibration_costs_something() {
        assert!(Inbox::calibrate(&StampClock::default()) > 0.0);
    }
}
