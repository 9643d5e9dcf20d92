//! How much may wait in the kernel between the own socket and the line.
//!
//! # Problem
//!
//! The kernel queues what it takes in order, so a sample behind a megabyte of pictures waits as long as those take on the line:
//! half a second with an ordinary socket buffer and 2 Mbit/s. Priorities are of no use behind a queue.
//!
//! # Approach
//!
//! As the kernel's own dynamic queue limits (`lib/dynamic_queue_limits.c`) do for drivers: the limit is what the line sends in
//! [`TARGET`], measured from what left between two looks at the queue (`SIOCOUTQ`). If the queue ran empty while something was held
//! back, the limit doubles. While the queue is at its limit, fragments of large samples wait in the node, and what is
//! urgent goes ahead of them. A line that is never behind costs one look in [`CHECK_BYTES`].
//!
//! Where one datagram takes longer than [`TARGET`], the queue holds one, and the next goes when that has left: two would already hold up a
//! sensor for longer than its periods. An empty queue is then no sign that the limit is too low; how soon it ran empty gives the rate.
//!
//! Sans-IO: its driver looks at the queue and reports what it saw.

use noctule_timebase::{Instant, Span};

use crate::clock::Raw;

/// Time that the line takes to send a queue at its limit: short beside the period of a fast sensor, long beside the time that a
/// thread takes to wake.
const TARGET: Span = Span::from_ms(4);
/// A datagram of an Ethernet frame as the kernel counts it.
const LIMIT_LEAST_BYTES: usize = 2_304;
/// Overhead of a datagram in the kernel's account.
const DATAGRAM_OVERHEAD_BYTES: usize = LIMIT_LEAST_BYTES - 1_472;
/// More than any socket's buffer holds.
const LIMIT_MAX_BYTES: usize = 8 << 20;
/// The queue is looked at after so many bytes.
const CHECK_BYTES: usize = 8 << 10;
/// While something is held back: after any datagram but a small one.
const CHECK_BYTES_BEHIND: usize = 1 << 10;
/// A slow line that has so often taken what it was given at once is not slow any more; once, it has only saved up.
const TAKEN_AT_ONCE: u32 = 3;
/// Between two looks while it is at its limit.
const CHECK_INTERVAL: (Span, Span) = (Span::from_us(200), Span::from_ms(2));

/// The limit on bytes that wait in the kernel behind the node's own socket.
#[derive(Debug)]
pub(super) struct KernelQueue {
    limit_bytes: usize,
    /// As of the last look, and what was sent since.
    queued_bytes: usize,
    unchecked_bytes: usize,
    /// The last look after which the queue drained: bytes and time.
    mark: (usize, Instant<Raw>),
    rate_bytes_per_s: Option<f64>,
    /// Looks in a row right after something was sent that found nothing.
    taken_at_once: u32,
    /// Something had to wait.
    is_behind: bool,
    check_at: Instant<Raw>,
}

impl KernelQueue {
    pub(super) fn new(now: Instant<Raw>) -> KernelQueue {
        KernelQueue {
            limit_bytes: LIMIT_LEAST_BYTES,
            queued_bytes: 0,
            unchecked_bytes: 0,
            mark: (0, now),
            rate_bytes_per_s: None,
            taken_at_once: 0,
            is_behind: false,
            check_at: now,
        }
    }

    /// Bytes that may be sent before the queue is at its limit.
    pub(super) fn allowance_bytes(&self) -> usize {
        self.limit_bytes.saturating_sub(self.queued_bytes)
    }

    /// Bytes of a datagram in the kernel's account.
    pub(super) fn cost_bytes(datagram_bytes: usize) -> usize {
        datagram_bytes + DATAGRAM_OVERHEAD_BYTES
    }

    /// Something was not sent because the allowance was used up. It can be after [`check_at`](KernelQueue::check_at).
    pub(super) fn hold_back(&mut self) {
        self.is_behind = true;
    }

    /// So many bytes of datagrams were sent.
    pub(super) fn sent(&mut self, bytes: usize) {
        self.queued_bytes += bytes;
        self.unchecked_bytes += bytes;
    }

    /// Whether the queue should be looked at now that something was sent: then
    /// [`handle_sent`](KernelQueue::handle_sent).
    pub(super) fn wants_look(&self) -> bool {
        self.unchecked_bytes >= if self.is_behind { CHECK_BYTES_BEHIND } else { CHECK_BYTES }
    }

    /// When the queue must be looked at although nothing was sent: then [`handle_drained`](KernelQueue::handle_drained).
    pub(super) fn check_at(&self) -> Option<Instant<Raw>> {
        self.is_behind.then_some(self.check_at)
    }

