//! Rate limit of datagrams with a deadline when the bottleneck carries less than is offered.
//!
//! # Problem
//!
//! The rate of such samples is the application's, and repairs come on top. On a path that loses by chance that is
//! right; on one that loses because it is full, every repair is another loss. But a long round trip may be jitter, a
//! longer route or another flow's queue, and a limit against those loses what best effort would have delivered.
//!
//! # Approach
//!
//! A limit needs proof that the queue is ours. In *epochs* of two round trips:
//!
//! - *Suspicion*: in [`SUSPICIOUS`] epochs in a row even the shortest round trip was above the floor by more than jitter
//!   explains, and clearly less arrived than was sent. (Jitter, a longer route and a TCP flow beside delay what is sent, but
//!   nearly all of it arrives.)
//! - *Test*: for some round trips less is sent than arrived. A queue of ours must become shorter by what is not sent (Little's
//!   law). If not, the limit is withdrawn, and the next test waits, twice as long each time; unless everything is late
//!   either way: then two flows of ours each have to slow down before either sees the queue shorten.
//! - *Limit*: what arrives is what the path carries (BBR's bandwidth, Cardwell et al. 2016). The limit falls while the queue
//!   stays and grows without one, slowly near where it was too high before. It is withdrawn when it no longer binds, and
//!   when four decreases have not shortened the queue.
//!
//! Until a limit is set the queue grows by all that is sent on suspicion; so some long round trips in a row are
//! doubt enough to send only what is surely needed ([`is_doubtful`](RateLimit::is_doubtful)).
//!
//! Without a limit nothing here delays a datagram.

use noctule_timebase::{Instant, Span};

use super::average::{LossMean, Rate};
use super::epoch::{Epoch, NOTHING, RETRY_FIRST, RETRY_MOST};
use super::pacer::Pacer;
use super::path_delay::PathDelay;
use super::repair_breaker::RepairBreaker;
use crate::stream::Local;

/// Shortest epoch.
const EPOCH_LEAST: Span = Span::from_ms(50);
/// Round trips that must all have been long before there is a queue, and as many in a row leave doubt: one short one proves that there is none.
/// Fewer do under a limit, where a mistake costs little.
const LONG_ROUND_TRIPS: u32 = 8;
const LONG_ROUND_TRIPS_LIMITED: u32 = 6;
/// A queue is one if it is longer than this, than a quarter of the floor, and than jitter explains.
const QUEUE_LEAST: Span = Span::from_ms(3);
/// Epochs in a row that make a suspicion: a stall of a radio, a step of the route or a TCP flow's slow start ends sooner.
const SUSPICIOUS: usize = 4;
/// Less than this part of what was sent, chance losses aside, arrived meanwhile.
const CARRIED: f64 = 0.92;
/// Where repairs are held back it carries what is sent if no more than this is lacking: they would add to it.
const CARRIED_AGAIN: f64 = 0.97;
/// No more than this is chance of what is lost without a queue.
const CHANCE_MOST: f64 = 0.5;
/// A queue loses if it loses twice what the path does without, and by so much more; where chance loses much, this much beyond chance is enough.
const QUEUE_LOSES: f64 = 0.005;
const QUEUE_LOSES_ENOUGH: f64 = 0.04;
/// A test, and every limit, leaves so much room that the queue is gone after this, but never less than half.
const DRAIN: Span = Span::from_ms(500);
const DRAIN_LEAST: f64 = 0.5;
/// The queue is ours if it shortened by this part of what was expected.
const DRAINED: f64 = 0.5;
/// Part of what arrives that a limit begins with, the queue aside.
const SHARE_OF_ARRIVED: f64 = 0.95;
/// Growth of the limit by an epoch without a queue; each further one in a row adds as much.
const GROWTH: f64 = 0.04;
const GROWTH_MAX: f64 = 1.3;
/// Less than this part of what was sent arrives: the limit is still too high.
const STILL_TOO_MUCH: f64 = 0.75;
/// Largest rate of a test, as a part of what arrived, so that the queue becomes shorter soon; and decrease of the limit by an epoch whose queue is
/// not shorter by an eighth.
const DECREASE: f64 = 0.85;
/// A queue that as many decreases in a row do not shorten is not ours.
const EPOCHS_IN_VAIN: u32 = 4;
/// Near the last limit that was too high, growth rests for so many epochs (as CUBIC's does near its last window).
const EPOCHS_NEAR_CEILING: u32 = 40;
const NEAR_CEILING: f64 = 0.9;
/// The path carries the offer if the offered rate times this is below the capacity.
const OFFERED_MARGIN: f64 = 1.05;
/// A deadline of another stream is forgotten after this.
const DEADLINE_MEMORY: Span = Span::from_s(2);
/// Repairs may make a queue that lasts for this part of the deadline, for so long after there was doubt that the path is full. (Without
/// doubt what the path carries is not known well: jitter and stalls stretch a train of datagrams, too.)
const OWN_QUEUE_PARTS: i64 = 8;
const DOUBT_MEMORY: Span = Span::from_s(20);
/// Only round trips that are so many times longer than jitter explains count as such doubt.
const CLEARLY: i64 = 2;
/// No limit is lower: a datagram a second shows whether the path has recovered.
const LIMIT_LEAST_BYTES_PER_S: f64 = 1_500.0;

