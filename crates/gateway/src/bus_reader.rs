//! The thread of a line that waits for all its clients' readers at once.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use noctule::{Ready, Subscriber, Wait, WaitSet, Waker};
use noctule_xrce::{EndpointId, Sample};

use crate::inlet::{Inlet, without_encapsulation};

/// Order to the thread. As many wait at most as clients have readers.
enum Order {
    Start(EndpointId, Box<Subscriber>),
    Stop(EndpointId),
    End,
}

/// The thread, which sleeps until a sample or an order comes.
#[derive(Debug)]
pub(crate) struct BusReader {
    orders: Sender<Order>,
    waker: Waker,
    thread: JoinHandle<()>,
}

impl BusReader {
    /// Starts it without readers.
    ///
    /// # Errors
    /// There is no thread to be had.
    pub(crate) fn start(line: Arc<dyn Inlet>) -> std::io::Result<BusReader> {
        let set = WaitSet::new(Wait::Block);
        let (waker, (orders, taken)) = (set.waker(), channel());
        let thread = thread::Builder::new().name("reads the bus".into());
        let thread = thread.spawn(move || run(set, &taken, &line))?;
        Ok(BusReader { orders, waker, thread })
    }

    /// From now on samples of this reader reach the line.
    pub(crate) fn add(&self, endpoint: EndpointId, subscriber: Subscriber) {
        self.order(Order::Start(endpoint, Box::new(subscriber)));
    }

    /// Closes a reader. A sample that is on its way may still be delivered: its client drops it, because its object is gone.
    pub(crate) fn remove(&self, endpoint: EndpointId) {
        self.order(Order::Stop(endpoint));
    }

    /// Ends the thread and waits for it. The caller must not hold what the line's `deliver` waits for.
    pub(crate) fn end(self) {
        self.order(Order::End);
        // It panics only by a bug, which has been printed then.
        let _ = self.thread.join();
    }

    fn order(&self, order: Order) {
        // A thread that has ended by a bug takes none.
        let _ = self.orders.send(order);
        self.waker.wake();
    }
}

/// A client's reader as the thread has it.
struct Reader {
    endpoint: EndpointId,
    subscriber: Box<Subscriber>,
    /// Samples that it had missed when they were counted last.
    missed: u64,
}

impl AsMut<Subscriber> for Reader {
    fn as_mut(&mut self) -> &mut Subscriber {
        &mut self.subscriber
    }
}

fn run(mut set: WaitSet, orders: &Receiver<Order>, line: &Arc<dyn Inlet>) {
    let mut readers: Vec<Reader> = Vec::new();
    loop {
        for order in orders.try_iter() {
            match order {
                Order::Start(endpoint, subscriber) => {
                    readers.push(Reader { endpoint, subscriber, missed: 0 })
                }
                Order::Stop(endpoint) => readers.retain(|reader| reader.endpoint != endpoint),
                Order::End => return,
            }
        }
        if let Ready::Sample(at) = set.wait(&mut readers, None) {
            readers[at].pass_on(line);
        }
    }
}

impl Reader {
    fn pass_on(&mut self, line: &Arc<dyn Inlet>) {
        let taken = self.subscriber.take();
        let before = std::mem::replace(&mut self.missed, self.subscriber.counters().missed);
        line.count_missed(self.missed - before);
        let bytes = match taken {
            Ok(Some(sample)) => sample.to_vec(),
            Ok(None) => return,
            Err(error) => return line.notice_once(error.to_string()),
        };
        match without_encapsulation(&bytes) {
            Some((body, is_little_endian)) => {
                Arc::clone(line).deliver(self.endpoint, Sample { body: body.into(), is_little_endian });
            }
            None => line.notice_once(format!(
                "topic {} carries samples that are no CDR of version 1, which no client can read",
                self.subscriber.topic()
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Condvar, Mutex};
    use std::time::Duration;

    use noctule::{Node, Publisher};
    use noctule_xrce::{ClientKey, ObjectId};

    use super::*;

    /// Between two looks at what the thread does.
    const LOOK: Duration = Duration::from_millis(10);

    type Body = (EndpointId, Vec<u8>);

    #[derive(Default)]
    struct Seen {
        samples: Mutex<Vec<Body>>,
        notices: Mutex<Vec<String>>,
        changed: Condvar,
    }

    impl Inlet for Seen {
        fn deliver(self: Arc<Self>, endpoint: EndpointId, sample: Sample) {
            self.samples.lock().unwrap().push((endpoint, sample.body.to_vec()));
            self.changed.notify_all();
        }

        fn count_missed(&self, _: u64) {}

        fn count_unanswered(&self, _: u64) {}

        fn notice_once(&self, notice: String) {
            self.notices.lock().unwrap().push(notice);
        }
    }

    impl Seen {
        /// Publishes again and again until `is_so`: readers are found at their own time.
        fn until(&self, publisher: &mut Publisher, bytes: &[u8], is_so: impl Fn(&Seen) -> bool) {
            while !is_so(self) {
                publisher.publish(bytes).unwrap();
                drop(self.changed.wait_timeout(self.samples.lock().unwrap(), LOOK).unwrap());
            }
        }
    }

    fn endpoint(number: u8) -> EndpointId {
        EndpointId { client: ClientKey([1, 2, 3, 4]), object: ObjectId([0, number]), serial: 0 }
    }

    #[test]
    fn readers_come_and_go_while_the_thread_sleeps_and_its_end_is_waited_for() {
        let domain = 1_000 + std::process::id() % 4_000;
        let node = Node::builder("bus reader").domain(domain).open().unwrap();
        let seen = Arc::new(Seen::default());
        let reader = BusReader::start(Arc::<Seen>::clone(&seen)).unwrap();
        let mut publishers = [0u8, 1].map(|number| {
            let topic = format!("topic_{number}");
            reader.add(endpoint(number), node.subscriber(&topic).open().unwrap());
            node.publisher(&topic).open().unwrap()
        });
        for (number, publisher) in (0..).zip(&mut publishers) {
            let sample = (endpoint(number), vec![number; 4]);
            let has_come = |seen: &Seen| seen.samples.lock().unwrap().contains(&sample);
            seen.until(publisher, &[&[0, 1, 0, 0], [number; 4].as_slice()].concat(), has_come);
        }
        let is_named = |seen: &Seen| !seen.notices.lock().unwrap().is_empty();
        seen.until(&mut publishers[0], b"plain text", is_named);
        assert!(seen.notices.lock().unwrap()[0].contains("topic_0 carries samples that are no CDR"));
        reader.remove(endpoint(0));
        while publishers[0].readers() > 0 {
            drop(seen.changed.wait_timeout(seen.samples.lock().unwrap(), LOOK).unwrap());
        }
        assert_eq!(publishers[1].readers(), 1, "the other reader stays");
        reader.end();
        assert_eq!(Arc::strong_count(&seen), 1, "the thread holds the line no more");
    }
}
