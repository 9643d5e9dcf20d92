//! A drone's radio process when another middleware carries the states: for comparison.
//!
//! The foreign program gets the own states as lines of hexadecimal digits on its standard input, and writes those it receives the
//! same way. It knows nothing of ages: what a state says of its time is taken as it is, which is right because all drones of a
//! live flight have this machine's clock. The rest of the drone is the same as with Noctule.

use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

use noctule::{SourceTime, Subscriber};
use noctule_swarm::Own;
use noctule_swarm::state::{STATE_BYTES, State};
use noctule_timebase::Span;

use super::drone::{DroneArguments, NEIGHBOURS, OWN, host};
use crate::Outcome;

/// Ticks a second of `/proc/PID/stat`: `sysconf(_SC_CLK_TCK)` on Linux.
const TICKS_HZ: f64 = 100.0;

/// Why a carrier cannot carry.
#[derive(Debug, thiserror::Error)]
pub(super) enum CarrierError {
    #[error("--carrier names no program; give e.g. \"python3 peers/swarm/udp.py\"")]
    Empty,
    #[error(
        "--carrier: there is no program {0} that can be run; name another, e.g. \"python3 peers/swarm/udp.py\""
    )]
    NoProgram(String),
}

/// Refuses what no drone could start.
pub(super) fn check(command: &str) -> Result<(), CarrierError> {
    let program = command.split_whitespace().next().ok_or(CarrierError::Empty)?;
    let runs = |path: &Path| path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok();
    let is_there = match program.contains('/') {
        true => runs(Path::new(program)),
        false => std::env::var_os("PATH")
            .is_some_and(|path| std::env::split_paths(&path).any(|folder| runs(&folder.join(program)))),
    };
    if is_there { Ok(()) } else { Err(CarrierError::NoProgram(program.to_owned())) }
}

pub(super) fn carry(arguments: &DroneArguments, command: &str) -> Result<Outcome, Box<dyn Error>> {
    let host = host(&format!("drone {}", arguments.number))?;
    let own = host.subscriber(OWN).open()?;
    let mut known = host.publisher(NEIGHBOURS).keep_last(1024).open()?;
    let mut words = command.split_whitespace();
    let program = words.next().ok_or(CarrierError::Empty)?;
    let mut child = Command::new(program)
        .args(words)
        .args(["--number", &arguments.number.to_string(), "--address", &arguments.address.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cannot start {program}: {error}; name another --carrier"))?;
    let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
        return Err("the carrier has no pipes".into());
    };
    std::thread::Builder::new().name("upward".into()).spawn(move || send_states(own, input))?;
    let (process, rate_hz) = (child.id(), arguments.rate);
    std::thread::Builder::new().name("survey".into()).spawn(move || {
        for _ in std::io::stdin().lines().map_while(Result::ok) {
            let cpu_s = super::drone::processor_s() + processor_of_s(process).unwrap_or(0.0);
            // A flight that has ended reads no more.
            let _ = writeln!(std::io::stdout(), "{rate_hz} {cpu_s}");
        }
    })?;
    for line in BufReader::new(output).lines().map_while(Result::ok) {
        let Some(bytes) = from_digits(line.trim()) else { continue };
        let Ok(state) = State::<Own>::decode(&bytes) else { continue };
        let time = noctule_timebase::Instant::from_ns(state.at.ns());
        known.publish_uncertain(&bytes, SourceTime { time, bound: Some(Span::ZERO), sigma: None })?;
    }
    end(&mut child);
    Err("the carrier has ended".into())
}

fn end(child: &mut Child) {
    // It may have ended by itself.
    let _ = child.kill();
    let _ = child.wait();
}

/// Until the carrier ends, which then finds its input closed.
fn send_states(mut own: Subscriber, mut input: ChildStdin) {
    while let Ok(Some(sample)) = own.receive(None) {
        let digits: String = sample.to_vec().iter().map(|byte| format!("{byte:02x}")).collect();
        if writeln!(input, "{digits}").is_err() {
            return;
        }
    }
}

/// A state's bytes.
fn from_digits(digits: &str) -> Option<[u8; STATE_BYTES]> {
    let mut bytes = [0; STATE_BYTES];
    if digits.len() != 2 * STATE_BYTES || !digits.is_ascii() {
        return None;
    }
    for (place, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(digits.get(2 * place..2 * place + 2)?, 16).ok()?;
    }
    Some(bytes)
}

/// Processor time of another process so far, s.
fn processor_of_s(process: u32) -> Option<f64> {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // After the name in parentheses, which may hold anything, the 12th and 13th field.
    let mut fields = text.rsplit_once(')')?.1.split_whitespace().skip(11);
    let ticks: f64 = fields.next()?.parse::<f64>().ok()? + fields.next()?.parse::<f64>().ok()?;
    Some(ticks / TICKS_HZ)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_of_a_state_are_read_and_others_are_not() {
        let digits = "0a".repeat(STATE_BYTES);
        assert_eq!(from_digits(&digits), Some([10; STATE_BYTES]));
        for broken in ["", "0a", &"0g".repeat(STATE_BYTES), &"é".repeat(STATE_BYTES), &digits[1..]] {
            assert_eq!(from_digits(broken), None, "{broken}");
        }
    }

    #[test]
    fn the_processor_time_of_this_process_is_found() {
        assert!(processor_of_s(std::process::id()).is_some_and(|seconds| seconds < 1e6));
        assert_eq!(processor_of_s(u32::MAX), None);
    }
}
