//! The eleven named combinations of clock and path against which estimators are compared.
//!
//! Ten minutes each. The descriptions they come from give the character of each path, not its
//! parameters; the parameters here were chosen so that the incumbents (the autopilot filter, the
//! last sample, the minimum of eight) come out as in the published comparison. What was fitted:
//!
//! - Everyday jitter is gamma distributed with shape 2. Of twelve shapes tried (half-normal,
//!   exponential, gamma 1.5 to 3, uniform, log-normal, sums of those) it alone gives last sample,
//!   minimum of eight and two-sided hull at both 10 Hz and 1 Hz in the published proportions.
//! - 20 ppm of drift follow from the minimum of eight at 1 Hz, whose sample is up to 8 s old.
//! - C's queue (40 % of messages, 1.5 ms) follows from mean and deviation of the last sample's error.
//! - D's timer is uniform over 16 ms; the part of it that the autopilot's 10 ms gate admits fixes the
//!   least round trip at about 1.5 ms.
//! - The random walk of the drift (0.002 ppm after one second) is a plain crystal at constant
//!   temperature. Nothing published fixes it.

use noctule_timebase::Span;

use crate::clock::{ClockModel, Step};
use crate::delay::{Delay, Path, Queue};
use crate::random::Random;

/// The names that [`Scenario::named`] knows, in the order of the tables.
pub const SCENARIOS: [&str; 11] = ["A", "B", "C", "D", "E", "F", "F5", "G", "H", "I", "J"];

/// A clock, a path and a schedule.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Description for people.
    pub title: &'static str,
    /// The remote clock.
    pub clock: ClockModel,
    /// The way there and back.
    pub path: Path,
    /// Time between the arrival of a request and the departure of its reply.
    pub turnaround: Span,
    /// Time between requests.
    pub interval: Span,
    /// Share of exchanges that are lost, 0 to 1.
    pub loss: f64,
    /// How long it runs.
    pub duration: Span,
}

impl Scenario {
    /// The scenario of that name, or `None`.
    pub fn named(name: &str) -> Option<Scenario> {
        let quiet = Scenario {
            title: "",
            clock: crystal(20.0),
            path: Path::Modelled { forward: UART, back: UART },
            turnaround: Span::from_us(20),
            interval: Span::from_ms(100),
            loss: 0.0,
            duration: Span::from_s(600),
        };
        let over = |forward, back| Scenario { path: Path::Modelled { forward, back }, ..quiet.clone() };
        let behind = |clock| Scenario { clock, ..quiet.clone() };
        let (title, scenario) = match name {
            "A" => ("UART, quiet", quiet),
            "B" => ("UART, 15 % of messages queued both ways", over(BUSY_UART, BUSY_UART)),
            "C" => ("queue on the way there only", over(QUEUED_UART, UART)),
            "D" => ("16 ms polling timer on the way back", over(UART, POLLED_UART)),
            "E" => ("Wi-Fi, 8 % of messages 5 to 80 ms late", over(WIFI, WIFI)),
            "F" => ("50 ms step at 300 s", behind(stepped(Span::from_ms(50)))),
            "F5" => ("5 ms step at 300 s", behind(stepped(Span::from_ms(5)))),
            "G" => {
                let slewed = ClockModel { slew_ppm: 1_000.0, slew_s: 40.0, ..crystal(20.0) };
                ("boot slew of 1000 ppm for 40 s", behind(slewed))
            }
            "H" => ("half of the exchanges lost, 50 ppm", Scenario { loss: 0.5, ..behind(crystal(50.0)) }),
            "I" => ("one exchange a second", Scenario { interval: Span::from_s(1), ..quiet }),
            "J" => {
                let longer = Delay { least_us: UART.least_us + 1_000.0, ..UART };
                ("constant 1 ms more on the way there", over(longer, UART))
            }
            _ => return None,
        };
        Some(Scenario { title, ..scenario })
    }
}

