//! The master: from an operator's device to poses at 1 kHz.
//!
//! A device speaks at its own rate, a browser at 60 to 1,000 Hz with gaps. [`HandEstimator`] brings its positions to a
//! steady rate: between them the hand is where its velocity takes it, for [`COAST`] at most. Whatever is older stays
//! where and *when* it was: the pose then grows old, and the controller stops the arm by its age.

pub mod device;
mod source;
pub mod trajectory;

use std::collections::VecDeque;
use std::time::Duration;

use noctule::{Node, NodeError, PublishError, Reliability};
use noctule_arm::hand::REST_S;
use noctule_netsim::Truth;
use noctule_netsim::link::{Direction, Link};
use noctule_sys::clock::{now_ns, sleep_until};
use noctule_timebase::{Instant, Span};

use crate::lateness::Lateness;
use crate::messages::{OperatorInput, POSE_TOPIC, PoseCommand};

pub use self::source::{DeviceError, Source};
use self::source::{Moment, OpenSource};

/// Poses a second.
pub const POSE_HZ: i64 = 1_000;
const PERIOD_NS: i64 = 1_000_000_000 / POSE_HZ;
/// So long a hand is extrapolated by its own velocity.
pub const COAST: Span = Span::from_ms(30);
/// A hand is taken to be no faster.
pub const HAND_SPEED_MAX_M_S: f64 = 3.0;
/// Velocities are slopes over so long.
const SLOPE: Span = Span::from_ms(40);
/// Sum of squares of their times about the mean, s²: three positions a millisecond apart have twice as much. With less the
/// noise of a position would be a velocity.
const SPREAD_MIN_S2: f64 = 1e-6;
/// Positions that are remembered for it.
const POSITIONS_MAX: usize = 64;
/// Poses that a reader may fall behind before it misses one: half a second, for a program that records them.
const POSES_KEPT: u32 = 512;
/// Poses on the modelled link.
const IN_FLIGHT_MAX: usize = 16_384;

/// Time in ns and position in m.
type Position = (i64, [f64; 3]);

/// Where a hand is, from positions at irregular times.
#[derive(Clone, Debug, Default)]
pub struct HandEstimator {
    /// Time in ns of the node's clock and position, oldest first.
    positions: VecDeque<Position>,
    newest: Option<OperatorInput>,
}

impl HandEstimator {
    /// Receives what the device reported at `time_ns`. What is not newer than the last is ignored.
    pub fn handle_input(&mut self, time_ns: i64, input: OperatorInput) {
        if self.newest.as_ref().is_some_and(|newest| newest.operator != input.operator) {
            self.positions.clear();
        }
        if self.positions.back().is_some_and(|(last_ns, _)| time_ns <= *last_ns) {
            return;
        }
        self.positions.push_back((time_ns, input.position_m));
        while self.positions.len() > POSITIONS_MAX
            || self.positions.front().is_some_and(|(first_ns, _)| time_ns - first_ns > SLOPE.ns())
        {
            self.positions.pop_front();
        }
        self.newest = Some(input);
    }

    /// The pose at `now_ns` and its source time; `None` before the first input.
    pub fn pose(&self, now_ns: i64) -> Option<(PoseCommand, i64)> {
        let (last_ns, last_m) = *self.positions.back()?;
        let newest = self.newest.as_ref()?;
        let source_ns = now_ns.clamp(last_ns, last_ns + COAST.ns());
        let velocity = self.velocity_m_s();
        let ahead_s = (source_ns - last_ns) as f64 * 1e-9;
        let pose = PoseCommand {
            operator: newest.operator,
            position_m: std::array::from_fn(|axis| last_m[axis] + velocity[axis] * ahead_s),
            orientation: [0.0, 0.0, 0.0, 1.0],
            linear_velocity_m_s: velocity,
            clutch: newest.clutch,
            scale: newest.scale,
            bound_ns: newest.bound_ns,
            ..PoseCommand::default()
        };
        Some((pose, source_ns))
    }

