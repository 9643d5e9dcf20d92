//! No limit is ever exceeded, whatever the goal does; the ramp to standstill ends when it says.

use std::f64::consts::PI;

use noctule_arm::Joints;
use noctule_arm::profile::{Motion, Profile, ProfileLimits};
use noctule_arm::trapezoid::{Trapezoid, TrapezoidLimits};
use noctule_netsim::random::Random;

const STEP_S: f64 = 1e-3;

struct Watch {
    limits: ProfileLimits,
    stopping: bool,
}

impl Watch {
    fn step(&self, profile: &mut Profile, advance: impl FnOnce(&mut Profile), what: &str) {
        let before = *profile.motion();
        advance(profile);
        let after = *profile.motion();
        let (a, j) = match self.stopping {
            true => (self.limits.stop_acceleration_rad_s2, self.limits.stop_jerk_rad_s3),
            false => (self.limits.acceleration_rad_s2, self.limits.jerk_rad_s3),
        };
        let tolerance = 1.0 + 1e-6;
        assert!(
            after.velocity_rad_s.amax() <= self.limits.velocity_rad_s * tolerance,
            "{what}: velocity {after:?}"
        );
        let a_before = before.acceleration_rad_s2.amax();
        assert!(
            after.acceleration_rad_s2.amax() <= a.max(a_before) * tolerance,
            "{what}: acceleration {after:?}"
        );
        let jerk = (after.acceleration_rad_s2 - before.acceleration_rad_s2).amax() / STEP_S;
        assert!(jerk <= j * tolerance, "{what}: jerk {jerk}");
        // Continuous: the position moved by no more than its velocity allows.
        let moved = (after.position_rad - before.position_rad).amax();
        assert!(moved <= self.limits.velocity_rad_s * STEP_S * tolerance, "{what}: moved {moved}");
    }
}

#[test]
fn fuzzed_goals_exceed_no_limit() {
    for seed in 0..20 {
        let mut random = Random::new(seed);
        let limits = ProfileLimits::default();
        let mut profile = Profile::new(limits, STEP_S, Joints::zeros());
        let mut watch = Watch { limits, stopping: false };
        let (mut goal, mut rate) = (Joints::zeros(), Joints::zeros());
        for step in 0..2_000 {
            let what = format!("seed {seed}, step {step}");
            // Leaps, drifts, impossible velocities, and stops in between.
            if random.chance(0.02) {
                goal = Joints::from_fn(|_, _| random.uniform(-PI, PI));
            }
            if random.chance(0.05) {
                rate = Joints::from_fn(|_, _| random.uniform(-6.0, 6.0));
            }
            goal += rate * STEP_S;
            if random.chance(0.01) {
                watch.stopping = true;
                let mut steps = 0;
                while !profile.motion().is_still() {
                    watch.step(&mut profile, Profile::stop, &what);
                    steps += 1;
                    assert!(
                        f64::from(steps) * STEP_S <= limits.stop_time_max_s() + STEP_S,
                        "{what}: {steps} ms"
                    );
                }
                watch.stopping = false;
            }
            watch.step(
                &mut profile,
                |profile| {
                    profile.track(&Motion { position_rad: goal, velocity_rad_s: rate, ..Motion::default() })
                },
                &what,
            );
        }
        assert_eq!(profile.failures(), 0, "seed {seed}");
    }
}

#[test]
fn a_moving_goal_is_reached_and_kept() {
    let mut profile = Profile::new(ProfileLimits::default(), STEP_S, Joints::zeros());
    let mut worst = 0.0_f64;
    for step in 0..4_000 {
        let time_s = f64::from(step + 1) * STEP_S;
        let phase = |joint: usize| 3.0 * time_s + joint as f64;
        let goal = Motion {
            position_rad: Joints::from_fn(|joint, _| 0.2 * phase(joint).sin()),
            velocity_rad_s: Joints::from_fn(|joint, _| 0.6 * phase(joint).cos()),
            acceleration_rad_s2: Joints::from_fn(|joint, _| -1.8 * phase(joint).sin()),
        };
        profile.track(&goal);
        if step > 1_000 {
            worst = worst.max((profile.motion().position_rad - goal.position_rad).amax());
        }
    }
    println!("worst {worst:.1e} rad");
    assert!(worst < 1e-4, "{worst}");
}

#[test]
fn the_seeds_trapezoid_covers_its_way() {
    for distance in [0.417, -2.0, 200.0, 0.0] {
        let motion = Trapezoid::new(1.0, 1.0 + distance, TrapezoidLimits::SEED);
        let (end, velocity) = motion.at(motion.duration_s());
        assert!(
            (end - 1.0 - distance).abs() < 1e-9 && velocity.abs() < 1e-9,
            "{distance}: {end}, {velocity}"
        );
        let steps = 10_000;
        let travelled: f64 = (0..steps)
            .map(|step| motion.at((f64::from(step) + 0.5) / f64::from(steps) * motion.duration_s()).1)
            .sum::<f64>()
            * motion.duration_s()
            / f64::from(steps);
        assert!((travelled - distance).abs() < 1e-4, "{distance}: {travelled}");
    }
    // The seed's step of 0.1 m needs this much of a joint that may do 180 °/s.
    let peak = Trapezoid::new(0.0, 0.417, TrapezoidLimits::SEED).peak_rad_s();
    assert!((peak - 11.19).abs() < 0.01, "{peak}");
}
