"""Waiting for many subscribers at once, and callbacks."""

import os
import threading
from itertools import count

import pytest

import noctule

# Tests of one machine run at the same time; each has a domain of its own.
DOMAINS = count(2000 + os.getpid() % 300 * 10)


@pytest.fixture
def node():
    with noctule.Node("test", domain=next(DOMAINS)) as node:
        yield node


def joined(node, topic):
    """A pair that has met, and of which nothing is left to read."""
    publisher, subscriber = node.publisher(topic, keep_last=64), node.subscriber(topic)
    for _ in range(1000):
        publisher.publish(b"hello")
        if subscriber.receive(timeout=0.02) is not None:
            while subscriber.take() is not None:
                pass
            return publisher, subscriber
    pytest.fail("nothing was received")


def test_samples_of_several_topics_come_with_their_topic_and_in_turn(node):
    (imu, first), (camera, second) = joined(node, "imu"), joined(node, "camera")
    for number in range(3):
        imu.publish(b"i%d" % number)
        camera.publish(b"c%d" % number)
    seen = [(topic, bytes(sample)) for topic, sample in noctule.wait(first, second, timeout=0.05)]
    assert seen == [("imu", b"i0"), ("camera", b"c0"), ("imu", b"i1"), ("camera", b"c1"), ("imu", b"i2"), ("camera", b"c2")]


def test_a_wait_holds_no_sample_that_nobody_else_holds(node):
    publisher, _ = joined(node, "imu")
    with node.subscriber("imu", borrows=1) as subscriber:
        while subscriber.publishers == 0:
            subscriber.receive(timeout=0.01)
        for _ in range(3):
            publisher.publish(b"x")
        waiting = noctule.wait(subscriber, timeout=0.05)
        for _ in range(3):
            next(waiting)


@pytest.mark.parametrize("wait", ["block", "hybrid", "spin"])
def test_another_thread_publishes_while_one_waits_and_another_ends_it(node, wait):
    publisher, subscriber = joined(node, "imu")
    waiting = noctule.wait(subscriber, wait=wait)
    other = threading.Thread(target=lambda: publisher.publish(b"from there"))
    other.start()
    topic, sample = next(waiting)
    assert (topic, bytes(sample)) == ("imu", b"from there")
    other.join()
    stopping = threading.Thread(target=waiting.stop)
    stopping.start()
    assert list(waiting) == []
    stopping.join()


def test_closing_a_subscriber_ends_the_wait(node):
    (_, first), (_, second) = joined(node, "a"), joined(node, "b")
    waiting = noctule.wait(first, second)
    closing = threading.Thread(target=first.close)
    closing.start()
    try:
        assert list(waiting) == []
    except ValueError as error:
        # It was quicker than this thread.
        assert "closed" in str(error)
    closing.join()
    with pytest.raises(ValueError, match="the subscriber is closed"):
        next(waiting)


def test_what_cannot_be_waited_for_is_refused(node):
    _, subscriber = joined(node, "a")
    with pytest.raises(ValueError, match="'hybrid'"):
        noctule.WaitSet(wait="sleep")
    with pytest.raises(noctule.NoctuleError, match="open one for each thread"):
        noctule.WaitSet().receive([subscriber, subscriber], timeout=0)
    with pytest.raises(ValueError, match="timeout is -1"):
        noctule.WaitSet().receive([subscriber], timeout=-1)
    assert noctule.WaitSet().receive([], timeout=0.001) is None


def test_callbacks_run_where_it_spins_and_an_exception_leaves_it(node):
    (imu, first), (camera, second) = joined(node, "imu"), joined(node, "camera")
    dispatcher, heard = noctule.Dispatcher(), []
    dispatcher.spin()

    def on_camera(sample):
        assert threading.current_thread() is threading.main_thread()
        heard.append(bytes(sample))
        if heard[-1] == b"bad":
            raise RuntimeError("on purpose")
        if heard[-1] == b"last":
            dispatcher.stop()

    dispatcher.on_sample(first, lambda sample: heard.append(bytes(sample)))
    dispatcher.on_sample(second, on_camera)
    assert not dispatcher.spin_once(timeout=0.001)
    imu.publish(b"one")
    camera.publish(b"bad")
    with pytest.raises(RuntimeError, match="on purpose"):
        dispatcher.spin()
    camera.publish(b"last")
    dispatcher.spin()
    assert sorted(heard) == [b"bad", b"last", b"one"]
    assert not dispatcher.spin_once()


def test_a_subscriber_keeps_statistics(node):
    publisher, subscriber = joined(node, "imu")
    before = subscriber.statistics().taken
    for _ in range(30):
        publisher.publish(b"sample")
    while subscriber.take() is not None:
        pass
    statistics = subscriber.statistics()
    assert statistics.taken - before == 30 and statistics.aged == statistics.taken
    assert 0 <= statistics.age_p50_ns <= statistics.age_max_ns * 1.01 and statistics.bound_ns == 0
    assert (statistics.missed, statistics.late, statistics.age_p99_9_ns) == (0, 0, None)
    assert repr(statistics).startswith(f"Statistics(taken={statistics.taken}, missed=0")
