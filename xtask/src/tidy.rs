//! Checks of the house that no compiler makes: arrows between crates, sizes, names, leftovers.
//!
//! Every rule names the file and the way out. A rule without a fault to find is a rule to delete.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::words::Words;
use crate::{circles, docstrings, error_types, evidence, lock_files, pages, shell};

/// Longer files are split by idea; tables and vendored files are not ours to split.
const LINES_MAX: usize = 600;
/// Libraries that a firmware copies as two files, and that are therefore not split.
const COPIED_WHOLE: &[&str] = &["c/noctule_sync.c", "c/noctule_client.c"];

/// Crate → crates of this workspace it may depend on. Cores see nothing but `timebase`, `proto-kit` and `qlog`.
const ARROWS: &[(&str, &[&str])] = &[
    ("proto-kit", &[]),
    ("timebase", &[]),
    ("time-sync", &["timebase"]),
    ("qlog", &["timebase"]),
    ("netsim", &["proto-kit", "timebase", "qlog"]),
    ("formats", &["proto-kit"]),
    // An application's model, not a core: it joins clocks, random numbers and a filter.
    ("flight", &["timebase", "netsim", "time-sync"]),
    ("arm", &["timebase"]),
    // An application's core: with its air and its simulation.
    ("swarm", &["timebase", "netsim"]),
    ("discovery", &["proto-kit", "timebase", "qlog"]),
    ("prrt", &["proto-kit", "timebase", "qlog"]),
    ("framing", &[]),
    ("xrce", &["timebase"]),
    ("sys", &[]),
    // For the type of a sealed mapping: that it cannot shrink is what makes opening a ring safe.
    ("shm-ring", &["sys"]),
    (
        "noctule",
        &["timebase", "time-sync", "qlog", "discovery", "prrt", "formats", "sys", "shm-ring", "local-clock"],
    ),
    ("board", &["timebase", "time-sync"]),
    // For ROS 2's hash of a type.
    ("bridge", &["timebase", "time-sync", "sys", "noctule", "codegen"]),
    // For discovery's names of topics and types in DDS.
    (
        "gateway",
        &[
            "timebase",
            "time-sync",
            "discovery",
            "framing",
            "xrce",
            "formats",
            "sys",
            "local-clock",
            "noctule",
            "bridge",
        ],
    ),
    // For discovery's words.
    ("dds", &["timebase", "time-sync", "discovery", "noctule", "bridge"]),
    ("ros-zenoh", &["proto-kit", "timebase", "time-sync", "discovery", "noctule", "bridge"]),
    ("rmw-core", &["timebase", "time-sync", "noctule", "bridge"]),
    (
        "fcu",
        &["timebase", "time-sync", "local-clock", "flight", "formats", "board", "gateway", "noctule", "sys"],
    ),
    // For the hash of a type.
    ("codegen", &["formats"]),
    ("web", &["sys"]),
    ("view", &["timebase", "time-sync", "codegen", "formats", "noctule", "record", "web"]),
    // For tests of pages alone.
    ("devtools", &[]),
    ("teleop", &["timebase", "netsim", "arm", "noctule", "sys", "web"]),
    ("ffi", &["noctule", "timebase"]),
    ("local-clock", &["timebase", "sys"]),
    ("link-emulator", &["timebase", "netsim", "sys"]),
    ("peer", &["timebase", "local-clock", "sys"]),
    // For the air time of a broadcast, and the kernel's view of its clock.
    ("doctor", &["netsim", "sys"]),
    // The instrument links nothing that it measures; `doctor` is for the machine's fingerprint in `run.json`.
    (
        "lab",
        &[
            "proto-kit",
            "timebase",
            "time-sync",
            "netsim",
            "sys",
            "local-clock",
            "peer",
            "link-emulator",
            "doctor",
        ],
    ),
    // Peers that the lab measures without another program; `board` and `gateway` are the peers that are a board and its companion.
    (
        "lab-peers",
        &["timebase", "time-sync", "netsim", "formats", "sys", "noctule", "peer", "board", "gateway", "lab"],
    ),
    // `record` for the one reader of MCAP.
    ("lab-report", &["lab", "record"]),
    ("clock-lab", &["timebase", "time-sync", "netsim", "sys", "local-clock", "lab", "lab-report"]),
    ("record", &["proto-kit", "timebase", "time-sync", "sys", "noctule"]),
    // For MCAP's words, which are Foxglove's.
    ("foxglove", &["sys", "noctule", "record", "web"]),
    ("python", &["timebase", "time-sync", "noctule"]),
    ("python", &["timebase", "time-sync", "noctule", "codegen"]),
    (
        "cli",
        &[
            "timebase",
            "time-sync",
            "netsim",
            "formats",
            "sys",
            "local-clock",
            "noctule",
            "qlog",
            "discovery",
            "prrt",
            "flight",
            "fcu",
            "arm",
            "teleop",
            "peer",
            "lab",
            "lab-peers",
            "lab-report",
            "clock-lab",
            "doctor",
            "link-emulator",
            "gateway",
            "codegen",
            "swarm",
            "record",
            "foxglove",
            "view",
            "web",
        ],
    ),
];

