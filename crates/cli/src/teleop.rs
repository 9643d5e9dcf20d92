//! `noctule teleop`: an arm under an operator's hand, and what latency costs.

mod analyse;
mod cost;
mod error;
mod ik;
mod joint_link;
mod live;
mod live_study;
pub(crate) mod study;
mod time_keeping;

use std::error::Error;

use crate::Outcome;
use crate::argument::ArgumentError;

/// Without a subcommand: the whole loop, a master and a controller in a process each, and the page that is opened.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct TeleopArguments {
    #[command(subcommand)]
    command: Option<Subcommand>,
    #[command(flatten)]
    whole: live::WholeArguments,
}

#[derive(clap::Subcommand)]
enum Subcommand {
    /// Margins, poles and step response of a joint's loop, continuous and as it runs
    Analyse(analyse::AnalyseArguments),
    /// All joint angles for a pose of the flange, and why the others do not exist
    Ik(ik::IkArguments),
    /// The error that a delay causes, in millimetres, in virtual time
    Cost(cost::CostArguments),
    /// Experiments on the cost of latency, with the theory's line
    Study(study::StudyArguments),
    /// How far the arm was from the hand in a recorded run
    Error(error::ErrorArguments),
    /// The motor's side of a joint's loop over a network (started by `teleop study --live`)
    #[command(hide = true)]
    JointMotor(joint_link::JointArguments),
    /// The controller's side of it
    #[command(hide = true)]
    JointController(joint_link::JointArguments),
    /// The arm: a controller at 4 kHz
    Controller(live::ControllerArguments),
    /// The operator's side: poses at 1 kHz from the page or from a synthetic hand
    Master(live::MasterArguments),
    /// The page: shows the arm in browsers, and takes one operator's hand from them
    Page(live::PageArguments),
}

pub(crate) fn run(arguments: &TeleopArguments) -> Result<Outcome, Box<dyn Error>> {
    match &arguments.command {
        None => live::whole(&arguments.whole),
        Some(Subcommand::Analyse(arguments)) => analyse::run(arguments),
        Some(Subcommand::Ik(arguments)) => ik::run(arguments),
        Some(Subcommand::Cost(arguments)) => cost::run(arguments),
        Some(Subcommand::Study(arguments)) => study::run(arguments),
        Some(Subcommand::Error(arguments)) => error::run(arguments),
        Some(Subcommand::JointMotor(arguments)) => joint_link::motor(arguments),
        Some(Subcommand::JointController(arguments)) => joint_link::controller(arguments),
        Some(Subcommand::Controller(arguments)) => live::controller(arguments),
        Some(Subcommand::Master(arguments)) => live::master(arguments),
        Some(Subcommand::Page(arguments)) => live::page(arguments),
    }
}

/// Exactly `N` finite numbers with commas between them.
fn numbers<const N: usize>(text: &str) -> Result<[f64; N], ArgumentError> {
    let fault = || ArgumentError::Numbers { text: text.to_owned(), count: N };
    let parsed: Option<Vec<f64>> = text
        .split(',')
        .map(|part| part.trim().parse().ok().filter(|number: &f64| number.is_finite()))
        .collect();
    parsed.and_then(|numbers| numbers.try_into().ok()).ok_or_else(fault)
}
