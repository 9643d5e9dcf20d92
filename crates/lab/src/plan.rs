//! From a scenario to the list of cells to measure.

use std::collections::BTreeMap;

use noctule_peer::Touch;

use crate::busy_cores::LoadError;
use crate::dimensions::{Link, Mode, Placement, PlacementWish, Wait};
use crate::peer_registry::{Entry, PeerRegistry};
use crate::run::Skipped;
use crate::scenario::{Group, Scenario, ScenarioError, ScenarioFile, Smoke};
use crate::serial_line::SerialLineError;
use crate::{busy_cores, network, serial_line};

/// Warm-up messages of a closed loop, at most.
const WARM_UP_MESSAGES: u64 = 2_000;
/// Bytes that may be on the way at once in an open loop, at most.
const WINDOW_BYTES: u64 = 64 << 20;
/// Traffic beside a cell lasts this much longer than the cell, half of it before.
const BESIDE_SECONDS: f64 = 1.0;
/// A node that has not sent all after this many schedules and seconds stops: no stall of a machine is that long.
const SENDING_LIMIT: (f64, f64) = (1.05, 2.0);
/// Messages of traffic beside a cell, at most, where it flows back to back.
const BESIDE_MESSAGES_MAX: u64 = 4_000_000;

/// Fault in an option of the lab's own, not of the peer's.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OptionError {
    #[error(transparent)]
    Line(#[from] SerialLineError),
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error("priority = \"{0}\" is no list of numbers from 0 to 99 such as \"30,0\"")]
    Priority(String),
}

/// One cell, fully determined.
#[derive(Debug, Clone, PartialEq)]
pub struct CellPlan {
    /// Peer name.
    pub peer: String,
    /// Link of the peer: on an emulated link, UDP or TCP.
    pub link: Link,
    /// Topology of the nodes.
    pub mode: Mode,
    /// Number of processes.
    pub nodes: u32,
    /// Bytes per message.
    pub payload_bytes: u64,
    /// Open loop at this rate; `None` = closed loop or back to back.
    pub rate_hz: Option<f64>,
    /// Way in which nodes wait for messages.
    pub wait: Wait,
    /// Cores used in turn; empty = free.
    pub cores: Vec<u32>,
    /// Format word.
    pub format: String,
    /// How much of a payload is written and read.
    pub touch: Touch,
    /// 1 or 2.
    pub hosts: u32,
    /// The clock of each host, as text; empty: all on the machine's.
    pub clocks: Vec<String>,
    /// Cell of the traffic beside it.
    pub beside: Option<Box<CellPlan>>,
    /// The emulated link between the hosts, as text; `None`: the kernel's.
    pub across: Option<String>,
    /// Later than this is late.
    pub deadline_ns: Option<u64>,
    /// `may_saturate`.
    pub expect: Option<String>,
    /// Options for the peer.
    pub options: BTreeMap<String, String>,
    /// Sends at most this long.
    pub seconds: f64,
    /// Sends at most this many.
    pub messages: u64,
    /// Times to measure.
    pub trials: u32,
    /// The most messages of the warm-up.
    pub warm_up_messages: u64,
    /// The longest warm-up, ms.
    pub warm_up_ms: u64,
    /// Messages on the way at once.
    pub window: u64,
    /// True for the built-in floors.
    pub is_floor: bool,
}

impl CellPlan {
    /// The placement as `run.json` says it: cores used in turn, or `free`.
    pub fn placement(&self) -> Placement {
        Placement::on(&self.cores)
    }

    /// Core of a node; `None` = free.
    pub fn core(&self, node: u32) -> Option<u32> {
        let turn = node as usize % self.cores.len().max(1);
        self.cores.get(turn).copied()
    }

    /// The option `priority`: SCHED_FIFO priorities of the nodes, in turn; `None` if it is not there.
    pub(crate) fn priorities(&self) -> Result<Option<Vec<u32>>, OptionError> {
        let Some(listed) = self.options.get("priority") else { return Ok(None) };
        let each = listed.split(',').map(|one| one.trim().parse().ok().filter(|one| *one <= 99));
        let priorities: Option<Vec<u32>> = each.collect();
        priorities.map(Some).ok_or_else(|| OptionError::Priority(listed.clone()))
    }

