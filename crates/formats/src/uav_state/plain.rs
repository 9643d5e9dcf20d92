//! The plain layout: a fixed part, then the points. Text and lists have room for a fixed number, as in MAVLink.
//!
//! Encoding is a copy, and [`PlainUavState::view`] reads it where it lies, for example in shared memory.

use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use super::{Battery, Gps, Header, Imu, Parameter, Point, UavState, Waypoint};
use crate::{Format, FormatError};

/// Room for names.
pub const NAME_BYTES_MAX: usize = 16;
/// Room for the coordinate frame.
pub const FRAME_BYTES_MAX: usize = 32;
/// Room for the status text.
pub const STATUS_TEXT_BYTES_MAX: usize = 64;
/// Room for battery cells.
pub const CELLS_MAX: usize = 6;
/// Room for parameters.
pub const PARAMETERS_MAX: usize = 4;
/// Room for waypoints.
pub const WAYPOINTS_MAX: usize = 4;

/// A parameter with its name closed by zeros.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct PlainParameter {
    /// UTF-8, zeros after it.
    pub name: [u8; NAME_BYTES_MAX],
    /// In the parameter's own unit.
    pub value: f64,
}

/// Everything but the points: 640 bytes. Fields are ordered by alignment, so that nothing lies between them; what is not
/// used is zero. Meanings and units: [`UavState`].
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
#[expect(missing_docs, reason = "the fields of UavState")]
pub struct PlainFixed {
    pub sequence: u64,
    pub stamp_ns: i64,
    pub position_m: [f64; 3],
    pub attitude: [f64; 4],
    pub gps_position: [f64; 3],
    pub waypoints: [Waypoint; WAYPOINTS_MAX],
    pub parameters: [PlainParameter; PARAMETERS_MAX],
    pub velocity_m_s: [f32; 3],
    pub pose_covariance: [f32; 21],
    pub velocity_covariance: [f32; 21],
    pub angular_velocity_rad_s: [f32; 3],
    pub acceleration_m_s2: [f32; 3],
    pub temperature_c: f32,
    pub voltage_v: f32,
    pub current_a: f32,
    pub remaining: f32,
    pub cells_v: [f32; CELLS_MAX],
    pub horizontal_error_m: f32,
    pub satellites: u8,
    pub fix: u8,
    pub armed: u8,
    pub mode: u8,
    pub cells: u8,
    pub parameter_count: u8,
    pub waypoint_count: u8,
    pub frame_id: [u8; FRAME_BYTES_MAX],
    pub status_text: [u8; STATUS_TEXT_BYTES_MAX],
    pub reserved: u8,
}

/// A whole message in its own encoding, where it lies.
#[derive(Debug, FromBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct PlainUavState {
    /// Everything but the points.
    pub fixed: PlainFixed,
    /// The points.
    pub points: [Point],
}

impl PlainUavState {
    /// The message in these bytes, without a copy.
    ///
    /// # Errors
    /// The length is not that of a message, or the first byte is not aligned to 8.
    pub fn view(bytes: &[u8]) -> Result<&Self, FormatError> {
        Self::ref_from_bytes(bytes)
            .map_err(|error| FormatError::decode(Format::Plain, crate::error::Fault::of(error)))
    }
}

/// Appends the plain encoding.
///
/// # Errors
/// A text or list is longer than the room it has.
pub fn encode(state: &UavState, out: &mut Vec<u8>) -> Result<(), FormatError> {
    let fixed = fixed_of(state)?;
    out.reserve(size_of::<PlainFixed>() + size_of_val(&state.points[..]));
    out.extend_from_slice(fixed.as_bytes());
    out.extend_from_slice(state.points.as_bytes());
    Ok(())
}

/// Reads the plain encoding from bytes of any alignment.
///
/// # Errors
/// The length is not that of a message, or something in it has no meaning.
pub fn decode(bytes: &[u8]) -> Result<UavState, FormatError> {
    let wrong = |what: &str| FormatError::decode(Format::Plain, what);
    let (fixed, rest) = PlainFixed::read_from_prefix(bytes).map_err(|_| wrong("it is too short"))?;
    let (points, incomplete) = rest.as_chunks::<{ size_of::<Point>() }>();
    if !incomplete.is_empty() {
        return Err(wrong("the last point is incomplete"));
    }
    let mut state = state_of(&fixed)?;
    state.points = points.iter().map(|point| zerocopy::transmute!(*point)).collect();
    Ok(state)
}

