//! `noctule swarm fly`: namespaces, the air between them, two processes for each drone, and who counts.

use std::error::Error;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use noctule_link_emulator::LiveAir;
use noctule_link_emulator::air::{AIR_NODES_MAX, AirReport};
use noctule_netsim::air::{AirSpec, Bursts, RadioSpec, broadcast_load};
use noctule_swarm::Vector;
use noctule_swarm::measures::Separation;
use noctule_swarm::state::STATE_BYTES;
use noctule_sys::clock::now_ns;
use noctule_sys::namespace::NetworkNamespace;
use noctule_timebase::Span;
use serde::Serialize;

use super::drone::between;
use crate::Outcome;
use crate::stop::Stop;

/// A vehicle whose last line is older is not there any more.
const SILENT_NS: i64 = 3_000_000_000;
/// States a second of each drone.
const RATE_HZ: f64 = 10.0;

#[derive(clap::Args)]
pub(crate) struct FlyArguments {
    /// Drones, each in a network namespace of its own
    #[arg(long, value_name = "N", default_value_t = 8)]
    nodes: usize,
    /// How long
    #[arg(long, value_name = "S", default_value = "60", value_parser = crate::swarm::seconds)]
    seconds: Duration,
    /// Share of the time that a direction between two drones is deaf, in bursts of 300 ms
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    loss: f64,
    /// Kill this share of the drones when half of the time is over
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    kill: f64,
    /// Seed of the air
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Print the figures as JSON
    #[arg(long)]
    json: bool,
}

/// Figures of a live flight.
#[derive(Debug, Default, Serialize)]
struct Figures {
    nodes: usize,
    seconds: f64,
    /// Drones whose processes ended although nobody killed them.
    lost_nodes: usize,
    killed: usize,
    /// Pairs of living drones whose bodies overlapped.
    collisions: usize,
    near_misses: usize,
    min_separation_m: f64,
    crossings: u64,
    /// Medians over drones and time.
    age_p50_ms: f64,
    /// 99 of 100 drones and moments have no older neighbour.
    age_oldest_p99_ms: f64,
    age_bound_max_ms: f64,
    /// Mean share of the others that a drone knows, from a third of the time on.
    known_share: f64,
    air_utilisation: f64,
    frames: u64,
    air_late_max_ms: f64,
    air_cpu_share: f64,
}

/// What a drone said last.
#[derive(Clone, Copy, Debug)]
struct Said {
    at_ns: i64,
    position_m: Vector,
    velocity_m_s: Vector,
    crossings: u64,
    known: usize,
    age_p50_ms: f64,
    age_max_ms: f64,
    bound_ms: f64,
}

struct Drone {
    radio: Child,
    pilot: Child,
    said: Arc<Mutex<Option<Said>>>,
    killed: bool,
}

pub(super) fn fly(arguments: &FlyArguments) -> Result<Outcome, Box<dyn Error>> {
    let nodes = arguments.nodes;
    if !(2..=AIR_NODES_MAX).contains(&nodes) {
        return Err(format!("a live swarm has 2 to {AIR_NODES_MAX} drones, not {nodes}").into());
    }
    if !(0.0..0.95).contains(&arguments.loss) || !(0.0..0.95).contains(&arguments.kill) {
        return Err("--loss and --kill are shares from 0 to below 0.95, e.g. 0.3".into());
    }
    let spec = air(arguments.loss);
    let load = broadcast_load(&spec, nodes, STATE_BYTES as u32, RATE_HZ);
    if load > 0.6 {
        return Err(format!(
            "{nodes} drones at {RATE_HZ} Hz need {:.0} % of the air; fly fewer",
            100.0 * load
        )
        .into());
    }
    let stop = Stop::after(Some(arguments.seconds))?;
    let namespaces = (0..nodes).map(|_| NetworkNamespace::create()).collect::<Result<Vec<_>, _>>();
    let namespaces =
        namespaces.map_err(|error| format!("cannot make a network namespace ({error}); run as root"))?;
    let air = LiveAir::start(&namespaces.iter().collect::<Vec<_>>(), spec, arguments.seed)?;
    let mut drones = Vec::with_capacity(nodes);
    for (number, namespace) in namespaces.iter().enumerate() {
        match start(namespace, number, nodes, &air) {
            Ok(drone) => drones.push(drone),
            Err(error) => {
                drones.iter_mut().for_each(Drone::end);
                return Err(format!("cannot start drone {number}: {error}").into());
            }
        }
    }
    let figures = watch(arguments, &stop, &air, &mut drones);
    drones.iter_mut().for_each(Drone::end);
    let figures = finish(figures, arguments, &air.stop());
    match arguments.json {
        true => anstream::println!("{}", serde_json::to_string_pretty(&figures)?),
        false => anstream::println!("{figures:#?}"),
    }
    let valid = figures.collisions == 0 && figures.lost_nodes == 0;
    Ok(if valid { Outcome::Done } else { Outcome::NotValid })
}

fn air(loss: f64) -> AirSpec {
    let bursts = (loss > 0.0).then(|| Bursts { loss, mean: Span::from_ms(300) });
    AirSpec { radio: RadioSpec { bursts, ..RadioSpec::default() }, ..AirSpec::default() }
}

