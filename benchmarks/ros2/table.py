"""Table of exchanges between programs of a real ROS 2 and of Noctule: each row is run, and its output is shown.

Wants root (hosts are network namespaces that it makes and takes away), a ROS 2 that is set up, and target/release/noctule. Prints Markdown.
`rows.py rmw_cyclonedds_cpp` puts `noctule gateway --dds` between, `rows.py rmw_noctule` runs ROS 2 on the bus without a bridge.
"""

import contextlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
NOCTULE = ROOT / "target/release/noctule"
ENDS = f"{sys.executable} {HERE / 'ends.py'}"
PATIENCE_S = 60.0
# The ROS 2 that is set up; shown as the path that its packages have.
PREFIX = Path(os.environ.get("AMENT_PREFIX_PATH", "/opt/ros/jazzy").split(":")[-1])
SHARE = f"{PREFIX}/share"
# Hosts of one run: namespaces that are joined by a pair of virtual cables.
HOSTS = {"a": "10.77.0.1", "b": "10.77.0.2"}


@dataclass
class World:
    """A run of the table."""

    rmw: str
    shown: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    ran: int = 0
    running: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def is_bridged(self) -> bool:
        """Whether a gateway is between ROS 2 and the bus."""
        return self.rmw != "rmw_noctule"

    @property
    def far(self) -> dict[str, str]:
        """The domain of ROS 2 on host b."""
        return {"ROS_DOMAIN_ID": "7"} if self.is_bridged else {}

    @property
    def types(self) -> str:
        """Where `noctule echo` has the definitions from: what comes from DDS does not describe itself."""
        return f"--types {SHARE}" if self.is_bridged else ""

    def environment(self, **more: str) -> dict[str, str]:
        ros = {"RMW_IMPLEMENTATION": self.rmw, "ROS_DOMAIN_ID": "0", "PYTHONUNBUFFERED": "1"}
        return {**os.environ, **ros, "NO_COLOR": "1", "RCUTILS_COLORIZED_OUTPUT": "0", **more}

    def command(self, host: str, line: str) -> list[str]:
        words = shlex.split(line.replace("noctule ", f"{NOCTULE} ", 1) if line.startswith("noctule ") else line)
        return ["ip", "netns", "exec", f"table-{host}", *words]

    def run(self, line: str, host: str = "a", keep: int = 6, **more: str) -> str:
        """Runs a command to its end and shows it with the first lines of what it printed."""
        done = subprocess.run(
            self.command(host, line),
            env=self.environment(**more),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=PATIENCE_S,
            check=False,
        )
        said = done.stdout.decode(errors="replace")
        self.show(line, host, said, keep, more)
        return said

    def quiet(self, line: str, host: str = "a") -> str:
        return subprocess.run(self.command(host, line), stdout=subprocess.PIPE, check=True).stdout.decode()

    def stays(self, seconds: float) -> None:
        """Gives programs so long to find each other; one that ends meanwhile is a failure."""
        if not self.running:
            return
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = self.running[-1].wait(seconds)
            raise AssertionError(f"a program has ended, with exit code {code}")

    def show(self, line: str, host: str, said: str, keep: int, more: dict[str, str]) -> None:
        set_up = "".join(f"{name}={value} " for name, value in more.items())
        said = said.replace(str(PREFIX), "/opt/ros/jazzy").replace(str(ROOT), "…")
        lines = [text for text in said.splitlines() if text.strip() and "has no swarm key" not in text]
        cut = [*lines[:keep], f"… ({len(lines) - keep} more lines)"] if len(lines) > keep else lines
        short = line.replace(ENDS, "ends.py").replace(str(ROOT), "…").replace(str(PREFIX), "/opt/ros/jazzy")
        self.shown += [f"{host}$ {set_up}{short}", *(text[:160] for text in cut)]

    @contextlib.contextmanager
    def start(self, line: str, host: str = "a", keep: int = 0, **more: str) -> Iterator[Callable[[], str]]:
        """A program in the background, ended as with Ctrl-C; shows the first lines of what it printed if some are to be kept."""
        with tempfile.TemporaryFile() as output:
            program = subprocess.Popen(
                self.command(host, line), env=self.environment(**more), stdout=output, stderr=subprocess.STDOUT
            )

            def said() -> str:
                output.seek(0)
                return output.read().decode(errors="replace")

            self.running.append(program)
            mark = len(self.shown)
            try:
                yield said
            finally:
                self.running.remove(program)
                stop(program)
                after, self.shown = self.shown[mark:], self.shown[:mark]
                self.show(f"{line} &", host, said(), keep, more)
                if keep == 0:
                    self.shown = [text for text in self.shown if not text.startswith("… (")]
                self.shown += after

    def row(self, name: str, check: Callable[[], str | None]) -> None:
        """Runs a row: the check says what there is to say, and fails by an AssertionError."""
        self.shown = []
        self.ran += 1
        try:
            note = check() or ""
            verdict = "works"
        except (AssertionError, LookupError, subprocess.TimeoutExpired, ValueError) as fault:
            verdict, note = "FAILS", str(fault)
            self.failed.append(name)
        print(f"### {name}\n\n{verdict}{': ' if note else ''}{note}\n\n```text")
        print("\n".join(self.shown) + "\n```\n", flush=True)


    @contextlib.contextmanager
    def gateways(self) -> Iterator[None]:
        """A gateway on each host, with domain 0 of DDS on host a, domain 7 on host b, and one bus; none without a bridge."""
        with contextlib.ExitStack() as stack:
            if self.is_bridged:
                stack.enter_context(self.start("noctule gateway --dds 0"))
                stack.enter_context(self.start("noctule gateway --dds 7 --domain 0", host="b"))
                self.stays(5)
            yield

    def rows(self, rows: Mapping[str, Callable[["World"], str | None]], only: str) -> None:
        """Runs those rows whose names have `only` in them."""
        for name, row in rows.items():
            if only in name:
                self.row(name, lambda row=row: row(self))

    def finish(self) -> None:
        """Ends the program, with exit code 1 if a row failed."""
        print(f"{self.ran - len(self.failed)} of {self.ran} rows work", file=sys.stderr)
        sys.exit(f"failed: {self.failed}" if self.failed else 0)


