//! The processes of live drones: how they are started and ended, and their last reports.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use noctule_link_emulator::LiveAir;
use noctule_link_emulator::air::AIR_NODES_MAX;
use noctule_swarm::Vector;
use noctule_sys::namespace::NetworkNamespace;
use noctule_timebase::Span;

use super::map::KnownDot;

/// The last report of a drone.
#[derive(Clone, Debug)]
pub(super) struct DroneReport {
    pub(super) at_ns: i64,
    pub(super) position_m: Vector,
    pub(super) velocity_m_s: Vector,
    pub(super) crossings: u64,
    pub(super) age_p50_ms: f64,
    pub(super) age_max_ms: f64,
    pub(super) bound_ms: f64,
    /// Why it left its place, or `waiting`, and how long it had waited.
    pub(super) clearance: String,
    pub(super) waited_s: f64,
    /// Estimates of its neighbours at its last decision.
    pub(super) known: Vec<KnownDot>,
}

/// The last report of a radio process.
#[derive(Clone, Copy, Debug)]
pub(super) struct RadioReport {
    /// Rate of states.
    pub(super) rate_hz: f64,
    /// Processor time so far.
    pub(super) cpu_s: f64,
}

/// `None` until a process has reported.
type Newest<T> = Arc<Mutex<Option<T>>>;

pub(super) struct Drone {
    radio: Child,
    pilot: Child,
    /// Where the radio reads how busy its channel is.
    survey: Option<ChildStdin>,
    report: Newest<DroneReport>,
    radio_report: Newest<RadioReport>,
    pub(super) killed: bool,
}

/// Both processes of a drone, in its namespace.
pub(super) fn start(
    namespace: &NetworkNamespace,
    (number, nodes): (usize, usize),
    air: &LiveAir,
    channel: &[String],
) -> std::io::Result<Drone> {
    let program = std::env::current_exe()?;
    let spawn = |role: &str, input: Stdio| {
        let mut command = Command::new(&program);
        command.args(["swarm", role, "--number", &number.to_string(), "--nodes", &nodes.to_string()]);
        command.args(["--address", &air.address(number).to_string()]).args(channel);
        command.stdin(input).stdout(Stdio::piped()).stderr(Stdio::null());
        namespace.run(move || command.spawn())
    };
    let mut radio = spawn("drone-radio", Stdio::piped())?;
    let pilot = match spawn("drone-decisions", Stdio::null()) {
        Ok(pilot) => pilot,
        Err(error) => {
            end(&mut radio);
            return Err(error);
        }
    };
    let (report, radio_report) = (Arc::new(Mutex::new(None)), Arc::new(Mutex::new(None)));
    let survey = radio.stdin.take();
    let mut drone = Drone {
        radio,
        pilot,
        survey,
        report: report.clone(),
        radio_report: radio_report.clone(),
        killed: false,
    };
    listen(drone.pilot.stdout.take(), report, parse)?;
    listen(drone.radio.stdout.take(), radio_report, parse_radio)?;
    Ok(drone)
}

/// Keeps the newest line of a process that says something.
fn listen<T: Send + 'static>(
    output: Option<ChildStdout>,
    newest: Newest<T>,
    parse: fn(&str) -> Option<T>,
) -> std::io::Result<()> {
    let Some(output) = output else { return Ok(()) };
    let work = move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if let Some(value) = parse(&line) {
                *newest.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
            }
        }
    };
    std::thread::Builder::new().name("lines".into()).spawn(work).map(drop)
}

fn parse(line: &str) -> Option<DroneReport> {
    let words: Vec<&str> = line.split(' ').collect();
    let number = |at: usize| words.get(at)?.parse::<f64>().ok();
    Some(DroneReport {
        at_ns: words.first()?.parse().ok()?,
        position_m: Vector::new(number(1)?, number(2)?, number(3)?),
        velocity_m_s: Vector::new(number(4)?, number(5)?, number(6)?),
        crossings: words.get(7)?.parse().ok()?,
        age_p50_ms: number(8)?,
        age_max_ms: number(9)?,
        bound_ms: number(10)?,
        clearance: (*words.get(11)?).to_owned(),
        waited_s: number(12)?,
        known: words[13..].iter().take(AIR_NODES_MAX).map(|word| parse_known(word)).collect::<Option<_>>()?,
    })
}

fn parse_radio(line: &str) -> Option<RadioReport> {
    let (rate_hz, cpu_s) = line.split_once(' ')?;
    Some(RadioReport { rate_hz: rate_hz.parse().ok()?, cpu_s: cpu_s.parse().ok()? })
}

/// Number, position, radius in m and age in ms of a neighbour.
fn parse_known(word: &str) -> Option<KnownDot> {
    let (node, rest) = word.split_once(':')?;
    let numbers: Vec<f64> = rest.split(':').map(str::parse).collect::<Result<_, _>>().ok()?;
    let [x, y, z, radius_m, age_ms] = numbers[..] else { return None };
    Some(KnownDot { node: node.parse().ok()?, position_m: Vector::new(x, y, z), radius_m, age_ms })
}

fn end(child: &mut Child) {
    // It may have ended by itself.
    let _ = child.kill();
    let _ = child.wait();
}

impl Drone {
    pub(super) fn end(&mut self) {
        end(&mut self.radio);
        end(&mut self.pilot);
    }

    /// Whether one of its processes is not there any more.
    pub(super) fn has_ended(&mut self) -> bool {
        [&mut self.radio, &mut self.pilot].into_iter().any(|process| !matches!(process.try_wait(), Ok(None)))
    }

    /// Passes a channel survey to the radio process: at `at_ns` the channel has been busy for `busy`.
    pub(super) fn survey(&mut self, at_ns: i64, busy: Span) {
        let Some(input) = &mut self.survey else { return };
        if writeln!(input, "{at_ns} {}", busy.ns()).is_err() {
            // The process has ended; that is counted elsewhere.
            self.survey = None;
        }
    }

    /// The last report of the radio process; `None` before the first survey.
    pub(super) fn radio_report(&self) -> Option<RadioReport> {
        *self.radio_report.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn report(&self) -> Option<DroneReport> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drones_line_is_read_and_a_broken_one_is_not() {
        let report =
            parse("17 1 2 3 4 5 6 2 120.5 300 0.8 quiet 3.5 3:1.5:2:3:0.7:110 9:0:0:0:4:300").unwrap();
        assert_eq!((report.at_ns, report.crossings, report.known.len()), (17, 2, 2));
        assert_eq!((report.known[1].node, report.known[0].radius_m, report.known[0].age_ms), (9, 0.7, 110.0));
        // Before any state is received.
        let alone = parse("17 1 2 3 4 5 6 0 NaN NaN 0 waiting 0").unwrap();
        assert!(alone.known.is_empty() && alone.age_p50_ms.is_nan());
        assert_eq!((report.clearance.as_str(), report.waited_s), ("quiet", 3.5));
        let line = "17 1 2 3 4 5 6 2 1 1 0 quiet";
        for broken in ["", "17 1 2", line, &format!("{line} 1 3:1:2"), &format!("{line} 1 x:1:2:3:4:5")] {
            assert!(parse(broken).is_none(), "{broken}");
        }
    }
}
