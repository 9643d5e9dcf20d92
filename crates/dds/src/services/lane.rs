//! Threads that pass requests and replies. Each waits for as many services as the kernel waits for at once.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread::{self, JoinHandle};

use noctule::{Ready, Wait, WaitSet, Waker};

use super::exchange::Exchange;
use super::intake::Inbox;
use crate::orders::{ANSWERED_WITHIN, Order, Orders};
use crate::shared::{RouteError, Shared};
use crate::to_dds::TOPICS_PER_THREAD;

/// One thread and its services.
pub(crate) struct Lane {
    numbers: BTreeSet<u32>,
    waker: Waker,
    orders: Arc<Orders<Exchange>>,
    inbox: Inbox,
    thread: Option<JoinHandle<()>>,
}

impl Lane {
    pub(crate) fn start(shared: &Arc<Shared>) -> Result<Lane, RouteError> {
        let set = WaitSet::new(Wait::Block);
        let (waker, orders) = (set.waker(), Arc::<Orders<Exchange>>::default());
        let inbox = Inbox::new(set.waker());
        let (shared, theirs, from_dds) = (Arc::clone(shared), Arc::clone(&orders), inbox.clone());
        let mut work = Work { shared, set, orders: theirs, inbox: from_dds, exchanges: Vec::new() };
        let thread = thread::Builder::new().name("noctule-dds-ask".to_owned());
        let thread = thread.spawn(move || work.run()).map_err(RouteError::System)?;
        Ok(Lane { numbers: BTreeSet::new(), waker, orders, inbox, thread: Some(thread) })
    }

    pub(crate) fn has_room(&self) -> bool {
        self.numbers.len() < TOPICS_PER_THREAD
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    pub(crate) fn has(&self, number: u32) -> bool {
        self.numbers.contains(&number)
    }

    pub(crate) fn inbox(&self) -> Inbox {
        self.inbox.clone()
    }

    pub(crate) fn add(&mut self, number: u32, exchange: Exchange) {
        self.numbers.insert(number);
        self.order(Order::Start(number, exchange));
    }

    /// Leaves off; nothing passes any more when this returns.
    pub(crate) fn stop(&mut self, number: u32) {
        let (answer, answered) = sync_channel(1);
        self.order(Order::Stop(number, answer));
        // Late only by a bug, which has been printed then.
        let _ = answered.recv_timeout(ANSWERED_WITHIN);
        self.numbers.remove(&number);
    }

    fn order(&self, order: Order<Exchange>) {
        self.orders.push(order);
        self.waker.wake();
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        self.order(Order::End);
        if let Some(thread) = self.thread.take() {
            // It panics only by a bug, which has been printed then.
            let _ = thread.join();
        }
    }
}

/// What a thread works with.
struct Work {
    shared: Arc<Shared>,
    set: WaitSet,
    orders: Arc<Orders<Exchange>>,
    inbox: Inbox,
    exchanges: Vec<Exchange>,
}

impl Work {
    fn run(&mut self) {
        loop {
            while let Some(order) = self.orders.pop() {
                match order {
                    Order::Start(_, exchange) => self.exchanges.push(exchange),
                    Order::Stop(number, answer) => {
                        if let Some(at) = self.exchanges.iter().position(|one| one.number() == number) {
                            self.exchanges.swap_remove(at).close(&self.shared);
                        }
                        // Nobody may wait any more.
                        let _ = answer.try_send(());
                    }
                    Order::End => return,
                }
            }
            while let Some(arrived) = self.inbox.pop() {
                let of = self.exchanges.iter_mut().find(|exchange| exchange.number() == arrived.number);
                if let Some(exchange) = of {
                    exchange.handle_dds(&self.shared, arrived);
                }
            }
            let due = self.exchanges.iter().filter_map(Exchange::due).min();
            if let Ready::Sample(at) = self.set.wait(&mut self.exchanges, due) {
                self.exchanges[at].handle_bus(&self.shared);
            }
            for exchange in self.exchanges.iter_mut().filter(|exchange| exchange.due().is_some()) {
                exchange.handle_time(&self.shared);
            }
        }
    }
}
