//! The state in Protocol Buffers: the types of `schemas/uav_state.proto`, and the way there and back.

use super::{Battery, Gps, Header, Imu, Parameter, Point, UavState, Waypoint};
use crate::{Format, FormatError, protobuf};

/// Types as a program generated from the schema would have them. Meanings and units: [`UavState`].
#[expect(missing_docs, reason = "the fields of UavState")]
pub mod wire {
    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Header {
        #[prost(uint64, tag = "1")]
        pub sequence: u64,
        #[prost(sfixed64, tag = "2")]
        pub stamp_ns: i64,
        #[prost(string, tag = "3")]
        pub frame_id: String,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Imu {
        #[prost(float, repeated, tag = "1")]
        pub angular_velocity_rad_s: Vec<f32>,
        #[prost(float, repeated, tag = "2")]
        pub acceleration_m_s2: Vec<f32>,
        #[prost(float, tag = "3")]
        pub temperature_c: f32,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Battery {
        #[prost(float, tag = "1")]
        pub voltage_v: f32,
        #[prost(float, tag = "2")]
        pub current_a: f32,
        #[prost(float, tag = "3")]
        pub remaining: f32,
        #[prost(float, repeated, tag = "4")]
        pub cells_v: Vec<f32>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Gps {
        #[prost(double, tag = "1")]
        pub latitude_deg: f64,
        #[prost(double, tag = "2")]
        pub longitude_deg: f64,
        #[prost(double, tag = "3")]
        pub altitude_m: f64,
        #[prost(float, tag = "4")]
        pub horizontal_error_m: f32,
        #[prost(uint32, tag = "5")]
        pub satellites: u32,
        #[prost(uint32, tag = "6")]
        pub fix: u32,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Parameter {
        #[prost(string, tag = "1")]
        pub name: String,
        #[prost(double, tag = "2")]
        pub value: f64,
    }

    #[derive(Clone, Copy, PartialEq, prost::Message)]
    pub struct Waypoint {
        #[prost(double, tag = "1")]
        pub latitude_deg: f64,
        #[prost(double, tag = "2")]
        pub longitude_deg: f64,
        #[prost(float, tag = "3")]
        pub altitude_m: f32,
        #[prost(float, tag = "4")]
        pub speed_m_s: f32,
    }

    #[derive(Clone, Copy, PartialEq, prost::Message)]
    pub struct Point {
        #[prost(float, tag = "1")]
        pub x_m: f32,
        #[prost(float, tag = "2")]
        pub y_m: f32,
        #[prost(float, tag = "3")]
        pub z_m: f32,
        #[prost(float, tag = "4")]
        pub intensity: f32,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct UavState {
        #[prost(message, optional, tag = "1")]
        pub header: Option<Header>,
        #[prost(double, repeated, tag = "2")]
        pub position_m: Vec<f64>,
        #[prost(double, repeated, tag = "3")]
        pub attitude: Vec<f64>,
        #[prost(float, repeated, tag = "4")]
        pub velocity_m_s: Vec<f32>,
        #[prost(float, repeated, tag = "5")]
        pub pose_covariance: Vec<f32>,
        #[prost(float, repeated, tag = "6")]
        pub velocity_covariance: Vec<f32>,
        #[prost(message, optional, tag = "7")]
        pub imu: Option<Imu>,
        #[prost(message, optional, tag = "8")]
        pub battery: Option<Battery>,
        #[prost(message, optional, tag = "9")]
        pub gps: Option<Gps>,
        #[prost(bool, tag = "10")]
        pub armed: bool,
        #[prost(uint32, tag = "11")]
        pub mode: u32,
        #[prost(string, tag = "12")]
        pub status_text: String,
        #[prost(message, repeated, tag = "13")]
        pub parameters: Vec<Parameter>,
        #[prost(message, repeated, tag = "14")]
        pub waypoints: Vec<Waypoint>,
        #[prost(message, repeated, tag = "15")]
        pub points: Vec<Point>,
    }
}

/// Appends the Protobuf encoding, by way of [`wire::UavState`].
///
/// # Errors
/// None: it has a result only to fit [`Codec`](crate::Codec).
pub fn encode(state: &UavState, out: &mut Vec<u8>) -> Result<(), FormatError> {
    protobuf::encode(&to_wire(state), out)
}

/// Reads the Protobuf encoding, by way of [`wire::UavState`].
///
/// # Errors
/// The bytes are not Protobuf, a part is missing, or an array has another length.
pub fn decode(bytes: &[u8]) -> Result<UavState, FormatError> {
    from_wire(protobuf::decode(bytes)?)
}

fn to_wire(state: &UavState) -> wire::UavState {
    let UavState { header, imu, battery, gps, .. } = state;
    wire::UavState {
        header: Some(wire::Header {
            sequence: header.sequence,
            stamp_ns: header.stamp_ns,
            frame_id: header.frame_id.clone(),
        }),
        position_m: state.position_m.to_vec(),
        attitude: state.attitude.to_vec(),
        velocity_m_s: state.velocity_m_s.to_vec(),
        pose_covariance: state.pose_covariance.to_vec(),
        velocity_covariance: state.velocity_covariance.to_vec(),
        imu: Some(wire::Imu {
            angular_velocity_rad_s: imu.angular_velocity_rad_s.to_vec(),
            acceleration_m_s2: imu.acceleration_m_s2.to_vec(),
            temperature_c: imu.temperature_c,
        }),
        battery: Some(wire::Battery {
            voltage_v: battery.voltage_v,
            current_a: battery.current_a,
            remaining: battery.remaining,
            cells_v: battery.cells_v.clone(),
        }),
        gps: Some(wire::Gps {
            latitude_deg: gps.latitude_deg,
            longitude_deg: gps.longitude_deg,
            altitude_m: gps.altitude_m,
            horizontal_error_m: gps.horizontal_error_m,
            satellites: gps.satellites.into(),
            fix: gps.fix.into(),
        }),
        armed: state.armed,
        mode: state.mode.into(),
        status_text: state.status_text.clone(),
        parameters: state.parameters.iter().map(to_wire_parameter).collect(),
        waypoints: state.waypoints.iter().map(to_wire_waypoint).collect(),
        points: state.points.iter().map(to_wire_point).collect(),
    }
}

fn to_wire_parameter(parameter: &Parameter) -> wire::Parameter {
    wire::Parameter { name: parameter.name.clone(), value: parameter.value }
}

fn to_wire_waypoint(waypoint: &Waypoint) -> wire::Waypoint {
    let Waypoint { latitude_deg, longitude_deg, altitude_m, speed_m_s } = *waypoint;
    wire::Waypoint { latitude_deg, longitude_deg, altitude_m, speed_m_s }
}

fn to_wire_point(point: &Point) -> wire::Point {
    let Point { x_m, y_m, z_m, intensity } = *point;
    wire::Point { x_m, y_m, z_m, intensity }
}

fn from_wire(wire: wire::UavState) -> Result<UavState, FormatError> {
    let header = wire.header.ok_or_else(|| missing("header"))?;
    let imu = wire.imu.ok_or_else(|| missing("imu"))?;
    let battery = wire.battery.ok_or_else(|| missing("battery"))?;
    let gps = wire.gps.ok_or_else(|| missing("gps"))?;
    Ok(UavState {
        header: Header { sequence: header.sequence, stamp_ns: header.stamp_ns, frame_id: header.frame_id },
        position_m: array("position_m", &wire.position_m)?,
        attitude: array("attitude", &wire.attitude)?,
        velocity_m_s: array("velocity_m_s", &wire.velocity_m_s)?,
        pose_covariance: array("pose_covariance", &wire.pose_covariance)?,
        velocity_covariance: array("velocity_covariance", &wire.velocity_covariance)?,
        imu: Imu {
            angular_velocity_rad_s: array("angular_velocity_rad_s", &imu.angular_velocity_rad_s)?,
            acceleration_m_s2: array("acceleration_m_s2", &imu.acceleration_m_s2)?,
            temperature_c: imu.temperature_c,
        },
        battery: Battery {
            voltage_v: battery.voltage_v,
            current_a: battery.current_a,
            remaining: battery.remaining,
            cells_v: battery.cells_v,
        },
        gps: Gps {
            latitude_deg: gps.latitude_deg,
            longitude_deg: gps.longitude_deg,
            altitude_m: gps.altitude_m,
            horizontal_error_m: gps.horizontal_error_m,
            satellites: octet("satellites", gps.satellites)?,
            fix: octet("fix", gps.fix)?,
        },
        armed: wire.armed,
        mode: octet("mode", wire.mode)?,
        status_text: wire.status_text,
        parameters: wire.parameters.into_iter().map(from_wire_parameter).collect(),
        waypoints: wire.waypoints.into_iter().map(from_wire_waypoint).collect(),
        points: wire.points.into_iter().map(from_wire_point).collect(),
    })
}

fn from_wire_parameter(wire: wire::Parameter) -> Parameter {
    Parameter { name: wire.name, value: wire.value }
}

fn from_wire_waypoint(wire: wire::Waypoint) -> Waypoint {
    let wire::Waypoint { latitude_deg, longitude_deg, altitude_m, speed_m_s } = wire;
    Waypoint { latitude_deg, longitude_deg, altitude_m, speed_m_s }
}

fn from_wire_point(wire: wire::Point) -> Point {
    let wire::Point { x_m, y_m, z_m, intensity } = wire;
    Point { x_m, y_m, z_m, intensity }
}

fn missing(what: &str) -> FormatError {
    FormatError::decode(Format::Protobuf, format!("{what} is missing"))
}

fn array<T: Copy, const N: usize>(what: &str, found: &[T]) -> Result<[T; N], FormatError> {
    found.try_into().map_err(|_| {
        FormatError::decode(Format::Protobuf, format!("{what} has {} elements, not {N}", found.len()))
    })
}

fn octet(what: &str, found: u32) -> Result<u8, FormatError> {
    found
        .try_into()
        .map_err(|_| FormatError::decode(Format::Protobuf, format!("{what} = {found} is above 255")))
}
