//! Foreign programs, with Debian's Cyclone DDS and Fast DDS, exchange samples with a node of the bus
//! through `noctule-dds`. Everything stays on the loopback interface.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr)]

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use noctule::formats::uav_state::UavState;
use noctule::{Format, Message, Node, Publisher, Reliability, Route, Sample, Subscriber};
use serde_json::Value;

#[path = "foreign/actions.rs"]
mod actions;
#[path = "foreign/on_demand.rs"]
mod on_demand;
#[path = "foreign/ros_graph.rs"]
mod ros_graph;
#[path = "foreign/services.rs"]
mod services;

/// Nothing takes so long unless it never comes.
const TIMEOUT: Duration = Duration::from_secs(60);
const STRING: &str = "std_msgs/msg/String";
/// Configuration that keeps Cyclone to the loopback interface; given by its environment variable, as users do.
const LOOPBACK: &str = "<General><Interfaces><NetworkInterface address=\"127.0.0.1\"/></Interfaces>\
    <AllowMulticast>false</AllowMulticast></General><Discovery><ParticipantIndex>auto</ParticipantIndex>\
    <MaxAutoParticipantIndex>40</MaxAutoParticipantIndex><Peers><Peer address=\"127.0.0.1\"/></Peers></Discovery>";

/// The programs by name; none, with a message that says why, where Debian's packages are missing.
fn foreign() -> &'static [(&'static str, PathBuf)] {
    static BUILT: OnceLock<Vec<(&'static str, PathBuf)>> = OnceLock::new();
    BUILT.get_or_init(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/foreign");
        let out = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
        let run = |folder: &Path, command: &str| {
            let ran = Command::new("sh").arg("-c").arg(command).current_dir(folder).output().unwrap();
            assert!(ran.status.success(), "{command}: {}", String::from_utf8_lossy(&ran.stderr));
        };
        let has = |path: &str| Path::new(path).exists();
        let mut built = Vec::new();
        let (to, from) = (out.display(), source.display());
        if has("/usr/include/dds/dds.h") && has("/usr/bin/idlc") {
            run(&source, &format!("idlc -l c -o {to} ros_string.idl && idlc -l c -o {to} ros_graph.idl"));
            run(
                &out,
                &format!("cc -std=c99 -O2 -I. {from}/cyclone.c ros_string.c ros_graph.c -lddsc -o cyclone"),
            );
            built.push(("cyclone", out.join("cyclone")));
        } else {
            eprintln!("skipped: Cyclone DDS; apt-get install cyclonedds-dev cyclonedds-tools");
        }
        if has("/usr/include/fastdds") {
            run(&out, &format!("c++ -std=c++17 -O1 {from}/fast.cpp -lfastrtps -lfastcdr -o fast"));
            built.push(("fast", out.join("fast")));
        } else {
            eprintln!("skipped: Fast DDS; apt-get install libfastrtps-dev libfastcdr-dev");
        }
        built
    })
}

/// A program of its own on Cyclone DDS.
fn build(idl: &str, source: &str, program: &str) -> PathBuf {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/foreign");
    let to = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let (types, out, from) = (idl.replace(".idl", ".c"), to.display(), from.display());
    let command = format!(
        "idlc -l c -o {out} {from}/{idl} && cd {out} && cc -std=c99 -O2 -I. {from}/{source} {types} -lddsc -o {program}"
    );
    let ran = Command::new("sh").arg("-c").arg(&command).output().unwrap();
    assert!(ran.status.success(), "{command}: {}", String::from_utf8_lossy(&ran.stderr));
    to.join(program)
}

/// A process whose output is read line by line; its input's end ends it.
struct Process {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Process {
    fn start(command: &mut Command) -> Process {
        if command.get_envs().all(|(name, _)| name != "CYCLONEDDS_URI") {
            command.env("CYCLONEDDS_URI", LOOPBACK);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take(), child.stdout.take().unwrap());
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Process { child, input, lines }
    }

    fn line(&self) -> String {
        self.lines.recv_timeout(TIMEOUT).expect("a line in time")
    }

