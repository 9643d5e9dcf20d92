"""Writes /python/pose at 50 Hz until its input ends; prints the poses of the other programs, each with its age."""

import itertools
import select
import sys

import noctule
import numpy as np
from demo import program_in_python as topics
from demo.demo_msgs import Pose


def pose(number: int) -> Pose:
    joints = np.array([joint + number / 4 for joint in range(number % 4)], np.float32)
    return Pose(from_="python", number=number, position=np.array([number, -number / 2, number / 4]), joints=joints)


with noctule.Node("in_python") as node:
    publisher = topics.open_python_pose(node)
    others = [topics.read_rust_pose(node), topics.read_c_pose(node), topics.read_cpp_pose(node)]
    for number in itertools.count():
        publisher.publish(pose(number))
        for other in others:
            while sample := other.take():
                if sample.age is None:
                    continue
                it = sample.value
                numbers = "".join(f" {value:.3f}" for value in [*it.position, *it.joints])
                print(f"{it.from_} {it.number}{numbers}: {sample.age.ns} ns old", flush=True)
        if select.select([sys.stdin], [], [], 0.02)[0]:
            break
