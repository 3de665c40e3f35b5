"""Shaders for `argmax` and `argmin`: the position of the greatest or least number.

Partial results are pairs, of the number's rank and its place.  A rank is an i32 that
orders numbers of any type, by their bits, so that NaN is ordered too: as in NumPy it is
above all others, and for `argmin` below.  Of equal ranks the first place is taken, so
that pairs may be joined in any order.  `better` joins two:

    best = better(best, vec2i(float_rank(x[j]), i32(j)));
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kerngen.ir.nodes import IndexValue, Reduce
from kerngen.ir.types import Scalar, ValueType, Vector
from kerngen.schedule.lowering.values import LANES, Value
from kerngen.shader import tree as t

if TYPE_CHECKING:
    from kerngen.schedule.lowering.builder import ShaderBuilder
    from kerngen.schedule.lowering.expressions import Lowerer

BETTER: Final = "better"
"""The helper in shaders that joins two pairs; `no_place` declares it."""

_LOWEST: Final = t.Literal("i32(-2147483648)")
_NOWHERE: Final = t.Literal("-1")


def partial_type(reduce: Reduce) -> ValueType:
    """Return the type of a reduction's partial results: for `argmax`, rank and place."""
    return Vector(Scalar.I32, 2) if reduce.finds_place else reduce.type


def no_place(shader: ShaderBuilder) -> t.Expr:
    """Return the pair that `argmax` and `argmin` start from: the lowest rank, at position -1.

    The helper `better`, which joins pairs, is declared as well.
    """
    shader.helper(BETTER, 1)
    return t.Call("vec2i", (_LOWEST, _NOWHERE))


def best_in_subgroup(shader: ShaderBuilder) -> str:
    """Declare a shader function that joins the pairs of a subgroup's lanes; return its name."""
    return shader.helper("best_in_subgroup", 1)


def term_of(lowerer: Lowerer, reduce: Reduce, *, wide: bool) -> t.Expr:
    """Return the next term of a reduction, or a vector of the next four terms if `wide`.

    For `argmax` and `argmin` a term is a pair of rank and place; if `wide`, it is the best of
    the four pairs.
    """
    if not reduce.finds_place:
        value = lowerer.lower(reduce.body)
        return lowerer.widen(value, reduce.type) if wide else value.expr
    rank, place = _rank(lowerer, reduce), _place(lowerer, reduce)
    if not wide:
        return t.Call("vec2i", (rank.expr, place.expr))
    lowerer.shader.helper(BETTER, 1)
    best = lowerer.shader.helper("best_of_four", 1)
    both = (lowerer.widen(value, Scalar.I32) for value in (rank, place))
    return t.call(best, *both)


def whole_of(reduce: Reduce, partial: Value) -> Value:
    """Return a reduction's result from its final partial result: of a pair, the place."""
    return Value(t.Member(partial.expr, "y")) if reduce.finds_place else partial


def find_serially(lowerer: Lowerer, reduce: Reduce) -> Value:
    """Emit a serial loop that finds a position; four at once, if four elements are computed.

        var y_argmax_rank = i32(-2147483648);
        var y_argmax = -1;
        for (var j = 0u; j < u.n; j += 1u) {
            let rank = float_rank(x[...]);
            let place = i32(j);
            let is_better = (rank > y_argmax_rank) | ((y_argmax < 0) & (place >= 0));
            y_argmax_rank = select(y_argmax_rank, rank, is_better);
            y_argmax = select(y_argmax, place, is_better);
        }

    The part behind `|` accepts the first term even if its rank is the lowest of all.
    """
    shader, label = lowerer.shader, f"{lowerer.label}_{reduce.kind}"
    best, found = (t.Ident(shader.fresh(f"{label}{end}")) for end in ("_rank", ""))
    inner = lowerer.nested(lowerer.counters(reduce.indices))
    parts = (_rank(inner, reduce), Scalar.I32), (_place(inner, reduce), Scalar.I32)
    wide, (rank_value, place_value) = inner.together(*parts)
    rank, place, is_better = (
        t.Ident(shader.fresh(name)) for name in ("rank", "place", "is_better")
    )
    # `&` and `|` instead of `&&` and `||`, as both sides may be vectors of bool.
    zero = t.Call("vec4i", (t.Literal("0"),)) if wide else t.Literal("0")
    is_first = t.Binary("&", found < zero, t.Binary(">=", place, zero))
    inner.block.extend(
        [
            t.Let(rank.name, rank_value),
            t.Let(place.name, place_value),
            t.Let(is_better.name, t.Binary("|", t.Binary(">", rank, best), is_first)),
            t.Assign(best, t.call("select", best, rank, is_better)),
            t.Assign(found, t.call("select", found, place, is_better)),
        ]
    )
    for name, start in ((best, _LOWEST), (found, _NOWHERE)):
        value: t.Expr = t.Call("vec4i", (start,)) if wide else start
        lowerer.block.append(t.Var(name.name, value))
    lowerer.block.extend(lowerer.serial_loops(reduce.indices, inner.block))
    return Value(found, wide)


def _rank(lowerer: Lowerer, reduce: Reduce) -> Value:
    """Return the rank of a term; the lowest one if the condition leaves the term out.

    For `argmin` the order is reversed: by `-x` for floats, by `~x` for integers, as `-x` would
    overflow for the lowest one.
    """
    value = lowerer.lower(reduce.body)
    lanes = LANES if value.wide else 1
    least = reduce.kind == "argmin"
    match reduce.body.type:
        case Scalar.F32:
            number = t.Unary("-", value.expr) if least else value.expr
            rank = t.call(lowerer.shader.helper("float_rank", lanes), number)
        case Scalar.U32:
            number = t.Unary("~", value.expr) if least else value.expr
            rank = t.call(lowerer.shader.helper("unsigned_rank", lanes), number)
        case _:
            rank = t.Unary("~", value.expr) if least else value.expr
    return _where_it_holds(lowerer, reduce, Value(rank, value.wide), _LOWEST)


def _place(lowerer: Lowerer, reduce: Reduce) -> Value:
    """Return the place of a term; -1 where the condition leaves it out."""
    (index,) = reduce.indices
    place = lowerer.lower(IndexValue(index))
    return _where_it_holds(lowerer, reduce, place, _NOWHERE)


def _where_it_holds(
    lowerer: Lowerer, reduce: Reduce, value: Value, otherwise: t.Expr
) -> Value:
    """Return a value where the condition of a reduction holds, if it has one."""
    if reduce.condition is None:
        return value
    holds = lowerer.lower(reduce.condition)
    if not (holds.wide or value.wide):
        return Value(t.call("select", otherwise, value.expr, holds.expr))
    truthy = lowerer.widen(value, Scalar.I32)
    falsy = t.Call("vec4i", (otherwise,))
    return Value(t.call("select", falsy, truthy, holds.expr), wide=True)
