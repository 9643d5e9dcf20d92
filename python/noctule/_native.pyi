from builtins import list as _list
from collections.abc import AsyncIterator, Callable, Sequence
from os import PathLike
from types import TracebackType
from typing import Any, Literal, Self, final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

__all__ = [
    "ActionClient",
    "ActionServer",
    "Age",
    "Client",
    "Goal",
    "GoalEvent",
    "KnownEndpoint",
    "KnownNode",
    "Loan",
    "NoReplyError",
    "NoctuleError",
    "Node",
    "ParameterClient",
    "Parameters",
    "Publisher",
    "Reply",
    "Request",
    "Sample",
    "SampleInfo",
    "Server",
    "Statistics",
    "Subscriber",
    "WaitSet",
    "align",
    "generate",
    "replay",
]

_Reliability = Literal["best_effort", "deadline_bound", "reliable"]

class NoctuleError(Exception):
    """A failure with valid arguments: one sentence, with the way out."""

@final
class Node:
    """A participant of the swarm, with one thread of its own.

    ``name`` is for people and need not be unique. Nodes of different ``domain`` (0 to 5000) do not see each other.
    ``static_peers`` are announced to by unicast where multicast does not reach: ``"192.168.1.7"`` (all nodes there) or
    ``"192.168.1.7:40123"`` (one). ``swarm_key`` is the file with the swarm's key. ``interface``: only the interface with this IPv4 address.
    ``share_with_group``: members of this group (its number) may read through shared memory, too. ``shared_memory=False``: samples go by UDP
    even to nodes of this host. ``unacknowledged_bytes_max``: kept in all for readers of other hosts, default 256 MiB. ``on_notice(kind,
    sentence)`` gets what would go to standard error, on the node's thread.

    Raises ``ValueError`` for what cannot be used, ``NoctuleError`` if the system gives no socket.
    """
    def __new__(
        cls,
        name: str,
        *,
        domain: int = 0,
        static_peers: Sequence[str] = (),
        swarm_key: str | PathLike[str] | None = None,
        interface: str | None = None,
        share_with_group: int | None = None,
        shared_memory: bool = True,
        unacknowledged_bytes_max: int | None = None,
        on_notice: Callable[[str, str], object] | None = None,
    ) -> Self: ...
    def client(
        self,
        service: str,
        *,
        request_type: tuple[str, int] = ...,
        response_type: tuple[str, int] = ...,
        deadline: float = 5.0,
        idempotent: bool = False,
        payload_bytes_max: int = 65536,
    ) -> Client:
        """Call a service, with messages as bytes of CDR.

        ``request_type``, ``response_type``: name and hash, the same on both sides. ``deadline``: how long a call waits, seconds. ``idempotent``:
        another server is asked if the first one ends, so a request may be executed twice. ``payload_bytes_max``: of a request.
        """
    def server(
        self,
        service: str,
        *,
        request_type: tuple[str, int] = ...,
        response_type: tuple[str, int] = ...,
        payload_bytes_max: int = 65536,
    ) -> Server:
        """Serve a service, with messages as bytes of CDR; see ``client``. ``payload_bytes_max``: of a response."""
    def action_client(
        self,
        action: str,
        *,
        type_name: str,
        hashes: tuple[int, int, int, int, int] = ...,
        deadline: float = 5.0,
        result_deadline: float = 86400.0,
        payload_bytes_max: int = 65536,
    ) -> ActionClient:
        """Send goals of an action, with messages as bytes of CDR. ``type_name``: ``"package/action/Name"``; ``hashes``: of request and response of ``send_goal`` and of
        ``get_result``, and of feedback, 0: any definition. ``deadline``: how long a goal waits to be accepted, ``result_deadline``: how long it may take, seconds.
        """
    def action_server(
        self,
        action: str,
        *,
        type_name: str,
        hashes: tuple[int, int, int, int, int] = ...,
        keep_results: float = 10.0,
        empty_result: bytes | None = None,
        payload_bytes_max: int = 65536,
    ) -> ActionServer:
        """Execute goals of an action, with messages as bytes of CDR; see ``action_client``. ``keep_results``: seconds from the end of a goal; ``empty_result``: a
        ``…_GetResult_Response`` for goals without a result; ``payload_bytes_max``: of results and feedback.
        """
    def parameters(self, name: str) -> Parameters:
        """Have parameters that other programs read and set, under the name that ROS 2 knows a node by, such as ``"/arm"``: none at first."""
    def parameter_client(self, name: str, *, deadline: float = 5.0) -> ParameterClient:
        """Read and set the parameters of another node. ``deadline``: how long each call waits, seconds."""
    def describe(self, description: str) -> bool:
        """Describe a type to other nodes on their request, so that their tools show samples as fields; typed publishers and subscribers do it.

        Returns whether it was kept: not if ``description`` is longer than 64 KiB or the node describes thousands of types already. Raises ``ValueError`` for a
        text that is no description.
        """
    def publisher(
        self,
        topic: str,
        *,
        type_name: str = "bytes",
        type_hash: int = 0,
        format: str | None = None,
        reliability: _Reliability = "best_effort",
        keep_last: int = 8,
        transient_local: bool = False,
        deadline: float | None = None,
        tolerable_loss: float = 0.0001,
        lifespan: float | None = None,
        payload_bytes_max: int = 65536,
        borrows: int = 7,
        multicast: bool = False,
        keep_all: bool = False,
        linger: float = 1.0,
    ) -> Publisher:
        """Open a topic for writing.

        The settings are those of DDS and ROS 2. ``type_name`` and ``type_hash``: a reader that expects another type
        gets a notice. ``format``: what the bytes are, ``"cdr"``, ``"json"``, ``"msgpack"`` and so on, for typed readers. ``reliability``: ``"best_effort"`` (sent once), ``"deadline_bound"`` (repaired as long as it can still
        arrive by its deadline, but for the share ``tolerable_loss``) or ``"reliable"``. ``keep_last``: samples that a reader may lag behind, 1 to 65535.
        ``transient_local``: late joiners get the history first. ``deadline``: a sample at least this often, seconds.
        ``lifespan``: older samples are not delivered, seconds. ``payload_bytes_max``: longest sample. ``borrows``:
        samples that all readers of this host together may hold at once. ``multicast``: readers of other hosts are sent each
        datagram once, to a group; not for ``"reliable"``. ``keep_all``: no sample gives way to a newer one; while a reader has
        ``keep_last`` of them still to read, publishing raises ``BlockingIOError``, if both are ``"reliable"`` and the reader has no
        ``keep_last`` of its own. ``linger``: closing a ``"reliable"`` publisher waits so many
        seconds for readers of other hosts to acknowledge what was published.
        """
    def subscriber(
        self,
        topic: str,
        *,
        type_name: str | None = None,
        type_hash: int = 0,
        formats: Sequence[str] | None = None,
        reliability: _Reliability = "best_effort",
        transient_local: bool = False,
        deadline: float | None = None,
        tolerable_loss: float = 0.0001,
        lifespan: float | None = None,
        wait: Literal["block", "spin", "hybrid"] = "block",
        borrows: int = 2,
        keep_last: int | None = None,
        keep_all: bool = False,
        ignore_local: bool = False,
    ) -> Subscriber:
        """Open a topic for reading; publishers are found from now on.

        The settings are those of DDS and ROS 2. ``type_name`` and ``type_hash``: the type that is expected, default
        any. ``formats``: those that are understood, default any. ``reliability``, ``transient_local`` (the publisher's history first) and ``deadline`` (seconds) are
        requested: a publisher that offers less is reported on both sides. ``lifespan``: older samples are not
        taken, seconds. ``wait``: ``"block"`` (sleep in the kernel), ``"spin"`` (fastest, burns a core) or ``"hybrid"``
        (poll for 50 µs, then sleep). ``borrows``: samples of one publisher that may be held at once, 1 to 7. ``keep_last``:
        samples of each publisher that may wait to be received, default the publisher's own history. ``keep_all``: no sample gives way to a newer one;
        while ``keep_last`` of a ``"reliable"`` publisher of another host wait here, it keeps the others. ``ignore_local``: samples of the same node are not received.
        """
    def now_ns(self) -> int:
        """Now on the node's clock, in nanoseconds; source times are given in it."""
    def source_time_of(
        self, clock: Literal["monotonic", "realtime", "tai"], stamp_ns: int
    ) -> tuple[int, int | None]:
        """A stamp of another clock of this machine on the node's, and how far it may be wrong, both in nanoseconds. ``clock``: ``"monotonic"`` (V4L2,
        most drivers), ``"realtime"`` (the wall clock) or ``"tai"`` (PTP). The bound holds unless that clock was stepped between the stamp and now.
        """
    @property
    def id(self) -> str:
        """The node's number, 32 hexadecimal digits."""
    def nodes(self) -> list[KnownNode]:
        """Every other node."""
    def endpoints(self) -> list[KnownEndpoint]:
        """Every endpoint of other nodes."""
    def counters(self) -> dict[str, int]:
        """Counts of the node's sockets, by name: datagrams sent and received, and their faults."""
    def link_counters(self, other: str) -> dict[str, int] | None:
        """Counts of the traffic with a node of another host, by name; ``None`` if there never was any. ``other``: its number."""
    def ping(self, other: str, timeout: float) -> tuple[int, int, int, int]:
        """Ask another node for its time, and wait for the reply: when the request was sent, arrived, was replied to and the reply received, in
        nanoseconds, the second and third by the other's clock. ``other``: its number.
        """
    def close(self) -> None:
        """Say goodbye, or leave that to the last of its publishers and subscribers. May be called twice."""
    def __enter__(self) -> Self: ...
    def __exit__(self, *_exception: type[BaseException] | BaseException | TracebackType | None) -> None: ...

