"""Guards: the conditions outside of which the adjoint of a value is 0.

    let r[i] = sqrt(x[i]);
    y[i] = if x[i] > 0.0 { r[i] * r[i] + r[i] } else { 0.0 };

The adjoint of `r[i]` is 0 where `x[i] > 0.0` is false, and the slope of `sqrt` is infinite
where `x[i]` is 0.  Their product would be NaN, so the adjoint of `x[i]` has the condition,
too:

    let dr[i] = if x[i] > 0.0 { dy[i] * (2.0 * r[i] + 1.0) } else { 0.0 };
    dx[i] = if x[i] > 0.0 { 0.5 * dr[i] / sqrt(x[i]) } else { 0.0 };
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Final, TypeAlias, assert_never, final

from kerngen.gradient.composites import (
    LETTERS,
    ZERO,
    Number,
    direction_of,
    is_real,
    is_zero,
    number_of,
    numbers_of,
    place_of,
)
from kerngen.gradient.indices import free_indices
from kerngen.gradient.integers.conditions import BOOL, all_hold, conjuncts, negated
from kerngen.gradient.terms import Term, substituted
from kerngen.ir import nodes as ir
from kerngen.ir.analysis.affine import as_literal
from kerngen.ir.analysis.reads import tensors_read
from kerngen.ir.staging.keyed import prefix_of
from kerngen.ir.store import StoreAt
from kerngen.ir.types import Scalar
from kerngen.ir.walk import subscript_value, walk

Way: TypeAlias = tuple[ir.Expr, ...]
"""A conjunction of conditions: one of the ways in which a value is not 0."""

_WITH_POLES: Final = frozenset({
    "acos", "acosh", "asin", "atanh", "inverseSqrt", "log", "log1p", "log2", "pow",
    "sqrt", "tan",
})  # fmt: skip
"""Built-ins whose value or slope is infinite or NaN at some number: `sqrt` at 0."""


@final
@dataclass(frozen=True)
class AdjointCondition:
    """A condition outside of which an adjoint is 0.

    `counts`: it reads how many terms a sum has, `r_taken[i] > 0.0`, at the cost of a sum.
    """

    condition: ir.Expr
    counts: bool


ByNumber: TypeAlias = Mapping[Number, tuple[AdjointCondition, ...]]
"""The guards of each number of a value."""


@final
@dataclass
class Guards:
    """Finds the conditions of adjoints, and remembers those of their lets.

    A vector or matrix has conditions for each of its numbers.
    """

    _known: dict[ir.Tensor, tuple[tuple[ir.Index, ...], ByNumber]] = field(
        default_factory=dict[ir.Tensor, tuple[tuple[ir.Index, ...], ByNumber]]
    )
    _counts: set[ir.Tensor] = field(default_factory=set[ir.Tensor])

    def record(
        self, let: ir.Load, indices: tuple[ir.Index, ...], guards: ByNumber
    ) -> None:
        """Record the guards of a let's numbers; one that is missing in `guards` is always 0."""
        self._known[let.tensor] = indices, guards

    def record_count(
        self, let: ir.Load, indices: tuple[ir.Index, ...], count: ir.Load
    ) -> None:
        """Record the let `count` of how many terms a sum has: where it is 0, so is the sum."""
        self._counts.add(count.tensor)
        is_any = AdjointCondition(ir.Binary(">", count, ZERO, BOOL), counts=True)
        self.record(let, indices, dict.fromkeys(numbers_of(let.type), (is_any,)))

    def of(self, terms: Iterable[Term]) -> ByNumber:
        """Return the guards of an adjoint, which is a sum of terms.

        Numbers that are 0 everywhere are left out.
        """
        # A number is not 0 in one of several ways: where some term's conditions are true,
        # and those of the number itself in the term's vector.
        parts = [(self._way(rest), own) for rest, own in map(direction_of, terms)]
        ways: dict[Number, list[Way]] = {}
        for way, own in parts:
            for number in numbers_of(own.type):
                more = self._ways(number_of(own, number))
                ways.setdefault(number, []).extend((*way, *each) for each in more)
        return {number: self._guards(each) for number, each in ways.items() if each}

    def _guards(self, ways: list[Way]) -> tuple[AdjointCondition, ...]:
        return tuple(
            AdjointCondition(
                condition, any(t in self._counts for t in tensors_read(condition))
            )
            for condition in _wherever(ways)
        )

    def _way(self, term: Term) -> Way:
        """Return the conditions outside of which a term is 0."""
        of_lets = (c for atom in term.factors for c in self._of_let(atom))
        return (*term.conditions, *of_lets)

    def _ways(self, value: ir.Expr) -> Iterator[Way]:
        """Yield the conditions under which a number of a vector or matrix is not 0."""
        match value:
            case ir.Select(condition=condition, then=then, otherwise=otherwise):
                for holds, own in (condition, then), (negated(condition), otherwise):
                    for way in self._ways(own):
                        yield (*conjuncts(holds), *way)
            case ir.Binary(op="*" | "/", left=left, right=right):
                for way in self._ways(left):
                    yield from ((*way, *more) for more in self._ways(right))
            case ir.Binary(op="+" | "-", left=left, right=right):
                yield from self._ways(left)
                yield from self._ways(right)
            case ir.Unary(operand=operand):
                yield from self._ways(operand)
            case _ if not is_zero(value) and not self._is_zero(value):
                yield tuple(self._of_let(value))
            case _:
                return

    def _is_zero(self, atom: ir.Expr) -> bool:
        """Whether a number of a let is 0 everywhere."""
        load, number = _read_of(atom)
        if not isinstance(load, ir.Load) or load.tensor not in self._known:
            return False
        return number not in self._known[load.tensor][1]

    def _of_let(self, atom: ir.Expr) -> Iterator[ir.Expr]:
        load, number = _read_of(atom)
        if isinstance(load, ir.Load) and load.tensor in self._known:
            indices, guards = self._known[load.tensor]
            by = dict(zip(indices, map(subscript_value, load.subscripts), strict=True))
            known = guards.get(number, ())
            yield from (substituted(guard.condition, by) for guard in known)


