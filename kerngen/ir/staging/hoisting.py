"""Hoisting: rewrites that make lets of parts of statements."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import final

from kerngen.ir import nodes as ir
from kerngen.ir.analysis.reads import (
    clashes,
    free_indices,
    holds_reduce,
    names_in,
    outer_reductions,
    tensors_read,
)
from kerngen.ir.store import StoreAt
from kerngen.ir.walk import map_children, subscript_value

Body = tuple[ir.Statement, ...]


@final
class Fresh:
    """A supply of names that the kernel does not use."""

    def __init__(self, kernel: ir.Kernel) -> None:
        self._taken = {
            *kernel.lengths,
            *kernel.order,
            *(tensor.name for tensor in kernel.tensors),
            *(host.name for host in kernel.hosts),
            *(name for statement in kernel.body for name in names_in(statement)),
        }
        self._numbers: dict[str, int] = {}

    def name(self, wanted: str) -> str:
        """Return an unused name: `wanted`, `wanted_2` and so on."""
        name, number = wanted, self._numbers.get(wanted, 1)
        while name in self._taken:
            number += 1
            name = f"{wanted}_{number}"
        self._numbers[wanted] = number
        self._taken.add(name)
        return name


def hoist_reductions(body: Iterable[ir.Statement], fresh: Fresh) -> Body:
    """Return statements with at most one reduction each; the others become lets.

    Before:  y[i] = x[i] / sum[j] x[j];
    After:   let y_sum = sum[j] x[j];    y[i] = x[i] / y_sum;

    A let that reads itself, a recurrence, keeps each reduction in which it does so, and no
    other reductions.
    """
    return tuple(part for statement in body for part in _hoisted(statement, fresh))


def _hoisted(statement: ir.Statement, fresh: Fresh) -> Iterator[ir.Statement]:
    if not holds_reduce(statement.value):
        yield statement
        return
    kept = None if statement.along else _kept_reduction(statement)
    itself = {statement.target} if statement.along else set[ir.Tensor]()
    lets: list[ir.Statement] = []
    known: dict[ir.Expr, ir.Expr] = {}

    def hoist(reduce: ir.Reduce) -> ir.Expr:
        if reduce in known:  # both branches of an `if` may need it
            return known[reduce]
        # The let is over those of the statement's indices on which the reduction depends.
        free = free_indices(reduce)
        indices = tuple(index for index in statement.indices if index in free)
        name = fresh.name(f"{statement.target.name}_{reduce.kind}")
        let = named_let(statement, name, indices, reduce)
        lets.extend(_hoisted(let, fresh))
        known[reduce] = ir.Load(let.target, tuple(map(ir.IndexValue, indices)))
        return known[reduce]

    # `bound` are the indices of the reductions around an expression: one that uses them
    # can't be computed before.
    def visit(expr: ir.Expr, bound: frozenset[ir.Index]) -> ir.Expr:
        if not isinstance(expr, ir.Reduce):
            return map_children(expr, lambda child: visit(child, bound))
        is_apart = not free_indices(expr) & bound and itself.isdisjoint(
            tensors_read(expr)
        )
        if expr is not kept and is_apart:
            return hoist(expr)
        inner = bound | frozenset(expr.indices)
        return map_children(expr, lambda child: visit(child, inner))

    value = visit(statement.value, frozenset())
    yield from lets
    yield replace(statement, value=value)


def _kept_reduction(statement: ir.Statement) -> ir.Reduce | None:
    """Return the first outer reduction that depends on every index of the statement."""
    domain = frozenset(statement.indices)
    whole = (r for r in outer_reductions(statement.value) if free_indices(r) == domain)
    return next(whole, None)


def split_self_reads(body: Iterable[ir.Statement], fresh: Fresh) -> Body:
    """Return statements that read no other elements of their own targets.

    A let computes the value first, where a statement does.  Recurrences stay as they are.

    Before:  x[i] = sum[j] w[i, j] * x[j];
    After:   let x_next[i] = sum[j] w[i, j] * x[j];    x[i] = x_next[i];
    """
    return tuple(part for statement in body for part in _split(statement, fresh))


def _split(statement: ir.Statement, fresh: Fresh) -> Iterator[ir.Statement]:
    if statement.along or not clashes(statement):
        yield statement
        return

    def named(wanted: str, value: ir.Expr, indices: tuple[ir.Index, ...]) -> ir.Load:
        name = fresh.name(f"{statement.target.name}_{wanted}")
        let = named_let(statement, name, indices, value)
        lets.append(let)
        return ir.Load(let.target, tuple(map(ir.IndexValue, indices)))

    def apart(place: ir.Subscript) -> ir.Subscript:
        """Return a subscript of the position; it is a let if it reads the target itself."""
        value = subscript_value(place)
        if statement.target not in tensors_read(value):
            return place
        own = tuple(i for i in statement.indices if i in free_indices(value))
        return ir.Clamped(named("at", value, own))

    # A store at a position also computes the position first, if that reads the target.
    lets: list[ir.Statement] = []
    match statement.value:
        case StoreAt(value, places):
            read: ir.Expr = named("next", value, statement.indices)
            read = StoreAt(read, tuple(map(apart, places)))
        case value:
            read = named("next", value, statement.indices)
    yield from lets
    yield replace(statement, value=read)


def split_packed(body: Iterable[ir.Statement], fresh: Fresh) -> Body:
    """Return statements that store no reduction directly as an integer of 8 or 4 bits.

    A let computes the reduction first, as 32 bits.  An element of 8 or 4 bits shares its word
    with others, so that an invocation writes whole words; only the strategy for single elements
    does so.

    Before:  y[i] = max[j] x[i, j];
    After:   let y_wide[i] = max[j] x[i, j];    y[i] = y_wide[i];
    """
    return tuple(part for statement in body for part in _packed(statement, fresh))


def _packed(statement: ir.Statement, fresh: Fresh) -> Iterator[ir.Statement]:
    if statement.target.narrow is None or not holds_reduce(statement.value):
        yield statement
        return
    name = fresh.name(f"{statement.target.name}_wide")
    let = named_let(statement, name, statement.indices, statement.value)
    read = ir.Load(let.target, tuple(map(ir.IndexValue, statement.indices)))
    yield let
    yield replace(statement, value=read)


def named_let(
    statement: ir.Statement, name: str, indices: tuple[ir.Index, ...], value: ir.Expr
) -> ir.Statement:
    """Return `let name[indices] = value`, for a `value` that is a part of a statement.

    `indices` are those of the statement's that the value depends on.
    """
    extents = tuple(index.extent for index in indices)
    target = ir.Tensor(name, value.type, extents, ir.Role.LET, span=statement.span)
    return replace(
        statement,
        target=target,
        indices=indices,
        value=value,
        path=(),
        component="",
        along=None,
    )
