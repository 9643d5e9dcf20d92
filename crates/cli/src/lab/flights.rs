//! Scenarios that fly: `[[flights]]` instead of `[[cells]]`.
//!
//! Each flight is `noctule fcu` with a clock and a protocol. The result is a distance, not a latency; it is written to
//! `flights.json` and printed as a table. Flights are taken in turns, trial by trial.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::time::Duration;

use noctule::clock::LocalClock;
use noctule_lab::statistics::median;
use noctule_lab_report::text_table;
use serde::Deserialize;
use serde_json::{Value, json};

use super::OutputArguments;
use crate::Outcome;
use crate::argument::ArgumentError;
use crate::fcu::{Flight, ProtocolName, fly_both};

/// A scenario of flights.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Scenario {
    name: String,
    description: String,
    seconds: f64,
    warm_up_seconds: f64,
    trials: u32,
    flights: Vec<FlightGroup>,
    smoke: Option<Short>,
}

/// Flights that differ in their protocol.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FlightGroup {
    name: String,
    clock: String,
    protocols: Vec<ProtocolName>,
}

/// The short form.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Short {
    seconds: f64,
    warm_up_seconds: f64,
    trials: u32,
}

/// The text of a scenario of flights, if the file is one.
pub(super) fn read(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let table: toml::Table = text.parse().ok()?;
    table.contains_key("flights").then_some(text)
}

/// Flies all of it.
pub(super) fn run(text: &str, smoke: bool, output: &OutputArguments) -> Result<Outcome, Box<dyn Error>> {
    let scenario: Scenario = toml::from_str(text).map_err(|error| format!("the scenario: {error}"))?;
    let form = match scenario.smoke {
        Some(short) if smoke => short,
        _ => Short {
            seconds: scenario.seconds,
            warm_up_seconds: scenario.warm_up_seconds,
            trials: scenario.trials,
        },
    };
    let mut flights = Vec::new();
    let mut valid = true;
    for trial in 0..form.trials {
        for group in &scenario.flights {
            let clock: LocalClock =
                group.clock.parse().map_err(|error| format!("flight {}: {error}", group.name))?;
            for protocol in &group.protocols {
                let (warm_up, seconds) = (duration(form.warm_up_seconds)?, duration(form.seconds)?);
                let flight = Flight::of(*protocol, clock.clone(), (warm_up, seconds), 1 + u64::from(trial));
                anstream::eprintln!("{} over {}, trial {}", group.name, protocol.word(), trial + 1);
                let result = fly_both(&flight)?;
                valid &= result.valid;
                flights.push(json!({
                    "flight": group.name, "clock": group.clock, "trial": trial, "valid": result.valid,
                    "result": result.value,
                }));
            }
        }
    }
    let value = json!({
        "schema": 1, "scenario": scenario.name, "description": scenario.description, "flights": flights,
    });
    fs::write(output.out.join("flights.json"), serde_json::to_string_pretty(&value)?)?;
    match output.json {
        true => anstream::println!("{value}"),
        false => anstream::print!("{}", table(&value)),
    }
    Ok(if valid { Outcome::Done } else { Outcome::NotValid })
}

fn duration(seconds: f64) -> Result<Duration, ArgumentError> {
    Duration::try_from_secs_f64(seconds).map_err(|_| ArgumentError::Length(seconds))
}

/// A line for each flight: root mean square of the distance, m, median of the trials.
fn table(value: &Value) -> String {
    let mut rows: Vec<Vec<String>> = Vec::new();
    let all = value["flights"].as_array().map(Vec::as_slice).unwrap_or_default();
    let key = |flight: &Value| {
        (flight["flight"].as_str().map(String::from), flight["result"]["protocol"].as_str().map(String::from))
    };
    let mut seen = Vec::new();
    for flight in all {
        if seen.contains(&key(flight)) {
            continue;
        }
        seen.push(key(flight));
        let same: Vec<&Value> = all.iter().filter(|other| key(other) == key(flight)).collect();
        let mut row = vec![
            flight["flight"].as_str().unwrap_or("").to_owned(),
            flight["result"]["protocol"].as_str().unwrap_or("").to_owned(),
        ];
        for correction in 0..4 {
            let rms =
                |flight: &&Value| flight["result"]["board"]["fusion"][correction]["position_rms_m"].as_f64();
            row.push(
                median(same.iter().filter_map(rms).collect()).map_or("-".into(), |m| format!("{m:.3} m")),
            );
        }
        rows.push(row);
    }
    let head = ["flight", "protocol", "uncorrected", "ema", "bounded", "exact"].map(String::from).to_vec();
    rows.insert(0, head);
    format!(
        "{}: {}\n\n{}",
        value["scenario"].as_str().unwrap_or(""),
        value["description"].as_str().unwrap_or(""),
        text_table::align(&rows, 0, &[true, true, false, false, false, false])
    )
}