/// The rate of everything with a deadline on one path.
#[derive(Debug)]
pub(crate) struct RateLimit {
    state: State,
    limit_bytes_per_s: Option<f64>,
    pacer: Pacer,
    epoch: Epoch,
    /// Round trips of what left before say nothing of the limit.
    effective_from: Instant<Local>,
    /// Round trips above the floor since the last short one.
    long_in_a_row: u32,
    /// Delivery rate when the path last had a queue, and epochs spent near that.
    ceiling_bytes_per_s: f64,
    near_ceiling: u32,
    growing: u32,
    /// Rate that the application offers, and rate of departures, repairs included.
    offered: Rate,
    sent: Rate,
    /// A round trip above this is one through a queue.
    queued_from: Span,
    /// The shortest of the samples offered lately, and when the last such one was.
    deadline: Span,
    deadline_at: Instant<Local>,
    /// Length of such a sample, headers included.
    sample_bytes: usize,
    /// How long the queue was in the last epochs, the newest first.
    queues: [Span; SUSPICIOUS],
    /// When the queue last was so long that all that left it was late; remembered for as long as a test waits at most.
    late_at: Option<Instant<Local>>,
    /// The queue loses, the path carries less than is sent, and no limit begins, for what stands in the queue is in time.
    is_held_off: bool,
    /// Share of packets lost in epochs without a queue, and with one.
    chance_loss: LossMean,
    queue_loss: LossMean,
    /// No test begins before `retry_at`; the next waiting time.
    retry_at: Instant<Local>,
    retry_after: Span,
    repairs: RepairBreaker,
    /// Bytes sent so far; and the departure of the newest packet that met no queue, with the bytes sent before it.
    total_bytes: u64,
    unqueued: Option<(Instant<Local>, u64)>,
    /// When there was doubt last.
    doubted_at: Option<Instant<Local>>,
    /// Round trips in a row that were clearly long.
    clear_in_a_row: u32,
}

#[derive(Clone, Debug)]
enum State {
    /// The last epochs with a queue, oldest first.
    Free(Vec<Epoch>),
    Testing(Test),
    /// Epochs since the queue last became shorter by an eighth, and how long it was then.
    Limited {
        in_vain: u32,
        queue: Span,
    },
}

/// Less is sent to see what becomes of the queue.
#[derive(Clone, Copy, Debug)]
struct Test {
    began: Instant<Local>,
    limit_bytes_per_s: f64,
    /// The rate of arrival before the test.
    arrived_bytes_per_s: f64,
    /// The round trip of the first packet of the test.
    reference: Option<Span>,
}

/// A deadline that no stream has.
const NEVER: Span = Span::from_s(1 << 30);
const FREE: State = State::Free(Vec::new());