    /// The link as `run.json` says it.
    pub fn run_link(&self) -> Link {
        match &self.across {
            Some(spec) => Link::Between(spec.clone()),
            None if self.hosts > 1 => Link::veth(),
            None => self.link.clone(),
        }
    }

    /// Of a peer's links the one this cell would use: between hosts one that a network carries, else the first.
    fn link_by(&self, links: &[Link]) -> Link {
        let networked = links.iter().find(|link| matches!(link, Link::Udp | Link::Tcp));
        let first = if self.across.is_some() || self.hosts > 1 { networked } else { links.first() };
        first.cloned().unwrap_or(Link::Udp)
    }

    /// Messages of the warm-up; `None` without a rate, where it depends on the peer.
    pub fn warm_up_sent(&self) -> Option<u64> {
        let in_time = (self.rate_hz? * self.warm_up_ms as f64 / 1e3).ceil() as u64;
        Some(in_time.min(self.warm_up_messages))
    }

    /// How long it takes to send everything, warm-up included, in seconds.
    pub fn sending_seconds(&self) -> f64 {
        match self.rate_hz {
            Some(rate_hz) => (self.messages + self.warm_up_messages) as f64 / rate_hz,
            None => self.seconds + self.warm_up_ms as f64 / 1e3,
        }
    }

    /// No measured message starts later than this after the first, in seconds: a node that does not hold the rate says how many it sent.
    pub fn sending_limit_seconds(&self) -> f64 {
        let (schedules, seconds) = SENDING_LIMIT;
        self.rate_hz.map_or(self.seconds, |hz| self.messages as f64 / hz * schedules + seconds)
    }

    /// One line for progress displays.
    pub fn label(&self) -> String {
        let rate = self.rate_hz.map_or(String::new(), |hz| format!(" {hz} Hz"));
        let nodes = if self.nodes == 2 { String::new() } else { format!(" {} nodes", self.nodes) };
        let (peer, mode, payload_bytes, wait) = (&self.peer, &self.mode, self.payload_bytes, &self.wait);
        let format = if self.format == "raw" { String::new() } else { format!(" {}", self.format) };
        format!("{peer}{format} {mode}{nodes} {payload_bytes} B{rate} {wait} [{}]", self.placement())
    }
}

/// All cells of a scenario, and those that cannot be measured here.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// Cells in the order of the file.
    pub cells: Vec<CellPlan>,
    /// Combinations left out, each named once.
    pub skipped: Vec<Skipped>,
}

/// The user's choices beside the scenario, from the command line.
#[derive(Debug, Clone, Default)]
pub struct Choice {
    /// Only these peers; empty = all.
    pub peers: Vec<String>,
    /// The short form.
    pub smoke: bool,
}

impl Plan {
    /// Expands a scenario for the peers and cores there are.
    ///
    /// # Errors
    /// An unknown peer, with its line in the file.
    pub fn expand(
        file: &ScenarioFile,
        registry: &PeerRegistry,
        cores: &[u32],
        choice: &Choice,
    ) -> Result<Self, ScenarioError> {
        let mut plan = Self::default();
        let mut limits = file.scenario.smoke.clone();
        if !choice.smoke {
            limits = Smoke::default();
        }
        for group in &file.scenario.cells {
            for peer in group.get_ref().peer.values() {
                let wanted = choice.peers.is_empty() || choice.peers.contains(peer);
                if !wanted || limits.peer.as_ref().is_some_and(|peers| !peers.contains(peer)) {
                    continue;
                }
                let expander = match (registry.entries.get(peer), registry.missing.get(peer)) {
                    (Some(entry), _) => Expander {
                        scenario: &file.scenario,
                        group: group.get_ref(),
                        peer,
                        entry,
                        registry,
                        cores,
                        limits: &limits,
                    },
                    (None, Some(why)) => {
                        plan.skip(peer, why.clone());
                        continue;
                    }
                    (None, None) => {
                        let known: Vec<&str> = registry
                            .entries
                            .keys()
                            .chain(registry.missing.keys())
                            .map(String::as_str)
                            .collect();
                        let what = format!("no peer is called \"{peer}\"; there are {}", known.join(", "));
                        return Err(file.fault(group.span().start, what));
                    }
                };
                let wrong = |error: OptionError| file.fault(group.span().start, error.to_string());
                expander.expand(&mut plan).map_err(wrong)?;
            }
        }
        Ok(plan)
    }

