//! Callbacks: one thread, the user's, waits for many subscribers and calls for each sample.
//!
//! An executor in the sense of ROS 2. Callbacks run one after the other on the thread that spins, so they need no locks among
//! themselves; a program that needs two at a time has two dispatchers.

use std::any::Any;
use std::fmt;
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use noctule_formats::Message;
use noctule_shm_ring::ReadError;

use crate::error::{ReceiveError, TakeError};
use crate::sample::Sample;
use crate::subscriber::{Ready, Subscriber, TypedSample, TypedSubscriber, Wait, WaitSet, Waker};

/// A callback whose samples are all held elsewhere is asked again after this.
const HELD_PAUSE: Duration = Duration::from_millis(1);

/// Calls what was registered for each sample that comes.
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let node = noctule::Node::new("listener")?;
/// let mut dispatcher = noctule::Dispatcher::new(noctule::Wait::Block);
/// dispatcher.on_sample(node.subscriber("imu").open()?, |sample| println!("imu {:?}", sample.age()));
/// dispatcher.on_sample(node.subscriber("image").open()?, |sample| println!("{} bytes", sample.len()));
/// dispatcher.spin(); // until dispatcher.stopper().stop() is called somewhere
/// # Ok(())
/// # }
/// ```
pub struct Dispatcher<'a> {
    set: WaitSet,
    callbacks: Vec<Callback<'a>>,
    on_error: OnError<'a>,
    is_stopped: Arc<AtomicBool>,
}

/// An endpoint that may be given a callback: a [`Subscriber`] or a [`TypedSubscriber`].
pub trait Receive: AsMut<Subscriber> {
    /// The argument of the callback.
    type Sample;

    /// The next one, if there is one.
    ///
    /// # Errors
    /// As the subscriber's own `take`.
    fn take_sample(&mut self) -> Result<Option<Self::Sample>, ReceiveError>;
}

/// The result of [`Dispatcher::spin_once`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpinResult {
    /// A callback was called, or an error was reported.
    Called,
    /// The time is over.
    TimedOut,
    /// The dispatcher was stopped.
    Stopped,
}

/// Why a callback was not called, or will not be any more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DispatchError {
    /// A sample was not received. The next ones are.
    #[error(transparent)]
    Receive(#[from] ReceiveError),
    /// The callback panicked. What it left half done is not touched again: its subscriber is closed. The others go on.
    #[error("topic {topic}: the callback panicked ({message}); it is not called any more")]
    Panicked {
        /// The topic.
        topic: String,
        /// The panic's message.
        message: String,
    },
}

/// Stops a [`Dispatcher`] for good, from any thread or from a signal handler.
#[derive(Clone, Debug)]
pub struct Stopper {
    is_stopped: Arc<AtomicBool>,
    waker: Waker,
}

type OnError<'a> = Box<dyn FnMut(&DispatchError) + Send + 'a>;

/// A subscriber and what to do with its samples.
struct Callback<'a> {
    task: Box<dyn Task + 'a>,
    /// The last error reported of it is that all its samples are held.
    is_starved: bool,
}

/// A callback without its types.
trait Task: AsMut<Subscriber> + Send {
    fn run(&mut self) -> Result<(), ReceiveError>;
}

struct ForEach<S, F> {
    source: S,
    call: F,
}

