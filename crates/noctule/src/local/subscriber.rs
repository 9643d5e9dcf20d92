//! The reading end of a local topic.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use noctule_shm_ring::{
    Alarm, Borrowed, LayoutError, Memory, ReadError, Reader, ReaderCounters, Sample, StartAt,
};
use noctule_sys::local_socket::LocalSocket;
use noctule_sys::sealed_memory::{SealedMemory, WrittenBy};
use noctule_sys::{clock, shared_memory};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};

use super::handover::{Answer, HandoverError, PACKET_BYTES_MAX, Request};
use super::publisher::Access;

/// How long a writer may take to answer. Its thread does nothing but answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// Polls of the ring that a hybrid wait makes between two looks at the clock.
const POLLS_PER_LOOK: u32 = 64;

/// Why a topic cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum LocalError {
    /// A call of the system failed.
    #[error("cannot {what}: {cause}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the kernel says.
        cause: io::Error,
    },
    /// Nobody publishes there.
    #[error("nobody publishes under \"{0}\"; start the publisher, or compare the address")]
    NobodyThere(String),
    /// The writer refuses, or is not to be believed.
    #[error("topic \"{topic}\": {why}")]
    Refused {
        /// Name of the topic.
        topic: String,
        /// One sentence.
        why: String,
    },
    /// The memory is not what it should be.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The packets are not what they should be.
    #[error(transparent)]
    Handover(#[from] HandoverError),
}

/// What a subscriber wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interest {
    /// What the bytes must mean.
    pub type_hash: u64,
    /// How many samples to borrow at once; 0 to read by copy only.
    pub pins: u32,
    /// Where to begin.
    pub start: StartAt,
    /// Whose topics to believe.
    pub access: Access,
}

/// How to wait for a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waiting {
    /// Polls without pause.
    Spin,
    /// Sleeps in the kernel.
    Block,
    /// Polls for so long, then sleeps.
    Hybrid(Duration),
}

/// Reads one topic of one writer on this host.
#[derive(Debug)]
pub struct Subscriber {
    reader: Reader,
    watch: Watch,
}

impl Subscriber {
    /// Connects to the publisher that listens under `address`.
    pub fn connect(address: &str, topic: &str, interest: &Interest) -> Result<Self, LocalError> {
        let of = |what: &'static str| move |cause| LocalError::System { what, cause };
        let refused = |why| LocalError::Refused { topic: topic.to_owned(), why };
        let socket =
            LocalSocket::connect(address.as_bytes(), ANSWER_WITHIN).map_err(|cause| match cause.kind() {
                io::ErrorKind::ConnectionRefused => LocalError::NobodyThere(address.to_owned()),
                _ => of("connect to the publisher")(cause),
            })?;
        interest.access.check(&socket).map_err(of("ask who publishes"))?.map_err(refused)?;
        let request = Request { topic: topic.to_owned(), type_hash: interest.type_hash, pins: interest.pins };
        let (pins, data, control) = ask(&socket, &request)?;
        let data = SealedMemory::open(data, WrittenBy::Creator).map_err(of("map the ring"))?;
        let control = SealedMemory::open(control, WrittenBy::Holder).map_err(of("map the control page"))?;
        let (data, control) = (Memory::from(data), Memory::from(control));
        let reader = Reader::open(data, control, pins, interest.type_hash, interest.start)?;
        let watch = Watch::start(socket, reader.alarm()).map_err(of("watch the publisher"))?;
        Ok(Self { reader, watch })
    }

    /// Copies the next message, in order, to the start of `buffer`. `None`: not there yet.
    #[inline]
    pub fn take_next(&mut self, buffer: &mut [u8]) -> Result<Option<Sample>, ReadError> {
        self.reader.take_next(buffer)
    }

    /// Copies the newest message to the start of `buffer`. `None`: nothing new.
    #[inline]
    pub fn take_latest(&mut self, buffer: &mut [u8]) -> Result<Option<Sample>, ReadError> {
        self.reader.take_latest(buffer)
    }

    /// Lends the next message, in order, where it lies. `None`: not there yet.
    pub fn borrow_next(&mut self) -> Result<Option<Borrowed>, ReadError> {
        self.reader.borrow_next()
    }

    /// Lends the newest message where it lies. `None`: nothing new.
    pub fn borrow_latest(&mut self) -> Result<Option<Borrowed>, ReadError> {
        self.reader.borrow_latest()
    }

    /// Waits until there is a message, the publisher is gone, the time is over, or for no reason:
    /// look, and wait again. Without a timeout, sleeping sets no timer, which would cost 0.3 µs.
    pub fn wait(&mut self, waiting: Waiting, timeout: Option<Duration>) {
        let spin_for = match waiting {
            Waiting::Block => Some(Duration::ZERO),
            Waiting::Hybrid(spin_for) => Some(timeout.map_or(spin_for, |timeout| spin_for.min(timeout))),
            Waiting::Spin => timeout,
        };
        if spin_for != Some(Duration::ZERO) && self.spin(spin_for) || waiting == Waiting::Spin {
            return;
        }
        if !self.publisher_is_gone() {
            self.reader.block(timeout);
        }
    }

    /// Whether the publisher has closed or died. What it left in the ring can still be read.
    pub fn publisher_is_gone(&self) -> bool {
        self.watch.gone()
    }

    /// What this reader has met.
    pub fn counters(&self) -> ReaderCounters {
        self.reader.counters()
    }

