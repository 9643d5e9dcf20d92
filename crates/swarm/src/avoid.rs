//! A velocity near the wanted one that collides with no other drone.
//!
//! # Problem
//!
//! Optimal reciprocal collision avoidance (van den Berg, Guy, Lin and Manocha 2011) takes velocities for
//! things that can be chosen at once. A vehicle that must brake collides under it even with perfect knowledge.
//!
//! # Approach
//!
//! Two planes for each neighbour, both with a radius that includes what is not known of the neighbour:
//!
//! - **Braking** (hard): the speed towards the neighbour is at most what can be braked within half of the gap that is
//!   certain: `v·n ≤ √(a²·r² + a·gap) − a·r`, with half of the vehicle's acceleration for a and the time r until a command
//!   acts. If both keep it they stop before they touch, whatever either intends. It is the barrier of Wang, Ames
//!   and Egerstedt ("Safety barrier certificates for collisions-free multirobot systems", 2017) for velocity
//!   commands. Hovering always keeps it, unless the neighbour is too near even where it is thought to be.
//!   A neighbour whose last state is old may be at either side: the plane is repeated for the edge of the ball in
//!   which it is, and while that ball reaches the vehicle itself it creeps until a new state arrives.
//! - **Reciprocal** (soft): ORCA's plane, with a larger margin and a horizon. It makes drones pass each other instead of
//!   meeting at the barrier.
//!
//! A braking plane of the static obstacle kind takes the whole gap: an obstacle does not brake.

use crate::Vector;
use crate::linear::{Kept, Plane, solve};
use crate::vehicle::{Limits, shortened};

/// Nearest neighbours that are looked at; those beyond are counted.
pub const NEIGHBOURS_MAX: usize = 64;
/// With an uncertainty above this share of the distance, a neighbour is looked for at the sides, too.
const WIDE: f64 = 0.2;
/// With an uncertainty above this share of the distance, it is looked for everywhere.
const COVERED: f64 = 0.95;
/// The fastest command while a neighbour may be anywhere, m/s.
const CREEP_M_S: f64 = 0.2;
/// Six directions around.
const EDGES: [(f64, f64); 6] = [
    (1.0, 0.0),
    (0.5, 0.866_025_403_784_438_6),
    (-0.5, 0.866_025_403_784_438_6),
    (-1.0, 0.0),
    (-0.5, -0.866_025_403_784_438_6),
    (0.5, -0.866_025_403_784_438_6),
];
/// Speed with which one that is too near is left, per metre that it is too near, 1/s.
const RETREAT_PER_S: f64 = 1.0;

/// A drone is blocked if it wants to fly faster than this, m/s, and may not.
const BLOCKED_M_S: f64 = 0.3;
/// It may not if it is allowed less than this share of the wanted speed.
const BLOCKED_SHARE: f64 = 0.1;

/// Distances and times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Margins {
    /// Kept free between two bodies by braking, m.
    pub hard_m: f64,
    /// Kept free between two bodies by passing, m.
    pub soft_m: f64,
    /// Collisions further ahead do not matter yet, s.
    pub horizon_s: f64,
    /// Time from a decision until the vehicle has done it: period of decisions and response, s.
    pub reaction_s: f64,
    /// Share of the vehicle's acceleration that braking is planned with: the rest is for wind and for turns.
    pub braking_share: f64,
}

impl Default for Margins {
    /// 0.5 m, 1 m, 4 s, 0.2 s, one half.
    fn default() -> Margins {
        Margins { hard_m: 0.5, soft_m: 1.0, horizon_s: 4.0, reaction_s: 0.2, braking_share: 0.5 }
    }
}

/// A neighbour to avoid, as the drone knows it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Other {
    /// Position, m.
    pub position_m: Vector,
    /// Velocity, m/s.
    pub velocity_m_s: Vector,
    /// Radius of the body, m.
    pub radius_m: f64,
    /// It may be this far from `position_m`, m.
    pub uncertainty_m: f64,
    /// It avoids, too; an obstacle does not.
    pub reciprocates: bool,
}

