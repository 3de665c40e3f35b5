"""Merge axes of a product that lie side by side wherever they are read or written.

    y[i, h, d] = sum[p] x[i, p] * w[p, h, d]        h heads of d columns each
    y[i, h_d]  = sum[p] x[i, p] * w[p, h_d]         the same numbers, as h * d columns

A tile has rows along one index and columns along another, so that the first form is h products,
with as many columns as a head has, and the second is one.  Neighbours are merged if both are
indices of the sum, or both of the result and of the same factor.

Strategies for several stages look tensors up, with their axes, in the stages that they run.  So a
tensor that one stage writes and another one uses keeps its axes: it would not be found.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TypeAlias, final

from kerngen.ir import nodes as ir
from kerngen.ir.analysis.reads import free_indices
from kerngen.ir.nodes import Expr, Index
from kerngen.ir.staging.stages import Stage, Step, Write, computed_by
from kerngen.ir.walk import children, map_children
from kerngen.schedule.contraction import contraction_over
from kerngen.schedule.extents import merged

_Run: TypeAlias = tuple[Index, ...]
"""Indices that are merged, in the order of memory."""


def with_merged_axes(stage: Stage, others: Iterable[Stage]) -> Stage:
    """Return a stage with the axes of its product merged; any other stage as it is.

    `others` are the other stages of the kernel.
    """
    others = tuple(others)
    runs = tuple(_runs(stage, others))
    if not runs:
        return stage
    return _Merging(runs, _names((stage, *others))).stage(stage)


def _runs(stage: Stage, others: Iterable[Stage]) -> Iterator[_Run]:
    """Yield the runs of indices that can be merged."""
    reduce = stage.reduction
    if reduce is None or stage.loop or len(stage.domain) < 2:
        return
    if not all(step.is_plain for step in stage.steps if isinstance(step, Write)):
        return
    found = contraction_over(stage.domain, reduce)
    if isinstance(found, str) or found.row is None or reduce.condition is not None:
        return
    left, right = free_indices(found.left), free_indices(found.right)
    accesses = _Accesses(_shared(others))
    accesses.add_all(stage)
    for side in (left - right, right - left):
        yield from _neighbours(stage.domain, side, accesses)
    yield from _neighbours(reduce.indices, {*reduce.indices}, accesses)


def _neighbours(
    indices: _Run, side: AbstractSet[Index], accesses: _Accesses
) -> Iterator[_Run]:
    """Yield the longest runs of two or more `indices` of a side that can be merged."""
    runs = [[*indices[:1]]]
    for before, index in pairwise(indices):
        if {before, index} <= side and accesses.are_side_by_side(before, index):
            runs[-1].append(index)
        else:
            runs.append([index])
    return (tuple(run) for run in runs if len(run) > 1)


@final
@dataclass(frozen=True, slots=True)
class _Accesses:
    """How a stage uses its indices.

    - `kept`: the names of the tensors that keep their axes
    - `places`: the subscripts of each read and write, in order; None for one that is no bare
      index over its whole axis
    - `elsewhere`: the indices that are used in such a subscript, or as numbers
    """

    kept: frozenset[str]
    places: list[tuple[Index | None, ...]] = field(
        default_factory=list[tuple[Index | None, ...]]
    )
    elsewhere: set[Index] = field(default_factory=set[Index])

    def add_all(self, stage: Stage) -> None:
        """Add the accesses of a stage."""
        for step in stage.steps:
            if isinstance(step, Write):
                subscripts = tuple(map(ir.IndexValue, stage.domain))
                self._add(ir.Load(step.tensor, subscripts, step.path))
            self._add(step.value)

    def are_side_by_side(self, first: Index, second: Index) -> bool:
        """Whether two indices are neighbours, in this order, in each access that has either."""
        return self.elsewhere.isdisjoint((first, second)) and all(
            (first, second) in pairwise(places)
            and places.count(first) == places.count(second) == 1
            for places in self.places
            if first in places or second in places
        )

    def _add(self, expr: Expr) -> None:
        match expr:
            case ir.IndexValue(index=index):
                self.elsewhere.add(index)
            case ir.Load(subscripts=subscripts, tensor=tensor):
                places = tuple(map(_whole_axis, subscripts, tensor.extents))
                if tensor.name in self.kept:
                    places = (None,) * len(places)
                self.places.append(places)
                # The values of subscripts, then those of places in the element.
                for number, child in enumerate(children(expr)):
                    if number >= len(places) or places[number] is None:
                        self._add(child)
            case _:
                for child in children(expr):
                    self._add(child)


def _shared(stages: Iterable[Stage]) -> frozenset[str]:
    """Return the names of the tensors that stages use, but for inputs."""
    used = (tensor for stage in stages for tensor in _tensors(stage))
    return frozenset(x.name for x in used if x.role is not ir.Role.INPUT)


def _tensors(stage: Stage) -> Iterator[ir.Tensor]:
    """Yield the tensors that a stage reads and writes."""
    yield from (*stage.tensors_read, *stage.tensors_written)


def _names(stages: Iterable[Stage]) -> frozenset[str]:
    """Return the names of the indices, values and tensors of stages."""
    names: set[str] = set()
    for stage in stages:
        names |= {index.name for index in stage.indices}
        names |= {tensor.name for tensor in _tensors(stage)}
        names |= {*map(computed_by, stage.steps)}
    return frozenset(names)


def _whole_axis(subscript: ir.Subscript, extent: ir.Extent) -> Index | None:
    """Return the index of a subscript that is a bare index over all of its axis, or None."""
    match subscript:
        case ir.IndexValue(index=index) if index.extent == extent:
            return index
        case _:
            return None


@final
class _Merging:
    """Rewrites a stage with one index in place of each run, named unlike what is `taken`."""

    def __init__(self, runs: Sequence[_Run], taken: AbstractSet[str]) -> None:
        self._merged: dict[Index | None, Index] = {}
        names = {*taken}
        for run in runs:
            name = "_".join(index.name for index in run)
            while name in names:
                name += "_"
            names.add(name)
            extent = merged(index.extent for index in run)
            self._merged[run[0]] = Index(name, extent)
        self._dropped = {index for run in runs for index in run[1:]}

    def stage(self, stage: Stage) -> Stage:
        """Return the stage with merged indices."""
        steps = tuple(self._step(step, stage.domain) for step in stage.steps)
        return replace(stage, domain=self._indices(stage.domain), steps=steps)

    def _step(self, step: Step, domain: _Run) -> Step:
        value = self._expr(step.value)
        if not isinstance(step, Write):
            return replace(step, value=value)
        written = self._load(ir.Load(step.tensor, tuple(map(ir.IndexValue, domain))))
        return replace(step, tensor=written.tensor, value=value)

    def _indices(self, indices: _Run) -> _Run:
        kept = (index for index in indices if index not in self._dropped)
        return tuple(self._merged.get(index, index) for index in kept)

    def _expr(self, expr: Expr) -> Expr:
        expr = map_children(expr, self._expr)
        match expr:
            case ir.Load():
                return self._load(expr)
            case ir.Reduce(indices=indices):
                return replace(expr, indices=self._indices(indices))
            case _:
                return expr

    def _load(self, load: ir.Load) -> ir.Load:
        """Return a read of the tensor with merged axes."""
        axes = [
            self._axis(subscript, extent)
            for subscript, extent in zip(
                load.subscripts, load.tensor.extents, strict=True
            )
            if _index_of(subscript) not in self._dropped
        ]
        tensor = replace(load.tensor, extents=tuple(extent for _, extent in axes))
        return replace(
            load, tensor=tensor, subscripts=tuple(place for place, _ in axes)
        )

    def _axis(
        self, subscript: ir.Subscript, extent: ir.Extent
    ) -> tuple[ir.Subscript, ir.Extent]:
        one = self._merged.get(_index_of(subscript))
        return (ir.IndexValue(one), one.extent) if one else (subscript, extent)


def _index_of(subscript: ir.Subscript) -> Index | None:
    return subscript.index if isinstance(subscript, ir.IndexValue) else None
