//! The send buffer of one writer (history, keep last): samples from when they are queued until they are sent or, if reliable, acknowledged.
//!
//! A history of limited depth replaces samples that have not begun to be sent. A sample of which a datagram
//! is on its way is never replaced: on a path slower than its writer each would be given up for the next
//! before it was whole, and none would arrive.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::config::SAMPLE_OVERHEAD_BYTES;
use crate::fragment_set::FragmentSet;
use crate::sent_packets::{Carried, Kind};
use crate::stream::{Origin, Outgoing, StreamId};
use crate::trace::{self, Event, GivenUp, Record};
use crate::wire::{FRAGMENTS_MAX, fragment_bytes};

/// The samples of one writer, oldest first, numbered by position without gaps.
#[derive(Debug)]
pub(crate) struct Stream {
    writer: StreamId,
    pub(crate) reliable: bool,
    samples: VecDeque<Queued>,
    next_position: u64,
    /// The first fragment never sent yet: position of its sample, and its number.
    unsent: (u64, u16),
    /// Positions from here on its reader does not take yet.
    limit: Option<u64>,
    /// Samples that the reader refused and of which it has nothing.
    refused: usize,
    /// Samples acknowledged behind one that is not.
    settled: usize,
    pub(crate) has_turn: bool,
}

#[derive(Debug)]
pub(crate) struct Queued {
    pub(crate) sequence: u64,
    pub(crate) origin: Origin,
    pub(crate) count: u16,
    total_bytes: usize,
    /// `None` once every fragment has arrived.
    payload: Option<Arc<[u8]>>,
    pub(crate) arrived: FragmentSet,
    /// A datagram of it was sent.
    has_begun: bool,
    is_refused: bool,
}

impl Stream {
    /// Of a writer whose first sample here has this sequence number: positions begin there, so that the two rise alike.
    pub(crate) fn beginning_at(writer: StreamId, sequence: u64) -> Stream {
        Stream {
            writer,
            reliable: false,
            samples: VecDeque::new(),
            next_position: sequence,
            unsent: (0, 0),
            limit: None,
            refused: 0,
            settled: 0,
            has_turn: false,
        }
    }

    pub(crate) fn push(&mut self, sample: Queued) {
        self.samples.push_back(sample);
        self.next_position += 1;
    }

    /// Queued bytes, as they count towards the queue's limit.
    pub(crate) fn bytes(&self) -> usize {
        self.samples.iter().map(Queued::cost).sum()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.samples.len()
    }

    pub(crate) fn first_position(&self) -> u64 {
        self.next_position - self.samples.len() as u64
    }

    pub(crate) fn sample(&self, position: u64) -> Option<&Queued> {
        let place = position.checked_sub(self.first_position())?;
        self.samples.get(usize::try_from(place).ok()?)
    }

    /// Samples that may be given up for a newer one: those that have not begun to be sent, and those that the
    /// reader refused as a whole.
    pub(crate) fn waiting(&self) -> usize {
        self.samples.len() - self.first_waiting() + self.refused
    }

    /// Their bytes, as they count towards the queue's limit.
    pub(crate) fn waiting_bytes(&self) -> usize {
        let unsent = self.samples.iter().skip(self.first_waiting());
        let refused = self.samples.iter().take_while(|sample| sample.is_refused);
        unsent.chain(refused).map(Queued::cost).sum()
    }

    /// Samples not yet sent or, if reliable, not yet acknowledged.
    pub(crate) fn unsettled(&self) -> usize {
        self.samples.len() - self.settled
    }

    /// Where in the queue the samples are that have not begun to be sent.
    fn first_waiting(&self) -> usize {
        let place = self.unsent.0.saturating_sub(self.first_position()) as usize;
        place + usize::from(self.samples.get(place).is_some_and(|sample| sample.has_begun))
    }

    /// Gives up the oldest of the [`waiting`](Stream::waiting) samples and gives its cost; `None` if there is none, or
    /// only behind one that is being sent.
    pub(crate) fn give_up_oldest_waiting(&mut self, counters: &mut Record) -> Option<usize> {
        if self.samples.front().is_some_and(|sample| sample.is_refused) {
            return Some(self.give_up_oldest(GivenUp::Replaced, counters));
        }
        // The reader has seen no position from here on, so those behind move up.
        let dropped = self.samples.remove(self.first_waiting())?;
        self.next_position -= 1;
        counters.given_up += 1;
        let part = trace::sample(self.writer, dropped.sequence);
        counters.note(|| Event::GivenUp { part, why: GivenUp::Replaced });
        Some(dropped.cost())
    }

    /// Drops every sample and gives their cost.
    pub(crate) fn give_up_all(&mut self, counters: &mut Record) -> usize {
        let mut freed_bytes = 0;
        while !self.samples.is_empty() {
            freed_bytes += self.give_up_oldest(GivenUp::Unsubscribed, counters);
        }
        freed_bytes
    }

