//! Floor of moving data: one copy of the payload from memory to memory, in one process.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Duration;

use noctule_peer::{Deliver, Description, Open, Outgoing, Peer, PeerError, Support, Transport, Wait};

pub(super) struct Memcpy;

struct Copy {
    target: Vec<u8>,
    full: bool,
}

impl Peer for Memcpy {
    fn describe(&self) -> Description {
        let mut description = super::description("memcpy", "memory", &[Wait::Spin], 64 << 20);
        description.modes = vec!["one_way".into()];
        description
    }

    fn support(&self) -> Support {
        // One process copies for itself; there is no receiver.
        Support { is_alone: true, ..Support::default() }
    }

    fn open(&self, open: &Open) -> Result<Box<dyn Transport>, PeerError> {
        // Written once, so that the pages exist.
        Ok(Box::new(Copy { target: vec![0x5A; open.payload_bytes], full: false }))
    }
}

impl Transport for Copy {
    fn connect(&mut self, _: &[String]) -> Result<BTreeMap<String, String>, PeerError> {
        Ok(BTreeMap::new())
    }

    fn send(&mut self, message: &mut Outgoing) -> Result<(), PeerError> {
        // The barrier keeps the compiler from proving that the whole copy is never read.
        self.target.copy_from_slice(black_box(message.bytes()));
        black_box(&mut self.target);
        self.full = true;
        Ok(())
    }

    fn try_receive(&mut self, deliver: &mut Deliver<'_>) -> Result<usize, PeerError> {
        if !std::mem::take(&mut self.full) {
            return Ok(0);
        }
        deliver(&self.target);
        Ok(1)
    }

    fn receive(&mut self, _: Duration, deliver: &mut Deliver<'_>) -> Result<usize, PeerError> {
        self.try_receive(deliver)
    }
}
