//! `noctule teleop cost`: the error of the tool behind a delay, in virtual time.

use std::error::Error;

use noctule_arm::controller::CommandMode;
use noctule_netsim::link::{LinkSpec, parse_time};
use noctule_teleop::experiment::commands::{CommandExperiment, run as run_experiment};
use noctule_timebase::Span;

use crate::Outcome;
use crate::argument::ArgumentError;

#[derive(clap::Args)]
pub(crate) struct CostArguments {
    /// Delay from the operator to the arm
    #[arg(long, value_name = "TIME", value_parser = time, required_unless_present = "link")]
    delay: Option<Span>,
    /// A whole link instead of a delay, e.g. "delay=10ms jitter=5ms loss=5% burst=3"
    #[arg(long, value_name = "SPEC", conflicts_with = "delay")]
    link: Option<String>,
    /// Use a command as it is, or extrapolate it by its age
    #[arg(long, value_name = "hold|age", default_value = "age")]
    command: CommandMode,
    /// The age is wrong by this
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "0")]
    age_error: Span,
    /// With the jerk-limited profile and the joint loop of the live system, instead of the seed's loop alone
    #[arg(long)]
    profile: bool,
    /// Seed of the link
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

fn time(text: &str) -> Result<Span, ArgumentError> {
    parse_time(text).ok_or_else(|| ArgumentError::Time(text.to_owned()))
}

pub(crate) fn run(arguments: &CostArguments) -> Result<Outcome, Box<dyn Error>> {
    let link: LinkSpec = match (&arguments.link, arguments.delay) {
        (Some(link), _) => link.parse()?,
        (None, delay) => format!("delay={}ns", delay.unwrap_or(Span::ZERO).ns()).parse()?,
    };
    let experiment = CommandExperiment {
        age_error: arguments.age_error,
        with_profile: arguments.profile,
        seed: arguments.seed,
        ..CommandExperiment::new(arguments.command, link.a_to_b)
    };
    let cost = run_experiment(&experiment);
    if arguments.json {
        anstream::println!("{}", serde_json::to_string(&cost)?);
    } else {
        anstream::println!(
            "error to the hand: {:.2} mm rms, {:.2} mm at most; by theory {:.2} mm\nerror to its path: {:.2} mm rms; \
             mean age of the command used: {:.2} ms; {} of {} commands arrived",
            cost.rms_mm,
            cost.max_mm,
            cost.theory_mm,
            cost.path_rms_mm,
            cost.mean_age_ms,
            cost.received,
            cost.sent
        );
    }
    if !cost.followed {
        anstream::eprintln!(
            "noctule: the arm stopped before the end; the figures are not those of a whole run"
        );
        return Ok(Outcome::NotValid);
    }
    Ok(Outcome::Done)
}
