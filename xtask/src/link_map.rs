//! The map of links: `cargo xtask sweep prrt` runs it, sets it beside the map of an earlier commit and draws both.
//!
//! The simulation is an example of the crate (`sweep_prrt`), which knows nothing of this; what joins them is CSV.

pub mod live;
mod page;
mod possible;
mod quic;
mod table;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::shell;

/// The map of the code that the audit looked at, and that of the code as it is.
const BEFORE: &str = "benchmarks/prrt_map/before.csv";
const NOW: &str = "benchmarks/prrt_map/now.csv";
const PAGE: &str = "benchmarks/prrt_map/report.html";
const TABLE: &str = "crates/prrt/sweep.md";
/// Cells drawn from the whole space beside the axes, and their seed.
const DRAWN: u64 = 150;
const SEED: u64 = 1;
/// No class may be worse than best effort by more than this share of samples, and the interval.
const ALLOWANCE: f64 = 0.001;
/// Student's t, 97.5 %, by degrees of freedom from 1 on: parts or runs less one.
const STUDENT: [f64; 19] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093,
];
/// More runs than [`STUDENT`] has entries for are not judged.
pub const RUNS_MAX: u64 = 20;

/// The classes, in the order of the tables; and QUIC, which has a file of its own.
const CLASSES: [&str; 5] = ["deadline bound", "reliable", "best effort", "QUIC BBR", "QUIC CUBIC"];
const RELIABLE: usize = 1;
const BEST_EFFORT: usize = 2;

/// Arguments of the command line.
pub struct Request {
    /// Seed of the drawn cells and of every link.
    pub seed: Option<u64>,
    /// Only so many drawn cells, and no axes.
    pub cells: Option<u64>,
    /// Where the CSV goes instead of the committed files.
    pub out: Option<String>,
    /// Nothing is simulated; table and page are made anew of the committed figures.
    pub redraw: bool,
    /// QUIC on the same links, beside the reliable class.
    pub quic: bool,
    /// Runs of each cell, each with another seed of its link.
    pub runs: u64,
}

/// One class on one cell.
#[derive(Clone, Debug, Default)]
struct Figures {
    samples: f64,
    on_time: f64,
    redundancy: Option<f64>,
    wire_ratio: Option<f64>,
    p99_ms: Option<f64>,
    beside_mbps: f64,
    /// Samples in time by part of the run, or by run if there are several.
    parts: Vec<f64>,
    runs: usize,
    /// Why there are none.
    broken: Option<String>,
}

/// One cell with its classes.
#[derive(Clone, Debug, Default)]
struct Cell {
    axis: String,
    name: String,
    load: String,
    deadline_ms: f64,
    beside: String,
    link: String,
    classes: [Option<Figures>; CLASSES.len()],
    /// Bounds of the deadline-bound class.
    possible: Option<possible::Possible>,
}

/// How a class did against another on the same link.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Verdict {
    /// Worse by this share of samples, beyond allowance and interval.
    Worse(f64),
    /// Neither.
    Alike,
    /// Better by this share, beyond the interval.
    Better(f64),
}

/// The cells of a map, by what they are; a cell without a partner in the other map keeps its place.
type Map = Vec<Cell>;

impl Figures {
    fn on_time_share(&self) -> f64 {
        if self.samples > 0.0 { self.on_time / self.samples } else { 0.0 }
    }

    /// Share in time less that of another, by parts of the run or by runs: the mean's sign counts only beyond its interval, because what is lost
    /// is lost together.
    fn verdict(&self, other: &Figures) -> Option<Verdict> {
        let count = self.parts.len().min(other.parts.len()) as f64;
        if count < 2.0 || self.broken.is_some() {
            return None;
        }
        let of_part = self.samples / count;
        let differences: Vec<f64> =
            self.parts.iter().zip(&other.parts).map(|(ours, other)| (ours - other) / of_part).collect();
        let mean = differences.iter().sum::<f64>() / count;
        let variance = differences.iter().map(|d| (d - mean) * (d - mean)).sum::<f64>() / (count - 1.0);
        let student = STUDENT.get(count as usize - 2)?;
        let interval = student * (variance / count).sqrt();
        Some(match mean {
            mean if mean + interval < -ALLOWANCE => Verdict::Worse(-mean),
            mean if mean - interval > ALLOWANCE => Verdict::Better(mean),
            _ => Verdict::Alike,
        })
    }

    /// Takes in another run of the same cell and class: shares and costs are means over the runs.
    fn add(&mut self, run: Figures) {
        if self.runs == 1 {
            self.parts = vec![self.on_time];
        }
        self.parts.push(run.on_time);
        let before = self.runs as f64;
        let mean = |ours: f64, other: f64| (ours * before + other) / (before + 1.0);
        let both = |ours: Option<f64>, other: Option<f64>| Some(mean(ours?, other?));
        self.samples += run.samples;
        self.on_time += run.on_time;
        self.redundancy = both(self.redundancy, run.redundancy);
        self.wire_ratio = both(self.wire_ratio, run.wire_ratio);
        self.p99_ms = both(self.p99_ms, run.p99_ms);
        self.beside_mbps = mean(self.beside_mbps, run.beside_mbps);
        self.broken = self.broken.take().or(run.broken);
        self.runs += 1;
    }
}

