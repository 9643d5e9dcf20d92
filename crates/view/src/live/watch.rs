//! One topic of the running system: a subscriber with its thread, which counts, and keeps what somebody looks at.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use noctule::{Endpoint, Node, NodeError, Sample, SampleInfo, StatisticsWindow, Subscriber};
use noctule_codegen::cdr::Tree;
use noctule_timebase::{Instant, Span};

use crate::figures::{Figures, FrameAges, deadlines_in};
use crate::sample::{ShownSample, ms};
use crate::types::{Types, json_tree, number_at};

/// A thread looks this often whether it is still needed.
const LOOK: Duration = Duration::from_millis(500);
/// Figures are of the last so many nanoseconds.
const WINDOW: Span = Span::from_ms(10_000);
/// Points of a curve that wait for pages; beyond it the oldest are dropped and counted.
pub(crate) const CURVE_POINTS_MAX: usize = 20_000;
/// Curves of a topic that are kept at once.
pub(crate) const CURVES_MAX: usize = 32;
/// A copy of a sample is made no more often than this.
const COPY_EVERY: Span = Span::from_ms(45);
/// Curves of the age itself, beside those of fields.
pub(crate) const AGE_PATH: &str = "@age_ms";
/// See [`AGE_PATH`].
pub(crate) const BOUND_PATH: &str = "@bound_ms";

/// Follows a topic until it is dropped.
pub(super) struct Watch {
    shared: Arc<Shared>,
}

struct Shared {
    stop: AtomicBool,
    types: Arc<Types>,
    inner: Mutex<Inner>,
}

/// State of the topic: counts, newest sample, curves.
struct Inner {
    statistics: StatisticsWindow,
    frame: FrameAges,
    samples: u64,
    missed: u64,
    deadline: Option<Span>,
    deadline_missed: u64,
    last: Option<Instant<noctule_time_sync::Local>>,
    newest: Option<SampleInfo>,
    type_name: String,
    type_hash: u64,
    /// Whether bytes are wanted, and the newest copy.
    wants_bytes: bool,
    copied: Option<Copied>,
    curves: BTreeMap<String, Curve>,
    /// Why its reader ended.
    trouble: Option<String>,
}

/// A sample's bytes, with what is known of it.
type Copied = (SampleInfo, Arc<[u8]>);

/// Points of a curve that came since a page's last request.
#[derive(Clone, Debug, Default)]
pub struct NewPoints {
    /// Source time in ms of the view's clock, and the value.
    pub points: Vec<[f64; 2]>,
    /// Number of the next point.
    pub next: u64,
}

/// Points of a field: ms of the view's clock, and the value.
#[derive(Clone, Debug, Default)]
pub(crate) struct Curve {
    points: VecDeque<[f64; 2]>,
    /// Points that came, those that were dropped included.
    came: u64,
}

impl Curve {
    pub(crate) fn push(&mut self, point: [f64; 2]) {
        if self.points.len() == CURVE_POINTS_MAX {
            self.points.pop_front();
        }
        self.points.push_back(point);
        self.came += 1;
    }

    /// The points from number `from` on, and the number of the next.
    pub(crate) fn since(&self, from: u64) -> NewPoints {
        let first = self.came - self.points.len() as u64;
        let skipped = from.clamp(first, self.came) - first;
        NewPoints { points: self.points.iter().skip(skipped as usize).copied().collect(), next: self.came }
    }
}

impl Watch {
    pub(super) fn start(node: &Node, topic: &str, types: &Arc<Types>) -> Result<Watch, NodeError> {
        let subscriber = node.subscriber(topic).open()?;
        let inner = Inner {
            statistics: StatisticsWindow::new(WINDOW, node.now()),
            frame: FrameAges::default(),
            samples: 0,
            missed: 0,
            deadline: None,
            deadline_missed: 0,
            last: None,
            newest: None,
            type_name: String::new(),
            type_hash: 0,
            wants_bytes: false,
            copied: None,
            curves: BTreeMap::new(),
            trouble: None,
        };
        let shared = Arc::new(Shared {
            stop: AtomicBool::new(false),
            types: Arc::clone(types),
            inner: Mutex::new(inner),
        });
        let thread = Arc::clone(&shared);
        let failed = |cause| NodeError::System { what: "no thread for another topic", cause };
        let builder = std::thread::Builder::new().name("noctule-view".into());
        builder.spawn(move || thread.run(subscriber)).map_err(failed)?;
        Ok(Watch { shared })
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        lock(&self.shared.inner)
    }

    /// Takes type and deadline of a writer from its announcement.
    pub(super) fn handle_writer(&self, writer: &Endpoint) {
        let mut inner = self.lock();
        if inner.type_name != writer.type_name || inner.type_hash != writer.type_hash {
            (inner.type_name, inner.type_hash) = (writer.type_name.clone(), writer.type_hash);
        }
        inner.deadline = writer.qos.deadline;
    }

    /// Figures of this moment; a frame ends.
    pub(super) fn figures(&self, now: Instant<noctule_time_sync::Local>) -> Figures {
        let mut inner = self.lock();
        let window = inner.statistics.window(now);
        let (frame_ns, frame_max_ns) = inner.frame.take();
        let ns = |span: Option<Span>| span.map(Span::ns);
        Figures {
            rate_hz: window.rate_hz(),
            p50_ns: ns(window.age_p50),
            p99_ns: ns(window.age_p99),
            max_ns: ns(window.age_max),
            bound_ns: ns(window.bound),
            loss: window.loss(),
            missed: inner.missed,
            deadline_missed: inner.deadline.map(|_| inner.deadline_missed),
            bytes_per_s: window.bytes_per_s(),
            samples: inner.samples,
            frame_ns,
            frame_max_ns,
        }
    }

