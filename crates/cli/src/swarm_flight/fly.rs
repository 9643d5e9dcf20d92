//! `noctule swarm fly`: namespaces, the air between them, two processes for each drone, and who counts.

use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use noctule_link_emulator::LiveAir;
use noctule_link_emulator::air::{AIR_NODES_MAX, AirReport};
use noctule_netsim::air::{AirSpec, Band, Bursts, HEADERS_BYTES, RadioSpec, Rate, broadcast_load};
use noctule_swarm::Vector;
use noctule_swarm::state::STATE_BYTES;
use noctule_sys::namespace::NetworkNamespace;
use noctule_timebase::Span;

use super::drone::LEAST_HZ;
use super::map::{KnownDot, MapArguments};
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
    /// How long
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

/// What a drone said last.
#[derive(Clone, Debug)]
pub(super) struct Said {
    pub(super) at_ns: i64,
    pub(super) position_m: Vector,
    pub(super) velocity_m_s: Vector,
    pub(super) crossings: u64,
    pub(super) age_p50_ms: f64,
    pub(super) age_max_ms: f64,
    pub(super) bound_ms: f64,
    /// At its last decision.
    pub(super) known: Vec<KnownDot>,
}

/// What a radio process said last.
#[derive(Clone, Copy, Debug)]
pub(super) struct RadioSaid {
    /// Rate of states.
    pub(super) rate_hz: f64,
    /// Processor time so far.
    pub(super) cpu_s: f64,
}

/// `None` until a process has said something.
type Newest<T> = Arc<Mutex<Option<T>>>;

pub(super) struct Drone {
    radio: Child,
    pilot: Child,
    /// Where the radio reads how busy its channel is.
    survey: Option<ChildStdin>,
    said: Newest<Said>,
    radio_said: Newest<RadioSaid>,
    pub(super) killed: bool,
}

pub(super) fn fly(arguments: &FlyArguments) -> Result<Outcome, Box<dyn Error>> {
    let nodes = arguments.nodes;
    if !(2..=AIR_NODES_MAX).contains(&nodes) {
        return Err(format!("a live swarm has 2 to {AIR_NODES_MAX} drones, not {nodes}").into());
    }
    if !(0.0..0.95).contains(&arguments.loss) || !(0.0..0.95).contains(&arguments.kill) {
        return Err("--loss and --kill are shares from 0 to below 0.95, e.g. 0.3".into());
    }
    let spec = air(arguments)?;
    let channel = channel(&spec, arguments)?;
    let title = format!("{nodes} live drones, {:.0} % loss in bursts", 100.0 * arguments.loss);
    let map = arguments.map.start(title, nodes)?;
    let stop = Stop::after(Some(arguments.seconds))?;
    let namespaces = (0..nodes).map(|_| NetworkNamespace::create()).collect::<Result<Vec<_>, _>>();
    let namespaces =
        namespaces.map_err(|error| format!("cannot make a network namespace ({error}); run as root"))?;
    let air = LiveAir::start(&namespaces.iter().collect::<Vec<_>>(), spec, arguments.seed)?;
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
    let figures = finish(figures, &air.stop());
    match arguments.json {
        true => anstream::println!("{}", serde_json::to_string_pretty(&figures)?),
        false => anstream::println!("{figures:#?}"),
    }
    let valid = figures.collisions == 0 && figures.lost_nodes == 0;
    Ok(if valid { Outcome::Done } else { Outcome::NotValid })
}

fn air(arguments: &FlyArguments) -> Result<AirSpec, String> {
    let band = match arguments.band {
        2.4 => Band::Ghz2,
        5.0 => Band::Ghz5,
        other => return Err(format!("--band is {other}; give 2.4 or 5")),
    };
    let rate = Rate::from_mbps(arguments.multicast_mbps).filter(|rate| band == Band::Ghz2 || !rate.is_dsss());
    let multicast_rate = rate.ok_or_else(|| {
        format!(
            "--multicast-mbps is {}; give 6, 9, 12, 18, 24, 36, 48 or 54, and at 2.4 GHz also 1, 2, 5.5 or 11",
            arguments.multicast_mbps
        )
    })?;
    let bursts = (arguments.loss > 0.0).then(|| Bursts { loss: arguments.loss, mean: Span::from_ms(300) });
    let radio = RadioSpec { bursts, ..RadioSpec::default() };
    Ok(AirSpec { band, multicast_rate, radio, ..AirSpec::default() })
}

/// What a drone must know about its channel, as arguments; or why the channel cannot carry the swarm.
fn channel(spec: &AirSpec, arguments: &FlyArguments) -> Result<Vec<String>, String> {
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
        return Err(format!(
            "the air cannot carry this: {nodes} drones × {hz} Hz × {:.2} ms at {} Mb/s are {:.0} % of the air, and the budget \
             is {:.0} %; {way_out}",
            1e3 * access.as_s_f64(),
            rate.mbps(),
            100.0 * load(hz),
            100.0 * AIR_BUDGET
        ));
    }
    let target = AIR_BUDGET * airtime.as_s_f64() / access.as_s_f64();
    let words = ["--rate", "--target", "--airtime-ns"].map(str::to_owned);
    let values = [arguments.rate.to_string(), target.to_string(), airtime.ns().to_string()];
    let mut channel: Vec<String> =
        words.into_iter().zip(values).flat_map(|(word, value)| [word, value]).collect();
    channel.extend(arguments.carrier.iter().flat_map(|command| ["--carrier".to_owned(), command.clone()]));
    Ok(channel)
}