@final
class Publisher:
    """Publishes samples of one topic. Made by ``Node.publisher``."""
    @property
    def readers(self) -> int:
        """Subscribers that are matched now."""
    @property
    def topic(self) -> str:
        """The topic's name."""
    def publish(
        self,
        buffer: Buffer,
        source_time_ns: int | None = None,
        *,
        bound_ns: int | None = 0,
        sigma_ns: int | None = 0,
    ) -> None:
        """Publish a copy of a buffer's bytes: ``bytes``, ``bytearray``, a NumPy array of one dimension or more, anything
        contiguous.

        They are true now, or were at ``source_time_ns`` of the node's clock, within ``bound_ns`` if that is proven, with the standard error
        ``sigma_ns``; ``None`` for what is not known (see ``Node.source_time_of``). Does not wait for the network or for readers.
        Raises ``BlockingIOError`` with ``keep_all`` while a reader is behind, ``ValueError`` if they are longer than ``payload_bytes_max``, ``BufferError`` or ``TypeError`` for what is no contiguous buffer.
        """
    def loan(self, length_bytes: int) -> Loan:
        """A place of ``length_bytes`` for the next sample, to be written and then published: in shared memory if all readers are on this
        host, so that nothing is copied. One at a time::

            with publisher.loan(1 << 20) as view:
                camera.readinto(view)
        """
    def counters(self) -> dict[str, int]:
        """Counts of its samples: ``published``, ``given_up`` (for some reader on another host), ``deadline_missed``,
        ``would_block``: calls that raised ``BlockingIOError`` and published nothing, and ``held_up``: times that a reader that keeps all had read
        nothing for 5 s, which a notice names.
        """
    def wait_for_acknowledgments(self, timeout: float) -> bool:
        """Wait up to ``timeout`` seconds until readers of other hosts have all that was published and, if it is reliable, have
        acknowledged it. ``False`` when the time is over, or if something published since the last call was refused or given up
        because a path carries less than was published.
        """
    def wait_for_room(self, length_bytes: int, timeout: float) -> bool:
        """Wait up to ``timeout`` seconds until ``length_bytes`` can be published with ``keep_all``; ``False`` when the time is over."""
    def close(self) -> None:
        """Announce to other nodes that it is gone; a ``"reliable"`` one waits before that, see ``linger``. May be called twice. Raises ``BufferError`` while
        a view of a loan lives.
        """
    def __enter__(self) -> Self: ...
    def __exit__(self, *_exception: type[BaseException] | BaseException | TracebackType | None) -> None: ...

