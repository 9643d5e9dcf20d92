"""The arm's kinematics and margins against independent programs: pinocchio, EAIK, python-control.

Each test is skipped by name where its program or the built `noctule` is absent.
"""

import json
import math
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
SEED = 20261122


def noctule(*arguments: str) -> dict:
    built = [ROOT / "target" / profile / "noctule" for profile in ("release", "debug")]
    found = next((str(path) for path in built if path.exists()), None)
    program = os.environ.get("NOCTULE") or found or shutil.which("noctule")
    if program is None:
        pytest.skip("no built `noctule`; build it with `cargo build -p noctule-cli`")
    done = subprocess.run([program, "teleop", *arguments, "--json"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def chain(q: np.ndarray) -> np.ndarray:
    """Forward kinematics, written down once more."""
    a = (0.0, -0.425, -0.39225, 0.0, 0.0, 0.0)
    d = (0.089159, 0.0, 0.0, 0.10915, 0.09465, 0.0823)
    alpha = (math.pi / 2, 0.0, 0.0, math.pi / 2, -math.pi / 2, 0.0)
    pose = np.eye(4)
    for qi, ai, di, al in zip(q, a, d, alpha):
        c, s, ca, sa = math.cos(qi), math.sin(qi), math.cos(al), math.sin(al)
        link = [[c, -s * ca, s * sa, ai * c], [s, c * ca, -c * sa, ai * s], [0, sa, ca, di], [0, 0, 0, 1]]
        pose = pose @ np.array(link)
    return pose


def quaternion(rotation: np.ndarray) -> list[float]:
    scipy_rotation = pytest.importorskip("scipy.spatial.transform").Rotation
    return list(scipy_rotation.from_matrix(rotation).as_quat())


def solutions(pose: np.ndarray) -> np.ndarray:
    numbers = [*pose[:3, 3], *quaternion(pose[:3, :3])]
    found = noctule("ik", ",".join(f"{number:.17g}" for number in numbers))
    assert len(found["solutions"]) + len(found["missing"]) == 8
    return np.array(found["solutions"])


def test_inverse_kinematics_against_eaik() -> None:
    eaik = pytest.importorskip("eaik.IK_DH")
    a = np.array([0.0, -0.425, -0.39225, 0.0, 0.0, 0.0])
    d = np.array([0.089159, 0.0, 0.0, 0.10915, 0.09465, 0.0823])
    alpha = np.array([math.pi / 2, 0.0, 0.0, math.pi / 2, -math.pi / 2, 0.0])
    robot = eaik.DhRobot(alpha, a, d)
    random = np.random.default_rng(SEED)
    for _ in range(40):
        pose = chain(random.uniform(-math.pi, math.pi, 6))
        ours = solutions(pose)
        theirs = np.array([q for q, is_least_squares in zip(*unpacked(robot.IK(pose))) if not is_least_squares])
        assert len(ours) == len(theirs)
        for q in theirs:
            gap = np.abs((ours - q + math.pi) % (2 * math.pi) - math.pi).max(axis=1).min()
            assert gap < 1e-9, q


def unpacked(answer) -> tuple:
    return answer.Q, answer.is_LS


def test_forward_kinematics_against_pinocchio() -> None:
    pinocchio = pytest.importorskip("pinocchio")
    model = pinocchio.Model()
    a = (0.0, -0.425, -0.39225, 0.0, 0.0, 0.0)
    d = (0.089159, 0.0, 0.0, 0.10915, 0.09465, 0.0823)
    alpha = (math.pi / 2, 0.0, 0.0, math.pi / 2, -math.pi / 2, 0.0)
    parent, before = 0, pinocchio.SE3.Identity()
    for joint in range(6):
        parent = model.addJoint(parent, pinocchio.JointModelRZ(), before, f"joint_{joint + 1}")
        c, s = math.cos(alpha[joint]), math.sin(alpha[joint])
        before = pinocchio.SE3(np.array([[1, 0, 0], [0, c, -s], [0, s, c]]), np.array([a[joint], 0.0, d[joint]]))
    data = model.createData()
    random = np.random.default_rng(SEED)
    for _ in range(10):
        q = random.uniform(-math.pi, math.pi, 6)
        pinocchio.forwardKinematics(model, data, q)
        theirs = (data.oMi[6] * before).homogeneous
        for ours in solutions(theirs):
            again = pinocchio.SE3.Identity()
            pinocchio.forwardKinematics(model, data, ours)
            again = (data.oMi[6] * before).homogeneous
            assert np.abs(again - theirs).max() < 1e-9


def test_margins_against_python_control() -> None:
    control = pytest.importorskip("control")
    s = control.tf("s")
    p, i, d, n = 10.5857290910674, 78.2339953359067, 0.327956120616846, 454.516416693375
    loop = (p + i / s + d * n * s / (s + n)) * 361 / (s**2 + 3.098 * s + 56.11) * (1 + 15 / s)
    gains, phases, _, at_gain, at_phase, _ = control.stability_margins(loop, returnall=True)
    ours = noctule("analyse")["continuous"]
    assert abs(phases.min() - ours["phase_margin_deg"]) < 1e-6
    assert abs(at_phase[phases.argmin()] - ours["gain_crossover_rad_s"]) < 1e-6
    theirs = sorted(20 * np.log10(gains), key=abs)
    assert np.allclose(theirs, ours["gain_margins_db"], atol=1e-6)
    assert np.allclose(sorted(at_gain), sorted(ours["phase_crossovers_rad_s"]), atol=1e-6)
