//! `noctule fcu`: a simulated flight controller, a companion computer, or both and the line between.

use std::error::Error;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use noctule::Node;
use noctule::clock::LocalClock;
use noctule_fcu::{
    Companion, CompanionConfig, CompanionReport, Line, Mavlink, Protocol, Report, Simulator, SimulatorConfig,
    Topics, Xrce,
};
use noctule_flight::Correction;
use noctule_gateway::mavlink::bridge::MavlinkLine;
use noctule_gateway::{BAUD_DEFAULT, Gateway, GatewayBuilder};
use noctule_link_emulator::serial::SerialPump;
use noctule_netsim::link::{parse_share, parse_time};
use noctule_netsim::serial::{Adapter, Noise, SerialSpec};
use noctule_timebase::Span;
use serde_json::{Value, json};

use crate::argument::ArgumentError;
use crate::stop::Stop;
use crate::swarm::seconds;
use crate::{Outcome, units};

/// Domain of the bus for a loop of its own, so that it meets no other node.
const LOOP_DOMAIN: u32 = 4_321;
/// The companion of a loop listens longer than its controller flies.
const LOOP_TAIL: Duration = Duration::from_secs(1);

/// A serial device and its speed.
type Device = (PathBuf, u32);

/// Without a subcommand: the whole loop, a controller and a companion in a process each, over a paced serial line.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct FcuArguments {
    #[command(subcommand)]
    role: Option<Role>,
    #[command(flatten)]
    flight: Flight,
    /// Bits per second of the line
    #[arg(long, default_value_t = BAUD_DEFAULT)]
    baud: u32,
    /// Put a USB adapter with this latency timer at both ends
    #[arg(long, value_name = "TIMER", value_parser = time)]
    ftdi: Option<Span>,
    /// Share of bytes of the line that are hit
    #[arg(long, value_name = "SHARE", default_value = "0%", value_parser = noise)]
    noise: Noise,
}

#[derive(clap::Subcommand)]
enum Role {
    /// Fly: a flight controller with sensors, estimators and a clock of its own
    Board {
        #[command(flatten)]
        flight: Flight,
        /// Line to the companion: a serial device and its speed
        #[arg(long, value_name = "DEV:BAUD", value_parser = device, conflicts_with = "udp")]
        serial: Option<Device>,
        /// Line to the companion: where its gateway or agent listens
        #[arg(long, value_name = "HOST:PORT", required_unless_present = "serial")]
        udp: Option<String>,
    },
    /// See: a camera whose poses come late, and the ages of the controller's samples
    Companion {
        #[command(flatten)]
        flight: Flight,
        /// Be the gateway as well, on this line; without one another process must be
        #[arg(long, value_name = "DEV:BAUD", value_parser = device)]
        serial: Option<Device>,
        /// Be the gateway as well, on this UDP port
        #[arg(long, value_name = "PORT", conflicts_with = "serial")]
        udp: Option<u16>,
        /// Domain of the bus
        #[arg(long, value_name = "N", default_value_t = 0)]
        domain: u32,
    },
}

/// Arguments that controller and companion share.
#[derive(Clone, clap::Args)]
pub(crate) struct Flight {
    /// Protocol on the line
    #[arg(long, value_enum, default_value = "xrce")]
    protocol: ProtocolName,
    /// The controller's clock, e.g. offset=5s,ppm=40,step=20ms@30s
    #[arg(long, value_name = "CLOCK", default_value = "offset=1000s,ppm=40")]
    clock: LocalClock,
    /// Inertial samples a second
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=2_000))]
    imu_hz: u32,
    /// Poses a second
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pose_hz: u32,
    /// Delay from a picture to its pose
    #[arg(long, default_value = "30ms", value_name = "TIME", value_parser = time)]
    pipeline: Span,
    /// Time at the beginning that does not count
    #[arg(long, default_value = "5", value_name = "SECONDS", value_parser = seconds)]
    warm_up: Duration,
    /// How long it flies, warm-up included
    #[arg(long, default_value = "30", value_name = "SECONDS", value_parser = seconds)]
    seconds: Duration,
    /// Decides all errors of sensors and line
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, clap::ValueEnum, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ProtocolName {
    /// DDS-XRCE, by the C client that boards run
    Xrce,
    /// MAVLink
    Mavlink,
}