/// Decision of one drone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision {
    /// The command, m/s.
    pub velocity_m_s: Vector,
    /// How well it keeps all distances.
    pub kept: Kept,
    /// Others near enough to matter that were not looked at.
    pub ignored: usize,
}

/// The avoidance of one drone; keeps its memory between decisions.
#[derive(Debug)]
pub struct Avoidance {
    limits: Limits,
    margins: Margins,
    others: Vec<Other>,
    /// Free distance, m, and number in `others`.
    near: Vec<(f64, usize)>,
    planes: Vec<Plane>,
}

impl Avoidance {
    /// Avoidance for a vehicle with these limits.
    pub fn new(limits: Limits, margins: Margins) -> Avoidance {
        Avoidance { limits, margins, others: Vec::new(), near: Vec::new(), planes: Vec::new() }
    }

    /// The velocity to command, from the own position and velocity and the wanted velocity.
    pub fn decide(
        &mut self,
        (position_m, velocity_m_s): (Vector, Vector),
        wanted_m_s: Vector,
        others: impl Iterator<Item = Other>,
    ) -> Decision {
        let reach_m = self.reach_m();
        self.near.clear();
        self.others.clear();
        for other in others {
            let toward_m = other.position_m - position_m;
            let within_m = reach_m + other.radius_m + other.uncertainty_m;
            // Most of a large swarm is far away: no root for those, and no doubt by rounding about the others.
            if toward_m.norm_squared() > 1.000_001 * within_m * within_m {
                continue;
            }
            let free_m = toward_m.norm() - other.radius_m - other.uncertainty_m;
            if free_m < reach_m {
                self.near.push((free_m, self.others.len()));
                self.others.push(other);
            }
        }
        let by_distance = |a: &(f64, usize), b: &(f64, usize)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1));
        let ignored = self.near.len().saturating_sub(NEIGHBOURS_MAX);
        if ignored > 0 {
            self.near.select_nth_unstable_by(NEIGHBOURS_MAX, by_distance);
            self.near.truncate(NEIGHBOURS_MAX);
        }
        self.near.sort_unstable_by(by_distance);
        self.planes.clear();
        let mut most_m_s = self.limits.speed_m_s;
        for other in self.near.iter().map(|(_, number)| &self.others[*number]) {
            let toward = other.position_m - position_m;
            self.planes.extend(braking(&self.limits, &self.margins, toward, other));
            if around(&self.limits, &self.margins, (toward, other), &mut self.planes) {
                most_m_s = CREEP_M_S.min(most_m_s);
            }
        }
        let hard = self.planes.len();
        for other in self.near.iter().map(|(_, number)| &self.others[*number]) {
            let toward = other.position_m - position_m;
            self.planes.push(reciprocal(&self.limits, &self.margins, (toward, velocity_m_s), other));
        }
        let (chosen_m_s, kept) = self.choose((hard, most_m_s), wanted_m_s);
        Decision { velocity_m_s: self.brake_first((hard, most_m_s), velocity_m_s, chosen_m_s), kept, ignored }
    }

    fn choose(&self, (hard, most_m_s): (usize, f64), wanted_m_s: Vector) -> (Vector, Kept) {
        let (velocity_m_s, kept) = solve(&self.planes, hard, most_m_s, wanted_m_s);
        let speed = wanted_m_s.norm();
        let is_blocked = speed > BLOCKED_M_S && velocity_m_s.dot(&wanted_m_s) < BLOCKED_SHARE * speed * speed;
        if !is_blocked {
            return (velocity_m_s, kept);
        }
        // Two that wait for each other, or a ring of them, go round: everybody to the right.
        let aside_m_s = wanted_m_s * 0.5 + aside_of(wanted_m_s) * speed;
        solve(&self.planes, hard, most_m_s, aside_m_s)
    }

    /// A vehicle that is too fast for a braking plane first brakes: a command far aside would have the acceleration that
    /// braking needs. What is left of it goes towards the chosen velocity; all between is allowed, because planes leave a
    /// convex set.
    fn brake_first(
        &self,
        (hard, most_m_s): (usize, f64),
        velocity_m_s: Vector,
        chosen_m_s: Vector,
    ) -> Vector {
        let planes = &self.planes[..hard];
        if planes.iter().all(|plane| plane.violation(&velocity_m_s) <= 0.0) {
            return chosen_m_s;
        }
        let (slower_m_s, _) = solve(planes, hard, most_m_s, velocity_m_s);
        let within = self.limits.acceleration_m_s2 * self.margins.reaction_s;
        let left = (within - (slower_m_s - velocity_m_s).norm()).max(0.0);
        slower_m_s + shortened(chosen_m_s - slower_m_s, left)
    }

    /// No drone further away matters, m: two at full speed towards each other over the horizon.
    pub fn reach_m(&self) -> f64 {
        2.0 * self.limits.speed_m_s * self.margins.horizon_s + self.limits.radius_m + self.margins.soft_m
    }
}

