//! The state in FlatBuffers: through the code that `planus` generated from `schemas/uav_state.fbs`.

use planus::{Builder, Offset, ReadAsRoot};

use super::{Battery, Gps, Header, Imu, Parameter, Point, UavState, Waypoint};
use crate::generated::uav_state::uav as wire;
use crate::{Format, FormatError, flat_buffers};

/// Appends the FlatBuffers encoding.
///
/// # Errors
/// None: it has a result only to fit [`Codec`](crate::Codec).
pub fn encode(state: &UavState, out: &mut Vec<u8>) -> Result<(), FormatError> {
    flat_buffers::append(out, |builder| write(state, builder));
    Ok(())
}

/// Reads all of a FlatBuffers encoding.
///
/// # Errors
/// An offset leads outside, a required part is missing, an array has another length, or names are repeated until they
/// take more room than the input.
pub fn decode(bytes: &[u8]) -> Result<UavState, FormatError> {
    let root = wire::UavStateRef::read_as_root(bytes)?;
    let mut state = read(&root)?;
    state.parameters = read_parameters(&root, bytes.len())?;
    Ok(state)
}

fn write(state: &UavState, builder: &mut Builder) -> Offset<wire::UavState> {
    let UavState { header, imu, battery, gps, .. } = state;
    let header = wire::Header::create(builder, header.sequence, header.stamp_ns, &header.frame_id);
    let imu = wire::Imu::create(
        builder,
        &imu.angular_velocity_rad_s[..],
        &imu.acceleration_m_s2[..],
        imu.temperature_c,
    );
    let battery = wire::Battery::create(
        builder,
        battery.voltage_v,
        battery.current_a,
        battery.remaining,
        &battery.cells_v[..],
    );
    let gps = wire::Gps::create(
        builder,
        gps.latitude_deg,
        gps.longitude_deg,
        gps.altitude_m,
        gps.horizontal_error_m,
        gps.satellites,
        gps.fix,
    );
    let parameters: Vec<Offset<wire::Parameter>> = state
        .parameters
        .iter()
        .map(|parameter| wire::Parameter::create(builder, &parameter.name, parameter.value))
        .collect();
    let waypoints: Vec<wire::Waypoint> = state.waypoints.iter().map(write_waypoint).collect();
    let points: Vec<wire::Point> = state.points.iter().map(write_point).collect();
    wire::UavState::create(
        builder,
        header,
        &state.position_m[..],
        &state.attitude[..],
        &state.velocity_m_s[..],
        &state.pose_covariance[..],
        &state.velocity_covariance[..],
        imu,
        battery,
        gps,
        state.armed,
        state.mode,
        &state.status_text,
        &parameters[..],
        &waypoints[..],
        &points[..],
    )
}

fn write_waypoint(waypoint: &Waypoint) -> wire::Waypoint {
    let Waypoint { latitude_deg, longitude_deg, altitude_m, speed_m_s } = *waypoint;
    wire::Waypoint { latitude_deg, longitude_deg, altitude_m, speed_m_s }
}

fn write_point(point: &Point) -> wire::Point {
    let Point { x_m, y_m, z_m, intensity } = *point;
    wire::Point { x_m, y_m, z_m, intensity }
}

fn read(root: &wire::UavStateRef<'_>) -> Result<UavState, FormatError> {
    let header = root.header()?;
    Ok(UavState {
        header: Header {
            sequence: header.sequence()?,
            stamp_ns: header.stamp_ns()?,
            frame_id: header.frame_id()?.to_owned(),
        },
        position_m: array("position_m", root.position_m()?)?,
        attitude: array("attitude", root.attitude()?)?,
        velocity_m_s: array("velocity_m_s", root.velocity_m_s()?)?,
        pose_covariance: array("pose_covariance", root.pose_covariance()?)?,
        velocity_covariance: array("velocity_covariance", root.velocity_covariance()?)?,
        imu: read_imu(&root.imu()?)?,
        battery: read_battery(&root.battery()?)?,
        gps: read_gps(&root.gps()?)?,
        armed: root.armed()?,
        mode: root.mode()?,
        status_text: root.status_text()?.to_owned(),
        parameters: Vec::new(),
        waypoints: root.waypoints()?.iter().map(read_waypoint).collect(),
        points: root.points()?.iter().map(read_point).collect(),
    })
}

/// All parameters, as long as their names, one of which may stand in many places, do not outgrow the input.
fn read_parameters(root: &wire::UavStateRef<'_>, input_bytes: usize) -> Result<Vec<Parameter>, FormatError> {
    let mut names_bytes = 0;
    let copy = |parameter: planus::Result<wire::ParameterRef<'_>>| {
        let parameter = parameter?;
        let name = parameter.name()?;
        names_bytes += name.len();
        if names_bytes > input_bytes {
            return Err(FormatError::decode(Format::FlatBuffers, "its names are larger than the input"));
        }
        Ok(Parameter { name: name.to_owned(), value: parameter.value()? })
    };
    root.parameters()?.iter().map(copy).collect()
}

fn read_imu(imu: &wire::ImuRef<'_>) -> Result<Imu, FormatError> {
    Ok(Imu {
        angular_velocity_rad_s: array("angular_velocity_rad_s", imu.angular_velocity_rad_s()?)?,
        acceleration_m_s2: array("acceleration_m_s2", imu.acceleration_m_s2()?)?,
        temperature_c: imu.temperature_c()?,
    })
}

fn read_battery(battery: &wire::BatteryRef<'_>) -> Result<Battery, FormatError> {
    Ok(Battery {
        voltage_v: battery.voltage_v()?,
        current_a: battery.current_a()?,
        remaining: battery.remaining()?,
        cells_v: battery.cells_v()?.iter().collect(),
    })
}

fn read_gps(gps: &wire::GpsRef<'_>) -> Result<Gps, FormatError> {
    Ok(Gps {
        latitude_deg: gps.latitude_deg()?,
        longitude_deg: gps.longitude_deg()?,
        altitude_m: gps.altitude_m()?,
        horizontal_error_m: gps.horizontal_error_m()?,
        satellites: gps.satellites()?,
        fix: gps.fix()?,
    })
}

fn read_waypoint(waypoint: wire::WaypointRef<'_>) -> Waypoint {
    Waypoint {
        latitude_deg: waypoint.latitude_deg(),
        longitude_deg: waypoint.longitude_deg(),
        altitude_m: waypoint.altitude_m(),
        speed_m_s: waypoint.speed_m_s(),
    }
}

fn read_point(point: wire::PointRef<'_>) -> Point {
    Point { x_m: point.x_m(), y_m: point.y_m(), z_m: point.z_m(), intensity: point.intensity() }
}

/// A vector whose length the schema cannot fix.
fn array<T: Copy + Default, const N: usize>(
    what: &str,
    found: impl IntoIterator<Item = T, IntoIter: ExactSizeIterator>,
) -> Result<[T; N], FormatError> {
    let found = found.into_iter();
    if found.len() != N {
        let what = format!("{what} has {} elements, not {N}", found.len());
        return Err(FormatError::decode(Format::FlatBuffers, what));
    }
    let mut array = [T::default(); N];
    array.iter_mut().zip(found).for_each(|(target, value)| *target = value);
    Ok(array)
}
