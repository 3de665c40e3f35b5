"""Proofs about integers: whether a polynomial is never negative, or never 0.

`2 * r - j` is never negative where `j < 2 * r`: that fact, `2 * r - j - 1`, is taken away, and
1 is left.  A proof takes facts away until no term is negative, or no fact fits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, final

from kerngen.gradient.integers.forms import (
    Form,
    Monomial,
    PolyVariable,
    coefficient,
    combined,
    divided,
    form_of,
    length,
    plus,
    scaled,
    value_of,
    variables,
)
from kerngen.ir import nodes as ir
from kerngen.ir.types import Scalar
from kerngen.ir.walk import map_children

_I32: Final = Scalar.I32
_DEEPEST: Final = 3
"""How many facts a proof combines at most: each multiplies its time by the number of facts."""


@final
@dataclass
class IntegerFacts:
    """The known facts about the integers of a kernel.

    - `defined`: the values of derived dims and hosts, and of multiples: c is 4 * (c / 4)
      where `c % 4 == 0` is required
    - `positive`: integers that are at least 1
    - `nonzero`: integers that are not 0 wherever an element is read
    - `assumed`: forms that are never negative, by the kernel's requirements
    """

    defined: dict[ir.Expr, ir.Expr]
    positive: set[ir.Expr] = field(default_factory=set[ir.Expr])
    assumed: tuple[Form, ...] = ()
    nonzero: frozenset[ir.Expr] = frozenset()
    _whole: dict[PolyVariable, Form] = field(default_factory=dict[PolyVariable, Form])
    _tried: list[dict[object, tuple[int, bool]]] = field(
        default_factory=list[dict[object, tuple[int, bool]]]
    )
    _known: dict[object, bool] = field(default_factory=dict[object, bool])

    def whole(self, form: Form) -> Form:
        """Return a form with hosts and derived lengths replaced by their definitions."""
        if all(self._resolved(v) == {(v,): 1} for m in form for v in m):
            return form
        total: Form = {}
        for monomial, factor in form.items():
            product: Form = {(): factor}
            for variable in monomial:
                product = combined("*", product, self._resolved(variable))
            total = combined("+", total, product)
        return total

    def _resolved(self, variable: PolyVariable) -> Form:
        """Return a variable's definition as a form, or the variable with its parts resolved."""
        if variable not in self._whole:
            self._whole[variable] = {(variable,): 1}
            value = self.defined.get(variable.expr)
            if value is None:
                found = form_of(map_children(variable.expr, self._deep))
            else:
                found = self.whole(form_of(value))
            self._whole[variable] = found
        return self._whole[variable]

    def _deep(self, expr: ir.Expr) -> ir.Expr:
        return value_of(self.whole(form_of(expr))) if expr.type.is_integer else expr

    def is_nonzero(self, form: Form) -> bool:
        """Whether a divisor in a subscript is surely not 0 where the subscript is used."""
        whole = self.whole(form)
        if set(whole) == {()}:
            return True
        if len(whole) != 1:
            return False
        ((monomial, _),) = whole.items()
        return all(self._is_positive(v.expr) for v in monomial)

    def _is_positive(self, expr: ir.Expr) -> bool:
        if expr in self.positive or expr in self.nonzero:
            return True
        match expr:
            case ir.Binary(op="/", left=left, right=right):
                # A number that divides a positive length fits in it at least once.
                rest = ir.Binary("%", left, right, Scalar.I32)
                divides = self.is_never_negative(scaled(form_of(rest), -1))
                return divides and self._is_positive(left)
            case _:
                return False

    def reduced(self, expr: ir.Expr, known: tuple[Form, ...] = ()) -> ir.Expr:
        """Return a quotient or remainder without the terms that are divided exactly.

        `(4 * q + u) / 4` is q, and `(4 * q + u) % 4` is u, where u is below 4.  Both parts
        must be at least 0, as division truncates.
        """
        if not isinstance(expr, ir.Binary) or expr.op not in {"/", "%"}:
            return expr
        if expr.type is not _I32 or not self.is_nonzero(form_of(expr.right)):
            return expr
        by = form_of(expr.right)
        whole, rest = divided(form_of(expr.left), by)
        if not all(self.is_never_negative(part, known) for part in (whole, rest)):
            return expr
        room = plus(combined("-", by, rest), -1)
        if self.is_never_negative(room, known):
            return value_of(whole if expr.op == "/" else rest)
        if not whole:
            return expr
        inner = form_of(ir.Binary(expr.op, value_of(rest), expr.right, _I32))
        return value_of(combined("+", whole, inner) if expr.op == "/" else inner)

    def is_never_negative(self, form: Form, facts: tuple[Form, ...] = ()) -> bool:
        """Whether a form is at least 0, if the forms in `facts` are."""
        key = _key(form), tuple(map(_key, facts))
        if key not in self._known:
            # A proof must not rest on itself: asked again on the way, the answer is no.
            self._known[key] = False
            deep = tuple(map(self.whole, facts))
            own = self.whole(form)
            self._tried.append({})
            self._known[key] = self._proves(own, (*deep, *self.assumed), _DEEPEST)
            self._tried.pop()
        return self._known[key]

    def has_elements(self, extent: ir.Extent, around: ir.Extent) -> bool:
        """Whether an axis has elements if the axis `around` has some; lengths may be 0."""
        ranged = plus(self.whole(form_of(length(around))), -1)
        own = IntegerFacts(self.defined, assumed=(*self.assumed, ranged))
        return own.is_never_negative(plus(form_of(length(extent)), -1))

    def _proves(self, form: Form, facts: tuple[Form, ...], depth: int) -> bool:
        """Whether a form is at least 0, by taking away up to `depth` facts."""
        negative = next((m for m, factor in form.items() if factor < 0), None)
        if negative is None:
            return self._proves_sum(form, facts, depth)
        # Facts that are taken away in another order leave the same form: it is tried once.
        tried, key = self._tried[-1], _key(form)
        before, proved = tried.get(key, (-1, False))
        if not proved and before < depth:
            tried[key] = depth, False
            proved = self._proves_by(form, negative, facts, depth)
            tried[key] = depth, proved
        return proved

    def _proves_sum(self, form: Form, facts: tuple[Form, ...], depth: int) -> bool:
        """Whether a form without negative factors is at least 0: no variable is negative."""
        doubtful = (
            monomial
            for monomial in form
            if not all(self._is_from_zero(v.expr) for v in monomial)
        )
        first = next(doubtful, None)
        if first is None or depth == 0:
            return first is None
        return any(
            self._proves(combined("-", form, fact), facts, depth - 1)
            for fact in facts
            if 0 < fact.get(first, 0) <= form[first]
        )

    def _proves_by(
        self, form: Form, negative: Monomial, facts: tuple[Form, ...], depth: int
    ) -> bool:
        """Whether a form is at least 0 by ranges of indices, or by a fact about `negative`."""
        for index in _indices_in(form):
            bounded = self._bounded(form, index, facts)
            if bounded is not None:
                if self._proves(bounded, facts, depth):
                    return True
                break
        if not _indices_in(form) and self._proves_above_one(form):
            return True
        if depth == 0:
            return False
        # A fact must have the negative part, no more often than the form has it.  A number
        # may be greater in the fact: 't - 2 >= 0' proves 't - 1 >= 0'.
        return any(
            self._proves(combined("-", form, scaled(fact, times)), facts, depth - 1)
            for fact in (*facts, *self._relations(form), *self._scaled(negative))
            if fact.get(negative, 0) < 0
            for times in _multiples(form[negative], fact[negative], negative)
        ) or any(self._proves(f, facts, depth - 1) for f in self._times_divisor(form))

    def _scaled(self, monomial: Monomial) -> Iterator[Form]:
        """Yield bounds of a product: those of one factor, times the other factors."""
        for place, variable in enumerate(monomial if len(monomial) > 1 else ()):
            rest = (*monomial[:place], *monomial[place + 1 :])
            if all(self._is_from_zero(other.expr) for other in rest):
                for relation in self._relations({(variable,): 1}):
                    yield combined("*", relation, {rest: 1})

    def _times_divisor(self, form: Form) -> Iterator[Form]:
        """Yield forms that prove `r - a / c >= 0`: a is at most `r c + c - 1`."""
        for monomial, factor in form.items():
            match monomial:
                case (
                    PolyVariable(expr=ir.Binary(op="/", left=left, right=right)),
                ) if (factor == -1):
                    above = self.whole(form_of(left))
                    by = self.whole(form_of(right))
                    if self.is_never_negative(above):
                        rest = combined("+", form, {monomial: 1})
                        most = plus(combined("+", combined("*", rest, by), by), -1)
                        yield combined("-", most, above)
                case _:
                    pass

    def _bounded(
        self, form: Form, index: ir.Index, facts: tuple[Form, ...]
    ) -> Form | None:
        """Return the least value of a form over an index's range, None if it is at no end."""
        parts = coefficient(form, ir.IndexValue(index))
        if parts is None:
            return None
        factor, rest = parts
        if self._proves(factor, facts, 0):
            return rest
        if self._proves(scaled(factor, -1), facts, 0):
            last = plus(self.whole(form_of(length(index.extent))), -1)
            return combined("+", rest, combined("*", factor, last))
        return None

    def _proves_above_one(self, form: Form) -> bool:
        """Whether a form of lengths is never negative, those known being at least 1."""
        least = 0
        for monomial, factor in form.items():
            least += factor * all(v.expr in self.positive for v in monomial)
        above = [m for m, factor in form.items() if factor > 0]
        for monomial, factor in form.items():
            # `m n - m` is never negative where n is at least 1: a product that is taken away
            # must be part of one that is added.
            if factor < 0 and not any(set(monomial) <= set(m) for m in above):
                return False
        if least < 0:
            return False
        total: Form = {}
        for monomial, factor in form.items():
            product: Form = {(): factor}
            for v in monomial:
                larger: Form = {(v,): 1}
                if v.expr in self.positive:
                    larger = plus(larger, 1)
                product = combined("*", product, larger)
            total = combined("+", total, product)
        from_zero = all(map(self._is_from_zero, variables(total)))
        return from_zero and all(factor >= 0 for factor in total.values())

    def _is_from_zero(self, variable: ir.Expr) -> bool:
        """Whether a variable is never negative."""
        if variable in self.positive:
            return True
        match variable:
            case ir.IndexValue() | ir.DimValue() | ir.UniformValue(type=Scalar.U32):
                return True
            case ir.Binary(op="/" | "%", left=left, right=right):
                operands = [form_of(left)] + [form_of(right)] * (variable.op == "/")
                return all(self.is_never_negative(each) for each in operands)
            case ir.BuiltinCall(builtin="abs" | "mod"):
                return True
            case ir.BuiltinCall(builtin="clamp", arguments=(_, low, _)):
                return self.is_never_negative(form_of(low))
            case ir.BuiltinCall(builtin="min", arguments=both):
                return all(self.is_never_negative(form_of(each)) for each in both)
            case ir.BuiltinCall(builtin="max", arguments=both):
                return any(self.is_never_negative(form_of(each)) for each in both)
            case _:
                return variable.type is Scalar.U32

    def _relations(self, form: Form) -> Iterator[Form]:
        """Yield forms that are never negative by definition: `c - 1 - a % c`, `a - a / c`."""
        for variable in dict.fromkeys(v for monomial in form for v in monomial):
            own: Form = {(variable,): 1}
            match variable.expr:
                case ir.Binary(op="%", right=right) | ir.BuiltinCall(
                    builtin="mod", arguments=(_, right)
                ):
                    yield plus(combined("-", self.whole(form_of(right)), own), -1)
                case ir.Binary(op="/", left=left, right=right):
                    above = self.whole(form_of(left))
                    if self.is_never_negative(above):
                        by = self.whole(form_of(right))
                        whole = combined("-", above, combined("*", own, by))
                        yield whole
                        rest = form_of(ir.Binary("%", left, right, _I32))
                        yield combined("-", rest, whole)
                        yield combined("-", above, own)
                case ir.BuiltinCall(builtin="clamp", arguments=(_, _, high)):
                    yield combined("-", self.whole(form_of(high)), own)
                case ir.BuiltinCall(builtin="min", arguments=both):
                    for each in both:
                        yield combined("-", self.whole(form_of(each)), own)
                case _:
                    pass


def _multiples(factor: int, of: int, monomial: Monomial) -> tuple[int, ...]:
    """Return how often to take a fact away: as often as it fits, else once."""
    whole = factor // of if monomial else 1
    return (whole, 1) if whole > 1 else (1,) * whole


def _key(form: Form) -> object:
    return frozenset(form.items())


def _indices_in(form: Form) -> list[ir.Index]:
    found = (v.expr for monomial in form for v in monomial)
    return list(dict.fromkeys(e.index for e in found if isinstance(e, ir.IndexValue)))