impl RateLimit {
    pub(crate) fn new(now: Instant<Local>) -> RateLimit {
        RateLimit {
            state: FREE,
            limit_bytes_per_s: None,
            pacer: Pacer::new(now),
            epoch: Epoch::new(now),
            effective_from: now,
            long_in_a_row: 0,
            ceiling_bytes_per_s: f64::MAX,
            near_ceiling: 0,
            growing: 0,
            offered: Rate::new(now),
            sent: Rate::new(now),
            queued_from: NEVER,
            deadline: NEVER,
            deadline_at: now,
            sample_bytes: 0,
            queues: [Span::ZERO; SUSPICIOUS],
            late_at: None,
            is_held_off: false,
            chance_loss: LossMean::default(),
            queue_loss: LossMean::default(),
            retry_at: now,
            retry_after: RETRY_FIRST,
            repairs: RepairBreaker::new(now),
            total_bytes: 0,
            unqueued: None,
            doubted_at: None,
            clear_in_a_row: 0,
        }
    }

    /// The rate that the path carries, if it is less than was offered.
    pub(crate) fn limit_bytes_per_s(&self) -> Option<f64> {
        self.limit_bytes_per_s
    }

    /// Whether the path may be full: a limit comes later, and what is sent in doubt until then would make the queue longer.
    pub(crate) fn is_doubtful(&self) -> bool {
        self.long_in_a_row >= LONG_ROUND_TRIPS
    }

    /// Whether that is a round trip through a queue.
    pub(crate) fn is_queued(&self, round_trip: Span) -> bool {
        round_trip > self.queued_from
    }

    /// Whether long round trips come with losses.
    pub(crate) fn queue_loses(&self) -> bool {
        self.queue_loss.share
            > self.chance_loss.share + self.chance_loss.share.min(QUEUE_LOSES_ENOUGH) + QUEUE_LOSES
    }

    /// When the next datagram may leave; in the past if at once.
    pub(crate) fn ready_at(&self) -> Instant<Local> {
        self.pacer.ready_at(self.limit_bytes_per_s)
    }

    /// Whether a repair may leave now: not if repairs are what is lost, nor if it would stand in a queue of our own. All that left
    /// since the last packet that met no queue must fit through the path in the time since, and a little.
    pub(crate) fn allows_repair(&self, capacity_bytes_per_s: Option<f64>, now: Instant<Local>) -> bool {
        // A repair would take the place of a sample that is in time.
        if self.is_held_off {
            return false;
        }
        let doubted = self.doubted_at.filter(|at| now - *at <= DOUBT_MEMORY);
        let (Some(capacity), Some((left_at, before)), Some(_)) =
            (capacity_bytes_per_s, self.unqueued, doubted)
        else {
            return self.repairs.allows();
        };
        let time = (now - left_at) + self.deadline / OWN_QUEUE_PARTS;
        // A capacity below what is offered is no bound: either it is wrong, or there will be a limit.
        let fits = capacity.max(self.offered.bytes_per_s) * time.as_s_f64();
        self.repairs.allows() && (self.total_bytes - before) as f64 <= fits
    }

    /// Bytes of datagrams with a deadline sent so far.
    pub(crate) fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    /// The application has so many bytes to send, which are worthless after the deadline.
    pub(crate) fn offer(&mut self, bytes: usize, deadline: Span, now: Instant<Local>) {
        if deadline <= self.deadline || now - self.deadline_at > DEADLINE_MEMORY {
            (self.deadline, self.deadline_at, self.sample_bytes) = (deadline, now, bytes);
        }
        self.offered.add(bytes, now);
    }

    /// A datagram with a deadline leaves.
    pub(crate) fn sent(&mut self, bytes: usize, now: Instant<Local>) {
        self.epoch.sent_bytes += bytes;
        self.total_bytes += bytes as u64;
        self.sent.add(bytes, now);
        self.pacer.count(self.limit_bytes_per_s, now);
        if self.limit_bytes_per_s.is_some() {
            self.pacer.spend(bytes);
        }
    }

