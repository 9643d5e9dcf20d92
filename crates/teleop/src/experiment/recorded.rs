//! E1 of a recorded run: the arm against the hand at the same time.
//!
//! Both stand in the recording with their source times, by the clock of the recorder. If it recorded beside the master, each command is
//! there; the hand between two of them is on the line that joins them.

use serde::Serialize;

use crate::messages::{ArmState, PoseCommand};
use crate::recording::{Recorded, RecordedSample};

/// Measured from so long after the clutch engaged: the hand has come up to its amplitude, ns.
const SETTLED_NS: i64 = 4_000_000_000;
/// A hand is not known between two commands that are further apart, ns.
const GAP_MAX_NS: i64 = 50_000_000;
/// Fewer states say nothing.
const STATES_MIN: usize = 100;

/// How far the arm was from the hand.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RecordedCost {
    /// Root of the mean square of the distance, mm.
    pub rms_mm: f64,
    /// Largest distance, mm.
    pub max_mm: f64,
    /// Mean age of the newest command, ms.
    pub mean_age_ms: f64,
    /// Root of the mean square of the hand's speed times that age, mm: theory's line of a held command.
    pub hold_theory_mm: f64,
    /// Largest bound of an age, ms; `null` if one had none.
    pub bound_ms: Option<f64>,
    /// States that were compared.
    pub states: usize,
    /// How often the arm stopped while it followed.
    pub stops: usize,
    /// The offset of arm and hand is that of the moment in which the clutch engaged. A hand that moved then had gone on by its speed
    /// times the command's age: so much of the error may be the offset's, mm.
    pub offset_doubt_mm: f64,
}

/// Why a recording says nothing about the error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordedCostError {
    /// The arm did not follow for long enough.
    #[error(
        "{0} states can be compared, and {STATES_MIN} are needed: the arm must follow a hand for more than 4 s, and the \
         recorder must run beside the master"
    )]
    TooFew(usize),
}

/// Compares the arm with the hand while it followed.
///
/// # Errors
/// It did not follow for long enough.
pub fn cost(samples: &[Recorded]) -> Result<RecordedCost, RecordedCostError> {
    let mut hand: Vec<(i64, &PoseCommand)> = Vec::new();
    let mut states: Vec<(i64, &ArmState)> = Vec::new();
    for (times, sample) in samples {
        match sample {
            RecordedSample::Command(command) => hand.push((times.source_ns, command)),
            RecordedSample::State(state) => states.push((times.source_ns, &**state)),
        }
    }
    hand.sort_by_key(|(at_ns, _)| *at_ns);
    states.sort_by_key(|(at_ns, _)| *at_ns);
    let mut tally = Tally::default();
    // Offset of arm and hand, and when the clutch engaged.
    let mut grip: Option<(i64, [f64; 3])> = None;
    for (at_ns, state) in states {
        if state.mode != ArmState::MODE_ENGAGED {
            tally.stops += usize::from(grip.is_some());
            grip = None;
            continue;
        }
        let Some((position_m, speed_m_s)) = hand_at(&hand, at_ns) else { continue };
        let apart: [f64; 3] = std::array::from_fn(|axis| state.position_m[axis] - position_m[axis]);
        let (since_ns, offset_m) = *grip.get_or_insert_with(|| {
            let age_s = state.command_age_ns.max(0) as f64 * 1e-9;
            tally.offset_doubt_m = tally.offset_doubt_m.max(speed_m_s * age_s);
            (at_ns, apart)
        });
        if at_ns - since_ns >= SETTLED_NS {
            let error: [f64; 3] = std::array::from_fn(|axis| apart[axis] - offset_m[axis]);
            tally.record(error, speed_m_s, state);
        }
    }
    tally.cost()
}

/// The hand's position and speed at a time.
fn hand_at(hand: &[(i64, &PoseCommand)], at_ns: i64) -> Option<([f64; 3], f64)> {
    let after = hand.partition_point(|(source_ns, _)| *source_ns <= at_ns);
    let ((from_ns, from), (to_ns, to)) = (hand.get(after.checked_sub(1)?)?, hand.get(after)?);
    if to_ns - from_ns > GAP_MAX_NS || from.operator != to.operator {
        return None;
    }
    let share = (at_ns - from_ns) as f64 / (to_ns - from_ns) as f64;
    let position_m = std::array::from_fn(|axis| {
        (from.position_m[axis] + (to.position_m[axis] - from.position_m[axis]) * share) * from.scale
    });
    let squares = from.linear_velocity_m_s.iter().map(|part| part * part).sum::<f64>();
    Some((position_m, squares.sqrt() * from.scale))
}

