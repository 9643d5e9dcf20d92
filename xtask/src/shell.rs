//! Running other programs, said aloud.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The checkout's root.
pub fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest).to_owned()
}

/// Runs a command line in the root, shown first; `Err` names it if it fails.
pub fn run(line: &str) -> Result<(), String> {
    run_in(&root(), line)
}

/// As [`run`], in another directory.
pub fn run_in(directory: &Path, line: &str) -> Result<(), String> {
    println!("$ {line}");
    let status = shell(directory, line).status().map_err(|e| format!("cannot start `{line}`: {e}"))?;
    if status.success() { Ok(()) } else { Err(format!("`{line}` failed ({status})")) }
}

/// Runs quietly and returns standard output, or `None` if it failed.
pub fn output(line: &str) -> Option<String> {
    let output = shell(&root(), line).stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn shell(directory: &Path, line: &str) -> Command {
    let mut command = Command::new("bash");
    command.args(["-euo", "pipefail", "-c", line]).current_dir(directory).stdin(Stdio::null());
    command
}
