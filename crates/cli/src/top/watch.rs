//! One topic under observation: a subscriber with its thread.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use noctule::{Node, NodeError, StatisticsWindow, Subscriber, WindowStatistics};
use noctule_time_sync::Local;
use noctule_timebase::{Instant, Span};

use super::Ends;

/// A thread looks this often whether it is still needed.
const LOOK: Duration = Duration::from_millis(500);

/// Takes every sample of a topic until it is dropped.
pub(super) struct Watch {
    shared: Arc<Shared>,
    pub(super) ends: Ends,
    /// As last looked at.
    pub(super) window: WindowStatistics,
}

struct Shared {
    statistics: Mutex<StatisticsWindow>,
    /// Why it is no longer watched.
    trouble: Mutex<Option<String>>,
    stop: AtomicBool,
}

impl Watch {
    pub(super) fn start(
        node: &Node,
        topic: &str,
        type_name: &str,
        window: Duration,
    ) -> Result<Watch, NodeError> {
        let subscriber = node.subscriber(topic).open()?;
        let window = Span::from_ns(i64::try_from(window.as_nanos()).unwrap_or(i64::MAX));
        let statistics = StatisticsWindow::new(window, node.now());
        let window = statistics.window(node.now());
        let shared = Arc::new(Shared {
            statistics: Mutex::new(statistics),
            trouble: Mutex::new(None),
            stop: AtomicBool::new(false),
        });
        let thread = Arc::clone(&shared);
        let failed = |cause| NodeError::System { what: "no thread for another topic", cause };
        let builder = std::thread::Builder::new().name("noctule-watch".into());
        builder.spawn(move || thread.run(subscriber)).map_err(failed)?;
        Ok(Watch { shared, ends: Ends { type_name: type_name.to_owned(), ..Ends::default() }, window })
    }

    /// Draws up the window that ends now.
    pub(super) fn refresh(&mut self, now: Instant<Local>) {
        self.window = lock(&self.shared.statistics).window(now);
    }

    pub(super) fn trouble(&self) -> Option<String> {
        lock(&self.shared.trouble).clone()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
    }
}

impl Shared {
    fn run(&self, mut subscriber: Subscriber) {
        while !self.stop.load(Ordering::Relaxed) {
            match subscriber.receive(Some(LOOK)) {
                Ok(Some(sample)) => lock(&self.statistics).record(sample.info()),
                Ok(None) => {}
                // A broken publisher: what it says is not worth a figure.
                Err(broken) => {
                    *lock(&self.trouble) = Some(broken.to_string());
                    return;
                }
            }
        }
    }
}

/// A count is whole even if the thread that counted has panicked.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
