#![allow(clippy::unwrap_used)]

use std::collections::VecDeque;

use noctule_netsim::clock::Step;
use noctule_netsim::{Clock, ClockModel, Delay, Random};

use super::*;
use crate::sensors::{Camera, CameraModel, Imu, ImuModel};

const IMU_INTERVAL: Span = Span::from_ms(5);
/// From a picture to its pose.
const PIPELINE: Span = Span::from_ms(30);
const SECONDS: u64 = 60;

/// A line on which a part of the messages waits, both ways.
const LINE: Delay = Delay {
    least_us: 1_500.0,
    jitter_us: 100.0,
    queue: noctule_netsim::delay::Queue::Exponential { probability: 0.15, mean_us: 2_000.0 },
};

/// A flight whose companion's clock does what `model` says against the board's, which is the truth's.
fn fly(model: &ClockModel, seed: u64) -> Vec<FusionResult> {
    let path = Trajectory::figure_of_eight(8.0, 3.0);
    let mut random = Random::for_part(seed, 9);
    let clock = Clock::new(model, Span::from_s(SECONDS as i64 + 1), &mut random);
    let companion = |at_ns: i64| at_ns + clock.offset_at(Span::from_ns(at_ns)).ns();
    let (mut imu, mut camera) = (Imu::new(ImuModel::CONSUMER, seed), Camera::new(CameraModel::INDOORS, seed));
    let mut fusion =
        Fusion::new(&path, Instant::from_ns(0), Instant::from_ns(0), Span::from_s(10), &Correction::ALL);
    let mut on_the_way: VecDeque<Arrival> = VecDeque::new();
    for step in 1..=SECONDS * 200 {
        let now_ns = step as i64 * IMU_INTERVAL.ns();
        let now = Instant::<Truth>::from_ns(now_ns);
        if step % 20 == 0 {
            let (there, back) = (LINE.draw(&mut random).ns(), LINE.draw(&mut random).ns());
            let asked_ns = now_ns - there - back;
            let answered = companion(asked_ns + there);
            fusion.handle_exchange(&Exchange::from_ns(asked_ns, answered, answered, now_ns));
        }
        if step % 6 == 0 {
            let pose = camera.pose(&path, now, Instant::from_ns(0));
            let arrived = Instant::from_ns(now_ns) + PIPELINE + LINE.draw(&mut random);
            let stamp = Instant::from_ns(companion(now_ns));
            on_the_way.push_back(Arrival { pose, stamp, arrived, exact: Instant::from_ns(now_ns) });
        }
        let board = Instant::from_ns(now_ns);
        while on_the_way.front().is_some_and(|first| first.arrived <= board) {
            fusion.handle_pose(&on_the_way.pop_front().unwrap());
        }
        let sample = imu.sample(&path, now, IMU_INTERVAL, board);
        fusion.handle_imu(&sample, &path.at(now).position_m);
    }
    fusion.results()
}

fn drifting() -> ClockModel {
    ClockModel {
        offset: Span::from_s(1_700_000_000),
        drift_ppm: 40.0,
        limit_ppm: 100.0,
        ..ClockModel::default()
    }
}

fn rms(results: &[FusionResult], wanted: Correction) -> f64 {
    results.iter().find(|result| result.correction == wanted).unwrap().position_rms_m.unwrap()
}

#[test]
fn knowing_the_clock_is_worth_most_of_the_age_of_the_pose() {
    for seed in 0..3 {
        let results = fly(&drifting(), seed);
        let (none, bounded, exact) = (
            rms(&results, Correction::Uncorrected),
            rms(&results, Correction::Bounded),
            rms(&results, Correction::Exact),
        );
        // 33 ms at about 2 m/s.
        assert!(none > 2.0 * exact, "{none} against {exact}, seed {seed}");
        assert!(bounded < 1.05 * exact, "{bounded} against {exact}, seed {seed}");
    }
}

#[test]
fn after_a_step_the_autopilots_filter_flies_wrong_and_the_bounded_one_does_not() {
    let step = Step { at: Span::from_s(30), by: Span::from_ms(80) };
    let model = ClockModel { steps: vec![step], ..drifting() };
    for seed in 0..3 {
        let results = fly(&model, seed);
        let (ema, bounded, exact) = (
            rms(&results, Correction::Ema),
            rms(&results, Correction::Bounded),
            rms(&results, Correction::Exact),
        );
        assert!(ema > 1.5 * bounded, "{ema} against {bounded}, seed {seed}");
        assert!(bounded < 1.3 * exact, "{bounded} against {exact}, seed {seed}");
    }
}
