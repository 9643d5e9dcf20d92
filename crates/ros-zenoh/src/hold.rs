//! Samples of other gateways that come before their clocks are known, such as what is kept for late readers: they wait, in order.

use std::collections::VecDeque;

use noctule_time_sync::Local;
use noctule_timebase::{Instant, Span};

use crate::attachment::SiteAttachment;
use crate::site::Dated;

/// Samples of one topic that wait; beyond, the oldest passes without a bound.
pub const HELD_MAX: usize = 1024;
/// Their bytes, likewise.
pub const HELD_BYTES_MAX: usize = 64 << 20;
/// A sample waits no longer than this: the first exchange takes one round trip.
pub const HOLD: Span = Span::from_s(5);

/// A sample of another gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The session of the gateway that sent it.
    pub zid: String,
    /// Its attachment.
    pub site: SiteAttachment,
    /// Its CDR.
    pub bytes: Vec<u8>,
    /// Time of its arrival.
    pub arrived: Instant<Local>,
}

/// The samples of one topic.
#[derive(Clone, Debug, Default)]
pub struct Hold {
    waiting: VecDeque<Held>,
    bytes: usize,
}

impl Hold {
    /// Takes a sample that came after all others.
    pub fn push(&mut self, sample: Held) {
        self.bytes = self.bytes.saturating_add(sample.bytes.len());
        self.waiting.push_back(sample);
    }

    /// Whether no sample waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The oldest sample, if it may pass now: with its time, if `dated` knows it; with none, if it has waited for long enough or there is no
    /// room for it.
    pub fn pop(
        &mut self,
        now: Instant<Local>,
        dated: impl FnOnce(&Held) -> Option<Dated>,
    ) -> Option<(Held, Option<Dated>)> {
        let first = self.waiting.front()?;
        let time = dated(first);
        let is_full = self.waiting.len() > HELD_MAX || self.bytes > HELD_BYTES_MAX;
        if time.is_none() && !is_full && now - first.arrived < HOLD {
            return None;
        }
        let first = self.waiting.pop_front()?;
        self.bytes -= first.bytes.len();
        Some((first, time))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(sequence: i64, arrived_ns: i64, bytes: usize) -> Held {
        let site = SiteAttachment { sequence, source_ns: 0, bound: None, sigma: None, gid: [0; 16] };
        Held { zid: "ab".into(), site, bytes: vec![0; bytes], arrived: Instant::from_ns(arrived_ns) }
    }

    fn known(held: &Held) -> Option<Dated> {
        Some(Dated { source: Instant::from_ns(held.site.sequence), bound: None, sigma: None })
    }

    #[test]
    fn samples_wait_for_the_clock_and_pass_in_order() {
        let mut hold = Hold::default();
        (1..=3).for_each(|sequence| hold.push(sample(sequence, 10, 8)));
        let now = Instant::from_ns(20);
        assert_eq!(hold.pop(now, |_| None), None);
        for sequence in 1..=3 {
            let (held, time) = hold.pop(now, known).unwrap();
            assert_eq!((held.site.sequence, time.map(|time| time.source.ns())), (sequence, Some(sequence)));
        }
        assert!(hold.is_empty() && hold.pop(now, known).is_none());
    }

    #[test]
    fn they_wait_no_longer_than_the_limit() {
        let mut hold = Hold::default();
        hold.push(sample(1, 0, 8));
        hold.push(sample(2, 1, 8));
        assert_eq!(hold.pop(Instant::from_ns(HOLD.ns() - 1), |_| None), None);
        let now = Instant::from_ns(HOLD.ns());
        assert!(
            hold.pop(now, |_| None).is_some_and(|(held, time)| held.site.sequence == 1 && time.is_none())
        );
        assert_eq!(hold.pop(now, |_| None), None, "the second came later");
    }

    #[test]
    fn what_has_no_room_passes_without_its_time() {
        for (number, bytes) in [(HELD_MAX, 1), (4, HELD_BYTES_MAX / 4)] {
            let mut hold = Hold::default();
            (0..number).for_each(|_| hold.push(sample(1, 0, bytes)));
            let now = Instant::from_ns(0);
            assert_eq!(hold.pop(now, |_| None), None);
            hold.push(sample(2, 0, 1));
            assert!(hold.pop(now, |_| None).is_some());
            assert_eq!(hold.pop(now, |_| None), None, "one has made room");
        }
    }
}
