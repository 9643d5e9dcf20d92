//! `noctule swarm study`: what age costs. One scenario at several delays of the states, with each way of using them.

use std::error::Error;
use std::path::{Path, PathBuf};

use noctule_lab_report::panel::{MarkKind, Panel, PanelAxis, PanelMark, Spacing, Unit};
use noctule_lab_report::pictures::write_sheet;
use noctule_swarm::measures::Measures;
use noctule_swarm::neighbours::Knowledge;
use noctule_swarm::{Scenario, Simulation};
use noctule_timebase::Span;

use crate::Outcome;
use crate::argument::ArgumentError;

/// Longest list of `--delays`.
const DELAYS_MAX: usize = 32;
/// A way of using a state: how it is used, its name, its colour in pictures.
const WAYS: [(Knowledge, &str, usize); 3] = [
    (Knowledge::Hold, "held as it came", 1),
    (Knowledge::Age, "extrapolated by its age", 0),
    (Knowledge::Bound, "extrapolated, radius by age and bound", 2),
];

#[derive(clap::Args)]
pub(crate) struct StudyArguments {
    /// The scenario, e.g. scenarios/swarm_formation.toml; its delay is replaced
    scenario: PathBuf,
    /// Delays until a state is handed to the radio, ms
    #[arg(long, value_name = "MS,MS,...", default_value = "0,50,100,200,350,500,750,1000", value_parser = delays)]
    delays: Delays,
    /// Seeds of each cell
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=1000))]
    seeds: u64,
    /// The first seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Draw separation, and the formation's error where the mission is one, over age
    #[arg(long, value_name = "FILE.svg|png", value_parser = crate::sync::picture_path)]
    picture: Option<PathBuf>,
}

#[derive(Clone)]
struct Delays(Vec<Span>);

fn delays(text: &str) -> Result<Delays, ArgumentError> {
    let one = |word: &str| {
        let ms: f64 = word.trim().parse().ok()?;
        (0.0..=5000.0).contains(&ms).then(|| Span::from_ns((ms * 1e6) as i64))
    };
    let delays: Option<Vec<Span>> = text.split(',').map(one).collect();
    let delays = delays.filter(|delays| delays.len() <= DELAYS_MAX);
    delays.map(Delays).ok_or_else(|| ArgumentError::Delays { text: text.to_owned(), most: DELAYS_MAX })
}

/// Sums over the seeds of a cell.
struct Cell {
    way: usize,
    delay: Span,
    /// Mean of the medians.
    age_ms: f64,
    collisions: usize,
    /// Least distance over all seeds, m.
    least_m: f64,
    formation_m: Option<f64>,
    left: u64,
}

pub(super) fn study(arguments: &StudyArguments) -> Result<Outcome, Box<dyn Error>> {
    let scenario = super::read(&arguments.scenario)?;
    if scenario.air.is_none() {
        return Err("a study needs an air: with air.perfect there are no ages; leave it out".into());
    }
    let mut cells = Vec::new();
    anstream::println!(
        "{}, {} drones, seeds {} to {}\n\n| neighbours | delay ms | age p50 ms | collided pairs | least separation m | formation error rms m | bounds left |\n\
         |---|---:|---:|---:|---:|---:|---:|",
        scenario.name,
        scenario.nodes,
        arguments.seed,
        arguments.seed + arguments.seeds - 1
    );
    for way in 0..WAYS.len() {
        for delay in &arguments.delays.0 {
            let cell = fly(&scenario, way, *delay, arguments.seed..arguments.seed + arguments.seeds)?;
            anstream::println!("{}", row(&cell));
            cells.push(cell);
        }
    }
    if let Some(path) = &arguments.picture {
        let facts = format!(
            "{} drones, {} seeds a point, simulated; `noctule swarm study {}`",
            scenario.nodes,
            arguments.seeds,
            name_of(&arguments.scenario)
        );
        write_sheet(path, &panels(&cells), &facts)
            .map_err(|error| format!("{} cannot be written: {error}; name another file", path.display()))?;
    }
    Ok(if cells.iter().all(|cell| cell.left == 0) { Outcome::Done } else { Outcome::NotValid })
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn fly(
    scenario: &Scenario,
    way: usize,
    delay: Span,
    seeds: std::ops::Range<u64>,
) -> Result<Cell, Box<dyn Error>> {
    let mut flown = scenario.clone();
    flown.states.delay = delay;
    flown.states.knowledge = WAYS[way].0;
    let runs: Vec<Measures> = seeds
        .map(|seed| Ok(Simulation::new(flown.clone(), seed)?.run()))
        .collect::<Result<_, Box<dyn Error>>>()?;
    let mean =
        |values: Vec<f64>| (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64);
    Ok(Cell {
        way,
        delay,
        age_ms: mean(runs.iter().filter_map(|run| run.age_p50_ms).collect()).unwrap_or(f64::NAN),
        collisions: runs.iter().map(|run| run.collisions).sum(),
        least_m: runs.iter().map(|run| run.min_separation_m).fold(f64::MAX, f64::min),
        formation_m: mean(runs.iter().filter_map(|run| run.formation_error_rms_m).collect()),
        left: runs.iter().map(|run| run.bound_violations).sum(),
    })
}

fn row(cell: &Cell) -> String {
    let formation = cell.formation_m.map_or_else(|| "–".to_owned(), |error| format!("{error:.2}"));
    let left = if WAYS[cell.way].0 == Knowledge::Bound { cell.left.to_string() } else { "–".to_owned() };
    format!(
        "| {} | {:.0} | {:.0} | {} | {:.2} | {formation} | {left} |",
        WAYS[cell.way].1,
        1e3 * cell.delay.as_s_f64(),
        cell.age_ms,
        cell.collisions,
        cell.least_m
    )
}

/// Figure of a cell that is drawn, m.
type Figure = fn(&Cell) -> Option<f64>;

fn panels(cells: &[Cell]) -> Vec<Panel> {
    let age =
        PanelAxis { label: "median age at a decision", spacing: Spacing::Linear, unit: Unit::Nanoseconds };
    let panel = |id, (title, label): (&str, &'static str), of: Figure| Panel {
        id,
        title: title.to_owned(),
        caption: String::new(),
        x: age,
        y: PanelAxis { label, spacing: Spacing::Linear, unit: Unit::Metres },
        marks: marks(cells, of),
        lines: Vec::new(),
    };
    let mut least = panel("separation", ("Least separation over age", "centres of any two drones"), |cell| {
        Some(cell.least_m)
    });
    least.lines.push(("bodies touch", 1.0));
    let mut panels = vec![least];
    if cells.iter().any(|cell| cell.formation_m.is_some()) {
        let heading = ("Formation error over age", "distance to the slot, rms");
        panels.push(panel("formation", heading, |cell| cell.formation_m));
    }
    panels
}

fn marks(cells: &[Cell], of: Figure) -> Vec<PanelMark> {
    let mark = |(way, (_, label, colour)): (usize, &(Knowledge, &'static str, usize))| {
        let of_way = cells.iter().filter(|cell| cell.way == way);
        let mut points: Vec<(f64, f64)> = of_way
            .filter_map(|cell| Some((1e6 * cell.age_ms, of(cell)?)))
            .filter(|p| p.0.is_finite())
            .collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        PanelMark::of(label, *colour, MarkKind::Steps, &points)
    };
    WAYS.iter().enumerate().map(mark).collect()
}
