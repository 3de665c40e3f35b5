"""What products must come to, and contexts that bind little."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import kerngen.runtime as gpu
from tests.conftest import open_software_context
from tests.numeric.approx import Arithmetic
from tests.numeric.tolerance import serial

ARITHMETIC = Arithmetic(np.float32, {}, serial)


def check_product(
    actual: NDArray[Any], x: NDArray[Any], weight: NDArray[Any], what: str
) -> None:
    """Hold a result to x times the transpose of `[n, k]` in float64.

    However k terms are added up, the first of them passes through at most k - 1
    additions; its product is rounded once, and so is the scaling by 1.
    """
    x, weight = x.astype(np.float64), weight.astype(np.float64)
    expected = x @ weight.T
    assert actual.dtype == np.float32
    assert actual.shape == expected.shape, what
    terms = weight.shape[1] + 3
    bound = ARITHMETIC.gamma(terms) * (np.abs(x) @ np.abs(weight).T)
    excess = np.abs(actual - expected) - bound - terms * ARITHMETIC.tiny
    assert excess.max(initial=-1.0) <= 0, f"{what}: off by {excess.max()} too much"


def narrow_context(nbytes: int) -> gpu.Context:
    """A context on the software adapter that binds so many bytes at most."""
    open_software_context().close()
    limits = {**gpu.WEBGPU_LIMITS, "max-storage-buffer-binding-size": nbytes}
    return gpu.open(adapter="software", limits=limits)
