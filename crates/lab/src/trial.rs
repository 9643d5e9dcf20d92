//! One trial: what it is given, and what it leaves behind.

use noctule_peer::{Line, Table};

use crate::clock_translation::ClockTranslation;
use crate::link_record::LinkRecord;
use crate::serial_line::LineFigures;
use crate::trace::TraceRow;

/// Settings of every cell.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// SCHED_FIFO priority; 0 = ordinary.
    pub priority: u32,
    /// mlockall in every node.
    pub lock_memory: bool,
    /// Closed loop: a later reply is lost.
    pub reply_timeout_ms: u64,
}

/// Settings that a node reports, by name.
pub(crate) type NodeSettings = Vec<(String, String)>;

/// Results of one node.
#[derive(Debug)]
pub(crate) struct NodeResult {
    /// Its `done` line.
    pub(crate) done: Line,
    /// Its record.
    pub(crate) table: Table,
    /// Its settings.
    pub(crate) settings: NodeSettings,
    /// Exchanges of clocks that its middleware made.
    pub(crate) exchanges: Vec<TraceRow>,
}

/// Results of one trial.
#[derive(Debug, Default)]
pub(crate) struct Trial {
    /// Results of each node.
    pub(crate) nodes: Vec<NodeResult>,
    /// Results of each node of the traffic beside it.
    pub(crate) beside: Option<Vec<NodeResult>>,
    /// Bytes given to the links between the hosts.
    pub(crate) wire_bytes: Option<u64>,
    /// Record of the emulated link between the hosts, if there is one.
    pub(crate) link: Option<LinkRecord>,
    /// How the hosts' clocks compared, if they have clocks of their own.
    pub(crate) clocks: Option<ClockTranslation>,
    /// Figures of the serial line, if there was one.
    pub(crate) line: LineFigures,
}