    /// Polls for so long; whether that ended it.
    fn spin(&mut self, spin_for: Option<Duration>) -> bool {
        let limit_ns = spin_for.map_or(i64::MAX, |time| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX));
        let until_ns = clock::now_ns().saturating_add(limit_ns);
        loop {
            for _ in 0..POLLS_PER_LOOK {
                if self.reader.is_ready() {
                    return true;
                }
                std::hint::spin_loop();
            }
            if self.publisher_is_gone() {
                return true;
            }
            if clock::now_ns() >= until_ns {
                return false;
            }
        }
    }
}

/// Sleeps until one of several subscribers has a message or lost its publisher, the time is over, or
/// for no reason.
///
/// # Errors
/// `Unsupported` before Linux 5.16; `InvalidInput` for none, or more than 128 subscribers.
pub fn wait_any(subscribers: &mut [&mut Subscriber], timeout: Option<Duration>) -> io::Result<()> {
    let timeout_ns = timeout.map(|timeout| i64::try_from(timeout.as_nanos()).unwrap_or(i64::MAX));
    let until_ns = timeout_ns.map(|timeout_ns| clock::now_ns().saturating_add(timeout_ns));
    let mut expected = Vec::with_capacity(subscribers.len());
    for subscriber in subscribers.iter_mut() {
        let sleepy = if subscriber.publisher_is_gone() { None } else { subscriber.reader.begin_wait() };
        match sleepy {
            Some(word) => expected.push(word),
            None => break,
        }
    }
    let mut result = Ok(());
    if expected.len() == subscribers.len() {
        let words = subscribers.iter().zip(&expected);
        let words: Vec<_> = words.map(|(one, expected)| (one.reader.futex_word(), *expected)).collect();
        result = shared_memory::futex_wait_any(&words, until_ns);
    }
    for subscriber in subscribers.iter_mut().take(expected.len()) {
        subscriber.reader.end_wait();
    }
    result
}

fn ask(socket: &LocalSocket, request: &Request) -> Result<(u32, OwnedFd, OwnedFd), LocalError> {
    let of = |what: &'static str| move |cause| LocalError::System { what, cause };
    let refused = |why: String| LocalError::Refused { topic: request.topic.clone(), why };
    socket.send(&request.emit()?, &[]).map_err(of("ask the publisher"))?;
    let mut buffer = [0; PACKET_BYTES_MAX];
    let packet = socket.receive(&mut buffer).map_err(of("hear the publisher's answer"))?;
    if packet.length_bytes == 0 {
        return Err(refused("the publisher closed the connection; try again".into()));
    }
    let pins = match Answer::parse(&buffer[..packet.length_bytes])? {
        Answer::Refused(why) => return Err(refused(why)),
        Answer::Accepted { pins } => pins,
    };
    let mut descriptors = packet.descriptors.into_iter();
    match (descriptors.next(), descriptors.next(), packet.truncated) {
        (Some(data), Some(control), false) => Ok((pins, data, control)),
        _ => Err(refused("the publisher's answer came without its memory; try again".into())),
    }
}

/// A thread that sleeps on the connection, and wakes the reader when it ends: a futex alone would
/// never tell that its writer is dead.
#[derive(Debug)]
struct Watch {
    state: Arc<WatchState>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct WatchState {
    gone: AtomicBool,
    /// The reader has seen that its writer is gone.
    noticed: AtomicBool,
    stop: OwnedFd,
}

impl Watch {
    fn start(socket: LocalSocket, alarm: Alarm) -> io::Result<Self> {
        let stop = eventfd(0, EventfdFlags::CLOEXEC)?;
        let state = WatchState { gone: AtomicBool::new(false), noticed: AtomicBool::new(false), stop };
        let state = Arc::new(state);
        let watched = Arc::clone(&state);
        let thread = std::thread::Builder::new().name("watch publisher".into());
        let thread = thread.spawn(move || watched.watch(&socket, &alarm))?;
        Ok(Self { state, thread: Some(thread) })
    }

    #[inline]
    fn gone(&self) -> bool {
        let gone = self.state.gone.load(Ordering::Acquire);
        if gone {
            self.state.noticed.store(true, Ordering::Relaxed);
        }
        gone
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // Cannot fail: the counter of a fresh eventfd is far from full.
        let _ = rustix::io::write(&self.state.stop, &1u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl WatchState {
    fn watch(&self, socket: &LocalSocket, alarm: &Alarm) {
        loop {
            let mut watched = [PollFd::new(&self.stop, PollFlags::IN), PollFd::new(socket, PollFlags::IN)];
            // An error is a signal, or memory that is short: look again.
            let _ = poll(&mut watched, None);
            if !watched[0].revents().is_empty() {
                return;
            }
            // After its answer a writer says nothing; whatever comes is the end.
            if !watched[1].revents().is_empty() {
                break;
            }
        }
        self.gone.store(true, Ordering::Release);
        // A reader that looked just before goes to sleep just after the first alarm.
        let mut pause = Duration::from_millis(1);
        while !self.noticed.load(Ordering::Relaxed) {
            alarm.wake();
            let pause_ns = i64::try_from(pause.as_nanos()).unwrap_or(i64::MAX);
            let mut stop = [PollFd::new(&self.stop, PollFlags::IN)];
            if poll(&mut stop, Some(&clock::timespec(pause_ns))).is_ok_and(|ready| ready > 0) {
                return;
            }
            pause = (pause * 2).min(Duration::from_secs(1));
        }
    }
}
