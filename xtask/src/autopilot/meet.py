"""An autopilot made of pymavlink, a gateway, and a node on the bus: what each hears of the other.

The autopilot counts time from an origin of its own. Everything here is bounded in messages; the only times are
those after which a thing is missing.
"""

import math
import socket
import struct
import subprocess
import sys
import time

import noctule
from pymavlink import mavutil
from pymavlink.dialects.v20 import common

DOMAIN = 4711
AHEAD_NS = 5_000_000_000_000
TIMEOUT_S = 90


def clock_ns():
    """The autopilot's clock."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW) + AHEAD_NS


class Cdr:
    """Plain CDR, little-endian."""

    def __init__(self):
        self.body = b""

    def put(self, code, *values):
        for value in values:
            size = struct.calcsize(code)
            self.body += b"\0" * (-len(self.body) % size) + struct.pack("<" + code, value)
        return self

    def text(self, text):
        self.put("I", len(text) + 1)
        self.body += text.encode() + b"\0"
        return self

    def header(self, frame):
        now = time.time_ns()
        return self.put("i", now // 10**9).put("I", now % 10**9).text(frame)

    def bytes(self):
        return b"\0\1\0\0" + self.body


def odometry():
    """East 2, north 1, up 3, looking east."""
    cdr = Cdr().header("odom").text("base_link")
    cdr.put("d", 2.0, 1.0, 3.0, 0.0, 0.0, 0.0, 1.0).put("d", *[0.25] + [0.0] * 35)
    return cdr.put("d", *[0.0] * 42).bytes()


def pose():
    """East 2, north 1, up 3, looking north."""
    half = math.sqrt(0.5)
    return Cdr().header("map").put("d", 2.0, 1.0, 3.0, 0.0, 0.0, half, half).bytes()


def free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def fly(port, node):
    link = mavutil.mavlink_connection(f"udpout:127.0.0.1:{port}", source_system=1, source_component=1)
    imu = node.subscriber("/mavros/imu/data_raw", type_name="sensor_msgs/msg/Imu", formats=["cdr"])
    outlets = [
        (node.publisher("/mavros/odometry/out", type_name="nav_msgs/msg/Odometry", format="cdr"), odometry()),
        (node.publisher("/mavros/vision_pose/pose", type_name="geometry_msgs/msg/PoseStamped", format="cdr"), pose()),
    ]
    heard, asked, proven = {}, None, None
    end = time.monotonic() + TIMEOUT_S
    wanted = {"HEARTBEAT", "request", "reply", "PING", "ODOMETRY", "VISION_POSITION_ESTIMATE"}
    beat = 0
    while time.monotonic() < end and not (wanted <= heard.keys() and proven):
        beat += 1
        if beat % 100 == 1:
            link.mav.heartbeat_send(common.MAV_TYPE_QUADROTOR, common.MAV_AUTOPILOT_PX4, 0, 0, 4)
            link.mav.ping_send(clock_ns() // 1000, beat, 0, 0)
            asked = clock_ns()
            link.mav.timesync_send(0, asked)
        link.mav.highres_imu_send(clock_ns() // 1000, 1.0, 2.0, -9.8, 0.1, 0.2, 0.3, *[0.0] * 7, 63)
        for publisher, sample in outlets:
            publisher.publish(sample)
        message = link.recv_match(blocking=True, timeout=0.01)
        while message:
            name = message.get_type()
            if name == "TIMESYNC" and message.tc1 == 0:
                link.mav.timesync_send(clock_ns(), message.ts1)
                name = "request"
            elif name == "TIMESYNC":
                assert message.ts1 == asked or message.ts1 < clock_ns(), "a reply to nobody"
                name = "reply"
            heard[name] = message
            message = link.recv_match(blocking=False)
        while sample := imu.take():
            age = sample.age
            if age is not None and age.bound_ns is not None:
                proven = (age.ns / 1e9, age.bound_ns / 1e9, bytes(sample))
    assert wanted <= heard.keys(), f"missing after {TIMEOUT_S} s: {wanted - heard.keys()}"
    assert proven, "no inertial sample with a proven age"
    return heard, proven


def check(heard, proven):
    age, bound, sample = proven
    assert -bound <= age < 5, f"age {age} s, bound {bound} s"
    # The three vectors lie at the end: angular velocity and acceleration with their covariances.
    gyro = struct.unpack("<3d", sample[-192:-168])
    accel = struct.unpack("<3d", sample[-96:-72])
    # float32, and front-right-down became front-left-up.
    assert all(abs(a - b) < 1e-6 for a, b in zip(gyro, (0.1, -0.2, -0.3))), gyro
    assert all(abs(a - b) < 1e-5 for a, b in zip(accel, (1.0, -2.0, 9.8))), accel
    seen = heard["ODOMETRY"]
    assert (seen.x, seen.y, seen.z) == (1.0, 2.0, -3.0), seen
    assert seen.frame_id == common.MAV_FRAME_LOCAL_FRD and seen.child_frame_id == common.MAV_FRAME_BODY_FRD
    # Looking east is a quarter turn from north.
    assert abs(abs(seen.q[3]) - math.sqrt(0.5)) < 1e-6 and abs(seen.pose_covariance[6] - 0.25) < 1e-6, seen
    seen = heard["VISION_POSITION_ESTIMATE"]
    assert (seen.x, seen.y, seen.z) == (1.0, 2.0, -3.0) and abs(seen.yaw) < 1e-6, seen
    assert heard["HEARTBEAT"].type == common.MAV_TYPE_ONBOARD_CONTROLLER
    assert heard["PING"].target_system == 1
    print(f"pymavlink: all heard; an inertial sample was {age * 1e6:.0f} us old, proven within {bound * 1e6:.0f} us")


def main():
    port = free_port()
    command = [sys.argv[1], "gateway", "--domain", str(DOMAIN), "--mavlink", f"udp:{port}", "--seconds", "60", "--json"]
    gateway = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        gateway.stdout.readline()
        with noctule.Node("autopilot test", domain=DOMAIN) as node:
            check(*fly(port, node))
    finally:
        gateway.terminate()
        gateway.wait()


main()
