#![allow(clippy::unwrap_used)]

use noctule_timebase::{Instant, Span};

use super::*;
use crate::sensors::{Camera, CameraModel, Imu};
use crate::{Trajectory, Truth, Vector};

const IMU_INTERVAL: Span = Span::from_ms(5);
/// Every sixth inertial sample, about 33 Hz.
const PICTURE_EVERY: u64 = 6;

/// A flight; the camera's poses come `age` late with stamps that are `stamp_error` too young.
struct Flight {
    model: ImuModel,
    camera: CameraModel,
    age: Span,
    stamp_error: Span,
    seed: u64,
}

/// The result.
struct Outcome {
    estimator: Estimator,
    /// Root mean square of the distance to the true position at the present, after 10 s.
    position_rms_m: f64,
    /// Mean of the normalised squared error of position and attitude of the filter; 6 if it is consistent.
    nees: f64,
}

impl Flight {
    fn usual(seed: u64) -> Flight {
        Flight {
            model: ImuModel::CONSUMER,
            camera: CameraModel::INDOORS,
            age: Span::from_ms(60),
            stamp_error: Span::from_ns(0),
            seed,
        }
    }

    fn fly(&self, seconds: u64) -> Outcome {
        let path = Trajectory::figure_of_eight(8.0, 3.0);
        let mut imu = Imu::new(self.model, self.seed);
        let mut camera = Camera::new(self.camera, self.seed);
        let mut estimator = started(&path, EstimatorConfig::default());
        let mut on_the_way = VecDeque::new();
        let (mut squares, mut normalised, mut count) = (0.0, 0.0, 0);
        for step in 1..=seconds * 200 {
            let now = Instant::<Truth>::from_ns(step as i64 * IMU_INTERVAL.ns());
            estimator.handle_imu(&imu.sample(&path, now, IMU_INTERVAL, board(now)));
            if step % PICTURE_EVERY == 0 {
                on_the_way.push_back((now, camera.pose(&path, now, board(now + self.stamp_error))));
            }
            while on_the_way.front().is_some_and(|(taken, _)| now - *taken >= self.age) {
                estimator.handle_odometry(&on_the_way.pop_front().unwrap().1);
            }
            if step > 2_000 {
                squares += (estimator.state().position_m - path.at(now).position_m).norm_squared();
                normalised += normalised_error(&estimator, &path);
                count += 1;
            }
        }
        let count = f64::from(count);
        Outcome { estimator, position_rms_m: (squares / count).sqrt(), nees: normalised / count }
    }
}

/// The board's clock is the truth's.
fn board(time: Instant<Truth>) -> Instant<Board> {
    time.translate(Span::from_ns(0))
}

fn started(path: &Trajectory, config: EstimatorConfig) -> Estimator {
    let start = path.at(Instant::from_ns(0));
    let state = State {
        position_m: start.position_m,
        velocity_m_s: start.velocity_m_s,
        attitude: start.attitude,
        gyro_bias_rad_s: Vector::zeros(),
        accel_bias_m_s2: Vector::zeros(),
    };
    Estimator::new(config, state, Instant::from_ns(0))
}

fn normalised_error(estimator: &Estimator, path: &Trajectory) -> f64 {
    let (time, state, covariance) = estimator.delayed();
    let truth = path.at(time.translate(Span::from_ns(0)));
    let tilt = (state.attitude.inverse() * truth.attitude).scaled_axis();
    let distance = truth.position_m - state.position_m;
    let mut error = nalgebra::SVector::<f64, 6>::zeros();
    error.fixed_rows_mut::<3>(0).copy_from(&distance);
    error.fixed_rows_mut::<3>(3).copy_from(&tilt);
    let rows = [0, 1, 2, 6, 7, 8];
    let block = nalgebra::SMatrix::<f64, 6, 6>::from_fn(|i, j| covariance[(rows[i], rows[j])]);
    error.dot(&(block.try_inverse().unwrap() * error))
}

#[test]
fn without_errors_dead_reckoning_follows_the_truth() {
    let path = Trajectory::figure_of_eight(8.0, 3.0);
    let mut imu = Imu::new(ImuModel::PERFECT, 1);
    let mut estimator = started(&path, EstimatorConfig::default());
    let mut now = Instant::<Truth>::from_ns(0);
    for _ in 0..4_000 {
        now += IMU_INTERVAL;
        estimator.handle_imu(&imu.sample(&path, now, IMU_INTERVAL, board(now)));
    }
    let error = (estimator.state().position_m - path.at(now).position_m).norm();
    assert!(error < 0.02, "{error} m after 20 s");
}

#[test]
fn with_true_stamps_a_late_camera_gives_the_position_of_the_present() {
    for seed in 0..5 {
        let outcome = Flight::usual(seed).fly(40);
        assert!(outcome.position_rms_m < 0.05, "{} m, seed {seed}", outcome.position_rms_m);
        let counters = outcome.estimator.counters();
        assert_eq!(counters.too_old + counters.from_the_future + counters.refused_full, 0);
        assert!(counters.rejected < counters.fused / 500, "{counters:?}, seed {seed}");
    }
}

