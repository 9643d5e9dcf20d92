//! A drone's table of its neighbours: their last states, brought to the present, and how far each may be from there.
//!
//! # Approach
//!
//! A state that was true `age` ago says where a neighbour is now up to what it may have done since. With its greatest
//! acceleration A, its greatest speed V and the bounds it gave for its own position and velocity, the neighbour is
//! within
//!
//! `u = position bound + velocity bound · t + ½·A·t² + (|v| + velocity bound) · b`, and never more than
//! `position bound + (V + |v|) · t`,
//!
//! of `p + v·age`, where b is the bound of the age and t = age + b. That is a statement about the truth and not a
//! probability; `simulation` counts every case in which it does not hold. The sender's acceleration is not extrapolated:
//! it may be reversed at once, which would double the quadratic term.
//!
//! A state older than the lifespan is dropped. A state that is not newer than the one there is counted and ignored.
//!
//! In a large swarm most drones are at the edge of the radio's range and their states arrive by chance, once in many seconds. Kept for the whole
//! lifespan, such a state would leave open that its drone is anywhere. With [`RangeLimits`] it is kept as long as it proves
//! that its drone is not near; a drone that comes near is in range again.

use noctule_timebase::{Instant, Span};

use crate::state::State;
use crate::{Own, Vector};

/// How a state is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Knowledge {
    /// The last state, as it came.
    Hold,
    /// The last state, extrapolated by its age.
    Age,
    /// The last state, extrapolated, with the error that age and bounds leave open.
    #[default]
    Bound,
}

/// A neighbour now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Number of the drone.
    pub node: u32,
    /// Where it is thought to be, m.
    pub position_m: Vector,
    /// Its last velocity, m/s.
    pub velocity_m_s: Vector,
    /// Radius of its body, m.
    pub radius_m: f64,
    /// It is no further from `position_m`, m; 0 unless [`Knowledge::Bound`].
    pub uncertainty_m: f64,
    /// How long ago its state was true.
    pub age: Span,
    /// The age is right within plus or minus this.
    pub bound: Span,
}

/// How long states of neighbours are kept that were far away, for [`Knowledge::Bound`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RangeLimits {
    /// A neighbour that was nearer than this when its last state came is in range: that it is silent is no reason to forget it, m.
    pub in_range_m: f64,
    /// One that was not is forgotten as soon as it can have come nearer than this, m.
    pub near_m: f64,
}

/// Interval between two looks at which may be near by now.
const RANGE_PERIOD: Span = Span::from_ms(200);

/// Counts of the states that came, and of neighbours that were dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NeighbourCounters {
    /// States taken.
    pub taken: u64,
    /// States that were not newer than the one there.
    pub stale: u64,
    /// States of drones whose numbers the table has no room for.
    pub full: u64,
    /// Neighbours dropped after the lifespan.
    pub expired: u64,
    /// Neighbours dropped before, by [`RangeLimits`].
    pub out_of_range: u64,
}

/// Table entry of a state: one cache line, because a table of a thousand is written at random places.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Known {
    at: Instant<Own>,
    position_m: [f64; 3],
    velocity_m_s: [f32; 3],
    /// [`FAR`] is set if it was not in range.
    node: u32,
    bound_us: u32,
    position_bound_m: f32,
    velocity_bound_mm_s: u16,
    acceleration_bound_cm_s2: u16,
    speed_bound_cm_s: u16,
    radius_mm: u16,
}

impl Known {
    const NONE: Known = Known {
        at: Instant::from_ns(0),
        position_m: [0.0; 3],
        velocity_m_s: [0.0; 3],
        node: NO_NODE,
        bound_us: 0,
        position_bound_m: 0.0,
        velocity_bound_mm_s: 0,
        acceleration_bound_cm_s2: 0,
        speed_bound_cm_s: 0,
        radius_mm: 0,
    };

