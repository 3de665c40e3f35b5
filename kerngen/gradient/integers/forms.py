"""Polynomials over indices and lengths, and proofs about their sign.

`(i + edge) - u * skip` is `{(i,): 1, (edge,): 1, (skip, u): -1}`.  What is no sum or
product, `i / 2` or `ids[t]`, is a variable.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, TypeAlias, final

from kerngen.gradient.indices import free_indices
from kerngen.ir.analysis.affine import as_literal, is_fixed
from kerngen.ir.dump import dump_expr
from kerngen.ir.nodes import (
    Binary,
    BuiltinCall,
    Cast,
    Constant,
    DimValue,
    Expr,
    Extent,
    Index,
    IndexValue,
    Unary,
    UniformValue,
)
from kerngen.ir.types import Scalar
from kerngen.ir.walk import map_children


@final
class Variable:
    """An expression used as a variable of polynomials; its hash is computed once."""

    __slots__ = ("_hash", "expr", "order")

    def __init__(self, expr: Expr) -> None:
        self.expr: Final = expr
        self.order: Final = dump_expr(expr)
        self._hash: Final = hash(self.order)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Variable) and self.expr == other.expr


Monomial: TypeAlias = tuple[Variable, ...]
Form: TypeAlias = Mapping[Monomial, int]

_I32: Final = Scalar.I32
_DEEPEST: Final = 3
"""How many facts a proof combines; each multiplies its time by the number of facts."""


def number(value: int) -> Constant:
    """Return an i32 literal."""
    return Constant(value, _I32)


def length(extent: Extent) -> Expr:
    """Return the length of an axis as an expression."""
    return number(extent) if isinstance(extent, int) else DimValue(extent)


@lru_cache(4096)
def variable_of(expr: Expr) -> Variable:
    """Return the variable for an expression."""
    return Variable(expr)


@lru_cache(4096)
def form_of(expr: Expr) -> Form:
    """Return an integer expression as a polynomial."""
    literal = as_literal(expr)
    if isinstance(expr, Constant) and expr.type is Scalar.U32:
        literal = int(expr.value)  # not as an i32, which 4294967295 would be -1 of
    if literal is not None:
        return {(): literal} if literal else {}
    match expr:
        case Unary(op="-", operand=operand, type=Scalar.I32):
            return scaled(form_of(operand), -1)
        case Cast(operand=operand, type=Scalar.I32) if operand.type.is_integer:
            return form_of(operand)
        case Cast(operand=operand, type=Scalar.U32) if is_fixed(operand):
            return form_of(operand)
        case Binary(
            op="+" | "-" | "*" as op, left=left, right=right
        ) if expr.type is _I32 or is_fixed(expr):
            return combined(op, form_of(left), form_of(right))
        case Binary(
            op="/" | "%", left=left, right=right
        ) if expr.type is _I32 or is_fixed(expr):
            return _quotient(expr, form_of(left), form_of(right))
        case _:
            return {(variable_of(expr),): 1}


def _quotient(expr: Binary, above: Form, below: Form) -> Form:
    """Return a quotient or remainder with operands in their own canonical form."""
    if below == {(): 1}:
        return above if expr.op == "/" else {}
    operands = value_of(above), value_of(below)
    return {(variable_of(Binary(expr.op, *operands, _I32)),): 1}


def combined(op: str, left: Form, right: Form) -> Form:
    """Return the sum, difference or product of two polynomials."""
    if op == "*":
        total: Form = {}
        for monomial, factor in right.items():
            total = combined("+", total, _times(left, monomial, factor))
        return total
    sign = 1 if op == "+" else -1
    found = dict(left)
    for monomial, factor in right.items():
        found[monomial] = found.get(monomial, 0) + sign * factor
    return {monomial: factor for monomial, factor in found.items() if factor}


def _times(form: Form, by: Monomial, factor: int) -> Form:
    return {
        tuple(sorted((*monomial, *by), key=_order)) if by else monomial: factor * own
        for monomial, own in form.items()
    }


def _order(variable: Variable) -> str:
    return variable.order


def scaled(form: Form, factor: int) -> Form:
    """Return a polynomial times a factor."""
    return {monomial: factor * own for monomial, own in form.items() if factor}


def plus(form: Form, value: int) -> Form:
    """Return a polynomial plus a number."""
    return combined("+", form, {(): value} if value else {})


def value_of(form: Form) -> Expr:
    """Return a polynomial as an expression, positive terms first."""
    result: Expr | None = None
    for monomial, factor in sorted(form.items(), key=_place):
        part = _product(monomial, abs(factor))
        if result is None:
            result = part if factor > 0 else Unary("-", part, _I32)
        else:
            result = Binary("+" if factor > 0 else "-", result, part, _I32)
    return number(0) if result is None else _negated(result)


def _negated(expr: Expr) -> Expr:
    """Return `-3` as a literal."""
    literal = as_literal(expr.operand) if isinstance(expr, Unary) else None
    return expr if literal is None else number(-literal)


def _place(item: tuple[Monomial, int]) -> tuple[bool, bool]:
    monomial, factor = item
    return factor < 0, not monomial


def _product(monomial: Monomial, factor: int) -> Expr:
    values = [_signed(variable.expr) for variable in monomial]
    ordered = sorted(values, key=lambda value: not isinstance(value, IndexValue))
    if factor != 1 or not ordered:
        ordered.insert(0, number(factor))
    result = ordered[0]
    for part in ordered[1:]:
        result = Binary("*", result, part, _I32)
    return result


def _signed(value: Expr) -> Expr:
    return value if value.type is _I32 else Cast(value, _I32)


def variables(form: Form) -> set[Expr]:
    """Return the variables of a polynomial."""
    return {variable.expr for monomial in form for variable in monomial}


def coefficient(form: Form, of: Expr) -> tuple[Form, Form] | None:
    """Return (g, r) of a form `g * of + r`; None if it is not linear in `of`."""
    variable = variable_of(of)
    factor: dict[Monomial, int] = {}
    rest: dict[Monomial, int] = {}
    for monomial, own in form.items():
        if variable not in monomial:
            rest[monomial] = own
            continue
        left = list(monomial)
        left.remove(variable)
        if variable in left:
            return None
        factor[tuple(left)] = own
    return factor, rest


@final
@dataclass
class Facts:
    """The known facts about the integers of a kernel.

    `defined` are the values of derived dims and hosts; `positive` are known to be at
    least 1; `assumed` are forms that are never negative, by the kernel's requirements.
    """

    defined: dict[Expr, Expr]
    positive: set[Expr] = field(default_factory=set[Expr])
    assumed: tuple[Form, ...] = ()
    _whole: dict[Variable, Form] = field(default_factory=dict[Variable, Form])
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

    def _resolved(self, variable: Variable) -> Form:
        if variable not in self._whole:
            self._whole[variable] = {(variable,): 1}
            value = self.defined.get(variable.expr)
            if value is None:
                found = form_of(map_children(variable.expr, self._deep))
            else:
                found = self.whole(form_of(value))
            self._whole[variable] = found
        return self._whole[variable]

    def _deep(self, expr: Expr) -> Expr:
        return value_of(self.whole(form_of(expr))) if expr.type.is_integer else expr

    def is_never_negative(self, form: Form, facts: tuple[Form, ...] = ()) -> bool:
        """Whether a form is at least 0, if the forms in `facts` are."""
        key = _key(form), tuple(map(_key, facts))
        if key not in self._known:
            # What is asked again on the way is not known by itself.
            self._known[key] = False
            deep = tuple(map(self.whole, facts))
            own = self.whole(form)
            self._tried.append({})
            self._known[key] = self._proves(own, (*deep, *self.assumed), _DEEPEST)
            self._tried.pop()
        return self._known[key]

    def _proves(self, form: Form, facts: tuple[Form, ...], depth: int) -> bool:
        negative = next((m for m, factor in form.items() if factor < 0), None)
        if negative is None:
            return all(map(self._is_from_zero, variables(form)))
        # Facts taken away in another order leave the same.
        tried, key = self._tried[-1], _key(form)
        before, proved = tried.get(key, (-1, False))
        if not proved and before < depth:
            tried[key] = depth, False
            proved = self._proves_by(form, negative, facts, depth)
            tried[key] = depth, proved
        return proved

    def _proves_by(
        self, form: Form, negative: Monomial, facts: tuple[Form, ...], depth: int
    ) -> bool:
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
        # A fact must make up for each part that is taken away; of numbers it may take
        # more: 't - 2 >= 0' proves 't - 1 >= 0'.
        return any(
            self._proves(combined("-", form, fact), facts, depth - 1)
            for fact in (*facts, *self._relations(form), *self._scaled(negative))
            if fact.get(negative, 0) < 0
            and (not negative or form[negative] <= fact[negative])
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
                case (Variable(expr=Binary(op="/", left=left, right=right)),) if (
                    factor == -1
                ):
                    above = self.whole(form_of(left))
                    by = self.whole(form_of(right))
                    if self.is_never_negative(above):
                        rest = combined("+", form, {monomial: 1})
                        most = plus(combined("+", combined("*", rest, by), by), -1)
                        yield combined("-", most, above)
                case _:
                    pass

    def _bounded(
        self, form: Form, index: Index, facts: tuple[Form, ...]
    ) -> Form | None:
        """Return the least that a form is over the range of an index."""
        parts = coefficient(form, IndexValue(index))
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
            # What is taken away must be part of something that is added.
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

    def _is_from_zero(self, variable: Expr) -> bool:
        """Whether a variable is never negative."""
        match variable:
            case IndexValue() | DimValue() | UniformValue(type=Scalar.U32):
                return True
            case Binary(op="/" | "%", left=left, right=right):
                operands = [form_of(left)] + [form_of(right)] * (variable.op == "/")
                return all(self.is_never_negative(each) for each in operands)
            case BuiltinCall(builtin="abs" | "mod"):
                return True
            case BuiltinCall(builtin="clamp", arguments=(_, low, _)):
                return self.is_never_negative(form_of(low))
            case BuiltinCall(builtin="min", arguments=both):
                return all(self.is_never_negative(form_of(each)) for each in both)
            case BuiltinCall(builtin="max", arguments=both):
                return any(self.is_never_negative(form_of(each)) for each in both)
            case _:
                return variable.type is Scalar.U32

    def _relations(self, form: Form) -> Iterator[Form]:
        """Yield forms that are never negative by what the variables are."""
        for variable in dict.fromkeys(v for monomial in form for v in monomial):
            own: Form = {(variable,): 1}
            match variable.expr:
                case Binary(op="%", right=right) | BuiltinCall(
                    builtin="mod", arguments=(_, right)
                ):
                    yield plus(combined("-", self.whole(form_of(right)), own), -1)
                case Binary(op="/", left=left, right=right):
                    above = self.whole(form_of(left))
                    if self.is_never_negative(above):
                        by = self.whole(form_of(right))
                        whole = combined("-", above, combined("*", own, by))
                        yield whole
                        rest = form_of(Binary("%", left, right, _I32))
                        yield combined("-", rest, whole)
                        yield combined("-", above, own)
                case BuiltinCall(builtin="clamp", arguments=(_, _, high)):
                    yield combined("-", self.whole(form_of(high)), own)
                case BuiltinCall(builtin="min", arguments=both):
                    for each in both:
                        yield combined("-", self.whole(form_of(each)), own)
                case _:
                    pass


def _key(form: Form) -> object:
    return frozenset(form.items())


def _indices_in(form: Form) -> list[Index]:
    found = (v.expr for monomial in form for v in monomial)
    return list(dict.fromkeys(e.index for e in found if isinstance(e, IndexValue)))


def mentions(expr: Expr, indices: frozenset[Index]) -> bool:
    """Whether an expression uses any of these indices."""
    return not indices.isdisjoint(free_indices(expr))
