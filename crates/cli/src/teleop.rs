//! `noctule teleop`: an arm under an operator's hand, and what latency costs.

mod analyse;
mod cost;
mod ik;

use std::error::Error;

use crate::Outcome;

#[derive(clap::Args)]
pub(crate) struct TeleopArguments {
    #[command(subcommand)]
    command: Subcommand,
}

#[derive(clap::Subcommand)]
enum Subcommand {
    /// Margins, poles and step response of a joint's loop, continuous and as it runs
    Analyse(analyse::AnalyseArguments),
    /// All joint angles for a pose of the flange, and why the others do not exist
    Ik(ik::IkArguments),
    /// What a delay costs in millimetres, in virtual time
    Cost(cost::CostArguments),
}

pub(crate) fn run(arguments: &TeleopArguments) -> Result<Outcome, Box<dyn Error>> {
    match &arguments.command {
        Subcommand::Analyse(arguments) => analyse::run(arguments),
        Subcommand::Ik(arguments) => ik::run(arguments),
        Subcommand::Cost(arguments) => cost::run(arguments),
    }
}

/// Exactly `N` finite numbers with commas between them.
fn numbers<const N: usize>(text: &str) -> Result<[f64; N], String> {
    let fault = || format!("\"{text}\" is not {N} numbers with commas between them");
    let parsed: Option<Vec<f64>> = text
        .split(',')
        .map(|part| part.trim().parse().ok().filter(|number: &f64| number.is_finite()))
        .collect();
    parsed.and_then(|numbers| numbers.try_into().ok()).ok_or_else(fault)
}
