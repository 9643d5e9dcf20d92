//! README.md cannot drift: its commands are run, its table is made from a committed run, and its programs are
//! those of `examples/`, which are run against each other.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;

use crate::evidence::{self, Tie};
use crate::link_map::median;
use crate::shell;

const TABLE_BEGIN: &str = "<!-- table of ";
const TABLE_END: &str = "<!-- end of table -->";

/// Languages of `examples/`: how a block of README.md is marked, and how a file ends.
const EXAMPLES: [(&str, &str); 4] = [("python", "py"), ("rust", "rs"), ("cpp", "cpp"), ("c", "c")];

/// And what is shown in one language alone.
const MORE_EXAMPLES: [(&str, &str); 2] = [("rust", "typed.rs"), ("python", "typed.py")];

/// Checks the table and the programs, then runs every block marked `sh` in the checkout's root, in order; the first
/// that fails ends it.
pub fn run() -> Result<(), String> {
    let text = read()?;
    if with_table(&text)? != text {
        return Err("the table in README.md is not that of its run; `cargo xtask readme` rewrites it".into());
    }
    check_examples(&text)?;
    let blocks = blocks(&text, "sh");
    if blocks.is_empty() {
        return Err("README.md has no block marked sh: a README without a command".into());
    }
    for block in blocks.iter().filter(|block| !block.contains("cargo xtask test")) {
        shell::run(block)?;
    }
    Ok(())
}

/// Every example is shown as it is.
fn check_examples(markdown: &str) -> Result<(), String> {
    let both = EXAMPLES.into_iter().flat_map(|(language, extension)| {
        ["publish", "subscribe"].map(|example| (language, format!("{example}.{extension}")))
    });
    let more = MORE_EXAMPLES.map(|(language, file)| (language, file.to_owned()));
    for (language, file) in both.chain(more) {
        let name = format!("examples/{file}");
        let text = fs::read_to_string(shell::root().join(&name)).map_err(|e| format!("{name}: {e}"))?;
        if !blocks(markdown, language).iter().any(|block| block == code(&text)) {
            return Err(format!("README.md does not show {name} as it is; copy all below its first comment"));
        }
    }
    Ok(())
}

/// A program from its first line on that is neither comment nor attribute.
fn code(program: &str) -> &str {
    let is_heading = |line: &str| {
        line.trim().is_empty() || ["//", "/*", "#![", "\"\"\""].iter().any(|mark| line.starts_with(mark))
    };
    let heading = program.split_inclusive('\n').take_while(|line| is_heading(line)).map(str::len).sum();
    &program[heading..]
}

/// Rewrites the table from the run that its first line names.
pub fn rewrite() -> Result<(), String> {
    let text = with_table(&read()?)?;
    fs::write(shell::root().join("README.md"), text).map_err(|e| format!("README.md: {e}"))
}

fn read() -> Result<String, String> {
    fs::read_to_string(shell::root().join("README.md")).map_err(|e| format!("README.md: {e}"))
}

fn with_table(text: &str) -> Result<String, String> {
    let (before, rest) = text.split_once(TABLE_BEGIN).ok_or("README.md has no `<!-- table of DIR -->`")?;
    let (name, rest) = rest.split_once(" -->").ok_or("README.md: the table's first line has no end")?;
    let (_, after) = rest.split_once(TABLE_END).ok_or("README.md has no `<!-- end of table -->`")?;
    let path = shell::root().join(name).join("run.json");
    let run = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let run: Value = serde_json::from_str(&run).map_err(|e| format!("{}: {e}", path.display()))?;
    let changed = match evidence::of_run(name)? {
        Tie::Committed => "",
        Tie::Changed(_) => " and changes that were not committed",
        Tie::Missing(why) => {
            return Err(format!(
                "{name} is of a commit that is not in the repository ({why}); measure again at one"
            ));
        }
    };
    Ok(format!("{before}{TABLE_BEGIN}{name} -->\n{}{TABLE_END}{after}", table(&run, changed)?))
}

