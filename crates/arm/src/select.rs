//! One of up to eight solutions: within limits, near to where the arm is, and not another one every millisecond.

use noctule_timebase::{Instant, Span};

use crate::clock::Controlling;
use crate::dh::Geometry;
use crate::inverse::{Branch, Inverse};
use crate::jacobian::{jacobian, singular_values};
use crate::{Joints, wrapped};

/// Limits that a solution must keep, and weights by which solutions are compared.
#[derive(Clone, Debug, PartialEq)]
pub struct SelectorConfig {
    /// Smallest angles.
    pub lower_rad: Joints,
    /// Largest angles.
    pub upper_rad: Joints,
    /// Cost per rad² of motion of each joint.
    pub weights: Joints,
    /// Below this smallest singular value a pose costs extra, and another branch is looked for.
    pub singular_sigma: f64,
    /// Extra cost of a singular pose, reached at a singular value of zero.
    pub singular_cost: f64,
    /// Time for which another branch must be better before it is taken.
    pub switch_after: Span,
}

impl Default for SelectorConfig {
    /// ±360°, the elbow ±180°: the manufacturer's limits as the ROS description narrows them for planning.
    fn default() -> SelectorConfig {
        use std::f64::consts::{PI, TAU};
        let upper_rad = Joints::from([TAU, TAU, PI, TAU, TAU, TAU]);
        SelectorConfig {
            lower_rad: -upper_rad,
            upper_rad,
            weights: Joints::from([3.0, 2.0, 2.0, 1.0, 1.0, 0.5]),
            singular_sigma: 0.04,
            singular_cost: 20.0,
            switch_after: Span::from_ms(200),
        }
    }
}

/// A chosen solution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Selection {
    /// Angles within the limits, rad: turned by whole turns towards the reference.
    pub joints_rad: Joints,
    /// Branch, one of eight.
    pub branch: Branch,
    /// It is another branch than the one before.
    pub is_flip: bool,
    /// Smallest singular value there.
    pub sigma_min: f64,
}

/// No solution can be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoSelection {
    /// There is no real one.
    #[error("the pose has no solution")]
    NoSolution,
    /// All are beyond a joint's limit.
    #[error("each of the {solutions} solutions is beyond a joint's limit")]
    BeyondLimits {
        /// Number of solutions.
        solutions: usize,
    },
}

/// A candidate with its cost.
#[derive(Clone, Copy)]
struct Candidate {
    selection: Selection,
    cost: f64,
}

/// Chooses solutions; remembers the branch.
#[derive(Clone, Debug)]
pub struct Selector {
    config: SelectorConfig,
    geometry: Geometry,
    branch: Option<Branch>,
    better_since: Option<Instant<Controlling>>,
    flips: u64,
}

impl Selector {
    /// A selector without a branch: the first selection takes the cheapest.
    pub fn new(config: SelectorConfig, geometry: Geometry) -> Selector {
        Selector { config, geometry, branch: None, better_since: None, flips: 0 }
    }

    /// Forgets the branch.
    pub fn reset(&mut self) {
        self.branch = None;
        self.better_since = None;
    }

    /// How often the branch has changed.
    pub fn flips(&self) -> u64 {
        self.flips
    }

    /// Chooses. `reference_rad` is where the joints are.
    pub fn select(
        &mut self,
        inverse: &Inverse,
        reference_rad: &Joints,
        now: Instant<Controlling>,
    ) -> Result<Selection, NoSelection> {
        let present = self.branch.and_then(|branch| self.candidate(inverse, branch, reference_rad));
        if let Some(candidate) = present
            && candidate.selection.sigma_min >= self.config.singular_sigma
        {
            self.better_since = None;
            return Ok(candidate.selection);
        }
        let all = Branch::ALL.into_iter().filter_map(|branch| self.candidate(inverse, branch, reference_rad));
        let Some(best) = all.min_by(|a, b| a.cost.total_cmp(&b.cost)) else {
            let solutions = inverse.solutions().count();
            return Err(match solutions {
                0 => NoSelection::NoSolution,
                _ => NoSelection::BeyondLimits { solutions },
            });
        };
        let Some(present) = present else { return Ok(self.take(best)) };
        if best.selection.branch == present.selection.branch {
            self.better_since = None;
            return Ok(present.selection);
        }
        let since = *self.better_since.get_or_insert(now);
        match now - since >= self.config.switch_after {
            true => Ok(self.take(best)),
            false => Ok(present.selection),
        }
    }

    fn take(&mut self, mut candidate: Candidate) -> Selection {
        let selection = &mut candidate.selection;
        selection.is_flip = self.branch.is_some_and(|branch| branch != selection.branch);
        self.flips += u64::from(selection.is_flip);
        self.branch = Some(selection.branch);
        self.better_since = None;
        *selection
    }

    fn candidate(&self, inverse: &Inverse, branch: Branch, reference_rad: &Joints) -> Option<Candidate> {
        let solution = inverse.solution(branch)?;
        let mut joints_rad = Joints::zeros();
        for joint in 0..6 {
            joints_rad[joint] = self.turned(joint, solution.joints_rad[joint], reference_rad[joint])?;
        }
        let sigma_min = singular_values(&jacobian(&self.geometry, &joints_rad))[5];
        let motion = joints_rad - reference_rad;
        let shortfall = (1.0 - sigma_min / self.config.singular_sigma).max(0.0);
        let cost =
            motion.component_mul(&motion).dot(&self.config.weights) + self.config.singular_cost * shortfall;
        Some(Candidate { selection: Selection { joints_rad, branch, is_flip: false, sigma_min }, cost })
    }

    /// The angle plus whole turns that is within the limits and nearest to the reference.
    fn turned(&self, joint: usize, angle_rad: f64, reference_rad: f64) -> Option<f64> {
        let (lower, upper) = (self.config.lower_rad[joint], self.config.upper_rad[joint]);
        let nearest = reference_rad + wrapped(angle_rad - reference_rad);
        let turns = [0.0, -std::f64::consts::TAU, std::f64::consts::TAU];
        turns.into_iter().map(|turn| nearest + turn).find(|angle| (lower..=upper).contains(angle))
    }
}
