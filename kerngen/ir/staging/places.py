"""Rewrites of `argmax` and `argmin`, and of the idiom that means the same.

The idiom is a maximum, and the least index whose term is equal to it.  `join_places` makes
one `argmax` of it, which reads its terms once.  The other way round, `split_places_by_key`
makes the idiom of an `argmax` by key, as its two reductions are by key: their work is that
of the terms, not of terms times results.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce as fold
from typing import Final, final

from kerngen.ir import nodes as ir
from kerngen.ir.analysis.conditions import identity_of
from kerngen.ir.analysis.reads import free_indices, tensors_read
from kerngen.ir.staging.hoisting import Body, Fresh, named_let
from kerngen.ir.staging.keyed import conjuncts, keyed
from kerngen.ir.types import Scalar
from kerngen.ir.walk import map_children, with_indices

_EXTREME: Final[dict[ir.ReduceKind, ir.ReduceKind]] = {"argmax": "max", "argmin": "min"}
_PLACE: Final[dict[ir.ReduceKind, ir.ReduceKind]] = {"max": "argmax", "min": "argmin"}
_NONE: Final = ir.Constant(-1, Scalar.I32)
"""The place of no terms."""

_HIGHEST: Final = identity_of("min", Scalar.I32)
"""The least index of no terms: 2147483647."""


def split_places_by_key(body: Iterable[ir.Statement], fresh: Fresh) -> Body:
    """Rewrite an `argmax` by key as a maximum by key, then the least index with it.

    Before:  y[q] = argmax[i when key[i] == q] x[i];
    After:   let y_max[q] = max[i when key[i] == q] x[i];
             let y_min[q] = min[i when key[i] == q and x[i] == y_max[q]] i;
             y[q] = if y_min[q] == 2147483647 { -1 } else { y_min[q] };
    """
    return tuple(part for statement in body for part in _split(statement, fresh))


def _split(statement: ir.Statement, fresh: Fresh) -> Body:
    lets: list[ir.Statement] = []

    def name(wanted: str, value: ir.Reduce, indices: tuple[ir.Index, ...]) -> ir.Load:
        own = fresh.name(f"{statement.target.name}_{wanted}")
        let = named_let(statement, own, indices, value)
        lets.append(let)
        return ir.Load(let.target, tuple(map(ir.IndexValue, indices)))

    def visit(expr: ir.Expr, bound: frozenset[ir.Index]) -> ir.Expr:
        if not isinstance(expr, ir.Reduce):
            return map_children(expr, lambda child: visit(child, bound))
        inner = bound | {*expr.indices}
        expr_ = map_children(expr, lambda child: visit(child, inner))
        assert isinstance(expr_, ir.Reduce)
        # One that depends on an index of a reduction around it stays as it is.
        free = free_indices(expr_)
        if not expr_.finds_place or not free.isdisjoint(bound):
            return expr_
        extreme = replace(expr_, kind=_EXTREME[expr_.kind], type=expr_.body.type)
        if keyed(extreme) is None:
            return expr_
        # let y_max[q] = ...;    let y_min[q] = ...;
        indices = tuple(index for index in statement.indices if index in free)
        top = name(extreme.kind, extreme, indices)
        first = name("min", _first(extreme, top), indices)
        is_none = ir.Binary("==", first, _HIGHEST, Scalar.BOOL)
        return ir.Select(is_none, _NONE, first, Scalar.I32)

    if statement.along:
        return (statement,)
    value = visit(statement.value, frozenset())
    return (*lets, replace(statement, value=value))


def _first(extreme: ir.Reduce, top: ir.Load) -> ir.Reduce:
    """Return the least index whose term is the extreme `top`, or NaN.

    If a term is NaN, so is the extreme, and no term is equal to it.
    """
    is_top: ir.Expr = ir.Binary("==", extreme.body, top, Scalar.BOOL)
    if extreme.body.type is Scalar.F32:
        is_nan = ir.BuiltinCall("is_nan", (extreme.body,), Scalar.BOOL)
        is_top = ir.Binary("or", is_top, is_nan, Scalar.BOOL)
    holds = fold(_and, (*conjuncts(extreme.condition), is_top))
    (index,) = extreme.indices
    return ir.Reduce("min", (index,), ir.IndexValue(index), Scalar.I32, holds)


def _and(left: ir.Expr, right: ir.Expr) -> ir.Expr:
    return ir.Binary("and", left, right, Scalar.BOOL)


def join_places(body: Sequence[ir.Statement], fresh: Fresh) -> Body:
    """Rewrite a maximum and the least index with it as one `argmax`.

    Before:  let top[i] = max[j] x[i, j];    y[i] = min[j when x[i, j] == top[i]] j;
    After:   let top_at[i] = argmax[j] x[i, j];
             let top[i] = if top_at[i] >= 0 { x[i, top_at[i]] } else { -inf };
             y[i] = if top_at[i] >= 0 and not is_nan(top[i]) { top_at[i] } else { 2147483647 };
    """
    joiner = _Joiner(tuple(body), fresh)
    return joiner.joined()


@final
@dataclass(frozen=True)
class _Joiner:
    """Rewrites the idiom in the statements of one kernel."""

    body: Body
    fresh: Fresh

    def joined(self) -> Body:
        """Return the statements, with an `argmax` before each `max` whose place is looked for.

        Likewise with an `argmin` before each such `min`.
        """
        places: dict[int, ir.Statement] = {}
        after = list(self.body)
        for number, statement in enumerate(self.body):
            match statement.value:
                case ir.Reduce(
                    kind="min", indices=(_,)
                ) as least if not statement.along:
                    found = self._extreme_of(least, number)
                case _:
                    continue
            if found is None:
                continue
            # Several statements may read one extreme: it gets one `argmax`.
            at, top = found
            place = places.get(at) or self._place(self.body[at])
            places[at] = place
            value = _least(least, ir.Load(place.target, top.subscripts), top)
            after[number] = replace(statement, value=value)
        for at, place in places.items():
            after[at] = _at_place(self.body[at], place)
        pairs = ((places.get(number), each) for number, each in enumerate(after))
        return tuple(each for pair in pairs for each in pair if each is not None)

    def _extreme_of(self, least: ir.Reduce, number: int) -> tuple[int, ir.Load] | None:
        """Return the number of the extreme that terms are compared with, and its read.

        `least` is `min[j when x[i, j] == top[i]] j`: here that is the statement of `top`.
        """
        (index,) = least.indices
        match least.body:
            case ir.IndexValue(index=own) | ir.Cast(
                operand=ir.IndexValue(index=own)
            ) if (own == index):
                pass
            case _:
                return None
        parts = conjuncts(least.condition)
        for part in parts:
            rest = [each for each in parts if each is not part]
            for value, top in _equal_reads(part):
                at = self._defined(top, number)
                wanted = index, value, rest
                if at is not None and _is_extreme(self.body[at], top, wanted):
                    return at, top
        return None

    def _defined(self, top: ir.Load, number: int) -> int | None:
        """Return the only statement that wrote a tensor, if what it read has not changed."""
        written = [n for n, s in enumerate(self.body) if s.target == top.tensor]
        if len(written) != 1 or written[0] >= number or top.path:
            return None
        read = {*tensors_read(self.body[written[0]].value)}
        between = {s.target for s in self.body[written[0] : number]}
        return written[0] if read.isdisjoint(between) else None

    def _place(self, extreme: ir.Statement) -> ir.Statement:
        reduce = extreme.value
        assert isinstance(reduce, ir.Reduce)
        place = replace(reduce, kind=_PLACE[reduce.kind], type=Scalar.I32)
        name = self.fresh.name(f"{extreme.target.name}_at")
        return named_let(extreme, name, extreme.indices, place)


def _equal_reads(part: ir.Expr) -> Iterator[tuple[ir.Expr, ir.Load]]:
    """Yield both sides of equalities in a condition, the second of them a read."""
    if isinstance(part, ir.Binary) and part.op == "==":
        for value, top in ((part.left, part.right), (part.right, part.left)):
            if isinstance(top, ir.Load):
                yield value, top


def _is_extreme(
    statement: ir.Statement,
    top: ir.Load,
    wanted: tuple[ir.Index, ir.Expr, Sequence[ir.Expr]],
) -> bool:
    """Whether a statement is the extreme that an idiom needs.

    `wanted` are the idiom's index, the value that it compares, and its other conditions.
    """
    index, value, rest = wanted
    reduce = statement.value
    if statement.along or statement.is_partial or not isinstance(reduce, ir.Reduce):
        return False
    if reduce.kind not in _PLACE or len(reduce.indices) != 1 or keyed(reduce):
        return False
    if not isinstance(reduce.type, Scalar) or reduce.indices[0].extent != index.extent:
        return False
    if not all(isinstance(s, ir.IndexValue) for s in top.subscripts):
        return False
    # By the same indices, both compare the same values under the same conditions.
    by: dict[ir.Index, ir.Expr] = {reduce.indices[0]: ir.IndexValue(index)}
    for own, subscript in zip(statement.indices, top.subscripts, strict=True):
        assert isinstance(subscript, ir.IndexValue)
        by[own] = subscript
    conditions = {with_indices(c, by) for c in conjuncts(reduce.condition)}
    return with_indices(reduce.body, by) == value and conditions == {*rest}


def _at_place(extreme: ir.Statement, place: ir.Statement) -> ir.Statement:
    """Return the statement of an extreme, computed as the term at its place."""
    reduce = extreme.value
    assert isinstance(reduce, ir.Reduce)
    at = ir.Load(place.target, tuple(map(ir.IndexValue, extreme.indices)))
    term = with_indices(reduce.body, {reduce.indices[0]: at})
    nothing = identity_of(reduce.kind, reduce.type)
    return replace(extreme, value=ir.Select(_is_there(at), term, nothing, reduce.type))


def _least(least: ir.Reduce, at: ir.Load, top: ir.Load) -> ir.Expr:
    """Return the idiom's value: the place, or the highest integer if no term is equal."""
    is_there = _is_there(at)
    if top.type is Scalar.F32:
        is_nan = ir.BuiltinCall("is_nan", (top,), Scalar.BOOL)
        is_there = _and(is_there, ir.Unary("not", is_nan, Scalar.BOOL))
    place = at if least.type is Scalar.I32 else ir.Cast(at, least.type)
    return ir.Select(is_there, place, identity_of("min", least.type), least.type)


def _is_there(at: ir.Expr) -> ir.Expr:
    return ir.Binary(">=", at, ir.Constant(0, Scalar.I32), Scalar.BOOL)
