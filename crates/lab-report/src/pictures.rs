//! Each chart as SVG and PNG, for papers and slides.
//!
//! Two steps: `frame` turns the material into frames (axes, marks, floors) and this file draws a
//! frame with `plotters`. All axes are linear to `plotters`; logarithms are taken in the frame, so
//! that one kind of chart serves all. Lettering uses an embedded font and needs none installed.

mod frame;

use std::fmt::Display;
use std::io;
use std::path::Path;
use std::sync::Once;

use plotters::coord::Shift;
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{FontStyle, register_font};

use self::frame::{Axis, Floor, Frame, Kind, Mark};
use super::ReportError;
use super::palette::{CATEGORIES, magnitude, shares};
use super::panel::Panel;
use super::series::{Charts, HeatMap};
use noctule_lab::notation::{count, duration, rate, size};

/// Size of an SVG; a PNG has twice as many pixels each way.
const SIZE: (u32, u32) = (960, 520);
const PNG_SCALE: u32 = 2;
const TITLE_HEIGHT: u32 = 58;
const LEGEND_WIDTH: u32 = 230;
const LEGEND_LINE: i32 = 19;
/// Where the words of a legend begin.
const LEGEND_TEXT: i32 = 38;
const INK: RGBColor = RGBColor(0x1b, 0x1f, 0x24);
const MUTED: RGBColor = RGBColor(0x5b, 0x64, 0x70);
const GRID: RGBColor = RGBColor(0xe0, 0xe4, 0xe9);
const FONT: &str = "sans-serif";

/// Writes every chart that has material into `directory`; `machine` stands below each title.
///
/// # Errors
/// If a file cannot be written.
pub fn write(directory: &Path, charts: &Charts, machine: &str) -> Result<(), ReportError> {
    register();
    std::fs::create_dir_all(directory).map_err(|source| ReportError::write(directory, source))?;
    for frame in frame::all(charts) {
        write_both((directory, &frame.name), machine, &frame)?;
    }
    for (number, map) in charts.heat_maps.iter().enumerate() {
        let name = format!("heat_map_{}", number + 1);
        write_both((directory, &name), machine, map)?;
    }
    Ok(())
}

/// Writes panels two abreast into one picture; the ending of `path` says which kind, SVG or PNG.
/// `subtitle` stands below each title.
///
/// # Errors
/// If the ending is another or the file cannot be written.
pub fn write_sheet(path: &Path, panels: &[Panel], subtitle: &str) -> io::Result<()> {
    register();
    let frames: Vec<Frame> = panels.iter().map(frame::of_panel).collect();
    let (columns, rows) = (frames.len().clamp(1, 2) as u32, frames.len().div_ceil(2).max(1) as u32);
    let size = |scale: u32| (SIZE.0 * scale * columns, SIZE.1 * scale * rows);
    let ending = path.extension().and_then(|ending| ending.to_str());
    match ending {
        Some("svg") => {
            write_grid(&SVGBackend::new(path, size(1)).into_drawing_area(), subtitle, (&frames, 1))
        }
        Some("png") => {
            let area = BitMapBackend::new(path, size(PNG_SCALE)).into_drawing_area();
            write_grid(&area, subtitle, (&frames, PNG_SCALE as i32))
        }
        _ => Err(io::Error::other("the name of a picture must end in .svg or .png")),
    }
}

fn write_grid<DB: DrawingBackend>(
    area: &Area<DB>,
    subtitle: &str,
    (frames, scale): (&[Frame], i32),
) -> io::Result<()> {
    area.fill(&WHITE).map_err(other)?;
    let cells = area.split_evenly((frames.len().div_ceil(2).max(1), frames.len().clamp(1, 2)));
    for (cell, frame) in cells.iter().zip(frames) {
        draw_titled(cell, subtitle, (frame, scale))?;
    }
    area.present().map_err(other)
}

fn register() {
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| {
        let bytes = include_bytes!("font/Roboto-Regular-subset.ttf");
        // Were the font broken, every picture would fail with a message, and the tests with it.
        let _ = register_font(FONT, FontStyle::Normal, bytes);
    });
}

/// A chart that can be drawn on either back end.
trait Picture {
    fn title(&self) -> String;

    /// Number of latencies in it; 0 if not known.
    fn samples(&self) -> u64;

    fn draw<DB: DrawingBackend>(&self, area: &Area<DB>, scale: i32) -> io::Result<()>;
}

type Area<DB> = DrawingArea<DB, Shift>;
type Plot<'a, DB> = ChartContext<'a, DB, Cartesian2d<Axis, Axis>>;

