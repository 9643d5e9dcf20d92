"""The bridge beside programs that speak as ROS 2's rmw_zenoh_cpp does, by a router, and beside another bridge."""

import struct
import subprocess
import threading

import noctule
import ros2
import xxhash
from joined import BRIDGE, DOMAINS, Bridge, publisher, received
from ros2 import cdr_string, text_of, until


def test_samples_pass_both_ways_once_and_with_exact_attachments(talker, bridge, node):
    chatter, heard = talker.publisher("/chatter"), talker.subscriber("/down")
    graph = ros2.Graph(talker)
    with node.subscriber("/chatter") as reader, publisher(node, "/down", reliability="reliable") as writer:
        until(lambda: (bridge.route("/chatter", "from_zenoh") or {}).get("is_read"), "the subscription")
        until(chatter.is_matched)
        until(lambda: reader.publishers)
        for text in ["a", "b", "c"]:
            chatter.publish(text)
        for text in ["a", "b", "c"]:
            sample = received(reader, text)
            assert sample.info.bound_ns is None and sample.info.source_time_ns is not None
            assert 0 <= sample.age.ns < 60e9
        until(lambda: writer.readers)
        mine = until(lambda: graph.of("/MP/", "%down"))
        until(lambda: graph.of("/NN/%/%arm/left_hand"), "the node's name")
        # The publisher's number is there once its token is seen; samples before have a number of their own.
        for at in range(3):
            writer.publish(cdr_string(f"down {at}"))
            until(lambda at=at: f"down {at}" in heard.texts())
        sequences = [sequence for _, (sequence, _, _) in heard.samples]
        assert sequences == [1, 2, 3], "counted from 1, each once"
        gid = heard.samples[-1][1][2]
        until(lambda: bridge.route("/down", "to_zenoh")["samples"] == 3)
        assert gid in [xxhash.xxh3_128_intdigest(key.encode()).to_bytes(16, "little") for key in graph.of("/MP/", "%down")], mine
        until(lambda: "/talker" in bridge.status()["ros_nodes"])


def test_nothing_crosses_without_a_reader(talker, bridge, node):
    chatter = talker.publisher("/chatter")
    with publisher(node, "/up") as writer:
        until(lambda: bridge.route("/chatter", "from_zenoh") and bridge.route("/up", "to_zenoh"))
        for _ in range(20):
            chatter.publish("for nobody")
            writer.publish(cdr_string("for nobody"))
        assert writer.readers == 0
        assert not bridge.route("/chatter", "from_zenoh")["is_read"]
        # And from now on.
        heard = talker.subscriber("/up")
        with node.subscriber("/chatter") as reader:
            until(lambda: bridge.route("/chatter", "from_zenoh")["is_read"] and writer.readers)

            def pass_both() -> bool:
                chatter.publish("for one")
                writer.publish(cdr_string("for one"))
                sample = reader.receive(0.05)
                return sample is not None and text_of(bytes(sample.data)) == "for one" and "for one" in heard.texts()

            until(pass_both)
            assert "for nobody" not in heard.texts()


def test_late_readers_get_what_is_kept_both_ways(router, talker, bridge, node):
    there = talker.publisher("/map", latched=2)
    for text in ["1", "2", "3"]:
        there.publish(text)
    with publisher(node, "/plan", transient_local=True, reliability="reliable", keep_last=2) as here:
        for text in ["x", "y", "z"]:
            here.publish(cdr_string(text))
        until(lambda: (bridge.route("/plan", "to_zenoh") or {}).get("samples", 0) >= 2, "the cache is filled")
        until(lambda: (bridge.route("/map", "from_zenoh") or {}).get("samples", 0) >= 2, "the history came")
        with node.subscriber("/map", transient_local=True, reliability="reliable") as late:
            received(late, "2")
            received(late, "3")
        listener = ros2.Node("late", router)
        heard = listener.subscriber("/plan", latched=2)
        # Three, if the cache had the first two when it was asked.
        until(lambda: heard.texts()[-2:] == ["y", "z"], "the history of the bus")
        listener.close()


def test_a_node_of_humble_is_reached_under_its_own_key(talker, bridge, node):
    heard = talker.subscriber("/old", hash_=ros2.HUMBLE)
    with publisher(node, "/old", reliability="reliable") as writer:
        until(lambda: writer.readers)
        writer.publish(cdr_string("humble"))
        until(lambda: heard.texts() == ["humble"])


def test_nodes_and_endpoints_go_from_the_graph_with_their_node(talker, bridge, bus):
    graph = ros2.Graph(talker)
    with noctule.Node("camera", domain=bus) as camera, publisher(camera, "/image"):
        until(lambda: graph.of("/NN/", "/camera") and graph.of("/MP/", "/camera/", "%image", "std_msgs::msg::dds_::String_"))
    until(lambda: not graph.of("/camera"), "its tokens go")