impl ProtocolName {
    pub(crate) fn word(self) -> &'static str {
        match self {
            ProtocolName::Xrce => "xrce",
            ProtocolName::Mavlink => "mavlink",
        }
    }
}

pub(crate) fn run(arguments: &FcuArguments) -> Result<Outcome, Box<dyn Error>> {
    match &arguments.role {
        None => both(arguments),
        Some(Role::Board { flight, serial, udp }) => {
            let line = match (serial, udp) {
                (Some((path, baud)), _) => Line::serial(&path.to_string_lossy(), *baud)?,
                (None, Some(udp)) => Line::udp(address(udp)?)?,
                (None, None) => return Err("name a line with --serial or --udp".into()),
            };
            let report = fly(flight, line, serial.is_none())?;
            print(flight.json, &serde_json::to_value(&report)?, || board_text(&report));
            Ok(validity(report.fusion.iter().any(|line| line.fused > 0)))
        }
        Some(Role::Companion { flight, serial, udp, domain }) => {
            let report = accompany(flight, serial.as_ref(), *udp, *domain)?;
            print(flight.json, &serde_json::to_value(&report)?, || companion_text(&report));
            Ok(validity(report.imu_received > 0))
        }
    }
}

fn fly(flight: &Flight, line: Line, is_datagram: bool) -> Result<Report, Box<dyn Error>> {
    let stop = Stop::after(None)?;
    let config = SimulatorConfig {
        clock: flight.clock.clone(),
        imu_hz: flight.imu_hz,
        seed: flight.seed,
        corrections: Correction::ALL.to_vec(),
        warm_up: span(flight.warm_up),
        duration: span(flight.seconds),
    };
    let now = flight.clock.clone().started(noctule::clock::now()).now();
    let protocol: Box<dyn Protocol> = match flight.protocol {
        ProtocolName::Xrce => Box::new(Xrce::new(1 + (flight.seed as u32 & 0xFFFF), is_datagram)?),
        ProtocolName::Mavlink => Box::new(Mavlink::new(now)),
    };
    Ok(Simulator::new(config, line, protocol).run(&|| stop.is_due())?)
}

fn accompany(
    flight: &Flight,
    serial: Option<&Device>,
    udp: Option<u16>,
    domain: u32,
) -> Result<CompanionReport, Box<dyn Error>> {
    let stop = Stop::after(None)?;
    let node = Arc::new(Node::builder("companion").domain(domain).open()?);
    let builder = match (flight.protocol, serial, udp) {
        (ProtocolName::Xrce, Some((path, baud)), _) => Some(Gateway::builder().serial(path, *baud)),
        (ProtocolName::Xrce, None, Some(port)) => Some(Gateway::builder().udp(port)),
        (ProtocolName::Mavlink, Some((path, baud)), _) => {
            Some(Gateway::builder().mavlink(MavlinkLine::Serial(path.clone(), *baud)))
        }
        (ProtocolName::Mavlink, None, Some(port)) => {
            Some(Gateway::builder().mavlink(MavlinkLine::Listen(port)))
        }
        (_, None, None) => None,
    };
    // Kept as long as the companion runs.
    let _gateway = builder.map(|builder: GatewayBuilder| builder.attach(&node)).transpose()?;
    let config = CompanionConfig {
        topics: match flight.protocol {
            ProtocolName::Xrce => Topics::Px4,
            ProtocolName::Mavlink => Topics::Mavros,
        },
        pose_hz: flight.pose_hz,
        pipeline: flight.pipeline,
        seed: flight.seed,
        warm_up: span(flight.warm_up),
        duration: span(flight.seconds),
    };
    Companion::new(config, &node)?.run(&|| stop.is_due())
}

