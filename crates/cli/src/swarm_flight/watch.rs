//! Supervision of a live swarm: distances, ages, drones that were lost; and kills one on command.

use std::time::Duration;

use noctule_link_emulator::LiveAir;
use noctule_swarm::Vector;
use noctule_swarm::measures::Separation;
use noctule_sys::clock::now_ns;
use serde::Serialize;

use super::drone::between;
use super::map::{Condition, Dot, Map, Picture};
use super::processes::{Drone, DroneReport};
use crate::stop::Stop;

/// A vehicle whose last line is older is not there any more.
const SILENT_NS: i64 = 3_000_000_000;
/// Interval between two surveys of the channel: a period of the rate's control, less half of a look.
const SURVEY_NS: i64 = noctule_swarm::rate::PERIOD.ns() - 50_000_000;

/// Figures of a live flight.
#[derive(Debug, Default, Serialize)]
pub(super) struct Figures {
    pub(super) nodes: usize,
    pub(super) seconds: f64,
    /// Drones whose processes ended although no command killed them.
    pub(super) lost_nodes: usize,
    pub(super) killed: usize,
    /// Pairs of living drones whose bodies overlapped.
    pub(super) collisions: usize,
    /// Those of which one did not know the other.
    pub(super) collisions_unknown: usize,
    pub(super) near_misses: usize,
    pub(super) min_separation_m: f64,
    pub(super) crossings: u64,
    /// Medians over drones and time.
    pub(super) age_p50_ms: f64,
    /// 99 of 100 drones and moments have no older neighbour.
    pub(super) age_oldest_p99_ms: f64,
    pub(super) age_bound_max_ms: f64,
    /// Mean share of the others that a drone knows, from a third of the time on.
    pub(super) known_share: f64,
    /// Drones that left their places knowing all others, knowing all in range, because they had waited for the longest time, and
    /// not at all.
    pub(super) takeoffs: TakeOffs,
    /// The longest wait before, s.
    pub(super) takeoff_wait_max_s: f64,
    /// States a second, at the end: of the drone with the least, and of the one with the most.
    pub(super) rate_least_hz: f64,
    pub(super) rate_most_hz: f64,
    /// Processor time of a drone's radio process, of the time: mean.
    pub(super) radio_cpu_share: f64,
    pub(super) air_utilisation: f64,
    /// Sum of the airtimes of all frames, of the time.
    pub(super) airtime: f64,
    /// Payload of the unicast flow beside the swarm that arrived, Mb/s.
    pub(super) beside_unicast_mbps: f64,
    pub(super) frames: u64,
    /// MAC headers included.
    pub(super) bytes: u64,
    pub(super) air_late_max_ms: f64,
    pub(super) air_cpu_share: f64,
}

/// Drones by why they left their places.
#[derive(Debug, Default, Serialize)]
pub(super) struct TakeOffs {
    pub(super) complete: usize,
    pub(super) quiet: usize,
    pub(super) overdue: usize,
    pub(super) waiting: usize,
}

/// Looks at all drones ten times a second.
pub(super) struct Watch<'a> {
    air: &'a LiveAir,
    start_ns: i64,
    separation: Separation,
    collisions_unknown: usize,
    /// Where living drones were at the look before.
    before: Vec<Option<Vector>>,
    /// Where drones were last, and their last reports.
    dots: Vec<Dot>,
    ages_ms: Vec<f64>,
    oldest_ms: Vec<f64>,
    bound_ms: f64,
    known: Vec<f64>,
}

