//! `noctule.WaitSet`.

use std::sync::{Mutex, PoisonError, TryLockError};
use std::time::Instant;

use noctule::{Ready, Waker};
use pyo3::prelude::*;

use crate::argument::{self, NoctuleError, closed, not_taken};
use crate::sample::Sample;
use crate::subscriber::Subscriber;
use crate::waiting::LOOK_UP;

/// Waits for the samples of many subscribers at once; ``wait`` as in ``Node.subscriber``. One thread at a time may receive.
#[pyclass(module = "noctule", frozen)]
pub(crate) struct WaitSet {
    set: Mutex<noctule::WaitSet>,
    waker: Waker,
}

/// Whose sample, and which.
type Found = Option<(Py<Subscriber>, Sample)>;

#[pymethods]
impl WaitSet {
    #[new]
    #[pyo3(signature = (*, wait="block"))]
    fn new(wait: &str) -> PyResult<WaitSet> {
        let set = noctule::WaitSet::new(argument::wait(wait)?);
        let waker = set.waker();
        Ok(WaitSet { set: Mutex::new(set), waker })
    }

    /// Wait for the next sample of any of the subscribers, up to ``timeout`` seconds, or for ever: the subscriber, and the
    /// sample. They are served in turn, so that a busy one does not keep the others waiting.
    ///
    /// ``None`` when the time is over, after ``wake``, or when another thread closes one of them. Other threads run
    /// meanwhile, and Ctrl-C is seen within 0.1 s. Raises ``NoctuleError`` as ``Subscriber.receive``.
    #[pyo3(signature = (subscribers, timeout=None))]
    fn receive(
        &self,
        py: Python<'_>,
        subscribers: Vec<Py<Subscriber>>,
        timeout: Option<f64>,
    ) -> PyResult<Found> {
        let timeout = argument::timeout(timeout)?;
        let mut set = match self.set.try_lock() {
            Ok(set) => set,
            Err(TryLockError::Poisoned(poisoned)) => PoisonError::into_inner(poisoned),
            Err(TryLockError::WouldBlock) => {
                let sentence = "another thread is waiting with this set; make one for each thread";
                return Err(NoctuleError::new_err(sentence));
            }
        };
        let mut locked = subscribers.iter().map(|one| one.get().lock()).collect::<PyResult<Vec<_>>>()?;
        let inside = locked.iter_mut().map(|open| match open.as_mut() {
            Some(open) => Ok(&mut open.subscriber),
            None => Err(closed("subscriber")),
        });
        let mut inside = inside.collect::<PyResult<Vec<_>>>()?;
        let (start, set) = (Instant::now(), &mut *set);
        let found = loop {
            let left = timeout.map_or(LOOK_UP, |timeout| timeout.saturating_sub(start.elapsed()));
            let ready = py.detach(|| set.wait(&mut inside, Some(left.min(LOOK_UP))));
            if let Ready::Sample(which) = ready
                && let Some(sample) = inside[which].take().map_err(|error| not_taken(&error))?
            {
                break Some((subscribers[which].clone_ref(py), Sample::new(sample)));
            }
            let is_over = ready == Ready::TimedOut && timeout.is_some() && left <= LOOK_UP;
            if ready == Ready::Woken || is_over || subscribers.iter().any(|one| one.get().is_closed()) {
                break None;
            }
            py.check_signals()?;
        };
        for (one, open) in subscribers.iter().zip(&mut locked) {
            if one.get().is_closed() {
                // The thread that closed it could not wait for us.
                let gone = open.take();
                py.detach(|| drop(gone));
            }
        }
        Ok(found)
    }

    /// End the wait of another thread, or the next one.
    fn wake(&self) {
        self.waker.wake();
    }
}
