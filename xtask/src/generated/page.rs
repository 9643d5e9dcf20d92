//! The topics of a running robot on the page of `noctule view`: all with their ages, and of each language one whose values are those
//! that another reader has.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStdout, Command, Stdio};

use noctule_devtools::{Browser, Page};
use serde_json::Value;

use crate::shell;

/// A topic of each language, and of the board, which may be in QEMU; every type has a `number`.
const SHOWN: [(&str, &str); 6] = [
    ("C", "/arm/left/base/state"),
    ("C++", "/node_1/load"),
    ("Python", "/ups_1/battery"),
    ("Rust", "/arm/left/base/command"),
    ("Simulink", "/gateway_1/line"),
    ("the board", "/ups_6/battery"),
];
/// Samples that only one of the two readers has may come so often.
const TRIES: usize = 50;
/// Output lines of a program.
type Printed = Lines<BufReader<ChildStdout>>;

/// Skips by name where Chromium is absent.
pub(super) fn look(topics: usize) -> Result<(), String> {
    let Some(browser) = Browser::start() else {
        println!("skipped: {topics} topics on a page: no chromium here");
        return Ok(());
    };
    let (_view, mut lines) = Program::start(&["view", "--no-open"])?;
    let url = next(&mut lines)?;
    let mut page = browser.open(&url);
    page.resize(1440, 860);
    let aged = "catalog.topics.filter((topic) => topic.live && graphView.age(topic.id).value >= 0)";
    page.until(&format!("{aged}.length === {topics}"));
    for (language, topic) in SHOWN {
        let (sequence, number) = same(&mut page, topic)?;
        println!(
            "{topic}, from {language}: sample {sequence} has the number {number} on the page and for another reader"
        );
    }
    page.picture(&shell::root().join("target/generated/robot/page.png"));
    Ok(())
}

/// Waits for a sample that both the page and `noctule echo` have, which must be equal; gives its sequence and number.
fn same(page: &mut Page<'_>, topic: &str) -> Result<(u64, u64), String> {
    let (_echo, mut lines) = Program::start(&["echo", topic, "--json"])?;
    // It reads before the page is asked.
    next(&mut lines)?;
    page.value(&format!("topicsView.choose('{topic}')"));
    let mut read = BTreeMap::new();
    let mut newer_than = 0;
    for _ in 0..TRIES {
        page.until(&format!(
            "inspector.sample && inspector.sample.topic === '{topic}' && inspector.sample.sequence > {newer_than}"
        ));
        let shown = page.value("[inspector.sample.sequence, inspector.sample.tree.number]");
        let (Some(sequence), Some(number)) = (shown[0].as_u64(), shown[1].as_u64()) else {
            return Err(format!("the page shows {shown} of {topic}"));
        };
        while read.last_key_value().is_none_or(|(last, _)| *last < sequence) {
            let line = next(&mut lines)?;
            let sample: Value =
                serde_json::from_str(&line).map_err(|e| format!("noctule echo printed {line:?}: {e}"))?;
            let known = sample["sequence"].as_u64().zip(sample["value"]["number"].as_u64());
            let (sequence, number) = known.ok_or(format!("noctule echo printed {line:?}"))?;
            read.insert(sequence, number);
        }
        match read.get(&sequence) {
            Some(other) if *other == number => return Ok((sequence, number)),
            Some(other) => {
                return Err(format!("sample {sequence} of {topic}: {number} on the page, {other} by echo"));
            }
            None => newer_than = sequence,
        }
    }
    Err(format!("of {TRIES} samples of {topic} that the page showed, echo had none"))
}

/// The first line is there when the program works.
fn next(lines: &mut Printed) -> Result<String, String> {
    let line = lines.next().ok_or("a program ended before its line")?;
    line.map_err(|e| format!("a program cannot be read: {e}"))
}

/// `noctule` with some arguments, until it is dropped.
struct Program(Child);

impl Program {
    fn start(arguments: &[&str]) -> Result<(Program, Printed), String> {
        let mut command = Command::new(shell::root().join("target/release/noctule"));
        let child = command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        let mut program = Program(child.map_err(|e| format!("cannot start noctule: {e}"))?);
        let output = program.0.stdout.take().ok_or("noctule has no standard output")?;
        Ok((program, BufReader::new(output).lines()))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
