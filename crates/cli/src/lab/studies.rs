//! Scenarios of the tele-operation's experiments: `[[studies]]` instead of `[[cells]]`.
//!
//! Each is one of `noctule teleop study`, with links or delays of its own. The result is a distance or a stability, not a latency;
//! it is written to `studies.json` and printed as a table.

use std::error::Error;
use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};

use super::OutputArguments;
use crate::Outcome;
use crate::teleop::study::{Study, table};

/// A scenario of studies.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Scenario {
    name: String,
    description: String,
    studies: Vec<Study>,
    /// The short form, in their place.
    #[serde(default)]
    smoke: Vec<Study>,
}

/// The text of a scenario of studies, if the file is one.
pub(super) fn read(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let table: toml::Table = text.parse().ok()?;
    table.contains_key("studies").then_some(text)
}

/// Runs all of it.
pub(super) fn run(text: &str, smoke: bool, output: &OutputArguments) -> Result<Outcome, Box<dyn Error>> {
    let scenario: Scenario = toml::from_str(text).map_err(|error| format!("the scenario: {error}"))?;
    let studies = if smoke && !scenario.smoke.is_empty() { &scenario.smoke } else { &scenario.studies };
    let mut results: Vec<Value> = Vec::new();
    for study in studies {
        let rows = study.rows()?;
        if !output.json {
            anstream::println!("{}\n\n{}", study.title(), table(&rows));
        }
        results.push(json!({ "title": study.title(), "rows": rows }));
    }
    let whole = json!({ "name": scenario.name, "description": scenario.description, "studies": results });
    let text = serde_json::to_string_pretty(&whole)? + "\n";
    fs::write(output.out.join("studies.json"), &text)?;
    if output.json {
        anstream::print!("{text}");
    }
    Ok(Outcome::Done)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn the_scenarios_of_the_repository_run_in_their_short_form() {
        for text in [
            include_str!("../../../../scenarios/teleop_joint.toml"),
            include_str!("../../../../scenarios/teleop_human.toml"),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let output = OutputArguments { out: folder.path().to_owned(), json: true };
            run(text, true, &output).unwrap();
            let written: Value =
                serde_json::from_slice(&fs::read(folder.path().join("studies.json")).unwrap()).unwrap();
            let rows = written["studies"][0]["rows"].as_array().unwrap();
            let first_is_stable = &rows[0]["theory_stable"];
            assert_eq!(
                (first_is_stable, &rows.last().unwrap()["theory_stable"]),
                (&true.into(), &false.into())
            );
        }
    }

    #[test]
    fn a_reflected_force_is_stable_as_far_as_theory_says() {
        let folder = tempfile::tempdir().unwrap();
        let output = OutputArguments { out: folder.path().to_owned(), json: true };
        run(include_str!("../../../../scenarios/teleop_force.toml"), true, &output).unwrap();
        let written: Value =
            serde_json::from_slice(&fs::read(folder.path().join("studies.json")).unwrap()).unwrap();
        let row = &written["studies"][0]["rows"][0];
        let (found, theory) = (row["stable_to_ms"].as_f64().unwrap(), row["theory_ms"].as_f64().unwrap());
        assert!((found - theory).abs() < 0.6, "{row}");
    }

    #[test]
    fn what_is_no_study_is_refused() {
        let output = OutputArguments { out: std::env::temp_dir(), json: true };
        for (text, wanted) in [
            ("studies = [{ experiment = \"weather\" }]", "the scenario"),
            (
                "name = \"a\"\ndescription = \"\"\nstudies = [{ experiment = \"human\", delays_ms = [-1] }]",
                "not between",
            ),
            (
                "name = \"a\"\ndescription = \"\"\nstudies = [{ experiment = \"human\", live = true }]",
                "virtual time",
            ),
        ] {
            let refused = run(text, false, &output).err().unwrap().to_string();
            assert!(refused.contains(wanted), "{refused}");
        }
    }
}
