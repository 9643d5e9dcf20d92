"""Dataclasses as samples: their bytes and hashes are those of the same types in Rust."""

import dataclasses
import json
import os
from itertools import count
from pathlib import Path
from typing import Annotated

import numpy as np
import pytest
from numpy.typing import NDArray

import noctule
from noctule.message import decode, encode, formats, type_hash

VECTORS = Path(__file__).parents[2] / "vectors/formats"
UAV_STATE_HASH = 0x167D_357F_BF8D_5942
DOMAINS = count(3000 + os.getpid() % 150 * 10)


@noctule.message("uav/Header")
class Header:
    sequence: noctule.u64
    stamp_ns: noctule.i64
    frame_id: str


@noctule.message("uav/Imu")
class Imu:
    angular_velocity_rad_s: Annotated[list[noctule.f32], 3]
    acceleration_m_s2: Annotated[list[noctule.f32], 3]
    temperature_c: noctule.f32


@noctule.message("uav/Battery")
class Battery:
    voltage_v: noctule.f32
    current_a: noctule.f32
    remaining: noctule.f32
    cells_v: list[noctule.f32]


@noctule.message("uav/Gps")
class Gps:
    latitude_deg: noctule.f64
    longitude_deg: noctule.f64
    altitude_m: noctule.f64
    horizontal_error_m: noctule.f32
    satellites: noctule.u8
    fix: noctule.u8


@noctule.message("uav/Parameter")
class Parameter:
    name: str
    value: noctule.f64


@noctule.message("uav/Waypoint")
class Waypoint:
    latitude_deg: noctule.f64
    longitude_deg: noctule.f64
    altitude_m: noctule.f32
    speed_m_s: noctule.f32


@noctule.message("uav/Point")
class Point:
    x_m: noctule.f32
    y_m: noctule.f32
    z_m: noctule.f32
    intensity: noctule.f32


@noctule.message("uav/UavState")
class UavState:
    header: Header
    position_m: Annotated[list[noctule.f64], 3]
    attitude: Annotated[NDArray[np.float64], 4]
    velocity_m_s: Annotated[list[noctule.f32], 3]
    pose_covariance: Annotated[list[noctule.f32], 21]
    velocity_covariance: Annotated[list[noctule.f32], 21]
    imu: Imu
    battery: Battery
    gps: Gps
    armed: bool
    mode: noctule.u8
    status_text: str
    parameters: list[Parameter]
    waypoints: list[Waypoint]
    points: list[Point]


@noctule.message("test/Scan")
class Scan:
    ranges_m: NDArray[np.float32]
    flags: list[bool]


@pytest.fixture
def node():
    with noctule.Node("test", domain=next(DOMAINS)) as node:
        yield node


def vector(name):
    return (VECTORS / f"uav_state.{name}").read_bytes()


def test_the_definition_has_the_hash_that_rust_computes():
    # Also in crates/formats/src/uav_state/tests.rs.
    assert type_hash(UavState) == UAV_STATE_HASH


@pytest.mark.parametrize("name", ["cdr", "json", "msgpack", "cbor"])
def test_what_rust_wrote_is_read_and_written_again(name):
    state = decode(UavState, vector(name), name)
    assert isinstance(state.attitude, np.ndarray) and state.header.frame_id == "map"
    again = encode(state, name)
    if name == "json":
        # Of 32 bits each side writes the digits it takes for shortest.
        floats = {"parse_float": np.float32}
        assert json.loads(again, **floats) == json.loads(vector(name), **floats)
    elif name == "cdr":
        assert again == vector(name)
    assert encode(decode(UavState, again, name), "cdr") == vector("cdr")


def test_a_type_that_is_its_own_encoding_has_the_plain_layout():
    point = Point(1.0, 2.0, 3.0, 0.5)
    assert encode(point, "plain") == np.array([1, 2, 3, 0.5], "<f4").tobytes()
    assert decode(Point, encode(point, "plain"), "plain") == point
    assert "plain" in formats(Point) and "plain" in formats(Gps) and "plain" not in formats(UavState)


@noctule.message("test/Inner")
class Inner:
    first: noctule.u8
    second: noctule.f64
    last: bool


