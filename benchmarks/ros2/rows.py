"""The rows of table.py."""

import json
import re
import sys
from contextlib import ExitStack

from table import ENDS, SHARE, World, hosts, last_json, until, want

TYPES = f"--types {SHARE}"
STRING = f"{TYPES} --type std_msgs/msg/String"
TALKER = f"{ENDS} say /chatter 'Hello World:' 5 40"


def talker_to_noctule(w: World) -> None:
    with w.start(TALKER):
        w.stays(3)
        want(w.run("noctule topics", keep=14), "/chatter", "std_msgs/msg/String")
        want(w.run(f"noctule echo /chatter --count 2 {w.types}", keep=10), "Hello World", r"age|[µu]s|ms")


def noctule_to_tools(w: World) -> None:
    with w.start(f"noctule pub /from_noctule '{{data: hello}}' {STRING} --rate 10"):
        w.stays(3)
        want(w.run("ros2 topic list -t --no-daemon --spin-time 3", keep=12), r"/from_noctule \[std_msgs/msg/String\]")
        want(w.run("ros2 topic echo --once /from_noctule"), "data: hello")
        rate = w.run("timeout -s INT 6 ros2 topic hz /from_noctule", keep=2)
        found = re.findall(r"average rate: ([\d.]+)", rate)
        assert found and 9 < float(found[-1]) < 11, "not 10 Hz"
        want(w.run("timeout -s INT 5 ros2 topic bw /from_noctule", keep=2), "B/s")
        said = w.run("ros2 topic info -v /from_noctule --no-daemon --spin-time 3", keep=30)
        want(said, "RIHS01_df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18")
        assert "_CREATED_BY_BARE_DDS_APP_" not in said and "INVALID" not in said


def no_warnings(w: World) -> None:
    with w.start(f"noctule pub /from_noctule '{{data: hello}}' {STRING} --rate 10"):
        w.stays(2)
        said = w.run("ros2 topic list --no-daemon --spin-time 3", keep=8)
        want(said, "/from_noctule")
        assert "WARN" not in said


def defaults_talk(w: World) -> str:
    publish = f"noctule pub /defaults '{{data: from Noctule}}' {STRING} --rate 10 --count 20"
    with w.start(f"{ENDS} hear /defaults plain 15", keep=4) as heard:
        w.stays(4)
        said = w.run(publish)
        if w.is_bridged:
            until(heard, "from Noctule")
            return ""
        # No bridge offers more than the publisher does.
        want(said, "offers best_effort, the reader requests reliable")
        w.run(f"{publish} --reliable")
        until(heard, "from Noctule")
    return "only with `--reliable`; without it both sides say why, as between programs of ROS 2"


def rosout(w: World) -> None:
    with w.start(f"{ENDS} log /unused 'a line of the log' 20"):
        w.stays(4)
        said = w.run(f"noctule echo /rosout --count 1 --transient-local --reliable --seconds 10 {w.types}", keep=14)
        want(said, "a line of the log")


def images_in(w: World) -> str:
    with w.start(f"{ENDS} images /camera/image 30 1000000 16"):
        w.stays(5)
        said = w.run("noctule echo /camera/image --seconds 6 --json --elements 1 --reliable", keep=1)
    lines = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    ages = sorted(line["age_ns"] / 1e6 for line in lines if line["age_ns"] is not None)
    hz, missed = len(lines) / 6, sum(line["missed"] for line in lines)
    assert ages and hz > 25, f"{hz:.1f} Hz arrive"
    return f"{hz:.1f} Hz, {missed} missed, age p50 {ages[len(ages) // 2]:.1f} ms"


def across_two(w: World) -> str:
    """ROS in domain 0 of host a, the bus between the hosts, ROS in domain 7 of host b."""
    with ExitStack() as stack:
        stack.enter_context(w.start(f"{ENDS} images /camera/image 30 1000000 24"))
        w.stays(6)
        got = last_json(w.run(f"{ENDS} read /camera/image image 8", host="b", **w.far))
    assert got["samples"] > 200, f"{got['samples']} of 240 came"
    return f"{got['samples']} in 8 s, p50 {got['p50_ms']} ms, p99 {got['p99_ms']} ms"


