//! Seeded content of a given size.

use noctule_proto_kit::SplitMix64;

use super::{Battery, Gps, Header, Imu, Parameter, Point, UavState, Waypoint};
use crate::{Format, encode};

/// Bytes a point adds to the CDR and to the plain encoding.
const POINT_BYTES: usize = 16;

impl UavState {
    /// A state whose CDR and plain encodings have about `encoded_bytes`: within a point's 16 bytes, but no less than about
    /// 700. The same seed gives the same content on every machine and in the Python peer.
    pub fn realistic(encoded_bytes: usize, seed: u64) -> Self {
        let mut random = Random { bits: SplitMix64::new(seed) };
        let mut state = Self::without_points(&mut random);
        let mut fixed = Vec::new();
        // It has nothing that CDR could not express; if it had, the tests would say so.
        let _ = encode(Format::Cdr, &state, &mut fixed);
        let count = (encoded_bytes.saturating_sub(fixed.len()) + POINT_BYTES / 2) / POINT_BYTES;
        state.points = (0..count)
            .map(|_| Point {
                x_m: random.within(64.0) as f32,
                y_m: random.within(64.0) as f32,
                z_m: random.within(16.0) as f32,
                intensity: random.share() as f32,
            })
            .collect();
        state
    }

    fn without_points(random: &mut Random) -> Self {
        let parameter = |name: &str, value| Parameter { name: name.into(), value };
        Self {
            header: Header { sequence: 0, stamp_ns: 0, frame_id: "map".into() },
            position_m: [(); 3].map(|()| random.within(1024.0)),
            attitude: [(); 4].map(|()| random.within(1.0)),
            velocity_m_s: [(); 3].map(|()| random.within(16.0) as f32),
            pose_covariance: [(); 21].map(|()| random.share() as f32),
            velocity_covariance: [(); 21].map(|()| random.share() as f32),
            imu: Imu {
                angular_velocity_rad_s: [(); 3].map(|()| random.within(4.0) as f32),
                acceleration_m_s2: [(); 3].map(|()| random.within(16.0) as f32),
                temperature_c: (32.0 + random.within(8.0)) as f32,
            },
            battery: Battery {
                voltage_v: (22.0 + random.within(2.0)) as f32,
                current_a: (16.0 + random.within(8.0)) as f32,
                remaining: random.share() as f32,
                cells_v: (0..6).map(|_| (3.5 + random.within(0.5)) as f32).collect(),
            },
            gps: Gps {
                latitude_deg: 50.0 + random.within(1.0),
                longitude_deg: 12.0 + random.within(1.0),
                altitude_m: 512.0 + random.within(256.0),
                horizontal_error_m: random.share() as f32,
                satellites: 14,
                fix: 3,
            },
            armed: true,
            mode: 4,
            status_text: "Holding position, wind 6 m/s from the west".into(),
            parameters: vec![
                parameter("MPC_XY_VEL_MAX", random.within(16.0)),
                parameter("MPC_Z_VEL_MAX_UP", random.within(16.0)),
                parameter("COM_RC_LOSS_T", random.within(16.0)),
                parameter("BAT_LOW_THR", random.share()),
            ],
            waypoints: (0..4)
                .map(|_| Waypoint {
                    latitude_deg: 50.0 + random.within(1.0),
                    longitude_deg: 12.0 + random.within(1.0),
                    altitude_m: (512.0 + random.within(256.0)) as f32,
                    speed_m_s: (8.0 + random.within(8.0)) as f32,
                })
                .collect(),
            points: Vec::new(),
        }
    }
}

/// Its numbers have 20 bits, so that all arithmetic below is exact in single precision too, and other languages come to the same content.
struct Random {
    bits: SplitMix64,
}

impl Random {
    /// 0 … 1.
    fn share(&mut self) -> f64 {
        (self.bits.bits() >> 44) as f64 / (1 << 20) as f64
    }

    /// −`limit` … `limit`, a power of two or half of one.
    fn within(&mut self, limit: f64) -> f64 {
        (self.share() * 2.0 - 1.0) * limit
    }
}