    /// Gives the cost of what it drops.
    fn give_up_oldest(&mut self, why: GivenUp, counters: &mut Record) -> usize {
        let oldest = self.pop();
        if let Some(sample) = oldest.as_ref().filter(|sample| !sample.has_arrived()) {
            counters.given_up += 1;
            let part = trace::sample(self.writer, sample.sequence);
            counters.note(|| Event::GivenUp { part, why });
        }
        oldest.map_or(0, |sample| sample.cost())
    }

    fn pop(&mut self) -> Option<Queued> {
        let oldest = self.samples.pop_front()?;
        self.refused -= usize::from(oldest.is_refused);
        self.settled -= usize::from(oldest.payload.is_none());
        Some(oldest)
    }

    /// The reader refused a fragment.
    pub(crate) fn refused(&mut self, position: u64) {
        let Some(place) = position.checked_sub(self.first_position()) else { return };
        let Some(sample) = self.samples.get_mut(place as usize) else { return };
        if sample.arrived.len() == 0 && !std::mem::replace(&mut sample.is_refused, true) {
            self.refused += 1;
        }
    }

    /// Fragments are to be no longer than this. What has not begun, or does not pass any more, is cut anew; of what had begun,
    /// all fragments are to be retransmitted.
    pub(crate) fn cut_again(
        &mut self,
        writer: StreamId,
        fragment_bytes_max: usize,
        lost: &mut VecDeque<Carried>,
    ) {
        let first = self.first_position();
        let (unsent, begun) = self.unsent;
        for (position, sample) in (first..).zip(&mut self.samples) {
            let length = sample.total_bytes;
            let has_begun = position < unsent || position == unsent && begun > 0;
            if sample.has_arrived() || has_begun && fragment_bytes(length, sample.count) <= fragment_bytes_max
            {
                continue;
            }
            // Longer ones than can be cut so were refused.
            sample.count = length.div_ceil(fragment_bytes_max).clamp(1, FRAGMENTS_MAX.into()) as u16;
            sample.arrived = FragmentSet::default();
            if position == unsent {
                self.unsent = (unsent, 0);
            } else if has_begun {
                let kind = sample.kind();
                lost.extend((0..sample.count).map(|index| Carried { writer, position, index, kind }));
            }
        }
    }

    /// The first fragment never sent yet, of a sample that is still held and that the reader takes.
    pub(crate) fn next_unsent(&mut self) -> Option<(u64, u16)> {
        self.unsent = self.unsent.max((self.first_position(), 0));
        (self.unsent_in_limit() > 0).then_some(self.unsent)
    }

    /// Samples that have not wholly been sent yet and that the reader takes.
    pub(crate) fn unsent_in_limit(&self) -> usize {
        let end = self.limit.map_or(self.next_position, |limit| limit.min(self.next_position));
        end.saturating_sub(self.unsent.0) as usize
    }

    /// Whether the reader takes what is at a position, as far as is known.
    pub(crate) fn is_within_limit(&self, position: u64) -> bool {
        self.limit.is_none_or(|limit| position < limit)
    }

    /// Whether something waits that the reader does not take yet.
    pub(crate) fn is_blocked(&self) -> bool {
        let first = self.unsent.0.max(self.first_position());
        let waits = first < self.next_position && !self.is_within_limit(first);
        waits || self.refused > 0 && !self.is_within_limit(self.first_position())
    }

    /// The reader takes what lies before a position. A limit that comes late lowers none.
    pub(crate) fn set_limit(&mut self, position: u64) {
        self.limit = (position < u64::MAX).then(|| self.limit.map_or(position, |limit| limit.max(position)));
    }

    /// It takes all, as far as is known.
    pub(crate) fn clear_limit(&mut self) {
        self.limit = None;
    }

    /// Whether the next fragment to be sent for the first time is one of several.
    pub(crate) fn has_long_unsent(&self) -> bool {
        let place = self.unsent.0.saturating_sub(self.first_position()) as usize;
        self.samples.get(place).is_some_and(|sample| sample.count > 1)
    }

    /// The first fragment never sent yet has been sent. Gives the cost of what need not be kept.
    pub(crate) fn advance(&mut self) -> usize {
        let (position, index) = self.unsent;
        let place = position.saturating_sub(self.first_position()) as usize;
        let Some(sample) = self.samples.get_mut(place) else { return 0 };
        sample.has_begun = true;
        if index + 1 < sample.count {
            self.unsent = (position, index + 1);
            return 0;
        }
        self.unsent = (position + 1, 0);
        if self.reliable { 0 } else { self.pop().map_or(0, |sample| sample.cost()) }
    }
}

impl Queued {
    pub(crate) fn new(
        sample: &Outgoing<'_>,
        shared: Option<&Arc<[u8]>>,
        fragment_bytes_max: usize,
    ) -> Queued {
        Queued {
            sequence: sample.sequence,
            origin: sample.origin,
            count: sample.payload.len().div_ceil(fragment_bytes_max).max(1) as u16,
            total_bytes: sample.payload.len(),
            payload: Some(shared.map_or_else(|| Arc::from(sample.payload), Arc::clone)),
            arrived: FragmentSet::default(),
            has_begun: false,
            is_refused: false,
        }
    }