    /// Length of the kernel's queue right after something was sent.
    pub(super) fn handle_sent(&mut self, queued_bytes: usize, now: Instant<Raw>) {
        (self.queued_bytes, self.unchecked_bytes) = (queued_bytes, 0);
        self.mark = (queued_bytes, now);
        self.taken_at_once = if queued_bytes == 0 { self.taken_at_once.saturating_add(1) } else { 0 };
        if queued_bytes == 0 && self.is_behind && (!self.is_slow() || self.taken_at_once >= TAKEN_AT_ONCE) {
            // The line is quicker than this thread.
            self.limit_bytes = (self.limit_bytes * 2).min(LIMIT_MAX_BYTES);
        }
        self.plan(now);
    }

    /// Whether what was held back can go at once.
    pub(super) fn is_released(&mut self) -> bool {
        let is_released = self.is_behind && self.allowance_bytes() >= self.limit_bytes / 2;
        self.is_behind &= !is_released;
        is_released
    }

    /// The socket's buffer is full, which is far more than the limit should be: what is held back can go at `again`.
    pub(super) fn handle_full(&mut self, again: Instant<Raw>) {
        self.queued_bytes = self.queued_bytes.max(self.limit_bytes);
        (self.is_behind, self.check_at) = (true, again);
    }

    /// Length of the kernel's queue some time after the last look, with nothing large sent in between.
    pub(super) fn handle_drained(&mut self, queued_bytes: usize, now: Instant<Raw>) {
        let (marked_bytes, marked_at) = self.mark;
        (self.queued_bytes, self.unchecked_bytes) = (queued_bytes, 0);
        let left_bytes = marked_bytes.saturating_sub(queued_bytes);
        let took = (now - marked_at).as_s_f64();
        let is_measured = left_bytes > 0 && took > 0.0;
        if is_measured && (queued_bytes > 0 || self.has_just_emptied(marked_bytes, took)) {
            let rate = left_bytes as f64 / took;
            let rate = self.rate_bytes_per_s.map_or(rate, |known| known + (rate - known) / 4.0);
            self.rate_bytes_per_s = Some(rate);
            let target_bytes = (rate * TARGET.as_s_f64()) as usize;
            self.limit_bytes = target_bytes.clamp(LIMIT_LEAST_BYTES, LIMIT_MAX_BYTES);
            self.mark = (queued_bytes, now);
        } else if queued_bytes == 0 {
            if self.is_behind {
                self.limit_bytes = (self.limit_bytes * 2).min(LIMIT_MAX_BYTES);
            }
            self.mark = (0, now);
        }
        self.is_behind = false;
        self.plan(now);
    }

    /// Whether a datagram takes longer than [`TARGET`].
    fn is_slow(&self) -> bool {
        self.rate_bytes_per_s.is_some_and(|rate| rate * TARGET.as_s_f64() < LIMIT_LEAST_BYTES as f64)
    }

    /// Whether what a slow line was given was expected to be gone about now, after so long. Much later, the thread was late.
    fn has_just_emptied(&self, given_bytes: usize, took_s: f64) -> bool {
        self.is_slow() && self.rate_bytes_per_s.is_some_and(|rate| took_s < 2.0 * given_bytes as f64 / rate)
    }

