//! The two processes of a live drone.
//!
//! The radio process is on the air: it publishes the drone's own state to a group and puts what it receives of others into shared memory, with the time
//! at which each state was true in this host's clock and the bound of that. The decision process reads it there,
//! avoids, and flies a simulated vehicle. They meet on a domain of the loopback interface only.

use std::error::Error;
use std::io::Write;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use noctule::{Node, Publisher, Reliability, SourceTime, Subscriber};
use noctule_swarm::avoid::{Avoidance, Margins, Other};
use noctule_swarm::mission::{approach, sphere};
use noctule_swarm::neighbours::Knowledge;
use noctule_swarm::rate::{RateControl, RateLimits};
use noctule_swarm::state::{Mode, STATE_BYTES, State};
use noctule_swarm::takeoff::{TakeOff, TakeOffLimits};
use noctule_swarm::{Estimate, Limits, Neighbours, Own, Vector, Vehicle};
use noctule_sys::clock::{now_ns, sleep_until};
use noctule_timebase::{Instant, Span};
use rustix::time::{ClockId, clock_gettime};

use super::map::KnownDot;
use crate::Outcome;

/// Domain of the nodes on the air.
const AIR_DOMAIN: u32 = 4_331;
/// Domain of a drone's two processes.
const HOST_DOMAIN: u32 = 4_332;
const STATES: &str = "swarm/state";
pub(super) const OWN: &str = "drone/own";
pub(super) const NEIGHBOURS: &str = "drone/neighbours";
/// Step of the vehicle.
const STEP_NS: i64 = 10_000_000;
/// Steps a second.
const STEPS_HZ: u64 = 100;
/// Where the vehicle is, every so many steps, for the flight.
const LINE_STEPS: u64 = 10;
/// A drone sends so many states a second however full the channel is.
pub(super) const LEAST_HZ: f64 = 1.0;
/// A decision every so many steps: 20 Hz.
const DECISION_STEPS: u64 = 5;
/// The vehicle knows itself within this, m.
const POSITION_BOUND_M: f64 = 0.1;
/// States are dropped after this.
const LIFESPAN: Span = Span::from_s(10);
/// A drone waits for its neighbours before it leaves: processes may start seconds apart.
const TAKEOFF: TakeOffLimits = TakeOffLimits { quiet: Span::from_s(10), longest: Span::from_s(60) };
/// Mean distance of neighbours at the start, m.
const SPACING_M: f64 = 21.27;
/// Distance at which the goal counts as reached, m.
const ARRIVED_M: f64 = 2.0;

/// Arguments of a drone's process.
#[derive(clap::Args)]
pub(crate) struct DroneArguments {
    #[arg(long)]
    pub(super) number: usize,
    #[arg(long)]
    nodes: usize,
    /// Address of the radio
    #[arg(long)]
    pub(super) address: Ipv4Addr,
    /// States a second if the channel has room, Hz
    #[arg(long)]
    pub(super) rate: u32,
    /// Share of the time that the channel may be busy
    #[arg(long)]
    target: f64,
    /// Time of a state on the air
    #[arg(long)]
    airtime_ns: i64,
    /// Repair what is lost within so many milliseconds
    #[arg(long)]
    deadline: Option<u64>,
    /// The program of another middleware that carries the states instead
    #[arg(long)]
    pub(super) carrier: Option<String>,
}

