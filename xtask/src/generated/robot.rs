//! `examples/surgical_robot`: 240 topics between six generated programs in Rust, C, C++, Python and blocks of Simulink, which run in
//! Octave with an object in place of Simulink's. Every topic must flow, and
//! `noctule top` and `noctule view` must show all with their ages.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use super::page;
use super::simulink::{OCTAVE, has_octave, mex};
use crate::{c_library, python, shell};

const TOPICS: usize = 240;
/// Those that read something, and how many topics each.
const READERS: [(&str, usize); 5] =
    [("drives", 48), ("controller", 54), ("supervisor", 122), ("console", 42), ("cart", 4)];
const PROGRAMS: [&str; 6] = ["drives", "controller", "supervisor", "facility", "console", "cart"];
/// For all of it; discovery takes a second.
const TIME_LIMIT_S: u32 = 180;
/// How long `noctule top` watches.
const WATCH_S: u32 = 10;

/// Builds the programs and lets them run where nobody else is.
pub fn run() -> Result<(), String> {
    if !has_octave() {
        return Ok(());
    }
    shell::run("cargo build --release --locked --package noctule-surgical-robot --package noctule-cli")?;
    python::install()?;
    c_library::install(&c_library::prefix())?;
    let (root, folder, prefix) = (shell::root(), folder(), c_library::prefix());
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let example = root.join("examples/surgical_robot");
    let (example, prefix) = (example.display(), prefix.display());
    let run = |line: &str| shell::run_in(&folder, line);
    run(&format!("{prefix}/bin/noctule-gen {example}/topics.toml --templates {example}/templates --out ."))?;
    let library = format!("{prefix}/lib/libnoctule.a -lpthread -ldl -lm");
    let warnings = "-Wall -Wextra -Wpedantic -Wconversion -Werror -D_POSIX_C_SOURCE=200809L";
    run(&format!(
        "gcc -std=c99 {warnings} -I{prefix}/include -Ic c/surgical_msgs.c c/main_drives.c {library} -o drives"
    ))?;
    run(&format!(
        "g++ -std=c++17 {warnings} -I{prefix}/include -Icpp cpp/main_supervisor.cpp {library} -o supervisor"
    ))?;
    let c = "simulink/cart_mex.c simulink/cart_runtime.c simulink/surgical_msgs_ports.c";
    run(&mex(c, "cart_mex"))?;
    let me = std::env::current_exe().map_err(|e| format!("xtask does not find itself: {e}"))?;
    shell::run(&format!(
        "timeout {TIME_LIMIT_S} unshare --net bash -c 'ip link set lo up && exec {} generated --robot --meet'",
        me.display()
    ))
}

fn folder() -> PathBuf {
    shell::root().join("target/generated/robot")
}

/// Starts all programs, waits until each has read all its topics, and looks at the whole.
pub fn meet() -> Result<(), String> {
    let mut running = Running(Vec::new());
    for program in PROGRAMS {
        running.start(program)?;
    }
    for (program, topics) in READERS {
        running.complete(program, topics)?;
    }
    println!("every topic has brought each of its readers three samples of known age");
    let line = format!("target/release/noctule top --json --seconds {WATCH_S}");
    let json = shell::output(&line).ok_or_else(|| format!("`{line}` failed"))?;
    let table = table(&json)?;
    let path = folder().join("top.txt");
    fs::write(&path, table).map_err(|e| format!("{}: {e}", path.display()))?;
    page::look(TOPICS)?;
    running.end()?;
    println!("{TOPICS} topics with their ages: {}", path.display());
    Ok(())
}

