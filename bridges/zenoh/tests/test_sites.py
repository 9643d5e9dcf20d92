"""Two sites and what lies between them: outages, encryption, gateways that lie, processes that die."""

import json
import os
import shutil
import signal
import struct
import subprocess
import threading
from pathlib import Path

import noctule
import pytest
import ros2
from joined import BRIDGE, DOMAINS, TYPE, Bridge, publisher, received
from path import Path as Network
from ros2 import STRING, STRING_HASH, cdr_string, text_of, until

NOCTULE = os.environ.get("NOCTULE", str(Path(__file__).parents[3] / "target/debug/noctule"))
LATCHED = {"transient_local": True, "reliability": "reliable"}


def test_a_site_that_comes_back_gets_what_was_kept_as_old_as_it_is(router, bus):
    far_bus = next(DOMAINS)
    network = Network(int(router.rsplit(":", 1)[1]))
    near, far = Bridge(network.endpoint, bus), Bridge(router, far_bus)
    try:
        with noctule.Node("robot", domain=bus) as robot, noctule.Node("desk", domain=far_bus) as desk:
            with (
                publisher(robot, "/mission", keep_last=4, **LATCHED) as writer,
                desk.subscriber("/mission", keep_last=16, **LATCHED) as reader,
            ):
                writer.publish(cdr_string("before"))
                received(reader, "before")
                network.cut()
                until(lambda: far.status()["sessions"] == 0, "the robot's gateway is out of reach")
                # The two nodes of this host have one clock, so the times compare.
                times = []
                for at in range(3):
                    times.append(robot.now_ns())
                    writer.publish(cdr_string(f"meanwhile {at}"))
                until(lambda: near.route("/mission", "to_zenoh")["samples"] == 4, "they are kept")
                mended_ns = robot.now_ns()
                network.mend()
                for at, time_ns in enumerate(times):
                    sample = received(reader, f"meanwhile {at}")
                    assert sample.info.bound_ns is not None, "proven, though it waited"
                    assert abs(sample.info.source_time_ns - time_ns) <= sample.info.bound_ns + 20_000_000
                    assert sample.info.source_time_ns < mended_ns + sample.info.bound_ns
                writer.publish(cdr_string("after"))
                received(reader, "after")
    finally:
        codes = near.close(), far.close()
        network.close()
    assert codes == (0, 0)


def test_a_site_that_comes_late_gets_what_is_kept_with_its_bound(router, bus):
    far_bus = next(DOMAINS)
    near = Bridge(router, bus)
    try:
        with noctule.Node("robot", domain=bus) as robot, publisher(robot, "/map", keep_last=3, **LATCHED) as writer:
            times = {}
            for at in range(5):
                times[str(at)] = robot.now_ns()
                writer.publish(cdr_string(str(at)))
            until(lambda: (near.route("/map", "to_zenoh") or {}).get("samples", 0) >= 3, "the cache is filled")
            far = Bridge(router, far_bus)
            try:
                with noctule.Node("desk", domain=far_bus) as desk, desk.subscriber("/map", **LATCHED) as reader:
                    for text in ["2", "3", "4"]:
                        sample = received(reader, text)
                        assert sample.info.bound_ns is not None
                        assert abs(sample.info.source_time_ns - times[text]) <= sample.info.bound_ns + 20_000_000
            finally:
                assert far.close() == 0
    finally:
        assert near.close() == 0


def test_a_gateway_that_lies_is_counted_and_proves_nothing(router, talker, bridge, node):
    liar, zid = talker, talker.zid
    liar.kept.append(liar.session.liveliness().declare_token(f"@noctule/0/gateway/{zid}"))
    clock = f"@noctule/0/clock/{zid}"
    asked = []

    def answer(query) -> None:
        asked.append(query)
        nonce = bytes(query.payload)[1:9]
        contradiction = b"\1" + nonce + struct.pack("<qq", 2**63 - 1, -(2**63))
        replies = [b"", b"\2" * 25, contradiction, b"\1" + bytes(24), b"\xff" * 4000]
        with query:
            query.reply(clock, replies[len(asked) % len(replies)])

    liar.kept.append(liar.session.declare_queryable(clock, answer, complete=True))
    gid = liar.announce("MP", "/pose", STRING, STRING_HASH, "::,7:,:,:,,")
    key = f"@noctule/0/sample/{zid}/pose/{STRING}/{STRING_HASH}"
    good = b"\1" + struct.pack("<qqQQ", 1, 10**18, 1000, 2**64 - 1) + gid
    hostile = [None, b"", good[:-1], good + b"!", b"\2" + good[1:], b"\xff" * 49]
    with node.subscriber("/pose") as reader:
        probe = liar.session.declare_publisher(key)
        until(lambda: probe.matching_status.matching, "before that, Zenoh drops samples where they are published")
        until(lambda: reader.publishers)
        until(lambda: len(asked) >= 10)
        for beside in hostile:
            liar.session.put(key, cdr_string("x"), attachment=beside)
        liar.session.put(key, b"", attachment=good)
        extremes = [b"\1" + struct.pack("<qqQQ", 2**63 - 1, at, width, width) + gid for at, width in [(2**63 - 1, 0), (-(2**63), 2**63 - 1)]]
        for beside in [*extremes, good]:
            liar.session.put(key, cdr_string("y"), attachment=beside)
        liar.session.put(key, cdr_string("last"), attachment=good)
        sample = received(reader, "last")
        assert sample.info.bound_ns is None, "no node has proven anything"
        until(lambda: bridge.route("/pose", "from_zenoh")["undated"] == len(extremes) + 3)
        until(lambda: bridge.route("/pose", "from_zenoh")["unreadable"] >= len(hostile) + 1)
        until(lambda: bridge.status()["malformed"] >= len(hostile) + 1)
        assert bridge.process.poll() is None
        assert [known["bound_ns"] for known in bridge.status()["clocks"]] == [None]


