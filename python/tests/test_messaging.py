"""Nodes, publishers and subscribers from Python, on one host."""

import gc
import os
import signal
import subprocess
import sys
import threading
from itertools import count

import numpy as np
import pytest

import noctule

# Tests of one machine run at the same time; each has a domain of its own.
# 5000 is the last there is.
DOMAINS = count(1000 + os.getpid() % 380 * 10)


@pytest.fixture
def domain():
    return next(DOMAINS)


@pytest.fixture
def node(domain):
    with noctule.Node("test", domain=domain) as node:
        yield node


def until_received(publisher, subscriber, buffer):
    """Publishes until the subscriber has something: no fixed times."""
    for _ in range(1000):
        publisher.publish(buffer)
        if (sample := subscriber.receive(timeout=0.02)) is not None:
            return sample
    pytest.fail("nothing was received")


def drain(subscriber):
    while subscriber.take() is not None:
        pass


def test_two_nodes_find_each_other_and_every_sample_knows_its_age(domain):
    with noctule.Node("a", domain=domain) as a, noctule.Node("b", domain=domain) as b:
        with a.publisher("imu") as publisher, b.subscriber("imu") as subscriber:
            sample = until_received(publisher, subscriber, b"sample")
            assert bytes(sample) == b"sample" and len(sample) == 6
            age, info = sample.age, sample.info
            assert (age.bound_ns, age.sigma_ns) == (0, 0) == (info.bound_ns, info.sigma_ns)
            assert age.ns == info.receive_time_ns - info.source_time_ns >= 0
            assert float(age) == age.seconds == age.ns / 1e9
            assert repr(age) == f"Age(ns={age.ns}, bound_ns=0, sigma_ns=0)"
            assert info.receive_time_ns <= b.now_ns()
            assert (publisher.readers, subscriber.publishers) == (1, 1)


@pytest.mark.parametrize(
    "buffer",
    [
        b"bytes",
        bytearray(b"more"),
        memoryview(b"view"),
        np.arange(12, dtype=np.float32).reshape(3, 4),
        b"",
        np.empty(0),
    ],
    ids=["bytes", "bytearray", "memoryview", "array", "no bytes", "empty array"],
)
def test_any_contiguous_buffer_is_published(node, buffer):
    with node.publisher("t") as publisher, node.subscriber("t") as subscriber:
        sample = until_received(publisher, subscriber, buffer)
        assert bytes(sample) == sample.data.tobytes() == memoryview(buffer).tobytes()
        assert sample.data.dtype == np.uint8 and sample.data.shape == (len(sample),)


def test_a_gap_in_a_buffer_is_refused(node):
    with node.publisher("t") as publisher:
        with pytest.raises(ValueError, match="not contiguous"):
            publisher.publish(np.arange(10)[::2])
        with pytest.raises(TypeError):
            publisher.publish("text")


def test_a_view_is_read_only_and_keeps_the_sample(node):
    publisher = node.publisher("image", keep_last=2, borrows=1)
    subscriber = node.subscriber("image", borrows=1)
    data = until_received(publisher, subscriber, b"first").data
    with pytest.raises(ValueError, match="read-only"):
        data[0] = 0
    for number in range(100):
        publisher.publish(b"%05d" % number)
    subscriber.close()
    publisher.close()
    gc.collect()
    assert data.tobytes() == b"first"


def test_as_many_samples_as_asked_for_are_held_and_no_more(node):
    publisher = node.publisher("t")
    subscriber = node.subscriber("t", borrows=2)
    until_received(publisher, subscriber, b"0")
    drain(subscriber)
    for text in (b"1", b"2", b"3"):
        publisher.publish(text)
    held = [subscriber.take(), subscriber.take()]
    with pytest.raises(noctule.NoctuleError, match="2 samples"):
        subscriber.take()
    kept = held.pop(0).copy()
    assert bytes(subscriber.take()) == b"3" and kept.tobytes() == b"1"
    kept[0] = 0


def test_iteration_goes_on_while_the_last_sample_is_held(node):
    publisher = node.publisher("t", transient_local=True)
    for number in range(8):
        publisher.publish(bytes([number]))
    seen = []
    for sample in node.subscriber("t", transient_local=True):
        seen.append(sample.data[0])
        if len(seen) == 8:
            break
    assert seen == list(range(8))


def test_what_was_overwritten_is_counted(node):
    publisher = node.publisher("t", keep_last=4)
    subscriber = node.subscriber("t")
    until_received(publisher, subscriber, b"0")
    drain(subscriber)
    for number in range(100):
        publisher.publish(bytes([number]))
    taken = missed = 0
    while (sample := subscriber.take()) is not None:
        taken, missed = taken + 1, missed + sample.info.missed
    assert taken >= 4 and taken + missed == 100


def test_the_latest_sample_and_a_history_of_ones_own(node):
    publisher = node.publisher("t")
    subscriber = node.subscriber("t", keep_last=2)
    until_received(publisher, subscriber, b"0")
    drain(subscriber)
    assert subscriber.latest() is None
    for number in range(6):
        publisher.publish(bytes([number]))
    assert [bytes(subscriber.take())[0] for _ in range(2)] == [4, 5]
    for number in range(6):
        publisher.publish(bytes([number]))
    sample = subscriber.latest()
    assert bytes(sample) == bytes([5]) and sample.info.missed == 5
    assert subscriber.take() is None


def test_a_subscriber_that_ignores_its_own_node_hears_only_others(node):
    publisher = node.publisher("own")
    subscriber, other = node.subscriber("own", ignore_local=True), node.subscriber("own")
    until_received(publisher, other, b"0")
    assert publisher.readers == 1 and subscriber.publishers == 0 and subscriber.take() is None


