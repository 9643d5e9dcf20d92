//! An arm that follows the arrivals of a scenario's cells: what each transport costs in millimetres.
//!
//! Arrivals are live, the arm is in virtual time: its controller receives each pose when the cell's message arrived. Beside it stand the
//! same link in virtual time, as a bare datagram crosses it, and the theory's line.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::Path;

use noctule_arm::controller::CommandMode;
use noctule_arm::hand::Hand;
use noctule_lab::dimensions::Link;
use noctule_lab::run::{Cell, Run};
use noctule_lab::samples::CellSamples;
use noctule_lab_report::panel::{MarkKind, Panel, PanelAxis, PanelMark, Spacing, Unit};
use noctule_lab_report::pictures;
use noctule_netsim::link::LinkSpec;
use noctule_teleop::experiment::arrivals::{self, Arrival};
use noctule_teleop::experiment::commands::{self, CommandCost, CommandExperiment};
use noctule_timebase::Span;
use serde::Serialize;

use crate::units;

/// Results, beside `run.json`.
pub(crate) const FILE: &str = "arm.json";
const PICTURE: &str = "arm.svg";
/// As measured cells last about as long: two periods of the figure.
const VIRTUAL: Span = Span::from_s(8);

/// A cell with an arm behind it.
#[derive(Serialize)]
struct Followed {
    /// Peer and the options in which it differs.
    transport: String,
    link: Link,
    rate_hz: f64,
    trial: u32,
    /// Reasons for which the cell is invalid; empty if it is valid.
    why_invalid: Vec<String>,
    /// Why there are no figures; `null` if there are.
    why_not: Option<String>,
    hold: Option<Costs>,
    age: Option<Costs>,
}

/// Cost measured live, and the cost that a model predicts.
#[derive(Serialize)]
struct Costs {
    live: CommandCost,
    /// Cost by a model of the link, crossed by bare datagrams; `null` for what is no link or has another rate than 1 kHz.
    modelled: Option<CommandCost>,
}

/// Computes, writes `arm.json` and `arm.svg`, and returns the table.
pub(crate) fn follow(directory: &Path, run: &Run, samples: &[CellSamples]) -> Result<String, Box<dyn Error>> {
    let mut models = Models::default();
    let mut followed = Vec::new();
    for (cell, samples) in run.cells.iter().zip(samples) {
        anstream::eprintln!("an arm behind {} over {}", transport(cell), cell.link);
        followed.push(cell_costs(cell, samples, &mut models)?);
    }
    fs::write(directory.join(FILE), serde_json::to_string_pretty(&followed)? + "\n")?;
    let panels = [panel(&followed, CommandMode::Hold), panel(&followed, CommandMode::Age)];
    pictures::write_sheet(&directory.join(PICTURE), &panels, "live arrivals, the arm in virtual time")?;
    Ok(table(&followed))
}

fn transport(cell: &Cell) -> String {
    let named = ["reliability", "baud", "gateway", "delivery"];
    let options = named.iter().filter_map(|name| cell.options.get(*name));
    std::iter::once(&cell.peer).chain(options).cloned().collect::<Vec<_>>().join(" ")
}

fn cell_costs(cell: &Cell, samples: &CellSamples, models: &mut Models) -> Result<Followed, Box<dyn Error>> {
    let arrivals: Vec<Arrival> = samples
        .iter()
        .map(|sample| Arrival { sent_ns: sample.sent_ns, received_ns: sample.received_ns })
        .collect();
    let rate_hz = cell.rate_hz.unwrap_or(0.0);
    let mut why_not = None;
    let mut of = |mode| -> Result<Option<Costs>, Box<dyn Error>> {
        match arrivals::run(&arrivals, cell.sent, mode) {
            Ok(live) => {
                let modelled = if rate_hz == 1_000.0 { models.of(&cell.link, mode)? } else { None };
                Ok(Some(Costs { live, modelled }))
            }
            Err(why) => {
                why_not = Some(why.to_string());
                Ok(None)
            }
        }
    };
    let (hold, age) = (of(CommandMode::Hold)?, of(CommandMode::Age)?);
    Ok(Followed {
        transport: transport(cell),
        link: cell.link.clone(),
        rate_hz,
        trial: cell.trial,
        why_invalid: cell.why_invalid.iter().map(ToString::to_string).collect(),
        why_not,
        hold,
        age,
    })
}

