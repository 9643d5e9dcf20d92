"""Clients and servers of services with dataclasses (:mod:`noctule.message`) instead of bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from noctule import aio
from noctule._native import Client, Node, Request, Server
from noctule.message import decode, description, encode, type_hash, type_name

if TYPE_CHECKING:
    from typing import Self

Q = TypeVar("Q")
R = TypeVar("R")


def _types(node: Node, request: type, response: type) -> dict[str, Any]:
    for cls in (request, response):
        node.describe(description(cls))
    return {
        "request_type": (type_name(request), type_hash(request)),
        "response_type": (type_name(response), type_hash(response)),
    }


class TypedClient(Generic[Q, R]):
    """Calls a service: ``TypedClient(node, "/add", Add, Sum)``; further settings as ``Node.client``."""

    def __init__(self, node: Node, service: str, request: type[Q], response: type[R], **settings: Any) -> None:
        self._request, self._response = request, response
        self.client: Client = node.client(service, **_types(node, request, response), **settings)

    def call(self, request: Q, *, deadline: float | None = None) -> R:
        """Send a request and wait for its response. Raises ``NoReplyError`` if there is none, with the reason."""
        return decode(self._response, bytes(self.client.call(self._encoded(request), deadline=deadline)))

    async def call_async(self, request: Q, *, deadline: float | None = None) -> R:
        """The same while other tasks run."""
        return decode(self._response, bytes(await aio.call(self.client, self._encoded(request), deadline=deadline)))

    def close(self) -> None:
        """Announce to other nodes that it is gone."""
        self.client.close()

    def _encoded(self, request: Q) -> bytes:
        if not isinstance(request, self._request):
            raise TypeError(f"{type(request).__name__} is no {self._request.__name__}")
        return encode(request)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()


class TypedServer(Generic[Q, R]):
    """Serves a service: ``TypedServer(node, "/add", Add, Sum)``; further settings as ``Node.server``."""

    def __init__(self, node: Node, service: str, request: type[Q], response: type[R], **settings: Any) -> None:
        self._request = request
        self.server: Server = node.server(service, **_types(node, request, response), **settings)

    def serve(self, handler: Callable[[Q], R], timeout: float | None = None) -> bool:
        """Wait for a request and answer it with what ``handler`` gives, or with the text of the exception that it raises.

        ``False`` when the time is over. Raises ``NoReplyError`` if the client does not wait for the answer any more.
        """
        request = self.server.receive(timeout)
        if request is None:
            return False
        self._answer(request, handler)
        return True

    def _answer(self, request: Request, handler: Callable[[Q], R]) -> None:
        try:
            response = encode(handler(decode(self._request, bytes(request))))
        except Exception as why:  # the caller learns it
            self.server.fail(request, str(why) or type(why).__name__)
            return
        self.server.reply(request, response)

    def close(self) -> None:
        """Announce to other nodes that it is gone."""
        self.server.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()