fn start(namespace: &NetworkNamespace, number: usize, nodes: usize, air: &LiveAir) -> std::io::Result<Drone> {
    let program = std::env::current_exe()?;
    let spawn = |role: &str, output: Stdio| {
        let mut command = Command::new(&program);
        command.args(["swarm", role, "--number", &number.to_string(), "--nodes", &nodes.to_string()]);
        command.args(["--address", &air.address(number).to_string()]);
        command.stdin(Stdio::null()).stdout(output).stderr(Stdio::null());
        namespace.run(move || command.spawn())
    };
    let mut radio = spawn("drone-radio", Stdio::null())?;
    let mut pilot = match spawn("drone-decisions", Stdio::piped()) {
        Ok(pilot) => pilot,
        Err(error) => {
            end(&mut radio);
            return Err(error);
        }
    };
    let said = Arc::new(Mutex::new(None));
    if let Some(output) = pilot.stdout.take() {
        let said = said.clone();
        std::thread::Builder::new().name("lines".into()).spawn(move || listen(output, &said))?;
    }
    Ok(Drone { radio, pilot, said, killed: false })
}

fn listen(output: ChildStdout, said: &Mutex<Option<Said>>) {
    for line in BufReader::new(output).lines().map_while(Result::ok) {
        if let Some(parsed) = parse(&line) {
            *said.lock().unwrap_or_else(PoisonError::into_inner) = Some(parsed);
        }
    }
}

fn parse(line: &str) -> Option<Said> {
    let words: Vec<&str> = line.split(' ').collect();
    let number = |at: usize| words.get(at)?.parse::<f64>().ok();
    Some(Said {
        at_ns: words.first()?.parse().ok()?,
        position_m: Vector::new(number(1)?, number(2)?, number(3)?),
        velocity_m_s: Vector::new(number(4)?, number(5)?, number(6)?),
        crossings: words.get(7)?.parse().ok()?,
        known: words.get(8)?.parse().ok()?,
        age_p50_ms: number(9)?,
        age_max_ms: number(10)?,
        bound_ms: number(11)?,
    })
}

fn end(child: &mut Child) {
    // It may have ended by itself.
    let _ = child.kill();
    let _ = child.wait();
}

impl Drone {
    fn end(&mut self) {
        end(&mut self.radio);
        end(&mut self.pilot);
    }

    fn said(&self) -> Option<Said> {
        *self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Looks at all drones ten times a second until the time is over.
fn watch(arguments: &FlyArguments, stop: &Stop, air: &LiveAir, drones: &mut [Drone]) -> Figures {
    let start_ns = now_ns();
    let half_ns = arguments.seconds.as_nanos() as i64 / 2;
    let mut separation = Separation::new(0.5);
    let mut before = vec![None; drones.len()];
    let (mut ages, mut oldest, mut bound_ms, mut known) = (Vec::new(), Vec::new(), 0.0_f64, Vec::new());
    let mut killed = 0;
    while !stop.is_due() {
        stop.wait_until(std::time::Instant::now() + crate::stop::TICK);
        let now = now_ns();
        if killed == 0 && arguments.kill > 0.0 && now - start_ns > half_ns {
            killed = (arguments.kill * drones.len() as f64).round() as usize;
            for drone in drones.iter_mut().rev().take(killed) {
                drone.end();
                drone.killed = true;
            }
        }
        let there: Vec<Option<Vector>> = (drones.iter().enumerate())
            .map(|(number, drone)| {
                let said = drone.said().filter(|said| !drone.killed && now - said.at_ns < SILENT_NS)?;
                let place = between(
                    &said.position_m,
                    &said.velocity_m_s,
                    Duration::from_nanos((now - said.at_ns).max(0) as u64),
                );
                air.set_position(number, place.into());
                ages.extend(Some(said.age_p50_ms).filter(|age| age.is_finite()));
                oldest.extend(Some(said.age_max_ms).filter(|age| age.is_finite()));
                bound_ms = bound_ms.max(said.bound_ms);
                if now - start_ns > 2 * half_ns / 3 {
                    known.push(said.known as f64 / (drones.len() - 1) as f64);
                }
                Some(place)
            })
            .collect();
        for number in 0..there.len() {
            for other in 0..number {
                if let (Some(a), Some(b)) = (there[number], there[other])
                    && let (Some(c), Some(d)) = (before[number], before[other])
                {
                    separation.record((other as u32, number as u32), c - d, a - b);
                }
            }
        }
        before = there;
    }
    ages.sort_by(f64::total_cmp);
    oldest.sort_by(f64::total_cmp);
    let now = now_ns();
    let lost = |drone: &&Drone| !drone.killed && drone.said().is_none_or(|said| now - said.at_ns > SILENT_NS);
    Figures {
        nodes: drones.len(),
        seconds: (now - start_ns) as f64 / 1e9,
        lost_nodes: drones.iter().filter(lost).count(),
        killed,
        collisions: separation.collided.len(),
        near_misses: separation.near.len(),
        min_separation_m: separation.least_m,
        crossings: drones.iter().filter_map(|drone| Some(drone.said()?.crossings)).sum(),
        age_p50_ms: ages.get(ages.len() / 2).copied().unwrap_or(f64::NAN),
        age_oldest_p99_ms: oldest.get(oldest.len() * 99 / 100).copied().unwrap_or(f64::NAN),
        age_bound_max_ms: bound_ms,
        known_share: known.iter().sum::<f64>() / known.len().max(1) as f64,
        ..Figures::default()
    }
}

fn finish(figures: Figures, _arguments: &FlyArguments, report: &AirReport) -> Figures {
    let run_ns = (figures.seconds * 1e9).max(1.0);
    Figures {
        air_utilisation: report.air.busy_ns as f64 / run_ns,
        frames: report.air.sent,
        air_late_max_ms: report.late_max_ns as f64 / 1e6,
        air_cpu_share: report.cpu_ns as f64 / run_ns,
        ..figures
    }
}
