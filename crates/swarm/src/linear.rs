//! The velocity nearest to a wanted one that lies in a ball and on the right side of planes.
//!
//! # Approach
//!
//! Incremental, as in de Berg et al., "Computational Geometry" (2008), chapter 4, one dimension higher: planes are added
//! one by one; one that the best point so far violates holds the next best point, which is a problem of one dimension less
//! among the planes before it. If the planes leave nothing, the first `hard` of them are kept and the greatest violation
//! of the others is made least, plane by plane, as van den Berg et al. propose for ORCA ("Reciprocal n-body collision
//! avoidance", 2011, section 5.3). If the hard planes alone leave nothing, their own greatest violation is made least.
//!
//! With planes in random order the expected work is linear in their number; the caller's order is by distance, which is
//! as good in practice.

use crate::Vector;

/// Below, two directions are parallel.
const PARALLEL: f64 = 1e-12;
/// A violation below is none, in the unit of the vectors.
const TOLERANCE: f64 = 1e-9;

/// Allowed is `(v − point) · normal ≥ 0`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plane {
    /// A point on the plane.
    pub point: Vector,
    /// Normal of length one, to the allowed side.
    pub normal: Vector,
}

impl Plane {
    /// How far `v` is on the wrong side; negative on the right one.
    pub fn violation(&self, v: &Vector) -> f64 {
        (self.point - v).dot(&self.normal)
    }
}

/// Objective of the optimisation.
#[derive(Clone, Copy, Debug)]
enum Goal {
    /// Nearest to this point.
    Nearest(Vector),
    /// Furthest in this direction.
    Furthest(Vector),
}

/// A line by a point and a direction of length one.
#[derive(Clone, Copy, Debug)]
struct Line {
    point: Vector,
    direction: Vector,
}

/// How well the planes were kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// All planes were kept.
    All,
    /// The hard planes were kept.
    Hard,
    /// Not even the hard planes were kept.
    Least,
}

/// The allowed velocity within a ball of `radius` around zero that is nearest to `wanted`. The first `hard` planes are given up
/// last.
pub fn solve(planes: &[Plane], hard: usize, radius: f64, wanted: Vector) -> (Vector, Kept) {
    let hard = hard.min(planes.len());
    let goal = Goal::Nearest(wanted);
    match in_space(planes, radius, goal) {
        Ok(v) => (v, Kept::All),
        Err((v, failed)) if failed >= hard => (relax(planes, hard, (failed, v), radius), Kept::Hard),
        Err((v, failed)) => (relax(&planes[..hard], 0, (failed, v), radius), Kept::Least),
    }
}

/// The optimum, or the best before the plane that left nothing, and its number.
fn in_space(planes: &[Plane], radius: f64, goal: Goal) -> Result<Vector, (Vector, usize)> {
    let mut best = match goal {
        Goal::Furthest(direction) => direction * radius,
        Goal::Nearest(wanted) => {
            let length = wanted.norm();
            if length > radius { wanted * (radius / length) } else { wanted }
        }
    };
    for (number, plane) in planes.iter().enumerate() {
        if plane.violation(&best) > TOLERANCE {
            let Some(next) = on_plane(&planes[..number], plane, radius, goal) else {
                return Err((best, number));
            };
            best = next;
        }
    }
    Ok(best)
}

