//! The map of a swarm in a browser: where drones are, how old what is known of them is, and a button that kills one.
//!
//! A flight shows a [`Picture`] some ten times a second; each browser that has selected a drone also gets what that drone
//! knows of the others. A browser's only influence is to kill a drone.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use noctule_swarm::measures::Separation;
use noctule_swarm::{Estimate, Vector};
use noctule_web::{Asset, ClientId, Event, Server, ServerError, ServerOptions};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::page_window::open_browser;

/// Interval between two pictures.
pub(super) const FRAME: Duration = Duration::from_millis(100);
/// Pairs on one picture; beyond it only their number is shown.
const PAIRS_MAX: usize = 200;
/// Near misses that are listed.
const MISSES_MAX: usize = 12;

const ASSETS: [Asset; 5] = [
    Asset { path: "/", content_type: "text/html", body: include_str!("../../../../web/swarm/page.html") },
    Asset {
        path: "/page.js",
        content_type: "text/javascript",
        body: include_str!("../../../../web/swarm/page.js"),
    },
    Asset {
        path: "/chart.js",
        content_type: "text/javascript",
        body: include_str!("../../../../web/chart.js"),
    },
    Asset {
        path: "/socket.js",
        content_type: "text/javascript",
        body: include_str!("../../../../web/socket.js"),
    },
    Asset { path: "/shell.css", content_type: "text/css", body: include_str!("../../../../web/shell.css") },
];

/// Whether there is a map, and where.
#[derive(clap::Args)]
pub(super) struct MapArguments {
    /// Show a map in the browser: positions, ages, near misses, and a button that kills a drone
    #[arg(long)]
    map: bool,
    /// Where the map listens; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:0", requires = "map")]
    listen: SocketAddr,
    /// Print the map's address and open no browser
    #[arg(long, requires = "map")]
    no_open: bool,
}

/// A drone on the map.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Dot {
    pub(super) position_m: Vector,
    pub(super) velocity_m_s: Vector,
    pub(super) condition: Condition,
}

/// Condition of a drone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Condition {
    Flying,
    Killed,
    /// Its process is silent, although it was not killed by a command.
    Silent,
}

impl Condition {
    fn letter(self) -> &'static str {
        match self {
            Condition::Flying => "f",
            Condition::Killed => "k",
            Condition::Silent => "s",
        }
    }
}

/// A drone's estimate of another drone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct KnownDot {
    pub(super) node: usize,
    pub(super) position_m: Vector,
    pub(super) radius_m: f64,
    pub(super) age_ms: f64,
}

impl From<&Estimate> for KnownDot {
    fn from(estimate: &Estimate) -> KnownDot {
        KnownDot {
            node: estimate.node as usize,
            position_m: estimate.position_m,
            radius_m: estimate.uncertainty_m,
            age_ms: 1e3 * estimate.age.as_s_f64(),
        }
    }
}

/// A moment of a flight.
#[derive(Debug)]
pub(super) struct Picture<'a> {
    /// Time since the start, in the flight's time.
    pub(super) seconds: f64,
    pub(super) is_over: bool,
    pub(super) dots: &'a [Dot],
    /// For each drone what it knows, in the order of their numbers.
    pub(super) known: &'a [Vec<KnownDot>],
    pub(super) separation: &'a Separation,
    pub(super) air_utilisation: f64,
}

/// Message of a browser.
#[derive(Debug, Deserialize)]
#[serde(tag = "t", rename_all = "snake_case")]
enum BrowserMessage {
    /// Asks for the time; `c` comes back.
    Ping { c: f64 },
    /// Wants to see what a drone knows; without a number, of none.
    Select { drone: Option<usize> },
    /// Kill this one.
    Kill { drone: usize },
}

/// A map that is served until it is dropped.
pub(super) struct Map {
    server: Server,
    title: String,
    nodes: usize,
    /// Drone that each browser has selected.
    selected: BTreeMap<ClientId, Option<usize>>,
    misses: Misses,
    start: std::time::Instant,
}