impl Cell {
    fn key(&self) -> (&str, &str, &str, &str) {
        (&self.axis, &self.name, &self.load, &self.link)
    }

    /// How a class did against best effort.
    fn verdict(&self, class: usize) -> Option<Verdict> {
        self.classes[class].as_ref()?.verdict(self.classes[BEST_EFFORT].as_ref()?)
    }
}

/// Runs the map, or some cells of it, and writes what was requested.
pub fn run(request: &Request) -> Result<(), String> {
    let seed = request.seed.unwrap_or(SEED);
    let (draws, form) = match request.cells {
        Some(cells) => (cells, "drawn"),
        None => (DRAWN, "full"),
    };
    if request.quic {
        return quic::run(request, (seed, draws, form));
    }
    let is_whole = request.cells.is_none() && request.seed.is_none() && request.out.is_none();
    let is_committed = is_whole && request.runs == 1;
    let out = match (&request.out, is_committed) {
        (Some(out), _) => out.clone(),
        (None, true) => NOW.into(),
        (None, false) => "target/prrt_map.csv".into(),
    };
    if !request.redraw {
        simulate((seed, draws, form), request.runs, &out)?;
    }
    let (before, mut now) = (read(BEFORE)?, read(&out)?);
    for cell in &mut now {
        cell.possible = possible::of(cell);
    }
    let joined = join(&before, &now);
    if is_committed {
        write(TABLE, &table::markdown(&joined))?;
        write(PAGE, &page::html(&joined))?;
        println!("{}", table::summary(&joined).join("\n"));
    } else {
        println!("{}", table::markdown(&joined));
    }
    Ok(())
}

/// Runs the cells, each so many times with another seed of its link.
fn simulate((seed, draws, form): (u64, u64, &str), runs: u64, out: &str) -> Result<(), String> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    shell::run(&format!(
        "cargo run --release --quiet -p noctule-prrt --example sweep_prrt -- {seed} {draws} {form} {threads} 0 {} {runs} \
         > target/prrt_map.tmp && mv target/prrt_map.tmp {out}",
        u64::MAX
    ))
}

fn write(path: &str, text: &str) -> Result<(), String> {
    fs::write(shell::root().join(path), text).map_err(|error| format!("{path}: {error}"))
}

fn read(path: &str) -> Result<Map, String> {
    let full = shell::root().join(Path::new(path));
    let text = fs::read_to_string(&full).map_err(|error| format!("{path}: {error}"))?;
    parse(&text).map_err(|why| format!("{path}: {why}"))
}

fn parse(text: &str) -> Result<Map, String> {
    let mut cells: Map = Vec::new();
    let mut places = BTreeMap::new();
    for (number, line) in text.lines().enumerate().skip(1) {
        let columns: Vec<&str> = line.split(',').collect();
        let &[axis, name, load, deadline, beside, link, _, class, ref figures @ ..] = &columns[..] else {
            return Err(format!(
                "line {} is no row of a map; run `cargo xtask sweep prrt` again",
                number + 1
            ));
        };
        let refuse = || format!("line {}: there is no class \"{class}\"", number + 1);
        let class = CLASSES.iter().position(|known| *known == class).ok_or_else(refuse)?;
        let cell = Cell {
            axis: axis.into(),
            name: name.into(),
            load: load.into(),
            deadline_ms: deadline.parse().unwrap_or(0.0),
            beside: beside.into(),
            link: link.into(),
            classes: Default::default(),
            possible: None,
        };
        let place = *places.entry(columns[..6].join(",")).or_insert(cells.len());
        if place == cells.len() {
            cells.push(cell);
        }
        match &mut cells[place].classes[class] {
            Some(known) => known.add(figures_of(figures)),
            first => *first = Some(figures_of(figures)),
        }
    }
    Ok(cells)
}

fn figures_of(columns: &[&str]) -> Figures {
    let number = |place: usize| columns.get(place).and_then(|text| text.parse::<f64>().ok());
    let parts = columns.get(8).copied().unwrap_or_default();
    let broken = number(4).is_none().then(|| parts.to_owned());
    Figures {
        samples: number(0).unwrap_or(0.0),
        on_time: number(1).unwrap_or(0.0),
        redundancy: number(3),
        wire_ratio: number(4),
        p99_ms: number(6).filter(|ms| ms.is_finite()),
        beside_mbps: number(7).unwrap_or(0.0),
        runs: 1,
        parts: parts.split(' ').filter_map(|part| part.parse().ok()).collect(),
        broken,
    }
}

/// Each cell of now with that of before, if there was one.
fn join<'a>(before: &'a Map, now: &'a Map) -> Vec<(Option<&'a Cell>, &'a Cell)> {
    let known: BTreeMap<_, &Cell> = before.iter().map(|cell| (key_of(cell), cell)).collect();
    now.iter().map(|cell| (known.get(&key_of(cell)).copied(), cell)).collect()
}

