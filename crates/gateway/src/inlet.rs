//! Where samples of the bus go, and what lies around their bytes there.

use std::sync::Arc;

use noctule_xrce::{EndpointId, Sample};

/// CDR in version 1, big-endian and little-endian (DDSI-RTPS 2.3, 10.5): what clients write and read.
const CDR_BE: [u8; 4] = [0, 0, 0, 0];
const CDR_LE: [u8; 4] = [0, 1, 0, 0];

/// Where samples of the bus go.
pub(crate) trait Inlet: Send + Sync {
    /// Hands a sample to the client that `endpoint` belongs to.
    fn deliver(self: Arc<Self>, endpoint: EndpointId, sample: Sample);
    /// Counts samples that were gone before they were taken.
    fn count_missed(&self, missed: u64);
    /// Counts requests of and to clients that are not answered.
    fn count_unanswered(&self, messages: u64);
    /// A notice that is given once, however often its cause returns.
    fn notice_once(&self, notice: String);
}

/// CDR of a client, with the encapsulation header that it has on the bus.
pub(crate) fn encapsulated(body: &[u8], is_little_endian: bool, bytes: &mut Vec<u8>) {
    bytes.clear();
    bytes.extend(if is_little_endian { CDR_LE } else { CDR_BE });
    bytes.extend_from_slice(body);
}

/// A sample of the bus as clients read it, and whether it is little-endian; `None` if it is no CDR of version 1.
pub(crate) fn without_encapsulation(bytes: &[u8]) -> Option<(&[u8], bool)> {
    match bytes.split_first_chunk::<4>()? {
        ([0, 1, ..], body) => Some((body, true)),
        ([0, 0, ..], body) => Some((body, false)),
        _ => None,
    }
}
