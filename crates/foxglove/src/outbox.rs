//! Queue of frames for one viewer.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Samples that wait for a viewer, bytes of payload and of bookkeeping.
pub const DATA_BYTES_LIMIT: usize = 32 << 20;
/// Texts that wait; a viewer with more is disconnected.
pub const TEXTS_LIMIT: usize = 4096;
/// Memory that a sample needs beside its payload, in bytes, as it is counted.
const ITEM_BYTES: usize = 64;

/// One frame for the viewer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// A text of the protocol.
    Text(String),
    /// A message of a subscription.
    Message {
        /// Number of the subscription.
        subscription: u32,
        /// When it was received, ns since 1970.
        log_ns: u64,
        /// Its bytes, shared with other viewers.
        payload: Arc<[u8]>,
    },
    /// The time, ns since 1970.
    Time(u64),
}

/// Subscription, log time, payload.
type Waiting = (u32, u64, Arc<[u8]>);

#[derive(Debug, Default)]
struct Inside {
    texts: VecDeque<String>,
    messages: VecDeque<Waiting>,
    bytes: usize,
    time_ns: Option<u64>,
    dropped: u64,
    is_closed: bool,
}

/// A queue for one viewer: texts first, the newest time, samples in their order.
#[derive(Debug, Default)]
pub struct Outbox {
    inside: Mutex<Inside>,
    filled: Condvar,
}

impl Outbox {
    /// Adds a text; too many close the connection, because none may be left out.
    pub fn say(&self, text: String) {
        let mut inside = self.lock();
        inside.texts.push_back(text);
        inside.is_closed |= inside.texts.len() > TEXTS_LIMIT;
        self.filled.notify_one();
    }

    /// Adds a message. When there is no room, the oldest are dropped and counted.
    pub fn send(&self, subscription: u32, log_ns: u64, payload: Arc<[u8]>) {
        let mut inside = self.lock();
        inside.bytes += payload.len() + ITEM_BYTES;
        inside.messages.push_back((subscription, log_ns, payload));
        while inside.bytes > DATA_BYTES_LIMIT {
            let Some((_, _, oldest)) = inside.messages.pop_front() else { break };
            inside.bytes -= oldest.len() + ITEM_BYTES;
            inside.dropped += 1;
        }
        self.filled.notify_one();
    }

    /// Sets the time; an earlier one that was not sent is replaced.
    pub fn set_time(&self, now_ns: u64) {
        self.lock().time_ns = Some(now_ns);
        self.filled.notify_one();
    }

    /// Whether a frame waits.
    pub fn is_waiting(&self) -> bool {
        let inside = self.lock();
        !inside.texts.is_empty() || inside.time_ns.is_some() || !inside.messages.is_empty()
    }

    /// Samples that the viewer was too slow for.
    pub fn dropped(&self) -> u64 {
        self.lock().dropped
    }

    /// Ends it.
    pub fn close(&self) {
        self.lock().is_closed = true;
        self.filled.notify_all();
    }

    /// Waits for the next frame; `None` when it is closed.
    pub fn next(&self) -> Option<Frame> {
        let mut inside = self.lock();
        loop {
            if inside.is_closed {
                return None;
            }
            if let Some(text) = inside.texts.pop_front() {
                return Some(Frame::Text(text));
            }
            if let Some(now_ns) = inside.time_ns.take() {
                return Some(Frame::Time(now_ns));
            }
            if let Some((subscription, log_ns, payload)) = inside.messages.pop_front() {
                inside.bytes -= payload.len() + ITEM_BYTES;
                return Some(Frame::Message { subscription, log_ns, payload });
            }
            inside = self.filled.wait(inside).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// An addition is whole even if a thread has panicked.
    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_viewer_loses_the_oldest_samples_and_no_text() {
        let outbox = Outbox::default();
        let payload: Arc<[u8]> = vec![0; DATA_BYTES_LIMIT / 4].into();
        for number in 0..5 {
            outbox.send(number, 0, Arc::clone(&payload));
        }
        outbox.say("text".into());
        outbox.set_time(1);
        outbox.set_time(2);
        assert_eq!(outbox.dropped(), 2);
        assert_eq!(outbox.next(), Some(Frame::Text("text".into())));
        assert_eq!(outbox.next(), Some(Frame::Time(2)));
        for number in 2..5 {
            assert!(
                matches!(outbox.next(), Some(Frame::Message { subscription, .. }) if subscription == number)
            );
        }
        assert_eq!(outbox.lock().bytes, 0);
        assert!(!outbox.is_waiting());
        outbox.set_time(3);
        assert!(outbox.is_waiting());
        outbox.close();
        assert_eq!(outbox.next(), None);
    }

    #[test]
    fn too_many_texts_end_the_connection() {
        let outbox = Outbox::default();
        (0..=TEXTS_LIMIT).for_each(|_| outbox.say(String::new()));
        assert_eq!(outbox.next(), None);
    }
}
