//! All tests of the workspace: compiled together, then run two programs at a time, for many of them wait for sockets and timers.

use std::path::Path;

use serde_json::Value;

use crate::{lanes, shell};

/// Without examples: [`programs`](crate::programs) builds those that run.
const COMPILE: &str = "cargo test --workspace --lib --bins --tests --no-run";
/// A program that runs longer hangs: it is ended, and fails with the tests that it was at. Four times the longest beside two builds.
const LONGEST_S: u32 = 600;
/// Domains and ports of other tests, and of other checkouts, are in other networks; a number that a pseudo-terminal has had is not given to
/// one of another test.
const APART: &str = "ip link set lo up \
     && mount -t devpts -o newinstance,ptmxmode=0666,mode=0620 devpts /dev/pts \
     && mount --bind /dev/pts/ptmx /dev/ptmx";

/// Compiles and runs all tests, those of documentation last. A failure of one program does not hide those of the others.
pub fn run() -> Result<(), String> {
    shell::run(COMPILE)?;
    let listed = shell::output(&format!("{COMPILE} --quiet --message-format=json"));
    let programs = programs(&listed.ok_or_else(|| format!("`{COMPILE}` does not say what it compiled"))?);
    if programs.is_empty() {
        return Err(format!("`{COMPILE}` compiled no test"));
    }
    let is_root = shell::output("id -u").is_some_and(|id| id == "0");
    let tests = lanes::side_by_side(&programs, |program| {
        let folder = program.manifest.parent().unwrap_or(Path::new("."));
        // As Cargo would: a test may look for its files.
        let line = format!(
            "CARGO_MANIFEST_DIR='{}' timeout --kill-after=10 {LONGEST_S} '{}'",
            folder.display(),
            program.executable
        );
        let line =
            if is_root { format!("unshare --net --mount bash -c \"{APART} && {line}\"") } else { line };
        shell::run_whole(folder, &line)
    });
    let documentation = shell::run("cargo test --workspace --doc --quiet");
    tests.and(documentation)
}

/// A program of tests.
struct Program {
    executable: String,
    manifest: std::path::PathBuf,
}

/// Those in Cargo's messages, which are JSON, one a line.
fn programs(messages: &str) -> Vec<Program> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    messages
        .filter(|message| message["profile"]["test"] == true)
        .filter_map(|message| {
            let executable = message["executable"].as_str()?.to_owned();
            Some(Program { executable, manifest: message["manifest_path"].as_str()?.into() })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_compiled_as_a_test_is_run_and_nothing_else() {
        let messages = r#"
{"reason":"compiler-artifact","manifest_path":"/a/Cargo.toml","profile":{"test":true},"executable":"/t/a-1"}
{"reason":"compiler-artifact","manifest_path":"/b/Cargo.toml","profile":{"test":false},"executable":"/t/b"}
{"reason":"compiler-artifact","manifest_path":"/c/Cargo.toml","profile":{"test":true},"executable":null}
{"reason":"build-finished","success":true}"#;
        let found = programs(messages);
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].executable.as_str(), found[0].manifest.as_path()),
            ("/t/a-1", Path::new("/a/Cargo.toml"))
        );
    }
}
