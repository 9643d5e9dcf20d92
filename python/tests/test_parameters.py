"""Parameters from Python: declared, read, set and refused, by another node."""

import os
from itertools import count

import noctule
import pytest

DOMAINS = count(4_000 + os.getpid() % 190 * 5)


@pytest.fixture
def nodes():
    domain = next(DOMAINS)
    with noctule.Node("arm", domain=domain, interface="127.0.0.1") as arm:
        with noctule.Node("tool", domain=domain, interface="127.0.0.1") as tool:
            yield arm, tool


def test_values_of_every_kind_are_declared_read_and_set(nodes):
    arm, tool = nodes
    values = {
        "flag": True,
        "count": -(2**63),
        "speed": 0.5,
        "text": "é",
        "raw": b"\x00\xff",
        "flags": [True, False],
        "counts": [1, -1],
        "speeds": [0.5, 1.5],
        "texts": ["a", ""],
    }
    with arm.parameters("/arm") as parameters, tool.parameter_client("/arm", deadline=60.0) as client:
        for name, value in values.items():
            parameters.declare(name, value)
        assert client.list() == sorted(values) == parameters.names()
        for name, value in values.items():
            assert (client.get(name), type(client.get(name))) == (value, type(value))
            client.set(name, value)
        client.set("speed", 2)
        client.set("speeds", [])
        assert (parameters.get("speed"), parameters.get("speeds")) == (2.0, [])
        assert client.get("nothing") is None and client.describe("nothing") is None


def test_what_is_refused_raises_with_the_reason(nodes):
    arm, tool = nodes
    with arm.parameters("/arm") as parameters, tool.parameter_client("/arm", deadline=60.0) as client:
        parameters.declare("speed", 0.5, range=(0, 2), description="m/s")
        parameters.declare("serial", "X1", read_only=True)
        parameters.declare("none", [], type="integer_array")
        for value, why in ((3.0, "can be 0 to 2"), ("x", "is of type {double}")):
            with pytest.raises(ValueError, match=why):
                client.set("speed", value)
        with pytest.raises(ValueError, match="read-only"):
            client.set("serial", "X2")
        with pytest.raises(ValueError, match="not declared"):
            client.set("nothing", 1)
        assert client.describe("speed") == {
            "type": "double",
            "description": "m/s",
            "constraints": "",
            "read_only": False,
            "dynamic_typing": False,
            "range": (0.0, 2.0, 0.0),
        }
        asked = []

        def refuse(values):
            asked.append(values)
            if values.get("speed", 0) > 1:
                raise RuntimeError(f"above 1, and now {parameters.get('speed')}")

        parameters.on_set(refuse)
        client.set("speed", 0.75)
        for change in (client.set, parameters.set):
            with pytest.raises(ValueError, match="above 1, and now 0.75"):
                change("speed", 1.5)
        assert asked == [{"speed": 0.75}, {"speed": 1.5}, {"speed": 1.5}]
        with pytest.raises(ValueError, match="declared already"):
            parameters.declare("speed", 1.0)
        with pytest.raises(ValueError, match="empty list"):
            parameters.declare("more", [])
        with pytest.raises(TypeError):
            parameters.declare("more", {})


def test_a_node_without_parameters_is_named(nodes):
    _, tool = nodes
    with tool.parameter_client("/nobody", deadline=0.2) as client:
        with pytest.raises(noctule.NoReplyError, match="no server was found"):
            client.list()
