//! All standard messages of ROS 2 against the Python package rosbags, which shares no code with this one: type hashes
//! against rosidl's own (`vectors/rihs01.json`), bytes of seeded values both ways.
//!
//! Needs a Python with rosbags: `.venv/bin/python` as `cargo xtask setup` makes it, or the one in `NOCTULE_ROSBAGS_PYTHON`.
//! Without, the tests say so and pass.

#![allow(clippy::unwrap_used, clippy::print_stderr)]

use std::path::{Path, PathBuf};
use std::process::Command;

use noctule_codegen::cdr::{WideStrings, decode, encode};
use noctule_codegen::hash::rihs01;
use noctule_codegen::library::Library;
use noctule_codegen::model::TypeName;
use serde_json::Value;

/// Values of each type.
const VALUES: u32 = 20;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Output of the script for this seed: the folder of definitions, and a line for each value. `None` without rosbags.
fn oracle(seed: u32, values: u32) -> Option<(tempfile::TempDir, String)> {
    let named = std::env::var_os("NOCTULE_ROSBAGS_PYTHON").map(PathBuf::from);
    let python = named.unwrap_or_else(|| root().join(".venv/bin/python"));
    let has_it = Command::new(&python).args(["-c", "import rosbags"]).output();
    if !has_it.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: {} has no rosbags; run cargo xtask setup", python.display());
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/rosbags_oracle.py");
    let output = Command::new(python)
        .arg(script)
        .arg(folder.path())
        .args([seed, values].map(|n| n.to_string()))
        .output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some((folder, String::from_utf8(output.stdout).unwrap()))
}

fn load(folder: &Path) -> (Library, Vec<TypeName>) {
    let mut library = Library::new([]);
    let mut packages: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    packages.sort();
    let add = |package: &PathBuf| library.add_package(package).map_err(|faults| faults.to_string()).unwrap();
    let names: Vec<TypeName> = packages.iter().flat_map(add).collect();
    library.resolve(&names).map_err(|faults| faults.to_string()).unwrap();
    (library, names)
}

#[test]
fn type_hashes_of_the_standard_messages_are_those_of_rosidl() {
    let Some((folder, _)) = oracle(1, 0) else { return };
    let (library, names) = load(folder.path());
    let vectors = std::fs::read_to_string(root().join("vectors/rihs01.json")).unwrap();
    let vectors: Value = serde_json::from_str(&vectors).unwrap();
    let known = names.iter().filter_map(|name| Some((name, vectors[name.as_str()].as_str()?)));
    let compared =
        known.map(|(name, expected)| assert_eq!(rihs01(&library, name), expected, "{name}")).count();
    assert!(compared >= 140, "{compared} types");
}

#[test]
fn bytes_of_the_standard_messages_are_those_of_rosbags() {
    let seed = 7;
    let Some((folder, lines)) = oracle(seed, VALUES) else { return };
    let (library, names) = load(folder.path());
    let mut compared = 0;
    for line in lines.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let name = TypeName::new(line["type"].as_str().unwrap());
        let context = format!("{name} of seed {seed}: {}", line["value"]);
        let bytes = encode(&library, &name, &line["value"], WideStrings::Refused)
            .unwrap_or_else(|e| panic!("{context}: {e}"));
        let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(digits, line["cdr"].as_str().unwrap(), "{context}");
        let tree = decode(&library, &name, &bytes, WideStrings::Refused).unwrap();
        let again =
            encode(&library, &name, &serde_json::to_value(&tree).unwrap(), WideStrings::Refused).unwrap();
        assert_eq!(again, bytes, "{context}");
        compared += 1;
    }
    assert_eq!(compared, names.len() * VALUES as usize);
}
