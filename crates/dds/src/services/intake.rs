//! Requests and replies from DDS: the thread of their readers hands what it takes to the service's lane.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use noctule::Waker;

use super::status::ServiceCounters;
use crate::counters::count;
use crate::cyclone::{DdsError, Reader};
use crate::reader_thread::Intake;
use crate::shared::Shared;

/// Samples from DDS that wait in one lane; more are left out and counted.
const INBOX_MAX: usize = 1024;

/// A sample that came from DDS.
pub(crate) struct Arrived {
    /// Number of the service.
    pub(crate) number: u32,
    pub(crate) bytes: Vec<u8>,
    pub(crate) stamp_ns: i64,
    /// Its writer, unless it is gone.
    pub(crate) participant: Option<[u8; 12]>,
    /// The client's own name for itself, if it has one.
    pub(crate) client: Option<Arc<str>>,
}

/// Where a lane's samples from DDS wait.
#[derive(Clone, Default)]
pub(crate) struct Inbox {
    waiting: Arc<Mutex<VecDeque<Arrived>>>,
}

impl Inbox {
    /// False if there is no room.
    fn push(&self, arrived: Arrived) -> bool {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() >= INBOX_MAX {
            return false;
        }
        waiting.push_back(arrived);
        true
    }

    pub(crate) fn pop(&self) -> Option<Arrived> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}

/// A service that is read in DDS.
pub(crate) struct Tap {
    pub(crate) reader: Reader,
    pub(crate) inbox: Inbox,
    /// Waker of the lane.
    pub(crate) waker: Waker,
    pub(crate) counters: Arc<ServiceCounters>,
}

impl Intake for Tap {
    fn reader(&self) -> &Reader {
        &self.reader
    }

    fn take(&mut self, number: u32, shared: &Shared, _payload: &mut Vec<u8>) {
        if let Err(error) = self.hand_over(number) {
            self.notice(shared, &error.to_string());
        }
    }

    fn notice(&self, shared: &Shared, text: &str) {
        shared.notice_once(&format!("a service: {text}"));
    }
}

impl Tap {
    fn hand_over(&mut self, number: u32) -> Result<(), DdsError> {
        let Tap { reader, inbox, waker, counters } = self;
        let before = reader.overwritten();
        reader.take(|sample| {
            let arrived = Arrived {
                number,
                bytes: sample.bytes.to_vec(),
                stamp_ns: sample.stamp_ns,
                participant: sample.participant,
                client: sample.client.clone(),
            };
            if !inbox.push(arrived) {
                count(&counters.full, 1);
            }
        })?;
        count(&counters.full, reader.overwritten() - before);
        waker.wake();
        Ok(())
    }
}
