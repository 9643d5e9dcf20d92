//! Inputs of the master: a recorded hand, a device of this machine, and what is neither.

use std::fs::File;
use std::io::Write;
use std::process::Command;

use noctule_arm::validate::Rule;
use noctule_sys::clock::realtime_ns;

use crate::bad_days::{Arm, ENGAGED, IDLE, STOPPED};
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
        ("touchpad:/dev/null", "--counts-per-mm"),
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

/// Not by a process that ends behind a page that stays.
#[test]
fn what_cannot_run_is_refused_before_anything_starts_and_what_runs_is_on_this_machine_alone() {
    let _alone = alone();
    let whole = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_noctule"));
        let output = command.args(["teleop", "--no-open", "--seconds", "1"]).args(words).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for (words, wanted) in [
        (&["--input", "mouse:/dev/input/none"][..], "ls -l /dev/input"),
        (&["--deadline", "0"][..], "write a time from 1ms to 10s"),
        (&["--domain", "5001"][..], "0..=5000"),
        (&["--link", "delay=soon"][..], "soon"),
    ] {
        let (code, said) = whole(words);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains(wanted) && !said.contains("pid"), "{said}");
    }
    // A node without a key that is on a network says so.
    let (_, said) = whole(&["--domain", "4446"]);
    assert!(said.contains("pid") && !said.contains("no swarm key"), "{said}");
    let mut command = Command::new(env!("CARGO_BIN_EXE_noctule"));
    let analysed = command.args(["teleop", "analyse", "--gains", "1e308,1e308,1,1"]).output().unwrap();
    assert_eq!(analysed.status.code(), Some(2), "it must not search for ever");
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
    let input = format!("file:{}", table.display());
    let _master = arm.moved_by(4_442, &["--input", &input], |begin, state| {
        state.position_m[0] - begin.position_m[0] > 0.03
    });
    arm.until_at_rest(Rule::CommandTooOld);
}

/// A pipe in place of `/dev/input/event*`, and a master that reads it.
struct Device {
    events: File,
    master: Process,
    _folder: tempfile::TempDir,
}

const EV_KEY: u16 = 1;
const EV_REL: u16 = 2;
const EV_ABS: u16 = 3;
const BTN_LEFT: u16 = 0x110;
const BTN_SOUTH: u16 = 0x130;
const BTN_TOUCH: u16 = 0x14a;
const ABS_X: u16 = 0;
const ABS_MT_SLOT: u16 = 0x2f;
const ABS_MT_POSITION_X: u16 = 0x35;
const ABS_MT_TRACKING_ID: u16 = 0x39;

impl Device {
    fn open(kind: &str, domain: u32, more: &[&str]) -> Device {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("event0");
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        let input = format!("{kind}:{}", path.display());
        let master = Process::start("master", domain, &[&["--input", &input], more].concat());
        Device { events: File::create(&path).unwrap(), master, _folder: folder }
    }

    /// Type, code and value of each, then the end of the report.
    fn send(&mut self, events: &[(u16, u16, i32)]) {
        let now_ns = realtime_ns();
        let mut bytes = Vec::new();
        for (kind, code, value) in events.iter().chain(&[(0, 0, 0)]) {
            bytes.extend((now_ns / 1_000_000_000).to_ne_bytes());
            bytes.extend((now_ns % 1_000_000_000 / 1_000).to_ne_bytes());
            bytes.extend(kind.to_ne_bytes());
            bytes.extend(code.to_ne_bytes());
            bytes.extend(value.to_ne_bytes());
        }
        self.events.write_all(&bytes).unwrap();
    }

