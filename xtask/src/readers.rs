//! Reads what a run leaves behind with other people's programs: the Python packages `mcap` and
//! `hdrhistogram` must find in `samples.mcap` and `latency.hlog` what `run.json` says.

use crate::shell;

const VENV: &str = "target/readers/venv";
const PACKAGES: &str = "mcap==1.6.0 mcap-ros2-support==0.6.0 hdrhistogram==0.10.8 rosbags==0.11.9";

/// Writes a report of made-up samples and has it read; makes a Python environment if there is none.
pub fn run() -> Result<(), String> {
    let python = format!("{VENV}/bin/python");
    let has_all = format!("{python} -c 'import rosbags' 2>/dev/null");
    if !shell::root().join(&python).exists() || shell::run(&has_all).is_err() {
        println!("making a Python environment in {VENV}");
        shell::run(&format!("python3 -m venv {VENV}"))?;
        let pip = "-m pip install --quiet --disable-pip-version-check";
        // Half an environment would pass for a whole one the next time.
        shell::run(&format!("{python} {pip} {PACKAGES} || {{ rm -r {VENV}; false; }}"))?;
    }
    let report = "target/readers/report";
    shell::run(&format!("cargo run --quiet -p noctule-lab --example synthetic_report -- {report} 2 2000"))?;
    shell::run(&format!("{python} xtask/src/readers/check.py {report}"))?;
    recording(&python)
}

/// Records two topics of a running system and has the file read.
fn recording(python: &str) -> Result<(), String> {
    shell::run("cargo build --quiet -p noctule-cli")?;
    let folder = "target/readers/recording";
    // Ends with the publishers: each waits for the recorder, sends its samples, and the recorder is interrupted then.
    let swarm = "--domain 4321 --interface 127.0.0.1";
    shell::run(&format!(
        "set -e; noctule=target/debug/noctule; rm -rf {folder}; mkdir -p {folder}; \
         $noctule record --out {folder}/a.mcap {swarm} > {folder}/log & recorder=$!; \
         $noctule pub /status --types xtask/src/readers/types --type reader_msgs/msg/Status \
             \"$(cat xtask/src/readers/status.yaml)\" --reliable --wait-for 1 --seconds 60 {swarm}; \
         $noctule pub /a --reliable --keep-last 512 --rate 1000 --count 300 one --wait-for 1 --seconds 60 {swarm}; \
         $noctule pub /b --reliable --keep-last 512 --rate 1000 --count 200 two --wait-for 1 --seconds 60 {swarm}; \
         kill -INT $recorder; wait $recorder; \
         $noctule record --check {folder}/a.mcap --json > {folder}/checked.json; \
         {python} xtask/src/readers/recording.py {folder}/a.mcap {folder}/checked.json"
    ))
}
