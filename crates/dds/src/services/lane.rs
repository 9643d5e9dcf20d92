//! Threads that pass requests and replies. Each waits for as many services as the kernel waits for at once.

use std::sync::Arc;

use noctule::WaitSet;

use super::exchange::Exchange;
use super::intake::Inbox;
use crate::shared::{RouteError, Shared};
use noctule_bridge::lane::Lane;
use noctule_bridge::orders::{Order, Orders};

/// One thread, its services, and where samples from DDS wait for it.
pub(crate) struct ServicesLane {
    pub(crate) lane: Lane<Exchange>,
    pub(crate) inbox: Inbox,
}

impl ServicesLane {
    pub(crate) fn start(shared: &Arc<Shared>) -> Result<ServicesLane, RouteError> {
        let inbox = Inbox::default();
        let (shared, from_dds) = (Arc::clone(shared), inbox.clone());
        let lane = Lane::start("noctule-dds-ask", move |set, orders| {
            Work { shared, set, orders, inbox: from_dds, exchanges: Vec::new() }.run();
        })?;
        Ok(ServicesLane { lane, inbox })
    }
}

/// State of the lane's thread.
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
                        // No thread may wait any more.
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
            // A sample, or a server or a client of the bus that came or went.
            self.set.wait_for_news(&mut self.exchanges, due);
            for exchange in &mut self.exchanges {
                exchange.handle_bus(&self.shared);
            }
        }
    }
}
