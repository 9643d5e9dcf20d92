"""Subscribers and clients in :mod:`asyncio` programs.

``async for sample in subscriber`` and :func:`receive` let other tasks run while nothing comes: the event loop waits for the file
descriptor of the subscriber (:meth:`noctule.Subscriber.fileno`). One task at a time may wait for a subscriber. :func:`call` waits for a
response on a thread of the loop's executor; one task at a time may use a client.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from noctule._native import Client, Reply, Sample, Subscriber


# Future that is set when a descriptor is readable: of the task that began to wait last.
_waiting: dict[int, asyncio.Future[None]] = {}


async def receive(subscriber: Subscriber) -> Sample:
    """The next sample of a subscriber. Cancelling it loses nothing."""
    loop = asyncio.get_running_loop()
    while (sample := subscriber.take()) is None:
        ready = loop.create_future()
        descriptor = subscriber.fileno()
        _waiting[descriptor] = ready
        loop.add_reader(descriptor, _set, ready)
        try:
            await ready
        finally:
            # A task that was cancelled ends after the next one may have begun to wait.
            if _waiting.get(descriptor) is ready:
                del _waiting[descriptor]
                loop.remove_reader(descriptor)
    return sample


async def call(client: Client, request: bytes, *, deadline: float | None = None) -> Reply:
    """The response of a service. Raises as ``Client.call``."""
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(None, lambda: client.call(request, deadline=deadline))


def _set(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)


class Samples:
    """The samples of a subscriber as they come, for ``async for``."""

    def __init__(self, subscriber: Subscriber) -> None:
        self._subscriber = subscriber

    def __aiter__(self) -> Samples:
        return self

    async def __anext__(self) -> Sample:
        return await receive(self._subscriber)
