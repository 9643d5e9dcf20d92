//! The two processes of a live drone.
//!
//! The radio process is on the air: it publishes the drone's own state to a group and puts what it receives of others into shared memory, with the time
//! at which each state was true in this host's clock and the bound of that. The decision process reads it there,
//! avoids, and flies a simulated vehicle. They meet on a domain of the loopback interface only.

use std::error::Error;
use std::io::Write;
use std::net::Ipv4Addr;
use std::time::Duration;

use noctule::{Node, SourceTime, Subscriber};
use noctule_swarm::avoid::{Avoidance, Margins, Other};
use noctule_swarm::mission::{approach, sphere};
use noctule_swarm::neighbours::Knowledge;
use noctule_swarm::state::{Mode, STATE_BYTES, State};
use noctule_swarm::{Estimate, Limits, Neighbours, Own, Vector, Vehicle};
use noctule_sys::clock::{now_ns, sleep_until};
use noctule_timebase::{Instant, Span};

use crate::Outcome;

/// On the air.
const AIR_DOMAIN: u32 = 4_331;
/// Between the two processes.
const HOST_DOMAIN: u32 = 4_332;
const STATES: &str = "swarm/state";
const OWN: &str = "drone/own";
const NEIGHBOURS: &str = "drone/neighbours";
/// Step of the vehicle.
const STEP_NS: i64 = 10_000_000;
/// A state every so many steps: 10 Hz.
const STATE_STEPS: u64 = 10;
/// A decision every so many steps: 20 Hz.
const DECISION_STEPS: u64 = 5;
/// The vehicle knows itself within this, m.
const POSITION_BOUND_M: f64 = 0.1;
/// States are dropped after this.
const LIFESPAN: Span = Span::from_s(10);
/// Mean distance of neighbours at the start, m.
const SPACING_M: f64 = 21.27;
/// From here on the goal is reached, m.
const ARRIVED_M: f64 = 2.0;

/// Which drone of how many.
#[derive(clap::Args)]
pub(crate) struct DroneArguments {
    #[arg(long)]
    number: usize,
    #[arg(long)]
    nodes: usize,
    /// Address of the radio
    #[arg(long)]
    address: Ipv4Addr,
}

/// Carries states between the air and shared memory, until it is killed.
pub(super) fn radio(arguments: &DroneArguments) -> Result<Outcome, Box<dyn Error>> {
    let name = format!("drone {}", arguments.number);
    let air = Node::builder(&name).domain(AIR_DOMAIN).interface(arguments.address).open()?;
    let host = host(&name)?;
    let mut own = host.subscriber(OWN).open()?;
    let mut sent = air.publisher(STATES).multicast(true).keep_last(1).open()?;
    let mut heard = air.subscriber(STATES).open()?;
    let mut known = host.publisher(NEIGHBOURS).keep_last(1024).open()?;
    let upward = std::thread::Builder::new().name("upward".into()).spawn(move || {
        while let Ok(Some(sample)) = own.receive(None) {
            let info = *sample.info();
            if let Some(time) = info.source_time {
                // A full ring is the next state's affair.
                let _ = sent.publish_uncertain(
                    &sample.to_vec(),
                    SourceTime { time, bound: info.bound, sigma: info.sigma },
                );
            }
        }
    })?;
    while let Some(sample) = heard.receive(None)? {
        let info = *sample.info();
        // Until a clock is known, a state has no age and is of no use.
        let (Some(time), Some(_)) = (info.source_time, info.bound) else { continue };
        let source = SourceTime { time, bound: info.bound, sigma: info.sigma };
        known.publish_uncertain(&sample.to_vec(), source)?;
    }
    let _ = upward.join();
    Ok(Outcome::Done)
}

/// Flies, and says ten times a second where the vehicle is, for who counts.
pub(super) fn decide(arguments: &DroneArguments) -> Result<Outcome, Box<dyn Error>> {
    let host = host("decisions")?;
    let mut own = host.publisher(OWN).keep_last(1).open()?;
    let mut heard = host.subscriber(NEIGHBOURS).open()?;
    let mut pilot = Pilot::new(arguments.number, arguments.nodes);
    let mut output = std::io::stdout().lock();
    let mut step = 0_u64;
    let mut due_ns = now_ns();
    loop {
        sleep_until(due_ns);
        let now = Instant::<Own>::from_ns(host.now().ns());
        pilot.step();
        if step.is_multiple_of(DECISION_STEPS) {
            pilot.hear(&mut heard)?;
            pilot.decide(now);
        }
        if step.is_multiple_of(STATE_STEPS) {
            own.publish(&pilot.state(now).encode())?;
            writeln!(output, "{}", pilot.line())?;
            output.flush()?;
        }
        step += 1;
        // A process that was kept from running does not fly faster afterwards: the vehicle stalls as long.
        due_ns = (due_ns + STEP_NS).max(now_ns() - STEP_NS);
    }
}