def certificates(folder: Path, *names: str) -> None:
    """An authority, and a certificate by it for the router and for each of these."""

    def openssl(*words: str) -> None:
        subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)

    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    openssl("req", "-x509", *curve, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=fleet")
    for name in ["localhost", *names]:
        openssl("req", *curve, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        (folder / "san").write_text(f"subjectAltName=DNS:{name}\nbasicConstraints=CA:FALSE\n")
        signed = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "san"]
        openssl("x509", "-req", "-in", f"{name}.csr", "-out", f"{name}.pem", *signed)


def secure_router(endpoint: str, folder: Path, access: dict) -> object:
    """A router that asks for certificates, with these rules of access."""
    tls = {
        "root_ca_certificate": f"{folder}/ca.pem",
        "listen_certificate": f"{folder}/localhost.pem",
        "listen_private_key": f"{folder}/localhost.key",
        "enable_mtls": True,
    }
    settings = {
        "mode": "router",
        "listen/endpoints": [endpoint],
        "scouting/multicast/enabled": False,
        "timestamping/enabled": True,
        "transport/link/tls": tls,
        "access_control": access,
    }
    config = ros2.zenoh.Config()
    for name, value in settings.items():
        config.insert_json5(name, json.dumps(value))
    return ros2.zenoh.open(config)


def site_file(folder: Path, name: str, **more: object) -> str:
    """A bridge's settings: without a certificate of this name, those of a stranger."""
    tls = {"root_ca_certificate": f"{folder}/ca.pem"}
    if (folder / f"{name}.pem").is_file():
        tls |= {"connect_certificate": f"{folder}/{name}.pem", "connect_private_key": f"{folder}/{name}.key", "enable_mtls": True}
    settings = {"mode": "client", "scouting": {"multicast": {"enabled": False}}, "transport": {"link": {"tls": tls}}} | more
    file = folder / f"{name}.json5"
    file.write_text(json.dumps(settings))
    return str(file)


def rule(name: str, permission: str, flows: list[str], messages: list[str], keys: list[str]) -> dict:
    return {"id": name, "permission": permission, "flows": flows, "messages": messages, "key_exprs": keys}


needs_openssl = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificates")


@needs_openssl
def test_a_router_that_asks_for_certificates_lets_in_holders_of_one_and_what_it_allows(endpoint, bus, tmp_path):
    certificates(tmp_path, "site")
    secure = endpoint.replace("tcp/127.0.0.1", "tls/localhost")
    secrets = ["0/secret/**", "@noctule/0/sample/*/secret/**"]
    denied = rule("no secrets", "deny", ["ingress", "egress"], ["put", "declare_subscriber"], secrets)
    access = {
        "enabled": True,
        "default_permission": "allow",
        "rules": [denied],
        "subjects": [{"id": "sites", "cert_common_names": ["site"]}],
        "policies": [{"rules": ["no secrets"], "subjects": ["sites"]}],
    }
    router = secure_router(secure, tmp_path, access)
    refused = Bridge(secure, bus, "--config", site_file(tmp_path, "stranger"))
    try:
        until(lambda: "no router of Zenoh answers" in refused.notices(), "it is not let in")
        assert not any("sessions" in line for line in refused.lines)
    finally:
        assert refused.close() == 0
    far_bus = next(DOMAINS)
    near, far = (Bridge(secure, domain, "--config", site_file(tmp_path, "site")) for domain in (bus, far_bus))
    try:
        with (
            noctule.Node("robot", domain=bus) as robot,
            noctule.Node("desk", domain=far_bus) as desk,
            publisher(robot, "/pose") as pose,
            publisher(robot, "/secret") as secret,
            desk.subscriber("/pose") as reader,
            desk.subscriber("/secret") as spy,
        ):

            def proven() -> bool:
                secret.publish(cdr_string("secret"))
                pose.publish(cdr_string("pose"))
                sample = reader.receive(0.1)
                return sample is not None and sample.info.bound_ns is not None

            # Its token is no secret, so that both are read, and one of them arrives.
            until(lambda: all((far.route(topic, "from_zenoh") or {}).get("is_read") for topic in ["/pose", "/secret"]))
            for _ in range(10):
                until(proven)
            assert spy.take() is None
    finally:
        codes = near.close(), far.close()
        router.close()
    assert codes == (0, 0)


@needs_openssl
def test_robots_of_a_fleet_see_the_desk_and_not_each_other(endpoint, bus, tmp_path):
    """The rules of docs/guide/fleets.md: without them each robot gets the tokens of all."""
    certificates(tmp_path, "robot", "desk")
    secure = endpoint.replace("tcp/127.0.0.1", "tls/localhost")
    all_keys, desk = ["**", "@ros2_lv/**", "@noctule/**"], "de5c"
    both, others = ["ingress", "egress"], ["put", "delete", "declare_subscriber", "query", "declare_queryable", "reply"]
    tokens = ["liveliness_token"]
    access = {
        "enabled": True,
        "default_permission": "deny",
        "rules": [
            rule("all", "allow", both, [*others, *tokens, "declare_liveliness_subscriber", "liveliness_query"], all_keys),
            rule("samples", "allow", both, [*others, "declare_liveliness_subscriber", "liveliness_query"], all_keys),
            rule("own tokens", "allow", ["ingress"], tokens, all_keys),
            rule("the desk's tokens", "allow", ["egress"], tokens, [f"@ros2_lv/*/{desk}/**", f"@noctule/*/gateway/{desk}"]),
        ],
        "subjects": [{"id": name, "cert_common_names": [name]} for name in ("robot", "desk")],
        "policies": [
            {"rules": ["samples", "own tokens", "the desk's tokens"], "subjects": ["robot"]},
            {"rules": ["all"], "subjects": ["desk"]},
        ],
    }
    router = secure_router(secure, tmp_path, access)
    domains = [bus, next(DOMAINS), next(DOMAINS)]
    files = [site_file(tmp_path, "robot"), site_file(tmp_path, "robot"), site_file(tmp_path, "desk", id=desk)]
    bridges = [Bridge(secure, domain, "--config", file) for domain, file in zip(domains, files)]
    try:
        nodes = [noctule.Node(name, domain=domain) for name, domain in zip(["first", "second", "desk"], domains)]
        writers = [publisher(node, f"/{name}/pose") for node, name in zip(nodes, ["first", "second"])]
        readers = [nodes[2].subscriber(f"/{name}/pose") for name in ["first", "second"]]

        def proven(at: int) -> bool:
            writers[at].publish(cdr_string("pose"))
            sample = readers[at].receive(0.1)
            return sample is not None and sample.info.bound_ns is not None

        for at in (0, 1):
            until(lambda at=at: proven(at), "the desk gets it, proven")
        until(lambda: bridges[2].status()["sessions"] == 2, "the desk sees both")
        until(lambda: all("/desk" in bridge.status()["ros_nodes"] for bridge in bridges[:2]), "both see the desk")
        assert [bridge.status()["sessions"] for bridge in bridges[:2]] == [1, 1], "and no other"
        for one in [*readers, *writers, *nodes]:
            one.close()
    finally:
        codes = [bridge.close() for bridge in bridges]
        router.close()
    assert codes == [0, 0, 0]


def children(process_id: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{process_id}/task/{process_id}/children").read_text().split()]


@pytest.mark.skipif(not Path(NOCTULE).is_file(), reason=f"{NOCTULE} is not built")
def test_the_command_starts_the_bridge_and_again_when_it_dies(router, bus, node, tmp_path):
    # The command takes the bridge from beside itself first.
    for program, name in [(NOCTULE, "noctule"), (BRIDGE, "noctule-zenoh")]:
        try:
            os.link(program, tmp_path / name)
        except OSError:
            shutil.copy(program, tmp_path / name)
    command = [str(tmp_path / "noctule"), "gateway", "--zenoh", router, "--domain", str(bus), "--every", "0.2", "--json"]
    environment = {name: value for name, value in os.environ.items() if name != "ROS_DOMAIN_ID"}
    gateway = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    lines: list[str] = []
    reading = threading.Thread(target=lambda: lines.extend(gateway.stdout))
    reading.start()
    try:
        talker = ros2.Node("talker", router)
        chatter = talker.publisher("/chatter")
        with node.subscriber("/chatter", type_name=TYPE) as reader:

            def passes() -> bool:
                chatter.publish("here")
                sample = reader.receive(0.1)
                return sample is not None and text_of(bytes(sample.data)) == "here"

            until(passes)
            (first,) = until(lambda: children(gateway.pid))
            os.kill(first, signal.SIGKILL)
            until(lambda: any("is started again" in line for line in lines), "it is named")
            (second,) = until(lambda: children(gateway.pid))
            assert second != first
            until(lambda: reader.take() is None)
            until(passes)
        talker.close()
    finally:
        gateway.send_signal(signal.SIGTERM)
        code = gateway.wait(ros2.TIMEOUT)
        reading.join()
    assert code == 0
    assert not Path(f"/proc/{second}").exists(), "it ends with the command"
