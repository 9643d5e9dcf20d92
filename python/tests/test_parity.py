"""Python's side of the library beside publishing and receiving: loans, event loops, notices, the other nodes."""

import asyncio
import os
import select
import time

import noctule
import numpy as np
import pytest


@pytest.fixture
def domain() -> int:
    return 3_000 + os.getpid() % 1_000


def joined(source: noctule.Node, target: noctule.Node, topic: str, **settings):
    publisher = source.publisher(topic, **settings)
    same = {name: settings[name] for name in ("reliability", "keep_last") if name in settings}
    subscriber = target.subscriber(topic, **same)
    while publisher.readers == 0 or subscriber.publishers == 0:
        subscriber.receive(timeout=0.005)
    return publisher, subscriber


def test_a_loan_is_written_in_place_and_published_at_the_end(domain):
    with noctule.Node("a", domain=domain) as a, noctule.Node("b", domain=domain) as b:
        publisher, subscriber = joined(a, b, "lent")
        with publisher.loan(1000) as view:
            np.frombuffer(view, np.uint8)[:] = 7
        sample = subscriber.receive(timeout=60)
        assert len(sample) == 1000 and int(sample.data.sum()) == 7000
        assert sample.info.publisher == a.id and sample.info.route == "shared_memory" and sample.info.endpoint > 0
        del sample
        with pytest.raises(RuntimeError), publisher.loan(8):
            raise RuntimeError("on purpose")
        assert subscriber.take() is None
        loan = publisher.loan(8)
        view = memoryview(loan)
        for call in (loan.publish, loan.drop, publisher.close, lambda: publisher.publish(b"x"), lambda: publisher.loan(8)):
            with pytest.raises(BufferError):
                call()
        view[:] = b"12345678"
        view.release()
        loan.publish(source_time_ns=a.now_ns())
        with pytest.raises(BufferError):
            loan.publish()
        assert bytes(subscriber.receive(timeout=60)) == b"12345678"
        with pytest.raises(ValueError, match="payload_bytes_max"):
            publisher.loan(1 << 20)


def test_samples_come_to_asyncio_while_other_tasks_run(domain):
    async def main() -> list[bytes]:
        with noctule.Node("a", domain=domain) as a, noctule.Node("b", domain=domain) as b:
            publisher, subscriber = joined(a, b, "async", keep_last=100)

            async def write() -> None:
                for number in range(50):
                    publisher.publish(str(number).encode())
                    await asyncio.sleep(0)

            waiting = asyncio.ensure_future(noctule.aio.receive(subscriber))
            await asyncio.sleep(0)
            waiting.cancel()
            task = asyncio.ensure_future(write())
            received = []
            async for sample in subscriber:
                received.append(bytes(sample))
                if len(received) == 50:
                    break
            await task
            return received

    assert asyncio.run(main()) == [str(number).encode() for number in range(50)]


def test_a_descriptor_is_readable_while_there_is_something(domain):
    with noctule.Node("n", domain=domain) as node:
        publisher, subscriber = joined(node, node, "select")
        while subscriber.take() is not None or select.select([subscriber], [], [], 0)[0]:
            pass
        publisher.publish(b"x")
        assert select.select([subscriber], [], [], 20)[0] == [subscriber]
        assert bytes(subscriber.take()) == b"x" and subscriber.take() is None
        assert select.select([subscriber], [], [], 0)[0] == []


def test_which_nodes_are_there_and_what_was_counted(domain):
    notices = []
    with (
        noctule.Node("here", domain=domain, on_notice=lambda kind, sentence: notices.append((kind, sentence))) as here,
        noctule.Node("there", domain=domain, interface="127.0.0.1") as there,
    ):
        publisher, _ = joined(there, here, "seen")
        assert (there.id, "there", True) in [(node.id, node.name, node.same_host) for node in here.nodes()]
        assert ("publisher", "seen", there.id) in [(e.kind, e.topic, e.node) for e in here.endpoints()]
        assert here.counters()["malformed"] == 0 and here.counters()["unacknowledged_bytes"] == 0
        publisher.publish(b"x")
        assert publisher.counters() == {"published": 1, "given_up": 0, "deadline_missed": 0, "would_block": 0, "held_up": 0}
        writer = here.publisher("typed", type_name="one")
        reader = here.subscriber("typed", type_name="other")
        while not any(kind == "mismatch" for kind, _ in notices):
            reader.receive(timeout=0.005)
        assert any(kind == "mismatch" and "topic typed" in sentence for kind, sentence in notices)
        writer.close()
    for wrong in ({"interface": "eth0"}, {"share_with_group": -1}):
        with pytest.raises(ValueError):
            noctule.Node("n", **wrong)


def test_stamps_of_other_clocks_become_source_times_with_a_bound(domain):
    with noctule.Node("n", domain=domain) as node:
        publisher, subscriber = joined(node, node, "stamped")
        before, stamp, after = node.now_ns(), time.monotonic_ns(), node.now_ns()
        at, bound = node.source_time_of("monotonic", stamp)
        assert bound > 0 and before <= at + bound and at - bound <= after
        publisher.publish(b"x", at, bound_ns=512, sigma_ns=None)
        info = subscriber.receive(timeout=60).info
        assert (info.source_time_ns, info.bound_ns, info.sigma_ns) == (at, 512, None)
        with pytest.raises(ValueError, match="no clock is called"):
            node.source_time_of("atomic", 0)


def test_a_reliable_publisher_that_is_closed_at_once_loses_nothing(domain):
    # Nodes that do not share memory are as on two hosts.
    with noctule.Node("a", domain=domain, shared_memory=False) as a, noctule.Node("b", domain=domain) as b:
        publisher, subscriber = joined(a, b, "last", reliability="reliable", keep_last=200, linger=30.0)
        with publisher:
            for number in range(100):
                publisher.publish(str(number).encode())
        received = [bytes(subscriber.receive(timeout=60)) for _ in range(100)]
        assert received == [str(number).encode() for number in range(100)]


def test_a_node_is_pinged_and_its_link_counted(domain):
    with noctule.Node("a", domain=domain, shared_memory=False) as a, noctule.Node("b", domain=domain) as b:
        publisher, subscriber = joined(a, b, "linked", reliability="reliable")
        publisher.publish(b"x")
        assert bytes(subscriber.receive(timeout=60)) == b"x"
        sent, arrived, replied, received = b.ping(a.id, 20)
        assert sent <= arrived <= replied <= received
        link = b.link_counters(a.id)
        assert link["delivered"] == 1 and link["received_datagrams"] > 0
        with pytest.raises(ValueError, match="no node"):
            b.ping("0" * 32, 20)