    /// One that left at `sent_at` has arrived.
    pub(crate) fn arrived(&mut self, bytes: usize, sent_at: Instant<Local>, now: Instant<Local>) {
        self.epoch.arrived_bytes += bytes;
        self.epoch.arrived += 1;
        self.repairs.handle_outcome(false, sent_at, now);
    }

    /// One was lost.
    pub(crate) fn lost(&mut self, sent_at: Instant<Local>, now: Instant<Local>) {
        self.epoch.lost += 1;
        self.repairs.handle_outcome(true, sent_at, now);
    }

    /// So many were marked by a queue that would soon drop them.
    pub(crate) fn marked(&mut self, packets: u32) {
        self.epoch.marked += packets;
    }

    /// Whether repairs have been found to be what is lost, since this was last asked.
    pub(crate) fn poll_futile_repairs(&mut self) -> bool {
        self.repairs.poll_futile()
    }

    /// Samples of one datagram each are over, sent from `began` on; so many of them were not acknowledged in time, and so many lost at first.
    pub(crate) fn settle(&mut self, samples: (u32, u32, u32), began: Instant<Local>, now: Instant<Local>) {
        // What a queue loses is the limit's affair.
        if self.limit_bytes_per_s.is_some() || self.is_doubtful() || self.queue_loses() {
            return;
        }
        let repairs = 1.0 - self.offered.bytes_per_s / self.sent.bytes_per_s.max(1.0);
        self.repairs.settle(samples, began, repairs, now);
    }

    /// The round trip of what left at `sent_at`, already part of `path`.
    pub(crate) fn measure(
        &mut self,
        round_trip: Span,
        (sent_at, sent_before): (Instant<Local>, u64),
        path: &PathDelay,
    ) {
        let queue = round_trip - path.floor();
        self.queued_from = path.floor() + unqueued(path);
        if queue > unqueued(path) {
            self.long_in_a_row = self.long_in_a_row.saturating_add(1);
        } else {
            (self.long_in_a_row, self.unqueued) = (0, Some((sent_at, sent_before)));
        }
        let is_clear = queue > path.noise() * CLEARLY;
        self.clear_in_a_row = if is_clear { self.clear_in_a_row.saturating_add(1) } else { 0 };
        if self.is_doubtful() && self.clear_in_a_row >= LONG_ROUND_TRIPS {
            self.doubted_at = Some(sent_at + round_trip);
        }
        if let State::Testing(test) = &mut self.state
            && sent_at >= test.began
        {
            test.reference.get_or_insert(round_trip);
        }
        if sent_at < self.effective_from {
            return;
        }
        self.epoch.round_trips += 1;
        self.epoch.least = Some(self.epoch.least.map_or(round_trip, |least| least.min(round_trip)));
    }

    /// Feedback has been taken in: judges the epoch, if it is over. A queue in front of a path that is known to carry what
    /// is offered is one of a long sample, and drains.
    pub(crate) fn handle_feedback(
        &mut self,
        path: &PathDelay,
        capacity_bytes_per_s: Option<f64>,
        now: Instant<Local>,
    ) {
        let Epoch { began, round_trips, least: Some(least), .. } = self.epoch else { return };
        let queue = least - path.floor();
        let is_long = queue > unqueued(path);
        let needed =
            if matches!(self.state, State::Free(_)) { LONG_ROUND_TRIPS } else { LONG_ROUND_TRIPS_LIMITED };
        if now - began < EPOCH_LEAST.max(path.floor() * 2) || is_long && round_trips < needed {
            return;
        }
        self.pacer.count(self.limit_bytes_per_s, now);
        let mut epoch = std::mem::replace(&mut self.epoch, Epoch::new(now));
        epoch.length = now - began;
        let average = if is_long { &mut self.queue_loss } else { &mut self.chance_loss };
        average.add(epoch.loss());
        self.queues.rotate_right(1);
        self.queues[0] = queue;
        if self.fits(capacity_bytes_per_s) {
            (self.state, self.limit_bytes_per_s) = (FREE, None);
            return;
        }
        // A limit costs nothing if all is late.
        let all_late = is_long && least - path.floor() / 2 > self.deadline;
        let late_at = if all_late { Some(now) } else { self.late_at };
        self.late_at = late_at.filter(|at| now - *at < RETRY_MOST);
        self.is_held_off &= is_long;
        match self.state {
            State::Free(_) if is_long => {
                self.suspect(epoch, (path, all_late), now);
            }
            State::Free(_) => self.state = FREE,
            State::Testing(test) => self.judge(test, &epoch, (path, all_late), now),
            State::Limited { in_vain, queue: before } => {
                self.effective_from = now;
                if is_long && self.is_in_time(path) {
                    (self.state, self.limit_bytes_per_s, self.is_held_off) = (FREE, None, true);
                } else if is_long {
                    self.decrease(&epoch, (queue, all_late), (in_vain, before), now);
                } else {
                    self.state = State::Limited { in_vain: 0, queue: before };
                    self.grow(&epoch);
                }
            }
        }
    }

