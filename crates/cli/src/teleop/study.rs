//! `noctule teleop study`: the three experiments of what latency costs, in virtual time, with the theory beside them.

use std::error::Error;

use noctule_arm::analysis::{OpenLoop, View, margins, spectral_radius};
use noctule_arm::controller::CommandMode;
use noctule_arm::joint_loop::LoopConfig;
use noctule_netsim::link::LinkSpec;
use noctule_teleop::experiment::commands::{self, CommandCost, CommandExperiment};
use noctule_teleop::experiment::human::{self, Human};
use noctule_teleop::experiment::joint;
use noctule_timebase::Span;
use serde_json::{Value, json};

use super::live_study;
use crate::{Outcome, units};

/// Links of E1; the first six have a line by theory.
const COMMAND_LINKS: [&str; 8] = [
    "delay=0",
    "delay=5ms",
    "delay=10ms",
    "delay=20ms",
    "delay=50ms",
    "delay=100ms",
    "delay=10ms jitter=5ms distribution=uniform reorder=jitter",
    "delay=10ms loss=5% burst=3",
];
/// Samples of 250 µs of delay in both ways together, for E2.
const JOINT_SAMPLES: [u32; 10] = [0, 4, 8, 12, 16, 20, 24, 28, 29, 30];
/// For E3.
const HUMAN_DELAYS_MS: [i64; 8] = [0, 50, 70, 100, 150, 200, 300, 400];

#[derive(Clone, Copy, PartialEq, clap::ValueEnum)]
enum Experiment {
    /// Commands over a network: error in millimetres by hold and by age
    Commands,
    /// A joint's loop closed over a network: where it tips over
    Joint,
    /// A human model that sees and acts late: time for a target
    Human,
}

#[derive(clap::Args)]
pub(crate) struct StudyArguments {
    /// One of the three; all by default
    #[arg(value_enum)]
    experiment: Option<Experiment>,
    /// With real processes across emulated links, beside virtual time; commands and joint, about six minutes; needs root
    #[arg(long)]
    live: bool,
    /// Of the links
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &StudyArguments) -> Result<Outcome, Box<dyn Error>> {
    let all = [Experiment::Commands, Experiment::Joint, Experiment::Human];
    if arguments.live && arguments.experiment == Some(Experiment::Human) {
        return Err("a human is a model here and runs in virtual time; leave out --live, or operate the page yourself".into());
    }
    let chosen = all.into_iter().filter(|one| arguments.experiment.is_none_or(|wanted| wanted == *one));
    let chosen = chosen.filter(|one| !arguments.live || *one != Experiment::Human);
    let mut object = json!({});
    for experiment in chosen {
        let (name, title, rows) = match experiment {
            Experiment::Commands if arguments.live => {
                ("commands", "Commands over a link, live, ±100 mm", live_study::commands(arguments.seed)?)
            }
            Experiment::Joint if arguments.live => {
                ("joint", "A joint's loop closed over a link, live", live_study::joint(arguments.seed)?)
            }
            Experiment::Commands => {
                ("commands", "Commands over a network, ±100 mm", commands(arguments.seed)?)
            }
            Experiment::Joint => ("joint", "A joint's loop closed over a network", joint(arguments.seed)?),
            Experiment::Human => ("human", "A human who sees and acts late, targets of ±4 mm", human()),
        };
        if !arguments.json {
            anstream::println!("{title}\n\n{}", table(&rows));
        }
        object[name] = rows.into();
    }
    if arguments.json {
        anstream::println!("{object}");
    }
    Ok(Outcome::Done)
}

fn commands(seed: u64) -> Result<Vec<Value>, Box<dyn Error>> {
    let mut rows = Vec::new();
    for link in COMMAND_LINKS {
        let spec: LinkSpec = link.parse()?;
        let cost = |mode| -> CommandCost {
            commands::run(&CommandExperiment { seed, ..CommandExperiment::new(mode, spec.a_to_b.clone()) })
        };
        let (hold, age) = (cost(CommandMode::Hold), cost(CommandMode::Age));
        rows.push(json!({
            "link": link,
            "hold_rms_mm": hold.rms_mm,
            "hold_max_mm": hold.max_mm,
            "hold_theory_mm": hold.theory_mm,
            "age_rms_mm": age.rms_mm,
            "age_max_mm": age.max_mm,
            "age_theory_mm": age.theory_mm,
            "times_better": hold.rms_mm / age.rms_mm,
        }));
    }
    Ok(rows)
}

fn joint(seed: u64) -> Result<Vec<Value>, Box<dyn Error>> {
    let config = LoopConfig::seed();
    let mut rows = Vec::new();
    for samples in JOINT_SAMPLES {
        let half_ns = i64::from(samples / 2) * 250_000;
        let other_ns = i64::from(samples) * 250_000 - half_ns;
        let link: LinkSpec = format!("a>b: delay={half_ns}ns; b>a: delay={other_ns}ns").parse()?;
        let found = joint::run(&config, &link, Span::from_s(40), seed);
        let open_loop = OpenLoop::new(&config, View::Sampled { delay_samples: samples });
        let radius = spectral_radius(&config, samples);
        let ms = margins(&|omega| open_loop.at(omega), open_loop.highest_rad_s()).ms;
        rows.push(json!({
            "delay_ms": f64::from(samples) * 0.25,
            "stable": found.stable,
            "growth": found.growth,
            "overshoot_percent": found.overshoot_percent,
            "theory_stable": radius < 1.0,
            "theory_spectral_radius": radius,
            "theory_ms": ms,
        }));
    }
    Ok(rows)
}

fn human() -> Vec<Value> {
    let human = Human::default();
    let row = |ms: &i64| {
        let cost = human::run(human, Span::from_ms(*ms));
        let phase_rad = human.gain_per_s * (human.reaction_s + *ms as f64 * 1e-3);
        json!({
            "delay_ms": ms,
            "movement_time_ms": cost.movement_time_ms,
            "missed": cost.missed,
            "overshoot_mm": cost.overshoot_mm,
            "theory_stable": phase_rad < std::f64::consts::FRAC_PI_2,
        })
    };
    HUMAN_DELAYS_MS.iter().map(row).collect()
}

fn table(rows: &[Value]) -> String {
    let Some(first) = rows.first().and_then(Value::as_object) else { return String::new() };
    let names: Vec<String> = first.keys().map(|name| name.replace('_', " ")).collect();
    let cell = |value: &Value| match value {
        Value::Number(number) => match number.as_f64() {
            Some(number) if number.fract() == 0.0 => format!("{number}"),
            Some(number) => format!("{number:.3}"),
            None => number.to_string(),
        },
        Value::Bool(true) => "yes".into(),
        Value::Bool(false) => "no".into(),
        Value::String(text) => text.clone(),
        _ => "none".into(),
    };
    let lines = rows.iter().filter_map(Value::as_object).map(|row| row.values().map(cell).collect());
    let lines: Vec<Vec<String>> = [names.clone()].into_iter().chain(lines).collect();
    units::columns(&lines, &vec![true; names.len()])
}