impl MapArguments {
    /// Serves the map and says where, if there is to be one.
    pub(super) fn start(&self, title: String, nodes: usize) -> Result<Option<Map>, ServerError> {
        if !self.map {
            return Ok(None);
        }
        let server = Server::start(ServerOptions { listen: self.listen, assets: ASSETS.to_vec() })?;
        let url = server.url();
        anstream::eprintln!("{url}");
        if !self.no_open && !open_browser(&url) {
            anstream::eprintln!("noctule: no browser could be started; open the address above in one");
        }
        let start = std::time::Instant::now();
        Ok(Some(Map { server, title, nodes, selected: BTreeMap::new(), misses: Misses::default(), start }))
    }
}

impl Map {
    /// The drones that browsers want to be killed, within `timeout`.
    pub(super) fn kills(&mut self, timeout: Duration) -> Vec<usize> {
        let mut kills = Vec::new();
        let mut event = self.server.poll_event(timeout);
        while let Some(happened) = event {
            kills.extend(self.handle_event(happened));
            event = self.server.poll_event(Duration::ZERO);
        }
        kills
    }

    fn handle_event(&mut self, event: Event) -> Option<usize> {
        let (client, text) = match event {
            Event::Opened(client) => {
                self.selected.insert(client, None);
                let hello = json!({ "t": "hello", "title": self.title, "nodes": self.nodes });
                self.server.reply(client, &hello.to_string());
                return None;
            }
            Event::Closed(client) => {
                self.selected.remove(&client);
                return None;
            }
            Event::Text(client, text) => (client, text),
        };
        // A text that is no message of ours is ignored.
        match serde_json::from_str(&text).ok()? {
            BrowserMessage::Ping { c } => {
                let server_ms = self.start.elapsed().as_secs_f64() * 1e3;
                self.server.reply(client, &json!({ "t": "pong", "c": c, "s": server_ms }).to_string());
                None
            }
            BrowserMessage::Select { drone } => {
                self.selected.insert(client, drone.filter(|drone| *drone < self.nodes));
                None
            }
            BrowserMessage::Kill { drone } => (drone < self.nodes).then_some(drone),
        }
    }

    /// Shows a moment to all browsers, and to each what the drone it selected knows.
    pub(super) fn show(&mut self, picture: &Picture<'_>) {
        self.misses.look_at(picture);
        if self.selected.is_empty() {
            return;
        }
        let mut state = state(picture);
        state["misses"] = self.misses.listed(picture.separation);
        self.server.broadcast(&state.to_string());
        for (client, drone) in &self.selected {
            if let Some((drone, known)) = drone.and_then(|drone| Some((drone, picture.known.get(drone)?))) {
                self.server.reply(*client, &view(drone, known).to_string());
            }
        }
    }
}

/// When a near miss was seen, and the pair.
type Miss = (f64, (u32, u32));

/// Near misses, also those before a browser came.
#[derive(Debug, Default)]
struct Misses {
    seen: HashSet<(u32, u32)>,
    /// The newest first.
    newest: VecDeque<Miss>,
}

impl Misses {
    fn look_at(&mut self, picture: &Picture<'_>) {
        let near = &picture.separation.near;
        let mut fresh: Vec<(u32, u32)> =
            near.iter().copied().filter(|pair| self.seen.insert(*pair)).collect();
        fresh.sort_unstable();
        for pair in fresh {
            self.newest.push_front((picture.seconds, pair));
        }
        self.newest.truncate(MISSES_MAX);
    }

    /// Time, both drones, and whether they touched, then or later.
    fn listed(&self, separation: &Separation) -> Value {
        let row = |(seconds, pair): &Miss| {
            json!([rounded(*seconds), pair.0, pair.1, separation.collided.contains(pair)])
        };
        self.newest.iter().map(row).collect()
    }
}

/// Rounds to the centimetre: half of the bytes.
fn rounded(value: f64) -> f64 {
    (100.0 * value).round() / 100.0
}

