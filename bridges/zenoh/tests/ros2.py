"""A program that speaks Zenoh as ROS 2's rmw_zenoh_cpp does: its keys, liveliness tokens and attachments, on PyPI's eclipse-zenoh."""

import json
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import xxhash
import zenoh
import zenoh.ext

STRING = "std_msgs::msg::dds_::String_"
STRING_HASH = "RIHS01_df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18"
ADD = "example_interfaces::srv::dds_::AddTwoInts_"
ADD_HASH = "RIHS01_e118de6bf5eeb66a2491b5bda11202e7b68f198d6f67922cf30364858239c81a"
HUMBLE = "TypeHashNotSupported"
TIMEOUT = 60.0


def until(what: Callable[[], object], why: str = "") -> object:
    """Waits until something is true, whatever else the machine does."""
    end = time.monotonic() + TIMEOUT
    pause = threading.Event()
    while not (result := what()):
        assert time.monotonic() < end, f"not within {TIMEOUT} s: {why or what}"
        pause.wait(0.02)
    return result


def open_session(mode: str, endpoint: str, *further: str) -> zenoh.Session:
    """A session; a router listens at the endpoint and connects to further ones."""
    config = zenoh.Config()
    config.insert_json5("mode", json.dumps(mode))
    config.insert_json5("listen/endpoints" if mode == "router" else "connect/endpoints", json.dumps([endpoint]))
    if further:
        config.insert_json5("connect/endpoints", json.dumps(further))
    config.insert_json5("scouting/multicast/enabled", "false")
    config.insert_json5("timestamping/enabled", "true")
    return zenoh.open(config)


def cdr_string(text: str) -> bytes:
    encoded = text.encode() + b"\0"
    return b"\0\1\0\0" + struct.pack("<I", len(encoded)) + encoded


def text_of(cdr: bytes) -> str:
    (length,) = struct.unpack_from("<I", cdr, 4)
    return bytes(cdr[8 : 8 + length - 1]).decode()


def attachment(sequence: int, gid: bytes, stamp_ns: int | None = None) -> bytes:
    return struct.pack("<qqB", sequence, time.time_ns() if stamp_ns is None else stamp_ns, 16) + gid


def parse_attachment(payload: zenoh.ZBytes | None) -> tuple[int, int, bytes]:
    data = bytes(payload) if payload is not None else b""
    assert len(data) == 33, f"an attachment of {len(data)} bytes ends a process of rmw_zenoh_cpp"
    sequence, stamp_ns, length = struct.unpack_from("<qqB", data)
    assert length == 16
    return sequence, stamp_ns, data[17:]