/// What `noctule top` saw, a line for each topic; an error unless all are there with an age.
fn table(json: &str) -> Result<String, String> {
    let seen: Value = serde_json::from_str(json).map_err(|e| format!("noctule top printed no JSON: {e}"))?;
    let rows = seen["topics"].as_array().ok_or("noctule top printed no topics")?;
    let mut text = String::from("topic | type | rate Hz | received | missed | greatest age us\n");
    let mut aged = 0;
    for row in rows {
        let age_us = row["age_ns"]["max"].as_f64().map(|age| age / 1e3);
        aged += usize::from(age_us.is_some());
        let word = |key: &str| row[key].as_str().unwrap_or("-").to_owned();
        let count = |key: &str| row[key].as_u64().unwrap_or(0);
        text += &format!(
            "{} | {} | {:.1} | {} | {} | {}\n",
            word("topic"),
            word("type"),
            row["rate_hz"].as_f64().unwrap_or(0.0),
            count("received"),
            count("missed"),
            age_us.map_or("unknown".to_owned(), |age| format!("{age:.0}")),
        );
    }
    if (rows.len(), aged) != (TOPICS, TOPICS) {
        return Err(format!(
            "noctule top shows {} topics, {aged} of them with an age; {TOPICS} are there",
            rows.len()
        ));
    }
    Ok(text)
}

/// Programs that end with this.
struct Running(Vec<(&'static str, Child)>);

impl Running {
    fn start(&mut self, program: &'static str) -> Result<(), String> {
        let root = shell::root();
        let mut command = match program {
            "controller" => Command::new(root.join("target/release/controller")),
            "facility" | "console" => {
                let mut command = Command::new(root.join(".venv/bin/python"));
                command.arg(format!("python/main_{program}.py")).env("PYTHONPATH", "python");
                command
            }
            "cart" => {
                let objects = root.join("crates/codegen/harness/simulink/octave");
                // Octave does not see the end of its input while it computes: a file says it.
                let line = format!(
                    "rm -f cart.ended; {OCTAVE} --path {} --path simulink --path . simulink/main_cart.m & cat > cart.ended.new; mv cart.ended.new cart.ended; wait $!",
                    objects.display()
                );
                let mut command = Command::new("bash");
                command.args(["-c", &line]);
                command
            }
            _ => Command::new(folder().join(program)),
        };
        let child = command.current_dir(folder()).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        self.0.push((program, child.map_err(|e| format!("cannot start {program}: {e}"))?));
        Ok(())
    }

    /// Waits for the line of a program that has read all its topics.
    fn complete(&mut self, program: &str, topics: usize) -> Result<(), String> {
        let output = self.0.iter_mut().find(|(name, _)| *name == program);
        let output = output.and_then(|(_, child)| child.stdout.as_mut());
        let mut output = BufReader::new(output.ok_or("a program has no standard output")?);
        let mut line = String::new();
        output.read_line(&mut line).map_err(|e| format!("{program} cannot be read: {e}"))?;
        if !line.starts_with(&format!("complete {topics} ")) {
            return Err(format!("{program} printed {line:?} instead of \"complete {topics}\""));
        }
        println!("{program}: {}", line.trim());
        Ok(())
    }

    /// Ends their input, whereupon they end by themselves, and without a fault.
    fn end(&mut self) -> Result<(), String> {
        for (program, child) in &mut self.0 {
            drop(child.stdin.take());
            if let Some(output) = &mut child.stdout {
                let _ = output.read_to_end(&mut Vec::new());
            }
            let status = child.wait().map_err(|e| format!("{program} cannot be waited for: {e}"))?;
            if !status.success() {
                return Err(format!("{program} ended with {status}"));
            }
        }
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        for (_, child) in &mut self.0 {
            // It may have ended.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_that_is_missing_or_has_no_age_is_found() {
        let rows = |count: usize, age: &str| {
            let row = format!("{{\"topic\": \"/a\", \"type\": \"t\", \"age_ns\": {{\"max\": {age}}}}}");
            format!("{{\"topics\": [{}]}}", vec![row; count].join(","))
        };
        assert_eq!(table(&rows(TOPICS, "1500")).unwrap().lines().count(), TOPICS + 1);
        assert!(table(&rows(TOPICS - 1, "1500")).is_err());
        assert!(table(&rows(TOPICS, "null")).unwrap_err().contains("0 of them"));
        assert!(table("").is_err());
    }
}
