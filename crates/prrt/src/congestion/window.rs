//! The congestion window of reliable traffic and its pacing: CUBIC beside others, delay-based alone.
//!
//! # Problem
//!
//! TCP fills the queue in front of a narrow line until it overflows: the line is used, its share is fair, and every
//! datagram of every flow waits. And it takes every loss for an overflow, so that a radio that loses 5 % by chance
//! stalls.
//!
//! # Approach
//!
//! A queue is seen by the round trip, as in the [pace](crate::congestion::rate_limit) of what has a deadline: in *rounds*, if even the
//! shortest round trip is above the floor by more than [`Window::allowed`], something queues all the time.
//!
//! - [`Mode::Start`]: twice the window each round trip, until there is a queue.
//! - [`Mode::Drain`]: only as much as the path holds without a queue, by Little's law. Is the queue gone then, it was
//!   ours: back to short queues. If not, another flow's is in it.
//! - [`Mode::Short`]: grows slowly, then faster, until there is a queue; then drains. Alone on a line it keeps some packets waiting.
//! - [`Mode::Compete`]: CUBIC TCP for some seconds, so that its like leave us our half; then drains, to see whether they are still there.
//!
//! The two modes and the test between them are the idea of Copa (Arun and Balakrishnan, NSDI 2018) and Nimbus (Goyal
//! et al., SIGCOMM 2022). A loss without a queue is the channel's and changes nothing, unless so much is lost that it may be
//! a policer, which has no queue ([`chance_loss`](super::chance_loss)). Losses with a queue decrease the window as CUBIC does;
//! one that was none gives it back what it had (RFC 4015).
//!
//! Nothing is learned of a queue of ours while the window is not full ([`unfilled`](super::unfilled)): losses change nothing
//! then, and neither delays of then nor the rate that the path bore then are held against us later.

use noctule_timebase::{Instant, Span};

use super::chance_loss::{ChanceLoss, Sign};
use super::cubic::Cubic;
use super::pacer::Pacer;
use super::path_delay::PathDelay;
use super::unfilled::{Over, Unfilled};
use crate::round_trip::RoundTrip;
use crate::stream::Local;

/// About what a small datagram costs the buffer of a socket besides its own bytes.
pub(crate) const PACKET_OVERHEAD_BYTES: usize = 512;
/// No queue is shorter: less is the noise of hosts.
const QUEUE_LEAST: Span = Span::from_us(1_500);
/// Nor than this part of the floor.
const QUEUE_SHARE: i64 = 8;
/// Packets that may wait in our own queue, for as long as this part of the floor.
const QUEUE_PACKETS: f64 = 3.0;
const QUEUE_PACKETS_SHARE: i64 = 4;
/// Round trips that a round must have measured, and that must have been long before a loss counts.
const ROUND_TRIPS_LEAST: u32 = 4;
/// Rounds for a queue to drain.
const DRAIN_ROUNDS: u32 = 2;
/// How long CUBIC's like is met with its like before the next look; at least so many round trips.
const COMPETE_LEAST: Span = Span::from_s(3);
const COMPETE_ROUND_TRIPS: i64 = 64;
/// Growth of a round: this part of the window, a packet at least; from this round on as often as there were more.
const GROWTH_SHARE: f64 = 1.0 / 32.0;
const GROWTH_EVEN: u32 = 4;
/// Share of the window that is left by a loss with a queue (RFC 9438, section 4.6).
const DECREASE: f64 = 0.7;
/// The same by a mark (RFC 8511, section 3.1).
const DECREASE_MARKED: f64 = 0.85;
/// A window of so many packets can be made smaller to see whether less is lost.
const WINDOW_TRIED: f64 = 3.0;
/// Windows that leave per round trip; at the start as many more of what the path bore arrive as long as it is not full.
const GAIN_START: f64 = 2.0;
const GAIN: f64 = 1.25;
/// Floor of the window: so many times the delivery rate of rounds that did not fill it, times the round trip. Losses and their
/// retransmissions are in flight, too.
const GAIN_UNFILLED: f64 = 2.0;
/// Time-outs in a row after which the window is as if nothing were known, and less after each further one (RFC 9002, section 7.6).
const TIMEOUTS_LIMIT: u32 = 3;

