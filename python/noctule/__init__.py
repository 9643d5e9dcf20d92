"""Messaging for robots that knows how old its data is.

A :class:`Node` joins a swarm; a :class:`Publisher` writes samples of a topic, a :class:`Subscriber` reads them, each with
its :class:`Age` in the reader's own clock and a bound for it::

    with noctule.Node("listener") as node, node.subscriber("image") as subscriber:
        for sample in subscriber:
            print(sample.data.mean(), sample.age)

A sample is borrowed from shared memory: while it or an array of it lives, its memory is not used again, and only
``borrows`` samples of a publisher may be held at once. Keep ``sample.copy()``. Python allocates and waits for its lock on the
way of every sample: what must be quick or even is for Rust, C and C++. A process that forks opens its nodes afterwards.

:mod:`noctule.sync` has the clock estimators on recorded time stamps.
"""

from noctule import sync
from noctule._native import Age, Node, NoctuleError, Publisher, Sample, SampleInfo, Subscriber
from noctule.sync import UNKNOWN_OFFSET_NS, Estimates, Pieces, State, Verdict, align, replay

__all__ = [
    "UNKNOWN_OFFSET_NS",
    "Age",
    "Estimates",
    "NoctuleError",
    "Node",
    "Pieces",
    "Publisher",
    "Sample",
    "SampleInfo",
    "State",
    "Subscriber",
    "Verdict",
    "align",
    "replay",
    "sync",
]
