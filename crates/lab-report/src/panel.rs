//! One chart as plain numbers: what the page's script and the still pictures both draw.
//!
//! A panel is two axes, marks in the axes' own units, and horizontal lines with a name. Lines with
//! gaps are several marks with one label, so that no renderer needs to know about gaps. [`columns`] and
//! [`occupied`] thin what is too long, so that nothing which would be seen is lost.

use serde::Serialize;

/// Columns that a line or band over time is thinned to: about two per pixel of the page.
pub const COLUMNS: usize = 1_600;
/// Rows and columns of the grid that a cloud is thinned to.
const GRID: (usize, usize) = (400, 200);

/// One chart.
#[derive(Clone, Debug, Serialize)]
pub struct Panel {
    /// Name in the page, and of the chart for tests.
    pub id: &'static str,
    /// Heading.
    pub title: String,
    /// One or two sentences below it.
    pub caption: String,
    /// The horizontal axis.
    pub x: PanelAxis,
    /// The vertical axis.
    pub y: PanelAxis,
    /// Marks in drawing order, the hindmost first.
    pub marks: Vec<PanelMark>,
    /// Horizontal lines: name and height.
    pub lines: Vec<NamedLine>,
}

/// Name and height.
pub type NamedLine = (&'static str, f64);

/// An axis before its range is known.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct PanelAxis {
    /// Its title.
    pub label: &'static str,
    /// How values become positions.
    pub spacing: Spacing,
    /// Unit of its values.
    pub unit: Unit,
}

/// How values become positions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Spacing {
    /// Linear scale.
    Linear,
    /// Logarithmic scale; there is no zero.
    Log,
    /// Linear up to this value and logarithmic beyond, either sign.
    Asinh(f64),
}

/// Unit of an axis's values.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Seconds.
    Seconds,
    /// Nanoseconds.
    Nanoseconds,
    /// Millimetres.
    Millimetres,
    /// A frequency over a frequency, shown in parts per million or billion.
    Ratio,
    /// Metres.
    Metres,
}

/// One curve, band or set of points, of one colour.
#[derive(Clone, Debug, Serialize)]
pub struct PanelMark {
    /// Its label in the legend. Marks with the same label are one thing in pieces.
    pub label: &'static str,
    /// Index into [`super::palette::CATEGORIES`].
    pub colour: usize,
    /// Kind of the mark.
    pub kind: MarkKind,
    /// Positions on the horizontal axis.
    pub xs: Vec<f64>,
    /// Positions on the vertical axis, as many; of a band the upper side.
    pub ys: Vec<f64>,
    /// The lower side of a band; empty for everything else.
    pub low: Vec<f64>,
}

/// Kind of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MarkKind {
    /// A line.
    Line,
    /// A line with its points marked.
    Steps,
    /// A dot each.
    Dots,
    /// A ring around each.
    Ring,
    /// The area between two sides.
    Band,
}

impl Panel {
    /// Points that a renderer has to draw; bands repeat those of their line.
    pub fn points(&self) -> usize {
        let own = self.marks.iter().filter(|mark| mark.kind != MarkKind::Band);
        own.map(|mark| mark.xs.len()).sum()
    }

    /// Each label once, with its colour.
    pub fn legend(&self) -> Vec<(&'static str, usize)> {
        let mut legend: Vec<(&'static str, usize)> = Vec::new();
        for mark in &self.marks {
            if !legend.iter().any(|(label, _)| *label == mark.label) {
                legend.push((mark.label, mark.colour));
            }
        }
        legend
    }
}

impl PanelMark {
    /// A mark of points.
    pub fn of(label: &'static str, colour: usize, kind: MarkKind, points: &[(f64, f64)]) -> PanelMark {
        let (xs, ys) = points.iter().copied().unzip();
        PanelMark { label, colour, kind, xs, ys, low: Vec::new() }
    }
}

impl Spacing {
    /// Position of a value on the axis.
    pub fn position(self, value: f64) -> f64 {
        match self {
            Spacing::Linear => value,
            Spacing::Log => value.max(1e-30).log10(),
            Spacing::Asinh(threshold) => (value / threshold).asinh(),
        }
    }

