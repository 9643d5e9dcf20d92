//! The material of the charts as frames: axes with their ticks, marks in the axes' coordinates.
//!
//! A still picture cannot be clicked, so experiments that can be compared (same mode, payload and
//! rate) share a picture and others have their own, up to [`GROUPS_MAX`] of the largest groups.

use std::collections::{BTreeMap, BTreeSet};

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};

use crate::panel::{MarkKind, Panel, PanelAxis, Spacing, Unit};
use crate::series::{BINS_PER_DECADE, COLOURS, CellSeries, Charts, Sweep};
use noctule_lab::labels;
use noctule_lab::notation::{self, duration, three_digits};

/// Groups of experiments that get pictures.
pub(super) const GROUPS_MAX: usize = 12;

/// One picture.
pub(super) struct Frame {
    /// File name without ending.
    pub(super) name: String,
    pub(super) title: String,
    /// Latencies behind all marks.
    pub(super) samples: u64,
    pub(super) x: Axis,
    pub(super) y: Axis,
    pub(super) marks: Vec<Mark>,
    pub(super) floors: Vec<Floor>,
}

/// A horizontal line.
#[derive(Clone)]
pub(super) struct Floor {
    pub(super) label: String,
    pub(super) at: f64,
}

/// A direction of a frame.
#[derive(Clone)]
pub(super) struct Axis {
    pub(super) label: &'static str,
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) ticks: Vec<f64>,
    spacing: Spacing,
    text: fn(f64) -> String,
}

/// One curve or set of points of an experiment.
pub(super) struct Mark {
    /// Label in the legend; empty if another mark of the experiment has it.
    pub(super) label: String,
    pub(super) colour: usize,
    pub(super) dash: usize,
    pub(super) kind: Kind,
    pub(super) points: Vec<(f64, f64)>,
    /// Latencies it shows, counted at the mark with the label.
    samples: u64,
}

/// Kind of a mark.
pub(super) enum Kind {
    Line,
    /// A line with its points marked.
    Steps,
    Dots,
    Ring,
    /// The area between the points and these lower ends.
    Band(Vec<f64>),
    /// Outlines of bars of this half width.
    Bars(f64),
}

impl Axis {
    /// Label of a tick.
    pub(super) fn text(&self, at: f64) -> String {
        (self.text)(self.spacing.value(at))
    }
}

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (begin, end): (i32, i32)) -> i32 {
        let share = (value - self.low) / (self.high - self.low);
        begin + (f64::from(end - begin) * share).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.ticks.clone()
    }

    fn range(&self) -> std::ops::Range<f64> {
        self.low..self.high
    }
}

impl ValueFormatter<f64> for Axis {
    fn format_ext(&self, value: &f64) -> String {
        self.text(*value)
    }
}

/// Every frame that has material.
pub(super) fn all(charts: &Charts) -> Vec<Frame> {
    let mut groups: BTreeMap<&str, Vec<&CellSeries>> = BTreeMap::new();
    for cell in charts.cells.iter().filter(|cell| cell.max.is_some()) {
        groups.entry(&cell.group).or_default().push(cell);
    }
    let mut groups: Vec<(&str, Vec<&CellSeries>)> = groups.into_iter().collect();
    groups.sort_by_key(|(_, cells)| std::cmp::Reverse(cells.len()));
    groups.truncate(GROUPS_MAX);
    let alone = groups.len() == 1;
    let mut frames = Vec::new();
    for (group, cells) in &groups {
        let slug = group.replace(", ", "_").replace(' ', "_");
        let name = |chart: &str| match alone {
            true => chart.to_owned(),
            false => format!("{chart}_{slug}"),
        };
        let labels = labels(cells);
        frames.push(curve(name("curve"), group, (cells, &labels)));
        frames.push(histogram(name("histogram"), group, (cells, &labels)));
        frames.push(dots(name("dots"), group, (cells, &labels)));
        if cells.iter().any(|cell| !cell.cumulative.is_empty()) {
            frames.push(cumulative(name("cumulative"), group, (cells, &labels)));
        }
    }
    for (parameter, name) in [("payload_bytes", "by payload"), ("rate_hz", "by rate")] {
        let sweeps: Vec<&Sweep> = charts.sweeps.iter().filter(|sweep| sweep.parameter == parameter).collect();
        if !sweeps.is_empty() {
            frames.push(sweep(name, &sweeps));
        }
    }
    frames
}

