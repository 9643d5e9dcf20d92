//! Events of an input device, and tables of a recorded hand.
#![no_main]

use libfuzzer_sys::fuzz_target;
use noctule_teleop::master::device::{Decoder, DeviceKind, Scale};
use noctule_teleop::master::trajectory::Trajectory;

fuzz_target!(|bytes: &[u8]| {
    for kind in [DeviceKind::Mouse, DeviceKind::Touchpad { counts_per_mm: Some(12.0) }, DeviceKind::Gamepad] {
        let Ok(scale) = Scale::new(kind, |_| None) else { continue };
        let mut decoder = Decoder::new(kind, scale);
        for part in bytes.chunks(31) {
            decoder.handle_bytes(part);
            decoder.handle_time(part.len() as i64);
        }
        while let Some(report) = decoder.poll_report() {
            assert!(report.position_m.iter().all(|part| part.is_finite()));
        }
    }
    let text = format!("seconds,x_m,y_m,z_m,clutch\n{}", String::from_utf8_lossy(bytes));
    if let Ok(trajectory) = text.parse::<Trajectory>() {
        assert!(trajectory.rows().is_sorted_by(|one, next| one.at_ns < next.at_ns));
    }
});