fn write_both(
    (directory, name): (&Path, &str),
    machine: &str,
    picture: &impl Picture,
) -> Result<(), ReportError> {
    let svg = directory.join(format!("{name}.svg"));
    let area = SVGBackend::new(&svg, SIZE).into_drawing_area();
    write_one(&area, machine, (picture, 1)).map_err(|error| ReportError::write(&svg, error))?;
    let png = directory.join(format!("{name}.png"));
    let pixels = (SIZE.0 * PNG_SCALE, SIZE.1 * PNG_SCALE);
    let area = BitMapBackend::new(&png, pixels).into_drawing_area();
    let scale = PNG_SCALE as i32;
    write_one(&area, machine, (picture, scale)).map_err(|error| ReportError::write(&png, error))
}

fn write_one<DB: DrawingBackend>(
    area: &Area<DB>,
    machine: &str,
    (picture, scale): (&impl Picture, i32),
) -> io::Result<()> {
    area.fill(&WHITE).map_err(other)?;
    draw_titled(area, machine, (picture, scale))?;
    area.present().map_err(other)
}

fn draw_titled<DB: DrawingBackend>(
    area: &Area<DB>,
    machine: &str,
    (picture, scale): (&impl Picture, i32),
) -> io::Result<()> {
    let (head, body) = area.split_vertically(TITLE_HEIGHT * scale as u32);
    let title = lettering(18, scale, &INK);
    head.draw_text(&picture.title(), &title, (14 * scale, 12 * scale)).map_err(other)?;
    let below = lettering(12, scale, &MUTED);
    let facts = match picture.samples() {
        0 => machine.to_owned(),
        samples => format!("{machine}; {} samples", count(samples)),
    };
    head.draw_text(&facts, &below, (14 * scale, 36 * scale)).map_err(other)?;
    picture.draw(&body, scale)
}

fn other(error: impl Display) -> io::Error {
    io::Error::other(error.to_string())
}

fn lettering(points: i32, scale: i32, colour: &RGBColor) -> TextStyle<'static> {
    (FONT, points * scale).into_font().color(colour)
}

fn rgb([red, green, blue]: [u8; 3]) -> RGBColor {
    RGBColor(red, green, blue)
}

impl Picture for Frame {
    fn title(&self) -> String {
        self.title.clone()
    }

    fn samples(&self) -> u64 {
        self.samples
    }

    fn draw<DB: DrawingBackend>(&self, area: &Area<DB>, scale: i32) -> io::Result<()> {
        let (width, _) = area.dim_in_pixel();
        let (left, right) = area.split_horizontally(width - LEGEND_WIDTH * scale as u32);
        let mut plot = ChartBuilder::on(&left)
            .margin_left(16 * scale)
            .margin_right(12 * scale)
            .margin_bottom(6 * scale)
            .x_label_area_size(48 * scale)
            .y_label_area_size(86 * scale)
            .build_cartesian_2d(self.x.clone(), self.y.clone())
            .map_err(other)?;
        plot.configure_mesh()
            .bold_line_style(GRID)
            .light_line_style(TRANSPARENT)
            .axis_style(GRID)
            .label_style(lettering(12, scale, &MUTED))
            .axis_desc_style(lettering(13, scale, &MUTED))
            .x_desc(self.x.label)
            .y_desc(self.y.label)
            .x_label_formatter(&|at| self.x.text(*at))
            .y_label_formatter(&|at| self.y.text(*at))
            .draw()
            .map_err(other)?;
        for mark in &self.marks {
            draw_mark(&mut plot, mark, scale)?;
        }
        draw_floors(&mut plot, self, scale)?;
        draw_legend(&right, &self.marks, scale)
    }
}

fn draw_mark<DB: DrawingBackend>(plot: &mut Plot<DB>, mark: &Mark, scale: i32) -> io::Result<()> {
    let colour = rgb(CATEGORIES[mark.colour]);
    let points = &mark.points;
    match &mark.kind {
        Kind::Line => draw_line(plot, mark, scale),
        Kind::Steps => {
            let dot = |&point| Circle::new(point, 3 * scale, colour.filled());
            plot.draw_series(points.iter().map(dot)).map_err(other)?;
            draw_line(plot, mark, scale)
        }
        Kind::Dots => {
            let dot = |&point| Circle::new(point, scale, colour.filled());
            plot.draw_series(points.iter().map(dot)).map_err(other).map(drop)
        }
        Kind::Ring => {
            let ring = |&point| Circle::new(point, 4 * scale, colour.stroke_width(scale as u32));
            plot.draw_series(points.iter().map(ring)).map_err(other).map(drop)
        }
        Kind::Band(lower) => {
            let lower = points.iter().zip(lower).rev().map(|((x, _), low)| (*x, *low));
            let outline: Vec<(f64, f64)> = points.iter().copied().chain(lower).collect();
            let area = Polygon::new(outline, colour.mix(0.16));
            plot.draw_series([area]).map_err(other).map(drop)
        }
        Kind::Bars(half) => {
            for run in runs(points, *half) {
                let fill = Polygon::new(run.clone(), colour.mix(0.14));
                plot.draw_series([fill]).map_err(other)?;
                let outline = PathElement::new(run, colour.stroke_width(scale as u32));
                plot.draw_series([outline]).map_err(other)?;
            }
            Ok(())
        }
    }
}

