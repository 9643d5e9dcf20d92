"""Writes kinematics.json and margins.json by programs that share nothing with ours: pinocchio, EAIK, python-control.

Lengths are those of the manufacturer's manual (CB3, table C.3), the loop is the one of `noctule teleop analyse`.

    python -m venv v && v/bin/pip install pin EAIK control && v/bin/python vectors/arm/make.py
"""

import json
import math
from pathlib import Path

import control
import eaik.IK_DH as eaik
import numpy as np
import pinocchio

FOLDER = Path(__file__).parent
A = (0.0, -0.425, -0.39225, 0.0, 0.0, 0.0)
D = (0.089159, 0.0, 0.0, 0.10915, 0.09465, 0.0823)
ALPHA = (math.pi / 2, 0.0, 0.0, math.pi / 2, -math.pi / 2, 0.0)
POSES = 60
SEED = 20261123


def rounded(values: np.ndarray) -> list:
    return json.loads(json.dumps(np.asarray(values, dtype=float).tolist()), parse_float=lambda text: round(float(text), 12))


def arm() -> tuple[pinocchio.Model, int]:
    model, parent, before = pinocchio.Model(), 0, pinocchio.SE3.Identity()
    for joint in range(6):
        parent = model.addJoint(parent, pinocchio.JointModelRZ(), before, f"joint_{joint + 1}")
        c, s = math.cos(ALPHA[joint]), math.sin(ALPHA[joint])
        rotation = np.array([[1, 0, 0], [0, c, -s], [0, s, c]])
        # Standard Denavit-Hartenberg: along z, then along x, then about x.
        before = pinocchio.SE3(rotation, np.array([A[joint], 0.0, D[joint]]))
    flange = pinocchio.Frame("flange", parent, 0, before, pinocchio.FrameType.OP_FRAME)
    return model, model.addFrame(flange)


def kinematics() -> list[dict]:
    model, flange = arm()
    data = model.createData()
    robot = eaik.DhRobot(np.array(ALPHA), np.array(A), np.array(D))
    random = np.random.default_rng(SEED)
    cases = []
    for _ in range(POSES):
        q = random.uniform(-math.pi, math.pi, 6)
        pinocchio.computeJointJacobians(model, data, q)
        pinocchio.updateFramePlacements(model, data)
        pose = data.oMf[flange].homogeneous.copy()
        jacobian = pinocchio.getFrameJacobian(model, data, flange, pinocchio.ReferenceFrame.LOCAL_WORLD_ALIGNED)
        found = robot.IK(pose)
        solutions = [angles for angles, is_approximate in zip(found.Q, found.is_LS) if not is_approximate]
        wrapped = (np.array(solutions) + math.pi) % (2 * math.pi) - math.pi
        cases.append({
            "joints_rad": rounded(q),
            "position_m": rounded(pose[:3, 3]),
            "rotation_rows": rounded(pose[:3, :3]),
            "jacobian_rows": rounded(jacobian),
            "solutions_rad": rounded(wrapped),
        })
    return cases


def loop(gains: tuple[float, float, float, float], rate_hz: float | None, delay_samples: int):
    p, i, d, n = gains
    s = control.tf("s")
    plant = 361 / (s**2 + 3.098 * s + 56.11) * (1 + 15 / s)
    if rate_hz is None:
        return (p + i / s + d * n * s / (s + n)) * plant
    step = 1 / rate_hz
    z = control.tf([1, 0], [1], step)
    # Backward Euler's s.
    back = (z - 1) / (z * step)
    held = control.sample_system(plant, step, method="zoh")
    # Factor by factor: multiplied out, the polynomials lose their digits near z = 1.
    omega = np.geomspace(1.0, math.pi * rate_hz * 0.999, 3_000)
    at = np.exp(1j * omega * step)
    response = (p + i / back(at) + d * n * back(at) / (back(at) + n)) * held(at) * at ** (-delay_samples)
    return control.frd(response, omega, smooth=True)


def margins() -> list[dict]:
    seed = (10.5857290910674, 78.2339953359067, 0.327956120616846, 454.516416693375)
    sets = [seed, tuple(0.5 * g if k < 3 else g for k, g in enumerate(seed)), (6.0, 40.0, 0.2, 300.0), (15.0, 60.0, 0.5, 900.0)]
    cases = []
    for gains in sets:
        for rate_hz, delay_samples in ((None, 0), (4000.0, 0), (4000.0, 1), (1000.0, 1)):
            response = loop(gains, rate_hz, delay_samples)
            gain, phase, _, at_phase, at_gain, _ = control.stability_margins(response, returnall=True)
            least = int(np.abs(phase).argmin())
            order = np.argsort(at_phase)
            cases.append({
                "gains": list(gains),
                "rate_hz": rate_hz,
                "delay_samples": delay_samples,
                "phase_margin_deg": round(float(phase[least]), 9),
                "gain_crossing_rad_s": round(float(at_gain[least]), 9),
                "phase_crossings_rad_s": rounded(at_phase[order]),
                "gain_margins_db": rounded(20 * np.log10(gain[order])),
            })
    return cases


def main() -> None:
    versions = f"pinocchio {pinocchio.__version__}, python-control {control.__version__}, EAIK 1.2.2"
    for name, cases in (("kinematics", kinematics()), ("margins", margins())):
        lines = ",\n".join(json.dumps(case) for case in cases)
        (FOLDER / f"{name}.json").write_text(f'{{"by": "{versions}", "cases": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