/// Carries states between the air and shared memory, until it is killed.
///
/// Standard input has a line for each survey of the channel: the time and how long the channel has been busy, ns. Each is
/// answered by a line with the rate of states, Hz, and the processor time of this process, s.
pub(super) fn radio(arguments: &DroneArguments) -> Result<Outcome, Box<dyn Error>> {
    let name = format!("drone {}", arguments.number);
    let air = Node::builder(&name).domain(AIR_DOMAIN).interface(arguments.address).open()?;
    let host = host(&name)?;
    let own = host.subscriber(OWN).open()?;
    let (mut sent, mut heard) = (air.publisher(STATES).multicast(true).keep_last(1), air.subscriber(STATES));
    if let Some(deadline) = arguments.deadline.map(Duration::from_millis) {
        sent = sent.reliability(Reliability::DeadlineBound).deadline(deadline);
        heard = heard.reliability(Reliability::DeadlineBound).deadline(deadline);
    }
    let (sent, mut heard) = (sent.open()?, heard.open()?);
    let mut known = host.publisher(NEIGHBOURS).keep_last(1024).open()?;
    let limits = RateLimits {
        wanted_hz: f64::from(arguments.rate),
        least_hz: LEAST_HZ.min(f64::from(arguments.rate)),
        target: arguments.target,
    };
    let rate = Arc::new(Mutex::new(RateControl::new(limits, Span::from_ns(arguments.airtime_ns))));
    let survey = rate.clone();
    std::thread::Builder::new().name("survey".into()).spawn(move || follow_survey(&survey))?;
    let tolerance_ns = 500_000_000 / i64::from(arguments.rate.max(1));
    let upward = move || send_states(own, sent, &rate, tolerance_ns);
    let upward = std::thread::Builder::new().name("upward".into()).spawn(upward)?;
    while let Some(sample) = heard.receive(None)? {
        let info = *sample.info();
        // Until a clock is known, a state has no age. It says that its drone is there, which is waited for.
        let source = match info.source_time.filter(|_| info.bound.is_some()) {
            Some(time) => SourceTime { time, bound: info.bound, sigma: info.sigma },
            None => SourceTime { time: info.receive_time, bound: None, sigma: None },
        };
        known.publish_uncertain(&sample.to_vec(), source)?;
    }
    let _ = upward.join();
    Ok(Outcome::Done)
}

/// The newest state goes to the group when the rate has room for it; those between are never sent.
fn send_states(mut own: Subscriber, mut sent: Publisher, rate: &Mutex<RateControl>, tolerance_ns: i64) {
    let mut due_ns = i64::MIN;
    while let Ok(Some(sample)) = own.receive(None) {
        let (info, now) = (*sample.info(), now_ns());
        let Some(time) = info.source_time.filter(|_| now + tolerance_ns >= due_ns) else { continue };
        let rate_hz = rate.lock().unwrap_or_else(PoisonError::into_inner).rate_hz();
        due_ns = due_ns.max(now - tolerance_ns) + (1e9 / rate_hz) as i64;
        // A full ring is the next state's affair.
        let _ = sent
            .publish_uncertain(&sample.to_vec(), SourceTime { time, bound: info.bound, sigma: info.sigma });
    }
}

/// Processor time of this process so far.
pub(super) fn processor_s() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn follow_survey(rate: &Mutex<RateControl>) {
    let mut before_ns = None;
    for line in std::io::stdin().lines().map_while(Result::ok) {
        let Some((at, busy)) = line.split_once(' ') else { continue };
        let (Ok(at_ns), Ok(busy_ns)) = (at.parse::<i64>(), busy.parse::<i64>()) else { continue };
        let elapsed = Span::from_ns(at_ns - before_ns.replace(at_ns).unwrap_or(at_ns));
        let mut rate = rate.lock().unwrap_or_else(PoisonError::into_inner);
        if elapsed > Span::ZERO {
            rate.handle_period(elapsed, Span::from_ns(busy_ns));
        }
        // A flight that has ended reads no more.
        let _ = writeln!(std::io::stdout(), "{} {}", rate.rate_hz(), processor_s());
    }
}

/// Flies, and says ten times a second where the vehicle is, for the counting process.
pub(super) fn decide(arguments: &DroneArguments) -> Result<Outcome, Box<dyn Error>> {
    let host = host("decisions")?;
    let mut own = host.publisher(OWN).keep_last(1).open()?;
    let mut heard = host.subscriber(NEIGHBOURS).open()?;
    let state_steps = (STEPS_HZ / u64::from(arguments.rate.max(1))).max(1);
    let mut pilot = Pilot::new(arguments.number, arguments.nodes);
    let mut output = std::io::stdout().lock();
    let mut step = 0_u64;
    let mut due_ns = now_ns();
    loop {
        sleep_until(due_ns);
        let now = Instant::<Own>::from_ns(host.now().ns());
        pilot.step();
        if step.is_multiple_of(DECISION_STEPS) {
            pilot.hear(now, &mut heard)?;
            pilot.decide(now);
        }
        if step.is_multiple_of(state_steps) {
            own.publish(&pilot.state(now).encode())?;
        }
        if step.is_multiple_of(LINE_STEPS) {
            writeln!(output, "{}", pilot.line())?;
            output.flush()?;
        }
        step += 1;
        // A process that was kept from running does not fly faster afterwards: the vehicle stalls as long.
        due_ns = (due_ns + STEP_NS).max(now_ns() - STEP_NS);
    }
}