    /// Everything that bounds is rounded up.
    fn of(state: &State<Own>, bound: Span) -> Known {
        let steps =
            |value: f64, per_unit: f64| libm::ceil(value * per_unit - 1e-6).clamp(0.0, 65_535.0) as u16;
        let bound_us = u64::try_from(bound.abs().ns()).unwrap_or(0).div_ceil(1000);
        Known {
            at: state.at,
            position_m: state.position_m.into(),
            velocity_m_s: [0, 1, 2].map(|axis| state.velocity_m_s[axis] as f32),
            node: state.node,
            bound_us: bound_us.min(u64::from(u32::MAX)) as u32,
            position_bound_m: (state.position_bound_m as f32).next_up(),
            velocity_bound_mm_s: steps(state.velocity_bound_m_s, 1000.0),
            acceleration_bound_cm_s2: steps(state.acceleration_bound_m_s2, 100.0),
            speed_bound_cm_s: steps(state.speed_bound_m_s, 100.0),
            radius_mm: steps(state.radius_m, 1000.0),
        }
    }
}

/// Number in a slot without a neighbour: no drone has it, because no table is so large.
const NO_NODE: u32 = u32::MAX;
/// Beside the number of a neighbour that was out of range; no table is so large.
const FAR: u32 = 1 << 31;

/// The table of one drone: a slot for each number, so that a state touches one cache line.
#[derive(Debug)]
pub struct Neighbours {
    own: u32,
    lifespan: Span,
    range: Option<RangeLimits>,
    range_looked_at: Instant<Own>,
    here_m: Vector,
    slots: Vec<Known>,
    count: usize,
    counters: NeighbourCounters,
}

impl Neighbours {
    /// Table of drone `own`, for drones with numbers below `numbers`.
    pub fn new(own: u32, numbers: usize, lifespan: Span) -> Neighbours {
        let slots = vec![Known::NONE; numbers.min(FAR as usize)];
        let (here_m, counters) = (Vector::zeros(), NeighbourCounters::default());
        let range_looked_at = Instant::MIN;
        Neighbours { own, lifespan, range: None, range_looked_at, here_m, slots, count: 0, counters }
    }

    /// Sets limits for those that are far away.
    pub fn with_range(self, range: Option<RangeLimits>) -> Neighbours {
        Neighbours { range, ..self }
    }

    /// The drone itself is here, m; what [`RangeLimits`] count from.
    pub fn handle_own(&mut self, position_m: Vector) {
        self.here_m = position_m;
    }

    /// A state has come, its time translated into the own clock and right within plus or minus `bound`. A drone's own
    /// state is ignored.
    pub fn handle_state(&mut self, state: State<Own>, bound: Span) {
        if state.node == self.own {
            return;
        }
        let Some(slot) = self.slots.get_mut(state.node as usize) else {
            self.counters.full += 1;
            return;
        };
        if slot.node != NO_NODE && slot.at >= state.at {
            self.counters.stale += 1;
            return;
        }
        self.count += usize::from(slot.node == NO_NODE);
        *slot = Known::of(&state, bound);
        let away_m2 = (state.position_m - self.here_m).norm_squared();
        if self.range.is_some_and(|range| away_m2 > range.in_range_m * range.in_range_m) {
            slot.node |= FAR;
        }
        self.counters.taken += 1;
    }

    /// Drops what is older than the lifespan, and what [`RangeLimits`] let go.
    pub fn handle_timeout(&mut self, now: Instant<Own>) {
        let (lifespan, here_m) = (self.lifespan, self.here_m);
        let near_m = self.range.map_or(0.0, |range| range.near_m);
        let looks_at_range = self.range.is_some() && now - self.range_looked_at >= RANGE_PERIOD;
        if looks_at_range {
            self.range_looked_at = now;
        }
        for slot in self.slots.iter_mut().filter(|slot| slot.node != NO_NODE) {
            let is_over = now - slot.at > lifespan;
            let is_far = looks_at_range && slot.node & FAR != 0;
            let is_dropped = is_over || is_far && may_be_within(slot, now, (&here_m, near_m));
            if !is_dropped {
                continue;
            }
            *slot = Known::NONE;
            self.count -= 1;
            self.counters.expired += u64::from(is_over);
            self.counters.out_of_range += u64::from(!is_over);
        }
    }

    /// When [`Self::handle_timeout`] has something to drop.
    pub fn poll_timeout(&self) -> Option<Instant<Own>> {
        self.known().map(|known| known.at).min().map(|at| at + self.lifespan)
    }