def stop(program: subprocess.Popen[bytes]) -> None:
    if program.poll() is None:
        program.send_signal(signal.SIGINT)
        try:
            program.wait(timeout=8)
        except subprocess.TimeoutExpired:
            program.kill()
            program.wait()


@contextlib.contextmanager
def hosts() -> Iterator[None]:
    def ip(line: str) -> None:
        subprocess.run(["ip", *shlex.split(line)], check=True)

    for host in HOSTS:
        ip(f"netns add table-{host}")
    try:
        ip("link add table-0 netns table-a type veth peer name table-1 netns table-b")
        for number, (host, address) in enumerate(HOSTS.items()):
            ip(f"-n table-{host} link set lo up")
            ip(f"-n table-{host} address add {address}/24 dev table-{number}")
            ip(f"-n table-{host} link set table-{number} up")
            ip(f"-n table-{host} route add 224.0.0.0/4 dev table-{number}")
        yield
    finally:
        for host in HOSTS:
            ip(f"netns delete table-{host}")


def until(said: Callable[[], str], wanted: str, seconds: float = 20.0) -> str:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := re.search(wanted, said()):
            return found.group(0)
        threading.Event().wait(0.1)
    raise AssertionError(f"'{wanted}' was not said within {seconds:.0f} s")


def last_json(said: str) -> dict[str, float]:
    lines = [line for line in said.splitlines() if line.startswith("{")]
    assert lines, "no report was printed"
    report: dict[str, float] = json.loads(lines[-1])
    return report


def want(said: str, *patterns: str) -> None:
    for pattern in patterns:
        assert re.search(pattern, said), f"'{pattern}' is not in what was printed"