    /// Whether the path is known to carry what is offered, with its repairs.
    fn fits(&self, capacity_bytes_per_s: Option<f64>) -> bool {
        let rate = self.offered.bytes_per_s.max(self.sent.bytes_per_s) * OFFERED_MARGIN;
        capacity_bytes_per_s.is_some_and(|capacity| rate < capacity)
    }

    /// Whether what stands in the queue is in time, and will be until a limit would show its effect. Then a limit would only lose what the
    /// path carries. All of the queue may be on the way there. A queue that has made everything late would do so again.
    fn is_in_time(&self, path: &PathDelay) -> bool {
        let [newest, _, before, _] = self.queues;
        let grown = (newest - before).max(Span::ZERO);
        let way = path.floor() / 2 + newest + path.noise() + grown;
        self.late_at.is_none() && way + self.sample_time() < self.deadline
    }

    /// How long a sample takes where no more is carried than what is offered.
    fn sample_time(&self) -> Span {
        Span::from_ns((self.sample_bytes as f64 / self.offered.bytes_per_s.max(1.0) * 1e9) as i64)
    }

    /// Delivery rate without chance loss, from the rate of arrivals.
    fn carried(&self, arrived_bytes_per_s: f64) -> f64 {
        arrived_bytes_per_s / (1.0 - self.chance_loss.share.min(CHANCE_MOST))
    }

    /// Begins a test, if the last epochs give reason to.
    fn suspect(&mut self, epoch: Epoch, (path, all_late): (&PathDelay, bool), now: Instant<Local>) {
        let (is_in_time, loses) = (self.is_in_time(path), self.queue_loses());
        let State::Free(suspicious) = &mut self.state else { return };
        let least = if self.is_held_off { CARRIED_AGAIN } else { CARRIED };
        let carried = least * (1.0 - self.chance_loss.share);
        suspicious.push(epoch);
        if suspicious.len() < SUSPICIOUS {
            return;
        }
        let mut total = NOTHING;
        suspicious.iter().for_each(|epoch| total.add(epoch));
        // A step of the route is one epoch in which little arrives.
        let lacking =
            suspicious.iter().filter(|epoch| epoch.unmarked_bytes() < epoch.sent_bytes as f64).count();
        suspicious.remove(0);
        let is_carried = total.unmarked_bytes >= total.sent_bytes as f64 * carried;
        let is_carried = !all_late && (is_carried || lacking + 1 < SUSPICIOUS);
        self.is_held_off = !is_carried && is_in_time && loses;
        if is_carried || is_in_time || now < self.retry_at {
            return;
        }
        let (queue, arrived) = (self.queues[0], self.carried(total.bytes_per_s(total.arrived_bytes)));
        self.ceiling_bytes_per_s = arrived;
        let limit_bytes_per_s = (arrived * drains(queue).min(DECREASE)).max(LIMIT_LEAST_BYTES_PER_S);
        (self.limit_bytes_per_s, self.effective_from) = (Some(limit_bytes_per_s), now);
        let (began, arrived_bytes_per_s) = (now, arrived);
        self.state = State::Testing(Test { began, limit_bytes_per_s, arrived_bytes_per_s, reference: None });
    }

