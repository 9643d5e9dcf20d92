//! `noctule swarm`: a swarm on one air, simulated in virtual time or flown by a process for each drone.

mod beside;
mod carrier;
mod drone;
mod fly;
mod map;
mod processes;
mod shown;
mod study;
mod watch;

use std::error::Error;
use std::path::{Path, PathBuf};

use noctule_swarm::measures::Measures;
use noctule_swarm::neighbours::Knowledge;
use noctule_swarm::{Scenario, Simulation, scenario};

use crate::Outcome;
use crate::argument::ArgumentError;

#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Fly a scenario in virtual time: collisions, separation, ages at the moment of decision
    ///
    /// Exit code 1 if a neighbour was not where its age and bounds say it must be.
    Run(RunArguments),
    /// Fly live: a network namespace and two processes for each drone, on one emulated Wi-Fi channel
    ///
    /// Vehicles are simulated, everything between them is real: the radio process of a drone writes what it receives into shared
    /// memory, another process decides by that. Exit code 1 after a collision or if a drone was lost.
    Fly(fly::FlyArguments),
    /// The cost of age: a scenario at several delays, with states held, extrapolated, and bounded; as a table and a picture
    ///
    /// Exit code 1 if a neighbour was not where its age and bounds say it must be.
    Study(study::StudyArguments),
    /// A drone's process on the air; started by `fly`
    #[command(hide = true)]
    DroneRadio(drone::DroneArguments),
    /// A drone's process that decides; started by `fly`
    #[command(hide = true)]
    DroneDecisions(drone::DroneArguments),
}

#[derive(clap::Args)]
pub(crate) struct RunArguments {
    /// The scenario, e.g. scenarios/swarm_design_point.toml
    scenario: PathBuf,
    /// Drones instead of the scenario's; the space grows with them
    #[arg(long, value_name = "N")]
    nodes: Option<usize>,
    /// Seed of all random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// How drones use their neighbours' states: as they came, extrapolated by age, or with the radius they may be in
    #[arg(long, value_name = "hold|age|bound", value_parser = knowledge)]
    neighbours: Option<Knowledge>,
    /// Without any radio: everybody knows everything at once
    #[arg(long)]
    perfect: bool,
    /// Print the figures as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    map: map::MapArguments,
    /// Virtual seconds for each second that the map is shown, 0.1 to 20
    #[arg(long, value_name = "X", default_value = "1", value_parser = shown::speed, requires = "map")]
    speed: f64,
}

fn knowledge(word: &str) -> Result<Knowledge, ArgumentError> {
    scenario::knowledge(word).ok_or_else(|| ArgumentError::Knowledge(word.to_owned()))
}

pub(crate) fn run(command: &Command) -> Result<Outcome, Box<dyn Error>> {
    match command {
        Command::Run(arguments) => simulate(arguments),
        Command::Study(arguments) => study::study(arguments),
        Command::Fly(arguments) => fly::fly(arguments),
        Command::DroneRadio(arguments) => match &arguments.carrier {
            Some(command) => carrier::carry(arguments, command),
            None => drone::radio(arguments),
        },
        Command::DroneDecisions(arguments) => drone::decide(arguments),
    }
}

fn simulate(arguments: &RunArguments) -> Result<Outcome, Box<dyn Error>> {
    let mut flown = read(&arguments.scenario)?;
    if let Some(nodes) = arguments.nodes {
        if !(2..=scenario::NODES_MAX).contains(&nodes) {
            return Err(format!("a swarm has 2 to {} drones, not {nodes}", scenario::NODES_MAX).into());
        }
        flown.nodes = nodes;
    }
    if let Some(knowledge) = arguments.neighbours {
        flown.states.knowledge = knowledge;
    }
    if arguments.perfect {
        flown.air = None;
    }
    let (name, nodes) = (flown.name.clone(), flown.nodes);
    let simulation = Simulation::new(flown, arguments.seed)
        .map_err(|error| format!("{}: {error}", arguments.scenario.display()))?;
    let title = format!("{name} (simulated), seed {}", arguments.seed);
    let before_s = drone::processor_s();
    let mut measures = match arguments.map.start(title, nodes)? {
        Some(map) => shown::run(simulation, map, arguments.speed)?,
        None => simulation.run(),
    };
    measures.cpu_s = Some(drone::processor_s() - before_s);
    match arguments.json {
        true => anstream::println!("{}", serde_json::to_string_pretty(&measures)?),
        false => anstream::print!("{}", table(&measures)),
    }
    Ok(if measures.bound_violations == 0 { Outcome::Done } else { Outcome::NotValid })
}

