//! Compiling ahead: many steps wait for an emulator, a browser or a timer, and meanwhile what later steps need is compiled with the lowest
//! priority.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt as _;
use std::process::{ChildStdout, Stdio};
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};

use crate::{c_library, generated, programs, python, shell};

const LOG: &str = "target/ahead.log";

/// The process group of the builds.
static GROUP: OnceLock<u32> = OnceLock::new();

/// Whether each build that has ended was a success, in their order.
struct Progress {
    successes: Vec<bool>,
    has_ended: bool,
}

static PROGRESS: Mutex<Progress> = Mutex::new(Progress { successes: Vec::new(), has_ended: false });
static CHANGED: Condvar = Condvar::new();

/// The builds with optimisation, in the order in which the steps need them, and what a step builds that needs one of them.
fn builds() -> [(String, Vec<&'static str>); 2] {
    let [library, generator] = c_library::BUILDS;
    let steps = vec![library, generator, generated::BUILD_EXAMPLES, programs::BUILD_RELEASE];
    // The wheel's tools come by setup, which begins beside the first.
    [(together(&steps), steps), (python::BUILD.to_owned(), vec![python::BUILD])]
}

/// One line for all that these lines build. Packages that are built together have the features of all, so that each is compiled once; the command
/// alone, the workspace's default member, has the same.
fn together(lines: &[&str]) -> String {
    let packages = lines
        .iter()
        .flat_map(|line| line.split(' '))
        .filter(|word| !["cargo", "build", "--release", "--locked"].contains(word));
    let packages: Vec<&str> = packages.collect();
    format!("cargo build --release --locked --package noctule-cli {}", packages.join(" "))
}

/// Starts the builds and returns. What fails here runs again in the step that needs it, and is shown there.
pub fn start() -> Result<(), String> {
    // Each line of the output is the exit code of a build.
    let lines: String = builds().iter().map(|(line, _)| format!("({line}) >&2; echo $?; ")).collect();
    let log = shell::root().join(LOG);
    let log = File::create(&log).map_err(|error| format!("{}: {error}", log.display()))?;
    println!("what later steps need is compiled meanwhile; {LOG} has its output");
    // A group of its own, so that its priority can be raised; it ends with this program all the same.
    let mut command = shell::without_variables_of_cargo("setpriv");
    command.args(["--pdeathsig", "TERM", "nice", "-n", "19", "bash", "-c"]);
    command
        .arg(format!("trap 'trap - TERM; kill 0' TERM; {{ {lines} }} & wait"))
        .current_dir(shell::root())
        .process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
    // Not waited for: the last step that needs a build ends after it.
    let mut child = command.spawn().map_err(|error| format!("cannot start setpriv: {error}"))?;
    let codes = child.stdout.take().ok_or("setpriv has no standard output")?;
    std::thread::spawn(move || follow(codes));
    let _ = GROUP.set(child.id());
    Ok(())
}

/// Notes the exit codes as they come.
fn follow(codes: ChildStdout) {
    let change = |change: &dyn Fn(&mut Progress)| {
        change(&mut PROGRESS.lock().unwrap_or_else(PoisonError::into_inner));
        CHANGED.notify_all();
    };
    for code in BufReader::new(codes).lines().map_while(Result::ok) {
        change(&|progress| progress.successes.push(code == "0"));
    }
    change(&|progress| progress.has_ended = true);
}

/// Builds with this command line. If that is done ahead, this waits for it, and not for Cargo's lock, which the builds behind it take.
pub fn build(line: &str) -> Result<(), String> {
    let place =
        builds().iter().position(|(_, steps)| steps.contains(&line)).filter(|_| GROUP.get().is_some());
    let Some(place) = place else { return shell::run(line) };
    let progress = PROGRESS.lock().unwrap_or_else(PoisonError::into_inner);
    let is_open = |progress: &mut Progress| progress.successes.len() <= place && !progress.has_ended;
    let progress = CHANGED.wait_while(progress, is_open).unwrap_or_else(PoisonError::into_inner);
    let is_done = progress.successes.get(place) == Some(&true);
    drop(progress);
    if is_done {
        println!("$ {line} # done ahead");
        return Ok(());
    }
    shell::run(line)
}

/// From here on steps wait for the builds, which other programs of this machine must not starve.
pub fn raise() -> Result<(), String> {
    if let Some(group) = GROUP.get() {
        // It may have ended.
        if shell::output(&format!("renice -n 0 -g {group}")).is_none() {
            println!("what compiles ahead has ended, or keeps the lowest priority: to raise it takes root");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steps_build_for_release_is_one_line() {
        let [(line, steps), _] = builds();
        assert_eq!(
            line,
            "cargo build --release --locked --package noctule-cli --package noctule-ffi --package noctule-codegen \
             --features noctule-codegen/command --package noctule-generated-example --package noctule-surgical-robot"
        );
        assert!(steps.contains(&programs::BUILD_RELEASE), "{steps:?}");
    }
}
