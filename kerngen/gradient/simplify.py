"""Simplify adjoints by the definitions of the forward program.

Adjoints are sums of products of the forward program's own expressions.  They get shorter
by the definitions of that program, used both ways: `exp(x - top) / total` is `y`, and
`sum[j] exp(x[i, j] - top[i])` is `total`.  Multiplied out, many a sum turns out to be 0:
the adjoint of softmax's `top`, for one.  That form is for the proof alone, as it would round
worse: `x - mean` stays one factor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Final, final

from kerngen.gradient.indices import free_indices
from kerngen.gradient.integers.conditions import conjuncts, negated
from kerngen.gradient.integers.forms import length
from kerngen.gradient.match import ProductPattern, renamings, same
from kerngen.gradient.openings import Openings, cancel
from kerngen.gradient.taken import is_never_empty
from kerngen.gradient.terms import (
    ONE,
    Factors,
    Term,
    added_up,
    indices_of,
    is_additive,
    product_of,
    substituted,
    sum_of,
)
from kerngen.ir.nodes import (
    Binary,
    BuiltinCall,
    Cast,
    Constant,
    ConstRef,
    Expr,
    Index,
    IndexValue,
    Load,
    Reduce,
    Role,
    Select,
    Statement,
    Tensor,
    UniformValue,
)
from kerngen.ir.types import Scalar
from kerngen.ir.walk import map_children, subscript_value, walk

_F32: Final = Scalar.F32
_MOST_TERMS: Final = 48
"""The most terms of a sum that is multiplied out; a longer one counts as not 0."""


@final
@dataclass(frozen=True)
class ProductDefinition:
    """A tensor that is a product of factors: `weight = exp(score - top) / total`."""

    tensor: Tensor
    indices: tuple[Index, ...]
    product: Term
    result: Expr
    """The read that the product equals: `weight[i, j]` over `indices`, or exp of it."""

    @property
    def pattern(self) -> ProductPattern:
        """The factors of the product, with any names of its indices."""
        return ProductPattern(
            tuple(self.product.factors.items()), frozenset(self.indices)
        )


@final
@dataclass(frozen=True)
class NamedSum:
    """A sum that has a name: `sum over bound of product` is `value`."""

    indices: tuple[Index, ...]
    product: Term
    value: Term

    @property
    def pattern(self) -> ProductPattern:
        """The factors that the sum adds up, with any names of its indices."""
        free = frozenset((*self.indices, *self.product.bound))
        return ProductPattern(tuple(self.product.factors.items()), free)


@final
@dataclass
class Simplifier:
    """Simplifies terms by the definitions that it has learned so far."""

    elementwise: dict[Tensor, Statement] = field(
        default_factory=dict[Tensor, Statement]
    )
    definitions: list[ProductDefinition] = field(
        default_factory=list[ProductDefinition]
    )
    sums: list[NamedSum] = field(default_factory=list[NamedSum])
    expanded: list[NamedSum] = field(default_factory=list[NamedSum])
    _expansions: dict[Expr, list[Term] | None] = field(
        default_factory=dict[Expr, list[Term] | None]
    )
    exponentials: dict[Tensor, ProductDefinition] = field(
        default_factory=dict[Tensor, ProductDefinition]
    )
    openings: Openings = field(default_factory=Openings)

    def define(
        self, statement: Statement, *, first: bool = False, is_computed: bool = True
    ) -> None:
        """Learn the definition of a statement's target.

        `first` is set for given tensors, whose names are tried before others. An output that
        the gradient would compute only for its name (not `is_computed`) gets a definition
        only if it reads a let of its rows, as `exp(x[i, j]) / total[i]` does.
        """
        target, value = statement.target, statement.value
        if target.element is not _F32:
            return
        result = Load(target, tuple(map(IndexValue, statement.indices)))
        whole = product_of(value)
        # A sum is a rule for sums, any other value one for products and for proofs.
        sums = [atom for atom in whole.factors if isinstance(atom, Reduce)]
        if sums:
            self._define_sum(statement, whole, sums, result)
            return
        if any(isinstance(node, Reduce) for node in (value,)):
            return
        self.elementwise[target] = statement
        own = ProductDefinition(target, statement.indices, whole, result)
        # Given names come first, so that a given `y` is read rather than a computed let.
        worth = is_computed or first or _is_of_rows(whole, statement.indices)
        if worth and _is_worth(whole, statement.indices):
            self.definitions.insert(0 if first else len(self.definitions), own)
        exponential = _exponential(value)
        if exponential is not None and first:
            power = BuiltinCall("exp", (result,), _F32)
            named = ProductDefinition(target, statement.indices, exponential, power)
            self.definitions.insert(0, named)
            self.exponentials[target] = named

    def _define_sum(
        self, statement: Statement, whole: Term, sums: list[Reduce], result: Load
    ) -> None:
        """Learn a statement that is one sum times other factors."""
        reduce = sums[0]
        if len(sums) > 1 or whole.factors[reduce] != 1 or not whole.coefficient:
            return
        assert isinstance(reduce, Reduce)
        if reduce.kind != "sum":
            return
        rest = Term(
            whole.coefficient, {a: e for a, e in whole.factors.items() if a != reduce}
        )
        inner = terms_of_sum(reduce)
        if inner is None:
            return
        self.learn(statement.indices, inner, Term(factors={result: ONE}), rest)

    def learn(
        self, indices: tuple[Index, ...], inner: Term, result: Term, times: Term
    ) -> None:
        """Learn that `times * inner` equals `result`, if the sum follows from it.

        From `a[i] * sum[j] x[i, j]` the sum does not follow: it is lost where `a[i]` is
        0.  Nor does it from `if c[i] { sum[j] x[i, j] } else { 0.0 }`.
        """
        self.openings.record(result, indices, inner.times(times))
        outside, inside = split(inner)
        before = outside.times(times)
        if not before.coefficient:
            return
        inside = inside.under(*outside.conditions)
        if inside.factors and all(map(_is_safe_divisor, before.factors.items())):
            self.sums.append(NamedSum(indices, inside, result.times(before.to(-ONE))))
        multiplied = self._multiplied_out(inner)
        if len(multiplied) == 1:
            outside, inside = split(multiplied[0])
            if inside.factors and not outside.conditions:
                value = result.times(outside.times(times).to(-ONE))
                self.expanded.append(NamedSum(indices, inside, value))

    # Rewriting to a shorter form

    def shortened(self, terms: Iterable[Term]) -> list[Term]:
        """Return a sum of terms, simplified by the known definitions."""
        found = [self._by_name(self._contracted(_spread(term))) for term in terms]
        found = _without_complements(added_up(found))
        if _may_cancel(found) and self._is_zero(found):
            return []
        return [t for t in found if not (_is_doubtful(t) and self._is_zero([t]))]

    def by_name(self, inside: Term) -> Term | None:
        """Return a sum as a read of the tensor that is equal to it, or None."""
        return _named_as(inside, self.sums)

    def opened(self, term: Term) -> Term | None:
        """Return a term with reads of sums expanded, if that is one term."""
        found = self.openings.all_opened(
            self._multiplied_out(term), self._multiplied_out
        )
        if found is None or len(found) != 1:
            return None
        return self._contracted(found[0])

    def _contracted(self, term: Term) -> Term:
        """Replace products by reads: `exp(x - top) * total^-1` by `y`."""
        for definition in self.definitions:
            if len(definition.product.factors) > len(term.factors):
                continue
            term = _with_name(term, definition)
        product = Term(term.coefficient)
        for atom, exponent in term.factors.items():
            named = atom if isinstance(atom, Load) else self._named_inside(atom)
            product = product.times(Term(factors={named: exponent}))
        return replace(term, factors=product.factors)

    def _named_inside(self, expr: Expr) -> Expr:
        """Replace values in an expression by reads of the tensors that are equal to them."""
        for definition in self.definitions:
            (value, exponent), *more = definition.product.factors.items()
            if more or exponent != 1 or type(value) is not type(expr):
                continue
            renaming: dict[Index, Index] = {}
            if not same(value, expr, frozenset(definition.indices), renaming):
                continue
            if len(renaming) == len(definition.indices):
                by: dict[Index, Expr] = {o: IndexValue(n) for o, n in renaming.items()}
                return substituted(definition.result, by)
        return map_children(expr, self._named_inside)

    def _by_name(self, term: Term) -> Term:
        """Replace a sum by a read: `sum[j] exp(x[i, j] - top[i])` by `total[i]`."""
        if not term.bound:
            return term
        outside, inside = split(term)
        named = _named_as(inside, self.sums)
        return term if named is None else _outside(outside.times(named), term, inside)

    # Proofs

    def _is_zero(self, terms: list[Term]) -> bool:
        """Whether a sum is 0: multiplied out, its terms cancel."""
        found: list[Term] = []
        for term in terms:
            parts = self._multiplied_out(term)
            found += map(self._by_expanded_name, parts)
            if len(found) > _MOST_TERMS:
                return False
        # Once more: a name that replaced a sum may have a definition that cancels.
        again: list[Term] = []
        for term in found:
            again += map(self._by_expanded_name, self._multiplied_out(term))
        left = _without_complements(added_up(again))
        # Of one sign, nothing cancels.
        if len({term.coefficient > 0 for term in left}) < 2:
            return not left
        opened = self.openings.all_opened(left, self._multiplied_out)
        return opened is not None and cancel(opened)

    def _by_expanded_name(self, term: Term) -> Term:
        term = _spread(term)
        if not term.bound:
            return term
        outside, inside = split(term)
        named = _named_as(inside, self.expanded)
        if named is None:
            return term
        return _spread(_outside(outside.times(named), term, inside))

    def _multiplied_out(self, term: Term) -> list[Term]:
        """Return a term as a sum of products, with all definitions expanded."""
        waiting, done = [term], list[Term]()
        while waiting and len(waiting) + len(done) <= _MOST_TERMS:
            each = waiting.pop()
            parts = self._step(each)
            if parts is None:
                done.append(each)
            else:
                waiting += parts
        return [*done, *waiting]

    def _step(self, term: Term) -> list[Term] | None:
        """Return a term with one factor expanded, as a sum; None if no factor can be."""
        for atom, exponent in term.factors.items():
            found = self._expansion(atom)
            if found is None:
                continue
            if exponent != 1 and (len(found) > 1 or found[0].conditions):
                continue
            factors = {a: e for a, e in term.factors.items() if a != atom}
            rest = replace(term, factors=factors)
            return [
                rest.times(part if exponent == 1 else part.to(exponent)).under(
                    *part.conditions
                )
                for part in found
            ]
        return None

    def _expansion(self, atom: Expr) -> list[Term] | None:
        """Return the sum of products that a factor equals, or None if it is no sum."""
        if atom not in self._expansions:
            self._expansions[atom] = self._expanded(atom)
        return self._expansions[atom]

    def _expanded(self, atom: Expr) -> list[Term] | None:
        power = self._exponential(atom) or _product_of_lengths(atom)
        if power is not None:
            return [power]
        value = self._definition(atom)
        if value is None:
            return sum_of(atom) if is_additive(atom) else None
        if is_additive(value):
            return sum_of(value)
        if isinstance(value, Select) and value.otherwise == Constant(0.0, _F32):
            under = tuple(conjuncts(value.condition))
            return [term.under(*under) for term in sum_of(value.then)]
        whole = product_of(value)
        return [whole] if whole.coefficient else None

    def _exponential(self, atom: Expr) -> Term | None:
        """Return `exp(z)` as the product whose logarithm the tensor z is: `exp(u) / t`."""
        match atom:
            case BuiltinCall(
                builtin="exp", arguments=(Load(tensor=tensor, subscripts=subscripts),)
            ) if (tensor in self.exponentials):
                found = self.exponentials[tensor]
                places = map(subscript_value, subscripts)
                by = dict(zip(found.indices, places, strict=True))
                factors = found.product.factors.items()
                return Term(factors={substituted(a, by): e for a, e in factors})
            case _:
                return None

    def _definition(self, atom: Expr) -> Expr | None:
        """Return the definition of an elementwise value that is read."""
        if not isinstance(atom, Load) or atom.tensor not in self.elementwise:
            return None
        statement = self.elementwise[atom.tensor]
        places = map(subscript_value, atom.subscripts)
        return substituted(
            statement.value, dict(zip(statement.indices, places, strict=True))
        )


def _is_safe_divisor(factor: tuple[Expr, Fraction]) -> bool:
    """Whether dividing by a factor adds no division by 0: it is a divisor already, or exp."""
    atom, exponent = factor
    return exponent < 0 or (isinstance(atom, BuiltinCall) and atom.builtin == "exp")


def _is_worth(product: Term, indices: tuple[Index, ...]) -> bool:
    """Whether a read is shorter than its value, and the value has all indices of the read."""
    factors = product.factors
    if indices_of(factors) != frozenset(indices) or product.coefficient != 1:
        return False
    return len(factors) > 1 or any(
        e != 1 or not isinstance(atom, Load | UniformValue | ConstRef | Constant)
        for atom, e in factors.items()
    )


def _is_of_rows(product: Term, indices: tuple[Index, ...]) -> bool:
    lets = (a for a in product.factors if isinstance(a, Load))
    return any(
        let.tensor.role is Role.LET and len(free_indices(let)) < len(indices)
        for let in lets
    )


def _exponential(value: Expr) -> Term | None:
    """Return exp of a value as a product: of `u - log(t)` it is exp(u) / t."""
    match value:
        case Binary(
            op="-", left=left, right=BuiltinCall(builtin="log", arguments=(inside,))
        ):
            above = BuiltinCall("exp", (left,), _F32)
            return Term(factors={above: ONE, inside: -ONE})
        case _:
            return None


def _product_of_lengths(value: Expr) -> Term | None:
    """Return f32(c * n) as f32(c) f32(n), which counts of a sum's terms are."""
    match value:
        case Cast(operand=Binary(op="*", left=left, right=right), type=Scalar.F32):
            return Term(factors={Cast(left, _F32): ONE}).times(
                Term(factors={Cast(right, _F32): ONE})
            )
        case _:
            return None


