//! Panels of a replayed trace: error and widths over time, the cloud of round trips, and how
//! unsteady estimate and stamps are.
//!
//! With the truth everything is drawn against it. Without, estimates are drawn against the straight
//! line that fits them best, and midpoints against the estimate.

use noctule_time_sync::{Estimate, State};

use super::accuracy;
use super::allan;
use super::replay::Replayed;
use noctule_lab::trace::TraceRow;
use noctule_lab_report::panel::{
    MarkKind, NamedLine, Panel, PanelAxis, PanelMark, Spacing, Unit, columns, extremes, occupied,
};

/// Below this, scales of offsets are linear.
const LINEAR_NS: f64 = 1_000.0;
/// The edges of the wedge are drawn through this many points.
const WEDGE_POINTS: usize = 41;

const BOUND: (&str, usize) = ("proven bound", 5);
const SIGMA: (&str, usize) = ("± sigma", 0);
const ESTIMATE: (&str, usize) = ("estimate", 0);
const USED: (&str, usize) = ("used", 0);
const NOT_USED: (&str, usize) = ("not used", 1);
const SETTLED: (&str, usize) = ("estimate while locked", 0);
const MIDPOINTS: (&str, usize) = ("raw midpoints", 4);

const OFFSETS: Spacing = Spacing::Asinh(LINEAR_NS);
const TIME: PanelAxis =
    PanelAxis { label: "since the first exchange", spacing: Spacing::Linear, unit: Unit::Seconds };
const ROUND_TRIP: PanelAxis = PanelAxis {
    label: "round trip, remote turnaround taken out",
    spacing: Spacing::Log,
    unit: Unit::Nanoseconds,
};

/// The panels that have material, in the order of the page.
pub fn panels(rows: &[TraceRow], replayed: &Replayed) -> Vec<Panel> {
    let trace = Trace::of(rows, replayed);
    let mut panels = vec![trace.error(), trace.round_trips(), trace.wedge(), trace.steadiness()];
    panels.retain(|panel| panel.points() > 0);
    panels
}

/// A replayed trace in seconds and nanoseconds from its own origin.
struct Trace<'a> {
    replayed: &'a Replayed,
    /// `t4` of every row.
    at_s: Vec<f64>,
    /// Round trip of every row.
    round_trip_ns: Vec<f64>,
    /// Offset that every row's estimate is compared with; `None` without the truth and without an estimate.
    reference_ns: Vec<Option<i64>>,
    /// Midpoint minus truth, or minus the estimate, of every row that has either.
    midpoint_ns: Vec<Option<f64>>,
    truth_known: bool,
    /// Rows that came first after a step of the truth.
    steps: Vec<usize>,
}

