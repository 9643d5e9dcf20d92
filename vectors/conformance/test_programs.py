"""The command `noctule` and this implementation exchange samples. The network namespace must be private, with loopback up."""

import json
import os
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest

import ring
from node import MS, SECOND, Node, host_number
from sealed_node import SealedNode

PROGRAM = os.environ.get("NOCTULE", Path(__file__).parents[2] / "target/debug/noctule")
OPEN = {name: value for name, value in os.environ.items() if name != "NOCTULE_KEY_FILE"}
KEY = bytes([7]) * 32
PAYLOAD_BYTES = 5000
DAYS_AHEAD = 11 * 24 * 3600 * SECOND
LONG = 60


@pytest.fixture(params=["open", "sealed"])
def swarm(request, tmp_path):
    """A node, and the environment of programs that find it."""
    if request.param == "open":
        return Node(ahead_ns=DAYS_AHEAD), OPEN
    path = tmp_path / "key"
    path.touch(0o600)
    path.write_text(KEY.hex() + "\n")
    return SealedNode(KEY, ahead_ns=DAYS_AHEAD), OPEN | {"NOCTULE_KEY_FILE": str(path)}


@pytest.fixture
def start():
    started = []

    def start(environment, *words):
        started.append(subprocess.Popen([PROGRAM, *words], env=environment, stdout=subprocess.PIPE, text=True))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


@pytest.mark.parametrize("reliable", [False, True])
def test_a_publisher_is_read_although_datagrams_are_lost(swarm, start, reliable):
    node, environment = swarm
    node.endpoint("rows", True, 2 if reliable else 0)
    node.drop_received = 0.1
    words = ["--payload-bytes", str(PAYLOAD_BYTES), "--rate", "100", "--wait-for", "1", "--seconds", str(LONG)]
    start(environment, "pub", "rows", *words, *["--reliable", "--keep-last", "64"][: 3 * reliable])
    assert node.run_until(lambda: len(node.samples) >= 200, LONG), node.counts
    sequences = [sequence for _, sequence, _, _ in node.samples]
    assert node.counts["dropped on purpose"] > 0 and sequences == sorted(set(sequences))
    if reliable:
        assert sequences == list(range(sequences[0], sequences[0] + len(sequences)))
    else:
        assert sequences[-1] - sequences[0] + 1 > len(sequences)
    assert {len(data) for _, _, _, data in node.samples} == {PAYLOAD_BYTES}


def test_a_subscriber_acknowledges_each_sample_and_knows_its_age(swarm, start):
    node, environment = swarm
    writer = node.endpoint("rows", False, 2, formats=1, type_name="bytes")
    node.drop_sent = 0.2
    words = ["--reliable", "--json", "--count", "50", "--seconds", str(LONG)]
    echo = start(environment, "echo", "rows", *words)
    assert node.run_until(lambda: node.found("rows", 1), LONG), node.counts
    assert node.run_until(lambda: node.counts.get("clock requests", 0) >= 8, LONG), node.counts
    remote, _ = node.found("rows", 1)
    sources = []
    while echo.poll() is None and len(sources) < 10_000:
        sources.append(node.now() - 25 * MS)
        node.publish(remote, writer, b"x" * (PAYLOAD_BYTES if len(sources) % 10 == 0 else 10), old_ns=25 * MS)
        node.run_until(lambda: len(remote.in_flight) < 4 or echo.poll() is not None, LONG)
    output, _ = echo.communicate(timeout=LONG)
    end = node.now()
    shown = [json.loads(line) for line in output.splitlines()]
    assert echo.returncode == 0 and len(shown) == 50
    assert all(after["sequence"] == before["sequence"] + 1 + after["missed"] for before, after in pairwise(shown))
    assert node.counts["retransmitted"] > 0 and node.counts["not sent on purpose"] > 0
    # The clocks are days apart. An age is at least what the sample was old when it left, and at most what it is by now.
    for sample in shown:
        age, bound = sample["age_ns"], sample["bound_ns"]
        assert age + bound >= 25 * MS and age - bound <= end - sources[sample["sequence"] - 1]


def test_a_ring_is_read(start):
    node = Node(host=host_number())
    reader = node.endpoint("rows", True)
    start(OPEN, "pub", "rows", "9.81", "--rate", "50")
    assert node.run_until(lambda: node.found("rows", 0), LONG), node.counts
    remote, writer = node.found("rows", 0)
    asked = (node.node, remote.node, writer["number"], reader["number"])
    # Until the writer, too, has the list of endpoints, it refuses.
    answers = []
    assert node.run_until(lambda: answers.append(ring.ask(*asked, wants_history=False)) or answers[-1], LONG)
    _connection, memory, position = answers[-1]
    messages = []

    def read():
        message = memory.read(position + len(messages))
        messages.extend([message] if message else [])
        return len(messages) == 20

    assert node.run_until(read, LONG), messages
    assert [number for number, *_ in messages] == list(range(position, position + 20))
    assert {payload for *_, payload in messages} == {b"9.81"}
