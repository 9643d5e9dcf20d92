//! Readers of a publisher of their own node: they read its ring where it lies.
//!
//! # Problem
//!
//! A reader of another node that shared memory refuses, because the ring has its readers or a process has no descriptor left, is served by UDP
//! ([`fallback`](super::fallback)). A reader in the publisher's own node has nothing else to fall back on.
//!
//! # Approach
//!
//! Nothing is handed over within a process: the ring's memory is shared as it is, without a connection and without a descriptor, and the
//! reader table has room for such readers beyond those of other processes.

use std::collections::BTreeMap;

use noctule_discovery::{Endpoint, EndpointId};
use noctule_shm_ring::{ReaderId, ReaderTable, StartAt};

use super::Shared;
use crate::notice::Notice;
use crate::sample::Route;
use crate::shared_topic::{Change, PublishedTopic, RingError, Source, SubscribedTopic, open_ring};

/// Those of a node; belongs to its thread.
#[derive(Debug, Default)]
pub(super) struct OwnReaders {
    /// By writer and reader.
    attached: BTreeMap<(EndpointId, EndpointId), Attached>,
    /// Readers that have gone, as long as something of theirs is still borrowed.
    gone: Vec<Attached>,
}

/// A place in the reader table of a ring.
type Attached = (ReaderTable, ReaderId);

impl OwnReaders {
    /// Has a reader read a writer of the same node.
    pub(super) fn attach(&mut self, (writer, reader): (&Endpoint, EndpointId), shared: &Shared) {
        self.gone.retain(|(reader_table, id)| !reader_table.release(*id));
        let state = shared.lock();
        let publisher = state.publishers.get(&writer.id).cloned();
        let subscriber = state.subscribers.get(&reader).cloned();
        drop(state);
        // One of the two may have been closed meanwhile.
        let (Some(publisher), Some(subscriber)) = (publisher, subscriber) else { return };
        match begin((&publisher, writer), &subscriber, shared) {
            Ok(attached) => drop(self.attached.insert((writer.id, reader), attached)),
            Err(why) => shared.note(Notice::Refused { topic: writer.topic.clone(), why: why.to_string() }),
        }
        shared.changes.count();
    }

    /// Whether a reader of a writer's ring is one of these.
    pub(super) fn has(&self, writer: EndpointId, id: ReaderId) -> bool {
        self.attached.iter().any(|((its, _), (_, its_id))| (*its, *its_id) == (writer, id))
    }

    /// A reader is done with a writer. What it has borrowed stays as it is.
    pub(super) fn release(&mut self, writer: EndpointId, reader: EndpointId, shared: &Shared) {
        let Some((reader_table, id)) = self.attached.remove(&(writer, reader)) else { return };
        if !reader_table.release(id) {
            self.gone.push((reader_table, id));
        }
        shared.changes.count();
    }
}

fn begin(
    (publisher, writer): (&PublishedTopic, &Endpoint),
    subscriber: &SubscribedTopic,
    shared: &Shared,
) -> Result<Attached, RingError> {
    // Before the reader has its source: what is published after that goes into the ring.
    publisher.make_ring_for_here()?;
    let is_waited_for = subscriber.keeps_all_of(writer).is_some();
    let granted = publisher.offer.attach_here(subscriber.pins, is_waited_for)?;
    let (pins, attached) = (granted.pins, (granted.reader_table().clone(), granted.reader()));
    let start = StartAt::From { position: granted.position, history: subscriber.past(writer) };
    match open_ring(granted.into_memory(), pins, writer.type_hash, start) {
        Ok(ring) => {
            let source = Source::new((shared.id, writer), ring, Route::SharedMemory);
            subscriber.change(Change::Came(Box::new(source)));
            Ok(attached)
        }
        Err(error) => {
            attached.0.detach(attached.1);
            Err(error.into())
        }
    }
}