def numbers(w: World) -> str:
    with w.start(f"{ENDS} numbers /count 100 20"):
        w.stays(3)
        direct = last_json(w.run(f"{ENDS} read /count number 5"))
        far = last_json(w.run(f"{ENDS} read /count number 5", host="b", **w.far))
    assert direct["samples"] > 400 and far["samples"] > 400, "samples are missing"
    way = "through two gateways" if w.is_bridged else "between the hosts"
    return f"p50 / p99: one host {direct['p50_ms']} / {direct['p99_ms']} ms, {way} {far['p50_ms']} / {far['p99_ms']} ms"


def latched(w: World) -> None:
    with w.start(f"{ENDS} latch /map 'from ROS' 30"):
        w.stays(4)
        want(w.run(f"noctule echo /map --count 1 --transient-local --seconds 8 {w.types}", keep=6), "from ROS")
        want(w.run(f"{ENDS} hear /map latched 6", host="b", **w.far), "from ROS")
    with w.start(f"noctule pub /map2 '{{data: from Noctule}}' {STRING} --transient-local --reliable --rate 0.01"):
        w.stays(4)
        want(w.run(f"{ENDS} hear /map2 latched 6"), "from Noctule")


def both_worlds(w: World) -> str:
    with ExitStack() as stack:
        stack.enter_context(w.start(f"{ENDS} say /both ros 10 15"))
        stack.enter_context(w.start(f"noctule pub /both '{{data: noctule}}' {STRING} --rate 10 --reliable"))
        w.stays(4)
        texts = json.loads(w.run(f"{ENDS} hear /both plain 5").splitlines()[-1])
        bus = w.run(f"noctule echo /both --seconds 5 --json {w.types}", keep=2)
    ros = [text for text in texts if text.startswith("ros ")]
    seen = [json.loads(line)["value"]["data"] for line in bus.splitlines() if line.startswith("{")]
    seen_ros = [text for text in seen if text.startswith("ros ")]
    assert len(ros) == len(set(ros)) and len(seen_ros) == len(set(seen_ros)), "a sample came twice"
    assert 40 <= len(ros) <= 55 and 40 <= len(texts) - len(ros) <= 55, f"{len(ros)} and {len(texts) - len(ros)}"
    return f"in 5 s a ROS listener hears {len(ros)} of ROS and {len(texts) - len(ros)} of Noctule, a reader of the bus {len(seen_ros)} and {len(seen) - len(seen_ros)}"


def nodes(w: World) -> None:
    with w.start(f"noctule pub /from_noctule '{{data: hello}}' {STRING} --rate 10"), w.start(TALKER):
        w.stays(3)
        said = w.run("ros2 node list --no-daemon --spin-time 3", keep=10)
        want(said, "/say_chatter", "noctule")
        name = next(line for line in said.splitlines() if "pub" in line)
        want(w.run(f"ros2 node info {name} --no-daemon --spin-time 3", keep=10), "/from_noctule: std_msgs/msg/String")


def services(w: World) -> None:
    with w.start(f"{ENDS} serve /double 40"):
        w.stays(4)
        want(w.run(f"noctule call /double '{{int64_value: 21}}' {TYPES}", keep=16), r"int64_value\D+42")
        said = w.run("ros2 service call /double test_msgs/srv/BasicTypes '{int64_value: 8}'", host="b", **w.far)
        want(said, "int64_value=16")


def parameters(w: World) -> None:
    with w.start(f"{ENDS} hold speed 40"):
        w.stays(4)
        w.run("noctule param set /hold_speed speed 1.5", keep=2)
        want(w.run("ros2 param get /hold_speed speed --no-daemon --spin-time 3"), "1.5")
        want(w.run("noctule param get /hold_speed speed", keep=2), "1.5")


def parameters_across(w: World) -> None:
    with w.start(f"{ENDS} hold speed 40"):
        w.stays(4)
        said = w.run("ros2 param set /hold_speed speed 2.5 --no-daemon --spin-time 3", host="b", **w.far)
        want(said, "successful")