/// One row per middleware's round trip and per floor that one is compared with: medians over the trials.
fn table(run: &Value, changed: &str) -> Result<String, String> {
    let cells = run["cells"].as_array().ok_or("the run has no cells")?;
    let mut rows: Vec<(String, Vec<&Value>)> = Vec::new();
    let is_shown = |cell: &&Value| {
        let is_floor_of =
            |other: &Value| other["floor"]["name"] == cell["peer"] && other["wait"] == cell["wait"];
        cell["mode"] == "round_trip"
            && cell["placement"].as_str().is_some_and(|cores| cores.contains(','))
            && (cell["is_floor"] != true || cells.iter().any(is_floor_of))
    };
    for cell in cells.iter().filter(is_shown) {
        let word = |key: &str| cell[key].as_str().unwrap_or_default().to_owned();
        let rate = cell["rate_hz"].as_f64().map_or(String::new(), |hz| format!(" at {hz} Hz"));
        let cores = if word("placement").contains(',') { "two cores" } else { "one core" };
        let floor = if cell["is_floor"] == true { "" } else { "**" };
        let name = format!(
            "{floor}{}{floor} | {}, {}{rate}, {}, {cores}",
            word("peer"),
            word("link"),
            word("mode").replace('_', " "),
            word("wait"),
        );
        match rows.iter_mut().find(|(known, _)| *known == name) {
            Some((_, trials)) => trials.push(cell),
            None => rows.push((name, vec![cell])),
        }
    }
    let mut text = "| | | p50 | p99 | × floor |\n|---|---|---:|---:|---:|\n".to_owned();
    for (name, trials) in &rows {
        let p50 = median_of(trials, |cell| cell["latency_ns"]["p50"].as_f64());
        let p99 = median_of(trials, |cell| cell["latency_ns"]["p99"].as_f64());
        let ratio = median_of(trials, |cell| cell["ratio_to_floor"].as_f64());
        let shown = |ns: Option<f64>| ns.map_or("–".into(), microseconds);
        let ratio = ratio.map_or(String::new(), |ratio| format!("{ratio:.1}"));
        text += &format!("| {name} | {} | {} | {ratio} |\n", shown(p50), shown(p99));
    }
    let host = &run["host"];
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let versions: BTreeMap<String, Value> =
        serde_json::from_value(host["versions"].clone()).unwrap_or_default();
    let versions: Vec<String> = versions
        .iter()
        .filter(|(name, _)| *name != "noctule")
        .map(|(name, version)| format!("{name} {}", word(version)))
        .collect();
    text += &format!(
        "\nMedians of {} trials at commit {}{changed}, on {} with {} cores (a virtual machine), {}, {}.\n",
        rows.iter().map(|(_, trials)| trials.len()).max().unwrap_or(0),
        word(&host["commit"]).trim_end_matches("-dirty"),
        word(&host["cpu"]),
        host["cores"],
        word(&host["kernel"]),
        versions.join(", "),
    );
    Ok(text)
}

/// Median over the trials; `None` unless every trial has one.
fn median_of(trials: &[&Value], pick: impl Fn(&Value) -> Option<f64>) -> Option<f64> {
    median(trials.iter().map(|cell| pick(cell)).collect::<Option<Vec<f64>>>()?)
}

fn microseconds(ns: f64) -> String {
    match ns {
        ns if ns < 9_995.0 => format!("{:.2} µs", ns / 1e3),
        ns if ns < 99_950.0 => format!("{:.1} µs", ns / 1e3),
        ns => format!("{:.0} µs", ns / 1e3),
    }
}

/// The fenced blocks of one language.
fn blocks(markdown: &str, language: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut inside: Option<String> = None;
    for line in markdown.lines() {
        match (&mut inside, line.trim()) {
            (None, fence) if fence.strip_prefix("```") == Some(language) => inside = Some(String::new()),
            (Some(_), "```") => blocks.extend(inside.take()),
            (Some(block), _) => {
                block.push_str(line);
                block.push('\n');
            }
            (None, _) => {}
        }
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_blocks_of_the_language_are_taken() {
        let text = "# x\n```sh\na\nb\n```\n```text\nc\n```\n```sh\nd\n```\n";
        assert_eq!(blocks(text, "sh"), ["a\nb\n", "d\n"]);
    }

    #[test]
    fn code_begins_below_the_heading() {
        for text in ["//! x\n#![allow(y)] // z\n\nuse a;\n\n// b\n", "/* x */\n\nuse a;\n\n// b\n"] {
            assert_eq!(code(text), "use a;\n\n// b\n");
        }
        assert_eq!(code("// nothing else\n"), "");
    }

    #[test]
    fn the_examples_of_the_readme_are_those_that_are_run() {
        let text = read().unwrap();
        assert_eq!(check_examples(&text), Ok(()));
        let error = check_examples(&text.replace("listener", "reader")).unwrap_err();
        assert!(error.contains("subscribe.py"), "{error}");
    }

    #[test]
    fn a_row_is_the_median_of_its_trials_and_a_figure_is_withheld_if_one_has_none() {
        let cell = |p50: Value| {
            serde_json::json!({ "peer": "dds", "link": "udp", "mode": "round_trip", "wait": "block",
                "placement": "0,1", "is_floor": false, "floor": null, "latency_ns": { "p50": p50, "p99": null } })
        };
        let host = serde_json::json!({ "cpu": "c", "cores": 2, "kernel": "k", "versions": {} });
        let run = serde_json::json!({ "host": host, "cells": [cell(3000.into()), cell(1000.into()), cell(2000.into())] });
        let table = table(&run, "").unwrap();
        assert!(
            table.contains("| **dds** | udp, round trip, block, two cores | 2.00 µs | – |  |"),
            "{table}"
        );
    }
}