    /// The slope of a line through the positions of the last 40 ms, by least squares.
    fn velocity_m_s(&self) -> [f64; 3] {
        let Some((last_ns, _)) = self.positions.back() else { return [0.0; 3] };
        let count = self.positions.len() as f64;
        let seconds = |time_ns: i64| (time_ns - last_ns) as f64 * 1e-9;
        let mean_s = self.positions.iter().map(|(time_ns, _)| seconds(*time_ns)).sum::<f64>() / count;
        let spread: f64 =
            self.positions.iter().map(|(time_ns, _)| (seconds(*time_ns) - mean_s).powi(2)).sum();
        if self.positions.len() < 3 || spread < SPREAD_MIN_S2 {
            return [0.0; 3];
        }
        std::array::from_fn(|axis| {
            let moments = self.positions.iter().map(|(time_ns, at)| (seconds(*time_ns) - mean_s) * at[axis]);
            moments.sum::<f64>() / spread
        })
    }
}

/// Operator, source time in ns and position of the last pose.
type Last = (u64, i64, [f64; 3]);

/// Makes of a hand's positions a path without leaps: a pointer that was late and then hurries is no hand that leaps.
#[derive(Clone, Copy, Debug, Default)]
pub struct Smoother {
    last: Option<Last>,
}

impl Smoother {
    /// The pose, no further from the last one than [`HAND_SPEED_MAX_M_S`] allows while the clutch is held. `None` if
    /// it says nothing that is newer than the last.
    pub fn smoothed(&mut self, mut pose: PoseCommand, source_ns: i64) -> Option<PoseCommand> {
        if let Some((_, last_ns, last_m)) = self.last.filter(|(operator, ..)| *operator == pose.operator) {
            if source_ns <= last_ns {
                return None;
            }
            let longest_m = HAND_SPEED_MAX_M_S * (source_ns - last_ns) as f64 * 1e-9;
            let step: [f64; 3] = std::array::from_fn(|axis| pose.position_m[axis] - last_m[axis]);
            let length_m = step.iter().map(|part| part * part).sum::<f64>().sqrt();
            if pose.clutch && length_m > longest_m {
                let share = longest_m / length_m;
                pose.position_m = std::array::from_fn(|axis| last_m[axis] + step[axis] * share);
            }
        }
        let speed = pose.linear_velocity_m_s.iter().map(|part| part * part).sum::<f64>().sqrt();
        if speed > HAND_SPEED_MAX_M_S {
            pose.linear_velocity_m_s = pose.linear_velocity_m_s.map(|part| part * HAND_SPEED_MAX_M_S / speed);
        }
        self.last = Some((pose.operator, source_ns, pose.position_m));
        Some(pose)
    }
}

/// Configuration of a master.
#[derive(Clone, Debug)]
pub struct MasterConfig {
    /// Source of the hand's poses.
    pub source: Source,
    /// A link that poses pass before they are published; their source times stay what they were.
    pub link: Option<Direction>,
    /// Deadline of a pose.
    pub deadline: Duration,
    /// Seed of the link.
    pub seed: u64,
}

