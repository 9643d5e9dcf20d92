//! Waiting for many subscribers at once, and for a word from another thread.
//!
//! The kernel waits for up to 128 futexes in one call: one for each publisher, one for each subscriber's publishers
//! that come and go, one for the wake-up. Nothing is registered and no thread is started: a set is how to wait and
//! whose turn it is.
//!
//! Where all samples come from other hosts the waiting thread reads the node's socket itself, as one subscriber
//! does; then the wake-up is an empty datagram.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant as Timer};

use noctule_sys::clock::now_ns;
use noctule_sys::shared_memory::{WAIT_ANY_MAX, futex_wait, futex_wait_any, futex_wake};

use super::waiting::{HYBRID_SPIN, LOOK_AGAIN, left};
use super::{Source, Subscriber, Wait};
use crate::deadline::span;
use crate::node::Shared;

/// Waits for many subscribers at once. They are handed over at each call, and may be others each time.
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let node = noctule::Node::new("n")?;
/// # let (mut imu, mut image) = (node.subscriber("imu").open()?, node.subscriber("image").open()?);
/// let mut set = noctule::WaitSet::new(noctule::Wait::Block);
/// while let noctule::Ready::Sample(which) = set.wait(&mut [&mut imu, &mut image], None) {
///     let subscriber = if which == 0 { &mut imu } else { &mut image };
///     if let Some(sample) = subscriber.take()? {
///         println!("{}: {} bytes", subscriber.topic(), sample.len());
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct WaitSet {
    wait: Wait,
    /// Which to look at first.
    turn: usize,
    /// Value of the wake-up word that was noticed.
    woken: u32,
    wake: Arc<Wake>,
    /// For datagrams, if this set reads the socket.
    datagram: Vec<u8>,
}

/// Why a wait has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ready {
    /// The subscriber with this index has a sample. It may turn out to be older than its LIFESPAN, or overwritten: then
    /// taking it gives nothing.
    Sample(usize),
    /// A [`Waker`] was used since the last wait that returned this.
    Woken,
    /// The time is over.
    TimedOut,
}

/// Ends a wait from another thread, or from a signal handler: the next one if none is under way.
#[derive(Clone, Debug)]
pub struct Waker(Arc<Wake>);

#[derive(Debug)]
struct Wake {
    word: AtomicU32,
    /// The node whose socket the set may read. Others' it leaves to their threads.
    reads: OnceLock<Weak<Shared>>,
}

impl WaitSet {
    /// A set that waits like this; how its subscribers wait does not matter.
    pub fn new(wait: Wait) -> WaitSet {
        let wake = Wake { word: AtomicU32::new(0), reads: OnceLock::new() };
        WaitSet { wait, turn: 0, woken: 0, wake: Arc::new(wake), datagram: Vec::new() }
    }

    /// A handle that ends waits of this set, from any thread.
    pub fn waker(&self) -> Waker {
        Waker(Arc::clone(&self.wake))
    }

    /// Waits up to `timeout` until one of the subscribers has a sample; `None` waits for ever. They are looked at in
    /// turn, so that a busy one does not keep the others from being served.
    pub fn wait<S: AsMut<Subscriber>>(&mut self, subscribers: &mut [S], timeout: Option<Duration>) -> Ready {
        let mut end = None;
        loop {
            if let Some(ready) = self.look(subscribers) {
                return ready;
            }
            let Some(left) = left(timeout, &mut end) else { return Ready::TimedOut };
            if self.wait == Wait::Spin {
                self.receive(subscribers);
            } else if self.wait == Wait::Block || !self.spin(subscribers) {
                self.block(subscribers, left);
            }
        }
    }

    /// Waits up to `timeout` until there may be something to look at: a sample, a publisher that came or went, a wake-up. It may also
    /// return for no reason. For clients of services, whose calls begin and end when a server comes and goes; take from each afterwards.
    pub fn wait_for_news<S: AsMut<Subscriber>>(&mut self, subscribers: &mut [S], timeout: Option<Duration>) {
        let word = self.wake.word.load(Ordering::Acquire);
        if word != self.woken {
            self.woken = word;
        } else if !subscribers.iter_mut().any(|subscriber| subscriber.as_mut().has_news()) {
            self.block(subscribers, timeout);
        }
    }

    fn look<S: AsMut<Subscriber>>(&mut self, subscribers: &mut [S]) -> Option<Ready> {
        let word = self.wake.word.load(Ordering::Acquire);
        if word != self.woken {
            self.woken = word;
            return Some(Ready::Woken);
        }
        let count = subscribers.len();
        let start = if self.turn < count { self.turn } else { 0 };
        let at = (start..count).chain(0..start).find(|at| subscribers[*at].as_mut().is_ready())?;
        self.turn = at + 1;
        Some(Ready::Sample(at))
    }

    /// True as soon as there is something to look at.
    fn spin<S: AsMut<Subscriber>>(&mut self, subscribers: &mut [S]) -> bool {
        let end = Timer::now() + HYBRID_SPIN;
        while Timer::now() < end {
            self.receive(subscribers);
            let is_woken = self.wake.word.load(Ordering::Acquire) != self.woken;
            if is_woken || subscribers.iter_mut().any(|subscriber| subscriber.as_mut().is_ready()) {
                return true;
            }
        }
        false
    }

