//! `noctule gen` as its users meet it: exit codes, JSON, sentences.

#![allow(clippy::unwrap_used)]

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn generate(folder: &Path, arguments: &[&str], input: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_noctule"));
    command.arg("gen").args(arguments).current_dir(folder).env_remove("AMENT_PREFIX_PATH");
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // A command that refuses its arguments does not read.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

fn packages() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in [
        ("geometry_msgs/msg/Point.msg", "float64 x\nfloat64 y\nfloat64 z\n"),
        ("mine/msg/Goal.msg", "geometry_msgs/Point at\nstring<=4 frame 'map'\n"),
        ("wrong/msg/Bad.msg", "uint8 ok\nfloat65 speed\n"),
    ] {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    folder
}

#[test]
fn hashes_are_printed_of_the_packages_that_are_named() {
    let folder = packages();
    let output = generate(folder.path(), &["hash", "mine", "--search", "."], "");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let table: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(table.as_object().unwrap().len(), 1);
    assert_eq!(table["mine/msg/Goal"]["hash"].as_str().unwrap().len(), 16);
    let output = generate(folder.path(), &["hash", "geometry_msgs"], "");
    let table: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let expected = "RIHS01_6963084842a9b04494d6b2941d11444708d892da2f4b09843b9c43f42a7f6881";
    assert_eq!(table["geometry_msgs/msg/Point"]["rihs01"], expected);
}

#[test]
fn a_value_becomes_bytes_and_bytes_the_value() {
    let folder = packages();
    let arguments = |verb| [verb, "mine", "--search", ".", "--type", "mine/msg/Goal"];
    let output = generate(folder.path(), &arguments("encode"), "{\"at\": {\"y\": 1.5}}");
    assert_eq!(output.status.code(), Some(0));
    let digits = String::from_utf8(output.stdout).unwrap();
    assert_eq!(digits.trim(), "000100000000000000000000000000000000f83f0000000000000000040000006d617000");
    let output = generate(folder.path(), &arguments("decode"), &digits);
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(value, serde_json::json!({"at": {"x": 0.0, "y": 1.5, "z": 0.0}, "frame": "map"}));
}

#[test]
fn wrong_input_is_exit_code_two_and_a_sentence() {
    let folder = packages();
    let of_goal = ["mine", "--search", ".", "--type", "mine/msg/Goal"];
    for (arguments, input, expected) in [
        (vec!["hash", "wrong"], "", "wrong/msg/Bad.msg:2:1"),
        (
            vec!["hash", "mine"],
            "",
            "geometry_msgs/msg/Point is found nowhere, and there is no folder to look in",
        ),
        (vec!["hash", "nowhere"], "", "nowhere cannot be read"),
        (vec!["hash"], "", "no package is named"),
        ([&["encode"], &of_goal[..]].concat(), "{\"frame\": \"world\"}", "frame: the string has 5 bytes"),
        ([&["encode"], &of_goal[..]].concat(), "{", "standard input is no JSON value"),
        ([&["decode"], &of_goal[..]].concat(), "0001", "it is shorter than the header"),
        ([&["decode"], &of_goal[..]].concat(), "00010", "standard input is not hexadecimal"),
        (vec!["encode", "mine", "--type", "Goal"], "{}", "\"Goal\" is no type; write package/msg/Name"),
    ] {
        let output = generate(folder.path(), &arguments, input);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let sentence = String::from_utf8(output.stderr).unwrap();
        assert!(sentence.contains(expected), "{arguments:?}: {sentence}");
    }
}

const TOPICS: &str = "
[project]
name = \"robot\"
search = [\".\"]
[programs]
control = { language = \"rust\" }
viewer = { language = \"c\" }
[topics.\"/goal\"]
type = \"mine/Goal\"
from = [\"control\"]
to = [\"viewer\"]
";

#[test]
fn a_system_is_generated_once_and_a_stale_folder_is_exit_code_one() {
    let folder = packages();
    let file = folder.path().join("topics.toml");
    std::fs::write(&file, TOPICS).unwrap();
    let run = |arguments: &[&str]| generate(folder.path(), &[&["topics.toml"], arguments].concat(), "");
    assert_eq!(run(&["--out", "out", "--check"]).status.code(), Some(1));
    assert!(!folder.path().join("out").exists());
    let output = run(&["--out", "out"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(folder.path().join("out/rust/program_control.rs").exists());
    let output = run(&["--out", "out"]);
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("0 of "));
    assert_eq!(run(&["--out", "out", "--check"]).status.code(), Some(0));

    std::fs::write(&file, TOPICS.replace("\"c\"", "\"cpp\"")).unwrap();
    let output = run(&["--out", "out", "--check"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("c/mine.h would no longer be generated"));
    run(&["--out", "out"]);
    assert!(!folder.path().join("out/c/mine.h").exists());

    let output = run(&["--dump-model"]);
    let model: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&model["version"], &model["topics"][0]["type"]), (&1.into(), &"mine/msg/Goal".into()));
    assert_eq!(run(&[]).status.code(), Some(2));
    std::fs::write(&file, TOPICS.replace("from = [\"control\"]", "")).unwrap();
    let output = run(&["--out", "out"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("nothing writes /goal"));
}

/// The project's own messages are generated: a change of a definition or a template needs the generator again.
#[test]
fn messages_of_the_project_are_what_the_generator_writes() {
    for name in ["crates/teleop", "crates/gateway", "crates/fcu", "c", "peers/cyclonedds"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
        let output = generate(&folder, &["topics.toml", "--out", "generated", "--check"], "");
        let sentence = String::from_utf8_lossy(&output.stderr);
        assert_eq!(
            output.status.code(),
            Some(0),
            "in {name}: noctule gen topics.toml --out generated\n{sentence}"
        );
    }
}
