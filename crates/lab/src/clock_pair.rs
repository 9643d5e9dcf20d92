//! A clock exchange between two hosts of a private network, beside whatever is measured there.
//!
//! Both ends are processes of our own command, the same that users run. They end when their standard
//! input does, so also if this process is killed.

use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use noctule_local_clock::{LocalClock, now};
use noctule_sys::clock;
use noctule_timebase::Span;
use serde_json::Value;

use crate::network::Network;
use crate::trace::{TraceError, TraceRow, read_csv};

/// Until this many exchanges the estimate is only beginning: the first burst.
const READY_EXCHANGES: usize = 8;
const READY_TIMEOUT: Span = Span::from_s(10);

/// Why clocks could not be compared.
#[derive(Debug, thiserror::Error)]
pub enum ClockPairError {
    /// The command cannot be started.
    #[error("{} could not be started: {source}", program.display())]
    Start {
        /// The command.
        program: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The node has no host.
    #[error("there is no network")]
    NoNetwork,
    /// The path of the trace cannot be an argument.
    #[error("the path of a temporary directory is not UTF-8; set TMPDIR")]
    Path,
    /// The output of an end is gone.
    #[error("no output")]
    NoOutput,
    /// The output of an end cannot be read.
    #[error("{0}")]
    Output(io::Error),
    /// The first line of `sync serve` is no JSON.
    #[error("sync serve: {0}")]
    Begin(serde_json::Error),
    /// The last line of an end is no JSON.
    #[error("the end of a clock exchange: {0}")]
    End(serde_json::Error),
    /// There was no exchange.
    #[error("the clocks of two hosts could not be compared: sync probe heard nothing")]
    Silent,
    /// The trace cannot be opened.
    #[error("{}: {source}", path.display())]
    Open {
        /// Path of the trace.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The trace is not one.
    #[error("the trace of exchanges: {0}")]
    Trace(TraceError),
}

/// Plan of a clock exchange between two hosts of an emulated network.
pub struct PairPlan<'a> {
    /// The `noctule` command.
    pub noctule: &'a Path,
    /// The server's clock, with the moment from which it counts.
    pub server: Side<'a>,
    /// The prober's clock, with the moment from which it counts.
    pub prober: Side<'a>,
    /// Further arguments for the prober.
    pub prober_arguments: &'a [String],
    /// Further arguments for both.
    pub both_arguments: &'a [String],
    /// Where the exchanges are written.
    pub trace: PathBuf,
}

/// One end: a node of the network and its clock.
#[derive(Clone, Copy)]
pub struct Side<'a> {
    /// Number of the node in the network, from 0.
    pub node: u32,
    /// The clock it stamps with.
    pub clock: &'a LocalClock,
}

/// A server and a prober at work. Both are killed when dropped.
#[derive(Debug)]
pub struct ClockPair {
    server: Process,
    prober: Process,
    trace: PathBuf,
}

/// Results of an exchange that has ended.
pub struct Ended {
    /// All exchanges, with the truth.
    pub rows: Vec<TraceRow>,
    /// The JSON of `sync probe`.
    pub prober: Value,
    /// The counters of `sync serve`.
    pub server: Value,
}

impl ClockPair {
    /// Starts both ends and waits for the first exchanges.
    ///
    /// # Errors
    /// One of them cannot be started, or no datagram passes between them.
    pub fn start(network: &Network, plan: PairPlan<'_>) -> Result<ClockPair, ClockPairError> {
        let (server_clock, prober_clock) = (plan.server.clock.to_string(), plan.prober.clock.to_string());
        let listen = format!("{}:0", network.address(plan.server.node));
        let serve = ["sync", "serve", &listen, "--clock", &server_clock, "--json", "--until-input-ends"];
        let mut server =
            Process::start(plan.noctule, &serve, plan.both_arguments, (network, plan.server.node))?;
        let said: Value = serde_json::from_str(&server.line()?).map_err(ClockPairError::Begin)?;
        let address = said["address"].as_str().unwrap_or_default();
        let trace = plan.trace.to_str().ok_or(ClockPairError::Path)?;
        let probe = ["sync", "probe", address, "--clock", &prober_clock, "--server-clock", &server_clock];
        let rest = ["--csv", trace, "--json", "--until-input-ends"].map(str::to_owned);
        let rest = [&rest, plan.prober_arguments, plan.both_arguments].concat();
        let prober = Process::start(plan.noctule, &probe, &rest, (network, plan.prober.node))?;
        let pair = ClockPair { server, prober, trace: plan.trace };
        let deadline = now() + READY_TIMEOUT;
        while pair.rows()?.len() < READY_EXCHANGES {
            if now() > deadline {
                return Err(ClockPairError::Silent);
            }
            clock::sleep_until(clock::now_ns() + 5_000_000);
        }
        Ok(pair)
    }

    /// The exchanges so far.
    ///
    /// # Errors
    /// The trace cannot be read.
    pub fn rows(&self) -> Result<Vec<TraceRow>, ClockPairError> {
        let text = std::fs::read_to_string(&self.trace).unwrap_or_default();
        // The last line may be half written.
        let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
        match whole.lines().count() {
            0 | 1 => Ok(Vec::new()),
            _ => read_csv(whole.as_bytes()).map_err(ClockPairError::Trace),
        }
    }

    /// Ends both.
    ///
    /// # Errors
    /// One of them fails, or its figures cannot be read.
    pub fn stop(self) -> Result<Ended, ClockPairError> {
        let ClockPair { server, prober, trace } = self;
        let prober = prober.stop()?;
        let server = server.stop()?;
        let file =
            std::fs::File::open(&trace).map_err(|source| ClockPairError::Open { path: trace, source })?;
        let rows = read_csv(file).map_err(ClockPairError::Trace)?;
        Ok(Ended { rows, prober, server })
    }
}

#[derive(Debug)]
struct Process {
    child: Child,
    input: Option<ChildStdin>,
    output: Option<BufReader<ChildStdout>>,
}

impl Process {
    fn start(
        program: &Path,
        arguments: &[&str],
        rest: &[String],
        (network, node): (&Network, u32),
    ) -> Result<Process, ClockPairError> {
        let cannot = |source| ClockPairError::Start { program: program.to_owned(), source };
        let mut command = Command::new(program);
        command.args(arguments).args(rest).stdin(Stdio::piped()).stdout(Stdio::piped());
        // Out of our process group: Ctrl-C is for the lab, which then ends it in order.
        command.process_group(0);
        let host = network.host(node).ok_or(ClockPairError::NoNetwork)?;
        let mut child = host.run(|| command.spawn()).map_err(cannot)?;
        let (input, output) = (child.stdin.take(), child.stdout.take().map(BufReader::new));
        Ok(Process { child, input, output })
    }

    fn line(&mut self) -> Result<String, ClockPairError> {
        let mut line = String::new();
        let output = self.output.as_mut().ok_or(ClockPairError::NoOutput)?;
        output.read_line(&mut line).map_err(ClockPairError::Output)?;
        Ok(line)
    }

    /// Closes its input and reads the JSON it ends with. That a bound was left is in there, too.
    fn stop(mut self) -> Result<Value, ClockPairError> {
        self.input = None;
        let mut text = String::new();
        let mut output = self.output.take().ok_or(ClockPairError::NoOutput)?;
        output.read_to_string(&mut text).map_err(ClockPairError::Output)?;
        serde_json::from_str(&text).map_err(ClockPairError::End)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Only a process we started, by its own handle; harmless if it has already ended.
        self.input = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