fn view(drone: usize, known: &[KnownDot]) -> Value {
    let of = |k: &KnownDot| {
        let p = k.position_m.map(rounded);
        json!([k.node, p.x, p.y, p.z, rounded(k.radius_m), k.age_ms.round()])
    };
    json!({ "t": "view", "drone": drone, "known": known.iter().map(of).collect::<Vec<_>>() })
}

fn state(picture: &Picture<'_>) -> Value {
    let ages = ages_of(picture);
    let dot = |(number, dot): (usize, &Dot)| {
        let (p, v) = (dot.position_m.map(rounded), dot.velocity_m_s.map(rounded));
        json!([p.x, p.y, p.z, v.x, v.y, v.z, dot.condition.letter(), ages[number].map(f64::round)])
    };
    let (near, near_count, least_m) = near(picture);
    let separation = picture.separation;
    let mut known_ages: Vec<f64> = living_known(picture).map(|known| known.age_ms).collect();
    let rank = |share: f64, ages: &mut Vec<f64>| {
        let at = ((ages.len() as f64 * share) as usize).min(ages.len().checked_sub(1)?);
        Some(*ages.select_nth_unstable_by(at, f64::total_cmp).1)
    };
    let living = picture.dots.iter().filter(|dot| dot.condition == Condition::Flying).count();
    let pairs = living * living.saturating_sub(1);
    json!({
        "t": "state",
        "s": picture.seconds,
        "over": picture.is_over,
        "drones": picture.dots.iter().enumerate().map(dot).collect::<Vec<_>>(),
        "near": near,
        "near_now": near_count,
        "least_now_m": least_m,
        "collisions": separation.collided.len(),
        "near_misses": separation.near.len(),
        "least_m": Some(separation.least_m).filter(|least_m| *least_m < f64::MAX),
        "collision_m": separation.collision_m,
        "near_m": separation.near_m,
        "killed": picture.dots.iter().filter(|dot| dot.condition == Condition::Killed).count(),
        "silent": picture.dots.iter().filter(|dot| dot.condition == Condition::Silent).count(),
        "age_p50_ms": rank(0.5, &mut known_ages),
        "age_p99_ms": rank(0.99, &mut known_ages),
        "known_share": if pairs > 0 { known_ages.len() as f64 / pairs as f64 } else { 1.0 },
        "air": picture.air_utilisation,
    })
}

/// Estimates of living drones about living drones.
fn living_known<'a>(picture: &'a Picture<'_>) -> impl Iterator<Item = &'a KnownDot> {
    let is_flying =
        |number: usize| picture.dots.get(number).is_some_and(|d| d.condition == Condition::Flying);
    let observers = picture.known.iter().enumerate().filter(move |(number, _)| is_flying(*number));
    observers.flat_map(|(_, known)| known).filter(move |known| is_flying(known.node))
}

/// For each drone the median age at which living drones know it; `None` if none does.
fn ages_of(picture: &Picture<'_>) -> Vec<Option<f64>> {
    let mut ages = vec![Vec::new(); picture.dots.len()];
    for (dot, known) in picture.dots.iter().zip(picture.known) {
        if dot.condition == Condition::Flying {
            for known in known.iter().filter(|known| known.node < picture.dots.len()) {
                ages[known.node].push(known.age_ms);
            }
        }
    }
    let median = |mut ages: Vec<f64>| {
        let middle = ages.len() / 2;
        (!ages.is_empty()).then(|| *ages.select_nth_unstable_by(middle, f64::total_cmp).1)
    };
    ages.into_iter().map(median).collect()
}

