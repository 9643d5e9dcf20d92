//! Runs other programs and prints their command lines.

use std::io::{BufRead, BufReader, IsTerminal, PipeReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::Duration;

use crate::excerpt::Excerpt;

/// How long after a command's end its output may still come; what it left running in the background keeps the pipe open.
const OUTPUT_AFTER_THE_END: Duration = Duration::from_secs(1);

/// Last line of the commands whose output is not the terminal's.
static LAST_LINE: Mutex<String> = Mutex::new(String::new());

/// The checkout's root.
pub fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest).to_owned()
}

/// Runs a command line in the root, shown first; `Err` names it if it fails.
pub fn run(line: &str) -> Result<(), String> {
    run_in(&root(), line)
}

/// A command line that runs `line` in a network namespace of its own, which has loopback alone; `line` has no apostrophe.
pub fn in_network_namespace(line: &str) -> String {
    format!("unshare --net bash -c 'ip link set lo up && exec {line}'")
}

/// As [`in_network_namespace`], for this program with other words.
pub fn myself_in_network_namespace(words: &str) -> Result<String, String> {
    let me = std::env::current_exe().map_err(|error| format!("xtask does not find itself: {error}"))?;
    Ok(in_network_namespace(&format!("{} {words}", me.display())))
}

/// As [`run`], in another directory. Where the output goes to a log, the error repeats the lines with the cause.
pub fn run_in(directory: &Path, line: &str) -> Result<(), String> {
    println!("$ {line}");
    if !std::io::stdout().is_terminal() {
        return run_logged(directory, line);
    }
    let status =
        shell(directory, line).status().map_err(|error| format!("cannot start `{line}`: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("`{line}` failed ({status})")) }
}

/// Passes the output on through this program, which reads it.
pub fn run_logged(directory: &Path, line: &str) -> Result<(), String> {
    run_piped(directory, line, pass_on)
}

/// As [`run_in`], of a command that runs beside another: its output is printed at its end, in one piece.
pub fn run_whole(directory: &Path, line: &str) -> Result<(), String> {
    run_piped(directory, line, |reader| print_whole(line, reader))
}

fn run_piped(
    directory: &Path,
    line: &str,
    read: impl FnOnce(PipeReader) -> mpsc::Receiver<String>,
) -> Result<(), String> {
    let cannot = |error: std::io::Error| format!("cannot start `{line}`: {error}");
    let mut command = shell(directory, line);
    let (reader, writer) = std::io::pipe().map_err(cannot)?;
    command.stdout(writer.try_clone().map_err(cannot)?).stderr(writer);
    let mut child = command.spawn().map_err(cannot)?;
    // The command holds this process's ends of the pipe.
    drop(command);
    let lines = read(reader);
    let status = child.wait().map_err(cannot)?;
    let excerpt = lines.recv_timeout(OUTPUT_AFTER_THE_END).unwrap_or_default();
    if status.success() { Ok(()) } else { Err(format!("`{line}` failed ({status}){excerpt}")) }
}

/// The last line that a command has printed since the last call, or where its lines are.
pub fn take_last_line() -> String {
    let line = std::mem::take(&mut *LAST_LINE.lock().unwrap_or_else(PoisonError::into_inner));
    if line.is_empty() { "see above".to_owned() } else { line }
}

/// Prints what comes out of the pipe, and sends the excerpt of it at its end.
fn pass_on(reader: PipeReader) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut excerpt = Excerpt::default();
        for line in BufReader::new(reader).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line);
            println!("{line}");
            excerpt.handle_line(&line);
            *LAST_LINE.lock().unwrap_or_else(PoisonError::into_inner) = line.into_owned();
        }
        let _ = sender.send(excerpt.text());
    });
    receiver
}

/// Collects what comes out of the pipe, prints it at its end, and sends the excerpt of it.
fn print_whole(line: &str, reader: PipeReader) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    let mut whole = format!("$ {line}\n");
    let name = line.rsplit('/').next().unwrap_or(line).trim_end_matches('\'').to_owned();
    std::thread::spawn(move || {
        let mut excerpt = Excerpt::default();
        for line in BufReader::new(reader).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line);
            excerpt.handle_line(&line);
            whole += &line;
            whole.push('\n');
            *LAST_LINE.lock().unwrap_or_else(PoisonError::into_inner) = format!("{name}: {line}");
        }
        print!("{whole}");
        let _ = sender.send(excerpt.text());
    });
    receiver
}

/// Runs quietly and returns standard output, or `None` if it failed.
pub fn output(line: &str) -> Option<String> {
    let output = shell(&root(), line).stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn shell(directory: &Path, line: &str) -> Command {
    let mut command = without_variables_of_cargo("bash");
    command.args(["-euo", "pipefail", "-c", line]).current_dir(directory).stdin(Stdio::null());
    command
}

/// A command that lacks the variables that `cargo run` sets about this package. Build scripts of other packages name some of them
/// (`ring` has `rerun-if-env-changed=CARGO_MANIFEST_DIR`), so that a package that this program has compiled would be compiled anew by
/// each `cargo build` of the command line, and again by the next step.
pub fn without_variables_of_cargo(program: &str) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(is_of_the_package) {
            command.env_remove(&name);
        }
    }
    command
}

/// [Environment variables Cargo sets](https://doc.rust-lang.org/cargo/reference/environment-variables.html).
fn is_of_the_package(name: &str) -> bool {
    name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
}

#[cfg(test)]
mod tests {
    use super::{output, without_variables_of_cargo};

    #[test]
    fn commands_do_not_see_variables_of_this_package() {
        assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some(), "`cargo test` sets it");
        assert_eq!(output("env | grep -cE '^CARGO_(PKG|MANIFEST)_' || true").as_deref(), Some("0"));
        let environment = without_variables_of_cargo("env").output().map(|output| output.stdout);
        let environment = String::from_utf8(environment.unwrap_or_default()).unwrap_or_default();
        assert!(environment.contains("PATH=") && !environment.contains("CARGO_PKG_NAME="), "{environment}");
    }
}
