//! Runs cells: one process per node, in a private network, trial by trial.
//!
//! Trials of all cells are interleaved, forwards and backwards in turn, so that a machine that
//! drifts treats all cells alike. The engine itself sleeps while nodes measure.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use noctule::clock::{LocalClock, now};
use noctule_peer::{Line, Table};
use noctule_sys::clock;
use noctule_timebase::Span;

use crate::clock_pair::{ClockPair, PairPlan, Side};
use crate::directory::Directory;
use crate::foreign_clock::ForeignClock;
use crate::judge::{NodeResult, Trial, judge};
use crate::network::Network;
use crate::node_process::{NodeFault, NodeProcess};
use crate::plan::{CellPlan, Plan};
use crate::run::Cell;
use crate::samples::CellSamples;

/// Discovery of a foreign middleware may take seconds; nothing healthy takes this long.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
const OPEN_TIMEOUT: Duration = Duration::from_secs(20);
/// Beyond the time it was given, a node may need this long to finish and write its record.
const FINISH_TIMEOUT: Duration = Duration::from_secs(10);
/// Clocks of a trial count from this long after the first exchange: until then their drift is settled
/// and, where all is well, all nodes are connected.
const CLOCK_LEAD: Span = Span::from_ms(1500);
/// Beside a trial clocks are compared this often.
const EXCHANGE_EVERY_MS: u32 = 50;

/// What a caller may want to know while cells are measured. Called between measurements only.
pub trait Observer {
    /// `number` of `total` trials begins.
    fn begin(&mut self, number: usize, total: usize, cell: &CellPlan);
    /// The trial ended.
    fn end(&mut self, result: &Cell);
}

/// What a plan came to.
#[derive(Debug, Default)]
pub struct Measured {
    /// One per trial, in the order measured.
    pub cells: Vec<Cell>,
    /// `samples[i]` belongs to `cells[i]`.
    pub samples: Vec<CellSamples>,
    /// True if the user interrupted; what was measured before is kept.
    pub interrupted: bool,
}

/// Starts nodes, tells them what to do, and collects what they saw.
#[derive(Debug)]
pub struct Engine<'a> {
    directory: &'a Directory,
    settings: Settings,
    interrupted: Arc<AtomicBool>,
    scratch: tempfile::TempDir,
    one_host: Option<Network>,
    two_hosts: Option<Network>,
    sessions: u32,
}

/// What applies to every cell.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// SCHED_FIFO priority; 0 = ordinary.
    pub priority: u32,
    /// mlockall in every node.
    pub lock_memory: bool,
    /// Closed loop: a later reply is lost.
    pub reply_timeout_ms: u64,
}

/// Why the engine cannot work at all.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// No room for record files.
    #[error("cannot create a temporary directory: {0}; set TMPDIR to a writable one")]
    Scratch(std::io::Error),
    /// No private network.
    #[error("{0}")]
    Network(String),
}

