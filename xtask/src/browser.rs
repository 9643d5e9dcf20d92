//! Opens a report in headless Chromium and checks that every chart drew its points and that nothing
//! was fetched.
//!
//! A probe script is added to a copy of the report. It shows every experiment, then writes down, per
//! chart, how many points there were, how many the page says it drew, and how many coloured pixels
//! its canvas really has (axes and grid are grey). What was fetched is asked three times: of the
//! page's own resource entries, of its content security policy, and of Chromium's network log.
//! [`run`] also breaks the report in four ways and insists that each is noticed.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;

use crate::{programs, setup, shell};

/// Largest report that still opens at once on a robot's screen.
const REPORT_BYTES_MAX: usize = 3_000_000;
/// Coloured pixels that prove a chart was drawn: a single short line has about this many.
const COLOURED_PIXELS_MIN: u64 = 40;
const CHROMIUM_SECONDS_MAX: u32 = 120;

/// Runs before the page's own scripts.
const WATCH: &str = include_str!("browser/watch.js");
/// Runs after them.
const PROBE: &str = include_str!("browser/probe.js");

#[derive(Deserialize)]
struct Answer {
    charts: Vec<Chart>,
    failures: Vec<String>,
    violations: Vec<String>,
    fetched: Vec<String>,
}

#[derive(Deserialize)]
struct Chart {
    name: String,
    /// Points in the material, counted when the report was written.
    material: u64,
    /// Points the script found in it.
    expected: u64,
    /// Points the script drew.
    drawn: u64,
    coloured_pixels: u64,
}

/// Makes a report of made-up samples with every chart, tests it, and tests that broken ones fail.
pub fn run() -> Result<(), String> {
    let directory = scratch("report")?;
    let shown = directory.display();
    programs::run_example("synthetic_report", &format!("{shown} 1 2000"))?;
    let report = directory.join("report.html");
    test(&report)?;
    let page = read(&report)?;
    for (name, broken) in breakages(&page)? {
        match check(&broken, name) {
            Err(reason) => println!("a report with {name} is refused: {reason}"),
            Ok(()) => return Err(format!("a report with {name} passed the browser test")),
        }
    }
    clock_report()
}

/// The page of a replayed trace, which draws with the same script; one with a lost line must fail.
fn clock_report() -> Result<(), String> {
    let report = scratch("clock")?.join("report.html");
    let shown = report.display();
    programs::run_example("synthetic_clock_report", &shown.to_string())?;
    test(&report)?;
    let page = read(&report)?;
    let line = "\"kind\":\"line\",\"xs\":[";
    if !page.contains(line) {
        return Err(format!("the page lacks {line}, which this test breaks on purpose"));
    }
    let broken = page.replacen(line, "\"kind\":\"line\",\"xs\":[],\"lost\":[", 1);
    match check(&broken, "a lost line") {
        Err(reason) => println!("a page with a lost line is refused: {reason}"),
        Ok(()) => return Err("a page with a lost line passed the browser test".to_owned()),
    }
    Ok(())
}

/// Opens the report that the README's first command has left.
pub fn of_readme() -> Result<(), String> {
    test(&shell::root().join("out/report.html"))
}

/// Opens one report and checks it.
pub fn test(report: &Path) -> Result<(), String> {
    let page = read(report)?;
    if page.len() > REPORT_BYTES_MAX {
        let path = report.display();
        return Err(format!("{path} has {} bytes, more than {REPORT_BYTES_MAX}", page.len()));
    }
    check(&page, "the report").map_err(|reason| format!("{}: {reason}", report.display()))
}