    pub(super) fn trouble(&self) -> Option<String> {
        self.lock().trouble.clone()
    }

    /// Whether bytes of the newest samples are kept.
    pub(super) fn want_bytes(&self, is_wanted: bool) {
        let mut inner = self.lock();
        inner.wants_bytes = is_wanted;
        if !is_wanted {
            inner.copied = None;
        }
    }

    /// The curves that are wanted; others are forgotten.
    pub(super) fn want_curves(&self, paths: &[String]) {
        let mut inner = self.lock();
        inner.curves.retain(|path, _| paths.contains(path));
        for path in paths {
            if inner.curves.len() < CURVES_MAX {
                inner.curves.entry(path.clone()).or_default();
            }
        }
    }

    pub(super) fn curve_since(&self, path: &str, from: u64) -> Option<NewPoints> {
        self.lock().curves.get(path).map(|curve| curve.since(from))
    }

    /// The newest sample whose bytes were kept; `name` finds a publisher's.
    pub(super) fn newest(&self, name: impl Fn(&SampleInfo) -> String) -> Option<ShownSample> {
        let inner = self.lock();
        let (info, bytes) = inner.copied.as_ref()?;
        Some(ShownSample {
            source_ns: info.source_time.map(Instant::ns),
            receive_ns: info.receive_time.ns(),
            bound_ns: info.bound.map(Span::ns),
            publisher: name(info),
            route: match info.route {
                noctule::Route::SharedMemory => "shm",
                noctule::Route::Udp => "udp",
            },
            sequence: info.sequence,
            missed: info.missed,
            format: word(info),
            bytes: Arc::clone(bytes),
            type_name: inner.type_name.clone(),
            type_hash: inner.type_hash,
        })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
    }
}

/// The word for a sample's format. Boards and bridges publish CDR without naming it.
fn word(info: &SampleInfo) -> String {
    info.format.map_or_else(|| "cdr".to_owned(), |format| format.to_string())
}

impl Shared {
    fn run(&self, mut subscriber: Subscriber) {
        while !self.stop.load(Ordering::Relaxed) {
            match subscriber.receive(Some(LOOK)) {
                Ok(Some(sample)) => self.take(&sample),
                Ok(None) => {}
                Err(broken) => {
                    lock(&self.inner).trouble = Some(broken.to_string());
                    return;
                }
            }
        }
    }

    fn take(&self, sample: &Sample) {
        let info = sample.info();
        let (wants_copy, wants_values) = {
            let mut inner = lock(&self.inner);
            inner.count(info);
            let is_due = inner
                .copied
                .as_ref()
                .is_none_or(|(before, _)| info.receive_time - before.receive_time >= COPY_EVERY);
            (inner.wants_bytes && is_due, !inner.curves.is_empty())
        };
        if !wants_copy && !wants_values {
            return;
        }
        let bytes: Arc<[u8]> = Arc::from(sample.to_vec());
        // Decoded without the lock: a frame must not wait for a large value.
        let tree = if wants_values { self.tree(info, &bytes) } else { None };
        let mut inner = lock(&self.inner);
        if wants_values {
            let at = ms(info.source_time.unwrap_or(info.receive_time).ns());
            let age = info.age();
            for (path, curve) in &mut inner.curves {
                let value = match path.as_str() {
                    AGE_PATH => age.map(|age| ms(age.span.ns())),
                    BOUND_PATH => info.bound.map(|bound| ms(bound.ns())),
                    path => tree.as_ref().and_then(|tree| number_at(tree, path)),
                };
                if let Some(value) = value {
                    curve.push([at, value]);
                }
            }
        }
        if wants_copy {
            inner.copied = Some((*info, bytes));
        }
    }

    fn tree(&self, info: &SampleInfo, bytes: &[u8]) -> Option<Tree> {
        let (type_name, type_hash) = {
            let inner = lock(&self.inner);
            if inner.curves.keys().all(|path| path.starts_with('@')) {
                return None;
            }
            (inner.type_name.clone(), inner.type_hash)
        };
        match word(info).as_str() {
            "json" => json_tree(bytes).ok(),
            format => self.types.decoder(&type_name, type_hash).ok()?.decode(format, bytes).ok(),
        }
    }
}

impl Inner {
    fn count(&mut self, info: &SampleInfo) {
        self.statistics.record(info);
        self.samples += 1;
        self.missed = self.missed.saturating_add(info.missed);
        let age = info.age();
        if let Some(age) = age {
            self.frame.add(age.span.ns());
        }
        if let Some(deadline) = self.deadline.filter(|deadline| *deadline > Span::ZERO) {
            let gap = self.last.map_or(Span::ZERO, |last| info.receive_time - last);
            let is_late = age.is_some_and(|age| age.span > deadline);
            self.deadline_missed += deadlines_in(gap.ns(), deadline.ns()) + u64::from(is_late);
        }
        self.last = Some(info.receive_time);
        self.newest = Some(*info);
    }
}

/// A count is whole even if the thread that counted has panicked.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_drops_the_oldest_and_goes_on_where_a_page_was() {
        let mut curve = Curve::default();
        (0..5).for_each(|index| curve.push([f64::from(index), 0.0]));
        let NewPoints { points, next } = curve.since(3);
        assert_eq!((points.len(), points[0][0], next), (2, 3.0, 5));
        (5..CURVE_POINTS_MAX as i32 + 100).for_each(|index| curve.push([f64::from(index), 0.0]));
        let NewPoints { points, .. } = curve.since(next);
        assert_eq!((points.len(), points[0][0]), (CURVE_POINTS_MAX, 100.0));
        assert!(curve.since(u64::MAX).points.is_empty());
    }
}
