//! Flocking without a leader: the model made for real drones with delay, and the classical one to compare with.
//!
//! - [`Vasarhelyi`]: repulsion, alignment of velocities below a braking curve, walls (Vásárhelyi et al., "Optimized
//!   flocking of autonomous drones in confined environments", Science Robotics 2018).
//! - [`OlfatiSaber`]: gradient of a potential and consensus of velocities ("Flocking for multi-agent dynamic systems", IEEE
//!   Trans. Automatic Control 2006, algorithm 2 without obstacles).

use crate::Vector;
use crate::vehicle::shortened;

/// A neighbour as it is thought to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Flockmate {
    /// Position, m.
    pub position_m: Vector,
    /// Velocity, m/s.
    pub velocity_m_s: Vector,
}

/// A cube around the origin in which the flock stays.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Arena {
    /// Half of the edge, m.
    pub half_m: f64,
}

/// Vásárhelyi's parameters, with the names of the paper.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Vasarhelyi {
    /// Preferred speed, m/s.
    pub v_flock_m_s: f64,
    /// Fastest command, m/s.
    pub v_max_m_s: f64,
    /// Repulsion begins here, m.
    pub r0_rep_m: f64,
    /// Gain of the repulsion, 1/s.
    pub p_rep_per_s: f64,
    /// Distance at which alignment has its tolerance only, m.
    pub r0_frict_m: f64,
    /// Gain of the alignment.
    pub c_frict: f64,
    /// Difference of velocities that is tolerated, m/s.
    pub v_frict_m_s: f64,
    /// Gain of the braking curve near its end, 1/s.
    pub p_frict_per_s: f64,
    /// Acceleration of the braking curve, m/s².
    pub a_frict_m_s2: f64,
    /// Speed of the virtual agents in walls, m/s.
    pub v_shill_m_s: f64,
    /// Distance of walls at which the curve ends, m.
    pub r0_shill_m: f64,
    /// Gain of the curve at walls, 1/s.
    pub p_shill_per_s: f64,
    /// Acceleration of the curve at walls, m/s².
    pub a_shill_m_s2: f64,
}

impl Default for Vasarhelyi {
    /// For 4 m/s and a spacing of about 10 m; in the order of the paper's optimum, and not taken from it.
    fn default() -> Vasarhelyi {
        Vasarhelyi {
            v_flock_m_s: 4.0,
            v_max_m_s: 8.0,
            r0_rep_m: 12.0,
            p_rep_per_s: 0.2,
            r0_frict_m: 30.0,
            c_frict: 0.05,
            v_frict_m_s: 0.6,
            p_frict_per_s: 3.0,
            a_frict_m_s2: 4.0,
            v_shill_m_s: 10.0,
            r0_shill_m: 0.5,
            p_shill_per_s: 3.5,
            a_shill_m_s2: 3.0,
        }
    }
}

/// The fastest speed at a distance `r_m` before a stop, with acceleration `a` and, near the end, gain `p`.
pub fn braking_curve_m_s(r_m: f64, a_m_s2: f64, p_per_s: f64) -> f64 {
    if r_m <= 0.0 {
        0.0
    } else if r_m * p_per_s < a_m_s2 / p_per_s {
        r_m * p_per_s
    } else {
        (2.0 * a_m_s2 * r_m - (a_m_s2 / p_per_s) * (a_m_s2 / p_per_s)).sqrt()
    }
}

impl Vasarhelyi {
    /// The velocity to want.
    pub fn velocity_m_s(
        &self,
        own: &Flockmate,
        arena: Option<Arena>,
        others: impl Iterator<Item = Flockmate>,
    ) -> Vector {
        let speed = own.velocity_m_s.norm();
        let ahead = if speed > 1e-6 { own.velocity_m_s / speed } else { Vector::new(1.0, 0.0, 0.0) };
        let mut velocity = ahead * self.v_flock_m_s;
        for other in others {
            let away = own.position_m - other.position_m;
            let distance = away.norm();
            if distance < self.r0_rep_m && distance > 1e-9 {
                velocity += away * (self.p_rep_per_s * (self.r0_rep_m - distance) / distance);
            }
            let tolerated =
                braking_curve_m_s(distance - self.r0_frict_m, self.a_frict_m_s2, self.p_frict_per_s);
            velocity += self.friction(own, other.velocity_m_s, self.c_frict, tolerated.max(self.v_frict_m_s));
        }
        if let Some(arena) = arena {
            velocity += self.walls(own, arena);
        }
        shortened(velocity, self.v_max_m_s)
    }

