//! Compiling ahead: many steps wait for an emulator, a browser or a timer, and meanwhile what later steps need is compiled with the lowest
//! priority.

use std::fs::File;
use std::process::{Command, Stdio};

use crate::{c_library, generated, programs, python, shell};

const LOG: &str = "target/ahead.log";

/// Starts the builds with optimisation, in the order in which the steps need them, and returns. A step that needs one runs the same line: it
/// waits for Cargo's lock and finds it done. What fails here fails there, too, and is shown there.
pub fn start() -> Result<(), String> {
    let [library, generator] = c_library::BUILDS;
    let wheel = python::build_into("target/ahead");
    let builds = [library, generator, &wheel, generated::BUILD_EXAMPLES, programs::BUILD_RELEASE];
    let lines: String = builds.map(|line| format!("({line}); ")).concat();
    let log = shell::root().join(LOG);
    let log = File::create(&log).map_err(|error| format!("{}: {error}", log.display()))?;
    println!("what later steps need is compiled meanwhile; {LOG} has its output");
    let mut command = Command::new("nice");
    command.args(["-n", "19", "bash", "-c", &lines]).current_dir(shell::root());
    let errors = log.try_clone().map_err(|error| format!("{LOG}: {error}"))?;
    command.stdin(Stdio::null()).stdout(log).stderr(errors);
    // Not waited for: the last step that needs a build ends after it.
    command.spawn().map(drop).map_err(|error| format!("cannot start nice: {error}"))
}
