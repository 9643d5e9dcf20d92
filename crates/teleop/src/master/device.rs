//! Input devices of Linux: mouse, touchpad and gamepad, by the kernel's event interface.
//!
//! [`Decoder`] is without I/O: bytes of `/dev/input/event*` in, positions of the hand out, at the times that the kernel gave the
//! events. An event is `struct input_event` of a 64-bit machine, 24 bytes; codes are those of `linux/input-event-codes.h`.

mod scale;
mod touch;

use std::collections::VecDeque;

pub use self::scale::{NoResolution, Scale};
use self::touch::Fingers;

/// Length of an event.
const EVENT_BYTES: usize = 24;
/// Reports that wait; older ones give way, and are counted.
const REPORTS_MAX: usize = 1_024;
/// A mouse of 1,000 counts per inch.
const MOUSE_M_PER_COUNT: f64 = 25.4e-6;
/// One notch of the wheel, along z.
const WHEEL_M: f64 = 0.002;
/// Speed of a stick that is pushed to its end.
const STICK_M_S: f64 = 0.15;
/// A stick moves the hand over no longer a time at once, ns.
const STICK_STEP_MAX_NS: i64 = 50_000_000;
/// Time without events after which a mouse or a finger is still, ns: the kernel sends only changes. Longer than the period
/// of the slowest device (8 ms), and shorter than the time for which a hand is extrapolated.
const STILL_NS: i64 = 25_000_000;

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

/// Kind of an input device. Its clutch is the left button, the touch itself, or the button A.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DeviceKind {
    /// Moves the hand in x and y, its wheel in z.
    Mouse,
    /// Moves it while it is touched.
    Touchpad {
        /// Resolution of both axes; `None` takes what the driver states.
        counts_per_mm: Option<f64>,
    },
    /// The left stick in x and y, the right one (`ABS_RY`) in z.
    Gamepad,
}

/// Position of the hand at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Report {
    /// When, ns of the kernel's wall clock.
    pub at_ns: i64,
    /// Relative to wherever it began, m.
    pub position_m: [f64; 3],
    /// The clutch is held.
    pub clutch: bool,
}

/// Turns bytes of a device into positions.
#[derive(Debug)]
pub struct Decoder {
    kind: DeviceKind,
    scale: Scale,
    /// The beginning of an event.
    partial: Vec<u8>,
    reports: VecDeque<Report>,
    overwritten: u64,
    position_m: [f64; 3],
    clutch: bool,
    fingers: Fingers,
    /// Positions of the sticks, −1 to 1.
    sticks: [f64; 3],
    moved_at_ns: Option<i64>,
    /// When the device reported last.
    event_at_ns: Option<i64>,
    /// The kernel dropped events; everything up to the next report is void.
    is_void: bool,
}

