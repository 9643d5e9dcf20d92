//! `noctule ping`
//!
//! A ping is one exchange of clocks over UDP with a node's own thread (`docs/spec/sync.md`), so it tells what
//! the network and both threads take, not the shared memory of a topic; `noctule top` shows that.

use std::collections::BTreeMap;
use std::error::Error;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use noctule::{Exchange, KnownNode, Node, NodeId, PingError};
use noctule_time_sync::{Bounded, BoundedConfig, Estimator};
use noctule_timebase::Span;
use serde_json::{Value, json};

use crate::Outcome;
use crate::stop::Stop;
use crate::swarm::{SwarmArguments, seconds, short};
use crate::units::{printable, time, with_bound};

/// Nodes that are remembered.
const NODES_LIMIT: usize = 256;
/// Interval between two looks for a node.
const LOOK: Duration = Duration::from_millis(10);
/// Time in which every node of a healthy network is discovered.
const ALL_HEARD: Duration = Duration::from_millis(1500);
/// Longer round trips count as this long.
const ROUND_TRIP_MAX_NS: u64 = 60_000_000_000;
/// Fewer have no median worth telling.
const MEDIAN_OF: u64 = 20;

#[derive(clap::Args)]
pub(crate) struct PingArguments {
    /// The node, by its name or the first digits of its number; without it all nodes
    node: Option<String>,
    /// Stop after this many rounds
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Seconds from one round to the next
    #[arg(long, value_name = "S", value_parser = seconds, default_value = "1")]
    interval: Duration,
    /// Seconds to wait for a reply
    #[arg(long, value_name = "S", value_parser = seconds, default_value = "1")]
    timeout: Duration,
    /// Give up looking for the node after this many seconds
    #[arg(long, value_name = "S", value_parser = seconds, default_value = "5")]
    seconds: Duration,
    /// Print one JSON object at the end
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    swarm: SwarmArguments,
}

pub(crate) fn run(arguments: &PingArguments) -> Result<Outcome, Box<dyn Error>> {
    let stop = Stop::after(None)?;
    let node = arguments.swarm.join("ping")?;
    if !look_for(arguments, &node, &stop) {
        if !stop.is_interrupted() {
            anstream::eprintln!("noctule: {}", not_found(arguments, &node, &stop));
        }
        return Ok(Outcome::NotValid);
    }
    let mut targets = BTreeMap::<NodeId, Target>::new();
    let mut due = Instant::now();
    for _ in 0..arguments.count.unwrap_or(u64::MAX) {
        stop.wait_until(due);
        if stop.is_due() {
            break;
        }
        // Nodes that have gone are asked, too: that they are silent is the news.
        for known in matching(arguments, &node) {
            if targets.len() < NODES_LIMIT || targets.contains_key(&known.id) {
                targets.entry(known.id).or_insert_with(|| Target::new(known)).is_known = true;
            }
        }
        for target in targets.values_mut() {
            target.ping(&node, arguments)?;
        }
        due += arguments.interval;
    }
    if arguments.json {
        let nodes: Vec<Value> = targets.values().map(Target::as_json).collect();
        anstream::println!("{}", serde_json::to_string_pretty(&json!({ "nodes": nodes }))?);
    } else {
        targets.values().for_each(|target| anstream::println!("{}", target.summary()));
    }
    let all_answered = !targets.is_empty() && targets.values().all(|target| target.answered() > 0);
    Ok(if all_answered { Outcome::Done } else { Outcome::NotValid })
}

fn matching(arguments: &PingArguments, node: &Node) -> Vec<KnownNode> {
    let is_meant = |known: &KnownNode| match &arguments.node {
        None => true,
        Some(wanted) => {
            known.name == *wanted || (wanted.len() >= 4 && known.id.to_string().starts_with(wanted))
        }
    };
    node.nodes().into_iter().filter(is_meant).collect()
}

/// False if there is none in time.
fn look_for(arguments: &PingArguments, node: &Node, stop: &Stop) -> bool {
    let enough = if arguments.node.is_some() { Duration::ZERO } else { ALL_HEARD.min(arguments.seconds) };
    loop {
        let found = !matching(arguments, node).is_empty();
        if stop.is_due() || (found && stop.elapsed() >= enough) {
            return found && !stop.is_interrupted();
        }
        if stop.elapsed() >= arguments.seconds {
            return false;
        }
        stop.wait_until(Instant::now() + LOOK);
    }
}

fn not_found(arguments: &PingArguments, node: &Node, stop: &Stop) -> String {
    let names: Vec<String> = node.nodes().iter().map(|known| printable(&known.name)).take(8).collect();
    match &arguments.node {
        Some(wanted) if !names.is_empty() => {
            format!("no node is called {}; there are {}", printable(wanted), names.join(", "))
        }
        _ => arguments.swarm.nothing_seen("no node answered", stop.elapsed(), node),
    }
}