/// The fastest approach of one side from which it stops within `gap_m`, m/s.
pub fn braking_speed_m_s(gap_m: f64, acceleration_m_s2: f64, reaction_s: f64) -> f64 {
    if gap_m <= 0.0 {
        return 0.0;
    }
    let lost = acceleration_m_s2 * reaction_s;
    (lost * lost + 2.0 * acceleration_m_s2 * gap_m).sqrt() - lost
}

fn unit(vector: Vector) -> Vector {
    let length = vector.norm();
    // At the same place any direction is as good as another, if both sides do not choose the same one.
    if length > 1e-9 { vector / length } else { Vector::new(1.0, 0.0, 0.0) }
}

/// The hard plane, unless no speed of the vehicle reaches it.
fn braking(limits: &Limits, margins: &Margins, toward_m: Vector, other: &Other) -> Option<Plane> {
    let distance_m = toward_m.norm();
    let normal = -unit(toward_m);
    let nominal_m = distance_m - limits.radius_m - other.radius_m - margins.hard_m;
    let certain_m = nominal_m - other.uncertainty_m;
    let own_m = if other.reciprocates { 0.5 * certain_m } else { certain_m };
    let acceleration = limits.acceleration_m_s2 * margins.braking_share;
    let speed = match nominal_m < 0.0 {
        // Too near even where it is thought to be.
        true => RETREAT_PER_S * nominal_m,
        false => braking_speed_m_s(own_m, acceleration, margins.reaction_s),
    };
    (speed < limits.speed_m_s).then(|| Plane { point: normal * -speed, normal })
}

/// Braking planes for where else the neighbour may be. Straight ahead it may be nearest, but with an uncertainty near the
/// distance it may as well be on either side. Pushes planes for the edge of the ball in which it is, as seen from here;
/// true if that ball reaches the vehicle itself, so that no direction is safe.
fn around(
    limits: &Limits,
    margins: &Margins,
    (toward_m, other): (Vector, &Other),
    planes: &mut Vec<Plane>,
) -> bool {
    let distance_m = toward_m.norm();
    let sine = other.uncertainty_m / distance_m.max(1e-9);
    if sine < WIDE {
        return false;
    }
    if sine > COVERED {
        return true;
    }
    let cosine = (1.0 - sine * sine).sqrt();
    let edge_m = distance_m * cosine;
    let gap_m = edge_m - limits.radius_m - other.radius_m - margins.hard_m;
    let own_m = if other.reciprocates { 0.5 * gap_m } else { gap_m };
    let acceleration = limits.acceleration_m_s2 * margins.braking_share;
    let speed = braking_speed_m_s(own_m, acceleration, margins.reaction_s);
    if speed < limits.speed_m_s {
        let ahead = unit(toward_m);
        let (right, up) = (aside_of(toward_m), aside_of(toward_m).cross(&ahead));
        for (r, u) in EDGES {
            let normal = -(ahead * cosine + (right * r + up * u) * sine);
            planes.push(Plane { point: normal * -speed, normal });
        }
    }
    false
}

