//! Runs cells: one process per node, in a private network, trial by trial.
//!
//! Trials of all cells are interleaved, forwards and backwards in turn, so that a machine that
//! drifts treats all cells alike. The engine itself sleeps while nodes measure.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use noctule_local_clock::{LocalClock, now};
use noctule_sys::scheduling;
use noctule_timebase::Span;

use crate::busy_cores::{self, BusyCores};
use crate::clock_pair::{ClockPair, PairPlan, Side};
use crate::clock_translation::{self, ClockTranslation};
use crate::dimensions::Link;
use crate::judge::judge;
use crate::machine::{Machine, ThisMachine};
use crate::network::{Emulation, Network, NetworkError};
use crate::node_process::NodeFault;
use crate::peer_registry::PeerRegistry;
use crate::peer_session::{PeerSession, TrialContext};
use crate::plan::{CellPlan, Plan};
use crate::run::Cell;
use crate::samples::CellSamples;
use crate::serial_line::{self, SerialLine};
use crate::trace::TraceRow;
pub use crate::trial::Settings;
use crate::trial::{NodeResult, Trial};
use crate::validity::Invalid;

/// Clocks of a trial count from this long after the first exchange: until then their drift is settled
/// and, where all is well, all nodes are connected.
const CLOCK_LEAD: Span = Span::from_ms(1500);
/// Lead of traffic beside a cell: it starts this long before the cell.
const BESIDE_LEAD: Span = Span::from_ms(300);
/// Beside a trial clocks are compared this often.
const EXCHANGE_EVERY_MS: u32 = 50;

/// Progress of a measurement, for the caller. Called between measurements only.
pub trait Observer {
    /// `number` of `total` trials begins.
    fn begin(&mut self, number: usize, total: usize, cell: &CellPlan);
    /// The trial ended.
    fn end(&mut self, result: &Cell);
}

/// Results of a plan.
#[derive(Debug, Default)]
pub struct Measured {
    /// One per trial, in the order measured.
    pub cells: Vec<Cell>,
    /// `samples[i]` belongs to `cells[i]`.
    pub samples: Vec<CellSamples>,
    /// True if the user interrupted; what was measured before is kept.
    pub interrupted: bool,
}

/// Starts nodes, sends them their commands, and collects their records.
#[derive(Debug)]
pub struct Engine<'a> {
    registry: &'a PeerRegistry,
    settings: Settings,
    interrupted: Arc<AtomicBool>,
    machine: Box<dyn Machine>,
    scratch: tempfile::TempDir,
    /// By number of hosts; emulated links live for one trial.
    networks: BTreeMap<u32, Rc<Network>>,
    sessions: u32,
}

/// Why the engine cannot work at all.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// No room for record files.
    #[error("cannot create a temporary directory: {0}; set TMPDIR to a writable one")]
    Scratch(std::io::Error),
    /// No private network.
    #[error(transparent)]
    Network(#[from] NetworkError),
}

impl<'a> Engine<'a> {
    /// Prepares to run peers of `registry`; stops early when `interrupted` becomes true.
    pub fn new(
        registry: &'a PeerRegistry,
        settings: Settings,
        interrupted: Arc<AtomicBool>,
    ) -> Result<Self, EngineError> {
        Self::on(Box::new(ThisMachine), registry, settings, interrupted)
    }

    fn on(
        machine: Box<dyn Machine>,
        registry: &'a PeerRegistry,
        settings: Settings,
        interrupted: Arc<AtomicBool>,
    ) -> Result<Self, EngineError> {
        let scratch = tempfile::Builder::new().prefix("noctule-lab-").tempdir();
        Ok(Self {
            registry,
            settings,
            interrupted,
            machine,
            scratch: scratch.map_err(EngineError::Scratch)?,
            networks: BTreeMap::new(),
            sessions: 0,
        })
    }

    /// Measures all trials of all cells of all plans in turns; returns what each plan came to.
    pub fn measure(
        &mut self,
        plans: &[Plan],
        observer: &mut dyn Observer,
    ) -> Result<Vec<Measured>, EngineError> {
        let mut measured: Vec<Measured> = plans.iter().map(|_| Measured::default()).collect();
        let order = order(plans);
        let total = order.len();
        for (number, Turn { trial, cell, plan }) in order.into_iter().enumerate() {
            let cell = &plans[plan].cells[cell];
            let network = self.network(cell, trial)?;
            observer.begin(number, total, cell);
            let nodes = match self.trial(cell, &network) {
                Err(NodeFault::Interrupted) => {
                    measured.iter_mut().for_each(|measured| measured.interrupted = true);
                    break;
                }
                Err(NodeFault::Failed(why)) => Err(Invalid::Failed(why)),
                Ok(trial) => Ok(trial),
            };
            let (result, samples) = judge(cell, trial, nodes);
            observer.end(&result);
            measured[plan].cells.push(result);
            measured[plan].samples.push(samples);
        }
        Ok(measured)
    }