class Node:
    """A node of ROS 2 in a session of its own."""

    def __init__(self, name: str, endpoint: str, domain: int = 0) -> None:
        self.session = open_session("client", endpoint)
        self.name, self.domain, self.next = name, domain, 1
        self.zid = str(self.session.zid())
        self.kept: list[object] = [self._token(f"@ros2_lv/{domain}/{self.zid}/0/0/NN/%/%/{name}")]

    def _token(self, key: str) -> object:
        return self.session.liveliness().declare_token(key)

    def announce(self, kind: str, topic: str, of: str, hash_: str, qos: str) -> bytes:
        """Declares an endpoint's token; its GID."""
        key = (
            f"@ros2_lv/{self.domain}/{self.zid}/0/{self.next}/{kind}/%/%/{self.name}/{topic.replace('/', '%')}/{of}/{hash_}/{qos}"
        )
        self.next += 1
        self.kept.append(self._token(key))
        digest = xxhash.xxh3_128_intdigest(key.encode())
        return digest.to_bytes(16, "little")

    def key(self, topic: str, of: str, hash_: str) -> str:
        return f"{self.domain}/{topic.strip('/')}/{of}/{hash_}"

    def publisher(self, topic: str, latched: int = 0, of: str = STRING, hash_: str = STRING_HASH) -> "Publisher":
        cache = None if latched == 0 else zenoh.ext.CacheConfig(max_samples=latched)
        inner = zenoh.ext.declare_advanced_publisher(
            self.session, self.key(topic, of, hash_), cache=cache, publisher_detection=latched > 0
        )
        qos = f":1:,{latched}:,:,:,," if latched else "::,7:,:,:,,"
        probe = self.session.declare_publisher(self.key(topic, of, hash_))
        return Publisher(inner, probe, self.announce("MP", topic, of, hash_, qos))

    def subscriber(self, topic: str, latched: int = 0, of: str = STRING, hash_: str = STRING_HASH) -> "Subscriber":
        history = None if latched == 0 else zenoh.ext.HistoryConfig(detect_late_publishers=True, max_samples=latched)
        found = Subscriber()
        found.inner = zenoh.ext.declare_advanced_subscriber(
            self.session, self.key(topic, of, hash_), found.take, history=history, subscriber_detection=latched > 0
        )
        self.announce("MS", topic, of, hash_, f":1:,{latched}:,:,:,," if latched else "::,7:,:,:,,")
        return found

    def server(self, service: str, answer: Callable[[bytes], bytes]) -> None:
        key = self.key(service, ADD, ADD_HASH)

        def serve(query: zenoh.Query) -> None:
            sequence, _, gid = parse_attachment(query.attachment)
            with query:
                query.reply(key, answer(bytes(query.payload)), attachment=attachment(sequence, gid))

        self.kept.append(self.session.declare_queryable(key, serve, complete=True))
        self.announce("SS", service, ADD, ADD_HASH, "::,10:,:,:,,")

    def call(self, service: str, request: bytes, sequence: int = 1, extra: bytes = b"") -> list[zenoh.Reply]:
        """All replies to a request."""
        gid = self.announce("SC", service, ADD, ADD_HASH, "::,10:,:,:,,")
        replies = self.session.get(
            self.key(service, ADD, ADD_HASH),
            target=zenoh.QueryTarget.ALL_COMPLETE,
            consolidation=zenoh.ConsolidationMode.NONE,
            payload=request,
            attachment=attachment(sequence, gid) + extra,
            timeout=TIMEOUT,
        )
        found = list(replies)
        for reply in found:
            if reply.ok is not None:
                assert parse_attachment(reply.ok.attachment)[::2] == (sequence, gid)
        return found

    def close(self) -> None:
        self.session.close()


class Publisher:
    def __init__(self, inner: zenoh.ext.AdvancedPublisher, probe: zenoh.Publisher, gid: bytes) -> None:
        self.inner, self.probe, self.gid, self.sequence = inner, probe, gid, 0

    def is_matched(self) -> bool:
        """Whether this session knows of a subscription: before that, Zenoh drops samples where they are published."""
        return self.probe.matching_status.matching

    def publish(self, text: str) -> None:
        self.sequence += 1
        self.inner.put(cdr_string(text), attachment=attachment(self.sequence, self.gid))

    def publish_raw(self, payload: bytes, beside: bytes | None) -> None:
        self.inner.put(payload, attachment=beside)


class Subscriber:
    def __init__(self) -> None:
        self.samples: list[tuple[str, tuple[int, int, bytes]]] = []
        self.inner: object = None

    def take(self, sample: zenoh.Sample) -> None:
        self.samples.append((text_of(bytes(sample.payload)), parse_attachment(sample.attachment)))

    def texts(self) -> list[str]:
        return [text for text, _ in self.samples]


class Graph:
    """All tokens, as `ros2 node list` and `ros2 topic list` read them."""

    def __init__(self, node: Node) -> None:
        self.keys: set[str] = set()

        def follow(sample: zenoh.Sample) -> None:
            if sample.kind == zenoh.SampleKind.PUT:
                self.keys.add(str(sample.key_expr))
            else:
                self.keys.discard(str(sample.key_expr))

        liveliness = node.session.liveliness()
        self.inner = liveliness.declare_subscriber(f"@ros2_lv/{node.domain}/**", follow, history=True)

    def of(self, *parts: str) -> list[str]:
        return [key for key in sorted(self.keys) if all(part in key for part in parts)]


class Router:
    """A router in a process of its own, so that its CPU time is counted separately."""

    def __init__(self, *endpoints: str) -> None:
        command = [sys.executable, __file__, *endpoints]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "ready\n"

    def close(self) -> None:
        self.process.communicate()


if __name__ == "__main__":
    session = open_session("router", *sys.argv[1:])
    print("ready", flush=True)
    sys.stdin.read()
    session.close()
