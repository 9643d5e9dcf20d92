"""Every package reads what Rust wrote, and Rust's definition of the content is Python's."""

import pathlib
import struct

import pytest

import codecs_of
import state as states

VECTORS = pathlib.Path(__file__).resolve().parent.parent.parent / "vectors/formats"
CODECS = codecs_of.codecs()
WRITTEN_AS = {"orjson": "json", "yaml_pure": "yaml"}


def as_dictionary(state):
    """NumPy's points as the other formats have them."""
    points = state["points"]
    if not isinstance(points, list):
        points = [dict(zip(points.dtype.names, map(float, point))) for point in points]
    return state | {"points": points}


@pytest.mark.parametrize("name", CODECS)
def test_what_rust_wrote_is_read(name):
    data = (VECTORS / ("uav_state." + WRITTEN_AS.get(name, name))).read_bytes()
    read = as_dictionary(CODECS[name][1](data))
    wanted = states.realistic(1024, 1)
    if name in ("json", "orjson", "yaml", "yaml_pure", "csv", "xml"):
        # Text made from single precision has the shortest digits that lead back to it there.
        wanted, read = single(wanted), single(read)
    assert read == wanted


@pytest.mark.parametrize("name", CODECS)
def test_what_was_written_is_read(name):
    encode, decode, _ = CODECS[name]
    state = states.realistic(2000, 7)
    assert as_dictionary(decode(encode(state))) == as_dictionary(states.realistic(2000, 7))


@pytest.mark.parametrize("name", [name for name in ("plain", "protobuf") if name in CODECS])
def test_bytes_are_those_of_rust(name):
    written = CODECS[name][0](states.realistic(1024, 1))
    assert written == (VECTORS / ("uav_state." + name)).read_bytes()


def single(value):
    if isinstance(value, float):
        return struct.unpack("<f", struct.pack("<f", value))[0]
    if isinstance(value, dict):
        return {key: single(each) for key, each in value.items()}
    return [single(each) for each in value] if isinstance(value, list) else value
