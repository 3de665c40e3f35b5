"""Recognise sorted positions: sums that count the elements before each one in order.

    place[i] = sum[j when key[j] < key[i] or key[j] == key[i] and j < i] 1

Elements with smaller keys come before an element, and those with the same key and a smaller
number: so the places are those of a stable sort, which need not compare all pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from kerngen.ir.nodes import Binary, Constant, Expr, Index, IndexValue, Reduce
from kerngen.ir.walk import walk, with_indices

_FLIPPED = {"<": ">", ">": "<"}


@final
@dataclass(frozen=True)
class Order:
    """An order of elements by an integer `key`, an expression that depends on `index`.

    It goes upwards, or downwards if it is `descending`.  Floats are no keys, as NaN has no
    place in an order.
    """

    key: Expr
    index: Index
    descending: bool


def order_of(reduce: Reduce) -> Order | None:
    """Return the order in which a reduction counts the elements before each one.

    None if it is not such a sum.
    """
    counts = isinstance(reduce.body, Constant) and reduce.body.value == 1
    if not counts or reduce.kind != "sum" or len(reduce.indices) != 1:
        return None
    # The two sides of `or`, and those of `and`, may be in any order.
    match reduce.condition:
        case Binary("or", Binary("and") as equal, unlike) | Binary(
            "or", unlike, Binary("and") as equal
        ):
            return _order(reduce.indices[0], equal, unlike)
        case _:
            return None


def _order(own: Index, equal: Binary, unlike: Expr) -> Order | None:
    """Return the order by two conditions, or None.

    `equal` is `key[j] == key[i] and j < i`, `unlike` is `key[j] < key[i]`.
    """
    for same, earlier in ((equal.left, equal.right), (equal.right, equal.left)):
        index = _follows(own, earlier)
        if index is None or index.extent != own.extent:
            continue
        keys = _compared(own, unlike)
        if keys is None or not isinstance(same, Binary) or same.op != "==":
            continue
        other, key, op = keys
        if {same.left, same.right} == {other, key} and _is_key(own, index, other, key):
            return Order(key, index, descending=op == ">")
    return None


def _follows(own: Index, earlier: Expr) -> Index | None:
    """Return i of `j < i` or `i > j`."""
    match earlier:
        case Binary("<", IndexValue(first), IndexValue(index)) | Binary(
            ">", IndexValue(index), IndexValue(first)
        ) if (first == own):
            return index
        case _:
            return None


def _compared(own: Index, unlike: Expr) -> tuple[Expr, Expr, str] | None:
    """Return the keys of a comparison, the other element's first, and its operator."""
    if not isinstance(unlike, Binary) or unlike.op not in _FLIPPED:
        return None
    left, right = unlike.left, unlike.right
    if any(isinstance(n, IndexValue) and n.index == own for n in walk(left)):
        return left, right, unlike.op
    return right, left, _FLIPPED[unlike.op]


def _is_key(own: Index, index: Index, other: Expr, key: Expr) -> bool:
    """Whether two integers are the same key, of element `own` and of element `index`."""
    there = with_indices(other, {own: IndexValue(index)})
    return key.type.is_integer and there == key and other != key
