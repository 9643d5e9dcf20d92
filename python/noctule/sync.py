"""Know another clock: its offset, its drift, and how wrong both may be.

An exchange is a request and its reply with four stamps in nanoseconds: ``t1`` the request leaves
(local clock), ``t2`` it arrives (remote clock), ``t3`` the reply leaves (remote), ``t4`` it arrives
(local). Everywhere offset = remote - local. The estimators are those of the Rust crate, bit for bit,
and run without the interpreter's lock.

Stamps may be anything that NumPy turns into a one-dimensional array of integers. They are taken in
the order given, which should be that of the replies (rising ``t4``): one that arrived before its
predecessor is not used. Floats are refused: a nanosecond since 1970 does not fit into one.
"""

from dataclasses import dataclass
from enum import IntEnum
from operator import index
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from noctule import _native

__all__ = ["UNKNOWN_OFFSET_NS", "Estimates", "Pieces", "State", "Verdict", "align", "replay"]

UNKNOWN_OFFSET_NS = int(np.iinfo(np.int64).min)
"""Stands in ``Estimates.offset_ns`` before the first usable exchange: no plausible number."""

_MOST_DRIFT_PPM = 10_000


class State(IntEnum):
    """How far an estimator has come."""

    UNKNOWN = -1
    """No usable exchange yet."""
    ACQUIRING = 0
    """Usable, but drift is not settled yet."""
    LOCKED = 1
    """Settled."""
    STEPPED = 2
    """The last exchange contradicts the estimate: a clock has probably been stepped."""
    STALE = 3
    """No exchange for so long that the estimate is only an extrapolation."""


class Verdict(IntEnum):
    """Result of handling an exchange."""

    USED = 0
    OUT_OF_RANGE = -1
    """A stamp is 146 years or more from the origin of its clock."""
    CLOCK_WENT_BACK = -2
    """The later stamp of one clock is the earlier reading."""
    NEGATIVE_ROUND_TRIP = -3
    """Shorter than the known wire time: causality forbids it."""
    OUT_OF_ORDER = -4
    """The reply arrived before one that was already used."""
    ROUND_TRIP_TOO_LONG = -5
    """Longer than this estimator allows."""
    CONTRADICTION = -6
    """It disagrees with the estimate; which of the two is wrong is not known yet."""


@dataclass(frozen=True, slots=True, eq=False)
class Estimates:
    """Estimates at each ``t4``, after that exchange; arrays as long as the stamps."""

    offset_ns: NDArray[np.int64]
    """Remote minus local; ``UNKNOWN_OFFSET_NS`` where the state is unknown."""
    drift_ppm: NDArray[np.float64]
    """How much faster the remote clock runs; NaN where the state is unknown."""
    bound_ns: NDArray[np.int64]
    """Proven: the truth is within plus or minus this. -1 where nothing is proven or it was withdrawn,
    so that ``abs(error) <= bound_ns`` is false there."""
    sigma_ns: NDArray[np.int64]
    """The estimate's own standard error, not a bound; -1 where there is none."""
    state: NDArray[np.int8]
    """Values of ``State``."""
    verdict: NDArray[np.int8]
    """Values of ``Verdict``: whether the exchange was used, and if not why."""


@dataclass(frozen=True, slots=True, eq=False)
class Pieces:
    """Straight pieces of the offset over local time, one element each.

    In piece ``i`` the offset at local time ``at`` is
    ``offset_ns[i] + (at - from_ns[i]) * drift_ppm[i] * 1e-6``.
    """

    from_ns: NDArray[np.int64]
    """``t4`` of the piece's first exchange."""
    to_ns: NDArray[np.int64]
    """``t4`` of its last exchange."""
    offset_ns: NDArray[np.int64]
    """Remote minus local at ``from_ns``."""
    drift_ppm: NDArray[np.float64]
    """How much faster the remote clock runs."""
    clearance_ns: NDArray[np.int64]
    """How far the line may be moved either way before causality forbids it; negative where no line
    fits, which only a piece too short to be divided shows: it lies across a step."""


def replay(
    t1: ArrayLike,
    t2: ArrayLike,
    t3: ArrayLike,
    t4: ArrayLike,
    estimator: Literal["bounded", "ema", "ema_mavros", "last_sample", "minimum_of_8"] = "bounded",
    max_drift_ppm: int = 200,
    wire_forward_ns: int = 0,
    wire_back_ns: int = 0,
    distrust_past: bool = False,
) -> Estimates:
    """Run recorded exchanges through an estimator that knows only the past.

    ``max_drift_ppm`` (0 to 10,000) is the premise of the bound: the clocks never drift apart faster.
    ``wire_forward_ns`` and ``wire_back_ns`` are the least times on the wire; negative counts as zero.
    ``distrust_past`` proves each bound from the last exchange alone. The four matter to ``bounded`` alone.

    Raises ``ValueError`` for stamps that are not integers of one dimension and one length, for an
    estimator that does not exist and for values out of range.
    """
    premise = (*_premise(max_drift_ppm, wire_forward_ns, wire_back_ns), bool(distrust_past))
    return Estimates(*_native.replay(_stamps(t1, t2, t3, t4), estimator, premise))


def align(
    t1: ArrayLike,
    t2: ArrayLike,
    t3: ArrayLike,
    t4: ArrayLike,
    max_drift_ppm: int = 200,
    wire_forward_ns: int = 0,
    wire_back_ns: int = 0,
) -> Pieces:
    """Align a whole trace after the fact, when what came later counts as much as what came before.

    Arguments and errors are those of :func:`replay`, and each piece is proven from all of its exchanges. A trace without a usable exchange has no piece.
    """
    premise = (*_premise(max_drift_ppm, wire_forward_ns, wire_back_ns), False)
    return Pieces(*_native.align(_stamps(t1, t2, t3, t4), premise))


_Stamps = NDArray[np.int64]


def _stamps(*stamps: ArrayLike) -> tuple[_Stamps, _Stamps, _Stamps, _Stamps]:
    t1, t2, t3, t4 = (_integers(f"t{i}", values) for i, values in enumerate(stamps, 1))
    lengths = [len(t1), len(t2), len(t3), len(t4)]
    if len(set(lengths)) > 1:
        raise ValueError(f"t1, t2, t3 and t4 must be equally long, but have {lengths} elements")
    return t1, t2, t3, t4


def _integers(name: str, values: ArrayLike) -> _Stamps:
    array = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"{name} must have one dimension, but has {array.ndim}")
    if array.size == 0:
        # An empty list has no type of its own.
        return np.empty(0, np.int64)
    if array.dtype.kind not in "iu":
        raise ValueError(f"{name} must hold whole nanoseconds (int64), but holds {array.dtype}")
    if array.dtype.kind == "u" and array.max() > np.iinfo(np.int64).max:
        raise ValueError(f"{name} holds {array.max()}, which does not fit into int64 nanoseconds")
    return array.astype(np.int64, copy=False)


def _premise(max_drift_ppm: int, wire_forward_ns: int, wire_back_ns: int) -> tuple[int, int, int]:
    if not 0 <= max_drift_ppm <= _MOST_DRIFT_PPM:
        raise ValueError(f"max_drift_ppm must be 0 to {_MOST_DRIFT_PPM}, but is {max_drift_ppm}")
    limit = np.iinfo(np.int64)
    for name, value in (("wire_forward_ns", wire_forward_ns), ("wire_back_ns", wire_back_ns)):
        if not limit.min <= value <= limit.max:
            raise ValueError(f"{name} must fit into int64 nanoseconds, but is {value}")
    return index(max_drift_ppm), index(wire_forward_ns), index(wire_back_ns)
