"""A bridge under test, and what its tests ask of the bus."""

import json
import os
import signal
import subprocess
import threading
from itertools import count
from pathlib import Path

import noctule
import ros2
from ros2 import text_of, until

BRIDGE = os.environ.get("NOCTULE_ZENOH", str(Path(__file__).parents[1] / "target/release/noctule-zenoh"))
DOMAINS = count(3_000 + os.getpid() % 300 * 6)
TYPE = "std_msgs/msg/String"


class Bridge:
    """A bridge and what it prints."""

    def __init__(self, endpoint: str, bus: int, *more: str) -> None:
        command = [BRIDGE, "--endpoint", endpoint, "--bus-domain", str(bus), "--json", "--every", "0.2", *more]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.lines: list[dict] = []
        self.thread = threading.Thread(target=self._read)
        self.thread.start()

    def _read(self) -> None:
        self.lines.extend(map(json.loads, self.process.stdout))

    def status(self) -> dict:
        return next((line for line in reversed(self.lines) if "routes" in line), {"routes": [], "services": []})

    def route(self, topic: str, way: str) -> dict | None:
        return next((r for r in self.status()["routes"] if (r["topic"], r["way"]) == (topic, way)), None)

    def service(self, name: str) -> dict | None:
        return next((s for s in self.status()["services"] if s["service"] == name), None)

    def notices(self) -> str:
        return "\n".join(line["notice"] for line in self.lines if "notice" in line)

    def close(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(ros2.TIMEOUT)
        self.thread.join()
        return code


def received(subscriber: noctule.Subscriber, wanted: str) -> noctule.Sample:
    """The next sample with this text."""

    def take() -> noctule.Sample | None:
        sample = subscriber.receive(0.1)
        return sample if sample is not None and text_of(bytes(sample.data)) == wanted else None

    return until(take, wanted)


def publisher(node: noctule.Node, topic: str, **more: object) -> noctule.Publisher:
    return node.publisher(topic, type_name=TYPE, format="cdr", **more)
