"""Failures of a call, and the comparison of results with their bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from kerngen.ir.memory import MemoryType
from kerngen.verify.contents import leaves
from kerngen.verify.meaning.number import BoundedArray

LOST: Final = "lost"
"""The kind of a fault that ends the device: no call can be made there any more."""


@final
@dataclass(frozen=True)
class Fault:
    """A failure in words; for a wrong value, also its place and the value.

    `result` is the number of the tensor among those that a call returns.
    """

    kind: str
    text: str
    result: int = 0
    path: str = ""
    place: tuple[int, ...] = ()
    got: float = 0.0
    expected: float = 0.0
    bound: float = 0.0


@final
class WrongError(Exception):
    """Raised for a call with a wrong result."""

    def __init__(self, fault: Fault) -> None:
        """Keep the fault, whose text is the message."""
        super().__init__(fault.text)
        self.fault = fault


@final
@dataclass(slots=True)
class Tally:
    """Statistics of one way to run a kernel: how close results came to their bounds.

    `worst` is the largest error as a fraction of its bound; `known` is the number of
    elements with a known bound.
    """

    cases: int = 0
    elements: int = 0
    known: int = 0
    worst: float = 0.0

    def note(self, want: BoundedArray, off: NDArray[Any]) -> None:
        """Add an array of results: expected values `want`, and errors `off`."""
        bounded = np.isfinite(want.error)
        self.elements += bounded.size
        self.known += int(bounded.sum())
        rounded = bounded & (want.error > 0)
        if rounded.any():
            share = off[rounded] / want.error[rounded]
            self.worst = max(self.worst, float(share.max()))


def compare(
    name: str,
    memory: MemoryType,
    want: Sequence[BoundedArray],
    got: NDArray[Any],
    tally: Tally,
    result: int,
) -> None:
    """Compare a tensor with its expected values; raise WrongError for the worst one."""
    for (path, _, column), number in zip(leaves(memory, got), want, strict=True):
        if column.shape != number.value.shape:
            text = f"{name}{path} has shape {column.shape}, not {number.value.shape}"
            raise WrongError(Fault("value", text, result, path))
        off = _off(column, number)
        wrong = np.isfinite(number.error) & ~(off <= number.error)
        if wrong.any():
            raise WrongError(_worst(name + path, path, number, column, wrong, result))
        tally.note(number, off)


def _off(got: NDArray[Any], want: BoundedArray) -> NDArray[Any]:
    """Return the error of each element; an infinity that is expected has none."""
    with np.errstate(all="ignore"):
        off = np.abs(got.astype(np.float64) - want.value)
    return np.where(got == want.value, 0.0, off)


def _worst(
    name: str,
    path: str,
    want: BoundedArray,
    got: NDArray[Any],
    wrong: NDArray[Any],
    result: int,
) -> Fault:
    # The element that exceeds its bound by the most; NaN does by infinity.
    off = _off(got, want)
    with np.errstate(all="ignore"):
        excess = np.where(wrong, np.where(np.isnan(off), np.inf, off), -1.0)
    flat = int(np.argmax(excess - np.where(wrong, want.error, 0.0)))
    place = tuple(map(int, np.unravel_index(flat, got.shape))) if got.shape else ()
    return value_fault(
        name,
        path,
        place,
        got[place],
        (float(want.value[place]), float(want.error[place])),
        result,
    )


def value_fault(
    name: str,
    path: str,
    place: tuple[int, ...],
    got: Any,
    want: tuple[float, float],
    result: int,
) -> Fault:
    """Return the failure of one element, as `y[0] is 0.0, not 0.300000012 within 1e-8`."""
    expected, bound = want
    at = f"[{', '.join(map(str, place))}]" if place else ""
    within = f" within {bound:.3g}" if bound else ""
    shown = f"{expected:.9g}" if got.dtype.kind == "f" else str(int(expected))
    text = f"{name}{at} is {got}, not {shown}{within}"
    return Fault("value", text, result, path, place, float(got), expected, bound)
