//! `noctule pub`, `echo`, `topics`, `top` and `ping` as real processes over loopback, each test in a domain of its own.
//!
//! No figure of time is asserted: only arrivals, printed text, and exit codes.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Longer than anything here takes; a command that reaches it fails its test.
const TIMEOUT: &str = "60";

/// Of this test alone; those of the library's tests begin at 500.
fn domain() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let taken = NEXT.fetch_add(1, Ordering::Relaxed);
    (20 + (std::process::id() % 16) * 30 + taken).to_string()
}

fn noctule(words: &[&str], domain: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_noctule"));
    command.args(words).args(["--domain", domain, "--interface", "127.0.0.1"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A process that runs until it is stopped.
struct Running(Option<Child>);

impl Running {
    fn start(words: &[&str], domain: &str) -> Running {
        Running(Some(noctule(words, domain).spawn().unwrap()))
    }

    /// Ends it as Ctrl-C would.
    fn stop(mut self) -> Output {
        let process = self.0.take().unwrap();
        kill_process(Pid::from_child(&process), Signal::INT).unwrap();
        process.wait_with_output().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Only a failed test leaves it running.
        if let Some(mut process) = self.0.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

fn finish(words: &[&str], domain: &str) -> Output {
    noctule(words, domain).output().unwrap()
}

fn objects(output: &Output) -> Vec<Value> {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn said(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn echo_shows_what_pub_publishes_with_its_age_and_its_publisher() {
    let domain = domain();
    let camera = ["pub", "imu", "9.81 m/s²", "--rate", "50", "--name", "camera"];
    let publisher = Running::start(&camera, &domain);
    let echoed = finish(&["echo", "imu", "--count", "5", "--seconds", TIMEOUT, "--json"], &domain);
    assert_eq!(echoed.status.code(), Some(0), "{}", said(&echoed));
    let samples = objects(&echoed);
    assert_eq!(samples.len(), 5);
    for sample in &samples {
        assert_eq!((&sample["text"], &sample["node_name"]), (&"9.81 m/s²".into(), &"camera".into()));
        assert_eq!((&sample["path"], &sample["bound_ns"]), (&"shm".into(), &0.into()));
        assert!(sample["age_ns"].as_i64().unwrap() >= 0, "{sample}");
    }
    let first = samples[0]["sequence"].as_u64().unwrap();
    let last = samples[4]["sequence"].as_u64().unwrap();
    let missed: u64 = samples[1..].iter().map(|sample| sample["missed"].as_u64().unwrap()).sum();
    assert_eq!(last - first, 4 + missed);
    assert_eq!(publisher.stop().status.code(), Some(0));
}

#[test]
fn every_line_of_standard_input_is_a_sample_and_raw_gives_the_bytes_back() {
    let domain = domain();
    let words = ["echo", "log", "--count", "3", "--seconds", TIMEOUT, "--raw"];
    let echo = noctule(&words, &domain).spawn().unwrap();
    let mut publisher =
        noctule(&["pub", "log", "-", "--wait-for", "1", "--seconds", TIMEOUT, "--json"], &domain)
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
    publisher.stdin.take().unwrap().write_all(b"one\n\ntwo").unwrap();
    let published = publisher.wait_with_output().unwrap();
    assert_eq!(published.status.code(), Some(0), "{}", said(&published));
    assert_eq!(objects(&published)[0]["published"], 3);
    let echoed = echo.wait_with_output().unwrap();
    assert_eq!(echoed.status.code(), Some(0), "{}", said(&echoed));
    assert_eq!(echoed.stdout, b"onetwo");
}

#[test]
fn bytes_that_are_no_text_are_dumped_and_long_samples_cut() {
    let domain = domain();
    let publisher = Running::start(&["pub", "scan", "--hex", "00 ff 41 42", "--rate", "50"], &domain);
    let echo = ["echo", "scan", "--count", "1", "--seconds", TIMEOUT, "--bytes", "3"];
    let echoed = finish(&echo, &domain);
    let text = String::from_utf8(echoed.stdout).unwrap();
    assert!(text.contains("000000  00 ff 41  ") && text.contains("… 1 bytes more"), "{text}");
    publisher.stop();
}

#[test]
fn topics_lists_both_ends_and_says_in_words_what_does_not_fit() {
    let domain = domain();
    let camera = ["pub", "image", "x", "--rate", "5", "--type", "sensor/Image", "--name", "camera"];
    let publisher = Running::start(&camera, &domain);
    let mut viewer = noctule(&["echo", "image", "--reliable", "--name", "viewer"], &domain).spawn().unwrap();
    // The mismatch reaches the reader's standard error, too; from then on both are known.
    let mut complaint = String::new();
    let mut errors = BufReader::new(viewer.stderr.take().unwrap());
    // Where the machine has a network, the first line says that there is no key.
    while !complaint.contains("topic image") && errors.read_line(&mut complaint).unwrap() > 0 {}
    assert!(
        complaint.contains("topic image, with node camera: the writer offers best_effort"),
        "{complaint}"
    );
    let viewer = Running(Some(viewer));
    let listed = finish(&["topics", "--json", "--seconds", "3"], &domain);
    assert_eq!(listed.status.code(), Some(0), "{}", said(&listed));
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    let image = &listed["topics"][0];
    assert_eq!(image["topic"], "image");
    assert_eq!(image["writers"][0]["node_name"], "camera");
    assert_eq!(image["writers"][0]["type"], "sensor/Image");
    assert_eq!(image["readers"][0]["reliability"], "reliable");
    assert!(image["mismatches"][0]["why"].as_str().unwrap().contains("requests reliable"));
    let table = String::from_utf8(finish(&["topics", "--seconds", "3"], &domain).stdout).unwrap();
    assert!(table.contains("sensor/Image") && table.contains("do not fit: the writer offers"), "{table}");
    assert_eq!(viewer.stop().status.code(), Some(1));
    publisher.stop();
}

#[test]
fn with_another_key_nothing_is_seen_and_the_reason_is_said_once() {
    let (directory, domain) = (tempfile::tempdir().unwrap(), domain());
    let key = |name: &str, digits: &str| -> PathBuf {
        use std::os::unix::fs::PermissionsExt;
        let path = directory.path().join(name);
        std::fs::write(&path, digits.repeat(32)).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        path
    };
    let (right, wrong) = (key("right", "ab"), key("wrong", "cd"));
    let (right, wrong) = (right.to_str().unwrap(), wrong.to_str().unwrap());
    let publisher = Running::start(&["pub", "plan", "secret", "--rate", "20", "--key", right], &domain);
    let insider = finish(&["echo", "plan", "--count", "1", "--seconds", TIMEOUT, "--key", right], &domain);
    assert_eq!(insider.status.code(), Some(0), "{}", said(&insider));
    for (key, reason) in [(&["--key", wrong][..], "same swarm key"), (&[], "this node has none")] {
        let words = ["echo", "plan", "--seconds", "3"];
        let outsider = finish(&[&words, key].concat(), &domain);
        assert_eq!((outsider.status.code(), outsider.stdout.len()), (Some(1), 0));
        let said = said(&outsider);
        assert_eq!(said.matches(reason).count(), 1, "{said}");
        assert!(said.contains("swarm key (--key") && said.contains("--domain"), "{said}");
    }
    publisher.stop();
}

#[test]
fn top_knows_rate_age_loss_and_route_of_every_topic() {
    let domain = domain();
    let imu = Running::start(&["pub", "imu", "9.81", "--rate", "200", "--type", "sensor/Imu"], &domain);
    let log = Running::start(&["pub", "log", "--payload-bytes", "10000", "--rate", "20"], &domain);
    let top = finish(&["top", "--json", "--seconds", "4"], &domain);
    assert_eq!(top.status.code(), Some(0), "{}", said(&top));
    let seen: Value = serde_json::from_slice(&top.stdout).unwrap();
    let [first, second] = seen["topics"].as_array().unwrap().as_slice() else { panic!("{seen}") };
    assert_eq!((&first["topic"], &first["type"]), (&"imu".into(), &"sensor/Imu".into()));
    assert_eq!((&second["topic"], &second["publishers"]), (&"log".into(), &1.into()));
    for (topic, length_bytes) in [(first, 4), (second, 10_000)] {
        let figure = |key: &str| topic[key].as_f64().unwrap();
        let received = figure("received");
        assert!(received > 0.0 && topic["age_ns"]["max"].as_i64().unwrap() > 0, "{topic}");
        assert_eq!((&topic["path"][0], &topic["bound_ns"]), (&"shm".into(), &0.into()));
        assert_eq!(figure("loss"), figure("missed") / (received + figure("missed")));
        let per_sample = figure("bytes_per_s") / figure("rate_hz");
        assert!((per_sample - f64::from(length_bytes)).abs() < 1e-6 * f64::from(length_bytes), "{topic}");
    }
    let only = finish(&["top", "log", "--sort", "rate", "--seconds", "3"], &domain);
    let text = String::from_utf8(only.stdout).unwrap();
    assert!(text.contains("log") && text.contains("shm") && !text.contains("imu"), "{text}");
    // Readers are counted without this one.
    assert!(text.contains("1/0"), "{text}");
    imu.stop();
    log.stop();
}

#[test]
fn ping_tells_the_whole_trip_and_each_way() {
    let domain = domain();
    let camera = Running::start(&["pub", "image", "x", "--rate", "1", "--name", "camera"], &domain);
    let other = Running::start(&["pub", "imu", "x", "--rate", "1", "--name", "imu_driver"], &domain);
    let words = ["ping", "camera", "--count", "30", "--interval", "0.01", "--json", "--seconds", TIMEOUT];
    let pinged = finish(&words, &domain);
    assert_eq!(pinged.status.code(), Some(0), "{}", said(&pinged));
    let pinged: Value = serde_json::from_slice(&pinged.stdout).unwrap();
    let [node] = pinged["nodes"].as_array().unwrap().as_slice() else { panic!("{pinged}") };
    assert_eq!(
        (&node["node_name"], &node["asked"], &node["same_host"]),
        (&"camera".into(), &30.into(), &true.into())
    );
    let ns = |part: &str, key: &str| node[part][key].as_i64().unwrap();
    let parts = ns("last", "there_ns") + ns("last", "turn_around_ns") + ns("last", "back_ns");
    assert_eq!(ns("round_trip_ns", "last"), parts);
    assert!(["there_ns", "turn_around_ns", "back_ns"].iter().all(|key| ns("last", key) >= 0), "{node}");
    assert!(ns("round_trip_ns", "min") <= ns("round_trip_ns", "last"));
    assert!(ns("round_trip_ns", "last") <= ns("round_trip_ns", "max"));
    let all = String::from_utf8(finish(&["ping", "--count", "1"], &domain).stdout).unwrap();
    assert!(all.contains("camera (") && all.contains("imu_driver (") && all.contains("round trip"), "{all}");
    let nobody = finish(&["ping", "nobody", "--seconds", "3"], &domain);
    assert_eq!(nobody.status.code(), Some(1));
    assert!(said(&nobody).contains("no node is called nobody; there are "), "{}", said(&nobody));
    camera.stop();
    other.stop();
}

#[test]
fn where_nobody_is_every_command_says_what_to_check() {
    let domain = domain();
    for words in [&["echo", "t"][..], &["topics"], &["top"], &["ping"], &["pub", "t", "x"]] {
        let output = finish(&[words, &["--seconds", "0.3"]].concat(), &domain);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{words:?}");
        let said = said(&output);
        assert!(
            ["domain", "swarm key", "firewall", "--peer"].iter().all(|word| said.contains(word)),
            "{said}"
        );
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}

#[test]
fn bad_input_is_one_sentence_and_exit_code_2() {
    for (words, sentence) in [
        (&["pub", "t"][..], "nothing to publish"),
        (&["pub", "t", "--hex", "0"], "is not hexadecimal"),
        (&["pub", "t", "--file", "/nowhere"], "name another file"),
        (&["pub", "t", "x", "--rate", "0"], "samples per second"),
        (&["pub", "t", "x", "--keep-last", "0"], "a history of 0 samples"),
        (&["pub", "t", "four", "--rate", "9", "--payload-bytes", "3"], "raise payload_bytes_max"),
        (&["pub", "", "x"], "has no name"),
        (&["echo", "t", "--seconds", "none"], "is no number of seconds"),
        (&["topics", "--key", "/nowhere"], "cannot be read"),
        (&["topics", "--peer", "nowhere"], "no address of a static peer"),
        (&["top", "--sort", "colour"], "possible values: name, rate, age, loss, bytes"),
        (&["ping", "--interval", "-1"], "unexpected argument"),
    ] {
        let output = finish(words, &domain());
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(said(&output).contains(sentence), "{}", said(&output));
    }
}