    /// Ends it by its input, and waits.
    fn end(mut self) -> bool {
        drop(self.input.take());
        let end = Instant::now() + TIMEOUT;
        while Instant::now() < end {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.success();
            }
            thread::park_timeout(Duration::from_millis(10));
        }
        false
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A DDS domain and a domain of the bus that no other test has, nor this one run twice at once. Their ports lie below those that
/// the system gives to sockets that ask for any.
struct Place {
    dds: u32,
    bus: u32,
}

impl Place {
    fn new(number: u32) -> Place {
        let process = std::process::id();
        Place { dds: 20 + process % 3 * 26 + number, bus: 500 + process % 75 * 26 + number }
    }

    fn node(&self) -> Node {
        Node::builder("test").domain(self.bus).open().unwrap()
    }

    fn bridge(&self, more: &[&str]) -> Process {
        let mut command = Command::new(env!("CARGO_BIN_EXE_noctule-dds"));
        command.arg(self.dds.to_string()).args(["--bus-domain", &self.bus.to_string()]);
        command.args(["--interface", "127.0.0.1", "--json", "--with-input", "--every", "0.2"]).args(more);
        let bridge = Process::start(&mut command);
        assert!(bridge.line().contains("\"dds\""));
        bridge
    }

    fn program(&self, program: &Path, role: &str, qos: [&str; 2], rest: &[&str]) -> Process {
        let domain = self.dds.to_string();
        Process::start(Command::new(program).args([role, &domain, "rt/chatter"]).args(qos).args(rest))
    }
}

/// The report in which this holds.
fn report_until(bridge: &Process, what: &str, mut holds: impl FnMut(&Value) -> bool) -> Value {
    let end = Instant::now() + TIMEOUT;
    while Instant::now() < end {
        let report: Value = serde_json::from_str(&bridge.line()).unwrap();
        if holds(&report) {
            return report;
        }
    }
    panic!("not reported: {what}");
}

fn string(text: &str) -> Vec<u8> {
    let mut bytes = vec![0, 1, 0, 0];
    bytes.extend((text.len() as u32 + 1).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes.push(0);
    bytes
}

/// The text of a sample; behind it Fast DDS leaves padding that it does not count.
fn text(sample: &Sample) -> String {
    let bytes = sample.to_vec();
    let length = u32::from_le_bytes(bytes[4..8].try_into().unwrap()) as usize;
    assert!((8 + length..12 + length).contains(&bytes.len()) && bytes[..4] == [0, 1, 0, 0], "{bytes:?}");
    String::from_utf8(bytes[8..7 + length].to_vec()).unwrap()
}

fn subscriber(node: &Node, keeps: bool) -> Subscriber {
    let builder = node.subscriber("/chatter").type_name(STRING, 0).formats(&[Format::Cdr]);
    let builder = builder.reliability(Reliability::Reliable);
    if keeps { builder.transient_local().open().unwrap() } else { builder.open().unwrap() }
}

fn publisher(node: &Node, keeps: bool) -> Publisher {
    let builder = node.publisher("/chatter").type_name(STRING, 0).format(Format::Cdr);
    let builder = builder.reliability(Reliability::Reliable).keep_last(10);
    if keeps { builder.transient_local().open().unwrap() } else { builder.open().unwrap() }
}

const KEPT: [&str; 2] = ["reliable", "transient_local"];
const LIVE: [&str; 2] = ["reliable", "volatile"];

#[test]
fn a_late_reader_on_the_bus_gets_what_a_foreign_program_wrote_before_with_its_age() {
    for (number, (name, program)) in foreign().iter().enumerate() {
        let place = Place::new(number as u32);
        let writer = place.program(program, "write", KEPT, &["5", "from DDS"]);
        assert_eq!(writer.line(), "written");
        let bridge = place.bridge(&[]);
        report_until(&bridge, "five samples", |report| report["routes"][0]["samples"] == 5);
        let node = place.node();
        let mut subscriber = subscriber(&node, true);
        for expected in 0..5 {
            let sample = subscriber.receive(Some(TIMEOUT)).unwrap().expect("a sample");
            assert_eq!(text(&sample), format!("from DDS {expected}"), "{name}");
            let info = sample.info();
            assert_eq!(info.route, Route::SharedMemory);
            let age = info.age().unwrap();
            // It was written before the bridge was started, which waits for more than a second.
            assert!(age.span.ns() > 1_000_000_000 && age.span.ns() < TIMEOUT.as_nanos() as i64, "{age:?}");
            // Cyclone says which process it is, so that its clock is known to be ours; Fast DDS does not.
            assert_eq!(age.bound.is_some(), *name == "cyclone", "{name} {age:?}");
        }
        assert!(subscriber.take().unwrap().is_none());
        assert!(bridge.end() && writer.end());
    }
}

#[test]
fn a_late_foreign_reader_gets_what_a_node_published_before() {
    for (number, (name, program)) in foreign().iter().enumerate() {
        let place = Place::new(2 + number as u32);
        let (node, bridge) = (place.node(), place.bridge(&["--topic", "/chat*"]));
        let mut publisher = publisher(&node, true);
        for number in 0..5 {
            // Of every length modulo 4.
            publisher.publish(&string(&format!("from the bus {}{number}", "-".repeat(number)))).unwrap();
        }
        report_until(&bridge, "five samples", |report| report["routes"][0]["samples"] == 5);
        let reader = place.program(program, "read", KEPT, &["5"]);
        assert_eq!(reader.line(), "matched");
        for number in 0..5 {
            assert_eq!(reader.line(), format!("from the bus {}{number}", "-".repeat(number)), "{name}");
        }
        assert!(reader.end() && bridge.end());
    }
}

#[test]
fn what_is_published_live_arrives_in_order_each_once_both_ways() {
    for (number, (name, program)) in foreign().iter().enumerate() {
        let place = Place::new(4 + number as u32);
        let (node, bridge) = (place.node(), place.bridge(&[]));
        let mut publisher = publisher(&node, false);
        let reader = place.program(program, "read", LIVE, &["50"]);
        assert_eq!(reader.line(), "matched");
        let mut sent = 0;
        let mut seen: Vec<u32> = Vec::new();
        while seen.len() < 50 {
            publisher.publish(&string(&format!("n {sent}"))).unwrap();
            sent += 1;
            // At the pace of the reader, or of the discovery that is under way.
            if let Ok(line) = reader.lines.recv_timeout(Duration::from_millis(10)) {
                let number = line.strip_prefix("n ").and_then(|number| number.parse().ok());
                seen.push(number.unwrap_or_else(|| panic!("{name} printed {line:?}")));
            }
            assert!(sent < 3000, "{name}: {} of 50 came", seen.len());
        }
        assert!(seen.windows(2).all(|pair| pair[1] == pair[0] + 1), "{name}: {seen:?}");
        assert!(reader.end());
        drop(publisher);

        // The other way, once everybody knows everybody.
        let mut subscriber = subscriber(&node, false);
        let mut writer = place.program(program, "write", LIVE, &["1", "first"]);
        assert_eq!(writer.line(), "written");
        let end = Instant::now() + TIMEOUT;
        while subscriber.publishers() == 0 && Instant::now() < end {
            subscriber.wait(Some(Duration::from_millis(10)));
        }
        for number in 0..50 {
            writeln!(writer.input.as_mut().unwrap(), "live {number}").unwrap();
            let mut came = text(&subscriber.receive(Some(TIMEOUT)).unwrap().expect("a sample"));
            // The first samples may have come before the reader on the bus did, or not.
            if number == 0 && came == "first 0" {
                came = text(&subscriber.receive(Some(TIMEOUT)).unwrap().expect("a sample"));
            }
            assert_eq!(came, format!("live {number}"), "{name}");
        }
        assert!(writer.end());
        assert!(subscriber.take().unwrap().is_none(), "{name}: a second time");
        assert!(bridge.end());
    }
}

#[test]
fn of_two_bridges_one_stands_by_and_nothing_arrives_twice() {
    for (_, program) in foreign().iter().take(1) {
        let place = Place::new(6);
        let (one, other) = (place.bridge(&[]), place.bridge(&[]));
        let standby = |bridge: &Process| {
            let report = report_until(bridge, "its participants", |report| report["participants"] == 1);
            report["standby"] == true
        };
        let (worker, idle) = match (standby(&one), standby(&other)) {
            (false, true) => (one, other),
            (true, false) => (other, one),
            both => panic!("one of two should stand by: {both:?}"),
        };
        let node = place.node();
        let mut subscriber = subscriber(&node, true);
        let writer = place.program(program, "write", KEPT, &["5", "once"]);
        for expected in 0..5 {
            let sample = subscriber.receive(Some(TIMEOUT)).unwrap().expect("a sample");
            assert_eq!(text(&sample), format!("once {expected}"));
        }
        assert!(subscriber.receive(Some(Duration::from_secs(1))).unwrap().is_none(), "more than was written");
        // The one that works goes; the other takes over.
        assert!(worker.end());
        report_until(&idle, "work", |report| report["routes"][0]["samples"] == 5);
        assert!(writer.end() && idle.end());
    }
}

#[test]
fn types_that_differ_are_reported_by_name() {
    for (_, program) in foreign().iter().take(1) {
        let place = Place::new(7);
        let (node, bridge) = (place.node(), place.bridge(&[]));
        let other = node.publisher("/chatter").type_name("std_msgs/msg/UInt32", 0).format(Format::Cdr);
        let _other = other.open().unwrap();
        let writer = place.program(program, "write", KEPT, &["1", "text"]);
        let notice = report_until(&bridge, "the types", |report| {
            report["notice"].as_str().is_some_and(|notice| notice.contains("std_msgs/msg/String in DDS"))
        });
        let expected = "topic /chatter is not exchanged: its type is std_msgs/msg/String in DDS and \
            std_msgs/msg/UInt32 on the bus";
        assert_eq!(notice["notice"], expected);
        assert!(writer.end() && bridge.end());
    }
}

#[test]
fn the_notice_for_a_publisher_of_plain_values_names_what_to_choose() {
    let Some((_, program)) = foreign().iter().find(|(name, _)| *name == "cyclone") else { return };
    let place = Place::new(11);
    let (node, bridge) = (place.node(), place.bridge(&[]));
    let mut publisher = node.publisher("/chatter").typed::<UavState>().open().unwrap();
    let reader = place.program(program, "read", LIVE, &["1", UavState::TYPE_NAME]);
    assert_eq!(reader.line(), "matched");
    let end = Instant::now() + TIMEOUT;
    while publisher.publisher().readers() == 0 && Instant::now() < end {
        thread::park_timeout(Duration::from_millis(10));
    }
    for _ in 0..3 {
        publisher.publish(&UavState::realistic(10, 1)).unwrap();
    }
    let notice = report_until(&bridge, "what is wrong", |report| report["notice"].is_string());
    let expected = "topic /chatter: it does not reach DDS: its publisher on this host leaves its samples as they lie in \
                    memory (plain), which DDS cannot read; choose the format cdr where it is published (format = cdr)";
    assert_eq!(notice["notice"], expected);
    report_until(&bridge, "what it could not read, and no second notice", |report| {
        assert!(report["notice"].is_null(), "{report}");
        report["routes"][0]["unreadable"].as_u64() > Some(0) && report["routes"][0]["samples"] == 0
    });
    // As the notice says.
    drop(publisher);
    let builder = node.publisher("/chatter").format(Format::Cdr);
    let mut publisher = builder.typed::<UavState>().open().unwrap();
    report_until(&bridge, "one in DDS", |report| {
        publisher.publish(&UavState::realistic(10, 1)).unwrap();
        report["routes"][0]["samples"].as_u64() > Some(0)
    });
    drop(reader);
    assert!(bridge.end());
}

#[test]
fn a_flood_costs_other_topics_nothing_and_memory_stays_bounded() {
    for (_, program) in foreign().iter().take(1) {
        let place = Place::new(8);
        let (node, bridge) = (place.node(), place.bridge(&[]));
        let domain = place.dds.to_string();
        let _wanted = node.subscriber("/flood").open().unwrap();
        let long = "x".repeat(200);
        let flood = Process::start(Command::new(program).args([
            "write",
            &domain,
            "rt/flood",
            "best_effort",
            "volatile",
            "300000",
            &long,
        ]));
        report_until(&bridge, "the flood", |report| {
            report["routes"].as_array().is_some_and(|routes| {
                routes
                    .iter()
                    .any(|route| route["topic"] == "/flood" && route["samples"].as_u64() > Some(1000))
            })
        });
        let mut subscriber = subscriber(&node, true);
        let writer = place.program(program, "write", KEPT, &["5", "beside"]);
        for expected in 0..5 {
            let sample = subscriber.receive(Some(TIMEOUT)).unwrap().expect("a sample");
            assert_eq!(text(&sample), format!("beside {expected}"));
        }
        // Samples that it was too fast for are counted, and never more than it wrote.
        report_until(&bridge, "every sample of the flood", |report| {
            let routes = report["routes"].as_array().map(Vec::as_slice).unwrap_or_default();
            let Some(flood) = routes.iter().find(|route| route["topic"] == "/flood") else { return false };
            let count = |name: &str| flood[name].as_u64().unwrap();
            assert!(count("samples") + count("missed") <= 300_000, "{flood}");
            flood["missed"].is_u64()
        });
        let status = std::fs::read_to_string(format!("/proc/{}/status", bridge.child.id())).unwrap();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        let peak_kib: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
        assert!(peak_kib < 200 << 10, "{peak_kib} KiB");
        drop(flood);
        assert!(writer.end() && bridge.end());
    }
}

#[test]
fn a_sample_longer_than_the_topic_was_opened_for_opens_it_anew() {
    for (_, program) in foreign().iter().take(1) {
        let place = Place::new(10);
        let (node, bridge) = (place.node(), place.bridge(&[]));
        let mut writer = place.program(program, "write", KEPT, &["1", "short"]);
        let mut subscriber = subscriber(&node, true);
        assert_eq!(text(&subscriber.receive(Some(TIMEOUT)).unwrap().expect("a sample")), "short 0");
        // In many fragments.
        let long = "long ".repeat(120_000);
        writeln!(writer.input.as_mut().unwrap(), "{long}").unwrap();
        assert_eq!(text(&subscriber.receive(Some(TIMEOUT)).unwrap().expect("a sample")), long);
        assert!(writer.end() && bridge.end());
    }
}

#[test]
fn an_interface_that_is_not_there_is_refused_with_the_way_out() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_noctule-dds"));
    let ran = command.args(["111", "--interface", "203.0.113.7"]).output().unwrap();
    let said = String::from_utf8(ran.stderr).unwrap();
    let expected = "noctule-dds: no interface of this host has the address 203.0.113.7; `ip address` lists those there are\n";
    assert_eq!((ran.status.code(), said.as_str()), (Some(2), expected));
}

#[test]
fn when_the_bridge_ends_both_sides_know() {
    for (_, program) in foreign().iter().take(1) {
        let place = Place::new(9);
        let (node, bridge) = (place.node(), place.bridge(&[]));
        let writer = place.program(program, "write", KEPT, &["1", "text"]);
        let mut subscriber = subscriber(&node, true);
        assert!(subscriber.receive(Some(TIMEOUT)).unwrap().is_some());
        assert_eq!(subscriber.publishers(), 1);
        assert!(bridge.end(), "the bridge ends well");
        let end = Instant::now() + TIMEOUT;
        while subscriber.publishers() > 0 && Instant::now() < end {
            assert!(subscriber.receive(Some(Duration::from_millis(20))).unwrap().is_none());
        }
        assert_eq!((subscriber.publishers(), node.endpoints().len()), (0, 0));
        assert!(writer.end());
    }
}

noctule::message! {
    #[derive(serde::Serialize, serde::Deserialize)]
    struct Text: "std_msgs/msg/String" {
        data: String,
    }
}

/// Of std_msgs/msg/String, by rosidl.
const STRING_RIHS01: &str = "RIHS01_df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18";

#[test]
fn type_hashes_of_ros_are_carried_into_dds_and_a_different_one_is_named() {
    for (_, program) in foreign().iter().filter(|(name, _)| *name == "cyclone") {
        let place = Place::new(10);
        let node = place.node();
        let _publisher = node.publisher("/chatter").typed::<Text>().open().unwrap();
        let bridge = place.bridge(&[]);
        let reader = place.program(program, "types", LIVE, &["1", &format!("typehash={STRING_RIHS01};")]);
        assert_eq!(reader.line(), format!("typehash={STRING_RIHS01};"));
        report_until(&bridge, "a route without a notice", |report| {
            assert!(report["notice"].is_null(), "{report}");
            report["routes"][0]["topic"] == "/chatter"
        });
        assert!(reader.end());
        let other = format!("RIHS01_{}", "5".repeat(64));
        let reader = place.program(program, "types", LIVE, &["1", &format!("typehash={other};")]);
        assert_eq!(reader.line(), format!("typehash={STRING_RIHS01};"));
        let report = report_until(&bridge, "the other type", |report| report["notice"].is_string());
        let notice = report["notice"].as_str().unwrap();
        assert!(notice.contains(&format!("{other} in DDS and {STRING_RIHS01} on the bus")), "{notice}");
        assert!(reader.end() && bridge.end());
    }
}
