//! Charts as SVG, three abreast.

use std::fmt::Write;

/// Size of one chart, px.
const SIZE: (f64, f64) = (480.0, 380.0);
/// Margin around what is plotted: left, right, top, bottom, px.
const MARGIN: (f64, f64, f64, f64) = (64.0, 14.0, 52.0, 44.0);
/// Height of the title above the charts, px.
const HEAD: f64 = 62.0;
const ABREAST: usize = 3;
/// Ink, muted ink, lines of the grid, and what is a limit.
const COLOURS: [&str; 4] = ["#1b1f24", "#5b6470", "#e0e4e9", "#a3260f"];
/// Colours of the views: distinguishable with colour vision deficiencies, too.
const LINES: [&str; 3] = ["#0072b2", "#d55e00", "#009e73"];
/// A line is broken where it is further outside than this many sizes of the chart.
const FAR: f64 = 20.0;

/// Points of a line.
pub(super) type Points = Vec<(f64, f64)>;
/// Maps a value to px.
type Position<'a> = &'a dyn Fn(f64) -> f64;

/// A direction of a chart.
#[derive(Clone, Copy, Default)]
pub(super) struct Axis {
    label: &'static str,
    low: f64,
    high: f64,
    is_logarithmic: bool,
}

impl Axis {
    pub(super) fn linear(label: &'static str, low: f64, high: f64) -> Axis {
        Axis { label, low, high, is_logarithmic: false }
    }

    pub(super) fn logarithmic(label: &'static str, low: f64, high: f64) -> Axis {
        Axis { label, low, high, is_logarithmic: true }
    }

    /// 0 at the low end, 1 at the high end.
    fn share(&self, value: f64) -> f64 {
        match self.is_logarithmic {
            true => (value / self.low).ln() / (self.high / self.low).ln(),
            false => (value - self.low) / (self.high - self.low),
        }
    }

    fn ticks(&self) -> Vec<f64> {
        if self.is_logarithmic {
            let powers = self.low.log10().ceil() as i32..=self.high.log10().floor() as i32;
            return powers.map(|power| 10f64.powi(power)).collect();
        }
        let raw = (self.high - self.low) / 6.0;
        let power = 10f64.powf(raw.log10().floor());
        // Degrees are read in parts of a turn.
        let factors: &[f64] =
            if self.label.contains("degrees") { &[3.0, 4.5, 6.0, 9.0] } else { &[1.0, 2.0, 5.0] };
        let factor = factors.iter().copied().find(|factor| factor * power >= raw).unwrap_or(10.0);
        let step = factor * power;
        let (first, last) = ((self.low / step).ceil() as i32, (self.high / step).floor() as i32);
        (first..=last).map(|index| f64::from(index) * step).collect()
    }
}

/// A circle in the units of both axes; drawn round where these are equal.
#[derive(Clone, Copy)]
pub(super) struct Circle {
    pub(super) middle: (f64, f64),
    pub(super) radius: f64,
    /// Nothing should enter it.
    pub(super) is_limit: bool,
}

/// A dot, and what stands beside it.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    pub(super) at: (f64, f64),
    pub(super) text: &'static str,
}

/// One chart.
#[derive(Default)]
pub(super) struct Chart {
    pub(super) title: String,
    pub(super) caption: String,
    pub(super) x: Axis,
    pub(super) y: Axis,
    pub(super) lines: Vec<Points>,
    /// Heights of horizontal lines.
    pub(super) rules: Vec<f64>,
    pub(super) circles: Vec<Circle>,
    pub(super) marks: Vec<Mark>,
    /// A unit is as long up as it is across; the vertical axis is widened for it.
    pub(super) is_equal: bool,
}

/// All charts below a title and the names of their lines.
pub(super) fn sheet(title: &str, names: &[&str], charts: &[Chart]) -> String {
    let (width, height) = (SIZE.0 * ABREAST as f64, HEAD + SIZE.1 * charts.len().div_ceil(ABREAST) as f64);
    let [ink, muted, grid, limit] = COLOURS;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         font-family=\"Roboto, Liberation Sans, Arial, sans-serif\" font-size=\"12\" fill=\"{muted}\">\n\
         <style>.grid{{stroke:{grid}}}.line{{fill:none;stroke-width:1.8}}.ring{{fill:none;stroke-dasharray:4 3}}\
         .rule{{stroke:{limit};stroke-dasharray:6 4}}</style>\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n\
         <text x=\"18\" y=\"28\" font-size=\"18\" fill=\"{ink}\">{title}</text>\n"
    );
    for (index, (name, colour)) in names.iter().zip(LINES).enumerate() {
        let x = 18.0 + 190.0 * index as f64;
        let _ = writeln!(
            svg,
            "<path d=\"M{x} 46h26\" stroke=\"{colour}\" stroke-width=\"3\"/><text x=\"{}\" y=\"50\">{name}</text>",
            x + 33.0
        );
    }
    for (index, chart) in charts.iter().enumerate() {
        let (x, y) = (SIZE.0 * (index % ABREAST) as f64, HEAD + SIZE.1 * (index / ABREAST) as f64);
        let _ = writeln!(svg, "<svg x=\"{x}\" y=\"{y}\" width=\"{}\" height=\"{}\">", SIZE.0, SIZE.1);
        chart.draw(&mut svg);
        svg.push_str("</svg>\n");
    }
    svg.push_str("</svg>\n");
    svg
}

