//! Measures of a swarm's run: separation, formation, ages at the moment of decision, and the load of the air.

use std::collections::HashSet;

use noctule_timebase::Span;
use serde::Serialize;

/// Ages are counted in bins of a millisecond up to here; older ones are in the last bin, their maximum is exact.
const AGE_BINS: usize = 20_000;

/// Figures of one run. Times are virtual, `cpu_s` apart.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measures {
    /// Name of the scenario.
    pub scenario: String,
    /// Number of drones.
    pub nodes: usize,
    /// Seed of all random numbers.
    pub seed: u64,
    /// `hold`, `age`, `bound`, or `perfect`.
    pub neighbours: String,
    /// How states travel; all are models on the simulated air.
    pub transport: String,
    /// States that a drone publishes per second, Hz; less than requested if the air has no room.
    pub rate_hz: f64,
    /// Rate of the drone with the least rate, at the end, Hz.
    pub rate_least_hz: f64,
    /// Rate of the drone with the greatest rate, at the end, Hz.
    pub rate_most_hz: f64,
    /// Rate that the scenario asks for, Hz.
    pub rate_asked_hz: f64,
    /// Simulated time, s.
    pub seconds: f64,
    /// Pairs of drones whose bodies overlapped at some time.
    pub collisions: usize,
    /// Pairs that came nearer than the collision distance and half a metre.
    pub near_misses: usize,
    /// Least distance of the centres of any two, m.
    pub min_separation_m: f64,
    /// Centres nearer than this are a collision, m.
    pub collision_distance_m: f64,
    /// Pairs of one that was killed and one that was not whose bodies overlapped.
    pub collisions_with_killed: usize,
    /// Drones whose body touched an obstacle.
    pub collisions_with_obstacles: usize,
    /// Least distance of any body to any obstacle, m; `null` without obstacles.
    pub least_to_obstacle_m: Option<f64>,
    /// Drones that were killed.
    pub killed: usize,
    /// Share of the drones that reached their goals; `null` for missions without.
    pub finished: Option<f64>,
    /// When the last of them did, s.
    pub time_to_finish_s: Option<f64>,
    /// Root mean square distance to the slot, m, from a third of the time on.
    pub formation_error_rms_m: Option<f64>,
    /// Greatest distance to a slot, m, from a third of the time on.
    pub formation_error_max_m: Option<f64>,
    /// Agreement of velocities, −1 to 1, mean over time.
    pub order_parameter: f64,
    /// Integral of the squared own acceleration, mean of all drones, m²/s³: a proxy of energy.
    pub effort_m2_s3: f64,
    /// Age of a neighbour's state at the moment of a decision, median, ms.
    pub age_p50_ms: Option<f64>,
    /// 99th percentile of that age, ms.
    pub age_p99_ms: Option<f64>,
    /// Largest of those ages, ms.
    pub age_max_ms: Option<f64>,
    /// Bound of the ages, ms.
    pub age_bound_ms: f64,
    /// Neighbours that were not within the radius they were to be in, of all at all decisions; counted in `bound`.
    pub bound_violations: u64,
    /// Neighbours looked at for that.
    pub bounds_checked: u64,
    /// Mean radius of uncertainty at decisions, m; 0 but for `bound`.
    pub uncertainty_mean_m: f64,
    /// Share of the other living drones that were known, mean over decisions.
    pub known_share: f64,
    /// Decisions in which the braking distances could not be kept.
    pub decisions_unsafe: u64,
    /// Number of decisions.
    pub decisions: u64,
    /// Share of the time with a transmission on the air.
    pub air_utilisation: f64,
    /// Share of the air that all need if no two frames collide; more than 1 is impossible.
    pub air_load: f64,
    /// Share of the receptions that were lost, whatever the cause.
    pub loss: f64,
    /// Share of the receptions lost to overlapping frames.
    pub loss_by_collision: f64,
    /// Bytes on the air per drone and second, MAC headers included.
    pub bytes_per_drone_s: f64,
    /// Time until every drone had received every other's state once, s; `null` if that did not happen.
    pub discovery_s: Option<f64>,
    /// Time from the start until the last living drone had left its place, s; `null` if one never did.
    pub takeoff_s: Option<f64>,
    /// Drones that left because they had waited for the longest time, and not because they knew their neighbours.
    pub takeoffs_overdue: usize,
    /// Processor time of the run, s; `null` if it was not measured.
    pub cpu_s: Option<f64>,
}

