//! Reads what a run leaves behind with other people's programs: the Python packages `mcap` and
//! `hdrhistogram` must find in `samples.mcap` and `latency.hlog` what `run.json` says.

use crate::shell;

const VENV: &str = "target/readers/venv";
const PACKAGES: &str = "mcap==1.6.0 mcap-ros2-support==0.6.0 hdrhistogram==0.10.8";

/// Writes a report of made-up samples and has it read; makes a Python environment if there is none.
pub fn run() -> Result<(), String> {
    let python = format!("{VENV}/bin/python");
    if !shell::root().join(&python).exists() {
        println!("making a Python environment in {VENV}");
        shell::run(&format!("python3 -m venv {VENV}"))?;
        let pip = "-m pip install --quiet --disable-pip-version-check";
        // Half an environment would pass for a whole one the next time.
        shell::run(&format!("{python} {pip} {PACKAGES} || {{ rm -r {VENV}; false; }}"))?;
    }
    let report = "target/readers/report";
    shell::run(&format!("cargo run --quiet -p noctule-lab --example synthetic_report -- {report} 2 2000"))?;
    shell::run(&format!("{python} xtask/src/readers/check.py {report}"))
}
