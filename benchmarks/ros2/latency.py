"""Talker to listener by payload, on one host and between two (namespaces without delay), with the processor time of both; in turn, one trial.

`latency.py rmw_noctule rmw_cyclonedds_cpp`: Markdown, of rclpy. With `--rclcpp` of target/rclcpp_ends/ends, which rclcpp/CMakeLists.txt builds. A middleware that is not the one that ROS 2 was built for wants LD_PRELOAD_rmw_noctule=FILE.
"""

import os
import sys

from table import ENDS, ROOT, World, hosts, last_json

CELLS = [(115, 100.0), (65_536, 100.0), (1_048_576, 30.0)]
SECONDS = 6
RCLCPP = f"{ROOT}/target/rclcpp_ends/ends"


def cell(ends: str, rmw: str, host: str, size: int, hz: float) -> str:
    w = World(rmw=rmw)
    more = {"LD_PRELOAD": preload} if (preload := os.environ.get(f"LD_PRELOAD_{rmw}")) else {}
    with w.start(f"{ends} images /image {hz} {size} {SECONDS + 6}", **more) as said:
        w.stays(2.5)
        got = last_json(w.run(f"{ends} read /image image {SECONDS}", host=host, **more))
        w.running[-1].wait(20)
        sent = last_json(said())
    hosts_said = "one host" if host == "a" else "two hosts"
    return (
        f"| {hosts_said} | {size} B at {hz:.0f} Hz | {rmw} | {got['samples']} | {got.get('p50_ms')} | {got.get('p99_ms')} "
        f"| {sent['processor_ms_s']} | {got['processor_ms_s']} |"
    )


def main() -> None:
    is_cpp = "--rclcpp" in sys.argv
    implementations = [word for word in sys.argv[1:] if word != "--rclcpp"]
    print("| | | | samples | p50 ms | p99 ms | talker, ms of processor a second | listener |")
    print("|---|---|---|---|---|---|---|---|")
    with hosts():
        for host in ("a", "b"):
            for size, hz in CELLS:
                for rmw in implementations:
                    print(cell(RCLCPP if is_cpp else ENDS, rmw, host, size, hz), flush=True)


if __name__ == "__main__":
    main()
