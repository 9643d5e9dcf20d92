//! The lab from the outside: the real command, real processes, real files.
//!
//! No figure of time is asserted: only counts, words and exit codes, which hold on any machine.

// A test that cannot set up its experiment has failed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod bad_input;
mod emulated_links;
mod faulty_peers;
mod foreign_clocks;
mod interruption;
mod recorded;
mod serial_lines;
mod topologies;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// A scenario in a directory of its own, and where its results go.
struct Experiment {
    directory: tempfile::TempDir,
}

impl Experiment {
    /// Writes `text` as a scenario.
    fn new(text: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("scenario.toml"), text).unwrap();
        Self { directory }
    }

    fn scenario(&self) -> PathBuf {
        self.directory.path().join("scenario.toml")
    }

    fn out(&self) -> PathBuf {
        self.directory.path().join("out")
    }

    /// Runs it and returns the exit code, `run.json` and standard error.
    fn run(&self) -> (i32, Value, String) {
        let scenario = self.scenario();
        let out = self.out();
        let output = noctule(&["lab", "run", text(&scenario), "--out", text(&out)]);
        let run = std::fs::read_to_string(out.join("run.json")).unwrap_or_default();
        let run = serde_json::from_str(&run).unwrap_or(Value::Null);
        (output.status.code().unwrap_or(-1), run, String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

/// The command under test, with the test peers beside the built-in ones.
fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_noctule"));
    let peers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../lab/tests/peers");
    command.args(arguments).env("NOCTULE_PEERS", peers);
    command
}

fn noctule(arguments: &[&str]) -> Output {
    command(arguments).output().unwrap()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// The only cell of a run.
fn only_cell(run: &Value) -> &Value {
    let cells = run["cells"].as_array().expect("run.json with cells");
    assert_eq!(cells.len(), 1, "{cells:?}");
    &cells[0]
}

/// The reasons why a cell is not valid, joined.
fn why(cell: &Value) -> String {
    let reasons = cell["why_invalid"].as_array().expect("reasons");
    reasons.iter().map(|reason| reason.as_str().unwrap_or_default()).collect::<Vec<_>>().join("; ")
}