/// The frame of a panel that needs no grouping.
pub(super) fn of_panel(panel: &Panel) -> Frame {
    let mut labelled = BTreeSet::new();
    let marks = panel.marks.iter().map(|mark| Mark {
        label: if labelled.insert(mark.label) { mark.label.to_owned() } else { String::new() },
        colour: mark.colour,
        dash: 0,
        kind: match mark.kind {
            MarkKind::Line => Kind::Line,
            MarkKind::Steps => Kind::Steps,
            MarkKind::Dots => Kind::Dots,
            MarkKind::Ring => Kind::Ring,
            MarkKind::Band => Kind::Band(mark.low.clone()),
        },
        points: mark.xs.iter().copied().zip(mark.ys.iter().copied()).collect(),
        samples: 0,
    });
    let marks: Vec<Mark> = marks.collect();
    let colours: Vec<usize> = marks.iter().map(|mark| mark.colour).collect();
    let lines = panel.lines.iter().map(|(name, at)| Floor { label: (*name).to_owned(), at: *at });
    let names = (panel.id.to_owned(), panel.title.clone());
    let mut frame = frame(names, scale(&panel.x), scale(&panel.y), (marks, lines.collect()));
    // A panel has chosen its colours; two things of one colour are a line and its band.
    for (mark, colour) in frame.marks.iter_mut().zip(colours) {
        (mark.colour, mark.dash) = (colour, 0);
    }
    frame
}

fn scale(axis: &PanelAxis) -> Scale {
    let text: fn(f64) -> String = match axis.unit {
        Unit::Seconds => |seconds| duration(seconds * 1e9),
        Unit::Nanoseconds => duration,
        Unit::Millimetres => |millimetres| format!("{} mm", three_digits(millimetres)),
        Unit::Ratio => notation::ratio_of_frequencies,
        Unit::Metres => |metres| format!("{} m", three_digits(metres)),
    };
    Scale { label: axis.label, spacing: axis.spacing, zero: false, text }
}

/// Peer and the properties in which the experiments of one picture differ.
fn labels(cells: &[&CellSeries]) -> Vec<String> {
    let differs = |property: usize| {
        let of = |cell: &&CellSeries| cell.properties[property].clone();
        cells.iter().any(|cell| of(cell) != of(&cells[0]))
    };
    let differing: Vec<usize> = (0..labels::PROPERTIES).filter(|&p| differs(p)).collect();
    cells
        .iter()
        .map(|cell| {
            let own = differing.iter().filter_map(|&p| cell.properties[p].as_deref());
            let words: Vec<&str> = std::iter::once(cell.peer.as_str()).chain(own).collect();
            words.join(" ")
        })
        .collect()
}

type Cells<'a> = (&'a [&'a CellSeries], &'a [String]);

/// Scales of a frame before its range is known.
struct Scale {
    label: &'static str,
    spacing: Spacing,
    zero: bool,
    text: fn(f64) -> String,
}

const LATENCY: Scale = Scale { label: "latency", spacing: Spacing::Log, zero: false, text: duration };

fn curve(name: String, group: &str, (cells, labels): Cells) -> Frame {
    let nines = Scale {
        label: "percentile (each step to the right is one more nine)",
        spacing: Spacing::Linear,
        zero: true,
        text: percentile_name,
    };
    let mut marks = Vec::new();
    for (cell, label) in cells.iter().zip(labels) {
        let points = cell.curve.iter().map(|&(nines, ns)| (nines, ns as f64));
        marks.push(mark(cell, label, Kind::Line, points.collect()));
        let max = cell.max.map(|(nines, ns)| (nines, ns as f64));
        marks.push(mark(cell, "", Kind::Ring, max.into_iter().collect()));
    }
    let title = format!("Percentiles: {group}");
    let mut frame = frame((name, title), nines, LATENCY, (marks, floors(cells)));
    let highest = frame.x.high.floor() as i32;
    let median = std::f64::consts::LOG10_2;
    frame.x.ticks = [0.0, median].into_iter().chain((1..=highest).map(f64::from)).collect();
    frame
}

