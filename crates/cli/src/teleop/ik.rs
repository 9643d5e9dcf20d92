//! `noctule teleop ik`: inverse kinematics of one pose.

use std::error::Error;
use std::path::PathBuf;

use noctule_arm::HOME_RAD;
use noctule_arm::dh::{Geometry, Series};
use noctule_arm::forward::pose_of;
use noctule_arm::inverse::inverse;
use noctule_arm::jacobian::{jacobian, singular_values};
use serde_json::{Value, json};

use super::numbers;
use crate::{Outcome, units};

#[derive(clap::Args)]
pub(crate) struct IkArguments {
    /// Flange in the manual's base frame: metres and a quaternion, real part last
    #[arg(value_name = "X,Y,Z,QX,QY,QZ,QW", value_parser = numbers::<7>, allow_hyphen_values = true)]
    pose: [f64; 7],
    /// Hardware series of the UR5
    #[arg(long, default_value = "3", value_name = "1|2|3|e")]
    series: Series,
    /// Lengths of another arm of this kind, as TOML: d1_m, a2_m, a3_m, d4_m, d5_m, d6_m
    #[arg(long, value_name = "FILE", conflicts_with = "series")]
    geometry: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &IkArguments) -> Result<Outcome, Box<dyn Error>> {
    let pose = pose_of(arguments.pose).ok_or(
        "the quaternion's length is not one within 1 %; write the pose as X,Y,Z,QX,QY,QZ,QW with the real part last",
    )?;
    let geometry = match &arguments.geometry {
        Some(path) => read(path)?,
        None => arguments.series.geometry(),
    };
    let found = inverse(&geometry, &pose, &HOME_RAD);
    if arguments.json {
        let solutions: Vec<&[f64]> = Vec::new();
        let mut object = json!({ "solutions": solutions });
        object["solutions"] =
            found.solutions().map(|solution| json!(solution.joints_rad.as_slice())).collect();
        object["branches"] = found.solutions().map(|solution| json!(solution.branch.to_string())).collect();
        object["sigma_min"] = found
            .solutions()
            .map(|solution| json!(singular_values(&jacobian(&geometry, &solution.joints_rad))[5]))
            .collect();
        object["missing"] = found
            .missing()
            .map(|missing| -> Value {
                json!({
                    "branch": missing.branch.to_string(),
                    "reason": missing.reason,
                    "sentence": missing.reason.to_string(),
                })
            })
            .collect();
        anstream::println!("{object}");
        return Ok(Outcome::Done);
    }
    let header = ["branch", "θ1", "θ2", "θ3", "θ4", "θ5", "θ6", "σ min"].map(str::to_owned).to_vec();
    let rows = found.solutions().map(|solution| {
        let sigma = singular_values(&jacobian(&geometry, &solution.joints_rad))[5];
        let angles = solution.joints_rad.iter().map(|angle| format!("{angle:.6}"));
        [solution.branch.to_string()].into_iter().chain(angles).chain([format!("{sigma:.3}")]).collect()
    });
    let rows: Vec<Vec<String>> = [header].into_iter().chain(rows).collect();
    anstream::print!("{}", units::columns(&rows, &[false, true, true, true, true, true, true, true]));
    for missing in found.missing() {
        anstream::println!("{}  {}", missing.branch, missing.reason);
    }
    Ok(Outcome::Done)
}

fn read(path: &std::path::Path) -> Result<Geometry, Box<dyn Error>> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| format!("cannot read {shown}: {error}"))?;
    let geometry: Geometry =
        toml::from_str(&text).map_err(|error| format!("{shown}: {}", error.message()))?;
    Ok(geometry.checked().map_err(|error| format!("{shown}: {error}"))?)
}
