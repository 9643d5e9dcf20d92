//! Accepts browsers, checks what they ask for, and joins them with the program.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::client::{Mailbox, Payload, serve};
use crate::protocol::{self, Protocol, choose};
use crate::request::{HEAD_BYTES_MAX, Head, Request, is_same, parse};
use crate::{CLIENTS_MAX, EVENTS_MAX};

/// A browser that has not sent its request by then is closed.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);

/// A file of the page.
#[derive(Clone, Copy, Debug)]
pub struct Asset {
    /// Path from the root, e.g. `/page.js`; `/` is the page.
    pub path: &'static str,
    /// E.g. `text/javascript`.
    pub content_type: &'static str,
    /// Its bytes.
    pub body: &'static str,
}

/// Where to listen, and what is served.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Port 0 takes a free one. An address that is not of the loopback interface opens the page to the network.
    pub listen: SocketAddr,
    /// The files.
    pub assets: Vec<Asset>,
}

/// Why a page cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The address is taken, or is not this machine's.
    #[error("cannot listen on {address}: {source}; choose another with --listen")]
    Listen {
        /// The address to listen on.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// No threads or no random numbers are left.
    #[error("cannot start the page's server: {0}")]
    Start(#[from] io::Error),
}

/// Names a browser while it is connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub u64);

/// Event of a browser's connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A browser came.
    Opened(ClientId),
    /// A browser sent text.
    Text(ClientId, String),
    /// A browser went.
    Closed(ClientId),
}

type Clients = Arc<Mutex<BTreeMap<ClientId, Arc<Mailbox>>>>;

/// A page that is served. Dropping it ends all.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    gate: Arc<Gate>,
    clients: Clients,
    events: Receiver<Event>,
    accepting: Option<JoinHandle<()>>,
}

/// State that all threads share.
#[derive(Debug)]
struct Gate {
    token: String,
    hosts: Vec<String>,
    assets: Vec<Asset>,
    protocols: Vec<Arc<dyn Protocol>>,
    /// Connections of other protocols, to be ended at the end.
    conversations: Mutex<BTreeMap<u64, TcpStream>>,
    stopped: AtomicBool,
    next: AtomicU64,
    refused: AtomicU64,
    lost_events: AtomicU64,
}

impl Server {
    /// Listens.
    ///
    /// # Errors
    /// The address cannot be listened on.
    pub fn start(options: ServerOptions) -> Result<Server, ServerError> {
        Server::start_with(options, Vec::new())
    }

    /// Listens, and serves other protocols beside the page.
    ///
    /// # Errors
    /// The address cannot be listened on.
    pub fn start_with(
        options: ServerOptions,
        protocols: Vec<Arc<dyn Protocol>>,
    ) -> Result<Server, ServerError> {
        let listen = |source| ServerError::Listen { address: options.listen, source };
        let listener = TcpListener::bind(options.listen).map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        let secret: [u8; 16] = noctule_sys::random::secret()?;
        let gate = Arc::new(Gate {
            token: secret.iter().map(|byte| format!("{byte:02x}")).collect(),
            hosts: vec![address.to_string(), format!("localhost:{}", address.port())],
            assets: options.assets,
            protocols,
            conversations: Mutex::default(),
            stopped: AtomicBool::new(false),
            next: AtomicU64::new(1),
            refused: AtomicU64::new(0),
            lost_events: AtomicU64::new(0),
        });
        let (sender, events) = sync_channel(EVENTS_MAX);
        let clients = Clients::default();
        let accepting = {
            let (gate, clients) = (Arc::clone(&gate), Arc::clone(&clients));
            let work = move || accept(&listener, &gate, &clients, &sender);
            std::thread::Builder::new().name("page-accept".into()).spawn(work)?
        };
        Ok(Server { address, gate, clients, events, accepting: Some(accepting) })
    }

    /// The page's address, with the token: a browser that has it may use the page.
    pub fn url(&self) -> String {
        format!("http://{}/?token={}", self.address, self.gate.token)
    }

    /// Where programs connect that speak another protocol, with the token.
    pub fn socket_url(&self) -> String {
        format!("ws://{}/?token={}", self.address, self.gate.token)
    }

    /// Waits for the next event up to `timeout`.
    pub fn poll_event(&self, timeout: Duration) -> Option<Event> {
        self.events.recv_timeout(timeout).ok()
    }

