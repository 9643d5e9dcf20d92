//! The lines exchanged with the nodes of one cell in one trial, from their start to their end
//! (docs/spec/peer-protocol.md).
//!
//! Begun and finished apart, so that one cell's nodes can talk while another's are measured.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use noctule_local_clock::LocalClock;
use noctule_peer::{Line, Table};

use crate::dimensions::Mode;
use crate::machine::{Machine, Node};
use crate::network::Network;
use crate::node_process::{NodeFault, Program};
use crate::plan::CellPlan;
use crate::serial_line::SerialLine;
use crate::trace::read_csv;
use crate::trial::{NodeResult, NodeSettings, Settings};

/// Discovery of a foreign middleware may take seconds; nothing healthy takes this long.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
const OPEN_TIMEOUT: Duration = Duration::from_secs(20);
/// Beyond the time it was given, a node may need this long to finish and write its record.
const FINISH_TIMEOUT: Duration = Duration::from_secs(10);
/// The same across an emulated link, where megabytes in a sender's buffers take their time.
const FINISH_TIMEOUT_ACROSS: Duration = Duration::from_secs(30);
/// Across a link that may lose, so long a silence ends a receiver: TCP's fourth time-out in a row comes 3 s after what it last
/// received.
const QUIET_ACROSS_MS: u64 = 3_000;

/// Machine, network and settings that the sessions of a trial share.
#[derive(Clone, Copy)]
pub(crate) struct TrialContext<'a> {
    pub(crate) machine: &'a dyn Machine,
    pub(crate) network: &'a Network,
    pub(crate) settings: &'a Settings,
    /// Where nodes write their records.
    pub(crate) scratch: &'a Path,
    pub(crate) interrupted: &'a AtomicBool,
    /// The line between two nodes, if that is their link.
    pub(crate) line: Option<&'a SerialLine>,
}

/// The nodes of one cell.
pub(crate) struct PeerSession<'a> {
    cell: &'a CellPlan,
    /// One per host, or side of a line; empty if all nodes stamp with the machine's.
    clocks: &'a [LocalClock],
    around: TrialContext<'a>,
    session: String,
    nodes: Vec<Box<dyn Node>>,
    settings: Vec<NodeSettings>,
}

