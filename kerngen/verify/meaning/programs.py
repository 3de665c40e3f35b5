"""The expected results of a call: its statements in order, each over its whole domain."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from kerngen.ir import nodes as ir
from kerngen.ir.memory import Leaf
from kerngen.ir.recurrence import Recurrence
from kerngen.ir.store import StoreAt
from kerngen.ir.types import Scalar, scalar_of
from kerngen.ir.walk import places_in, subscript_value
from kerngen.runtime.calls.kernel import Kernel as RuntimeKernel
from kerngen.runtime.calls.scalars import prepare
from kerngen.runtime.struct import UniformStruct
from kerngen.verify.contents import blank, contents_of, flat
from kerngen.verify.hazards import HazardCollector
from kerngen.verify.meaning import number
from kerngen.verify.meaning.evaluate import Contents, EvaluationScope, Evaluator
from kerngen.verify.meaning.number import BoundedArray
from kerngen.verify.meaning.places import chains, grid
from kerngen.verify.meaning.vectors import components

_SLAB: Final = 1 << 19
"""Points of a domain that are computed at once: 12 MiB for an array with its bounds."""


@final
@dataclass(frozen=True)
class Subject:
    """A kernel to verify: its typed form, and its runtime form.

    Of a gradient, `forward` is the kernel that it was derived from; `kept` is the kernel
    that returns those `let`s of `forward` that are arguments of the gradient.
    """

    kernel: ir.Kernel
    functions: Mapping[str, ir.Function]
    runtime: RuntimeKernel
    forward: Subject | None = None
    kept: RuntimeKernel | None = None


@final
@dataclass
class CallState:
    """The state of one call: its lengths, and the contents of tensors and parameters."""

    subject: Subject
    lengths: Mapping[str, int]
    contents: dict[str, Contents] = field(default_factory=dict[str, Contents])
    watch: HazardCollector | None = None

    @property
    def evaluator(self) -> Evaluator:
        """The evaluator for the current state."""
        return Evaluator(
            self.subject.functions, self.lengths, self.contents, self.watch
        )

    @property
    def snapshot(self) -> Evaluator:
        """Return an evaluator for the current state, unaffected by later statements."""
        return Evaluator(self.subject.functions, self.lengths, dict(self.contents))

    def bind(self, arrays: Sequence[NDArray[Any]], scalars: Sequence[Any]) -> None:
        """Set the arguments, and create the outputs."""
        kernel = self.subject.kernel
        inputs = [t for t in kernel.tensors if t.role is not ir.Role.OUTPUT]
        for tensor, array in zip(inputs, arrays, strict=True):
            self.contents[tensor.name] = contents_of(tensor.memory, array)
        evaluator = self.evaluator
        for tensor in kernel.tensors:
            if tensor.role is ir.Role.OUTPUT:
                shape = tuple(map(evaluator.length, tensor.extents))
                self.contents[tensor.name] = blank(tensor.memory, shape)
        for parameter, value in zip(kernel.parameters, scalars, strict=True):
            given = _structured(value) if isinstance(value, UniformStruct) else value
            array = np.asarray(given)
            self.contents[parameter.name] = contents_of(parameter.memory, array)
        self._bind_hosts(scalars)

    def _bind_hosts(self, scalars: Sequence[Any]) -> None:
        """Set the `host` values, which the runtime computes in double, rounded to f32."""
        kernel, runtime = self.subject.kernel, self.subject.runtime
        if not kernel.hosts:
            return
        dims = (self.lengths[dim] for dim in kernel.lengths)
        values = runtime.hosts(*dims, *prepare(runtime, tuple(scalars)))
        for host, value in zip(kernel.hosts, values[-len(kernel.hosts) :], strict=True):
            self.contents[host.name] = (
                number.real(value)
                if host.type is Scalar.F32
                else number.known(np.asarray(value, np.int64))
            )

    def execute(self, statement: ir.Statement) -> None:
        """Run a statement over its whole domain, as if at once."""
        tensor = statement.target
        if tensor.role is ir.Role.LET:
            self.contents[tensor.name] = self._watched(statement)
            return
        value = self._watched(statement)
        contents, key = _target(statement, self.contents[tensor.name])
        unsure = False
        if isinstance(statement.value, StoreAt):
            places = self._places(statement, statement.value, contents)
            key = (*places.key, *key[tensor.rank :])
            value = value.map(lambda part: part[places.inside])
            unsure = places.unsure
        leaf = ir.reach(tensor.memory, statement.path)
        assert isinstance(leaf, Leaf)
        kept = number.to_half(value) if leaf.is_half else value
        # Written in place. Nothing else sees that: a let has arrays of its own.
        for part, new in zip(_parts(contents), _parts(kept), strict=True):
            part[key] = new
        if unsure:  # Any element may have been written.
            contents.error[...] = contents.size[...] = np.inf

    def _places(
        self, statement: ir.Statement, stored: StoreAt, contents: BoundedArray
    ) -> _Places:
        """Return the positions of a store `cache[at + i] = ...` that are inside its target."""
        evaluator = self.evaluator
        inner = sum(isinstance(p, ir.IndexValue) for p in places_in(statement.path))
        own = statement.indices[: len(statement.indices) - inner]
        extents = tuple(evaluator.length(index.extent) for index in own)
        scope = EvaluationScope(grid(own, extents, len(own)), len(own))
        found = [evaluator.of(subscript_value(p), scope) for p in stored.places]
        unsure = any(place.unsure.any() for place in found)
        inside = np.ones(extents, bool)
        for place, length in zip(found, contents.value.shape, strict=False):
            inside = inside & (place.value >= 0) & (place.value < length)
        key = (np.broadcast_to(place.value, extents)[inside] for place in found)
        return _Places(tuple(key), inside, unsure)

    def _watched(self, statement: ir.Statement) -> BoundedArray:
        value = self._value(statement)
        if self.watch:
            leaf = ir.reach(statement.target.memory, statement.path)
            self.watch.statement(
                statement, value, is_half=isinstance(leaf, Leaf) and leaf.is_half
            )
        return value

    def _value(self, statement: ir.Statement) -> BoundedArray:
        """Compute a statement's value at every point, some rows of its domain at a time."""
        if statement.along:
            return self._in_order(statement, statement.along)
        evaluator = self.evaluator
        extents = tuple(evaluator.length(index.extent) for index in statement.indices)
        inner = components(statement.value.type)
        # A row of the domain costs its points, times the terms of the longest reduction.
        cost = max(
            (prod(map(evaluator.length, c)) for c in chains(statement.value)), default=1
        )
        points = prod(extents[1:]) * max(cost, 1)
        rows = max(_SLAB // max(points, 1), 1)
        rank = len(extents)
        values = grid(statement.indices, extents, rank)
        if not extents:
            return _spread(evaluator.of(statement.value, EvaluationScope()), inner)
        first = statement.indices[0].name
        slabs: list[BoundedArray] = []
        for start in range(0, max(extents[0], 1), rows):
            some = values[first][start : start + rows]
            scope = EvaluationScope({**values, first: some}, rank)
            found = evaluator.of(statement.value, scope)
            slabs.append(_spread(found, (len(some), *extents[1:], *inner)))
        return number.joined(slabs, lambda parts: np.concatenate(parts, 0))

    def _in_order(self, statement: ir.Statement, along: Recurrence) -> BoundedArray:
        """Compute a recurrence, as `h[i, t]` of `h[i, t - 1]`, one step of `t` at a time."""
        evaluator = self.evaluator
        extents = [evaluator.length(index.extent) for index in statement.indices]
        inner, rank = components(statement.value.type), len(extents)
        scalar = scalar_of(statement.value.type)
        whole = number.unknown((*extents, *inner), scalar)
        self.contents[statement.target.name] = whole
        values = grid(statement.indices, tuple(extents), rank)
        name = statement.indices[along.axis].name
        steps = range(extents[along.axis])
        extents[along.axis] = 1
        for step in reversed(steps) if along.descending else steps:
            here = np.full((1,) * rank, step, np.int64)
            found = evaluator.of(
                statement.value, EvaluationScope({**values, name: here}, rank)
            )
            new = _spread(found, (*extents, *inner))
            key = (*(slice(None),) * along.axis, slice(step, step + 1))
            for part, written in zip(_parts(whole), _parts(new), strict=True):
                part[key] = written
        return whole


@final
@dataclass(frozen=True)
class _Places:
    """Positions along each axis of a target, of those points that are `inside` of it.

    They are `unsure` where rounding may decide one.
    """

    key: tuple[NDArray[Any], ...]
    inside: NDArray[np.bool_]
    unsure: bool


def _spread(found: BoundedArray, shape: tuple[int, ...]) -> BoundedArray:
    return found.map(lambda part: np.broadcast_to(part, shape).copy())


def _parts(contents: BoundedArray) -> tuple[NDArray[Any], ...]:
    return contents.value, contents.error, contents.size


def _target(
    statement: ir.Statement, contents: Contents
) -> tuple[BoundedArray, tuple[Any, ...]]:
    """Return the array that a statement writes to, and the key of the elements written.

    For `balls[i].pos.x = ...` that is the array of `pos`, and `[:, ..., 0]`.
    """
    key: list[Any] = [slice(None)] * statement.target.rank
    for step in statement.path:
        match step:
            case ir.Field(name):
                assert isinstance(contents, Mapping)
                contents = contents[name]
            case ir.At(place=place):
                key.append(_place(place))
    assert isinstance(contents, BoundedArray)
    if statement.component:
        key += [..., "xyzw".index(statement.component)]
    return contents, tuple(key)


def _place(place: ir.Subscript) -> int | slice:
    """Return the element of a fixed array that is written; by an index, all of them."""
    if isinstance(place, ir.IndexValue):
        return slice(None)
    constant = Evaluator({}, {}, {}).of(place.value, EvaluationScope())
    return int(constant.value)


def _structured(value: UniformStruct) -> NDArray[Any]:
    return np.frombuffer(value.pack(), type(value).DTYPE).reshape(())


def meaning(
    subject: Subject,
    lengths: Mapping[str, int],
    arrays: Sequence[NDArray[Any]],
    scalars: Sequence[Any],
    watch: HazardCollector | None = None,
) -> list[list[BoundedArray]]:
    """Return the expected contents: of each tensor that changes, then of each output.

    A tensor's numbers are in the order of `contents.leaves`. `watch` collects hazards
    on the way.
    """
    call = CallState(subject, lengths, watch=watch)
    with np.errstate(all="ignore"):
        call.bind(arrays, scalars)
        for statement in subject.kernel.body:
            call.execute(statement)
    return [[*flat(call.contents[name])] for name in _written(subject.kernel)]


def _written(kernel: ir.Kernel) -> Iterator[str]:
    for role in (ir.Role.UPDATE, ir.Role.OUTPUT):
        yield from (tensor.name for tensor in kernel.tensors if tensor.role is role)
