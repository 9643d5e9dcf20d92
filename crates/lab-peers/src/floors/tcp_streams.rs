//! One TCP connection per reader: what every peer over TCP does before it can send bytes.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use noctule_peer::{Open, PeerError};
use rustix::net::sockopt::{set_tcp_congestion, tcp_congestion};

use super::socket::{readable, receive, start_pulse, try_receive};

const ACCEPT_TIMEOUT: Duration = Duration::from_secs(10);

/// The connections of one node: from its writer and to its readers.
pub(crate) struct Streams {
    listener: Option<TcpListener>,
    inbound: Option<TcpStream>,
    outbound: Vec<TcpStream>,
    nodelay: bool,
    congestion: Option<String>,
}

impl Streams {
    /// Listens if the node subscribes. Options: `nodelay`, 1 or 0 for Nagle's algorithm (RFC 896); `congestion`, the kernel's
    /// name of a congestion control (`cubic`, `reno`, `bbr`), else the machine's.
    pub(crate) fn open(open: &Open) -> Result<Self, PeerError> {
        let bind = |_: &String| TcpListener::bind((open.bind_address.as_str(), 0));
        let listener = open.subscribe.as_ref().map(bind).transpose();
        let listener =
            listener.map_err(|e| PeerError::of(&format!("cannot listen on {}", open.bind_address), e))?;
        let nodelay = match open.options.get("nodelay").map(String::as_str) {
            None | Some("1") => true,
            Some("0") => false,
            Some(other) => return Err(PeerError(format!("option.nodelay={other} is neither 1 nor 0"))),
        };
        let congestion = open.options.get("congestion").cloned();
        Ok(Self { listener, inbound: None, outbound: Vec::new(), nodelay, congestion })
    }

    /// Where a writer reaches this node.
    pub(crate) fn address(&self) -> Option<String> {
        self.listener.as_ref()?.local_addr().ok().map(|address| address.to_string())
    }

    /// Connects to all readers and waits for the writer; returns the settings.
    pub(crate) fn connect(&mut self, readers: &[String]) -> Result<BTreeMap<String, String>, PeerError> {
        // Connecting completes in the reader's backlog, so two nodes may do this in any order.
        for reader in readers {
            let failed = |e| PeerError::of(&format!("cannot connect to {reader}"), e);
            let stream = TcpStream::connect(reader).map_err(failed)?;
            stream.set_nodelay(self.nodelay).map_err(failed)?;
            if let Some(name) = &self.congestion {
                let failed = |e| PeerError::of(&format!("option.congestion={name} cannot be had"), e);
                set_tcp_congestion(&stream, name).map_err(failed)?;
            }
            self.outbound.push(stream);
        }
        if let Some(listener) = &self.listener {
            if !readable(listener, ACCEPT_TIMEOUT)? {
                return Err(PeerError("no writer has connected within 10 s".into()));
            }
            let (stream, _) = listener.accept().map_err(|e| PeerError::of("cannot accept", e))?;
            self.inbound = Some(stream);
        }
        start_pulse()?;
        let mut settings = BTreeMap::from([("nodelay".into(), u8::from(self.nodelay).to_string())]);
        let control = self.outbound.first().and_then(|stream| tcp_congestion(stream).ok());
        settings.extend(control.map(|name| ("congestion".into(), name)));
        Ok(settings)
    }

    /// Writes to all readers; waits while a connection is full.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<(), PeerError> {
        for stream in &mut self.outbound {
            stream.write_all(bytes).map_err(|e| PeerError::of("cannot send on the stream", e))?;
        }
        Ok(())
    }

    /// Reads what is there into `space`; returns how many bytes, `None` if nothing is.
    #[inline]
    pub(crate) fn try_receive(&self, space: &mut [u8]) -> Result<Option<usize>, PeerError> {
        let Some(stream) = &self.inbound else { return Ok(None) };
        open_still(try_receive(stream, space)?)
    }

    /// As [`Self::try_receive`], but waits for it.
    pub(crate) fn receive(&self, space: &mut [u8], timeout: Duration) -> Result<Option<usize>, PeerError> {
        let Some(stream) = &self.inbound else { return Ok(None) };
        open_still(receive(stream, space, timeout)?)
    }
}

/// A stream whose writer has gone ends with a read of nothing.
fn open_still(read: Option<usize>) -> Result<Option<usize>, PeerError> {
    match read {
        Some(0) => Err(PeerError("the writer closed the connection".into())),
        other => Ok(other),
    }
}
