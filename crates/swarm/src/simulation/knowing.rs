//! Sums over a run: what each drone knew, and how far that was from the truth.

use std::collections::HashSet;

use noctule_netsim::Truth;
use noctule_netsim::air::HEADERS_BYTES;
use noctule_timebase::{Instant, Span};

use crate::Vector;
use crate::linear::Kept;
use crate::measures::Ages;
use crate::neighbours::{Estimate, Knowledge};
use crate::scenario::Transport;

/// Mean, root mean square and greatest of numbers.
#[derive(Debug, Default)]
pub(super) struct Moments {
    count: u64,
    sum: f64,
    squares: f64,
    most: f64,
}

impl Moments {
    pub(super) fn push(&mut self, value: f64) {
        self.count += 1;
        self.sum += value;
        self.squares += value * value;
        self.most = self.most.max(value);
    }

    pub(super) fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }

    pub(super) fn rms(&self) -> Option<f64> {
        (self.count > 0).then(|| (self.squares / self.count as f64).sqrt())
    }

    pub(super) fn max(&self) -> Option<f64> {
        (self.count > 0).then_some(self.most)
    }
}

#[derive(Debug)]
pub(super) struct Sums {
    pub(super) killed: bool,
    pub(super) with_killed: HashSet<(u32, u32)>,
    /// Drones that touched an obstacle.
    pub(super) at_obstacles: HashSet<u32>,
    /// Least distance of any body to any obstacle, m.
    pub(super) least_to_obstacle_m: f64,
    pub(super) formation: Moments,
    pub(super) order: Moments,
    pub(super) uncertainty: Moments,
    pub(super) known: Moments,
    pub(super) checked: u64,
    pub(super) violations: u64,
    pub(super) unsafe_decisions: u64,
    pub(super) decisions: u64,
    nodes: usize,
}

impl Sums {
    pub(super) fn new(nodes: usize) -> Sums {
        Sums {
            killed: false,
            with_killed: HashSet::new(),
            at_obstacles: HashSet::new(),
            least_to_obstacle_m: f64::MAX,
            formation: Moments::default(),
            order: Moments::default(),
            uncertainty: Moments::default(),
            known: Moments::default(),
            checked: 0,
            violations: 0,
            unsafe_decisions: 0,
            decisions: 0,
            nodes,
        }
    }

    /// Compares a drone's estimates with the truth.
    pub(super) fn look_at(
        &mut self,
        seen: &[Estimate],
        truth_m: &[Vector],
        (_own, ages): (usize, &mut Ages),
        knowledge: Knowledge,
    ) {
        for estimate in seen {
            ages.record(estimate.age);
            if knowledge == Knowledge::Bound {
                self.uncertainty.push(estimate.uncertainty_m);
                let error_m2 = (truth_m[estimate.node as usize] - estimate.position_m).norm_squared();
                self.violations += u64::from(error_m2 > estimate.uncertainty_m * estimate.uncertainty_m);
                self.checked += 1;
            }
        }
        self.known.push(seen.len() as f64 / (self.nodes as f64 - 1.0).max(1.0));
    }

    pub(super) fn decided(&mut self, kept: Kept) {
        self.decisions += 1;
        self.unsafe_decisions += u64::from(kept == Kept::Least);
    }
}

/// Measures the time until every drone has received every other's state.
#[derive(Debug)]
pub(super) struct Discovery {
    nodes: usize,
    heard: Vec<bool>,
    missing: usize,
    last: Instant<Truth>,
}

impl Discovery {
    pub(super) fn new(nodes: usize) -> Discovery {
        let missing = nodes * nodes.saturating_sub(1);
        Discovery { nodes, heard: vec![false; nodes * nodes], missing, last: Instant::from_ns(0) }
    }

    pub(super) fn heard(&mut self, from: usize, to: usize, at: Instant<Truth>) {
        if self.missing > 0 && !std::mem::replace(&mut self.heard[from * self.nodes + to], true) {
            self.missing -= 1;
            self.last = at;
        }
    }

    pub(super) fn complete_s(&self) -> Option<f64> {
        (self.missing == 0 && self.last.ns() > 0).then(|| Span::from_ns(self.last.ns()).as_s_f64())
    }
}

/// Name of a transport in figures: all are models on the simulated air.
pub(super) fn transport_name(transport: Transport) -> String {
    match transport {
        Transport::Multicast => "multicast (modelled)".into(),
        Transport::Repeated { copies } => format!("multicast, {copies} copies in a deadline (modelled)"),
        Transport::UnicastMesh => "unicast mesh (modelled)".into(),
    }
}

/// Length of a frame on the air.
pub(super) fn frame_bytes(payload_bytes: usize) -> f64 {
    payload_bytes as f64 + f64::from(HEADERS_BYTES)
}