@noctule.message("test/Padded")
class Padded:
    flag: bool
    from_: Annotated[noctule.f64, noctule.name("from")]
    inner: Inner
    pair: Annotated[list[Inner], 2]
    flags: Annotated[list[bool], 3]
    numbers: Annotated[NDArray[np.int16], 2]


def test_padding_of_the_plain_layout_is_zero_and_ignored():
    inner = Inner(7, 1.5, True)
    value = Padded(True, 0.25, inner, [inner, Inner(8, 2.5, False)], [False, True, True], np.array([-1, 5], np.int16))
    part = b"\7" + bytes(7) + np.float64(1.5).tobytes() + b"\1" + bytes(7)
    other = b"\10" + bytes(7) + np.float64(2.5).tobytes() + bytes(8)
    whole = b"\1" + bytes(7) + np.float64(0.25).tobytes() + part + part + other + b"\0\1\1\0\xff\xff\5\0"
    assert encode(value, "plain") == whole
    view = np.frombuffer(whole, noctule.dtype(Padded))[0]
    assert (view["from"], view["pair"][1]["second"], list(view["flags"])) == (0.25, 2.5, [0, 1, 1])
    # The bytes between the fields are unspecified.
    noisy = bytearray(whole)
    noisy[1:8] = b"padding"
    again = decode(Padded, bytes(noisy), "plain")
    assert again.pair == value.pair and again.flags == value.flags and list(again.numbers) == [-1, 5]
    assert encode(again, "plain") == whole
    with pytest.raises(ValueError, match="2 elements and not 3"):
        encode(dataclasses.replace(value, flags=[True, True]), "plain")
    with pytest.raises(ValueError, match="no plain layout"):
        noctule.dtype(UavState)


@pytest.mark.parametrize(
    ("cls", "buffer", "name", "words"),
    [
        (UavState, b"", "cdr", "not plain CDR"),
        (UavState, vector("cdr")[:-5], "cdr", "ends in the middle"),
        (UavState, vector("cdr") + b"1234", "cdr", "4 bytes are left over"),
        (Scan, b"\0\1\0\0\xff\xff\xff\xff", "cdr", "ends in the middle"),
        (Scan, b"\0\1\0\0\0\0\0\0\xff\xff\xff\x7f\1", "cdr", "ends in the middle"),
        (Scan, b"\0\1\0\0\0\0\0\0\1\0\0\0\2", "cdr", "2 is no bool"),
        (Point, b"1234", "plain", "4 bytes, but the type has 16"),
        (Point, b"[]", "json", "no uav/Point"),
        (Point, b'{"x_m":1}', "json", "lacks intensity, y_m, z_m"),
        (Header, b'{"sequence":-1,"stamp_ns":0,"frame_id":""}', "json", "-1 is no u64"),
        (Header, b"[" * 100_000, "json", "cannot be decoded as json"),
        (Header, b"\xc1", "msgpack", "cannot be decoded as msgpack"),
        (Header, b"", "cbor", "cannot be decoded as cbor"),
        (Header, b"", "csv", "choose one of cdr, json"),
    ],
)
def test_bytes_that_are_no_value_are_refused_with_a_sentence(cls, buffer, name, words):
    with pytest.raises(ValueError, match=words):
        decode(cls, buffer, name)


@pytest.mark.parametrize(
    ("value", "name", "words"),
    [
        (Point("x", 0, 0, 0), "cdr", "'x' is no f32"),
        (Header(1 << 64, 0, ""), "cdr", "is no u64"),
        (Header(1, 0, "a\0b"), "cdr", "NUL"),
        (Imu([1.0], [1.0, 2.0, 3.0], 0.0), "cdr", "1 elements and not 3"),
        (Header(1, 0, ""), "plain", "choose one of"),
    ],
)
def test_a_value_that_cannot_be_expressed_is_refused_with_a_sentence(value, name, words):
    with pytest.raises(ValueError, match=words):
        encode(value, name)


def test_a_class_that_says_too_little_is_refused():
    with pytest.raises(TypeError, match="field x is <class 'int'>; say bool"):

        @noctule.message("test/Bad")
        class Bad:
            x: int

    with pytest.raises(TypeError, match="int is no message"):
        encode(5)