/// ORCA's plane: half of the least change of the relative velocity that ends all collisions within the horizon.
fn reciprocal(
    limits: &Limits,
    margins: &Margins,
    (toward_m, own_m_s): (Vector, Vector),
    other: &Other,
) -> Plane {
    let radius = limits.radius_m + other.radius_m + margins.soft_m + other.uncertainty_m;
    let relative = own_m_s - other.velocity_m_s;
    let share = if other.reciprocates { 0.5 } else { 1.0 };
    let square = toward_m.norm_squared();
    let (normal, change) = if square <= radius * radius {
        // Inside already: apart by the rate that is left to the reaction, but not in a jump.
        let normal = -unit(toward_m);
        let depth = radius - square.sqrt();
        let apart = relative.dot(&normal);
        (normal, (RETREAT_PER_S * depth).min(limits.speed_m_s) - apart)
    } else {
        let ahead = relative - toward_m / margins.horizon_s;
        let dot = ahead.dot(&toward_m);
        if dot < 0.0 && dot * dot > radius * radius * ahead.norm_squared() {
            // The round front of the obstacle in velocities.
            let normal = unit(ahead);
            (normal, radius / margins.horizon_s - ahead.norm())
        } else {
            // Its cone.
            let b = toward_m.dot(&relative);
            let c = relative.norm_squared()
                - toward_m.cross(&relative).norm_squared() / (square - radius * radius);
            let along = (b + (b * b - square * c).max(0.0).sqrt()) / square;
            let aside = relative - toward_m * along;
            let length = aside.norm();
            let normal = if length > 1e-9 { aside / length } else { aside_of(toward_m) };
            (normal, radius * along - length)
        }
    };
    Plane { point: own_m_s + normal * (share * change), normal }
}

