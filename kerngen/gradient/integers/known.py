"""The facts about a kernel's integers that follow from its lengths, hosts and requirements."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kerngen.gradient.integers.conditions import conjuncts, facts_of
from kerngen.gradient.integers.facts import IntegerFacts
from kerngen.gradient.integers.forms import Form, as_variable, form_of, variables
from kerngen.ir.analysis.affine import as_literal
from kerngen.ir.nodes import Binary, DimValue, Expr, Kernel, UniformValue
from kerngen.ir.types import Scalar
from kerngen.ir.walk import walk


def known_of(kernel: Kernel) -> IntegerFacts:
    """Return the facts about a kernel's integers."""
    defined = _defined(kernel)
    required = [c for r in kernel.requires for c in conjuncts(r.condition)]
    assumed = tuple(form for c in required for form in facts_of(c))
    positive = {*map(DimValue, kernel.dims), *_at_least_one(assumed), *divisors(kernel)}
    lengths = IntegerFacts(defined, positive)
    for whole, quotient, product in _multiples(required, lengths):
        defined = {quotient: quotient, whole: product} | defined
        positive.add(quotient)
    nonzero = _factors_of_lengths(kernel, IntegerFacts(defined))
    return IntegerFacts(defined, positive, assumed, nonzero)


def divisors(kernel: Kernel) -> frozenset[Expr]:
    """Return the divisors of lengths; a gradient requires them positive."""
    facts = IntegerFacts(_defined(kernel))
    return frozenset(
        expr
        for dim in kernel.derived
        for node in walk(dim.value)
        if isinstance(node, Binary) and node.op == "/"
        for expr in variables(facts.whole(form_of(node.right)))
    )


def _defined(kernel: Kernel) -> dict[Expr, Expr]:
    """Return the values of computed lengths, and of hosts that are integers."""
    hosts = (host for host in kernel.hosts if host.type.is_integer)
    return {
        **{DimValue(dim.name): dim.value for dim in kernel.derived},
        **{UniformValue(host.name, host.type): host.value for host in hosts},
    }


def _at_least_one(assumed: tuple[Form, ...]) -> Iterator[Expr]:
    """Yield the integers that requirements such as `r > 0` make positive."""
    for form in assumed:
        match [*form.items()]:
            case [((variable,), 1), ((), least)] if least < 0:
                yield variable.expr
            case _:
                pass


def _multiples(
    required: Iterable[Expr], lengths: IntegerFacts
) -> Iterator[tuple[Expr, Expr, Expr]]:
    """Yield (c, c / g, g * (c / g)) for each requirement `c % g == 0`, the first of each c."""
    found: set[Expr] = set()
    for condition in required:
        match condition:
            case Binary(op="==", left=Binary(op="%", left=left, right=by), right=rest):
                whole = as_variable(left)
            case _:
                continue
        quotient = as_variable(Binary("/", left, by, Scalar.I32))
        if whole is None or quotient is None or whole in found or as_literal(rest) != 0:
            continue
        if whole in lengths.positive and lengths.is_nonzero(form_of(by)):
            found.add(whole)
            yield whole, quotient, Binary("*", by, quotient, Scalar.I32)


def _factors_of_lengths(kernel: Kernel, facts: IntegerFacts) -> frozenset[Expr]:
    """Return the factors of computed lengths: where one is 0, the axis has no elements."""
    found: set[Expr] = set()
    for dim in kernel.derived:
        length = facts.whole(form_of(dim.value))
        shared = [{v.expr for v in monomial} for monomial in length]
        found |= set[Expr]().union(*shared[:1]).intersection(*shared)
    return frozenset(found)
