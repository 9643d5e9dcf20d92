//! A recording on the page: what browsers are sent is what was recorded, with the rule that stopped the arm.

use noctule_arm::validate::Rule;
use noctule_teleop::messages::{ArmState, PoseCommand};
use noctule_teleop::recording::{Recorder, SampleTimes};
use serde_json::{Value, json};

use crate::bad_days::Browser;
use crate::processes::{Process, alone};

const STATES: u64 = 400;
/// From this one on the arm stands, because a command contained no number.
const STOPPED_AT: u64 = 300;

#[test]
fn a_recording_is_shown_with_its_stop_and_begins_anew() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.mcap");
    let mut recorder = Recorder::create(&file).unwrap();
    for sequence in 0..STATES {
        let is_stopped = sequence >= STOPPED_AT;
        let times =
            SampleTimes { source_ns: sequence as i64 * 1_000_000, received_ns: sequence as i64 * 1_000_000 };
        let position_m = [0.45, 0.285, -0.2 + sequence.min(STOPPED_AT) as f64 * 1e-4];
        let mode = if is_stopped { ArmState::MODE_STOPPED } else { ArmState::MODE_ENGAGED };
        let rule = if is_stopped { Rule::CommandNotFinite as i8 } else { -1 };
        let state =
            ArmState { sequence, mode, rule, position_m, command_age_ns: 20_500_000, ..ArmState::default() };
        recorder.write_state(&state, times).unwrap();
        let x_m = if is_stopped { f64::NAN } else { 0.01 };
        let command = PoseCommand { sequence, position_m: [x_m, 0.0, 0.0], ..PoseCommand::default() };
        recorder.write_command(&command, times).unwrap();
    }
    recorder.finish().unwrap();
    let name = file.to_string_lossy().into_owned();
    let mut page = Process::start("page", 4_451, &["--no-open", "--replay", &name]);
    let mut browser = Browser::open(&page.line());
    // There is nothing to operate.
    assert_eq!(browser.until(|said| said["t"] == "hello")["replay"], true);
    browser.send(json!({ "t": "take" }));
    let refused = browser.until(|said| said["t"] == "refused");
    assert!(refused["why"].as_str().unwrap().contains("a recording"), "{refused}");
    let is = |frame: &Value, mode: &str| frame["t"] == "state" && frame["mode"] == mode;
    let moving = browser.until(|frame| is(frame, "engaged"));
    assert_eq!(moving["age_ms"], 20.5);
    assert_eq!(moving["hand"]["position"][0], 0.01);
    let stopped = browser.until(|frame| is(frame, "stopped"));
    assert_eq!(stopped["rule"], Rule::CommandNotFinite as i8);
    assert!((stopped["position"][2].as_f64().unwrap() + 0.17).abs() < 1e-9);
    // The command that stopped it cannot be drawn: the hand stays where it last was.
    assert_eq!(stopped["hand"]["position"][0], 0.01);
    browser.until(|frame| is(frame, "engaged"));
}
