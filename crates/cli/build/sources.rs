// The sources a program is built from, as one number that a commit can be asked for, too.
//
// Every file that reaches the program has git's number of its content; the list of numbers and paths, sorted by path, has one
// itself. Git computes both, for a commit and for files that nobody has committed; without git there is none.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Paths with the sources of a program. Tests, examples and pages are no part of it.
const PATHS: [&str; 5] = ["Cargo.toml", "Cargo.lock", ".cargo", "crates", "c"];

fn reaches_the_program(path: &str) -> bool {
    let apart = ["/tests/", "/examples/", "/target/"];
    !apart.iter().any(|folder| path.contains(folder)) && !path.ends_with(".md")
}

fn git(root: &Path, arguments: &[&str], input: Option<&str>) -> Option<String> {
    let mut command = Command::new("git");
    command
        .arg("-C")
        .arg(root)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    let (mut stdin, input) = (child.stdin.take()?, input.unwrap_or_default().to_owned());
    // Git answers while it is still being asked: the thread that writes must not be the one that reads.
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().ok()?;
    writer.join().ok()?.ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
}

fn number_of(root: &Path, mut listing: Vec<String>) -> Option<String> {
    listing.sort();
    let listing = listing.join("\n");
    git(root, &["hash-object", "--stdin"], Some(&listing)).map(|number| number.chars().take(16).collect())
}

/// The number of the files as they lie there, committed or not: 16 hexadecimal digits.
pub(crate) fn of_checkout(root: &Path) -> Option<String> {
    let list = ["ls-files", "--cached", "--others", "--exclude-standard", "--"];
    let listed = git(root, &[&list[..], &PATHS[..]].concat(), None)?;
    let exists = |path: &&str| reaches_the_program(path) && root.join(path).is_file();
    let paths: Vec<&str> = listed.lines().filter(exists).collect();
    let numbers = git(root, &["hash-object", "--stdin-paths"], Some(&paths.join("\n")))?;
    let line = |(path, number): (&&str, &str)| format!("{path} {number}");
    number_of(root, paths.iter().zip(numbers.lines()).map(line).collect())
}

/// The number of the files of a commit; `None` if it is not in the repository.
pub(crate) fn of_commit(root: &Path, commit: &str) -> Option<String> {
    let listed = git(root, &[&["ls-tree", "-r", commit, "--"][..], &PATHS[..]].concat(), None)?;
    let line = |line: &str| {
        // Mode, kind and number, then a tab and the path.
        let (kind, path) = line.split_once('\t')?;
        reaches_the_program(path).then(|| format!("{path} {}", kind.rsplit(' ').next().unwrap_or_default()))
    };
    number_of(root, listed.lines().filter_map(line).collect())
}

/// The commit that is checked out, 12 digits, with `-dirty` if the sources are not its own.
#[allow(dead_code)] // a program that shares this file needs not all of it
pub(crate) fn commit(root: &Path) -> Option<String> {
    let commit = git(root, &["rev-parse", "--short=12", "HEAD"], None)?;
    let is_clean = of_commit(root, "HEAD").is_some_and(|number| of_checkout(root) == Some(number));
    Some(if is_clean { commit } else { commit + "-dirty" })
}
