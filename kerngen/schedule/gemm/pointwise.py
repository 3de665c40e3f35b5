"""Convolutions by kernels of 1 x 1 as products of matrices.

    y[n, f, i, j] = sum[q, u, v] k[f, q, u, v] * x[n, q, i * step + u - edge, j * step + v - edge]

Where the kernel has one element, the stride is 1 and there is no padding, each window is the
place of its result:

    y[n, f, i_j] = sum[q] k[f, q] * x[n, q, i_j]

Rows of pixels are side by side then, so that vectors are loaded, without a condition on the
place.  On an H200, 32 images of 64 x 56 x 56 by 256 kernels take 103 us, in windows 193.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import final

from kerngen.ir import nodes as ir
from kerngen.ir.analysis.affine import as_literal
from kerngen.ir.sizes import SizeMaker
from kerngen.ir.walk import replaced
from kerngen.plan.size import Guard, all_of, compare
from kerngen.schedule.contraction import product_of
from kerngen.schedule.gemm.window_read import WindowAxis, WindowRead, window_read
from kerngen.schedule.lowering.cooperation import reduction_of
from kerngen.schedule.merged_axes import with_merged_axes
from kerngen.schedule.sizes import extent_size
from kerngen.schedule.task import Task


@final
@dataclass(frozen=True, slots=True)
class Pointwise:
    """A convolution without its windows: the task of a product, and the condition for it."""

    task: Task
    when: Guard


def pointwise(task: Task) -> Pointwise | None:
    """Return a convolution without its windows, or None for any other product."""
    found, _ = product_of(task)
    function = task.functions.__getitem__
    left, right = (window_read(x, function) for x in (found.left, found.right))
    if left is None or right is None or not found.is_product or found.is_bounded:
        return None
    axes = (*left.axes, *right.axes)
    if not all(axis.place.terms for axis in axes):
        return None
    windows = [axis for axis in axes if not _is_bare(axis)]
    # A bare index may be for a part of its axis: the rows of `k[f, q]` are then longer than q.
    if any(x.extent != _place(x).extent for x in axes if x not in windows):
        return None
    of_windows = {index for axis in windows for index in _of_window(axis)}
    places = {_place(axis) for axis in windows}
    remaining = tuple(index for index in found.over if index not in of_windows)
    if (
        not windows
        or not of_windows <= {*found.over}
        or not places <= {*task.domain}
        or not remaining
    ):
        return None
    when = _is_one_place(task, windows)
    if when is None:
        return None
    reduce = reduction_of(task)
    factors = _read(left, of_windows), _read(right, of_windows)
    body = ir.Binary("*", *factors, reduce.type)
    product = replace(reduce, indices=remaining, body=body)
    return Pointwise(_with_reduction(task, product), when)


def _is_bare(axis: WindowAxis) -> bool:
    """Whether the places of an axis are one index, as in `k[f, q]`."""
    place = axis.place
    return (
        [*map(as_literal, place.terms.values())] == [1]
        and as_literal(place.offset) == 0
        and axis.divisor is None
        and not axis.guarded
    )


def _place(axis: WindowAxis) -> ir.Index:
    """Return the index of the places of windows, i of `i * step + u - edge`: the first one."""
    return next(iter(axis.place.terms))


def _of_window(axis: WindowAxis) -> tuple[ir.Index, ...]:
    """Return the indices within a window, u of `i * step + u - edge`."""
    _, *others = axis.place.terms
    return tuple(others)


def _is_one_place(task: Task, windows: Iterable[WindowAxis]) -> Guard | None:
    """Return the condition that all windows are single places, each that of its result.

    None if only the generated module can compute what it needs.
    """
    maker = SizeMaker({x.name: x.value for x in task.kernel.hosts}, str)

    def conditions() -> Iterator[Guard]:
        for axis in windows:
            place, index = axis.place, _place(axis)
            yield compare("==", maker.size(place.terms[index]), 1)
            yield compare("==", maker.size(_without_sign(place.offset)), 0)
            yield compare("==", extent_size(axis.extent), extent_size(index.extent))
            for inner in _of_window(axis):
                yield compare("==", extent_size(inner.extent), 1)
            if axis.divisor is not None:
                yield compare("==", maker.size(axis.divisor), 1)

    when = all_of(*conditions())
    return None if maker.computed else when


def _without_sign(value: ir.Expr) -> ir.Expr:
    """Return x of `-x`, so that a condition is `pad == 0` and not `pad * -1 == 0`."""
    return value.operand if isinstance(value, ir.Unary) else value


def _read(read: WindowRead, dropped: AbstractSet[ir.Index]) -> ir.Load:
    """Return a factor that is read at the places of its windows, without the axes `dropped`."""
    indices = [_place(axis) for axis in read.axes if _place(axis) not in dropped]
    extents = tuple(index.extent for index in indices)
    tensor = replace(read.tensor, extents=extents)
    return ir.Load(tensor, tuple(map(ir.IndexValue, indices)))


def _with_reduction(task: Task, reduce: ir.Reduce) -> Task:
    """Return the task with another reduction, and its axes merged."""
    before = reduction_of(task)
    steps = tuple(
        replace(step, value=replaced(step.value, before, reduce))
        for step in task.stage.steps
    )
    whole = replace(task.stage, steps=steps)
    stage = with_merged_axes(whole, task.other_stages)
    stages = (stage if x == task.stage else x for x in task.staged.stages)
    return replace(task, staged=replace(task.staged, stages=(*stages,)), stage=stage)
