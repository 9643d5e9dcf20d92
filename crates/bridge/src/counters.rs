//! Counters of a route and of a service. They are written where samples pass, and read for the report; `R` describes the route.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::ages::Stamping;

/// Counts of one route, each as in [`RouteStatus`].
#[derive(Debug, Default)]
#[allow(missing_docs)] // as in `RouteStatus`
pub struct RouteCounters {
    pub samples: AtomicU64,
    pub bytes: AtomicU64,
    pub unreadable: AtomicU64,
    pub refused: AtomicU64,
    pub too_large: AtomicU64,
    pub missed: AtomicU64,
    pub ignored: AtomicU64,
    pub undated: AtomicU64,
    stamping: Mutex<Stamping>,
}

/// Description and counters of a route, for the report.
#[derive(Clone, Debug)]
pub struct RouteStatus<R> {
    /// Which topic, which way, how.
    pub route: R,
    /// Samples that were forwarded.
    pub samples: u64,
    /// Their payload, in bytes.
    pub bytes: u64,
    /// Samples in another encoding than CDR of version 1, or whose attachment is malformed.
    pub unreadable: u64,
    /// Samples that the other network did not take: its readers were too slow.
    pub refused: u64,
    /// Samples longer than the bridge forwards.
    pub too_large: u64,
    /// Samples that newer ones replaced before this route came to them (KEEP_LAST), or that were lost on the way to this host.
    pub missed: u64,
    /// Samples that came another way as well: from other bridges between the same networks, or on a second key.
    pub ignored: u64,
    /// Samples of other gateways that were forwarded without a bound, because the clock was not known in time.
    pub undated: u64,
    /// How samples from the other network are dated.
    pub stamping: Stamping,
}

impl RouteCounters {
    /// The counts so far, with the route that they are of.
    pub fn status<R: Clone>(&self, route: &R) -> RouteStatus<R> {
        RouteStatus {
            route: route.clone(),
            samples: of(&self.samples),
            bytes: of(&self.bytes),
            unreadable: of(&self.unreadable),
            refused: of(&self.refused),
            too_large: of(&self.too_large),
            missed: of(&self.missed),
            ignored: of(&self.ignored),
            undated: of(&self.undated),
            stamping: *self.stamping.lock().unwrap_or_else(PoisonError::into_inner),
        }
    }

    /// Counts a sample with so many bytes of payload as forwarded.
    pub fn passed(&self, bytes: usize) {
        count(&self.samples, 1);
        count(&self.bytes, bytes as u64);
    }

    /// Notes how the newest sample was dated.
    pub fn stamped(&self, stamping: Stamping) {
        *self.stamping.lock().unwrap_or_else(PoisonError::into_inner) = stamping;
    }
}

/// Counts of one service, each as in [`ServiceStatus`].
#[derive(Debug, Default)]
#[allow(missing_docs)] // as in `ServiceStatus`
pub struct ServiceCounters {
    pub requests: AtomicU64,
    pub replies: AtomicU64,
    pub failed: AtomicU64,
    pub late: AtomicU64,
    pub unreadable: AtomicU64,
    pub full: AtomicU64,
    pub ignored: AtomicU64,
}

/// Description and counters of a service, for the report.
#[derive(Clone, Debug)]
pub struct ServiceStatus<R> {
    /// Which, and where its server is.
    pub route: R,
    /// Requests that were forwarded.
    pub requests: u64,
    /// Replies that were forwarded.
    pub replies: u64,
    /// Requests without a reply. A client in Zenoh gets an error; DDS has none for it.
    pub failed: u64,
    /// Requests and replies whose time was over before they could be forwarded.
    pub late: u64,
    /// Requests and replies that are not as ROS 2 or the bus encodes them.
    pub unreadable: u64,
    /// Requests and replies that found a queue full.
    pub full: u64,
    /// Requests of other bridges between the same networks.
    pub ignored: u64,
}

/// A service and what is counted of it.
pub type CountedService<R> = (Arc<R>, Arc<ServiceCounters>);

/// Those that are exchanged now, for the planning thread and the status.
#[derive(Clone, Debug)]
pub struct ListedServices<R>(Arc<Mutex<Vec<CountedService<R>>>>);

impl<R> Default for ListedServices<R> {
    fn default() -> ListedServices<R> {
        ListedServices(Arc::default())
    }
}

impl<R: Clone> ListedServices<R> {
    /// Replaces the list.
    pub fn set(&self, services: Vec<CountedService<R>>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = services;
    }

    /// Status of each.
    pub fn statuses(&self) -> Vec<ServiceStatus<R>> {
        let status = |(route, counters): &CountedService<R>| ServiceStatus {
            route: R::clone(route),
            requests: of(&counters.requests),
            replies: of(&counters.replies),
            failed: of(&counters.failed),
            late: of(&counters.late),
            unreadable: of(&counters.unreadable),
            full: of(&counters.full),
            ignored: of(&counters.ignored),
        };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().map(status).collect()
    }
}

/// Adds to a counter.
pub fn count(counter: &AtomicU64, by: u64) {
    counter.fetch_add(by, Ordering::Relaxed);
}

fn of(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use noctule_timebase::Span;

    use super::*;

    #[test]
    fn a_status_has_each_count_under_its_name() {
        let counters = RouteCounters::default();
        counters.passed(100);
        counters.passed(20);
        counters.stamped(Stamping::ThisHost(Span::from_us(3)));
        let fields = [
            &counters.unreadable,
            &counters.refused,
            &counters.too_large,
            &counters.missed,
            &counters.ignored,
            &counters.undated,
        ];
        fields.into_iter().zip(3..).for_each(|(counter, by)| count(counter, by));
        let RouteStatus {
            route,
            samples,
            bytes,
            unreadable,
            refused,
            too_large,
            missed,
            ignored,
            undated,
            stamping,
        } = counters.status(&"imu");
        assert_eq!((route, samples, bytes, stamping), ("imu", 2, 120, Stamping::ThisHost(Span::from_us(3))));
        assert_eq!([unreadable, refused, too_large, missed, ignored, undated], [3, 4, 5, 6, 7, 8]);
    }

    #[test]
    fn services_are_listed_with_their_counts() {
        let listed = ListedServices::default();
        let counters = Arc::new(ServiceCounters::default());
        listed.set(vec![(Arc::new("add"), Arc::clone(&counters))]);
        let fields = [
            &counters.requests,
            &counters.replies,
            &counters.failed,
            &counters.late,
            &counters.unreadable,
            &counters.full,
            &counters.ignored,
        ];
        fields.into_iter().zip(1..).for_each(|(counter, by)| count(counter, by));
        let statuses = listed.clone().statuses();
        let [status] = &statuses[..] else { panic!("one service, not {}", statuses.len()) };
        let ServiceStatus { route, requests, replies, failed, late, unreadable, full, ignored } = status;
        assert_eq!(*route, "add");
        assert_eq!(
            [requests, replies, failed, late, unreadable, full, ignored],
            [&1, &2, &3, &4, &5, &6, &7]
        );
    }
}
