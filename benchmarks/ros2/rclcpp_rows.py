"""Programs on rclcpp: rows as in rows.py. `rclcpp_rows.py rmw_cyclonedds_cpp` and `rclcpp_rows.py rmw_noctule` as there.

`rclcpp_rows.py mixed`: programs on rmw_noctule on host b, programs on rmw_cyclonedds_cpp and `noctule gateway --dds` on host a.
Wants target/rclcpp_ends/ends, which rclcpp/CMakeLists.txt builds.
"""

import re
import sys

from table import ENDS, PREFIX, ROOT, SHARE, World, hosts, last_json, until, want

CPP = f"{ROOT}/target/rclcpp_ends/ends"
DEMO = f"{PREFIX}/lib/demo_nodes_cpp"
TALKER, LISTENER = f"{DEMO}/talker", f"{DEMO}/listener"
CYCLONE = {"RMW_IMPLEMENTATION": "rmw_cyclonedds_cpp"}
STRING = f"--types {SHARE} --type std_msgs/msg/String"
NODES = 30


def demo(w: World) -> None:
    with w.start(TALKER, keep=2):
        w.stays(3)
        want(w.run(f"timeout -s INT 6 {LISTENER}", keep=3), r"I heard: \[Hello World: \d+\]")
        want(w.run(f"timeout -s INT 8 {LISTENER}", host="b", keep=3, **w.far), r"I heard: \[Hello World: \d+\]")


def with_noctule(w: World) -> None:
    with w.start(TALKER):
        w.stays(3)
        want(w.run(f"noctule echo /chatter --count 2 {w.types}", keep=10), "Hello World")
    with w.start(LISTENER, keep=2) as heard:
        w.stays(3)
        w.run(f"noctule pub /chatter '{{data: from Noctule}}' {STRING} --rate 10 --count 20 --reliable", keep=2)
        until(heard, "I heard: .from Noctule")


def services(w: World) -> None:
    with w.start(f"{DEMO}/add_two_ints_server"):
        w.stays(3)
        want(w.run(f"timeout 20 {DEMO}/add_two_ints_client", keep=2), r"Result of add_two_ints: 5")
        want(w.run(f"timeout 20 {DEMO}/add_two_ints_client_async", host="b", keep=2, **w.far), r"Result of add_two_ints: 5")
        want(w.run(f"noctule call /add_two_ints '{{a: 20, b: 22}}' --types {SHARE}"), "42")


def parameters(w: World) -> None:
    with w.start(f"{DEMO}/parameter_blackboard"):
        w.stays(3)
        tail = "--no-daemon --spin-time 3"
        want(w.run(f"ros2 param set /parameter_blackboard speed 2.5 {tail}"), "successful")
        want(w.run(f"ros2 param get /parameter_blackboard speed {tail}", host="b", **w.far), r"2\.5")
        want(w.run(f"ros2 param list /parameter_blackboard {tail}", host="b", keep=3, **w.far), "speed")


def containers(w: World) -> str:
    """A container of each kind with 30 nodes, talkers and listeners in turn."""
    notes = []
    for kind in ("component_container", "component_container_mt", "component_container_isolated"):
        with w.start(f"{PREFIX}/lib/rclcpp_components/{kind}", keep=3) as said:
            w.stays(3)
            loaded = last_json(w.run(f"{ENDS} load /ComponentManager {NODES}"))
            assert loaded["loaded"] == NODES, f"{loaded['loaded']} of {NODES} are loaded"
            heard = until(said, r"I heard: \[Hello World: \d+\]")
            listed = w.run("ros2 component list --no-daemon --spin-time 4", keep=4)
            assert len(re.findall(r"^ +\d+ +/", listed, re.M)) == NODES, "not all are listed"
            seen = w.run("ros2 node list --no-daemon --spin-time 4", host="b", keep=4, **w.far)
            count = len(set(re.findall(r"^/(?:talker|listener)_\d+", seen, re.M)))
            assert count == NODES and heard, f"host b sees {count} nodes"
            notes.append(f"{kind} {loaded['loaded']}")
    return ", ".join(notes)


