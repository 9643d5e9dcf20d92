//! Floor: messages of fixed size over one TCP connection per reader, without Nagle's algorithm.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use noctule_peer::{Deliver, Description, Open, Outgoing, Peer, PeerError, Transport, Wait};

use super::socket::{readable, receive, start_pulse, try_receive};
use super::stream::Assembler;

const ACCEPT_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) struct Tcp;

struct Sockets {
    listener: Option<TcpListener>,
    inbound: Option<TcpStream>,
    outbound: Vec<TcpStream>,
    assembler: Assembler,
}

impl Peer for Tcp {
    fn describe(&self) -> Description {
        super::description("tcp", "tcp", &[Wait::Spin, Wait::Block, Wait::Hybrid], 64 << 20)
    }

    fn open(&self, open: &Open) -> Result<Box<dyn Transport>, PeerError> {
        let listener = match open.subscribe {
            Some(_) => Some(
                TcpListener::bind((open.bind_address.as_str(), 0))
                    .map_err(|e| PeerError::of(&format!("cannot listen on {}", open.bind_address), e))?,
            ),
            None => None,
        };
        Ok(Box::new(Sockets {
            listener,
            inbound: None,
            outbound: Vec::new(),
            assembler: Assembler::new(open.payload_bytes),
        }))
    }
}

fn accept(listener: &TcpListener) -> Result<TcpStream, PeerError> {
    if !readable(listener, ACCEPT_TIMEOUT)? {
        return Err(PeerError("no writer has connected within 10 s".into()));
    }
    let (stream, _) = listener.accept().map_err(|e| PeerError::of("cannot accept", e))?;
    Ok(stream)
}

impl Transport for Sockets {
    fn address(&self) -> Option<String> {
        self.listener.as_ref()?.local_addr().ok().map(|address| address.to_string())
    }

    fn connect(&mut self, readers: &[String]) -> Result<BTreeMap<String, String>, PeerError> {
        // Connecting completes in the reader's backlog, so two nodes may do this in any order.
        for reader in readers {
            let failed = |e| PeerError::of(&format!("cannot connect to {reader}"), e);
            let stream = TcpStream::connect(reader).map_err(failed)?;
            stream.set_nodelay(true).map_err(failed)?;
            self.outbound.push(stream);
        }
        if let Some(listener) = &self.listener {
            self.inbound = Some(accept(listener)?);
        }
        start_pulse()?;
        Ok(BTreeMap::from([("nodelay".into(), "1".into())]))
    }

    fn send(&mut self, message: &mut Outgoing) -> Result<(), PeerError> {
        let bytes = message.bytes();
        for stream in &mut self.outbound {
            stream.write_all(bytes).map_err(|e| PeerError::of("cannot send on the stream", e))?;
        }
        Ok(())
    }

    fn try_receive(&mut self, deliver: &mut Deliver<'_>) -> Result<usize, PeerError> {
        let Some(stream) = &self.inbound else {
            return Ok(0);
        };
        match try_receive(stream, self.assembler.space())? {
            Some(0) => Err(PeerError("the writer closed the connection".into())),
            Some(count) => Ok(self.assembler.advance(count, deliver)),
            None => Ok(0),
        }
    }

    fn receive(&mut self, timeout: Duration, deliver: &mut Deliver<'_>) -> Result<usize, PeerError> {
        let Some(stream) = &self.inbound else {
            return Ok(0);
        };
        loop {
            match receive(stream, self.assembler.space(), timeout)? {
                Some(0) => return Err(PeerError("the writer closed the connection".into())),
                Some(count) if self.assembler.advance(count, deliver) > 0 => return Ok(1),
                Some(_) => {}
                None => return Ok(0),
            }
        }
    }
}