/// Outlines of neighbouring bars, each from the ground up and down to it again.
fn runs(points: &[(f64, f64)], half: f64) -> Vec<Vec<(f64, f64)>> {
    points
        .chunk_by(|a, b| b.0 - a.0 < 2.5 * half)
        .map(|bars| {
            let mut outline = vec![(bars[0].0 - half, 0.0)];
            for &(x, y) in bars {
                outline.extend([(x - half, y), (x + half, y)]);
            }
            outline.push((bars[bars.len() - 1].0 + half, 0.0));
            outline
        })
        .collect()
}

fn draw_line<DB: DrawingBackend>(plot: &mut Plot<DB>, mark: &Mark, scale: i32) -> io::Result<()> {
    let style = rgb(CATEGORIES[mark.colour]).stroke_width(2 * scale as u32);
    let points = mark.points.iter().copied();
    match dash(mark.dash) {
        None => plot.draw_series(LineSeries::new(points, style)).map_err(other)?,
        Some((on, off)) => {
            let points = mark.points.clone();
            let line = DashedLineSeries::new(points, on * scale, off * scale, style);
            plot.draw_series(line).map_err(other)?
        }
    };
    Ok(())
}

/// Lengths of dash and gap in points; `None` is solid.
fn dash(number: usize) -> Option<(i32, i32)> {
    [None, Some((8, 4)), Some((2, 3)), Some((14, 5)), Some((4, 8))][number % 5]
}

/// The highest floor is named above its line, the others below theirs and each other.
fn draw_floors<DB: DrawingBackend>(plot: &mut Plot<DB>, frame: &Frame, scale: i32) -> io::Result<()> {
    let height = plot.plotting_area().dim_in_pixel().1 as f64;
    let line = (frame.y.high - frame.y.low) / height * f64::from(14 * scale);
    let mut floors = frame.floors.clone();
    floors.sort_by(|a, b| b.at.total_cmp(&a.at));
    let mut free = f64::MAX;
    for (number, Floor { label, at }) in floors.into_iter().enumerate() {
        let ends = vec![(frame.x.low, at), (frame.x.high, at)];
        let ink = INK.stroke_width(scale as u32);
        let dotted = DashedLineSeries::new(ends, 2 * scale, 3 * scale, ink);
        plot.draw_series(dotted).map_err(other)?;
        let (top, side) = match number {
            0 => (at, VPos::Bottom),
            _ => (at.min(free) - line / 6.0, VPos::Top),
        };
        free = if number == 0 { at } else { top - line };
        let style = lettering(11, scale, &INK).pos(Pos::new(HPos::Right, side));
        let text = Text::new(label, (frame.x.high, top), style);
        plot.draw_series([text]).map_err(other)?;
    }
    Ok(())
}

fn draw_legend<DB: DrawingBackend>(area: &Area<DB>, marks: &[Mark], scale: i32) -> io::Result<()> {
    let style = lettering(12, scale, &INK);
    let named = marks.iter().filter(|mark| !mark.label.is_empty());
    let width = area.dim_in_pixel().0 as i32 - LEGEND_TEXT * scale;
    let mut y = 10 * scale;
    for mark in named {
        let colour = rgb(CATEGORIES[mark.colour]).stroke_width(3 * scale as u32);
        let ends = [(4 * scale, y), (30 * scale, y)];
        match dash(mark.dash) {
            None => area.draw(&PathElement::new(ends, colour)).map_err(other)?,
            Some((on, off)) => {
                let line = DashedPathElement::new(ends, on * scale, off * scale, colour);
                area.draw(&line).map_err(other)?;
            }
        }
        let fits = |text: &str| {
            area.estimate_text_size(text, &style).is_ok_and(|(needed, _)| needed as i32 <= width)
        };
        for line in wrapped(&mark.label, &fits) {
            area.draw_text(&line, &style, (LEGEND_TEXT * scale, y - 7 * scale)).map_err(other)?;
            y += LEGEND_LINE * scale;
        }
    }
    Ok(())
}