impl<'a> PeerSession<'a> {
    /// Starts one process per node, opens and connects them; returns when all are ready.
    pub(crate) fn start(
        program: &Program,
        cell: &'a CellPlan,
        clocks: &'a [LocalClock],
        (around, session): (TrialContext<'a>, String),
    ) -> Result<Self, NodeFault> {
        let mut nodes = Vec::new();
        for node in 0..cell.nodes {
            let label = format!("node {node} ({})", cell.peer);
            nodes.push(around.machine.start(program, label, around.network.host(node))?);
        }
        let mut peer_session = Self { cell, clocks, around, session, nodes, settings: Vec::new() };
        peer_session.hello()?;
        let addresses = peer_session.open()?;
        peer_session.connect(&addresses)?;
        Ok(peer_session)
    }

    fn hello(&mut self) -> Result<(), NodeFault> {
        for node in &mut self.nodes {
            node.tell(&Line::new("hello").with("protocol", 1))?;
        }
        for node in &mut self.nodes {
            node.expect("hello", "saying hello", OPEN_TIMEOUT, self.around.interrupted)?;
        }
        Ok(())
    }

    /// Returns each node's address, if it has one.
    fn open(&mut self) -> Result<Vec<Option<String>>, NodeFault> {
        for number in 0..self.cell.nodes {
            let TrialContext { network, settings, line, .. } = self.around;
            let line = self
                .open_line(number)
                .with("session", &self.session)
                .with("bind_address", network.address(number))
                .with("priority", self.priority(number))
                .with_some("device", line.map(|line| line.device(number)))
                .with("lock_memory", u8::from(settings.lock_memory));
            self.nodes[number as usize].tell(&line)?;
        }
        let mut addresses = Vec::new();
        for node in &mut self.nodes {
            let opened = node.expect("opened", "opening", OPEN_TIMEOUT, self.around.interrupted)?;
            addresses.push(opened.word("address").map(str::to_owned));
        }
        Ok(addresses)
    }

    /// The cell's own if it has some, which have been checked by then.
    fn priority(&self, node: u32) -> u32 {
        let own = self.cell.priorities().ok().flatten().filter(|own| !own.is_empty());
        own.map_or(self.around.settings.priority, |own| own[node as usize % own.len()])
    }

    fn open_line(&self, node: u32) -> Line {
        let cell = self.cell;
        let role = role(cell, node);
        let publishes = match (cell.mode, node) {
            (Mode::RoundTrip, _) => Some(format!("t{node}")),
            (_, 0) => Some("t0".to_owned()),
            (Mode::Chain, _) if node + 1 < cell.nodes => Some(format!("t{node}")),
            _ => None,
        };
        let subscribes = match (cell.mode, node) {
            (_, 0) if cell.nodes == 1 => Some("t0".to_owned()),
            (Mode::RoundTrip, _) => Some(format!("t{}", 1 - node.min(1))),
            (_, 0) => None,
            (Mode::Chain, _) => Some(format!("t{}", node - 1)),
            _ => Some("t0".to_owned()),
        };
        let readers = publishes.as_ref().map(|_| if cell.mode == Mode::FanOut { cell.nodes - 1 } else { 1 });
        let line = Line::new("open")
            .with("role", role)
            .with("node", node)
            .with("nodes", cell.nodes)
            .with_some("publish", publishes)
            .with_some("readers", readers)
            .with_some("subscribe", subscribes)
            .with("link", &cell.link)
            .with("wait", cell.wait)
            .with("format", &cell.format)
            .with("payload_bytes", cell.payload_bytes)
            .with("window", cell.window)
            .with_some("core", cell.core(node))
            .with_some("deadline_ns", cell.deadline_ns)
            .with_some("clock", self.clocks.get(node as usize % self.clocks.len().max(1)));
        cell.options.iter().fold(line, |line, (key, value)| line.with(&format!("option.{key}"), value))
    }

    /// Hands each publisher the addresses of its readers.
    fn connect(&mut self, addresses: &[Option<String>]) -> Result<(), NodeFault> {
        let cell = self.cell;
        for (number, node) in (0..).zip(&mut self.nodes) {
            let readers: Vec<u32> = match (cell.mode, number) {
                (_, 0) if cell.nodes == 1 => vec![],
                (Mode::RoundTrip, _) => vec![1 - number],
                (Mode::FanOut, 0) => (1..cell.nodes).collect(),
                (Mode::OneWay | Mode::Chain, _) if number + 1 < cell.nodes => vec![number + 1],
                _ => vec![],
            };
            let readers: Vec<&str> =
                readers.iter().filter_map(|&reader| addresses.get(reader as usize)?.as_deref()).collect();
            let readers = (!readers.is_empty()).then(|| readers.join(","));
            node.tell(&Line::new("connect").with_some("readers", readers))?;
        }
        for node in &mut self.nodes {
            let ready = node.expect("ready", "connecting", CONNECT_TIMEOUT, self.around.interrupted)?;
            self.settings.push(ready.with_prefix("setting.").into_iter().collect());
        }
        Ok(())
    }

    /// Lets the receivers run, then the sender.
    pub(crate) fn begin(&mut self) -> Result<(), NodeFault> {
        // Receivers first: the sender's first message must find them.
        for number in (1..self.nodes.len()).chain([0]) {
            let line = self.run_line(&self.record(number), &self.exchanges(number));
            let node = &mut self.nodes[number];
            node.tell(&line)?;
            node.expect("running", "starting to run", OPEN_TIMEOUT, self.around.interrupted)?;
        }
        Ok(())
    }

    /// Waits for the sender, stops the receivers, ends all processes; returns what each node left behind.
    pub(crate) fn finish(mut self) -> Result<Vec<NodeResult>, NodeFault> {
        let reply_timeout = Duration::from_millis(self.around.settings.reply_timeout_ms);
        let finish_timeout = if self.cell.across.is_some() { FINISH_TIMEOUT_ACROSS } else { FINISH_TIMEOUT };
        let sending = self.cell.sending_seconds().max(self.cell.sending_limit_seconds());
        let limit = Duration::from_secs_f64(sending) + reply_timeout * 2 + finish_timeout;
        let interrupted = self.around.interrupted;
        let (sender, receivers) = self.nodes.split_at_mut(1);
        let mut done = vec![sender[0].expect("done", "sending", limit, interrupted)?];
        let messages = done[0].word("sent").unwrap_or("0").to_owned();
        for node in receivers.iter_mut() {
            node.tell(&Line::new("stop").with("messages", &messages))?;
        }
        for node in receivers {
            done.push(node.expect("done", "receiving", finish_timeout, interrupted)?);
        }
        let mut results = Vec::new();
        for (number, (done, settings)) in done.into_iter().zip(std::mem::take(&mut self.settings)).enumerate()
        {
            let record = self.record(number);
            let label = format!("node {number} ({})", self.cell.peer);
            let table = Table::read(&record).map_err(|e| NodeFault::Failed(format!("{label}: {e}")))?;
            let _ = std::fs::remove_file(&record);
            let exchanges = match std::fs::File::open(self.exchanges(number)) {
                Ok(file) => read_csv(file).map_err(|e| NodeFault::Failed(format!("{label}: {e}")))?,
                Err(_) => Vec::new(),
            };
            results.push(NodeResult { done, table, settings, exchanges });
        }
        self.nodes.into_iter().try_for_each(Node::close)?;
        Ok(results)
    }

    fn record(&self, node: usize) -> PathBuf {
        self.around.scratch.join(format!("{}-{node}.rec", self.session))
    }

    fn exchanges(&self, node: usize) -> PathBuf {
        self.around.scratch.join(format!("{}-{node}.csv", self.session))
    }

    fn run_line(&self, record: &Path, exchanges: &Path) -> Line {
        let cell = self.cell;
        Line::new("run")
            .with("messages", cell.messages)
            .with("seconds", cell.sending_limit_seconds())
            .with_some("rate_hz", cell.rate_hz)
            .with("warmup_messages", cell.warm_up_messages)
            .with("warmup_ms", cell.warm_up_ms)
            .with("reply_timeout_ms", self.around.settings.reply_timeout_ms)
            .with_some("quiet_ms", cell.across.is_some().then_some(QUIET_ACROSS_MS))
            .with("touch", cell.touch)
            .with("record", record.display())
            .with_some("exchanges", (!self.clocks.is_empty()).then(|| exchanges.display()))
    }
}

fn role(cell: &CellPlan, node: u32) -> &'static str {
    match (cell.mode, node) {
        (Mode::RoundTrip, 0) => "initiator",
        (_, 0) if cell.nodes == 1 => "initiator",
        (Mode::RoundTrip, _) => "echo",
        (_, 0) => "source",
        (Mode::Chain, _) if node + 1 < cell.nodes => "forwarder",
        _ => "sink",
    }
}
