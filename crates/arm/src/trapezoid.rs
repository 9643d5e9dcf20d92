//! The seed's profile, for comparison: velocity as a trapezoid or triangle, acceleration in steps.
//!
//! Position and velocity are continuous; acceleration is not, whatever the seed says of it.

/// Limits of the seed's profile. Its document gives them in rad/s and rad/s²; 180 rad/s is no UR5's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrapezoidLimits {
    /// Greatest speed, rad/s.
    pub velocity_rad_s: f64,
    /// Acceleration and deceleration, rad/s².
    pub acceleration_rad_s2: f64,
}

impl TrapezoidLimits {
    /// Limits in the seed's document.
    pub const SEED: TrapezoidLimits = TrapezoidLimits { velocity_rad_s: 180.0, acceleration_rad_s2: 300.0 };
}

/// A motion of one joint from rest to rest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trapezoid {
    from_rad: f64,
    direction: f64,
    acceleration_rad_s2: f64,
    peak_rad_s: f64,
    accelerating_s: f64,
    cruising_s: f64,
}

impl Trapezoid {
    /// Plans a motion between two angles.
    pub fn new(from_rad: f64, to_rad: f64, limits: TrapezoidLimits) -> Trapezoid {
        let TrapezoidLimits { velocity_rad_s, acceleration_rad_s2 } = limits;
        let distance = (to_rad - from_rad).abs();
        let peak_rad_s = velocity_rad_s.min((distance * acceleration_rad_s2).sqrt());
        let accelerating_s = peak_rad_s / acceleration_rad_s2;
        let cruising_s =
            if peak_rad_s > 0.0 { (distance / peak_rad_s - accelerating_s).max(0.0) } else { 0.0 };
        let direction = (to_rad - from_rad).signum();
        Trapezoid { from_rad, direction, acceleration_rad_s2, peak_rad_s, accelerating_s, cruising_s }
    }

    /// Duration of the motion, s.
    pub fn duration_s(&self) -> f64 {
        2.0 * self.accelerating_s + self.cruising_s
    }

    /// The highest velocity, rad/s.
    pub fn peak_rad_s(&self) -> f64 {
        self.peak_rad_s
    }

    /// Angle in rad and velocity in rad/s, `time_s` after its start.
    pub fn at(&self, time_s: f64) -> (f64, f64) {
        let Trapezoid { acceleration_rad_s2: a, peak_rad_s: peak, accelerating_s, cruising_s, .. } = *self;
        let time_s = time_s.clamp(0.0, self.duration_s());
        let left_s = self.duration_s() - time_s;
        let whole = peak * (accelerating_s + cruising_s);
        let (travelled, velocity) = if time_s < accelerating_s {
            (a * time_s * time_s / 2.0, a * time_s)
        } else if left_s < accelerating_s {
            (whole - a * left_s * left_s / 2.0, a * left_s)
        } else {
            (peak * (time_s - accelerating_s / 2.0), peak)
        };
        (self.from_rad + self.direction * travelled, self.direction * velocity)
    }
}
