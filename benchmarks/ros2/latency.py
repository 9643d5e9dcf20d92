"""Talker to listener of rclpy by payload, on one host and between two (namespaces without delay), with the processor time of both; in turn, one trial.

`latency.py rmw_noctule rmw_cyclonedds_cpp`: Markdown. A middleware that is not the one that ROS 2 was built for wants LD_PRELOAD_rmw_noctule=FILE.
"""

import os
import sys

from table import ENDS, World, hosts, last_json

CELLS = [(115, 100.0), (65_536, 100.0), (1_048_576, 30.0)]
SECONDS = 6


def cell(rmw: str, host: str, size: int, hz: float) -> str:
    w = World(rmw=rmw)
    more = {"LD_PRELOAD": preload} if (preload := os.environ.get(f"LD_PRELOAD_{rmw}")) else {}
    with w.start(f"{ENDS} images /image {hz} {size} {SECONDS + 6}", **more) as said:
        w.stays(2.5)
        got = last_json(w.run(f"{ENDS} read /image image {SECONDS}", host=host, **more))
        w.running[-1].wait(20)
        sent = last_json(said())
    hosts_said = "one host" if host == "a" else "two hosts"
    return (
        f"| {hosts_said} | {size} B at {hz:.0f} Hz | {rmw} | {got['samples']} | {got.get('p50_ms')} | {got.get('p99_ms')} "
        f"| {sent['processor_ms_s']} | {got['processor_ms_s']} |"
    )


def main() -> None:
    print("| | | | samples | p50 ms | p99 ms | talker, ms of processor a second | listener |")
    print("|---|---|---|---|---|---|---|---|")
    with hosts():
        for host in ("a", "b"):
            for size, hz in CELLS:
                for rmw in sys.argv[1:]:
                    print(cell(rmw, host, size, hz), flush=True)


if __name__ == "__main__":
    main()