    /// An epoch of a test is over.
    fn judge(
        &mut self,
        test: Test,
        epoch: &Epoch,
        (path, all_late): (&PathDelay, bool),
        now: Instant<Local>,
    ) {
        let (Some(reference), Some(least)) = (test.reference, epoch.least) else { return };
        let share = 1.0 - test.limit_bytes_per_s / test.arrived_bytes_per_s;
        // The epoch's packets have left a round trip ago.
        let expected = (now - least - test.began).max(Span::ZERO).as_s_f64() * share;
        let [drained, noise] = [reference - least, QUEUE_LEAST.max(path.noise())].map(|span| span.as_s_f64());
        let queue = least - path.floor();
        if queue <= unqueued(path) {
            // Gone long before it could have drained: a radio that stalled, or another flow's.
            let is_ours = drained <= expected * 2.0 / DRAINED + noise;
            self.conclude(is_ours, queue, now);
        } else if expected >= 2.0 * noise {
            self.conclude(drained >= DRAINED * expected || all_late, queue, now);
        }
    }

    fn conclude(&mut self, is_ours: bool, queue: Span, now: Instant<Local>) {
        if is_ours {
            self.state = State::Limited { in_vain: 0, queue };
            self.retry_after = RETRY_FIRST;
        } else {
            self.withdraw(now);
        }
    }

    /// The limit does not help.
    fn withdraw(&mut self, now: Instant<Local>) {
        (self.state, self.limit_bytes_per_s) = (FREE, None);
        (self.growing, self.near_ceiling) = (0, 0);
        self.retry_at = now + self.retry_after;
        self.retry_after = (self.retry_after * 2).min(RETRY_MOST);
    }

    fn decrease(
        &mut self,
        epoch: &Epoch,
        (queue, all_late): (Span, bool),
        (in_vain, before): (u32, Span),
        now: Instant<Local>,
    ) {
        (self.growing, self.near_ceiling) = (0, 0);
        let [arrived, sent] =
            [epoch.arrived_bytes, epoch.sent_bytes].map(|bytes| bytes as f64 / epoch.length.as_s_f64());
        let arrived = self.carried(arrived);
        let bearable = (arrived * SHARE_OF_ARRIVED * drains(queue)).max(LIMIT_LEAST_BYTES_PER_S);
        self.ceiling_bytes_per_s = arrived;
        let is_shorter = queue + before / 8 < before;
        if is_shorter {
            self.state = State::Limited { in_vain: 0, queue };
        } else if in_vain >= EPOCHS_IN_VAIN {
            if !all_late {
                self.withdraw(now);
            }
        } else if let Some(limit) = self.limit_bytes_per_s {
            let bearable = if arrived < sent * STILL_TOO_MUCH { bearable } else { limit };
            self.limit_bytes_per_s = Some((limit * DECREASE).min(bearable).max(LIMIT_LEAST_BYTES_PER_S));
            self.state = State::Limited { in_vain: in_vain + 1, queue: queue.max(before) };
        }
    }

    fn grow(&mut self, epoch: &Epoch) {
        let Some(limit) = self.limit_bytes_per_s else { return };
        if limit >= self.ceiling_bytes_per_s * NEAR_CEILING && self.near_ceiling < EPOCHS_NEAR_CEILING {
            self.near_ceiling += 1;
            return;
        }
        self.growing += 1;
        let sent = epoch.sent_bytes as f64 / epoch.length.as_s_f64();
        let grown = limit * (1.0 + GROWTH * f64::from(self.growing)).min(GROWTH_MAX);
        // It no longer binds, even if twice as much is offered.
        self.limit_bytes_per_s = (limit < sent * 2.0).then_some(grown);
        if self.limit_bytes_per_s.is_none() {
            self.state = FREE;
        }
    }
}