/// Names that say nothing.
const BANNED_NAMES: &[&str] =
    &["util", "utils", "common", "manager", "helper", "helpers", "misc", "base", "data", "core", "stuff"];

/// Crates that may hold unsafe code.
const UNSAFE_CRATES: &[&str] =
    &["crates/sys", "crates/shm-ring", "crates/ffi", "crates/board", "crates/dds", "python"];

/// Text that must not be in a source file.
struct Banned {
    text: &'static str,
    extensions: &'static [&'static str],
    way_out: &'static str,
}

const CODE: &[&str] = &["rs", "c", "h", "cpp", "hpp", "py", "js"];

const BANNED_TEXT: &[Banned] = &[
    Banned { text: "FIXME", extensions: CODE, way_out: "mend it or say it in docs" },
    Banned { text: "XXX", extensions: CODE, way_out: "mend it or say it in docs" },
    Banned { text: "time.sleep(", extensions: &["py"], way_out: "wait for the event itself" },
    Banned { text: "tokio::time::sleep", extensions: &["rs"], way_out: "wait for the event itself" },
    Banned { text: "#[ignore]", extensions: &["rs"], way_out: "give a reason: #[ignore = \"…\"]" },
    Banned {
        text: "/// …",
        extensions: &["rs"],
        way_out: "say the whole sentence: it is read without the one before",
    },
    Banned { text: "/// See the module", extensions: &["rs"], way_out: "say what the item is" },
    Banned { text: "console.log(", extensions: &["js"], way_out: "remove it" },
];

/// Runs every check and reports all faults together.
pub fn run() -> Result<(), String> {
    let files = tracked_files()?;
    let words = Words::read()?;
    let mut faults = Vec::new();
    arrows(&mut faults)?;
    circles::check(&shell::root(), &mut faults);
    evidence::check(&files, &mut faults);
    pages::check(&shell::root(), &mut faults);
    docstrings::check(&shell::root(), &mut faults);
    lock_files::check(&files, &mut faults);
    for file in &files {
        let path = file.to_string_lossy();
        if path.contains("/vendor/")
            || path.contains("/generated/")
            || path.starts_with("benchmarks/runs/")
            || path.starts_with("xtask/src/tidy")
            || path.starts_with("xtask/src/words")
        {
            continue;
        }
        let Ok(text) = fs::read_to_string(shell::root().join(file)) else { continue };
        size(file, &text, &mut faults);
        name(file, &mut faults);
        leftovers(file, &text, &mut faults);
        error_types::check(file, &text, &mut faults);
        words.check(file, &text, &mut faults);
        if file.extension().is_some_and(|extension| extension == "md") {
            links(file, &text, &mut faults);
        }
    }
    match faults.len() {
        0 => Ok(()),
        count => Err(format!("{count} faults\n  {}", faults.join("\n  "))),
    }
}

fn tracked_files() -> Result<Vec<PathBuf>, String> {
    let listed = shell::output("git ls-files --cached --others --exclude-standard");
    let listed = listed.ok_or("`git ls-files` failed; tidy needs a git checkout")?;
    Ok(listed.lines().map(PathBuf::from).filter(|file| shell::root().join(file).is_file()).collect())
}

