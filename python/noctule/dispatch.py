"""Many subscribers at once: samples as they come, and callbacks.

Use these names from :mod:`noctule`.
"""

from collections.abc import Callable, Iterator
from typing import Any, Literal

from noctule._native import Sample, Subscriber, WaitSet
from noctule.typed import TypedSample, TypedSubscriber

_Wait = Literal["block", "spin", "hybrid"]


class Waiting(Iterator[tuple[str, Sample]]):
    """Iterator of :func:`wait`: the samples of several subscribers, each with its topic."""

    def __init__(self, subscribers: tuple[Subscriber, ...], timeout: float | None, wait: _Wait) -> None:
        self._set = WaitSet(wait=wait)
        self._subscribers = subscribers
        self._timeout = timeout

    def __next__(self) -> tuple[str, Sample]:
        found = self._set.receive(self._subscribers, self._timeout)
        if found is None:
            raise StopIteration
        # Nothing here keeps the sample while it is in use elsewhere.
        return found[0].topic, found[1]

    def stop(self) -> None:
        """End the iteration, from another thread or from within."""
        self._set.wake()


def wait(*subscribers: Subscriber, timeout: float | None = None, wait: _Wait = "block") -> Waiting:
    """Samples of all subscribers as they come, each with its topic, in turn if several have some::

        for topic, sample in noctule.wait(imu, camera):
            print(topic, sample.age)

    Ends when ``timeout`` seconds pass without a sample, after ``stop()``, or when a subscriber is closed. ``wait`` as in
    ``Node.subscriber``. Other threads run meanwhile.
    """
    return Waiting(subscribers, timeout, wait)


class Dispatcher:
    """Calls what was registered for each sample that comes, on the thread that spins, one at a time::

        dispatcher = noctule.Dispatcher()
        dispatcher.on_sample(node.subscriber("imu"), lambda sample: print(sample.age))
        dispatcher.spin()  # until dispatcher.stop() is called somewhere

    An exception of a callback leaves ``spin``, which may be called again. Subscribers stay open.
    """

    def __init__(self, *, wait: _Wait = "block") -> None:
        self._set = WaitSet(wait=wait)
        self._calls: dict[Subscriber, Callable[[Sample], object]] = {}
        self._is_stopped = False

    def on_sample(
        self, subscriber: Subscriber | TypedSubscriber[Any], call: Callable[[Any], object]
    ) -> None:
        """From now on call ``call`` with each sample of ``subscriber``."""
        if isinstance(subscriber, TypedSubscriber):
            typed = subscriber

            def decoded(sample: Sample) -> object:
                value: TypedSample[Any] = typed.decode(sample)
                return call(value)

            self._calls[typed.subscriber] = decoded
        else:
            self._calls[subscriber] = call

    def spin(self) -> None:
        """Call until ``stop``; at once done if nothing is registered."""
        while self._calls and not self._is_stopped:
            self.spin_once()

    def spin_once(self, timeout: float | None = None) -> bool:
        """Wait for a sample, up to ``timeout`` seconds or for ever, and call; false when the time is over, or after
        ``stop``."""
        if self._is_stopped:
            return False
        found = self._set.receive(list(self._calls), timeout)
        if found is None or self._is_stopped:
            return False
        self._calls[found[0]](found[1])
        return True

    def stop(self) -> None:
        """For good: the callback that runs ends, and no other is called. From any thread."""
        self._is_stopped = True
        self._set.wake()