/// Links in virtual time; each is computed once.
#[derive(Default)]
struct Models(BTreeMap<String, CommandCost>);

impl Models {
    fn of(&mut self, link: &Link, mode: CommandMode) -> Result<Option<CommandCost>, Box<dyn Error>> {
        let text = match link {
            Link::SharedMemory | Link::Udp => "delay=0",
            Link::Between(text) => text,
            _ => return Ok(None),
        };
        let key = format!("{mode:?} {text}");
        if let Some(cost) = self.0.get(&key) {
            return Ok(Some(*cost));
        }
        let spec: LinkSpec = text.parse()?;
        let cost = commands::run(&CommandExperiment {
            duration: VIRTUAL,
            ..CommandExperiment::new(mode, spec.a_to_b)
        });
        self.0.insert(key, cost);
        Ok(Some(cost))
    }
}

fn of(followed: &Followed, mode: CommandMode) -> Option<&Costs> {
    match mode {
        CommandMode::Hold => followed.hold.as_ref(),
        CommandMode::Age => followed.age.as_ref(),
    }
}

fn table(all: &[Followed]) -> String {
    let heads = [
        "transport",
        "link",
        "Hz",
        "age ms",
        "hold mm",
        "modelled",
        "theory",
        "by age mm",
        "modelled",
        "theory",
        "",
    ];
    let mut lines = vec![heads.map(str::to_owned).to_vec()];
    for followed in all {
        let mut line =
            vec![followed.transport.clone(), followed.link.to_string(), format!("{}", followed.rate_hz)];
        let figures = |costs: Option<&Costs>| -> [String; 3] {
            let Some(Costs { live, modelled }) = costs else { return std::array::from_fn(|_| "–".into()) };
            let modelled = modelled.map_or("–".into(), |cost| format!("{:.2}", cost.rms_mm));
            [format!("{:.2}", live.rms_mm), modelled, format!("{:.2}", live.theory_mm)]
        };
        let age =
            followed.age.as_ref().map_or("–".into(), |costs| format!("{:.2}", costs.live.mean_age_ms));
        line.push(age);
        line.extend(figures(followed.hold.as_ref()));
        line.extend(figures(followed.age.as_ref()));
        let stopped = [&followed.hold, &followed.age].into_iter().flatten().any(|costs| !costs.live.followed);
        line.push(match (&followed.why_not, stopped) {
            (Some(why), _) => why.clone(),
            (None, true) => "the arm stopped".into(),
            (None, false) if !followed.why_invalid.is_empty() => followed.why_invalid.join("; "),
            (None, false) => String::new(),
        });
        lines.push(line);
    }
    let right: Vec<bool> = (0..heads.len()).map(|column| (2..10).contains(&column)).collect();
    units::columns(&lines, &right)
}

/// Error in mm that a constant age causes by theory: the figure's rms speed times it, or half of its rms acceleration times its square.
fn theory_mm(mode: CommandMode, age_s: f64) -> f64 {
    let Hand::Lissajous { amplitude_m, frequency_hz } = Hand::FIGURE else { return f64::NAN };
    let rms = |order: i32| {
        let parts = amplitude_m.iter().zip(frequency_hz);
        let squares =
            parts.map(|(amplitude, hz)| (amplitude * (std::f64::consts::TAU * hz).powi(order)).powi(2) / 2.0);
        squares.sum::<f64>().sqrt()
    };
    match mode {
        CommandMode::Hold => rms(1) * age_s * 1e3,
        CommandMode::Age => rms(2) * age_s * age_s / 2.0 * 1e3,
    }
}

/// One of a cell's costs.
type Pick = fn(&Costs) -> Option<CommandCost>;

