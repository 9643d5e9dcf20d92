//! A quadrotor on a smooth closed path.
//!
//! The position is a sum of sines, so every derivative is exact. The attitude follows from it: a
//! quadrotor accelerates only along its thrust, which must carry acceleration and weight; the heading is
//! free and swings (Mellinger and Kumar, "Minimum snap trajectory generation and control for
//! quadrotors", ICRA 2011, section III).

use nalgebra::{Matrix3, Rotation3};
use noctule_timebase::{Instant, Span};

use crate::{Attitude, Truth, Vector, gravity_m_s2};

/// Half the distance over which the attitude is differentiated.
const HALF_STEP: Span = Span::from_us(100);

/// Where the vehicle is and how it moves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Kinematics {
    /// World frame, m.
    pub position_m: Vector,
    /// World frame, m/s.
    pub velocity_m_s: Vector,
    /// World frame, m/s²; without gravity's part (zero while hovering).
    pub acceleration_m_s2: Vector,
    /// Rotation from body to world.
    pub attitude: Attitude,
    /// Body frame, rad/s.
    pub angular_rate_rad_s: Vector,
}

impl Kinematics {
    /// Reading of an accelerometer without errors: everything but gravity, in the body frame, m/s².
    pub fn specific_force_m_s2(&self) -> Vector {
        self.attitude.inverse_transform_vector(&(self.acceleration_m_s2 - gravity_m_s2()))
    }
}

/// One sine on one axis.
#[derive(Clone, Copy, Debug)]
struct Swing {
    amplitude: f64,
    rate_rad_s: f64,
    phase_rad: f64,
}

impl Swing {
    /// The `order`-th derivative at `seconds`.
    fn derivative(&self, order: u32, seconds: f64) -> f64 {
        let quarter_turns = f64::from(order) * core::f64::consts::FRAC_PI_2;
        let phase = self.rate_rad_s * seconds + self.phase_rad + quarter_turns;
        self.amplitude * self.rate_rad_s.powi(order as i32) * phase.sin()
    }
}

/// A path that repeats itself: a figure of eight, rising and falling, nose swinging.
#[derive(Clone, Debug)]
pub struct Trajectory {
    axes: [Swing; 3],
    heading: Swing,
}

impl Trajectory {
    /// The figure of eight of `length_m` by half of it, flown at about `speed_m_s` in its middle.
    ///
    /// Both must be positive; the thrust stays upright as long as `speed_m_s`² / `length_m` is below
    /// about 2 m/s².
    pub fn figure_of_eight(length_m: f64, speed_m_s: f64) -> Trajectory {
        let half = length_m / 2.0;
        // In the middle both axes are fastest: (half·ω)² + (half/2·2ω)² = speed².
        let rate = speed_m_s / (half * core::f64::consts::SQRT_2);
        let swing = |amplitude, rate_rad_s, phase_rad| Swing { amplitude, rate_rad_s, phase_rad };
        Trajectory {
            axes: [
                swing(half, rate, 0.0),
                swing(half / 2.0, 2.0 * rate, 0.0),
                swing(half / 8.0, 1.5 * rate, 0.7),
            ],
            heading: swing(1.0, 0.6 * rate, 0.0),
        }
    }

    /// Position, motion and attitude at `time`.
    pub fn at(&self, time: Instant<Truth>) -> Kinematics {
        let turn = self.attitude(time - HALF_STEP).rotation_to(&self.attitude(time + HALF_STEP));
        // `rotation_to` is seen from the world; the rate belongs to the body.
        let attitude = self.attitude(time);
        let over_s = 2.0 * HALF_STEP.as_s_f64();
        Kinematics {
            position_m: self.derivative(0, time),
            velocity_m_s: self.derivative(1, time),
            acceleration_m_s2: self.derivative(2, time),
            attitude,
            angular_rate_rad_s: attitude.inverse_transform_vector(&turn.scaled_axis()) / over_s,
        }
    }

    fn derivative(&self, order: u32, time: Instant<Truth>) -> Vector {
        let seconds = seconds(time);
        let [x, y, z] = self.axes.map(|axis| axis.derivative(order, seconds));
        Vector::new(x, y, z)
    }

    fn attitude(&self, time: Instant<Truth>) -> Attitude {
        let down = (gravity_m_s2() - self.derivative(2, time)).normalize();
        let heading = self.heading.derivative(0, seconds(time));
        let ahead = Vector::new(heading.cos(), heading.sin(), 0.0);
        let right = down.cross(&ahead).normalize();
        let front = right.cross(&down);
        let columns = Matrix3::from_columns(&[front, right, down]);
        Attitude::from_rotation_matrix(&Rotation3::from_matrix_unchecked(columns))
    }
}

fn seconds(time: Instant<Truth>) -> f64 {
    (time - Instant::from_ns(0)).as_s_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_s(seconds: f64) -> Instant<Truth> {
        Instant::from_ns((seconds * 1e9) as i64)
    }

    #[test]
    fn velocity_and_acceleration_are_the_derivatives_of_the_position() {
        let flight = Trajectory::figure_of_eight(8.0, 3.0);
        let h = 1e-4;
        for step in 0..200 {
            let t = f64::from(step) * 0.173;
            let (before, now, after) = (flight.at(at_s(t - h)), flight.at(at_s(t)), flight.at(at_s(t + h)));
            let velocity = (after.position_m - before.position_m) / (2.0 * h);
            let acceleration = (after.velocity_m_s - before.velocity_m_s) / (2.0 * h);
            assert!((velocity - now.velocity_m_s).norm() < 1e-4, "at {t} s");
            assert!((acceleration - now.acceleration_m_s2).norm() < 1e-4, "at {t} s");
        }
    }

    #[test]
    fn the_body_turns_as_its_angular_rate_says() {
        let flight = Trajectory::figure_of_eight(8.0, 3.0);
        let h = 1e-3;
        for step in 0..200 {
            let t = f64::from(step) * 0.173;
            let now = flight.at(at_s(t));
            let turned = now.attitude * Attitude::from_scaled_axis(now.angular_rate_rad_s * h);
            assert!(turned.angle_to(&flight.at(at_s(t + h)).attitude) < 1e-5, "at {t} s");
        }
    }

    #[test]
    fn thrust_points_up_out_of_the_body_and_the_middle_is_passed_at_the_wanted_speed() {
        let flight = Trajectory::figure_of_eight(8.0, 3.0);
        for step in 0..200 {
            let force = flight.at(at_s(f64::from(step) * 0.1)).specific_force_m_s2();
            assert!(force.z < -5.0 && force.xy().norm() < 1e-9, "{force}");
        }
        let speed = flight.at(at_s(0.0)).velocity_m_s.xy().norm();
        assert!((speed - 3.0).abs() < 1e-12, "{speed}");
    }
}
