//! One peer process, driven line by line, trusted with nothing.
//!
//! A peer may die, hang, or print anything. Every wait has a limit, every line a length, and every
//! fault becomes one sentence that names the node and its last words.

use std::collections::VecDeque;
use std::fmt::Display;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use noctule_peer::Line;
use noctule_sys::namespace::NetworkNamespace;

/// Longest line read from a peer; what is beyond is garbage.
const LINE_BYTES_MAX: u64 = 8192;
/// Lines of a peer's output waiting to be looked at; a peer that prints more waits itself.
const LINES_WAITING_MAX: usize = 64;
/// Lines of standard error kept for the fault's sentence.
const LAST_WORDS: usize = 3;
const EXIT_TIMEOUT: Duration = Duration::from_secs(5);
/// A wait wakes this often to see whether the user has interrupted.
const INTERRUPT_POLL: Duration = Duration::from_millis(200);

/// Command line of a peer.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Program {
    /// The executable.
    pub path: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
}

/// Fault of a node's process or of its lines.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NodeFault {
    /// The user pressed Ctrl-C.
    #[error("interrupted")]
    Interrupted,
    /// Everything else, as a sentence.
    #[error("{0}")]
    Failed(String),
}

impl NodeFault {
    /// The fault of what is around a node.
    pub(crate) fn of(error: impl Display) -> Self {
        Self::Failed(error.to_string())
    }
}

/// A running peer process. Killed when dropped.
pub(crate) struct NodeProcess {
    label: String,
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    last_words: Arc<Mutex<VecDeque<String>>>,
}

impl NodeProcess {
    /// Starts a peer, inside a network namespace if one is given.
    pub(crate) fn start(
        program: &Program,
        label: String,
        namespace: Option<&NetworkNamespace>,
    ) -> Result<Self, NodeFault> {
        let mut command = Command::new(&program.path);
        command
            .args(&program.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Out of our process group: Ctrl-C is for the lab, which then ends its peers in order.
            .process_group(0);
        let spawned = match namespace {
            Some(namespace) => namespace.run(|| command.spawn()),
            None => command.spawn(),
        };
        let mut child = spawned.map_err(|e| {
            NodeFault::Failed(format!("{label} could not be started ({}): {e}", program.path.display()))
        })?;
        let lines = read_lines(child.stdout.take());
        let last_words = keep_last_words(child.stderr.take());
        let input = child.stdin.take();
        Ok(Self { label, child, input, lines, last_words })
    }

    /// Sends one line.
    pub(crate) fn tell(&mut self, line: &Line) -> Result<(), NodeFault> {
        let Some(input) = &mut self.input else {
            return Ok(());
        };
        match input.write_all(format!("{line}\n").as_bytes()) {
            Ok(()) => Ok(()),
            Err(_) => Err(self.death(line.verb())),
        }
    }

    /// Waits for the answer with this verb. `doing` completes the sentence "… while {doing}".
    pub(crate) fn expect(
        &mut self,
        verb: &str,
        doing: &str,
        timeout: Duration,
        interrupted: &AtomicBool,
    ) -> Result<Line, NodeFault> {
        let deadline = Instant::now() + timeout;
        let text = loop {
            if interrupted.load(Ordering::Relaxed) {
                return Err(NodeFault::Interrupted);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left.min(INTERRUPT_POLL)) {
                Ok(text) => break text,
                Err(RecvTimeoutError::Disconnected) => return Err(self.death(doing)),
                Err(RecvTimeoutError::Timeout) if left.is_zero() => {
                    let seconds = timeout.as_secs_f64();
                    return Err(
                        self.failed(&format!("hung: it said nothing for {seconds:.0} s while {doing}"))
                    );
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        };
        match text.parse::<Line>() {
            Ok(line) if line.verb() == verb => Ok(line),
            Ok(line) if line.verb() == "error" => {
                Err(self.failed(&format!("reports while {doing}: {}", line.sentence())))
            }
            _ => {
                let shown: String = text.chars().take(60).flat_map(char::escape_debug).collect();
                Err(self.failed(&format!(
                    "broke the protocol while {doing}: expected \"{verb} …\", got \"{shown}\""
                )))
            }
        }
    }

    /// Asks the peer to end and waits for it.
    pub(crate) fn close(mut self) -> Result<(), NodeFault> {
        let _ = self.tell(&Line::new("close"));
        self.input = None;
        // Its output ends when it exits, so this waits without polling.
        let deadline = Instant::now() + EXIT_TIMEOUT;
        loop {
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(_) => {}
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    return Err(self.failed("did not exit within 5 s of close and was killed"));
                }
            }
        }
        match self.child.wait() {
            Ok(status) if status.success() => Ok(()),
            _ => Err(self.death("closing")),
        }
    }

    fn failed(&self, what: &str) -> NodeFault {
        let words = self.last_words.lock().map(|words| words.iter().cloned().collect::<Vec<_>>());
        let words = words.unwrap_or_default().join(" / ");
        let words = if words.is_empty() { words } else { format!("; its last words: {words}") };
        NodeFault::Failed(format!("{} {what}{words}", self.label))
    }

    fn death(&mut self, doing: &str) -> NodeFault {
        self.input = None;
        // Output closed: either it is gone or about to be. A peer that closed its output and lives on
        // is killed.
        let deadline = Instant::now() + Duration::from_secs(1);
        let status = loop {
            match self.child.try_wait() {
                Ok(Some(status)) => break Some(status),
                Ok(None) if Instant::now() < deadline => {
                    noctule_sys::clock::sleep_until(noctule_sys::clock::now_ns() + 1_000_000);
                }
                _ => break None,
            }
        };
        let how = match status {
            Some(status) => match (status.code(), status.signal()) {
                (Some(code), _) => format!("exited with code {code}"),
                (_, Some(signal)) => format!("was killed by signal {signal}"),
                _ => "ended".to_owned(),
            },
            None => "closed its output".to_owned(),
        };
        self.failed(&format!("{how} while {doing}"))
    }
}

impl Drop for NodeProcess {
    fn drop(&mut self) {
        // Only a process we started, by its own handle; harmless if it has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads lines on a thread of its own, which sleeps in the kernel while the peer measures.
fn read_lines(output: Option<impl Read + Send + 'static>) -> Receiver<String> {
    let (sender, receiver) = mpsc::sync_channel(LINES_WAITING_MAX);
    if let Some(output) = output {
        std::thread::spawn(move || {
            let mut output = BufReader::new(output);
            let mut line = Vec::new();
            loop {
                line.clear();
                match output.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line) {
                    Ok(0) | Err(_) => return,
                    Ok(_) => {
                        let text = String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']).to_owned();
                        if sender.send(text).is_err() {
                            return;
                        }
                    }
                }
            }
        });
    }
    receiver
}

fn keep_last_words(errors: Option<impl Read + Send + 'static>) -> Arc<Mutex<VecDeque<String>>> {
    let kept = Arc::new(Mutex::new(VecDeque::with_capacity(LAST_WORDS)));
    if let Some(errors) = errors {
        let kept = Arc::clone(&kept);
        std::thread::spawn(move || {
            let mut errors = BufReader::new(errors);
            let mut line = Vec::new();
            loop {
                line.clear();
                match errors.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line) {
                    Ok(0) | Err(_) => return,
                    Ok(_) => {}
                }
                let text = String::from_utf8_lossy(&line).trim().to_owned();
                let Ok(mut kept) = kept.lock() else { return };
                if kept.len() == LAST_WORDS {
                    kept.pop_front();
                }
                kept.push_back(text);
            }
        });
    }
    kept
}