fn host(name: &str) -> Result<Node, noctule::NodeError> {
    Node::builder(name).domain(HOST_DOMAIN).interface(Ipv4Addr::LOCALHOST).open()
}

/// Vehicle, neighbours and decisions.
struct Pilot {
    number: usize,
    limits: Limits,
    vehicle: Vehicle,
    command_m_s: Vector,
    goal_m: Vector,
    neighbours: Neighbours,
    avoidance: Avoidance,
    seen: Vec<Estimate>,
    crossings: u32,
}

impl Pilot {
    fn new(number: usize, nodes: usize) -> Pilot {
        let limits = Limits::default();
        let margins = Margins { hard_m: 0.3, ..Margins::default() };
        let radius_m = SPACING_M * (nodes as f64 / (4.0 * std::f64::consts::PI)).sqrt();
        let start = sphere(nodes, radius_m, 1).get(number).copied().unwrap_or_else(Vector::zeros);
        Pilot {
            number,
            limits,
            vehicle: Vehicle::at(start),
            command_m_s: Vector::zeros(),
            goal_m: -start,
            neighbours: Neighbours::new(number as u32, nodes, LIFESPAN),
            avoidance: Avoidance::new(limits, margins),
            seen: Vec::new(),
            crossings: 0,
        }
    }

    fn step(&mut self) {
        self.vehicle.step(&self.limits, self.command_m_s, Vector::zeros(), STEP_NS as f64 / 1e9);
    }

    fn hear(&mut self, heard: &mut Subscriber) -> Result<(), Box<dyn Error>> {
        let mut bytes = [0; STATE_BYTES];
        while let Some(info) = heard.take_into(&mut bytes)? {
            let (Some(time), Some(bound)) = (info.source_time, info.bound) else { continue };
            let Ok(mut state) = State::<Own>::decode(&bytes[..info.length_bytes.min(STATE_BYTES)]) else {
                continue;
            };
            state.at = Instant::from_ns(time.ns());
            self.neighbours.handle_state(state, bound);
        }
        Ok(())
    }

    fn decide(&mut self, now: Instant<Own>) {
        self.neighbours.handle_timeout(now);
        self.seen.clear();
        self.seen.extend(self.neighbours.estimates(now, Knowledge::Bound));
        let to_goal = self.goal_m - self.vehicle.position_m;
        if to_goal.norm() < ARRIVED_M {
            (self.goal_m, self.crossings) = (-self.goal_m, self.crossings + 1);
        }
        // Nobody flies who hears nobody.
        let wanted = if self.seen.is_empty() { Vector::zeros() } else { approach(&self.limits, to_goal) };
        let others = self.seen.iter().map(|estimate| Other {
            position_m: estimate.position_m,
            velocity_m_s: estimate.velocity_m_s,
            radius_m: estimate.radius_m,
            uncertainty_m: estimate.uncertainty_m + POSITION_BOUND_M,
            reciprocates: true,
        });
        let own = (self.vehicle.position_m, self.vehicle.velocity_m_s);
        self.command_m_s = self.avoidance.decide(own, wanted, others).velocity_m_s;
    }

    fn state(&self, at: Instant<Own>) -> State<Own> {
        State {
            node: self.number as u32,
            mode: Mode::Flying,
            at,
            position_m: self.vehicle.position_m,
            velocity_m_s: self.vehicle.velocity_m_s,
            acceleration_m_s2: self.vehicle.acceleration_m_s2,
            heading_rad: 0.0,
            radius_m: self.limits.radius_m,
            position_bound_m: POSITION_BOUND_M,
            velocity_bound_m_s: 0.0,
            acceleration_bound_m_s2: self.limits.acceleration_bound_m_s2(),
            speed_bound_m_s: self.limits.speed_bound_m_s(),
        }
    }

    /// Time, position, velocity, crossings, neighbours, median and greatest age in ms, greatest bound in ms.
    fn line(&self) -> String {
        let mut ages: Vec<f64> = self.seen.iter().map(|estimate| 1e3 * estimate.age.as_s_f64()).collect();
        ages.sort_by(f64::total_cmp);
        let bounds = self.seen.iter().map(|estimate| 1e3 * estimate.bound.as_s_f64());
        let (p, v) = (self.vehicle.position_m, self.vehicle.velocity_m_s);
        format!(
            "{} {} {} {} {} {} {} {} {} {} {} {}",
            now_ns(),
            p.x,
            p.y,
            p.z,
            v.x,
            v.y,
            v.z,
            self.crossings,
            ages.len(),
            ages.get(ages.len() / 2).copied().unwrap_or(f64::NAN),
            ages.last().copied().unwrap_or(f64::NAN),
            bounds.fold(0.0, f64::max),
        )
    }
}

/// Where a vehicle is `later`, if it has not turned.
pub(super) fn between(from: &Vector, velocity_m_s: &Vector, later: Duration) -> Vector {
    from + velocity_m_s * later.as_secs_f64()
}
