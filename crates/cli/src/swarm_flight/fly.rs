//! `noctule swarm fly`: namespaces, the air between them, two processes for each drone, and the counting process.

use std::error::Error;
use std::time::Duration;

use noctule_link_emulator::LiveAir;
use noctule_link_emulator::air::{AIR_NODES_MAX, AirReport};
use noctule_netsim::air::{AirSpec, Band, Bursts, HEADERS_BYTES, RadioSpec, Rate, broadcast_load};
use noctule_swarm::state::STATE_BYTES;
use noctule_sys::namespace::NetworkNamespace;
use noctule_timebase::Span;

use super::beside::{Beside, Rates};
use super::drone::LEAST_HZ;
use super::map::MapArguments;
use super::processes::{Drone, start};
use super::watch::{Figures, Watch};
use crate::Outcome;
use crate::stop::Stop;

/// Share of the air that states may take together.
const AIR_BUDGET: f64 = 0.6;
/// Around a state on the air besides UDP, IP and MAC: envelope, key, seal.
const ENVELOPE_BYTES: u32 = 72;

#[derive(clap::Args)]
pub(crate) struct FlyArguments {
    /// Drones, each in a network namespace of its own
    #[arg(long, value_name = "N", default_value_t = 8)]
    nodes: usize,
    /// Duration of the flight
    #[arg(long, value_name = "S", default_value = "60", value_parser = crate::swarm::seconds)]
    seconds: Duration,
    /// Share of the time that a direction between two drones is deaf, in bursts of 300 ms
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    loss: f64,
    /// Kill this share of the drones when half of the time is over
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    kill: f64,
    /// States a second of each drone, if the channel has room: rates fall together
    #[arg(long, value_name = "HZ", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=50))]
    rate: u32,
    /// Rate of frames to all, Mb/s
    #[arg(long, value_name = "MBPS", default_value_t = 24.0)]
    multicast_mbps: f64,
    /// 2.4 or 5 GHz
    #[arg(long, value_name = "GHZ", default_value_t = 5.0)]
    band: f64,
    /// Send states with a deadline: what is lost is repaired as long as it can arrive within so many milliseconds. Without, a state is
    /// sent once, which is better: a loss is noticed when the next state is due, and that one replaces it
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u32).range(1..=5000), conflicts_with = "carrier")]
    deadline: Option<u32>,
    /// Traffic on the same channel: payload that the first drone's radio sends to the second's, Mb/s
    #[arg(long, value_name = "MBPS", default_value_t = 0.0)]
    beside_unicast: f64,
    /// Traffic on the same channel: payload that the last drone's radio sends to another group, Mb/s
    #[arg(long, value_name = "MBPS", default_value_t = 0.0)]
    beside_group: f64,
    /// A program of another middleware that carries the states instead, e.g. "python3 peers/swarm/udp.py"
    #[arg(long, value_name = "COMMAND")]
    carrier: Option<String>,
    /// Seed of the air
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Print the figures as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    map: MapArguments,
}

pub(super) fn fly(arguments: &FlyArguments) -> Result<Outcome, Box<dyn Error>> {
    let nodes = arguments.nodes;
    if !(2..=AIR_NODES_MAX).contains(&nodes) {
        return Err(format!("a live swarm has 2 to {AIR_NODES_MAX} drones, not {nodes}").into());
    }
    if !(0.0..0.95).contains(&arguments.loss) || !(0.0..0.95).contains(&arguments.kill) {
        return Err("--loss and --kill are shares from 0 to below 0.95, e.g. 0.3".into());
    }
    let rates = Rates { unicast_mbps: arguments.beside_unicast, group_mbps: arguments.beside_group };
    if [rates.unicast_mbps, rates.group_mbps].iter().any(|mbps| !(0.0..=50.0).contains(mbps)) {
        return Err("--beside-unicast and --beside-group are 0 to 50 Mb/s, e.g. 6".into());
    }
    if let Some(command) = &arguments.carrier {
        super::carrier::check(command)?;
    }
    let spec = air(arguments)?;
    let channel = channel(&spec, arguments)?;
    if arguments.deadline.is_some() {
        anstream::eprintln!(
            "noctule: a lost state is noticed when the next one is due, {} ms later, which replaces it: repairs take air from others and make no \
             state younger (measured: benchmarks/swarm); leave --deadline out to send each state once",
            1_000 / arguments.rate
        );
    }
    let title = format!("{nodes} live drones, {:.0} % loss in bursts", 100.0 * arguments.loss);
    let map = arguments.map.start(title, nodes)?;
    let stop = Stop::after(Some(arguments.seconds))?;
    let namespaces = (0..nodes).map(|_| NetworkNamespace::create()).collect::<Result<Vec<_>, _>>();
    let namespaces =
        namespaces.map_err(|error| format!("cannot make a network namespace ({error}); run as root"))?;
    let air = LiveAir::start(&namespaces.iter().collect::<Vec<_>>(), spec, arguments.seed)?;
    let beside = Beside::start(rates, &namespaces, [air.address(0), air.address(1)])
        .map_err(|error| format!("cannot send traffic beside the swarm: {error}; leave --beside-* out"))?;
    let mut drones = Vec::with_capacity(nodes);
    for (number, namespace) in namespaces.iter().enumerate() {
        match start(namespace, (number, nodes), &air, &channel) {
            Ok(drone) => drones.push(drone),
            Err(error) => {
                drones.iter_mut().for_each(Drone::end);
                return Err(format!("cannot start drone {number}: {error}").into());
            }
        }
    }
    let half = (arguments.seconds / 2, arguments.kill);
    let figures = Watch::new(&air, nodes).until(&stop, half, &mut drones, map);
    drones.iter_mut().for_each(Drone::end);
    let received_bytes = beside.received_bytes();
    drop(beside);
    let figures = finish(figures, received_bytes, &air.stop());
    match arguments.json {
        true => anstream::println!("{}", serde_json::to_string_pretty(&figures)?),
        false => anstream::println!("{figures:#?}"),
    }
    let valid = figures.collisions == 0 && figures.lost_nodes == 0;
    Ok(if valid { Outcome::Done } else { Outcome::NotValid })
}