@final
class Subscriber:
    """Receives the samples of one topic from all its publishers. Made by ``Node.subscriber``.

    Iterating waits for samples for ever, or until another thread closes the subscriber. One thread at a time may
    receive.
    """
    @property
    def publishers(self) -> int:
        """Publishers that are matched now."""
    @property
    def topic(self) -> str:
        """The topic's name."""
    def receive(self, timeout: float | None = None) -> Sample | None:
        """Wait for the next sample, up to ``timeout`` seconds, or for ever; ``None`` when the time is over, or when another
        thread closes the subscriber meanwhile.

        Other threads run meanwhile, and Ctrl-C is seen within 0.1 s. Raises ``NoctuleError`` if as many samples are held
        as may be at once.
        """
    def take(self) -> Sample | None:
        """The next sample if there is one, else ``None``. Raises as ``receive``."""
    def latest(self) -> Sample | None:
        """The newest sample if there is one, else ``None``; older ones are passed over and count as missed. Raises as ``receive``."""
    def statistics(self) -> Statistics:
        """Statistics since it was opened: counts, rates, ages."""
    def fileno(self) -> int:
        """A file descriptor for ``select``, ``poll`` and event loops, readable while there may be a sample. When it is, take until there is none,
        which makes it wait for the next; do not read from it. It goes with the subscriber. Starts a thread that sleeps while nothing comes.
        """
    def __aiter__(self) -> AsyncIterator[Sample]:
        """The samples as they come, for ``async for``; see ``noctule.aio``."""
    def close(self) -> None:
        """Announce to other nodes that it is gone, and end a wait in another thread. Samples stay valid. May be called twice."""
    def __iter__(self) -> Self: ...
    def __next__(self) -> Sample: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *_exception: type[BaseException] | BaseException | TracebackType | None) -> None: ...

