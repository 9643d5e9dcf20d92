//! One recorder, its publisher, and its end.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use noctule::{Node, NodeError, PublishError, Publisher};
use noctule_proto_kit::SplitMix64;
use noctule_record::file::FileError;
use noctule_sys::clock::{now_ns, realtime_ns, sleep_until};

use crate::judge;

const PERIOD_NS: i64 = 2_000_000;
/// One large sample for so many small ones.
const LARGE_EVERY: u64 = 25;
const SMALL_BYTES: usize = 200;
/// Of the large ones: chunks of the second kind are written past the page cache.
const LARGE_BYTES: [usize; 2] = [60_000, 300_000];
/// The latest end after the start of the recorder.
const END_MAX_NS: u64 = 3_000_000_000;
/// Domains of trials, so that those at once do not meet.
const DOMAINS: u64 = 400;

/// Parameters of a trial, drawn from its seed.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) number: u64,
    pub(crate) domain: u32,
    /// From the start of the recorder to its end.
    pub(crate) end_ns: i64,
    /// Options of the recorder.
    pub(crate) options: Vec<&'static str>,
    pub(crate) folder: PathBuf,
    large_bytes: usize,
}

impl Plan {
    pub(crate) fn draw(seed: u64, number: u64, scratch: &Path) -> Plan {
        let drawn = SplitMix64::new(seed.wrapping_mul(1_000_003).wrapping_add(number)).bits();
        let options: &[&str] = match drawn >> 60 {
            0..=3 => &["--compression", "lz4"],
            4..=7 => &["--split-seconds", "0.5"],
            _ => &[],
        };
        Plan {
            number,
            domain: 4_100 + (number % DOMAINS) as u32,
            end_ns: (drawn % END_MAX_NS) as i64,
            options: options.to_vec(),
            folder: scratch.join(number.to_string()),
            large_bytes: LARGE_BYTES[(drawn >> 59 & 1) as usize],
        }
    }
}

/// Result of a trial.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    pub(crate) files: usize,
    pub(crate) messages: u64,
    /// From the last sample that is there, or from the recorder's first match, to the end; `None` if it never matched.
    pub(crate) lost_ns: Option<u64>,
}

/// Why a trial shows nothing, or a file that is not as it should be.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TrialError {
    #[error(transparent)]
    System(#[from] std::io::Error),
    #[error(transparent)]
    Node(#[from] NodeError),
    #[error(transparent)]
    Publish(#[from] PublishError),
    #[error(transparent)]
    Counts(#[from] serde_json::Error),
    #[error("{program}: {cause}")]
    Start { program: PathBuf, cause: std::io::Error },
    #[error("{line}: {errors}")]
    Shell { line: String, errors: String },
    #[error("{path}: {cause}")]
    File { path: PathBuf, cause: FileError },
}

/// A recorder that runs beside its publishers.
pub(crate) struct Trial {
    small: Publisher,
    large: Publisher,
    /// Keeps the publishers' node.
    _node: Node,
    recorder: Child,
    large_bytes: usize,
    published: u64,
    /// When the recorder's reader was first seen, ns since 1970.
    matched_ns: Option<u64>,
}

impl Trial {
    pub(crate) fn start(program: &Path, plan: &Plan, file: &Path) -> Result<Trial, TrialError> {
        let node = Node::builder("talker").domain(plan.domain).keep_notices().open()?;
        let open = |topic: &str, bytes: usize| {
            node.publisher(topic).keep_last(64).payload_bytes_max(bytes as u32).open()
        };
        let (small, large) = (open("/small", SMALL_BYTES)?, open("/large", plan.large_bytes)?);
        let domain = plan.domain.to_string();
        let recorder = Command::new(program)
            .args(["record", "--interface", "127.0.0.1", "--domain", &domain, "--out"])
            .arg(file)
            .args(&plan.options)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|cause| TrialError::Start { program: program.to_owned(), cause })?;
        let large_bytes = plan.large_bytes;
        Ok(Trial { small, large, _node: node, recorder, large_bytes, published: 0, matched_ns: None })
    }

    /// Publishes until `end_ns` of the monotonic clock.
    pub(crate) fn publish_until(&mut self, end_ns: i64) -> Result<(), TrialError> {
        let mut due_ns = now_ns();
        let (mut small, mut large) = ([0; SMALL_BYTES], vec![0; self.large_bytes]);
        while due_ns < end_ns {
            sleep_until(due_ns);
            // Late sends are not made up for: bursts would be missed.
            due_ns = (due_ns + PERIOD_NS).max(now_ns());
            if self.matched_ns.is_none() && self.small.readers() > 0 {
                self.matched_ns = Some(wall_ns());
            }
            small[..8].copy_from_slice(&self.published.to_le_bytes());
            self.small.publish(&small)?;
            if self.published.is_multiple_of(LARGE_EVERY) {
                large[..8].copy_from_slice(&(self.published / LARGE_EVERY).to_le_bytes());
                self.large.publish(&large)?;
            }
            self.published += 1;
        }
        sleep_until(end_ns);
        Ok(())
    }

    pub(crate) fn recorder(&self) -> u32 {
        self.recorder.id()
    }

    /// Kills the recorder; returns when the recorder was first matched.
    pub(crate) fn kill(mut self) -> Option<u64> {
        // A recorder that ended by itself is found by its files.
        let _ = self.recorder.kill();
        let _ = self.recorder.wait();
        self.matched_ns
    }
}

pub(crate) fn wall_ns() -> u64 {
    u64::try_from(realtime_ns()).unwrap_or(0)
}

/// Runs a trial that ends by a kill.
pub(crate) fn run(program: &Path, plan: &Plan, keep: Option<&PathBuf>) -> Result<Outcome, TrialError> {
    std::fs::create_dir_all(&plan.folder)?;
    let start_ns = now_ns();
    let mut trial = Trial::start(program, plan, &plan.folder.join("a.mcap"))?;
    trial.publish_until(start_ns + plan.end_ns)?;
    let killed_ns = wall_ns();
    let matched_ns = trial.kill();
    judge::judge(&plan.folder, killed_ns, matched_ns, keep.map(|folder| (folder.as_path(), plan.number)))
}