    /// Shows a state to all browsers; each gets the newest it has time for.
    pub fn broadcast(&self, state: &str) {
        let state = Payload::Text(Arc::from(state));
        if let Ok(clients) = self.clients.lock() {
            clients.values().for_each(|mailbox| mailbox.show("", state.clone()));
        }
    }

    /// Shows one browser the newest of a channel, e.g. of a camera; what it had no time for is replaced.
    pub fn show(&self, client: ClientId, channel: &str, state: Payload) {
        if let Ok(clients) = self.clients.lock()
            && let Some(mailbox) = clients.get(&client)
        {
            mailbox.show(channel, state);
        }
    }

    /// Whether the newest of a channel still waits for a browser: a program that makes more only then makes nothing in vain.
    pub fn is_waiting(&self, client: ClientId, channel: &str) -> bool {
        let clients = self.clients.lock();
        clients.is_ok_and(|clients| clients.get(&client).is_some_and(|mailbox| mailbox.is_waiting(channel)))
    }

    /// Sends a text to one browser.
    pub fn reply(&self, client: ClientId, text: &str) {
        if let Ok(clients) = self.clients.lock()
            && let Some(mailbox) = clients.get(&client)
        {
            mailbox.reply(text);
        }
    }

    /// Connected browsers.
    pub fn clients(&self) -> usize {
        self.clients.lock().map_or(0, |clients| clients.len())
    }

    /// States and replies that connected browsers were too slow for.
    pub fn dropped(&self) -> u64 {
        self.clients.lock().map_or(0, |clients| clients.values().map(|mailbox| mailbox.dropped()).sum())
    }

    /// Requests without the token, from a foreign page, or beyond the number of browsers.
    pub fn refused(&self) -> u64 {
        self.gate.refused.load(Ordering::Relaxed)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.gate.stopped.store(true, Ordering::Relaxed);
        if let Ok(clients) = self.clients.lock() {
            clients.values().for_each(|mailbox| mailbox.close());
        }
        if let Ok(conversations) = self.gate.conversations.lock() {
            for stream in conversations.values() {
                let _ = stream.shutdown(std::net::Shutdown::Both);
            }
        }
        // Wakes the thread that accepts.
        let _ = TcpStream::connect_timeout(&self.address, Duration::from_secs(1));
        if let Some(thread) = self.accepting.take() {
            let _ = thread.join();
        }
    }
}

