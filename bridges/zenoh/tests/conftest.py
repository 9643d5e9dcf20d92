"""Fixtures of the bridge's tests: a router, a bridge, a node of the bus, a program that speaks as ROS 2."""

import socket
from collections.abc import Iterator

import noctule
import pytest
import ros2
from joined import DOMAINS, Bridge


@pytest.fixture
def endpoint() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"tcp/127.0.0.1:{free.getsockname()[1]}"


@pytest.fixture
def router(endpoint: str) -> Iterator[str]:
    session = ros2.open_session("router", endpoint)
    yield endpoint
    session.close()


@pytest.fixture
def bus() -> int:
    return next(DOMAINS)


@pytest.fixture
def bridge(router: str, bus: int) -> Iterator[Bridge]:
    bridge = Bridge(router, bus)
    yield bridge
    assert bridge.close() == 0


@pytest.fixture
def talker(router: str, bridge: Bridge) -> Iterator[ros2.Node]:
    node = ros2.Node("talker", router)
    yield node
    node.close()


@pytest.fixture
def node(bus: int) -> Iterator[noctule.Node]:
    with noctule.Node("arm/left hand", domain=bus) as node:
        yield node