def terms_of_sum(reduce: Reduce) -> Term | None:
    """Return a `sum` as one term, or None if it is several."""
    body, conditions = reduce.body, tuple[Expr, ...]()
    if reduce.condition is not None:
        conditions = tuple(conjuncts(reduce.condition))
    if isinstance(body, Select) and body.otherwise == Constant(0.0, _F32):
        conditions = (*conditions, *conjuncts(body.condition))
        body = body.then
    term = product_of(body)
    return replace(term, conditions=conditions, bound=reduce.indices)


def _with_name(term: Term, definition: ProductDefinition) -> Term:
    """Return a term with a defined product in it replaced by its read, as often as it is."""
    for renaming, times in renamings(definition.pattern, term.factors, whole=False):
        if len(renaming) < len(definition.indices):
            continue
        by = {old: IndexValue(new) for old, new in renaming.items()}
        product = Term(
            factors={
                substituted(a, by): e for a, e in definition.product.factors.items()
            }
        )
        name = Term(factors={substituted(definition.result, by): ONE})
        power = Fraction(times)
        return term.times(product.to(-power)).times(name.to(power))
    return term


def _named_as(inside: Term, sums: list[NamedSum]) -> Term | None:
    """Return the named sum that a sum equals, as a read."""
    for named in sums:
        own = named.product
        if len(own.bound) != len(inside.bound):
            continue
        if len(own.conditions) != len(inside.conditions):
            continue
        for renaming, _ in renamings(named.pattern, inside.factors, whole=True):
            if not _fits(named, renaming, inside):
                continue
            by = {old: IndexValue(new) for old, new in renaming.items()}
            factors = {substituted(a, by): e for a, e in named.value.factors.items()}
            return Term(named.value.coefficient, factors)
    return None