/// Histogram of ages.
#[derive(Debug)]
pub struct Ages {
    bins: Vec<u64>,
    count: u64,
    max: Span,
}

impl Default for Ages {
    fn default() -> Ages {
        Ages { bins: vec![0; AGE_BINS], count: 0, max: Span::ZERO }
    }
}

impl Ages {
    /// Counts an age.
    pub fn record(&mut self, age: Span) {
        let bin = (age.ns().max(0) / 1_000_000) as usize;
        self.bins[bin.min(AGE_BINS - 1)] += 1;
        self.count += 1;
        self.max = self.max.max(age);
    }

    /// The age below or at which `share` of all are, ms, to the next millisecond; `None` without any.
    pub fn percentile_ms(&self, share: f64) -> Option<f64> {
        let rank = (self.count as f64 * share) as u64;
        let mut seen = 0;
        let bin = self.bins.iter().position(|count| {
            seen += count;
            seen > rank
        });
        bin.map(|bin| (bin + 1) as f64).map(|ms| ms.min(self.max.as_s_f64() * 1000.0))
    }

    /// The oldest, ms.
    pub fn max_ms(&self) -> Option<f64> {
        (self.count > 0).then(|| self.max.as_s_f64() * 1000.0)
    }
}

/// Distances of all pairs between two moments.
#[derive(Debug)]
pub struct Separation {
    /// Centres nearer than this are a collision, m.
    pub collision_m: f64,
    /// Nearer than this is a near miss, m.
    pub near_m: f64,
    /// Least of all, m.
    pub least_m: f64,
    /// Pairs in collision.
    pub collided: HashSet<(u32, u32)>,
    /// Pairs that came near.
    pub near: HashSet<(u32, u32)>,
}

impl Separation {
    /// Separation of bodies of `radius_m`.
    pub fn new(radius_m: f64) -> Separation {
        Separation {
            collision_m: 2.0 * radius_m,
            near_m: 2.0 * radius_m + 0.5,
            least_m: f64::MAX,
            collided: HashSet::new(),
            near: HashSet::new(),
        }
    }

    /// The least distance of a pair while both moved straight by their positions before and after.
    pub fn record(&mut self, pair: (u32, u32), before_m: crate::Vector, after_m: crate::Vector) {
        let moved = after_m - before_m;
        let square = moved.norm_squared();
        let at = if square > 0.0 { (-before_m.dot(&moved) / square).clamp(0.0, 1.0) } else { 0.0 };
        let distance = (before_m + moved * at).norm();
        self.least_m = self.least_m.min(distance);
        if distance < self.near_m {
            self.near.insert(pair);
            if distance < self.collision_m {
                self.collided.insert(pair);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Vector;

    #[test]
    fn percentiles_are_those_of_what_was_recorded() {
        let mut ages = Ages::default();
        assert_eq!((ages.percentile_ms(0.5), ages.max_ms()), (None, None));
        for ms in 1..=1000 {
            ages.record(Span::from_us(1000 * ms - 500));
        }
        assert_eq!(ages.percentile_ms(0.5), Some(501.0));
        assert_eq!(ages.percentile_ms(0.99), Some(991.0));
        assert_eq!(ages.max_ms(), Some(999.5));
    }

    #[test]
    fn a_pair_that_meets_between_two_moments_is_seen() {
        let mut separation = Separation::new(0.5);
        separation.record((0, 1), Vector::new(-3.0, 0.9, 0.0), Vector::new(5.0, 0.9, 0.0));
        separation.record((0, 2), Vector::new(-3.0, 1.2, 0.0), Vector::new(5.0, 1.2, 0.0));
        separation.record((1, 2), Vector::new(-3.0, 0.0, 0.0), Vector::new(-2.0, 0.0, 0.0));
        assert_eq!((separation.collided.len(), separation.near.len()), (1, 2));
        assert!((separation.least_m - 0.9).abs() < 1e-12);
    }
}
