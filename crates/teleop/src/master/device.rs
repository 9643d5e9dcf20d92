//! Input devices of Linux: mouse, touchpad and gamepad, by the kernel's event interface.
//!
//! [`Decoder`] is without I/O: bytes of `/dev/input/event*` in, positions of the hand out, at the times that the kernel gave the
//! events. An event is `struct input_event` of a 64-bit machine, 24 bytes; codes are those of `linux/input-event-codes.h`.

use std::collections::VecDeque;

/// Length of an event.
const EVENT_BYTES: usize = 24;
/// Reports that wait; older ones give way, and are counted.
const REPORTS_MAX: usize = 1_024;
/// A mouse of 1,000 counts per inch.
const MOUSE_M_PER_COUNT: f64 = 25.4e-6;
/// One notch of the wheel, along z.
const WHEEL_M: f64 = 0.002;
/// Of a stick that is pushed to its end.
const STICK_M_S: f64 = 0.15;
const STICK_END: f64 = 32_767.0;
/// Of the stick's way; less is rest.
const STICK_DEAD: f64 = 0.08;
/// A stick moves the hand over no longer a time at once, ns.
const STICK_STEP_MAX_NS: i64 = 50_000_000;

const EV_SYN: u16 = 0;
const EV_KEY: u16 = 1;
const EV_REL: u16 = 2;
const EV_ABS: u16 = 3;
const SYN_REPORT: u16 = 0;
const SYN_DROPPED: u16 = 3;
const REL_WHEEL: u16 = 8;
const ABS_RY: u16 = 4;
const BTN_LEFT: u16 = 0x110;
const BTN_SOUTH: u16 = 0x130;
const BTN_TOUCH: u16 = 0x14a;

/// What a device is. Its clutch is the left button, the touch itself, or the button A.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DeviceKind {
    /// Moves the hand in x and y, its wheel in z.
    Mouse,
    /// Moves it while it is touched, by this many counts per mm; `libinput measure` or `evtest` says how many.
    Touchpad {
        /// Resolution of ABS_X and ABS_Y.
        counts_per_mm: f64,
    },
    /// The left stick in x and y, the right one in z.
    Gamepad,
}

/// Where the hand is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Report {
    /// When, ns of the kernel's wall clock.
    pub at_ns: i64,
    /// Relative to wherever it began, m.
    pub position_m: [f64; 3],
    /// The clutch is held.
    pub clutch: bool,
}

/// From bytes of a device to positions.
#[derive(Debug)]
pub struct Decoder {
    kind: DeviceKind,
    /// The beginning of an event.
    partial: Vec<u8>,
    reports: VecDeque<Report>,
    overwritten: u64,
    position_m: [f64; 3],
    clutch: bool,
    /// Last absolute position of a touch.
    touch: [Option<i32>; 2],
    /// Of the sticks, −1 to 1.
    sticks: [f64; 3],
    moved_at_ns: Option<i64>,
    /// The kernel dropped events; everything up to the next report is void.
    is_void: bool,
}

impl Decoder {
    /// At rest, released.
    pub fn new(kind: DeviceKind) -> Decoder {
        Decoder {
            kind,
            partial: Vec::with_capacity(EVENT_BYTES),
            reports: VecDeque::new(),
            overwritten: 0,
            position_m: [0.0; 3],
            clutch: false,
            touch: [None; 2],
            sticks: [0.0; 3],
            moved_at_ns: None,
            is_void: false,
        }
    }

