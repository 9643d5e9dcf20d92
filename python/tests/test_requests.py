"""Clients and servers of services from Python, on one host."""

import asyncio
import os
import threading
from dataclasses import dataclass
from itertools import count

import noctule
import pytest

DOMAINS = count(2_000 + os.getpid() % 200 * 5)


@noctule.message("demo/srv/Add_Request")
@dataclass
class Add:
    a: noctule.i64
    b: noctule.i64


@noctule.message("demo/srv/Add_Response")
@dataclass
class Sum:
    sum: noctule.i64


def add(request: Add) -> Sum:
    if request.a < 0:
        raise ValueError("only what is positive is added")
    return Sum(request.a + request.b)


@pytest.fixture
def node():
    """A node with a server of /add that runs until the test is over."""
    is_over = threading.Event()
    with noctule.Node("test", domain=next(DOMAINS), interface="127.0.0.1") as node:
        with noctule.TypedServer(node, "/add", Add, Sum) as server:

            def serve() -> None:
                while not is_over.is_set():
                    server.serve(add, timeout=0.02)

            thread = threading.Thread(target=serve)
            thread.start()
            yield node
            is_over.set()
            thread.join()


def test_a_call_ends_with_a_response_or_with_its_reason(node):
    with noctule.TypedClient(node, "/add", Add, Sum, deadline=60.0) as client:
        assert client.call(Add(2, 40)) == Sum(42)
        with pytest.raises(noctule.NoReplyError, match="failed: only what is positive is added"):
            client.call(Add(-1, 1))
        with pytest.raises(TypeError, match="Sum is no Add"):
            client.call(Sum(1))
        with pytest.raises(ValueError, match="deadline of zero"):
            client.call(Add(1, 1), deadline=0)
    with pytest.raises(ValueError, match="closed"):
        client.call(Add(1, 1))
    with noctule.TypedClient(node, "/nobody", Add, Sum, deadline=0.1) as client:
        with pytest.raises(noctule.NoReplyError, match="no server was found within 100 ms"):
            client.call(Add(1, 1))
    with pytest.raises(ValueError, match="1 to 243 bytes"):
        node.client("/")


def test_bytes_have_ages_and_the_other_side_is_known(node):
    with node.server("/raw") as server, node.client("/raw", deadline=60.0) as client:
        replies = []
        thread = threading.Thread(target=lambda: replies.append(client.call(b"ask")))
        thread.start()
        request = server.receive(timeout=60)
        assert (bytes(request), len(request), request.caller) == (b"ask", 3, node.id)
        assert request.age.ns > 0 and request.age.bound_ns == 0 and request.deadline_ns == 60_000_000_000
        assert not server.is_cancelled(request)
        server.reply(request, b"answer")
        thread.join()
        assert (bytes(replies[0]), len(replies[0]), replies[0].server) == (b"answer", 6, node.id)
        assert replies[0].age.ns > 0
        with pytest.raises(ValueError, match="answered before"):
            server.reply(request, b"answer")
        assert server.receive(timeout=0) is None


def test_calls_are_awaited_while_other_tasks_run(node):
    async def main() -> list[int]:
        clients = [noctule.TypedClient(node, "/add", Add, Sum, deadline=60.0) for _ in range(3)]
        sums = await asyncio.gather(*(client.call_async(Add(at, 1)) for at, client in enumerate(clients)))
        for client in clients:
            client.close()
        return [found.sum for found in sums]

    assert asyncio.run(main()) == [1, 2, 3]