fn fixed_of(state: &UavState) -> Result<PlainFixed, FormatError> {
    let mut parameters = [PlainParameter { name: [0; NAME_BYTES_MAX], value: 0.0 }; PARAMETERS_MAX];
    room("parameters", state.parameters.len(), PARAMETERS_MAX)?;
    for (target, parameter) in parameters.iter_mut().zip(&state.parameters) {
        *target = PlainParameter { name: padded("a name", &parameter.name)?, value: parameter.value };
    }
    let mut waypoints = [Waypoint::new_zeroed(); WAYPOINTS_MAX];
    room("waypoints", state.waypoints.len(), WAYPOINTS_MAX)?;
    waypoints[..state.waypoints.len()].copy_from_slice(&state.waypoints);
    let UavState { header, imu, battery, gps, .. } = state;
    let mut cells_v = [0.0; CELLS_MAX];
    room("battery cells", battery.cells_v.len(), CELLS_MAX)?;
    cells_v[..battery.cells_v.len()].copy_from_slice(&battery.cells_v);
    Ok(PlainFixed {
        sequence: header.sequence,
        stamp_ns: header.stamp_ns,
        position_m: state.position_m,
        attitude: state.attitude,
        gps_position: [gps.latitude_deg, gps.longitude_deg, gps.altitude_m],
        waypoints,
        parameters,
        velocity_m_s: state.velocity_m_s,
        pose_covariance: state.pose_covariance,
        velocity_covariance: state.velocity_covariance,
        angular_velocity_rad_s: imu.angular_velocity_rad_s,
        acceleration_m_s2: imu.acceleration_m_s2,
        temperature_c: imu.temperature_c,
        voltage_v: battery.voltage_v,
        current_a: battery.current_a,
        remaining: battery.remaining,
        cells_v,
        horizontal_error_m: gps.horizontal_error_m,
        satellites: gps.satellites,
        fix: gps.fix,
        armed: state.armed.into(),
        mode: state.mode,
        cells: battery.cells_v.len() as u8,
        parameter_count: state.parameters.len() as u8,
        waypoint_count: state.waypoints.len() as u8,
        frame_id: padded("the frame", &header.frame_id)?,
        status_text: padded("the status text", &state.status_text)?,
        reserved: 0,
    })
}

fn state_of(fixed: &PlainFixed) -> Result<UavState, FormatError> {
    let [latitude_deg, longitude_deg, altitude_m] = fixed.gps_position;
    let parameters = counted("parameters", &fixed.parameters, fixed.parameter_count)?.iter();
    let parameters = parameters.map(|plain| Ok(Parameter { name: text(&plain.name)?, value: plain.value }));
    Ok(UavState {
        header: Header {
            sequence: fixed.sequence,
            stamp_ns: fixed.stamp_ns,
            frame_id: text(&fixed.frame_id)?,
        },
        position_m: fixed.position_m,
        attitude: fixed.attitude,
        velocity_m_s: fixed.velocity_m_s,
        pose_covariance: fixed.pose_covariance,
        velocity_covariance: fixed.velocity_covariance,
        imu: Imu {
            angular_velocity_rad_s: fixed.angular_velocity_rad_s,
            acceleration_m_s2: fixed.acceleration_m_s2,
            temperature_c: fixed.temperature_c,
        },
        battery: Battery {
            voltage_v: fixed.voltage_v,
            current_a: fixed.current_a,
            remaining: fixed.remaining,
            cells_v: counted("battery cells", &fixed.cells_v, fixed.cells)?.to_vec(),
        },
        gps: Gps {
            latitude_deg,
            longitude_deg,
            altitude_m,
            horizontal_error_m: fixed.horizontal_error_m,
            satellites: fixed.satellites,
            fix: fixed.fix,
        },
        armed: fixed.armed != 0,
        mode: fixed.mode,
        status_text: text(&fixed.status_text)?,
        parameters: parameters.collect::<Result<_, FormatError>>()?,
        waypoints: counted("waypoints", &fixed.waypoints, fixed.waypoint_count)?.to_vec(),
        points: Vec::new(),
    })
}

fn room(what: &str, count: usize, most: usize) -> Result<(), FormatError> {
    if count <= most {
        return Ok(());
    }
    Err(FormatError::encode(Format::Plain, format!("{count} {what}, but the layout has room for {most}")))
}

fn padded<const N: usize>(what: &str, text: &str) -> Result<[u8; N], FormatError> {
    if text.len() > N || text.as_bytes().contains(&0) {
        let what = format!("{what} is longer than {N} bytes or contains NUL: \"{text}\"");
        return Err(FormatError::encode(Format::Plain, what));
    }
    let mut bytes = [0; N];
    bytes[..text.len()].copy_from_slice(text.as_bytes());
    Ok(bytes)
}

fn counted<'a, T>(what: &str, list: &'a [T], count: u8) -> Result<&'a [T], FormatError> {
    list.get(..usize::from(count)).ok_or_else(|| {
        let most = list.len();
        FormatError::decode(Format::Plain, format!("{count} {what}, but the layout has room for {most}"))
    })
}

fn text(bytes: &[u8]) -> Result<String, FormatError> {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    let text = std::str::from_utf8(&bytes[..end]);
    text.map(str::to_owned).map_err(|_| FormatError::decode(Format::Plain, "a text is not UTF-8"))
}
