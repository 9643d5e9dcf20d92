//! One drone of a simulated swarm: its vehicle, its table, its decisions.

use std::collections::VecDeque;
use std::sync::Arc;

use noctule_netsim::Random;
use noctule_timebase::{Instant, Span};

use super::Now;
use crate::avoid::{Avoidance, Other};
use crate::flock::{Arena, Flockmate, Vasarhelyi};
use crate::formation::{Gains, Placed, Shape, follow, slot_m};
use crate::linear::Kept;
use crate::mission::{approach, sphere};
use crate::neighbours::{Estimate, Neighbours};
use crate::scenario::{Mission, Scenario};
use crate::state::{Mode, State};
use crate::takeoff::{Clearance, TakeOff};
use crate::vehicle::{Vehicle, shortened};
use crate::{Own, Vector};

/// Radius of the leader's circle, m.
const LEADER_CIRCLE_M: f64 = 100.0;

/// Inputs of a decision beside the drone.
pub(super) struct Flight<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) now: Now,
    pub(super) count: usize,
}

/// A state's bytes, and the frames of it that are left.
type Copies = (Arc<[u8]>, u32);

#[derive(Debug)]
pub(super) struct Drone {
    number: usize,
    pub(super) vehicle: Vehicle,
    pub(super) command_m_s: Vector,
    pub(super) goal_m: Vector,
    pub(super) arrived_s: Option<f64>,
    pub(super) alive: bool,
    pub(super) effort: f64,
    pub(super) next_state_ns: i64,
    pub(super) neighbours: Neighbours,
    takeoff: TakeOff,
    /// When it was cleared to leave its place, s.
    left_s: Option<f64>,
    /// States on their way to the radio.
    pub(super) queue: VecDeque<Copies>,
    avoidance: Avoidance,
    errors: Random,
    /// Neighbours at the present decision.
    seen: Vec<Estimate>,
}

/// Positions of the drones at the start.
pub(super) fn starts(scenario: &Scenario, seed: u64) -> Vec<Vector> {
    let count = scenario.nodes;
    match scenario.mission {
        Mission::Crossing { spacing_m } => sphere(count, sphere_radius_m(count, spacing_m), seed),
        Mission::Formation { spacing_m, shape, .. } => {
            let leader = Vector::new(LEADER_CIRCLE_M, 0.0, 0.0);
            (0..count).map(|number| leader + slot_m(shape, number, count, spacing_m)).collect()
        }
        Mission::Flock { spacing_m } => {
            let edge = libm::ceil(libm::cbrt(count as f64)) as usize;
            let place = |number: usize| {
                let cell = [number % edge, number / edge % edge, number / edge / edge];
                let middle = (edge - 1) as f64 / 2.0;
                Vector::from(cell.map(|cell| (cell as f64 - middle) * spacing_m))
            };
            (0..count).map(place).collect()
        }
    }
}

/// The radius at which each of `count` drones has a square of the spacing to itself.
fn sphere_radius_m(count: usize, spacing_m: f64) -> f64 {
    spacing_m * libm::sqrt(count as f64 / (4.0 * core::f64::consts::PI))
}

/// A drone's slot relative to the leader at a time.
pub(super) fn slot_at(scenario: &Scenario, number: usize, now_s: f64) -> Vector {
    let Mission::Formation { spacing_m, shape, shape_s, .. } = scenario.mission else {
        return Vector::zeros();
    };
    const ORDER: [Shape; 4] = [Shape::Line, Shape::Wedge, Shape::Ring, Shape::Grid];
    let first = ORDER.iter().position(|candidate| *candidate == shape).unwrap_or(0);
    let turn = (now_s / shape_s) as usize;
    slot_m(ORDER[(first + turn) % ORDER.len()], number, scenario.nodes, spacing_m)
}

/// When the last of them had left its place, s; `None` if one never did.
pub(super) fn all_left_s(drones: &[&Drone]) -> Option<f64> {
    drones.iter().map(|drone| drone.left_s).try_fold(0.0, |latest: f64, left_s| Some(latest.max(left_s?)))
}

