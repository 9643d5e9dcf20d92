//! Inputs of the master: a recorded hand, a device of this machine, and what is neither.

use std::fs::File;
use std::io::Write;
use std::process::Command;

use noctule_arm::validate::Rule;
use noctule_sys::clock::realtime_ns;

use crate::bad_days::{Arm, ENGAGED, IDLE};
use crate::processes::{Process, alone};

#[test]
fn what_is_no_input_is_one_sentence_and_exit_code_2() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("hand.csv");
    std::fs::write(&table, "seconds,x_m,y_m,z_m,clutch\n0,0,0,0,0\n0.5,wide,0,0,1\n").unwrap();
    let of_table = format!("file:{}", table.display());
    for (input, wanted) in [
        ("mouse", "names no input"),
        ("wheel:/dev/input/event0", "names no input"),
        ("mouse:/dev/input/none", "ls -l /dev/input"),
        ("file:/no/such.csv", "cannot read /no/such.csv"),
        (&of_table, "line 3"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_noctule"));
        let output =
            command.args(["teleop", "master", "--domain", "4441", "--input", input]).output().unwrap();
        let sentence = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{sentence}");
        assert!(sentence.contains(wanted), "{sentence}");
    }
}

#[test]
fn a_recorded_hand_moves_the_arm_and_its_end_stops_it() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("hand.csv");
    // Released for 3 s while the processes meet; then 40 mm along x in 2 s, every 8 ms.
    let mut text = "seconds,x_m,y_m,z_m,clutch\n".to_owned();
    for step in 0..750 {
        let seconds = f64::from(step) * 0.008;
        let x_m = ((seconds - 3.5) * 0.02).clamp(0.0, 0.04);
        text += &format!("{seconds},{x_m},0,0,{}\n", u8::from(seconds > 3.0));
    }
    std::fs::write(&table, text).unwrap();
    let mut arm = Arm::start(4_442);
    let begin = arm.next().position_m;
    let _master = Process::start("master", 4_442, &["--input", &format!("file:{}", table.display())]);
    arm.until("30 mm from its beginning", |state| {
        state.mode == ENGAGED && state.position_m[0] - begin[0] > 0.03
    });
    arm.forget();
    arm.until_at_rest(Rule::CommandTooOld);
}

#[test]
fn a_mouse_moves_the_arm_and_pulled_out_it_stops_it() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let device = folder.path().join("event0");
    assert!(Command::new("mkfifo").arg(&device).status().unwrap().success());
    let mut arm = Arm::start(4_443);
    let mut master = Process::start("master", 4_443, &["--input", &format!("mouse:{}", device.display())]);
    let mut mouse = File::create(&device).unwrap();
    let mut send = |kind: u16, code: u16, value: i32| {
        let now_ns = realtime_ns();
        let mut event = Vec::new();
        event.extend((now_ns / 1_000_000_000).to_ne_bytes());
        event.extend((now_ns % 1_000_000_000 / 1_000).to_ne_bytes());
        event.extend(kind.to_ne_bytes());
        event.extend(code.to_ne_bytes());
        event.extend(value.to_ne_bytes());
        mouse.write_all(&event).unwrap();
    };
    let begin = arm.next();
    assert_eq!(begin.mode, IDLE);
    let mut state = begin.clone();
    // Released until commands arrive; then pressed, and 0.05 mm to the right for each state.
    for _ in 0..60_000 {
        send(1, 0x110, i32::from(state.commands > 100));
        send(2, 0, if state.mode == ENGAGED { 2 } else { 0 });
        send(0, 0, 0);
        state = arm.newest();
        if state.mode == ENGAGED && state.position_m[0] - begin.position_m[0] > 0.02 {
            break;
        }
    }
    assert!(state.position_m[0] - begin.position_m[0] > 0.02, "{:?}", state.position_m);
    arm.forget();
    drop(mouse);
    assert_eq!(master.code(), Some(2), "the device has gone");
    arm.until_at_rest(Rule::CommandTooOld);
}