@pytest.mark.parametrize("name", ["cdr", "json", "msgpack", "cbor"])
def test_a_dataclass_travels(node, name):
    scan = Scan(np.array([1.5, np.pi], np.float32), [True, False])
    publisher = noctule.TypedPublisher(node, "scan", Scan, format=name, reliability="reliable")
    with publisher, noctule.TypedSubscriber(node, "scan", Scan) as subscriber:
        for _ in range(1000):
            publisher.publish(scan)
            if (sample := subscriber.receive(timeout=0.02)) is not None:
                break
        assert sample.value.flags == scan.flags and np.array_equal(sample.value.ranges_m, scan.ranges_m)
        assert sample.info.format == name and sample.age.ns >= 0
        assert subscriber.statistics().taken > 0


def test_a_sample_that_is_no_value_is_counted_and_the_next_is_received(node):
    kind = {"type_name": "uav/Point", "type_hash": type_hash(Point), "format": "json"}
    good = encode(Point(1, 2, 3, 4), "json")
    with node.publisher("point", **kind) as publisher, noctule.TypedSubscriber(node, "point", Point) as subscriber:
        while publisher.readers == 0 or subscriber.subscriber.publishers == 0:
            subscriber.take()
        heard = []
        dispatcher = noctule.Dispatcher()
        dispatcher.on_sample(subscriber, lambda sample: heard.append(sample.value))
        for _ in range(1000):
            publisher.publish(b"{}")
            try:
                dispatcher.spin_once(timeout=0.02)
            except noctule.NoctuleError as error:
                assert "topic point: uav/Point cannot be decoded as json: uav/Point lacks" in str(error)
                break
        assert subscriber.undecodable == 1 and heard == []
        while subscriber.subscriber.take() is not None:
            pass
        publisher.publish(good)
        assert subscriber.receive(timeout=60).value == Point(1, 2, 3, 4)


def test_what_cannot_be_opened_is_refused(node):
    with pytest.raises(ValueError, match="uav/Header has no format plain; choose one of cdr, json"):
        noctule.TypedPublisher(node, "t", Header, format="plain")
    with pytest.raises(ValueError, match="json, yaml"):
        node.publisher("t", format="jason")
    with noctule.TypedPublisher(node, "t", Point) as publisher, pytest.raises(TypeError, match="str is no Point"):
        publisher.publish("x")


@noctule.message("test/Keywords")
class Keywords:
    from_: Annotated[noctule.u8, noctule.name("from")]
    few: Annotated[list[noctule.u16], noctule.bound(2)]
    short: Annotated[str, noctule.bound(3)]


def test_names_and_bounds_are_part_of_a_definition():
    def fnv(*parts: bytes) -> int:
        value = 0xCBF29CE484222325
        for byte in b"".join(parts):
            value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
        return value

    def word(value: int) -> bytes:
        return value.to_bytes(8, "little")

    few = fnv(b"sequence\0", word(fnv(b"u16\0")), word(2))
    short = fnv(b"string\0", word(3))
    parts = [b"from\0", word(fnv(b"u8\0")), b"few\0", word(few), b"short\0", word(short)]
    assert noctule.type_hash(Keywords) == fnv(b"test/Keywords\0", *parts)


def test_a_bound_holds_when_writing_and_when_reading():
    value = Keywords(7, [1, 2], "abc")
    assert decode(Keywords, encode(value)) == value
    for wrong in (Keywords(7, [1, 2, 3], "abc"), Keywords(7, [1], "abcd")):
        with pytest.raises(ValueError, match="may have"):
            encode(wrong)
    assert decode(Keywords, encode(value, "json"), "json") == value
    assert b'"from":7' in encode(value, "json")


def test_a_type_describes_itself_and_a_node_takes_it():
    expected = "struct test/Keywords\n uint8 from\n uint16[<=2] few\n string<=3 short\n"
    assert noctule.description(Keywords) == expected
    with noctule.Node("describes", domain=4990) as node:
        assert node.describe(expected)
        assert not node.describe("struct a/A\n" + " uint8 x\n" * 8000)
        with pytest.raises(ValueError, match="no members"):
            node.describe("struct a/A\n")
