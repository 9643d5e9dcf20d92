//! Blocks of Simulink, as far as they can run without it: their S-functions in Octave by the MEX gateway, with an object in place of
//! Simulink's, and their C as Simulink Coder would call it, by an expander of ours of the `.tlc`. Each writes to a program in C
//! and reads what it sends back. Nothing here is MathWorks'.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::{c_library, shell};

const HARNESS: &str = "crates/codegen/harness/simulink";
const WARNINGS: &str =
    "-std=c99 -O1 -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror -D_POSIX_C_SOURCE=200809L";
/// Pairs of blocks that the expanded model writes and reads.
const PAIRS: &str =
    "plant_writes_nested_there plant_reads_nested_back plant_writes_rare_there plant_reads_rare_back";
const TIME_LIMIT_S: u32 = 180;

/// True if Octave and its compiler of MEX functions are there; says so if they are not.
pub(super) fn has_octave() -> bool {
    let is_there = ["octave-cli", "mkoctfile"]
        .iter()
        .all(|program| shell::output(&format!("command -v {program}")).is_some());
    if !is_there {
        println!("skipped: octave-cli and mkoctfile are not installed; apt-get install octave-dev");
    }
    is_there
}

/// The words that run Octave without its windows and its user's settings.
pub(super) const OCTAVE: &str = "octave-cli --no-gui --no-init-file --no-history --quiet";

/// A line that builds a MEX function of sources and the installed library.
pub(super) fn mex(sources: &str, name: &str) -> String {
    let prefix = c_library::prefix();
    let prefix = prefix.display();
    format!(
        "CFLAGS='-std=c99 -O1 -fPIC -Wall -Wextra -Werror' mkoctfile --mex -I{prefix}/include {sources} {prefix}/lib/libnoctule.a -lpthread -ldl -lm -o {name}.mex"
    )
}

/// Builds all and lets it run in a network namespace of its own.
pub fn run() -> Result<(), String> {
    if !has_octave() {
        return Ok(());
    }
    c_library::install(&c_library::prefix())?;
    let (root, folder, prefix) = (shell::root(), folder(), c_library::prefix());
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let (harness, prefix) = (root.join(HARNESS), prefix.display());
    let harness = harness.display();
    let run = |line: &str| shell::run_in(&folder, line);
    run(&format!("{prefix}/bin/noctule-gen {harness}/topics.toml --out ."))?;
    let library = format!("{prefix}/lib/libnoctule.a -lpthread -ldl -lm");
    let include = format!("-I{prefix}/include");
    run(&format!("gcc {WARNINGS} {include} -Ic c/value_msgs.c {harness}/echo.c {library} -o echo"))?;
    let c = "simulink/plant_runtime.c simulink/value_msgs_ports.c";
    run(&format!("gcc {WARNINGS} {include} -fsyntax-only {c}"))?;
    run(&mex(&format!("simulink/plant_mex.c {c}"), "plant_mex"))?;
    run(&format!("python3 {harness}/expand_tlc.py simulink model {PAIRS}"))?;
    // As a model's makefile does: the sources that the .tlc names, and no others.
    run(&format!(
        "gcc {WARNINGS} {include} -Imodel -Isimulink model/model.c $(sed 's|.*|simulink/&.c|' model/sources.txt) {library} -o model/model"
    ))?;
    let meet = shell::myself_in_network_namespace("generated --simulink --meet")?;
    shell::run(&format!("timeout {TIME_LIMIT_S} {meet}"))
}

fn folder() -> PathBuf {
    shell::root().join("target/generated/simulink")
}

/// The blocks in Octave, then the expanded model, each with the program in C.
pub fn meet() -> Result<(), String> {
    let octave = shell::root().join(HARNESS).join("octave");
    let octave = octave.display();
    beside_echo(&format!("{OCTAVE} --path {octave} --path simulink --path . {octave}/blocks_main.m"))?;
    beside_echo("model/model")
}

/// Runs a line while the program in C runs; both must end without a fault.
fn beside_echo(line: &str) -> Result<(), String> {
    let mut echo = Command::new(folder().join("echo"));
    let mut echo = echo.stdin(Stdio::piped()).spawn().map_err(|e| format!("cannot start echo: {e}"))?;
    let result = shell::run_in(&folder(), line);
    // Ends its input, whereupon it ends by itself.
    drop(echo.stdin.take());
    let status = echo.wait().map_err(|e| format!("echo cannot be waited for: {e}"))?;
    result?;
    if status.success() { Ok(()) } else { Err(format!("the program in C ended with {status}")) }
}