    /// All neighbours at `now`, by number.
    pub fn estimates(&self, now: Instant<Own>, knowledge: Knowledge) -> impl Iterator<Item = Estimate> + '_ {
        self.known().map(move |known| estimate(known, now, knowledge))
    }

    /// One neighbour at `now`.
    pub fn estimate_of(&self, node: u32, now: Instant<Own>, knowledge: Knowledge) -> Option<Estimate> {
        let known = self.slots.get(node as usize).filter(|slot| slot.node != NO_NODE)?;
        Some(estimate(known, now, knowledge))
    }

    fn known(&self) -> impl Iterator<Item = &Known> {
        self.slots.iter().filter(|slot| slot.node != NO_NODE)
    }

    /// Number of known neighbours.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether none is known.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Counts of the states that came, and of neighbours that were dropped.
    pub fn counters(&self) -> NeighbourCounters {
        self.counters
    }
}

/// Whether age and bounds leave open that a neighbour is nearer to a place than that.
fn may_be_within(known: &Known, now: Instant<Own>, (place_m, near_m): (&Vector, f64)) -> bool {
    let estimate = estimate(known, now, Knowledge::Bound);
    let within_m = near_m + estimate.uncertainty_m;
    (estimate.position_m - place_m).norm_squared() < within_m * within_m
}

#[inline]
fn estimate(known: &Known, now: Instant<Own>, knowledge: Knowledge) -> Estimate {
    let age = now - known.at;
    let age_s = age.as_s_f64().max(0.0);
    let velocity_m_s = Vector::from(known.velocity_m_s.map(f64::from));
    let (moved, uncertainty_m) = match knowledge {
        Knowledge::Hold => (Vector::zeros(), 0.0),
        Knowledge::Age => (velocity_m_s * age_s, 0.0),
        Knowledge::Bound => (velocity_m_s * age_s, uncertainty_m(known, velocity_m_s.norm(), age_s)),
    };
    Estimate {
        node: known.node & !FAR,
        position_m: Vector::from(known.position_m) + moved,
        velocity_m_s,
        radius_m: f64::from(known.radius_mm) * 1e-3,
        uncertainty_m,
        age,
        bound: Span::from_us(i64::from(known.bound_us)),
    }
}

