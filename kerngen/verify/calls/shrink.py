"""Simplify a counterexample: shorter axes, and as many zeros and ones as possible."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final, TypeAlias

import numpy as np

from kerngen.ir.memory import MemoryType
from kerngen.verify.calls.draw import inputs_of
from kerngen.verify.calls.sizes import Fitting
from kerngen.verify.contents import leaves
from kerngen.verify.meaning.values import Array, cloned
from kerngen.verify.trial import Given

Fails: TypeAlias = Callable[[Given], bool]

_SECONDS: Final = 5.0
"""Seconds for which simpler calls are looked for."""


def plainer(given: Given, fitting: Fitting, fails: Fails) -> Given:
    """Return a simpler call that fails, too.

    In turn: tensors in buffers of their own, shorter axes, scalars of 0 or 1, arrays all 0,
    all 1 or without fractions, and at last single elements that are 0.
    """
    deadline = time.monotonic() + _SECONDS
    tensors = inputs_of(fitting.subject.kernel)
    memories = [tensor.memory for tensor in tensors]
    if given.arrangement != "apart":
        given = _first(given, [replace(given, arrangement="apart")], fails)
    given = _shortened(given, fitting, fails, deadline)
    for n in range(len(given.scalars)):
        if type(given.scalars[n]) is float:
            tried = (_with_scalar(given, n, value) for value in (0.0, 1.0))
            given = _first(given, tried, fails)
    # Inputs that are one tensor would no longer have the same contents.
    if given.arrangement == "the same":
        return given
    for number in range(len(given.arrays)):
        for candidate in _all_alike(given, number, memories[number]):
            if fails(candidate):
                given = candidate
                break
        given = _zeroed(given, number, memories[number], fails, deadline)
    return given


def _shortened(given: Given, fitting: Fitting, fails: Fails, deadline: float) -> Given:
    """Cut axes, keeping the elements at one of their ends, for as long as that fails."""
    changed = True
    while changed:
        changed = False
        for candidate in _shorter(given, fitting):
            if time.monotonic() > deadline:
                return given
            if fitting.suits(candidate.sizes) and fails(candidate):
                given, changed = candidate, True
                break
    return given


def _shorter(given: Given, fitting: Fitting) -> Iterator[Given]:
    for dim in fitting.kernel.dims:
        length = dict(given.sizes)[dim]
        for less in sorted({1, 2, 3, 4, 8, length // 2, length - 1}):
            if 0 < less < length:
                yield _cut(given, fitting, dim, slice(0, less))
                yield _cut(given, fitting, dim, slice(length - less, length))


def _cut(given: Given, fitting: Fitting, dim: str, kept: slice) -> Given:
    """Return the call with some of each axis that has the length of a dim."""
    arrays = tuple(
        array[tuple(kept if axis == dim else slice(None) for axis in spec.axes)]
        for array, spec in zip(given.arrays, fitting.kernel.inputs, strict=True)
    )
    length = kept.stop - kept.start
    sizes = tuple((name, length if name == dim else n) for name, n in given.sizes)
    copies = tuple(np.ascontiguousarray(array).reshape(array.shape) for array in arrays)
    return replace(given, sizes=sizes, arrays=copies)


def _first(given: Given, tried: Iterator[Given] | list[Given], fails: Fails) -> Given:
    return next((each for each in tried if fails(each)), given)


def _with_scalar(given: Given, n: int, value: float) -> Given:
    scalars = (*given.scalars[:n], value, *given.scalars[n + 1 :])
    return replace(given, scalars=scalars)


def _with_array(given: Given, number: int, array: Array) -> Given:
    arrays = (*given.arrays[:number], array, *given.arrays[number + 1 :])
    return replace(given, arrays=arrays)


def _all_alike(given: Given, number: int, memory: MemoryType) -> Iterator[Given]:
    """Yield the call with every number of an array 0, then 1; then without fractions."""
    for value in (0, 1):
        array = cloned(memory, given.arrays[number])
        for _, _, part in leaves(memory, array):
            part[...] = value
        yield _with_array(given, number, array)
    array = cloned(memory, given.arrays[number])
    for _, _, part in leaves(memory, array):
        if part.dtype.kind == "f":
            part[...] = np.rint(part)
    yield _with_array(given, number, array)


def _zeroed(
    given: Given, number: int, memory: MemoryType, fails: Fails, deadline: float
) -> Given:
    """Set runs of numbers to 0 while the call fails: halves of an array, then quarters, ..."""
    for leaf in range(len(list(leaves(memory, given.arrays[number])))):
        size = max(_flat(given.arrays[number], memory, leaf).size // 2, 1)
        while True:
            for start in range(0, _flat(given.arrays[number], memory, leaf).size, size):
                if time.monotonic() > deadline:
                    return given
                array = cloned(memory, given.arrays[number])
                part = _part(array, memory, leaf)
                flat = part.reshape(-1).copy()
                if not flat[start : start + size].any():
                    continue
                flat[start : start + size] = 0
                part[...] = flat.reshape(part.shape)
                candidate = _with_array(given, number, array)
                if fails(candidate):
                    given = candidate
            if size == 1:
                break
            size //= 2
    return given


def _part(array: Array, memory: MemoryType, leaf: int) -> Array:
    return list(leaves(memory, array))[leaf][2]


def _flat(array: Array, memory: MemoryType, leaf: int) -> Array:
    return _part(array, memory, leaf).reshape(-1)