@final
class Sample:
    """A sample where it lies in shared memory, which is not used again while this object or a view of it lives.

    It is a read-only buffer: ``memoryview(sample)``, ``bytes(sample)`` and ``numpy.frombuffer(sample, dtype)`` work.
    """
    @property
    def data(self) -> NDArray[np.uint8]:
        """Its bytes where they lie, as a read-only ``uint8`` array. The array keeps the sample; ``copy`` does not."""
    @property
    def age(self) -> Age | None:
        """How old it was when it was taken; ``None`` while the publisher's clock is not known yet."""
    @property
    def info(self) -> SampleInfo:
        """Its times, clock bound and counts."""
    def copy(self) -> NDArray[np.uint8]:
        """A copy of its bytes, as a ``uint8`` array that needs the sample no longer."""
    def __len__(self) -> int: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

@final
class Age:
    """How old a sample is, in the clock of the reader, and how wrong that may be."""
    @property
    def ns(self) -> int:
        """Nanoseconds."""
    @property
    def seconds(self) -> float:
        """Seconds."""
    @property
    def bound_ns(self) -> int | None:
        """Proven: the true age is within plus or minus this; 0 on one clock, ``None`` where nothing is proven."""
    @property
    def sigma_ns(self) -> int | None:
        """Standard error if least delays are equal both ways; 0 on one clock, ``None`` if unknown."""
    def __float__(self) -> float: ...
    def __eq__(self, other: object, /) -> bool: ...
    __hash__: None  # type: ignore[assignment]

@final
class SampleInfo:
    """Metadata of a sample, beside its bytes and its age."""
    @property
    def sequence(self) -> int:
        """Counts the samples of one publisher, missed ones too."""
    @property
    def missed(self) -> int:
        """Samples of this publisher that are missing before this one: lost on the way, or overwritten unread."""
    @property
    def source_time_ns(self) -> int | None:
        """When its content was true, in the reader's clock; ``None`` while the publisher's clock is not known yet."""
    @property
    def receive_time_ns(self) -> int:
        """When it was taken, in the reader's clock."""
    @property
    def bound_ns(self) -> int | None:
        """Proven: ``source_time_ns`` is wrong by no more; ``None`` where nothing is proven."""
    @property
    def sigma_ns(self) -> int | None:
        """Standard error of ``source_time_ns``; ``None`` if unknown."""
    @property
    def format(self) -> str | None:
        """Name of the format of its bytes; ``None`` if its publisher names none."""
    @property
    def publisher(self) -> str:
        """The node that published it, 32 hexadecimal digits."""
    @property
    def endpoint(self) -> int:
        """The publisher's number in its node; never used again while that lives."""
    @property
    def route(self) -> str:
        """``"shared_memory"``, or ``"udp"`` (from another host, or where shared memory was refused)."""
    def __eq__(self, other: object, /) -> bool: ...
    __hash__: None  # type: ignore[assignment]

