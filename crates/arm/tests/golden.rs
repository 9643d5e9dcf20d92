//! Values that independent programs gave: pinocchio and EAIK for kinematics, python-control and scipy for the loop.

use noctule_arm::analysis::{
    OpenLoop, View, closed_loop, is_stable, margins, spectral_radius, step_metrics, step_response,
};
use noctule_arm::dh::Series;
use noctule_arm::forward::{flange, rotation_xyz};
use noctule_arm::inverse::{Branch, inverse};
use noctule_arm::jacobian::{jacobian, manipulability, singular_values};
use noctule_arm::joint_loop::LoopConfig;
use noctule_arm::pid::Gains;
use noctule_arm::{Joints, Pose};

const Q: [f64; 6] = [0.1, -1.2, 1.3, -0.7, 0.9, -0.4];

/// Angles, the flange's position and the rows of its rotation.
type Placed = ([f64; 6], [f64; 3], [f64; 9]);

fn close(got: f64, expected: f64, tolerance: f64, what: &str) {
    assert!((got - expected).abs() <= tolerance, "{what}: {got}, expected {expected}");
}

#[test]
fn forward_kinematics() {
    use std::f64::consts::FRAC_PI_2;
    let geometry = Series::Three.geometry();
    #[rustfmt::skip]
    let table: [Placed; 4] = [
        ([0.0; 6], [-0.817_25, -0.191_45, -0.005_491], [1.0, 0.0, 0.0, 0.0, 0.0, -1.0, 0.0, 1.0, 0.0]),
        (
            [0.0, -FRAC_PI_2, 0.0, -FRAC_PI_2, 0.0, 0.0],
            [0.0, -0.191_45, 1.001_059],
            [-1.0, 0.0, 0.0, 0.0, 0.0, -1.0, 0.0, -1.0, 0.0],
        ),
        (
            [0.0, 0.0, FRAC_PI_2, 0.0, 0.0, 0.0],
            [-0.330_35, -0.191_45, -0.303_091],
            [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        ),
        (
            Q,
            [-0.631_687_263_768, -0.224_493_530_759, 0.404_399_198_584],
            [
                0.323_422_860_391, 0.746_713_205_268, -0.581_220_304_579,
                -0.692_663_887_134, -0.231_652_232_362, -0.683_047_569_868,
                -0.644_681_621_296, 0.623_503_514_281, 0.442_299_643_729,
            ],
        ),
    ];
    for (joints, position, rotation) in table {
        let pose = flange(&geometry, &Joints::from(joints));
        for (got, expected) in pose.translation.vector.iter().zip(position) {
            close(*got, expected, 1e-12, "position");
        }
        // The third row's rotation is not published.
        if rotation != [0.0; 9] {
            for (got, expected) in pose.rotation.matrix().transpose().iter().zip(rotation) {
                close(*got, expected, 1e-12, "rotation");
            }
        }
    }
}

#[test]
fn singular_values_of_the_jacobian() {
    let jacobian = jacobian(&Series::Three.geometry(), &Joints::from(Q));
    let expected = [
        1.990_861_172_930,
        1.481_347_445_651,
        0.852_225_360_661,
        0.436_992_545_836,
        0.369_253_566_194,
        0.185_451_811_164,
    ];
    for (got, expected) in singular_values(&jacobian).iter().zip(expected) {
        close(*got, expected, 1e-11, "singular value");
    }
    close(manipulability(&jacobian), 0.075_211_139_736_464_96, 1e-14, "manipulability");
}

#[test]
fn all_eight_solutions_in_their_order() {
    #[rustfmt::skip]
    let expected = [
        [ 0.100000000000, -1.200000000000,  1.300000000000, -0.700000000000,  0.900000000000, -0.400000000000],
        [ 0.100000000000,  0.039090861971, -1.300000000000,  0.660909138029,  0.900000000000, -0.400000000000],
        [ 0.100000000000, -0.857838485028,  1.170792099442,  2.228639039177, -0.900000000000,  2.741592653590],
        [ 0.100000000000,  0.259836116294, -1.170792099442, -2.830636670442, -0.900000000000,  2.741592653590],
        [-2.680361137795,  2.857762622621,  1.213881326093, -0.437662168084,  1.931571637914,  2.526650871454],
        [-2.680361137795, -2.267178941755, -1.213881326093,  0.831856741298,  1.931571637914,  2.526650871454],
        [-2.680361137795,  3.121577127316,  1.258194146884,  2.395803160019, -1.931571637914, -0.614941782136],
        [-2.680361137795, -1.961722979356, -1.258194146884, -2.570879053900, -1.931571637914, -0.614941782136],
    ];
    let geometry = Series::Three.geometry();
    let found = inverse(&geometry, &flange(&geometry, &Joints::from(Q)), &Joints::zeros());
    compare(&found, &expected);
}

/// The seed's goal: x 0.45, y 0.285, z −0.2 and XYZ-Euler 1.56, 1.48, 2.93.
fn seeds_goal(x_m: f64, y_m: f64) -> Pose {
    Pose::from_parts([x_m, y_m, -0.2].into(), rotation_xyz(1.56, 1.48, 2.93))
}

#[test]
fn solutions_of_the_seeds_goal() {
    #[rustfmt::skip]
    let rotation = [
        -0.088649435978, -0.019042609689, 0.995880844538, -0.971346264716, -0.219695354496, -0.090666340143,
        0.220516918904, -0.975382658360, 0.000978901472,
    ];
    let goal = seeds_goal(0.45, 0.285);
    for (got, expected) in goal.rotation.matrix().transpose().iter().zip(rotation) {
        close(*got, expected, 1e-11, "rotation");
    }
    #[rustfmt::skip]
    let expected = [
        [-2.704450110688, -0.463555421738,  1.836794909085, -1.374372672138,  2.098729654536,  2.918677300491],
        [-2.704450110688,  1.268430825621, -1.836794909085,  0.567230898672,  2.098729654536,  2.918677300491],
        [-2.704450110688, -0.016516609552,  1.504592389705,  1.652383688646, -2.098729654536, -0.222915353098],
        [-2.704450110688,  1.413101925552, -1.504592389705, -3.051235374229, -2.098729654536, -0.222915353098],
        [ 0.905796714829,  1.728639444789,  1.504418488082, -0.089663080912,  0.574209288348, -0.223857678055],
        [ 0.905796714829, -3.125088175506, -1.504418488082,  1.489716208367,  0.574209288348, -0.223857678055],
        [ 0.905796714829,  1.873031558873,  1.836974758203,  2.574981188473, -0.574209288348,  2.917734975535],
        [ 0.905796714829, -2.678007155214, -1.836974758203, -1.766401195394, -0.574209288348,  2.917734975535],
    ];
    let sigmas = [0.239071, 0.246694, 0.218961, 0.213515, 0.205198, 0.219899, 0.247502, 0.225239];
    let geometry = Series::Three.geometry();
    let found = inverse(&geometry, &goal, &Joints::zeros());
    compare(&found, &expected);
    for (solution, sigma) in found.solutions().zip(sigmas) {
        let least = singular_values(&jacobian(&geometry, &solution.joints_rad))[5];
        close(least, sigma, 1e-6, "smallest singular value");
    }
}

fn compare(found: &noctule_arm::inverse::Inverse, expected: &[[f64; 6]; 8]) {
    assert_eq!(found.missing().count(), 0);
    for ((solution, expected), branch) in found.solutions().zip(expected).zip(Branch::ALL) {
        assert_eq!(solution.branch, branch);
        let angles = solution.joints_rad.iter().zip(expected);
        angles.for_each(|(got, expected)| close(*got, *expected, 2e-12, "angle"));
    }
}

#[test]
fn the_whole_window_has_eight_solutions() {
    let geometry = Series::Three.geometry();
    let mut least = f64::INFINITY;
    for column in 0..=60 {
        for row in 0..=62 {
            let goal = seeds_goal(0.30 + 0.005 * f64::from(column), 0.13 + 0.005 * f64::from(row));
            let found = inverse(&geometry, &goal, &Joints::zeros());
            assert_eq!(found.solutions().count(), 8, "{column}, {row}");
            for solution in found.solutions() {
                least = least.min(singular_values(&jacobian(&geometry, &solution.joints_rad))[5]);
            }
        }
    }
    close(least, 0.085634, 1e-6, "least singular value");
}

#[test]
fn margins_of_the_seeds_loop() {
    let config = LoopConfig::seed();
    let views = [View::Continuous, View::Sampled { delay_samples: 0 }, View::Sampled { delay_samples: 1 }];
    #[rustfmt::skip]
    let table = [
        (55.261_484_881, 125.434_743_609, 7.689_216_185, vec![(-19.360_382_607, 24.466_790_396)], 1.247_720),
        (53.558_371_230, 125.398_591_195, 7.454_389_328,
            vec![(-19.311_907, 24.565_151), (35.054_987, 1_727.890_007)], 1.286),
        (51.762_168_722, 125.398_591_195, 7.204_389_328,
            vec![(-19.213_310, 24.704_363), (25.682_335, 981.456_454)], 1.333),
    ];
    for (view, (phase, omega, delay_ms, gains, ms)) in views.into_iter().zip(table) {
        let open_loop = OpenLoop::new(&config, view);
        let found = margins(&|omega| open_loop.at(omega), open_loop.highest_rad_s());
        let least = found.phase().unwrap();
        close(least.margin, phase, 1e-7, "phase margin");
        close(least.omega_rad_s, omega, 1e-6, "gain crossing");
        close(found.delay_margin_ms.unwrap(), delay_ms, 1e-8, "delay margin");
        // One more below: with a gain that fell by 54 dB the loop would be stable again.
        let (lowest, rest) = found.phase_crossings.split_first().unwrap();
        close(lowest.margin, -54.1, 0.1, "lowest gain margin");
        assert_eq!(rest.len(), gains.len(), "{view:?}: {rest:?}");
        for (crossing, (db, at)) in rest.iter().zip(gains) {
            close(crossing.margin, db, 1e-6, "gain margin");
            close(crossing.omega_rad_s, at, 2e-6, "phase crossing");
        }
        close(found.ms, ms, 5e-4, "peak of the sensitivity");
    }
}

#[test]
fn the_motor_alone_and_without_its_position_have_other_margins() {
    let open_loop = OpenLoop::new(&LoopConfig::seed(), View::Continuous);
    let motor = margins(&|omega| open_loop.motor_alone(omega), 1e6).phase().unwrap();
    close(motor.margin, 10.026_551, 1e-6, "motor");
    close(motor.omega_rad_s, 20.287_841, 1e-6, "motor");
    let speed = |omega: f64| open_loop.controller(omega) * open_loop.motor_alone(omega);
    let speed = margins(&speed, 1e6).phase().unwrap();
    close(speed.margin, 62.095, 5e-4, "speed loop");
    close(speed.omega_rad_s, 124.633, 5e-4, "speed loop");
}

#[test]
fn step_of_the_continuous_loop() {
    let config = LoopConfig::seed();
    let found = step_metrics(&step_response(&config, View::Continuous, 0.6)).unwrap();
    close(found.overshoot_percent, 26.217_430, 1e-5, "overshoot");
    close(found.peak_time_ms, 25.081_0, 2e-3, "peak");
    close(found.rise_time_ms, 8.762_0, 3e-3, "rise");
    close(found.settling_time_ms, 119.640_0, 3e-3, "settling");
}

#[test]
fn poles_of_the_continuous_loop() {
    let closed = noctule_arm::analysis::closed_loop(&LoopConfig::seed(), View::Continuous);
    let mut poles: Vec<_> = closed.transition.complex_eigenvalues().iter().copied().collect();
    poles.sort_by(|a, b| a.re.total_cmp(&b.re).then(a.im.total_cmp(&b.im)));
    let expected = [
        (-277.120_883, 0.0),
        (-107.603_967, 0.0),
        (-51.247_699, 0.0),
        (-10.820_934, -2.984_578),
        (-10.820_934, 2.984_578),
    ];
    for (pole, (re, im)) in poles.iter().zip(expected) {
        close(pole.re, re, 2e-6, "pole");
        close(pole.im, im, 2e-6, "pole");
    }
}

#[test]
fn other_rates() {
    let table = [(1_000.0, 48.49, 41.32), (500.0, 41.86, 27.56), (125.0, 5.71, f64::NAN)];
    for (rate_hz, at_once, one_late) in table {
        let config = LoopConfig { rate_hz, ..LoopConfig::seed() };
        for (delay_samples, expected) in [(0, at_once), (1, one_late)] {
            let open_loop = OpenLoop::new(&config, View::Sampled { delay_samples });
            let found = margins(&|omega| open_loop.at(omega), open_loop.highest_rad_s());
            let radius = spectral_radius(&config, delay_samples);
            if expected.is_nan() {
                close(radius, 1.256, 5e-4, "unstable at 125 Hz");
                continue;
            }
            assert!(radius < 1.0);
            close(found.phase().unwrap().margin, expected, 5e-3, "phase margin");
        }
    }
}

#[test]
fn delay_in_the_loop_makes_it_unstable_at_30_samples() {
    let config = LoopConfig::seed();
    close(spectral_radius(&config, 29), 0.999_547, 1e-6, "29 samples");
    close(spectral_radius(&config, 30), 1.000_098, 1e-6, "30 samples");
    let table = [(4, 1.497), (8, 1.786), (12, 2.205), (16, 2.865), (20, 4.062), (24, 6.903), (28, 22.2)];
    for (delay_samples, ms) in table {
        let open_loop = OpenLoop::new(&config, View::Sampled { delay_samples });
        let found = margins(&|omega| open_loop.at(omega), open_loop.highest_rad_s());
        close(found.ms, ms, ms * 3e-3, "peak of the sensitivity");
    }
}

#[test]
fn what_is_stable_does_not_depend_on_gains_that_are_zero() {
    let with = |p, i, d, n| LoopConfig { gains: Gains { p, i, d, n }, ..LoopConfig::seed() };
    let views = [View::Continuous, View::Sampled { delay_samples: 0 }, View::Sampled { delay_samples: 1 }];
    // Without an integral 53.2° of margin; with the seed's gains; and one that is too strong for its phase.
    for (config, stable) in [
        (with(10.0, 0.0, 0.3, 400.0), true),
        (LoopConfig::seed(), true),
        (with(10.0, 0.0, 0.0, 100.0), false),
    ] {
        for view in views {
            assert_eq!(is_stable(&config, view), stable, "{:?} {view:?}", config.gains);
        }
    }
    // A derivative alone holds no position: its zero covers the motor's integrator, and that pole stays where it is.
    for view in views {
        let config = with(0.0, 0.0, 0.3, 400.0);
        assert!(
            !is_stable(&config, view),
            "{:?}",
            closed_loop(&config, view).transition.complex_eigenvalues()
        );
    }
    // At the border that theory names.
    let late = |delay_samples| is_stable(&LoopConfig::seed(), View::Sampled { delay_samples });
    assert!(late(29) && !late(30));
}
