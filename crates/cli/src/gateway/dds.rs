//! `noctule gateway --dds`: the [bridge](super::bridge) is a program of its own, which is started and looked after.

use std::error::Error;
use std::net::Ipv4Addr;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use super::bridge::{self, PROGRAM};

/// A bridge that has ended is started again after this.
const PAUSE: Duration = Duration::from_secs(1);

#[derive(clap::Args)]
pub(crate) struct DdsArguments {
    /// Exchange topics with this DDS domain, ROS 2's ROS_DOMAIN_ID; without a board's line named, that is all
    #[arg(long, value_name = "DOMAIN", value_parser = clap::value_parser!(u32).range(0..=232))]
    pub(crate) dds: Option<u32>,
    /// Exchange only these topics; * stands for any characters; repeatable
    #[arg(long, value_name = "PATTERN", requires = "dds")]
    dds_topic: Vec<String>,
    /// Do not exchange these topics; repeatable
    #[arg(long, value_name = "PATTERN", requires = "dds")]
    dds_except: Vec<String>,
    /// DDS only over the interface with this address
    #[arg(long, value_name = "ADDRESS", requires = "dds")]
    dds_interface: Option<Ipv4Addr>,
}

/// The bridge's process. It prints to the same output; its input's end ends it, however this process ends.
pub(crate) struct Dds {
    command: Command,
    running: Option<(Child, Option<ChildStdin>)>,
    start_at: Instant,
}

impl Dds {
    /// Starts the bridge if `--dds` was given, and builds it before that if need be.
    pub(crate) fn start(
        arguments: &DdsArguments,
        bus_domain: Option<u32>,
        every: Duration,
        json: bool,
    ) -> Result<Option<Dds>, Box<dyn Error>> {
        let Some(domain) = arguments.dds else { return Ok(None) };
        let mut command = Command::new(bridge::program()?);
        command.arg(domain.to_string()).arg("--with-input");
        // Boards appear in the domain of the bus that has the number of their DDS domain.
        command.args(["--bus-domain", &bus_domain.unwrap_or(domain).to_string()]);
        command.args(["--every", &every.as_secs_f64().to_string()]);
        let patterns = [("--topic", &arguments.dds_topic), ("--except", &arguments.dds_except)];
        for (option, patterns) in patterns {
            command.args(patterns.iter().map(|pattern| format!("{option}={pattern}")));
        }
        command.args(arguments.dds_interface.map(|address| format!("--interface={address}")));
        command.args(json.then_some("--json")).stdin(Stdio::piped());
        let mut dds = Dds { command, running: None, start_at: Instant::now() };
        dds.spawn()?;
        Ok(Some(dds))
    }

    fn spawn(&mut self) -> std::io::Result<()> {
        let mut child = self.command.spawn()?;
        let input = child.stdin.take();
        self.running = Some((child, input));
        Ok(())
    }

    /// Looks after it: one that has ended is started again, unless it did not like what it was told. What there is to tell.
    ///
    /// # Errors
    /// It cannot be started, or refuses its settings, about which it has said why.
    pub(crate) fn look_after(&mut self) -> Result<Option<String>, Box<dyn Error>> {
        if let Some((child, _)) = &mut self.running {
            let Some(status) = child.try_wait()? else { return Ok(None) };
            if status.code() == Some(2) {
                return Err(format!("{PROGRAM} cannot work; it says why above").into());
            }
            self.running = None;
            self.start_at = Instant::now() + PAUSE;
            return Ok(Some(format!("{PROGRAM} has ended ({status}) and is started again")));
        }
        if Instant::now() >= self.start_at {
            self.spawn()?;
        }
        Ok(None)
    }
}

impl Drop for Dds {
    /// Ends it in order, so that both sides are told that its topics go.
    fn drop(&mut self) {
        if let Some((mut child, input)) = self.running.take() {
            drop(input);
            // What it returns is of no use to anybody any more.
            let _ = child.wait();
        }
    }
}