def test_services_pass_both_ways_with_the_client(talker, bridge, node):
    talker.server("/there/add", lambda request: request[:4] + struct.pack("<q", sum(struct.unpack("<qq", request[4:]))))
    request_type = ("example_interfaces/srv/AddTwoInts_Request", 0)
    response_type = ("example_interfaces/srv/AddTwoInts_Response", 0)
    types = {"request_type": request_type, "response_type": response_type}
    numbers = b"\0\1\0\0" + struct.pack("<qq", 40, 2)
    with node.client("/there/add", deadline=ros2.TIMEOUT, **types) as client:
        assert client.wait_for_server(ros2.TIMEOUT)
        for _ in range(20):
            assert struct.unpack("<q", bytes(client.call(numbers))[4:]) == (42,)
    with node.server("/here/add", **types) as server:
        is_over = threading.Event()

        def serve() -> None:
            while not is_over.is_set():
                if request := server.receive(0.05):
                    a, b = struct.unpack("<qq", bytes(request)[4:])
                    if a < 0:
                        server.fail(request, "only what is positive is added")
                    else:
                        server.reply(request, b"\0\1\0\0" + struct.pack("<q", a + b))

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            graph = ros2.Graph(talker)
            until(lambda: graph.of("/SS/", "%here%add"), "the server is seen")
            for sequence in range(1, 21):
                (reply,) = talker.call("/here/add", numbers, sequence)
                assert struct.unpack("<q", bytes(reply.ok.payload)[4:]) == (42,)
            (failed,) = talker.call("/here/add", b"\0\1\0\0" + struct.pack("<qq", -1, 2))
            assert "only what is positive" in bytes(failed.err.payload).decode()
            (refused,) = talker.call("/here/add", numbers, 1, extra=b"!")
            assert "no request of ROS 2" in bytes(refused.err.payload).decode()
        finally:
            is_over.set()
            thread.join()


def test_hostile_tokens_and_samples_are_counted_and_nothing_else(talker, bridge, node):
    for key in ["@ros2_lv/0/x/y", "@ros2_lv/0/ab/0/0/NN/%/%/" + "n" * 5000, "@ros2_lv/0/ab/0/1/MP/%/%/t/%a/b/c/d"]:
        talker.kept.append(talker.session.liveliness().declare_token(key))
    chatter = talker.publisher("/chatter")
    with node.subscriber("/chatter") as reader:
        until(lambda: (bridge.route("/chatter", "from_zenoh") or {}).get("is_read"))
        until(chatter.is_matched)
        until(lambda: reader.publishers)
        good = ros2.attachment(1, chatter.gid)
        hostile = [(cdr_string("x"), None), (cdr_string("x"), b""), (cdr_string("x"), good[:32]), (cdr_string("x"), good + b"!"), (b"", good), (b"\0\7\0\0", good)]
        for payload, beside in hostile:
            chatter.publish_raw(payload, beside)
        chatter.publish("after")
        received(reader, "after")
        until(lambda: bridge.route("/chatter", "from_zenoh")["unreadable"] == len(hostile))
        until(lambda: bridge.status()["tokens_unreadable"] == 3 and bridge.status()["malformed"] == len(hostile))
        assert bridge.process.poll() is None
        until(lambda: "are counted and left out" in bridge.notices())


def test_two_sites_keep_source_time_and_bound(router, bus):
    far_bus = next(DOMAINS)
    near, far = Bridge(router, bus), Bridge(router, far_bus)
    try:
        with noctule.Node("robot", domain=bus) as robot, noctule.Node("desk", domain=far_bus) as desk:
            with publisher(robot, "/pose") as writer, desk.subscriber("/pose") as reader:

                def proven() -> noctule.Sample | None:
                    if not writer.readers:
                        return None
                    # Two nodes of one host have one clock, which is the truth here.
                    writer.publish(cdr_string(str(robot.now_ns())))
                    sample = reader.receive(0.1)
                    return sample if sample is not None and sample.info.bound_ns is not None else None

                sample = until(proven, "a sample with a bound")
                for _ in range(50):
                    truth = int(text_of(bytes(sample.data)))
                    error = abs(sample.info.source_time_ns - truth)
                    # Allowance for the time between reading the clock here and the library's own reading.
                    assert error <= sample.info.bound_ns + 20_000_000, (error, sample.info.bound_ns)
                    sample = until(proven)
                # The report comes later than the sample, and an earlier one had no bound.
                until(lambda: proven() and "proven within" in far.route("/pose", "from_zenoh")["stamped"])
                assert far.route("/pose", "from_zenoh")["twice"] == 0
                assert far.status()["clocks"][0]["answered"] > 0
    finally:
        assert (near.close(), far.close()) == (0, 0)


def test_of_two_bridges_of_the_same_networks_one_stands_by_and_takes_over(router, bus, talker, bridge):
    until(lambda: "sessions" in bridge.status())
    other = Bridge(router, bus)
    try:
        until(lambda: [b.status().get("standby") for b in (bridge, other)].count(True) == 1, "one stands by")
    finally:
        assert other.close() == 0
    until(lambda: bridge.status()["standby"] is False)
    chatter = talker.publisher("/chatter")
    until(lambda: bridge.route("/chatter", "from_zenoh"))
    assert chatter.sequence == 0


def test_a_router_that_is_not_there_is_named_and_waited_for(endpoint, bus):
    bridge = Bridge(endpoint, bus)
    until(lambda: "no router of Zenoh answers" in bridge.notices())
    session = ros2.open_session("router", endpoint)
    until(lambda: bridge.status().get("sessions") is not None, "it joins")
    assert bridge.close() == 0
    session.close()


def test_bad_words_are_one_sentence_and_exit_code_2(tmp_path):
    for words in [["--endpoint", "nonsense"], ["--config", str(tmp_path / "none.json5")], ["--every", "0"]]:
        ended = subprocess.run([BRIDGE, *words], capture_output=True, text=True, timeout=ros2.TIMEOUT)
        assert (ended.returncode, len(ended.stderr.strip().splitlines())) == (2, 1), ended.stderr