def _read_of(atom: ir.Expr) -> tuple[ir.Expr, Number]:
    """Return the vector or matrix that a number is a part of, and its position there."""
    match atom:
        case ir.Swizzle(operand=operand, components=letter) if len(letter) == 1:
            place = LETTERS.index(letter)
        case ir.Part(operand=operand, at=at) if (found := place_of(at)) is not None:
            place = found
        case _:
            return atom, ()
    whole, number = _read_of(operand)
    return whole, (*number, place)


def alike(guards: ByNumber) -> dict[tuple[AdjointCondition, ...], frozenset[Number]]:
    """Return the numbers of a value, grouped by their guards."""
    return {
        each: frozenset(n for n, own in guards.items() if own == each)
        for each in guards.values()
    }


def shared(guards: ByNumber) -> tuple[AdjointCondition, ...]:
    """Return the guards that all numbers have."""
    first, *others = guards.values()
    return tuple(guard for guard in first if all(guard in each for each in others))


def _wherever(ways: Iterable[Way]) -> Way:
    """Return the disjunction of ways, as conditions that are joined by `and`.

    Of (a, b) and (a, c) that is (a, b or c).
    """
    found = _resolved([tuple(dict.fromkeys(way)) for way in ways])
    shared = [c for c in found[0] if all(c in way for way in found)]
    rest = [tuple(c for c in way if c not in shared) for way in found]
    return (*shared, _either(rest)) if all(rest) else tuple(shared)


def _either(ways: Iterable[Way]) -> ir.Expr:
    return reduce(lambda a, b: ir.Binary("or", a, b, BOOL), map(all_hold, ways))


def _resolved(ways: list[Way]) -> list[Way]:
    """Return a simpler disjunction: (a, c) and (a, not c) become (a), which absorbs (a, b)."""
    for one in ways:
        for condition in one:
            rest = tuple(c for c in one if c != condition)
            if any({*rest, negated(condition)} == {*other} for other in ways):
                return _resolved([*(w for w in ways if not {*rest} <= {*w}), rest])
    sets = dict.fromkeys(map(frozenset, ways))
    return [
        next(way for way in ways if frozenset(way) == each)
        for each in sets
        if not any(other < each for other in sets)
    ]