def _fits(named: NamedSum, renaming: dict[Index, Index], inside: Term) -> bool:
    """Whether a sum, renamed, has the indices, factors and conditions of another one."""
    own = named.product
    if any(index not in renaming for index in (*named.indices, *own.bound)):
        return False
    if {renaming[index] for index in own.bound} != set(inside.bound):
        return False
    by = {old: IndexValue(new) for old, new in renaming.items()}
    exponents = {substituted(a, by): e for a, e in own.factors.items()}
    if exponents != dict(inside.factors):
        return False
    return {substituted(c, by) for c in own.conditions} == set(inside.conditions)


def split(term: Term) -> tuple[Term, Term]:
    """Split `sum[j] a[i] * x[i, j]` into the factors before the sum, `a[i]`, and the sum."""
    bound = frozenset(term.bound)
    outer: dict[Expr, Fraction] = {}
    inner: dict[Expr, Fraction] = {}
    for atom, exponent in term.factors.items():
        (inner if free_indices(atom) & bound else outer)[atom] = exponent
    within = tuple(c for c in term.conditions if free_indices(c) & bound)
    before = tuple(c for c in term.conditions if c not in within)
    outside = Term(term.coefficient, outer, before)
    return outside, Term(ONE, inner, within, term.bound, term.solved)


