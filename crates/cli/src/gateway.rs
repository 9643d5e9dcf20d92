//! `noctule gateway`

pub(crate) mod bridge;
mod dds;
mod process;
mod zenoh;

use std::error::Error;
use std::net::ToSocketAddrs;
use std::num::NonZeroU16;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use noctule::Node;
use noctule_gateway::ages::Stamping;
use noctule_gateway::mavlink::bridge::{MavlinkLine, MavlinkStatus};
use noctule_gateway::{
    AgentConfig, BAUD_DEFAULT, ClientStatus, DynamicDialect, Gateway, GatewayBuilder, LineStatus, References,
};
use serde_json::{Value, json};

use self::dds::DdsArguments;
use self::process::BridgeProcess;
use self::zenoh::ZenohArguments;
use crate::Outcome;
use crate::argument::ArgumentError;
use crate::stop::Stop;
use crate::swarm::seconds;
use crate::types::TypesArguments;

/// Between two reports, unless another time is requested.
const REPORT_EVERY: Duration = Duration::from_secs(10);
/// Notices are looked for this often.
const LOOK: Duration = Duration::from_millis(100);

#[derive(clap::Args)]
pub(crate) struct GatewayArguments {
    /// UDP port to listen on; 8888 if no line and no --dds or --zenoh is named at all, 0 takes a free one; repeatable
    #[arg(long, value_name = "PORT")]
    udp: Vec<u16>,
    /// Serial device, with its speed if it is not 921600; repeatable
    #[arg(long, value_name = "DEV[:BAUD]", value_parser = device)]
    serial: Vec<(PathBuf, u32)>,
    /// TCP port to listen on; repeatable
    #[arg(long, value_name = "PORT")]
    tcp: Vec<u16>,
    /// Autopilot: a serial device with its speed if it is not 921600, a UDP port to listen on, or an address to
    /// send to; repeatable
    #[arg(long, value_name = "DEV[:BAUD]|udp:PORT|udp:HOST:PORT", value_parser = autopilot)]
    mavlink: Vec<MavlinkLine>,
    /// MAVLink dialect of your own, as its XML; its messages appear as JSON under /mavlink/in
    #[arg(long, value_name = "FILE")]
    dialect: Option<PathBuf>,
    /// Put all clients into this domain of the bus; by default each is in the DDS domain it names
    #[arg(long, value_name = "N")]
    domain: Option<u32>,
    #[command(flatten)]
    dds: DdsArguments,
    #[command(flatten)]
    zenoh: ZenohArguments,
    #[command(flatten)]
    types: TypesArguments,
    /// Messages that clients' reliable input streams hold (STREAM_HISTORY of the examples of Micro XRCE-DDS), all of them at least; without it
    /// that is found out, up to 16
    #[arg(long, value_name = "N")]
    client_history: Option<NonZeroU16>,
    /// XML file of profiles that clients refer to by name
    #[arg(long, value_name = "FILE")]
    refs: Option<PathBuf>,
    /// Report on each client this often
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    every: Option<Duration>,
    /// End after so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    seconds: Option<Duration>,
    /// Print JSON: one line at the start with the ports, one per report, one per notice
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &GatewayArguments) -> Result<Outcome, Box<dyn Error>> {
    let stop = Stop::after(arguments.seconds)?;
    let every = arguments.every.unwrap_or(REPORT_EVERY);
    let dds = dds::start(&arguments.dds, arguments.domain, every, arguments.json)?;
    let zenoh = arguments.zenoh.start(arguments.domain, every, arguments.json)?;
    let mut bridges: Vec<BridgeProcess> = dds.into_iter().chain(zenoh).collect();
    if !has_line(arguments) && !bridges.is_empty() {
        return bridges_alone(&mut bridges, &stop, arguments.json);
    }
    let gateway = open(arguments)?;
    if arguments.json {
        let ports = gateway.ports().iter().map(|(kind, port)| json!({ "kind": kind, "port": port }));
        anstream::println!("{}", json!({ "listening": ports.collect::<Vec<_>>() }));
    } else {
        for (kind, port) in gateway.ports() {
            anstream::println!("listening on {kind} {port}");
        }
    }
    let mut report_at = Instant::now() + every;
    loop {
        while let Some(notice) = gateway.poll_notice() {
            tell(&notice, arguments.json);
        }
        look_after(&mut bridges, arguments.json)?;
        if stop.is_due() || Instant::now() >= report_at {
            report(&gateway, arguments.json);
            report_at = Instant::now() + every;
        }
        if stop.is_due() {
            return Ok(Outcome::Done);
        }
        stop.wait_until(report_at.min(Instant::now() + LOOK));
    }
}

