"""Find hazards: small calls with ordinary numbers that overflow f32 or lose digits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kerngen.runtime import UniformRangeError
from kerngen.runtime.calls.scalars import check_scalars, prepare
from kerngen.verify.calls.canned_calls import canned_call
from kerngen.verify.calls.draw import Drawn, inputs_of
from kerngen.verify.calls.sizes import Fitting, longest
from kerngen.verify.contents import leaves
from kerngen.verify.hazards import Hazard, HazardCollector
from kerngen.verify.meaning.programs import meaning
from kerngen.verify.trial import Given

_KINDS: Final = ("whole", "even", "positive", "close", "unit", "spread")
"""Kinds of ordinary numbers: none is above 4096."""
_SEEDS: Final = 8
"""Calls with each kind."""


def hazards_of(fitting: Fitting) -> tuple[Hazard, ...]:
    """Return a kernel's operations that give infinity or NaN, or lose all digits."""
    watch = HazardCollector()
    for given in _calls(fitting):
        lengths = fitting.lengths(given.sizes)
        assert lengths is not None
        kernel = fitting.kernel
        dims = tuple(lengths[dim] for dim in kernel.lengths)
        try:
            check_scalars(kernel, dims, prepare(kernel, given.scalars))
        except UniformRangeError:
            continue
        meaning(fitting.subject, lengths, given.arrays, given.scalars, watch)
    return (*watch.found.values(),)


def _calls(fitting: Fitting) -> Iterator[Given]:
    """Yield small calls with numbers of each ordinary kind, and integers as subscripts."""
    plain = canned_call(fitting)
    if plain is None:
        return
    count = len(fitting.kernel.inputs)
    bounds = (longest(plain.sizes),) * count
    for kind in _KINDS:
        for seed in range(_SEEDS):
            drawn = Drawn(
                sizes=plain.sizes,
                scalars=plain.scalars,
                kinds=((kind, "places"),) * count,
                bounds=bounds,
                seed=seed,
                arrangement="apart",
                turn=0,
            )
            arrays = (*drawn.arrays(fitting),)
            _make_states_positive(fitting, arrays)
            yield replace(plain, arrays=arrays)


def _make_states_positive(fitting: Fitting, arrays: Sequence[NDArray[Any]]) -> None:
    """Make all numbers positive in tensors that a kernel changes in place.

    These are mostly states, such as an optimizer's mean of squares, which is never
    negative, so that its square root is safe.
    """
    tensors, specs = inputs_of(fitting.subject.kernel), fitting.kernel.inputs
    for tensor, spec, array in zip(tensors, specs, arrays, strict=True):
        if spec.access == "update":
            for _, _, part in leaves(tensor.memory, array):
                np.abs(part, out=part)