    fn friction(&self, own: &Flockmate, other_m_s: Vector, gain: f64, tolerated_m_s: f64) -> Vector {
        let difference = other_m_s - own.velocity_m_s;
        let size = difference.norm();
        if size <= tolerated_m_s {
            Vector::zeros()
        } else {
            difference * (gain * (size - tolerated_m_s) / size)
        }
    }

    /// Virtual agents that fly inwards from each wall.
    fn walls(&self, own: &Flockmate, arena: Arena) -> Vector {
        let mut velocity = Vector::zeros();
        for axis in 0..3 {
            for side in [-1.0, 1.0] {
                let distance = arena.half_m - side * own.position_m[axis];
                let mut inward = Vector::zeros();
                inward[axis] = -side * self.v_shill_m_s;
                let reach = distance - self.r0_shill_m;
                let tolerated = braking_curve_m_s(reach, self.a_shill_m_s2, self.p_shill_per_s);
                velocity += self.friction(own, inward, 1.0, tolerated);
            }
        }
        velocity
    }
}

/// Olfati-Saber's parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OlfatiSaber {
    /// Wanted distance, m.
    pub distance_m: f64,
    /// Neighbours further away do not matter, m.
    pub range_m: f64,
    /// Pull to the common goal, 1/s².
    pub c1: f64,
    /// Adoption of its velocity, 1/s.
    pub c2: f64,
}

/// Of the norm that is differentiable at zero.
const EPSILON: f64 = 0.1;
/// Where the bump begins to fall.
const BUMP: f64 = 0.2;

fn sigma_norm(z: f64) -> f64 {
    (libm::sqrt(1.0 + EPSILON * z * z) - 1.0) / EPSILON
}

fn bump(z: f64) -> f64 {
    if z < BUMP {
        1.0
    } else if z < 1.0 {
        0.5 * (1.0 + libm::cos(core::f64::consts::PI * (z - BUMP) / (1.0 - BUMP)))
    } else {
        0.0
    }
}

impl OlfatiSaber {
    /// The acceleration to want towards a moving goal, m/s².
    pub fn acceleration_m_s2(
        &self,
        own: &Flockmate,
        goal: &Flockmate,
        others: impl Iterator<Item = Flockmate>,
    ) -> Vector {
        let (range, wanted) = (sigma_norm(self.range_m), sigma_norm(self.distance_m));
        let mut acceleration =
            (goal.position_m - own.position_m) * self.c1 + (goal.velocity_m_s - own.velocity_m_s) * self.c2;
        for other in others {
            let toward = other.position_m - own.position_m;
            let size = sigma_norm(toward.norm());
            let weight = bump(size / range);
            if weight > 0.0 {
                let shifted = size - wanted;
                // φ(z) of the paper with a = b = 5, hence c = 0.
                let pull = weight * 5.0 * shifted / libm::sqrt(1.0 + shifted * shifted);
                let gradient = toward / libm::sqrt(1.0 + EPSILON * toward.norm_squared());
                acceleration += gradient * pull + (other.velocity_m_s - own.velocity_m_s) * weight;
            }
        }
        acceleration
    }
}