fn histogram(name: String, group: &str, (cells, labels): Cells) -> Frame {
    let bins = Scale { label: "latency (bins of 5.9 %)", ..LATENCY };
    let share = Scale {
        label: "share of samples",
        spacing: Spacing::Linear,
        zero: true,
        text: |share| format!("{} %", three_digits(share * 100.0)),
    };
    let centre = |bin: i32| 10f64.powf((f64::from(bin) + 0.5) / BINS_PER_DECADE);
    let marks = cells.iter().zip(labels).map(|(cell, label)| {
        let counts = (cell.histogram.first_bin..).zip(&cell.histogram.counts);
        let occupied = counts.filter(|(_, count)| **count > 0);
        let points =
            occupied.map(|(bin, &count)| (centre(bin), count as f64 / cell.samples as f64)).collect();
        mark(cell, label, Kind::Bars(0.5 / BINS_PER_DECADE), points)
    });
    let title = format!("Distribution: {group}");
    frame((name, title), bins, share, (marks.collect(), Vec::new()))
}

fn dots(name: String, group: &str, (cells, labels): Cells) -> Frame {
    let time = Scale {
        label: "scheduled send, from the start of its trial",
        spacing: Spacing::Linear,
        zero: true,
        text: |seconds| duration(seconds * 1e9),
    };
    let mut marks = Vec::new();
    for (cell, label) in cells.iter().zip(labels) {
        for (number, trial) in cell.trials.iter().enumerate() {
            let points = trial.time_us.iter().zip(&trial.latency_ns);
            let points = points.map(|(&us, &ns)| (us as f64 / 1e6, ns as f64)).collect();
            let label = if number == 0 { label } else { "" };
            marks.push(mark(cell, label, Kind::Dots, points));
        }
    }
    let title = format!("Latency over time: {group}");
    frame((name, title), time, LATENCY, (marks, floors(cells)))
}

fn cumulative(name: String, group: &str, (cells, labels): Cells) -> Frame {
    let node = Scale { label: "node", spacing: Spacing::Linear, zero: true, text: three_digits };
    let latency = Scale {
        label: "latency from the scheduled send",
        spacing: Spacing::Linear,
        zero: true,
        text: duration,
    };
    let mut marks = Vec::new();
    for (cell, label) in cells.iter().zip(labels) {
        let mut line = vec![(0.0, 0.0)];
        let (mut band, mut lower) = (vec![(0.0, 0.0)], vec![0.0]);
        for hop in &cell.cumulative {
            let (node, p50) = (f64::from(hop.node), hop.p50_ns as f64);
            line.push((node, p50));
            if let Some(p99_ns) = hop.p99_ns {
                band.push((node, p99_ns as f64));
                lower.push(p50);
            }
        }
        marks.push(mark(cell, label, Kind::Steps, line));
        marks.push(mark(cell, "", Kind::Band(lower), band));
    }
    let title = format!("Along the chain, p50 to p99: {group}");
    let mut frame = frame((name, title), node, latency, (marks, Vec::new()));
    frame.x.ticks = (0..=frame.x.high as i32).map(f64::from).collect();
    frame
}