    fn skip(&mut self, peer: &str, why: String) {
        let skipped = Skipped { peer: peer.to_owned(), why };
        if !self.skipped.contains(&skipped) {
            self.skipped.push(skipped);
        }
    }
}

/// Why a cell's other traffic cannot flow.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum NotBeside {
    /// Its peer is not here, and why.
    #[error("{0}")]
    Missing(String),
    /// Its peer is unknown.
    #[error("beside: no peer is called \"{0}\"")]
    UnknownPeer(String),
    /// Its peer does not support it, and what.
    #[error("beside: {0}")]
    Unsupported(String),
}

#[derive(Clone, Copy)]
struct Expander<'a> {
    scenario: &'a Scenario,
    group: &'a Group,
    peer: &'a str,
    entry: &'a Entry,
    registry: &'a PeerRegistry,
    cores: &'a [u32],
    limits: &'a Smoke,
}

impl Expander<'_> {
    /// Adds the cells of a group; or says what is wrong with its options.
    fn expand(&self, plan: &mut Plan) -> Result<(), OptionError> {
        let group = self.group;
        let default_link = self.entry.description.links.get(..1).unwrap_or_default();
        let dimensions = &group.dimensions;
        let links = dimensions.links.as_deref().unwrap_or(default_link);
        let limits = self.limits;
        let mut cells = vec![self.template()];
        vary(&mut cells, links, |cell, link| cell.link = link.clone());
        vary(&mut cells, &dimensions.modes, |cell, &mode| cell.mode = mode);
        vary(&mut cells, &kept(group.nodes.values(), &limits.nodes), |cell, &nodes| cell.nodes = nodes);
        vary(&mut cells, &kept(group.payload_bytes.values(), &limits.payload_bytes), |cell, &bytes| {
            cell.payload_bytes = bytes;
        });
        vary(&mut cells, &kept(group.rate_hz.values(), &limits.rate_hz), |cell, &rate_hz| {
            cell.rate_hz = (rate_hz > 0.0).then_some(rate_hz);
        });
        vary(&mut cells, &dimensions.waits, |cell, &wait| cell.wait = wait);
        vary(&mut cells, group.format.values(), |cell, format| cell.format = format.clone());
        vary(&mut cells, &dimensions.placements, |cell, wish: &PlacementWish| {
            cell.cores = wish.cores(self.cores);
        });
        for (name, values) in &group.options {
            let values = values.values().to_vec();
            let limit = limits.options.get(name).map(|values| values.values().to_vec());
            let kept: Vec<_> = values
                .into_iter()
                .filter(|value| limit.as_ref().is_none_or(|limit| limit.contains(value)))
                .collect();
            vary(&mut cells, &kept, |cell, value| {
                cell.options.insert(name.clone(), value.to_string());
            });
        }
        for mut cell in cells {
            self.settle(&mut cell);
            check_options(&cell, self.cores)?;
            let beside = self.beside(&cell);
            let unsupported =
                self.unsupported(&cell).or_else(|| beside.as_ref().err().map(NotBeside::to_string));
            cell.beside = beside.ok().flatten().map(Box::new);
            match unsupported {
                Some(why) => plan.skip(self.peer, why),
                None if plan.cells.contains(&cell) => {}
                None => plan.cells.push(cell),
            }
        }
        Ok(())
    }

    /// The cell with everything that is not varied.
    fn template(&self) -> CellPlan {
        let (group, scenario, limits) = (self.group, self.scenario, self.limits);
        CellPlan {
            peer: self.peer.to_owned(),
            link: Link::Udp,
            mode: Mode::RoundTrip,
            nodes: 2,
            payload_bytes: 0,
            rate_hz: None,
            wait: Wait::Block,
            cores: Vec::new(),
            format: String::new(),
            touch: group.dimensions.touch,
            hosts: group.hosts,
            clocks: group.clocks.clone(),
            beside: None,
            across: None,
            deadline_ns: None,
            expect: group.expect.clone(),
            options: BTreeMap::new(),
            seconds: limits.seconds.or(group.seconds).unwrap_or(scenario.seconds),
            messages: limits.messages.or(group.messages).unwrap_or(scenario.messages),
            trials: limits.trials.or(group.trials).unwrap_or(scenario.trials).max(1),
            warm_up_messages: WARM_UP_MESSAGES,
            warm_up_ms: (scenario.warm_up_seconds * 1e3) as u64,
            window: 1,
            is_floor: self.entry.is_floor,
        }
    }

    /// Plan of the traffic beside the cell, from before its warm-up until after its last message. Or why there can be none.
    fn beside(&self, cell: &CellPlan) -> Result<Option<CellPlan>, NotBeside> {
        let Some(traffic) = &self.group.beside else { return Ok(None) };
        let peer = traffic.peer.as_deref().unwrap_or(self.peer);
        let Some(entry) = self.registry.entries.get(peer) else {
            let why = self.registry.missing.get(peer).cloned();
            return Err(why.map_or_else(|| NotBeside::UnknownPeer(peer.to_owned()), NotBeside::Missing));
        };
        let seconds = cell.sending_seconds() + BESIDE_SECONDS;
        let rate_hz = (traffic.rate_hz > 0.0).then_some(traffic.rate_hz);
        let expander = Expander { peer, entry, ..*self };
        let mut other = CellPlan {
            peer: peer.to_owned(),
            mode: Mode::OneWay,
            nodes: 2,
            payload_bytes: traffic.payload_bytes,
            rate_hz,
            seconds,
            messages: rate_hz.map_or(BESIDE_MESSAGES_MAX, |rate_hz| (rate_hz * seconds).ceil() as u64),
            touch: Touch::Header,
            is_floor: entry.is_floor,
            ..cell.clone()
        };
        if peer != self.peer {
            other.options.clear();
            other.link = cell.link_by(&entry.description.links);
        }
        other.options.extend(traffic.options.clone());
        expander.settle(&mut other);
        // It is there from the start, and nothing is asked of its latency.
        (other.warm_up_messages, other.deadline_ns) = (0, None);
        match expander.unsupported(&other) {
            Some(why) => Err(NotBeside::Unsupported(why)),
            None => Ok(Some(other)),
        }
    }

    /// Fills in what follows from the varied values.
    fn settle(&self, cell: &mut CellPlan) {
        if let Link::Between(spec) = &cell.link {
            cell.across = Some(spec.clone());
            cell.link = cell.link_by(&self.entry.description.links);
            cell.hosts = if cell.mode == Mode::FanOut { cell.nodes } else { 2 };
        }
        if self.entry.description.is_alone {
            cell.nodes = 1;
            cell.cores.truncate(1);
        } else if matches!(cell.mode, Mode::RoundTrip | Mode::OneWay) {
            cell.nodes = 2;
        }
        // More cores than nodes: name only those in use.
        cell.cores.truncate(cell.nodes as usize);
        if let Some(rate_hz) = cell.rate_hz {
            cell.messages = cell.messages.min((rate_hz * cell.seconds).ceil().max(1.0) as u64);
            cell.warm_up_messages =
                ((rate_hz * self.scenario.warm_up_seconds).ceil() as u64).clamp(1, WARM_UP_MESSAGES);
            cell.window =
                ((rate_hz / 10.0) as u64).clamp(16, 1024).min(WINDOW_BYTES / cell.payload_bytes).max(4);
        } else if cell.mode != Mode::RoundTrip {
            cell.window = (WINDOW_BYTES / 8 / cell.payload_bytes).clamp(4, 1024);
        }
        let period_ns = cell.rate_hz.map(|rate_hz| 1e9 / rate_hz);
        let deadline_ns = self.group.deadline_us.map(|us| us * 1e3).or(period_ns);
        cell.deadline_ns = deadline_ns.map(|ns| ns as u64);
    }

    /// Why a cell cannot be measured on this machine or by this peer.
    fn unsupported(&self, cell: &CellPlan) -> Option<String> {
        let offer = &self.entry.description;
        let offered = |what: &str, wanted: &str, offered: &[String]| {
            let list = offered.join(", ");
            let is_offered = offered.iter().any(|one| one == wanted);
            (!is_offered).then(|| format!("does not offer {what} {wanted}; it offers {list}"))
        };
        let links: Vec<String> = offer.links.iter().map(Link::to_string).collect();
        offered("link", &cell.link.to_string(), &links)
            .or_else(|| offered("mode", &cell.mode.to_string(), &offer.modes))
            .or_else(|| offered("wait", &cell.wait.to_string(), &offer.waits))
            .or_else(|| offered("format", &cell.format, &offer.formats))
            .or_else(|| {
                let (largest, wanted) = (offer.payload_bytes_max, cell.payload_bytes);
                (wanted > largest).then(|| format!("carries at most {largest} B, not {wanted} B"))
            })
            .or_else(|| {
                (!cell.clocks.is_empty() && !offer.artificial_clock)
                    .then(|| "does not offer artificial_clock, which clocks = […] needs".to_owned())
            })
            .or_else(|| cell.across.as_ref().and_then(|_| network::emulator_unsupported(cell.hosts)))
            .or_else(|| {
                let mut limited = offer.options.iter();
                limited.find_map(|(name, values)| offered(name, cell.options.get(name)?, values))
            })
            .or_else(|| {
                let mut needs = offer.needs.iter();
                let needs = &mut needs.by_ref().filter(|need| cell.options.get(&need.option) == Some(&need.value));
                needs.find_map(|need| {
                    let missing = self.registry.missing_for(need)?;
                    Some(format!("{} = \"{}\": {missing}", need.option, need.value))
                })
            })
            .or_else(|| {
                let absent = cell.cores.iter().find(|core| !self.cores.contains(core))?;
                Some(format!("core {absent} is not one this process may use ({:?})", self.cores))
            })
            .or_else(|| {
                let crowded = !cell.cores.is_empty() && cell.cores.len() < cell.nodes as usize;
                (crowded && cell.wait == Wait::Spin).then(|| {
                    "spinning nodes that share a core would measure the scheduler's time slice; use block or hybrid"
                        .to_owned()
                })
            })
    }
}

/// The options that are the lab's and not the peer's.
fn check_options(cell: &CellPlan, cores: &[u32]) -> Result<(), OptionError> {
    if cell.link == Link::Serial {
        serial_line::spec(&cell.options)?;
    }
    busy_cores::cores(cell.options.get("load").map(String::as_str), cores)?;
    cell.priorities().map(drop)
}

/// Replaces every cell by one per value.
fn vary<T>(cells: &mut Vec<CellPlan>, values: &[T], set: impl Fn(&mut CellPlan, &T)) {
    let with = |cell: &CellPlan, value: &T| {
        let mut cell = cell.clone();
        set(&mut cell, value);
        cell
    };
    *cells = cells.iter().flat_map(|cell| values.iter().map(move |value| with(cell, value))).collect();
}

/// The values that the short form keeps; a group none of whose values it lists is left out.
fn kept<T: Copy + PartialEq>(values: &[T], limit: &Option<Vec<T>>) -> Vec<T> {
    let listed = |value: &T| limit.as_ref().is_none_or(|limit| limit.contains(value));
    values.iter().copied().filter(listed).collect()
}

#[cfg(test)]
mod tests;
