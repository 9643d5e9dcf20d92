//! The message a drone sends of itself: 80 bytes, little-endian. Every byte: `docs/spec/swarm-state.md`.

use noctule_timebase::Instant;

use crate::Vector;

/// Length of a message.
pub const STATE_BYTES: usize = 80;
/// Version of this layout.
pub const VERSION: u8 = 1;
/// No coordinate is further from the origin, m; a message with more is refused.
pub const POSITION_MAX_M: f64 = 1e7;
/// No component of velocity or acceleration is greater, m/s, m/s².
pub const MOTION_MAX: f64 = 1e4;

/// Flight mode of a drone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Flies its mission.
    #[default]
    Flying,
    /// Has arrived and hovers.
    Arrived,
    /// Hovers because it lost its mission or its neighbours.
    Failsafe,
}

/// A drone's state at a time of its own clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct State<C> {
    /// Number of the drone.
    pub node: u32,
    /// Flight mode.
    pub mode: Mode,
    /// Time at which the other fields were true.
    pub at: Instant<C>,
    /// m; at most [`POSITION_MAX_M`] in each coordinate.
    pub position_m: Vector,
    /// m/s.
    pub velocity_m_s: Vector,
    /// m/s².
    pub acceleration_m_s2: Vector,
    /// Direction of the nose, from the x axis to the y axis, rad; 0 to below 2π.
    pub heading_rad: f64,
    /// Radius of the body, m.
    pub radius_m: f64,
    /// The true position is no further from `position_m`, m.
    pub position_bound_m: f64,
    /// The true velocity differs by no more, m/s; up to 65 m/s in steps of 1 mm/s, rounded up.
    pub velocity_bound_m_s: f64,
    /// It never accelerates more, wind included, m/s²; up to 655 in steps of 0.01, rounded up.
    pub acceleration_bound_m_s2: f64,
    /// It never flies faster, m/s; up to 655 in steps of 0.01, rounded up.
    pub speed_bound_m_s: f64,
}

/// Why bytes are no state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    /// Another length.
    #[error("a state has {STATE_BYTES} bytes, not {0}; let both sides run the same version")]
    Length(usize),
    /// Another layout.
    #[error(
        "version {0} of the state is not known here, only {VERSION}; let both sides run the same version"
    )]
    Version(u8),
    /// A number that says nothing.
    #[error("mode {0} is not known; let both sides run the same version")]
    Mode(u8),
    /// Not a number, or one no drone has.
    #[error("{0} is not a finite number within its range; the sender's estimate has failed")]
    Value(&'static str),
}

impl<C> State<C> {
    /// The message.
    pub fn encode(&self) -> [u8; STATE_BYTES] {
        let mut bytes = [0; STATE_BYTES];
        bytes[0] = VERSION;
        bytes[1] = match self.mode {
            Mode::Flying => 0,
            Mode::Arrived => 1,
            Mode::Failsafe => 2,
        };
        let turns = self.heading_rad / core::f64::consts::TAU;
        let heading = (libm::round((turns - libm::floor(turns)) * 65_536.0) as u32 & 0xffff) as u16;
        bytes[2..4].copy_from_slice(&heading.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.node.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.at.ns().to_le_bytes());
        for axis in 0..3 {
            bytes[16 + 8 * axis..][..8].copy_from_slice(&self.position_m[axis].to_le_bytes());
            bytes[40 + 4 * axis..][..4].copy_from_slice(&(self.velocity_m_s[axis] as f32).to_le_bytes());
            bytes[52 + 4 * axis..][..4].copy_from_slice(&(self.acceleration_m_s2[axis] as f32).to_le_bytes());
        }
        bytes[64..68].copy_from_slice(&upward(self.radius_m).to_le_bytes());
        bytes[68..72].copy_from_slice(&upward(self.position_bound_m).to_le_bytes());
        // A whole number of steps stays that number although the product rounds.
        let steps =
            |value: f64, per_unit: f64| libm::ceil(value * per_unit - 1e-6).clamp(0.0, 65_535.0) as u16;
        bytes[72..74].copy_from_slice(&steps(self.velocity_bound_m_s, 1000.0).to_le_bytes());
        bytes[74..76].copy_from_slice(&steps(self.acceleration_bound_m_s2, 100.0).to_le_bytes());
        bytes[76..78].copy_from_slice(&steps(self.speed_bound_m_s, 100.0).to_le_bytes());
        bytes
    }

    /// The state of a message.
    ///
    /// # Errors
    /// [`StateError`]: another length or version, or a value that no drone has.
    pub fn decode(bytes: &[u8]) -> Result<State<C>, StateError> {
        let bytes: &[u8; STATE_BYTES] = bytes.try_into().map_err(|_| StateError::Length(bytes.len()))?;
        if bytes[0] != VERSION {
            return Err(StateError::Version(bytes[0]));
        }
        let mode = match bytes[1] {
            0 => Mode::Flying,
            1 => Mode::Arrived,
            2 => Mode::Failsafe,
            other => return Err(StateError::Mode(other)),
        };
        let position = |axis: usize| f64::from_le_bytes(array(bytes, 16 + 8 * axis));
        let motion = |at: usize, axis: usize| f64::from(f32::from_le_bytes(array(bytes, at + 4 * axis)));
        let single = |at: usize| f64::from(f32::from_le_bytes(array(bytes, at)));
        let short = |at: usize| f64::from(u16::from_le_bytes(array(bytes, at)));
        let state = State {
            node: u32::from_le_bytes(array(bytes, 4)),
            mode,
            at: Instant::from_ns(i64::from_le_bytes(array(bytes, 8))),
            position_m: Vector::new(position(0), position(1), position(2)),
            velocity_m_s: Vector::new(motion(40, 0), motion(40, 1), motion(40, 2)),
            acceleration_m_s2: Vector::new(motion(52, 0), motion(52, 1), motion(52, 2)),
            heading_rad: short(2) / 65_536.0 * core::f64::consts::TAU,
            radius_m: single(64),
            position_bound_m: single(68),
            velocity_bound_m_s: short(72) / 1000.0,
            acceleration_bound_m_s2: short(74) / 100.0,
            speed_bound_m_s: short(76) / 100.0,
        };
        state.check()?;
        Ok(state)
    }

