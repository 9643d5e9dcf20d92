//! E3: a human who sees late and acts late, in the loop.
//!
//! The human is the crossover model: the error that is seen is corrected at a proportional rate after a reaction time.
//! The hand reaches for targets on a circle; a target is hit when the arm has stayed within its tolerance for 0.1 s.
//! The arm is ideal here: what is measured is what the delay does to the human.

use std::collections::VecDeque;

use noctule_arm::Vector;
use noctule_arm::hand::CrossoverOperator;
use noctule_timebase::Span;
use serde::Serialize;

const STEP: Span = Span::from_ms(1);
/// Within this of the target's middle, m.
const TOLERANCE_M: f64 = 0.004;
const DWELL_STEPS: u32 = 100;
const CIRCLE_M: f64 = 0.1;
const TARGETS: u32 = 9;
/// A target that takes longer counts as missed.
const STEPS_MAX: u32 = 20_000;

/// A human.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Human {
    /// Crossover frequency, rad/s.
    pub gain_per_s: f64,
    /// Reaction time, s.
    pub reaction_s: f64,
}

impl Default for Human {
    fn default() -> Human {
        Human { gain_per_s: 3.0, reaction_s: 0.18 }
    }
}

/// Result of the human model.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct HumanCost {
    /// Mean time to hit a target, ms; `None` if none was hit.
    pub movement_time_ms: Option<f64>,
    /// Targets that were not hit within 20 s.
    pub missed: u32,
    /// How far the arm went beyond targets, mean, mm.
    pub overshoot_mm: f64,
}

/// Reaches for nine targets twice, with this delay of commands and of the picture together.
pub fn run(human: Human, delay: Span) -> HumanCost {
    let mut operator = CrossoverOperator::new(human.gain_per_s, human.reaction_s, STEP.as_s_f64());
    let steps = (delay.ns() / STEP.ns()).max(0) as usize;
    let mut shown: VecDeque<Vector> = VecDeque::with_capacity(steps + 1);
    let mut hand = Vector::zeros();
    let (mut times_ms, mut missed, mut overshoot_m) = (Vec::new(), 0, 0.0);
    for reach in 0..2 * TARGETS {
        let angle = std::f64::consts::TAU * f64::from(reach * (TARGETS / 2) % TARGETS) / f64::from(TARGETS);
        let target = Vector::new(CIRCLE_M / 2.0 * angle.cos(), CIRCLE_M / 2.0 * angle.sin(), 0.0);
        let direction = (target - hand).normalize();
        let (mut inside, mut beyond_m, mut taken) = (0, 0.0_f64, 0);
        while inside < DWELL_STEPS && taken < STEPS_MAX {
            shown.push_back(hand);
            let seen =
                if shown.len() > steps { shown.pop_front().unwrap_or_default() } else { Vector::zeros() };
            hand = operator.step(&seen, &target).position_m;
            let is_inside = (hand - target).norm() < TOLERANCE_M;
            inside = if is_inside { inside + 1 } else { 0 };
            beyond_m = beyond_m.max((hand - target).dot(&direction));
            taken += 1;
        }
        if inside < DWELL_STEPS {
            missed += 1
        } else {
            times_ms.push(f64::from(taken - DWELL_STEPS))
        }
        overshoot_m += beyond_m;
    }
    let hits = times_ms.len() as f64;
    HumanCost {
        movement_time_ms: (!times_ms.is_empty()).then(|| times_ms.iter().sum::<f64>() / hits),
        missed,
        overshoot_mm: overshoot_m / f64::from(2 * TARGETS) * 1e3,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn delay_costs_time_and_at_last_the_target() {
        let costs: Vec<_> = [0, 70, 200, 300, 400].map(|ms| run(Human::default(), Span::from_ms(ms))).into();
        println!("{costs:#?}");
        let time = |index: usize| costs[index].movement_time_ms.unwrap();
        assert!(time(0) < time(1) && time(1) < time(2) && time(2) < time(3), "{costs:?}");
        // Theory: gain and delay are stable while their product is below π/2: 3 rad/s × (0.18 + 0.34) s.
        assert_eq!(costs[3].missed, 0, "3 rad/s × 0.48 s is below π/2");
        assert!(costs[4].missed > 0, "3 rad/s × 0.58 s is above π/2");
    }
}
