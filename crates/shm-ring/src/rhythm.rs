//! When a ring was last written, for a node that keeps watch over it without reading it.

use crate::layout::WRITTEN;
use crate::memory::Memory;
use crate::sync::Ordering;

/// Keeps watch over a ring's writer from any thread, beside its reader; see [`Reader::rhythm`](crate::Reader::rhythm).
#[derive(Debug)]
pub struct Rhythm(pub(crate) Memory);

impl Rhythm {
    /// When the last message was published whose time the writer has stored
    /// ([`Writer::stamp`](crate::Writer::stamp)), on the host's `CLOCK_MONOTONIC`; 0 for none. Its word only: compare
    /// it with the time.
    pub fn written_ns(&self) -> i64 {
        self.0.word(WRITTEN).load(Ordering::Relaxed) as i64
    }
}
