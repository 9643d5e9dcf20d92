//! Floor: messages of fixed size over one TCP connection per reader, without Nagle's algorithm but where an option asks
//! for it.

use std::collections::BTreeMap;
use std::time::Duration;

use noctule_peer::{Deliver, Description, Open, Outgoing, Peer, PeerError, Transport, Wait};

use super::stream::Assembler;
use super::tcp_streams::Streams;

pub(super) struct Tcp;

struct Sockets {
    streams: Streams,
    assembler: Assembler,
}

impl Peer for Tcp {
    fn describe(&self) -> Description {
        super::description("tcp", "tcp", &[Wait::Spin, Wait::Block, Wait::Hybrid], 64 << 20)
    }

    fn open(&self, open: &Open) -> Result<Box<dyn Transport>, PeerError> {
        let assembler = Assembler::new(open.payload_bytes);
        Ok(Box::new(Sockets { streams: Streams::open(open)?, assembler }))
    }
}

impl Transport for Sockets {
    fn address(&self) -> Option<String> {
        self.streams.address()
    }

    fn connect(&mut self, readers: &[String]) -> Result<BTreeMap<String, String>, PeerError> {
        self.streams.connect(readers)
    }

    fn send(&mut self, message: &mut Outgoing) -> Result<(), PeerError> {
        self.streams.send(message.bytes())
    }

    fn try_receive(&mut self, deliver: &mut Deliver<'_>) -> Result<usize, PeerError> {
        let read = self.streams.try_receive(self.assembler.space())?;
        Ok(read.map_or(0, |count| self.assembler.advance(count, deliver)))
    }

    fn receive(&mut self, timeout: Duration, deliver: &mut Deliver<'_>) -> Result<usize, PeerError> {
        while let Some(count) = self.streams.receive(self.assembler.space(), timeout)? {
            if self.assembler.advance(count, deliver) > 0 {
                return Ok(1);
            }
        }
        Ok(0)
    }
}