/// Part of what arrives that drains a queue in time.
fn drains(queue: Span) -> f64 {
    (1.0 - queue.as_s_f64() / DRAIN.as_s_f64()).max(DRAIN_LEAST)
}

/// A round trip may be so long above the floor without a queue.
fn unqueued(path: &PathDelay) -> Span {
    QUEUE_LEAST.max(path.floor() / 4).max(path.noise())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(trips_ms: &[i64]) -> RateLimit {
        let (mut limit, mut path) = (RateLimit::new(Instant::MIN), PathDelay::new(Instant::MIN));
        for trip_ms in trips_ms {
            path.measure(Span::from_ms(*trip_ms), false, Instant::MIN);
            limit.measure(Span::from_ms(*trip_ms), (Instant::MIN, 0), &path);
        }
        limit
    }

    #[test]
    fn eight_long_round_trips_in_a_row_leave_doubt_and_a_short_one_ends_it() {
        assert!(!after(&[20, 30, 31, 32, 33, 34, 35, 36]).is_doubtful());
        assert!(after(&[20, 30, 31, 32, 33, 34, 35, 36, 37]).is_doubtful());
        assert!(!after(&[20, 30, 31, 32, 33, 34, 35, 36, 37, 24]).is_doubtful());
    }

    /// 115 B every 5 ms over a floor of 6 ms and through a queue, each acknowledged after a round trip; and whether
    /// there was a limit. What is sent does not follow the limit.
    fn through(queue_ms: impl Fn(i64) -> i64, samples: i64, deadline_ms: i64) -> (RateLimit, bool) {
        let at = |ms| Instant::from_ns(ms * 1_000_000);
        let (mut limit, mut path) = (RateLimit::new(at(0)), PathDelay::new(at(0)));
        let mut heard: Vec<(i64, i64)> = (0..samples).map(|n| (5 * n + 6 + queue_ms(n), n)).collect();
        heard.sort_unstable();
        let mut heard = heard.into_iter().peekable();
        let mut was_limited = false;
        for now in 0..5 * samples {
            if now % 5 == 0 {
                limit.offer(115, Span::from_ms(deadline_ms), at(now));
                limit.sent(115, at(now));
            }
            while let Some((when, n)) = heard.next_if(|(when, _)| *when == now) {
                limit.arrived(115, at(5 * n), at(now));
                path.measure(Span::from_ms(when - 5 * n), false, at(now));
                limit.measure(Span::from_ms(when - 5 * n), (at(5 * n), 115 * n as u64), &path);
                limit.handle_feedback(&path, None, at(now));
                was_limited |= limit.limit_bytes_per_s().is_some();
            }
        }
        (limit, was_limited)
    }

    #[test]
    fn a_radio_that_stalls_and_catches_up_is_not_full() {
        for (stall_ms, length) in [(20, 10), (40, 20), (45, 15)] {
            let stall = |n: i64| (stall_ms - (n - 200).abs() * stall_ms / length).max(0);
            // What comes while it is longest would be late if it went on.
            assert!(!through(stall, 600, stall_ms + 6).1, "{stall_ms} ms");
        }
    }

    #[test]
    fn a_limit_that_does_not_shorten_the_queue_is_withdrawn() {
        // A tenth too much, whatever is sent, and on the edge of being late.
        let (limit, was_limited) = through(|n| ((n - 200).max(0) / 2).min(147), 900, 150);
        assert!(was_limited);
        assert_eq!(limit.limit_bytes_per_s(), None);
    }

    #[test]
    fn a_queue_is_limited_only_if_what_stands_in_it_would_be_late() {
        // It grows to 100 ms within a second, and is full.
        let queue_ms = |n: i64| ((n - 200).max(0) / 2).min(100);
        for (deadline_ms, is_expected) in [(60, true), (100, true), (250, false), (400, false)] {
            assert_eq!(through(queue_ms, 600, deadline_ms).1, is_expected, "{deadline_ms} ms");
        }
    }
}
