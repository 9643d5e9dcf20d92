//! `noctule record` and `play` as real processes: killed at any moment, on a full disk, against wrong input.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

const NOCTULE: &str = env!("CARGO_BIN_EXE_noctule");

/// A bag of rosbag2 in SQLite: `/a` at 50 Hz for 0.4 s and once more after 0.1 s, `/b` at 50 Hz, neither with a stamp.
const BAG: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/rosbag2/jazzy.db3");
const BUSY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/record/busy.toml");

/// Of this test alone.
fn domain() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    (3000 + std::process::id() % 200 * 5 + NEXT.fetch_add(1, Ordering::Relaxed)).to_string()
}

fn noctule(words: &[&str], domain: &str) -> Command {
    let mut command = Command::new(NOCTULE);
    command.args(words).args(["--domain", domain, "--interface", "127.0.0.1"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A publisher of a line that is fed by the test: its sample number, reliably.
struct Talker {
    process: Child,
    sent: u64,
}

impl Talker {
    fn start(domain: &str) -> Talker {
        let words =
            ["pub", "/count", "-", "--reliable", "--keep-last", "512", "--wait-for", "1", "--seconds", "60"];
        let process = noctule(&words, domain).stdin(Stdio::piped()).spawn().unwrap();
        Talker { process, sent: 0 }
    }

    fn say(&mut self, count: u64) {
        let input = self.process.stdin.as_mut().unwrap();
        for _ in 0..count {
            writeln!(input, "{:06}", self.sent).unwrap();
            self.sent += 1;
        }
        input.flush().unwrap();
    }
}

impl Drop for Talker {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn check(file: &Path) -> (Option<i32>, Value) {
    let output = Command::new(NOCTULE).args(["record", "--json", "--check"]).arg(file).output().unwrap();
    (output.status.code(), serde_json::from_slice(&output.stdout).unwrap_or(Value::Null))
}

fn messages(contents: &Value) -> u64 {
    contents["topics"].as_array().into_iter().flatten().filter_map(|topic| topic["messages"].as_u64()).sum()
}

/// Turns until a file holds so many messages.
fn until_recorded(file: &Path, wanted: u64) {
    let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while messages(&check(file).1) < wanted {
        assert!(std::time::Instant::now() < end, "{wanted} messages were not recorded in a minute");
    }
}

#[test]
fn the_file_of_a_recorder_that_was_killed_opens_and_has_what_was_committed() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("killed.mcap");
    let domain = domain();
    let mut talker = Talker::start(&domain);
    let words = ["record", "--out", file.to_str().unwrap()];
    let mut recorder = noctule(&words, &domain).spawn().unwrap();
    talker.say(100);
    until_recorded(&file, 100);
    talker.say(50);
    recorder.kill().unwrap();
    recorder.wait().unwrap();
    let (code, contents) = check(&file);
    assert_eq!(code, Some(1), "it has no end");
    assert!(contents["damage"].as_str().unwrap().contains("ends in the middle"), "{contents}");
    assert!((100..=150).contains(&messages(&contents)), "{contents}");
    // And it plays.
    let output =
        noctule(&["play", file.to_str().unwrap(), "--rate", "1000000", "--wait-for-readers", "0"], &domain)
            .output()
            .unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("samples of /count"), "{output:?}");
}

#[test]
fn a_play_beside_the_robot_that_was_recorded_names_it() {
    let domain = domain();
    // A value of the bag's type: `pub` encodes it if it knows the definition, which `play` has, and publishes the text if not.
    let publish = ["pub", "/a", "{data: hello}", "--rate", "10"];
    let mut robot = noctule(&publish, &domain).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut play = noctule(&["play", BAG, "--loop"], &domain).stdout(Stdio::null()).spawn().unwrap();
    let mut errors = BufReader::new(play.stderr.take().unwrap()).lines().map(Result::unwrap);
    let (send, found) = std::sync::mpsc::channel();
    std::thread::spawn(move || send.send(errors.find(|line| line.contains("is published by"))));
    let found = found.recv_timeout(std::time::Duration::from_secs(120));
    play.kill().unwrap();
    robot.kill().unwrap();
    play.wait().unwrap();
    robot.wait().unwrap();
    let found = found.unwrap().unwrap();
    assert!(
        found.contains("/a is published by noctule pub, too") && found.contains("--remap /a:=/recorded/a"),
        "{found}"
    );
}

#[test]
fn a_full_disk_is_reported_once_and_what_fits_is_kept() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: a file system of its own needs root");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let disk = directory.path().to_str().unwrap();
    let domain = domain();
    // 256 KiB, visible to this recorder alone; its file is copied out at the end.
    let script = format!(
        "mount -t tmpfs -o size=256k none {disk}/small && {NOCTULE} record --json --out {disk}/small/a.mcap \
         --domain {domain} --interface 127.0.0.1; code=$?; cp {disk}/small/* {disk}/; exit $code"
    );
    std::fs::create_dir(directory.path().join("small")).unwrap();
    let recorder = Command::new("unshare")
        .args(["--mount", "sh", "-c", &script])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let words = [
        "pub",
        "/big",
        "--payload-bytes",
        "50000",
        "--rate",
        "20",
        "--count",
        "40",
        "--wait-for",
        "1",
        "--seconds",
        "60",
    ];
    let talker = noctule(&words, &domain).output().unwrap();
    assert!(talker.status.success(), "{talker:?}");
    let output = end(recorder);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert_eq!(errors.matches("is full; samples are counted").count(), 1, "{errors}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let count = &report["topics"]["/big"];
    let (recorded, not_written) =
        (count["recorded"].as_u64().unwrap(), count["not_written"].as_u64().unwrap());
    assert!(recorded > 0 && not_written > 0, "{report}");
    let files = std::fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().path());
    let files = files.filter(|path| path.is_file());
    assert_eq!(files.map(|file| messages(&check(&file).1)).sum::<u64>(), recorded, "{report}");
}

/// Ends the recorder below `unshare` and the shell as Ctrl-C would.
fn end(process: Child) -> Output {
    let children = |pid: u32| {
        let path = format!("/proc/{pid}/task/{pid}/children");
        std::fs::read_to_string(path).unwrap_or_default()
    };
    let shell: u32 = process.id(); // `unshare` becomes the shell
    let recorder = children(shell).split_whitespace().next().unwrap().to_owned();
    assert!(Command::new("kill").args(["-INT", &recorder]).status().unwrap().success());
    process.wait_with_output().unwrap()
}

#[test]
fn wrong_input_gets_a_sentence_and_code_2() {
    let directory = tempfile::tempdir().unwrap();
    let taken = directory.path().join("taken.mcap");
    std::fs::write(&taken, b"mine").unwrap();
    let text = directory.path().join("text.mcap");
    std::fs::write(&text, b"no recording").unwrap();
    let domain = domain();
    let fails = |words: &[&str], says: &str| {
        let output = noctule(words, &domain).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {errors}");
        assert!(errors.contains(says), "{words:?}: {errors}");
    };
    fails(&["record", "--out", taken.to_str().unwrap()], "exists; name another file");
    assert_eq!(std::fs::read(&taken).unwrap(), b"mine");
    fails(&["record", "--out", "/nowhere/a.mcap"], "/nowhere/a.mcap cannot be written");
    fails(&["record", "--check", "/nowhere/a.mcap"], "cannot be opened");
    fails(&["record", "--check", text.to_str().unwrap()], "does not begin as an MCAP file");
    fails(&["play", text.to_str().unwrap()], "does not begin as an MCAP file");
    fails(&["play", "/nowhere/a.mcap"], "cannot be opened");
    let alarms = ["record", "--out", "/nowhere/a.mcap", "--alarms"];
    fails(&[&alarms[..], &["/nowhere/a.toml"]].concat(), "cannot be read");
    fails(&[&alarms[..], &[text.to_str().unwrap()]].concat(), "expected");
    fails(&["record", "--serve", "--alarms", BUSY], "needs --out");
    fails(&["play", directory.path().to_str().unwrap()], "without metadata.yaml");
    fails(&["play", text.to_str().unwrap(), "--rate", "0"], "is no rate");
    fails(&["play", text.to_str().unwrap(), "--remap", "/a"], "write /from:=/to");
}

#[test]
fn a_bag_is_checked_and_its_alarms_are_an_exit_code() {
    let (code, found) = check(Path::new(BAG));
    assert_eq!((code, messages(&found)), (Some(0), 41));
    let output = Command::new(NOCTULE).args(["record", "--json", "--check", BAG, "--alarms", BUSY]).output();
    let output = output.unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{errors}");
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let times: Vec<_> =
        found["alarms"].as_array().unwrap().iter().map(|alarm| alarm["times"].as_u64()).collect();
    assert_eq!(times, [Some(0), Some(1), Some(0)]);
    let lines: Vec<&str> = errors.lines().collect();
    let [rate, age] = lines[..] else { panic!("{errors}") };
    assert!(
        rate.ends_with("rate of /a below 80 Hz for 0.1 s: 1 times, the first 0.100 s after the start"),
        "{rate}"
    );
    assert!(age.contains("age of /b above 50 ms for 1 s: not known"), "{age}");
}