def is_never_empty(inside: Term) -> bool:
    """Whether a sum always has a term, whatever the program's conditions leave out."""
    doubtful = [c for c in inside.conditions if c not in inside.solved]
    return not doubtful or (
        len(doubtful) == 1 and _is_of_parts(doubtful[0], inside.bound)
    )


def _is_of_parts(condition: ir.Expr, bound: tuple[ir.Index, ...]) -> bool:
    """Whether a condition takes a prefix or suffix that is never empty: `j <= i`."""
    own = tuple(index for index in bound if index in free_indices(condition))
    found = prefix_of(
        ir.Reduce("sum", own, ir.Constant(1.0, Scalar.F32), Scalar.F32, condition)
    )
    if found is None or found.reduce.condition is not None:
        return False
    if found.index.extent != own[0].extent:
        return False
    shift = as_literal(found.shift)
    return shift is not None and (shift <= 0 if found.is_suffix else shift >= 0)


def has_reduce(value: ir.Expr) -> bool:
    """Whether a value is, or contains, a reduction."""
    return any(isinstance(node, ir.Reduce) for node in walk(value))


def has_pole(value: ir.Expr) -> bool:
    """Whether a value, or its slope, may be infinite or NaN: a quotient, a logarithm."""
    return any(_is_pole(node) for node in walk(value))


def has_slopes(value: ir.Expr) -> bool:
    """Whether a value does more than copy and add: its slopes are numbers that may be NaN."""
    return any(_has_slope(node) for node in walk(value) if is_real(node.type))


def _has_slope(node: ir.Expr) -> bool:
    match node:
        case ir.BuiltinCall() | ir.FunctionCall():
            return True
        case ir.Binary(op=op):
            return op in {"*", "/", "%"}
        case ir.Constant() | ir.ConstRef() | ir.UniformValue() | ir.LocalValue():
            return False
        case ir.IndexValue() | ir.DimValue() | ir.Load() | StoreAt() | ir.Cast():
            return False
        case ir.Swizzle() | ir.Part() | ir.Construct() | ir.Unary() | ir.Select():
            return False
        case ir.Reduce():
            return False
        case _:
            assert_never(node)


def _is_pole(node: ir.Expr) -> bool:
    """Whether an operation may be infinite or NaN; a function with derivatives may be, too."""
    match node:
        case ir.Binary(op="/" | "%", type=type_):
            return is_real(type_)
        case ir.BuiltinCall(builtin=name):
            return name in _WITH_POLES
        case ir.Binary():
            return False
        case _:
            return _has_slope(node)


def needed(
    guards: Iterable[AdjointCondition], adjoint: Term, term: Term, *, is_product: bool
) -> tuple[ir.Expr, ...]:
    """Return the guards that a term must have, as 0 times its slope may be NaN.

    Around a product of matrices a guard would hide it from `gemm`, and a count costs a sum:
    in these two cases only slopes with a pole are guarded.  In all others every slope is
    that differs from element to element.
    """
    own = [part for atom in adjoint.factors for part in walk(atom)]
    slopes = {a: e for a, e in term.factors.items() if adjoint.factors.get(a) != e}
    varying = {a: e for a, e in slopes.items() if _varies(a) and not _is_number(a, own)}
    poles = any(
        e < 0 or e.denominator > 1 or has_pole(atom) for atom, e in varying.items()
    )
    return tuple(
        guard.condition
        for guard in guards
        if (poles if is_product or guard.counts else varying)
    )


def _is_number(atom: ir.Expr, adjoint: Iterable[ir.Expr]) -> bool:
    """Whether a factor is a number of the adjoint, a vector or matrix."""
    whole, number = _read_of(atom)
    return bool(number) and whole in adjoint


def _varies(atom: ir.Expr) -> bool:
    """Whether a factor differs from element to element: it reads a tensor, or has an index."""
    if isinstance(atom, ir.Cast | ir.UniformValue | ir.IndexValue):
        return False
    return any(isinstance(node, ir.Load) for node in walk(atom)) or bool(
        free_indices(atom)
    )