def test_with_keep_all_a_reader_that_is_behind_holds_up_its_publisher(node):
    publisher = node.publisher("t", reliability="reliable", keep_last=4, keep_all=True)
    subscriber = node.subscriber("t", reliability="reliable")
    # Of which nothing is expected: a reader at best effort holds up nobody.
    _idle = node.subscriber("t")
    until_received(publisher, subscriber, b"0")
    drain(subscriber)
    for number in range(4):
        publisher.publish(bytes([number]))
    with pytest.raises(BlockingIOError, match="publish again later"):
        publisher.publish(b"4")
    assert publisher.counters()["would_block"] == 1
    assert not publisher.wait_for_room(1, timeout=0.001)
    drain(subscriber)
    assert publisher.wait_for_room(1, timeout=60)
    publisher.publish(b"4")
    assert publisher.wait_for_acknowledgments(timeout=60)


def test_a_source_time_of_ones_own_makes_the_age(node):
    publisher, subscriber = node.publisher("t"), node.subscriber("t", lifespan=60.0)
    until_received(publisher, subscriber, b"0")
    drain(subscriber)
    publisher.publish(b"ancient", source_time_ns=node.now_ns() - 61_000_000_000)
    publisher.publish(b"old", source_time_ns=node.now_ns() - 50_000_000)
    sample = subscriber.receive(timeout=60)
    assert bytes(sample) == b"old" and sample.age.seconds >= 0.05


def test_nothing_in_time_is_none_not_an_error(node):
    subscriber = node.subscriber("t")
    assert subscriber.take() is None
    assert subscriber.receive(timeout=0) is None
    assert subscriber.receive(timeout=0.15) is None


@pytest.mark.parametrize("wait", ["block", "spin", "hybrid"])
def test_another_thread_ends_a_wait(node, wait):
    subscriber = node.subscriber("t", wait=wait)
    seen = []
    waiting = threading.Thread(target=lambda: seen.append(list(subscriber)))
    waiting.start()
    while True:
        try:
            subscriber.take()
        except noctule.NoctuleError as error:
            assert "another thread" in str(error)
            break
    subscriber.close()
    waiting.join()
    assert seen == [[]]
    with pytest.raises(ValueError, match="closed"):
        subscriber.receive()


WAITER = """
import signal, sys, noctule
# A shell that starts this in the background may have it ignore interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    with noctule.Node("waiter", domain=int(sys.argv[1])) as node, node.subscriber("t") as subscriber:
        print("ready", flush=True)
        subscriber.receive()
except KeyboardInterrupt:
    print("interrupted")
"""


def test_an_interrupt_ends_a_wait(domain):
    command = [sys.executable, "-c", WAITER, str(domain)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as waiter:
        assert waiter.stdout.readline() == "ready\n"
        waiter.send_signal(signal.SIGINT)
        assert waiter.communicate(timeout=60)[0] == "interrupted\n"


def test_handles_may_be_closed_in_any_order_and_twice(domain):
    node = noctule.Node("n", domain=domain)
    publisher, subscriber = node.publisher("t"), node.subscriber("t")
    node.close()
    assert bytes(until_received(publisher, subscriber, b"still")) == b"still"
    for handle in (subscriber, publisher, node) * 2:
        handle.close()
    for use in (lambda: publisher.publish(b""), lambda: publisher.readers, subscriber.take, node.now_ns):
        with pytest.raises(ValueError, match="closed"):
            use()
    with pytest.raises(ValueError, match="closed"):
        node.publisher("t")


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"domain": -1}, "domain is -1"),
        ({"domain": 5001}, "domain is 5001"),
        ({"static_peers": ["nowhere"]}, "192.168.1.7"),
        ({"swarm_key": "/no/such/key"}, "/no/such/key"),
    ],
)
def test_a_node_that_cannot_be_is_refused(arguments, word):
    with pytest.raises(ValueError, match=word):
        noctule.Node("n", **arguments)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"topic": ""}, "no name"),
        ({"keep_last": 0}, "keep_last is 0"),
        ({"keep_last": -1}, "keep_last is -1"),
        ({"reliability": "best"}, '"reliable"'),
        ({"deadline": 0}, "deadline is 0"),
        ({"deadline": float("nan")}, "deadline is NaN"),
        ({"lifespan": -1}, "lifespan is -1"),
        ({"payload_bytes_max": -1}, "payload_bytes_max is -1"),
        ({"borrows": -1}, "borrows is -1"),
        ({"reliability": "reliable", "multicast": True}, "leave multicast out"),
    ],
)
def test_a_publisher_that_cannot_be_is_refused(node, arguments, word):
    with pytest.raises(ValueError, match=word):
        node.publisher(**({"topic": "t"} | arguments))


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"topic": "a\nb"}, "control character"),
        ({"borrows": 0}, "borrows is 0"),
        ({"borrows": 8}, "borrows is 8"),
        ({"wait": "sleep"}, "'hybrid'"),
        ({"deadline": -1}, "deadline is -1"),
    ],
)
def test_a_subscriber_that_cannot_be_is_refused(node, arguments, word):
    with pytest.raises(ValueError, match=word):
        node.subscriber(**({"topic": "t"} | arguments))


def test_a_sample_that_is_too_long_is_refused(node):
    with node.publisher("t", payload_bytes_max=4) as publisher:
        publisher.publish(b"1234")
        with pytest.raises(ValueError, match="payload_bytes_max"):
            publisher.publish(b"12345")


def test_a_timeout_that_cannot_be_is_refused(node):
    with pytest.raises(ValueError, match="timeout is -1"):
        node.subscriber("t").receive(timeout=-1)
