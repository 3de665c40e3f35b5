"""Argument values of several kinds: from ordinary numbers to the limits of types."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kerngen.ir.memory import Leaf, MemoryType
from kerngen.ir.types import Storage
from kerngen.runtime.struct import Struct
from kerngen.runtime.values.elements import Element
from kerngen.runtime.values.fields import is_leaf
from kerngen.verify.contents import leaves
from kerngen.verify.meaning.number import HIGHEST

Array: TypeAlias = NDArray[Any]
Generator: TypeAlias = np.random.Generator
Draw: TypeAlias = Callable[[Generator, tuple[int, ...]], Array]


def _signed(rng: Generator, shape: tuple[int, ...]) -> Array:
    return np.asarray(rng.choice((-1.0, 1.0), shape))


def _powers(low: int, high: int) -> Draw:
    def draw(rng: Generator, shape: tuple[int, ...]) -> Array:
        drawn = rng.uniform(1.0, 2.0, shape) * 2.0 ** rng.integers(low, high, shape)
        return np.asarray(_signed(rng, shape) * drawn)

    return draw


def _special(rng: Generator, shape: tuple[int, ...]) -> Array:
    odd = (np.nan, np.inf, -np.inf, HIGHEST, -HIGHEST, -0.0, 1e-45, 2.0**-126)
    plain = rng.integers(-3, 4, shape)
    return np.where(rng.random(shape) < 0.1, rng.choice(odd, shape), plain)


FLOATS: Final[Mapping[str, Draw]] = {
    "whole": lambda rng, shape: rng.integers(-3, 4, shape),
    "even": lambda rng, shape: rng.uniform(0.5, 1.5, shape) * _signed(rng, shape),
    "positive": lambda rng, shape: np.exp(rng.uniform(-3.0, 3.0, shape)),
    "close": lambda rng, shape: 1000.0 + rng.uniform(-1.0, 1.0, shape),
    "unit": lambda rng, shape: rng.uniform(0.0, 1.0, shape),
    "spread": _powers(-12, 12),
    "tiny": _powers(-149, -110),
    "huge": _powers(40, 127),
    "special": _special,
}
"""The kinds of floats, simple ones first.

Sums of whole numbers are exact, so that one wrong term is found.
"""

INTEGERS: Final = ("places", "few", "ends", "any")
"""The kinds of integers.

Subscripts of an axis, a few of them outside; from -2 to 2; the ends of the type; any value.
"""


def integers(
    rng: Generator, shape: tuple[int, ...], kind: str, bound: int, storage: Storage
) -> Array:
    """Return integers of a kind; `bound` is the length of an axis of the call."""
    # The limits of the type: -2^(bits - 1) to 2^(bits - 1) - 1, or 0 to 2^bits - 1.
    least, most = (-1, 1) if storage.value[0] == "i" else (0, 2)
    half = 1 << (storage.bits - 1)
    least, most = least * half, most * half - 1
    match kind:
        case "places":
            drawn = rng.integers(0, max(bound, 1), shape)
            outside = rng.choice((-1, bound, bound + 1), shape)
            drawn = np.where(rng.random(shape) < 0.05, outside, drawn)
        case "few":
            drawn = rng.integers(-2, 3, shape)
        case "ends":
            ends = (least, least + 1, -1, 0, 1, most - 1, most)
            drawn = rng.choice(np.array(ends, np.int64), shape)
        case _:
            drawn = rng.integers(least, most, shape, np.int64, endpoint=True)
    return np.clip(drawn, least, most)


def fill(
    memory: MemoryType, array: Array, kind: tuple[str, str], seed: int, bound: int
) -> None:
    """Fill an array of elements: floats of the first kind, integers of the second."""
    rng = np.random.default_rng(seed)
    for _, leaf, part in leaves(memory, array):
        if part.dtype.kind == "f":
            drawn = FLOATS[kind[0]](rng, part.shape)
            with np.errstate(all="ignore"):
                # 2^40 to 2^127 become 2^-71 to 2^16: the largest overflow f16.
                if part.dtype == np.float16 and kind[0] == "huge":
                    drawn = drawn * 2.0**-111
                part[...] = drawn
        else:
            part[...] = integers(rng, part.shape, kind[1], bound, leaf.storage)


def blank_array(element: type[Element], shape: tuple[int, ...]) -> Array:
    """Return an array of zeros for a tensor's elements."""
    dtype = element.DTYPE
    if is_leaf(element):
        return np.zeros((*shape, *element.shape), element.number.dtype)
    return np.zeros(shape, dtype)


def cloned(memory: MemoryType, array: Array) -> Array:
    """Return a copy of an array of elements, with zeros between the members of structs."""
    made = np.zeros(array.shape, array.dtype)
    pairs = zip(leaves(memory, made), leaves(memory, array), strict=True)
    for (_, _, target), (_, _, source) in pairs:
        target[...] = source
    return made


def scalar_value(memory: MemoryType, element: type[Element], array: Array) -> Any:
    """Return an array without axes as the value of a scalar parameter."""
    if issubclass(element, Struct):
        return element.unpack(array.tobytes())
    assert isinstance(memory, Leaf)
    return _tuples(array)


def _tuples(array: Array) -> Any:
    """Return a number, or of an array nested tuples of them."""
    return tuple(map(_tuples, array)) if array.ndim else array.item()
