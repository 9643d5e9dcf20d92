//! `noctule teleop ik`: inverse kinematics of one pose.

use std::error::Error;
use std::path::PathBuf;

use noctule_arm::dh::{Geometry, Series};
use noctule_arm::forward::pose_of;
use noctule_arm::inverse::inverse;
use noctule_arm::jacobian::{jacobian, singular_values};
use noctule_arm::{HOME_RAD, Pose};
use serde_json::{Value, json};

use super::numbers;
use crate::argument::ArgumentError;
use crate::{Outcome, units};

#[derive(clap::Args)]
pub(crate) struct IkArguments {
    /// Flange in the manual's base frame: metres and a quaternion, real part last
    #[arg(value_name = "X,Y,Z,QX,QY,QZ,QW", value_parser = pose, allow_hyphen_values = true)]
    pose: Pose,
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

/// Further away is rather a mistake than a pose, m.
const REACH_MAX_M: f64 = 1_000.0;

fn pose(text: &str) -> Result<Pose, ArgumentError> {
    let numbers = numbers::<7>(text)?;
    let [x, y, z, qx, qy, qz, qw] = numbers;
    let refused = |fault| ArgumentError::Pose { text: text.to_owned(), fault };
    if let Some(far) = [x, y, z].into_iter().find(|metres| metres.abs() > REACH_MAX_M) {
        return Err(refused(format!("{far:e} m is further than {REACH_MAX_M} m away")));
    }
    let length = qx.hypot(qy).hypot(qz).hypot(qw);
    pose_of(numbers)
        .ok_or_else(|| refused(format!("the quaternion's length is {length:.4}, not 1 within 1 %")))
}

pub(crate) fn run(arguments: &IkArguments) -> Result<Outcome, Box<dyn Error>> {
    let geometry = match &arguments.geometry {
        Some(path) => read(path)?,
        None => arguments.series.geometry(),
    };
    let found = inverse(&geometry, &arguments.pose, &HOME_RAD);
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