impl Drone {
    /// `rate_hz` is the rate of states: their phases are drawn over its period, or all would send at once and then none.
    pub(super) fn new(
        (scenario, rate_hz): (&Scenario, f64),
        number: usize,
        start: Vector,
        draw: &mut Random,
    ) -> Drone {
        Drone {
            number,
            vehicle: Vehicle::at(start),
            command_m_s: Vector::zeros(),
            // A metre or two beside the opposite point, so that no two lines are the same.
            goal_m: -start + Vector::new(draw.normal(0.5), draw.normal(0.5), draw.normal(0.5)),
            arrived_s: None,
            alive: true,
            effort: 0.0,
            next_state_ns: (draw.unit() * 1e9 / rate_hz) as i64,
            neighbours: Neighbours::new(number as u32, scenario.nodes, scenario.states.lifespan)
                .with_range(scenario.states.range),
            takeoff: TakeOff::new(scenario.takeoff, scenario.nodes - 1),
            left_s: None,
            queue: VecDeque::new(),
            avoidance: Avoidance::new(scenario.limits, scenario.margins),
            errors: Random::for_part(draw.bits(), 24),
            seen: Vec::new(),
        }
    }

    /// The next frame for the radio.
    pub(super) fn next_frame(&mut self) -> Option<Arc<[u8]>> {
        let (bytes, left) = self.queue.front_mut()?;
        let bytes = bytes.clone();
        *left -= 1;
        if *left == 0 {
            self.queue.pop_front();
        }
        Some(bytes)
    }

    /// Its own state as its estimator gives it: wrong by less than the bounds.
    pub(super) fn own_state(&mut self, scenario: &Scenario, now: Now) -> State<Own> {
        let mode = if self.arrived_s.is_some() { Mode::Arrived } else { Mode::Flying };
        let states = &scenario.states;
        State {
            node: self.number as u32,
            mode,
            at: Instant::from_ns(now.ns()),
            position_m: self.vehicle.position_m + self.within(states.position_bound_m),
            velocity_m_s: self.vehicle.velocity_m_s + self.within(states.velocity_bound_m_s),
            acceleration_m_s2: self.vehicle.acceleration_m_s2,
            heading_rad: libm::atan2(self.vehicle.velocity_m_s.y, self.vehicle.velocity_m_s.x),
            radius_m: scenario.limits.radius_m,
            position_bound_m: states.position_bound_m,
            velocity_bound_m_s: states.velocity_bound_m_s,
            acceleration_bound_m_s2: scenario.limits.acceleration_bound_m_s2(),
            speed_bound_m_s: scenario.limits.speed_bound_m_s(),
        }
    }

    /// An error no longer than `bound`.
    fn within(&mut self, bound: f64) -> Vector {
        let deviation = bound / 3.0;
        let error = Vector::new(
            self.errors.normal(deviation),
            self.errors.normal(deviation),
            self.errors.normal(deviation),
        );
        // Rounding to single precision must not leave the bound.
        shortened(error, bound * 0.999)
    }

    /// The drone as others see it without any radio.
    pub(super) fn as_other(&self) -> Other {
        Other {
            position_m: self.vehicle.position_m,
            velocity_m_s: self.vehicle.velocity_m_s,
            radius_m: 0.0,
            uncertainty_m: 0.0,
            reciprocates: self.alive,
        }
    }

    /// Brings its neighbours to the present. `views` is the truth, if that is what it has.
    pub(super) fn perceive(&mut self, flight: &Flight<'_>, views: &[Other]) -> &[Estimate] {
        self.seen.clear();
        if views.is_empty() {
            let now = Instant::from_ns(flight.now.ns());
            self.seen.extend(self.neighbours.estimates(now, flight.scenario.states.knowledge));
        } else {
            let own = self.number;
            let others = views.iter().enumerate().filter(|(number, _)| *number != own);
            self.seen.extend(others.map(|(number, other)| Estimate {
                node: number as u32,
                position_m: other.position_m,
                velocity_m_s: other.velocity_m_s,
                radius_m: flight.scenario.limits.radius_m,
                uncertainty_m: 0.0,
                age: Span::ZERO,
                bound: Span::ZERO,
            }));
        }
        &self.seen
    }

    /// Whether it left only because it had waited for the longest time.
    pub(super) fn left_overdue(&self) -> bool {
        self.takeoff.cleared().is_some_and(|(clearance, _)| clearance == Clearance::Overdue)
    }

    /// Estimates of its neighbours at its last decision.
    pub(super) fn seen(&self) -> &[Estimate] {
        &self.seen
    }

