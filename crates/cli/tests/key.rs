//! `noctule key`.
#![allow(clippy::unwrap_used)] // a test

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

fn key(words: &[&str], folder: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_noctule"));
    command
        .arg("key")
        .args(words)
        .current_dir(folder)
        .env_remove("NOCTULE_KEY_FILE")
        .env_remove("NOCTULE_KEY");
    command.output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn a_key_is_made_once_shown_by_its_fingerprint_and_never_printed() {
    let folder = tempfile::tempdir().unwrap();
    let made = key(&["new", "k"], folder.path());
    assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
    let file = folder.path().join("k");
    let digits = std::fs::read_to_string(&file).unwrap();
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let shown = key(&["show", "k", "--json"], folder.path());
    let shown: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap();
    let fingerprint = shown["fingerprint"].as_str().unwrap();
    assert!(text(&made.stdout).contains(fingerprint) && !text(&made.stdout).contains(digits.trim()));
    let again = key(&["new", "k"], folder.path());
    assert_eq!(again.status.code(), Some(2));
    assert!(text(&again.stderr).contains("does not exist yet"), "{}", text(&again.stderr));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), digits);
}

#[test]
fn what_cannot_be_shown_is_refused_with_the_way_out() {
    let folder = tempfile::tempdir().unwrap();
    let none = key(&["show"], folder.path());
    assert_eq!(none.status.code(), Some(2));
    assert!(text(&none.stderr).contains("NOCTULE_KEY_FILE"), "{}", text(&none.stderr));
    let file = folder.path().join("open");
    std::fs::write(&file, "0".repeat(64)).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let exposed = key(&["show", "open"], folder.path());
    assert_eq!(exposed.status.code(), Some(2));
    assert!(text(&exposed.stderr).contains("chmod 600"), "{}", text(&exposed.stderr));
}

#[test]
fn the_environment_names_a_key_or_holds_it() {
    let folder = tempfile::tempdir().unwrap();
    key(&["new", "k"], folder.path());
    let file = folder.path().join("k");
    let digits = std::fs::read_to_string(&file).unwrap();
    let fingerprint = key(&["show", "k"], folder.path()).stdout;
    for (name, value) in [("NOCTULE_KEY_FILE", file.to_str().unwrap()), ("NOCTULE_KEY", digits.trim())] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_noctule"));
        command.args(["key", "show"]).env_remove("NOCTULE_KEY_FILE").env_remove("NOCTULE_KEY");
        assert_eq!(command.env(name, value).output().unwrap().stdout, fingerprint, "{name}");
    }
}