def executors(w: World) -> str:
    notes = []
    for kind in ("single", "multi", "events"):
        got = last_json(w.run(f"{CPP} nodes {NODES} {kind} 8"))
        # The first ones are published before anybody is there.
        assert got["sent"] > NODES * 60 and got["received"] >= got["sent"] - 5 * NODES, "messages are missing"
        assert got["asked"] > NODES * 50 and got["answered"] == got["asked"], "requests are without a response"
        notes.append(f"{kind} {got['received']} of {got['sent']} messages, {got['answered']} of {got['asked']} responses")
    return "; ".join(notes)


def wait_sets(w: World) -> str:
    got = last_json(w.run(f"{CPP} wait_set 4"))
    assert got["ticks"] > 60 and got["messages"] >= got["ticks"] - 2 and got["guards"] > 60, str(got)
    return f"{got['ticks']} ticks, {got['messages']} messages, {got['guards']} guards"


def intra(w: World) -> str:
    got = last_json(w.run(f"{CPP} intra 4"))
    assert got["received"] == got["sent"] > 150 and got["same_pointer"] == got["sent"], str(got)
    return f"{got['same_pointer']} of {got['sent']} by their pointer"


def mixed_topics(w: World) -> None:
    for here, there in (("a", "b"), ("b", "a")):
        with w.start(TALKER, host=here, **(CYCLONE if here == "a" else {})):
            w.stays(4)
            heard = w.run(f"timeout -s INT 8 {LISTENER}", host=there, keep=3, **(CYCLONE if there == "a" else {}))
            want(heard, r"I heard: \[Hello World: \d+\]")


def mixed_services(w: World) -> None:
    for here, there in (("a", "b"), ("b", "a")):
        with w.start(f"{DEMO}/add_two_ints_server", host=here, **(CYCLONE if here == "a" else {})):
            w.stays(4)
            asked = w.run(f"timeout 20 {DEMO}/add_two_ints_client", host=there, keep=2, **(CYCLONE if there == "a" else {}))
            want(asked, r"Result of add_two_ints: 5")


def mixed_graph(w: World) -> None:
    tail = "--no-daemon --spin-time 4"
    for here, there in (("a", "b"), ("b", "a")):
        more = CYCLONE if there == "a" else {}
        with w.start(f"{DEMO}/parameter_blackboard", host=here, **(CYCLONE if here == "a" else {})):
            w.stays(4)
            want(w.run(f"ros2 node list {tail}", host=there, keep=6, **more), "/parameter_blackboard")
            want(w.run(f"ros2 param set /parameter_blackboard speed 2.5 {tail}", host=there, **more), "successful")
            want(w.run(f"ros2 param get /parameter_blackboard speed {tail}", host=there, **more), r"2\.5")


def mixed_container(w: World) -> str:
    with w.start(f"{PREFIX}/lib/rclcpp_components/component_container_mt", host="b"):
        w.stays(4)
        loaded = last_json(w.run(f"{ENDS} load /ComponentManager {NODES}", **CYCLONE))
        assert loaded["loaded"] == NODES, f"{loaded['loaded']} of {NODES} are loaded"
        want(w.run(f"timeout -s INT 6 {LISTENER}", keep=3, **CYCLONE), r"I heard: \[Hello World: \d+\]")
    return f"{loaded['loaded']} nodes on rmw_noctule, loaded by a program on rmw_cyclonedds_cpp"


ROWS = {
    "talker and listener of demo_nodes_cpp, one host and two": demo,
    "talker → noctule echo, noctule pub → listener": with_noctule,
    "services of demo_nodes_cpp, one host and two, noctule call": services,
    "ros2 param of a node in C++, one host and two": parameters,
    "component containers with 30 nodes": containers,
    "30 nodes with timers, topics and services in one executor": executors,
    "wait sets": wait_sets,
    "intra-process": intra,
}
MIXED = {
    "topics between rmw_noctule and rmw_cyclonedds_cpp, both ways": mixed_topics,
    "services, both ways": mixed_services,
    "nodes and parameters, both ways": mixed_graph,
    "30 components": mixed_container,
}


def main() -> None:
    is_mixed = sys.argv[1] == "mixed"
    world = World(rmw="rmw_noctule" if is_mixed else sys.argv[1])
    only = sys.argv[2] if len(sys.argv) > 2 else ""
    with hosts():
        if is_mixed:
            with world.start("noctule gateway --dds 0"):
                world.stays(5)
                world.rows(MIXED, only)
        else:
            with world.gateways():
                world.rows(ROWS, only)
    world.finish()


if __name__ == "__main__":
    main()
