//! `examples/surgical_robot`: 240 topics between seven generated programs in Rust, C, C++ and Python, on a microcontroller in QEMU behind
//! `noctule gateway`, and of blocks of Simulink, which run in Octave with an object in place of Simulink's. Every topic must flow, and `noctule top` and
//! `noctule view` must show all with their ages. Where Octave or QEMU is not installed, a program in C takes the place of theirs.

use std::fs;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use super::page;
use super::simulink::{OCTAVE, has_octave, mex};
use crate::{ahead, c_library, microcontroller, programs, python, shell};

const TOPICS: usize = 240;
/// Those that read something, and how many topics each.
const READERS: [(&str, usize); 6] =
    [("drives", 48), ("controller", 54), ("supervisor", 122), ("console", 42), ("cart", 4), ("ups", 2)];
const PROGRAMS: [&str; 7] = ["drives", "controller", "supervisor", "facility", "console", "cart", "ups"];
/// In `topics.toml`, the cart and the board as they are, and as they are where their tools are missing.
const CART: (&str, &str) = ("cart = { language = \"simulink\" }", "cart = { language = \"c\" }");
const BOARD: (&str, &str) =
    ("ups = { language = \"mcu\", line = \"serial:115200\" }", "ups = { language = \"c\" }");
/// For all of it; discovery takes a second.
const TIME_LIMIT_S: u32 = 180;
/// How long `noctule top` watches.
const WATCH_S: u32 = 10;

/// Builds the programs and lets them run in a network namespace of their own.
pub fn run() -> Result<(), String> {
    // Both as other steps of `test` build them, so that nothing is compiled for this one alone.
    ahead::build(super::BUILD_EXAMPLES)?;
    ahead::build(programs::BUILD_RELEASE)?;
    python::install()?;
    c_library::install(&c_library::prefix())?;
    let (folder, prefix) = (folder(), c_library::prefix());
    // Of the last run, in which other tools may have been there.
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let (is_octave, is_qemu) = (has_octave(), microcontroller::has_qemu());
    generate(is_octave, is_qemu)?;
    let prefix = prefix.display();
    let run = |line: &str| shell::run_in(&folder, line);
    let library = format!("{prefix}/lib/libnoctule.a -lpthread -ldl -lm");
    let warnings = "-Wall -Wextra -Wpedantic -Wconversion -Werror -D_POSIX_C_SOURCE=200809L";
    let in_c = [("drives", true), ("cart", !is_octave), ("ups", !is_qemu)];
    for (program, _) in in_c.into_iter().filter(|(_, is_c)| *is_c) {
        run(&format!(
            "gcc -std=c99 {warnings} -I{prefix}/include -Ic c/surgical_msgs.c c/main_{program}.c {library} -o {program}"
        ))?;
    }
    run(&format!(
        "g++ -std=c++17 {warnings} -I{prefix}/include -Icpp cpp/main_supervisor.cpp {library} -o supervisor"
    ))?;
    if is_octave {
        run(&mex("simulink/cart_mex.c simulink/cart_runtime.c simulink/surgical_msgs_ports.c", "cart_mex"))?;
    }
    if is_qemu {
        microcontroller::build_bare(
            &format!("-I{0}/c {0}/c/surgical_msgs.c {0}/c/main_ups.c c/noctule_client.c", folder.display()),
            &folder.join("ups.elf").display().to_string(),
        )?;
    }
    let meet = shell::myself_in_network_namespace("generated --robot --meet")?;
    shell::run(&format!("timeout {TIME_LIMIT_S} {meet}"))
}

/// Generates the programs, with one in C in place of each whose tools are missing.
fn generate(is_octave: bool, is_qemu: bool) -> Result<(), String> {
    let (example, folder) = (shell::root().join("examples/surgical_robot"), folder());
    let path = example.join("topics.toml");
    let mut text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    for (is_there, (usual, instead)) in [(is_octave, CART), (is_qemu, BOARD)] {
        if !text.contains(usual) {
            return Err(format!("{} has no line `{usual}`", path.display()));
        }
        text = if is_there { text } else { text.replace(usual, instead) };
    }
    let topics = folder.join("topics.toml");
    fs::write(&topics, text).map_err(|e| format!("{}: {e}", topics.display()))?;
    let (example, prefix) = (example.display(), c_library::prefix());
    shell::run_in(
        &folder,
        &format!(
            "cp -r {example}/msg . && {}/bin/noctule-gen topics.toml --templates {example}/templates --out .",
            prefix.display()
        ),
    )
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

/// Table of the topics in the output of `noctule top`; an error unless all are there with an age.
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
            "cart" if !folder().join("cart").exists() => {
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
            "ups" if folder().join("ups.elf").exists() => return self.start_board(),
            _ => Command::new(folder().join(program)),
        };
        let child = command.current_dir(folder()).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        self.0.push((program, child.map_err(|e| format!("cannot start {program}: {e}"))?));
        Ok(())
    }

    /// Starts the board in QEMU and the gateway on its line.
    fn start_board(&mut self) -> Result<(), String> {
        let mut command = Command::new("bash");
        command.args(["-c", &format!("exec {}", microcontroller::qemu_on_pty("ups.elf"))]);
        let qemu = command.current_dir(folder()).stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        self.0.push(("ups", qemu.map_err(|e| format!("cannot start QEMU: {e}"))?));
        let line = self.line_of("ups")?;
        // char device redirected to /dev/pts/7 (label line)
        let device = line.split(' ').find(|word| word.starts_with("/dev/"));
        let device = device.ok_or_else(|| format!("QEMU printed {line:?} and no device"))?;
        let mut command = Command::new(shell::root().join("target/release/noctule"));
        command.args(["gateway", "--serial", &format!("{device}:115200"), "--types", "topics.toml"]);
        let gateway = command.current_dir(folder()).stdin(Stdio::null()).stdout(Stdio::null()).spawn();
        self.0.push(("gateway", gateway.map_err(|e| format!("cannot start the gateway: {e}"))?));
        Ok(())
    }

    /// The next line of a program.
    fn line_of(&mut self, program: &str) -> Result<String, String> {
        let output = self.0.iter_mut().find(|(name, _)| *name == program);
        let output = output.and_then(|(_, child)| child.stdout.as_mut());
        let output = output.ok_or("a program has no standard output")?;
        // Byte by byte: what follows the line stays there.
        let mut line = Vec::new();
        let mut byte = [0];
        while line.last() != Some(&b'\n') {
            match output.read(&mut byte).map_err(|e| format!("{program} cannot be read: {e}"))? {
                0 => break,
                _ => line.push(byte[0]),
            }
        }
        Ok(String::from_utf8_lossy(&line).into_owned())
    }

    /// Waits for the line of a program that has read all its topics.
    fn complete(&mut self, program: &str, topics: usize) -> Result<(), String> {
        let line = self.line_of(program)?;
        if !line.starts_with(&format!("complete {topics} ")) {
            return Err(format!("{program} printed {line:?} instead of \"complete {topics}\""));
        }
        println!("{program}: {}", line.trim());
        Ok(())
    }

    /// Ends their input, whereupon they end by themselves, and without a fault.
    fn end(&mut self) -> Result<(), String> {
        for (program, child) in &mut self.0 {
            if ["gateway", "ups"].contains(program) && folder().join("ups.elf").exists() {
                // They have no input, and run until they are ended.
                let _ = child.kill();
                let _ = child.wait();
                continue;
            }
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
