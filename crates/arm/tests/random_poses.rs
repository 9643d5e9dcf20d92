//! Properties of the kinematics over random joint angles; the seed of the angles is printed.

use std::f64::consts::PI;

use noctule_arm::dh::{Geometry, Series};
use noctule_arm::forward::{flange, pose_of};
use noctule_arm::inverse::{Branch, Reason, inverse};
use noctule_arm::jacobian::{condition_number, jacobian, singular_values};
use noctule_arm::{Joints, wrapped};
use noctule_netsim::random::Random;
use proptest::prelude::*;

fn drawn(random: &mut Random) -> Joints {
    Joints::from_fn(|_, _| random.uniform(-PI, PI))
}

fn difference(one: &Joints, other: &Joints) -> f64 {
    one.iter().zip(other.iter()).map(|(a, b)| wrapped(a - b).abs()).fold(0.0, f64::max)
}

#[test]
fn solutions_close_and_none_is_missing() {
    let seed = 17;
    println!("seed {seed}");
    let mut random = Random::new(seed);
    let geometry = Geometry::default();
    let mut counts = [0_u32; 9];
    let (mut worst_m, mut singular) = (0.0_f64, 0);
    for _ in 0..100_000 {
        let joints = drawn(&mut random);
        let pose = flange(&geometry, &joints);
        let found = inverse(&geometry, &pose, &joints);
        let count = found.solutions().count();
        assert_eq!(count + found.missing().count(), 8);
        counts[count] += 1;
        for solution in found.solutions() {
            let back = flange(&geometry, &solution.joints_rad);
            let gap = (back.to_homogeneous() - pose.to_homogeneous()).amax();
            // Near to a singular pose an angle is known only to the square root of a rounding.
            if singular_values(&jacobian(&geometry, &solution.joints_rad))[5] < 1e-3 {
                singular += 1;
                assert!(gap < 1e-7, "{joints:?}: {gap}");
            } else {
                worst_m = worst_m.max(gap);
            }
        }
        let nearest = found.solutions().map(|solution| difference(&solution.joints_rad, &joints));
        let nearest = nearest.fold(f64::INFINITY, f64::min);
        let sigma = singular_values(&jacobian(&geometry, &joints))[5];
        assert!(nearest < 1e-9 || (sigma < 1e-3 && nearest < 1e-5), "{joints:?} is missing: {nearest}");
    }
    println!("counts {counts:?}, largest gap {worst_m:.1e} m, {singular} nearly singular");
    assert!(worst_m <= 1e-12, "{worst_m}");
    assert_eq!(counts[2] + counts[4] + counts[6] + counts[8], 100_000);
    // 76.9, 5.3, 14.8 and 3.1 % by an independent solver.
    for (count, percent) in [(8, 76.9), (6, 5.3), (4, 14.8), (2, 3.1)] {
        let got = f64::from(counts[count]) / 1_000.0;
        assert!((got - percent).abs() < 1.0, "{count} solutions: {got} %");
    }
}

#[test]
fn the_jacobian_is_the_derivative() {
    let (geometry, mut random) = (Series::Two.geometry(), Random::new(3));
    for _ in 0..300 {
        let joints = drawn(&mut random);
        let analytic = jacobian(&geometry, &joints);
        for joint in 0..6 {
            let mut moved = [joints; 2];
            moved[0][joint] -= 1e-6;
            moved[1][joint] += 1e-6;
            let [before, after] = moved.map(|joints| flange(&geometry, &joints));
            let linear = (after.translation.vector - before.translation.vector) / 2e-6;
            let turned = (after.rotation * before.rotation.inverse()).into_inner();
            let skew = (turned - turned.transpose()) / 4e-6;
            let angular = noctule_arm::Vector::new(skew[(2, 1)], skew[(0, 2)], skew[(1, 0)]);
            for row in 0..3 {
                assert!((analytic[(row, joint)] - linear[row]).abs() < 1e-8);
                assert!((analytic[(row + 3, joint)] - angular[row]).abs() < 1e-8);
            }
        }
        assert!(condition_number(&analytic, 1.0) >= 1.0);
    }
}

