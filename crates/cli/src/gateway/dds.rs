//! `noctule gateway --dds`: the bridge is a program of its own, which is started and looked after.

use std::error::Error;
use std::net::Ipv4Addr;
use std::process::Command;
use std::time::Duration;

use super::bridge::{self, PROGRAM};
use super::process::BridgeProcess;

#[derive(clap::Args)]
pub(crate) struct DdsArguments {
    /// Exchange topics with this DDS domain, ROS 2's ROS_DOMAIN_ID; without a board's line named, that is all
    #[arg(long, value_name = "DOMAIN", value_parser = clap::value_parser!(u32).range(0..=232))]
    pub(crate) dds: Option<u32>,
    /// Exchange only these topics; * matches any characters; repeatable
    #[arg(long, value_name = "PATTERN", requires = "dds")]
    dds_topic: Vec<String>,
    /// Do not exchange these topics; repeatable
    #[arg(long, value_name = "PATTERN", requires = "dds")]
    dds_except: Vec<String>,
    /// DDS only over the interface with this address
    #[arg(long, value_name = "ADDRESS", requires = "dds")]
    dds_interface: Option<Ipv4Addr>,
}

/// Starts the bridge if `--dds` was given, and builds it before that if need be.
pub(crate) fn start(
    arguments: &DdsArguments,
    bus_domain: Option<u32>,
    every: Duration,
    json: bool,
) -> Result<Option<BridgeProcess>, Box<dyn Error>> {
    let Some(domain) = arguments.dds else { return Ok(None) };
    let mut command = Command::new(bridge::program()?);
    command.arg(domain.to_string());
    // Boards appear in the domain of the bus that has the number of their DDS domain.
    command.args(["--bus-domain", &bus_domain.unwrap_or(domain).to_string()]);
    command.args(["--every", &every.as_secs_f64().to_string()]);
    let patterns = [("--topic", &arguments.dds_topic), ("--except", &arguments.dds_except)];
    for (option, patterns) in patterns {
        command.args(patterns.iter().map(|pattern| format!("{option}={pattern}")));
    }
    command.args(arguments.dds_interface.map(|address| format!("--interface={address}")));
    command.args(json.then_some("--json"));
    Ok(Some(BridgeProcess::start(PROGRAM, command)?))
}
