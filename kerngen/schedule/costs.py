"""What stages cost at the least: bytes that must move, and operations.

Both are polynomials in the extents.  A tensor counts once, however often it is read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from math import prod
from typing import TypeAlias

from kerngen.ir.nodes import (
    Binary,
    BuiltinCall,
    Expr,
    Extent,
    Function,
    FunctionCall,
    Index,
    Load,
    Reduce,
    Select,
    Tensor,
    Unary,
)
from kerngen.ir.reads import tensors_read
from kerngen.ir.stages import Stage, Write
from kerngen.ir.walk import children
from kerngen.layout.rules import Space
from kerngen.layout.types import lay_out

Polynomial: TypeAlias = Mapping[tuple[Extent, ...], int]
"""Coefficients by the extents that they are multiplied with."""


def bytes_moved(stages: Iterable[Stage], kept: Collection[Tensor] = ()) -> Polynomial:
    """Return the bytes that stages of one dispatch read and write: each tensor once.

    What one writes for the next is not read, and not written either if it is `kept`.
    """
    read: set[Tensor] = set()
    written: set[Tensor] = set()
    for stage in stages:
        values = (step.value for step in stage.steps)
        read.update({t for v in values for t in tensors_read(v)} - written)
        written.update(s.tensor for s in stage.steps if isinstance(s, Write))
    total: Counter[tuple[Extent, ...]] = Counter()
    for tensor in (*read, *written.difference(kept)):
        total[_ordered(tensor.extents)] += lay_out(tensor.memory, Space.STORAGE).size
    return total


def operations(
    stages: Iterable[Stage], functions: Mapping[str, Function]
) -> Polynomial:
    """Return the operations on numbers of stages; a built-in counts as one."""
    total: Counter[tuple[Extent, ...]] = Counter()
    for stage in stages:
        around = tuple(index.extent for index in stage.domain)
        for step in stage.steps:
            _count(step.value, around, functions, total)
    return total


def show_polynomial(polynomial: Polynomial) -> str:
    """Return a polynomial as text, the highest degree first: `2 m n k + m n`."""
    literal: Counter[tuple[str, ...]] = Counter()
    for extents, coefficient in polynomial.items():
        named = tuple(extent for extent in extents if isinstance(extent, str))
        numbers = (extent for extent in extents if isinstance(extent, int))
        literal[named] += coefficient * prod(numbers)
    ordered = sorted(literal.items(), key=lambda term: (-len(term[0]), term[0]))
    return " + ".join(_term(*term) for term in ordered if term[1]) or "0"


def _term(extents: tuple[str, ...], coefficient: int) -> str:
    shown = [] if extents and coefficient == 1 else [str(coefficient)]
    return " ".join((*shown, *extents))


def _ordered(extents: Iterable[Extent]) -> tuple[Extent, ...]:
    return tuple(sorted(extents, key=str))


def _count(
    expr: Expr,
    around: tuple[Extent, ...],
    functions: Mapping[str, Function],
    total: Counter[tuple[Extent, ...]],
) -> None:
    inner = around
    match expr:
        case Reduce(indices=indices):
            inner = (*around, *_extents(indices))
            total[_ordered(inner)] += 1
        case Binary() | Unary() | Select() | BuiltinCall():
            total[_ordered(around)] += 1
        case FunctionCall(function=name):
            function = functions[name]
            for _, value in function.lets:
                _count(value, around, functions, total)
            _count(function.body, around, functions, total)
        case Load():
            return
        case _:
            pass
    for child in children(expr):
        _count(child, inner, functions, total)


def _extents(indices: tuple[Index, ...]) -> tuple[Extent, ...]:
    return tuple(index.extent for index in indices)
