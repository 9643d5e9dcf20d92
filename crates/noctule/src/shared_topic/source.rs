//! The publishers of a topic as a subscriber sees them: rings, read in turn.
//!
//! A publisher of another host may be read through one ring after another: that of this node, then that of
//! another node of this host which receives it as well ([relayed readers](../../../../docs/spec/discovery.md)).
//! A ring is read to its end before the next begins, and numbers are the publisher's own, so no
//! sample is taken twice and what is missing in between is counted.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use noctule_discovery::{Endpoint, EndpointId, NodeId};
use noctule_formats::Format;
use noctule_shm_ring::{Borrowed, ReadError, Reader, Sample as RingSample};
use noctule_timebase::Span;

use super::progress::Progress;
use crate::sample::{Bytes, Route};
use crate::topic_formats::TopicFormats;

/// Publishers that are remembered after their ring has ended; older ones may, when they come back, give a sample again.
const RETIRED_LIMIT: usize = 64;

/// A source that came or went.
#[derive(Debug)]
pub(crate) enum Change {
    Came(Box<Source>),
    Went(NodeId, EndpointId),
    NodeWent(NodeId),
}

/// One ring of one publisher.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) node: NodeId,
    pub(crate) writer: EndpointId,
    pub(crate) reader: Reader,
    pub(crate) route: Route,
    /// `None`: bytes in no format.
    pub(crate) format: Option<Format>,
    /// The node of this host that hands on what it receives from there.
    pub(crate) relay: Option<NodeId>,
    /// Its publisher, or the relay, has gone.
    has_ended: bool,
    /// Another ring of the same publisher, which has ended, is read to its end first.
    is_next: bool,
    /// Newest sequence taken from it; at first, from the one that it follows. 0 for none.
    last: u64,
    /// Samples up to `last` are skipped: taken from another ring, or older than the reader.
    resumes: bool,
    /// The publisher's history: more samples may not wait. All if it keeps all.
    pub(crate) depth: u32,
    /// The publisher's: older samples are not delivered.
    pub(crate) lifespan: Option<Span>,
    /// Missed before samples that were too old to be given out: the next that is given out says so.
    pub(crate) missed_before: u64,
    /// The highest number that has come, where samples come as soon as they are there: the ring's numbers are behind by those that may still be
    /// repaired.
    highest: Arc<AtomicU64>,
    /// Of the source that this one follows, what did not come and no sample has said so: the first from here does.
    owed: u64,
    /// The node that fills the ring may wait for this reader.
    progress: Option<Progress>,
    /// Value of the ring's word with which to go to sleep.
    pub(crate) sleeps_on: u32,
}

/// All that a subscriber reads.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    pub(crate) list: Vec<Source>,
    /// The one to look at first: in turn, so that a busy one does not starve the others.
    turn: usize,
    /// Publishers whose ring has ended, oldest first.
    retired: VecDeque<Retired>,
    /// Missed, and no sample will say so.
    unsaid: u64,
}

/// A publisher and how its samples came, the newest number taken from it, and what of it did not come and no sample has said so.
type Retired = ((NodeId, EndpointId, Route), u64, u64);

/// Result of reading a ring: a sample, and `T` of it, if there is one.
pub(crate) type Read<T> = Result<Option<(RingSample, T)>, ReadError>;

/// A sample with the place of its source in the list.
type Found<T> = Result<Option<(usize, RingSample, T)>, ReadError>;

impl Sources {
    /// Receives what came or went.
    pub(crate) fn apply(&mut self, change: Change) {
        match change {
            Change::Came(source) => self.add(*source),
            Change::Went(node, writer) => self.end(|source| (source.node, source.writer) == (node, writer)),
            Change::NodeWent(node) => self.end(|source| source.node == node || source.relay == Some(node)),
        }
        self.turn = 0;
    }

    /// The next sample that `read` finds, with the place of its source in the list. After `None` what has ended
    /// can [`retire`](Sources::retire).
    ///
    /// # Errors
    /// Those of `read`.
    #[inline]
    pub(crate) fn next<T>(&mut self, read: &mut impl FnMut(&mut Source) -> Read<T>) -> Found<T> {
        let count = self.list.len();
        let mut passed = 0;
        while passed < count {
            let at = if self.turn + passed < count { self.turn + passed } else { self.turn + passed - count };
            let source = &mut self.list[at];
            if source.is_next {
                passed += 1;
                continue;
            }
            match read(source)? {
                None => passed += 1,
                Some((mut sample, rest)) => {
                    if source.accept(&mut sample) {
                        // Stays with a source as long as it alone has something: one look per sample.
                        self.turn = if count > 1 { (at + 1) % count } else { 0 };
                        return Ok(Some((at, sample, rest)));
                    }
                }
            }
        }
        Ok(None)
    }

