//! Arbitrary bytes of a line into a MAVLink endpoint: nothing panics, and every queue keeps its limit.
#![no_main]

use libfuzzer_sys::fuzz_target;
use noctule_gateway::mavlink::endpoint::{Endpoint, Event, Identity};
use noctule_gateway::mavlink::ros;
use noctule_timebase::{Instant, Span};

fuzz_target!(|bytes: &[u8]| {
    let mut now = Instant::from_ns(0);
    let mut endpoint = Endpoint::new(Identity::COMPANION, None, now);
    let mut out = Vec::new();
    for piece in bytes.chunks(61) {
        now += Span::from_ms(7);
        endpoint.handle_bytes(piece, now);
        endpoint.handle_timeout(now);
        while let Some(event) = endpoint.poll_event() {
            let Event::Message(message, _) = event else { continue };
            match *message {
                mavlink::dialects::common::MavMessage::ODOMETRY(odometry) => {
                    let there = ros::odometry_from_mavlink(&odometry, ros::Time::default());
                    let _ = ros::odometry_to_mavlink(&there, 1);
                    let _ = ros::vision_from_pose(&there.pose.pose, 1);
                }
                mavlink::dialects::common::MavMessage::RAW_IMU(imu) => {
                    let _ = ros::imu_from_raw(&imu, ros::Time::default());
                }
                _ => {}
            }
        }
        out.clear();
        while endpoint.poll_transmit(now, &mut out) {}
    }
});
