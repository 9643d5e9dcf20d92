"""Writes /python/pose and the plain /python/state at 50 Hz until its input ends; prints what the other programs write, each with its age."""

import itertools
import select
import sys

import noctule
import numpy as np
from demo import program_in_python as topics
from demo import definitions
from demo.demo_msgs import Pose, State


def pose(number: int) -> Pose:
    joints = np.array([joint + number / 4 for joint in range(number % 4)], np.float32)
    return Pose(from_="python", number=number, position=np.array([number, -number / 2, number / 4]), joints=joints)


def state(number: int) -> State:
    joint = np.array([at + number / 4 if at < number % 4 else 0 for at in range(3)], np.float32)
    position = np.array([number, -number / 2, number / 4])
    return State(is_even=number % 2 == 0, number=number, position=position, joints=number % 4, joint=joint)


def print_state(writer: str, sample: noctule.Sample) -> None:
    """Reads the sample where it lies."""
    if sample.age is None:
        return
    it = sample.data.view(LAYOUT)[0]
    is_right = sample.info.format == "plain" and it["is_even"] == (it["number"] % 2 == 0)
    numbers = "".join(f" {value:.3f}" for value in [*it["position"], *it["joint"][: it["joints"]]])
    print(f"{'plain' if is_right else 'wrong'}_{writer} {it['number']}{numbers}: {sample.age.ns} ns old", flush=True)


LAYOUT = noctule.dtype(State)
with noctule.Node("in_python") as node:
    publisher = topics.open_python_pose(node)
    others = [topics.read_rust_pose(node), topics.read_c_pose(node), topics.read_cpp_pose(node)]
    states = topics.open_python_state(node)
    where = topics.client_rust_where(node)
    has_asked = False
    actions = {"rust": topics.client_rust_go(node), "c": topics.client_c_go(node), "cpp": topics.client_cpp_go(node)}
    goals = topics.server_python_go(node)
    of_others = {
        "rust": topics.read_rust_state(node),
        "c": topics.read_c_state(node),
        "cpp": topics.read_cpp_state(node),
    }
    for number in itertools.count():
        publisher.publish(pose(number))
        states.publish(state(number))
        for writer, other_state in of_others.items():
            while there := other_state.subscriber.take():
                print_state(writer, there)
                del there
        for other in others:
            while sample := other.take():
                if sample.age is None:
                    continue
                it = sample.value
                if it.from_ == "rust" and not has_asked:
                    # The program in Rust is there.
                    has_asked = True
                    x, y, z = where.call(definitions.demo_msgs__srv__Where_Request(number=4)).position
                    print(f"served_rust 4 {x:.3f} {y:.3f} {z:.3f}", flush=True)
                if action := actions.pop(it.from_, None):
                    # So is this one: its goal is executed between two of its samples.
                    result = action.wait_for_result(action.send_goal(definitions.demo_msgs__action__Go_Goal(number=4)))
                    x, y, z = result.value.position
                    print(f"acted_{it.from_} 4 {x:.3f} {y:.3f} {z:.3f}", flush=True)
                numbers = "".join(f" {value:.3f}" for value in [*it.position, *it.joints])
                print(f"{it.from_} {it.number}{numbers}: {sample.age.ns} ns old", flush=True)
        while goal := goals.next(0.0):
            try:
                goal.goal.accept()
                goal.feedback(definitions.demo_msgs__action__Go_Feedback(at=goal.value.number))
                goal.succeed(definitions.demo_msgs__action__Go_Result(position=pose(goal.value.number).position))
            except noctule.NoReplyError:
                pass  # The client may have gone: that is no fault of this program.
        if select.select([sys.stdin], [], [], 0.02)[0]:
            break