def split_under_conditions(term: Term) -> tuple[Term, Term]:
    """Split a term, but leave those factors inside that its conditions must guard.

    Where no term is taken the sum is 0, and a factor before it may be anything: `x[p]`
    is NaN, or divides by 0.  So a factor with indices, or of what may be 0 to a negative
    power, stays behind such a condition, unless a term is always taken: `j <= i` holds
    where j is i.
    """
    outside, inside = split(term)
    if is_never_empty(inside):
        return outside, inside
    shielded = {
        a: e for a, e in outside.factors.items() if free_indices(a) or _divides(a, e)
    }
    before = {a: e for a, e in outside.factors.items() if a not in shielded}
    factors = {**shielded, **inside.factors}
    return replace(outside, factors=before), replace(inside, factors=factors)


def _divides(atom: Expr, exponent: Fraction) -> bool:
    """Whether a factor may divide by 0: `1 / sqrt(u)` may; a length or scalar is as given."""
    return exponent < 0 and not isinstance(atom, Cast | UniformValue)


def _outside(product: Term, term: Term, inside: Term) -> Term:
    kept = tuple(c for c in term.conditions if c not in inside.conditions)
    return replace(product, conditions=kept)


def _spread(term: Term) -> Term:
    """Return a term without sums over indices that it lacks: n times the term instead."""
    used = indices_of((*term.factors, *term.conditions))
    for index in term.bound:
        if index not in used:
            count = Cast(length(index.extent), _F32)
            kept = tuple(other for other in term.bound if other != index)
            term = replace(term.times(Term(factors={count: ONE})), bound=kept)
    return term