    /// The hosts of a cell. An emulated link is new in every trial, so that no peer meets another's packets, and the same
    /// for all cells of a trial: it has the trial's seed, and a recording goes on where the trial before left it.
    fn network(&mut self, cell: &CellPlan, trial: u32) -> Result<Rc<Network>, NetworkError> {
        if let Some(spec) = &cell.across {
            let elapsed_ns = f64::from(trial) * cell.sending_seconds() * 1e9;
            let emulation = Emulation {
                spec,
                seed: u64::from(trial) + 1,
                elapsed: Span::from_ns(elapsed_ns as i64),
                core: spare_core(cell),
            };
            return self.machine.network(cell.hosts, Some(emulation)).map(Rc::new);
        }
        if let Some(network) = self.networks.get(&cell.hosts) {
            return Ok(Rc::clone(network));
        }
        let network = Rc::new(self.machine.network(cell.hosts, None)?);
        self.networks.insert(cell.hosts, Rc::clone(&network));
        Ok(network)
    }

    /// One trial of one cell: fresh processes from start to exit.
    fn trial(&mut self, cell: &CellPlan, network: &Network) -> Result<Trial, NodeFault> {
        let failed = |what: &str| NodeFault::Failed(what.to_owned());
        let entry = self.registry.entries.get(&cell.peer).ok_or_else(|| failed("the peer vanished"))?;
        self.sessions += 1;
        let session = format!("s{:x}x{:x}", std::process::id(), self.sessions);
        let clocks = self.start_clocks(cell, network, &session)?;
        let line = self.start_line(cell, &session)?;
        let around = TrialContext {
            machine: self.machine.as_ref(),
            network,
            settings: &self.settings,
            scratch: self.scratch.path(),
            interrupted: &self.interrupted,
            line: line.as_ref(),
        };
        let shown = clocks.as_ref().map_or(&[][..], |clocks| &clocks.each);
        let beside = cell.beside.as_deref().map(|beside| {
            let entry = self.registry.entries.get(&beside.peer).ok_or_else(|| failed("the peer vanished"))?;
            PeerSession::start(&entry.program, beside, shown, (around, format!("{session}b")))
        });
        let mut beside = beside.transpose()?;
        let mut peer_session = PeerSession::start(&entry.program, cell, shown, (around, session))?;
        if let Some(clocks) = &clocks {
            self.machine.sleep(clocks.start - now());
        }
        if let Some(beside) = &mut beside {
            beside.begin()?;
            self.machine.sleep(BESIDE_LEAD);
        }
        let busy = self.load(cell)?;
        let sent_before = network.sent_bytes();
        let line_before = line.as_ref().map_or(Ok(0), SerialLine::sent_bytes).map_err(NodeFault::of)?;
        peer_session.begin()?;
        let nodes = peer_session.finish()?;
        drop(busy);
        let wire_bytes = network.sent_bytes().zip(sent_before).map(|(after, before)| after - before);
        let beside = beside.map(PeerSession::finish).transpose()?;
        let clocks = clocks.map(|clocks| clocks.stop(&nodes)).transpose()?;
        let link = network.link_record().map_err(NodeFault::of)?;
        let line = line.map(|line| line.stop(line_before)).transpose().map_err(NodeFault::of)?;
        let wire_bytes = line.as_ref().map(|line| line.wire_bytes).or(wire_bytes);
        Ok(Trial { nodes, beside, clocks, wire_bytes, link, line: line.unwrap_or_default() })
    }

    /// The line between the nodes, if that is their link; its noise is another one each trial.
    fn start_line(&self, cell: &CellPlan, session: &str) -> Result<Option<SerialLine>, NodeFault> {
        if cell.link != Link::Serial {
            return Ok(None);
        }
        let place = (self.scratch.path(), session);
        SerialLine::start(&cell.options, u64::from(self.sessions), place).map(Some).map_err(NodeFault::of)
    }

    /// Keeps cores busy, if the cell says so.
    fn load(&self, cell: &CellPlan) -> Result<BusyCores, NodeFault> {
        let allowed = scheduling::allowed_cores().map_err(NodeFault::of)?;
        let load = cell.options.get("load").map(String::as_str);
        let cores = busy_cores::cores(load, &allowed).map_err(NodeFault::of)?;
        BusyCores::start(&cores).map_err(NodeFault::of)
    }