fn start(
    namespace: &NetworkNamespace,
    (number, nodes): (usize, usize),
    air: &LiveAir,
    channel: &[String],
) -> std::io::Result<Drone> {
    let program = std::env::current_exe()?;
    let spawn = |role: &str, input: Stdio| {
        let mut command = Command::new(&program);
        command.args(["swarm", role, "--number", &number.to_string(), "--nodes", &nodes.to_string()]);
        command.args(["--address", &air.address(number).to_string()]).args(channel);
        command.stdin(input).stdout(Stdio::piped()).stderr(Stdio::null());
        namespace.run(move || command.spawn())
    };
    let mut radio = spawn("drone-radio", Stdio::piped())?;
    let pilot = match spawn("drone-decisions", Stdio::null()) {
        Ok(pilot) => pilot,
        Err(error) => {
            end(&mut radio);
            return Err(error);
        }
    };
    let (said, radio_said) = (Arc::new(Mutex::new(None)), Arc::new(Mutex::new(None)));
    let survey = radio.stdin.take();
    let mut drone =
        Drone { radio, pilot, survey, said: said.clone(), radio_said: radio_said.clone(), killed: false };
    listen(drone.pilot.stdout.take(), said, parse)?;
    listen(drone.radio.stdout.take(), radio_said, parse_radio)?;
    Ok(drone)
}

/// Keeps the newest line of a process that says something.
fn listen<T: Send + 'static>(
    output: Option<ChildStdout>,
    newest: Newest<T>,
    parse: fn(&str) -> Option<T>,
) -> std::io::Result<()> {
    let Some(output) = output else { return Ok(()) };
    let work = move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if let Some(value) = parse(&line) {
                *newest.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
            }
        }
    };
    std::thread::Builder::new().name("lines".into()).spawn(work).map(drop)
}

fn parse(line: &str) -> Option<Said> {
    let words: Vec<&str> = line.split(' ').collect();
    let number = |at: usize| words.get(at)?.parse::<f64>().ok();
    Some(Said {
        at_ns: words.first()?.parse().ok()?,
        position_m: Vector::new(number(1)?, number(2)?, number(3)?),
        velocity_m_s: Vector::new(number(4)?, number(5)?, number(6)?),
        crossings: words.get(7)?.parse().ok()?,
        age_p50_ms: number(8)?,
        age_max_ms: number(9)?,
        bound_ms: number(10)?,
        known: words[11..].iter().take(AIR_NODES_MAX).map(|word| parse_known(word)).collect::<Option<_>>()?,
    })
}

fn parse_radio(line: &str) -> Option<RadioSaid> {
    let (rate_hz, cpu_s) = line.split_once(' ')?;
    Some(RadioSaid { rate_hz: rate_hz.parse().ok()?, cpu_s: cpu_s.parse().ok()? })
}

/// Number, position, radius in m and age in ms of a neighbour.
fn parse_known(word: &str) -> Option<KnownDot> {
    let (node, rest) = word.split_once(':')?;
    let numbers: Vec<f64> = rest.split(':').map(str::parse).collect::<Result<_, _>>().ok()?;
    let [x, y, z, radius_m, age_ms] = numbers[..] else { return None };
    Some(KnownDot { node: node.parse().ok()?, position_m: Vector::new(x, y, z), radius_m, age_ms })
}

fn end(child: &mut Child) {
    // It may have ended by itself.
    let _ = child.kill();
    let _ = child.wait();
}

impl Drone {
    pub(super) fn end(&mut self) {
        end(&mut self.radio);
        end(&mut self.pilot);
    }

    /// What a radio's survey says at a time: the channel has been busy for so long.
    pub(super) fn survey(&mut self, at_ns: i64, busy: Span) {
        let Some(input) = &mut self.survey else { return };
        if writeln!(input, "{at_ns} {}", busy.ns()).is_err() {
            // The process has ended; that is counted elsewhere.
            self.survey = None;
        }
    }

    /// What the radio process said last; `None` before the first survey.
    pub(super) fn radio_said(&self) -> Option<RadioSaid> {
        *self.radio_said.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn said(&self) -> Option<Said> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn finish(figures: Figures, report: &AirReport) -> Figures {
    let run_ns = (figures.seconds * 1e9).max(1.0);
    Figures {
        air_utilisation: report.air.busy_ns as f64 / run_ns,
        frames: report.air.sent,
        bytes: report.air.sent_bytes,
        airtime: report.air.airtime_ns as f64 / run_ns,
        air_late_max_ms: report.late_max_ns as f64 / 1e6,
        air_cpu_share: report.cpu_ns as f64 / run_ns,
        ..figures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drones_line_is_read_and_a_broken_one_is_not() {
        let said = parse("17 1 2 3 4 5 6 2 120.5 300 0.8 3:1.5:2:3:0.7:110 9:0:0:0:4:300").unwrap();
        assert_eq!((said.at_ns, said.crossings, said.known.len()), (17, 2, 2));
        assert_eq!((said.known[1].node, said.known[0].radius_m, said.known[0].age_ms), (9, 0.7, 110.0));
        // Before anything is heard.
        let alone = parse("17 1 2 3 4 5 6 0 NaN NaN 0").unwrap();
        assert!(alone.known.is_empty() && alone.age_p50_ms.is_nan());
        for broken in ["", "17 1 2", "17 1 2 3 4 5 6 2 1 1 0 3:1:2", "17 1 2 3 4 5 6 2 1 1 0 x:1:2:3:4:5"] {
            assert!(parse(broken).is_none(), "{broken}");
        }
    }
}