    /// Takes in a datagram for each subscriber that waits for some.
    fn receive<S: AsMut<Subscriber>>(&mut self, subscribers: &mut [S]) {
        for subscriber in subscribers {
            let subscriber = subscriber.as_mut();
            if subscriber.hears_network() {
                subscriber.shared.try_receive(&mut self.datagram);
            }
        }
        std::hint::spin_loop();
    }

    /// Sleeps until there is something to look at; reads the socket meanwhile if all comes from there.
    fn block<S: AsMut<Subscriber>>(&mut self, subscribers: &mut [S], timeout: Option<Duration>) {
        if let Some(shared) = self.socket_to_read(subscribers) {
            let WaitSet { wake, woken, datagram, .. } = self;
            let is_done = || {
                wake.word.load(Ordering::Acquire) != *woken
                    || subscribers.iter_mut().any(|subscriber| subscriber.as_mut().has_news())
            };
            if shared.receive_or_follow(timeout, datagram, is_done) {
                return;
            }
        }
        for_network(subscribers, Shared::begin_following);
        self.sleep(subscribers, timeout);
        // Sources come and go only while no thread sleeps, so these are the same.
        for_network(subscribers, Shared::end_following);
    }

    /// The one node from which all samples come, if they all come from other hosts.
    fn socket_to_read<S: AsMut<Subscriber>>(&self, subscribers: &mut [S]) -> Option<Arc<Shared>> {
        let shared = Arc::clone(&subscribers.first_mut()?.as_mut().shared);
        let reads = self.wake.reads.get_or_init(|| Arc::downgrade(&shared));
        let mut hears = false;
        for subscriber in subscribers {
            let subscriber = subscriber.as_mut();
            hears |= subscriber.hears_network();
            if !Arc::ptr_eq(&subscriber.shared, &shared) || subscriber.hears_memory() {
                return None;
            }
        }
        (hears && std::ptr::eq(reads.as_ptr(), Arc::as_ptr(&shared))).then_some(shared)
    }

    /// Sleeps on the rings, on changes of the sources and on the wake-up.
    fn sleep<S: AsMut<Subscriber>>(&mut self, subscribers: &mut [S], timeout: Option<Duration>) {
        if subscribers.iter_mut().all(|subscriber| subscriber.as_mut().announce_sleep()) {
            let until_ns = timeout.map(|timeout| now_ns().saturating_add(span(timeout).ns()));
            // An array, for nothing is allocated on the way of a sample.
            let mut words = [(&self.wake.word, self.woken); WAIT_ANY_MAX];
            let mut count = 1;
            for word in subscribers.iter_mut().flat_map(|subscriber| subscriber.as_mut().words()) {
                if let Some(place) = words.get_mut(count) {
                    *place = word;
                }
                count += 1;
            }
            // More publishers than the kernel waits for at once, or an old kernel: look again soon.
            if words.get(..count).is_none_or(|words| futex_wait_any(words, until_ns).is_err()) {
                let soon = timeout.map_or(LOOK_AGAIN, |timeout| timeout.min(LOOK_AGAIN));
                futex_wait(&self.wake.word, self.woken, Some(soon));
            }
        }
        subscribers.iter_mut().for_each(|subscriber| subscriber.as_mut().end_sleep());
    }
}

/// Calls for the node of each subscriber that waits for other hosts.
fn for_network<S: AsMut<Subscriber>>(subscribers: &mut [S], call: fn(&Shared)) {
    let subscribers = subscribers.iter_mut().map(AsMut::as_mut);
    subscribers
        .filter(|subscriber| subscriber.hears_network())
        .for_each(|subscriber| call(&subscriber.shared));
}

impl Waker {
    /// Ends the wait.
    pub fn wake(&self) {
        self.0.word.fetch_add(1, Ordering::Release);
        futex_wake(&self.0.word);
        // After the word: a set that begins to read afterwards has seen it.
        if let Some(shared) = self.0.reads.get().and_then(Weak::upgrade) {
            shared.wake_reader();
        }
    }
}

/// Readiness of one subscriber, for the set.
impl Subscriber {
    fn is_ready(&mut self) -> bool {
        if self.topic.version.load(Ordering::Acquire) != self.version {
            self.take_changes();
        }
        let is_ready = self.sources.list.iter_mut().any(|source| source.reader.is_ready());
        while !is_ready && self.sources.retire() {
            self.settle();
        }
        is_ready
    }

    pub(super) fn has_news(&mut self) -> bool {
        let changed = self.topic.version.load(Ordering::Acquire) != self.version;
        changed || self.sources.list.iter_mut().any(|source| source.reader.is_ready())
    }

    fn hears_network(&self) -> bool {
        self.sources.list.iter().any(Source::is_on_socket)
    }

    fn hears_memory(&self) -> bool {
        self.sources.list.iter().any(|source| !source.is_on_socket())
    }

    /// False if there is something to look at instead of sleeping.
    fn announce_sleep(&mut self) -> bool {
        self.sources.list.iter_mut().all(Source::announce_sleep)
    }

    /// Futex words to sleep on, with their expected values.
    fn words(&self) -> impl Iterator<Item = (&AtomicU32, u32)> {
        let rings = self.sources.list.iter().map(|source| (source.reader.futex_word(), source.sleeps_on));
        std::iter::once((&self.topic.version, self.version)).chain(rings)
    }

    fn end_sleep(&mut self) {
        self.sources.list.iter_mut().for_each(|source| source.reader.end_wait());
    }
}
