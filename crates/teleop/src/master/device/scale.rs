//! From a device's counts to metres and shares of a stick's way.

use noctule_sys::input_device::Axis;

use super::{ABS_RY, DeviceKind};

/// Share of the stick's way from its middle; less is rest. A driver that states more is right.
const STICK_DEAD: f64 = 0.08;
/// Range of a gamepad that states none: 16 bits with a sign.
const STICK_MINIMUM: f64 = -32_768.0;
const STICK_MAXIMUM: f64 = 32_767.0;

/// Scale of a device's counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// Counts per millimetre of a touchpad's x and y.
    pub(super) counts_per_mm: [f64; 2],
    /// Ranges of a gamepad's sticks: left x, left y, right y.
    sticks: [Stick; 3],
}

/// Why a touchpad's counts are no lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "its driver states no resolution; give it with --counts-per-mm, `evtest` shows the range and a ruler the width"
)]
pub struct NoResolution;

#[derive(Clone, Copy, Debug, PartialEq)]
struct Stick {
    middle: f64,
    half: f64,
    dead: f64,
}

impl Scale {
    /// Scale by what the driver states of an axis (`ABS_*`), if it does.
    ///
    /// # Errors
    /// A touchpad whose counts per mm are neither given nor stated.
    pub fn new(kind: DeviceKind, stated: impl Fn(u16) -> Option<Axis>) -> Result<Scale, NoResolution> {
        let counts_per_mm = match kind {
            DeviceKind::Touchpad { counts_per_mm: Some(given) } => [given; 2],
            DeviceKind::Touchpad { counts_per_mm: None } => {
                let of = |axis| stated(axis).map(|axis| axis.counts_per_mm).filter(|counts| *counts > 0);
                let (x, y) = (of(0).ok_or(NoResolution)?, of(1).ok_or(NoResolution)?);
                [f64::from(x), f64::from(y)]
            }
            DeviceKind::Mouse | DeviceKind::Gamepad => [1.0; 2],
        };
        Ok(Scale { counts_per_mm, sticks: [0, 1, ABS_RY].map(|axis| Stick::new(stated(axis))) })
    }

    /// Where a stick is, −1 to 1; 0 near to its middle, without a step at the edge of that zone.
    pub(super) fn stick(&self, index: usize, value: i32) -> f64 {
        let Stick { middle, half, dead } = self.sticks[index];
        let share = ((f64::from(value) - middle) / half).clamp(-1.0, 1.0);
        ((share.abs() - dead) / (1.0 - dead)).max(0.0).copysign(share)
    }
}

impl Stick {
    fn new(stated: Option<Axis>) -> Stick {
        let range =
            stated.map(|axis| (f64::from(axis.minimum), f64::from(axis.maximum), f64::from(axis.flat)));
        let range = range.filter(|(minimum, maximum, _)| maximum > minimum);
        let (minimum, maximum, flat) = range.unwrap_or((STICK_MINIMUM, STICK_MAXIMUM, 0.0));
        let half = (maximum - minimum) / 2.0;
        Stick { middle: (minimum + maximum) / 2.0, half, dead: (flat / half).clamp(STICK_DEAD, 0.5) }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn axis(minimum: i32, maximum: i32, flat: i32, counts_per_mm: i32) -> Axis {
        Axis { minimum, maximum, flat, counts_per_mm }
    }

    #[test]
    fn a_stick_of_eight_bits_and_one_of_sixteen_go_as_far() {
        for stated in [Some(axis(0, 255, 0, 0)), Some(axis(-32_768, 32_767, 128, 0)), None] {
            let scale = Scale::new(DeviceKind::Gamepad, |_| stated).unwrap();
            let (minimum, maximum) = stated.map_or((-32_768, 32_767), |axis| (axis.minimum, axis.maximum));
            assert_eq!(scale.stick(0, maximum), 1.0);
            assert_eq!(scale.stick(1, minimum), -1.0);
            assert_eq!(scale.stick(2, maximum.midpoint(minimum)), 0.0);
            // The zone's edge is no step.
            let way = f64::from(maximum) - f64::from(minimum);
            let edge = scale.stick(0, (f64::from(minimum) + way * 0.55) as i32);
            assert!((0.0..0.03).contains(&edge), "{edge}");
        }
    }

    #[test]
    fn a_driver_that_states_a_wider_rest_is_right_up_to_half_the_way() {
        let scale = |flat| Scale::new(DeviceKind::Gamepad, |_| Some(axis(-100, 100, flat, 0))).unwrap();
        assert_eq!(scale(30).stick(0, 30), 0.0);
        assert!(scale(30).stick(0, 40) > 0.1);
        assert!(scale(1_000).stick(0, 60) > 0.1);
    }

    #[test]
    fn a_touchpads_resolution_is_given_or_stated_or_missing() {
        let stated = |code| (code < 2).then(|| axis(0, 1_200, 0, 12 + i32::from(code)));
        let pad = |counts_per_mm| DeviceKind::Touchpad { counts_per_mm };
        assert_eq!(Scale::new(pad(None), stated).unwrap().counts_per_mm, [12.0, 13.0]);
        assert_eq!(Scale::new(pad(Some(40.0)), stated).unwrap().counts_per_mm, [40.0; 2]);
        assert_eq!(Scale::new(pad(None), |_| Some(axis(0, 1_200, 0, 0))), Err(NoResolution));
        assert_eq!(Scale::new(pad(None), |_| None), Err(NoResolution));
    }
}