@final
class Loan:
    """A place for the next sample of a publisher, in shared memory if all readers are on this host. Made by ``Publisher.loan``.

    It is a writable buffer: ``numpy.frombuffer(loan, dtype)`` and ``memoryview(loan)`` work, and must be gone before it is published.
    In a ``with`` statement it gives a ``memoryview``, and is published at the end, or dropped if an exception leaves.
    """
    def publish(self, source_time_ns: int | None = None) -> None:
        """Publish it, true at ``source_time_ns`` of the node's clock, or now. Raises ``BufferError`` while a view of it lives."""
    def drop(self) -> None:
        """Give it back unpublished. Raises ``BufferError`` while a view of it lives."""
    def __len__(self) -> int: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def __enter__(self) -> memoryview: ...
    def __exit__(self, *exception: type[BaseException] | BaseException | TracebackType | None) -> None: ...

@final
class KnownNode:
    """Another node."""
    @property
    def id(self) -> str:
        """Its number, 32 hexadecimal digits."""
    @property
    def name(self) -> str:
        """For people; it need not be unique."""
    @property
    def address(self) -> str:
        """Where its socket is."""
    @property
    def same_host(self) -> bool:
        """Whether it shares memory with this one."""
    def __eq__(self, other: object, /) -> bool: ...
    __hash__: None  # type: ignore[assignment]

@final
class KnownEndpoint:
    """An endpoint of another node."""
    @property
    def node(self) -> str:
        """Its node, 32 hexadecimal digits."""
    @property
    def node_name(self) -> str:
        """The node's name."""
    @property
    def same_host(self) -> bool:
        """Whether the node shares memory with this one."""
    @property
    def kind(self) -> str:
        """``"publisher"`` or ``"subscriber"``."""
    @property
    def topic(self) -> str:
        """The topic."""
    @property
    def type_name(self) -> str:
        """Name of the type; empty for a subscriber to any."""
    @property
    def reliability(self) -> str:
        """``"best_effort"``, ``"deadline_bound"`` or ``"reliable"``."""
    @property
    def durability(self) -> str:
        """``"volatile"`` or ``"transient_local"``."""
    @property
    def keep_last(self) -> int:
        """Samples kept."""
    @property
    def payload_bytes_max(self) -> int:
        """Longest sample."""
    def __eq__(self, other: object, /) -> bool: ...
    __hash__: None  # type: ignore[assignment]

@final
class Statistics:
    """Statistics of a subscriber since it was opened.

    Ages are those when samples were taken, in nanoseconds. A quantile is known, within 0.8 %, if ten samples lie beyond it;
    ``None``: not known.
    """
    @property
    def taken(self) -> int:
        """Samples taken."""
    @property
    def missed(self) -> int:
        """Missing before those: lost on the way, or overwritten unread."""
    @property
    def expired(self) -> int:
        """Older than ``lifespan``, and dropped."""
    @property
    def late(self) -> int:
        """Taken, but older than the ``deadline`` that was requested."""
    @property
    def deadline_missed(self) -> int:
        """Periods of that ``deadline`` in which nothing came."""
    @property
    def bytes(self) -> int:
        """Bytes of those that were taken."""
    @property
    def aged(self) -> int:
        """Taken, and of known age."""
    @property
    def age_p50_ns(self) -> int | None:
        """Median age."""
    @property
    def age_p90_ns(self) -> int | None:
        """90th percentile of ages."""
    @property
    def age_p99_ns(self) -> int | None:
        """99th percentile of ages."""
    @property
    def age_p99_9_ns(self) -> int | None:
        """99.9th percentile of ages."""
    @property
    def age_max_ns(self) -> int | None:
        """The largest age."""
    @property
    def bound_ns(self) -> int | None:
        """No age is further from the truth; ``None`` if that is not proven of every sample."""
    def __eq__(self, other: object, /) -> bool: ...
    __hash__: None  # type: ignore[assignment]