    fn check(&self) -> Result<(), StateError> {
        let within = |vector: &Vector, max: f64| vector.iter().all(|value| value.abs() <= max);
        if !within(&self.position_m, POSITION_MAX_M) {
            return Err(StateError::Value("the position"));
        }
        if !within(&self.velocity_m_s, MOTION_MAX) {
            return Err(StateError::Value("the velocity"));
        }
        if !within(&self.acceleration_m_s2, MOTION_MAX) {
            return Err(StateError::Value("the acceleration"));
        }
        let size = |value: f64| (0.0..=MOTION_MAX).contains(&value);
        if !size(self.radius_m) {
            return Err(StateError::Value("the radius"));
        }
        if !size(self.position_bound_m) {
            return Err(StateError::Value("the bound of the position"));
        }
        Ok(())
    }
}

fn array<const N: usize>(bytes: &[u8; STATE_BYTES], at: usize) -> [u8; N] {
    let mut part = [0; N];
    part.copy_from_slice(&bytes[at..at + N]);
    part
}

/// The least `f32` that is not below.
fn upward(value: f64) -> f32 {
    let single = value as f32;
    if f64::from(single) < value { single.next_up() } else { single }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Own;

    fn example() -> State<Own> {
        State {
            node: 7,
            mode: Mode::Arrived,
            at: Instant::from_ns(1_234_567_890_123),
            position_m: Vector::new(1.5, -2.25, 1e6 + 0.001),
            velocity_m_s: Vector::new(8.0, -0.5, 0.25),
            acceleration_m_s2: Vector::new(0.0, 6.0, -1.0),
            heading_rad: core::f64::consts::PI,
            radius_m: 0.5,
            position_bound_m: 0.1,
            velocity_bound_m_s: 0.05,
            acceleration_bound_m_s2: 6.0,
            speed_bound_m_s: 8.3,
        }
    }

    #[test]
    fn the_bytes_are_those_of_the_specification() {
        let bytes = example().encode();
        assert_eq!(bytes[..16], [1, 1, 0, 0x80, 7, 0, 0, 0, 0xcb, 0x04, 0xfb, 0x71, 0x1f, 0x01, 0, 0]);
        assert_eq!(bytes[16..24], 1.5_f64.to_le_bytes());
        assert_eq!(bytes[40..44], 8.0_f32.to_le_bytes());
        assert_eq!(bytes[72..80], [50, 0, 0x58, 0x02, 0x3e, 0x03, 0, 0]);
    }

    #[test]
    fn what_is_encoded_is_decoded_and_bounds_never_shrink() {
        let state = example();
        let decoded = State::<Own>::decode(&state.encode()).unwrap();
        assert!(decoded.position_bound_m >= 0.1 && decoded.position_bound_m < 0.100_001);
        assert_eq!(State { position_bound_m: 0.1, ..decoded }, state);
    }

    #[test]
    fn what_is_no_state_is_refused_by_name() {
        let bytes = example().encode();
        let with = |at: usize, value: &[u8]| {
            let mut bytes = bytes;
            bytes[at..at + value.len()].copy_from_slice(value);
            State::<Own>::decode(&bytes)
        };
        assert_eq!(State::<Own>::decode(&bytes[..79]), Err(StateError::Length(79)));
        assert_eq!(with(0, &[9]), Err(StateError::Version(9)));
        assert_eq!(with(1, &[3]), Err(StateError::Mode(3)));
        assert_eq!(with(16, &f64::NAN.to_le_bytes()), Err(StateError::Value("the position")));
        assert_eq!(with(44, &f32::INFINITY.to_le_bytes()), Err(StateError::Value("the velocity")));
        assert_eq!(with(56, &f32::NAN.to_le_bytes()), Err(StateError::Value("the acceleration")));
        assert_eq!(with(64, &(-1.0_f32).to_le_bytes()), Err(StateError::Value("the radius")));
        assert_eq!(with(68, &f32::NAN.to_le_bytes()), Err(StateError::Value("the bound of the position")));
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_decoded_or_refused(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..100)) {
            let _ = State::<Own>::decode(&bytes);
        }

        #[test]
        fn what_was_decoded_is_encoded_to_the_same_state(bytes in proptest::array::uniform32(proptest::num::u8::ANY)) {
            let mut message = example().encode();
            message[2..18].copy_from_slice(&bytes[..16]);
            message[64..80].copy_from_slice(&bytes[16..]);
            if let Ok(state) = State::<Own>::decode(&message) {
                proptest::prop_assert_eq!(State::<Own>::decode(&state.encode()), Ok(state));
            }
        }
    }
}