/// Bounds of the window, in bytes as [`SentPackets::cost`](crate::sent_packets::SentPackets::cost) counts them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WindowLimits {
    /// Cost of the largest datagram.
    pub(crate) packet_bytes: usize,
    pub(crate) initial_bytes: usize,
    pub(crate) max_bytes: usize,
}

/// Packets that one feedback acknowledges for the first time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Arrived {
    pub(crate) datagram_bytes: usize,
    /// Of those sent after the last decrease.
    pub(crate) cost_bytes: usize,
    /// The same.
    pub(crate) packets: u32,
    /// All packets, those sent before it included.
    pub(crate) named: u32,
}

/// The congestion window and the pacing of reliable traffic.
#[derive(Debug)]
pub(crate) struct Window {
    limits: WindowLimits,
    bytes: f64,
    /// On its way when feedback last came.
    in_flight_bytes: f64,
    mode: Mode,
    cubic: Cubic,
    bucket: Pacer,
    round_trip: Option<RoundTrip>,
    latest: [Span; ROUND_TRIPS_LEAST as usize],
    /// The round trip without a queue, and what jitter may add to it.
    floor: Span,
    noise: Span,
    round: Round,
    /// The window is what holds traffic back.
    is_full: bool,
    unfilled: Unfilled,
    chance: ChanceLoss,
    /// A loss of a packet before this one has had its decrease.
    decreased_at: u64,
    before_decrease: Option<Before>,
    capacity_bytes_per_s: Option<f64>,
}

/// State of the window before a loss, to be restored if the loss was spurious.
#[derive(Clone, Copy, Debug)]
struct Before {
    packet: u64,
    mode: Mode,
    bytes: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    /// Delivery rate of the round before.
    Start {
        bytes_per_s: f64,
    },
    /// Rounds without a queue, in a row.
    Short {
        growing: u32,
    },
    /// Where the window was, how long the queue, and rounds that may still pass.
    Drain {
        before_bytes: f64,
        queue: Span,
        rounds: u32,
    },
    Compete {
        until: Instant<Local>,
    },
}

/// Fates of the packets sent in one round trip.
#[derive(Clone, Copy, Debug)]
struct Round {
    began: Instant<Local>,
    /// The first packet of the round.
    first: u64,
    round_trips: u32,
    least: Span,
    sum: Span,
    /// Datagrams that arrived meanwhile.
    arrived_bytes: usize,
    arrived: u32,
    lost: u32,
    /// The window was full at some time.
    is_full: bool,
}

/// A round trip that no path has.
const NEVER: Span = Span::from_s(1 << 30);
const START: Mode = Mode::Start { bytes_per_s: 0.0 };

impl Round {
    fn new(began: Instant<Local>, first: u64) -> Round {
        Round {
            began,
            first,
            round_trips: 0,
            least: NEVER,
            sum: Span::ZERO,
            arrived_bytes: 0,
            arrived: 0,
            lost: 0,
            is_full: false,
        }
    }

    fn bytes_per_s(&self, now: Instant<Local>) -> f64 {
        self.arrived_bytes as f64 / (now - self.began).as_s_f64().max(1e-6)
    }

    /// The mean round trip.
    fn mean(&self) -> Span {
        self.sum / i64::from(self.round_trips.max(1))
    }
}

impl Window {
    pub(crate) fn new(limits: WindowLimits, now: Instant<Local>) -> Window {
        let bytes = limits.initial_bytes.max(2 * limits.packet_bytes) as f64;
        Window {
            limits,
            bytes,
            in_flight_bytes: 0.0,
            mode: START,
            cubic: Cubic::new(bytes, now),
            bucket: Pacer::new(now),
            round_trip: None,
            latest: [Span::ZERO; ROUND_TRIPS_LEAST as usize],
            floor: NEVER,
            noise: Span::ZERO,
            round: Round::new(now, 0),
            is_full: false,
            unfilled: Unfilled::new(now),
            chance: ChanceLoss::default(),
            decreased_at: 0,
            before_decrease: None,
            capacity_bytes_per_s: None,
        }
    }

    /// A loss of a packet before this one has had its decrease.
    pub(crate) fn decreased_at(&self) -> u64 {
        self.decreased_at
    }

    /// The largest datagram costs so much from now on.
    pub(crate) fn resize(&mut self, packet_bytes: usize) {
        self.limits.packet_bytes = packet_bytes;
        self.set(self.bytes);
    }