#[derive(Default)]
struct Tally {
    count: usize,
    squares: f64,
    max_m: f64,
    speed_squares: f64,
    age_ns: f64,
    bound_ns: i64,
    is_unbounded: bool,
    stops: usize,
    offset_doubt_m: f64,
}

impl Tally {
    fn record(&mut self, error_m: [f64; 3], speed_m_s: f64, state: &ArmState) {
        let square = error_m.iter().map(|part| part * part).sum::<f64>();
        self.count += 1;
        self.squares += square;
        self.max_m = self.max_m.max(square.sqrt());
        self.speed_squares += speed_m_s * speed_m_s;
        self.age_ns += state.command_age_ns as f64;
        self.bound_ns = self.bound_ns.max(state.command_bound_ns);
        self.is_unbounded |= state.command_bound_ns < 0;
    }

    fn cost(&self) -> Result<RecordedCost, RecordedCostError> {
        if self.count < STATES_MIN {
            return Err(RecordedCostError::TooFew(self.count));
        }
        let count = self.count as f64;
        let mean_age_ms = self.age_ns / count * 1e-6;
        Ok(RecordedCost {
            rms_mm: (self.squares / count).sqrt() * 1e3,
            max_mm: self.max_m * 1e3,
            mean_age_ms,
            hold_theory_mm: (self.speed_squares / count).sqrt() * mean_age_ms,
            bound_ms: (!self.is_unbounded).then_some(self.bound_ns as f64 / 1e6),
            states: self.count,
            stops: self.stops,
            offset_doubt_mm: self.offset_doubt_m * 1e3,
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::recording::SampleTimes;

    /// A hand at 0.2 m/s, and an arm that is where the hand was `late_ms` before.
    fn run(late_ms: i64) -> Vec<Recorded> {
        let x_m = |at_ms: i64| 0.2e-3 * at_ms.max(1_000) as f64;
        let mut samples = Vec::new();
        for at_ms in 0..10_000_i64 {
            let times = SampleTimes { source_ns: at_ms * 1_000_000, received_ns: at_ms * 1_000_000 };
            let command = PoseCommand {
                position_m: [x_m(at_ms), 0.0, 0.0],
                linear_velocity_m_s: [if at_ms < 1_000 { 0.0 } else { 0.2 }, 0.0, 0.0],
                scale: 1.0,
                ..PoseCommand::default()
            };
            samples.push((times, RecordedSample::Command(command)));
            let state = ArmState {
                mode: u8::from(at_ms > 500),
                position_m: [0.4 + x_m(at_ms - late_ms), 0.3, 0.0],
                command_age_ns: late_ms * 1_000_000,
                command_bound_ns: 50_000,
                ..ArmState::default()
            };
            samples.push((times, RecordedSample::State(Box::new(state))));
        }
        samples
    }

    #[test]
    fn an_arm_that_is_late_is_wrong_by_its_speed_times_the_age() {
        for late_ms in [0, 20, 50] {
            let cost = cost(&run(late_ms)).unwrap();
            assert!((cost.rms_mm - 0.2 * late_ms as f64).abs() < 1e-6, "{cost:?}");
            assert!((cost.hold_theory_mm - 0.2 * late_ms as f64).abs() < 1e-6);
            assert_eq!((cost.bound_ms, cost.stops), (Some(0.05), 0));
            // The clutch engaged at 501 ms, and the hand moves from a second on.
            assert_eq!(cost.offset_doubt_mm, 0.0);
        }
    }

    #[test]
    fn a_run_that_is_too_short_is_refused_and_a_stop_begins_anew() {
        assert_eq!(cost(&run(0)[..4_000]), Err(RecordedCostError::TooFew(0)));
        let mut samples = run(20);
        if let RecordedSample::State(state) = &mut samples[2 * 5_000 + 1].1 {
            state.mode = 4;
        }
        let found = cost(&samples).unwrap();
        assert_eq!(found.stops, 1);
        // The offset was taken in the middle of the motion: it contains the lateness, and the figure says so.
        assert!(found.rms_mm < 20.0 * 0.2);
        assert!((found.offset_doubt_mm - 4.0).abs() < 1e-9, "{found:?}");
    }
}
