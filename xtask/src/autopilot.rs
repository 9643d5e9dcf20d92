//! The gateway meets a foreign autopilot: `pymavlink`, which ground stations are built on.

use crate::shell;

const PACKAGE: &str = "pymavlink==2.4.50";

/// Installs `pymavlink` into the project's Python environment if it is not there, and lets it fly.
pub fn run() -> Result<(), String> {
    let python = ".venv/bin/python";
    let is_there = format!("{python} -c 'import pymavlink' 2>/dev/null");
    if shell::run(&is_there).is_err() {
        println!("installing {PACKAGE} into .venv");
        shell::run(&format!("{python} -m pip install --quiet --disable-pip-version-check {PACKAGE}"))?;
    }
    shell::run(&format!("MAVLINK20=1 {python} xtask/src/autopilot/meet.py target/release/noctule"))
}