#[test]
fn the_filter_knows_how_wrong_it_is() {
    let mean = (0..8).map(|seed| Flight::usual(seed).fly(40).nees).sum::<f64>() / 8.0;
    assert!((4.0..8.5).contains(&mean), "{mean}, should be 6");
}

#[test]
fn a_wrong_stamp_costs_about_speed_times_error() {
    let rms = |error_ms| {
        let flight = Flight { stamp_error: Span::from_ms(error_ms), ..Flight::usual(3) };
        flight.fly(40).position_rms_m
    };
    let (none, some, more) = (rms(0), rms(30), rms(60));
    assert!(none < some && some < more, "{none} {some} {more}");
    // About 2.2 m/s on the average of the path.
    assert!((0.08..0.25).contains(&more), "{more}");
}

#[test]
fn a_pose_older_than_the_horizon_and_one_from_the_future_are_counted() {
    let old = Flight { age: Span::from_ms(230), ..Flight::usual(1) }.fly(12).estimator.counters();
    assert!(old.too_old > 300 && old.fused == 0, "{old:?}");
    let ahead = Flight { stamp_error: Span::from_ms(100), ..Flight::usual(1) }.fly(12).estimator.counters();
    assert!(ahead.from_the_future > 300 && ahead.fused == 0, "{ahead:?}");
}

#[test]
fn a_filter_that_lost_its_way_starts_again_at_the_camera() {
    let path = Trajectory::figure_of_eight(8.0, 3.0);
    let (mut imu, mut camera) = (Imu::new(ImuModel::CONSUMER, 4), Camera::new(CameraModel::INDOORS, 4));
    let mut estimator = started(&path, EstimatorConfig::default());
    estimator.filter.state.position_m.x += 50.0;
    let mut now = Instant::<Truth>::from_ns(0);
    for step in 1..=4_000 {
        now += IMU_INTERVAL;
        estimator.handle_imu(&imu.sample(&path, now, IMU_INTERVAL, board(now)));
        if step % PICTURE_EVERY == 0 {
            estimator.handle_odometry(&camera.pose(&path, now, board(now)));
        }
    }
    assert_eq!(estimator.counters().resets, 1);
    let error = (estimator.state().position_m - path.at(now).position_m).norm();
    assert!(error < 0.2, "{error}");
}

#[test]
fn queues_are_bounded_and_a_full_one_is_counted() {
    let path = Trajectory::figure_of_eight(8.0, 3.0);
    let mut estimator = started(&path, EstimatorConfig { delay: Span::from_s(3600), ..Default::default() });
    let (mut imu, mut camera) = (Imu::new(ImuModel::CONSUMER, 4), Camera::new(CameraModel::INDOORS, 4));
    let mut now = Instant::<Truth>::from_ns(0);
    for _ in 0..IMU_QUEUE_MAX + 100 {
        now += IMU_INTERVAL;
        estimator.handle_imu(&imu.sample(&path, now, IMU_INTERVAL, board(now)));
    }
    assert_eq!(estimator.samples.len(), IMU_QUEUE_MAX);
    for _ in 0..ODOMETRY_QUEUE_MAX + 3 {
        estimator.handle_odometry(&camera.pose(&path, now, board(now)));
    }
    assert_eq!((estimator.poses.len(), estimator.counters().refused_full), (ODOMETRY_QUEUE_MAX, 3));
}

#[test]
fn a_step_of_the_boards_clock_does_not_lose_the_position() {
    let path = Trajectory::figure_of_eight(8.0, 3.0);
    let (mut imu, mut camera) = (Imu::new(ImuModel::CONSUMER, 4), Camera::new(CameraModel::INDOORS, 4));
    let mut estimator = started(&path, EstimatorConfig::default());
    let mut now = Instant::<Truth>::from_ns(0);
    for step in 1..=4_000 {
        now += IMU_INTERVAL;
        let stamp = if step < 2_000 { board(now) } else { board(now) - Span::from_s(3) };
        estimator.handle_imu(&imu.sample(&path, now, IMU_INTERVAL, stamp));
        if step % PICTURE_EVERY == 0 {
            estimator.handle_odometry(&camera.pose(&path, now, stamp));
        }
    }
    assert_eq!(estimator.counters().clock_jumps, 1);
    let error = (estimator.state().position_m - path.at(now).position_m).norm();
    assert!(error < 0.1, "{error}");
}

#[test]
fn a_pose_that_is_not_a_number_changes_nothing() {
    let path = Trajectory::figure_of_eight(8.0, 3.0);
    let mut estimator = started(&path, EstimatorConfig::default());
    let mut imu = Imu::new(ImuModel::CONSUMER, 4);
    let mut now = Instant::<Truth>::from_ns(0);
    for _ in 0..100 {
        now += IMU_INTERVAL;
        estimator.handle_imu(&imu.sample(&path, now, IMU_INTERVAL, board(now)));
        let mut pose = Camera::new(CameraModel::INDOORS, 1).pose(&path, now, board(now));
        pose.position_m.y = f64::NAN;
        estimator.handle_odometry(&pose);
    }
    assert!(estimator.state().position_m.norm().is_finite());
    assert!(estimator.counters().rejected > 0 && estimator.counters().fused == 0);
}