/// Pairs of living drones that are too near now, at most [`PAIRS_MAX`]; how many; and the least distance of any two.
fn near(picture: &Picture<'_>) -> (Vec<Value>, usize, Option<f64>) {
    let flying = |(_, dot): &(usize, &Dot)| dot.condition == Condition::Flying;
    let living: Vec<(usize, &Dot)> = picture.dots.iter().enumerate().filter(flying).collect();
    let (mut pairs, mut count, mut least_m) = (Vec::new(), 0, f64::MAX);
    for (at, (number, dot)) in living.iter().enumerate() {
        for (other, other_dot) in &living[..at] {
            let distance_m = (dot.position_m - other_dot.position_m).norm();
            least_m = least_m.min(distance_m);
            if distance_m < picture.separation.near_m {
                count += 1;
                if pairs.len() < PAIRS_MAX {
                    pairs.push(json!([other, number, rounded(distance_m)]));
                }
            }
        }
    }
    (pairs, count, (least_m < f64::MAX).then_some(least_m))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dot(x: f64, condition: Condition) -> Dot {
        Dot { position_m: Vector::new(x, 0.0, 0.0), velocity_m_s: Vector::zeros(), condition }
    }

    fn known(node: usize, age_ms: f64) -> KnownDot {
        KnownDot { node, position_m: Vector::zeros(), radius_m: 0.5, age_ms }
    }

    #[test]
    fn a_picture_counts_living_drones_and_shows_the_age_at_which_each_is_known() {
        let dots = [
            dot(0.0, Condition::Flying),
            dot(1.2, Condition::Flying),
            dot(1.3, Condition::Killed),
            dot(9.0, Condition::Flying),
        ];
        let knowledge = [
            vec![known(1, 100.0), known(2, 4_000.0), known(3, 300.0)],
            vec![known(0, 150.0), known(3, 500.0)],
            // The last of a killed one says nothing.
            vec![known(0, 9_000.0), known(77, 1.0)],
            vec![known(0, 250.0)],
        ];
        let separation = Separation::new(0.5);
        let picture = Picture {
            seconds: 1.5,
            is_over: false,
            dots: &dots,
            known: &knowledge,
            separation: &separation,
            air_utilisation: 0.25,
        };
        let shown = state(&picture);
        assert_eq!(shown["near"], json!([[0, 1, 1.2]]));
        assert_eq!((shown["near_now"].as_u64(), shown["least_now_m"].as_f64()), (Some(1), Some(1.2)));
        let ages: Vec<&Value> = (0..4).map(|number| &shown["drones"][number][7]).collect();
        assert_eq!(ages, [&json!(250.0), &json!(100.0), &json!(4_000.0), &json!(500.0)]);
        assert_eq!((shown["killed"].as_u64(), shown["age_p50_ms"].as_f64()), (Some(1), Some(250.0)));
        // Five of the six directions between the three that live.
        assert!((shown["known_share"].as_f64().unwrap() - 5.0 / 6.0).abs() < 1e-12);
        assert_eq!(shown["least_m"], Value::Null);
    }

    #[test]
    fn the_newest_near_misses_are_listed_once_with_whether_they_touched() {
        let (mut misses, mut separation) = (Misses::default(), Separation::new(0.5));
        for second in 1..=MISSES_MAX as u32 + 1 {
            separation.near.insert((0, second));
            let picture = Picture {
                seconds: f64::from(second),
                is_over: false,
                dots: &[],
                known: &[],
                separation: &separation,
                air_utilisation: 0.0,
            };
            misses.look_at(&picture);
            misses.look_at(&picture);
        }
        separation.collided.insert((0, 3));
        let listed = misses.listed(&separation);
        assert_eq!(listed.as_array().unwrap().len(), MISSES_MAX);
        assert_eq!((&listed[0], &listed[10]), (&json!([13.0, 0, 13, false]), &json!([3.0, 0, 3, true])));
    }

    #[test]
    fn a_drone_alone_has_no_distance_and_no_age() {
        let (dots, separation) = ([dot(0.0, Condition::Flying)], Separation::new(0.5));
        let picture = Picture {
            seconds: 0.0,
            is_over: true,
            dots: &dots,
            known: &[Vec::new()],
            separation: &separation,
            air_utilisation: 0.0,
        };
        let shown = state(&picture);
        assert_eq!((&shown["least_now_m"], &shown["age_p99_ms"]), (&Value::Null, &Value::Null));
        assert_eq!(shown["drones"][0], json!([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, "f", null]));
    }
}
