"""Programs of ROS 2 on the bus, beside programs of Noctule."""

import json
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from conftest import ROOT, installed

NOCTULE = ROOT / "target/release/noctule"
PATIENCE_S = 30


@contextmanager
def running(*command: object, env: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    """A program that is ended as with Ctrl-C."""
    words = [str(word) for word in command]
    program = subprocess.Popen(words, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        yield program
    finally:
        program.send_signal(signal.SIGINT)
        program.communicate(timeout=PATIENCE_S)


def line_with(program: subprocess.Popen[str], wanted: str) -> str:
    """The first line that has this in it."""
    assert program.stdout is not None
    return next(line for line in program.stdout if wanted in line)


def noctule(ros: dict[str, str], *words: str) -> str:
    command = [str(NOCTULE), *words, "--domain", ros["ROS_DOMAIN_ID"]]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=True).stdout


def test_a_listener_hears_a_talker(ros: dict[str, str]) -> None:
    talker, listener = installed("demo_nodes_cpp", "talker"), installed("demo_nodes_cpp", "listener")
    with running(listener, env=ros) as hears, running(talker, env=ros):
        assert "Hello World" in line_with(hears, "I heard")


def test_echo_shows_a_talker_with_its_age(ros: dict[str, str]) -> None:
    talker = installed("demo_nodes_cpp", "talker")
    with running(talker, env=ros):
        shown = noctule(ros, "echo", "/chatter", "--count", "1")
    assert "Hello World" in shown
    assert re.search(r"[µu]s|ms|ns", shown)


def test_what_was_written_to_a_loan_is_read(ros: dict[str, str]) -> None:
    talker = installed("demo_nodes_cpp", "talker_loaned_message")
    with running(talker, env=ros):
        shown = noctule(ros, "echo", "/chatter_pod", "--count", "2", "--json")
    first, second = (json.loads(line)["value"]["data"] for line in shown.splitlines())
    assert first >= 1 and second == first + 1


def test_a_response_ends_where_its_bytes_end(ros: dict[str, str]) -> None:
    talker = installed("demo_nodes_cpp", "talker")
    with running(talker, env=ros):
        # Its length by the type support is more, for the empty sequences in it.
        assert "false" in noctule(ros, "param", "get", "/talker", "use_sim_time")


def test_call_reaches_a_service(ros: dict[str, str]) -> None:
    server = installed("demo_nodes_cpp", "add_two_ints_server")
    with running(server, env=ros):
        shown = noctule(ros, "call", "/add_two_ints", '{"a": 2, "b": 3}')
    assert re.search(r"sum\D+5", shown)


def test_a_client_of_ros_is_answered(ros: dict[str, str]) -> None:
    server, client = (
        installed("demo_nodes_cpp", "add_two_ints_server"),
        installed("demo_nodes_cpp", "add_two_ints_client"),
    )
    with running(server, env=ros):
        done = subprocess.run([client], env=ros, capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    assert "Result of add_two_ints: 5" in done.stdout + done.stderr
