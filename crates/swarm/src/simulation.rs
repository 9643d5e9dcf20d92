//! A swarm on one air, in virtual time, with the truth known.
//!
//! Vehicles move in steps of 10 ms. A drone decides at its own phase of the decision period, by what it has received until
//! then, and says its state at its own phase of the period of states. All that is random comes from the seed, each part from a
//! sequence of its own. Two drones that collide fly on: what is counted is pairs.

mod drone;
mod knowing;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use noctule_netsim::air::{Air, Frame, Receivers};
use noctule_netsim::{Random, Truth};
use noctule_timebase::{Instant, Span};

use crate::flock::order_parameter;
use crate::measures::{Ages, Measures, Separation};
use crate::mission::Wind;
use crate::neighbours::{Estimate, Knowledge};
use crate::rate::{PERIOD, RateControl};
use crate::scenario::{Mission, Scenario, ScenarioError, Transport};
use crate::state::{STATE_BYTES, State};
use crate::vehicle::Vehicle;
use crate::{Own, Vector};

use drone::{Drone, Flight};
use knowing::{Discovery, Sums};

/// Step of the vehicles.
const STEP: Span = Span::from_ms(10);
/// Steps between two looks at all distances: every second step.
const LOOK_STEPS: u64 = 2;
/// The air learns positions this often, in steps.
const POSITION_STEPS: u64 = 10;
/// Nearer to the goal than this is arrived, m.
const ARRIVED_M: f64 = 1.0;
/// Payload of a frame beside the swarm's.
const BACKGROUND_BYTES: usize = 1_200;
/// Simulated time after all drones have arrived, s.
const LINGER_S: f64 = 3.0;

/// A frame's bytes and the state in them.
type Decoded = (Arc<[u8]>, State<Own>);

/// A frame to be handed to the radio: when, ns; by which drone.
type Due = (i64, usize);

/// A running swarm.
#[derive(Debug)]
pub struct Simulation {
    scenario: Scenario,
    seed: u64,
    rate_hz: f64,
    step: u64,
    drones: Vec<Drone>,
    /// Error of each drone's clock: positive if it is ahead.
    clock_errors: Vec<Span>,
    winds: Vec<Wind>,
    air: Option<Air>,
    /// States that are true and not yet with the radio.
    outbox: BinaryHeap<Reverse<Due>>,
    pending: Vec<Arc<[u8]>>,
    jitter: Random,
    separation: Separation,
    before_m: Vec<Vector>,
    /// Numbers of drones, nearly sorted by x.
    along_x: Vec<u32>,
    ages: Ages,
    sums: Sums,
    discovery: Discovery,
    /// One for each drone, if they measure their channel.
    rates: Vec<RateControl>,
    /// When the next frame beside the swarm's is due, ns.
    background_ns: i64,
}

impl Simulation {
    /// A swarm at time zero.
    ///
    /// # Errors
    /// [`ScenarioError::Air`]: the air has no room for the states. [`ScenarioError::Obstacle`]: a drone begins or ends in one.
    pub fn new(scenario: Scenario, seed: u64) -> Result<Simulation, ScenarioError> {
        let rate_hz = scenario.plan_rate()?;
        let starts = drone::starts(&scenario, seed);
        let mut draw = Random::for_part(seed, 21);
        let drones: Vec<Drone> = (starts.iter().enumerate())
            .map(|(number, start)| Drone::new((&scenario, rate_hz), number, *start, &mut draw))
            .collect();
        let count = drones.len();
        let bound_ns = scenario.states.clock_bound.ns() as f64;
        let clock_errors =
            (0..count).map(|_| Span::from_ns(draw.uniform(-0.5 * bound_ns, 0.5 * bound_ns) as i64)).collect();
        let winds = (0..count).map(|n| Wind::new(scenario.wind_m_s2, 1.0, seed ^ ((n as u64) << 20)));
        let air = scenario.air.map(|spec| Air::new(spec, count, seed));
        clear_of_obstacles(&scenario, &drones)?;
        let mut simulation = Simulation {
            rate_hz,
            step: 0,
            winds: winds.collect(),
            air,
            outbox: BinaryHeap::new(),
            pending: vec![Arc::from(Vec::new()); count],
            jitter: Random::for_part(seed, 22),
            separation: Separation::new(scenario.limits.radius_m),
            before_m: starts,
            along_x: (0..count as u32).collect(),
            ages: Ages::default(),
            sums: Sums::new(count),
            discovery: Discovery::new(count),
            rates: scenario
                .rate_limits()
                .map_or_else(Vec::new, |(limits, airtime)| vec![RateControl::new(limits, airtime); count]),
            background_ns: 0,
            clock_errors,
            drones,
            scenario,
            seed,
        };
        simulation.place();
        Ok(simulation)
    }