fn on_plane(before: &[Plane], plane: &Plane, radius: f64, goal: Goal) -> Option<Vector> {
    let distance = plane.point.dot(&plane.normal);
    let square = radius * radius - distance * distance;
    if square < 0.0 {
        return None;
    }
    let (centre, disc) = (plane.normal * distance, square.sqrt());
    let mut best = match goal {
        Goal::Furthest(direction) => {
            let along = direction - plane.normal * direction.dot(&plane.normal);
            let length = along.norm();
            if length < PARALLEL { centre } else { centre + along * (disc / length) }
        }
        Goal::Nearest(wanted) => {
            let onto = wanted + plane.normal * plane.violation(&wanted);
            let from_centre = onto - centre;
            let length = from_centre.norm();
            if length > disc { centre + from_centre * (disc / length) } else { onto }
        }
    };
    for (number, other) in before.iter().enumerate() {
        if other.violation(&best) <= TOLERANCE {
            continue;
        }
        let cross = other.normal.cross(&plane.normal);
        let length = cross.norm();
        if length * length < PARALLEL {
            // Parallel, and on the wrong side everywhere.
            return None;
        }
        let direction = cross / length;
        let in_plane = direction.cross(&plane.normal);
        let step = (other.point - plane.point).dot(&other.normal) / in_plane.dot(&other.normal);
        let line = Line { point: plane.point + in_plane * step, direction };
        best = on_line(&before[..number], line, radius, goal)?;
    }
    Some(best)
}

fn on_line(before: &[Plane], line: Line, radius: f64, goal: Goal) -> Option<Vector> {
    let along = line.point.dot(&line.direction);
    let square = along * along + radius * radius - line.point.norm_squared();
    if square < 0.0 {
        return None;
    }
    let half = square.sqrt();
    let (mut left, mut right) = (-along - half, -along + half);
    for plane in before {
        let slope = line.direction.dot(&plane.normal);
        let missing = plane.violation(&line.point);
        if slope.abs() < PARALLEL {
            if missing > TOLERANCE {
                return None;
            }
            continue;
        }
        let crossing = missing / slope;
        if slope > 0.0 {
            left = left.max(crossing)
        } else {
            right = right.min(crossing)
        }
        if left > right {
            return None;
        }
    }
    let at = match goal {
        Goal::Furthest(direction) if direction.dot(&line.direction) > 0.0 => right,
        Goal::Furthest(_) => left,
        Goal::Nearest(wanted) => (wanted - line.point).dot(&line.direction).clamp(left, right),
    };
    Some(line.point + line.direction * at)
}

/// Keeps the first `hard` planes and makes the greatest violation of the others least, from the one at which the search failed.
fn relax(planes: &[Plane], hard: usize, (failed, start): (usize, Vector), radius: f64) -> Vector {
    let (mut best, mut worst) = (start, 0.0);
    let mut halves = Vec::with_capacity(planes.len());
    for number in failed..planes.len() {
        let plane = &planes[number];
        if plane.violation(&best) <= worst + TOLERANCE {
            continue;
        }
        halves.clear();
        halves.extend_from_slice(&planes[..hard]);
        halves.extend(planes[hard..number].iter().filter_map(|other| bisector(other, plane)));
        // The optimum was already found up to rounding if this fails.
        if let Ok(v) = in_space(&halves, radius, Goal::Furthest(plane.normal)) {
            best = v;
        }
        worst = plane.violation(&best);
    }
    best
}

/// Where `plane` is violated no less than `other`.
fn bisector(other: &Plane, plane: &Plane) -> Option<Plane> {
    let cross = other.normal.cross(&plane.normal);
    let square = cross.norm_squared();
    let point = if square < PARALLEL {
        if other.normal.dot(&plane.normal) > 0.0 {
            return None;
        }
        (other.point + plane.point) * 0.5
    } else {
        let in_plane = cross.cross(&plane.normal);
        let step = (other.point - plane.point).dot(&other.normal) / in_plane.dot(&other.normal);
        plane.point + in_plane * step
    };
    let normal = other.normal - plane.normal;
    let length = normal.norm();
    (length > PARALLEL).then(|| Plane { point, normal: normal / length })
}

#[cfg(test)]
mod tests {
    use super::*;
    use noctule_netsim::Random;

    fn direction(random: &mut Random) -> Vector {
        Vector::new(random.normal(1.0), random.normal(1.0), random.normal(1.0)).normalize()
    }

