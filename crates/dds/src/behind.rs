//! The nodes of ROS 2 behind other bridges of the bus, and what this bridge announces of those on its own side.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use noctule::{TypedPublisher, TypedSubscriber, WaitSet};
use noctule_bridge::behind::{self, KnownBehind, NodeBehind, NodesBehind, TOPIC};
use noctule_bridge::lane::Lane;
use noctule_bridge::orders::{Order, Orders};

use crate::shared::{RouteError, Shared};

/// The list that this bridge publishes, and those that it receives.
pub(crate) struct Behind {
    shared: Arc<Shared>,
    publisher: TypedPublisher<NodesBehind>,
    /// The list published last.
    published: Option<NodesBehind>,
    received: Arc<Received>,
    /// Thread that receives lists; it ends when dropped.
    _lane: Lane<TypedSubscriber<NodesBehind>>,
}

/// Lists of others.
#[derive(Default)]
struct Received {
    known: Mutex<KnownBehind>,
    is_new: AtomicBool,
}

impl Received {
    fn lock(&self) -> MutexGuard<'_, KnownBehind> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Behind {
    pub(crate) fn open(shared: &Arc<Shared>) -> Result<Behind, RouteError> {
        let publisher = behind::publisher(&shared.node)?;
        let received = Arc::<Received>::default();
        let (theirs, lists) = (Arc::clone(shared), Arc::clone(&received));
        let mut lane =
            Lane::start("noctule-dds-nod", move |set, orders| receive(set, &orders, &theirs, &lists))?;
        lane.add(0, behind::subscriber(&shared.node)?);
        Ok(Behind { shared: Arc::clone(shared), publisher, published: None, received, _lane: lane })
    }

    /// Publishes the list if it is another than the last one.
    pub(crate) fn publish(&mut self, nodes: Vec<NodeBehind>) {
        let list = NodesBehind::of(nodes);
        if self.published.as_ref() == Some(&list) {
            return;
        }
        if list.left_out > 0 {
            self.shared.notice_once(&format!(
                "{} nodes of ROS 2 are not shown behind other bridges: a list has room for {}",
                list.left_out,
                list.nodes.len()
            ));
        }
        match self.publisher.publish(&list) {
            Ok(()) => self.published = Some(list),
            Err(error) => {
                self.shared
                    .notice_once(&format!("nodes of ROS 2 are not shown behind other bridges: {error}"));
            }
        }
    }

    /// Whether there is something else than at the last call. Bridges that are gone are forgotten.
    pub(crate) fn has_news(&self) -> bool {
        let mut known = self.received.lock();
        // Read after the lists were taken: whose list is here has been in discovery.
        let there = self.shared.node.endpoints();
        let is_there =
            |bridge| there.iter().any(|known| known.node == bridge && known.endpoint.topic == TOPIC);
        let has_gone = known.retain(is_there);
        self.received.is_new.swap(false, Ordering::AcqRel) | has_gone
    }

    /// Nodes behind bridges that join other networks than this one.
    pub(crate) fn nodes(&self) -> Vec<NodeBehind> {
        let known = self.received.lock();
        let foreign = known.by_bridge().filter(|(bridge, _)| !self.shared.is_sibling_node(*bridge));
        foreign.map(|(_, node)| node.clone()).collect()
    }
}

/// Takes lists until it is to end, and wakes the planning thread for each that is another.
fn receive(
    mut set: WaitSet,
    orders: &Orders<TypedSubscriber<NodesBehind>>,
    shared: &Shared,
    received: &Received,
) {
    let mut subscribers = Vec::new();
    loop {
        while let Some(order) = orders.pop() {
            match order {
                Order::Start(_, subscriber) => subscribers.push(subscriber),
                Order::Stop(_, answer) => {
                    subscribers.clear();
                    // No thread may wait any more.
                    let _ = answer.try_send(());
                }
                Order::End => return,
            }
        }
        set.wait(&mut subscribers, None);
        let mut known = received.lock();
        let (before, mut is_new) = (known.refused(), false);
        subscribers.iter_mut().for_each(|subscriber| is_new |= known.take(subscriber));
        let refused = known.refused() - before;
        drop(known);
        if refused > 0 {
            shared.notice_once(&format!(
                "{refused} nodes behind other bridges are not shown: names, or too many bridges"
            ));
        }
        if is_new {
            received.is_new.store(true, Ordering::Release);
            shared.news.wake();
        }
    }
}