/// Name of the breakage, and the broken page.
type Breakage = (&'static str, String);

/// A report broken in ways that have happened or will.
fn breakages(page: &str) -> Result<Vec<Breakage>, String> {
    let policy = "<meta http-equiv=\"Content-Security-Policy\"";
    let material = "<script type=\"application/json\" id=\"material\">";
    let last_script = page.rfind("<script>").ok_or("the report has no script")?;
    let before_charts = |script: &str| {
        let (before, after) = page.split_at(last_script);
        format!("{before}<script>{script}</script>{after}")
    };
    for needle in [policy, material, "\"time_us\":["] {
        if !page.contains(needle) {
            return Err(format!("the report lacks {needle}, which this test breaks on purpose"));
        }
    }
    let unguarded = page.replace(policy, "<meta name=\"ignored\"");
    Ok(vec![
        ("no chart library", before_charts("window.uPlot = undefined;")),
        (
            "blank canvases",
            before_charts(
                "for (const call of ['stroke', 'fill', 'fillRect']) CanvasRenderingContext2D.prototype[call] = () => {};",
            ),
        ),
        ("lost dots", page.replacen("\"time_us\":[", "\"time_us\":[],\"lost\":[", 1)),
        (
            "a picture from elsewhere",
            unguarded.replace("<main>", "<main><img src=\"http://127.0.0.1:9/x.png\" alt=\"\">"),
        ),
    ])
}

fn check(page: &str, name: &str) -> Result<(), String> {
    if shell::output("command -v chromium").is_none() {
        setup::install(&["chromium"])?;
    }
    let (dom, log) = open(page, &name.replace(' ', "-"))?;
    let answer = dom
        .split_once("<pre id=\"probe\">")
        .and_then(|(_, rest)| rest.split_once("</pre>"))
        .ok_or("the probe did not answer; the page's script never finished")?
        .0;
    let answer: Answer =
        serde_json::from_str(answer).map_err(|e| format!("cannot read the probe's answer: {e}"))?;
    if !answer.failures.is_empty() {
        return Err(format!("script errors: {}", answer.failures.join("; ")));
    }
    let mut fetched = answer.fetched;
    fetched.extend(answer.violations);
    fetched.extend(requests(&log).into_iter().map(|url| format!("{url} (network log)")));
    if !fetched.is_empty() {
        return Err(format!("it fetched or tried to fetch {}", fetched.join(", ")));
    }
    if answer.charts.is_empty() {
        return Err("it has no chart".to_owned());
    }
    for chart in &answer.charts {
        judge(chart)?;
        let Chart { name, drawn, coloured_pixels, .. } = chart;
        println!("{name}: {drawn} points drawn, {coloured_pixels} coloured pixels");
    }
    Ok(())
}

fn judge(chart: &Chart) -> Result<(), String> {
    let Chart { name, material, expected, drawn, coloured_pixels } = chart;
    if expected != material || drawn != material {
        return Err(format!("chart {name}: {material} points, {expected} in its script, {drawn} drawn"));
    }
    if *coloured_pixels < COLOURED_PIXELS_MIN {
        return Err(format!("chart {name}: only {coloured_pixels} coloured pixels, it is blank"));
    }
    Ok(())
}

/// Opens a page with watch and probe; returns the final document and Chromium's network log.
fn open(page: &str, name: &str) -> Result<(String, String), String> {
    let directory = scratch(name)?;
    let probed = page
        .replacen("<head>", &format!("<head><script>{WATCH}</script>"), 1)
        .replace("</body>", &format!("<script>{PROBE}</script></body>"));
    let file = directory.join("probed.html");
    std::fs::write(&file, probed).map_err(|e| format!("cannot write {}: {e}", file.display()))?;
    let log = directory.join("net.json");
    let output = Command::new("timeout")
        .arg(CHROMIUM_SECONDS_MAX.to_string())
        .arg("chromium")
        .args(noctule_devtools::FLAGS)
        .args(["--disable-default-apps", "--disable-extensions", "--host-resolver-rules=MAP * ~NOTFOUND"])
        .arg(format!("--user-data-dir={}", directory.join("profile").display()))
        .arg(format!("--log-net-log={}", log.display()))
        .args(["--virtual-time-budget=20000", "--dump-dom"])
        .arg(format!("file://{}", file.display()))
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .map_err(|e| format!("cannot start chromium: {e}"))?;
    if !output.status.success() {
        return Err(format!("chromium ended with {}", output.status));
    }
    let dom = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok((dom, read(&log)?))
}

/// Addresses that a page asked for, from a network log (one event a line). Requests without an
/// initiator are Chromium's own errands (its clock, its updates), not the page's.
fn requests(log: &str) -> Vec<String> {
    let events = log.lines().filter_map(|line| {
        let event: serde_json::Value = serde_json::from_str(line.trim_end_matches(',')).ok()?;
        let initiator = event.pointer("/params/initiator")?.as_str()?;
        let url = event.pointer("/params/url")?.as_str()?;
        let local = ["file:", "data:", "chrome:", "devtools:", "blob:", "about:"];
        let of_page = initiator != "not an origin" && !local.iter().any(|scheme| url.starts_with(scheme));
        of_page.then(|| url.to_owned())
    });
    let mut found: Vec<String> = events.collect();
    found.sort();
    found.dedup();
    found
}

/// An empty directory below `target/browser`.
fn scratch(name: &str) -> Result<PathBuf, String> {
    let directory = shell::root().join("target/browser").join(name);
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).map_err(|e| format!("cannot make {}: {e}", directory.display()))?;
    Ok(directory)
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read(path)
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .map_err(|e| format!("cannot read {}: {e}", path.display()))
}
