//! `noctule gateway --zenoh`: the bridge is a program of its own, built apart, for Zenoh brings some 300 crates.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use noctule::clock::LocalClock;

use super::process::BridgeProcess;

const PROGRAM: &str = "noctule-zenoh";
/// Stands for the endpoint where none is named.
const HERE: &str = "tcp/localhost:7447";

#[derive(clap::Args)]
pub(crate) struct ZenohArguments {
    /// Exchange topics and services with a Zenoh network, such as ROS 2's with rmw_zenoh, by a router at this endpoint; its domain is
    /// ROS_DOMAIN_ID, else 0. Without a board's line named, that is all
    #[arg(long, value_name = "ENDPOINT", num_args = 0..=1, default_missing_value = HERE)]
    zenoh: Option<String>,
    /// File of Zenoh's own settings (JSON5), such as of TLS
    #[arg(long, value_name = "FILE", requires = "zenoh")]
    zenoh_config: Option<PathBuf>,
    /// Exchange only these topics and services; * matches any characters; repeatable
    #[arg(long, value_name = "PATTERN", requires = "zenoh")]
    zenoh_topic: Vec<String>,
    /// Do not exchange these; repeatable
    #[arg(long, value_name = "PATTERN", requires = "zenoh")]
    zenoh_except: Vec<String>,
    /// Stamp with an artificial clock: offset=5s,ppm=50,step=20ms@30s[,since=NS]
    #[arg(long, value_name = "CLOCK", requires = "zenoh")]
    zenoh_clock: Option<LocalClock>,
}

impl ZenohArguments {
    /// Starts the bridge if `--zenoh` was given.
    pub(crate) fn start(
        &self,
        bus_domain: Option<u32>,
        every: Duration,
        json: bool,
    ) -> Result<Option<BridgeProcess>, Box<dyn Error>> {
        let Some(endpoint) = &self.zenoh else { return Ok(None) };
        let domain = domain(std::env::var("ROS_DOMAIN_ID").ok().as_deref())?;
        let own = std::env::current_exe()?;
        let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut command = Command::new(program(&own, &checkout)?);
        if self.zenoh_config.is_none() || endpoint != HERE {
            command.arg(format!("--endpoint={endpoint}"));
        }
        command.args(["--domain", &domain.to_string()]);
        command.args(["--bus-domain", &bus_domain.unwrap_or(domain).to_string()]);
        command.args(["--every", &every.as_secs_f64().to_string()]);
        for (option, patterns) in [("--topic", &self.zenoh_topic), ("--except", &self.zenoh_except)] {
            command.args(patterns.iter().map(|pattern| format!("{option}={pattern}")));
        }
        if let Some(file) = &self.zenoh_config {
            command.arg("--config").arg(file);
        }
        command.args(self.zenoh_clock.as_ref().map(|clock| format!("--clock={clock}")));
        command.args(json.then_some("--json"));
        Ok(Some(BridgeProcess::start(PROGRAM, command)?))
    }
}

/// Why the bridge cannot be started.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum ZenohError {
    #[error("ROS_DOMAIN_ID is {0:?}, which is no number; set it to one, such as 0, or leave it out")]
    Domain(String),
    #[error(
        "{PROGRAM} is not there; build it in a checkout, once, by `cargo xtask bridge zenoh` (some 300 crates: minutes, and a network), or put it \
         beside {}",
        own.display()
    )]
    NotBuilt { own: PathBuf },
}

/// ROS 2's domain.
fn domain(variable: Option<&str>) -> Result<u32, ZenohError> {
    let text = variable.filter(|text| !text.is_empty()).unwrap_or("0");
    text.parse().map_err(|_| ZenohError::Domain(text.to_owned()))
}

/// The bridge's program: beside this one, or where a checkout builds it.
fn program(own: &Path, checkout: &Path) -> Result<PathBuf, ZenohError> {
    let beside = own.with_file_name(PROGRAM);
    let built = checkout.join("bridges/zenoh/target/release").join(PROGRAM);
    let found = [beside, built].into_iter().find(|path| path.is_file());
    found.ok_or_else(|| ZenohError::NotBuilt { own: own.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_taken_from_beside_this_program_and_then_from_the_checkout() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("bin/noctule");
        let checkout = folder.path().join("checkout");
        let fault = program(&own, &checkout).unwrap_err().to_string();
        assert!(fault.contains("cargo xtask bridge zenoh") && !fault.contains('\n'), "{fault}");
        for place in [checkout.join("bridges/zenoh/target/release"), folder.path().join("bin")] {
            std::fs::create_dir_all(&place).unwrap();
            std::fs::write(place.join(PROGRAM), "").unwrap();
            assert_eq!(program(&own, &checkout), Ok(place.join(PROGRAM)));
        }
    }

    #[test]
    fn a_domain_that_is_no_number_is_one_sentence() {
        assert_eq!((domain(None), domain(Some("")), domain(Some("7"))), (Ok(0), Ok(0), Ok(7)));
        assert!(domain(Some("seven")).unwrap_err().to_string().contains("ROS_DOMAIN_ID is \"seven\""));
    }
}