class NoReplyError(NoctuleError):
    """A call has no response, or a reply came too late: one sentence that says why."""

@final
class ActionClient:
    """Sends goals of one action and follows them, with messages as bytes of CDR. Made by ``Node.action_client``. One thread at a time may use it."""
    def start(self, request: bytes, *, result_deadline: float | None = None) -> str:
        """Send a goal, a ``…_SendGoal_Request``, and give its number; one by chance is taken if it is zero. ``result_deadline``: seconds from its acceptance,
        default the client's.
        """
    def next(self, timeout: float | None = None) -> GoalEvent | None:
        """Wait for what becomes of any goal, up to ``timeout`` seconds, or for ever; ``None`` when the time is over or no goal is followed.

        Other threads run meanwhile, and Ctrl-C is seen within 0.1 s.
        """
    def cancel(self, goal: str | None = None, *, up_to_ns: int = 0) -> str:
        """Ask to cancel a goal of any client, by default all goals, and all that were accepted at ``up_to_ns`` since 1970 or before; the answer is
        an event under the number that is given back.
        """
    def wait_for_server(self, timeout: float) -> bool:
        """Wait for a server, up to ``timeout`` seconds; whether there is one."""
    def close(self) -> None:
        """Announce to other nodes that it is gone; its goals go on at their server. May be called twice."""
    def __enter__(self) -> Self: ...
    def __exit__(self, *_exception: type[BaseException] | BaseException | TracebackType | None) -> None: ...

@final
class ActionServer:
    """Serves one action, with messages as bytes of CDR. Made by ``Node.action_server``."""
    def next(self, timeout: float | None = None) -> Goal | None:
        """Wait for the next goal, up to ``timeout`` seconds, or for ever; ``None`` when the time is over.

        Other threads run meanwhile, and Ctrl-C is seen within 0.1 s. One thread at a time may wait; each goal may then be used on another.
        """
    def close(self) -> None:
        """Announce to other nodes that it is gone; goals under way end with it. May be called twice."""
    def __enter__(self) -> Self: ...
    def __exit__(self, *_exception: type[BaseException] | BaseException | TracebackType | None) -> None: ...

@final
class GoalEvent:
    """Event in the life of a goal. ``bytes(event)`` is the CDR of feedback and of a result."""
    @property
    def kind(self) -> str:
        """``"accepted"``, ``"status"``, ``"feedback"``, ``"result"``, ``"failed"`` or ``"cancel"``. The result and the failure are the last of a goal."""
    @property
    def goal(self) -> str:
        """The goal's number; all zero: the answer to a cancellation of all goals."""
    @property
    def status(self) -> str | None:
        """Of a status and a result: ``"executing"``, ``"canceling"``, ``"succeeded"``, ``"canceled"``, ``"aborted"``."""
    @property
    def stamp_ns(self) -> int | None:
        """Of an acceptance: the server's time of day, nanoseconds since 1970."""
    @property
    def cancel_code(self) -> int | None:
        """Of the answer to a cancellation: 0 goals are being canceled, 1 refused, 2 the goal is not known, 3 it has ended."""
    @property
    def age(self) -> Age | None:
        """Of feedback and results: time since the server published it; ``None`` while its clock is not known yet."""
    @property
    def error(self) -> BaseException | None:
        """Why it failed, or was not answered."""
    def __bytes__(self) -> bytes: ...