/// Lines that fit, broken between words; a word that does not fit has a line of its own.
fn wrapped(text: &str, fits: &dyn Fn(&str) -> bool) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if fits(&format!("{line} {word}")) => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

impl Picture for HeatMap {
    fn title(&self) -> String {
        format!("Payload × rate: {}, p50 (p99)", self.label)
    }

    fn samples(&self) -> u64 {
        self.samples
    }

    fn draw<DB: DrawingBackend>(&self, area: &Area<DB>, scale: i32) -> io::Result<()> {
        let (width, height) = area.dim_in_pixel();
        let (width, height) = (width as i32, height as i32);
        let (left, top) = (90 * scale, 30 * scale);
        let column = (width - left - 14 * scale) / self.rate_hz.len().max(1) as i32;
        let row = (height - top - 14 * scale) / self.payload_bytes.len().max(1) as i32;
        let middle = Pos::new(HPos::Center, VPos::Center);
        let head = lettering(12, scale, &MUTED).pos(middle);
        for (number, hz) in self.rate_hz.iter().enumerate() {
            let x = left + column * number as i32 + column / 2;
            area.draw_text(&rate((hz * 1e3) as u64), &head, (x, top / 2)).map_err(other)?;
        }
        let shares = shares(&self.p50_ns);
        for (number, bytes) in self.payload_bytes.iter().enumerate() {
            let y = top + row * number as i32;
            area.draw_text(&size(*bytes), &head, (left / 2, y + row / 2)).map_err(other)?;
            for (place, share) in shares[number].iter().enumerate() {
                let (Some(share), Some(p50)) = (share, self.p50_ns[number][place]) else {
                    continue;
                };
                let x = left + column * place as i32;
                let (paper, dark_ink) = magnitude(*share);
                let corners = [(x, y), (x + column - 2 * scale, y + row - 2 * scale)];
                area.draw(&Rectangle::new(corners, rgb(paper).filled())).map_err(other)?;
                let mut text = duration(p50 as f64);
                if let Some(p99) = self.p99_ns[number][place] {
                    text = format!("{text} ({})", duration(p99 as f64));
                }
                let ink = if dark_ink { &BLACK } else { &WHITE };
                let style = lettering(13, scale, ink).pos(middle);
                let centre = (x + column / 2, y + row / 2);
                area.draw_text(&text, &style, centre).map_err(other)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use noctule_lab::fixture;
    use noctule_lab::merge::merge;
    use std::collections::BTreeSet;

    #[test]
    fn every_chart_with_material_is_written_twice() {
        let (run, samples) = fixture::chain_and_round_trips();
        let charts = Charts::of(&run, &merge(&run, &samples), &samples);
        let directory = tempfile::tempdir().unwrap();
        write(directory.path(), &charts, "Test CPU").unwrap();
        let names: BTreeSet<String> = std::fs::read_dir(directory.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        assert_eq!(names.len(), 2 * (3 + 4), "{names:?}");
        assert!(names.contains("cumulative_chain_128_B_100_Hz.svg"), "{names:?}");
        let svg = directory.path().join("curve_round_trip_64_B.svg");
        let svg = std::fs::read_to_string(svg).unwrap();
        for text in ["Percentiles: round trip, 64 B", "Test CPU", "p99", "20 µs", "futex floor"] {
            assert!(svg.contains(text), "{text}");
        }
        assert!(svg.contains("#0072B2"), "the curve itself");
        let png = directory.path().join("dots_round_trip_64_B.png");
        let png = std::fs::read(png).unwrap();
        assert_eq!(&png[1..4], b"PNG");
        let side = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().unwrap());
        assert_eq!((side(16), side(20)), (1920, 1040));
    }

    #[test]
    fn bars_apart_are_outlined_apart() {
        let outlines = runs(&[(1.0, 5.0), (1.1, 6.0), (3.0, 1.0)], 0.05);
        assert_eq!(outlines.len(), 2);
        assert_eq!((outlines[0].len(), outlines[1].len()), (6, 4));
    }

    #[test]
    fn a_long_legend_is_broken_between_words() {
        let fits = |text: &str| text.len() <= 12;
        let lines = wrapped("noctule, deadline bound, loss 0.0001", &fits);
        assert_eq!(lines, ["noctule,", "deadline", "bound, loss", "0.0001"]);
        assert_eq!(wrapped("averyveryverylongword x", &fits), ["averyveryverylongword", "x"]);
    }
}
