//! `noctule teleop error`: how far the arm was from the hand in a recorded run.

use std::error::Error;
use std::path::PathBuf;

use noctule_teleop::experiment::recorded;
use noctule_teleop::recording;

use crate::Outcome;

#[derive(clap::Args)]
pub(crate) struct ErrorArguments {
    /// The file that `noctule teleop --record` wrote, beside the master
    #[arg(value_name = "FILE.mcap")]
    file: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &ErrorArguments) -> Result<Outcome, Box<dyn Error>> {
    let cost = recorded::cost(&recording::read(&arguments.file)?)?;
    if arguments.json {
        anstream::println!("{}", serde_json::to_string(&cost)?);
    } else {
        let bound = cost.bound_ms.map_or("?".into(), |bound| format!("{bound:.2}"));
        anstream::println!(
            "error to the hand: {:.2} mm rms, {:.2} mm at most\nmean age of the command used: {:.2} ms ± {bound}; held it would \
             cost {:.2} mm\n{} states compared, {} stops",
            cost.rms_mm,
            cost.max_mm,
            cost.mean_age_ms,
            cost.hold_theory_mm,
            cost.states,
            cost.stops
        );
        if cost.offset_doubt_mm > 0.1 {
            anstream::println!(
                "the clutch engaged while the hand moved: {:.1} mm of the error may be the offset of hand and arm at that moment",
                cost.offset_doubt_mm
            );
        }
    }
    Ok(Outcome::Done)
}
