//! The clocks of other gateways: a thread asks for them, and samples are dated by them.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use noctule_ros_zenoh::attachment::SiteAttachment;
use noctule_ros_zenoh::site::{Dated, ReplyFault, SiteClock, clock_key, clock_reply};
use noctule_time_sync::Local;
use noctule_timebase::{Instant, Span};
use zenoh::Wait;
use zenoh::query::Queryable;
use zenoh::sample::Locality;

use crate::counters::count;
use crate::from_zenoh::Outlet;
use crate::shared::{RouteError, Shared};

/// Clocks that are followed; samples of further gateways have no bound.
const CLOCKS_MAX: usize = 4096;
/// Time limit of a request for a clock.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Sleep while there are no clocks to ask for.
const IDLE: Duration = Duration::from_millis(500);

/// Other gateways' clocks, and the topics that wait for one.
#[derive(Default)]
pub(crate) struct Clocks {
    by_session: Mutex<BTreeMap<String, SiteClock>>,
    waiting: Mutex<Vec<Weak<Outlet>>>,
}

/// Bound of another gateway's clock, and counts of requests to it.
#[derive(Clone, Debug)]
pub(crate) struct ClockStatus {
    pub(crate) zid: String,
    pub(crate) bound: Option<Span>,
    pub(crate) asked: u32,
    pub(crate) answered: u32,
}

impl Clocks {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, SiteClock>> {
        self.by_session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes note of a topic whose samples wait for a clock.
    pub(crate) fn hold(&self, outlet: Weak<Outlet>) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push(outlet);
    }

    /// Has the topics that wait pass on what they can.
    fn release(&self, shared: &Shared) {
        let waiting = mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner));
        for outlet in waiting {
            if outlet.upgrade().is_some_and(|outlet| !outlet.release(shared)) {
                self.hold(outlet);
            }
        }
    }

    /// When a sample of another gateway was true.
    pub(crate) fn source(&self, zid: &str, sample: &SiteAttachment, now: Instant<Local>) -> Option<Dated> {
        self.lock().get(zid)?.source(sample, now)
    }

    /// Follows the clocks of these gateways and no others.
    pub(crate) fn follow(&self, wanted: &BTreeSet<String>, now: Instant<Local>) {
        let mut clocks = self.lock();
        clocks.retain(|zid, _| wanted.contains(zid));
        for zid in wanted {
            if clocks.len() < CLOCKS_MAX && !clocks.contains_key(zid) {
                let mut key = [0; 16];
                // Without random numbers an attacker on the path can guess, and nothing else is lost.
                let _ = rustix::rand::getrandom(&mut key, rustix::rand::GetRandomFlags::empty());
                clocks.insert(zid.clone(), SiteClock::new(key, now));
            }
        }
    }

    pub(crate) fn statuses(&self, now: Instant<Local>) -> Vec<ClockStatus> {
        let clocks = self.lock();
        let status = |(zid, clock): (&String, &SiteClock)| {
            let (asked, answered) = clock.counts();
            ClockStatus { zid: zid.clone(), bound: clock.bound(now), asked, answered }
        };
        clocks.iter().map(status).collect()
    }
}

/// Answers others' requests for this node's clock.
pub(crate) fn serve(shared: &Arc<Shared>) -> Result<Queryable<()>, RouteError> {
    let key = clock_key(shared.domain, &shared.zid);
    let weak = Arc::downgrade(shared);
    let answer = move |query: zenoh::query::Query| {
        let Some(shared) = weak.upgrade() else { return };
        let arrived = shared.node.now();
        let request = query.payload().map(|payload| payload.to_bytes().into_owned()).unwrap_or_default();
        let Some(reply) = clock_reply(&request, arrived, shared.node.now()) else {
            return count(&shared.malformed, 1);
        };
        // The requester may have gone.
        let _ = query.reply(query.key_expr(), &reply[..]).wait();
    };
    let queryable = shared.session.declare_queryable(key).complete(true).allowed_origin(Locality::Remote);
    Ok(queryable.callback(answer).wait()?)
}

/// Starts the thread that asks.
pub(crate) fn start(shared: &Arc<Shared>) -> Result<JoinHandle<()>, RouteError> {
    let shared = Arc::clone(shared);
    let work = move || {
        while !shared.is_over() {
            thread::park_timeout(ask(&shared));
            shared.clocks.release(&shared);
        }
    };
    Ok(thread::Builder::new().name("noctule-zen-clk".to_owned()).spawn(work)?)
}

/// Asks every node that it is time to ask; how long until it is time again.
fn ask(shared: &Arc<Shared>) -> Duration {
    let mut due = Vec::new();
    let mut next = IDLE;
    {
        let mut clocks = shared.clocks.lock();
        for (zid, clock) in clocks.iter_mut() {
            if let Some(request) = clock.poll_request(shared.node.now()) {
                due.push((zid.clone(), request));
            }
            let wait = (clock.poll_timeout() - shared.node.now()).ns().max(1_000_000);
            next = next.min(Duration::from_nanos(wait as u64));
        }
    }
    for (zid, request) in due {
        let weak = Arc::downgrade(shared);
        let of = zid.clone();
        let take = move |reply: zenoh::query::Reply| {
            let Some(shared) = weak.upgrade() else { return };
            let arrived = shared.node.now();
            let Ok(sample) = reply.result() else { return };
            let bytes = sample.payload().to_bytes();
            let judged = shared.clocks.lock().get_mut(&of).map(|clock| clock.handle_reply(&bytes, arrived));
            shared.clocks.release(&shared);
            if let Some(Err(ReplyFault::Unreadable | ReplyFault::Contradiction)) = judged {
                count(&shared.malformed, 1);
            }
        };
        let get = shared.session.get(clock_key(shared.domain, &zid)).payload(&request[..]).timeout(TIMEOUT);
        if let Err(why) = get.allowed_destination(Locality::Remote).callback(take).wait() {
            shared.notice_once(&format!("the clock of gateway {zid} cannot be asked: {why}"));
        }
    }
    next
}
