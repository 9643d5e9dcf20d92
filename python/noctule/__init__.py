"""Messaging for robots that knows how old its data is.

A :class:`Node` joins a swarm; a :class:`Publisher` writes samples of a topic, a :class:`Subscriber` reads them, each with
its :class:`Age` in the reader's own clock and a bound for it::

    with noctule.Node("listener") as node, node.subscriber("image") as subscriber:
        for sample in subscriber:
            print(sample.data.mean(), sample.age)

:func:`wait` waits for several subscribers at once, a :class:`Dispatcher` calls back, and in :mod:`asyncio` programs there is ``async for
sample in subscriber`` (:mod:`noctule.aio`). :class:`TypedPublisher` and
:class:`TypedSubscriber` carry dataclasses, see :mod:`noctule.message`. A :class:`TypedClient` asks a :class:`TypedServer`,
a :class:`TypedActionClient` sends goals to a :class:`TypedActionServer`.

A sample is borrowed from shared memory: while it or an array of it lives, its memory is not used again, and only
``borrows`` samples of a publisher may be held at once. Keep ``sample.copy()``. Python allocates and waits for its lock on the
way of every sample: what must be quick or even is for Rust, C and C++. A process that forks opens its nodes afterwards.

:mod:`noctule.sync` has the clock estimators on recorded time stamps.
"""

from noctule import aio, sync
from noctule._native import (
    ActionClient,
    ActionServer,
    Age,
    Client,
    Goal,
    GoalEvent,
    KnownEndpoint,
    KnownNode,
    Loan,
    Node,
    NoctuleError,
    NoReplyError,
    ParameterClient,
    Parameters,
    Publisher,
    Reply,
    Request,
    Sample,
    SampleInfo,
    Server,
    Statistics,
    Subscriber,
    WaitSet,
)
from noctule.action import GoalResult, TypedActionClient, TypedActionServer, TypedGoal
from noctule.dispatch import Dispatcher, Waiting, wait
from noctule.message import f32, f64, i8, i16, i32, i64, message
from noctule.message import bound, description, dtype, name, type_hash, u8, u16, u32, u64
from noctule.request import TypedClient, TypedServer
from noctule.sync import UNKNOWN_OFFSET_NS, Estimates, Pieces, State, Verdict, align, replay
from noctule.typed import TypedPublisher, TypedSample, TypedSubscriber

__all__ = [
    "UNKNOWN_OFFSET_NS",
    "ActionClient",
    "ActionServer",
    "Age",
    "Client",
    "Dispatcher",
    "Estimates",
    "Goal",
    "GoalEvent",
    "GoalResult",
    "KnownEndpoint",
    "KnownNode",
    "Loan",
    "NoReplyError",
    "NoctuleError",
    "Node",
    "ParameterClient",
    "Parameters",
    "Pieces",
    "Publisher",
    "Reply",
    "Request",
    "Sample",
    "SampleInfo",
    "Server",
    "State",
    "Statistics",
    "Subscriber",
    "TypedActionClient",
    "TypedActionServer",
    "TypedClient",
    "TypedGoal",
    "TypedPublisher",
    "TypedServer",
    "TypedSample",
    "TypedSubscriber",
    "Verdict",
    "WaitSet",
    "Waiting",
    "aio",
    "align",
    "bound",
    "description",
    "dtype",
    "f32",
    "f64",
    "i8",
    "i16",
    "i32",
    "i64",
    "message",
    "name",
    "replay",
    "sync",
    "type_hash",
    "u8",
    "u16",
    "u32",
    "u64",
    "wait",
]
