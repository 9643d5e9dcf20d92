//! `noctule sync serve` and `noctule sync probe` as two real processes over loopback, with clocks
//! whose true difference is known.
//!
//! No figure of time is asserted: only that the truth stays inside the bound, counts, and sentences.

#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

struct Server {
    process: Child,
    output: BufReader<ChildStdout>,
    address: String,
    clock: String,
}

impl Server {
    fn start(clock: &str) -> Server {
        let mut process = noctule(&["sync", "serve", "127.0.0.1:0", "--json", "--clock", clock])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let said: Value = serde_json::from_str(&line).unwrap();
        let word = |key: &str| said[key].as_str().unwrap().to_owned();
        Server { process, output, address: word("address"), clock: word("clock") }
    }

    /// Ends it as Ctrl-C would, and returns its counters.
    fn stop(mut self) -> Value {
        kill_process(Pid::from_child(&self.process), Signal::INT).unwrap();
        assert_eq!(self.process.wait().unwrap().code(), Some(0));
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).unwrap();
        serde_json::from_str(&rest).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Only a failed test leaves it running.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn noctule(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_noctule"));
    command.args(arguments);
    command
}

fn probe(arguments: &[&str]) -> Output {
    noctule(&["sync", "probe"]).args(arguments).output().unwrap()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Five seconds ahead, 50 ppm fast, and 20 ms more after one second.
fn fast_and_stepping() -> String {
    format!("offset=5s,ppm=50,step=20ms@1s,since={}", noctule_sys::clock::raw_ns())
}

#[test]
fn the_bound_holds_the_truth_at_every_exchange_and_across_a_step() {
    for stamps in [&[][..], &["--process-stamps"]] {
        let directory = tempfile::tempdir().unwrap();
        let trace = directory.path().join("trace.csv");
        let server = Server::start(&fast_and_stepping());
        let mut arguments = vec![server.address.as_str(), "--server-clock", &server.clock, "--json"];
        arguments.extend(["--exchanges", "300", "--every-ms", "10", "--csv", trace.to_str().unwrap()]);
        arguments.extend(stamps);
        let output = probe(&arguments);
        let figures = json(&output);
        assert_eq!(figures["bound_violations"], 0, "{figures}");
        assert_eq!(output.status.code(), Some(0));
        assert_eq!(figures["exchanges"], 300);
        assert_eq!(figures["replies"]["answered"], 300);
        assert_eq!(figures["replies"]["forged"], 0);

        let replay = noctule(&["sync", "replay", trace.to_str().unwrap(), "--json"]).output().unwrap();
        assert_eq!(replay.status.code(), Some(0));
        assert_eq!(json(&replay)["bound_violations"], 0);
        let text = std::fs::read_to_string(trace).unwrap();
        let truths: Vec<i64> =
            text.lines().skip(1).map(|line| line.split(',').nth(4).unwrap().parse().unwrap()).collect();
        assert_eq!(truths.len(), 300);
        assert!(truths[0] < 5_010_000_000 && truths[299] > 5_020_000_000, "the step was in the middle");

        let counters = server.stop();
        assert!(counters["answered"].as_u64().unwrap() >= 300, "{counters}");
        let by_kernel = counters["arrivals"]["kernel"].as_u64().unwrap();
        assert!(by_kernel > 0, "{counters}");
        assert_eq!(figures["arrivals"]["kernel"] == 0, !stamps.is_empty());
    }
}

#[test]
fn a_wrong_truth_is_found_out_and_is_exit_code_one() {
    let server = Server::start("offset=5s");
    let output = probe(&[&server.address, "--server-clock", "offset=6s", "--exchanges", "5", "--json"]);
    assert_eq!(json(&output)["bound_violations"], 5);
    assert_eq!(output.status.code(), Some(1));
    server.stop();
}

#[test]
fn the_table_shows_offset_bound_and_error() {
    let server = Server::start("offset=5s");
    let output = probe(&[&server.address, "--server-clock", &server.clock, "--exchanges", "20"]);
    let table = String::from_utf8(output.stdout).unwrap();
    // Five seconds, give or take what a quiet loopback leaves unknown.
    assert!(table.contains("+5.0000") || table.contains("+4.9999"), "{table}");
    for row in ["bound (proven)", "sigma (likely)", "least round trip", "times out of bound"] {
        assert!(table.contains(row), "{table}");
    }
    server.stop();
}

#[test]
fn an_interrupted_probe_ends_with_its_summary() {
    let server = Server::start("");
    let mut process = noctule(&["sync", "probe", &server.address]).stdout(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(process.stdout.take().unwrap());
    let mut first = String::new();
    output.read_line(&mut first).unwrap();
    assert!(first.starts_with("offset "), "{first}");
    kill_process(Pid::from_child(&process), Signal::INT).unwrap();
    let mut rest = String::new();
    output.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("bound (proven)"), "{rest}");
    assert_eq!(process.wait().unwrap().code(), Some(0));
    server.stop();
}

#[test]
fn where_nobody_listens_is_exit_code_one_and_one_sentence() {
    // A socket that never answers, and one that is gone.
    let mute = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let gone = {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.local_addr().unwrap().to_string()
    };
    for (address, words) in
        [(mute.local_addr().unwrap().to_string(), "did not answer"), (gone, "nobody listens on 127.0.0.1:")]
    {
        let output = probe(&[&address, "--seconds", "1", "--json"]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains(words) && said.contains("sync serve"), "{said}");
        assert_eq!(output.status.code(), Some(1));
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn wrong_usage_is_exit_code_two_and_one_sentence() {
    let taken = Server::start("");
    for (arguments, words) in [
        (vec!["probe", "robot"], "names no port; write HOST:PORT"),
        (vec!["probe", "robot.invalid:1"], "the host of robot.invalid:1 is not found"),
        (vec!["probe", "127.0.0.1:1", "--server-clock", "ppm=5"], "does not say from when it counts"),
        (vec!["probe", "127.0.0.1:1", "--clock", "ppm=x"], "ppm=x is no rate"),
        (vec!["probe", &taken.address, "--csv", "/nowhere/t.csv"], "name another file"),
        (vec!["serve", &taken.address], "Address already in use"),
        (vec!["serve", "--clock", "offset=5"], "is no length of time"),
    ] {
        let output = noctule(&["sync"]).args(&arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains(words), "{said}");
    }
    taken.stop();
}
