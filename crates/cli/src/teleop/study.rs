//! `noctule teleop study`: the experiments of what latency costs, in virtual time, with the theory beside them.

use std::error::Error;

use noctule_arm::analysis::{OpenLoop, View, margins, spectral_radius};
use noctule_arm::controller::CommandMode;
use noctule_arm::joint_loop::LoopConfig;
use noctule_netsim::link::LinkSpec;
use noctule_teleop::experiment::commands::{self, CommandCost, CommandExperiment};
use noctule_teleop::experiment::force::{self, Contact};
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
/// Links of the live experiment on commands: each takes twice 20 s.
const LIVE_COMMAND_LINKS: [&str; 5] = [
    "delay=5ms",
    "delay=20ms",
    "delay=50ms",
    "delay=10ms jitter=5ms distribution=uniform reorder=jitter",
    "delay=10ms loss=5% burst=3",
];
/// Delays of both ways together for E2: 0 to 30 samples of 250 µs.
const JOINT_DELAYS_MS: [f64; 10] = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 7.25, 7.5];
/// Delays of the live experiment E2: the processes add to them, and what counts is measured in the loop.
const LIVE_JOINT_DELAYS_MS: [f64; 8] = [2.0, 4.0, 5.0, 6.0, 6.5, 7.0, 7.5, 8.0];
/// Delays for E3.
const HUMAN_DELAYS_MS: [f64; 8] = [0.0, 50.0, 70.0, 100.0, 150.0, 200.0, 300.0, 400.0];

/// Stiffnesses for E4: from soft to stiff.
const STIFFNESSES_N_M: [f64; 4] = [100.0, 300.0, 1_000.0, 2_000.0];

/// Kind of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Experiment {
    /// Commands over a network: error in millimetres by hold and by age
    Commands,
    /// A joint's loop closed over a network: where it tips over
    Joint,
    /// A human model that sees and acts late: time for a target
    Human,
    /// A force that comes back to the hand: the delay that a contact bears
    Force,
}

impl Experiment {
    fn name(self) -> &'static str {
        match self {
            Experiment::Commands => "commands",
            Experiment::Joint => "joint",
            Experiment::Human => "human",
            Experiment::Force => "force",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Experiment::Commands => "Commands over a network, ±100 mm",
            Experiment::Joint => "A joint's loop closed over a network",
            Experiment::Human => "A human who sees and acts late, targets of ±4 mm",
            Experiment::Force => "A contact's force reflected to the hand: the longest stable round trip",
        }
    }
}

#[derive(clap::Args)]
pub(crate) struct StudyArguments {
    /// One of them; all by default
    #[arg(value_enum)]
    experiment: Option<Experiment>,
    /// With real processes across emulated links, beside virtual time; commands and joint, about six minutes; needs root
    #[arg(long)]
    live: bool,
    /// Seed of the links
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &StudyArguments) -> Result<Outcome, Box<dyn Error>> {
    let all = [Experiment::Commands, Experiment::Joint, Experiment::Human, Experiment::Force];
    let can_be_live = |one: &Experiment| matches!(one, Experiment::Commands | Experiment::Joint);
    let chosen: Vec<Experiment> = match arguments.experiment {
        Some(one) => vec![one],
        None => all.into_iter().filter(|one| !arguments.live || can_be_live(one)).collect(),
    };
    let mut object = json!({});
    for experiment in chosen {
        let study = Study { live: arguments.live, seed: arguments.seed, ..Study::new(experiment) };
        let rows = study.rows()?;
        if !arguments.json {
            anstream::println!("{}\n\n{}", study.title(), table(&rows));
        }
        object[experiment.name()] = rows.into();
    }
    if arguments.json {
        anstream::println!("{object}");
    }
    Ok(Outcome::Done)
}

/// One experiment with its links or delays.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Study {
    /// The experiment.
    experiment: Experiment,
    /// With real processes across emulated links.
    #[serde(default)]
    live: bool,
    /// Seed of the links.
    #[serde(default)]
    seed: u64,
    /// Links of commands; the experiment's own by default.
    links: Option<Vec<String>>,
    /// Delays of a joint's loop, both ways together, or of a human; the experiment's own by default.
    delays_ms: Option<Vec<f64>>,
    /// Stiffnesses of what the arm presses on; the experiment's own by default.
    stiffnesses_n_m: Option<Vec<f64>>,
}

