//! Synthetic operators: hands whose true position is known at every instant.

use crate::Vector;

/// Where a hand is and how fast it moves.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HandState {
    /// m.
    pub position_m: Vector,
    /// m/s.
    pub velocity_m_s: Vector,
}

/// Motion of a hand; all begin and stay at rest at the centre for [`REST_S`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Hand {
    /// A Lissajous figure of these amplitudes and frequencies in x and y.
    Lissajous {
        /// Amplitudes in x and y, m.
        amplitude_m: [f64; 2],
        /// Frequencies in x and y, Hz.
        frequency_hz: [f64; 2],
    },
    /// Straight minimum-jerk reaches around a square with rests at its corners.
    Square {
        /// Side of the square, m.
        side_m: f64,
        /// Time for one side, s.
        reach_s: f64,
        /// Rest at each corner, s.
        rest_s: f64,
    },
    /// Reaches across a circle of targets, as ISO 9241-411 orders them.
    Targets {
        /// Number of targets.
        count: u32,
        /// Diameter of the circle, m.
        diameter_m: f64,
        /// Time for one reach, s.
        reach_s: f64,
        /// Rest at each target, s.
        rest_s: f64,
    },
}

/// All hands rest so long before they move, and take as long to come up to their amplitude.
pub const REST_S: f64 = 1.0;

impl Hand {
    /// The figure of the experiment of what latency costs: ±100 mm at 0.5 and 0.75 Hz.
    pub const FIGURE: Hand = Hand::Lissajous { amplitude_m: [0.1, 0.1], frequency_hz: [0.5, 0.75] };

    /// Where it is relative to its centre, `time_s` after its start.
    pub fn at(&self, time_s: f64) -> HandState {
        let moving_s = time_s - REST_S;
        if moving_s <= 0.0 {
            return HandState::default();
        }
        match *self {
            Hand::Lissajous { amplitude_m, frequency_hz } => {
                let (share, share_rate) = minimum_jerk(moving_s / REST_S);
                let axis = |index: usize| {
                    let omega = std::f64::consts::TAU * frequency_hz[index];
                    let (sine, cosine) = (omega * moving_s).sin_cos();
                    let amplitude = amplitude_m[index];
                    let velocity = share * omega * cosine + share_rate / REST_S * sine;
                    (amplitude * share * sine, amplitude * velocity)
                };
                let ((x, vx), (y, vy)) = (axis(0), axis(1));
                HandState { position_m: Vector::new(x, y, 0.0), velocity_m_s: Vector::new(vx, vy, 0.0) }
            }
            Hand::Square { side_m, reach_s, rest_s } => {
                let half = side_m / 2.0;
                let corners = [[-half, -half], [half, -half], [half, half], [-half, half]];
                reaches(moving_s, reach_s, rest_s, &|leg| match leg {
                    0 => Vector::zeros(),
                    leg => planar(corners[((leg - 1) % 4) as usize]),
                })
            }
            Hand::Targets { count, diameter_m, reach_s, rest_s } => {
                let place = |target: u64| {
                    let angle = std::f64::consts::TAU * target as f64 / f64::from(count.max(1));
                    planar([diameter_m / 2.0 * angle.cos(), diameter_m / 2.0 * angle.sin()])
                };
                // Across the circle and one further each time.
                let across = u64::from(count / 2);
                reaches(moving_s, reach_s, rest_s, &|leg| match leg {
                    0 => Vector::zeros(),
                    leg => place((leg - 1) * across + (leg - 1) / 2),
                })
            }
        }
    }
}

fn planar([x, y]: [f64; 2]) -> Vector {
    Vector::new(x, y, 0.0)
}

/// Minimum-jerk reaches from goal to goal, each followed by a rest.
fn reaches(moving_s: f64, reach_s: f64, rest_s: f64, goal: &dyn Fn(u64) -> Vector) -> HandState {
    let leg_s = reach_s + rest_s;
    let leg = (moving_s / leg_s).floor();
    let (share, rate) = minimum_jerk((moving_s - leg * leg_s) / reach_s);
    let (from, to) = (goal(leg as u64), goal(leg as u64 + 1));
    HandState { position_m: from + (to - from) * share, velocity_m_s: (to - from) * (rate / reach_s) }
}

/// The minimum-jerk curve from 0 to 1 and its derivative (Flash and Hogan 1985).
pub fn minimum_jerk(share: f64) -> (f64, f64) {
    let s = share.clamp(0.0, 1.0);
    (s * s * s * (10.0 + s * (6.0 * s - 15.0)), 30.0 * s * s * (1.0 - s) * (1.0 - s))
}

/// A human in the loop by the crossover model (McRuer): what is seen is corrected at a rate proportional to the error,
/// after a reaction time.
#[derive(Clone, Debug)]
pub struct CrossoverOperator {
    gain_per_s: f64,
    speed_max_m_s: f64,
    step_s: f64,
    /// Errors that have been seen, but not yet reacted to, oldest first.
    seen: std::collections::VecDeque<Vector>,
    reaction_steps: usize,
    state: HandState,
}

impl CrossoverOperator {
    /// An operator at rest at the centre. Usual values: 3 to 5 rad/s and 0.15 to 0.25 s.
    ///
    /// The reaction is rounded to whole steps and is at most 10,000 of them.
    pub fn new(gain_per_s: f64, reaction_s: f64, step_s: f64) -> CrossoverOperator {
        let reaction_steps = ((reaction_s / step_s).round() as usize).min(10_000);
        let state = HandState::default();
        let seen = std::collections::VecDeque::with_capacity(reaction_steps + 1);
        CrossoverOperator { gain_per_s, speed_max_m_s: 0.5, step_s, seen, reaction_steps, state }
    }

    /// One step: `shown_m` is what is on the screen now, `target_m` where it should be.
    pub fn step(&mut self, shown_m: &Vector, target_m: &Vector) -> HandState {
        self.seen.push_back(target_m - shown_m);
        let error = match self.seen.len() > self.reaction_steps {
            true => self.seen.pop_front().unwrap_or_default(),
            false => Vector::zeros(),
        };
        let wanted = error * self.gain_per_s;
        let speed = wanted.norm();
        self.state.velocity_m_s =
            if speed > self.speed_max_m_s { wanted * (self.speed_max_m_s / speed) } else { wanted };
        self.state.position_m += self.state.velocity_m_s * self.step_s;
        self.state
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn velocities_are_derivatives_of_positions() {
        let hands = [
            Hand::FIGURE,
            Hand::Square { side_m: 0.1, reach_s: 0.5, rest_s: 0.2 },
            Hand::Targets { count: 9, diameter_m: 0.2, reach_s: 0.6, rest_s: 0.1 },
        ];
        for hand in hands {
            for index in 0..4_000 {
                let time_s = f64::from(index) * 1.7e-3;
                let (before, after) = (hand.at(time_s - 1e-6), hand.at(time_s + 1e-6));
                let slope = (after.position_m - before.position_m) / 2e-6;
                let error = (slope - hand.at(time_s).velocity_m_s).norm();
                assert!(error < 1e-4, "{hand:?} at {time_s}: {error}");
            }
        }
    }
}