impl Chart {
    fn draw(&self, svg: &mut String) {
        let (left, right, top, bottom) = MARGIN;
        let (width, height) = (SIZE.0 - left - right, SIZE.1 - top - bottom);
        let mut y_axis = self.y;
        if self.is_equal {
            let half = (self.x.high - self.x.low) / width * height / 2.0;
            (y_axis.low, y_axis.high) = (-half, half);
        }
        let px = |value: f64| left + self.x.share(value) * width;
        let py = |value: f64| top + (1.0 - y_axis.share(value)) * height;
        self.scales(svg, &y_axis, (&px, &py));
        let _ = writeln!(
            svg,
            "<svg x=\"{left}\" y=\"{top}\" width=\"{width}\" height=\"{height}\" viewBox=\"{left} {top} {width} {height}\">"
        );
        for rule in &self.rules {
            let _ = writeln!(svg, "<path class=\"rule\" d=\"M{left} {:.2}h{width}\"/>", py(*rule));
        }
        for Circle { middle, radius, is_limit } in &self.circles {
            let colour = if *is_limit { COLOURS[3] } else { COLOURS[1] };
            let radius_px = radius / (self.x.high - self.x.low) * width;
            let _ = writeln!(
                svg,
                "<circle class=\"ring\" cx=\"{:.2}\" cy=\"{:.2}\" r=\"{radius_px:.2}\" stroke=\"{colour}\"/>",
                px(middle.0),
                py(middle.1)
            );
        }
        for (line, colour) in self.lines.iter().zip(LINES) {
            let points = line.iter().map(|(x, y)| (px(*x), py(*y)));
            let _ = writeln!(svg, "<path class=\"line\" stroke=\"{colour}\" d=\"{}\"/>", path(points));
        }
        for Mark { at, text } in &self.marks {
            let (x, y, colour) = (px(at.0), py(at.1), COLOURS[3]);
            let _ = writeln!(
                svg,
                "<circle cx=\"{x:.2}\" cy=\"{y:.2}\" r=\"3.5\" fill=\"{colour}\"/><text x=\"{:.2}\" y=\"{:.2}\" fill=\"{colour}\">{text}</text>",
                x - 18.0,
                y - 8.0
            );
        }
        svg.push_str("</svg>\n");
    }

    /// Title, grid, numbers and names of the axes.
    fn scales(&self, svg: &mut String, y_axis: &Axis, (px, py): (Position<'_>, Position<'_>)) {
        let (left, right, top, bottom) = MARGIN;
        let (end_x, end_y) = (SIZE.0 - right, SIZE.1 - bottom);
        let _ = writeln!(
            svg,
            "<text x=\"{left}\" y=\"22\" font-size=\"15\" fill=\"{}\">{}</text><text x=\"{left}\" y=\"40\" font-size=\"11\">{}</text>",
            COLOURS[0], self.title, self.caption
        );
        for tick in self.x.ticks() {
            let x = px(tick);
            let _ = writeln!(
                svg,
                "<path class=\"grid\" d=\"M{x:.2} {top}V{end_y}\"/><text x=\"{x:.2}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                end_y + 16.0,
                number(tick)
            );
        }
        for tick in y_axis.ticks() {
            let y = py(tick);
            let _ = writeln!(
                svg,
                "<path class=\"grid\" d=\"M{left} {y:.2}H{end_x}\"/><text x=\"{}\" y=\"{:.2}\" text-anchor=\"end\">{}</text>",
                left - 7.0,
                y + 4.0,
                number(tick)
            );
        }
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text><text transform=\"translate(16 {}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
            (left + end_x) / 2.0,
            end_y + 34.0,
            self.x.label,
            (top + end_y) / 2.0,
            self.y.label
        );
    }
}

/// As short as it is exact, with a minus sign that is one.
fn number(value: f64) -> String {
    let rounded = (value * 1e6).round() / 1e6;
    format!("{}", if rounded == 0.0 { 0.0 } else { rounded }).replace('-', "−")
}

/// Points as a path; a new one begins after what is far outside.
fn path(points: impl Iterator<Item = (f64, f64)>) -> String {
    let mut text = String::new();
    let mut is_drawn = false;
    for (x, y) in points {
        let is_near = x.abs() < FAR * SIZE.0 && y.abs() < FAR * SIZE.1;
        if is_near {
            let _ = write!(text, "{}{x:.1} {y:.1}", if is_drawn { 'L' } else { 'M' });
        }
        is_drawn = is_near;
    }
    text
}