    /// Lets go of a source that has ended, once all are read to their ends. `true`: what follows it may have a sample.
    pub(crate) fn retire(&mut self) -> bool {
        let has_ended = |source: &Source| source.has_ended && !source.is_next;
        let Some(at) = self.list.iter().position(has_ended) else { return false };
        let ended = self.list.remove(at);
        let (partner, last, owed) = (ended.partner(), ended.last, ended.owed_at_the_end());
        self.unsaid = self.unsaid.saturating_add(ended.missed_before);
        self.turn = 0;
        let follows = |source: &&mut Source| (source.node, source.writer) == (ended.node, ended.writer);
        if let Some(next) = self.list.iter_mut().find(follows) {
            next.is_next = false;
            if last > 0 && next.partner() == partner {
                (next.last, next.resumes, next.owed) = (last, true, owed);
            }
        } else if last > 0 {
            // Another node of this host may yet hand on what came after, or this one be let in again.
            if self.retired.len() >= RETIRED_LIMIT {
                let (.., owed) = self.retired.pop_front().unwrap_or((partner, 0, 0));
                self.unsaid = self.unsaid.saturating_add(owed);
            }
            self.retired.push_back((partner, last, owed));
        }
        true
    }

    /// Samples of publishers that have gone which did not come although later ones did, as far as no sample has said so.
    pub(crate) fn missed_unsaid(&self) -> u64 {
        let owed =
            self.list.iter().map(|source| source.owed).chain(self.retired.iter().map(|(.., owed)| *owed));
        owed.fold(self.unsaid, u64::saturating_add)
    }

    /// Publishers that have not gone.
    pub(crate) fn publishers(&self) -> usize {
        self.list.iter().filter(|source| !source.has_ended).count()
    }

    /// The same by node and number, each once.
    pub(crate) fn writers(&self) -> Vec<(NodeId, EndpointId)> {
        let there = self.list.iter().filter(|source| !source.has_ended);
        let mut writers: Vec<_> = there.map(|source| (source.node, source.writer)).collect();
        writers.sort_unstable();
        writers.dedup();
        writers
    }

    /// A new source follows the one there is, or was, of the same publisher.
    fn add(&mut self, mut source: Source) {
        let (partner, publisher) = (source.partner(), (source.node, source.writer));
        if self.list.iter().any(|other| (other.node, other.writer) == publisher) {
            source.is_next = true;
        } else if let Some(at) =
            self.retired.iter().position(|((node, writer, _), ..)| (*node, *writer) == publisher)
            && let Some((retired, last, owed)) = self.retired.remove(at)
        {
            if retired == partner {
                (source.last, source.resumes, source.owed) = (last, true, owed);
            } else {
                self.unsaid = self.unsaid.saturating_add(owed);
            }
        }
        self.list.push(source);
    }

    /// Marks sources as ended. Samples in their rings can still be read: the memory is kept until they are empty.
    fn end(&mut self, is_meant: impl Fn(&Source) -> bool) {
        self.list.iter_mut().filter(|source| is_meant(source)).for_each(|source| source.has_ended = true);
    }
}

impl Source {
    /// A source of samples from a writer of `node`.
    pub(crate) fn new((node, writer): (NodeId, &Endpoint), reader: Reader, route: Route) -> Source {
        Source {
            node,
            writer: writer.id,
            reader,
            route,
            format: TopicFormats::from_bits(writer.formats).on(route),
            relay: None,
            has_ended: false,
            is_next: false,
            last: 0,
            resumes: false,
            // Of a writer that waits none is passed over: its next sample may come between the reading of one and the look whether it is old.
            depth: if writer.qos.keep_all { u32::MAX } else { writer.qos.depth },
            lifespan: writer.qos.lifespan,
            missed_before: 0,
            highest: Arc::default(),
            owed: 0,
            progress: None,
            sleeps_on: 0,
        }
    }

    /// The same; `highest` is the highest number that has come.
    pub(crate) fn counted_to(self, highest: Arc<AtomicU64>) -> Source {
        Source { highest, ..self }
    }