    /// The value that stands there.
    pub fn value(self, position: f64) -> f64 {
        match self {
            Spacing::Linear => position,
            Spacing::Log => 10f64.powf(position),
            Spacing::Asinh(threshold) => position.sinh() * threshold,
        }
    }
}

/// Divides the indices of ascending times into at most [`COLUMNS`] runs, equally long in time.
pub fn columns(times: &[f64]) -> Vec<std::ops::Range<usize>> {
    let (Some(first), Some(last)) = (times.first(), times.last()) else {
        return Vec::new();
    };
    if times.len() <= COLUMNS {
        return (0..times.len()).map(|i| i..i + 1).collect();
    }
    let width = ((last - first) / COLUMNS as f64).max(f64::MIN_POSITIVE);
    let column = |at: f64| (((at - first) / width) as usize).min(COLUMNS - 1);
    let mut runs = Vec::new();
    let mut from = 0;
    for i in 1..=times.len() {
        if i == times.len() || column(times[i]) != column(times[from]) {
            runs.push(from..i);
            from = i;
        }
    }
    runs
}

/// The smallest and the largest of each column, in the order of time.
pub fn extremes(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let times: Vec<f64> = points.iter().map(|point| point.0).collect();
    let mut kept = Vec::new();
    for run in columns(&times) {
        let run = &points[run];
        let by = |a: &usize, b: &usize| run[*a].1.total_cmp(&run[*b].1);
        let ends = [(0..run.len()).min_by(by), (0..run.len()).max_by(by)];
        let [low, high] = ends.map(Option::unwrap_or_default);
        kept.push(run[low.min(high)]);
        if low != high {
            kept.push(run[low.max(high)]);
        }
    }
    kept
}

/// One point of each cell of a fine grid over the axes: a cloud that looks the same with fewer dots.
pub fn occupied(points: &[(f64, f64)], x: Spacing, y: Spacing) -> Vec<(f64, f64)> {
    let place = |point: &(f64, f64)| (x.position(point.0), y.position(point.1));
    let everything = (f64::MAX, f64::MAX, f64::MIN, f64::MIN);
    let (left, low, right, high) = points
        .iter()
        .map(place)
        .fold(everything, |range, (x, y)| (range.0.min(x), range.1.min(y), range.2.max(x), range.3.max(y)));
    let cell = |at: f64, low: f64, high: f64, cells: usize| {
        ((at - low) / (high - low).max(f64::MIN_POSITIVE) * (cells - 1) as f64) as usize
    };
    let mut taken = vec![false; GRID.0 * GRID.1];
    let first_there = |point: &&(f64, f64)| {
        let (x, y) = place(point);
        let cell = cell(x, left, right, GRID.0) * GRID.1 + cell(y, low, high, GRID.1);
        !std::mem::replace(&mut taken[cell], true)
    };
    points.iter().filter(first_there).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_the_peak_and_the_trough_of_every_column() {
        let mut points: Vec<(f64, f64)> = (0..100_000).map(|i| (f64::from(i), 0.0)).collect();
        points[31_415].1 = 7.0;
        points[31_416].1 = -9.0;
        let kept = extremes(&points);
        assert!(kept.len() <= 2 * COLUMNS);
        assert!(kept.contains(&(31_415.0, 7.0)) && kept.contains(&(31_416.0, -9.0)));
        assert!(kept.is_sorted_by(|a, b| a.0 <= b.0));
    }

    #[test]
    fn a_short_trace_is_kept_whole() {
        let points: Vec<(f64, f64)> = (0..COLUMNS).map(|i| (i as f64, (i % 7) as f64)).collect();
        assert_eq!(extremes(&points), points);
        assert_eq!(extremes(&[]), []);
    }

    #[test]
    fn a_cloud_loses_only_points_that_hide_behind_others() {
        let mut points: Vec<(f64, f64)> = (0..10_000).map(|i| (1.0 + 1e-9 * f64::from(i), 5.0)).collect();
        points.extend([(1e3, -4.0), (1e3, 9.0)]);
        let kept = occupied(&points, Spacing::Log, Spacing::Asinh(1.0));
        assert_eq!(kept, [(1.0, 5.0), (1e3, -4.0), (1e3, 9.0)]);
    }

    #[test]
    fn positions_and_values_undo_each_other() {
        for spacing in [Spacing::Linear, Spacing::Log, Spacing::Asinh(1e3)] {
            for value in [1.0, 250.0, 1e6] {
                assert!((spacing.value(spacing.position(value)) / value - 1.0).abs() < 1e-9);
            }
        }
        assert_eq!(Spacing::Asinh(1e3).position(-5e3), -Spacing::Asinh(1e3).position(5e3));
    }
}
