"""Publishers and subscribers of messages, which are dataclasses (:mod:`noctule.message`). Use these names from :mod:`noctule`."""

from collections.abc import Iterator
from typing import Any, Generic, Self, TypeVar

from noctule._native import Age, Node, NoctuleError, Publisher, Sample, SampleInfo, Statistics, Subscriber
from noctule.message import decode, definition, description, encode, formats

T = TypeVar("T")


class TypedSample(Generic[T]):
    """A value, and what is known of it."""

    def __init__(self, value: T, info: SampleInfo, age: Age | None) -> None:
        self.value = value
        self.info = info
        self.age = age

    def __repr__(self) -> str:
        return f"TypedSample({self.value!r}, age={self.age!r})"


class TypedPublisher(Generic[T]):
    """Publishes messages of one class: ``TypedPublisher(node, "pose", Pose)``; further settings as ``Node.publisher``."""

    def __init__(self, node: Node, topic: str, cls: type[T], *, format: str = "cdr", **settings: Any) -> None:
        kind = definition(cls)
        if format not in formats(cls):
            raise ValueError(f"{kind.type_name} has no format {format}; choose one of {', '.join(formats(cls))}")
        self._cls, self._format = cls, format
        node.describe(description(cls))
        self.publisher: Publisher = node.publisher(
            topic, type_name=kind.type_name, type_hash=kind.hash, format=format, **settings
        )

    def publish(self, value: T, source_time_ns: int | None = None) -> None:
        """Publish a value, true now or at ``source_time_ns``. Raises ``ValueError`` for what cannot be expressed."""
        if not isinstance(value, self._cls):
            raise TypeError(f"{type(value).__name__} is no {self._cls.__name__}")
        self.publisher.publish(encode(value, self._format), source_time_ns)

    def close(self) -> None:
        """Announce to other nodes that it is gone."""
        self.publisher.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()


class TypedSubscriber(Generic[T]):
    """Receives messages of one class: ``TypedSubscriber(node, "pose", Pose)``; further settings as ``Node.subscriber``.

    A publisher of another type, another definition of it, or in a format that is not there, is reported on both sides. What
    is no value raises ``NoctuleError`` and is counted in ``undecodable``; the next call goes on with the next sample.
    """

    def __init__(self, node: Node, topic: str, cls: type[T], **settings: Any) -> None:
        kind = definition(cls)
        self._cls = cls
        self.undecodable = 0
        node.describe(description(cls))
        self.subscriber: Subscriber = node.subscriber(
            topic, type_name=kind.type_name, type_hash=kind.hash, formats=formats(cls), **settings
        )

    def receive(self, timeout: float | None = None) -> TypedSample[T] | None:
        """Wait for the next value, as ``Subscriber.receive``."""
        sample = self.subscriber.receive(timeout)
        return None if sample is None else self.decode(sample)

    def take(self) -> TypedSample[T] | None:
        """The next value if there is one, else ``None``."""
        sample = self.subscriber.take()
        return None if sample is None else self.decode(sample)

    def decode(self, sample: Sample) -> TypedSample[T]:
        """The value of a sample of this topic."""
        try:
            value = decode(self._cls, bytes(sample), sample.info.format or "bytes")
        except ValueError as error:
            self.undecodable += 1
            raise NoctuleError(f"topic {self.subscriber.topic}: {error}") from error
        return TypedSample(value, sample.info, sample.age)

    def statistics(self) -> Statistics:
        """Statistics since it was opened: counts, rates, ages."""
        return self.subscriber.statistics()

    def close(self) -> None:
        """Announce to other nodes that it is gone, and end a wait in another thread."""
        self.subscriber.close()

    def __iter__(self) -> Iterator[TypedSample[T]]:
        while (sample := self.receive()) is not None:
            yield sample

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()
