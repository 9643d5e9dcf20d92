"""From one host to another, over a line that carries less than is published. Hosts are network namespaces; this file is also their programs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import noctule

SAMPLES = 300
LONG = 60.0


def write(node):
    publisher = node.publisher("rows", reliability="reliable", keep_last=16, keep_all=True, linger=LONG)
    while publisher.readers == 0:
        publisher.wait_for_room(1, timeout=0)
    held_up = 0
    for number in range(SAMPLES):
        sample = number.to_bytes(4, "little") + bytes(2996)
        while True:
            try:
                publisher.publish(sample)
                break
            except BlockingIOError:
                held_up += 1
                assert publisher.wait_for_room(len(sample), timeout=LONG), "there is never room"
    assert publisher.wait_for_acknowledgments(timeout=LONG)
    assert publisher.counters()["given_up"] == 0 and held_up > 0


def read(node):
    # Room for four, and a pause now and then.
    subscriber = node.subscriber("rows", reliability="reliable", keep_last=4, keep_all=True)
    nothing = node.subscriber("nothing")
    for expected in range(SAMPLES):
        if expected % 50 == 49:
            assert nothing.receive(timeout=0.1) is None
        sample = subscriber.receive(timeout=LONG)
        assert sample is not None and sample.info.missed == 0
        assert int.from_bytes(bytes(sample)[:4], "little") == expected


def test_with_keep_all_a_line_that_is_full_holds_up_the_publisher_and_nothing_is_lost():
    hosts = Path(__file__).parents[2] / "c/tests/two_hosts.sh"
    domain = 1000 + os.getpid() % 4000
    roles = [f"{sys.executable} {__file__} {domain} {role}" for role in ("write", "read")]
    done = subprocess.run([hosts, "5", *roles], capture_output=True, text=True, timeout=150)
    if done.returncode == 77:
        pytest.skip(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr


if __name__ == "__main__":
    with noctule.Node(sys.argv[2], domain=int(sys.argv[1])) as opened:
        {"write": write, "read": read}[sys.argv[2]](opened)