    /// If the hosts of a cell have clocks of their own: starts to compare them.
    fn start_clocks(
        &self,
        cell: &CellPlan,
        network: &Network,
        session: &str,
    ) -> Result<Option<TrialClocks>, NodeFault> {
        if cell.clocks.is_empty() {
            return Ok(None);
        }
        let start = now() + CLOCK_LEAD;
        let each: Result<Vec<LocalClock>, _> = cell
            .clocks
            .iter()
            .map(|text| text.parse::<LocalClock>().map(|clock| clock.started(start)))
            .collect();
        let each = each.map_err(|error| NodeFault::Failed(error.to_string()))?;
        let [sender, receiver] = each.as_slice() else {
            return Err(NodeFault::Failed("there is not one clock for each of two hosts".into()));
        };
        if cell.link == Link::Serial {
            // They are compared over the line, by what speaks there.
            let wire = serial_line::exchange_wire(&cell.options);
            return Ok(Some(TrialClocks { pair: None, each, start, wire }));
        }
        let plan = PairPlan {
            noctule: &self.registry.noctule,
            server: Side { node: 0, clock: sender },
            prober: Side { node: 1, clock: receiver },
            prober_arguments: &["--every-ms".into(), EXCHANGE_EVERY_MS.to_string()],
            both_arguments: &[],
            trace: self.scratch.path().join(format!("{session}-clocks.csv")),
        };
        let pair = ClockPair::start(network, plan).map_err(NodeFault::of)?;
        Ok(Some(TrialClocks { pair: Some(pair), each, start, wire: Span::ZERO }))
    }
}

/// A core for the emulated link that no node of the cell is pinned to. Nodes that are free may run anywhere, and so may the
/// link then.
fn spare_core(cell: &CellPlan) -> Option<u32> {
    let mut allowed = scheduling::allowed_cores().unwrap_or_default();
    allowed.retain(|core| !cell.cores.contains(core));
    allowed.pop().filter(|_| !cell.cores.is_empty())
}

/// The clocks of one trial, and the exchange between them.
struct TrialClocks {
    /// `None`: the nodes compare them themselves.
    pair: Option<ClockPair>,
    /// One per host.
    each: Vec<LocalClock>,
    /// When their rates and steps begin to count.
    start: noctule_timebase::Instant<noctule_local_clock::Raw>,
    /// Least time of an exchange on the wire, each way.
    wire: Span,
}

impl TrialClocks {
    fn stop(self, nodes: &[NodeResult]) -> Result<ClockTranslation, NodeFault> {
        let exchanges = match self.pair {
            Some(pair) => pair.stop().map_err(NodeFault::of)?.rows,
            None => line_exchanges(nodes),
        };
        let mut each = self.each.into_iter();
        match (each.next(), each.next()) {
            (Some(remote), Some(local)) => Ok(ClockTranslation { exchanges, remote, local, wire: self.wire }),
            _ => Err(NodeFault::of("there is not one clock for each of two hosts")),
        }
    }
}

/// The exchanges over a line as the receiver knows them: its own, or else those of the sender, turned round.
fn line_exchanges(nodes: &[NodeResult]) -> Vec<TraceRow> {
    match nodes {
        [_, receiver, ..] if !receiver.exchanges.is_empty() => receiver.exchanges.clone(),
        [sender, ..] => clock_translation::turned(&sender.exchanges),
        [] => Vec::new(),
    }
}

/// One trial of one cell of one plan.
struct Turn {
    trial: u32,
    cell: usize,
    plan: usize,
}

/// Trials of all cells in turns: cell by cell through all plans, then the next trial, backwards.
fn order(plans: &[Plan]) -> Vec<Turn> {
    let cells = || plans.iter().flat_map(|plan| &plan.cells);
    let trials = cells().map(|cell| cell.trials).max().unwrap_or(0);
    let longest = plans.iter().map(|plan| plan.cells.len()).max().unwrap_or(0);
    let mut order = Vec::new();
    for trial in 0..trials {
        let mut round: Vec<Turn> = (0..longest)
            .flat_map(|cell| (0..plans.len()).map(move |plan| Turn { trial, cell, plan }))
            .filter(|turn| plans[turn.plan].cells.get(turn.cell).is_some_and(|cell| trial < cell.trials))
            .collect();
        if trial % 2 == 1 {
            round.reverse();
        }
        order.append(&mut round);
    }
    order
}

/// Sets a flag at the first Ctrl-C; the second ends the program as usual.
pub fn interrupt_flag() -> std::io::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        // Registered first, so that it acts on the second signal: the flag is set by the next one.
        signal_hook::flag::register_conditional_default(signal, Arc::clone(&flag))?;
        signal_hook::flag::register(signal, Arc::clone(&flag))?;
    }
    flag.store(false, Ordering::Relaxed);
    Ok(flag)
}

#[cfg(test)]
mod tests;