    /// Half of the queue will have left by then; of a slow line, three quarters of the datagram that it is at.
    fn plan(&mut self, now: Instant<Raw>) {
        let (soonest, latest) = CHECK_INTERVAL;
        let (marked_bytes, marked_at) = self.mark;
        let wait = self.rate_bytes_per_s.map_or(Span::from_us(500), |rate| {
            let takes = |bytes: f64| {
                Span::from_ns((bytes / rate.max(1.0) * 1e9).min(latest.ns() as f64 * 8.0) as i64)
            };
            match self.is_slow() {
                true => marked_at + takes(marked_bytes as f64 * 0.75) - now,
                false => takes(self.queued_bytes.saturating_sub(self.limit_bytes / 2) as f64),
            }
        });
        self.check_at = now + wait.clamp(soonest, latest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line and its queue: the kernel counts 2,304 bytes for a datagram of 1,200, and 768 for one of 64.
    struct Line {
        bytes_per_s: f64,
        /// Bytes on the line, and as the kernel counts them.
        queue: std::collections::VecDeque<(usize, usize)>,
        /// When the first of them has left.
        free_at: Instant<Raw>,
    }

    impl Line {
        fn advance(&mut self, now: Instant<Raw>) {
            while let Some((bytes, _)) = self.queue.front() {
                let takes = Span::from_ns((*bytes as f64 / self.bytes_per_s * 1e9) as i64);
                if self.free_at + takes > now {
                    return;
                }
                self.free_at += takes;
                self.queue.pop_front();
            }
        }

        fn push(&mut self, bytes: usize, now: Instant<Raw>) {
            if self.queue.is_empty() {
                self.free_at = now;
            }
            self.queue.push_back((bytes + 66, if bytes > 600 { 2_304 } else { 768 }));
        }

        fn queued_bytes(&self) -> usize {
            self.queue.iter().map(|(_, counted)| counted).sum()
        }

        /// How long what is queued takes.
        fn backlog(&self) -> Span {
            let bytes: usize = self.queue.iter().map(|(bytes, _)| bytes).sum();
            Span::from_ns((bytes as f64 / self.bytes_per_s * 1e9) as i64)
        }
    }

    /// A camera that always has something to send, and an inertial sensor of 64 bytes every 5 ms, for 10 s; the thread wakes late by up to
    /// `late`. Gives the longest that a sample of the sensor waits in the queue after the first second, and the share of the line that was used.
    /// After half of the time the line has another rate.
    fn camera_and_imu([first, then]: [f64; 2], late: Span) -> (Span, f64) {
        let mut now = Instant::from_ns(0);
        let mut line = Line { bytes_per_s: first / 8.0, queue: Default::default(), free_at: now };
        let mut queue = KernelQueue::new(now);
        let (mut imu_at, mut longest, mut sent_bytes, mut random) = (now, Span::ZERO, 0, 1_u64);
        let end = now + Span::from_s(10);
        while now < end {
            line.advance(now);
            if now >= Instant::from_ns(5_000_000_000) {
                line.bytes_per_s = then / 8.0;
            }
            if queue.check_at().is_some_and(|at| at <= now) {
                queue.handle_drained(line.queued_bytes(), now);
            }
            if imu_at <= now {
                line.push(64, now);
                queue.sent(64);
                sent_bytes += 64 + 66;
                imu_at += Span::from_ms(5);
                if now > Instant::from_ns(1_000_000_000) {
                    longest = longest.max(line.backlog());
                }
            }
            let (mut taken, mut allowance_bytes) = (0, queue.allowance_bytes());
            while allowance_bytes > 0 && taken < 64 {
                line.push(1_472, now);
                allowance_bytes = allowance_bytes.saturating_sub(KernelQueue::cost_bytes(1_472));
                taken += 1;
                sent_bytes += 1_538;
            }
            queue.sent(taken * 1_472);
            if taken < 64 {
                queue.hold_back();
            }
            if queue.wants_look() {
                queue.handle_sent(line.queued_bytes(), now);
            }
            let goes_on = taken >= 64 || queue.is_released();
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let is_late = Span::from_ns((random >> 33) as i64 % late.ns().max(1));
            let next = queue.check_at().map_or(imu_at, |at| at.min(imu_at)) + is_late;
            // To encode a batch takes a while.
            now = if goes_on { now + Span::from_us(50) } else { next.max(now + Span::from_us(1)) };
        }
        (longest, sent_bytes as f64 / ((first + then) / 8.0) / 5.0)
    }

    #[test]
    fn a_sensor_does_not_wait_behind_a_camera_and_the_line_is_used() {
        for mbit_per_s in [2.0, 10.0, 50.0, 1_000.0] {
            for late_us in [0, 60, 1_000] {
                let (longest, used) = camera_and_imu([mbit_per_s * 1e6; 2], Span::from_us(late_us));
                println!(
                    "{mbit_per_s} Mbit/s, late by {late_us} us: {longest} behind the camera at most, {used:.3} of the line used"
                );
                // Less than two periods of the sensor.
                assert!(longest < Span::from_ms(10), "{mbit_per_s} Mbit/s: {longest}");
                assert!(used >= 0.95, "{mbit_per_s} Mbit/s: {used}");
            }
        }
    }

    #[test]
    fn a_line_that_becomes_quicker_or_slower_is_used() {
        for mbit_per_s in [[2.0, 50.0], [2.0, 1_000.0], [50.0, 2.0], [1_000.0, 10.0]] {
            for late_us in [0, 60, 1_000] {
                let bits_per_s = mbit_per_s.map(|rate| rate * 1e6);
                let (_, used) = camera_and_imu(bits_per_s, Span::from_us(late_us));
                println!("{mbit_per_s:?} Mbit/s, late by {late_us} us: {used:.3} of the line used");
                assert!(used >= 0.95, "{mbit_per_s:?} Mbit/s, late by {late_us} us: {used}");
            }
        }
    }

    #[test]
    fn a_line_that_is_never_behind_is_looked_at_once_in_eight_kilobytes() {
        let mut queue = KernelQueue::new(Instant::from_ns(0));
        let mut looks = 0;
        for sample in 0..10_000 {
            queue.sent(64);
            if queue.wants_look() {
                looks += 1;
                queue.handle_sent(0, Instant::from_ns(sample * 10_000));
            }
        }
        assert_eq!((looks, queue.check_at()), (10_000 * 64 / CHECK_BYTES, None));
    }
}