    /// Takes any bytes; events may be split anywhere.
    pub fn handle_bytes(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let missing = (EVENT_BYTES - self.partial.len()).min(bytes.len());
            self.partial.extend_from_slice(&bytes[..missing]);
            bytes = &bytes[missing..];
            if let Ok(event) = <[u8; EVENT_BYTES]>::try_from(self.partial.as_slice()) {
                self.partial.clear();
                self.handle_event(&event);
            }
        }
    }

    /// Moves a hand that is on a stick up to this time; other devices report by themselves.
    pub fn handle_time(&mut self, at_ns: i64) {
        if self.kind != DeviceKind::Gamepad {
            return;
        }
        let since_ns = at_ns.saturating_sub(self.moved_at_ns.unwrap_or(at_ns)).clamp(0, STICK_STEP_MAX_NS);
        self.moved_at_ns = Some(at_ns);
        if self.clutch {
            for (part, stick) in self.position_m.iter_mut().zip(self.sticks) {
                *part += stick * STICK_M_S * since_ns as f64 * 1e-9;
            }
        }
        self.report(at_ns);
    }

    /// The next report, oldest first.
    pub fn poll_report(&mut self) -> Option<Report> {
        self.reports.pop_front()
    }

    /// Reports that gave way because nobody polled.
    pub fn overwritten(&self) -> u64 {
        self.overwritten
    }

    fn handle_event(&mut self, event: &[u8; EVENT_BYTES]) {
        let [seconds, micros] = [0, 8].map(|from| {
            let part: [u8; 8] = std::array::from_fn(|index| event[from + index]);
            i64::from_ne_bytes(part)
        });
        let [kind, code] = [16, 18].map(|from| u16::from_ne_bytes([event[from], event[from + 1]]));
        let value = i32::from_ne_bytes([event[20], event[21], event[22], event[23]]);
        match (kind, code) {
            (EV_SYN, SYN_DROPPED) => self.lose(),
            (EV_SYN, SYN_REPORT) if self.is_void => self.is_void = false,
            (EV_SYN, SYN_REPORT) if self.kind != DeviceKind::Gamepad => {
                let at_ns =
                    seconds.saturating_mul(1_000_000_000).saturating_add(micros.saturating_mul(1_000));
                self.report(at_ns);
            }
            _ if self.is_void => {}
            (EV_KEY, _) => self.handle_key(code, value != 0),
            (EV_REL, _) => self.handle_relative(code, value),
            (EV_ABS, _) => self.handle_absolute(code, value),
            _ => {}
        }
    }

    /// What a key was meanwhile is not known: released until it is pressed again.
    fn lose(&mut self) {
        self.is_void = true;
        self.clutch = false;
        self.touch = [None; 2];
        self.sticks = [0.0; 3];
    }

    fn handle_key(&mut self, code: u16, is_pressed: bool) {
        let own = match self.kind {
            DeviceKind::Mouse => BTN_LEFT,
            DeviceKind::Touchpad { .. } => BTN_TOUCH,
            DeviceKind::Gamepad => BTN_SOUTH,
        };
        if code == own {
            self.clutch = is_pressed;
            self.touch = [None; 2];
        }
    }

    fn handle_relative(&mut self, code: u16, value: i32) {
        if self.kind != DeviceKind::Mouse {
            return;
        }
        match code {
            0 => self.position_m[0] += f64::from(value) * MOUSE_M_PER_COUNT,
            // Towards the user is down on a screen, and back on the table.
            1 => self.position_m[1] -= f64::from(value) * MOUSE_M_PER_COUNT,
            REL_WHEEL => self.position_m[2] += f64::from(value) * WHEEL_M,
            _ => {}
        }
    }

    fn handle_absolute(&mut self, code: u16, value: i32) {
        let axis = usize::from(code);
        match self.kind {
            DeviceKind::Touchpad { counts_per_mm } if axis < 2 => {
                if let Some(last) = self.touch[axis].replace(value).filter(|_| self.clutch) {
                    let moved_m = (f64::from(value) - f64::from(last)) / counts_per_mm * 1e-3;
                    self.position_m[axis] += if axis == 0 { moved_m } else { -moved_m };
                }
            }
            DeviceKind::Gamepad => {
                let share = (f64::from(value) / STICK_END).clamp(-1.0, 1.0);
                let share = if share.abs() < STICK_DEAD { 0.0 } else { share };
                match code {
                    0 => self.sticks[0] = share,
                    1 => self.sticks[1] = -share,
                    ABS_RY => self.sticks[2] = -share,
                    _ => {}
                }
            }
            _ => {}
        }
    }

    fn report(&mut self, at_ns: i64) {
        if self.reports.len() == REPORTS_MAX {
            self.reports.pop_front();
            self.overwritten += 1;
        }
        self.reports.push_back(Report { at_ns, position_m: self.position_m, clutch: self.clutch });
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn event(at_us: i64, kind: u16, code: u16, value: i32) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend((at_us / 1_000_000).to_ne_bytes());
        bytes.extend((at_us % 1_000_000).to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(code.to_ne_bytes());
        bytes.extend(value.to_ne_bytes());
        bytes
    }

    fn fed(kind: DeviceKind, events: &[Vec<u8>]) -> Decoder {
        let mut decoder = Decoder::new(kind);
        decoder.handle_bytes(&events.concat());
        decoder
    }

    #[test]
    fn a_mouse_moves_by_counts_and_its_button_is_the_clutch() {
        let mut decoder = Decoder::new(DeviceKind::Mouse);
        let bytes = [
            event(1_500_000, EV_KEY, BTN_LEFT, 1),
            event(1_500_000, EV_REL, 0, 1_000),
            event(1_500_000, EV_REL, 1, -500),
            event(1_500_000, EV_REL, REL_WHEEL, 2),
            event(1_500_000, EV_SYN, SYN_REPORT, 0),
            event(1_508_000, EV_KEY, BTN_LEFT, 0),
            event(1_508_000, EV_SYN, SYN_REPORT, 0),
        ]
        .concat();
        // Split at every place, as a pipe may.
        for byte in bytes.chunks(7) {
            decoder.handle_bytes(byte);
        }
        let first = decoder.poll_report().unwrap();
        assert_eq!((first.at_ns, first.clutch), (1_500_000_000, true));
        assert!((first.position_m[0] - 0.0254).abs() < 1e-12 && (first.position_m[1] - 0.0127).abs() < 1e-12);
        assert!((first.position_m[2] - 0.004).abs() < 1e-12);
        assert!(!decoder.poll_report().unwrap().clutch);
        assert!(decoder.poll_report().is_none());
    }

    #[test]
    fn a_touch_begins_anew_wherever_the_finger_comes_down() {
        let kind = DeviceKind::Touchpad { counts_per_mm: 10.0 };
        let touch = |at_us, x| [event(at_us, EV_ABS, 0, x), event(at_us, EV_SYN, SYN_REPORT, 0)].concat();
        let key = |value| event(0, EV_KEY, BTN_TOUCH, value);
        let mut decoder = fed(
            kind,
            &[key(1), touch(1, 100), touch(2, 200), key(0), key(1), touch(3, 5_000), touch(4, 5_100)],
        );
        let positions: Vec<f64> =
            std::iter::from_fn(|| decoder.poll_report()).map(|one| one.position_m[0]).collect();
        let expected = [0.0, 0.01, 0.01, 0.02];
        assert!(
            positions.iter().zip(expected).all(|(got, wanted)| (got - wanted).abs() < 1e-12),
            "{positions:?}"
        );
    }

    #[test]
    fn a_stick_moves_the_hand_while_the_button_is_held() {
        let mut decoder =
            fed(DeviceKind::Gamepad, &[event(0, EV_ABS, 0, 32_767), event(0, EV_ABS, 1, 1_000)]);
        decoder.handle_time(0);
        decoder.handle_time(10_000_000);
        decoder.handle_bytes(&event(0, EV_KEY, BTN_SOUTH, 1));
        decoder.handle_time(20_000_000);
        let last = std::iter::from_fn(|| decoder.poll_report()).last().unwrap();
        assert!(last.clutch && (last.position_m[0] - 0.0015).abs() < 1e-12, "{last:?}");
        assert_eq!(last.position_m[1], 0.0, "within the dead zone");
    }

    #[test]
    fn events_that_the_kernel_dropped_release_the_clutch() {
        let mut decoder = fed(
            DeviceKind::Mouse,
            &[
                event(1, EV_KEY, BTN_LEFT, 1),
                event(1, EV_SYN, SYN_DROPPED, 0),
                event(2, EV_REL, 0, 9_999),
                event(2, EV_SYN, SYN_REPORT, 0),
                event(3, EV_SYN, SYN_REPORT, 0),
            ],
        );
        let report = decoder.poll_report().unwrap();
        assert_eq!((report.clutch, report.position_m), (false, [0.0; 3]));
    }

    #[test]
    fn no_bytes_make_it_panic_and_reports_are_limited() {
        let mut state = 88_172_645_463_325_252_u64;
        for kind in [DeviceKind::Mouse, DeviceKind::Touchpad { counts_per_mm: 12.0 }, DeviceKind::Gamepad] {
            let mut decoder = Decoder::new(kind);
            for _ in 0..40_000 {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                let mut bytes = event(i64::MAX - (state >> 60) as i64, 0, 0, 0);
                bytes[16] = (state % 4) as u8;
                bytes[18] = (state >> 8) as u8 % 9;
                bytes[20..24].copy_from_slice(&((state >> 16) as u32).to_ne_bytes());
                decoder.handle_bytes(&bytes);
                decoder.handle_time(state as i64);
            }
            assert!(decoder.reports.len() <= REPORTS_MAX);
            assert!(kind != DeviceKind::Gamepad || decoder.overwritten() == 40_000 - REPORTS_MAX as u64);
        }
    }
}