    /// Its bytes, as they count towards the queue's limit.
    pub(crate) fn cost(&self) -> usize {
        self.payload().len() + SAMPLE_OVERHEAD_BYTES
    }

    pub(crate) fn total_bytes(&self) -> usize {
        self.total_bytes
    }

    /// Its bytes; none once every fragment has arrived.
    pub(crate) fn payload(&self) -> &[u8] {
        self.payload.as_deref().unwrap_or_default()
    }

    pub(crate) fn has_arrived(&self) -> bool {
        self.arrived.len() == u32::from(self.count)
    }

    /// Of the datagrams that carry its fragments.
    pub(crate) fn kind(&self) -> Kind {
        Kind::Fragment { count: self.count }
    }
}

/// A fragment has arrived. Gives the bytes that need no longer be kept.
pub(crate) fn arrived(streams: &mut BTreeMap<StreamId, Stream>, carried: Carried) -> usize {
    let Some(stream) = streams.get_mut(&carried.writer) else { return 0 };
    let Some(place) = carried.position.checked_sub(stream.first_position()) else { return 0 };
    let Some(sample) = stream.samples.get_mut(place as usize) else { return 0 };
    if carried.kind != sample.kind() || !sample.arrived.insert(carried.index) {
        return 0;
    }
    stream.refused -= usize::from(std::mem::take(&mut sample.is_refused));
    if !sample.has_arrived() {
        return 0;
    }
    let mut freed_bytes = sample.payload.take().map_or(0, |payload| payload.len());
    stream.settled += 1;
    while stream.samples.front().is_some_and(Queued::has_arrived) {
        freed_bytes += stream.pop().map_or(0, |sample| sample.cost());
    }
    freed_bytes
}

#[cfg(test)]
mod tests {
    use noctule_timebase::Span;

    use super::*;
    use crate::stream::Class;

    /// A reliable stream with samples 1 to 4, two fragments each, of which the first `fragments` were sent.
    fn stream(fragments: usize) -> Stream {
        let mut stream = Stream { reliable: true, ..Stream::beginning_at(StreamId(1), 0) };
        for sequence in 1..=4 {
            let (writer, origin, age) = (StreamId(1), Origin::exactly(0), Span::ZERO);
            let (class, depth, payload) = (Class::Reliable, 1, &[7; 20][..]);
            let sample = Outgoing { writer, sequence, origin, age, class, depth, payload };
            stream.push(Queued::new(&sample, None, 10));
        }
        for _ in 0..fragments {
            assert!(stream.next_unsent().is_some());
            stream.advance();
        }
        stream
    }

    fn sequences(stream: &Stream) -> Vec<u64> {
        stream.samples.iter().map(|sample| sample.sequence).collect()
    }

    #[test]
    fn only_samples_that_have_not_begun_are_given_up_oldest_first() {
        let mut counters = Record::default();
        let mut stream = stream(3);
        assert_eq!((stream.waiting(), stream.unsettled()), (2, 4));
        assert!(stream.give_up_oldest_waiting(&mut counters).is_some());
        assert_eq!(sequences(&stream), [1, 2, 4]);
        assert!(stream.give_up_oldest_waiting(&mut counters).is_some());
        assert_eq!((sequences(&stream), stream.waiting()), (vec![1, 2], 0));
        assert_eq!(stream.give_up_oldest_waiting(&mut counters), None);
        assert_eq!((counters.given_up, stream.next_unsent()), (2, Some((1, 1))));
    }

    #[test]
    fn a_sample_cut_anew_has_still_begun() {
        let mut stream = stream(1);
        stream.cut_again(StreamId(1), 5, &mut VecDeque::new());
        assert_eq!((stream.next_unsent(), stream.waiting()), (Some((0, 0)), 3));
    }

    #[test]
    fn what_the_reader_refused_as_a_whole_gives_way_first() {
        let mut counters = Record::default();
        let mut stream = stream(4);
        stream.refused(0);
        stream.refused(0);
        assert_eq!(stream.waiting(), 3);
        assert!(stream.give_up_oldest_waiting(&mut counters).is_some());
        assert_eq!((sequences(&stream), stream.waiting()), (vec![2, 3, 4], 2));
        let mut streams = BTreeMap::from([(StreamId(1), stream)]);
        let kind = Kind::Fragment { count: 2 };
        let fragment = |index| Carried { writer: StreamId(1), position: 1, index, kind };
        streams.get_mut(&StreamId(1)).unwrap().refused(1);
        assert_eq!((arrived(&mut streams, fragment(0)), arrived(&mut streams, fragment(0))), (0, 0));
        assert_eq!(streams[&StreamId(1)].waiting(), 2, "a part of it has arrived");
        assert_eq!(arrived(&mut streams, fragment(1)), 20 + SAMPLE_OVERHEAD_BYTES);
        assert_eq!(streams[&StreamId(1)].unsettled(), 2);
    }
}
