"""Calls that pass one tensor twice, written and read: each must be refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kerngen.runtime.calls.ranges import shape_of
from kerngen.verify.calls.canned_calls import canned_call
from kerngen.verify.calls.sizes import Fitting
from kerngen.verify.trial import Given


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
