//! Messages of fixed size out of a stream of bytes.

use noctule_peer::Deliver;

/// Collects bytes until a whole message is there. Never takes more than one message from the
/// stream, so that a message is delivered at the read that completed it.
pub(super) struct Assembler {
    buffer: Vec<u8>,
    filled_bytes: usize,
}

impl Assembler {
    pub(super) fn new(payload_bytes: usize) -> Self {
        Self { buffer: vec![0xA5; payload_bytes], filled_bytes: 0 }
    }

    /// Where the next bytes of the stream go.
    pub(super) fn space(&mut self) -> &mut [u8] {
        &mut self.buffer[self.filled_bytes..]
    }

    /// Takes note of `count` bytes written into [`Self::space`]; delivers a completed message.
    pub(super) fn advance(&mut self, count: usize, deliver: &mut Deliver<'_>) -> usize {
        self.filled_bytes += count;
        if self.filled_bytes < self.buffer.len() {
            return 0;
        }
        self.filled_bytes = 0;
        deliver(&self.buffer);
        1
    }
}