/// Why a swarm cannot fly on the air that is wanted.
#[derive(Debug, thiserror::Error)]
enum FlyError {
    #[error("--band is {0}; give 2.4 or 5")]
    Band(f64),
    #[error(
        "--multicast-mbps is {0}; give 6, 9, 12, 18, 24, 36, 48 or 54, and at 2.4 GHz also 1, 2, 5.5 or 11"
    )]
    MulticastRate(f64),
    #[error(
        "the air cannot carry this: {nodes} drones × {hz} Hz × {access_ms:.2} ms at {mbps} Mb/s are {load_percent:.0} % of the air, and \
         the budget is {budget_percent:.0} %; {way_out}",
        budget_percent = 100.0 * AIR_BUDGET
    )]
    Air { nodes: usize, hz: f64, access_ms: f64, mbps: f64, load_percent: f64, way_out: &'static str },
}

fn air(arguments: &FlyArguments) -> Result<AirSpec, FlyError> {
    let band = match arguments.band {
        2.4 => Band::Ghz2,
        5.0 => Band::Ghz5,
        other => return Err(FlyError::Band(other)),
    };
    let rate = Rate::from_mbps(arguments.multicast_mbps).filter(|rate| band == Band::Ghz2 || !rate.is_dsss());
    let multicast_rate = rate.ok_or(FlyError::MulticastRate(arguments.multicast_mbps))?;
    let bursts = (arguments.loss > 0.0).then(|| Bursts { loss: arguments.loss, mean: Span::from_ms(300) });
    let radio = RadioSpec { bursts, ..RadioSpec::default() };
    Ok(AirSpec { band, multicast_rate, radio, ..AirSpec::default() })
}

/// Arguments of a drone that describe its channel; or why the channel cannot carry the swarm.
fn channel(spec: &AirSpec, arguments: &FlyArguments) -> Result<Vec<String>, FlyError> {
    let (nodes, rate) = (arguments.nodes, spec.multicast_rate);
    let payload_bytes = STATE_BYTES as u32 + ENVELOPE_BYTES;
    let airtime = rate.airtime(payload_bytes + HEADERS_BYTES);
    let access = rate.access_time(spec.band, payload_bytes);
    let load = |rate_hz: f64| broadcast_load(spec, nodes, payload_bytes, rate_hz);
    let wanted_hz = f64::from(arguments.rate);
    // A rate of 802.11b is refused for what is asked of it; another falls as far as it may.
    let (hz, way_out) = match rate.is_dsss() {
        true => (wanted_hz, "give --multicast-mbps 6 or more (`iw dev IF set mcast_rate 24`)"),
        false => (LEAST_HZ.min(wanted_hz), "fly fewer, or give a higher --multicast-mbps"),
    };
    if load(hz) > AIR_BUDGET {
        let (access_ms, mbps, load_percent) = (1e3 * access.as_s_f64(), rate.mbps(), 100.0 * load(hz));
        return Err(FlyError::Air { nodes, hz, access_ms, mbps, load_percent, way_out });
    }
    let target = AIR_BUDGET * airtime.as_s_f64() / access.as_s_f64();
    let words = ["--rate", "--target", "--airtime-ns"].map(str::to_owned);
    let values = [arguments.rate.to_string(), target.to_string(), airtime.ns().to_string()];
    let mut channel: Vec<String> =
        words.into_iter().zip(values).flat_map(|(word, value)| [word, value]).collect();
    channel.extend(arguments.deadline.iter().flat_map(|ms| ["--deadline".to_owned(), ms.to_string()]));
    channel.extend(arguments.carrier.iter().flat_map(|command| ["--carrier".to_owned(), command.clone()]));
    Ok(channel)
}

fn finish(figures: Figures, received_bytes: u64, report: &AirReport) -> Figures {
    let run_ns = (figures.seconds * 1e9).max(1.0);
    Figures {
        air_utilisation: report.air.busy_ns as f64 / run_ns,
        frames: report.air.sent,
        bytes: report.air.sent_bytes,
        beside_unicast_mbps: 8e3 * received_bytes as f64 / run_ns,
        airtime: report.air.airtime_ns as f64 / run_ns,
        air_late_max_ms: report.late_max_ns as f64 / 1e6,
        air_cpu_share: report.cpu_ns as f64 / run_ns,
        ..figures
    }
}
