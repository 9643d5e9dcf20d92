import numpy as np
from numpy.typing import NDArray

__all__ = ["align", "replay"]

_Integers = NDArray[np.int64]
_Stamps = tuple[_Integers, _Integers, _Integers, _Integers]
_Premise = tuple[int, int, int, bool]

def replay(
    stamps: _Stamps, estimator: str, premise: _Premise
) -> tuple[_Integers, NDArray[np.float64], _Integers, _Integers, NDArray[np.int8], NDArray[np.int8]]: ...
def align(
    stamps: _Stamps, premise: _Premise
) -> tuple[_Integers, _Integers, _Integers, NDArray[np.float64], _Integers]: ...