impl Study {
    fn new(experiment: Experiment) -> Study {
        Study { experiment, live: false, seed: 1, links: None, delays_ms: None, stiffnesses_n_m: None }
    }

    pub(crate) fn title(&self) -> String {
        format!("{}{}", self.experiment.title(), if self.live { ", live" } else { "" })
    }

    /// A row for each link or delay.
    ///
    /// # Errors
    /// A link is none, a delay is no delay, or there is no link to be had.
    pub(crate) fn rows(&self) -> Result<Vec<Value>, Box<dyn Error>> {
        let links: &[&str] = if self.live { &LIVE_COMMAND_LINKS } else { &COMMAND_LINKS };
        let links =
            self.links.clone().unwrap_or_else(|| links.iter().map(|link| (*link).to_owned()).collect());
        let delays_ms: &[f64] = match (self.experiment, self.live) {
            (Experiment::Human, _) => &HUMAN_DELAYS_MS,
            (_, true) => &LIVE_JOINT_DELAYS_MS,
            (_, false) => &JOINT_DELAYS_MS,
        };
        let delays_ms = self.delays_ms.clone().unwrap_or_else(|| delays_ms.to_vec());
        if let Some(wrong) = delays_ms.iter().find(|delay_ms| !(0.0..=10_000.0).contains(*delay_ms)) {
            return Err(format!("a delay of {wrong} ms is not between 0 and 10000").into());
        }
        match (self.experiment, self.live) {
            (Experiment::Commands, false) => commands(self.seed, &links),
            (Experiment::Commands, true) => live_study::commands(self.seed, &links),
            (Experiment::Joint, false) => joint(self.seed, &delays_ms),
            (Experiment::Joint, true) => live_study::joint(self.seed, &delays_ms),
            (Experiment::Human, false) => Ok(human(&delays_ms)),
            (Experiment::Force, false) => force(self.stiffnesses_n_m.as_deref().unwrap_or(&STIFFNESSES_N_M)),
            (Experiment::Human | Experiment::Force, true) => {
                Err("the hand is a model here, in virtual time; leave out live, or operate the page yourself"
                    .into())
            }
        }
    }
}

fn commands(seed: u64, links: &[String]) -> Result<Vec<Value>, Box<dyn Error>> {
    let mut rows = Vec::new();
    for link in links {
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

fn joint(seed: u64, delays_ms: &[f64]) -> Result<Vec<Value>, Box<dyn Error>> {
    let config = LoopConfig::seed();
    let mut rows = Vec::new();
    for delay_ms in delays_ms {
        let samples = (delay_ms * config.rate_hz * 1e-3).round() as u32;
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

fn human(delays_ms: &[f64]) -> Vec<Value> {
    let human = Human::default();
    let row = |ms: &f64| {
        let cost = human::run(human, Span::from_us((ms * 1e3) as i64));
        let phase_rad = human.gain_per_s * (human.reaction_s + ms * 1e-3);
        json!({
            "delay_ms": ms,
            "movement_time_ms": cost.movement_time_ms,
            "missed": cost.missed,
            "overshoot_mm": cost.overshoot_mm,
            "theory_stable": phase_rad < std::f64::consts::FRAC_PI_2,
        })
    };
    delays_ms.iter().map(row).collect()
}

fn force(stiffnesses_n_m: &[f64]) -> Result<Vec<Value>, Box<dyn Error>> {
    if let Some(wrong) = stiffnesses_n_m.iter().find(|stiffness| !(10.0..=10_000.0).contains(*stiffness)) {
        return Err(format!("a stiffness of {wrong} N/m is not between 10 and 10000").into());
    }
    let row = |stiffness: &f64| {
        let contact = Contact::new(*stiffness);
        json!({
            "stiffness_n_m": stiffness,
            "stable_to_ms": force::limit(&contact).as_s_f64() * 1e3,
            "theory_ms": contact.limit_s() * 1e3,
        })
    };
    Ok(stiffnesses_n_m.iter().map(row).collect())
}

/// Rows of one experiment as a table.
pub(crate) fn table(rows: &[Value]) -> String {
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
