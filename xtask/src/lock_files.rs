//! Lock files of workspaces of their own name crates of this one, and no build of this one brings them up to date.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

use crate::shell;

/// Checks all lock files but that of this workspace, which its builds keep. `files` are relative to the root.
pub fn check(files: &[PathBuf], faults: &mut Vec<String>) {
    let read = |file: &PathBuf| fs::read_to_string(shell::root().join(file)).unwrap_or_default();
    let manifests: Vec<String> = files
        .iter()
        .filter(|file| file.starts_with("crates") && file.ends_with("Cargo.toml"))
        .map(read)
        .collect();
    for lock in files.iter().filter(|file| file.ends_with("Cargo.lock") && file.components().count() > 1) {
        check_one(lock, &read(lock), &manifests, faults);
    }
}

/// Reports each crate of this workspace whose dependencies in `lock` are not those of its manifest.
///
/// `manifests` are the texts of all `crates/*/Cargo.toml`. Optional dependencies and those of one platform may be in a lock file or not.
fn check_one(lock: &Path, text: &str, manifests: &[String], faults: &mut Vec<String>) {
    let needed: BTreeMap<String, BTreeSet<String>> =
        manifests.iter().filter_map(|text| needed_by(&text.parse().ok()?)).collect();
    let locked: Table = text.parse().unwrap_or_default();
    let packages = locked.get("package").and_then(Value::as_array);
    for package in packages.into_iter().flatten().filter(|package| package.get("source").is_none()) {
        let Some(needed) = package.get("name").and_then(Value::as_str).and_then(|name| needed.get(name))
        else {
            continue;
        };
        let dependencies = package.get("dependencies").and_then(Value::as_array);
        // A version follows the name where the file has several of them.
        let present: BTreeSet<&str> = dependencies
            .into_iter()
            .flatten()
            .filter_map(|dependency| dependency.as_str()?.split(' ').next())
            .collect();
        for missing in needed.iter().filter(|name| !present.contains(name.as_str())) {
            faults.push(format!(
                "{}: {} does not have its dependency {missing}: run `cargo update --workspace` in that folder",
                lock.display(),
                package["name"]
            ));
        }
    }
}

/// Name of a crate, and the packages that it always needs.
fn needed_by(manifest: &Table) -> Option<(String, BTreeSet<String>)> {
    let name = manifest.get("package")?.get("name")?.as_str()?;
    let dependencies = manifest.get("dependencies").and_then(Value::as_table);
    let needed = dependencies
        .into_iter()
        .flatten()
        .filter(|(_, about)| about.get("optional").and_then(Value::as_bool) != Some(true))
        .map(|(key, about)| about.get("package").and_then(Value::as_str).unwrap_or(key).to_owned())
        .collect();
    Some((name.to_owned(), needed))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults_of(lock: &str) -> Vec<String> {
        let manifest = "[package]\nname = \"noctule-prrt\"\n[dependencies]\nnoctule-qlog.workspace = true\nserde = { version = \"1\", optional = true }\n";
        let mut faults = Vec::new();
        check_one(Path::new("bridges/x/Cargo.lock"), lock, &[manifest.to_owned()], &mut faults);
        faults
    }

    #[test]
    fn a_lock_file_without_a_new_dependency_is_named() {
        let faults =
            faults_of("[[package]]\nname = \"noctule-prrt\"\ndependencies = [\"noctule-timebase\"]\n");
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert!(faults[0].contains("noctule-qlog"), "{faults:?}");
        assert!(!faults_of("[[package]]\nname = \"noctule-prrt\"\n").is_empty());
    }

    #[test]
    fn a_lock_file_that_is_up_to_date_is_not() {
        let lock = "[[package]]\nname = \"noctule-prrt\"\ndependencies = [\"noctule-qlog 0.1.0\"]\n[[package]]\nname = \"other\"\n";
        assert_eq!(faults_of(lock), Vec::<String>::new());
    }
}