impl Scenario {
    /// A scenario drawn at random, for finding what the named ones do not show: any path from
    /// loopback to radio, any queue, any loss, up to three steps of any size from a microsecond to a
    /// second, and a clock that never drifts faster than `limit_ppm` but often as fast.
    ///
    /// 600 exchanges long.
    pub fn drawn(seed: u64, limit_ppm: f64) -> Scenario {
        let mut random = Random::for_part(seed, 4);
        let interval = Span::from_ms([10, 100, 1_000][(random.bits() % 3) as usize]);
        let duration = interval * 600;
        let steps = random.bits() % 4;
        let steps = (0..steps).map(|_| drawn_step(duration, &mut random)).collect();
        Scenario {
            title: "drawn at random",
            clock: ClockModel {
                offset: Span::from_ns(log_uniform(1.0, 1e18, &mut random) as i64),
                // Beyond the limit every other time, so that the clock runs along it.
                drift_ppm: random.uniform(-2.0 * limit_ppm, 2.0 * limit_ppm),
                wave_ppm: log_uniform(0.01, limit_ppm, &mut random),
                wave_period_s: log_uniform(1.0, 1_000.0, &mut random),
                walk_ppm: log_uniform(0.000_1, 10.0, &mut random),
                steps,
                limit_ppm,
                ..ClockModel::default()
            },
            path: Path::Modelled { forward: drawn_delay(&mut random), back: drawn_delay(&mut random) },
            turnaround: Span::from_ns(log_uniform(1.0, 5e6, &mut random) as i64),
            interval,
            loss: random.uniform(0.0, 0.7),
            duration,
        }
    }
}

fn drawn_step(duration: Span, random: &mut Random) -> Step {
    let size_ns = log_uniform(1e3, 1e9, random) as i64;
    let by = Span::from_ns(if random.chance(0.5) { size_ns } else { -size_ns });
    Step { at: Span::from_ns(random.uniform(0.0, duration.ns() as f64) as i64), by }
}

fn drawn_delay(random: &mut Random) -> Delay {
    let least_us = log_uniform(1.0, 20_000.0, random);
    let probability = random.unit();
    let wait_us = log_uniform(1.0, 50_000.0, random);
    let queue = match random.bits() % 3 {
        0 => Queue::Empty,
        1 => Queue::Exponential { probability, mean_us: wait_us },
        _ => Queue::Uniform { probability, from_us: 0.0, to_us: wait_us },
    };
    Delay { least_us, jitter_us: log_uniform(0.01, least_us, random), queue }
}

/// Uniform in the logarithm: every order of magnitude is as likely as every other.
fn log_uniform(from: f64, to: f64, random: &mut Random) -> f64 {
    libm::exp(random.uniform(libm::log(from), libm::log(to)))
}

/// A board that booted a day before the host, so that nothing can rely on small numbers.
fn crystal(drift_ppm: f64) -> ClockModel {
    ClockModel { offset: Span::from_s(86_400), drift_ppm, walk_ppm: 0.002, ..ClockModel::default() }
}

fn stepped(by: Span) -> ClockModel {
    ClockModel { steps: vec![Step { at: Span::from_s(300), by }], ..crystal(20.0) }
}

const UART: Delay = Delay { least_us: 630.0, jitter_us: 60.0, queue: Queue::Empty };

const BUSY_UART: Delay = Delay { queue: Queue::Exponential { probability: 0.15, mean_us: 2_000.0 }, ..UART };

const QUEUED_UART: Delay = Delay { queue: Queue::Exponential { probability: 0.4, mean_us: 1_500.0 }, ..UART };

const POLLED_UART: Delay =
    Delay { queue: Queue::Uniform { probability: 1.0, from_us: 0.0, to_us: 16_000.0 }, ..UART };

const WIFI: Delay = Delay {
    least_us: 900.0,
    jitter_us: 200.0,
    queue: Queue::Uniform { probability: 0.08, from_us: 5_000.0, to_us: 80_000.0 },
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_name_is_known_and_no_other() {
        assert!(SCENARIOS.iter().all(|name| Scenario::named(name).is_some()));
        assert_eq!(Scenario::named("K"), None);
        assert_eq!(Scenario::named(""), None);
    }
}
