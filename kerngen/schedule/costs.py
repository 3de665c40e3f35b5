"""Lower bounds of a stage's cost: the bytes that must move, and the operations.

Both are polynomials in the extents: a product of matrices reads and writes at least
`4 m k + 4 k n + 4 m n` bytes in `2 m n k` operations.  A tensor counts once, however often it
is read.  Reports and benchmarks show these bounds; no schedule is chosen by them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import TypeAlias, assert_never, final

from kerngen.ir import nodes as ir
from kerngen.ir.analysis.conditions import conditional, unconditional
from kerngen.ir.analysis.positions import moving_index
from kerngen.ir.analysis.reads import loads
from kerngen.ir.memory import Leaf
from kerngen.ir.staging.keyed import keyed, prefix_of
from kerngen.ir.staging.stages import Stage, Write
from kerngen.ir.store import StoreAt
from kerngen.ir.walk import children
from kerngen.layout.rules import Space
from kerngen.layout.types import lay_out

Polynomial: TypeAlias = Mapping[tuple[ir.Extent, ...], float]
"""A polynomial: coefficients by the extents that they are multiplied with.

`2 m n k` is `{("k", "m", "n"): 2}`.  The bytes of a `u4` are 0.5.
"""


def bytes_moved(
    stages: Iterable[Stage], kept: Collection[ir.Tensor] = ()
) -> Polynomial:
    """Return how many bytes the stages of one dispatch read and write, each byte once.

    A tensor that one stage writes and a later one reads counts as written, not as read.  The
    tensors `kept` stay in registers and are not counted as written either.
    """
    read: set[_Touched] = set()
    written: set[_Touched] = set()
    for stage in stages:
        values = (step.value for step in stage.steps)
        found = (_touched(load.tensor, load.path) for v in values for load in loads(v))
        read.update(part for part in found if part not in written)
        writes = (step for step in stage.steps if isinstance(step, Write))
        written.update(_written(step) for step in writes)
    total: dict[tuple[ir.Extent, ...], float] = defaultdict(float)
    stays = (part for part in written if part.tensor not in kept)
    for part in (*read, *stays):
        total[_ordered(part.extents)] += part.bytes
    return total


@final
@dataclass(frozen=True, slots=True)
class _Touched:
    """Memory that a stage reads or writes: `bytes` of each element that `extents` span.

    Of `bodies[i].mass` the path is `mass`, and only its bytes count; of a tensor of
    scalars, vectors or matrices it is empty.
    """

    tensor: ir.Tensor
    extents: tuple[ir.Extent, ...]
    path: ir.Path
    bytes: float


def _touched(tensor: ir.Tensor, path: ir.Path) -> _Touched:
    """Return the memory that a path leads to: one element of an array, or all of it."""
    elements = 1
    for step in path:
        if isinstance(step, ir.At) and isinstance(step.place, ir.IndexValue):
            elements *= step.length
    reached = ir.reach(tensor.memory, path)
    laid = lay_out(reached, Space.STORAGE)
    size: float = laid.size
    if isinstance(reached, Leaf) and reached.narrow:
        size = reached.narrow.bits / 8
    members = tuple(step for step in path if isinstance(step, ir.Field))
    return _Touched(tensor, tensor.extents, members, elements * size)


def _written(write: Write) -> _Touched:
    """Return the memory that a write touches; at a position, what it stores."""
    whole = _touched(write.tensor, write.path)
    if not isinstance(write.value, StoreAt):
        return whole
    indices = (moving_index(place) for place in write.value.places)
    return replace(whole, extents=tuple(i.extent for i in indices if i is not None))


def operations(
    stages: Iterable[Stage], functions: Mapping[str, ir.Function]
) -> Polynomial:
    """Return how many operations on numbers the stages do; a call of a built-in counts as one.

    A keyed reduction counts each term once, not once for each result.
    """
    total: Counter[tuple[ir.Extent, ...]] = Counter()
    for stage in stages:
        for step in stage.steps:
            _count(step.value, stage.domain, functions, total)
    return total


def show_polynomial(polynomial: Polynomial) -> str:
    """Return a polynomial as text, the highest degree first: `2 m n k + m n`."""
    literal: dict[tuple[str, ...], float] = defaultdict(float)
    for extents, coefficient in polynomial.items():
        named = tuple(extent for extent in extents if isinstance(extent, str))
        numbers = (extent for extent in extents if isinstance(extent, int))
        literal[named] += coefficient * prod(numbers)
    ordered = sorted(literal.items(), key=lambda term: (-len(term[0]), term[0]))
    return " + ".join(_term(*term) for term in ordered if term[1]) or "0"


def _term(extents: tuple[str, ...], coefficient: float) -> str:
    shown = [] if extents and coefficient == 1 else [_number(coefficient)]
    return " ".join((*shown, *extents))


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else str(value)


def _ordered(extents: Iterable[ir.Extent]) -> tuple[ir.Extent, ...]:
    return tuple(sorted(extents, key=str))


def _count(
    expr: ir.Expr,
    around: tuple[ir.Index, ...],
    functions: Mapping[str, ir.Function],
    total: Counter[tuple[ir.Extent, ...]],
) -> None:
    inner = around
    match expr:
        case ir.Reduce() if prefix := prefix_of(conditional(expr)):
            # Each prefix is computed from the one before: as many terms as results.
            total[_extents(around)] += 1
            _count(unconditional(prefix.reduce).body, around, functions, total)
            return
        case ir.Reduce(indices=indices):
            # A term has one result by its key: indices of the result that keys choose are not
            # multiplied with those of the terms.
            found = keyed(conditional(expr))
            chosen = {key.index for key in found.keys} if found else set[ir.Index]()
            inner = (*(index for index in around if index not in chosen), *indices)
            total[_extents(inner)] += 1
        case ir.Binary() | ir.Unary() | ir.Select() | ir.BuiltinCall():
            total[_extents(around)] += 1
        case ir.FunctionCall(function=name):
            function = functions[name]
            for _, value in function.lets:
                _count(value, around, functions, total)
            _count(function.body, around, functions, total)
        case ir.Load():
            return
        case ir.Constant() | ir.ConstRef() | ir.UniformValue() | ir.LocalValue():
            pass
        case ir.IndexValue() | ir.DimValue() | StoreAt() | ir.Cast():
            pass
        case ir.Swizzle() | ir.Part() | ir.Construct():
            pass
        case _:
            assert_never(expr)
    for child in children(expr):
        _count(child, inner, functions, total)


def _extents(indices: tuple[ir.Index, ...]) -> tuple[ir.Extent, ...]:
    return _ordered(index.extent for index in indices)
