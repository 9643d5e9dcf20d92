//! Readers of another node that one connection has let into rings of this node.

use noctule_discovery::EndpointId;
use noctule_shm_ring::{ReaderId, ReaderTable};

use crate::node::Shared;
use crate::node::guid::Guid;

/// Those of one connection.
#[derive(Debug, Default)]
pub(super) struct Admitted {
    readers: Vec<Reader>,
    /// Readers that have gone, as long as something of theirs is still borrowed: by a process that lives as long as the connection does.
    gone: Vec<(ReaderTable, ReaderId)>,
}

/// A reader that is let in.
#[derive(Debug)]
struct Reader {
    writer: Guid,
    reader: EndpointId,
    reader_table: ReaderTable,
    id: ReaderId,
}

impl Admitted {
    /// A reader is in the reader table of a writer's ring.
    pub(super) fn add(
        &mut self,
        (writer, reader): (Guid, EndpointId),
        (reader_table, id): (ReaderTable, ReaderId),
        shared: &Shared,
    ) {
        self.readers.push(Reader { writer, reader, reader_table, id });
        self.sweep();
        shared.changes.count();
    }

    /// Whether a reader of a writer's ring is one of these.
    pub(super) fn has(&self, writer: Guid, id: ReaderId) -> bool {
        self.readers.iter().any(|its| (its.writer, its.id) == (writer, id))
    }

    /// A reader reads a writer no more; `None`: no reader reads any. What they have borrowed stays as it is.
    pub(super) fn release(&mut self, which: Option<(Guid, EndpointId)>, shared: &Shared) {
        let is_meant = |its: &mut Reader| which.is_none_or(|which| which == (its.writer, its.reader));
        for Reader { writer, reader_table, id, .. } in self.readers.extract_if(.., is_meant) {
            self.gone.push((reader_table, id));
            tell(writer, shared);
        }
        self.sweep();
    }

    /// Removes readers that have given everything back.
    fn sweep(&mut self) {
        self.gone.retain(|(reader_table, id)| !reader_table.release(*id));
    }

    /// A ring is filled no more; gives those that read it.
    pub(super) fn end(&mut self, writer: Guid, shared: &Shared) -> Vec<EndpointId> {
        let ended = self.readers.extract_if(.., |its| its.writer == writer);
        let ended = ended.map(|Reader { reader, reader_table, id, .. }| {
            reader_table.detach(id);
            tell(writer, shared);
            reader
        });
        ended.collect()
    }

    /// The process at the other end has gone, or gives back what it had.
    pub(super) fn clear(self, shared: &Shared) {
        self.gone.into_iter().for_each(|(reader_table, id)| reader_table.detach(id));
        for Reader { writer, reader_table, id, .. } in self.readers {
            reader_table.detach(id);
            tell(writer, shared);
        }
    }
}

/// A writer has one reader less.
fn tell(writer: Guid, shared: &Shared) {
    shared.changes.count();
    if writer.0 != shared.id {
        shared.end_following();
    }
}
