//! Typed topics on the command line, as real processes: `echo` shows fields, `pub` takes them, `topics --type` shows the
//! definition, `record` writes it and `play` gives it to others again.

#![allow(clippy::unwrap_used, clippy::panic, clippy::expect_used)]

use std::io::{BufRead, BufReader};
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use noctule::formats::encode_cdr;
use noctule::{Format, Message, Node, Reliability, message};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tungstenite::client::IntoClientRequest;

message! {
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    struct Point: "demo_msgs/msg/Point" {
        x: f64,
        y: f64,
    }
}

message! {
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    struct Path2: "demo_msgs/msg/Path" {
        frame: String,
        points: Vec<Point>,
        data: Vec<u8>,
    }
}

/// Of this test alone.
fn domain() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    4100 + std::process::id() % 80 * 6 + NEXT.fetch_add(1, Ordering::Relaxed)
}

fn node(domain: u32) -> Node {
    Node::builder("robot").domain(domain).interface(Ipv4Addr::LOCALHOST).keep_notices().open().unwrap()
}

fn start(words: &[&str], domain: u32) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_noctule"));
    command.args(words).args(["--domain", &domain.to_string(), "--interface", "127.0.0.1"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn run(words: &[&str], domain: u32) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = start(words, domain).wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

fn path() -> Path2 {
    let points = vec![Point { x: 1.5, y: -2.0 }, Point { x: 0.1, y: 1e300 }];
    Path2 { frame: "map \u{1b}[31m".into(), points, data: (0..40).collect() }
}

/// Publishes a sample for an `echo` that joins later: a history of one.
fn latched<T: Message>(node: &Node, topic: &str, value: &T) -> noctule::TypedPublisher<T> {
    let builder = node.publisher(topic).reliability(Reliability::Reliable).transient_local().keep_last(1);
    let mut publisher = builder.typed::<T>().open().unwrap();
    publisher.publish(value).unwrap();
    publisher
}

const ECHO: [&str; 7] = ["echo", "/path", "--count", "1", "--seconds", "60", "--transient-local"];

fn echo(more: &[&str], domain: u32) -> (String, String) {
    let (code, out, error) = run(&[&ECHO[..], more].concat(), domain);
    assert_eq!(code, Some(0), "{error}");
    (out, error)
}

#[test]
fn echo_shows_the_fields_of_a_typed_topic_and_raw_keeps_its_bytes() {
    let domain = domain();
    let robot = node(domain);
    let _publisher = latched(&robot, "/path", &path());
    let (out, _) = echo(&[], domain);
    let (heading, fields) = out.split_once('\n').unwrap();
    assert!(heading.starts_with("#1 age "), "{heading}");
    let numbers: Vec<String> = (0..32).map(|n| n.to_string()).collect();
    let expected = format!(
        "frame: \"map \\u001b[31m\"\npoints:\n- x: 1.5\n  \"y\": -2.0\n- x: 0.1\n  \"y\": 1e300\ndata: [{}]  # 8 more\n---\n",
        numbers.join(", ")
    );
    assert_eq!(fields, expected);

    let (out, _) = echo(&["--json"], domain);
    let object: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(object["value"], serde_json::to_value(path()).unwrap());
    assert_eq!(object["topic"], "/path");
    let (out, _) = echo(&["--hex"], domain);
    assert!(out.contains("000000  00 01 00 00"), "{out}");
    let raw = start(&[&ECHO[..], &["--raw"]].concat(), domain).wait_with_output().unwrap().stdout;
    let mut bytes = Vec::new();
    encode_cdr(&path(), &mut bytes).unwrap();
    assert_eq!(raw, bytes);
}

#[test]
fn topics_shows_the_definition_of_a_type() {
    let domain = domain();
    let robot = node(domain);
    let _publisher = latched(&robot, "/path", &path());
    let _plain = robot.publisher("/plain").open().unwrap();
    let (code, out, error) = run(&["topics", "--type", "/path", "--seconds", "60"], domain);
    assert_eq!(code, Some(0), "{error}");
    let hash = format!("# hash {:016x}\n# RIHS01_", Path2::type_hash());
    assert!(out.starts_with(&hash) && out.ends_with(&Path2::description()), "{out}");
    let (code, out, _) = run(&["topics", "--type", "/path", "--json", "--seconds", "60"], domain);
    let object: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &object["type"]), (Some(0), &json!("demo_msgs/msg/Path")));
    assert!(object["ros2msg"].as_str().unwrap().contains("MSG: demo_msgs/Point\nfloat64 x\n"));
    let (code, _, error) = run(&["topics", "--type", "/plain", "--seconds", "1"], domain);
    assert_eq!(code, Some(1));
    assert!(error.contains("plain bytes and no type") && error.contains("--types FOLDER"), "{error}");
}