@final
class Goal:
    """A goal at its server. ``bytes(goal)`` is the CDR of the request that sent it."""
    @property
    def id(self) -> str:
        """Its number."""
    @property
    def age(self) -> Age | None:
        """Time since it was sent, when it was taken; ``None`` while the sender's clock is not known yet."""
    @property
    def caller(self) -> str:
        """The sender's node, 32 hexadecimal digits."""
    def accept(self, execute: bool = True) -> None:
        """Accept it and execute it, now or, with ``False``, later. Raises ``NoReplyError`` if its client waits no longer; it is as if it had never come."""
    def reject(self) -> None:
        """Reject it."""
    def execute(self) -> None:
        """Execute a goal that was accepted for later."""
    def wait_for_cancel(self, timeout: float = 0.0) -> bool:
        """Wait until it is to be canceled, up to ``timeout`` seconds; whether it is."""
    def feedback(self, message: bytes) -> None:
        """Publish feedback, a ``…_FeedbackMessage``; the goal's number is written into it."""
    def end(self, status: str, response: bytes) -> None:
        """End it as ``"succeeded"``, ``"aborted"`` or, if it is to be canceled, ``"canceled"``, with a ``…_GetResult_Response``."""
    def close(self) -> None:
        """Reject it if it was not accepted, abort it if it was not ended. May be called twice."""
    def __enter__(self) -> Self: ...
    def __exit__(self, *_exception: type[BaseException] | BaseException | TracebackType | None) -> None: ...
    def __bytes__(self) -> bytes: ...

@final
class Client:
    """Calls one service, with messages as bytes of CDR. Made by ``Node.client``. One thread at a time may use it."""
    def call(self, request: bytes, *, deadline: float | None = None) -> Reply:
        """Send a request and wait for its response; ``deadline``: seconds, default the client's.

        Other threads run meanwhile, and Ctrl-C is seen within 0.1 s and cancels the call. Raises ``NoReplyError`` if there is no response, with the reason.
        """
    def wait_for_server(self, timeout: float) -> bool:
        """Wait for a server, up to ``timeout`` seconds; whether there is one."""
    def close(self) -> None:
        """Announce to other nodes that it is gone. May be called twice."""
    def __enter__(self) -> Self: ...
    def __exit__(self, *_exception: type[BaseException] | BaseException | TracebackType | None) -> None: ...

@final
class Server:
    """Serves one service, with messages as bytes of CDR. Made by ``Node.server``. One thread at a time may use it."""
    def receive(self, timeout: float | None = None) -> Request | None:
        """Wait for the next request, up to ``timeout`` seconds, or for ever; ``None`` when the time is over.

        Other threads run meanwhile, and Ctrl-C is seen within 0.1 s.
        """
    def reply(self, request: Request, response: bytes) -> None:
        """Answer a request with a response in CDR, once, in any order. Raises ``NoReplyError`` if the client does not wait for it any more."""
    def fail(self, request: Request, why: str) -> None:
        """Answer a request with the reason why there is no response."""
    def is_cancelled(self, request: Request) -> bool:
        """Whether the client does not wait for the answer any more; a cancellation is seen by ``receive``."""
    def close(self) -> None:
        """Announce to other nodes that it is gone. May be called twice."""
    def __enter__(self) -> Self: ...
    def __exit__(self, *_exception: type[BaseException] | BaseException | TracebackType | None) -> None: ...

@final
class Reply:
    """A response. ``bytes(reply)`` is its CDR."""
    @property
    def age(self) -> Age | None:
        """Time since the server answered; ``None`` while its clock is not known yet."""
    @property
    def server(self) -> str:
        """The server's node, 32 hexadecimal digits."""
    def __bytes__(self) -> bytes: ...
    def __len__(self) -> int: ...

@final
class Request:
    """A request. ``bytes(request)`` is its CDR."""
    @property
    def age(self) -> Age | None:
        """Time since the call began; ``None`` while the caller's clock is not known yet."""
    @property
    def caller(self) -> str:
        """The caller's node, 32 hexadecimal digits."""
    @property
    def deadline_ns(self) -> int:
        """The age at which the caller waits no longer, in nanoseconds."""
    def __bytes__(self) -> bytes: ...
    def __len__(self) -> int: ...

_Parameter = None | bool | int | float | str | bytes | Sequence[bool] | Sequence[int] | Sequence[float] | Sequence[str]
_Number = tuple[float, float] | tuple[float, float, float]

