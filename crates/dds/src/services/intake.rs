//! Requests and replies from DDS: one thread, which waits for the readers of all services at once and hands what it takes to the
//! service's lane.

use std::collections::{BTreeMap, VecDeque};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use noctule::Waker;

use super::status::ServiceCounters;
use crate::counters::count;
use crate::cyclone::{DdsError, Reader, ReaderSet};
use crate::orders::{ANSWERED_WITHIN, Order, Orders};
use crate::shared::{RouteError, Shared};

/// The wait ends at the latest after this time; orders end it at once.
const WAIT: Duration = Duration::from_secs(3600);
/// Samples from DDS that wait in one lane; more are left out and counted.
const INBOX_MAX: usize = 1024;

/// A sample that came from DDS.
pub(crate) struct Arrived {
    /// Of the service.
    pub(crate) number: u32,
    pub(crate) bytes: Vec<u8>,
    pub(crate) stamp_ns: i64,
    /// Who wrote it, unless it is gone.
    pub(crate) participant: Option<[u8; 12]>,
    /// The client's own name for itself, if it has one.
    pub(crate) client: Option<Arc<str>>,
}

/// Where a lane's samples from DDS wait.
#[derive(Clone)]
pub(crate) struct Inbox {
    waiting: Arc<Mutex<VecDeque<Arrived>>>,
    waker: Waker,
}

impl Inbox {
    pub(crate) fn new(waker: Waker) -> Inbox {
        Inbox { waiting: Arc::default(), waker }
    }

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
    pub(crate) counters: Arc<ServiceCounters>,
}

/// The thread; ends when dropped.
pub(crate) struct Intake {
    set: Arc<ReaderSet>,
    orders: Arc<Orders<Tap>>,
    thread: Option<JoinHandle<()>>,
}

impl Intake {
    pub(crate) fn start(shared: &Arc<Shared>) -> Result<Intake, RouteError> {
        let set = Arc::new(shared.participant.reader_set()?);
        let orders = Arc::<Orders<Tap>>::default();
        let (ours, theirs, shared) = (Arc::clone(&set), Arc::clone(&orders), Arc::clone(shared));
        let thread = thread::Builder::new().name("noctule-dds-srv".to_owned());
        let thread = thread.spawn(move || work(&shared, &ours, &theirs)).map_err(RouteError::System)?;
        Ok(Intake { set, orders, thread: Some(thread) })
    }

    pub(crate) fn add(&self, number: u32, tap: Tap) {
        self.orders.push(Order::Start(number, tap));
        self.set.wake();
    }

    /// Leaves off; nothing is taken any more when this returns.
    pub(crate) fn stop(&self, number: u32) {
        let (answer, answered) = sync_channel(1);
        self.orders.push(Order::Stop(number, answer));
        self.set.wake();
        // Late only by a bug, which has been printed then.
        let _ = answered.recv_timeout(ANSWERED_WITHIN);
    }
}

impl Drop for Intake {
    fn drop(&mut self) {
        self.orders.push(Order::End);
        self.set.wake();
        if let Some(thread) = self.thread.take() {
            // It panics only by a bug, which has been printed then.
            let _ = thread.join();
        }
    }
}

fn work(shared: &Shared, set: &ReaderSet, orders: &Orders<Tap>) {
    let (mut taps, mut ready) = (BTreeMap::<u32, Tap>::new(), Vec::new());
    loop {
        set.wait(taps.len(), WAIT, &mut ready);
        while let Some(order) = orders.pop() {
            match order {
                Order::Start(number, tap) => match set.add(&tap.reader, number) {
                    Ok(()) => _ = taps.insert(number, tap),
                    Err(error) => shared.notice_once(&format!("a service: {error}")),
                },
                Order::Stop(number, answer) => {
                    taps.remove(&number);
                    // Nobody may wait any more.
                    let _ = answer.try_send(());
                }
                Order::End => return,
            }
        }
        for number in &ready {
            let Some(tap) = taps.get_mut(number) else { continue };
            if let Err(error) = tap.take(*number) {
                shared.notice_once(&format!("a service: {error}"));
            }
        }
    }
}

impl Tap {
    fn take(&mut self, number: u32) -> Result<(), DdsError> {
        let Tap { reader, inbox, counters } = self;
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
        inbox.waker.wake();
        Ok(())
    }
}