/// The radius of the header's formula.
#[inline]
fn uncertainty_m(known: &Known, speed_m_s: f64, age_s: f64) -> f64 {
    // Products, because a thousand drones do this twenty million times a second; the last digit is far below the margins.
    let bound_s = f64::from(known.bound_us) * 1e-6;
    let most_s = age_s + bound_s;
    let velocity_bound_m_s = f64::from(known.velocity_bound_mm_s) * 1e-3;
    let acceleration_bound_m_s2 = f64::from(known.acceleration_bound_cm_s2) * 1e-2;
    let moved = velocity_bound_m_s * most_s
        + 0.5 * acceleration_bound_m_s2 * most_s * most_s
        + (speed_m_s + velocity_bound_m_s) * bound_s;
    let fastest_m_s = f64::from(known.speed_bound_cm_s) * 1e-2 + speed_m_s;
    f64::from(known.position_bound_m) + moved.min(fastest_m_s * most_s)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::Mode;
    use crate::vehicle::{Limits, Vehicle};
    use noctule_netsim::Random;

    fn state(node: u32, at_ns: i64, x: f64, vx: f64) -> State<Own> {
        State {
            node,
            mode: Mode::Flying,
            at: Instant::from_ns(at_ns),
            position_m: Vector::new(x, 0.0, 0.0),
            velocity_m_s: Vector::new(vx, 0.0, 0.0),
            acceleration_m_s2: Vector::zeros(),
            heading_rad: 0.0,
            radius_m: 0.5,
            position_bound_m: 0.1,
            velocity_bound_m_s: 0.05,
            acceleration_bound_m_s2: 6.0,
            speed_bound_m_s: 8.0,
        }
    }

    #[test]
    fn a_state_is_held_extrapolated_or_bounded() {
        let mut table = Neighbours::new(0, 4, Span::from_s(5));
        table.handle_state(state(3, 1_000_000_000, 10.0, 4.0), Span::from_ms(10));
        let now = Instant::from_ns(1_490_000_000);
        let at = |knowledge| table.estimate_of(3, now, knowledge).unwrap();
        assert_eq!((at(Knowledge::Hold).position_m.x, at(Knowledge::Hold).uncertainty_m), (10.0, 0.0));
        assert!((at(Knowledge::Age).position_m.x - 11.96).abs() < 1e-12);
        // 0.1 + 0.05·0.5 + ½·6·0.25 + 4.05·0.01
        assert!((at(Knowledge::Bound).uncertainty_m - 0.9155).abs() < 1e-7);
        // After a long time the speed limits it: 0.1 + (8 + 4)·t.
        let late = table.estimate_of(3, Instant::from_ns(5_990_000_000), Knowledge::Bound).unwrap();
        assert!((late.uncertainty_m - 60.1).abs() < 1e-6, "{late:?}");
    }

    #[test]
    fn only_newer_states_are_taken_and_old_ones_expire() {
        let mut table = Neighbours::new(0, 3, Span::from_s(1));
        for (node, at_ns) in [(1, 5), (1, 4), (1, 5), (2, 7), (3, 8), (0, 9), (1, 6)] {
            table.handle_state(state(node, at_ns, 0.0, 0.0), Span::ZERO);
        }
        let counters = table.counters();
        assert_eq!((counters.taken, counters.stale, counters.full, table.len()), (3, 2, 1, 2));
        assert_eq!(table.poll_timeout(), Some(Instant::from_ns(1_000_000_006)));
        table.handle_timeout(Instant::from_ns(1_000_000_007));
        assert_eq!((table.len(), table.counters().expired), (1, 1));
    }

    #[test]
    fn a_neighbour_out_of_range_is_forgotten_before_it_can_be_near_and_one_in_range_is_not() {
        let range = RangeLimits { in_range_m: 60.0, near_m: 30.0 };
        let mut table = Neighbours::new(0, 4, Span::from_s(20)).with_range(Some(range));
        table.handle_own(Vector::zeros());
        for (node, x) in [(1, 59.0), (2, 61.0), (3, 200.0)] {
            table.handle_state(state(node, 0, x, 0.0), Span::ZERO);
        }
        let known_at = |table: &mut Neighbours, ms: i64| -> Vec<u32> {
            let now = Instant::from_ns(ms * 1_000_000);
            table.handle_timeout(now);
            table.estimates(now, Knowledge::Bound).map(|estimate| estimate.node).collect()
        };
        // With a top speed of 8 m/s it can have moved 31 m after 3.9 s.
        assert_eq!(known_at(&mut table, 3_700), [1, 2, 3]);
        assert_eq!(known_at(&mut table, 3_900), [1, 3]);
        assert_eq!(known_at(&mut table, 10_000), [1, 3]);
        assert_eq!((table.counters().out_of_range, table.len()), (1, 2));
        // It is where it was, but this drone has come near.
        table.handle_own(Vector::new(100.0, 0.0, 0.0));
        assert_eq!(known_at(&mut table, 10_200), [1]);
    }

    #[test]
    fn no_manoeuvre_leaves_the_radius() {
        let limits = Limits { gust_m_s2: 1.0, ..Limits::default() };
        let mut random = Random::new(5);
        let (mut worst, mut most) = (f64::MAX, 0.0_f64);
        for _ in 0..300 {
            let mut draw =
                |size: f64| Vector::new(random.normal(size), random.normal(size), random.normal(size));
            let (mut vehicle, command, gust) = (Vehicle::at(draw(10.0)), draw(8.0), draw(2.0));
            for _ in 0..50 {
                vehicle.step(&limits, command, gust, 0.01);
            }
            let sent = State {
                position_m: vehicle.position_m,
                velocity_m_s: vehicle.velocity_m_s,
                acceleration_bound_m_s2: limits.acceleration_bound_m_s2(),
                speed_bound_m_s: limits.speed_bound_m_s(),
                ..state(1, 0, 0.0, 0.0)
            };
            let mut table = Neighbours::new(0, 2, Span::from_s(9));
            table.handle_state(sent, Span::from_ms(5));
            let against = draw(8.0);
            for step in 1..=300_i64 {
                vehicle.step(&limits, against, -gust, 0.01);
                // The clock is wrong by all that its bound allows.
                for error_ms in [-5, 5] {
                    let now = Instant::from_ns((10 * step + error_ms) * 1_000_000);
                    let seen = table.estimate_of(1, now, Knowledge::Bound).unwrap();
                    let error = (vehicle.position_m - seen.position_m).norm();
                    worst = worst.min(seen.uncertainty_m - error);
                    most = most.max(error);
                }
            }
        }
        assert!(worst > 0.0 && most > 20.0, "{worst} left at least, {most} m at most");
    }
}
