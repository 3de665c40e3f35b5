"""A lane's loop over a reduction that reads several terms before it adds any.

So the reads are under way together, and a lane waits for memory once per turn:

    for (var i = start; i < end; i += turn) {
        let i1 = i + step;
        let term = x[i];
        var term1 = 0.0;
        if (i1 < end) {
            term1 = x[i1];
        }
        total += term + term1;
    }
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias, final

from kerngen.ir.nodes import ReduceKind
from kerngen.ir.types import ValueType
from kerngen.schedule.lowering.builder import ShaderBuilder
from kerngen.schedule.lowering.identities import accumulate, identity, in_pairs
from kerngen.shader import tree as t

Term: TypeAlias = Callable[[t.Ident, list[t.Stmt]], t.Expr]
"""Returns the term at a place, after writing what it needs."""


@final
@dataclass(frozen=True)
class Blocks:
    """How a lane goes over its terms: each turn of its loop reads `at_once`, `step` apart.

    `counter` is the name of the loop's variable, which goes from `start` to `end` by `turn`.
    """

    counter: str
    start: t.Expr
    end: t.Expr
    step: t.Operand
    turn: t.Expr
    at_once: int


def accumulate_blocks(
    shader: ShaderBuilder,
    total: t.Ident,
    reduced: tuple[ReduceKind, ValueType, int],
    blocks: Blocks,
    term: Term,
) -> list[t.Stmt]:
    """Return the variable `total` and the loop that reduces a lane's terms into it.

    `reduced` has the kind of the reduction, the type of its values, and how many values a term
    has side by side: 1, or 4 in a vector.  `term` emits the read of one term.
    """
    kind, type_, width = reduced
    counter = t.Ident(blocks.counter)
    first = t.Ident(shader.fresh("term"))
    places, reads, terms = list[t.Stmt](), list[t.Stmt](), [first]
    value = term(counter, reads)
    reads.append(t.Let(first.name, value))
    # The first term is inside by the loop's condition; each other one is tested.
    for number in range(1, blocks.at_once):
        at = t.Ident(shader.fresh(f"{counter.name}{number}"))
        own = t.Ident(shader.fresh(f"term{number}"))
        places.append(t.Let(at.name, counter + blocks.step * number))
        read = list[t.Stmt]()
        value = term(at, read)
        reads += (
            t.Var(own.name, identity(shader, kind, type_, width)),
            t.If(at < blocks.end, (*read, t.Assign(own, value))),
        )
        terms.append(own)
    take = accumulate(kind, total, in_pairs(kind, terms))
    body = (*places, *reads, take)
    loop = t.count_up(counter.name, blocks.start, blocks.end, blocks.turn, *body)
    return [t.Var(total.name, identity(shader, kind, type_, width)), loop]