fn tell(notice: &str, json: bool) {
    match json {
        true => anstream::println!("{}", json!({ "notice": notice })),
        false => anstream::eprintln!("noctule: {notice}"),
    }
}

/// Starts bridges again that have ended.
fn look_after(bridges: &mut [BridgeProcess], json: bool) -> Result<(), Box<dyn Error>> {
    for bridge in bridges {
        if let Some(notice) = bridge.look_after()? {
            tell(&notice, json);
        }
    }
    Ok(())
}

/// Without a line for boards there is nothing else to do than to look after the bridges.
fn bridges_alone(bridges: &mut [BridgeProcess], stop: &Stop, json: bool) -> Result<Outcome, Box<dyn Error>> {
    while !stop.is_due() {
        look_after(bridges, json)?;
        stop.wait_until(Instant::now() + LOOK);
    }
    Ok(Outcome::Done)
}

fn has_line(arguments: &GatewayArguments) -> bool {
    let GatewayArguments { udp, tcp, serial, mavlink, .. } = arguments;
    !(udp.is_empty() && tcp.is_empty() && serial.is_empty() && mavlink.is_empty())
}

fn open(arguments: &GatewayArguments) -> Result<Gateway, Box<dyn Error>> {
    let mut builder = Gateway::builder();
    let udp = if has_line(arguments) { &arguments.udp[..] } else { &[8888] };
    builder = udp.iter().fold(builder, |builder, port| builder.udp(*port));
    builder = arguments.tcp.iter().fold(builder, |builder, port| builder.tcp(*port));
    for (path, baud) in &arguments.serial {
        builder = builder.serial(path, *baud);
    }
    if !arguments.types.paths.is_empty() {
        builder = builder.definitions(arguments.types.of_clients()?);
    }
    builder =
        builder.limits(AgentConfig { client_history: arguments.client_history, ..AgentConfig::default() });
    builder = arguments.mavlink.iter().cloned().fold(builder, GatewayBuilder::mavlink);
    if let Some(file) = &arguments.dialect {
        let dialect = DynamicDialect::from_xml_file(file)
            .map_err(|error| format!("{}: {error}; name a MAVLink dialect's XML file", file.display()))?;
        builder = builder.dialect(dialect);
    }
    if let Some(file) = &arguments.refs {
        let name = file.display();
        let text = std::fs::read_to_string(file)
            .map_err(|error| format!("{name} cannot be read: {error}; name a file of XML profiles"))?;
        let references = References::from_xml(&text).map_err(|error| format!("{name}: {error}"))?;
        if references.is_empty() {
            return Err(
                format!("{name} has no element with a profile_name; clients can refer to nothing").into()
            );
        }
        builder = builder.references(references);
    }
    Ok(match arguments.domain {
        None => builder.open()?,
        Some(domain) => builder.attach(&Arc::new(Node::builder("noctule gateway").domain(domain).open()?))?,
    })
}

/// `DEV[:BAUD]`, `udp:PORT` or `udp:HOST:PORT`.
fn autopilot(text: &str) -> Result<MavlinkLine, ArgumentError> {
    let Some(udp) = text.strip_prefix("udp:") else {
        return device(text).map(|(path, baud)| MavlinkLine::Serial(path, baud));
    };
    if let Ok(port) = udp.parse() {
        return Ok(MavlinkLine::Listen(port));
    }
    let mut found = udp.to_socket_addrs().map_err(|cause| ArgumentError::Address {
        text: udp.to_owned(),
        cause,
        example: "udp:14540 or udp:10.41.1.1:14550",
    })?;
    found.next().map(MavlinkLine::Connect).ok_or_else(|| ArgumentError::NoAddress(udp.to_owned()))
}

/// `DEV` or `DEV:BAUD`.
fn device(text: &str) -> Result<(PathBuf, u32), ArgumentError> {
    let Some((path, baud)) = text.rsplit_once(':') else { return Ok((text.into(), BAUD_DEFAULT)) };
    // A colon may belong to the path, as in /dev/serial/by-path.
    match baud.parse() {
        Ok(0) => Err(ArgumentError::NoBaud(path.to_owned())),
        Ok(baud) => Ok((path.into(), baud)),
        Err(_) if baud.chars().all(|digit| digit.is_ascii_digit()) => {
            Err(ArgumentError::Baud { path: path.to_owned(), baud: baud.to_owned() })
        }
        Err(_) => Ok((text.into(), BAUD_DEFAULT)),
    }
}

