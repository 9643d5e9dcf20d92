//! A simulated swarm at the pace of the clock, on the map.

use std::time::{Duration, Instant};

use noctule_swarm::Simulation;
use noctule_swarm::measures::Measures;

use super::map::{Condition, Dot, FRAME, KnownDot, Map, Picture};
use crate::argument::ArgumentError;
use crate::stop::Stop;

/// Computing is interrupted after this, so that the map stays alive when a swarm is slower than the clock.
const SLICE: Duration = Duration::from_millis(200);

/// `--speed`.
pub(super) fn speed(text: &str) -> Result<f64, ArgumentError> {
    let speed: Option<f64> = text.parse().ok().filter(|speed| (0.1..=20.0).contains(speed));
    speed.ok_or_else(|| ArgumentError::Speed(text.to_owned()))
}

/// Runs a simulation on the map. After its end the last picture stays until Ctrl-C.
pub(super) fn run(mut simulation: Simulation, mut map: Map, speed: f64) -> std::io::Result<Measures> {
    let stop = Stop::after(None)?;
    let mut before = Instant::now();
    let mut due_s = 0.0;
    while !stop.is_due() {
        let now = Instant::now();
        due_s += (now - before).as_secs_f64() * speed;
        before = now;
        while simulation.now_s() < due_s && !simulation.is_over() && now.elapsed() < SLICE {
            simulation.advance();
        }
        // Time that could not be computed is not caught up with: the picture is late, not jerky.
        due_s = due_s.min(simulation.now_s() + FRAME.as_secs_f64() * speed);
        show(&simulation, &mut map);
        for drone in map.kills(FRAME.saturating_sub(now.elapsed())) {
            simulation.kill_drone(drone);
        }
    }
    Ok(simulation.measures())
}

fn show(simulation: &Simulation, map: &mut Map) {
    let known: Vec<Vec<KnownDot>> = (0..simulation.vehicles().count())
        .map(|number| simulation.known_by(number).iter().map(KnownDot::from).collect())
        .collect();
    let dots: Vec<Dot> = (simulation.vehicles().zip(simulation.living()))
        .map(|(vehicle, alive)| Dot {
            position_m: vehicle.position_m,
            velocity_m_s: vehicle.velocity_m_s,
            condition: if alive { Condition::Flying } else { Condition::Killed },
        })
        .collect();
    map.show(&Picture {
        seconds: simulation.now_s(),
        is_over: simulation.is_over(),
        dots: &dots,
        known: &known,
        separation: simulation.separation(),
        air_utilisation: simulation.air_utilisation(),
    });
}