    /// Sends what `events` makes of "pressed" and "engaged", after each state, until the arm has moved 20 mm to the right.
    fn drag(&mut self, arm: &mut Arm, mut events: impl FnMut(bool, bool) -> Vec<(u16, u16, i32)>) {
        let begin = arm.newest();
        let (mut state, mut released_at, mut was_engaged) = (begin.clone(), begin.commands, false);
        for _ in 0..60_000 {
            let is_engaged = state.mode == ENGAGED;
            if was_engaged && !is_engaged {
                // A busy machine stopped it: released, and pressed again.
                released_at = state.commands;
            }
            was_engaged = is_engaged;
            self.send(&events(state.commands > released_at + 100, is_engaged));
            state = arm.newest();
            if state.mode == ENGAGED && state.position_m[0] - begin.position_m[0] > 0.02 {
                return;
            }
        }
        panic!("from {:?} to {:?}", begin.position_m, state.position_m);
    }

    /// Pulled out.
    fn end(mut self, arm: &mut Arm) {
        arm.forget();
        drop(self.events);
        assert_eq!(self.master.code(), Some(2), "the device has gone");
        arm.until_at_rest(Rule::CommandTooOld);
    }
}

#[test]
fn a_device_moves_the_arm_and_pulled_out_it_stops_it() {
    let _alone = alone();
    let mut arm = Arm::start(4_443);
    assert_eq!(arm.next().mode, IDLE);

    let mut mouse = Device::open("mouse", 4_443, &[]);
    // 0.05 mm to the right for each state.
    mouse.drag(&mut arm, |pressed, engaged| {
        vec![(EV_KEY, BTN_LEFT, i32::from(pressed)), (EV_REL, 0, if engaged { 2 } else { 0 })]
    });
    mouse.end(&mut arm);

    let mut gamepad = Device::open("gamepad", 4_443, &[]);
    gamepad
        .drag(&mut arm, |pressed, _| vec![(EV_KEY, BTN_SOUTH, i32::from(pressed)), (EV_ABS, ABS_X, 32_767)]);
    gamepad.end(&mut arm);
}

#[test]
fn a_second_finger_on_a_touchpad_is_no_leap_of_the_arm() {
    let _alone = alone();
    let mut arm = Arm::start(4_444);
    let mut pad = Device::open("touchpad", 4_444, &["--counts-per-mm", "40"]);
    let mut finger = Finger { x: 1_000, is_down: false };
    pad.drag(&mut arm, |pressed, engaged| finger.events(pressed, engaged));
    // Another finger 50 mm beside; then the first one leaves, and the single touch of the kernel leaps to the other.
    let before = arm.newest();
    let other = finger.x + 2_000;
    pad.send(&[
        (EV_ABS, ABS_MT_SLOT, 1),
        (EV_ABS, ABS_MT_TRACKING_ID, 8),
        (EV_ABS, ABS_MT_POSITION_X, other),
    ]);
    pad.send(&[(EV_ABS, ABS_MT_SLOT, 0), (EV_ABS, ABS_MT_TRACKING_ID, -1), (EV_ABS, ABS_X, other)]);
    let after = arm.until("at rest", |state| state.mode == IDLE || state.mode == STOPPED);
    let moved_m = after.position_m[0] - before.position_m[0];
    assert!(moved_m.abs() < 0.02, "{moved_m}");
    // It comes down anew, and operates.
    finger.is_down = false;
    pad.drag(&mut arm, |pressed, engaged| finger.events(pressed, engaged));
    pad.end(&mut arm);
}

/// In the first slot of a touchpad of 40 counts per mm.
struct Finger {
    x: i32,
    is_down: bool,
}

impl Finger {
    /// Comes down or leaves, and goes 0.05 mm to the right if the arm follows.
    fn events(&mut self, pressed: bool, engaged: bool) -> Vec<(u16, u16, i32)> {
        let mut events = Vec::new();
        if pressed != self.is_down {
            let id = if pressed { 7 } else { -1 };
            events.extend([(EV_ABS, ABS_MT_TRACKING_ID, id), (EV_KEY, BTN_TOUCH, i32::from(pressed))]);
            self.is_down = pressed;
        }
        if pressed {
            self.x += if engaged { 2 } else { 0 };
            events.extend([(EV_ABS, ABS_MT_POSITION_X, self.x), (EV_ABS, ABS_X, self.x)]);
        }
        events
    }
}