/// How well velocities agree: mean cosine between all pairs, −1 to 1; 1 for fewer than two that move.
pub fn order_parameter(velocities_m_s: &[Vector]) -> f64 {
    let moving = velocities_m_s.iter().filter(|v| v.norm() > 1e-3).map(|v| v / v.norm());
    let (sum, count) = moving.fold((Vector::zeros(), 0.0), |(sum, count), unit| (sum + unit, count + 1.0));
    if count < 2.0 { 1.0 } else { (sum.norm_squared() - count) / (count * (count - 1.0)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use noctule_netsim::Random;

    #[test]
    fn the_braking_curve_is_smooth_and_stops() {
        let curve = |r| braking_curve_m_s(r, 4.0, 2.0);
        assert_eq!(curve(-1.0), 0.0);
        // The two parts meet at a/p² = 1 m with the slope p.
        assert!((curve(1.0) - 2.0).abs() < 1e-12 && (curve(0.5) - 1.0).abs() < 1e-12);
        assert!(((curve(1.0 + 1e-6) - curve(1.0 - 1e-6)) / 2e-6 - 2.0).abs() < 1e-3);
        assert!((curve(4.5) - 32.0_f64.sqrt()).abs() < 1e-12);
    }

    fn scattered(count: usize, spread_m: f64) -> Vec<Flockmate> {
        let mut random = Random::new(9);
        let mut draw = |size: f64| Vector::new(random.normal(size), random.normal(size), random.normal(size));
        (0..count).map(|_| Flockmate { position_m: draw(spread_m), velocity_m_s: draw(2.0) }).collect()
    }

    #[test]
    fn a_flock_aligns_stays_apart_and_stays_inside() {
        let mut flock = scattered(20, 15.0);
        let (model, arena) = (Vasarhelyi::default(), Arena { half_m: 60.0 });
        let step_s = 0.05;
        let (mut widest, mut order) = (0.0_f64, Vec::new());
        for step in 0..2_400 {
            let before = flock.clone();
            for (number, mate) in flock.iter_mut().enumerate() {
                let others = before.iter().enumerate().filter(|(other, _)| *other != number).map(|(_, m)| *m);
                let wanted = model.velocity_m_s(&before[number], Some(arena), others);
                mate.velocity_m_s += shortened((wanted - mate.velocity_m_s) / 0.2, 6.0) * step_s;
                mate.position_m += mate.velocity_m_s * step_s;
                widest = widest.max(mate.position_m.amax());
            }
            if step > 400 {
                order.push(order_parameter(&flock.iter().map(|mate| mate.velocity_m_s).collect::<Vec<_>>()));
            }
        }
        let order = order.iter().sum::<f64>() / order.len() as f64;
        assert!(order > 0.8 && widest < 62.0, "order {order}, {widest} m from the middle");
    }

    #[test]
    fn the_classical_flock_takes_the_wanted_distance_and_the_goals_velocity() {
        let model = OlfatiSaber { distance_m: 7.0, range_m: 8.4, c1: 0.02, c2: 0.3 };
        let mut flock = scattered(12, 6.0);
        let mut goal = Flockmate { position_m: Vector::zeros(), velocity_m_s: Vector::new(1.0, 0.0, 0.0) };
        for _ in 0..12_000 {
            let before = flock.clone();
            goal.position_m += goal.velocity_m_s * 0.01;
            for (number, mate) in flock.iter_mut().enumerate() {
                let others = before.iter().enumerate().filter(|(other, _)| *other != number).map(|(_, m)| *m);
                let acceleration = model.acceleration_m_s2(&before[number], &goal, others);
                mate.velocity_m_s += acceleration * 0.01;
                mate.position_m += mate.velocity_m_s * 0.01;
            }
        }
        let nearest = |number: usize| {
            let distances = flock.iter().enumerate().filter(|(other, _)| *other != number);
            distances.map(|(_, m)| (m.position_m - flock[number].position_m).norm()).fold(f64::MAX, f64::min)
        };
        for (number, mate) in flock.iter().enumerate() {
            assert!((nearest(number) - 7.0).abs() < 1.5, "{} m", nearest(number));
            assert!((mate.velocity_m_s - goal.velocity_m_s).norm() < 0.2);
        }
    }
}
