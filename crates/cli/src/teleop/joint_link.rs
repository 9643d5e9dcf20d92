//! The two sides of a joint's loop that is closed over a network.

use std::error::Error;

use noctule_arm::joint_loop::LoopConfig;
use noctule_teleop::joint_link::{run_controller, run_motor};
use noctule_timebase::Span;

use super::live::{Common, End, node};
use super::time_keeping::TimeKeeping;
use crate::Outcome;

#[derive(clap::Args)]
pub(crate) struct JointArguments {
    #[command(flatten)]
    common: Common,
    /// How long the loop runs after its reference was stepped
    #[arg(long, value_name = "TIME", value_parser = super::live::time, default_value = "8s")]
    duration: Span,
}

pub(crate) fn motor(arguments: &JointArguments) -> Result<Outcome, Box<dyn Error>> {
    let end = End::new(&arguments.common)?;
    let node = node(&arguments.common, "motor")?;
    let _kept = TimeKeeping::begin(arguments.common.priority)?;
    let run = run_motor(&node, &LoopConfig::seed(), arguments.duration, &|| end.is_due())?;
    anstream::println!("{}", serde_json::to_string(&run)?);
    Ok(Outcome::Done)
}

pub(crate) fn controller(arguments: &JointArguments) -> Result<Outcome, Box<dyn Error>> {
    let end = End::new(&arguments.common)?;
    let node = node(&arguments.common, "joint-controller")?;
    let _kept = TimeKeeping::begin(arguments.common.priority)?;
    run_controller(&node, &LoopConfig::seed(), &|| end.is_due())?;
    Ok(Outcome::Done)
}