#[test]
fn pub_takes_a_value_of_the_topics_type_and_refuses_what_the_type_does_not_have() {
    let domain = domain();
    let robot = node(domain);
    let builder = robot.subscriber("/path").reliability(Reliability::Reliable);
    let mut subscriber = builder.typed::<Path2>().open().unwrap();
    let yaml = "frame: map\npoints:\n- {x: 1, y: 2.5}\ndata: [1, 2]\n";
    let (code, _, error) = run(&["pub", "/path", yaml, "--reliable", "--seconds", "60"], domain);
    assert_eq!(code, Some(0), "{error}");
    let expected = Path2 { frame: "map".into(), points: vec![Point { x: 1.0, y: 2.5 }], data: vec![1, 2] };
    assert_eq!(subscriber.receive(Some(Duration::from_secs(60))).unwrap().unwrap().into_value(), expected);
    for (value, fact) in [
        ("{frame: map, fram: x}", "demo_msgs/msg/Path has no field \"fram\"; it has frame, points, data"),
        ("{points: [{x: hello}]}", "points[0].x: \"hello\" is no float64"),
        ("{data: [256]}", "data[0]: 256 is not in the range of uint8, 0 to 255"),
        ("hello", "is no demo_msgs/msg/Path; write an object"),
        ("{frame: ", "neither JSON nor YAML"),
    ] {
        let (code, _, error) = run(&["pub", "/path", value, "--seconds", "60"], domain);
        assert_eq!(code, Some(2), "{error}");
        assert!(error.contains(fact), "{error}");
    }
}

fn definitions(folder: &Path) -> String {
    let package = folder.join("demo_msgs/msg");
    std::fs::create_dir_all(&package).unwrap();
    std::fs::write(package.join("Point.msg"), "float64 x\nfloat64 y\n").unwrap();
    std::fs::write(package.join("Path.msg"), "string frame\nPoint[] points\nuint8[] data\n").unwrap();
    folder.to_str().unwrap().to_owned()
}

#[test]
fn a_topic_without_a_description_is_shown_by_definitions_in_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let (types, domain) = (definitions(folder.path()), domain());
    let robot = node(domain);
    // As a board's topic is on the bus.
    let builder = robot.publisher("/path").type_name("demo_msgs/msg/Path", 0).format(Format::Cdr);
    let mut publisher = builder.reliability(Reliability::Reliable).transient_local().open().unwrap();
    let mut bytes = Vec::new();
    encode_cdr(&path(), &mut bytes).unwrap();
    publisher.publish(&bytes).unwrap();
    let (out, _) = echo(&["--types", &types], domain);
    assert!(out.contains("points:\n- x: 1.5\n"), "{out}");
    let (out, error) = echo(&[], domain);
    assert!(out.contains("000000  00 01 00 00"), "{out}");
    assert!(error.contains("shown as bytes") && error.contains("--types FOLDER"), "{error}");
    publisher.publish(&bytes[..9]).unwrap();
    let words =
        ["echo", "/path", "--count", "2", "--seconds", "60", "--transient-local", "--types", types.as_str()];
    let (code, out, error) = run(&words, domain);
    assert_eq!(code, Some(0), "{error}");
    assert!(error.contains("frame: the bytes end in the middle of a value"), "{error}");
    assert!(out.contains("- x: 1.5") && out.contains("000000  00 01 00 00"), "{out}");
}

