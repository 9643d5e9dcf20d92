//! Another protocol beside the page, on the same port: a subprotocol of the WebSocket (RFC 6455, section 1.9).

use std::fmt::Debug;
use std::io;
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex};

use tungstenite::handshake::server::{ErrorResponse, Request as Handshake, Response};
use tungstenite::http::HeaderValue;
use tungstenite::protocol::{Role, WebSocketConfig};
use tungstenite::{Message, WebSocket};

use crate::client::{SharedStream, WRITE_TIMEOUT};

/// A frame of either side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// Text.
    Text(String),
    /// Bytes.
    Binary(Vec<u8>),
}

/// A subprotocol that the server speaks with programs that ask for it. It needs the token, as the page does; it may come from any origin,
/// because the holder of the address with the token may be another application.
pub trait Protocol: Debug + Send + Sync {
    /// Names of its versions, the best first.
    fn names(&self) -> &[&'static str];

    /// Longest message that is taken from the other side, bytes.
    fn message_bytes_max(&self) -> usize;

    /// Serves a connection until it ends.
    ///
    /// # Errors
    /// The system's; they end this connection alone.
    fn serve(&self, incoming: Incoming, outgoing: Outgoing) -> io::Result<()>;
}

/// The half of a connection that is read.
#[derive(Debug)]
pub struct Incoming(WebSocket<SharedStream>);

/// The half of a connection that is written. Dropping it ends the connection.
#[derive(Debug)]
pub struct Outgoing {
    socket: WebSocket<SharedStream>,
    stream: TcpStream,
}

impl Incoming {
    /// Waits for the next frame; `None` at the end of the connection.
    pub fn receive(&mut self) -> Option<Frame> {
        loop {
            match self.0.read().ok()? {
                Message::Text(text) => return Some(Frame::Text(text.to_string())),
                Message::Binary(bytes) => return Some(Frame::Binary(bytes.to_vec())),
                Message::Close(_) => return None,
                // Pings are answered by the socket.
                _ => {}
            }
        }
    }
}

impl Outgoing {
    /// Sends a frame, and those that were [written](Outgoing::write) before it.
    ///
    /// # Errors
    /// The connection has ended, or the other side takes nothing for 2 s.
    pub fn send(&mut self, frame: Frame) -> io::Result<()> {
        self.write(frame)?;
        self.flush()
    }

    /// Adds a frame to those that are sent together: some 100 kB, or as many as there are until [`Outgoing::flush`].
    ///
    /// # Errors
    /// As [`Outgoing::send`].
    pub fn write(&mut self, frame: Frame) -> io::Result<()> {
        let message = match frame {
            Frame::Text(text) => Message::text(text),
            Frame::Binary(bytes) => Message::binary(bytes),
        };
        self.socket.write(message).map_err(|error| io::Error::other(error.to_string()))
    }

    /// Sends what was written.
    ///
    /// # Errors
    /// As [`Outgoing::send`].
    pub fn flush(&mut self) -> io::Result<()> {
        self.socket.flush().map_err(|error| io::Error::other(error.to_string()))
    }
}

impl Drop for Outgoing {
    fn drop(&mut self) {
        // Ends the other half, too.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

/// A protocol and the name that the other side asked for.
pub(crate) type Chosen<'p> = (&'p Arc<dyn Protocol>, &'static str);

/// The protocol that serves one of the names, and the name.
pub(crate) fn choose<'p>(protocols: &'p [Arc<dyn Protocol>], wanted: &[String]) -> Option<Chosen<'p>> {
    protocols.iter().find_map(|protocol| {
        let is_wanted = |name: &&&'static str| wanted.iter().any(|wanted| wanted == **name);
        protocol.names().iter().find(is_wanted).map(|name| (protocol, *name))
    })
}

/// Answers the handshake and gives the connection to the protocol.
pub(crate) fn converse(stream: TcpStream, protocol: &dyn Protocol, name: &'static str) -> io::Result<()> {
    // The type is tungstenite's.
    #[allow(clippy::result_large_err)]
    let agree = |_: &Handshake, mut response: Response| -> Result<Response, ErrorResponse> {
        response.headers_mut().insert("Sec-WebSocket-Protocol", HeaderValue::from_static(name));
        Ok(response)
    };
    let handshake = tungstenite::accept_hdr(stream, agree);
    let stream = handshake.map_err(|error| io::Error::other(error.to_string()))?.into_inner();
    stream.set_read_timeout(None)?;
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(WRITE_TIMEOUT))?;
    let writing = Arc::new(Mutex::new(()));
    let limit = Some(protocol.message_bytes_max());
    let socket = |stream: TcpStream| {
        let limits = WebSocketConfig::default().max_message_size(limit).max_frame_size(limit);
        let shared = SharedStream { stream, writing: Arc::clone(&writing) };
        WebSocket::from_raw_socket(shared, Role::Server, Some(limits))
    };
    let outgoing = Outgoing { socket: socket(stream.try_clone()?), stream: stream.try_clone()? };
    protocol.serve(Incoming(socket(stream)), outgoing)
}