@final
class Parameters:
    """The parameters of a node, which other programs read and set while this is open. Made by ``Node.parameters``. Any thread may use it."""
    def declare(
        self,
        name: str,
        value: _Parameter,
        *,
        type: str | None = None,
        description: str = "",
        constraints: str = "",
        read_only: bool = False,
        dynamic_typing: bool = False,
        range: _Number | None = None,
    ) -> None:
        """Declare a parameter of the type of this value, or of ``type`` (``"double_array"``, …), which an empty list needs.

        ``range``: (from, to) or (from, to, step) of a number. ``dynamic_typing``: it may be set to values of other types, and deleted by ``None``. Raises
        ``ValueError`` with the reason if it cannot be.
        """
    def get(self, name: str) -> Any:
        """The value of a parameter; ``None`` if it is not declared."""
    def set(self, name: str, value: _Parameter) -> None:
        """Set a parameter as others do. Raises ``ValueError`` with the reason if it is refused."""
    def on_set(self, callback: Callable[[dict[str, Any]], object]) -> None:
        """Ask ``callback`` before parameters are set, with a dict of all that are set together: an exception refuses, and its text is
        what the caller gets. It may read the parameters, but not set them.
        """
    def names(self) -> list[str]:
        """Names of all parameters."""
    def close(self) -> None:
        """Take the parameters away from other programs. May be called twice."""
    def __enter__(self) -> Self: ...
    def __exit__(self, *_exception: type[BaseException] | BaseException | TracebackType | None) -> None: ...

@final
class ParameterClient:
    """Reads and sets the parameters of another node. Made by ``Node.parameter_client``. One thread at a time may use it."""
    def list(self, prefixes: Sequence[str] = ..., depth: int = 0) -> _list[str]:
        """Names of the node's parameters below these prefixes, all if there is none; ``depth``: parts of a name behind the prefix, 0: however many.

        Raises ``NoReplyError`` if the node does not answer, as all of these do.
        """
    def get(self, name: str) -> Any:
        """The value of a parameter; ``None`` if it is not declared."""
    def set(self, name: str, value: _Parameter) -> None:
        """Set a parameter. Raises ``ValueError`` with the node's reason if it refuses."""
    def describe(self, name: str) -> dict[str, Any] | None:
        """Description: ``type``, ``description``, ``constraints``, ``read_only``, ``dynamic_typing``, ``range``; ``None`` if it is not declared."""
    def close(self) -> None:
        """Close it. May be called twice."""
    def __enter__(self) -> Self: ...
    def __exit__(self, *_exception: type[BaseException] | BaseException | TracebackType | None) -> None: ...

@final
class WaitSet:
    """Waits for the samples of many subscribers at once; ``wait`` as in ``Node.subscriber``. One thread at a time may receive."""
    def __new__(cls, *, wait: Literal["block", "spin", "hybrid"] = "block") -> Self: ...
    def receive(
        self, subscribers: Sequence[Subscriber], timeout: float | None = None
    ) -> tuple[Subscriber, Sample] | None:
        """Wait for the next sample of any of the subscribers, up to ``timeout`` seconds, or for ever: the subscriber, and the
        sample. They are served in turn, so that a busy one does not keep the others waiting.

        ``None`` when the time is over, after ``wake``, or when another thread closes one of them. Other threads run
        meanwhile, and Ctrl-C is seen within 0.1 s. Raises ``NoctuleError`` as ``Subscriber.receive``.
        """
    def wake(self) -> None:
        """End the wait of another thread, or the next one."""

_Integers = NDArray[np.int64]
_Stamps = tuple[_Integers, _Integers, _Integers, _Integers]
_Premise = tuple[int, int, int, bool]

def replay(
    stamps: _Stamps, estimator: str, premise: _Premise
) -> tuple[_Integers, NDArray[np.float64], _Integers, _Integers, NDArray[np.int8], NDArray[np.int8]]:
    """Estimates after each exchange."""
def align(
    stamps: _Stamps, premise: _Premise
) -> tuple[_Integers, _Integers, _Integers, NDArray[np.float64], _Integers]:
    """The straight pieces of a whole trace."""

def generate(
    topics: str | PathLike[str],
    out: str | PathLike[str],
    *,
    templates: str | PathLike[str] | None = None,
    check: bool = False,
) -> tuple[list[str], list[str], list[str]]:
    """Generates what `topics` describes into the folder `out`, or with `check` says only what would change: the files that are
    written, those that are removed, and the sentences of warnings.

    Raises `NoctuleError` with every fault, as rustc shows it.
    """
