//! A realistic message: the state of one UAV as a swarm shares it, in every format.
//!
//! Numbers, strings, arrays, nested structs, a sequence of structs with strings, and a point cloud by which it is
//! scaled. It is the worked example of a type with schemas of its own ([`plain`], [`protobuf`], [`flat_buffers`]) and
//! what the lab's scenario `formats` sends. The same type stands in `schemas/uav_state.proto`, `schemas/uav_state.fbs`
//! and in the Python peer.

#[cfg(feature = "flatbuffers")]
pub mod flat_buffers;
pub mod plain;
#[cfg(feature = "protobuf")]
pub mod protobuf;
mod realistic;

use serde::{Deserialize, Serialize};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::{Codec, Format, FormatError, message};

message! {
    /// Number, time and coordinate frame of a message.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    pub struct Header: "uav/Header" {
        /// Number of the message.
        pub sequence: u64,
        /// When it was measured, in the sender's clock.
        pub stamp_ns: i64,
        /// Coordinate frame of positions and attitude.
        pub frame_id: String,
    }
}

message! {
    /// One sample of the inertial sensors.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    pub struct Imu: "uav/Imu" {
        /// About x, y, z.
        pub angular_velocity_rad_s: [f32; 3],
        /// Along x, y, z.
        pub acceleration_m_s2: [f32; 3],
        /// Temperature of the sensor, in degrees Celsius.
        pub temperature_c: f32,
    }
}

message! {
    /// State of the battery.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    pub struct Battery: "uav/Battery" {
        /// Voltage of all cells together.
        pub voltage_v: f32,
        /// Drawn; negative while charging.
        pub current_a: f32,
        /// Charge left, 0 … 1.
        pub remaining: f32,
        /// Voltage of each cell.
        #[serde(default)]
        pub cells_v: Vec<f32>,
    }
}

message! {
    /// Satellite position.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    pub struct Gps: "uav/Gps" {
        /// North is positive.
        pub latitude_deg: f64,
        /// East is positive.
        pub longitude_deg: f64,
        /// Above mean sea level.
        pub altitude_m: f64,
        /// One standard deviation.
        pub horizontal_error_m: f32,
        /// Satellites used.
        pub satellites: u8,
        /// 0 none, 2 2D, 3 3D, as in MAVLink's `GPS_FIX_TYPE`.
        pub fix: u8,
    }
}

message! {
    /// A parameter by name.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    pub struct Parameter: "uav/Parameter" {
        /// Name, at most 16 bytes, as in MAVLink.
        pub name: String,
        /// Value in the parameter's own unit.
        pub value: f64,
    }
}

message! {
    /// A place to fly to.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
    #[repr(C)]
    pub struct Waypoint: "uav/Waypoint" {
        /// North is positive.
        pub latitude_deg: f64,
        /// East is positive.
        pub longitude_deg: f64,
        /// Above mean sea level.
        pub altitude_m: f32,
        /// Speed on the way there.
        pub speed_m_s: f32,
    }
    codec = crate::plain::only;
}

message! {
    /// One return of the range sensor.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
    #[repr(C)]
    pub struct Point: "uav/Point" {
        /// Forward.
        pub x_m: f32,
        /// Left.
        pub y_m: f32,
        /// Up.
        pub z_m: f32,
        /// 0 … 1.
        pub intensity: f32,
    }
    codec = crate::plain::only;
}

message! {
    /// The state of one UAV.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    pub struct UavState: "uav/UavState" {
        /// Which message this is.
        pub header: Header,
        /// East, north, up from the origin of the frame.
        pub position_m: [f64; 3],
        /// Quaternion w, x, y, z from body to frame.
        pub attitude: [f64; 4],
        /// East, north, up.
        pub velocity_m_s: [f32; 3],
        /// Upper right triangle of 6 × 6, position then attitude, as in MAVLink's `ODOMETRY`.
        pub pose_covariance: [f32; 21],
        /// Likewise, velocity then rotation rate.
        pub velocity_covariance: [f32; 21],
        /// Inertial sensors.
        pub imu: Imu,
        /// Battery.
        pub battery: Battery,
        /// Satellite position.
        pub gps: Gps,
        /// Whether the motors may turn.
        pub armed: bool,
        /// Flight mode.
        pub mode: u8,
        /// A sentence for people, as in MAVLink's `STATUSTEXT`.
        pub status_text: String,
        /// Parameters of interest to the swarm.
        #[serde(default)]
        pub parameters: Vec<Parameter>,
        /// The way ahead.
        #[serde(default)]
        pub waypoints: Vec<Waypoint>,
        /// Obstacles around, by whose number the message is scaled.
        #[serde(default)]
        pub points: Vec<Point>,
    }
    codec = schema;
}

fn schema(format: Format) -> Option<Codec<UavState>> {
    match format {
        Format::Plain => Some(Codec::new(plain::encode, plain::decode)),
        #[cfg(feature = "protobuf")]
        Format::Protobuf => Some(Codec::new(protobuf::encode, protobuf::decode)),
        #[cfg(feature = "flatbuffers")]
        Format::FlatBuffers => Some(Codec::new(flat_buffers::encode, flat_buffers::decode)),
        _ => None,
    }
}

impl UavState {
    /// [`encode`](crate::encode) for this type, compiled here once rather than in every crate that calls it.
    ///
    /// # Errors
    /// As [`encode`](crate::encode).
    pub fn encode(&self, format: Format, out: &mut Vec<u8>) -> Result<(), FormatError> {
        crate::encode(format, self, out)
    }

    /// [`decode`](crate::decode), likewise.
    ///
    /// # Errors
    /// As [`decode`](crate::decode).
    pub fn decode(format: Format, bytes: &[u8]) -> Result<UavState, FormatError> {
        crate::decode(format, bytes)
    }
}

#[cfg(test)]
#[cfg(feature = "default")]
mod tests;
