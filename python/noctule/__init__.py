"""Messaging for robots that knows how old its data is.

So far: :mod:`noctule.sync`, the clock estimators on recorded time stamps.
"""

from noctule import sync
from noctule.sync import UNKNOWN_OFFSET_NS, Estimates, Pieces, State, Verdict, align, replay

__all__ = ["UNKNOWN_OFFSET_NS", "Estimates", "Pieces", "State", "Verdict", "align", "replay", "sync"]
