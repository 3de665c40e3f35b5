"""Ranges of loops under conditions: the loop of `sum[j when j <= i]` ends after i.

    let j_end = ...;                              // i + 1, within the axis
    for (var j = 0u; j < j_end; j += 1u) { ... }

So a triangle takes half of the square's terms.  A bound is a comparison of the index by
itself with a value that is the same for all of the loop; a condition without the index decides
about the whole loop: `j_end` is 0 where it does not hold.  Under any other condition, each
term is tested.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeAlias, final

from kerngen.ir import nodes as ir
from kerngen.ir.analysis.affine import affine_form
from kerngen.ir.analysis.conditions import conditional
from kerngen.ir.analysis.reads import free_indices, holds_reduce
from kerngen.ir.staging.keyed import conjuncts
from kerngen.ir.types import Scalar
from kerngen.ir.walk import walk
from kerngen.shader import tree as t

if TYPE_CHECKING:
    from kerngen.schedule.lowering.expressions import Lowerer

# `a < b` is `b > a`.
_MIRRORED: Final[dict[ir.BinaryOp, ir.BinaryOp]] = {
    "<": ">",
    "<=": ">=",
    ">": "<",
    ">=": "<=",
    "==": "==",
}

_Bound: TypeAlias = tuple[ir.BinaryOp, ir.Expr]
"""The comparison of an index, and the value on its other side: `<=` and i of `j <= i`."""


@final
@dataclass(frozen=True, slots=True)
class Terms:
    """The range of a loop, `begin <= index < end`; `is_whole` if it is the whole axis."""

    begin: t.Expr
    end: t.Expr
    is_whole: bool = False


def terms_along(
    to: Lowerer, reduce: ir.Reduce, index: ir.Index, step: int = 1
) -> Terms:
    """Return the range of a loop over `index`, as bounded by the condition of `reduce`.

    Variables for `begin` and `end` are emitted; `begin` is a multiple of `step`, rounded down.
    If an invocation computes four elements, only bounds that are the same for all four narrow
    the range.
    """
    length = to.shader.extent(index.extent)
    bounds, decides = [*_bounds(to, reduce, index)], [*_deciding(to, reduce)]
    if not bounds and not decides:
        return Terms(t.ZERO, length, is_whole=True)
    # The latest begin and the earliest end of all bounds.
    narrow = replace(to, vector=None)
    begins = [_begin(narrow, bound, length) for bound in bounds if bound[0] in _LOWER]
    ends = [_end(narrow, bound, length) for bound in bounds if bound[0] in _UPPER]
    begin: t.Expr = t.ZERO
    for other in begins:
        begin = other if begin == t.ZERO else t.call("max", begin, other)
    end = length
    for other in ends:
        end = other if end is length else t.call("min", end, other)
    # A condition without the index leaves all terms, or none.
    if decides:
        holds = t.all_of(*(narrow.lower(condition).expr for condition in decides))
        end = t.call("select", t.ZERO, end, holds)
    if begins:
        begin = _named(to, f"{index.name}_begin", begin // step * step)
    return Terms(begin, _named(to, f"{index.name}_end", end))


def terms_in_order(to: Lowerer, reduce: ir.Reduce, step: int = 1) -> tuple[str, Terms]:
    """Return the name of a loop's counter over all terms of `reduce`, and its range.

    Terms of several indices are counted in row-major order: `unravel` finds the indices.  The
    condition bounds the first index.
    """
    shader, (first, *rest) = to.shader, reduce.indices
    if not rest:
        return shader.name(first.name), terms_along(to, reduce, first, step)
    name, along = shader.fresh("term"), terms_along(to, reduce, first)
    if along.is_whole:
        return name, Terms(t.ZERO, shader.size(reduce.indices), is_whole=True)
    inner = shader.size(tuple(rest))
    return name, Terms(along.begin * inner, along.end * inner)


def is_window(reduce: ir.Reduce) -> bool:
    """Whether the terms are a window that moves: `sum[p when p > j - w and p <= j]`.

    Both ends move with the same indices, so every result has the same number of terms.
    """
    if len(reduce.indices) != 1:
        return False
    moving: dict[bool, set[frozenset[ir.Index]]] = {True: set(), False: set()}
    for condition in _conditions(reduce):
        if isinstance(condition, ir.Binary) and condition.op in _MIRRORED:
            # The index may be on either side of the comparison.
            sides = (condition.op, condition.left, condition.right)
            mirrored = _MIRRORED[condition.op], condition.right, condition.left
            for op, own, other in (sides, mirrored):
                form = affine_form(other)
                if form and form.terms and _is_index(own, reduce.indices[0]):
                    moving[op in _LOWER].add(frozenset(form.terms))
    return bool(moving[True] & moving[False])


# `==` is both: a loop of one turn, or of none.
_LOWER: Final = frozenset[ir.BinaryOp]((">", ">=", "=="))
_UPPER: Final = frozenset[ir.BinaryOp](("<", "<=", "=="))


def _named(to: Lowerer, wanted: str, value: t.Expr) -> t.Expr:
    name = to.shader.fresh(wanted)
    to.block.append(t.Let(name, value))
    return t.Ident(name)


def _conditions(reduce: ir.Reduce) -> tuple[ir.Expr, ...]:
    return conjuncts(conditional(reduce).condition)


def _bounds(to: Lowerer, reduce: ir.Reduce, index: ir.Index) -> Iterator[_Bound]:
    """Yield the bounds of an index by values that are the same in all of its loop."""
    for condition in _conditions(reduce):
        if not isinstance(condition, ir.Binary) or condition.op not in _MIRRORED:
            continue
        left, right = condition.left, condition.right
        if _is_index(left, index) and _is_known(to, right):
            yield condition.op, right
        elif _is_index(right, index) and _is_known(to, left):
            yield _MIRRORED[condition.op], left


def _deciding(to: Lowerer, reduce: ir.Reduce) -> Iterator[ir.Expr]:
    """Yield the conditions that are the same for all terms of a loop."""
    return (c for c in _conditions(reduce) if _is_known(to, c))


def _is_index(expr: ir.Expr, index: ir.Index) -> bool:
    if isinstance(expr, ir.Cast) and expr.type.is_integer:
        return _is_index(expr.operand, index)
    return expr == ir.IndexValue(index)


def _is_known(to: Lowerer, expr: ir.Expr) -> bool:
    """Whether a value is the same in all of a loop, and for all elements of an invocation."""
    # Indices of inner loops are not in `to.at` yet.
    used = free_indices(expr)
    names = (node.name for node in walk(expr) if isinstance(node, ir.LocalValue))
    locals_ = [to.locals.get(name) for name in names]
    return (
        used <= to.at.keys()
        and to.vector not in used
        and not holds_reduce(expr)
        and all(local is not None and not local.wide for local in locals_)
    )


def _begin(to: Lowerer, bound: _Bound, length: t.Expr) -> t.Expr:
    """Return the first index for which a lower bound holds, or one past the end."""
    op, expr = bound
    value = to.lower(expr).expr
    # Clamped before 1 is added, which could overflow.
    if expr.type is Scalar.U32:
        return t.call("min", value, length) + 1 if op == ">" else value
    if op == ">":
        before = t.call("clamp", value, t.Literal("-1"), t.call("i32", length))
        return t.call("u32", before + t.Literal("1"))
    return t.call("u32", t.call("max", value, t.Literal("0")))


def _end(to: Lowerer, bound: _Bound, length: t.Expr) -> t.Expr:
    """Return the index after the last one for which an upper bound holds."""
    op, expr = bound
    value = to.lower(expr).expr
    if expr.type is Scalar.U32:
        below = t.call("min", value, length)
        return below if op == "<" else t.call("min", below + 1, length)
    last = t.call("i32", length)
    if op == "<":
        return t.call("u32", t.call("clamp", value, t.Literal("0"), last))
    below = t.call("clamp", value, t.Literal("-1"), last - t.Literal("1"))
    return t.call("u32", below + t.Literal("1"))
