//! `noctule teleop study --live`: the experiments with real processes, across emulated links.
//!
//! Each row brings a link up, runs the processes at its ends, and takes it down. Beside what was measured stands what virtual time
//! and theory say of the same link.

use std::error::Error;
use std::io::Read;
use std::process::{Child, Command, Stdio};

use noctule_arm::analysis::spectral_radius;
use noctule_arm::controller::CommandMode;
use noctule_arm::joint_loop::LoopConfig;
use noctule_netsim::link::LinkSpec;
use noctule_sys::clock::{now_ns, sleep_until};
use noctule_teleop::experiment::commands::{self, CommandExperiment};
use noctule_teleop::experiment::recorded;
use noctule_teleop::recording;
use serde_json::{Value, json};

/// How long a command cell runs: discovery, 4 s to settle, and two periods of the figure.
const COMMAND_RUN_NS: i64 = 16_000_000_000;
/// A motor whose controller never answers is given up.
const JOINT_SECONDS: &str = "60";
const DOMAIN: &str = "4323";
const PRIORITY: &str = "30";

/// An emulated link; taken down when dropped.
struct Link(String);

impl Link {
    fn up(spec: &str, seed: u64) -> Result<Link, Box<dyn Error>> {
        let name = format!("arm{}", std::process::id());
        let mut command = noctule();
        command.args(["link", "up", &name, "--spec", spec, "--seed", &seed.to_string(), "--json"]);
        let output = command.output()?;
        match output.status.success() {
            true => Ok(Link(name)),
            false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned().into()),
        }
    }

    /// Runs `noctule teleop …` at an end of it.
    fn run(&self, end: &str, arguments: &[&str]) -> Result<Side, Box<dyn Error>> {
        let program = std::env::current_exe()?;
        let mut command = noctule();
        command.args(["link", "exec", &self.0, end, "--"]).arg(program).arg("teleop").args(arguments);
        command.args(["--domain", DOMAIN, "--until-input-ends"]);
        if end == "b" {
            // Both ends are on this machine, and would not need the link.
            command.arg("--no-shared-memory");
        }
        if has_priority() {
            command.args(["--priority", PRIORITY]);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        Ok(Side(command.spawn()?))
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let _ = noctule().args(["link", "down", &self.0]).stdout(Stdio::null()).status();
    }
}

fn noctule() -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap_or_else(|_| "noctule".into()));
    command.stderr(Stdio::piped());
    command
}

/// Whether this user may have a real-time priority; a thread of its own tries.
fn has_priority() -> bool {
    std::thread::spawn(|| noctule_sys::scheduling::set_fifo_priority(30).is_ok()).join().unwrap_or(false)
}

/// A process at an end of a link; ends with its input.
struct Side(Child);

impl Side {
    /// Its output, once it has ended by itself.
    fn output(mut self) -> Result<String, Box<dyn Error>> {
        let mut text = String::new();
        if let Some(mut output) = self.0.stdout.take() {
            output.read_to_string(&mut text)?;
        }
        Ok(text)
    }
}

impl Drop for Side {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// E1: master, controller and recorder as processes, the first and the last at one end of the link.
pub(super) fn commands(seed: u64, links: &[String]) -> Result<Vec<Value>, Box<dyn Error>> {
    let folder = std::env::temp_dir().join(format!("noctule-teleop-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let mut rows = Vec::new();
    for spec in links {
        let mut row = json!({ "link": spec });
        for mode in [CommandMode::Hold, CommandMode::Age] {
            let word = if mode == CommandMode::Hold { "hold" } else { "age" };
            let file = folder.join(format!("{word}.mcap"));
            let live = {
                let link = Link::up(spec, seed)?;
                let name = file.to_string_lossy().into_owned();
                let sides = [
                    link.run("b", &["controller", "--command", word, "--deadline", "1s"])?,
                    link.run("a", &["page", "--no-open", "--record", &name])?,
                    link.run("a", &["master", "--operator", "figure", "--deadline", "1s"])?,
                ];
                sleep_until(now_ns() + COMMAND_RUN_NS);
                drop(sides);
                recorded::cost(&recording::read(&file)?)?
            };
            let parsed: LinkSpec = spec.parse()?;
            let experiment =
                CommandExperiment { with_profile: true, seed, ..CommandExperiment::new(mode, parsed.a_to_b) };
            let modelled = commands::run(&experiment);
            row[format!("{word}_live_mm")] = live.rms_mm.into();
            row[format!("{word}_virtual_mm")] = modelled.rms_mm.into();
            row[format!("{word}_live_age_ms")] = live.mean_age_ms.into();
            row[format!("{word}_stops")] = live.stops.into();
            row[format!("{word}_offset_doubt_mm")] = live.offset_doubt_mm.into();
            if mode == CommandMode::Age {
                row["age_bound_ms"] = live.bound_ms.into();
            } else {
                row["hold_theory_mm"] = live.hold_theory_mm.into();
            }
        }
        anstream::eprintln!("{row}");
        rows.push(row);
    }
    std::fs::remove_dir_all(&folder)?;
    Ok(rows)
}

/// E2: motor and controller at the two ends of a link.
pub(super) fn joint(seed: u64, delays_ms: &[f64]) -> Result<Vec<Value>, Box<dyn Error>> {
    let config = LoopConfig::seed();
    let mut rows = Vec::new();
    for link_ms in delays_ms {
        let half_us = (link_ms * 500.0).round();
        let link = Link::up(&format!("delay={half_us}us"), seed)?;
        let controller = link.run("b", &["joint-controller"])?;
        let motor = link.run("a", &["joint-motor", "--seconds", JOINT_SECONDS])?;
        let output = motor.output()?;
        drop(controller);
        let run: Value = serde_json::from_str(&output).map_err(|_| {
            format!(
                "the motor behind {link_ms} ms got no answers; see `noctule link up` and `noctule doctor`"
            )
        })?;
        let delay_ms = run["delay_ms"].as_f64().unwrap_or(f64::NAN);
        let radius = |samples: f64| spectral_radius(&config, samples as u32);
        // Between two whole periods, in proportion.
        let samples = delay_ms * config.rate_hz * 1e-3;
        let theory =
            radius(samples.floor()) + (radius(samples.ceil()) - radius(samples.floor())) * samples.fract();
        let row = json!({
            "link_ms": link_ms,
            "delay_ms": delay_ms,
            "deviation_ms": run["delay_deviation_ms"],
            "stable": run["verdict"]["stable"],
            "growth": run["verdict"]["growth"],
            "overshoot_percent": run["verdict"]["overshoot_percent"],
            "theory_spectral_radius": theory,
            "theory_stable": theory < 1.0,
            "late_periods": run["lateness"]["late_periods"],
            "periods": run["lateness"]["periods"],
        });
        anstream::eprintln!("{row}");
        rows.push(row);
    }
    Ok(rows)
}