#[test]
fn a_recording_has_the_definition_and_a_play_of_it_has_fields_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.mcap");
    let (domain, other) = (domain(), domain());
    let robot = node(domain);
    let mut publisher = latched(&robot, "/path", &path());
    let mut recorder = start(&["record", "--out", file.to_str().unwrap()], domain);
    let end = std::time::Instant::now() + Duration::from_secs(60);
    let checked = loop {
        assert!(std::time::Instant::now() < end, "nothing was recorded in a minute");
        publisher.publish(&path()).unwrap();
        let words = ["record", "--json", "--check", file.to_str().unwrap()];
        let output = Command::new(env!("CARGO_BIN_EXE_noctule")).args(words).output().unwrap();
        let contents: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        if contents["topics"][0]["messages"].as_u64() >= Some(1) {
            break contents;
        }
    };
    let killed = Command::new("kill").args(["-INT", &recorder.id().to_string()]).status().unwrap();
    assert!(killed.success() && recorder.wait().unwrap().success());
    let topic = &checked["topics"][0];
    assert_eq!((&topic["type_name"], &topic["has_definition"]), (&json!("demo_msgs/msg/Path"), &json!(true)));
    assert_eq!(topic["metadata"]["noctule_type_description"], json!(Path2::description()));

    let listener = start(&["echo", "/path", "--count", "1", "--seconds", "60", "--json"], other);
    let (code, _, error) = run(&["play", file.to_str().unwrap(), "--wait-for-readers", "30"], other);
    assert_eq!(code, Some(0), "{error}");
    let output = listener.wait_with_output().unwrap();
    let object: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        object["value"],
        serde_json::to_value(path()).unwrap(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// A bag of rosbag2 has definitions of its own.
#[test]
fn a_play_of_another_recorders_file_has_fields() {
    let bag = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/rosbag2/jazzy.db3");
    let domain = domain();
    let listener = start(&["echo", "/a", "--count", "1", "--seconds", "60", "--json"], domain);
    let (code, _, error) = run(&["play", bag, "/a", "--wait-for-readers", "30"], domain);
    assert_eq!(code, Some(0), "{error}");
    let output = listener.wait_with_output().unwrap();
    let object: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(object["value"].is_object(), "{object} {}", String::from_utf8_lossy(&output.stderr));
}

/// Without them Foxglove shows nothing of CDR.
#[test]
fn viewers_of_foxglove_get_the_definitions_that_nodes_describe() {
    let domain = domain();
    let robot = node(domain);
    let _publisher = latched(&robot, "/path", &path());
    let mut server = start(&["record", "--serve=127.0.0.1:0"], domain);
    let mut line = String::new();
    BufReader::new(server.stderr.take().unwrap()).read_line(&mut line).unwrap();
    let url = line.trim().rsplit(' ').next().unwrap();
    let mut request = url.into_client_request().unwrap();
    request.headers_mut().insert("Sec-WebSocket-Protocol", "foxglove.sdk.v1".parse().unwrap());
    let (mut socket, _) = tungstenite::connect(request).unwrap();
    let channel = loop {
        let tungstenite::Message::Text(text) = socket.read().unwrap() else { continue };
        let message: Value = serde_json::from_str(&text).unwrap();
        let of_path = |channel: &&Value| channel["topic"] == "/path";
        if let Some(found) = message["channels"].as_array().into_iter().flatten().find(of_path) {
            break found.clone();
        }
    };
    server.kill().unwrap();
    server.wait().unwrap();
    assert_eq!(
        (&channel["schemaEncoding"], &channel["schemaName"]),
        (&json!("ros2msg"), &json!("demo_msgs/msg/Path"))
    );
    assert!(channel["schema"].as_str().unwrap().contains("MSG: "), "{channel}");
}