impl<'a> Engine<'a> {
    /// Prepares to run peers of `directory`; stops early when `interrupted` becomes true.
    pub fn new(
        directory: &'a Directory,
        settings: Settings,
        interrupted: Arc<AtomicBool>,
    ) -> Result<Self, EngineError> {
        let scratch = tempfile::Builder::new().prefix("noctule-lab-").tempdir();
        Ok(Self {
            directory,
            settings,
            interrupted,
            scratch: scratch.map_err(EngineError::Scratch)?,
            one_host: None,
            two_hosts: None,
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
            self.prepare_network(cell.hosts)?;
            observer.begin(number, total, cell);
            let nodes = match self.trial(cell) {
                Err(NodeFault::Interrupted) => {
                    measured.iter_mut().for_each(|measured| measured.interrupted = true);
                    break;
                }
                Err(NodeFault::Failed(why)) => Err(why),
                Ok(trial) => Ok(trial),
            };
            let (result, samples) = judge(cell, trial, nodes);
            observer.end(&result);
            measured[plan].cells.push(result);
            measured[plan].samples.push(samples);
        }
        Ok(measured)
    }

    fn prepare_network(&mut self, hosts: u32) -> Result<(), EngineError> {
        let network = if hosts == 2 { &mut self.two_hosts } else { &mut self.one_host };
        if network.is_none() {
            *network = Some(Network::create(hosts).map_err(EngineError::Network)?);
        }
        Ok(())
    }

    /// One trial of one cell: fresh processes from start to exit.
    fn trial(&mut self, cell: &CellPlan) -> Result<Trial, NodeFault> {
        let failed = |what: &str| NodeFault::Failed(what.to_owned());
        let entry = self.directory.entries.get(&cell.peer).ok_or_else(|| failed("the peer vanished"))?;
        let network = if cell.hosts == 2 { &self.two_hosts } else { &self.one_host };
        let network = network.as_ref().ok_or_else(|| failed("there is no network"))?;
        self.sessions += 1;
        let session = format!("s{:x}x{:x}", std::process::id(), self.sessions);
        let clocks = self.start_clocks(cell, network, &session)?;
        let mut nodes = Vec::new();
        for node in 0..cell.nodes {
            let label = format!("node {node} ({})", cell.peer);
            nodes.push(NodeProcess::start(&entry.program, label, network.host(node))?);
        }
        let clocks_shown = clocks.as_ref().map(|clocks| clocks.each.clone());
        let conversation =
            Conversation { cell, clocks: clocks_shown.unwrap_or_default(), interrupted: &self.interrupted };
        conversation.hello(&mut nodes)?;
        let addresses = conversation.open(&mut nodes, &session, network, &self.settings)?;
        let settings = conversation.connect(&mut nodes, &addresses)?;
        let records: Vec<PathBuf> =
            (0..cell.nodes).map(|node| self.scratch.path().join(format!("{session}-{node}.rec"))).collect();
        if let Some(clocks) = &clocks {
            clock::sleep_until(clock::now_ns() + (clocks.start - now()).ns());
        }
        let done = conversation.run(&mut nodes, &records, &self.settings)?;
        for node in nodes {
            node.close()?;
        }
        let mut results = Vec::new();
        for (number, (done, (record, settings))) in
            done.into_iter().zip(records.iter().zip(settings)).enumerate()
        {
            let table = Table::read(record)
                .map_err(|e| NodeFault::Failed(format!("node {number} ({}): {e}", cell.peer)))?;
            let _ = std::fs::remove_file(record);
            results.push(NodeResult { done, table, settings });
        }
        let clocks = clocks.map(TrialClocks::stop).transpose().map_err(NodeFault::Failed)?;
        Ok(Trial { nodes: results, clocks })
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
        let plan = PairPlan {
            noctule: &self.directory.noctule,
            server: Side { node: 0, clock: sender },
            prober: Side { node: 1, clock: receiver },
            prober_arguments: &["--every-ms".into(), EXCHANGE_EVERY_MS.to_string()],
            both_arguments: &[],
            trace: self.scratch.path().join(format!("{session}-clocks.csv")),
        };
        let pair = ClockPair::start(network, plan).map_err(NodeFault::Failed)?;
        Ok(Some(TrialClocks { pair, each, start }))
    }
}

/// The clocks of one trial, and the exchange between them.
struct TrialClocks {
    pair: ClockPair,
    /// One per host.
    each: Vec<LocalClock>,
    /// When their rates and steps begin to count.
    start: noctule_timebase::Instant<noctule::clock::Raw>,
}

impl TrialClocks {
    fn stop(self) -> Result<ForeignClock, String> {
        let exchanges = self.pair.stop()?.rows;
        let mut each = self.each.into_iter();
        match (each.next(), each.next()) {
            (Some(remote), Some(local)) => Ok(ForeignClock { exchanges, remote, local }),
            _ => Err("there is not one clock for each of two hosts".into()),
        }
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

/// What a node says of its settings, by name.
pub(crate) type NodeSettings = Vec<(String, String)>;

/// The lines exchanged with the nodes of one trial.
struct Conversation<'a> {
    cell: &'a CellPlan,
    /// One per host; empty if all nodes stamp with the machine's.
    clocks: Vec<LocalClock>,
    interrupted: &'a AtomicBool,
}

impl Conversation<'_> {
    fn hello(&self, nodes: &mut [NodeProcess]) -> Result<(), NodeFault> {
        for node in nodes.iter_mut() {
            node.tell(&Line::new("hello").with("protocol", 1))?;
        }
        for node in nodes.iter_mut() {
            node.expect("hello", "saying hello", OPEN_TIMEOUT, self.interrupted)?;
        }
        Ok(())
    }

    /// Returns each node's address, if it has one.
    fn open(
        &self,
        nodes: &mut [NodeProcess],
        session: &str,
        network: &Network,
        settings: &Settings,
    ) -> Result<Vec<Option<String>>, NodeFault> {
        for (number, node) in (0..).zip(nodes.iter_mut()) {
            let line = self
                .open_line(number)
                .with("session", session)
                .with("bind_address", network.address(number))
                .with("priority", settings.priority)
                .with("lock_memory", u8::from(settings.lock_memory));
            node.tell(&line)?;
        }
        let mut addresses = Vec::new();
        for node in nodes.iter_mut() {
            let opened = node.expect("opened", "opening", OPEN_TIMEOUT, self.interrupted)?;
            addresses.push(opened.word("address").map(str::to_owned));
        }
        Ok(addresses)
    }