    /// Runs to the end of the scenario, or until `LINGER_S` after the last drone has arrived.
    pub fn run(mut self) -> Measures {
        while !self.is_over() {
            self.advance();
        }
        self.measures()
    }

    /// Whether the scenario's time is over, or `LINGER_S` have passed since the last living drone arrived.
    pub fn is_over(&self) -> bool {
        if self.now_s() >= self.scenario.seconds {
            return true;
        }
        let latest_s = self.now_s() - LINGER_S;
        self.drones.iter().all(|drone| !drone.alive || drone.arrived_s.is_some_and(|at_s| at_s < latest_s))
    }

    /// Virtual time, s.
    pub fn now_s(&self) -> f64 {
        self.now().as_s_f64()
    }

    /// True states of all vehicles.
    pub fn vehicles(&self) -> impl Iterator<Item = &Vehicle> {
        self.drones.iter().map(|drone| &drone.vehicle)
    }

    /// Which drones have not been killed.
    pub fn living(&self) -> impl Iterator<Item = bool> + '_ {
        self.drones.iter().map(|drone| drone.alive)
    }

    /// A drone's estimates of the others at its last decision; for an unknown number, none.
    pub fn known_by(&self, number: usize) -> &[Estimate] {
        self.drones.get(number).map_or(&[], Drone::seen)
    }

    /// Distances of all pairs so far.
    pub fn separation(&self) -> &Separation {
        &self.separation
    }

    /// Share of the time until now with a transmission on the air.
    pub fn air_utilisation(&self) -> f64 {
        let busy_ns = self.air.as_ref().map_or(0, |air| air.counters().busy_ns);
        busy_ns as f64 / (self.now_s() * 1e9).max(1.0)
    }

    /// A drone falls silent and hovers from now on; false if it did already or does not exist.
    pub fn kill_drone(&mut self, number: usize) -> bool {
        let Some(drone) = self.drones.get_mut(number).filter(|drone| drone.alive) else { return false };
        drone.alive = false;
        drone.command_m_s = Vector::zeros();
        true
    }

    fn now(&self) -> Now {
        Now(Instant::from_ns(STEP.ns() * self.step as i64))
    }

    /// One step of the vehicles and all that happens in it.
    pub fn advance(&mut self) {
        let now = self.now();
        self.kill(now);
        self.publish(now);
        self.exchange(now);
        self.control_rates(now);
        self.decide(now);
        let step_s = STEP.as_s_f64();
        for (drone, wind) in self.drones.iter_mut().zip(&mut self.winds) {
            let gust = wind.step(step_s);
            drone.vehicle.step(&self.scenario.limits, drone.command_m_s, gust, step_s);
            drone.effort += drone.vehicle.acceleration_m_s2.norm_squared() * step_s;
        }
        self.step += 1;
        if self.step.is_multiple_of(LOOK_STEPS) {
            self.look();
        }
        if self.step.is_multiple_of(POSITION_STEPS) {
            self.place();
        }
    }

    fn place(&mut self) {
        let Some(air) = &mut self.air else { return };
        for (number, drone) in self.drones.iter().enumerate() {
            air.set_position(number, drone.vehicle.position_m.into());
        }
    }

    fn kill(&mut self, now: Now) {
        let Some(kill) = self.scenario.kill.filter(|kill| kill.at_s <= now.as_s_f64() && !self.sums.killed)
        else {
            return;
        };
        self.sums.killed = true;
        let mut draw = Random::for_part(self.seed, 23);
        let count = (kill.share * self.drones.len() as f64).round() as usize;
        while self.drones.iter().filter(|drone| !drone.alive).count() < count {
            let number = (draw.bits() % self.drones.len() as u64) as usize;
            self.kill_drone(number);
        }
    }

    /// States that are due become true now and wait for the radio.
    fn publish(&mut self, now: Now) {
        if self.air.is_none() {
            return;
        }
        for number in 0..self.drones.len() {
            let period_ns = (1e9 / self.rates.get(number).map_or(self.rate_hz, RateControl::rate_hz)) as i64;
            let drone = &mut self.drones[number];
            if !drone.alive || drone.next_state_ns > now.ns() {
                continue;
            }
            drone.next_state_ns += period_ns;
            let state = drone.own_state(&self.scenario, now);
            self.pending[number] = Arc::from(state.encode().as_slice());
            let jitter_ns = (self.jitter.unit() * STEP.ns() as f64) as i64;
            let copies = match self.scenario.transport {
                Transport::Repeated { copies } => copies,
                _ => 1,
            };
            let at_ns = now.ns() + self.scenario.states.delay.ns() + jitter_ns;
            for copy in 0..copies {
                let later_ns = period_ns * i64::from(copy) / i64::from(copies);
                self.outbox.push(Reverse((at_ns + later_ns, number)));
            }
            drone.queue.push_back((self.pending[number].clone(), copies));
        }
    }

    /// Each drone looks how busy its channel was.
    fn control_rates(&mut self, now: Now) {
        let steps = (PERIOD.ns() / STEP.ns()) as u64;
        let Some(air) = self.air.as_ref().filter(|_| self.step.is_multiple_of(steps)) else { return };
        for (number, rate) in self.rates.iter_mut().enumerate() {
            rate.handle_period(PERIOD, air.sensed_busy(now.0 + STEP, number));
        }
    }

    /// Sends the states that are due before the end of this step, and delivers those that arrive until then.
    fn exchange(&mut self, now: Now) {
        let Some(air) = &mut self.air else { return };
        let end = now.0 + STEP;
        let background_mbps = self.scenario.background_mbps;
        while let Some(Reverse((at_ns, number))) = self.outbox.peek().copied() {
            if at_ns >= end.ns() {
                break;
            }
            self.outbox.pop();
            let drone = &mut self.drones[number];
            let Some(bytes) = drone.next_frame() else { continue };
            if !drone.alive {
                continue;
            }
            let at = Instant::from_ns(at_ns);
            send_beside(air, background_mbps, &mut self.background_ns, at);
            match self.scenario.transport {
                Transport::UnicastMesh => {
                    for to in (0..self.drones.len()).filter(|to| *to != number) {
                        let frame = Frame::of_payload(Receivers::One(to), bytes.clone());
                        air.handle_frame(at, number, frame);
                    }
                }
                _ => air.handle_frame(at, number, Frame::of_payload(Receivers::All, bytes)),
            }
        }
        send_beside(air, background_mbps, &mut self.background_ns, end);
        let bound = self.scenario.states.clock_bound;
        // A frame's receptions come one after another: it is decoded once.
        let mut decoded: Option<Decoded> = None;
        while let Some(reception) = air.poll_reception(end) {
            let difference = self.clock_errors[reception.from] - self.clock_errors[reception.to];
            if !decoded.as_ref().is_some_and(|(bytes, _)| Arc::ptr_eq(bytes, &reception.bytes)) {
                decoded = State::decode(&reception.bytes).ok().map(|state| (reception.bytes, state));
            }
            let Some((_, state)) = &decoded else { continue };
            let mut state = *state;
            // Translated with the error that the bound allows.
            state.at += difference;
            self.drones[reception.to].neighbours.handle_state(state, bound);
            self.discovery.heard(reception.from, reception.to, reception.at);
        }
    }

    fn decide(&mut self, now: Now) {
        let steps = self.decision_steps();
        let perfect = self.air.is_none();
        let views = if perfect { self.drones.iter().map(Drone::as_other).collect() } else { Vec::new() };
        let flight = Flight { scenario: &self.scenario, now, count: self.drones.len() };
        let positions_m: Vec<Vector> = self.drones.iter().map(|drone| drone.vehicle.position_m).collect();
        for (number, drone) in self.drones.iter_mut().enumerate() {
            if !drone.alive || !(self.step + number as u64).is_multiple_of(steps) {
                continue;
            }
            drone.neighbours.handle_own(drone.vehicle.position_m);
            drone.neighbours.handle_timeout(Instant::from_ns(now.ns()));
            let known = drone.perceive(&flight, &views);
            if !perfect {
                self.sums.look_at(
                    known,
                    &positions_m,
                    (number, &mut self.ages),
                    self.scenario.states.knowledge,
                );
            }
            let kept = drone.decide(&flight);
            self.sums.decided(kept);
        }
    }

    fn decision_steps(&self) -> u64 {
        (1.0 / (self.scenario.decision_hz * STEP.as_s_f64())).round().max(1.0) as u64
    }

    /// All distances, and how the mission goes.
    fn look(&mut self) {
        let (drones, before) = (&self.drones, &self.before_m);
        let moved_m = 2.0 * self.scenario.limits.speed_bound_m_s() * STEP.as_s_f64() * LOOK_STEPS as f64;
        let matters_m = self.separation.least_m.min(1e6).max(self.separation.near_m) + moved_m;
        // Sorted along x, a drone is compared only with those that follow within the distance that matters.
        let along = |number: usize| drones[number].vehicle.position_m.x;
        self.along_x.sort_by(|a, b| along(*a as usize).total_cmp(&along(*b as usize)));
        for (place, first) in self.along_x.iter().enumerate() {
            for second in &self.along_x[place + 1..] {
                let (other, number) = (*first.min(second) as usize, *first.max(second) as usize);
                if along(*second as usize) - along(*first as usize) > matters_m {
                    break;
                }
                let (drone, other_drone) = (&drones[number], &drones[other]);
                let apart = drone.vehicle.position_m - other_drone.vehicle.position_m;
                if apart.norm_squared() > matters_m * matters_m || !(drone.alive || other_drone.alive) {
                    continue;
                }
                let pair = (other as u32, number as u32);
                if drone.alive && other_drone.alive {
                    self.separation.record(pair, before[number] - before[other], apart);
                } else if apart.norm() < self.separation.collision_m {
                    self.sums.with_killed.insert(pair);
                }
            }
        }
        for (before, drone) in self.before_m.iter_mut().zip(&self.drones) {
            *before = drone.vehicle.position_m;
        }
        self.look_at_obstacles();
        self.look_at_mission();
    }

    fn look_at_obstacles(&mut self) {
        let body_m = self.scenario.limits.radius_m;
        for obstacle in &self.scenario.obstacles {
            for (number, drone) in self.drones.iter().enumerate().filter(|(_, drone)| drone.alive) {
                let distance_m = (drone.vehicle.position_m - obstacle.centre_m).norm();
                self.sums.least_to_obstacle_m =
                    self.sums.least_to_obstacle_m.min(distance_m - obstacle.radius_m - body_m);
                if distance_m < obstacle.radius_m + body_m {
                    self.sums.at_obstacles.insert(number as u32);
                }
            }
        }
    }

    /// Agreement, arrivals, errors of the formation.
    fn look_at_mission(&mut self) {
        let now_s = self.now_s();
        let velocities: Vec<Vector> =
            self.drones.iter().filter(|drone| drone.alive).map(|drone| drone.vehicle.velocity_m_s).collect();
        self.sums.order.push(order_parameter(&velocities));
        match self.scenario.mission {
            Mission::Crossing { .. } => {
                for drone in self.drones.iter_mut().filter(|drone| drone.arrived_s.is_none()) {
                    if (drone.goal_m - drone.vehicle.position_m).norm() < ARRIVED_M {
                        drone.arrived_s = Some(now_s);
                    }
                }
            }
            Mission::Formation { .. } if now_s > self.scenario.seconds / 3.0 => {
                let leader = self.drones[0].vehicle;
                for (number, drone) in self.drones.iter().enumerate().skip(1).filter(|(_, drone)| drone.alive)
                {
                    let slot = drone::slot_at(&self.scenario, number, now_s);
                    let error = (drone.vehicle.position_m - leader.position_m - slot).norm();
                    self.sums.formation.push(error);
                }
            }
            _ => {}
        }
    }

    /// The least, the mean and the greatest rate of living drones now, Hz.
    fn rates_hz(&self) -> (f64, f64, f64) {
        let living = self.rates.iter().zip(&self.drones).filter(|(_, drone)| drone.alive);
        let rates: Vec<f64> = living.map(|(rate, _)| rate.rate_hz()).collect();
        if rates.is_empty() {
            return (self.rate_hz, self.rate_hz, self.rate_hz);
        }
        let mean = rates.iter().sum::<f64>() / rates.len() as f64;
        let least = rates.iter().copied().fold(f64::MAX, f64::min);
        (least, mean, rates.iter().copied().fold(0.0, f64::max))
    }

    /// The figures until now.
    pub fn measures(&self) -> Measures {
        let scenario = &self.scenario;
        let seconds = self.now_s();
        let counters = self.air.as_ref().map(Air::counters).unwrap_or_default();
        let lost = counters.weak + counters.collided + counters.burst;
        let share = |part: u64, of: u64| if of > 0 { part as f64 / of as f64 } else { 0.0 };
        let count = self.drones.len();
        let living: Vec<&Drone> = self.drones.iter().filter(|drone| drone.alive).collect();
        let is_crossing = matches!(scenario.mission, Mission::Crossing { .. });
        let arrived: Vec<f64> = living.iter().filter_map(|drone| drone.arrived_s).collect();
        let all_arrived = is_crossing && arrived.len() == living.len();
        let (rate_least_hz, mean_rate_hz, rate_most_hz) = self.rates_hz();
        Measures {
            scenario: scenario.name.clone(),
            nodes: count,
            seed: self.seed,
            neighbours: match (self.air.is_none(), scenario.states.knowledge) {
                (true, _) => "perfect",
                (_, Knowledge::Hold) => "hold",
                (_, Knowledge::Age) => "age",
                (_, Knowledge::Bound) => "bound",
            }
            .into(),
            transport: knowing::transport_name(scenario.transport),
            rate_hz: mean_rate_hz,
            rate_least_hz,
            rate_most_hz,
            rate_asked_hz: scenario.states.rate_hz,
            seconds,
            collisions: self.separation.collided.len(),
            near_misses: self.separation.near.len(),
            min_separation_m: self.separation.least_m,
            collision_distance_m: self.separation.collision_m,
            collisions_with_killed: self.sums.with_killed.len(),
            collisions_with_obstacles: self.sums.at_obstacles.len(),
            least_to_obstacle_m: (!scenario.obstacles.is_empty()).then_some(self.sums.least_to_obstacle_m),
            killed: count - living.len(),
            finished: is_crossing.then(|| arrived.len() as f64 / living.len().max(1) as f64),
            time_to_finish_s: all_arrived.then(|| arrived.iter().copied().fold(0.0, f64::max)),
            formation_error_rms_m: self.sums.formation.rms(),
            formation_error_max_m: self.sums.formation.max(),
            order_parameter: self.sums.order.mean().unwrap_or(0.0),
            effort_m2_s3: self.drones.iter().map(|drone| drone.effort).sum::<f64>() / count as f64,
            age_p50_ms: self.ages.percentile_ms(0.5),
            age_p99_ms: self.ages.percentile_ms(0.99),
            age_max_ms: self.ages.max_ms(),
            age_bound_ms: scenario.states.clock_bound.as_s_f64() * 1000.0,
            bound_violations: self.sums.violations,
            bounds_checked: self.sums.checked,
            uncertainty_mean_m: self.sums.uncertainty.mean().unwrap_or(0.0),
            known_share: self.sums.known.mean().unwrap_or(1.0),
            decisions_unsafe: self.sums.unsafe_decisions,
            decisions: self.sums.decisions,
            air_utilisation: self.air_utilisation(),
            air_load: scenario.air_load(mean_rate_hz),
            loss: share(lost, lost + counters.received),
            loss_by_collision: share(counters.collided, lost + counters.received),
            bytes_per_drone_s: counters.sent as f64 * knowing::frame_bytes(STATE_BYTES)
                / (count as f64 * seconds).max(1e-9),
            discovery_s: self.discovery.complete_s(),
            takeoff_s: drone::all_left_s(&living),
            takeoffs_overdue: living.iter().filter(|drone| drone.left_overdue()).count(),
            cpu_s: None,
        }
    }
}

