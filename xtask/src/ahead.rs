//! Compiling ahead: many steps wait for an emulator, a browser or a timer, and meanwhile what later steps need is compiled with the lowest
//! priority.

use std::fs::File;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::{c_library, generated, programs, python, shell};

const LOG: &str = "target/ahead.log";

/// The process group of the builds.
static GROUP: OnceLock<u32> = OnceLock::new();

/// Starts the builds with optimisation, in the order in which the steps need them, and returns. A step that needs one runs the same line: it
/// waits for Cargo's lock and finds it done. What fails here fails there, too, and is shown there.
pub fn start() -> Result<(), String> {
    let [library, generator] = c_library::BUILDS;
    let wheel = python::build_into("target/ahead");
    let builds = [library, generator, &wheel, generated::BUILD_EXAMPLES, programs::BUILD_RELEASE];
    let lines: String = builds.map(|line| format!("({line}); ")).concat();
    let log = shell::root().join(LOG);
    let log = File::create(&log).map_err(|error| format!("{}: {error}", log.display()))?;
    let errors = log.try_clone().map_err(|error| format!("{LOG}: {error}"))?;
    println!("what later steps need is compiled meanwhile; {LOG} has its output");
    // A group of its own, so that its priority can be raised; it ends with this program all the same.
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "TERM", "nice", "-n", "19", "bash", "-c"]);
    command
        .arg(format!("trap 'trap - TERM; kill 0' TERM; {{ {lines} }} & wait"))
        .current_dir(shell::root())
        .process_group(0);
    command.stdin(Stdio::null()).stdout(log).stderr(errors);
    // Not waited for: the last step that needs a build ends after it.
    let child = command.spawn().map_err(|error| format!("cannot start setpriv: {error}"))?;
    let _ = GROUP.set(child.id());
    Ok(())
}

/// From here on steps wait for the builds, which other programs of this machine must not starve.
pub fn raise() -> Result<(), String> {
    if let Some(group) = GROUP.get() {
        // It may have ended.
        if shell::output(&format!("renice -n 0 -g {group}")).is_none() {
            println!("what compiles ahead has ended, or keeps the lowest priority: to raise it takes root");
        }
    }
    Ok(())
}
