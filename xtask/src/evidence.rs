//! Committed runs belong to committed code, or say that they do not.
//!
//! A run names the commit and the sources it was built from (docs/spec/run-json.md). One whose commit is not in the repository cannot
//! be run again: its README says so in [`MARK`], and README.md shows no table of it.

#[path = "../../crates/cli/build/sources.rs"]
mod sources;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::shell;

const RUNS: &str = "benchmarks/runs";
/// Words in the README of a run whose code the repository does not have.
const MARK: &str = "of a commit that is not in the repository";

/// Tie between a run and its code.
#[derive(Clone, Debug, PartialEq)]
pub enum Tie {
    /// Its commit is in the repository, and the sources are that commit's, as far as the run names them.
    Committed,
    /// Its commit is, but the run is older than `host.sources` and its sources had been changed.
    Changed(String),
    /// The repository does not have its code, and why.
    Missing(String),
}

/// Of a run's host: `sources_of` gives the number of a commit's sources, or `None` if there is no such commit.
fn tie(host: &Value, sources_of: impl Fn(&str) -> Option<String>) -> Tie {
    let Some(named) = host["commit"].as_str() else { return Tie::Missing("it names none".into()) };
    let commit = named.strip_suffix("-dirty").unwrap_or(named);
    let Some(committed) = sources_of(commit) else { return Tie::Missing(format!("it names {named}")) };
    match host["sources"].as_str() {
        Some(built) if built == committed => Tie::Committed,
        Some(built) => Tie::Missing(format!("its sources {built} are not {commit}'s, which are {committed}")),
        None if named == commit => Tie::Committed,
        None => Tie::Changed(named.to_owned()),
    }
}

/// The tie of the run in a folder of the checkout.
pub fn of_run(folder: &str) -> Result<Tie, String> {
    let path = shell::root().join(folder).join("run.json");
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let run: Value = serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(tie(&run["host"], |commit| sources::of_commit(&shell::root(), commit)))
}

/// Says which committed runs are not marked as they should be.
pub fn check(files: &[PathBuf], faults: &mut Vec<String>) {
    if shell::output("git rev-parse --is-shallow-repository").is_none_or(|is| is.trim() != "false") {
        println!("tidy: the checkout has not the whole history, so runs are not held against their commits");
        return;
    }
    let runs = files.iter().filter(|file| file.starts_with(RUNS) && file.ends_with("run.json"));
    for folder in runs.filter_map(|file| file.parent()) {
        match of_run(&folder.to_string_lossy()) {
            Ok(tie) => faults.extend(marked(folder, &tie, &readme_of(folder))),
            Err(error) => faults.push(error),
        }
    }
}

/// The README of a run, of its own folder or of the one it is a part of.
fn readme_of(folder: &Path) -> String {
    let own = folder.ancestors().take_while(|folder| *folder != Path::new(RUNS));
    own.filter_map(|folder| fs::read_to_string(shell::root().join(folder).join("README.md")).ok())
        .next()
        .unwrap_or_default()
}

fn marked(folder: &Path, tie: &Tie, readme: &str) -> Option<String> {
    // Wherever the line breaks.
    let words: Vec<&str> = readme.split_whitespace().collect();
    let (is_marked, folder) = (words.join(" ").contains(MARK), folder.display());
    match tie {
        Tie::Missing(why) if !is_marked => Some(format!(
            "{folder}: the repository does not have the code of this run ({why}); run it again at a commit, or write \"{MARK}\" into its README"
        )),
        Tie::Committed if is_marked => {
            Some(format!("{folder}: its README says \"{MARK}\", but the repository has it; delete that"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(commit: &str) -> Option<String> {
        (commit == "aaaa").then(|| "1111".to_owned())
    }

    #[test]
    fn a_run_is_tied_by_its_commit_and_by_its_sources() {
        let tie = |host: &str| tie(&serde_json::from_str(host).unwrap(), known);
        assert_eq!(tie(r#"{"commit": "aaaa"}"#), Tie::Committed);
        assert_eq!(tie(r#"{"commit": "aaaa", "sources": "1111"}"#), Tie::Committed);
        assert_eq!(tie(r#"{"commit": "aaaa-dirty"}"#), Tie::Changed("aaaa-dirty".into()));
        assert_eq!(tie(r#"{"commit": "aaaa-dirty", "sources": "1111"}"#), Tie::Committed);
        for host in
            [r#"{"commit": null}"#, r#"{"commit": "bbbb"}"#, r#"{"commit": "aaaa", "sources": "2222"}"#]
        {
            assert!(matches!(tie(host), Tie::Missing(_)), "{host}");
        }
    }

    #[test]
    fn a_run_without_its_code_says_so_and_no_other_does() {
        let folder = Path::new("benchmarks/runs/x");
        let missing = Tie::Missing("it names none".into());
        let marked_text = "# x\n\nThis run is of a commit that is\nnot in the repository.\n";
        assert!(marked(folder, &missing, "# x\n").unwrap().contains("benchmarks/runs/x"));
        assert_eq!(marked(folder, &missing, marked_text), None);
        assert!(marked(folder, &Tie::Committed, marked_text).unwrap().contains("delete"));
        assert_eq!(marked(folder, &Tie::Committed, "# x\n"), None);
    }

    #[test]
    fn the_number_of_a_commit_is_that_of_its_checkout() {
        let folder = std::env::temp_dir().join(format!("noctule-evidence-{}", std::process::id()));
        fs::create_dir_all(folder.join("crates/a/src")).unwrap();
        let git = |arguments: &[&str]| {
            let name = ["-c", "user.name=a", "-c", "user.email=a@b"];
            let mut command = std::process::Command::new("git");
            assert!(
                command.arg("-C").arg(&folder).args(name).args(arguments).output().unwrap().status.success()
            );
        };
        let write = |path: &str, text: &str| fs::write(folder.join(path), text).unwrap();
        write("crates/a/src/lib.rs", "one");
        write("README.md", "page");
        git(&["init", "-q"]);
        git(&["add", "."]);
        git(&["commit", "-q", "-m", "first"]);
        let committed = sources::of_commit(&folder, "HEAD").unwrap();
        assert_eq!(sources::of_checkout(&folder).as_ref(), Some(&committed));
        assert!(!sources::commit(&folder).unwrap().ends_with("-dirty"));
        // A page is not a source; a file that nobody has committed is one.
        write("README.md", "another page");
        assert_eq!(sources::of_checkout(&folder).as_ref(), Some(&committed));
        write("crates/a/src/new.rs", "two");
        let changed = sources::of_checkout(&folder).unwrap();
        assert_ne!(changed, committed);
        assert!(sources::commit(&folder).unwrap().ends_with("-dirty"));
        git(&["add", "."]);
        git(&["commit", "-q", "-m", "second"]);
        assert_eq!(sources::of_commit(&folder, "HEAD"), Some(changed));
        assert_eq!(sources::of_commit(&folder, "HEAD~1"), Some(committed));
        assert_eq!(sources::of_commit(&folder, "0123456789ab"), None);
        fs::remove_dir_all(&folder).unwrap();
    }
}
