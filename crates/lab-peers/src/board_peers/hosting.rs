//! Where the gateway between a board and its application runs: inside the application, or in a process of its own as
//! agents usually do. From there samples come through shared memory, or through DDS: then the application is a program of
//! somebody else's, Debian's Cyclone DDS, that knows nothing of Noctule.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use noctule::Node;
use noctule_gateway::Gateway;
use noctule_gateway::names::{dds_topic, dds_type};
use noctule_peer::{Delegate, Need, Open, PeerError};
use serde_json::Value;

use super::{BUS_TYPE, Sides, device, topic};
use noctule_lab::peer_manifest::{self as manifest, State};

/// A gateway process whose peer was killed ends by itself after so many seconds.
const SECONDS_MAX: &str = "900";

/// The peer that is the application behind DDS.
const DDS_PEER: &str = "cyclonedds";
/// Program of the bridge between the bus and DDS; the command builds it at its first use.
pub const DDS_BRIDGE: &str = "noctule-dds";

/// Peer and program that the option `gateway = "dds"` needs.
pub(crate) fn dds_need() -> Need {
    let (option, value) = ("gateway".into(), "dds".into());
    Need { option, value, peer: DDS_PEER.into(), program: DDS_BRIDGE.into() }
}

/// Whether the application is behind DDS.
pub(super) fn is_through_dds(options: &BTreeMap<String, String>) -> bool {
    options.get("gateway").is_some_and(|gateway| gateway == "dds")
}

/// A running gateway; ends with this.
#[derive(Debug)]
pub(super) enum Hosting {
    /// Inside the application.
    Inside(Gateway),
    /// `noctule gateway`, started by the application.
    Process(Child),
}

impl Hosting {
    /// Starts a gateway on the line that `open` names, as the option `gateway` says: `inside` (the default) or `process`;
    /// with `dds` it is not asked for here.
    /// Returns it with the number of its UDP port, if it has one.
    ///
    /// # Errors
    /// No such option, or the line cannot be had.
    pub(super) fn start(open: &Open, node: &Arc<Node>) -> Result<(Hosting, Option<u16>), PeerError> {
        let serial = match open.link.as_str() {
            "serial" => Some(device(open)?),
            _ => None,
        };
        match open.options.get("gateway").map(String::as_str) {
            None | Some("inside") => {
                let builder = match serial {
                    Some((path, baud)) => Gateway::builder().serial(path, baud),
                    None => Gateway::builder().udp(0),
                };
                let gateway = builder.attach(node).map_err(|error| PeerError(error.to_string()))?;
                let port = gateway.ports().first().map(|(_, port)| *port);
                Ok((Hosting::Inside(gateway), port))
            }
            Some("process") => process(serial, &[]),
            Some(other) => Err(PeerError(format!("gateway = \"{other}\": say inside, process or dds"))),
        }
    }

    /// Next notice of the gateway about its line.
    pub(super) fn notice(&self) -> Option<String> {
        match self {
            Hosting::Inside(gateway) => gateway.poll_notice(),
            Hosting::Process(_) => Some("nothing here; run `noctule gateway` with the line to see it".into()),
        }
    }
}

/// The application behind DDS, and the gateway on the line that `open` names, which joins both.
///
/// # Errors
/// An option that DDS does not support, or the peer that it needs is missing.
pub(super) fn delegate(open: &Open, sides: Sides) -> Result<Delegate, PeerError> {
    let no = |what: &str| Err(PeerError(format!("gateway = \"dds\": {what}")));
    if open.link != "serial" || sides.topics != 1 {
        return no("it is made for one topic of a serial line; leave link and topics out");
    }
    let ([Some(name), None] | [None, Some(name)]) = [&open.publish, &open.subscribe] else {
        return no("it goes one way; say mode = \"one_way\"");
    };
    if open.clock.is_some() {
        return no("all stamps are of one clock; leave clocks out");
    }
    let program = match peer_program()? {
        State::Built { program } => program,
        other => return no(&format!("its application is the peer {DDS_PEER}, which {other}")),
    };
    // A domain of its own on both sides: other boards of this host are none of its business.
    let domain = domain_of(&open.session).to_string();
    let joined = ["--dds", &domain, "--domain", &domain, "--dds-interface", &open.bind_address];
    let (gateway, _) = process(Some(device(open)?), &joined)?;
    let words = [
        ("link", "udp".to_owned()),
        ("option.domain", domain),
        ("option.topic", dds_topic(&topic(open, name, 0))),
        ("option.type", dds_type(BUS_TYPE)),
        ("option.reliability", sides.reliability.to_string()),
    ];
    let words = words.map(|(key, value)| (key.to_owned(), value)).into();
    Ok(Delegate { program, words, beside: Box::new(gateway) })
}

/// Where the lab that started this process has its peers.
fn peer_program() -> Result<State, PeerError> {
    let fault = |error: &dyn std::fmt::Display| PeerError(error.to_string());
    let here = std::env::current_dir().map_err(|error| fault(&error))?;
    let folder = manifest::find_folder(std::env::var_os("NOCTULE_PEERS").as_deref(), &here);
    let found = folder.map(|folder| manifest::list(&folder)).transpose().map_err(|error| fault(&error))?;
    let found = found.into_iter().flatten().find(|peer| peer.name == DDS_PEER);
    let why = "is not here: set NOCTULE_PEERS to a folder of peers";
    Ok(found.map_or(State::Broken { why: why.into() }, |peer| peer.state))
}

/// 1 to 200, by the session, which no other cell or trial has.
fn domain_of(session: &str) -> u32 {
    let hash = session.bytes().fold(0, |hash: u32, byte| hash.wrapping_mul(31).wrapping_add(byte.into()));
    1 + hash % 200
}

fn process(serial: Option<(&str, u32)>, more: &[&str]) -> Result<(Hosting, Option<u16>), PeerError> {
    let fault = |error| PeerError::of("cannot start `noctule gateway`", error);
    let mut command = Command::new(std::env::current_exe().map_err(fault)?);
    command.args(["gateway", "--json", "--seconds", SECONDS_MAX]).args(more);
    match serial {
        Some((path, baud)) => command.args(["--serial", &format!("{path}:{baud}")]),
        None => command.args(["--udp", "0"]),
    };
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().map_err(fault)?;
    let mut output = child.stdout.take().map(BufReader::new);
    let hosting = Hosting::Process(child);
    let (mut line, mut said) = (String::new(), Value::Null);
    // The bridge to DDS may say something before.
    while said.get("listening").is_none() {
        line.clear();
        let read = output.as_mut().map_or(Ok(0), |output| output.read_line(&mut line)).map_err(fault)?;
        if read == 0 {
            return Err(PeerError("`noctule gateway` ended at once; run it with the line to see why".into()));
        }
        said = serde_json::from_str(&line).unwrap_or_default();
    }
    // Its reports are not read, and a full pipe must not stop it.
    std::thread::Builder::new()
        .name("gateway says".into())
        .spawn(move || output.map(|mut output| std::io::copy(&mut output, &mut std::io::sink())))
        .map_err(fault)?;
    let port =
        said.pointer("/listening/0/port").and_then(Value::as_u64).and_then(|port| u16::try_from(port).ok());
    Ok((hosting, port))
}

impl Drop for Hosting {
    fn drop(&mut self) {
        if let Hosting::Process(child) = self {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