impl Flight {
    /// A flight over a line of its own, with the usual rates.
    pub(crate) fn of(
        protocol: ProtocolName,
        clock: LocalClock,
        (warm_up, seconds): (Duration, Duration),
        seed: u64,
    ) -> Flight {
        let pipeline = Span::from_ms(30);
        Flight { protocol, clock, imu_hz: 200, pose_hz: 30, pipeline, warm_up, seconds, seed, json: true }
    }
}

/// Result of a whole loop.
pub(crate) struct Flown {
    /// Reports of line, controller and companion.
    pub(crate) value: Value,
    /// Whether each received samples of the other.
    pub(crate) valid: bool,
}

/// The usual loop: a line without faults.
pub(crate) fn fly_both(flight: &Flight) -> Result<Flown, Box<dyn Error>> {
    fly_over(flight, SerialSpec { baud: BAUD_DEFAULT, ..SerialSpec::default() })
}

fn both(arguments: &FcuArguments) -> Result<Outcome, Box<dyn Error>> {
    let adapter = |latency_timer| Adapter { latency_timer, frame: Span::from_ms(1) };
    let spec = SerialSpec {
        baud: arguments.baud,
        adapter: arguments.ftdi.map(adapter),
        noise: arguments.noise,
        ..SerialSpec::default()
    };
    let flown = fly_over(&arguments.flight, spec)?;
    print(arguments.flight.json, &flown.value, || loop_text(&flown.value));
    Ok(validity(flown.valid))
}

/// A controller and a companion as processes, and the line between in this one.
fn fly_over(flight: &Flight, spec: SerialSpec) -> Result<Flown, Box<dyn Error>> {
    let folder = std::env::temp_dir().join(format!("noctule-fcu-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let (baud, ends) = (spec.baud, [folder.join("board"), folder.join("companion")]);
    let pump = SerialPump::start(spec, flight.seed, ends.clone())?;
    let result = processes(flight, &ends, baud);
    let line = pump.stop();
    let _ = std::fs::remove_dir_all(&folder);
    let [board, companion] = result?;
    let bytes = line?.directions.map(|direction| direction.sent);
    let fused = board["fusion"]
        .as_array()
        .is_some_and(|lines| lines.iter().any(|line| line["fused"].as_u64().is_some_and(|fused| fused > 0)));
    let valid = fused && companion["imu_received"].as_u64() > Some(0);
    let value = json!({
        "protocol": flight.protocol.word(), "baud": baud,
        "line": { "board_to_companion_bytes": bytes[0], "companion_to_board_bytes": bytes[1] },
        "board": board, "companion": companion,
    });
    Ok(Flown { value, valid })
}

fn processes(flight: &Flight, ends: &[PathBuf; 2], baud: u32) -> Result<[Value; 2], Box<dyn Error>> {
    let mut longer = flight.clone();
    longer.seconds += LOOP_TAIL;
    let companion = child("companion", &longer, &ends[1], baud)?;
    let board = child("board", flight, &ends[0], baud)?;
    let board = finished(board, "the flight controller");
    let companion = finished(companion, "the companion");
    Ok([board?, companion?])
}

fn child(role: &str, flight: &Flight, end: &Path, baud: u32) -> Result<Child, Box<dyn Error>> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["fcu", role, "--json", "--protocol", flight.protocol.word()]);
    command.arg("--serial").arg(format!("{}:{baud}", end.display()));
    for (name, value) in [
        ("--clock", flight.clock.to_string()),
        ("--imu-hz", flight.imu_hz.to_string()),
        ("--pose-hz", flight.pose_hz.to_string()),
        ("--pipeline", format!("{}us", flight.pipeline.ns() / 1_000)),
        ("--warm-up", flight.warm_up.as_secs_f64().to_string()),
        ("--seconds", flight.seconds.as_secs_f64().to_string()),
        ("--seed", flight.seed.to_string()),
    ] {
        command.args([name, &value]);
    }
    if role == "companion" {
        command.args(["--domain", &LOOP_DOMAIN.to_string()]);
    }
    Ok(command.stdout(Stdio::piped()).stdin(Stdio::null()).spawn()?)
}

fn finished(child: Child, program: &str) -> Result<Value, Box<dyn Error>> {
    let output = child.wait_with_output()?;
    serde_json::from_slice(&output.stdout).map_err(|_| format!("{program} ended without a report").into())
}