    /// When its ring is read to the end: what did not come although something later did, and no sample has said so.
    fn owed_at_the_end(&self) -> u64 {
        let open = self.highest.load(Ordering::Relaxed).saturating_sub(self.last);
        if self.last > 0 { open.max(self.owed) } else { 0 }
    }

    /// Whose numbers its samples have: the writer's own in every ring on another host, its one ring's on its own host.
    fn partner(&self) -> (NodeId, EndpointId, Route) {
        (self.node, self.writer, self.route)
    }

    /// Whether another ring of the same publisher is read to its end first.
    pub(crate) fn is_next(&self) -> bool {
        self.is_next
    }

    /// The same, of a ring that holds `depth` samples for this reader.
    pub(crate) fn with_depth(self, depth: u32) -> Source {
        Source { depth, ..self }
    }

    /// The same, of which samples wait for this reader, if it is to report how far it has read.
    pub(crate) fn kept(self, progress: Option<Progress>) -> Source {
        let depth = if progress.is_some() { u32::MAX } else { self.depth };
        Source { progress, depth, ..self }
    }

    /// Whether the node that fills the ring is to learn how far this reader has read.
    #[inline]
    pub(crate) fn is_awaited(&self) -> bool {
        self.progress.as_ref().is_some_and(|progress| progress.is_due(self.reader.position()))
    }

    /// The same, handed on by a node of this host that receives it.
    pub(crate) fn relayed_by(self, node: NodeId) -> Source {
        Source { relay: Some(node), ..self }
    }

    /// The same, ready to go on where another ring of this writer ended, be that earlier than where this reader
    /// was let in.
    pub(crate) fn resumable(mut self) -> Source {
        if let Some(next) = self.reader.rewind() {
            (self.last, self.resumes) = (next - 1, true);
        }
        self
    }

    /// Whether its samples come by this node's own socket.
    pub(crate) fn is_on_socket(&self) -> bool {
        self.route == Route::Udp && self.relay.is_none()
    }

    /// False if a sample was taken before, from the source that this one follows. The end of that one shows
    /// what is missing between the two.
    #[inline]
    fn accept(&mut self, sample: &mut RingSample) -> bool {
        if self.resumes {
            if sample.number <= self.last {
                return false;
            }
            sample.missed = sample.number - self.last - 1;
            (self.resumes, self.owed) = (false, 0);
        }
        self.last = sample.number;
        true
    }

    /// Samples missed before one that was just read, and before those since the last given out.
    #[inline]
    pub(crate) fn missed_since_given_out(&mut self, missed: u64) -> u64 {
        missed + std::mem::take(&mut self.missed_before)
    }

    /// Whether a sample that was just read is followed by so many that a history of that depth does not hold it. Then it is
    /// not to be given out.
    #[inline]
    pub(crate) fn pass_over(&mut self, sample: &RingSample, depth: u32) -> bool {
        // The one that follows says what was missed.
        self.reader.pass_over(sample, depth)
    }

    /// The next sample, lent if it can be.
    pub(crate) fn take(&mut self) -> Read<Bytes> {
        self.lend(Reader::borrow_next, Reader::take_next)
    }

    /// The newest sample, lent if it can be.
    pub(crate) fn take_latest(&mut self) -> Read<Bytes> {
        self.lend(Reader::borrow_latest, Reader::take_latest)
    }

    fn lend(
        &mut self,
        borrow: impl Fn(&mut Reader) -> Result<Option<Borrowed>, ReadError>,
        copy_out: impl Fn(&mut Reader, &mut [u8]) -> Result<Option<RingSample>, ReadError>,
    ) -> Read<Bytes> {
        match borrow(&mut self.reader) {
            Err(ReadError::Pins { pins: 0 }) => {}
            lent => return Ok(lent?.map(|lent| (*lent.sample(), Bytes::Lent(lent)))),
        }
        let mut copy = Vec::new();
        loop {
            match copy_out(&mut self.reader, &mut copy) {
                Err(ReadError::BufferTooSmall { length_bytes, .. }) => copy.resize(length_bytes, 0),
                Ok(Some(sample)) => {
                    copy.truncate(sample.length_bytes);
                    return Ok(Some((sample, Bytes::Copied(copy))));
                }
                Ok(None) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }

    /// False if there is something to look at instead of sleeping.
    pub(crate) fn announce_sleep(&mut self) -> bool {
        let expected = self.reader.begin_wait();
        self.sleeps_on = expected.unwrap_or_default();
        expected.is_some()
    }
}

#[cfg(test)]
mod tests;
