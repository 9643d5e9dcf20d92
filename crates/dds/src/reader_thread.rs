//! A thread that waits for many readers in DDS at once and takes from each that has something in turn.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::cyclone::{Reader, ReaderSet};
use crate::shared::{RouteError, Shared};
use noctule_bridge::orders::{ANSWERED_WITHIN, Order, Orders};

/// The wait ends at the latest after this time; orders end it at once.
const WAIT: Duration = Duration::from_secs(3600);

/// A reader, and what becomes of its samples.
pub(crate) trait Intake: Send + 'static {
    fn reader(&self) -> &Reader;

    /// Takes what is there, up to as much as is taken at once: then it is another's turn. `payload` is room that all share.
    fn take(&mut self, number: u32, shared: &Shared, payload: &mut Vec<u8>);

    /// Says, once, what went wrong with it.
    fn notice(&self, shared: &Shared, text: &str);
}

/// The thread; ends when dropped.
pub(crate) struct ReaderThread<I> {
    set: Arc<ReaderSet>,
    orders: Arc<Orders<I>>,
    thread: Option<JoinHandle<()>>,
}

impl<I: Intake> ReaderThread<I> {
    pub(crate) fn start(name: &str, shared: &Arc<Shared>) -> Result<ReaderThread<I>, RouteError> {
        let set = Arc::new(shared.participant.reader_set()?);
        let orders = Arc::<Orders<I>>::default();
        let (ours, theirs, shared) = (Arc::clone(&set), Arc::clone(&orders), Arc::clone(shared));
        let thread = thread::Builder::new().name(name.to_owned());
        let thread = thread.spawn(move || run(&shared, &ours, &theirs)).map_err(RouteError::System)?;
        Ok(ReaderThread { set, orders, thread: Some(thread) })
    }

    pub(crate) fn add(&self, number: u32, intake: I) {
        self.orders.push(Order::Start(number, intake));
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

impl<I> Drop for ReaderThread<I> {
    fn drop(&mut self) {
        self.orders.push(Order::End);
        self.set.wake();
        if let Some(thread) = self.thread.take() {
            // It panics only by a bug, which has been printed then.
            let _ = thread.join();
        }
    }
}

fn run<I: Intake>(shared: &Shared, set: &ReaderSet, orders: &Orders<I>) {
    let (mut intakes, mut ready, mut payload) = (BTreeMap::<u32, I>::new(), Vec::new(), Vec::new());
    loop {
        set.wait(intakes.len(), WAIT, &mut ready);
        while let Some(order) = orders.pop() {
            match order {
                Order::Start(number, intake) => match set.add(intake.reader(), number) {
                    Ok(()) => _ = intakes.insert(number, intake),
                    Err(error) => intake.notice(shared, &error.to_string()),
                },
                Order::Stop(number, answer) => {
                    intakes.remove(&number);
                    // No thread may wait any more.
                    let _ = answer.try_send(());
                }
                Order::End => return,
            }
        }
        for number in &ready {
            if let Some(intake) = intakes.get_mut(number) {
                intake.take(*number, shared, &mut payload);
            }
        }
    }
}