/// Errors over the mean age, and the line of the theory through them.
fn panel(all: &[Followed], mode: CommandMode) -> Panel {
    let valid = all.iter().filter(|followed| followed.why_invalid.is_empty());
    let costs: Vec<&Costs> = valid.filter_map(|followed| of(followed, mode)).collect();
    let points = |of: Pick| -> Vec<(f64, f64)> {
        let found = costs.iter().filter_map(|costs| of(costs));
        found.map(|cost| (cost.mean_age_ms * 1e-3, cost.rms_mm)).collect()
    };
    let (live, modelled) = (points(|costs| Some(costs.live)), points(|costs| costs.modelled));
    let oldest_s = live.iter().chain(&modelled).map(|(age_s, _)| *age_s).fold(0.0, f64::max);
    let line: Vec<(f64, f64)> = (0..=100)
        .map(|step| oldest_s * f64::from(step) / 100.0)
        .map(|age_s| (age_s, theory_mm(mode, age_s)))
        .collect();
    let (id, title, caption) = match mode {
        CommandMode::Hold => ("hold", "Commands as they are", "Speed × age"),
        CommandMode::Age => ("age", "Commands extrapolated by their age", "Half of the acceleration × age²"),
    };
    let axis = |label, unit| PanelAxis { label, spacing: Spacing::Linear, unit };
    Panel {
        id,
        title: title.into(),
        caption: caption.into(),
        x: axis("mean age of the command", Unit::Seconds),
        y: axis("error of the tool, rms", Unit::Millimetres),
        marks: vec![
            PanelMark::of("theory", 2, MarkKind::Line, &line),
            PanelMark::of("in virtual time", 1, MarkKind::Ring, &modelled),
            PanelMark::of("live", 0, MarkKind::Ring, &live),
        ],
        lines: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use noctule_lab::dimensions::Mode;
    use noctule_lab::samples::Sample;

    use super::*;

    fn measured(delay_ns: i64, count: u64) -> (Cell, CellSamples) {
        let mut cell = Cell::unmeasured("udp", "link:delay=20ms".into(), Mode::OneWay);
        (cell.rate_hz, cell.sent) = (Some(1_000.0), count);
        cell.why_invalid.clear();
        let sample = |index: u64| {
            let sent_ns = index as i64 * 1_000_000;
            Sample { index, node: 1, scheduled_ns: sent_ns, sent_ns, received_ns: sent_ns + delay_ns }
        };
        (cell, (0..count).map(sample).collect())
    }

    #[test]
    fn a_cell_of_20_ms_costs_what_theory_and_virtual_time_say() {
        let (cell, samples) = measured(20_000_000, 12_000);
        let followed = cell_costs(&cell, &samples, &mut Models::default()).unwrap();
        for costs in [followed.hold.as_ref().unwrap(), followed.age.as_ref().unwrap()] {
            let modelled = costs.modelled.unwrap();
            assert!(
                (costs.live.rms_mm - modelled.rms_mm).abs() < 0.06 * modelled.rms_mm,
                "{costs:?}",
                costs = costs.live
            );
        }
        for (mode, costs) in [(CommandMode::Hold, &followed.hold), (CommandMode::Age, &followed.age)] {
            let expected = costs.as_ref().unwrap().live.theory_mm;
            assert!((theory_mm(mode, 0.0205) - expected).abs() < 0.01 * expected, "{mode:?}: {expected}");
        }
        let text = table(&[followed]);
        assert!(text.contains("8.2") && text.contains("0.5"), "{text}");
    }

    #[test]
    fn a_cell_that_is_too_short_says_so_and_a_sheet_is_drawn() {
        let (cell, samples) = measured(1_000_000, 3_000);
        let followed = cell_costs(&cell, &samples, &mut Models::default()).unwrap();
        assert!(followed.why_not.as_ref().unwrap().contains("let the cell run longer"));
        let folder = tempfile::tempdir().unwrap();
        let panels = [panel(&[followed], CommandMode::Hold)];
        pictures::write_sheet(&folder.path().join(PICTURE), &panels, "test").unwrap();
    }
}