    fn open_line(&self, node: u32) -> Line {
        let cell = self.cell;
        let role = role(cell, node);
        let publishes = match (cell.mode.as_str(), node) {
            ("round_trip", _) => Some(format!("t{node}")),
            (_, 0) => Some("t0".to_owned()),
            ("chain", _) if node + 1 < cell.nodes => Some(format!("t{node}")),
            _ => None,
        };
        let subscribes = match (cell.mode.as_str(), node) {
            (_, 0) if cell.nodes == 1 => Some("t0".to_owned()),
            ("round_trip", _) => Some(format!("t{}", 1 - node.min(1))),
            (_, 0) => None,
            ("chain", _) => Some(format!("t{}", node - 1)),
            _ => Some("t0".to_owned()),
        };
        let readers = publishes.as_ref().map(|_| if cell.mode == "fan_out" { cell.nodes - 1 } else { 1 });
        let line = Line::new("open")
            .with("role", role)
            .with("node", node)
            .with("nodes", cell.nodes)
            .with_some("publish", publishes)
            .with_some("readers", readers)
            .with_some("subscribe", subscribes)
            .with("link", &cell.link)
            .with("wait", &cell.wait)
            .with("format", &cell.format)
            .with("payload_bytes", cell.payload_bytes)
            .with("window", cell.window)
            .with_some("core", cell.core(node))
            .with_some("clock", self.clocks.get(node as usize % self.clocks.len().max(1)));
        cell.options.iter().fold(line, |line, (key, value)| line.with(&format!("option.{key}"), value))
    }

    /// Hands each publisher the addresses of its readers; returns each node's settings.
    fn connect(
        &self,
        nodes: &mut [NodeProcess],
        addresses: &[Option<String>],
    ) -> Result<Vec<NodeSettings>, NodeFault> {
        for (number, node) in (0..).zip(nodes.iter_mut()) {
            let readers: Vec<u32> = match (self.cell.mode.as_str(), number) {
                (_, 0) if self.cell.nodes == 1 => vec![],
                ("round_trip", _) => vec![1 - number],
                ("fan_out", 0) => (1..self.cell.nodes).collect(),
                ("one_way" | "chain", _) if number + 1 < self.cell.nodes => vec![number + 1],
                _ => vec![],
            };
            let readers: Vec<&str> =
                readers.iter().filter_map(|&reader| addresses.get(reader as usize)?.as_deref()).collect();
            let readers = (!readers.is_empty()).then(|| readers.join(","));
            node.tell(&Line::new("connect").with_some("readers", readers))?;
        }
        let mut settings = Vec::new();
        for node in nodes.iter_mut() {
            let ready = node.expect("ready", "connecting", CONNECT_TIMEOUT, self.interrupted)?;
            settings.push(ready.with_prefix("setting.").into_iter().collect());
        }
        Ok(settings)
    }

    /// Runs receivers, then the sender; stops the receivers; returns every node's `done`.
    fn run(
        &self,
        nodes: &mut [NodeProcess],
        records: &[PathBuf],
        settings: &Settings,
    ) -> Result<Vec<Line>, NodeFault> {
        let (sender, receivers) = nodes.split_at_mut(1);
        let run = |node: &mut NodeProcess, record: &PathBuf| {
            node.tell(&self.run_line(record, settings))?;
            node.expect("running", "starting to run", OPEN_TIMEOUT, self.interrupted)
        };
        for (node, record) in receivers.iter_mut().zip(&records[1..]) {
            run(node, record)?;
        }
        let sender = &mut sender[0];
        run(sender, &records[0])?;
        let seconds = match self.cell.rate_hz {
            Some(rate_hz) => (self.cell.messages + self.cell.warm_up_messages) as f64 / rate_hz,
            None => self.cell.seconds + self.cell.warm_up_ms as f64 / 1e3,
        };
        let reply_timeout = Duration::from_millis(settings.reply_timeout_ms);
        let limit = Duration::from_secs_f64(seconds) + reply_timeout * 2 + FINISH_TIMEOUT;
        let mut done = vec![sender.expect("done", "sending", limit, self.interrupted)?];
        let messages = done[0].word("sent").unwrap_or("0").to_owned();
        for node in receivers.iter_mut() {
            node.tell(&Line::new("stop").with("messages", &messages))?;
        }
        for node in receivers.iter_mut() {
            done.push(node.expect("done", "receiving", FINISH_TIMEOUT, self.interrupted)?);
        }
        Ok(done)
    }

    fn run_line(&self, record: &std::path::Path, settings: &Settings) -> Line {
        let cell = self.cell;
        Line::new("run")
            .with("messages", cell.messages)
            .with("seconds", if cell.rate_hz.is_some() { 1e6 } else { cell.seconds })
            .with_some("rate_hz", cell.rate_hz)
            .with("warmup_messages", cell.warm_up_messages)
            .with("warmup_ms", cell.warm_up_ms)
            .with("reply_timeout_ms", settings.reply_timeout_ms)
            .with("touch", &cell.touch)
            .with("record", record.display())
    }
}

fn role(cell: &CellPlan, node: u32) -> &'static str {
    match (cell.mode.as_str(), node) {
        ("round_trip", 0) => "initiator",
        (_, 0) if cell.nodes == 1 => "initiator",
        ("round_trip", _) => "echo",
        (_, 0) => "source",
        ("chain", _) if node + 1 < cell.nodes => "forwarder",
        _ => "sink",
    }
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