/// A node that meets the drone's other process only.
pub(super) fn host(name: &str) -> Result<Node, noctule::NodeError> {
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
    takeoff: TakeOff,
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
            takeoff: TakeOff::new(TAKEOFF, nodes.saturating_sub(1)),
            seen: Vec::new(),
            crossings: 0,
        }
    }

    fn step(&mut self) {
        self.vehicle.step(&self.limits, self.command_m_s, Vector::zeros(), STEP_NS as f64 / 1e9);
    }

    fn hear(&mut self, now: Instant<Own>, heard: &mut Subscriber) -> Result<(), Box<dyn Error>> {
        let mut bytes = [0; STATE_BYTES];
        while let Some(info) = heard.take_into(&mut bytes)? {
            let (Some(time), Some(bound)) = (info.source_time, info.bound) else {
                self.takeoff.handle_unsettled(now);
                continue;
            };
            let Ok(mut state) = State::<Own>::decode(&bytes[..info.length_bytes.min(STATE_BYTES)]) else {
                continue;
            };
            state.at = Instant::from_ns(time.ns());
            self.neighbours.handle_state(state, bound);
        }
        Ok(())
    }

    fn decide(&mut self, now: Instant<Own>) {
        let lost = self.neighbours.counters().expired;
        self.neighbours.handle_timeout(now);
        if self.neighbours.counters().expired > lost {
            self.takeoff.handle_unsettled(now);
        }
        self.seen.clear();
        self.seen.extend(self.neighbours.estimates(now, Knowledge::Bound));
        let to_goal = self.goal_m - self.vehicle.position_m;
        if to_goal.norm() < ARRIVED_M {
            (self.goal_m, self.crossings) = (-self.goal_m, self.crossings + 1);
        }
        let (here_m, reach_m) = (self.vehicle.position_m, self.avoidance.reach_m());
        let nearby = self.seen.iter().filter(|seen| (seen.position_m - here_m).norm() < reach_m).count();
        // No drone leaves before its neighbours are known, and none flies that receives no other's state.
        let flies = self.takeoff.handle_known(now, self.seen.len(), nearby) && !self.seen.is_empty();
        let wanted = if flies { approach(&self.limits, to_goal) } else { Vector::zeros() };
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

    /// Time, position, velocity, crossings, median and greatest age in ms, greatest bound in ms, why it
    /// left its place and how long it had waited, s; and for each neighbour its number, position, radius and age.
    fn line(&self) -> String {
        let mut ages: Vec<f64> = self.seen.iter().map(|estimate| 1e3 * estimate.age.as_s_f64()).collect();
        ages.sort_by(f64::total_cmp);
        let bounds = self.seen.iter().map(|estimate| 1e3 * estimate.bound.as_s_f64());
        let (p, v) = (self.vehicle.position_m, self.vehicle.velocity_m_s);
        let (clearance, waited) =
            self.takeoff.cleared().map_or(("waiting", Span::ZERO), |(why, waited)| (why.name(), waited));
        let mut line = format!(
            "{} {} {} {} {} {} {} {} {} {} {} {} {}",
            now_ns(),
            p.x,
            p.y,
            p.z,
            v.x,
            v.y,
            v.z,
            self.crossings,
            ages.get(ages.len() / 2).copied().unwrap_or(f64::NAN),
            ages.last().copied().unwrap_or(f64::NAN),
            bounds.fold(0.0, f64::max),
            clearance,
            waited.as_s_f64(),
        );
        for estimate in &self.seen {
            let known = KnownDot::from(estimate);
            let p = known.position_m;
            line += &format!(
                " {}:{:.2}:{:.2}:{:.2}:{:.2}:{:.0}",
                known.node, p.x, p.y, p.z, known.radius_m, known.age_ms
            );
        }
        line
    }
}

/// Where a vehicle is `later`, if it has not turned.
pub(super) fn between(from: &Vector, velocity_m_s: &Vector, later: Duration) -> Vector {
    from + velocity_m_s * later.as_secs_f64()
}