impl<'a> Dispatcher<'a> {
    /// A dispatcher without callbacks that waits like this.
    pub fn new(wait: Wait) -> Dispatcher<'a> {
        Dispatcher {
            set: WaitSet::new(wait),
            callbacks: Vec::new(),
            // So that none is silent. If standard error is closed the error is lost.
            on_error: Box::new(|error| drop(writeln!(io::stderr(), "noctule: {error}"))),
            is_stopped: Arc::new(AtomicBool::new(false)),
        }
    }

    /// From now on `call` is called for each sample of `subscriber`, which is closed with the dispatcher.
    pub fn on_sample<S>(&mut self, subscriber: S, call: impl FnMut(S::Sample) + Send + 'a)
    where
        S: Receive + Send + 'a,
    {
        let task = Box::new(ForEach { source: subscriber, call });
        self.callbacks.push(Callback { task, is_starved: false });
    }

    /// Sets the handler of errors. Default: they go to standard error.
    pub fn on_error(&mut self, call: impl FnMut(&DispatchError) + Send + 'a) {
        self.on_error = Box::new(call);
    }

    /// A handle that stops this dispatcher, from any thread.
    pub fn stopper(&self) -> Stopper {
        Stopper { is_stopped: Arc::clone(&self.is_stopped), waker: self.set.waker() }
    }

    /// Calls until it is stopped, or no callback is left.
    pub fn spin(&mut self) {
        while !self.callbacks.is_empty() && self.spin_once(None) != SpinResult::Stopped {}
    }

    /// Waits up to `timeout`, or for ever, and calls once.
    pub fn spin_once(&mut self, timeout: Option<Duration>) -> SpinResult {
        loop {
            if self.is_stopped.load(Ordering::Acquire) {
                return SpinResult::Stopped;
            }
            match self.set.wait(&mut self.callbacks, timeout) {
                Ready::Sample(at) => {
                    self.call(at);
                    return SpinResult::Called;
                }
                Ready::TimedOut => return SpinResult::TimedOut,
                Ready::Woken => {}
            }
        }
    }

    /// Callbacks that are called: those registered less those that panicked.
    pub fn callbacks(&self) -> usize {
        self.callbacks.len()
    }

    fn call(&mut self, at: usize) {
        let callback = &mut self.callbacks[at];
        let is_starved = std::mem::take(&mut callback.is_starved);
        match catch_unwind(AssertUnwindSafe(|| callback.task.run())) {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                let is_held =
                    matches!(&error, ReceiveError::Take(TakeError { cause: ReadError::Pins { .. }, .. }));
                callback.is_starved = is_held;
                if !(is_held && is_starved) {
                    (self.on_error)(&error.into());
                }
                if is_held {
                    // The sample stays and would be found again at once.
                    self.set.wait::<&mut Subscriber>(&mut [], Some(HELD_PAUSE));
                }
            }
            Err(panic) => {
                let mut gone = self.callbacks.remove(at);
                let topic = gone.as_mut().topic().to_owned();
                // What it holds may panic once more.
                let _ = catch_unwind(AssertUnwindSafe(|| drop(gone)));
                (self.on_error)(&DispatchError::Panicked { topic, message: message(&*panic).to_owned() });
            }
        }
    }
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a message")
}

impl Stopper {
    /// The callback that runs ends; no other is called.
    pub fn stop(&self) {
        self.is_stopped.store(true, Ordering::Release);
        self.waker.wake();
    }
}

impl Receive for Subscriber {
    type Sample = Sample;

    fn take_sample(&mut self) -> Result<Option<Sample>, ReceiveError> {
        Ok(self.take()?)
    }
}

impl<T: Message> Receive for TypedSubscriber<T> {
    type Sample = TypedSample<T>;

    fn take_sample(&mut self) -> Result<Option<TypedSample<T>>, ReceiveError> {
        self.take()
    }
}

impl<S: Receive + Send, F: FnMut(S::Sample) + Send> Task for ForEach<S, F> {
    fn run(&mut self) -> Result<(), ReceiveError> {
        if let Some(sample) = self.source.take_sample()? {
            (self.call)(sample);
        }
        Ok(())
    }
}

impl<S: Receive, F> AsMut<Subscriber> for ForEach<S, F> {
    fn as_mut(&mut self) -> &mut Subscriber {
        self.source.as_mut()
    }
}

impl AsMut<Subscriber> for Callback<'_> {
    fn as_mut(&mut self) -> &mut Subscriber {
        (*self.task).as_mut()
    }
}

impl fmt::Debug for Dispatcher<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dispatcher").field("callbacks", &self.callbacks.len()).finish_non_exhaustive()
    }
}