/// Why a master ended.
#[derive(Debug, thiserror::Error)]
pub enum MasterError {
    /// It could not join.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// It could not publish.
    #[error(transparent)]
    Publish(#[from] PublishError),
    /// Its input device.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

/// Runs a master until `is_due`.
///
/// # Errors
/// The topics cannot be opened, or a pose cannot be published.
pub fn run(node: &Node, config: &MasterConfig, is_due: &dyn Fn() -> bool) -> Result<Lateness, MasterError> {
    let poses = node.publisher(POSE_TOPIC).reliability(Reliability::DeadlineBound).deadline(config.deadline);
    let mut poses = poses.keep_last(POSES_KEPT).typed::<PoseCommand>().open()?;
    let mut source = OpenSource::open(node, &config.source)?;
    let mut estimator = HandEstimator::default();
    let mut smoother = Smoother::default();
    let mut air = config.link.as_ref().map(|direction| Air::new(direction, config.seed));
    let mut start = Start::new(node.now().ns());
    let (mut next_ns, mut sequence) = (now_ns(), 0);
    let mut lateness = Lateness::default();
    while !is_due() {
        next_ns += PERIOD_NS;
        sleep_until(next_ns);
        // Poses are of the present: those of periods that were slept through would say what a newer one does.
        next_ns += lateness.record(now_ns() - next_ns, PERIOD_NS) * PERIOD_NS;
        let now = node.now().ns();
        // Where a hand of a table or a formula is *now*: a period that begins late is no older than that.
        if source.waits_for_readers() {
            start.wait(now, || poses.publisher().readers());
        }
        let at = Moment { now_ns: now, since_ns: now - start.at_ns };
        source.feed(at, &mut estimator)?;
        let pose = estimator.pose(now).and_then(|(pose, source_ns)| {
            let mut pose = smoother.smoothed(pose, source_ns)?;
            sequence += 1;
            pose.sequence = sequence;
            if let Some(velocity_m_s) = source.true_velocity(at) {
                pose.linear_velocity_m_s = velocity_m_s;
            }
            Some((pose, source_ns))
        });
        match &mut air {
            None => {
                if let Some((pose, source_ns)) = pose {
                    poses.publish_at(&pose, Instant::from_ns(source_ns))?;
                }
            }
            Some(air) => {
                air.send(now, pose);
                while let Some((pose, source_ns)) = air.poll(now) {
                    poses.publish_at(&pose, Instant::from_ns(source_ns))?;
                }
            }
        }
    }
    Ok(lateness)
}

/// Start of a formula's hand: when a subscriber matches, and anew for one that comes before it moves: a clutch that engages in the
/// middle of a motion is one whose offset nobody knows afterwards.
#[derive(Debug)]
struct Start {
    at_ns: i64,
    readers: usize,
    asked_ns: i64,
}

/// Interval between two looks at how many there are: a look may have to wait for a handshake.
const LOOK: Span = Span::from_ms(100);
/// Time from the last program that came until the hand's time begins: discovery of the other programs, and the bound of their clocks.
const START_WAIT: Span = Span::from_s(1);

impl Start {
    fn new(now_ns: i64) -> Start {
        Start { at_ns: now_ns, readers: 0, asked_ns: i64::MIN / 2 }
    }

    fn wait(&mut self, now_ns: i64, readers: impl FnOnce() -> usize) {
        let is_moving = self.readers > 0 && now_ns - self.at_ns >= (REST_S * 1e9) as i64;
        if is_moving || now_ns - self.asked_ns < LOOK.ns() {
            return;
        }
        self.asked_ns = now_ns;
        let readers = readers();
        if readers == 0 || readers > self.readers {
            self.at_ns = now_ns + START_WAIT.ns();
        }
        self.readers = readers;
    }
}

/// Sequence, pose and source time in ns.
type Waiting = (u64, PoseCommand, i64);

/// A modelled link before the library's: poses wait here, and some do not come out.
struct Air {
    link: Link,
    waiting: VecDeque<Waiting>,
}

impl Air {
    fn new(direction: &Direction, seed: u64) -> Air {
        Air { link: Link::new(direction, Instant::from_ns(now_ns()), seed), waiting: VecDeque::new() }
    }

    fn send(&mut self, now: i64, pose: Option<(PoseCommand, i64)>) {
        let Some((pose, source_ns)) = pose else { return };
        let at: Instant<Truth> = Instant::from_ns(now);
        let mut packet = [0; 160];
        packet[..8].copy_from_slice(&pose.sequence.to_le_bytes());
        self.link.handle_packet(at, &packet);
        if self.waiting.len() == IN_FLIGHT_MAX {
            self.waiting.pop_front();
        }
        self.waiting.push_back((pose.sequence, pose, source_ns));
    }

    fn poll(&mut self, now: i64) -> Option<(PoseCommand, i64)> {
        while let Some(delivery) = self.link.poll_deliver(Instant::from_ns(now)) {
            let number = delivery.bytes.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
            let found = self.waiting.iter().find(|(sequence, ..)| Some(*sequence) == number);
            if let Some((_, pose, source_ns)) = found {
                return Some((pose.clone(), *source_ns));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn input(x: f64) -> OperatorInput {
        OperatorInput { operator: 1, position_m: [x, 0.0, 0.0], clutch: true, scale: 1.0, bound_ns: 0 }
    }

    #[test]
    fn a_steady_hand_is_followed_between_its_positions() {
        let mut estimator = HandEstimator::default();
        assert!(estimator.pose(0).is_none());
        // 0.2 m/s, sent every 8 ms.
        for step in 0..20_i64 {
            estimator.handle_input(step * 8_000_000, input(0.2 * 0.008 * step as f64));
        }
        let now_ns = 19 * 8_000_000 + 5_000_000;
        let (pose, source_ns) = estimator.pose(now_ns).unwrap();
        assert_eq!(source_ns, now_ns);
        assert!((pose.linear_velocity_m_s[0] - 0.2).abs() < 1e-9);
        assert!((pose.position_m[0] - 0.2 * now_ns as f64 * 1e-9).abs() < 1e-9);
    }

    #[test]
    fn a_silent_device_grows_old() {
        let mut estimator = HandEstimator::default();
        estimator.handle_input(1_000, input(0.1));
        let (_, source_ns) = estimator.pose(5_000_000_000).unwrap();
        assert_eq!(source_ns, 1_000 + COAST.ns());
    }

    #[test]
    fn a_pointer_that_hurries_does_not_leap_and_nothing_is_said_twice() {
        let mut smoother = Smoother::default();
        let pose =
            |x: f64, clutch| PoseCommand { position_m: [x, 0.0, 0.0], clutch, ..PoseCommand::default() };
        assert!(smoother.smoothed(pose(0.0, true), 1_000_000).is_some());
        assert!(smoother.smoothed(pose(0.5, true), 1_000_000).is_none(), "nothing newer");
        let next = smoother.smoothed(pose(0.5, true), 2_000_000).unwrap();
        assert!((next.position_m[0] - 0.003).abs() < 1e-12);
        let free = smoother.smoothed(pose(0.5, false), 3_000_000).unwrap();
        assert_eq!(free.position_m[0], 0.5, "a released hand moves nothing");
    }

    #[test]
    fn a_formulas_hand_begins_when_it_is_heard_and_anew_until_it_moves() {
        let ms = |ms: i64| ms * 1_000_000;
        let mut start = Start::new(0);
        // Nobody listens for five seconds; then the recorder; 1.4 s later the arm, whose link is longer.
        for (at_ms, readers) in [(0, 0), (5_000, 0), (5_100, 1), (6_000, 1), (6_400, 2), (6_500, 2)] {
            start.wait(ms(at_ms), || readers);
            start.wait(ms(at_ms + 99), || panic!("asked too often"));
        }
        assert_eq!(start.at_ns, ms(7_400));
        // One that comes when the hand moves sees it move; and nobody is asked any more.
        start.wait(ms(8_399), || 2);
        start.wait(ms(8_400), || panic!("asked"));
        assert_eq!(start.at_ns, ms(7_400));
    }

    #[test]
    fn another_operator_starts_anew_and_the_past_is_ignored() {
        let mut estimator = HandEstimator::default();
        estimator.handle_input(10_000_000, input(0.0));
        estimator.handle_input(9_000_000, input(7.0));
        assert_eq!(estimator.pose(10_000_000).unwrap().0.position_m[0], 0.0);
        estimator.handle_input(20_000_000, OperatorInput { operator: 2, ..input(3.0) });
        let (pose, _) = estimator.pose(20_000_000).unwrap();
        assert_eq!((pose.operator, pose.position_m[0], pose.linear_velocity_m_s), (2, 3.0, [0.0; 3]));
    }
}
