//! Where drones want to go, what stands in the way, and the wind.

use noctule_netsim::Random;

use crate::Vector;
use crate::avoid::braking_speed_m_s;
use crate::vehicle::Limits;

/// Share of the vehicle's acceleration with which a goal is approached.
const APPROACH_SHARE: f64 = 0.5;

/// The velocity towards a goal that is `to_goal_m` away, from which the vehicle still stops there.
pub fn approach(limits: &Limits, to_goal_m: Vector) -> Vector {
    let distance = to_goal_m.norm();
    if distance < 1e-9 {
        return Vector::zeros();
    }
    let acceleration = APPROACH_SHARE * limits.acceleration_m_s2;
    let speed = braking_speed_m_s(distance, acceleration, 2.0 * limits.response_s);
    to_goal_m * (speed.min(limits.speed_m_s) / distance)
}

/// `count` points on a sphere around the origin, nearly equally far from each other: a Fibonacci lattice, turned by the seed.
pub fn sphere(count: usize, radius_m: f64, seed: u64) -> Vec<Vector> {
    let mut random = Random::for_part(seed, 11);
    let axis = Vector::new(random.normal(1.0), random.normal(1.0), random.normal(1.0));
    let (axis, angle) = (axis.normalize(), random.uniform(0.0, core::f64::consts::TAU));
    let golden = core::f64::consts::PI * (3.0 - libm::sqrt(5.0));
    let point = |number: usize| {
        let z = 1.0 - (2.0 * number as f64 + 1.0) / count as f64;
        let around = golden * number as f64;
        let flat = libm::sqrt(1.0 - z * z);
        let point = Vector::new(flat * libm::cos(around), flat * libm::sin(around), z);
        // Rodrigues' rotation.
        let (cos, sin) = (libm::cos(angle), libm::sin(angle));
        let turned = point * cos + axis.cross(&point) * sin + axis * (axis.dot(&point) * (1.0 - cos));
        turned * radius_m
    };
    (0..count).map(point).collect()
}

/// A sphere that never moves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Obstacle {
    /// Centre, m.
    pub centre_m: Vector,
    /// Radius, m.
    pub radius_m: f64,
}

/// Gusts by Gauss and Markov: normal, forgotten exponentially.
#[derive(Debug)]
pub struct Wind {
    random: Random,
    deviation_m_s2: f64,
    memory_s: f64,
    gust_m_s2: Vector,
}

impl Wind {
    /// Gusts of a standard deviation per axis, m/s², and a time constant, s, which must be positive.
    pub fn new(deviation_m_s2: f64, memory_s: f64, seed: u64) -> Wind {
        Wind { random: Random::for_part(seed, 12), deviation_m_s2, memory_s, gust_m_s2: Vector::zeros() }
    }

    /// The gust `step_s` later, m/s².
    pub fn step(&mut self, step_s: f64) -> Vector {
        if self.deviation_m_s2 > 0.0 {
            let kept = libm::exp(-step_s / self.memory_s);
            let deviation = self.deviation_m_s2 * libm::sqrt(1.0 - kept * kept);
            let mut draw = || self.random.normal(deviation);
            let fresh = Vector::new(draw(), draw(), draw());
            self.gust_m_s2 = self.gust_m_s2 * kept + fresh;
        }
        self.gust_m_s2
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vehicle::Vehicle;

    #[test]
    fn a_goal_is_reached_without_passing_it() {
        let limits = Limits::default();
        let mut vehicle = Vehicle::at(Vector::zeros());
        let mut furthest = 0.0_f64;
        for step in 0..2_000 {
            let _ = step;
            let command = approach(&limits, Vector::new(40.0, 0.0, 0.0) - vehicle.position_m);
            vehicle.step(&limits, command, Vector::zeros(), 0.01);
            furthest = furthest.max(vehicle.position_m.x);
        }
        assert!(furthest < 40.05 && (vehicle.position_m.x - 40.0).abs() < 0.05, "{furthest} {vehicle:?}");
    }

    #[test]
    fn points_of_a_sphere_are_apart_and_turn_with_the_seed() {
        let points = sphere(100, 60.0, 1);
        let pairs =
            points.iter().enumerate().flat_map(|(n, a)| points[..n].iter().map(move |b| (a - b).norm()));
        let least = pairs.fold(f64::MAX, f64::min);
        assert!(least > 12.0, "{least}");
        assert!(points.iter().all(|point| (point.norm() - 60.0).abs() < 1e-9));
        assert_ne!(points, sphere(100, 60.0, 2));
    }

    #[test]
    fn gusts_have_their_deviation_and_their_memory() {
        let mut wind = Wind::new(1.5, 2.0, 3);
        let gusts: Vec<f64> = (0..200_000).map(|_| wind.step(0.1).x).collect();
        let mean = |values: &mut dyn Iterator<Item = f64>| values.sum::<f64>() / gusts.len() as f64;
        let variance = mean(&mut gusts.iter().map(|gust| gust * gust));
        let later = mean(&mut gusts.iter().zip(&gusts[20..]).map(|(a, b)| a * b));
        assert!((variance.sqrt() - 1.5).abs() < 0.05, "{variance}");
        assert!((later / variance - libm::exp(-1.0)).abs() < 0.03, "{}", later / variance);
    }
}