def actions(w: World) -> None:
    with w.start(f"{ENDS} count_up /fibonacci 50"):
        w.stays(4)
        want(w.run(f"noctule action send /fibonacci '{{order: 4}}' --feedback {TYPES}", keep=30), r"\b3\b")
        goal = "ros2 action send_goal --feedback /fibonacci test_msgs/action/Fibonacci '{order: 4}'"
        want(w.run(goal, host="b", keep=30, **w.far), "SUCCEEDED", r"- 3\b")


def noctule_first(w: World) -> None:
    """Before a gateway runs: Cyclone needs its well-known ports."""
    with w.start("noctule echo /nothing"):
        w.stays(2)
        want(w.run(f"{ENDS} latch /first here 1"), "published")


def localhost(w: World) -> None:
    """A gateway and a talker of their own, in domain 3."""
    near = {"ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST", "ROS_DOMAIN_ID": "3"}
    with ExitStack() as stack:
        if w.is_bridged:
            stack.enter_context(w.start("noctule gateway --dds 3", **near))
        stack.enter_context(w.start(TALKER, **near))
        w.stays(4)
        want(w.run(f"noctule echo /chatter --count 1 --domain 3 --seconds 8 {w.types}"), "Hello World")


def nobody_reads(w: World) -> str:
    """Images of host b while nobody on host a reads them, and while somebody does."""
    name = "/sys/class/net/table-1/statistics/tx_bytes"
    rates = []
    with w.start(f"{ENDS} images /camera/image 30 1000000 30", host="b", **w.far):
        w.stays(5)
        for reads in (False, True):
            with ExitStack() as stack:
                if reads:
                    stack.enter_context(w.start("noctule echo /camera/image --seconds 12 --json --elements 1"))
                    w.stays(2)
                first = int(w.quiet(f"cat {name}", host="b"))
                w.stays(5)
                rates.append((int(w.quiet(f"cat {name}", host="b")) - first) / 5e3)
    assert rates[0] < 20 < 5_000 < rates[1], f"{rates} kB/s"
    return f"{rates[0]:.1f} kB/s leave the publisher's host without a reader, {rates[1]:,.0f} kB/s with one"


def three_hundred(w: World) -> str:
    with w.start(f"{ENDS} many 300 25"):
        w.stays(8)
        said = w.run("noctule topics", keep=3)
        count = len(re.findall(r"/many/t\d{4}", said))
        assert count >= 300, f"{count} of 300 are listed"
    return f"{len(set(re.findall(r'/many/t[0-9]{4}', said)))} of 300"


FIRST = "a Noctule node first, ROS 2 second"
ROWS = {
    "a talker of ROS 2 → noctule topics, noctule echo": talker_to_noctule,
    "noctule pub → ros2 topic list, echo, hz, bw, info": noctule_to_tools,
    "no warnings in a ROS 2 program": no_warnings,
    "a Noctule publisher with defaults → a ROS 2 subscription with defaults": defaults_talk,
    "/rosout (transient local)": rosout,
    "1 MB images at 30 Hz, ROS 2 → Noctule": images_in,
    "the same: ROS 2 (host a, domain 0) → bus → ROS 2 (host b, domain 7)": across_two,
    "Int64 at 100 Hz: direct, and between the hosts": numbers,
    "latched topics, late readers, each way": latched,
    "both worlds publish one topic": both_worlds,
    "ros2 node list, node info": nodes,
    "services both ways, and from ROS 2 to ROS 2 across the bus": services,
    "parameters": parameters,
    "ros2 param from ROS 2 to ROS 2 across the bus": parameters_across,
    "actions": actions,
    "300 topics": three_hundred,
    "what nobody reads is not sent": nobody_reads,
    "ROS_AUTOMATIC_DISCOVERY_RANGE=LOCALHOST": localhost,
}


def main() -> None:
    world = World(rmw=sys.argv[1])
    only = sys.argv[2] if len(sys.argv) > 2 else ""
    with hosts():
        if FIRST.find(only) >= 0:
            world.row(FIRST, lambda: noctule_first(world))
        with world.gateways():
            world.rows(ROWS, only)
    world.finish()


if __name__ == "__main__":
    main()