    fn planes(random: &mut Random, count: usize, spread: f64) -> Vec<Plane> {
        let plane = |random: &mut Random| {
            let normal = direction(random);
            Plane { point: normal * random.uniform(-5.0, spread), normal }
        };
        (0..count).map(|_| plane(random)).collect()
    }

    /// The nearest allowed point by projections in turn with corrections (Dykstra 1983), which converges to it.
    fn by_projections(planes: &[Plane], radius: f64, wanted: Vector) -> Vector {
        let mut v = wanted;
        let mut corrections = vec![Vector::zeros(); planes.len() + 1];
        for _ in 0..20_000 {
            for (plane, correction) in planes.iter().zip(&mut corrections) {
                let from = v + *correction;
                v = from + plane.normal * plane.violation(&from).max(0.0);
                *correction = from - v;
            }
            let from = v + corrections[planes.len()];
            v = if from.norm() > radius { from * (radius / from.norm()) } else { from };
            corrections[planes.len()] = from - v;
        }
        v
    }

    #[test]
    fn the_optimum_is_the_one_that_projections_find() {
        let mut random = Random::new(1);
        let mut active = 0;
        for _ in 0..150 {
            let planes = planes(&mut random, 8, 0.0);
            let wanted = direction(&mut random) * random.uniform(0.0, 12.0);
            let (v, kept) = solve(&planes, 0, 8.0, wanted);
            assert_eq!(kept, Kept::All, "zero is allowed");
            let expected = by_projections(&planes, 8.0, wanted);
            assert!((v - expected).norm() < 1e-4, "{v:?} {expected:?}");
            active += usize::from((v - wanted).norm() > 1e-6);
        }
        assert!(active > 50);
    }

    #[test]
    fn what_cannot_be_kept_is_violated_least_and_hard_planes_are_kept() {
        let mut random = Random::new(2);
        let mut relaxed = 0;
        for _ in 0..400 {
            let mut all = planes(&mut random, 3, 0.0);
            all.extend(planes(&mut random, 9, 4.0));
            let (v, kept) = solve(&all, 3, 8.0, direction(&mut random) * 5.0);
            let worst_of = |v: &Vector, planes: &[Plane]| {
                planes.iter().map(|plane| plane.violation(v)).fold(f64::MIN, f64::max)
            };
            assert!(v.norm() < 8.0 + 1e-6 && worst_of(&v, &all[..3]) < 1e-6, "{kept:?}");
            let worst = worst_of(&v, &all[3..]);
            match kept {
                Kept::All => assert!(worst < 1e-6),
                Kept::Hard => relaxed += 1,
                Kept::Least => panic!("zero keeps the hard planes"),
            }
            // No allowed point nearby is better than the least violation.
            for _ in 0..200 {
                let other = v + direction(&mut random) * random.uniform(0.0, 0.5);
                if kept == Kept::Hard && other.norm() <= 8.0 && worst_of(&other, &all[..3]) <= 0.0 {
                    assert!(worst_of(&other, &all[3..]) > worst - 1e-6);
                }
            }
        }
        assert!(relaxed > 50, "{relaxed}");
    }

    #[test]
    fn without_planes_the_wanted_velocity_is_only_shortened() {
        let (v, _) = solve(&[], 0, 8.0, Vector::new(16.0, 0.0, 0.0));
        assert_eq!(v, Vector::new(8.0, 0.0, 0.0));
        // Two walls that leave nothing: in the middle between them.
        let wall = |x: f64, side: f64| Plane {
            point: Vector::new(x, 0.0, 0.0),
            normal: Vector::new(side, 0.0, 0.0),
        };
        let (v, kept) = solve(&[wall(2.0, 1.0), wall(-1.0, -1.0)], 2, 8.0, Vector::zeros());
        assert_eq!(kept, Kept::Least);
        assert!((v.x - 0.5).abs() < 1e-9, "{v:?}");
    }
}
