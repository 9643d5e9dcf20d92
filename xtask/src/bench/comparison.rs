//! Does `lab compare` cry wolf, and does it see a wolf? Floors against themselves, ten times; and a
//! peer against itself slowed by a fifth.

use std::fs;
use std::path::Path;

use crate::shell;

const TRIES: usize = 10;
const FLOORS: &str = "benchmarks/compare/floors.toml";
const OUT: &str = "target/benchmarks/compare";

/// The floors against themselves; prints their output.
pub(super) fn unchanged() -> Result<(), String> {
    let mut silent = 0;
    let mut alarms = 0;
    let mut comparisons = 0;
    for number in 0..TRIES {
        let changes = compare(FLOORS, FLOORS, &format!("{OUT}/{number}"))?;
        let wrong: Vec<&Change> = changes.iter().filter(|change| change.change != "none").collect();
        comparisons += changes.len();
        alarms += wrong.len();
        silent += usize::from(wrong.is_empty());
        println!("try {}: {} of {} comparisons found a change", number + 1, wrong.len(), changes.len());
        wrong
            .iter()
            .for_each(|change| println!("  {} {}: {}", change.cell, change.statistic, change.verdict));
    }
    println!(
        "no change detected in any floor: {silent} of {TRIES} tries ({alarms} alarms in {comparisons} comparisons)"
    );
    slowed()
}

/// The faulty test peer, whose echo can be busy for a while before it answers. On one core, where a
/// guest's trials vary by a per cent or two; across cores they vary by as much as the effect.
pub(super) fn slowed() -> Result<(), String> {
    let scenario = |slow_us: f64| {
        format!(
            "name = \"slow\"\ntrials = 20\nseconds = 0.2\n[[cells]]\npeer = \"faulty\"\nplacement = \"same\"\n\
             options = {{ fault = \"slow\", slow_us = \"{slow_us}\" }}\n"
        )
    };
    fs::create_dir_all(shell::root().join(OUT)).map_err(|e| format!("{OUT}: {e}"))?;
    let file = |name: &str, slow_us: f64| -> Result<String, String> {
        let path = format!("{OUT}/{name}.toml");
        fs::write(shell::root().join(&path), scenario(slow_us)).map_err(|e| format!("{path}: {e}"))?;
        Ok(path)
    };
    let fast = file("as_it_is", 0.0)?;
    lab(&format!("run {fast} --out {OUT}/baseline"))?;
    let baseline = read(&shell::root().join(OUT).join("baseline/run.json"))?;
    let medians: Vec<f64> = baseline["cells"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|cell| cell["latency_ns"]["p50"].as_f64())
        .collect();
    let p50_us = medians.iter().sum::<f64>() / medians.len().max(1) as f64 / 1e3;
    let slow = file("slowed_by_a_fifth", p50_us / 5.0)?;
    let changes = compare(&fast, &slow, &format!("{OUT}/slowed"))?;
    for change in changes.iter().filter(|change| change.statistic == "p50") {
        println!("slowed by {:.1} of {p50_us:.1} µs: {}: {}", p50_us / 5.0, change.change, change.verdict);
    }
    Ok(())
}

struct Change {
    cell: String,
    statistic: &'static str,
    change: String,
    verdict: String,
}

/// Measures two scenarios in turns and returns every verdict of the comparison.
fn compare(a: &str, b: &str, out: &str) -> Result<Vec<Change>, String> {
    lab(&format!("run {a} --versus {b} --out {out}"))?;
    let text = lab(&format!("compare {out}/a/run.json {out}/b/run.json --json"))?;
    let comparison: serde_json::Value = serde_json::from_str(&text).map_err(|e| e.to_string())?;
    let cells = comparison["cells"].as_array().ok_or("the comparison has no cells")?;
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let of = |cell: &serde_json::Value, statistic: &'static str| Change {
        cell: text(&cell["cell"]),
        statistic,
        change: text(&cell[statistic]["change"]),
        verdict: text(&cell[statistic]["verdict"]),
    };
    Ok(cells.iter().flat_map(|cell| [of(cell, "p50"), of(cell, "p99")]).collect())
}

fn lab(arguments: &str) -> Result<String, String> {
    let line = format!("NOCTULE_PEERS=crates/lab/tests/peers target/release/noctule lab {arguments}");
    shell::output(&line).ok_or(format!("`noctule lab {arguments}` did not succeed; is the machine busy?"))
}

fn read(path: &Path) -> Result<serde_json::Value, String> {
    let text = fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    serde_json::from_str(&text).map_err(|e| e.to_string())
}
