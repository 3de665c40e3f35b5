"""Exchange the order of nested sums, where that lets a sum be reused.

    Before:  along[i] = sum[p] dy[i, p] * y[i, p];        y[i, p] = sum[j] e[i, j] * v[j, p]
    After:   along[i] = sum[j] de[i, j] * e[i, j];       de[i, j] = sum[p] dy[i, p] * v[j, p]

So `y`, a product, is not computed again.  `attention` divided behind its sum has this form.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import final

from kerngen.gradient.match import Pattern, renamings
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
from kerngen.ir.analysis.reads import tensors_read
from kerngen.ir.nodes import (
    Expr,
    Index,
    IndexValue,
    Load,
    Reduce,
    Role,
    Statement,
    Tensor,
)


@final
@dataclass(frozen=True)
class Program:
    """The statements of a gradient: those of the forward kernel, its own, its outputs."""

    forward: tuple[Statement, ...]
    own: tuple[Statement, ...]
    outputs: tuple[Statement, ...]

    def needed(self) -> frozenset[Tensor]:
        """Return the lets that the outputs depend on, directly or not."""
        return _needed((*self.forward, *self.own), self.outputs)


def with_sums_exchanged(
    program: Program, simplifier: Simplifier
) -> tuple[Statement, ...]:
    """Return the gradient's statements with sums in the cheaper order."""
    for place, statement in enumerate(program.own):
        for other in _exchanged(statement, program, simplifier):
            own = (*program.own[:place], other, *program.own[place + 1 :])
            changed = replace(program, own=own)
            if len(changed.needed()) < len(program.needed()) or _is_shorter(
                other, statement
            ):
                program = changed
                break
    return program.own


def _is_shorter(other: Statement, statement: Statement) -> bool:
    """Whether a statement sums over fewer indices than it did."""
    shorter, longer = _sum_of(other), _sum_of(statement)
    if shorter is None or longer is None:
        return False
    return len(shorter.bound) < len(longer.bound)


def _sum_of(statement: Statement) -> Term | None:
    value = statement.value
    if not isinstance(value, Reduce) or value.kind != "sum" or statement.along:
        return None
    return terms_of_sum(value)


def _exchanged(
    statement: Statement, program: Program, simplifier: Simplifier
) -> Iterator[Statement]:
    term = _sum_of(statement)
    if term is None:
        return
    for each in (term, simplifier.opened(term)):
        if each is None or len(each.bound) < 2:
            continue
        for other in program.own:
            found = _with_partial_sum(each, other)
            if found is not None and not _depends(other, statement, program):
                yield replace(statement, value=rendered([found]))


def _depends(statement: Statement, on: Statement, program: Program) -> bool:
    known = (*program.forward, *program.own)
    return on.target in {statement.target, *_needed(known, (statement,))}


def _with_partial_sum(term: Term, other: Statement) -> Term | None:
    """Return a sum with the name of another in the place of a sum inside of it."""
    inner = _sum_of(other)
    if inner is None or inner.conditions or other.target.role is not Role.LET:
        return None
    pattern = Pattern(
        tuple(inner.factors.items()), frozenset((*other.indices, *inner.bound))
    )
    for renaming, _ in renamings(pattern, term.factors, whole=False):
        if not {*other.indices, *inner.bound} <= renaming.keys():
            continue
        by: dict[Index, Expr] = {old: IndexValue(new) for old, new in renaming.items()}
        part = {substituted(a, by): -e for a, e in inner.factors.items()}
        rest = joined(term.factors, part)
        gone = {renaming[index] for index in inner.bound}
        if not gone < {*term.bound} or gone & indices_of((*rest, *term.conditions)):
            continue
        places = (as_subscript(by[index]) for index in other.indices)
        name = Load(other.target, tuple(places))
        bound = tuple(index for index in term.bound if index not in gone)
        factors = joined(rest, {name: ONE})
        return replace(term, factors=factors, bound=bound)
    return None


def _needed(
    known: Iterable[Statement], outputs: Iterable[Statement]
) -> frozenset[Tensor]:
    of = {s.target: s for s in known if s.target.role is Role.LET}
    waiting, found = [*outputs], set[Tensor]()
    while waiting:
        for tensor in tensors_read(waiting.pop().value):
            if tensor in of and tensor not in found:
                found.add(tensor)
                waiting.append(of[tensor])
    return frozenset(found)