fn arrows(faults: &mut Vec<String>) -> Result<(), String> {
    let allowed: BTreeMap<&str, &[&str]> = ARROWS.iter().copied().collect();
    let crates = fs::read_dir(shell::root().join("crates")).map_err(|e| format!("crates/: {e}"))?;
    let folders = crates.flatten().map(|folder| folder.path()).chain([shell::root().join("python")]);
    for folder in folders {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let path = folder.join("Cargo.toml");
        let Ok(manifest) = fs::read_to_string(&path) else { continue };
        let manifest: toml::Table = manifest.parse().map_err(|e| format!("{}: {e}", path.display()))?;
        let Some(allowed) = allowed.get(name.as_str()) else {
            faults.push(format!("{name}: say in xtask/src/tidy.rs which crates it may depend on"));
            continue;
        };
        let dependencies = manifest.get("dependencies").and_then(|table| table.as_table());
        for dependency in dependencies.into_iter().flat_map(|table| table.keys()) {
            // The crate `noctule` is the only one without a prefix.
            let unprefixed = (dependency == "noctule").then_some("noctule");
            let Some(ours) = dependency.strip_prefix("noctule-").or(unprefixed) else { continue };
            if !allowed.contains(&ours) {
                faults.push(format!(
                    "{name} must not depend on {ours}: arrows point down only (ARCHITECTURE.md)"
                ));
            }
        }
    }
    Ok(())
}

fn size(file: &Path, text: &str, faults: &mut Vec<String>) {
    let counted = ["rs", "c", "h", "cpp", "hpp", "py", "js", "css"];
    let extension = file.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let lines = text.lines().count();
    let copied_whole = COPIED_WHOLE.iter().any(|path| file == Path::new(path));
    if counted.contains(&extension) && lines > LINES_MAX && !copied_whole {
        faults.push(format!("{}: {lines} lines, more than {LINES_MAX}: split it by idea", file.display()));
    }
}

fn name(file: &Path, faults: &mut Vec<String>) {
    let stem = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    if BANNED_NAMES.contains(&stem) {
        faults.push(format!("{}: the name says nothing; name the idea", file.display()));
    }
}

fn leftovers(file: &Path, text: &str, faults: &mut Vec<String>) {
    let extension = file.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    for Banned { text: banned, extensions, way_out } in BANNED_TEXT {
        if !extensions.contains(&extension) {
            continue;
        }
        for (number, _) in text.lines().enumerate().filter(|(_, line)| line.contains(banned)) {
            faults.push(format!("{}:{}: `{banned}`: {way_out}", file.display(), number + 1));
        }
    }
    let allows_unsafe = text.contains("allow(unsafe_code)");
    let may = UNSAFE_CRATES.iter().any(|folder| file.starts_with(folder));
    if allows_unsafe && extension == "rs" && !may {
        faults.push(format!("{}: unsafe code belongs into {}", file.display(), UNSAFE_CRATES.join(" or ")));
    }
}

/// Relative links must lead somewhere.
fn links(file: &Path, text: &str, faults: &mut Vec<String>) {
    let folder = shell::root().join(file.parent().unwrap_or(Path::new("")));
    for (number, line) in text.lines().enumerate() {
        for link in line.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let target = link.split('#').next().unwrap_or_default();
            if target.is_empty() || target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            if !folder.join(target).exists() {
                faults.push(format!("{}:{}: the link to {target} leads nowhere", file.display(), number + 1));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_finds_its_fault() {
        let mut faults = Vec::new();
        size(Path::new("a.rs"), &"x\n".repeat(LINES_MAX + 1), &mut faults);
        name(Path::new("crates/lab/src/utils.rs"), &mut faults);
        leftovers(Path::new("a.py"), "time.sleep(1)\n", &mut faults);
        leftovers(Path::new("crates/lab/src/x.rs"), "#![allow(unsafe_code)]", &mut faults);
        links(Path::new("README.md"), "see [there](no/such/file.md) and [web](https://x)", &mut faults);
        assert_eq!(faults.len(), 5, "{faults:?}");
        let before = faults.len();
        size(Path::new("a.rs"), &"x\n".repeat(LINES_MAX), &mut faults);
        leftovers(Path::new("crates/sys/src/lib.rs"), "#![allow(unsafe_code)]", &mut faults);
        links(Path::new("README.md"), "[itself](README.md#top)", &mut faults);
        assert_eq!(faults.len(), before);
    }
}
