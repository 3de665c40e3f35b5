"""Recognise reductions by key, by prefix and by range, by their conditions.

    sum[i when ids[i] == u32(q)] x[i]                     by key: `Keyed`, as np.add.at
    sum[j when j <= i] x[j]                               a prefix: `Prefix`, as np.cumsum
    sum[p when p >= start[i] and p < start[i + 1]] x[p]   a range that is read: `Ragged`

None of them needs to compare each term with each result.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce as fold
from typing import Final, final

from kerngen.ir import nodes as ir
from kerngen.ir.analysis.affine import affine_form, as_literal
from kerngen.ir.analysis.reads import free_indices
from kerngen.ir.types import Scalar
from kerngen.ir.walk import map_children, walk, with_indices

_FLIPPED: Final[dict[ir.BinaryOp, ir.BinaryOp]] = {
    "<": ">",
    "<=": ">=",
    ">": "<",
    ">=": "<=",
}
_OPPOSITE: Final[dict[ir.BinaryOp, ir.BinaryOp]] = {
    "<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "==",
}  # fmt: skip
_BEYOND: Final[dict[ir.BinaryOp, int]] = {"<": -1, "<=": 0, ">": 1, ">=": 0}
"""The shift that makes `j <= i + shift` of `j < i`, and `j >= i + shift` of `j > i`."""

_FARTHEST: Final = 1 << 24
"""Literal shifts below it are taken not to overflow in a sum with an index."""


@final
@dataclass(frozen=True)
class Key:
    """A key of a term: `value`, as `ids[i]`, is the number of the result that it is added to.

    `index` is the index of the results, q.
    """

    value: ir.Expr
    index: ir.Index


@final
@dataclass(frozen=True)
class Keyed:
    """A reduction by key, taken apart: `sum[i when ids[i] == u32(q) and c] x[i, j]`.

    `reduce` has the body and the rest of the condition, `c`, and is free of q, the index of
    the results: where the source has q in them, as in `x[i] - top[q]`, the key replaces it:
    `x[i] - top[ids[i]]`.
    """

    reduce: ir.Reduce
    keys: tuple[Key, ...]


@final
@dataclass(frozen=True)
class Prefix:
    """A prefix reduction, taken apart: `sum[j when j <= i + shift and c] x[j]`.

    A suffix reduction has `j >= i + shift`.  `reduce` has the body and the rest of the
    condition, `c`; neither depends on `index`, i.  `shift` contains only literals and dims.
    """

    reduce: ir.Reduce
    index: ir.Index
    shift: ir.Expr
    is_suffix: bool


@final
@dataclass(frozen=True)
class Ragged:
    """A reduction over ranges that are read, taken apart: the rows of a sparse matrix.

        sum[p when p >= start[i] and p < start[i + 1] and c] x[p]

    The range is from the largest of `begins` up to, but without, the least of `ends`.  Each
    begin or end is a pair: an integer expression, and a number that is added to it, 1 for
    `p > ...` and `p <= ...`, else 0.  `rows` are the indices of the result that begins and
    ends depend on.  `reduce` has the body and the rest of the condition, `c`.
    """

    reduce: ir.Reduce
    begins: tuple[tuple[ir.Expr, int], ...]
    ends: tuple[tuple[ir.Expr, int], ...]
    rows: frozenset[ir.Index]


def conjuncts(condition: ir.Expr | None) -> tuple[ir.Expr, ...]:
    """Return the conditions that `and` joins in a condition; none if there is no condition.

    `a and not (j > i or c)` has `a`, `j <= i` and `not c`, where j and i are integers.
    """
    match condition:
        case None:
            return ()
        case ir.Binary(op="and", left=left, right=right):
            return (*conjuncts(left), *conjuncts(right))
        case ir.Unary(op="not", operand=ir.Binary(op="or", left=left, right=right)):
            return (*conjuncts(_negated(left)), *conjuncts(_negated(right)))
        case ir.Unary(op="not", operand=ir.Binary() as compared):
            op = _OPPOSITE.get(compared.op)
            is_exact = compared.left.type.is_integer
            return (replace(compared, op=op) if op and is_exact else condition,)
        case _:
            return (condition,)


def _negated(condition: ir.Expr) -> ir.Expr:
    return ir.Unary("not", condition, Scalar.BOOL)


def keyed(reduce: ir.Reduce) -> Keyed | None:
    """Return a reduction by key, taken apart; None for others, and for `argmax` and `argmin`.

    Positions that an `argmax` found in parts of the terms can't be joined without the values
    there.
    """
    return None if reduce.finds_place else _by_keys(reduce)


def keyed_place(reduce: ir.Reduce) -> Keyed | None:
    """Return an `argmax` or `argmin` by key, taken apart; None for any other reduction."""
    return _by_keys(reduce) if reduce.finds_place else None


def _by_keys(reduce: ir.Reduce) -> Keyed | None:
    # One key for each index; all other conditions are the rest.
    keys: dict[ir.Index, Key] = {}
    rest: list[ir.Expr] = []
    for part in conjuncts(reduce.condition):
        key = _key(part, reduce.indices)
        if key is None or key.index in keys:
            rest.append(part)
        else:
            keys[key.index] = key
    # A key must not depend on an index that a key sets.
    used = frozenset[ir.Index]().union(*(free_indices(k.value) for k in keys.values()))
    if not keys or not used.isdisjoint(keys):
        return None
    # In the rest and the body, keys replace the indices that they set.
    by = {key.index: _as_index(key.value) for key in keys.values()}
    kept = map_children(_under(reduce, rest), lambda child: with_indices(child, by))
    assert isinstance(kept, ir.Reduce)
    return Keyed(kept, tuple(keys.values()))


def _as_index(key: ir.Expr) -> ir.Expr:
    return key if key.type is Scalar.I32 else ir.Cast(key, Scalar.I32)


def _key(part: ir.Expr, indices: tuple[ir.Index, ...]) -> Key | None:
    """Return the key that a condition compares with an index, if it does."""
    if (
        not isinstance(part, ir.Binary)
        or part.op != "=="
        or not part.left.type.is_integer
    ):
        return None
    # The key varies with the reduction's indices, and the index is none of them.
    for value, other in ((part.left, part.right), (part.right, part.left)):
        index = _index_of(other)
        varies = not free_indices(value).isdisjoint(indices)
        if index is not None and index not in indices and varies:
            return Key(value, index)
    return None


def _index_of(expr: ir.Expr) -> ir.Index | None:
    """Return the index whose value an expression is, `i` or `u32(i)`, or None."""
    match expr:
        case ir.IndexValue(index=index):
            return index
        case ir.Cast(operand=ir.IndexValue(index=index)) if expr.type.is_integer:
            return index
        case _:
            return None


def prefix_of(reduce: ir.Reduce) -> Prefix | None:
    """Return a prefix or suffix reduction, taken apart; None for any other reduction."""
    if reduce.finds_place or len(reduce.indices) != 1:
        return None
    parts = conjuncts(reduce.condition)
    for place, part in enumerate(parts):
        found = _bound(part, reduce.indices[0])
        if found is None:
            continue
        op, index, shift = found
        kept = _under(reduce, [*parts[:place], *parts[place + 1 :]])
        if index not in free_indices(kept):
            return Prefix(kept, index, shift, is_suffix=op in {">", ">="})
    return None


def ragged(reduce: ir.Reduce) -> Ragged | None:
    """Return a reduction over ranges that are read, taken apart; None for other reductions.

    None, too, for an `argmax` or `argmin`, and for terms that depend on `rows`.
    """
    found = None if reduce.finds_place else ranges_read(reduce)
    if found is None or not found.rows.isdisjoint(free_indices(found.reduce)):
        return None
    return found


def ranges_read(reduce: ir.Reduce) -> Ragged | None:
    """Return a reduction over ranges that are read, taken apart; None for any other reduction.

    Unlike in `ragged`, its terms may depend on the row, and it may be an `argmax`.
    """
    if len(reduce.indices) != 1:
        return None
    begins, ends = list[tuple[ir.Expr, int]](), list[tuple[ir.Expr, int]]()
    rest = list[ir.Expr]()
    for part in conjuncts(reduce.condition):
        bound = _read_bound(part, reduce.indices[0])
        if bound is None:
            rest.append(part)
        else:
            # `p > b` begins at b + 1; `p <= e` ends before e + 1.
            op, value = bound
            added = 1 if op in {">", "<="} else 0
            (begins if op in {">", ">="} else ends).append((value, added))
    rows = frozenset[ir.Index]().union(*(free_indices(x) for x, _ in (*begins, *ends)))
    if not begins or not ends or not rows:
        return None
    return Ragged(_under(reduce, rest), (*begins,), (*ends,), rows)


def _read_bound(part: ir.Expr, own: ir.Index) -> tuple[ir.BinaryOp, ir.Expr] | None:
    """Return how a condition bounds an index by an expression with a read, if it does."""
    if not isinstance(part, ir.Binary) or part.op not in _FLIPPED:
        return None
    sides: tuple[tuple[ir.BinaryOp, ir.Expr, ir.Expr], ...] = (
        (part.op, part.left, part.right),
        (_FLIPPED[part.op], part.right, part.left),
    )
    for op, index, value in sides:
        is_read = any(isinstance(node, ir.Load) for node in walk(value))
        if _index_of(index) == own and is_read and own not in free_indices(value):
            return op, value
    return None


def bounding_index(reduce: ir.Reduce) -> ir.Index | None:
    """Return the index i of `sum[j when j <= i + shift] ...`, or None for other reductions.

    Unlike in `prefix_of`, the terms may depend on i, too.
    """
    if len(reduce.indices) != 1:
        return None
    bounds = (_bound(part, reduce.indices[0]) for part in conjuncts(reduce.condition))
    return next((found[1] for found in bounds if found), None)


def _bound(
    part: ir.Expr, own: ir.Index
) -> tuple[ir.BinaryOp, ir.Index, ir.Expr] | None:
    """
    Return how a condition bounds the reduction's index by one of the result.

    Before:  i - 2 > j, own index j
    After:   <, i, -3               as j < i - 2 is j <= i - 3
    """
    if not isinstance(part, ir.Binary) or part.op not in _FLIPPED:
        return None
    if part.left.type is not Scalar.I32:
        return None
    ways: tuple[tuple[ir.BinaryOp, ir.Expr, ir.Expr], ...] = (
        (part.op, part.left, part.right),
        (_FLIPPED[part.op], part.right, part.left),
    )
    # `high - low` must be `i - j + offset`, of a result's index i and the own index j.
    for op, low, high in ways:
        form = affine_form(ir.Binary("-", high, low, Scalar.I32))
        if form is None or own not in form.terms or len(form.terms) != 2:
            return None
        (index,) = form.terms.keys() - {own}
        if form.coefficient(own) == -1 and form.coefficient(index) == 1:
            shift = _moved(form.offset, _BEYOND[op])
            return (op, index, shift) if _is_near(shift) else None
    return None


def _moved(offset: ir.Expr, step: int) -> ir.Expr:
    """Return `offset + step`, as a literal if the offset is one."""
    known = as_literal(offset)
    if known is not None:
        return ir.Constant(known + step, Scalar.I32)
    by = ir.Constant(step, Scalar.I32)
    return ir.Binary("+", offset, by, Scalar.I32) if step else offset


def _is_near(shift: ir.Expr) -> bool:
    """Whether a shift is a sum of small literals and dims, so that it can't overflow."""
    return all(
        isinstance(part, ir.DimValue)
        or (isinstance(part, ir.Binary | ir.Unary) and part.op in {"+", "-"})
        or (
            isinstance(part, ir.Constant | ir.ConstRef)
            and abs(as_literal(part) or 0) < _FARTHEST
        )
        for part in walk(shift)
    )


def _under(reduce: ir.Reduce, conditions: list[ir.Expr]) -> ir.Reduce:
    """Return a reduction with these conditions in place of its own."""
    condition = None
    if conditions:
        condition = fold(lambda a, b: ir.Binary("and", a, b, Scalar.BOOL), conditions)
    return replace(reduce, condition=condition)