fn key_of(cell: &Cell) -> (&str, &str, &str, &str, String) {
    let (axis, name, load, link) = cell.key();
    (axis, name, load, link, format!("{} {}", cell.deadline_ms, cell.beside))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(class: &str, on_time: u32, parts: &str) -> String {
        format!("jitter,a,115 B at 200 Hz,60,,delay=1ms,1,{class},2000,{on_time},0,0.1,1.8,1,2,0,{parts}\n")
    }

    #[test]
    fn worse_is_what_exceeds_allowance_and_interval() {
        let (all, most) = (["100"; 20].join(" "), ["99"; 20].join(" "));
        let scattered = format!("{} 0", ["100"; 19].join(" "));
        let head = "axis\n".to_owned();
        for (ours, expected) in
            [(&all, Verdict::Alike), (&most, Verdict::Worse(0.01)), (&scattered, Verdict::Alike)]
        {
            let text = head.clone() + &row("deadline bound", 2000, ours) + &row("best effort", 2000, &all);
            let map = parse(&text).unwrap();
            let verdict = map[0].verdict(0).unwrap();
            match (verdict, expected) {
                (Verdict::Worse(by), Verdict::Worse(expected)) => assert!((by - expected).abs() < 1e-9),
                (verdict, expected) => assert_eq!(verdict, expected, "{ours}"),
            }
        }
        assert!(parse("axis\na,b\n").unwrap_err().contains("line 2"));
        assert!(parse(&(head + &row("fast", 1, "1"))).unwrap_err().contains("fast"));
    }

    #[test]
    fn several_runs_of_a_cell_are_judged_by_the_runs_and_not_by_their_parts() {
        let whole = |class: &str, on_time: &[u32]| -> String {
            let of_part = |all: u32| [(all / 20).to_string().as_str(); 20].join(" ");
            on_time.iter().map(|all| row(class, *all, &of_part(*all))).collect()
        };
        let verdict = |ours: &[u32]| {
            let map = parse(&format!(
                "axis\n{}{}",
                whole("deadline bound", ours),
                whole("best effort", &[2000, 2000, 2000])
            ));
            let cell = map.unwrap().remove(0);
            assert_eq!(cell.classes[0].as_ref().unwrap().samples, 6000.0);
            cell.verdict(0).unwrap()
        };
        assert_eq!(verdict(&[2000, 2000, 1000]), Verdict::Alike, "once is no rule");
        assert!(matches!(verdict(&[1000, 1040, 960]), Verdict::Worse(by) if (by - 0.5).abs() < 1e-9));
    }

    /// Cells in which fewer deadline-bound samples are in time than before, by more than this share and the interval, and why.
    const FEWER: f64 = 0.005;
    const KNOWN_FEWER: &[(&str, &str, &str)] = &[
        ("drawn", "36", "a reliable stream of ours beside, which had nothing before, has 1.4 Mbit/s"),
        ("drawn", "50", "BBR beside has 3.3 Mbit/s in place of 2.2, for a fifth of the wire bytes of before"),
        ("drawn", "61", "a reliable stream of ours beside has 2.1 Mbit/s in place of 1.0"),
        ("drawn", "126", "a reliable stream of ours beside has 18 Mbit/s in place of 7"),
        ("drawn", "127", "20 % lost in bursts: 2.0 of 2.6 points came with commit 0dfc8e6; why is not known"),
    ];

    #[test]
    fn no_cell_has_fewer_in_time_than_before_but_those_whose_reason_is_known() {
        let (before, now) = (read(BEFORE).unwrap(), read(NOW).unwrap());
        let mut fewer = Vec::new();
        for (before, now) in join(&before, &now) {
            let figures = |cell: &Cell| cell.classes[0].clone().unwrap();
            match before.and_then(|before| figures(now).verdict(&figures(before))) {
                Some(Verdict::Worse(by)) if by > FEWER => {
                    println!("{} {}, {}: {:.1} points fewer", now.axis, now.name, now.load, by * 100.0);
                    fewer.push((now.axis.as_str(), now.name.as_str()));
                }
                _ => {}
            }
        }
        let known: Vec<(&str, &str)> = KNOWN_FEWER.iter().map(|(axis, name, _)| (*axis, *name)).collect();
        assert_eq!(
            fewer, known,
            "cells of {NOW} and those whose reason is known; mend the one, or name a reason"
        );
    }

    #[test]
    fn cells_are_joined_by_what_they_are_and_not_by_their_place() {
        let row = |name: &str| row("best effort", 1, "1 1").replace("jitter,a", &format!("jitter,{name}"));
        let before = parse(&format!("axis\n{}{}", row("a"), row("b"))).unwrap();
        let now = parse(&format!("axis\n{}{}{}", row("c"), row("b"), row("a"))).unwrap();
        let names: Vec<Option<&str>> =
            join(&before, &now).iter().map(|(before, _)| before.map(|cell| cell.name.as_str())).collect();
        assert_eq!(names, [None, Some("b"), Some("a")]);
    }
}