impl<'a> Watch<'a> {
    pub(super) fn new(air: &'a LiveAir, nodes: usize) -> Watch<'a> {
        let unheard =
            Dot { position_m: Vector::zeros(), velocity_m_s: Vector::zeros(), condition: Condition::Silent };
        Watch {
            air,
            start_ns: now_ns(),
            separation: Separation::new(0.5),
            collisions_unknown: 0,
            before: vec![None; nodes],
            dots: vec![unheard; nodes],
            ages_ms: Vec::new(),
            oldest_ms: Vec::new(),
            bound_ms: 0.0,
            known: Vec::new(),
        }
    }

    /// Watches until it is time to stop. After `half` of the time a share of the drones is killed, and browsers kill whom
    /// they want.
    pub(super) fn until(
        mut self,
        stop: &Stop,
        (half, share): (Duration, f64),
        drones: &mut [Drone],
        mut map: Option<Map>,
    ) -> Figures {
        let (mut is_due, mut surveyed_ns) = (share > 0.0, i64::MIN / 2);
        while !stop.is_due() {
            stop.wait_until(std::time::Instant::now() + crate::stop::TICK);
            let now = now_ns();
            let elapsed = Duration::from_nanos((now - self.start_ns).max(0).unsigned_abs());
            if is_due && elapsed > half {
                is_due = false;
                let count = (share * drones.len() as f64).round() as usize;
                drones.iter_mut().rev().take(count).for_each(kill);
            }
            if now - surveyed_ns > SURVEY_NS {
                surveyed_ns = now;
                self.survey(now, drones);
            }
            let reports: Vec<Option<DroneReport>> = drones.iter().map(Drone::report).collect();
            self.look(now, drones, &reports);
            if 3 * elapsed > 2 * half {
                self.count_known(&reports);
            }
            if let Some(map) = &mut map {
                self.show(map, now, reports);
                for number in map.kills(Duration::ZERO) {
                    if let Some(drone) = drones.get_mut(number) {
                        kill(drone);
                    }
                }
            }
        }
        self.figures(drones)
    }

    /// Each living drone's radio gets how busy its channel was.
    fn survey(&self, now: i64, drones: &mut [Drone]) {
        for (number, drone) in drones.iter_mut().enumerate().filter(|(_, drone)| !drone.killed) {
            drone.survey(now, self.air.sensed_busy(number));
        }
    }

    fn look(&mut self, now: i64, drones: &[Drone], reports: &[Option<DroneReport>]) {
        let mut there = vec![None; drones.len()];
        for (number, (drone, report)) in drones.iter().zip(reports).enumerate() {
            self.dots[number].condition = if drone.killed { Condition::Killed } else { Condition::Silent };
            let Some(report) =
                report.as_ref().filter(|report| !drone.killed && now - report.at_ns < SILENT_NS)
            else {
                continue;
            };
            let later = Duration::from_nanos((now - report.at_ns).max(0).unsigned_abs());
            let place = between(&report.position_m, &report.velocity_m_s, later);
            self.air.set_position(number, place.into());
            self.ages_ms.extend(Some(report.age_p50_ms).filter(|age| age.is_finite()));
            self.oldest_ms.extend(Some(report.age_max_ms).filter(|age| age.is_finite()));
            self.bound_ms = self.bound_ms.max(report.bound_ms);
            self.dots[number] =
                Dot { position_m: place, velocity_m_s: report.velocity_m_s, condition: Condition::Flying };
            there[number] = Some(place);
        }
        for number in 0..there.len() {
            for other in 0..number {
                if let (Some(a), Some(b)) = (there[number], there[other])
                    && let (Some(c), Some(d)) = (self.before[number], self.before[other])
                {
                    let before = self.separation.collided.len();
                    self.separation.record((other as u32, number as u32), c - d, a - b);
                    let collides = self.separation.collided.len() > before;
                    self.collisions_unknown +=
                        usize::from(collides && !know_each_other(reports, (number, other)));
                }
            }
        }
        self.before = there;
    }

    fn count_known(&mut self, reports: &[Option<DroneReport>]) {
        let others = (reports.len() - 1) as f64;
        for (dot, report) in self.dots.iter().zip(reports) {
            if let (Condition::Flying, Some(report)) = (dot.condition, report) {
                self.known.push(report.known.len() as f64 / others);
            }
        }
    }

    fn show(&self, map: &mut Map, now: i64, reports: Vec<Option<DroneReport>>) {
        let elapsed_ns = (now - self.start_ns).max(1) as f64;
        let known: Vec<_> =
            reports.into_iter().map(|report| report.map_or_else(Vec::new, |report| report.known)).collect();
        map.show(&Picture {
            seconds: elapsed_ns / 1e9,
            is_over: false,
            dots: &self.dots,
            known: &known,
            separation: &self.separation,
            air_utilisation: self.air.report().air.busy_ns as f64 / elapsed_ns,
        });
    }

    fn figures(mut self, drones: &mut [Drone]) -> Figures {
        let now = now_ns();
        // One that flies on without its radio is lost, too: no other drone knows where it is.
        let is_lost = |drone: &mut Drone| {
            let is_silent = drone.report().is_none_or(|report| now - report.at_ns > SILENT_NS);
            !drone.killed && (is_silent || drone.has_ended())
        };
        let lost_nodes = drones.iter_mut().map(is_lost).filter(|lost| *lost).count();
        self.ages_ms.sort_by(f64::total_cmp);
        self.oldest_ms.sort_by(f64::total_cmp);
        let at = |ages: &[f64], share: f64| {
            let rank = (ages.len() as f64 * share) as usize;
            ages.get(rank).copied().unwrap_or(f64::NAN)
        };
        let rates: Vec<f64> = drones
            .iter()
            .filter(|drone| !drone.killed)
            .filter_map(|drone| Some(drone.radio_report()?.rate_hz))
            .collect();
        let radios_s: f64 = drones.iter().filter_map(|drone| Some(drone.radio_report()?.cpu_s)).sum();
        Figures {
            nodes: drones.len(),
            seconds: (now - self.start_ns) as f64 / 1e9,
            lost_nodes,
            killed: drones.iter().filter(|drone| drone.killed).count(),
            collisions: self.separation.collided.len(),
            collisions_unknown: self.collisions_unknown,
            near_misses: self.separation.near.len(),
            min_separation_m: self.separation.least_m,
            crossings: drones.iter().filter_map(|drone| Some(drone.report()?.crossings)).sum(),
            age_p50_ms: at(&self.ages_ms, 0.5),
            age_oldest_p99_ms: at(&self.oldest_ms, 0.99),
            age_bound_max_ms: self.bound_ms,
            known_share: self.known.iter().sum::<f64>() / self.known.len().max(1) as f64,
            takeoff_wait_max_s: drones.iter().filter_map(|d| Some(d.report()?.waited_s)).fold(0.0, f64::max),
            takeoffs: takeoffs(drones),
            rate_least_hz: rates.iter().copied().fold(f64::NAN, f64::min),
            rate_most_hz: rates.iter().copied().fold(f64::NAN, f64::max),
            radio_cpu_share: radios_s / (drones.len() as f64 * (now - self.start_ns) as f64 / 1e9),
            ..Figures::default()
        }
    }
}

/// Whether each of two had the other among its neighbours at its last decision.
fn know_each_other(reports: &[Option<DroneReport>], (one, other): (usize, usize)) -> bool {
    let knows = |number: usize, whom: usize| {
        let report = reports.get(number).and_then(Option::as_ref);
        report.is_some_and(|report| report.known.iter().any(|known| known.node == whom))
    };
    knows(one, other) && knows(other, one)
}

fn takeoffs(drones: &[Drone]) -> TakeOffs {
    let mut counts = TakeOffs::default();
    for report in drones.iter().filter_map(Drone::report) {
        *match report.clearance.as_str() {
            "complete" => &mut counts.complete,
            "quiet" => &mut counts.quiet,
            "overdue" => &mut counts.overdue,
            _ => &mut counts.waiting,
        } += 1;
    }
    counts
}

fn kill(drone: &mut Drone) {
    drone.end();
    drone.killed = true;
}