    /// The congestion window.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        self.bytes as usize
    }

    /// The congestion window with what arrives while a thread at either end lets `waits` pass: it is in no queue of the path.
    pub(crate) fn with_waits(&self, waits: Span) -> usize {
        let meanwhile = self.path_bytes_per_s().unwrap_or(0.0) * waits.as_s_f64();
        (self.bytes + meanwhile).min(self.limits.max_bytes as f64) as usize
    }

    /// When the next packet may leave; in the past if at once.
    pub(crate) fn ready_at(&self) -> Instant<Local> {
        self.bucket.ready_at(self.rate_bytes_per_s())
    }

    /// Bytes a second that arrived of datagrams when the path was full; `None` if it never was.
    pub(crate) fn capacity_bytes_per_s(&self) -> Option<f64> {
        self.capacity_bytes_per_s
    }

    /// A reliable packet of this cost leaves.
    pub(crate) fn sent(&mut self, cost_bytes: usize, now: Instant<Local>) {
        self.bucket.count(self.rate_bytes_per_s(), now);
        self.bucket.spend(cost_bytes);
    }

    /// A packet has been there and back, which is already part of `path`.
    pub(crate) fn measure(&mut self, round_trip: RoundTrip, packet: u64, path: &PathDelay) {
        self.round_trip = Some(round_trip);
        (self.floor, self.noise) = (path.floor(), path.noise());
        let sample = round_trip.latest;
        self.latest.rotate_right(1);
        self.latest[0] = sample;
        if packet >= self.round.first {
            self.round.round_trips += 1;
            self.round.least = self.round.least.min(sample);
            self.round.sum += sample;
        }
    }

    /// Packets have arrived of so much that was on its way.
    pub(crate) fn arrived(&mut self, arrived: Arrived, in_flight_bytes: usize, now: Instant<Local>) {
        let Arrived { datagram_bytes, cost_bytes, packets, .. } = arrived;
        self.round.arrived_bytes += datagram_bytes;
        self.round.arrived += packets;
        self.in_flight_bytes = in_flight_bytes as f64;
        self.is_full = in_flight_bytes as f64 * 2.0 >= self.bytes;
        self.round.is_full |= self.is_full;
        self.chance.arrived(packets);
        let (packet_bytes, Some(trip)) = (self.limits.packet_bytes as f64, self.round_trip) else { return };
        if !self.is_full {
            return;
        }
        if self.chance.is_tried() {
            return;
        }
        let grown = match self.mode {
            Mode::Start { .. } => self.bytes + cost_bytes as f64,
            Mode::Compete { .. } => {
                let arrived = cost_bytes as f64 / packet_bytes;
                self.cubic.grow(self.bytes / packet_bytes, arrived, trip.smoothed, now) * packet_bytes
            }
            Mode::Short { .. } | Mode::Drain { .. } => self.bytes,
        };
        self.set(grown);
    }

    /// Packet `number` is lost; `next` will be the next one.
    pub(crate) fn lost(&mut self, number: u64, next: u64, now: Instant<Local>) {
        if number < self.decreased_at {
            return;
        }
        self.round.lost += 1;
        let sign = self.chance.lost();
        if !(self.is_full || sign == Sign::Excess && self.chance.is_most()) {
            return;
        }
        if sign == Sign::InVain {
            self.take_back();
            return;
        }
        // One long round trip is jitter; where chance loses much, many a loss comes with one.
        let queue = self.least_of_latest() - self.floor;
        let is_chance = queue <= self.allowed() || self.is_growing(now);
        if is_chance && sign == Sign::Chance {
            return;
        }
        if !matches!(self.mode, Mode::Drain { .. }) {
            self.before_decrease = Some(Before { packet: number, mode: self.mode, bytes: self.bytes });
        }
        self.decreased_at = next;
        let full_bytes = self.bytes;
        let left = if sign == Sign::Excess { self.chance.bearable().min(DECREASE) } else { DECREASE };
        match &mut self.mode {
            Mode::Compete { .. } => {
                let packet_bytes = self.limits.packet_bytes as f64;
                let after = self.cubic.decrease(self.bytes / packet_bytes, DECREASE, now);
                self.set(after * packet_bytes);
            }
            Mode::Drain { before_bytes, .. } => *before_bytes *= DECREASE,
            Mode::Start { .. } | Mode::Short { .. } => {
                let before_bytes = self.bytes * left;
                self.drain(before_bytes, (now, next));
                if sign == Sign::Excess {
                    self.set(self.bytes.min(before_bytes));
                }
            }
        }
        if sign == Sign::Excess {
            self.chance.decreased(self.bytes / full_bytes);
        }
    }

    /// Queues have marked packets up to `newest`: the first sign that one grows (RFC 3168), answered once in a round trip and by less than a loss,
    /// for a queue that marks is short (RFC 8511).
    pub(crate) fn marked(&mut self, newest: u64, next: u64, now: Instant<Local>) {
        if newest < self.decreased_at || !self.is_full {
            return;
        }
        match self.mode {
            Mode::Drain { .. } => return,
            Mode::Compete { .. } => {
                let packet_bytes = self.limits.packet_bytes as f64;
                let after = self.cubic.decrease(self.bytes / packet_bytes, DECREASE_MARKED, now);
                self.set(after * packet_bytes);
            }
            Mode::Start { .. } | Mode::Short { .. } => {
                self.mode = Mode::Short { growing: 0 };
                self.set(self.bytes * DECREASE_MARKED);
            }
        }
        self.decreased_at = next;
    }

    /// More arrives for more that is sent: what is long is not a queue of ours.
    fn is_growing(&self, now: Instant<Local>) -> bool {
        let Mode::Start { bytes_per_s } = self.mode else { return false };
        let length = now - self.round.began;
        length < self.floor / 2 || self.round.bytes_per_s(now) >= bytes_per_s * GAIN
    }

    /// Packet `number` was taken for lost, and has arrived.
    pub(crate) fn spurious(&mut self, number: u64) {
        self.chance.spurious();
        if self.before_decrease.is_some_and(|before| before.packet == number) {
            self.take_back();
        }
    }

    /// The last decrease was a mistake.
    fn take_back(&mut self) {
        let Some(before) = self.before_decrease.take() else { return };
        self.mode = before.mode;
        self.set(self.bytes.max(before.bytes));
    }

    /// Handles a retransmission time-out, the `in_a_row`th in a row.
    pub(crate) fn timed_out(&mut self, in_a_row: u32, next: u64, now: Instant<Local>) {
        if in_a_row >= TIMEOUTS_LIMIT {
            self.set((self.bytes / 2.0).min(self.limits.initial_bytes as f64));
            (self.mode, self.decreased_at, self.before_decrease) = (START, next, None);
            self.chance.forget_trial();
            self.round = Round::new(now, next);
        }
    }

    /// Feedback has been taken in; `next` will be the next packet. Judges the round, if it is over.
    pub(crate) fn handle_feedback(&mut self, next: u64, now: Instant<Local>) {
        let round = self.round;
        let Round { round_trips, least, arrived_bytes, arrived, lost, is_full, .. } = round;
        let packet_bytes = self.limits.packet_bytes as f64;
        if round_trips < ROUND_TRIPS_LEAST {
            return;
        }
        let queue = least - self.floor;
        let cost_bytes = arrived_bytes + arrived as usize * PACKET_OVERHEAD_BYTES;
        self.unfilled.handle_round(Over { is_full, cost_bytes, queue }, now);
        self.set(self.bytes);
        let is_long = queue > self.allowed();
        let (rate, is_growing) = (round.bytes_per_s(now), self.is_growing(now));
        if is_full && queue > self.allowed() / 2 {
            let smooth = |known| known + (rate - known) / 4.0;
            self.capacity_bytes_per_s = Some(self.capacity_bytes_per_s.map_or(rate, smooth));
        }
        self.round = Round::new(now, next);
        match self.mode {
            // What does not fill the window fills no queue either.
            Mode::Short { .. } if is_long && is_full => self.drain(self.bytes, (now, next)),
            Mode::Start { .. } if is_long && is_full && !is_growing => self.drain(self.bytes, (now, next)),
            Mode::Start { .. } => self.mode = Mode::Start { bytes_per_s: rate },
            Mode::Short { growing } if is_full && !self.chance.is_tried() => {
                // The loss may be that of a policer or a very short queue; only a decrease can show it.
                let is_exceeded = self.chance.is_exceeded_by(lost, arrived);
                if is_exceeded && self.bytes >= WINDOW_TRIED * packet_bytes {
                    self.mode = Mode::Short { growing: 0 };
                    return;
                }
                let growing = if is_exceeded { 0 } else { growing + 1 };
                self.mode = Mode::Short { growing };
                let step = packet_bytes.max(self.bytes * GROWTH_SHARE);
                let more = (f64::from(growing.saturating_sub(GROWTH_EVEN)) * step).min(self.bytes / 4.0);
                self.set(self.bytes + more.max(step));
            }
            Mode::Drain { before_bytes, queue: before, .. } if queue <= self.allowed() / 2 => {
                self.mode = Mode::Short { growing: 0 };
                // One short round trip among as long ones as before: the path is irregular, and nothing has drained.
                if round.mean() - self.floor > before / 2 {
                    self.unfilled.delays(before);
                    self.set(before_bytes);
                }
            }
            Mode::Drain { before_bytes, rounds: 0, .. } => {
                let most = self.round_trip.map_or(Span::ZERO, |trip| trip.smoothed) * COMPETE_ROUND_TRIPS;
                self.mode = Mode::Compete { until: now + most.max(COMPETE_LEAST) };
                self.set(before_bytes);
                self.cubic = Cubic::new(self.bytes / packet_bytes, now);
            }
            Mode::Drain { before_bytes, queue, rounds } => {
                self.mode = Mode::Drain { before_bytes, queue, rounds: rounds - 1 };
            }
            Mode::Compete { until } if now >= until => self.drain(self.bytes, (now, next)),
            Mode::Short { .. } | Mode::Compete { .. } => {}
        }
    }

    /// Leaves no more on its way than would be if nothing queued.
    fn drain(&mut self, before_bytes: f64, (now, next): (Instant<Local>, u64)) {
        let Some(trip) = self.round_trip else { return };
        let queue = trip.latest - self.floor;
        self.mode = Mode::Drain { before_bytes, queue, rounds: DRAIN_ROUNDS };
        let share = self.floor.as_s_f64() / trip.latest.as_s_f64().max(1e-9);
        self.set(self.bytes.min(self.in_flight_bytes) * share.clamp(0.1, 1.0));
        self.round = Round::new(now, next);
    }

    /// Of the last round trips, of which one may have been long by jitter.
    fn least_of_latest(&self) -> Span {
        self.latest.iter().fold(NEVER, |least, trip| least.min(*trip))
    }

    /// A longer queue than this is to be drained.
    fn allowed(&self) -> Span {
        let packets = match self.rate_bytes_per_s() {
            Some(rate) => {
                Span::from_ns((QUEUE_PACKETS * self.limits.packet_bytes as f64 / rate * 1e9) as i64)
            }
            None => Span::ZERO,
        };
        let own = packets.min(self.floor / QUEUE_PACKETS_SHARE);
        QUEUE_LEAST.max(self.floor / QUEUE_SHARE).max(own).max(self.noise).max(self.unfilled.delay())
    }

    fn rate_bytes_per_s(&self) -> Option<f64> {
        let gain = match self.mode {
            Mode::Start { .. } => GAIN_START,
            Mode::Short { .. } | Mode::Compete { .. } => GAIN,
            Mode::Drain { .. } => 1.0,
        };
        self.path_bytes_per_s().map(|rate| gain * rate)
    }

    /// What the path takes with this window. On a path so short that a queue is always many round trips long, the latest of them say that it
    /// has drained long before their mean does.
    fn path_bytes_per_s(&self) -> Option<f64> {
        let smoothed = self.round_trip?.smoothed;
        let round_trip =
            if self.floor < QUEUE_LEAST { smoothed.min(self.least_of_latest()) } else { smoothed };
        Some(self.bytes / round_trip.as_s_f64().max(1e-6))
    }

    fn set(&mut self, bytes: f64) {
        let round_trip = self.round_trip.map_or(Span::ZERO, |trip| trip.smoothed).as_s_f64();
        let unfilled = GAIN_UNFILLED * self.unfilled.bytes_per_s() * round_trip;
        let least = 2.0 * self.limits.packet_bytes as f64;
        self.bytes = bytes.max(unfilled).min(self.limits.max_bytes as f64).max(least);
    }
}