impl<'a> Trace<'a> {
    fn of(rows: &[TraceRow], replayed: &'a Replayed) -> Trace<'a> {
        let start_ns = rows.first().map_or(0, |row| row.exchange.t4.ns());
        let at_s: Vec<f64> =
            rows.iter().map(|row| row.exchange.t4.ns().saturating_sub(start_ns) as f64 / 1e9).collect();
        let truth_known = rows.iter().all(|row| row.offset_true_ns.is_some());
        let reference_ns = match truth_known {
            true => rows.iter().map(|row| row.offset_true_ns).collect(),
            false => straight_line(&at_s, &replayed.estimates),
        };
        let midpoint_ns = rows.iter().zip(&replayed.estimates).map(|(row, estimate)| {
            let against = row.offset_true_ns.filter(|_| truth_known).or(estimate.map(|e| e.offset.ns()));
            against.map(|ns| row.exchange.midpoint().ns().saturating_sub(ns) as f64)
        });
        Trace {
            replayed,
            round_trip_ns: rows.iter().map(|row| row.exchange.round_trip().ns() as f64).collect(),
            reference_ns,
            midpoint_ns: midpoint_ns.collect(),
            truth_known,
            steps: accuracy::rows_after_steps(rows, &replayed.estimates),
            at_s,
        }
    }

    /// Estimate minus reference.
    fn error_ns(&self, row: usize) -> Option<f64> {
        let estimate = self.replayed.estimates[row]?;
        Some(estimate.offset.ns().saturating_sub(self.reference_ns[row]?) as f64)
    }

    fn error(&self) -> Panel {
        let mut marks = self.bands(BOUND, |e| e.bound.map(|bound| bound.ns()));
        marks.extend(self.bands(SIGMA, |e| e.sigma.map(|sigma| sigma.ns())));
        let points = (0..self.at_s.len()).filter_map(|row| Some((self.at_s[row], self.error_ns(row)?)));
        let points: Vec<(f64, f64)> = points.collect();
        marks.push(mark(ESTIMATE, MarkKind::Line, &extremes(&points)));
        for (state, label) in [
            (State::Acquiring, ("acquiring", 2)),
            (State::Stepped, ("stepped", 1)),
            (State::Stale, ("stale", 6)),
        ] {
            let in_state = |row: &usize| self.replayed.estimates[*row].is_some_and(|e| e.state == state);
            let rows = (0..self.at_s.len()).filter(in_state);
            let points: Vec<_> = rows.filter_map(|row| Some((self.at_s[row], self.error_ns(row)?))).collect();
            marks.push(mark(label, MarkKind::Dots, &extremes(&points)));
        }
        let steps = self.steps.iter().filter_map(|&row| Some((self.at_s[row], self.error_ns(row)?)));
        marks.push(mark(("first exchange after a true step", 3), MarkKind::Ring, &steps.collect::<Vec<_>>()));
        marks.retain(|mark| !mark.xs.is_empty());
        let (title, label, lines) = match self.truth_known {
            true => ("Error of the estimate", "estimate − truth", vec![("truth", 0.0)]),
            false => ("Estimate", "estimate − straight line", vec![("straight line", 0.0)]),
        };
        let caption = match self.truth_known {
            true => {
                "The bound is proven: where its band does not hold the truth, a premise is broken. A gap is a bound withdrawn."
            }
            false => {
                "The truth is not in the trace, so the straight line that fits the estimates best is taken off. A gap in the bound is a bound withdrawn."
            }
        };
        let y = PanelAxis { label, spacing: OFFSETS, unit: Unit::Nanoseconds };
        panel(("error", title), caption, (TIME, y), (marks, lines))
    }

    /// A band around the estimate; each column of the picture shows its widest, and a column in
    /// which the width was not known even once is a gap.
    fn bands(&self, label: (&'static str, usize), width_ns: fn(&Estimate) -> Option<i64>) -> Vec<PanelMark> {
        let mut bands: Vec<PanelMark> = Vec::new();
        let mut open = false;
        for run in columns(&self.at_s) {
            let at_s = self.at_s[run.start];
            let sides = run.map(|row| {
                let (error_ns, estimate) = (self.error_ns(row)?, self.replayed.estimates[row].as_ref()?);
                let width_ns = width_ns(estimate)? as f64;
                Some((error_ns - width_ns, error_ns + width_ns))
            });
            let column = sides.reduce(|a, b| {
                let ((a_low, a_high), (b_low, b_high)) = (a?, b?);
                Some((a_low.min(b_low), a_high.max(b_high)))
            });
            let Some(Some((low, high))) = column else {
                open = false;
                continue;
            };
            if !open {
                bands.push(mark(label, MarkKind::Band, &[]));
                open = true;
            }
            if let Some(band) = bands.last_mut() {
                band.xs.push(at_s);
                band.ys.push(high);
                band.low.push(low);
            }
        }
        bands
    }

    fn round_trips(&self) -> Panel {
        let point = |row: usize| Some((self.at_s[row], self.round_trip_ns[row]));
        let marks = self.clouds((Spacing::Linear, Spacing::Log), point);
        let y = PanelAxis { label: "round trip", ..ROUND_TRIP };
        let caption = "The floor is the empty path; what stands above it has queued.";
        panel(("round_trips", "Round trips"), caption, (TIME, y), (marks, Vec::new()))
    }

    fn wedge(&self) -> Panel {
        let point = |row: usize| Some((self.round_trip_ns[row], self.midpoint_ns[row]?));
        let mut marks = self.clouds((Spacing::Log, OFFSETS), point);
        let trips = marks.iter().flat_map(|mark| &mark.xs);
        let (low, high) = trips.fold((f64::MAX, f64::MIN), |(low, high), x| (low.min(*x), high.max(*x)));
        if low <= high {
            for side in [0.5, -0.5] {
                let edge = (0..WEDGE_POINTS).map(|i| {
                    let trip_ns = low * (high / low).powf(i as f64 / (WEDGE_POINTS - 1) as f64);
                    (trip_ns, side * trip_ns)
                });
                marks.push(mark(("all that causality allows", 6), MarkKind::Line, &edge.collect::<Vec<_>>()));
            }
        }
        let (label, line) = match self.truth_known {
            true => ("midpoint − truth", "truth"),
            false => ("midpoint − estimate", "estimate"),
        };
        let y = PanelAxis { label, spacing: OFFSETS, unit: Unit::Nanoseconds };
        let caption = "The quicker an exchange, the less its midpoint can be wrong. A cloud along one edge is a queue on one side.";
        panel(("wedge", "Midpoint by round trip"), caption, (ROUND_TRIP, y), (marks, vec![(line, 0.0)]))
    }

    /// One mark of those used and one of those not used; a logarithmic axis has no place for a round
    /// trip of zero or less, which causality forbids anyway.
    fn clouds(
        &self,
        (x, y): (Spacing, Spacing),
        point: impl Fn(usize) -> Option<(f64, f64)>,
    ) -> Vec<PanelMark> {
        let mut marks = Vec::new();
        for (used, label) in [(true, USED), (false, NOT_USED)] {
            let rows = (0..self.at_s.len())
                .filter(|&row| self.replayed.verdicts[row].is_ok() == used && self.round_trip_ns[row] > 0.0);
            let points: Vec<(f64, f64)> = rows.filter_map(&point).collect();
            marks.push(mark(label, MarkKind::Dots, &occupied(&points, x, y)));
        }
        marks.retain(|mark| !mark.xs.is_empty());
        marks
    }

    fn settled(&self, row: usize) -> bool {
        self.replayed.estimates[row].is_some_and(|e| matches!(e.state, State::Locked | State::Stale))
    }

    /// The estimate counts while it is settled: the three exchanges of a step would drown the rest.
    fn steadiness(&self) -> Panel {
        let curve = |offset_ns: &dyn Fn(usize) -> Option<f64>| -> Vec<(f64, f64)> {
            let points = (0..self.at_s.len()).filter_map(|row| Some((self.at_s[row], offset_ns(row)?)));
            let (at_s, offsets_ns): (Vec<f64>, Vec<f64>) = points.unzip();
            let curve = allan::curve(&at_s, &offsets_ns);
            curve.iter().filter(|p| p.deviation > 0.0).map(|p| (p.tau_s, p.deviation)).collect()
        };
        // Against the same reference, so that without the truth both still show the clocks' wander.
        let midpoint_ns = |row: usize| match self.truth_known {
            true => self.midpoint_ns[row],
            false => Some(self.midpoint_ns[row]? + self.error_ns(row)?),
        };
        let used = |row: usize| midpoint_ns(row).filter(|_| self.round_trip_ns[row] > 0.0);
        let mut marks = vec![
            mark(MIDPOINTS, MarkKind::Steps, &curve(&used)),
            mark(SETTLED, MarkKind::Steps, &curve(&|row| self.error_ns(row).filter(|_| self.settled(row)))),
        ];
        marks.retain(|mark| !mark.xs.is_empty());
        let caption = match self.truth_known {
            true => {
                "Overlapping, of what is left when the truth is taken off. White noise of the stamps falls by a decade per decade."
            }
            false => {
                "Overlapping, wander of the clocks included. White noise of the stamps falls by a decade per decade; where it turns up, the crystals wander."
            }
        };
        let x = PanelAxis { label: "averaging time", spacing: Spacing::Log, unit: Unit::Seconds };
        let y = PanelAxis { label: "Allan deviation", spacing: Spacing::Log, unit: Unit::Ratio };
        panel(("allan", "Allan deviation"), caption, (x, y), (marks, Vec::new()))
    }
}

fn panel(
    (id, title): (&'static str, &str),
    caption: &str,
    (x, y): (PanelAxis, PanelAxis),
    (marks, lines): (Vec<PanelMark>, Vec<NamedLine>),
) -> Panel {
    Panel { id, title: title.to_owned(), caption: caption.to_owned(), x, y, marks, lines }
}

fn mark((label, colour): (&'static str, usize), kind: MarkKind, points: &[(f64, f64)]) -> PanelMark {
    PanelMark::of(label, colour, kind, points)
}

/// The line through all estimates with the least squared distance, at every row that has one.
fn straight_line(at_s: &[f64], estimates: &[Option<Estimate>]) -> Vec<Option<i64>> {
    let known = || at_s.iter().zip(estimates).filter_map(|(at_s, e)| Some((*at_s, e.as_ref()?.offset.ns())));
    // Counted from the first, so that 64-bit offsets keep their last digit.
    let origin_ns = known().next().map_or(0, |(_, ns)| ns);
    let points: Vec<(f64, f64)> = known().map(|(at, ns)| (at, ns.saturating_sub(origin_ns) as f64)).collect();
    let count = points.len().max(1) as f64;
    let (sum_s, sum_ns) = points.iter().fold((0.0, 0.0), |(s, ns), point| (s + point.0, ns + point.1));
    let (mean_s, mean_ns) = (sum_s / count, sum_ns / count);
    let (across, along) = points.iter().fold((0.0, 0.0), |(across, along), (at_s, ns)| {
        (across + (at_s - mean_s) * (ns - mean_ns), along + (at_s - mean_s).powi(2))
    });
    let slope = if along > 0.0 { across / along } else { 0.0 };
    let line = |at_s: f64| origin_ns.saturating_add((mean_ns + slope * (at_s - mean_s)).round() as i64);
    at_s.iter().zip(estimates).map(|(at_s, estimate)| estimate.map(|_| line(*at_s))).collect()
}

#[cfg(test)]
mod tests;
