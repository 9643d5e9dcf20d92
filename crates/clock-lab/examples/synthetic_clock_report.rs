//! Writes the page of a simulated trace with a step: every chart, a withdrawn bound, rejected exchanges.
//!
//! For working on the page and for its browser test.
//! `cargo run -p noctule-clock-lab --example synthetic_clock_report -- FILE.html [SCENARIO] [SEED]`

use std::path::Path;

use noctule_clock_lab::page::{Heading, write_page};
use noctule_clock_lab::{TraceRow, judge, panels::panels, replay};
use noctule_netsim::{Scenario, round_trips};
use noctule_time_sync::{BoundedConfig, EstimatorKind};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().ok_or("usage: synthetic_clock_report FILE.html [SCENARIO] [SEED]")?;
    let name = arguments.next().unwrap_or("F".to_owned());
    let seed = arguments.next().map_or(Ok(1), |text| text.parse())?;
    let scenario = Scenario::named(&name).ok_or("there is no scenario of that name")?;
    let rows: Vec<TraceRow> = round_trips(&scenario, seed).into_iter().map(TraceRow::from).collect();
    let replayed = replay(&rows, &mut EstimatorKind::Bounded.build(BoundedConfig::default()));
    let trace = format!("scenario {name}, seed {seed}");
    let heading = Heading { trace: &trace, estimator: "bounded".to_owned(), figures: Vec::new() };
    Ok(write_page(Path::new(&file), &heading, &judge(&rows, &replayed), &panels(&rows, &replayed))?)
}