/// A node that is pinged.
struct Target {
    known: KnownNode,
    /// Its clock against ours, unless both are one.
    clock: Bounded,
    asked: u64,
    /// Within 1 %; the extremes are exact.
    round_trips: Histogram<u64>,
    extremes: Option<(Span, Span)>,
    last: Option<Trip>,
    is_known: bool,
}

/// Measurement of one exchange.
#[derive(Clone, Copy)]
struct Trip {
    round_trip: Span,
    /// Time from the request's arrival to the reply's departure.
    turn_around: Span,
    /// Unknown until the clocks have been compared.
    ways: Option<Ways>,
}

/// One way each, and how wrong both may be.
#[derive(Clone, Copy)]
struct Ways {
    there: Span,
    back: Span,
    bound: Option<Span>,
}

impl Target {
    fn new(known: KnownNode) -> Target {
        let bounds = Histogram::new_with_bounds(1, ROUND_TRIP_MAX_NS, 2);
        Target {
            known,
            clock: Bounded::new(BoundedConfig::default()),
            asked: 0,
            round_trips: bounds.unwrap_or_else(|_| unreachable!("1 ns to a minute, two digits")),
            extremes: None,
            last: None,
            is_known: true,
        }
    }

    fn ping(&mut self, node: &Node, arguments: &PingArguments) -> Result<(), PingError> {
        self.asked += 1;
        let name = format!("{} ({})", printable(&self.known.name), short(self.known.id));
        let line = match node.ping(self.known.id, arguments.timeout) {
            Ok(exchange) => {
                let trip = self.understand(&exchange);
                let took = trip.round_trip;
                self.round_trips.saturating_record(took.ns().max(1) as u64);
                let (least, most) = self.extremes.unwrap_or((took, took));
                self.extremes = Some((least.min(took), most.max(took)));
                self.last = Some(trip);
                let ways = trip.ways.map_or_else(String::new, |Ways { there, back, bound }| {
                    format!(", there {}, back {}", with_bound(there, bound), with_bound(back, bound))
                });
                format!(
                    "{name} at {}: round trip {}{ways}, turn-around {}",
                    self.known.address,
                    time(trip.round_trip),
                    time(trip.turn_around)
                )
            }
            Err(PingError::Silent { .. }) => {
                format!(
                    "{name} at {}: no answer within {} s",
                    self.known.address,
                    arguments.timeout.as_secs_f64()
                )
            }
            Err(PingError::Unknown { .. }) => {
                let was_known = std::mem::replace(&mut self.is_known, false);
                if !was_known {
                    return Ok(());
                }
                format!("{name} has gone")
            }
            Err(error) => return Err(error),
        };
        if !arguments.json {
            anstream::println!("{line}");
        }
        Ok(())
    }

    fn understand(&mut self, exchange: &Exchange) -> Trip {
        let (forward, backward) = (exchange.offset_at_most(), exchange.offset_at_least());
        let ways = if self.known.same_host {
            Some(Ways { there: forward, back: Span::ZERO - backward, bound: Some(Span::ZERO) })
        } else {
            // Why an exchange is not used does not matter: the bound says what is known.
            let _ = self.clock.handle_exchange(exchange);
            let estimate = self.clock.estimate(exchange.t4);
            estimate.map(|known| Ways {
                there: forward - known.offset,
                back: known.offset - backward,
                bound: known.bound,
            })
        };
        let turn_around = exchange.t3 - exchange.t2;
        Trip { round_trip: exchange.t4 - exchange.t1, turn_around, ways }
    }

    fn answered(&self) -> u64 {
        self.round_trips.len()
    }

    fn median(&self) -> Option<Span> {
        let enough = self.answered() >= MEDIAN_OF;
        enough.then(|| Span::from_ns(self.round_trips.value_at_quantile(0.5) as i64))
    }

    fn summary(&self) -> String {
        let name = format!("{} ({})", printable(&self.known.name), short(self.known.id));
        let mut text = format!("{name}: {} of {} answered", self.answered(), self.asked);
        if let Some((min, max)) = self.extremes {
            let median =
                self.median().map_or_else(String::new, |median| format!(", median {}", time(median)));
            text += &format!(", round trip from {} to {}{median}", time(min), time(max));
        }
        text
    }

    fn as_json(&self) -> Value {
        let extremes = self.extremes;
        let ways = self.last.and_then(|last| last.ways);
        json!({
            "node": self.known.id.to_string(),
            "node_name": self.known.name,
            "address": self.known.address.to_string(),
            "same_host": self.known.same_host,
            "asked": self.asked,
            "answered": self.answered(),
            "round_trip_ns": {
                "min": extremes.map(|(min, _)| min.ns()),
                "p50": self.median().map(Span::ns),
                "max": extremes.map(|(_, max)| max.ns()),
                "last": self.last.map(|last| last.round_trip.ns()),
            },
            "last": {
                "there_ns": ways.map(|ways| ways.there.ns()),
                "back_ns": ways.map(|ways| ways.back.ns()),
                "bound_ns": ways.and_then(|ways| ways.bound).map(Span::ns),
                "turn_around_ns": self.last.map(|last| last.turn_around.ns()),
            },
        })
    }
}
