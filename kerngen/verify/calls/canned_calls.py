"""Canned calls: fixed arguments of simple numbers, without hypothesis."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import numpy as np

from kerngen.ir.nodes import Parameter
from kerngen.runtime.calls.kernel import ScalarSpec
from kerngen.runtime.calls.ranges import shape_of
from kerngen.verify.calls.draw import inputs_of
from kerngen.verify.calls.sizes import Fitting, Sizes
from kerngen.verify.contents import leaves
from kerngen.verify.meaning.values import blank_array, scalar_value
from kerngen.verify.trial import Given

PERIOD: Final = 251
"""Tensors repeat their first 251 numbers: a prime, so that rows differ."""
_SMALL: Final = 4
"""The length of each axis, where the kernel accepts it."""


def canned_call(fitting: Fitting) -> Given | None:
    """Return a small call that the kernel accepts, or None if none was found."""
    sizes = fitting.near(tuple((name, _SMALL) for name in fitting.names))
    return None if sizes is None else call_at(fitting, sizes)


def call_at(fitting: Fitting, sizes: Sizes) -> Given:
    """Return a call at some sizes: whole numbers from -3 to 3, without signs for unsigned."""
    lengths = fitting.lengths(sizes)
    assert lengths is not None
    numbers = np.random.default_rng(0).integers(-3, 4, PERIOD)
    arrays: list[Any] = []
    specs = fitting.kernel.inputs
    for tensor, spec in zip(inputs_of(fitting.subject.kernel), specs, strict=True):
        array = blank_array(spec.element, shape_of(spec.axes, lengths))
        for _, _, part in leaves(tensor.memory, array):
            signed = part.dtype.kind != "u"
            values = numbers if signed else np.abs(numbers)
            part[...] = np.resize(values.astype(part.dtype), part.shape)
        arrays.append(array)
    named = dict(sizes)
    pairs = zip(fitting.subject.kernel.parameters, fitting.kernel.scalars, strict=True)
    scalars = tuple(
        named.get(spec.name, _plain(parameter, spec)) for parameter, spec in pairs
    )
    return Given(sizes, tuple(arrays), scalars)


def _plain(parameter: Parameter, spec: ScalarSpec) -> Any:
    """Return the default of a parameter, or else 1 for each of its numbers."""
    if parameter.default is not None:
        return parameter.default
    if spec.python_type in {int, float}:
        return spec.python_type(1)
    array = blank_array(spec.element, ())
    for _, _, part in leaves(parameter.memory, array):
        part[...] = 1
    return scalar_value(parameter.memory, spec.element, array)


# Calls that pass one tensor as two arguments, of which one is written: they must be refused.


def overlaps(fitting: Fitting) -> Iterator[Given]:
    """Yield a call for each pair of tensors that may be passed as one."""
    given = canned_call(fitting)
    if given is None:
        return
    lengths = fitting.lengths(given.sizes)
    assert lengths is not None
    specs = fitting.kernel.tensors
    shapes = [shape_of(spec.axes, lengths) for spec in specs]
    for second, spec in enumerate(specs):
        for first in range(min(second, len(fitting.kernel.inputs))):
            alike = specs[first].element is spec.element
            is_written = spec.access != "read" or specs[first].access != "read"
            if alike and is_written and shapes[first] == shapes[second]:
                yield replace(given, overlapping=(first, second))