fn sweep(name: &str, sweeps: &[&Sweep]) -> Frame {
    let by_payload = sweeps[0].parameter == "payload_bytes";
    let parameter = Scale {
        label: if by_payload { "payload" } else { "rate" },
        spacing: Spacing::Log,
        zero: false,
        text: if by_payload {
            |bytes| notation::size(bytes.round() as u64)
        } else {
            |hz| notation::rate((hz * 1e3).round() as u64)
        },
    };
    let latency = Scale { label: "latency, p50", ..LATENCY };
    let marks = sweeps.iter().map(|sweep| Mark {
        label: sweep.label.clone(),
        samples: sweep.samples,
        colour: sweep.colour,
        dash: 0,
        kind: Kind::Steps,
        points: sweep.points.iter().map(|p| (p.x, p.p50_ns as f64)).collect(),
    });
    let names = (name.replace(' ', "_"), format!("Latency {name}"));
    frame(names, parameter, latency, (marks.collect(), Vec::new()))
}

fn mark(cell: &CellSeries, label: &str, kind: Kind, points: Vec<(f64, f64)>) -> Mark {
    Mark {
        label: label.to_owned(),
        samples: if label.is_empty() { 0 } else { cell.samples },
        colour: cell.colour,
        dash: 0,
        kind,
        points,
    }
}

/// Floors of the experiments; those equal within a percent share one line.
fn floors(cells: &[&CellSeries]) -> Vec<Floor> {
    let mut lines: Vec<(&str, f64)> = Vec::new();
    for floor in cells.iter().filter_map(|cell| cell.floor.as_ref()) {
        let near =
            |line: &(&str, f64)| line.0 == floor.name && (line.1 / floor.p50_ns as f64 - 1.0).abs() < 0.01;
        if !lines.iter().any(near) {
            lines.push((&floor.name, floor.p50_ns as f64));
        }
    }
    let name =
        |(name, ns): (&str, f64)| Floor { label: format!("{name} floor, p50 {}", duration(ns)), at: ns };
    lines.into_iter().map(name).collect()
}

/// Puts marks into the coordinates of axes that hold them all, and distinguishes marks of one colour.
fn frame(
    (name, title): (String, String),
    x: Scale,
    y: Scale,
    (mut marks, mut floors): (Vec<Mark>, Vec<Floor>),
) -> Frame {
    dress(&mut marks);
    for mark in &mut marks {
        for point in &mut mark.points {
            *point = (x.spacing.position(point.0), y.spacing.position(point.1));
        }
        if let Kind::Band(lower) = &mut mark.kind {
            lower.iter_mut().for_each(|at| *at = y.spacing.position(*at));
        }
    }
    for floor in &mut floors {
        floor.at = y.spacing.position(floor.at);
    }
    let points = || marks.iter().flat_map(|mark| &mark.points);
    let x = axis(x, points().map(|point| point.0));
    let floor_levels = floors.iter().map(|floor| floor.at);
    let lower = marks.iter().filter_map(|mark| match &mark.kind {
        Kind::Band(lower) => Some(lower),
        _ => None,
    });
    let levels = points().map(|point| point.1).chain(lower.flatten().copied());
    let y = axis(y, levels.chain(floor_levels));
    Frame { name, title, samples: marks.iter().map(|mark| mark.samples).sum(), x, y, marks, floors }
}

/// Few experiments have a colour each; many have their peer's, and a dash for each of those that
/// share it. An experiment's marks follow each other, the one with the label first.
fn dress(marks: &mut [Mark]) {
    let named = || marks.iter().filter(|mark| !mark.label.is_empty()).map(|mark| mark.colour);
    let (count, colours) = (named().count(), named().collect::<BTreeSet<usize>>().len());
    let each = colours < count && count <= COLOURS;
    let mut used: BTreeMap<usize, usize> = BTreeMap::new();
    let mut experiments = 0;
    for mark in marks {
        experiments += usize::from(!mark.label.is_empty());
        if each {
            mark.colour = experiments.saturating_sub(1);
        }
        let used = used.entry(mark.colour).or_default();
        *used += usize::from(!mark.label.is_empty());
        mark.dash = used.saturating_sub(1);
    }
}