def _without_complements(terms: list[Term]) -> list[Term]:
    """Join terms that differ in one condition, and its negation: that is no condition."""
    found = list(terms)
    for one in terms:
        for condition in one.conditions:
            opposite = negated(condition)
            for other in found:
                if one in found and _are_complements(one, other, condition, opposite):
                    kept = tuple(c for c in one.conditions if c != condition)
                    found[found.index(one)] = replace(one, conditions=kept)
                    found.remove(other)
                    break
    return found if len(found) == len(terms) else added_up(found)


def _are_complements(one: Term, other: Term, condition: Expr, opposite: Expr) -> bool:
    return (
        opposite in other.conditions
        and one.coefficient == other.coefficient
        and {*one.conditions} - {condition} == {*other.conditions} - {opposite}
        and one.factors == other.factors
        and set(one.bound) == set(other.bound)
    )


def _may_cancel(terms: list[Term]) -> bool:
    return len(terms) > 1


def _is_doubtful(term: Term) -> bool:
    """Whether a term may be 0 by itself: `sum[j] (x[i, j] - mean[i])` is."""
    return bool(term.bound)


def common(terms: list[Term]) -> Factors:
    """Return the common factors of all terms, each with the power that all have."""
    shared: dict[Expr, Fraction] = dict(terms[0].factors)
    for term in terms[1:]:
        for atom in tuple(shared):
            own = term.factors.get(atom, Fraction(0))
            least = min(shared[atom], own, key=abs)
            if shared[atom] * own > 0:
                shared[atom] = least
            else:
                del shared[atom]
    return shared


def named_sums(term: Term, name: Callable[[Term], Term]) -> Term:
    """Return a term with its sum replaced by a named let."""
    if not term.bound:
        return term
    outside, inside = split_under_conditions(term)
    shields = (c for c in outside.conditions if _shields(c, inside))
    whole = replace(inside.under(*shields), solved=term.solved)
    return _outside(outside.times(name(whole)), term, inside)


def _shields(condition: Expr, inside: Term) -> bool:
    """Whether a condition around a sum may keep its subscripts inside of their axes.

    A let of the sum is computed where it is false, too: so `i + 1 < n` around
    `sum[j] y[j, i + 1]` becomes a condition of the sum.
    """
    used = free_indices(condition)
    return any(
        used & free_indices(subscript_value(subscript))
        for atom in (*inside.factors, *inside.conditions)
        for node in walk(atom)
        if isinstance(node, Load)
        for subscript, extent in zip(node.subscripts, node.tensor.extents, strict=True)
        if not (isinstance(subscript, IndexValue) and subscript.index.extent == extent)
    )


def reads_of(terms: Iterable[Term]) -> Iterator[Tensor]:
    """Yield the lets that terms read."""
    for term in terms:
        for atom in (*term.factors, *term.conditions):
            if isinstance(atom, Load) and atom.tensor.role is Role.LET:
                yield atom.tensor