#[test]
fn a_missing_solution_has_its_reason() {
    let geometry = Geometry::default();
    let level = [0.0, 0.0, 0.0, 1.0];
    let reasons = |x: f64, y: f64, z: f64| -> Vec<Reason> {
        let [qx, qy, qz, qw] = level;
        let pose = pose_of([x, y, z, qx, qy, qz, qw]).unwrap();
        inverse(&geometry, &pose, &Joints::zeros()).missing().map(|missing| missing.reason).collect()
    };
    let far = reasons(2.0, 0.0, 0.5);
    assert_eq!(far.len(), 8);
    assert!(far.iter().all(|reason| matches!(reason, Reason::OutOfReach { by_m } if *by_m > 1.0)), "{far:?}");
    let axis = reasons(0.05, 0.0, 0.5);
    assert_eq!(axis.len(), 8);
    let by_m = 0.109_15 - 0.05;
    assert!(
        axis.iter()
            .all(|reason| matches!(reason, Reason::InsideCylinder { by_m: by } if (by - by_m).abs() < 1e-12))
    );
    let poses = (0..4_000).map(|index| reasons(0.12 + 0.0001 * f64::from(index), 0.0, 0.1));
    let near = poses.flatten().filter(|reason| matches!(reason, Reason::TooNear { .. })).count();
    println!("{near} too near");
    let mut pose = flange(&geometry, &Joints::zeros());
    pose.translation.x = f64::NAN;
    let found = inverse(&geometry, &pose, &Joints::zeros());
    assert!(found.missing().all(|missing| missing.reason == Reason::NotFinite));
    assert_eq!(found.missing().count(), 8);
}

#[test]
fn angle_6_is_kept_where_it_is_free() {
    let geometry = Geometry::default();
    let joints = Joints::from([0.3, -1.0, 1.2, 0.4, 0.0, 0.8]);
    let found = inverse(&geometry, &flange(&geometry, &joints), &joints);
    let branch = Branch { shoulder_positive: true, wrist_positive: true, elbow_positive: true };
    let solution = found.solution(branch).unwrap();
    assert!(solution.is_wrist_singular);
    assert!(difference(&solution.joints_rad, &joints) < 1e-9, "{:?}", solution.joints_rad);
}

#[test]
fn solutions_close_near_to_every_singular_pose() {
    let (geometry, mut random) = (Geometry::default(), Random::new(771));
    let mut worst = [0.0_f64; 3];
    for index in 0..30_000 {
        let mut joints = drawn(&mut random);
        let (kind, off) = (index % 3, random.normal(1.0) * 10.0_f64.powf(random.uniform(-13.0, -2.0)));
        // The wrist straight or folded; the elbow; the wrist's centre above the shoulder.
        match kind {
            0 => joints[4] = if random.chance(0.5) { off } else { PI + off },
            1 => joints[2] = if random.chance(0.5) { off } else { PI + off },
            _ => {
                (joints[1], joints[2], joints[3]) =
                    (-PI / 2.0 + off, off, if random.chance(0.5) { off } else { joints[3] })
            }
        }
        let pose = flange(&geometry, &joints);
        let elsewhere = drawn(&mut random);
        for solution in inverse(&geometry, &pose, &elsewhere).solutions() {
            let back = flange(&geometry, &solution.joints_rad);
            let gap = (back.to_homogeneous() - pose.to_homogeneous()).amax();
            worst[kind] = worst[kind].max(gap);
        }
    }
    println!("largest gaps {worst:?}");
    // The controller stops the arm beyond 1e-9 m.
    assert!(worst.iter().all(|gap| *gap < 1e-9), "{worst:?}");
}

proptest! {
    #[test]
    fn no_number_makes_it_panic(numbers in prop::array::uniform7(prop::num::f64::ANY), reference in prop::num::f64::ANY) {
        if let Some(pose) = pose_of(numbers) {
            let found = inverse(&Geometry::default(), &pose, &Joints::from_element(reference));
            prop_assert_eq!(found.solutions().count() + found.missing().count(), 8);
        }
    }
}