fn read(path: &Path) -> Result<Scenario, Box<dyn Error>> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("cannot read {}: {error}; name a scenario's file", path.display()))?;
    Ok(Scenario::parse(&text).map_err(|error| format!("{}: {error}", path.display()))?)
}

fn motion(m: &Measures) -> String {
    format!(
        "motion                {:>8.2}   agreement of directions, -1 to 1; {:.0} m²/s³ of effort a drone",
        m.order_parameter, m.effort_m2_s3
    )
}

/// Share of neighbours that drones know, and the time until discovery was complete.
fn known(m: &Measures) -> String {
    let discovered = m.discovery_s.map_or_else(
        || "not everybody has heard everybody".to_owned(),
        |s| format!("everybody has heard everybody after {s:.1} s"),
    );
    let left = m
        .takeoff_s
        .map_or_else(|| "not all have taken off".to_owned(), |s| format!("the last took off after {s:.1} s"));
    let overdue = match m.takeoffs_overdue {
        0 => String::new(),
        count => format!(", {count} without knowing all in range"),
    };
    format!("neighbours known      {:>7.1} %   {discovered}; {left}{overdue}", 100.0 * m.known_share)
}

fn table(measures: &Measures) -> String {
    let m = measures;
    let ms = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |ms| format!("{ms:.0} ms"));
    let mut lines = vec![
        format!(
            "{}: {} drones, seed {}, {:.0} s, neighbours: {}",
            m.scenario, m.nodes, m.seed, m.seconds, m.neighbours
        ),
        format!(
            "collisions            {:>8}   pairs nearer than {:.1} m; {} near misses",
            m.collisions, m.collision_distance_m, m.near_misses
        ),
        format!("least separation      {:>8.2} m", m.min_separation_m),
    ];
    if let Some(least_m) = m.least_to_obstacle_m {
        let touched = m.collisions_with_obstacles;
        lines
            .push(format!("obstacles             {touched:>8}   drones touched one; nearest {least_m:.2} m"));
    }
    if m.killed > 0 {
        let with = m.collisions_with_killed;
        lines.push(format!(
            "killed                {:>8}   {with} pairs of a killed and a living one touched",
            m.killed
        ));
    }
    if let Some(finished) = m.finished {
        let when =
            m.time_to_finish_s.map_or_else(|| "not all".to_owned(), |s| format!("the last after {s:.1} s"));
        lines.push(format!("arrived               {:>7.0} %   {when}", 100.0 * finished));
    }
    if let (Some(rms), Some(most)) = (m.formation_error_rms_m, m.formation_error_max_m) {
        lines.push(format!("formation error       {rms:>8.2} m rms, {most:.2} m at most"));
    }
    lines.push(motion(m));
    lines.push(format!(
        "age at decision       {:>8}   p50; p99 {}, oldest {}; ± {} ms",
        ms(m.age_p50_ms),
        ms(m.age_p99_ms),
        ms(m.age_max_ms),
        m.age_bound_ms
    ));
    lines.push(format!(
        "outside their radius  {:>8}   of {} neighbours at decisions; mean radius {:.2} m",
        m.bound_violations, m.bounds_checked, m.uncertainty_mean_m
    ));
    lines.push(known(m));
    let asked = if m.rate_hz < m.rate_asked_hz {
        format!(", {:.1} Hz asked for: the air has no room for more", m.rate_asked_hz)
    } else {
        String::new()
    };
    lines.push(format!("states                {:>8.2} Hz by {}{asked}", m.rate_hz, m.transport));
    lines.push(format!(
        "air                   {:>7.1} %   busy; {:.1} % of receptions lost, {:.1} % by overlapping frames; {:.0} B/s a drone",
        100.0 * m.air_utilisation,
        100.0 * m.loss,
        100.0 * m.loss_by_collision,
        m.bytes_per_drone_s
    ));
    if let Some(cpu_s) = m.cpu_s {
        lines.push(format!(
            "processor             {cpu_s:>8.2} s, {:.1} times as fast as time",
            m.seconds / cpu_s.max(1e-9)
        ));
    }
    lines.join("\n") + "\n"
}
