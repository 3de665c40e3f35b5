"""Exchange the order of nested sums, where that lets a sum be reused.

    Before:  along[i] = sum[p] dy[i, p] * y[i, p];        y[i, p] = sum[j] e[i, j] * v[j, p]
    After:   along[i] = sum[j] de[i, j] * e[i, j];       de[i, j] = sum[p] dy[i, p] * v[j, p]

So `y`, a product of matrices, is not computed again.  Attention that divides after its sum has
this form.

If the caller has kept `y`, the exchange is made in the other direction: `sum[p] dy * y` reads
a kept tensor in the place of a sum over `j`, which is longer as a rule, and whose terms are
tiles that would have to be computed again.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import final

from kerngen.gradient.integers.conditions import facts_of
from kerngen.gradient.match import ProductPattern, renamings
from kerngen.gradient.render import rendered
from kerngen.gradient.simplify import Simplifier, terms_of_sum
from kerngen.gradient.terms import (
    ONE,
    Term,
    as_subscript,
    indices_of,
    joined,
    substituted,
)
from kerngen.ir import nodes as ir
from kerngen.ir.analysis.reads import tensors_read


@final
@dataclass(frozen=True)
class GradientProgram:
    """The statements of a gradient: those of the forward kernel, its own, its outputs."""

    forward: tuple[ir.Statement, ...]
    own: tuple[ir.Statement, ...]
    outputs: tuple[ir.Statement, ...]

    @property
    def given(self) -> tuple[ir.Statement, ...]:
        """The statements whose results the caller has kept."""
        return tuple(s for s in self.forward if s.target.role is ir.Role.INPUT)

    def needed(self) -> frozenset[ir.Tensor]:
        """Return the lets that the outputs depend on, directly or not."""
        return _needed((*self.forward, *self.own), self.outputs)


def with_sums_exchanged(
    program: GradientProgram, simplifier: Simplifier
) -> tuple[ir.Statement, ...]:
    """Return the gradient's statements with sums in the cheaper order."""
    for place, statement in enumerate(program.own):
        known = _of_given(statement, program, simplifier)
        if known is not None:
            program = _with(program, place, known)
            continue
        for other in _exchanged(statement, program, simplifier):
            changed = _with(program, place, other)
            if len(changed.needed()) < len(program.needed()) or _is_shorter(
                other, statement
            ):
                program = changed
                break
    return program.own


def _with(
    program: GradientProgram, place: int, statement: ir.Statement
) -> GradientProgram:
    own = (*program.own[:place], statement, *program.own[place + 1 :])
    return replace(program, own=own)


def _of_given(
    statement: ir.Statement, program: GradientProgram, simplifier: Simplifier
) -> ir.Statement | None:
    """Return a sum whose inner sum is replaced by a tensor that the caller has kept."""
    term = _sum_of(statement)
    if term is None or not program.given:
        return None
    found = (
        _with_partial_sum(each, other)
        for each in (term, simplifier.opened(term))
        for other in program.given
        if each is not None
    )
    known = next((each for each in found if each is not None), None)
    return known and replace(statement, value=rendered([known]))


def _is_shorter(other: ir.Statement, statement: ir.Statement) -> bool:
    """Whether a statement sums over fewer indices than it did."""
    shorter, longer = _sum_of(other), _sum_of(statement)
    if shorter is None or longer is None:
        return False
    return len(shorter.bound) < len(longer.bound)


def _sum_of(statement: ir.Statement) -> Term | None:
    value = statement.value
    if not isinstance(value, ir.Reduce) or value.kind != "sum" or statement.along:
        return None
    return terms_of_sum(value)


def _exchanged(
    statement: ir.Statement, program: GradientProgram, simplifier: Simplifier
) -> Iterator[ir.Statement]:
    """Yield forms of a double sum that read a let of the gradient for one of its sums."""
    term = _sum_of(statement)
    if term is None:
        return
    for each in (term, simplifier.opened(term)):
        if each is None or len(each.bound) < 2:
            continue
        for other in program.own:
            if other.target.role is not ir.Role.LET:
                continue
            found = _with_partial_sum(each, other)
            if found is not None and not _depends(other, statement, program):
                yield replace(statement, value=rendered([found]))


def _depends(
    statement: ir.Statement, on: ir.Statement, program: GradientProgram
) -> bool:
    known = (*program.forward, *program.own)
    return on.target in {statement.target, *_needed(known, (statement,))}


def _with_partial_sum(term: Term, other: ir.Statement) -> Term | None:
    """Return a sum with a sum inside of it replaced by a read of `other`; None if it has none.

    Divisors of `other` need not be in the sum: where `other` is `(sum[j] e[j]) / total`, the
    sum `sum[j] e[j]` is replaced by `other * total`.
    """
    inner = _sum_of(other)
    if inner is None:
        return None
    divisors = {
        atom: exponent
        for atom, exponent in inner.factors.items()
        if exponent < 0 and indices_of((atom,)).isdisjoint(inner.bound)
    }
    own = {atom: e for atom, e in inner.factors.items() if atom not in divisors}
    if not own:
        return None
    # Each way to find the factors of the other sum in this one, up to names of indices.
    pattern = ProductPattern(
        tuple(own.items()), frozenset((*other.indices, *inner.bound))
    )
    for renaming, _ in renamings(pattern, term.factors, whole=False):
        if not {*other.indices, *inner.bound} <= renaming.keys():
            continue
        by: dict[ir.Index, ir.Expr] = {
            old: ir.IndexValue(new) for old, new in renaming.items()
        }
        part = {substituted(a, by): -e for a, e in inner.factors.items()}
        rest = joined(term.factors, part)
        # The conditions of the other sum must be here, too, and its indices nowhere else.
        gone = {renaming[index] for index in inner.bound}
        same = {_form_of(substituted(c, by)) for c in inner.conditions}
        conditions = tuple(c for c in term.conditions if _form_of(c) not in same)
        if len(term.conditions) - len(conditions) < len(same):
            continue
        if not gone < {*term.bound} or gone & indices_of((*rest, *conditions)):
            continue
        places = (as_subscript(by[index]) for index in other.indices)
        name = ir.Load(other.target, tuple(places))
        bound = tuple(index for index in term.bound if index not in gone)
        return Term(
            term.coefficient / inner.coefficient,
            joined(rest, {name: ONE}),
            conditions,
            bound,
            term.solved,
        )
    return None


def _form_of(condition: ir.Expr) -> Hashable:
    """Return a condition's canonical form, which equivalent conditions share.

    `s + j <= t + i` and `j <= i + (t - s)` are.
    """
    forms = facts_of(condition)
    return tuple(frozenset(form.items()) for form in forms) or condition


def _needed(
    known: Iterable[ir.Statement], outputs: Iterable[ir.Statement]
) -> frozenset[ir.Tensor]:
    """Return the lets among `known` that some statements depend on, directly or not."""
    of = {s.target: s for s in known if s.target.role is ir.Role.LET}
    waiting, found = [*outputs], set[ir.Tensor]()
    while waiting:
        for tensor in tensors_read(waiting.pop().value):
            if tensor in of and tensor not in found:
                found.add(tensor)
                waiting.append(of[tensor])
    return frozenset(found)