    /// Decides by what it perceived.
    pub(super) fn decide(&mut self, flight: &Flight<'_>) -> Kept {
        let wanted = if self.has_left(flight) { self.wanted_m_s(flight) } else { Vector::zeros() };
        // The own estimate has the bound that it sends to others.
        let own_m =
            flight.scenario.states.position_bound_m * f64::from(u8::from(flight.scenario.air.is_some()));
        let bounded = flight.scenario.states.knowledge == crate::Knowledge::Bound;
        let others = self.seen.iter().map(|estimate| Other {
            position_m: estimate.position_m,
            velocity_m_s: estimate.velocity_m_s,
            radius_m: estimate.radius_m,
            uncertainty_m: estimate.uncertainty_m + if bounded { own_m } else { 0.0 },
            reciprocates: true,
        });
        let obstacles = flight.scenario.obstacles.iter().map(|obstacle| Other {
            position_m: obstacle.centre_m,
            velocity_m_s: Vector::zeros(),
            radius_m: obstacle.radius_m,
            uncertainty_m: if bounded { own_m } else { 0.0 },
            reciprocates: false,
        });
        let own = (self.vehicle.position_m, self.vehicle.velocity_m_s);
        let decision = self.avoidance.decide(own, wanted, others.chain(obstacles));
        self.command_m_s = decision.velocity_m_s;
        decision.kept
    }

    /// Whether it knows enough of its neighbours to leave its place.
    fn has_left(&mut self, flight: &Flight<'_>) -> bool {
        if self.left_s.is_none() && flight.now.as_s_f64() >= flight.scenario.hover_s {
            let (here_m, reach_m) = (self.vehicle.position_m, self.avoidance.reach_m());
            let is_near = |seen: &&Estimate| (seen.position_m - here_m).norm_squared() < reach_m * reach_m;
            let nearby = self.seen.iter().filter(is_near).count();
            if self.takeoff.handle_known(Instant::from_ns(flight.now.ns()), self.seen.len(), nearby) {
                self.left_s = Some(flight.now.as_s_f64());
            }
        }
        self.left_s.is_some()
    }

    fn wanted_m_s(&self, flight: &Flight<'_>) -> Vector {
        let scenario = flight.scenario;
        match scenario.mission {
            Mission::Crossing { .. } => approach(&scenario.limits, self.goal_m - self.vehicle.position_m),
            Mission::Formation { speed_m_s, .. } => self.keep_slot(flight, speed_m_s),
            Mission::Flock { spacing_m } => self.flock(flight.count, spacing_m),
        }
    }

    fn keep_slot(&self, flight: &Flight<'_>, speed_m_s: f64) -> Vector {
        let now_s = flight.now.as_s_f64();
        if self.number == 0 {
            let angle = (now_s - self.left_s.unwrap_or(now_s)) * speed_m_s / LEADER_CIRCLE_M;
            let place = Vector::new(libm::cos(angle), libm::sin(angle), 0.0) * LEADER_CIRCLE_M;
            let ahead = Vector::new(-libm::sin(angle), libm::cos(angle), 0.0) * speed_m_s;
            return ahead + (place - self.vehicle.position_m);
        }
        let placed = |number: usize, position_m: Vector, velocity_m_s: Vector| Placed {
            position_m,
            velocity_m_s,
            slot_m: slot_at(flight.scenario, number, now_s),
        };
        let own = placed(self.number, self.vehicle.position_m, self.vehicle.velocity_m_s);
        let others = self.seen.iter().map(|e| placed(e.node as usize, e.position_m, e.velocity_m_s));
        let leader = self.seen.first().filter(|first| first.node == 0);
        let leader = leader.map(|leader| placed(0, leader.position_m, leader.velocity_m_s));
        follow(&Gains::default(), &own, leader.as_ref(), others)
    }

    fn flock(&self, count: usize, spacing_m: f64) -> Vector {
        let model = Vasarhelyi { r0_rep_m: 1.2 * spacing_m, ..Vasarhelyi::default() };
        let own = Flockmate { position_m: self.vehicle.position_m, velocity_m_s: self.vehicle.velocity_m_s };
        let arena = Arena { half_m: 2.5 * spacing_m * libm::cbrt(count as f64) };
        let mates = self.seen.iter();
        let mates = mates.map(|e| Flockmate { position_m: e.position_m, velocity_m_s: e.velocity_m_s });
        model.velocity_m_s(&own, Some(arena), mates)
    }
}
