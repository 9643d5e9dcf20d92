//! Kinematics and margins against programs that share nothing with ours; `vectors/arm/make.py` asked them.

use noctule_arm::analysis::{Crossing, OpenLoop, View, margins};
use noctule_arm::dh::Series;
use noctule_arm::forward::flange;
use noctule_arm::inverse::inverse;
use noctule_arm::jacobian::jacobian;
use noctule_arm::joint_loop::LoopConfig;
use noctule_arm::pid::Gains;
use noctule_arm::{Joints, wrapped};
use serde_json::Value;

fn cases(text: &str) -> Vec<Value> {
    let whole: Value = serde_json::from_str(text).unwrap_or_default();
    whole["cases"].as_array().cloned().unwrap_or_default()
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().into_iter().flatten().map(|number| number.as_f64().unwrap_or(f64::NAN)).collect()
}

fn near(ours: impl IntoIterator<Item = f64>, theirs: &[f64], tolerance: f64, what: &str) {
    let ours: Vec<f64> = ours.into_iter().collect();
    assert_eq!(ours.len(), theirs.len(), "{what}: {ours:?}, {theirs:?}");
    for (one, other) in ours.iter().zip(theirs) {
        assert!((one - other).abs() <= tolerance, "{what}: {ours:?}, {theirs:?}");
    }
}

#[test]
fn kinematics_of_pinocchio_and_eaik() {
    let geometry = Series::Three.geometry();
    let cases = cases(include_str!("../../../vectors/arm/kinematics.json"));
    assert_eq!(cases.len(), 60);
    for case in cases {
        let joints = Joints::from_row_slice(&numbers(&case["joints_rad"]));
        let pose = flange(&geometry, &joints);
        near(pose.translation.vector.iter().copied(), &numbers(&case["position_m"]), 1e-9, "position");
        let jacobian = jacobian(&geometry, &joints);
        for row in 0..3 {
            let ours = pose.rotation.matrix().row(row).iter().copied().collect::<Vec<_>>();
            near(ours, &numbers(&case["rotation_rows"][row]), 1e-9, "rotation");
        }
        for row in 0..6 {
            let ours = jacobian.row(row).iter().copied().collect::<Vec<_>>();
            near(ours, &numbers(&case["jacobian_rows"][row]), 1e-9, "Jacobian");
        }
        let theirs: Vec<Joints> = case["solutions_rad"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|angles| Joints::from_row_slice(&numbers(angles)))
            .collect();
        let found = inverse(&geometry, &pose, &joints);
        assert_eq!(found.solutions().count(), theirs.len(), "{joints}");
        for other in theirs {
            let gap = |solution: Joints| (solution - other).map(wrapped).amax();
            let nearest = found.solutions().map(|solution| gap(solution.joints_rad)).fold(f64::MAX, f64::min);
            assert!(nearest < 1e-8, "{joints}: no solution near {other}, {nearest}");
        }
    }
}

#[test]
fn margins_of_python_control() {
    let cases = cases(include_str!("../../../vectors/arm/margins.json"));
    assert_eq!(cases.len(), 16);
    for case in cases {
        let gains = numbers(&case["gains"]);
        let gains = Gains { p: gains[0], i: gains[1], d: gains[2], n: gains[3] };
        let delay_samples = case["delay_samples"].as_u64().unwrap_or(0) as u32;
        let (view, rate_hz) = match case["rate_hz"].as_f64() {
            Some(rate_hz) => (View::Sampled { delay_samples }, rate_hz),
            None => (View::Continuous, 4_000.0),
        };
        let open_loop = OpenLoop::new(&LoopConfig { gains, rate_hz, ..LoopConfig::seed() }, view);
        let found = margins(&|omega| open_loop.at(omega), open_loop.highest_rad_s());
        let least = found.phase().unwrap_or(Crossing { omega_rad_s: 0.0, margin: 0.0 });
        // The sampled loop's oracle interpolates between 3,000 frequencies.
        let of = |name: &str| case[name].as_f64().unwrap_or(f64::NAN);
        near([least.margin], &[of("phase_margin_deg")], 2e-6, "phase margin");
        near([least.omega_rad_s], &[of("gain_crossing_rad_s")], 2e-6, "gain crossing");
        let crossings = &found.phase_crossings;
        let theirs = numbers(&case["phase_crossings_rad_s"]);
        near(crossings.iter().map(|crossing| crossing.omega_rad_s), &theirs, 2e-4, "phase crossings");
        let theirs = numbers(&case["gain_margins_db"]);
        near(crossings.iter().map(|crossing| crossing.margin), &theirs, 2e-4, "gain margins");
    }
}
