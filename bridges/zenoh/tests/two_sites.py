"""Two sites over two routers and a slow path, live, with artificial clocks: are ages inside their bounds, and what does it cost?

    .venv/bin/python bridges/zenoh/tests/two_sites.py --seconds 600 --out FILE.json

Robot and desk are nodes of this host, whose clock is the truth; both gateways have clocks of their own, offset and with a drift.
"""

import argparse
import json
import os
import platform
import socket
import threading
import time

import noctule
import ros2
from joined import Bridge, publisher
from path import Path
from ros2 import cdr_string, text_of, until


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def percentile(values: list[int], part: float) -> int:
    return sorted(values)[min(len(values) - 1, int(len(values) * part))]


class Sites:
    """near gateway - router - 40 ms each way - router - far gateway"""

    def __init__(self, domains: tuple[int, int]) -> None:
        first, second = free_port(), free_port()
        self.first_endpoint = f"tcp/127.0.0.1:{first}"
        self.first = ros2.Router(self.first_endpoint)
        self.slow = Path(first, delay_s=0.040, jitter_s=0.005)
        self.second = ros2.Router(f"tcp/127.0.0.1:{second}", self.slow.endpoint)
        self.robot_path = Path(first)
        self.near = Bridge(self.robot_path.endpoint, domains[0], "--clock", "offset=5s,ppm=60")
        self.far = Bridge(f"tcp/127.0.0.1:{second}", domains[1], "--clock", "offset=-7s,ppm=-80")

    def cpu(self) -> dict[str, float]:
        """CPU seconds so far."""
        processes = {"near_gateway": self.near.process, "far_gateway": self.far.process, "first_router": self.first.process, "second_router": self.second.process}
        return {name: cpu_seconds(process.pid) for name, process in processes.items()}

    def close(self) -> None:
        for bridge in (self.near, self.far):
            bridge.close()
        for session in (self.second, self.first):
            session.close()
        for path in (self.slow, self.robot_path):
            path.close()


def cost(sites: Sites, publish, seconds: float, rate: float) -> dict:
    """Bytes between the robot's gateway and its router while it publishes at this rate, and each process's share of a CPU."""
    start, up, down, cpu = time.monotonic(), sites.robot_path.up_bytes, sites.robot_path.down_bytes, sites.cpu()
    sent = pace(seconds, rate, publish)
    spent = time.monotonic() - start
    up, down = sites.robot_path.up_bytes - up, sites.robot_path.down_bytes - down
    shares = {name: round((after - cpu[name]) / spent, 5) for name, after in sites.cpu().items()}
    return {"seconds": spent, "samples": sent, "up_bytes_per_s": up / spent, "down_bytes_per_s": down / spent, "cpu": shares}


def tokens(sites: Sites) -> dict:
    """Bytes that the robot's gateway gets for each endpoint that another node announces."""
    other = ros2.Node("other", sites.first_endpoint)
    until(lambda: "/other" in sites.near.status()["ros_nodes"])
    start, down = time.monotonic(), sites.robot_path.down_bytes
    number = 500
    for at in range(number):
        other.announce("MP", f"/robot_{at:05}/pose", ros2.STRING, ros2.STRING_HASH, "::,7:,:,:,,")
    until(lambda: len(sites.near.status()["routes"]) > number)
    result = {"tokens": number, "down_bytes": sites.robot_path.down_bytes - down, "seconds": time.monotonic() - start}
    other.close()
    until(lambda: "/other" not in sites.near.status()["ros_nodes"])
    return result


def pace(seconds: float, rate: float, work) -> int:
    """Works at a rate; how often."""
    pause, start, done = threading.Event(), time.monotonic(), 0
    while time.monotonic() - start < seconds:
        work()
        done += 1
        pause.wait(max(0.0, start + done / rate - time.monotonic()))
    return done


def cpu_seconds(process_id: int) -> float:
    fields = open(f"/proc/{process_id}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def run(seconds: float, payload_bytes: int) -> dict:
    domains = (3_800 + os.getpid() % 500, 4_400 + os.getpid() % 500)
    sites = Sites(domains)
    result: dict = {"load_at_start": os.getloadavg(), "payload_bytes": payload_bytes, "zenoh": "1.10.2", "python": platform.python_version()}
    try:
        with noctule.Node("robot", domain=domains[0]) as robot, noctule.Node("desk", domain=domains[1]) as desk:
            with publisher(robot, "/pose") as writer:
                until(lambda: sites.near.route("/pose", "to_zenoh") and sites.far.route("/pose", "from_zenoh"))

                # The library stamps a sample between these two times.
                published: list[tuple[int, int]] = []

                def publish() -> None:
                    before = robot.now_ns()
                    writer.publish(cdr_string(str(len(published)).ljust(payload_bytes - 9)))
                    published.append((before, robot.now_ns()))

                part = min(30.0, seconds)
                result["idle"] = cost(sites, lambda: None, part, 1.0)
                result["tokens"] = tokens(sites)
                result["without_reader"] = cost(sites, publish, part, 10.0)
                with desk.subscriber("/pose") as reader:
                    until(lambda: writer.readers)
                    until(lambda: (publish(), (s := reader.receive(0.1)) is not None and s.info.bound_ns is not None)[1])
                    samples, outside, errors, bounds, ages, unproven = 0, 0, [], [], [], 0

                    def pass_one() -> None:
                        nonlocal samples, outside, unproven
                        publish()
                        while sample := reader.take():
                            before, after = published[int(text_of(bytes(sample.data)).strip())]
                            if sample.info.bound_ns is None:
                                unproven += 1
                                continue
                            source, bound = sample.info.source_time_ns, sample.info.bound_ns
                            samples += 1
                            outside += source + bound < before or source - bound > after
                            errors.append(max(0, before - source, source - after))
                            bounds.append(bound)
                            ages.append(sample.info.receive_time_ns - before)

                    result["with_reader"] = cost(sites, pass_one, seconds, 10.0)
                    result["with_reader_100_hz"] = cost(sites, pass_one, part, 100.0)
                    result["ages"] = {
                        "samples": samples, "outside_their_bound": outside, "without_a_bound": unproven,
                        "error_ns_p50": percentile(errors, 0.5), "error_ns_max": max(errors),
                        "bound_ns_p50": percentile(bounds, 0.5), "bound_ns_max": max(bounds),
                        "age_ns_p50": percentile(ages, 0.5), "age_ns_p99": percentile(ages, 0.99),
                    }
                    result["far_clocks"] = sites.far.status()["clocks"]
                    result["far_route"] = sites.far.route("/pose", "from_zenoh")
    finally:
        sites.close()
    result["load_at_end"] = os.getloadavg()
    return result


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--payload", type=int, default=128)
    parser.add_argument("--out")
    words = parser.parse_args()
    text = json.dumps(run(words.seconds, words.payload), indent=1)
    print(text)
    if words.out:
        with open(words.out, "w") as file:
            file.write(text + "\n")
