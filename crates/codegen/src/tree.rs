//! Files in memory → a folder: only what differs is written, and only what was generated is removed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::diagnostic::Fault;

/// The list of files that were generated, below the folder of results.
pub const MANIFEST: &str = "noctule-generated.txt";
const MANIFEST_HEAD: &str =
    "# Written by noctule gen: what it generated here, and removes when it is no longer wanted.\n";

/// How a folder differs from what should be in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Difference {
    /// Files that are missing or differ, sorted.
    pub write: Vec<String>,
    /// Files that were generated and are no longer needed, sorted.
    pub remove: Vec<String>,
}

impl Difference {
    /// True if there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.write.is_empty() && self.remove.is_empty()
    }
}

/// Compares a folder with what should be in it; touches nothing.
///
/// # Errors
/// A file is there and cannot be read.
pub fn compare(folder: &Path, files: &BTreeMap<String, String>) -> Result<Difference, Fault> {
    let files = with_manifest(files);
    let mut write = Vec::new();
    for (path, text) in &files {
        let full = folder.join(path);
        match fs::read(&full) {
            Ok(bytes) if bytes == text.as_bytes() => {}
            Ok(_) => write.push(path.clone()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => write.push(path.clone()),
            Err(error) => {
                let what = format!("{} cannot be read: {error}", full.display());
                return Err(Fault::new(what).help("name another folder with --out"));
            }
        }
    }
    let mut remove: Vec<String> =
        generated_before(folder).into_iter().filter(|path| !files.contains_key(path)).collect();
    remove.retain(|path| folder.join(path).is_file());
    Ok(Difference { write, remove })
}

/// Makes a folder what it should be. All text is on the disk before the first file is replaced, so that a full disk changes nothing, and no file is
/// ever half-written.
///
/// # Errors
/// A file cannot be written or removed.
pub fn write(folder: &Path, files: &BTreeMap<String, String>) -> Result<Difference, Fault> {
    let difference = compare(folder, files)?;
    let files = with_manifest(files);
    // The manifest last: what it does not name yet is only overwritten, never removed.
    let (last, first): (Vec<&String>, Vec<&String>) =
        difference.write.iter().partition(|path| *path == MANIFEST);
    let mut fresh = Fresh(Vec::new());
    for path in first.into_iter().chain(last) {
        fresh.write(&folder.join(path), &files[path])?;
    }
    fresh.take_their_places()?;
    for path in &difference.remove {
        let full = folder.join(path);
        fs::remove_file(&full).map_err(|error| cannot(&full, &error))?;
    }
    Ok(difference)
}

fn cannot(path: &Path, error: &std::io::Error) -> Fault {
    let help = match error.kind() {
        std::io::ErrorKind::StorageFull => "make room, or name another folder with --out",
        _ => "name another folder with --out",
    };
    Fault::new(format!("{} cannot be written: {error}", path.display())).help(help)
}

/// Files beside those that they replace; removed if they do not.
struct Fresh(Vec<(PathBuf, PathBuf)>);

impl Fresh {
    fn write(&mut self, path: &Path, text: &str) -> Result<(), Fault> {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(|error| cannot(parent, &error))?;
        }
        // Of this run alone: two builds may generate into one folder.
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".noctule-new-{}", std::process::id()));
        let fresh = path.with_file_name(name);
        self.0.push((fresh.clone(), path.to_owned()));
        fs::write(&fresh, text).map_err(|error| cannot(path, &error))
    }

    fn take_their_places(mut self) -> Result<(), Fault> {
        while let Some((fresh, path)) = self.0.first() {
            fs::rename(fresh, path).map_err(|error| cannot(path, &error))?;
            self.0.remove(0);
        }
        Ok(())
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        for (fresh, _) in &self.0 {
            // It may never have been made.
            let _ = fs::remove_file(fresh);
        }
    }
}

fn with_manifest(files: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let mut all = files.clone();
    let list: String = files.keys().map(|path| format!("{path}\n")).collect();
    all.insert(MANIFEST.to_owned(), format!("{MANIFEST_HEAD}{list}"));
    all
}

/// Paths that the manifest names. One that leads out of the folder is none of ours.
fn generated_before(folder: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(folder.join(MANIFEST)).unwrap_or_default();
    let inside =
        |path: &&str| PathBuf::from(path).components().all(|part| matches!(part, Component::Normal(_)));
    text.lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
        .filter(inside)
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(list: &[(&str, &str)]) -> BTreeMap<String, String> {
        list.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn a_second_run_writes_nothing_and_orphans_go() {
        let folder = tempfile::tempdir().unwrap();
        let (path, first) = (folder.path(), files(&[("a/x.h", "1"), ("b.py", "2")]));
        assert_eq!(compare(path, &first).unwrap().write.len(), 3);
        assert_eq!(write(path, &first).unwrap().write, ["a/x.h", "b.py", MANIFEST]);
        assert!(write(path, &first).unwrap().is_empty());

        fs::write(path.join("mine.txt"), "by hand").unwrap();
        let second = files(&[("a/x.h", "3")]);
        let difference = write(path, &second).unwrap();
        assert_eq!(difference.write, ["a/x.h", MANIFEST]);
        assert_eq!(difference.remove, ["b.py"]);
        assert!(!path.join("b.py").exists() && path.join("mine.txt").exists());
        assert_eq!(fs::read_to_string(path.join("a/x.h")).unwrap(), "3");
    }

    #[test]
    fn a_manifest_cannot_name_files_outside() {
        let folder = tempfile::tempdir().unwrap();
        let victim = folder.path().join("victim");
        fs::write(&victim, "").unwrap();
        let out = folder.path().join("out");
        fs::create_dir(&out).unwrap();
        fs::write(out.join(MANIFEST), format!("../victim\n{}\n", victim.display())).unwrap();
        assert_eq!(write(&out, &files(&[])).unwrap().remove, Vec::<String>::new());
        assert!(victim.exists());
    }

    /// A folder in the place of the last file: the first are not replaced.
    #[test]
    fn what_cannot_be_written_whole_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        write(path, &files(&[("a/x.h", "1"), ("a/x.c", "1")])).unwrap();
        fs::write(path.join("b"), "a file, where a folder should be").unwrap();
        let refused = write(path, &files(&[("a/x.h", "2"), ("a/x.c", "2"), ("b/y.h", "2")])).unwrap_err();
        assert!(refused.to_string().contains("--out"), "{refused}");
        assert_eq!(fs::read_to_string(path.join("a/x.h")).unwrap(), "1");
        let mut left: Vec<_> =
            fs::read_dir(path.join("a")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["x.c", "x.h"]);
    }

    #[test]
    fn files_wait_beside_those_that_they_replace_and_go_if_one_cannot_be_written() {
        let folder = tempfile::tempdir().unwrap();
        let mut fresh = Fresh(Vec::new());
        // Of one stem: each has a file of its own.
        fresh.write(&folder.path().join("x.h"), "1").unwrap();
        fresh.write(&folder.path().join("x.c"), "2").unwrap();
        let count = || fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(count(), 2);
        fs::write(folder.path().join("y"), "").unwrap();
        assert!(fresh.write(&folder.path().join("y/z.h"), "3").is_err());
        drop(fresh);
        assert_eq!(count(), 1);
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_a_sentence() {
        let refused = write(Path::new("/dev/null/x"), &files(&[("a", "")])).unwrap_err().to_string();
        assert!(refused.contains("cannot be read") && refused.contains("--out"), "{refused}");
    }
}