fn print(as_json: bool, value: &Value, text: impl Fn() -> String) {
    match as_json {
        true => anstream::println!("{value}"),
        false => anstream::print!("{}", text()),
    }
}

fn validity(valid: bool) -> Outcome {
    if valid { Outcome::Done } else { Outcome::NotValid }
}

fn board_text(report: &Report) -> String {
    board_lines(&serde_json::to_value(report).unwrap_or_default())
}

fn companion_text(report: &CompanionReport) -> String {
    companion_lines(&serde_json::to_value(report).unwrap_or_default())
}

fn loop_text(value: &Value) -> String {
    let line = &value["line"];
    format!(
        "{} over a serial line of {} baud; {} bytes to the companion, {} to the controller\n\n{}\n{}",
        value["protocol"].as_str().unwrap_or(""),
        value["baud"],
        line["board_to_companion_bytes"],
        line["companion_to_board_bytes"],
        companion_lines(&value["companion"]),
        board_lines(&value["board"])
    )
}

fn companion_lines(report: &Value) -> String {
    format!(
        "inertial samples at the companion: {} received, {} missed; age p50 {}, p99 {}, max {}; bound {}\n",
        report["imu_received"],
        report["imu_missed"],
        time_text(&report["age_p50_ns"]),
        time_text(&report["age_p99_ns"]),
        time_text(&report["age_max_ns"]),
        time_text(&report["bound_p50_ns"])
    )
}

fn board_lines(report: &Value) -> String {
    let (ages, traffic) = (&report["ages"], &report["traffic"]);
    let mut text = format!(
        "poses at the controller: {} received; true age p50 {}, p99 {}, max {}; known within {} (worst bound {}), \
         {} outside their bound\n\nposition error over the flight\n",
        traffic["poses"],
        time_text(&ages["true_p50_ns"]),
        time_text(&ages["true_p99_ns"]),
        time_text(&ages["true_max_ns"]),
        time_text(&ages["error_max_ns"]),
        time_text(&ages["bound_max_ns"]),
        ages["bound_violations"]
    );
    for line in report["fusion"].as_array().into_iter().flatten() {
        let metres = |value: &Value| value.as_f64().map_or_else(|| "-".into(), |m| format!("{m:.3} m"));
        text += &format!(
            "  {:<12} rms {:>8}   max {:>8}   {} fused, {} refused, {} restarts\n",
            line["correction"].as_str().unwrap_or(""),
            metres(&line["position_rms_m"]),
            metres(&line["position_max_m"]),
            line["fused"],
            line["refused"],
            line["resets"]
        );
    }
    let memory = report["memory_peak_bytes"].as_f64().map_or_else(|| "?".into(), units::bytes);
    text + &format!(
        "protocol: {} of processor time a message; memory of the process {memory}\n",
        time_text(&report["protocol_cpu_ns_per_message"])
    )
}

fn time_text(value: &Value) -> String {
    value.as_i64().map_or_else(|| "unknown".into(), |ns| units::time(Span::from_ns(ns)))
}

fn span(duration: Duration) -> Span {
    Span::from_ns(i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX))
}

fn time(text: &str) -> Result<Span, ArgumentError> {
    parse_time(text).ok_or(ArgumentError::Duration { example: "30ms" })
}

fn noise(text: &str) -> Result<Noise, ArgumentError> {
    parse_share(text).map(Noise::of).ok_or(ArgumentError::NoiseShare)
}

fn device(text: &str) -> Result<Device, ArgumentError> {
    let parts = text.rsplit_once(':').and_then(|(path, baud)| Some((path.into(), baud.parse().ok()?)));
    parts.ok_or_else(|| ArgumentError::Device(text.to_owned()))
}

fn address(text: &str) -> Result<SocketAddr, ArgumentError> {
    let mut found = text.to_socket_addrs().map_err(|cause| ArgumentError::Address {
        text: text.to_owned(),
        cause,
        example: "127.0.0.1:8888",
    })?;
    found.next().ok_or_else(|| ArgumentError::NoAddress(text.to_owned()))
}
