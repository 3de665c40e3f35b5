"""Functions that NumPy lacks, element by element."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .approx import Array

ERF: Any = np.frompyfunc(math.erf, 1, 1)
"""The error function, a ufunc; NumPy has none, the standard library has."""


def erf(x: Array) -> Array:
    """The error function of each element."""
    result: Array = ERF(x).astype(np.float64)
    return result