impl Decoder {
    /// A device at rest, released.
    pub fn new(kind: DeviceKind, scale: Scale) -> Decoder {
        Decoder {
            kind,
            scale,
            partial: Vec::with_capacity(EVENT_BYTES),
            reports: VecDeque::new(),
            overwritten: 0,
            position_m: [0.0; 3],
            clutch: false,
            fingers: Fingers::default(),
            sticks: [0.0; 3],
            moved_at_ns: None,
            event_at_ns: None,
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

    /// Moves a hand that is on a stick up to this time. Any other hand is still if its device has been silent.
    pub fn handle_time(&mut self, at_ns: i64) {
        if self.kind != DeviceKind::Gamepad {
            if self.event_at_ns.is_none_or(|last_ns| at_ns.saturating_sub(last_ns) >= STILL_NS) {
                self.report(at_ns);
            }
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

    /// Reports dropped because they were not polled.
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
                self.event_at_ns = Some(at_ns);
                self.report(at_ns);
            }
            _ if self.is_void => {}
            (EV_KEY, _) => self.handle_key(code, value != 0),
            (EV_REL, _) => self.handle_relative(code, value),
            (EV_ABS, _) => self.handle_absolute(code, value),
            _ => {}
        }
    }

    /// After lost events no key's state is known: all count as released until pressed again.
    fn lose(&mut self) {
        self.is_void = true;
        self.clutch = false;
        self.fingers.forget();
        self.sticks = [0.0; 3];
    }

    fn handle_key(&mut self, code: u16, is_pressed: bool) {
        match (self.kind, code) {
            (DeviceKind::Touchpad { .. }, BTN_TOUCH) => {
                self.fingers.handle_button(is_pressed);
                self.clutch = self.fingers.is_operating();
            }
            (DeviceKind::Mouse, BTN_LEFT) | (DeviceKind::Gamepad, BTN_SOUTH) => self.clutch = is_pressed,
            _ => {}
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
        match self.kind {
            DeviceKind::Touchpad { .. } => {
                if let Some((axis, counts)) = self.fingers.handle_absolute(code, value) {
                    let moved_m = counts / self.scale.counts_per_mm[axis] * 1e-3;
                    self.position_m[axis] += if axis == 0 { moved_m } else { -moved_m };
                }
                self.clutch = self.fingers.is_operating();
            }
            DeviceKind::Gamepad => match code {
                0 => self.sticks[0] = self.scale.stick(0, value),
                1 => self.sticks[1] = -self.scale.stick(1, value),
                ABS_RY => self.sticks[2] = -self.scale.stick(2, value),
                _ => {}
            },
            DeviceKind::Mouse => {}
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

    fn decoder(kind: DeviceKind) -> Decoder {
        Decoder::new(kind, Scale::new(kind, |_| None).unwrap())
    }

    fn fed(kind: DeviceKind, events: &[Vec<u8>]) -> Decoder {
        let mut decoder = decoder(kind);
        decoder.handle_bytes(&events.concat());
        decoder
    }

    #[test]
    fn a_mouse_moves_by_counts_and_its_button_is_the_clutch() {
        let mut decoder = decoder(DeviceKind::Mouse);
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
        let kind = DeviceKind::Touchpad { counts_per_mm: Some(10.0) };
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
    fn a_finger_of_a_touchpad_with_slots_is_the_clutch() {
        let finger = |id| event(0, EV_ABS, 0x39, id);
        let report = |at_us, x| {
            // The slot's position, then the single touch that the kernel adds for older programs.
            [event(at_us, EV_ABS, 0x35, x), event(at_us, EV_ABS, 0, x), event(at_us, EV_SYN, SYN_REPORT, 0)]
                .concat()
        };
        let touch = |value| event(0, EV_KEY, BTN_TOUCH, value);
        let mut decoder = fed(
            DeviceKind::Touchpad { counts_per_mm: Some(40.0) },
            &[
                finger(7),
                touch(1),
                report(1_000, 400),
                report(9_000, 800),
                finger(-1),
                touch(0),
                report(17_000, 900),
            ],
        );
        let reports: Vec<(bool, f64)> =
            std::iter::from_fn(|| decoder.poll_report()).map(|one| (one.clutch, one.position_m[0])).collect();
        assert_eq!(reports, [(true, 0.0), (true, 0.01), (false, 0.01)]);
    }

    #[test]
    fn a_device_that_is_silent_is_still_and_says_so() {
        let mut decoder =
            fed(DeviceKind::Mouse, &[event(1_000, EV_KEY, BTN_LEFT, 1), event(1_000, EV_SYN, SYN_REPORT, 0)]);
        decoder.handle_time(1_000_000 + STILL_NS - 1);
        decoder.handle_time(1_000_000 + STILL_NS);
        decoder.handle_time(2_000_000 + STILL_NS);
        let times: Vec<(i64, bool)> =
            std::iter::from_fn(|| decoder.poll_report()).map(|one| (one.at_ns, one.clutch)).collect();
        assert_eq!(times, [(1_000_000, true), (1_000_000 + STILL_NS, true), (2_000_000 + STILL_NS, true)]);
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
        for kind in
            [DeviceKind::Mouse, DeviceKind::Touchpad { counts_per_mm: Some(12.0) }, DeviceKind::Gamepad]
        {
            let mut decoder = decoder(kind);
            for _ in 0..40_000 {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                let mut bytes = event(i64::MAX - (state >> 60) as i64, 0, 0, 0);
                bytes[16] = (state % 4) as u8;
                bytes[18] =
                    if state >> 63 == 0 { (state >> 8) as u8 % 9 } else { 0x2f + (state >> 8) as u8 % 11 };
                bytes[20..24].copy_from_slice(&((state >> 16) as u32).to_ne_bytes());
                decoder.handle_bytes(&bytes);
                decoder.handle_time(state as i64);
            }
            assert!(decoder.reports.len() <= REPORTS_MAX);
            assert!(kind != DeviceKind::Gamepad || decoder.overwritten() == 40_000 - REPORTS_MAX as u64);
        }
    }
}