/// A direction across, the same turn for both sides of a meeting head on.
fn aside_of(toward_m: Vector) -> Vector {
    let up = Vector::new(0.0, 0.0, 1.0);
    let across = toward_m.cross(&up);
    if across.norm() > 1e-9 { unit(across) } else { unit(toward_m.cross(&Vector::new(1.0, 0.0, 0.0))) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vehicle::Vehicle;

    fn known(vehicle: &Vehicle, uncertainty_m: f64) -> Other {
        Other {
            position_m: vehicle.position_m,
            velocity_m_s: vehicle.velocity_m_s,
            radius_m: 0.5,
            uncertainty_m,
            reciprocates: true,
        }
    }

    /// Flies vehicles to goals with perfect knowledge; the least distance of any two, and how far from the goals they ended.
    fn fly(starts: &[Vector], goals: &[Vector], uncertainty_m: f64, seconds: f64) -> (f64, f64) {
        let limits = Limits::default();
        let mut vehicles: Vec<Vehicle> = starts.iter().map(|start| Vehicle::at(*start)).collect();
        let mut avoidance = Avoidance::new(limits, Margins::default());
        let mut least = f64::MAX;
        let mut commands = vec![Vector::zeros(); starts.len()];
        for step in 0..(seconds * 100.0) as usize {
            if step % 5 == 0 {
                for (number, command) in commands.iter_mut().enumerate() {
                    let own = vehicles[number];
                    let others = vehicles.iter().enumerate().filter(|(other, _)| *other != number);
                    let others = others.map(|(_, vehicle)| known(vehicle, uncertainty_m));
                    let wanted = crate::mission::approach(&limits, goals[number] - own.position_m);
                    *command =
                        avoidance.decide((own.position_m, own.velocity_m_s), wanted, others).velocity_m_s;
                }
            }
            for (vehicle, command) in vehicles.iter_mut().zip(&commands) {
                vehicle.step(&limits, *command, Vector::zeros(), 0.01);
            }
            for (number, one) in vehicles.iter().enumerate() {
                for other in &vehicles[..number] {
                    least = least.min((one.position_m - other.position_m).norm());
                }
            }
        }
        let far = vehicles.iter().zip(goals).map(|(v, goal)| (v.position_m - goal).norm());
        (least, far.fold(0.0, f64::max))
    }

    #[test]
    fn two_head_on_pass_each_other_and_arrive() {
        let (a, b) = (Vector::new(-30.0, 0.0, 0.0), Vector::new(30.0, 0.0, 0.0));
        let (least, far) = fly(&[a, b], &[b, a], 0.0, 20.0);
        assert!(least > 1.5 && far < 0.5, "{least} m apart, {far} m from the goal");
        // Exactly above each other, which has no side by symmetry.
        let (a, b) = (Vector::new(0.0, 0.0, -30.0), Vector::new(0.0, 0.0, 30.0));
        let (least, far) = fly(&[a, b], &[b, a], 0.0, 20.0);
        assert!(least > 1.5 && far < 0.5, "{least} m apart, {far} m from the goal");
    }

    #[test]
    fn what_is_not_known_is_kept_free() {
        let (a, b) = (Vector::new(-30.0, 0.0, 0.0), Vector::new(30.0, 1.0, 0.0));
        let (sure, _) = fly(&[a, b], &[b, a], 0.0, 20.0);
        let (unsure, far) = fly(&[a, b], &[b, a], 3.0, 25.0);
        assert!(unsure > 4.4 && unsure > sure + 2.0 && far < 0.5, "{sure} m, {unsure} m, {far} m left");
    }

    #[test]
    fn an_obstacle_in_the_way_is_not_touched_and_at_rest_nothing_moves() {
        let limits = Limits::default();
        let mut avoidance = Avoidance::new(limits, Margins::default());
        let mut vehicle = Vehicle::at(Vector::new(-30.0, 0.1, 0.0));
        let wall = Other {
            position_m: Vector::zeros(),
            velocity_m_s: Vector::zeros(),
            radius_m: 5.0,
            uncertainty_m: 0.0,
            reciprocates: false,
        };
        let mut least = f64::MAX;
        for _ in 0..400 {
            let wanted = crate::mission::approach(&limits, Vector::new(30.0, 0.0, 0.0) - vehicle.position_m);
            let own = (vehicle.position_m, vehicle.velocity_m_s);
            let decision = avoidance.decide(own, wanted, std::iter::once(wall));
            for _ in 0..5 {
                vehicle.step(&limits, decision.velocity_m_s, Vector::zeros(), 0.01);
            }
            least = least.min(vehicle.position_m.norm());
        }
        assert!(least > 5.9 && vehicle.position_m.x > 29.0, "{least} {vehicle:?}");
        let still = Vehicle::at(Vector::new(2.5, 0.0, 0.0));
        let decision = avoidance.decide(
            (Vector::zeros(), Vector::zeros()),
            Vector::zeros(),
            std::iter::once(known(&still, 0.0)),
        );
        assert_eq!(decision.velocity_m_s, Vector::zeros());
    }

    #[test]
    fn twenty_through_one_point_with_perfect_knowledge_stay_apart() {
        let starts: Vec<Vector> = crate::mission::sphere(20, 25.0, 3);
        let goals: Vec<Vector> = starts.iter().map(|start| -start).collect();
        let (least, far) = fly(&starts, &goals, 0.0, 40.0);
        assert!(least > 1.2 && far < 1.0, "{least} m apart, {far} m from the goal");
    }

    #[test]
    fn more_than_can_be_looked_at_are_counted() {
        let mut avoidance = Avoidance::new(Limits::default(), Margins::default());
        let others = (0..NEIGHBOURS_MAX + 5)
            .map(|n| known(&Vehicle::at(Vector::new(10.0 + n as f64 / 10.0, 0.0, 0.0)), 0.0));
        let decision = avoidance.decide((Vector::zeros(), Vector::zeros()), Vector::zeros(), others);
        assert_eq!(decision.ignored, 5);
    }
}
