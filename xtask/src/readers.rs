//! Reads what a run leaves behind with other people's programs: the Python packages `mcap` and
//! `hdrhistogram` must find in `samples.mcap` and `latency.hlog` what `run.json` says, `mcap` in recordings, whole or of a recorder that
//! was killed, what our reader finds; and our reader in the files of other recorders what `rosbags` and `pyulog` find;
//! Foxglove's client library must get from our server what was published.

mod foxglove;

use crate::{programs, shell};

const VENV: &str = "target/readers/venv";
const PACKAGES: &str = "mcap==1.6.0 mcap-ros2-support==0.6.0 hdrhistogram==0.10.8 \
     rosbags==0.11.9 pyulog==1.3.0";

/// Writes a report of made-up samples and has it read; makes a Python environment if there is none.
pub fn run() -> Result<(), String> {
    let python = format!("{VENV}/bin/python");
    let pip = format!("{python} -m pip --disable-pip-version-check");
    let listed = shell::output(&format!("{pip} list --format=freeze 2>/dev/null")).unwrap_or_default();
    if !PACKAGES.split_whitespace().all(|package| listed.lines().any(|line| line == package)) {
        println!("making a Python environment in {VENV}");
        shell::run(&format!("python3 -m venv {VENV}"))?;
        shell::run(&format!("{pip} install --quiet {PACKAGES}"))?;
    }
    let report = "target/readers/report";
    programs::run_example("synthetic_report", &format!("{report} 2 2000"))?;
    shell::run(&format!("{python} xtask/src/readers/check.py {report}"))?;
    recording(&python)?;
    killed(&python)?;
    foreign(&python)?;
    foxglove::run()
}

/// Kills recorders and has what they leave read.
fn killed(python: &str) -> Result<(), String> {
    let folder = "target/readers/killed";
    shell::run(&format!(
        "rm -rf {folder}; target/debug/examples/soak_kills target/debug/noctule 40 3 --keep {folder} && \
         {python} xtask/src/readers/killed.py {folder}"
    ))
}

/// Has files of other recorders made, and reads them.
fn foreign(python: &str) -> Result<(), String> {
    let folder = "target/readers/foreign";
    shell::run(&format!(
        "rm -rf {folder}; {python} xtask/src/readers/foreign_make.py {folder} && \
         {python} xtask/src/readers/foreign_check.py target/debug/noctule target/debug/examples/as_mcap {folder}"
    ))
}

/// Records two topics of a running system and has the file read.
fn recording(python: &str) -> Result<(), String> {
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
