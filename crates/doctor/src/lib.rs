//! Finds settings of this machine that spoil latency; each finding has the reason and the command that mends it.
//!
//! Every check reads files under a root that tests replace. A check that cannot tell says so: an
//! absent file is not a good result.

mod checks;
mod multicast_rate;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Serialize;

/// How a finding is to be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// No fault.
    Good,
    /// Costs latency or trust in some cases; nothing to mend by a command, or a matter of taste.
    Note,
    /// Costs latency; the remedy says what to do.
    Bad,
    /// Could not be found out.
    Unknown,
}

/// Result of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Name of the check, as in the fingerprint.
    pub check: &'static str,
    /// Verdict on the value found.
    pub state: State,
    /// The value found.
    pub found: String,
    /// Why it matters for latency.
    pub why: &'static str,
    /// The command that mends it, if one does.
    pub remedy: Option<String>,
}

/// Examines this machine.
pub fn examine() -> Vec<Finding> {
    checks::all(&Machine { root: PathBuf::from("/") })
}

/// The findings as they go into every `run.json`: check → `state: found`.
pub fn fingerprint(findings: &[Finding]) -> BTreeMap<String, String> {
    let entry = |finding: &Finding| {
        (finding.check.to_owned(), format!("{}: {}", finding.state.word(), finding.found))
    };
    findings.iter().map(entry).collect()
}

/// The findings for a terminal, the worst first.
pub fn render(findings: &[Finding]) -> String {
    let mut text = String::new();
    for state in [State::Bad, State::Note, State::Unknown, State::Good] {
        for finding in findings.iter().filter(|finding| finding.state == state) {
            text += &format!("{:<8} {:<18} {}\n", state.word(), finding.check, finding.found);
            if state != State::Good {
                text += &format!("{:<27} why: {}\n", "", finding.why);
            }
            if let Some(remedy) = &finding.remedy {
                text += &format!("{:<27} fix: {remedy}\n", "");
            }
        }
    }
    text
}

impl State {
    fn word(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Note => "note",
            Self::Bad => "BAD",
            Self::Unknown => "unknown",
        }
    }
}

/// The files of a machine.
struct Machine {
    root: PathBuf,
}

impl Machine {
    fn path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// A file's text without surrounding white space.
    fn text(&self, path: &str) -> Option<String> {
        let text = std::fs::read_to_string(self.path(path)).ok()?;
        Some(text.trim().to_owned())
    }

    fn number(&self, path: &str) -> Option<i64> {
        self.text(path)?.parse().ok()
    }

    /// Names in a directory, sorted; none if it is absent.
    fn names(&self, path: &str) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.path(path)) else { return Vec::new() };
        let mut names: Vec<String> =
            entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    fn exists(&self, path: &str) -> bool {
        Path::new(&self.path(path)).exists()
    }
}