fn axis(scale: Scale, values: impl Iterator<Item = f64>) -> Axis {
    let (mut low, mut high) =
        values.fold((f64::MAX, f64::MIN), |range, value| (range.0.min(value), range.1.max(value)));
    if low > high {
        (low, high) = (0.0, 1.0);
    }
    let room = match scale.spacing {
        Spacing::Log => 0.1,
        _ => (high - low).max(high.abs() * 1e-3).max(1e-12) * 0.04,
    };
    (low, high) = (if scale.zero { 0.0 } else { low - room }, high + room);
    Axis {
        label: scale.label,
        low,
        high,
        ticks: match scale.spacing {
            Spacing::Linear => linear_ticks(low, high),
            Spacing::Log => log_ticks(low, high),
            Spacing::Asinh(threshold) => asinh_ticks(threshold, low, high),
        },
        spacing: scale.spacing,
        text: scale.text,
    }
}

/// Positions of 1, 2 and 5 times the powers of ten, or of the powers alone over many decades.
fn log_ticks(low: f64, high: f64) -> Vec<f64> {
    let steps: &[f64] = if high - low > 3.3 { &[1.0] } else { &[1.0, 2.0, 5.0] };
    (low.floor() as i32..=high.ceil() as i32)
        .flat_map(|decade| steps.iter().map(move |step| f64::from(decade) + step.log10()))
        .filter(|tick| (low..=high).contains(tick))
        .collect()
}

/// Zero and the powers of ten times the threshold, either sign.
fn asinh_ticks(threshold: f64, low: f64, high: f64) -> Vec<f64> {
    let powers = (0..13).map(|power| Spacing::Asinh(threshold).position(threshold * 10f64.powi(power)));
    let either = powers.flat_map(|at| [at, -at]).chain([0.0]);
    either.filter(|tick| (low..=high).contains(tick)).collect()
}

fn linear_ticks(low: f64, high: f64) -> Vec<f64> {
    let rough = (high - low) / 6.0;
    let decade = 10f64.powf(rough.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * decade);
    let step = steps.into_iter().find(|step| *step >= rough).unwrap_or(rough);
    let (first, last) = ((low / step).ceil() as i64, (high / step).floor() as i64);
    (first..=last).map(|tick| tick as f64 * step).collect()
}

fn percentile_name(nines: f64) -> String {
    if nines < 1e-9 {
        return "min".to_owned();
    }
    let digits = (nines - 2.0 - 1e-9).ceil().max(0.0) as usize;
    format!("p{:.digits$}", 100.0 * (1.0 - 10f64.powf(-nines)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_within_the_axis() {
        assert_eq!(linear_ticks(0.0, 6.1), [0.0, 2.0, 4.0, 6.0]);
        let one_two_five: Vec<String> =
            log_ticks(2.0, 3.1).iter().map(|tick| three_digits(10f64.powf(*tick))).collect();
        assert_eq!(one_two_five, ["100", "200", "500", "1000"]);
        assert_eq!(log_ticks(0.0, 5.0), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    }

    #[test]
    fn few_experiments_have_a_colour_each_and_many_of_a_peer_a_dash_each() {
        let mark = |label: &str| Mark {
            label: label.to_owned(),
            colour: 3,
            dash: 0,
            kind: Kind::Line,
            points: vec![],
            samples: 0,
        };
        let styles = |marks: &[Mark]| marks.iter().map(|m| (m.colour, m.dash)).collect::<Vec<_>>();
        let mut few = [mark("a"), mark(""), mark("b")];
        dress(&mut few);
        assert_eq!(styles(&few), [(0, 0), (0, 0), (1, 0)]);
        let mut one = [mark("a"), mark("")];
        dress(&mut one);
        assert_eq!(styles(&one), [(3, 0), (3, 0)], "its peer's");
        let mut many: Vec<Mark> = (0..9).map(|n| mark(&n.to_string())).collect();
        dress(&mut many);
        assert_eq!(styles(&many)[7..], [(3, 7), (3, 8)]);
    }

    #[test]
    fn percentiles_are_named_with_their_nines() {
        let names = [0.0, std::f64::consts::LOG10_2, 1.0, 2.0, 3.0, 4.0].map(percentile_name);
        assert_eq!(names, ["min", "p50", "p90", "p99", "p99.9", "p99.99"]);
    }
}
