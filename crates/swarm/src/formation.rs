//! Formations: where each drone belongs, and the velocity that brings it there.
//!
//! A virtual structure with a leader: every drone has a slot relative to the leader by its number, which needs no agreement
//! over the radio. Consensus with the neighbours is added (Ren and Beard, "Distributed consensus in multi-vehicle
//! cooperative control", 2008): each drone also follows where the others' positions, less their slots, say the leader is. A stale
//! leader then matters less, and a gap closes smoothly.

use crate::Vector;
use crate::vehicle::shortened;

/// Shape of a formation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Side by side, the leader in the middle.
    Line,
    /// A V with the leader at its tip.
    Wedge,
    /// A circle around the leader.
    Ring,
    /// Rows and columns behind the leader.
    Grid,
}

/// Where drone `number` of `count` belongs relative to drone 0, the leader, which flies along x; neighbouring slots are
/// `spacing_m` apart.
pub fn slot_m(shape: Shape, number: usize, count: usize, spacing_m: f64) -> Vector {
    if number == 0 {
        return Vector::zeros();
    }
    let rank = number.div_ceil(2) as f64;
    let side = if number % 2 == 1 { 1.0 } else { -1.0 };
    match shape {
        Shape::Line => Vector::new(0.0, side * rank * spacing_m, 0.0),
        Shape::Wedge => {
            let along = rank * spacing_m * core::f64::consts::FRAC_1_SQRT_2;
            Vector::new(-along, side * along, 0.0)
        }
        Shape::Ring => {
            let others = count.saturating_sub(1).max(1) as f64;
            // Chords of the spacing, and never nearer to the leader than that.
            let half = core::f64::consts::PI / others;
            let radius = (spacing_m / (2.0 * libm::sin(half).max(1e-9))).max(spacing_m);
            let angle = 2.0 * half * (number - 1) as f64;
            Vector::new(radius * libm::cos(angle), radius * libm::sin(angle), 0.0)
        }
        Shape::Grid => {
            let columns = libm::ceil(libm::sqrt(count as f64)).max(1.0) as usize;
            let (row, column) = (number / columns, number % columns);
            Vector::new(-(row as f64) * spacing_m, column as f64 * spacing_m, 0.0)
        }
    }
}

/// A place in the formation and the drone that is there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Placed {
    /// Position, m.
    pub position_m: Vector,
    /// Velocity, m/s.
    pub velocity_m_s: Vector,
    /// Relative to the leader, m.
    pub slot_m: Vector,
}

/// How strongly errors are corrected.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gains {
    /// Towards the slot as the leader's state gives it, 1/s.
    pub leader_per_s: f64,
    /// Towards the slot as the neighbours' states give it, 1/s.
    pub consensus_per_s: f64,
    /// Fastest correction, m/s.
    pub correction_m_s: f64,
}

impl Default for Gains {
    /// 0.6 /s, 0.4 /s, 4 m/s.
    fn default() -> Gains {
        Gains { leader_per_s: 0.6, consensus_per_s: 0.4, correction_m_s: 4.0 }
    }
}

/// The velocity for a follower. Without a leader it keeps its place among the neighbours, without those it stops.
pub fn follow(
    gains: &Gains,
    own: &Placed,
    leader: Option<&Placed>,
    neighbours: impl Iterator<Item = Placed>,
) -> Vector {
    let own_origin = own.position_m - own.slot_m;
    let (mut origins, mut velocities, mut count) = (Vector::zeros(), Vector::zeros(), 0.0);
    for neighbour in neighbours {
        origins += neighbour.position_m - neighbour.slot_m - own_origin;
        velocities += neighbour.velocity_m_s;
        count += 1.0;
    }
    let mean = |sum: Vector| if count > 0.0 { sum / count } else { Vector::zeros() };
    let consensus = mean(origins) * gains.consensus_per_s;
    let (base, towards) = match leader {
        Some(leader) => {
            let origin = leader.position_m - leader.slot_m;
            (leader.velocity_m_s, (origin - own_origin) * gains.leader_per_s)
        }
        None => (mean(velocities), Vector::zeros()),
    };
    base + shortened(consensus + towards, gains.correction_m_s)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_of_every_shape_are_apart() {
        for shape in [Shape::Line, Shape::Wedge, Shape::Ring, Shape::Grid] {
            for count in [2, 3, 10, 100] {
                let slots: Vec<Vector> = (0..count).map(|n| slot_m(shape, n, count, 5.0)).collect();
                for (number, slot) in slots.iter().enumerate() {
                    for other in &slots[..number] {
                        let apart = (slot - other).norm();
                        assert!(apart > 4.99, "{shape:?} {count}: {apart} m");
                    }
                }
            }
        }
    }

    #[test]
    fn a_follower_at_its_slot_flies_as_the_leader_and_elsewhere_towards_it() {
        let leader = Placed {
            position_m: Vector::new(10.0, 0.0, 0.0),
            velocity_m_s: Vector::new(3.0, 0.0, 0.0),
            slot_m: Vector::zeros(),
        };
        let slot = Vector::new(0.0, 5.0, 0.0);
        let mut own = Placed { position_m: Vector::new(10.0, 5.0, 0.0), slot_m: slot, ..leader };
        let follow = |own: &Placed, leader: Option<&Placed>| {
            let all = [leader.copied(), Some(*own)].into_iter().flatten();
            follow(&Gains::default(), own, leader, all)
        };
        assert_eq!(follow(&own, Some(&leader)), Vector::new(3.0, 0.0, 0.0));
        own.position_m.y = 7.0;
        assert!(follow(&own, Some(&leader)).y < -1.0);
        assert_eq!(follow(&own, None), Vector::new(3.0, 0.0, 0.0));
        assert_eq!(super::follow(&Gains::default(), &own, None, std::iter::empty()), Vector::zeros());
    }
}