fn accept(listener: &TcpListener, gate: &Arc<Gate>, clients: &Clients, events: &SyncSender<Event>) {
    let serving = Arc::new(AtomicU64::new(0));
    for stream in listener.incoming() {
        if gate.stopped.load(Ordering::Relaxed) {
            return;
        }
        let Ok(stream) = stream else { continue };
        // Twice the browsers: each may load a file beside its socket.
        if serving.load(Ordering::Relaxed) >= 2 * CLIENTS_MAX as u64 {
            gate.refused.fetch_add(1, Ordering::Relaxed);
            continue;
        }
        serving.fetch_add(1, Ordering::Relaxed);
        let (gate, clients, events) = (Arc::clone(gate), Arc::clone(clients), events.clone());
        let count = Arc::clone(&serving);
        let work = move || {
            // An error ends this browser alone.
            let _ = converse(stream, &gate, &clients, &events);
            count.fetch_sub(1, Ordering::Relaxed);
        };
        if std::thread::Builder::new().name("page-client".into()).spawn(work).is_err() {
            serving.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

fn converse(
    mut stream: TcpStream,
    gate: &Gate,
    clients: &Clients,
    events: &SyncSender<Event>,
) -> io::Result<()> {
    stream.set_read_timeout(Some(REQUEST_TIMEOUT))?;
    stream.set_write_timeout(Some(REQUEST_TIMEOUT))?;
    let Some(request) = peeked(&stream)? else {
        return answer(&mut stream, gate, "400 Bad Request", "this is no request of a page\n");
    };
    if let Some(reason) = gate.refusal(&request) {
        gate.refused.fetch_add(1, Ordering::Relaxed);
        return answer(&mut stream, gate, "403 Forbidden", reason);
    }
    if !request.is_upgrade {
        return file(&mut stream, gate, &request.path);
    }
    if let Some((protocol, name)) = choose(&gate.protocols, &request.protocols) {
        return gate.converse(stream, &**protocol, name);
    }
    let handshake = tungstenite::accept(stream).map_err(|error| io::Error::other(error.to_string()))?;
    let stream = handshake.into_inner();
    stream.set_read_timeout(None)?;
    let client = ClientId(gate.next.fetch_add(1, Ordering::Relaxed));
    let mailbox = Arc::new(Mailbox::default());
    {
        let mut clients = clients.lock().map_err(|_| io::ErrorKind::Other)?;
        if clients.len() >= CLIENTS_MAX {
            gate.refused.fetch_add(1, Ordering::Relaxed);
            return Ok(());
        }
        clients.insert(client, Arc::clone(&mailbox));
    }
    let tell = |event| {
        if let Err(TrySendError::Full(_)) = events.try_send(event) {
            gate.lost_events.fetch_add(1, Ordering::Relaxed);
        }
    };
    tell(Event::Opened(client));
    let served = serve(stream, &mailbox, |text| tell(Event::Text(client, text)));
    if let Ok(mut clients) = clients.lock() {
        clients.remove(&client);
    }
    // Never lost: an operator that has gone must be known.
    let _ = events.send(Event::Closed(client));
    served
}

/// The request, left in the socket for whom it concerns.
fn peeked(stream: &TcpStream) -> io::Result<Option<Request>> {
    let mut buffer = [0; HEAD_BYTES_MAX];
    let mut before = 0;
    loop {
        let count = stream.peek(&mut buffer)?;
        match parse(&buffer[..count]) {
            Head::Whole(request) => return Ok(Some(request)),
            Head::Bad => return Ok(None),
            // Nothing new: the other side has ended, or sends byte by byte, which no browser does.
            Head::Partial if count == before => return Ok(None),
            Head::Partial => before = count,
        }
    }
}

impl Gate {
    fn converse(&self, stream: TcpStream, protocol: &dyn Protocol, name: &'static str) -> io::Result<()> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let kept = stream.try_clone()?;
        {
            let mut conversations = self.conversations.lock().map_err(|_| io::ErrorKind::Other)?;
            conversations.insert(number, kept);
        }
        let served = protocol::converse(stream, protocol, name);
        if let Ok(mut conversations) = self.conversations.lock() {
            conversations.remove(&number);
        }
        served
    }

    /// Why a request is not served.
    fn refusal(&self, request: &Request) -> Option<&'static str> {
        let is_ours = |host: &str| self.hosts.iter().any(|ours| ours == host);
        if !request.host.as_deref().is_some_and(is_ours) {
            return Some("this page answers to its own address only; open the one that was printed\n");
        }
        let is_page = choose(&self.protocols, &request.protocols).is_none() || !request.is_upgrade;
        let origin = request.origin.as_deref().filter(|_| is_page);
        let is_own = |origin: &str| origin.strip_prefix("http://").is_some_and(is_ours);
        if origin.is_some_and(|origin| !is_own(origin)) || (is_page && request.is_upgrade && origin.is_none())
        {
            return Some("another page must not use this one\n");
        }
        let needs_token = request.is_upgrade || request.path == "/";
        let has_token = request.token.as_deref().is_some_and(|token| is_same(token, &self.token));
        (needs_token && !has_token)
            .then_some("the token is missing or wrong; open the address that was printed\n")
    }
}

fn file(stream: &mut TcpStream, gate: &Gate, path: &str) -> io::Result<()> {
    match gate.assets.iter().find(|asset| asset.path == path) {
        Some(asset) => respond(stream, "200 OK", asset.content_type, asset.body),
        None => answer(stream, gate, "404 Not Found", "there is no such file\n"),
    }
}

fn answer(stream: &mut TcpStream, _gate: &Gate, status: &str, sentence: &str) -> io::Result<()> {
    respond(stream, status, "text/plain", sentence)
}

fn respond(stream: &mut TcpStream, status: &str, content_type: &str, body: &str) -> io::Result<()> {
    // Bytes that were only peeked at are read first, or closing would reset the connection under the answer.
    let mut buffer = [0; HEAD_BYTES_MAX];
    let _ = io::Read::read(stream, &mut buffer)?;
    let policy =
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:";
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}; charset=utf-8\r\nContent-Length: {}\r\n\
         Content-Security-Policy: {policy}\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n\
         X-Frame-Options: DENY\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n",
        body.len()
    )?;
    stream.write_all(body.as_bytes())?;
    stream.shutdown(std::net::Shutdown::Write)
}