fn report(gateway: &Gateway, as_json: bool) {
    let (lines, autopilots) = (gateway.status(), gateway.autopilots());
    if as_json {
        let lines: Vec<Value> = lines.iter().map(line_json).collect();
        let autopilots: Vec<Value> = autopilots.iter().map(autopilot_json).collect();
        return anstream::println!("{}", json!({ "lines": lines, "autopilots": autopilots }));
    }
    for (line, status) in &autopilots {
        let (counters, frames) = &status.counters;
        let peer = match status.peer {
            Some((system, component)) => format!("system {system}, component {component}"),
            None => "silent".to_owned(),
        };
        let clock = match status.clock.and_then(|known| known.bound) {
            Some(bound) => format!("clock known within {:.0} us", bound.ns() as f64 / 1e3),
            None => "clock not known".to_owned(),
        };
        anstream::println!(
            "MAVLink {}: {peer}; {} frames in, {} out, {} missed, {} bytes of noise, {clock}",
            line_name(line),
            frames.frames,
            counters.sent,
            counters.missed,
            frames.skipped_bytes
        );
    }
    for line in &lines {
        let counters = &line.counters;
        anstream::println!(
            "{}: {} received, {} sent, {} lost, {} malformed",
            line.name,
            counters.received,
            counters.sent,
            counters.lost,
            counters.malformed
        );
        for client in &line.clients {
            let state = if client.figures.is_silent { "silent" } else { "here" };
            anstream::println!(
                "  {} {} {:?} {state}: {} samples in, {} out, {} objects, {}",
                client.figures.key,
                client.figures.address,
                client.name,
                client.samples_in,
                client.samples_out,
                client.figures.objects,
                stamping(client)
            );
        }
    }
}

fn line_name(line: &MavlinkLine) -> String {
    match line {
        MavlinkLine::Serial(path, baud) => format!("{}:{baud}", path.display()),
        MavlinkLine::Listen(port) => format!("udp:{port}"),
        MavlinkLine::Connect(address) => format!("udp:{address}"),
    }
}

fn autopilot_json((line, status): &(MavlinkLine, MavlinkStatus)) -> Value {
    let (counters, frames) = &status.counters;
    let offset_ns = |known: Option<noctule_time_sync::Estimate>| known.map(|known| known.offset.ns());
    json!({
        "line": line_name(line),
        "system": status.peer.map(|(system, _)| system),
        "component": status.peer.map(|(_, component)| component),
        "offset_ns": offset_ns(status.clock),
        "bound_ns": status.clock.and_then(|known| known.bound).map(|bound| bound.ns()),
        "mavros_offset_ns": offset_ns(status.mavros_clock),
        "frames_in": frames.frames, "frames_out": counters.sent, "missed": counters.missed,
        "malformed": counters.malformed, "skipped_bytes": frames.skipped_bytes,
        "exchanges": counters.exchanges, "unexpected_replies": counters.unexpected_replies,
    })
}

fn stamping(client: &ClientStatus) -> String {
    match client.stamping {
        Stamping::Arrival => "ages from arrival".into(),
        Stamping::Client => "client-stamped, bound unknown".into(),
        Stamping::Proven(bound) => format!("client-stamped, proven within {:.0} us", bound.ns() as f64 / 1e3),
    }
}

fn line_json(line: &LineStatus) -> Value {
    let clients = line.clients.iter().map(|client| {
        let (stamping, bound_ns) = match client.stamping {
            Stamping::Arrival => ("arrival", None),
            Stamping::Client => ("client", None),
            Stamping::Proven(bound) => ("client", Some(bound.ns())),
        };
        json!({
            "key": client.figures.key.to_string(),
            "address": client.figures.address.to_string(),
            "name": client.name,
            "silent": client.figures.is_silent,
            "silent_for_ns": client.silent_for.ns(),
            "messages_in": client.figures.messages_in,
            "messages_out": client.figures.messages_out,
            "samples_in": client.samples_in,
            "samples_out": client.samples_out,
            "objects": client.figures.objects,
            "stamped_by": stamping,
            "bound_ns": bound_ns,
        })
    });
    let c = &line.counters;
    json!({
        "name": line.name,
        "clients": clients.collect::<Vec<_>>(),
        "samples_in": line.samples_in, "samples_out": line.samples_out,
        "received": c.received, "sent": c.sent, "malformed": c.malformed, "unknown_session": c.unknown_session,
        "over_budget": c.over_budget, "lost": c.lost, "repeated": c.repeated, "beyond": c.beyond,
        "held_back": c.held_back, "too_large": c.too_large + line.too_large, "undeliverable": c.undeliverable,
        "replaced": c.replaced, "missed": line.missed, "unanswered": line.unanswered, "answers_dropped": c.answers_dropped, "events_dropped": c.events_dropped,
        "refused_full": c.refused_full,
    })
}