/// No drone may begin or end within an obstacle and the margin to it.
fn clear_of_obstacles(scenario: &Scenario, drones: &[Drone]) -> Result<(), ScenarioError> {
    let around_m = scenario.limits.radius_m + scenario.margins.hard_m;
    let is_crossing = matches!(scenario.mission, Mission::Crossing { .. });
    for (number, obstacle) in scenario.obstacles.iter().enumerate() {
        let is_in = |place: Vector| (place - obstacle.centre_m).norm() < obstacle.radius_m + around_m;
        let inside =
            drones.iter().position(|d| is_in(d.vehicle.position_m) || is_crossing && is_in(d.goal_m));
        if let Some(drone) = inside {
            return Err(ScenarioError::Obstacle { drone, obstacle: number + 1 });
        }
    }
    Ok(())
}

/// Frames of the traffic beside the swarm that are due before `end`; `due_ns` is when the next one is.
fn send_beside(air: &mut Air, mbps: f64, due_ns: &mut i64, end: Instant<Truth>) {
    if mbps <= 0.0 {
        return;
    }
    let pause_ns = (8e3 * BACKGROUND_BYTES as f64 / mbps).max(1.0) as i64;
    while *due_ns < end.ns() {
        let frame = Frame::of_payload(Receivers::One(1), Arc::from([0; BACKGROUND_BYTES].as_slice()));
        air.handle_frame(Instant::from_ns(*due_ns), 0, frame);
        *due_ns += pause_ns;
    }
}

/// Virtual time at a step.
#[derive(Clone, Copy, Debug)]
struct Now(Instant<Truth>);

impl Now {
    fn ns(self) -> i64 {
        self.0.ns()
    }

    fn as_s_f64(self) -> f64 {
        Span::from_ns(self.0.ns()).as_s_f64()
    }
}

#[cfg(test)]
mod tests;
