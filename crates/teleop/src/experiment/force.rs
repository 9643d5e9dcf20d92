//! E4: a force that comes back over a network.
//!
//! The arm presses on something stiff, and what it feels returns to the operator's hand, later by the round trip. The hand is a mass
//! with damping that pushes steadily. In contact the loop is `K·e^(−sT) / (m·s² + b·s)`: it is stable as long as the round trip is
//! shorter than the phase margin over the crossing's frequency; a stiffer contact bears less delay.

use noctule_netsim::link::LinkSpec;
use noctule_timebase::{Instant, Span};
use serde::Serialize;

use super::NumberedLink;

/// Step of the simulated hand.
const STEP: Span = Span::from_us(250);
/// A position is sent, and a force returned, at 1 kHz.
const STEPS_PER_COMMAND: u64 = 4;
/// Length on the wire: a pose or a force with its headers.
const MESSAGE_BYTES: usize = 160;
/// The hand begins displaced by this share of its equilibrium.
const DISPLACED: f64 = 0.01;
/// How fine the limit is looked for.
const GRAIN: Span = Span::from_us(125);

/// A hand and what the arm presses on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Contact {
    /// Mass of hand and handle, kg. Ours, not measured.
    pub mass_kg: f64,
    /// Damping of the hand, N·s/m. Ours, not measured.
    pub damping_n_s_m: f64,
    /// Stiffness of what the arm presses on, N/m.
    pub stiffness_n_m: f64,
    /// Force with which the hand pushes, N.
    pub push_n: f64,
}

impl Contact {
    /// A light hand on something of this stiffness.
    pub fn new(stiffness_n_m: f64) -> Contact {
        Contact { mass_kg: 0.3, damping_n_s_m: 5.0, stiffness_n_m, push_n: 2.0 }
    }

    /// Where the loop's gain is one, rad/s: `m²ω⁴ + b²ω² = K²`.
    pub fn crossing_rad_s(&self) -> f64 {
        let Contact { mass_kg: m, damping_n_s_m: b, stiffness_n_m: k, .. } = *self;
        ((((b * b).powi(2) + 4.0 * (m * k).powi(2)).sqrt() - b * b) / (2.0 * m * m)).sqrt()
    }

    /// The longest stable round trip by theory, s; the force is held for a millisecond, which takes half of one away.
    pub fn limit_s(&self) -> f64 {
        let omega = self.crossing_rad_s();
        (self.damping_n_s_m / (self.mass_kg * omega)).atan() / omega - 0.5e-3
    }
}

/// Result of one round-trip time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Reflected {
    /// The oscillation died away.
    pub stable: bool,
    /// Largest displacement in the last quarter of the run over that in the first; above one it grew.
    pub growth: f64,
}

/// Runs the contact behind a round trip, half of it each way, for 60 periods of its oscillation.
pub fn run(contact: &Contact, round_trip: Span) -> Reflected {
    let half_ns = round_trip.ns() / 2;
    let link = |delay_ns: i64, seed| {
        // A delay without anything else always parses.
        let spec = format!("delay={delay_ns}ns").parse::<LinkSpec>().unwrap_or_default();
        NumberedLink::new(&spec.a_to_b, seed)
    };
    let (mut there, mut back) = (link(half_ns, 1), link(round_trip.ns() - half_ns, 2));
    let Contact { mass_kg, damping_n_s_m, stiffness_n_m, push_n } = *contact;
    let step_s = STEP.as_s_f64();
    // Exact for a force that is constant over a step.
    let kept = (-damping_n_s_m / mass_kg * step_s).exp();
    let equilibrium_m = push_n / stiffness_n_m;
    let (mut position_m, mut velocity_m_s) = (equilibrium_m * (1.0 + DISPLACED), 0.0_f64);
    let mut force_n = push_n;
    let (mut positions, mut forces) = (Vec::new(), Vec::new());
    let seconds = 60.0 * std::f64::consts::TAU / contact.crossing_rad_s();
    let steps = (seconds / step_s) as u64;
    let mut peaks = [0.0_f64; 2];
    for step in 0..steps {
        let now = Instant::from_ns(step as i64 * STEP.ns());
        if step.is_multiple_of(STEPS_PER_COMMAND) {
            there.send(now, positions.len() as u64, MESSAGE_BYTES);
            positions.push(position_m);
        }
        while let Some(number) = there.poll(now, positions.len() as u64) {
            back.send(now, forces.len() as u64, MESSAGE_BYTES);
            forces.push(stiffness_n_m * positions[number as usize]);
        }
        while let Some(number) = back.poll(now, forces.len() as u64) {
            force_n = forces[number as usize];
        }
        let settled_m_s = (push_n - force_n) / damping_n_s_m;
        let next_m_s = settled_m_s + (velocity_m_s - settled_m_s) * kept;
        position_m +=
            settled_m_s * step_s + (velocity_m_s - settled_m_s) * (1.0 - kept) * mass_kg / damping_n_s_m;
        velocity_m_s = next_m_s;
        let quarter = 4 * step / steps.max(1);
        if quarter.is_multiple_of(3) {
            let peak = &mut peaks[usize::from(quarter == 3)];
            *peak = peak.max((position_m - equilibrium_m).abs());
        }
    }
    let growth = peaks[1] / peaks[0];
    Reflected { stable: growth < 1.0, growth }
}

/// The longest stable round trip that was found, between none and twice what theory says.
pub fn limit(contact: &Contact) -> Span {
    let (mut low, mut high) = (0, (2.0 * contact.limit_s().max(1e-3) / GRAIN.as_s_f64()) as i64 + 1);
    while high - low > 1 {
        let middle = (low + high) / 2;
        match run(contact, Span::from_ns(middle * GRAIN.ns())).stable {
            true => low = middle,
            false => high = middle,
        }
    }
    Span::from_ns(low * GRAIN.ns())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stiffer_contact_bears_less_delay_and_as_much_as_theory_says() {
        let mut before = f64::INFINITY;
        for stiffness_n_m in [100.0, 300.0, 1_000.0] {
            let contact = Contact::new(stiffness_n_m);
            let (found, theory) = (limit(&contact).as_s_f64(), contact.limit_s());
            println!("{stiffness_n_m} N/m: {:.2} ms, by theory {:.2} ms", found * 1e3, theory * 1e3);
            assert!((found - theory).abs() < 0.6e-3, "{found} {theory}");
            assert!(found < before);
            before = found;
        }
    }

    #[test]
    fn far_from_the_limit_it_dies_away_or_grows() {
        let contact = Contact::new(300.0);
        assert!(run(&contact, Span::from_ms(5)).growth < 0.5);
        assert!(run(&contact, Span::from_ms(30)).growth > 2.0);
    }
}
