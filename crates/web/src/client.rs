//! The two threads of a browser: one reads its messages, one writes the newest state and the replies.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::ops::Bound;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use tungstenite::protocol::{Role, WebSocketConfig};
use tungstenite::{Message, WebSocket};

use crate::{CHANNELS_MAX, MESSAGE_BYTES_MAX, REPLIES_MAX};

/// A browser that takes longer to accept a frame has gone.
pub(crate) const WRITE_TIMEOUT: Duration = Duration::from_secs(2);

/// Message to a browser: JSON as text, or bytes that the page knows how to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// A JSON object with its kind in `t`.
    Text(Arc<str>),
    /// E.g. pixels.
    Binary(Arc<[u8]>),
}

impl Payload {
    fn into_message(self) -> Message {
        match self {
            Payload::Text(text) => Message::text(text.to_string()),
            Payload::Binary(bytes) => Message::binary(bytes.to_vec()),
        }
    }
}

/// Queue of one browser.
#[derive(Debug, Default)]
struct Waiting {
    /// The newest of each channel.
    newest: BTreeMap<String, Payload>,
    /// The channel that was sent last: each has its turn.
    last: String,
    replies: VecDeque<Payload>,
    dropped: u64,
    closed: bool,
}

/// Where the program leaves what a browser shall get.
#[derive(Debug, Default)]
pub(crate) struct Mailbox {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

impl Mailbox {
    fn change(&self, change: impl FnOnce(&mut Waiting)) {
        // Only a panic of ours poisons it; then the browser gets no more.
        if let Ok(mut waiting) = self.waiting.lock() {
            change(&mut waiting);
            self.changed.notify_one();
        }
    }

    pub(crate) fn show(&self, channel: &str, state: Payload) {
        self.change(|waiting| {
            let is_full = waiting.newest.len() == CHANNELS_MAX && !waiting.newest.contains_key(channel);
            let replaced =
                if is_full { Some(state) } else { waiting.newest.insert(channel.to_owned(), state) };
            waiting.dropped += u64::from(replaced.is_some());
        });
    }

    pub(crate) fn reply(&self, text: &str) {
        self.change(|waiting| {
            if waiting.replies.len() == REPLIES_MAX {
                waiting.replies.pop_front();
                waiting.dropped += 1;
            }
            waiting.replies.push_back(Payload::Text(Arc::from(text)));
        });
    }

    pub(crate) fn is_waiting(&self, channel: &str) -> bool {
        self.waiting.lock().is_ok_and(|waiting| waiting.newest.contains_key(channel))
    }

    pub(crate) fn close(&self) {
        self.change(|waiting| waiting.closed = true);
    }

    /// States and replies that this browser was too slow for.
    pub(crate) fn dropped(&self) -> u64 {
        self.waiting.lock().map_or(0, |waiting| waiting.dropped)
    }

    /// Replies first, then the newest of each channel in turn; `None` when closed.
    fn next(&self) -> Option<Payload> {
        let mut waiting = self.waiting.lock().ok()?;
        loop {
            if waiting.closed {
                return None;
            }
            if let Some(reply) = waiting.replies.pop_front() {
                return Some(reply);
            }
            let after = (Bound::Excluded(waiting.last.as_str()), Bound::Unbounded);
            let turn = waiting.newest.range::<str, _>(after).next().or_else(|| waiting.newest.iter().next());
            if let Some(channel) = turn.map(|(channel, _)| channel.clone()) {
                let newest = waiting.newest.remove(&channel);
                waiting.last = channel;
                return newest;
            }
            waiting = self.changed.wait(waiting).ok()?;
        }
    }
}

/// A stream that two threads write to: the writer frames, the reader answers to pings and closes.
#[derive(Debug)]
pub(crate) struct SharedStream {
    pub(crate) stream: TcpStream,
    pub(crate) writing: Arc<Mutex<()>>,
}

impl Read for SharedStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.read(buffer)
    }
}

impl Write for SharedStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _writing = self.writing.lock().map_err(|_| io::ErrorKind::BrokenPipe)?;
        // All of it: a frame of the other thread must not come between.
        self.stream.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// Serves a browser whose handshake is done until it goes or is closed; `heard` receives each text it sends.
pub(crate) fn serve(
    stream: TcpStream,
    mailbox: &Arc<Mailbox>,
    mut heard: impl FnMut(String),
) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(WRITE_TIMEOUT))?;
    let writing = Arc::new(Mutex::new(()));
    let socket = |stream: TcpStream| {
        let limits = WebSocketConfig::default()
            .max_message_size(Some(MESSAGE_BYTES_MAX))
            .max_frame_size(Some(MESSAGE_BYTES_MAX));
        let shared = SharedStream { stream, writing: Arc::clone(&writing) };
        WebSocket::from_raw_socket(shared, Role::Server, Some(limits))
    };
    let closing = stream.try_clone()?;
    let mut writer = socket(stream.try_clone()?);
    let mut reader = socket(stream);
    let outgoing = Arc::clone(mailbox);
    let thread = std::thread::Builder::new().name("page-writer".into()).spawn(move || {
        while let Some(payload) = outgoing.next() {
            if writer.send(payload.into_message()).is_err() {
                break;
            }
        }
        // Ends the reader, too.
        let _ = closing.shutdown(std::net::Shutdown::Both);
    })?;
    while let Ok(message) = reader.read() {
        match message {
            Message::Text(text) => heard(text.to_string()),
            Message::Close(_) => break,
            _ => {}
        }
    }
    mailbox.close();
    thread.join().map_err(|_| io::Error::other("the page's writer failed"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Payload {
        Payload::Text(Arc::from(text))
    }

    #[test]
    fn a_slow_browser_misses_states_and_old_replies() {
        let mailbox = Mailbox::default();
        for index in 0..3 {
            mailbox.show("", text(&format!("state {index}")));
        }
        for index in 0..=REPLIES_MAX {
            mailbox.reply(&format!("reply {index}"));
        }
        assert_eq!(mailbox.dropped(), 3);
        assert_eq!(mailbox.next(), Some(text("reply 1")));
        for index in 2..=REPLIES_MAX {
            assert_eq!(mailbox.next(), Some(text(&format!("reply {index}"))));
        }
        assert_eq!(mailbox.next(), Some(text("state 2")));
        mailbox.close();
        assert_eq!(mailbox.next(), None);
    }

    #[test]
    fn each_channel_has_its_turn_and_their_number_is_limited() {
        let mailbox = Mailbox::default();
        for index in 0..=CHANNELS_MAX {
            mailbox.show(&format!("{index:04}"), text("old"));
        }
        assert_eq!(mailbox.dropped(), 1);
        assert_eq!(mailbox.next(), Some(text("old")));
        mailbox.show("0000", text("new"));
        for _ in 1..CHANNELS_MAX {
            assert_eq!(mailbox.next(), Some(text("old")));
        }
        assert_eq!(mailbox.next(), Some(text("new")));
    }
}
