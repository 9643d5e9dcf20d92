//! A quadrotor that follows velocity commands: first-order response, limited acceleration.
//!
//! This is how an autopilot in velocity mode looks from outside; attitude and motors are its affair.

use crate::Vector;

/// Limits of a vehicle's motion.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Fastest command, m/s.
    pub speed_m_s: f64,
    /// Greatest acceleration by its own thrust, m/s².
    pub acceleration_m_s2: f64,
    /// Time constant of the response to a small change of the command, s.
    pub response_s: f64,
    /// Greatest acceleration by wind, m/s².
    pub gust_m_s2: f64,
    /// Radius of the body, m.
    pub radius_m: f64,
}

impl Default for Limits {
    /// 8 m/s, 6 m/s², 0.15 s, no wind, 0.5 m.
    fn default() -> Limits {
        Limits { speed_m_s: 8.0, acceleration_m_s2: 6.0, response_s: 0.15, gust_m_s2: 0.0, radius_m: 0.5 }
    }
}

impl Limits {
    /// No acceleration is greater, m/s².
    pub fn acceleration_bound_m_s2(&self) -> f64 {
        self.acceleration_m_s2 + self.gust_m_s2
    }

    /// No speed is greater, m/s: a steady gust drifts a vehicle by what its response leaves.
    pub fn speed_bound_m_s(&self) -> f64 {
        self.speed_m_s + self.gust_m_s2 * self.response_s
    }
}

/// Where a vehicle is and how it moves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Vehicle {
    /// Position, m.
    pub position_m: Vector,
    /// Velocity, m/s.
    pub velocity_m_s: Vector,
    /// Acceleration over the last step, m/s².
    pub acceleration_m_s2: Vector,
}

impl Vehicle {
    /// A vehicle at rest.
    pub fn at(position_m: Vector) -> Vehicle {
        Vehicle { position_m, velocity_m_s: Vector::zeros(), acceleration_m_s2: Vector::zeros() }
    }

    /// Follows `command_m_s` for `step_s`, which should be well below [`Limits::response_s`], in a wind that
    /// accelerates it by `gust_m_s2`.
    pub fn step(&mut self, limits: &Limits, command_m_s: Vector, gust_m_s2: Vector, step_s: f64) {
        let command_m_s = shortened(command_m_s, limits.speed_m_s);
        let wanted = (command_m_s - self.velocity_m_s) / limits.response_s.max(step_s);
        let own = shortened(wanted, limits.acceleration_m_s2);
        let acceleration = own + shortened(gust_m_s2, limits.gust_m_s2);
        // Constant acceleration over the step, exactly.
        self.position_m += self.velocity_m_s * step_s + acceleration * (0.5 * step_s * step_s);
        self.velocity_m_s += acceleration * step_s;
        self.acceleration_m_s2 = acceleration;
    }
}

/// The vector, at most `length` long.
pub fn shortened(vector: Vector, length: f64) -> Vector {
    let norm = vector.norm();
    if norm > length { vector * (length / norm) } else { vector }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fly(limits: &Limits, command: Vector, gust: Vector, seconds: f64) -> (Vehicle, f64, f64) {
        let mut vehicle = Vehicle::at(Vector::zeros());
        let (mut fastest, mut hardest) = (0.0_f64, 0.0_f64);
        for _ in 0..(seconds / 0.01) as usize {
            vehicle.step(limits, command, gust, 0.01);
            fastest = fastest.max(vehicle.velocity_m_s.norm());
            hardest = hardest.max(vehicle.acceleration_m_s2.norm());
        }
        (vehicle, fastest, hardest)
    }

    #[test]
    fn it_reaches_the_command_within_its_limits() {
        let limits = Limits::default();
        let (vehicle, fastest, hardest) = fly(&limits, Vector::new(20.0, 0.0, 0.0), Vector::zeros(), 4.0);
        assert!((vehicle.velocity_m_s.x - 8.0).abs() < 1e-3, "{vehicle:?}");
        assert!(fastest <= 8.0 + 1e-9 && (hardest - 6.0).abs() < 1e-9);
        // 1.2 s at 6 m/s² to within 0.9 m/s of the command, where the response takes over.
        let (early, ..) = fly(&limits, Vector::new(8.0, 0.0, 0.0), Vector::zeros(), 1.0);
        assert!((early.velocity_m_s.x - 6.0).abs() < 1e-9 && (early.position_m.x - 3.0).abs() < 1e-9);
    }

    #[test]
    fn wind_moves_it_by_no_more_than_the_bounds() {
        let limits = Limits { gust_m_s2: 2.0, ..Limits::default() };
        let wind = Vector::new(9.0, 0.0, 0.0);
        let (_, fastest, hardest) = fly(&limits, Vector::new(8.0, 0.0, 0.0), wind, 10.0);
        assert!(fastest > 8.2 && fastest <= limits.speed_bound_m_s() + 1e-9, "{fastest}");
        assert!(hardest <= limits.acceleration_bound_m_s2() + 1e-9, "{hardest}");
    }
}
